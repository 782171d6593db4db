/* launch: adds up the work of a launch. A loop whose body does not name its variable counts as one
 * iteration times their number; the grid alike. Otherwise each tile and iteration is visited, or
 * some that stand for all. */
#include "launch/launch.h"

#define TILES_MOST   1024 /* that are visited */
#define TRIPS_MOST   64   /* of one loop */
#define AXES_MOST    8
#define COUNTED_MOST (INT64_C(1) << 52) /* of tiles and of iterations: exact as a double */
#define ITEMS_MOST   1000000            /* then one iteration stands for all */

typedef struct Adder {
    const Manifest *manifest;
    int64_t *values;       /* of the symbols, the axes, the variables */
    int first;             /* of the axes among them */
    bool *varies;          /* by item: a formula in it names its variable, or an axis */
    int role;              /* -1: all */
    const ByteCost *costs; /* by parameter: in, out */
    int64_t left;          /* items that may still be visited one by one */
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

static bool is_inside(const Adder *adder, int at, int parent) {
    while (at > parent) at = item(adder, at)->parent;
    return at == parent;
}

/* The item that gives the symbol its value, for a formula of the item `at`; -1: none */
static int giver(const Adder *adder, int at, int64_t symbol) {
    const Manifest *manifest = adder->manifest;
    bool axis = symbol < adder->first + (int64_t)manifest->axes.count;
    for (at = item(adder, at)->parent; at >= 0; at = item(adder, at)->parent)
        if (axis ? item(adder, at)->kind == WORK_GRID : item(adder, at)->variable == symbol)
            return at;
    return -1;
}

static void mark_givers(const Adder *adder, int at, const Formula *formula) {
    for (int i = 0; i < formula->count; i++) {
        const FormulaStep *step = &formula->steps[i];
        int by = step->op == F_SYMBOL && step->value >= adder->first ? giver(adder, at, step->value)
                                                                     : -1;
        if (by >= 0) adder->varies[by] = true;
    }
}

static void find_givers(const Adder *adder) {
    for (int i = 0; i < (int)adder->manifest->work.count; i++) {
        mark_givers(adder, i, &item(adder, i)->lo);
        mark_givers(adder, i, &item(adder, i)->hi);
        mark_givers(adder, i, &item(adder, i)->times);
    }
}

static void add_inside(Adder *adder, int parent, double count);

static void add_amount(Adder *adder, const ManifestWork *work, double count) {
    double times = work->times.count > 0 ? (double)eval(adder, &work->times) : 1;
    adder->out->amount[work->kind] += count * times * (double)work->amount;
    adder->out->pieces[work->kind] += count * times * (double)work->pieces;
    bool in = work->kind == WORK_COPY_IN, copy = in || work->kind == WORK_COPY_OUT;
    double moved = count * times * (double)(in ? work->own : work->amount);
    if (in) adder->out->own += moved;
    if (!copy || adder->costs == NULL || work->parameter < 0) return;
    const ByteCost *cost = &adder->costs[2 * work->parameter + !in];
    adder->out->cost.block += moved * cost->block;
    adder->out->cost.all += moved * cost->all;
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
    adder->fine &= trips < COUNTED_MOST;
    if (!adder->fine || trips <= 0) return;
    if (!adder->varies[at]) {
        add_inside(adder, at, count * (double)trips);
        return;
    }
    int64_t most = adder->left > 0 ? TRIPS_MOST : 1, visited = trips > most ? most : trips;
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
    for (size_t a = 0; a < manifest->axes.count; a++) {
        extents[a] = eval(adder, &manifest->axes.items[a].extent);
        if (extents[a] <= 0) return;
        adder->fine &= !__builtin_mul_overflow(tiles, extents[a], &tiles) && tiles < COUNTED_MOST;
    }
    double executing = (double)item(adder, at)->amount;
    int64_t most = adder->varies[at] ? TILES_MOST : 1, visited = tiles > most ? most : tiles;
    adder->out->sampled |= adder->varies[at] && visited < tiles;
    for (int64_t i = 0; i < visited && adder->fine; i++) {
        double part = executing * (double)tiles / (double)visited;
        set_tile(adder, (int64_t)(((double)i + 0.5) * (double)tiles / (double)visited), extents);
        add_inside(adder, at, part);
    }
}

static void add_inside(Adder *adder, int parent, double count) {
    for (int i = parent + 1; i < (int)adder->manifest->work.count && adder->fine; i++) {
        const ManifestWork *work = item(adder, i);
        if (!is_inside(adder, i, parent)) break;
        if (work->parent != parent) continue;
        adder->left--;
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

bool work_total(Arena *arena, const Manifest *manifest, const int64_t *symbols, int role,
                int64_t blocks, const ByteCost *costs, WorkTotals *out) {
    *out = (WorkTotals){0};
    if (manifest->axes.count > AXES_MOST) return false;
    size_t named = manifest->symbols.count + manifest->axes.count + manifest->variables.count;
    int64_t *values = NEW_ARRAY(arena, int64_t, named + 1);
    for (size_t i = 0; i < manifest->symbols.count; i++) values[i] = symbols[i];
    Adder adder = {.manifest = manifest,
                   .values = values,
                   .first = (int)manifest->symbols.count,
                   .varies = NEW_ARRAY(arena, bool, manifest->work.count + 1),
                   .role = role,
                   .costs = costs,
                   .left = ITEMS_MOST,
                   .out = out,
                   .fine = true};
    find_givers(&adder);
    add_inside(&adder, -1, (double)blocks);
    return adder.fine;
}
