/* Numbers that decide, and conditions as questions about them. Bounds and conditions are
 * normalised to `number > constant`: 2 * K + 1 iterations are twice the number K plus one, `a <
 * b` is b - a > 0. Numbers are equal if their polynomials over versions are, where loop
 * variables of matching loops are equal. An equality that is missed only loses information: then
 * both outcomes are tried. */
#include "check/deadlock/deadlock_search.h"

#define PERIOD_MOST 2048
#define LEAST_MOST  8 /* largest constant lower bound that is tried */
#define SPLITS_MOST 8 /* nesting depth of truths, minima and maxima that are expanded */

static int track_of(const Part *part, int side, int loop) {
    return loop < 0 ? -1 : loop_of(part, side, loop)->track;
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

Algebra *part_algebra(const Part *part, int side, int around) {
    return part->algebra[in_grid(part, side, around)];
}

/* ---- formulas of loop variables -------------------------------------------------------------- */

static int tile_atom(Algebra *algebra) {
    return algebra_version(algebra, NULL, -1, -1, "tile", E_I32)->terms[0].atoms[0];
}

static bool mentions_track(const Part *part, Algebra *algebra, const Poly *poly,
                           const Track *track) {
    const Region *region = track->region;
    if (region->kind == REGION_FOR)
        return region->var >= 0 &&
               poly_mentions(algebra, poly, algebra_atom_local(algebra, track->role, region->var));
    if (poly_mentions(algebra, poly, tile_atom(algebra))) return true;
    for (size_t i = 0; i < part->prog->axes.count; i++)
        if (region->axes[i] >= 0 &&
            poly_mentions(algebra, poly, algebra_atom_local(algebra, track->role, region->axes[i])))
            return true;
    return false;
}

const Poly *part_formula(Part *part, int side, int around, int at, Expr *expr) {
    return part_whole_formula(part, side, around,
                              part->sides.items[side].slice->whole_rows.items[at], expr);
}

const Poly *part_whole_formula(Part *part, int side, int around, int whole, Expr *expr) {
    Algebra *algebra = part_algebra(part, side, around);
    const Side *own = &part->sides.items[side];
    const Poly *poly = values_import(part->arena, own->role->code, whole, expr, algebra);
    for (const Loop *loop = loop_of(part, side, around); loop && poly;
         loop = loop_of(part, side, loop->outer)) {
        const Track *track = &part->tracks.items[loop->track];
        if (loop->region->kind != REGION_FOR || loop->region->var < 0) continue;
        int local = algebra_atom_local(algebra, own->role, loop->region->var);
        if (track->once) poly = poly_replace(algebra, poly, local, track->lo);
        if (track->role == own->role || track->once || track->region->var < 0) continue;
        int shared = algebra_atom_local(algebra, track->role, track->region->var);
        if (local != shared) poly = poly_replace(algebra, poly, local, poly_atom(algebra, shared));
    }
    return part_split(part, algebra, poly);
}

int part_depends(const Part *part, int side, int around, const Poly *poly) {
    Algebra *algebra = part_algebra(part, side, around);
    const Side *own = &part->sides.items[side];
    for (const Loop *loop = loop_of(part, side, around); loop;
         loop = loop_of(part, side, loop->outer)) {
        int whole = own->slice->whole_regions.items[loop - own->loops];
        if (mentions_track(part, algebra, poly, &part->tracks.items[loop->track]))
            return loop->track;
        const Region *region = &own->role->code->regions.items[whole];
        if (poly_has_version(algebra, poly, own->role, region->begin, region->next))
            return loop->track;
    }
    return -1;
}

/* ---- numbers --------------------------------------------------------------------------------- */

const Poly *part_primitive(Part *part, const Poly *poly, int64_t *times, int64_t *plus) {
    int64_t common = 0;
    *plus = poly->count && poly->terms[0].count == 0 ? poly->terms[0].coef : 0;
    for (int i = 0; i < poly->count; i++) {
        if (poly->terms[i].coef == INT64_MIN) return NULL;
        if (poly->terms[i].count) common = common_divisor(common, poly->terms[i].coef);
    }
    if (!common) return NULL;
    Poly *rest = arena_alloc(part->arena, sizeof(Poly) + (size_t)poly->count * sizeof(Term));
    rest->count = 0;
    for (int i = 0; i < poly->count; i++) {
        if (!poly->terms[i].count) continue;
        rest->terms[rest->count] = poly->terms[i];
        rest->terms[rest->count++].coef /= common;
    }
    *times = common;
    return rest;
}

static const Atom *only_atom(const Algebra *algebra, const Poly *poly) {
    if (!poly || poly->count != 1 || poly->terms[0].count != 1 || poly->terms[0].coef != 1)
        return NULL;
    return &algebra->atoms.items[poly->terms[0].atoms[0]];
}

/* A constant upper bound, if the formula is a constant, a remainder, a truth, or a minimum with
 * a constant. */
static int32_t most_of(const Algebra *algebra, const Poly *poly) {
    const Atom *atom = only_atom(algebra, poly);
    int32_t most = NEVER;
    int64_t by;
    if (poly_is_constant(poly, &by) && by > -NEVER / 2 && by < NEVER) return (int32_t)by;
    if (!atom) return NEVER;
    if (atom->type == E_BOOL) return 1;
    bool rest = atom->kind == ATOM_MOD && poly_is_constant(atom->args[1], &by);
    if (rest && by > 0 && by < NEVER) return (int32_t)by - 1;
    for (int i = 0; atom->kind == ATOM_MIN && i < 2; i++)
        if (poly_is_constant(atom->args[i], &by) && by > -NEVER / 2 && by < most)
            most = (int32_t)by;
    return most;
}

static void learn_bounds(Algebra *algebra, Number *number) {
    const Atom *atom = only_atom(algebra, number->poly);
    bool truth = atom && atom->type == E_BOOL;
    number->low = number->grid || number->where >= 0 || truth ? -1 : ALWAYS;
    number->high = NEVER;
    if (number->grid || (number->changes && !truth)) return;
    number->high = most_of(algebra, number->poly);
    /* live iterations of an empty range */
    if (number->where >= 0 && number->high < 0) number->high = 0;
    if (number->where >= 0 || truth) return;
    for (int least = 0; least < LEAST_MOST; least++) { /* tests value >= least */
        const Poly *room = poly_offset(algebra, number->poly, -least);
        if (!algebra_proves(algebra, CLAIM_NOT_NEGATIVE, room)) break;
        number->low = least - 1;
    }
}

/* Counters are reduced by whole periods; false: the period would be too long */
static bool add_period(Part *part, const Track *track, int64_t by) {
    if (track->shape.group < 0) return true;
    Group *group = &part->groups.items[track->shape.group];
    if (by > PERIOD_MOST) return false;
    int64_t period = group->period / common_divisor(group->period, by) * by;
    if (period > PERIOD_MOST) return false;
    group->period = period;
    return true;
}

/* The variable that counts the iterations of a track; NULL: none */
static const Poly *counter_of(Algebra *algebra, const Track *track) {
    const Region *region = track->region;
    if (region->kind == REGION_GRID) return poly_atom(algebra, tile_atom(algebra));
    if (region->var < 0 || region->where || track->changes) return NULL;
    return poly_atom(algebra, algebra_atom_local(algebra, track->role, region->var));
}

/* Recognises a loop variable, or its remainder: its value is known without a question */
static void find_counter(Part *part, Algebra *algebra, Number *number) {
    int64_t from, by = 0;
    number->counter = -1;
    if (number->track < 0 || number->grid || number->where >= 0) return;
    const Track *track = &part->tracks.items[number->track];
    const Poly *poly = number->poly, *variable = counter_of(algebra, track);
    const Atom *atom = only_atom(algebra, poly);
    if (!variable) return;
    if (atom && atom->kind == ATOM_MOD && poly_is_constant(atom->args[1], &by) && by > 0)
        poly = atom->args[0];
    const Poly *rest = poly_sum(algebra, poly_sum(algebra, poly, variable, -1), track->base, 1);
    if (!poly_is_constant(rest, &from) || from > NEVER / 2 || from < -NEVER / 2) return;
    if (by && (from + track->shape.first < 0 || !add_period(part, track, by))) return;
    number->counter = number->track;
    number->from = (int32_t)from;
    number->modulo = (int32_t)by;
}

int number_new(Part *part, Algebra *algebra, Number number) {
    number.last = NEW_ARRAY(part->arena, int, part->sides.count);
    for (size_t i = 0; i < part->sides.count; i++) number.last[i] = -1;
    learn_bounds(algebra, &number);
    find_counter(part, algebra, &number);
    vec_push(part->arena, &part->numbers, number);
    return (int)part->numbers.count - 1;
}

/* True if the formula has a quotient, remainder, min, max or select, so that equal formulas may
 * look different */
static bool has_operations(const Algebra *algebra, const Poly *poly) {
    for (int t = 0; t < poly->count; t++)
        for (int k = 0; k < poly->terms[t].count; k++) {
            AtomKind kind = algebra->atoms.items[poly->terms[t].atoms[k]].kind;
            if (kind >= ATOM_DIV && kind <= ATOM_TRUTH) return true;
        }
    return false;
}

bool part_equal(Algebra *algebra, const Poly *a, const Poly *b) {
    if (poly_equal(a, b)) return true;
    const Poly *difference = a && b ? poly_sum(algebra, a, b, -1) : NULL;
    return difference && has_operations(algebra, difference) &&
           algebra_proves(algebra, CLAIM_ZERO, difference);
}

int number_find(const Part *part, bool inside, const Poly *poly, int track, int where) {
    for (size_t i = 0; i < part->numbers.count; i++) {
        const Number *number = &part->numbers.items[i];
        if (number->changes || number->grid || number->in_grid != inside ||
            number->track != track || number->where != where)
            continue;
        if (part_equal(part->algebra[inside], number->poly, poly)) return (int)i;
    }
    return -1;
}

/* A number that is equal only to itself */
static int number_own(Part *part, int side, int around, const Poly *poly) {
    Number number = {
        .poly = poly, .track = track_of(part, side, around), .where = -1, .changes = true};
    number.in_grid = in_grid(part, side, around);
    return number_new(part, part_algebra(part, side, around), number);
}

int number_of(Part *part, int side, int around, const Poly *poly) {
    Algebra *algebra = part_algebra(part, side, around);
    if (poly_changes(algebra, poly)) return number_own(part, side, around, poly);
    int track = part_depends(part, side, around, poly);
    bool inside = in_grid(part, side, around);
    int found = number_find(part, inside, poly, track, -1);
    if (found >= 0) return found;
    return number_new(part, algebra,
                      (Number){.poly = poly, .track = track, .where = -1, .in_grid = inside});
}

int number_live(Part *part, int side, int around, const Region *loop, int whole,
                const Poly *range) {
    Algebra *algebra = part_algebra(part, side, around);
    bool inside = in_grid(part, side, around);
    bool changes = !range || poly_changes(algebra, range) || loop->domain < 0;
    int at = part_depends(part, side, around,
                          part_whole_formula(part, side, around, whole, loop->where));
    int other = part_depends(part, side, around, range);
    if (other >= 0 && (at < 0 || part->tracks.items[other].depth > part->tracks.items[at].depth))
        at = other;
    if (changes) at = track_of(part, side, around);
    int found = changes ? -1 : number_find(part, inside, range, at, loop->domain);
    if (found >= 0) return found;
    Number number = {
        .poly = range ? range : poly_constant(algebra, 0), .track = at, .changes = changes};
    number.where = loop->domain, number.in_grid = inside;
    return number_new(part, algebra, number);
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Iterations of a loop whose variable is compared with a constant are distinguished up to that
 * constant. */
static void tell_apart(Part *part, const Question *question) {
    const Number *number = &part->numbers.items[question->number];
    if (number->counter < 0 || number->modulo || question->counted) return;
    int group = part->tracks.items[number->counter].shape.group;
    int64_t exact = question->above - number->from + 1;
    if (group < 0 || exact > EXACT_MOST || exact <= part->groups.items[group].exact) return;
    part->groups.items[group].exact = (int32_t)exact;
}

static int ask(Part *part, int side, Question question) {
    Side *own = &part->sides.items[side];
    if (question.yes == question.no) return question.yes;
    tell_apart(part, &question);
    vec_push(part->arena, &own->questions, question);
    return (int)own->questions.count - 1;
}

static int64_t coefficient(const Poly *poly, int atom) {
    for (int i = 0; i < poly->count; i++)
        if (poly->terms[i].count == 1 && poly->terms[i].atoms[0] == atom)
            return poly->terms[i].coef;
    return 0;
}

/* Recognises poly > 0 as a comparison of an enclosing loop's counter with one of its bounds: k +
 * 1 < K */
static bool counted_by(Part *part, Algebra *algebra, const Loop *loop, const Poly *poly,
                       Question *question) {
    const Track *track = &part->tracks.items[loop->track];
    const Region *region = track->region;
    if (loop->group < 0 || region->kind != REGION_FOR || region->var < 0) return false;
    if (region->where || track->changes || track->once) return false;
    int atom = algebra_atom_local(algebra, track->role, region->var);
    int64_t sign = coefficient(poly, atom), times, plus;
    if (sign != 1 && sign != -1) return false;
    const Poly *rest = poly_sum(algebra, poly, poly_atom(algebra, atom), -sign);
    if (poly_mentions(algebra, rest, atom)) return false;
    /* k + r > 0 is not 1 - r > k */
    if (sign == 1) rest = poly_offset(algebra, poly_minus(algebra, rest), 1);
    const Poly *most = poly_sum(algebra, rest, track->base, -1);
    const Poly *unit = most ? part_primitive(part, most, &times, &plus) : NULL;
    if (!unit || plus > NEVER / 2 || plus < -NEVER / 2) return false;
    for (int b = 0; b < loop->bound_count; b++) {
        const Bound *bound = &loop->bounds[b];
        if (bound->number < 0 || times != bound->times) continue;
        if (!poly_equal(unit, part->numbers.items[bound->number].poly)) continue;
        int yes = sign == 1 ? question->no : question->yes,
            no = sign == 1 ? question->yes : question->no;
        *question = (Question){.number = bound->number, .above = plus, .yes = yes, .no = no};
        return true;
    }
    return false;
}

static bool counted(Part *part, int side, int around, const Poly *poly, Question *question) {
    Algebra *algebra = part_algebra(part, side, around);
    for (int index = around; index >= 0; index = loop_of(part, side, index)->outer) {
        if (!counted_by(part, algebra, loop_of(part, side, index), poly, question)) continue;
        question->counted = 1 + index;
        return true;
    }
    return false;
}

/* Expands a min or max in it: it is > 0 if `both` halves are, or one of them; false: there is
 * none */
static bool halves_of(Algebra *algebra, const Poly *poly, const Poly *halves[2], bool *both) {
    for (int i = 0; i < poly->count; i++) {
        const Term *term = &poly->terms[i];
        if (term->count != 1) continue;
        const Atom atom = algebra->atoms.items[term->atoms[0]];
        if (atom.kind != ATOM_MIN && atom.kind != ATOM_MAX) continue;
        *both = (atom.kind == ATOM_MIN) == (term->coef > 0);
        const Poly *rest = poly_sum(algebra, poly, poly_atom(algebra, term->atoms[0]), -term->coef);
        for (int k = 0; k < 2; k++) halves[k] = poly_sum(algebra, rest, atom.args[k], term->coef);
        return halves[0] && halves[1];
    }
    return false;
}

/* A number and its opposite form one question: with the form that exists already, otherwise the
 * one whose first term is positive */
static bool asks_opposite(Part *part, int side, int around, const Poly *rest,
                          const Poly *opposite) {
    if (!opposite || poly_changes(part_algebra(part, side, around), rest)) return false;
    int track = part_depends(part, side, around, rest);
    bool inside = in_grid(part, side, around), usual = rest->terms[0].coef > 0;
    bool own = number_find(part, inside, rest, track, -1) >= 0;
    bool other = number_find(part, inside, opposite, track, -1) >= 0;
    return usual ? other && !own : other || !own;
}

/* The question poly > 0 */
static int positive_question(Part *part, int side, int around, const Poly *poly, int yes, int no,
                             int depth) {
    Algebra *algebra = part_algebra(part, side, around);
    const Poly *halves[2];
    int64_t times, plus, value;
    bool both;
    Question question = {.yes = yes, .no = no};
    if (poly_is_constant(poly, &value)) return value > 0 ? yes : no;
    if (poly && depth > 0 && halves_of(algebra, poly, halves, &both)) {
        int second = positive_question(part, side, around, halves[1], yes, no, depth - 1);
        return positive_question(part, side, around, halves[0], both ? second : yes,
                                 both ? no : second, depth - 1);
    }
    if (poly && counted(part, side, around, poly, &question)) return ask(part, side, question);
    const Poly *rest = poly ? part_primitive(part, poly, &times, &plus) : NULL;
    if (!rest || plus > NEVER / 2 || plus < -NEVER / 2) { /* a separate truth */
        question.number = number_own(part, side, around, poly);
        return ask(part, side, question);
    }
    const Poly *opposite = poly_minus(algebra, rest);
    if (asks_opposite(part, side, around, rest, opposite))
        question = (Question){.number = number_of(part, side, around, opposite),
                              .above = -floor_div(-plus, times) - 1,
                              .yes = no,
                              .no = yes};
    else
        question.number = number_of(part, side, around, rest),
        question.above = floor_div(-plus, times);
    return ask(part, side, question);
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* The first truth that it depends on: those in conditions of selects come before those in their
 * operands. -1: none */
static int first_truth(const Algebra *algebra, const Poly *poly) {
    arena_count(algebra->arena, 1);
    for (int t = 0; t < poly->count; t++)
        for (int k = 0; k < poly->terms[t].count; k++) {
            int id = poly->terms[t].atoms[k];
            const Atom *atom = &algebra->atoms.items[id];
            bool excluded =
                atom->kind == ATOM_OPAQUE || atom->kind == ATOM_SUM || atom->kind == ATOM_FIRST;
            for (int a = 0; a < 3 && atom->args[a] && !excluded; a++) {
                int inner = first_truth(algebra, atom->args[a]);
                if (inner >= 0) return inner;
            }
            if (atom->type == E_BOOL) return id;
        }
    return -1;
}

/* A condition is a number 0 or 1 of several decisions: makes each decision and substitutes it. */
static int truth_question(Part *part, int side, int around, const Poly *poly, int yes, int no,
                          int depth) {
    Algebra *algebra = part_algebra(part, side, around);
    int64_t value;
    if (poly_is_constant(poly, &value)) return value ? yes : no;
    int truth = poly && depth > 0 ? first_truth(algebra, poly) : -1;
    if (truth < 0) {
        int number =
            poly ? number_of(part, side, around, poly) : number_own(part, side, around, poly);
        return ask(part, side, (Question){.number = number, .yes = yes, .no = no});
    }
    int then = truth_question(part, side, around, poly_decided(algebra, poly, truth, true), yes, no,
                              depth - 1);
    int otherwise = truth_question(part, side, around, poly_decided(algebra, poly, truth, false),
                                   yes, no, depth - 1);
    const Atom atom = algebra->atoms.items[truth];
    if (atom.kind == ATOM_TRUTH)
        return positive_question(part, side, around, poly_offset(algebra, atom.args[0], 1), then,
                                 otherwise, SPLITS_MOST);
    int number = number_of(part, side, around, poly_atom(algebra, truth));
    return ask(part, side, (Question){.number = number, .yes = then, .no = otherwise});
}

/* The question if a range with a `where` has an iteration */
static int live_question(Part *part, int side, int around, int search) {
    const FlowCode *code = part->sides.items[side].role->code;
    const Region *loop = &code->regions.items[search];
    const Poly *lo = part_whole_formula(part, side, around, loop->begin, loop->lo);
    const Poly *hi = part_whole_formula(part, side, around, loop->begin, loop->hi);
    const Poly *range = poly_sum(part_algebra(part, side, around), hi, lo, -1);
    int number = number_live(part, side, around, loop, loop->begin, range);
    return ask(part, side, (Question){.number = number, .yes = QUESTION_YES, .no = QUESTION_NO});
}

/* The question if at least so many live iterations of the enclosing loop began before this one,
 * which is counted */
static int begun_question(Part *part, int side, int around, const Poly *least, int yes, int no) {
    int64_t from;
    const Poly *none = poly_constant(part_algebra(part, side, around), 0);
    int number = number_own(part, side, around, none);
    Question question = {.number = number, .yes = yes, .no = no};
    if (poly_is_constant(least, &from) && from < NEVER / 2) {
        if (from <= 0) return yes;
        part->numbers.items[number].counter = track_of(part, side, around);
        question.above = from - 1;
    }
    return ask(part, side, question);
}

static int piece_question(Part *part, int side, int around, const Region *piece) {
    const Poly *from = part_formula(part, side, around, piece->begin, piece->from);
    int within = QUESTION_YES;
    if (piece->to) {
        const Poly *to = part_formula(part, side, around, piece->begin, piece->to);
        within = begun_question(part, side, around, to, QUESTION_NO, QUESTION_YES);
    }
    return begun_question(part, side, around, from, within, QUESTION_NO);
}

int part_condition(Part *part, int side, const Region *branch) {
    int around = branch->loop, at = branch->begin;
    if (branch->search >= 0) return live_question(part, side, around, branch->search);
    if (branch->from) return piece_question(part, side, around, branch);
    Expr *condition = branch->condition;
    const Poly *poly = part_formula(part, side, around, at, condition);
    return truth_question(part, side, around, poly, QUESTION_YES, QUESTION_NO, SPLITS_MOST);
}
