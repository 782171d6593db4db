/* Models: values of atoms that satisfy all facts at a place. A claim that a model falsifies has
 * no proof, so the search is skipped: most queries ask whether a condition may be true and
 * whether it may be false, and usually both are possible. Few models are tried; if none fits,
 * nothing follows. */
#include "algebra/private.h"

typedef struct Interval {
    int64_t least, most;
} Interval;

static bool atom_value(Algebra *algebra, Model *model, int id, int64_t *out);

static bool poly_value(Algebra *algebra, Model *model, const Poly *poly, int64_t *out) {
    int64_t sum = 0, product, factor;
    arena_count(algebra->arena, (uint64_t)poly->count);
    for (int i = 0; i < poly->count; i++) {
        product = poly->terms[i].coef;
        for (int k = 0; k < poly->terms[i].count; k++)
            if (!atom_value(algebra, model, poly->terms[i].atoms[k], &factor) ||
                __builtin_mul_overflow(product, factor, &product))
                return false;
        if (__builtin_add_overflow(sum, product, &sum)) return false;
    }
    *out = sum;
    return true;
}

/* ---- free atoms ------------------------------------------------------------------------------ */

static int64_t in_64_bits(Wide value) {
    return value < INT64_MIN ? INT64_MIN : value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

/* True if the kind has limits narrower than its range */
static bool has_limits(AtomKind kind) {
    return kind == ATOM_AXIS || kind == ATOM_RANK || kind == ATOM_INDEX || kind == ATOM_LOCAL;
}

/* The interval of the atom by its known bounds; false: a bound has no value. */
static bool interval_of(Algebra *algebra, Model *model, int id, Interval *out) {
    Range range = range_of_atom(algebra, id);
    bool limits = has_limits(algebra->atoms.items[id].kind);
    *out = (Interval){in_64_bits(range.least), in_64_bits(range.most)};
    for (int lower = 0; lower < 2 && limits; lower++) {
        AtomBounds bounds = {0};
        atom_bounds(algebra, id, lower, &bounds);
        for (size_t i = 0; i < bounds.count; i++) {
            int64_t value;
            if (!poly_value(algebra, model, bounds.items[i].poly, &value)) return false;
            if (lower && value > out->least) out->least = value;
            if (!lower && value < out->most) out->most = value;
        }
    }
    return out->least <= out->most;
}

typedef struct Choose {
    int64_t size;    /* of extents, scalars and contents of memory */
    int64_t version; /* of a variable at one place */
    bool most, next; /* variables: the end of their range, or the second value */
} Choose;

/* In the last one each element of memory holds its position, so that those of tables of starts and
 * ends increase; all else is as in the first one. In other later models the choice depends on `by`:
 * the number of the atom, or the sum of its operands, so that reads of one element have one value.
 */
static int64_t picked(const Model *model, const Atom *atom, int64_t by, Interval in) {
    static const Choose table[] = {{4096, 0, 0, 0}, {0, 1, 0, 0},       {1, 0, 0, 0},
                                   {4096, 1, 1, 0}, {1 << 30, 0, 0, 0}, {1000, 1, 0, 1},
                                   {1000, 1, 1, 0}, {0, 1, 0, 1}};
    bool positions = model->number == MODELS - 1;
    size_t count = COUNT_OF(table), number = positions ? 0 : (size_t)model->number;
    const Choose *choose = &table[(number < count ? number : number + (uint64_t)by) % count];
    bool opaque = atom->kind == ATOM_OPAQUE, size = atom->kind == ATOM_SYMBOL;
    int64_t wish = choose->most ? in.most : in.least;
    if (choose->next && in.least < in.most) wish = in.least + 1;
    if (opaque && !atom->args[0]) wish = choose->version;
    if (size || (opaque && atom->args[0])) wish = opaque && positions ? by : choose->size;
    return wish < in.least ? in.least : wish > in.most ? in.most : wish;
}

/* ---- operations ------------------------------------------------------------------------------ */

static bool division(AtomKind kind, int64_t a, int64_t b, int64_t *out) {
    if (b <= 0) return false; /* negative divisors are rare */
    if (kind == ATOM_DIV) *out = a / b;
    if (kind == ATOM_MOD) *out = a % b;
    if (kind == ATOM_FLOOR) *out = floor_of(a, b);
    if (kind == ATOM_CEIL) *out = a / b + (a % b > 0);
    return true;
}

static bool cut_off(Element type, int64_t value, int64_t *out) {
    int bits = 8 * element_rows[type].bytes;
    Range range = range_of_type(type);
    *out = value;
    if (bits >= 64) return range.least < 0 || value >= 0;
    *out = (int64_t)((uint64_t)value & ((UINT64_C(1) << bits) - 1));
    if (*out > range.most) *out -= INT64_C(1) << bits;
    return true;
}

static bool operation_value(const Atom *atom, const int64_t *args, int64_t *out) {
    switch (atom->kind) {
    case ATOM_DIV:
    case ATOM_MOD:
    case ATOM_CEIL:
    case ATOM_FLOOR: return division(atom->kind, args[0], args[1], out);
    case ATOM_MIN: *out = args[0] < args[1] ? args[0] : args[1]; return true;
    case ATOM_MAX: *out = args[0] > args[1] ? args[0] : args[1]; return true;
    case ATOM_SELECT: *out = args[0] ? args[1] : args[2]; return true;
    case ATOM_TRUTH: *out = args[0] >= 0; return true;
    case ATOM_WRAP: return cut_off(atom->type, args[0], out);
    case ATOM_SYMBOL:
    case ATOM_AXIS:
    case ATOM_LOCAL:
    case ATOM_RANK:
    case ATOM_INDEX:
    case ATOM_WHOLE:
    case ATOM_REST:
    case ATOM_BOUND:
    case ATOM_SUM:
    case ATOM_FIRST:
    case ATOM_OPAQUE: break;
    }
    return false;
}

/* ---- sizes that a precondition sets ---------------------------------------------------------- */

static bool mentions_alone(const Poly *poly, int id) {
    for (int i = 0; i < poly->count; i++)
        if (poly->terms[i].count == 1 && poly->terms[i].atoms[0] == id)
            return poly->terms[i].coef == 1 || poly->terms[i].coef == -1;
    return false;
}

/* The formula of others to which `requires A == ..` sets the symbol; NULL: there is none. An
 * equality is stated as two facts. */
static const Poly *set_to(Algebra *algebra, int id) {
    for (size_t i = 0; i + 1 < algebra->stated.count; i++) {
        const Poly *fact = algebra->stated.items[i], *factor, *rest;
        if (!mentions_alone(fact, id)) continue;
        const Poly *both = poly_sum(algebra, fact, algebra->stated.items[i + 1], 1);
        if (!both || both->count > 0 || !poly_split(algebra, fact, id, &factor, &rest)) continue;
        return factor->terms[0].coef > 0 ? poly_minus(algebra, rest) : rest;
    }
    return NULL;
}

/* True if it is set, and may have that value; in a circle, one symbol is free. */
static bool set_value(Algebra *algebra, Model *model, int id, Interval in, int64_t *out) {
    const Poly *poly = set_to(algebra, id);
    return poly && poly_value(algebra, model, poly, out) && *out >= in.least && *out <= in.most;
}

static bool find_value(Algebra *algebra, Model *model, int id, int64_t *out) {
    const Atom atom = algebra->atoms.items[id];
    int64_t args[3] = {0};
    Interval interval;
    if (atom.kind == ATOM_WHOLE || atom.kind == ATOM_REST || atom.kind == ATOM_BOUND) return false;
    for (int a = 0; a < 3 && atom.args[a]; a++)
        if (!poly_value(algebra, model, atom.args[a], &args[a])) return false;
    if (atom.args[0] && atom.kind != ATOM_OPAQUE) return operation_value(&atom, args, out);
    if (!interval_of(algebra, model, id, &interval)) return false;
    if (atom.kind == ATOM_SYMBOL && set_value(algebra, model, id, interval, out)) return true;
    int64_t by =
        atom.args[0] ? (int64_t)((uint64_t)args[0] + (uint64_t)args[1] + (uint64_t)args[2]) : id;
    *out = picked(model, &atom, by, interval);
    return true;
}

static void make_room(Algebra *algebra, Model *model, size_t wanted) {
    size_t old = model->room * sizeof *model->values, room = algebra->atoms.count * 2;
    if (model->room >= wanted) return;
    model->values = arena_grow(algebra->arena, model->values, old, room * sizeof *model->values);
    model->room = room;
}

/* Values that contain an index depend on the statement. False: no value. */
static bool atom_value(Algebra *algebra, Model *model, int id, int64_t *out) {
    const IndexSpace *space = algebra->atoms.items[id].indexed ? algebra->space : NULL;
    make_room(algebra, model, (size_t)id + 1);
    ModelValue made = model->values[id];
    if (!made.tried || made.space != space) {
        made = (ModelValue){.tried = true, .space = space};
        model->values[id] = made; /* unknown while it is searched */
        made.known = find_value(algebra, model, id, &made.value);
        make_room(algebra, model, (size_t)id + 1);
        model->values[id] = made;
    }
    *out = made.value;
    return made.known;
}

/* ---- facts ----------------------------------------------------------------------------------- */

static bool holds(Algebra *algebra, Model *model, const Poly *fact) {
    int64_t value;
    return poly_value(algebra, model, fact, &value) && value >= 0;
}

static bool all_hold(Algebra *algebra, Model *model, const Poly *const *facts, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!holds(algebra, model, facts[i])) return false;
    return true;
}

