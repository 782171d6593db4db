/* Reaching definitions of a variable. A rule of the solver: a state is a set of rows, one bit
 * for each row that sets the variable. */
#include "flow/reaching.h"

#include "flow/solve.h"

#include <string.h>

typedef struct Reaching {
    int at;
    size_t words;  /* size of a state */
    int *numbers;  /* by row: its bit; -1: it does not set the variable */
    uint64_t *out; /* the state at row `at` */
} Reaching;

static void *start(Flow *flow) {
    return NEW_ARRAY(flow->arena, uint64_t, ((const Reaching *)flow->data)->words);
}

static void *copy(Flow *flow, const void *state) {
    void *made = start(flow);
    memcpy(made, state, ((const Reaching *)flow->data)->words * sizeof(uint64_t));
    return made;
}

static bool add(const Reaching *r, uint64_t *to, const uint64_t *from) {
    bool changed = false;
    for (size_t w = 0; w < r->words; w++) {
        changed |= (from[w] & ~to[w]) != 0;
        to[w] |= from[w];
    }
    return changed;
}

static bool join(Flow *flow, void *to, const void *from, int at, int source) {
    (void)at, (void)source;
    return add(flow->data, to, from);
}

static void step(Flow *flow, int at, void *state) {
    const Reaching *r = flow->data;
    uint64_t *bits = state;
    int number = r->numbers[at];
    if (at == r->at) add(r, r->out, bits);
    if (number < 0) return;
    memset(bits, 0, r->words * sizeof *bits);
    bits[number / 64] |= (uint64_t)1 << number % 64;
}

/* The result grows to that of the last round. */
static bool reports(const Flow *flow) {
    (void)flow;
    return false;
}

static const Rule rule = {.name = "reaching",
                          .together = true,
                          .start = start,
                          .copy = copy,
                          .join = join,
                          .on = {.every = step},
                          .reports = reports};

bool *flow_reaching(Arena *arena, FlowCode *code, int local, int at) {
    Reaching r = {.at = at};
    int count = 0;
    r.numbers = NEW_ARRAY(arena, int, code->rows.count);
    for (size_t i = 0; i < code->rows.count; i++)
        r.numbers[i] = row_sets(code, &code->rows.items[i], local) ? count++ : -1;
    r.words = (size_t)count / 64 + 1;
    r.out = NEW_ARRAY(arena, uint64_t, r.words);
    solve(arena, code, &rule, &r);
    bool *reaches = NEW_ARRAY(arena, bool, code->rows.count);
    for (size_t i = 0; i < code->rows.count; i++)
        if (r.numbers[i] >= 0) reaches[i] = r.out[r.numbers[i] / 64] >> r.numbers[i] % 64 & 1;
    return reaches;
}
