/* The records of accesses against a model that keeps every access of every byte: the same first
 * race on random accesses by threads with random edges between them. */
#include "emulator/races/shadow.h"

#include "tests/unit/expect.h"

enum { THREADS = 8, IN_PIECES = 4, BYTES = 256, BASE = 4096 + 5, STEPS = 400, RUNS = 1000 };

typedef struct Model {
    uint32_t clock[THREADS][THREADS]; /* [of the thread][what it knows of another one] */
    struct {
        uint32_t thread, time;
        uint8_t flags;
    } accesses[BYTES][STEPS];
    uint32_t counts[BYTES];
    uint64_t random;
    uint32_t thread; /* of the present access: the first one */
    const Touch *touch;
} Model;

static uint32_t draw(Model *model, uint32_t choices) {
    model->random = model->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(model->random >> 33) % choices;
}

static bool conflict(uint8_t a, uint8_t b) {
    return ((a | b) & TOUCH_WRITE) && !(a & b & TOUCH_STRONG);
}

static bool knows(const Model *model, uint32_t thread, uint32_t other, uint32_t time) {
    return thread == other || model->clock[thread][other] >= time;
}

/* All threads of an access */
static uint32_t threads_of(const Model *model, const Touch *touch) {
    if (!touch->lanes) return ((1u << IN_PIECES) - 1) << touch->component;
    return touch == model->touch ? 1u << model->thread : touch->lanes;
}

static bool all_know(const Model *model, uint32_t threads, const Touch *old) {
    uint32_t others = threads_of(model, old);
    for (uint32_t pair = 0; pair < THREADS * THREADS; pair++)
        if ((threads >> pair / THREADS & 1) && (others >> pair % THREADS & 1) &&
            !knows(model, pair / THREADS, pair % THREADS, old->time))
            return false;
    return true;
}

static uint32_t unordered(void *data, const Touch *old, uint32_t bytes, uint64_t address,
                          bool *everywhere) {
    const Model *model = data;
    uint32_t found = 0;
    if (all_know(model, threads_of(model, model->touch), old)) return 0;
    bool pieces = old->lanes == 0 || model->touch->lanes == 0;
    if (pieces) *everywhere = false;
    for (uint32_t i = 0; i < GRANULE; i++) {
        if (!(bytes >> i & 1)) continue;
        uint32_t me = model->touch->lanes ? model->thread : touch_thread(model->touch, address + i);
        uint32_t others = old->lanes ? old->lanes : 1u << touch_thread(old, address + i);
        for (uint32_t other = 0; other < THREADS; other++)
            if ((others >> other & 1) && !knows(model, me, other, old->time)) found |= 1u << i;
    }
    return found;
}

static Conflict allows(void *data, const Touch *old, uint32_t bytes, uint64_t address,
                       bool *everywhere) {
    const Model *model = data;
    (void)bytes, (void)address, (void)everywhere;
    return conflict(old->flags, model->touch->flags) ? CONFLICT_RACE : CONFLICT_ALLOWED;
}

/* An access: to `bytes` bytes, or to `piece` bytes by each of the lanes, touch.stride apart */
typedef struct Drawn {
    Touch touch;
    uint32_t at, bytes, piece, lanes;
} Drawn;

static bool accesses(const Drawn *drawn, uint32_t i) {
    if (!drawn->lanes) return true;
    uint32_t lane = touch_thread(&drawn->touch, BASE + i) - drawn->touch.component,
             first = (BASE + i - drawn->touch.start) % drawn->touch.stride;
    return (drawn->lanes >> lane & 1) && first < drawn->piece;
}

/* Records it in the model too; false: a race by the model */
static bool model_access(Model *model, const Drawn *drawn) {
    const Touch *touch = &drawn->touch;
    bool fine = true;
    for (uint32_t i = drawn->at; i < drawn->at + drawn->bytes; i++) {
        if (!accesses(drawn, i)) continue;
        uint32_t me = touch->lanes ? model->thread : touch_thread(touch, BASE + i);
        for (uint32_t k = 0; k < model->counts[i]; k++)
            fine &= !conflict(model->accesses[i][k].flags, touch->flags) ||
                    knows(model, me, model->accesses[i][k].thread, model->accesses[i][k].time);
        model->accesses[i][model->counts[i]].thread = me;
        model->accesses[i][model->counts[i]].time = touch->time;
        model->accesses[i][model->counts[i]++].flags = touch->flags;
    }
    return fine;
}

/* One thread learns what another one knows. All threads have one time. */
static void add_edge(Model *model, uint32_t *time) {
    uint32_t from = draw(model, THREADS), to = draw(model, THREADS);
    model->clock[from][from] = *time;
    for (uint32_t i = 0; i < THREADS; i++)
        if (model->clock[to][i] < model->clock[from][i])
            model->clock[to][i] = model->clock[from][i];
    ++*time;
}

