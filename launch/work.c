/* launch: adds up the work of a launch. A loop whose body does not name its variable counts as one
 * iteration times their number; the grid alike. Otherwise each tile and iteration is visited, or
 * some that stand for all. */
#include "launch/launch.h"

#define TILES_MOST 1024 /* that are visited */
#define TRIPS_MOST 64   /* of one loop */
#define AXES_MOST  8

typedef struct Adder {
    const Manifest *manifest;
    int64_t *values; /* of the symbols, the axes, the variables */
    int first;       /* of the axes among them */
    int role;        /* -1: all */
    WorkTotals *out;
    bool fine;
} Adder;

static const ManifestWork *item(const Adder *adder, int at) {
    return &adder->manifest->work.items[at];
}

static int64_t eval(Adder *adder, const Formula *formula) {
    int64_t value = 0;
    adder->fine &= formula_eval(formula, adder->values, &value) == FORMULA_FINE;
    return value;
}

static bool names(const Formula *formula, int first, int last) {
    for (int i = 0; i < formula->count; i++) {
        const FormulaStep *step = &formula->steps[i];
        if (step->op == F_SYMBOL && step->value >= first && step->value <= last) return true;
    }
    return false;
}

static bool is_inside(const Adder *adder, int at, int parent) {
    while (at > parent) at = item(adder, at)->parent;
    return at == parent;
}

/* True if some formula of items in `parent` names a symbol from `first` to `last` */
static bool depends(const Adder *adder, int parent, int first, int last) {
    for (int i = parent + 1; i < (int)adder->manifest->work.count; i++) {
        const ManifestWork *work = item(adder, i);
        if (!is_inside(adder, i, parent)) break;
        if (names(&work->lo, first, last) || names(&work->hi, first, last) ||
            names(&work->times, first, last))
            return true;
    }
    return false;
}

static void add_inside(Adder *adder, int parent, double count);

static void add_amount(Adder *adder, const ManifestWork *work, double count) {
    double times = work->times.count > 0 ? (double)eval(adder, &work->times) : 1;
    adder->out->amount[work->kind] += count * times * (double)work->amount;
    adder->out->pieces[work->kind] += count * times * (double)work->pieces;
    if (work->kind == WORK_COPY_IN) adder->out->own += count * times * (double)work->own;
}

static void add_loop(Adder *adder, int at, double count) {
    const ManifestWork *work = item(adder, at);
    adder->out->bounded |= work->bound;
    if (work->lo.count == 0 || work->hi.count == 0) {
        adder->out->unknown = true;
        add_inside(adder, at, count);
        return;
    }
    int64_t lo = eval(adder, &work->lo), trips;
    if (__builtin_sub_overflow(eval(adder, &work->hi), lo, &trips)) adder->fine = false;
    if (!adder->fine || trips <= 0) return;
    if (work->variable < 0 || !depends(adder, at, work->variable, work->variable)) {
        add_inside(adder, at, count * (double)trips);
        return;
    }
    int64_t visited = trips > TRIPS_MOST ? TRIPS_MOST : trips;
    adder->out->sampled |= visited < trips;
    for (int64_t i = 0; i < visited && adder->fine; i++) {
        adder->values[work->variable] =
            lo + (int64_t)(((double)i + 0.5) * (double)trips / (double)visited);
        add_inside(adder, at, count * (double)trips / (double)visited);
    }
}

static bool holds(Adder *adder, int at) {
    const ManifestWork *work = item(adder, at);
    if (work->lo.count == 0) adder->out->bounded = true;
    adder->out->bounded |= work->bound;
    return work->lo.count == 0 || eval(adder, &work->lo) != 0;
}

/* An unknown condition: both arms count */
static void add_else(Adder *adder, int at, double count) {
    int of = item(adder, at)->of;
    if (item(adder, of)->lo.count == 0 || !holds(adder, of)) add_inside(adder, at, count);
}

static void set_tile(Adder *adder, int64_t tile, const int64_t *extents) {
    for (size_t a = adder->manifest->axes.count; a-- > 0;) {
        adder->values[(size_t)adder->first + a] = tile % extents[a];
        tile /= extents[a];
    }
}

static void add_grid(Adder *adder, int at) {
    const Manifest *manifest = adder->manifest;
    int64_t extents[AXES_MOST], tiles = 1;
    int last = adder->first + (int)manifest->axes.count - 1;
    for (size_t a = 0; a < manifest->axes.count; a++) {
        extents[a] = eval(adder, &manifest->axes.items[a].extent);
        if (extents[a] <= 0) return;
        adder->fine &= !__builtin_mul_overflow(tiles, extents[a], &tiles);
    }
    double executing = (double)item(adder, at)->amount;
    int64_t visited = !depends(adder, at, adder->first, last) ? 1
                      : tiles > TILES_MOST                    ? TILES_MOST
                                                              : tiles;
    adder->out->sampled |= visited > 1 && visited < tiles;
    for (int64_t i = 0; i < visited && adder->fine; i++) {
        double before = adder->out->amount[WORK_MATRIX];
        double part = executing * (double)tiles / (double)visited;
        set_tile(adder, (int64_t)(((double)i + 0.5) * (double)tiles / (double)visited), extents);
        add_inside(adder, at, part);
        double own = (adder->out->amount[WORK_MATRIX] - before) * (double)visited;
        if (own > adder->out->largest) adder->out->largest = own;
    }
}

static void add_inside(Adder *adder, int parent, double count) {
    for (int i = parent + 1; i < (int)adder->manifest->work.count && adder->fine; i++) {
        const ManifestWork *work = item(adder, i);
        if (!is_inside(adder, i, parent)) break;
        if (work->parent != parent) continue;
        if (parent < 0 && adder->role >= 0 && work->role != adder->role) continue;
        double times = count;
        if (parent < 0) times *= adder->manifest->roles.items[work->role].instances;
        switch (work->kind) {
        case WORK_GRID: add_grid(adder, i); break;
        case WORK_LOOP: add_loop(adder, i, times); break;
        case WORK_IF:
            if (holds(adder, i)) add_inside(adder, i, times);
            break;
        case WORK_ELSE: add_else(adder, i, times); break;
        case WORK_UNSAFE: adder->out->unknown = true; break;
        case WORK_COPY_IN:
        case WORK_COPY_OUT:
        case WORK_MATRIX:
        case WORK_LOAD:
        case WORK_STORE:
        case WORK_SHARED:
        case WORK_ISSUE:
        case WORK_WAIT: add_amount(adder, work, times); break;
        case WORK_KINDS: break;
        }
    }
}

bool work_total(const Manifest *manifest, const int64_t *symbols, int role, int64_t blocks,
                WorkTotals *out) {
    *out = (WorkTotals){0};
    if (manifest->axes.count > AXES_MOST) return false;
    size_t named = manifest->symbols.count + manifest->axes.count + manifest->variables.count;
    Arena *arena = arena_new();
    int64_t *values = NEW_ARRAY(arena, int64_t, named + 1);
    for (size_t i = 0; i < manifest->symbols.count; i++) values[i] = symbols[i];
    Adder adder = {.manifest = manifest,
                   .values = values,
                   .first = (int)manifest->symbols.count,
                   .role = role,
                   .out = out,
                   .fine = true};
    add_inside(&adder, -1, (double)blocks);
    if (out->amount[WORK_MATRIX] > 0) out->largest /= out->amount[WORK_MATRIX];
    arena_free(arena);
    return adder.fine;
}
