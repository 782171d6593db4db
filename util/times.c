/* Time of each part of a compilation: CPU time and meter steps, added up by name, printed as a
 * table. The clock is read only after times_start was called for the arena. */
#define PIPEC_OWN_MEMORY
#include "util/util.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

typedef struct Part {
    const char *name;
    uint64_t runs;
    Spent took;
} Part;

struct Times {
    Arena *arena;
    VEC(Part) parts; /* in the order in which they first ended */
    Spent start;
};

static Spent reading_now(const Arena *arena) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    uint64_t nanoseconds = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return (Spent){nanoseconds, arena_meter(arena)->steps};
}

static Spent since(Spent now, Spent then) {
    return (Spent){now.nanoseconds - then.nanoseconds, now.steps - then.steps};
}

void times_start(Arena *arena) {
    Times *times = NEW(arena, Times);
    times->arena = arena;
    arena_meter(arena)->times = times;
    times->start = reading_now(arena);
}

Spent times_begin(const Arena *arena) {
    return arena_meter(arena)->times ? reading_now(arena) : (Spent){0, 0};
}

static Part *part_named(Times *times, const char *name) {
    for (size_t i = 0; i < times->parts.count; i++)
        if (strcmp(times->parts.items[i].name, name) == 0) return &times->parts.items[i];
    vec_push(times->arena, &times->parts, (Part){.name = name});
    return &times->parts.items[times->parts.count - 1];
}

void times_end(const Arena *arena, const char *name, Spent begin) {
    Times *times = arena_meter(arena)->times;
    if (!times) return;
    Spent took = since(reading_now(arena), begin);
    Part *part = part_named(times, name);
    part->runs++;
    part->took.nanoseconds += took.nanoseconds;
    part->took.steps += took.steps;
}

static void print_row(Str *out, const char *name, uint64_t runs, Spent took, uint64_t all) {
    double share = all > 0 ? 100.0 * (double)took.nanoseconds / (double)all : 0;
    str_printf(out, "%-12s %8" PRIu64 " %12.3f %6.1f %12" PRIu64 "\n", name, runs,
               (double)took.nanoseconds / 1e6, share, took.steps);
}

void times_print(const Arena *arena, Str *out) {
    const Times *times = arena_meter(arena)->times;
    if (!times) return;
    Spent all = since(reading_now(arena), times->start), rest = all;
    str_printf(out, "%-12s %8s %12s %6s %12s\n", "part", "runs", "ms", "%", "steps");
    for (size_t i = 0; i < times->parts.count; i++) {
        const Part *part = &times->parts.items[i];
        print_row(out, part->name, part->runs, part->took, all.nanoseconds);
        rest = since(rest, part->took);
    }
    print_row(out, "the rest", 1, rest, all.nanoseconds);
    print_row(out, "all", 1, all, all.nanoseconds);
}