static bool divides(Algebra *algebra, Model *model, const Divides *divides) {
    int64_t value;
    return poly_value(algebra, model, divides->poly, &value) && value % divides->by == 0;
}

/* Checks the facts of the program, each once */
static bool fits_program(Algebra *algebra, Model *model) {
    while (!model->broken && model->stated < algebra->stated.count)
        model->broken = !holds(algebra, model, algebra->stated.items[model->stated++]);
    while (!model->broken && model->divides < algebra->stated_divides.count)
        model->broken = !divides(algebra, model, &algebra->stated_divides.items[model->divides++]);
    return !model->broken;
}

static bool fits_path(Algebra *algebra, Model *model) {
    if (!all_hold(algebra, model, algebra->facts.items, algebra->facts.count)) return false;
    for (size_t i = 0; i < algebra->divides.count; i++)
        if (!divides(algebra, model, &algebra->divides.items[i])) return false;
    for (size_t i = 0; i < algebra->choices.count; i++) {
        const Choice *choice = &algebra->choices.items[i];
        if (!all_hold(algebra, model, choice->facts[0], choice->counts[0]) &&
            !all_hold(algebra, model, choice->facts[1], choice->counts[1]))
            return false;
    }
    return true;
}

static bool denies(Algebra *algebra, Model *model, PolyClaim claim, const Poly *poly) {
    int64_t value;
    if (!poly_value(algebra, model, poly, &value)) return false;
    return claim == CLAIM_NOT_NEGATIVE ? value < 0 : (value == 0) != (claim == CLAIM_ZERO);
}

bool models_deny(Algebra *algebra, PolyClaim claim, const Poly *poly) {
    if (!algebra->models) {
        algebra->models = NEW_ARRAY(algebra->arena, Model, MODELS);
        for (int i = 0; i < MODELS; i++) algebra->models[i].number = i;
    }
    for (int i = 0; i < MODELS; i++) {
        Model *model = &algebra->models[i];
        if (!fits_program(algebra, model) || !denies(algebra, model, claim, poly)) continue;
        if (!fits_path(algebra, model)) continue;
        Model first = algebra->models[0]; /* a model of this place often fits the next one */
        algebra->models[0] = *model;
        algebra->models[i] = first;
        return true;
    }
    return false;
}