/* The same in parts of at most `most` bytes */
static bool shadow_parts(Shadow *shadow, Plane *plane, const Drawn *drawn, Judge judge,
                         uint32_t most) {
    bool fine = true;
    judge.part = true;
    for (uint32_t at = 0; at < drawn->bytes && fine; at += most) {
        uint32_t left = drawn->bytes - at;
        fine = shadow_access(shadow, plane, &drawn->touch, BASE + drawn->at + at,
                             left < most ? left : most, &judge);
        judge.again = true;
    }
    return fine;
}

static bool shadow_drawn(Shadow *shadow, Plane *plane, const Drawn *drawn, const Judge *judge) {
    uint64_t address = BASE + drawn->at;
    if (drawn->touch.lanes && drawn->bytes % 3 == 0)
        return shadow_parts(shadow, plane, drawn, *judge, 1 + drawn->bytes % 40);
    return drawn->lanes ? shadow_access_lanes(shadow, plane, &drawn->touch, address, drawn->piece,
                                              drawn->lanes, judge)
                        : shadow_access(shadow, plane, &drawn->touch, address, drawn->bytes, judge);
}

static Drawn draw_access(Model *model, uint32_t time) {
    static const uint8_t kinds[] = {0, 0, TOUCH_WRITE, TOUCH_STRONG, TOUCH_STRONG | TOUCH_WRITE};
    Touch touch = {.time = time, .flags = kinds[draw(model, COUNT_OF(kinds))]};
    model->thread = draw(model, THREADS);
    if (draw(model, 2)) {
        touch.lanes = 1u << model->thread;
        uint32_t at = draw(model, BYTES), bytes = 1 + draw(model, draw(model, 4) ? 16 : BYTES - at);
        return (Drawn){touch, at, bytes > BYTES - at ? BYTES - at : bytes, 0, 0};
    }
    touch.component = draw(model, THREADS - IN_PIECES + 1);
    if (draw(model, 2)) { /* adjacent pieces */
        touch.stride = (uint16_t)(1u << draw(model, 5));
        uint32_t bytes = IN_PIECES * touch.stride, at = draw(model, BYTES - bytes + 1);
        touch.start = BASE + at;
        return (Drawn){touch, at, bytes, 0, 0};
    }
    touch.stride = (uint16_t)(1 + draw(model, draw(model, 2) ? 8 : BYTES / IN_PIECES));
    uint32_t lanes = 1 + draw(model, (1u << IN_PIECES) - 1), piece = 1 + draw(model, touch.stride),
             first = (uint32_t)__builtin_ctz(lanes),
             bytes = (31u - (uint32_t)__builtin_clz(lanes) - first) * touch.stride + piece,
             at = draw(model, BYTES - bytes + 1);
    touch.start = BASE + at - first * touch.stride;
    return (Drawn){touch, at, bytes, piece, lanes};
}

static void compare_with_model(Arena *arena, uint64_t seed, uint32_t *races, Model *model) {
    memset(model, 0, sizeof *model);
    model->random = seed;
    Shadow *shadow = shadow_new(arena);
    Plane *plane = plane_new(arena, BASE, BYTES);
    Judge judge = {.unordered = unordered, .conflict = allows, .data = model, .warps = 1};
    uint32_t time = 1, edges = 1 + draw(model, 12), still = 1 + draw(model, 4);
    for (uint32_t step = 0; step < STEPS; step++) {
        for (uint32_t i = 0; i < edges && draw(model, still) == 0; i++) add_edge(model, &time);
        Drawn drawn = draw_access(model, time);
        model->touch = &drawn.touch;
        bool wanted = model_access(model, &drawn);
        bool fine = shadow_drawn(shadow, plane, &drawn, &judge);
        if (!EXPECT(fine == wanted)) printf("seed %llu, step %u\n", (unsigned long long)seed, step);
        *races += !wanted;
        if (!fine || !wanted) break;
    }
    plane_clear(shadow, plane);
    EXPECT(shadow_bytes(shadow) <= 4096); /* the page */
}

static uint32_t none(void *data, const Touch *old, uint32_t bytes, uint64_t address,
                     bool *everywhere) {
    (void)data, (void)old, (void)bytes, (void)address, (void)everywhere;
    return 0;
}
/* Pages of touched memory only, and one record for many granules */
static void test_memory(Arena *arena) {
    Shadow *shadow = shadow_new(arena);
    Plane *plane = plane_new(arena, 0, UINT64_C(1) << 30);
    Judge judge = {.unordered = none, .conflict = allows, .warps = 1};
    Touch touch = {.component = 5, .time = 1, .lanes = 1, .flags = TOUCH_WRITE};
    EXPECT(shadow_access(shadow, plane, &touch, 64, 1 << 20, &judge));
    size_t one = shadow_bytes(shadow);
    EXPECT(one < (1 << 20) + 4096);
    for (touch.time = 2; touch.time < 1000; touch.time++)
        EXPECT(shadow_access(shadow, plane, &touch, 64, 1 << 20, &judge));
    EXPECT(shadow_bytes(shadow) == one);
}

