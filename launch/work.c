/* launch: adds up the work of a launch, of all roles at once. A loop whose body does not name its
 * variable counts as one iteration times their number; the grid alike. Otherwise each tile and
 * iteration is visited, or some that stand for all. What does not depend on sizes is found once,
 * when a manifest is made: a choice adds up the work of each candidate. */
#include "launch/launch.h"

#include <string.h>

#define TILES_MOST   1024 /* that are visited */
#define TRIPS_MOST   64   /* of one loop */
#define AXES_MOST    8
#define COUNTED_MOST (INT64_C(1) << 52) /* of tiles and of iterations: exact as a double */
#define ITEMS_MOST   1000000            /* then one iteration stands for all */

/* ---- what does not depend on sizes ----------------------------------------------------------- */

static bool is_inside(const Manifest *manifest, int at, int parent) {
    while (at > parent) at = manifest->work.items[at].parent;
    return at == parent;
}

static void find_ends(Manifest *manifest) {
    int count = (int)manifest->work.count;
    for (int i = count - 1; i >= 0; i--) {
        int end = i + 1;
        while (end < count && is_inside(manifest, end, i)) end = manifest->work.items[end].end;
        manifest->work.items[i].end = end;
    }
}

/* The item that gives the symbol its value, for a formula of the item `at`; -1: none */
static int giver(const Manifest *manifest, int at, int64_t symbol) {
    const ManifestWork *items = manifest->work.items;
    bool axis = symbol < (int64_t)(manifest->symbols.count + manifest->axes.count);
    for (at = items[at].parent; at >= 0; at = items[at].parent)
        if (axis ? items[at].kind == WORK_GRID : items[at].variable == symbol) return at;
    return -1;
}

static void mark_givers(Manifest *manifest, int at, const Formula *formula) {
    int64_t first = (int64_t)manifest->symbols.count;
    for (int i = 0; i < formula->count; i++) {
        const FormulaStep *step = &formula->steps[i];
        int by =
            step->op == F_SYMBOL && step->value >= first ? giver(manifest, at, step->value) : -1;
        if (by >= 0) manifest->work.items[by].varies = true;
    }
}

static void find_moves(Manifest *manifest) {
    for (size_t i = 0; i < manifest->work.count; i++) {
        const ManifestWork *work = &manifest->work.items[i];
        if (work->parameter < 0) continue;
        ManifestParameter *tensor = &manifest->parameters.items[work->parameter];
        tensor->moves_in |= work->kind == WORK_COPY_IN || work->kind == WORK_LOAD;
        tensor->moves_out |= work->kind == WORK_COPY_OUT || work->kind == WORK_STORE;
        if (work->kind == WORK_STORE && work->pieces > tensor->vector)
            tensor->vector = work->pieces;
    }
}

static bool is_filled(const Manifest *manifest, const char *pipe) {
    for (size_t i = 0; i < manifest->work.count; i++) {
        const ManifestWork *work = &manifest->work.items[i];
        if (work->kind == WORK_COPY_IN && work->pipe != NULL && strcmp(work->pipe, pipe) == 0)
            return true;
    }
    return false;
}

static void find_stages(Manifest *manifest) {
    manifest->staged_bytes = 0;
    for (size_t i = 0; i < manifest->shared.count; i++) {
        const ManifestShared *range = &manifest->shared.items[i];
        if (range->kind == SHARED_FIELD && range->pipe != NULL && is_filled(manifest, range->pipe))
            manifest->staged_bytes += (uint64_t)range->bytes * range->stages;
    }
}

static bool has_matrix(const Manifest *manifest, int loop) {
    for (int i = loop + 1; i < manifest->work.items[loop].end; i++)
        if (manifest->work.items[i].kind == WORK_MATRIX) return true;
    return false;
}

/* Instructions for which the innermost loop around them also has those of the matrix unit */
static void find_beside(Manifest *manifest) {
    for (size_t i = 0; i < manifest->work.count; i++) {
        ManifestWork *work = &manifest->work.items[i];
        int loop = work->parent;
        while (loop >= 0 && manifest->work.items[loop].kind != WORK_LOOP)
            loop = manifest->work.items[loop].parent;
        work->beside = work->kind == WORK_ISSUE && loop >= 0 && has_matrix(manifest, loop);
    }
}

/* Roles of which not all instances execute a tile */
static void find_turns(Manifest *manifest) {
    for (size_t i = manifest->work.count; i-- > 0;) { /* the first item of a role decides */
        const ManifestWork *work = &manifest->work.items[i];
        ManifestRole *role = &manifest->roles.items[work->role];
        if (work->kind == WORK_GRID) role->in_turn = work->amount < role->instances;
    }
}

void work_find_facts(Manifest *manifest) {
    find_turns(manifest);
    find_ends(manifest);
    find_moves(manifest);
    find_stages(manifest);
    find_beside(manifest);
    for (int i = 0; i < (int)manifest->work.count; i++) {
        mark_givers(manifest, i, &manifest->work.items[i].lo);
        mark_givers(manifest, i, &manifest->work.items[i].hi);
        mark_givers(manifest, i, &manifest->work.items[i].times);
    }
}

/* ---- adding up ------------------------------------------------------------------------------- */

