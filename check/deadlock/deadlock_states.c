/* Breadth-first search of the states that need a decision; both outcomes are tried. If no state
 * is stuck, the roles are deadlock-free. */
#include "check/deadlock/deadlock_search.h"

#include <string.h>

#define WORDS_A_STEP  4 /* words of a state compared per step of the meter */
#define BUCKETS_LEAST 256

typedef struct Known { /* a state that needs a decision */
    State state;
    Decision open;
    int decider; /* the process that needs it */
    uint64_t hash;
} Known;

typedef struct States {
    Search *search;
    VEC(Known) known;
    int *buckets; /* 1 + index, 0: free */
    size_t bucket_count;
} States;

static uint64_t mix(uint64_t hash, const void *data, size_t bytes) {
    const uint8_t *at = data;
    uint64_t word;
    for (; bytes >= sizeof word; bytes -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    for (; bytes; bytes--, at++) hash = (hash ^ *at) * UINT64_C(0x100000001B3);
    return hash;
}

static uint64_t hash_of(const Machine *m, const State *state) {
    const Decided *decided = decided_of(state);
    uint64_t hash =
        mix(UINT64_C(0xCBF29CE484222325), state->words, (size_t)m->words * sizeof *state->words);
    hash = mix(hash, state->bytes, (size_t)m->bytes);
    return mix(hash, decided->items, (size_t)decided->count * sizeof *decided->items);
}

static bool same_state(const Machine *m, const State *a, const State *b) {
    const Decided *own = decided_of(a), *other = decided_of(b);
    return own->count == other->count &&
           memcmp(a->words, b->words, (size_t)m->words * sizeof *a->words) == 0 &&
           memcmp(a->bytes, b->bytes, (size_t)m->bytes) == 0 &&
           memcmp(own->items, other->items, (size_t)own->count * sizeof *own->items) == 0;
}

static size_t bucket_of(const States *s, const State *state, uint64_t hash) {
    size_t at = (size_t)hash & (s->bucket_count - 1);
    for (; s->buckets[at]; at = (at + 1) & (s->bucket_count - 1)) {
        const Known *known = &s->known.items[s->buckets[at] - 1];
        if (known->hash == hash && same_state(s->search->machine, &known->state, state)) break;
    }
    return at;
}

static void grow(States *s) {
    if ((s->known.count + 1) * 2 <= s->bucket_count) return;
    s->bucket_count = s->bucket_count ? s->bucket_count * 2 : BUCKETS_LEAST;
    s->buckets = NEW_ARRAY(s->search->arena, int, s->bucket_count);
    for (size_t i = 0; i < s->known.count; i++)
        s->buckets[bucket_of(s, &s->known.items[i].state, s->known.items[i].hash)] = (int)i + 1;
}

static State store(const Search *s, const State *from) {
    const Machine *m = s->machine;
    Decided *decided = arena_alloc(s->arena, sizeof *decided);
    int count = decided_of(from)->count;
    State to = {.words = arena_alloc(s->arena, (size_t)m->words * sizeof *to.words + 1),
                .bytes = arena_alloc(s->arena, (size_t)m->bytes + 1),
                .decided = decided};
    decided->items = arena_alloc(s->arena, (size_t)(count + 1) * sizeof *decided->items);
    search_copy(s, &to, from);
    return to;
}

static size_t words_of(const Machine *m, const State *state) {
    size_t decided = (size_t)decided_of(state)->count * (sizeof(Decision) / sizeof *state->words);
    return (size_t)m->words + (size_t)m->bytes / sizeof *state->words + decided;
}

/* Adds a state in normal form that needs a decision, if it is new. decided: the process that
 * took the previous decision */
static Verdict keep(States *s, State *state, int decided) {
    Search *search = s->search;
    Machine *m = search->machine;
    uint64_t hash = hash_of(m, state);
    arena_count(search->arena, words_of(m, state) / WORDS_A_STEP);
    grow(s);
    size_t bucket = bucket_of(s, state, hash);
    if (s->buckets[bucket]) return VERDICT_CLEAN;
    Known known = {.state = store(search, state), .hash = hash};
    /* The normal form changes the query: the same process makes it again */
    m->decider = decided;
    if (machine_run(m, state) != OUTCOME_OPEN) return VERDICT_BEYOND;
    known.open = search->open;
    known.decider = m->decider;
    vec_push(search->arena, &s->known, known);
    s->buckets[bucket] = (int)s->known.count;
    return VERDICT_CLEAN;
}

/* Runs to the next decision */
static Verdict follow(States *s, State *state) {
    Machine *m = s->search->machine;
    int decided = m->decider;
    switch (m->beyond ? OUTCOME_BEYOND : machine_run(m, state)) {
    case OUTCOME_ENDED: return VERDICT_CLEAN;
    case OUTCOME_STUCK: return VERDICT_STUCK;
    case OUTCOME_BEYOND: return VERDICT_BEYOND;
    case OUTCOME_OPEN: break;
    }
    search_normalise(s->search, state);
    return keep(s, state, decided);
}

Verdict search_states(Search *search, State *stuck) {
    States s = {.search = search};
    State state = search_state(search);
    Verdict verdict = follow(&s, &state);
    for (size_t i = 0; i < s.known.count && verdict == VERDICT_CLEAN; i++)
        for (int greater = 0; greater < 2 && verdict == VERDICT_CLEAN; greater++) {
            search_copy(search, &state, &s.known.items[i].state);
            Decision open = s.known.items[i].open;
            if (!search_possible(search, &state, s.known.items[i].decider, &open, greater))
                continue;
            search_decide(search, &state, &open, greater);
            search->machine->decider = s.known.items[i].decider;
            verdict = follow(&s, &state);
        }
    *stuck = state;
    return verdict;
}