static uint32_t of_other_threads(void *data, const Touch *old, uint32_t bytes, uint64_t address,
                                 bool *everywhere) {
    (void)address, (void)everywhere;
    return old->component == ((const Touch *)data)->component ? 0 : bytes;
}
static Conflict is_found(void *data, const Touch *old, uint32_t bytes, uint64_t address,
                         bool *everywhere) {
    (void)data, (void)bytes, (void)address, (void)everywhere;
    return old->component != 7 ? CONFLICT_ALLOWED : CONFLICT_RACE;
}

/* Of accesses that are ordered in each thread only, each thread's last one is kept, however many
 * there are, and few others. */
static void test_long_lists(Arena *arena) {
    static const uint8_t flags[] = {0, TOUCH_STRONG | TOUCH_WRITE};
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        Shadow *shadow = shadow_new(arena);
        Plane *plane = plane_new(arena, 0, 1024);
        Touch touch = {.lanes = 1, .flags = flags[i]};
        Judge judge = {
            .unordered = of_other_threads, .conflict = is_found, .data = &touch, .warps = 1};
        for (touch.time = 0; touch.time < 30000; touch.time++) {
            touch.component = touch.time * 7919 % 1000;
            EXPECT(shadow_access(shadow, plane, &touch, 64, 4, &judge));
        }

        EXPECT(shadow_bytes(shadow) < 4096 + 4000 * sizeof(Record));
        touch = (Touch){.lanes = 1, .component = 5000, .flags = TOUCH_WRITE};
        EXPECT(!shadow_access(shadow, plane, &touch, 64, 4, &judge));
    }
}

static uint32_t of_thread_2(void *data, const Touch *old, uint32_t bytes, uint64_t address,
                            bool *everywhere) {
    (void)data, (void)address, (void)everywhere;
    return old->lanes >> 2 & 1 ? bytes : 0;
}

static Conflict conflicts(void *data, const Touch *old, uint32_t bytes, uint64_t address,
                          bool *everywhere) {
    (void)data, (void)old, (void)bytes, (void)address, (void)everywhere;
    return CONFLICT_RACE;
}

/* A read by one thread after one by all, each its piece: recorded only if it is not a part */
static void test_repeated_reads(Arena *arena) {
    for (uint32_t at = 0; at < 64; at++)
        for (uint32_t bytes = 1; bytes <= 8; bytes++) {
            Shadow *shadow = shadow_new(arena);
            Plane *plane = plane_new(arena, 0, 1024);
            Judge judge = {.unordered = none, .conflict = conflicts, .warps = 1};
            Touch touch = {.time = 1, .start = 16, .stride = 8};
            EXPECT(shadow_access(shadow, plane, &touch, 16, 32, &judge)); /* 2: from 32 to 40 */
            size_t before = shadow_bytes(shadow);
            touch = (Touch){.time = 1, .lanes = 1 << 2};
            EXPECT(shadow_access(shadow, plane, &touch, at, bytes, &judge));
            bool part = at >= 32 && at + bytes <= 40;
            EXPECT(!part || shadow_bytes(shadow) == before);
            judge.unordered = of_thread_2;
            touch = (Touch){.time = 1, .component = 32, .lanes = 1, .flags = TOUCH_WRITE};
            EXPECT(shadow_access(shadow, plane, &touch, at, bytes, &judge) == part);
        }
}

static uint32_t later(void *data, const Touch *old, uint32_t bytes, uint64_t address,
                      bool *everywhere) {
    (void)data, (void)address, (void)everywhere;
    return old->time == 1 ? 0 : bytes;
}
static uint32_t in_piece_2(void *data, const Touch *old, uint32_t bytes, uint64_t address,
                           bool *everywhere) {
    (void)data;
    *everywhere = false;
    uint32_t found = 0;
    for (; bytes; bytes &= bytes - 1)
        if (touch_thread(old, address + (uint32_t)__builtin_ctz(bytes)) == 2)
            found |= bytes & -bytes;
    return found;
}

/* A read that looks like an earlier one is recorded: a later one by the same thread, and one of
 * whose pieces each belongs to another thread */
