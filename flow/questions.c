/* Which conditions are asked for again by a later row of the same iteration: on those the solver follows paths apart. Conditions are formulas in
 * versions of variables (values.h), so equal ones have equal truths. */
#include "flow/questions.h"
#include "flow/values.h"

typedef struct Finder {
    Arena *arena;
    FlowCode *code;
    Questions *out;
    int *next;         /* by region: the next later region that asks for the same; -1: none */
    int *buckets;      /* by hash: the last region seen, -1: none */
    size_t bucket_count;
} Finder;

static uint64_t hash_of(const Question *question) {
    uint64_t hash = (uint64_t)question->kind * 31 + (uint64_t)(question->number + 1);
    const Poly *poly = question->condition;
    for (int t = 0; poly && t < poly->count; t++) {
        hash = hash * 1099511628211u + (uint64_t)poly->terms[t].coef;
        for (int k = 0; k < poly->terms[t].count; k++) hash = hash * 1099511628211u + (uint64_t)poly->terms[t].atoms[k];
    }
    return hash ^ hash >> 29;
}

bool question_same(const Question *a, const Question *b) {
    if (a->kind != b->kind || a->number != b->number) return false;
    return a->kind != ASSUMED_CONDITION || poly_equal(a->condition, b->condition);
}

/* Under a condition that differs between lanes paths are not whole: some threads are on one and some on the other. */
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

/* The end of the iteration that the region stands in */
static int iteration_end(const FlowCode *code, int region) {
    int parent = code->regions.items[region].parent, loop = parent < 0 ? -1 : code->regions.items[parent].loop;
    return loop < 0 ? (int)code->rows.count : code->regions.items[loop].next;
}

/* The row up to which what `region` decides is wanted where `later` asks for it: every iteration of the loops between them asks. */
static int wanted_until(const FlowCode *code, int region, int later) {
    int until = code->regions.items[later].begin;
    for (int r = code->regions.items[later].parent; r >= 0 && !code_inside(code, region, r); r = code->regions.items[r].parent)
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
    for (; later >= 0; later = f->next[later]) {
        const Region *other = &f->code->regions.items[later];
        if (other->begin <= row->end || !question_same(question, &f->out->items[later])) continue;
        if (other->begin >= limit) break;
        question->until = wanted_until(f->code, region, later);
    }
}

Questions *questions_find(Arena *arena, FlowCode *code) {
    size_t count = code->regions.count;
    Finder f = {.arena = arena, .code = code, .out = NEW(arena, Questions)};
    f.out->items = NEW_ARRAY(arena, Question, count + 1);
    f.next = NEW_ARRAY(arena, int, count + 1);
    f.bucket_count = count * 2 + 1;
    f.buckets = NEW_ARRAY(arena, int, f.bucket_count);
    for (size_t i = 0; i < f.bucket_count; i++) f.buckets[i] = -1;
    for (size_t r = 0; r < count; r++) f.next[r] = -1, find_question(&f, (int)r);
    for (size_t r = count; r-- > 0;)
        if (f.out->items[r].asks) find_last(&f, (int)r);
        else f.out->items[r].until = code->regions.items[r].begin;
    return f.out;
}
