/* Conditions that a later row of the same iteration tests again: the solver distinguishes paths
 * by them. Conditions are formulas of versions of variables (values.h), so equal ones have equal
 * truths. */
#include "flow/questions.h"
#include "flow/values.h"

typedef struct Finder {
    Arena *arena;
    FlowCode *code;
    Questions *out;
    int *next;    /* by region: the next later region with the same condition; -1: none */
    int *last;    /* by region: the last one of its iteration that follows it, or itself */
    int *buckets; /* by hash: the last such region, -1: none */
    size_t bucket_count;
} Finder;

static uint64_t hash_of(const Question *question) {
    uint64_t hash = (uint64_t)question->kind * 31 + (uint64_t)(question->number + 1);
    const Poly *poly = question->condition;
    for (int t = 0; poly && t < poly->count; t++) {
        hash = hash * 1099511628211u + (uint64_t)poly->terms[t].coef;
        for (int k = 0; k < poly->terms[t].count; k++)
            hash = hash * 1099511628211u + (uint64_t)poly->terms[t].atoms[k];
    }
    return hash ^ hash >> 29;
}

bool question_same(const Question *a, const Question *b) {
    if (a->kind != b->kind || a->number != b->number) return false;
    return a->kind != ASSUMED_CONDITION || poly_equal(a->condition, b->condition);
}

/* Under a condition that differs between lanes a path has only some of the threads. */
static bool parts_threads(const FlowCode *code, int region) {
    for (; region >= 0; region = code->regions.items[region].parent) {
        const Expr *condition = code->regions.items[region].condition;
        if (condition && condition->uniformity == UNIFORM_LANE) return true;
    }
    return false;
}

static void find_question(Finder *f, int region) {
    const Region *row = &f->code->regions.items[region];
    Question *out = &f->out->items[region];
    const Context context = {.arena = f->arena, .algebra = f->code->algebra, .role = f->code->role};
    *out = (Question){.kind = ASSUMED_CONDITION, .number = -1};
    if (parts_threads(f->code, region)) return;
    bool range = row->kind == REGION_FOR && row->whole && row->domain >= 0;
    int domain = row->kind == REGION_IF ? row->nonempty : range ? row->domain : -1;
    if (domain >= 0) {
        *out = (Question){.kind = ASSUMED_NONEMPTY, .number = domain, .truth = true, .asks = true};
        return;
    }
    if (row->kind != REGION_IF || !row->condition) return;
    Bindings before = values_at(f->arena, f->code, row->begin);
    out->condition = context_condition(&context, row->condition, &out->truth);
    (void)algebra_hold(f->code->algebra, before);
    out->asks = out->condition && !poly_changes(f->code->algebra, out->condition);
}

/* The end of the iteration that contains the region */
static int iteration_end(const FlowCode *code, int region) {
    int parent = code->regions.items[region].parent,
        loop = parent < 0 ? -1 : code->regions.items[parent].loop;
    return loop < 0 ? (int)code->rows.count : code->regions.items[loop].next;
}

/* The row up to which the answer at `region` is needed if `later` tests it: every iteration of
 * the loops between them tests it. */
static int wanted_until(const FlowCode *code, int region, int later) {
    int until = code->regions.items[later].begin;
    for (int r = code->regions.items[later].parent; r >= 0 && !code_inside(code, region, r);
         r = code->regions.items[r].parent)
        if (region_loops(&code->regions.items[r])) until = code->regions.items[r].end;
    return until;
}

static void find_last(Finder *f, int region) {
    Question *question = &f->out->items[region];
    const Region *row = &f->code->regions.items[region];
    int limit = iteration_end(f->code, region);
    question->until = row->begin;
    uint64_t bucket = hash_of(question) % f->bucket_count;
    int later = f->buckets[bucket];
    while (later >= 0 && !question_same(question, &f->out->items[later])) later = f->next[later];
    f->next[region] = f->buckets[bucket];
    f->buckets[bucket] = region;
    f->last[region] = region;
    for (; later >= 0; later = f->next[later]) {
        const Region *other = &f->code->regions.items[later];
        if (other->begin <= row->end || !question_same(question, &f->out->items[later])) continue;
        if (other->begin >= limit) break;
        if (iteration_end(f->code, later) == limit) later = f->last[later];
        f->last[region] = later;
    }
    if (f->last[region] != region) question->until = wanted_until(f->code, region, f->last[region]);
}

/* ---- implied answers ------------------------------------------------------------------------- */