static void test_similar_reads(Arena *arena) {
    Shadow *shadow = shadow_new(arena);
    Plane *plane = plane_new(arena, 0, 1024);
    Judge judge = {.unordered = none, .conflict = conflicts, .warps = 1};
    Touch touch = {.time = 1, .start = 16, .stride = 8},
          write = {.component = 32, .lanes = 1, .flags = TOUCH_WRITE};
    EXPECT(shadow_access(shadow, plane, &touch, 16, 32, &judge));
    touch = (Touch){.time = 2, .lanes = 1 << 2};
    EXPECT(shadow_access(shadow, plane, &touch, 32, 8, &judge));
    judge.unordered = later;
    EXPECT(!shadow_access(shadow, plane, &write, 32, 4, &judge));
    plane_clear(shadow, plane);

    judge.unordered = none;
    touch = (Touch){.time = 1, .start = 16, .stride = 8};
    EXPECT(shadow_access(shadow, plane, &touch, 16, 32, &judge)); /* 2: from 32 to 40 */
    touch.start = 8;
    EXPECT(shadow_access(shadow, plane, &touch, 16, 32, &judge)); /* 2: from 24 to 32 */
    judge.unordered = in_piece_2;
    EXPECT(!shadow_access(shadow, plane, &write, 24, 8, &judge));
}

/* The first part of an access has nothing in common with the access before. */
static void test_first_part(Arena *arena) {
    Shadow *shadow = shadow_new(arena);
    Plane *plane = plane_new(arena, 0, 1024);
    Judge judge = {.unordered = of_thread_2, .conflict = conflicts, .warps = 1, .part = true};
    Touch touch = {.time = 1, .lanes = 1 << 1, .flags = TOUCH_WRITE};
    EXPECT(shadow_access(shadow, plane, &touch, 0, 64, &judge));
    touch.lanes = 1 << 2;
    EXPECT(shadow_access(shadow, plane, &touch, 64, 16, &judge));
    judge.again = true;
    EXPECT(shadow_access(shadow, plane, &touch, 80, 16, &judge));
    judge.part = judge.again = false;
    touch.lanes = 1 << 3;
    EXPECT(shadow_access(shadow, plane, &touch, 48, 16, &judge));
    EXPECT(!shadow_access(shadow, plane, &touch, 64, 16, &judge));
    EXPECT(!shadow_access(shadow, plane, &touch, 80, 16, &judge));
}

static Conflict count_alike(void *data, const Touch *old, uint32_t bytes, uint64_t address,
                            bool *everywhere) {
    (void)bytes, (void)address, (void)everywhere;
    ++*(uint32_t *)data;
    return old->pc == 1 ? CONFLICT_ALIKE : CONFLICT_RACE;
}
static uint32_t all(void *data, const Touch *old, uint32_t bytes, uint64_t address,
                    bool *everywhere) {
    (void)data, (void)old, (void)address, (void)everywhere;
    return bytes;
}

/* Of writes by one instruction, the newest decides for the others, and all are kept; not if there
 * are others. */
static void test_alike(Arena *arena) {
    enum { WRITES = 3000 };
    static const struct {
        uint32_t pc, lanes, bytes; /* of the second of all writes; lanes 0: in pieces */
        bool races;
    } cases[] = {{1, 1, 4, false}, {2, 1, 4, true}, {1, 0, 16, false}, {1, 1, 2, false}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Shadow *shadow = shadow_new(arena);
        Plane *plane = plane_new(arena, 0, 1024);
        uint32_t calls = 0;
        bool fine = true;
        Judge judge = {.unordered = all, .conflict = count_alike, .data = &calls, .warps = 1};
        for (uint32_t n = 0; n < WRITES && fine; n++) {
            Touch touch = {.component = 32 * n, .time = 1, .pc = 1, .flags = TOUCH_WRITE};
            touch.lanes = n == 1 ? cases[i].lanes : 1;
            touch.stride = 4;
            touch.pc = n == 1 ? cases[i].pc : 1;
            fine = shadow_access(shadow, plane, &touch, 64, n == 1 ? cases[i].bytes : 4, &judge);
        }
        EXPECT(fine != cases[i].races);
        EXPECT(cases[i].races || calls < 20 * WRITES);
        Touch other = {.component = 7, .time = 1, .pc = 2, .lanes = 1};
        judge.conflict = conflicts;
        EXPECT(!shadow_access(shadow, plane, &other, 64, 2, &judge));
        EXPECT(shadow_bytes(shadow) > WRITES * sizeof(Record) || cases[i].races);
    }
}

int main(void) {
    Scratch scratch = scratch_new();
    Model *model = NEW(scratch.arena, Model);
    uint32_t races = 0;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        Arena *arena = arena_scratch(scratch.arena);
        compare_with_model(arena, seed, &races, model);
        arena_free(arena);
    }
    EXPECT(races > RUNS / 4);
    test_memory(scratch.arena);
    test_long_lists(scratch.arena);
    test_repeated_reads(scratch.arena);
    test_similar_reads(scratch.arena);
    test_first_part(scratch.arena);
    test_alike(scratch.arena);
    scratch_free(&scratch);
    return expect_failures();
}