typedef struct Adder {
    const Manifest *manifest;
    int64_t *values;       /* of the symbols, the axes, the variables */
    int first;             /* of the axes among them */
    const ByteCost *costs; /* by parameter: in, out */
    int64_t left;          /* items that may still be visited one by one */
    RoleWork *role;        /* whose item is visited */
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

static void add_inside(Adder *adder, int parent, double count);

static void add_amount(Adder *adder, const ManifestWork *work, double count) {
    if (work->times.count > 0) count *= (double)eval(adder, &work->times);
    adder->role->amount[work->kind] += count * (double)work->amount;
    if (work->beside) adder->role->beside += count * (double)work->amount;
    adder->out->pieces[work->kind] += count * (double)work->pieces;
    bool in = work->kind == WORK_COPY_IN, copy = in || work->kind == WORK_COPY_OUT;
    double moved = count * (double)(in ? work->own : work->amount);
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
    if (!work->varies) {
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
    bool varies = item(adder, at)->varies;
    int64_t most = varies ? TILES_MOST : 1, visited = tiles > most ? most : tiles;
    adder->out->sampled |= varies && visited < tiles;
    for (int64_t i = 0; i < visited && adder->fine; i++) {
        double part = executing * (double)tiles / (double)visited;
        set_tile(adder, (int64_t)(((double)i + 0.5) * (double)tiles / (double)visited), extents);
        add_inside(adder, at, part);
    }
}

static void add_item(Adder *adder, int at, double count) {
    const ManifestWork *work = item(adder, at);
    switch (work->kind) {
    case WORK_GRID: add_grid(adder, at); break;
    case WORK_LOOP: add_loop(adder, at, count); break;
    case WORK_IF:
        if (holds(adder, at)) add_inside(adder, at, count);
        break;
    case WORK_ELSE: add_else(adder, at, count); break;
    case WORK_UNSAFE: adder->out->unknown = true; break;
    case WORK_COPY_IN:
    case WORK_COPY_OUT:
    case WORK_MATRIX:
    case WORK_LOAD:
    case WORK_STORE:
    case WORK_SHARED:
    case WORK_ISSUE:
    case WORK_WAIT: add_amount(adder, work, count); break;
    case WORK_KINDS: break;
    }
}

static void add_inside(Adder *adder, int parent, double count) {
    int end = item(adder, parent)->end;
    for (int i = parent + 1; i < end && adder->fine; i = item(adder, i)->end) {
        if (item(adder, i)->parent != parent) continue;
        adder->left--;
        add_item(adder, i, count);
    }
}

static void add_all(Adder *adder, RoleWork *roles, double blocks) {
    const Manifest *manifest = adder->manifest;
    for (int i = 0; i < (int)manifest->work.count && adder->fine; i = item(adder, i)->end) {
        int role = item(adder, i)->role;
        adder->role = &roles[role];
        adder->left--;
        add_item(adder, i, blocks * manifest->roles.items[role].instances);
    }
}

size_t work_symbols(const Manifest *manifest) {
    return manifest->symbols.count + manifest->axes.count + manifest->variables.count;
}

int64_t *work_values(Arena *arena, const Manifest *manifest, const int64_t *symbols) {
    int64_t *values = NEW_ARRAY(arena, int64_t, work_symbols(manifest) + 1);
    for (size_t i = 0; i < manifest->symbols.count; i++) values[i] = symbols[i];
    return values;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static bool set_counts(const WorkLists *lists, const int64_t *values, double blocks, double *out) {
    for (size_t i = 0; i < lists->counts.count; i++) {
        const WorkCount *count = &lists->counts.items[i];
        int64_t times = count->place < 0 ? 0 : values[count->place];
        if (times >= COUNTED_MOST) return false;
        out[i] = (count->of < 0 ? count->first : out[count->of]) * (count->place < 0 ? blocks
                                                                    : times > 0      ? (double)times
                                                                                     : 0);
    }
    return true;
}

/* As add_amount does for the items, one after the other */
static bool add_lists(const Manifest *manifest, const int64_t *values, double blocks,
                      const ByteCost *costs, RoleWork *roles, WorkTotals *out) {
    const WorkLists *lists = manifest->lists;
    double counts[WORK_COUNTS_MOST];
    if (!set_counts(lists, values, blocks, counts)) return false;
    for (size_t i = 0; i < lists->amounts.count; i++) {
        const WorkAmount *row = &lists->amounts.items[i];
        double count = counts[row->count], all = count * row->amount;
        roles[row->role].amount[row->kind] += all;
        if (row->beside) roles[row->role].beside += all;
        out->pieces[row->kind] += count * row->pieces;
        double moved = row->kind == WORK_COPY_IN ? count * row->own : all;
        if (row->kind == WORK_COPY_IN) out->own += moved;
        if (row->cost < 0 || costs == NULL) continue;
        out->cost.block += moved * costs[row->cost].block;
        out->cost.all += moved * costs[row->cost].all;
    }
    return true;
}

static void add_roles(const Manifest *manifest, const RoleWork *roles, WorkTotals *out) {
    for (size_t r = 0; r < manifest->roles.count; r++) {
        out->beside += roles[r].beside;
        for (int kind = 0; kind < WORK_KINDS; kind++) out->amount[kind] += roles[r].amount[kind];
    }
}

bool work_total(const Manifest *manifest, int64_t *values, int64_t blocks, const ByteCost *costs,
                RoleWork *roles, WorkTotals *out) {
    *out = (WorkTotals){0};
    for (size_t r = 0; r < manifest->roles.count; r++) roles[r] = (RoleWork){0};
    if (manifest->axes.count > AXES_MOST) return false;
    if (manifest->lists != NULL) {
        bool fine = add_lists(manifest, values, (double)blocks, costs, roles, out);
        add_roles(manifest, roles, out);
        return fine;
    }
    Adder adder = {.manifest = manifest,
                   .values = values,
                   .first = (int)manifest->symbols.count,
                   .costs = costs,
                   .left = ITEMS_MOST,
                   .out = out,
                   .fine = true};
    add_all(&adder, roles, (double)blocks);
    add_roles(manifest, roles, out);
    return adder.fine;
}