#define LATER_MOST 8 /* most later IFs that are compared with one */

/* True if a >= 0 and b >= 0 divide the values of one quantity at the same or adjacent values */
static bool part_alike(Algebra *algebra, const Poly *a, const Poly *b) {
    int64_t value;
    if (poly_is_constant(poly_sum(algebra, a, b, -1), &value)) return value >= -1 && value <= 1;
    return poly_is_constant(poly_sum(algebra, a, b, 1), &value) && value >= -2 && value <= 0;
}

/* The next comparison in the condition, from number *at on; NULL: none */
static const Poly *next_compared(const Algebra *algebra, const Poly *condition, int *at) {
    int n = 0;
    for (int t = 0; t < condition->count; t++)
        for (int k = 0; k < condition->terms[t].count; k++, n++) {
            const Atom *atom = &algebra->atoms.items[condition->terms[t].atoms[k]];
            if (n < *at || atom->kind != ATOM_TRUTH) continue;
            *at = n + 1;
            return atom->args[0];
        }
    return NULL;
}

/* True if both compare one quantity with adjacent numbers. Comparisons of more distant numbers
 * would give too many paths. */
static bool compare_alike(Algebra *algebra, const Poly *a, const Poly *b) {
    const Poly *x, *y;
    for (int i = 0; (x = next_compared(algebra, a, &i)) != NULL;)
        for (int k = 0; (y = next_compared(algebra, b, &k)) != NULL;)
            if (part_alike(algebra, x, y)) return true;
    return false;
}

/* Truth of the IF's condition on its path: 1, 0, or -1: open */
static int decided(const Finder *f, int region) {
    FlowCode *code = f->code;
    Bindings before = values_at(f->arena, code, code->regions.items[region].begin);
    int truth = algebra_decides(code->algebra, code->role, code->regions.items[region].condition);
    (void)algebra_hold(code->algebra, before);
    return truth;
}

/* True if one of the two answers of the IF decides the later one, which is open on its path */
static bool decides(const Finder *f, int region, int later) {
    FlowCode *code = f->code;
    PathMark mark = values_assume(f->arena, code, code->regions.items[later].begin);
    bool open = decided(f, later) < 0, found = false;
    for (int truth = 0; truth < 2 && open && !found; truth++) {
        PathMark path = algebra_mark(code->algebra);
        values_assume_if(f->arena, code, region, truth);
        found = decided(f, later) >= 0;
        algebra_undo(code->algebra, path);
    }
    algebra_undo(code->algebra, mark);
    return found;
}

/* Keeps the answer for later IFs whose conditions it implies or excludes. */
static void find_followers(Finder *f, int region) {
    Question *question = &f->out->items[region];
    const Region *regions = f->code->regions.items;
    if (question->kind != ASSUMED_CONDITION) return;
    int limit = iteration_end(f->code, region), compared = 0;
    for (size_t r = (size_t)region + 1; r < f->code->regions.count && compared < LATER_MOST; r++) {
        const Question *other = &f->out->items[r];
        if (regions[r].begin >= limit) break;
        if (regions[r].begin <= regions[region].end || !other->asks ||
            other->kind != ASSUMED_CONDITION)
            continue;
        int until = wanted_until(f->code, region, (int)r);
        if (until <= question->until ||
            !compare_alike(f->code->algebra, question->condition, other->condition))
            continue;
        compared++;
        if (decides(f, region, (int)r)) question->until = until;
    }
}

Questions *questions_find(Arena *arena, FlowCode *code) {
    size_t count = code->regions.count;
    Finder f = {.arena = arena, .code = code, .out = NEW(arena, Questions)};
    f.out->items = NEW_ARRAY(arena, Question, count + 1);
    f.next = NEW_ARRAY(arena, int, count + 1);
    f.last = NEW_ARRAY(arena, int, count + 1);
    f.bucket_count = count * 2 + 1;
    f.buckets = NEW_ARRAY(arena, int, f.bucket_count);
    for (size_t i = 0; i < f.bucket_count; i++) f.buckets[i] = -1;
    for (size_t r = 0; r < count; r++) f.next[r] = -1, find_question(&f, (int)r);
    for (size_t r = count; r-- > 0;)
        if (f.out->items[r].asks)
            find_last(&f, (int)r);
        else
            f.out->items[r].until = code->regions.items[r].begin;
    for (size_t r = 0; r < count; r++)
        if (f.out->items[r].asks) find_followers(&f, (int)r);
    return f.out;
}
