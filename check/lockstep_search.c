/* All states that need a decision, each once, nearest first: from each both ways. None of them stuck: nobody ever waits for ever. */
#include "check/lockstep.h"

#include <string.h>

#define STATES_MOST 8000    /* and STATES_A_STEP for each step of the roles: straight lines of loops have a few each */
#define STATES_A_STEP 2
#define WORDS_MOST 16777216 /* of all states together: what they are made of, and are compared by */
#define BUCKETS_LEAST 256

typedef struct Known {    /* a state that waits for a decision */
    State state;
    Fact open;
    int decider;          /* who needs it */
    uint64_t hash;
} Known;

typedef struct Search {
    Machine *machine;
    VEC(Known) known;
    int *buckets;         /* 1 + index, 0: free */
    size_t bucket_count;
    size_t most;          /* states */
    size_t words;         /* of all states */
} Search;

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
    uint64_t hash = mix(UINT64_C(0xCBF29CE484222325), state->words, (size_t)m->words * sizeof *state->words);
    hash = mix(hash, state->bytes, (size_t)m->bytes);
    return mix(hash, state->facts, (size_t)state->fact_count * sizeof *state->facts);
}

static bool same_state(const Machine *m, const State *a, const State *b) {
    return a->fact_count == b->fact_count && memcmp(a->words, b->words, (size_t)m->words * sizeof *a->words) == 0 &&
           memcmp(a->bytes, b->bytes, (size_t)m->bytes) == 0 &&
           memcmp(a->facts, b->facts, (size_t)a->fact_count * sizeof *a->facts) == 0;
}

static size_t bucket_of(const Search *s, const State *state, uint64_t hash) {
    size_t at = (size_t)hash & (s->bucket_count - 1);
    for (; s->buckets[at]; at = (at + 1) & (s->bucket_count - 1)) {
        const Known *known = &s->known.items[s->buckets[at] - 1];
        if (known->hash == hash && same_state(s->machine, &known->state, state)) break;
    }
    return at;
}

static void grow(Search *s) {
    if ((s->known.count + 1) * 2 <= s->bucket_count) return;
    s->bucket_count = s->bucket_count ? s->bucket_count * 2 : BUCKETS_LEAST;
    s->buckets = NEW_ARRAY(s->machine->arena, int, s->bucket_count);
    for (size_t i = 0; i < s->known.count; i++)
        s->buckets[bucket_of(s, &s->known.items[i].state, s->known.items[i].hash)] = (int)i + 1;
}

static State store(const Machine *m, const State *from) {
    State to = {.words = arena_alloc(m->arena, (size_t)m->words * sizeof *to.words + 1), .bytes = arena_alloc(m->arena, (size_t)m->bytes + 1),
                .facts = arena_alloc(m->arena, (size_t)(from->fact_count + 1) * sizeof *to.facts)};
    lockstep_copy(m, &to, from);
    return to;
}

/* Goes on to the next decision, and keeps the state there if it is new */
static Verdict follow(Search *s, State *state) {
    Machine *m = s->machine;
    switch (m->beyond ? OUTCOME_BEYOND : lockstep_run(m, state)) {
    case OUTCOME_ENDED: return VERDICT_CLEAN;
    case OUTCOME_STUCK: return VERDICT_STUCK;
    case OUTCOME_BEYOND: return VERDICT_BEYOND;
    case OUTCOME_OPEN: break;
    }
    lockstep_normalise(m, state);
    uint64_t hash = hash_of(m, state);
    grow(s);
    size_t bucket = bucket_of(s, state, hash);
    if (s->buckets[bucket]) return VERDICT_CLEAN;
    s->words += (size_t)m->words + (size_t)m->bytes / sizeof *state->words + (size_t)state->fact_count * (sizeof *state->facts / sizeof *state->words);
    if (s->known.count >= s->most || s->words > WORDS_MOST) {
        m->beyond = "there are too many cases";
        return VERDICT_BEYOND;
    }
    Known known = {.state = store(m, state), .hash = hash};
    /* counted from the one furthest behind, the question is another: it is asked again */
    if (lockstep_run(m, state) != OUTCOME_OPEN) return VERDICT_BEYOND;
    known.open = m->open;
    known.decider = m->decider;
    vec_push(m->arena, &s->known, known);
    s->buckets[bucket] = (int)s->known.count;
    return VERDICT_CLEAN;
}

Verdict lockstep_search(Machine *machine, State *stuck) {
    Search s = {.machine = machine, .most = STATES_MOST};
    for (size_t i = 0; i < machine->clocks->members.count; i++) s.most += STATES_A_STEP * machine->clocks->members.items[i].code.count;
    State state = lockstep_state(machine);
    Verdict verdict = follow(&s, &state);
    for (size_t i = 0; i < s.known.count && verdict == VERDICT_CLEAN; i++)
        for (int greater = 0; greater < 2 && verdict == VERDICT_CLEAN; greater++) {
            lockstep_copy(machine, &state, &s.known.items[i].state);
            Fact open = s.known.items[i].open;
            lockstep_decide(machine, &state, &open, greater);
            machine->decider = s.known.items[i].decider;
            verdict = follow(&s, &state);
        }
    *stuck = state;
    machine->states = (int)s.known.count;
    return verdict;
}
