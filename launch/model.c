/* launch: the predicted time of a launch, from the work in its manifest and a row of machines.def.
 *
 * The SM with most tiles decides. What its units do in parallel takes about as long as the slowest
 * of them; what does not overlap with other launches is added: the launch, the first copies, the
 * last stores. One model serves all kernels, and knows none of them. */
#include "launch/launch.h"

#include <math.h>
#include <string.h>

static const MachineRow rows[] = {
#define MACHINE(...) {__VA_ARGS__},
#include "machines.def"
#undef MACHINE
};

const char *const model_terms[MODEL_TERMS] = {[MODEL_MATRIX] = "matrix units",
                                              [MODEL_COPY] = "bytes from L2",
                                              [MODEL_SHARED] = "shared memory",
                                              [MODEL_ISSUE] = "instructions",
                                              [MODEL_FLIGHT] = "copies in flight",
                                              [MODEL_ROLE] = "one role",
                                              [MODEL_MEMORY] = "memory"};

#define SHARED_RATE    128.0 /* bytes per cycle of shared memory */
#define ISSUE_RATE     2.2   /* instructions per cycle of an SM, with waits for operands */
#define WARP_CYCLES    3.4   /* of an instruction in one warp */
#define WAIT_CYCLES    35.0  /* of a wait for a stage that is there */
#define LINE           128   /* bytes of memory that are fetched or written together */
#define SECTOR         32    /* the least of it */
#define LOADED_CROOKED 1.2   /* cost of a byte whose rows are not multiples of sectors */
#define STORED         0.75  /* cost of a byte that is stored */
#define STORED_CROOKED 1.6   /* .. of lines: parts of lines are written */
#define OUTSIDE_RATE   19.0  /* bytes per cycle of boxes that are outside of their tensor */
#define AGAIN          0.25  /* part of the bytes that are read again that the memory sends again */
#define OVERLAP        4.2   /* the terms are summed in this norm: infinite if all overlapped */
#define SM_SHARED      232448.0
#define BLOCK_SHARED   1024.0 /* that the system reserves */
#define SM_THREADS     2048
#define SM_BLOCKS      32

const MachineRow *machine_by_name(const char *name) {
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

const MachineRow *machine_at(size_t index) { return index < COUNT_OF(rows) ? &rows[index] : NULL; }

void machine_report_unknown(const char *name, Diags *diags) {
    Diag *diag = diag_plain(diags, P0925, "no machine is called `%s`", name);
    Str known = str_new(diags->arena);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        str_printf(&known, "%s`%s`", i > 0 ? ", " : "", rows[i].name);
    diag_help(diags, diag, "the machines are %s", known.text);
}

MachineRow machine_of_device(const DeviceFacts *device) {
    MachineRow row = rows[0];
    bool exact = false;
    for (size_t i = 0; i < COUNT_OF(rows) && !exact; i++) {
        exact = strncmp(device->name, rows[i].device, strlen(rows[i].device)) == 0;
        if (exact) row = rows[i];
    }
    row.calibrated = row.calibrated && exact && row.multiprocessors == device->multiprocessors;
    if (device->multiprocessors > 0) row.multiprocessors = device->multiprocessors;
    return row;
}

typedef struct Model {
    Arena *arena;
    const Manifest *manifest;
    const int64_t *symbols;
    const MachineRow *machine;
    Prediction *out;
    WorkTotals totals;
    double tiles, blocks, share; /* share: of all tiles, on the busiest SM */
    double turns;                /* tiles of a block, one after the other */
    double at_once;              /* blocks that an SM holds at the same time */
    double hertz;
} Model;

static double larger(double a, double b) { return a > b ? a : b; }
static double smaller(double a, double b) { return a < b ? a : b; }
static double up(double a, double b) {
    return (double)(((int64_t)a + (int64_t)b - 1) / (int64_t)b);
}

/* Registers are those that the compiler leaves for as many blocks. */
static double resident(const Manifest *manifest) {
    double blocks = SM_BLOCKS;
    blocks = smaller(blocks, (double)(SM_THREADS / manifest->threads));
    double shared = (double)manifest->shared_bytes + BLOCK_SHARED;
    return larger(1, smaller(blocks, (double)(int)((SM_SHARED + BLOCK_SHARED) / shared)));
}

static void set_blocks(Model *m) {
    double sms = m->machine->multiprocessors, most = sms * resident(m->manifest);
    m->blocks = m->manifest->persistent ? smaller(m->tiles, most) : m->tiles;
    m->at_once = smaller(up(m->blocks, sms), resident(m->manifest));
    m->turns = m->manifest->persistent ? up(m->tiles, m->blocks)
                                       : larger(1, up(m->tiles, sms) / m->at_once);
    m->share = m->turns * m->at_once / m->tiles;
    m->out->tiles = (int64_t)m->tiles, m->out->blocks = (int64_t)m->blocks;
}

/* Bytes of a tensor, once */
static double tensor_bytes(const Model *m, int parameter) {
    const ManifestParameter *tensor = &m->manifest->parameters.items[parameter];
    double bytes = element_rows[tensor->type].bytes;
    for (int a = 0; a < tensor->rank; a++) {
        int64_t extent = 0;
        if (formula_eval(&tensor->extents[a], m->symbols, &extent) != FORMULA_FINE) return 0;
        bytes *= (double)extent;
    }
    return bytes;
}

static bool moves(const Manifest *manifest, int parameter, WorkKind a, WorkKind b) {
    for (size_t i = 0; i < manifest->work.count; i++) {
        const ManifestWork *work = &manifest->work.items[i];
        if (work->parameter == parameter && (work->kind == a || work->kind == b)) return true;
    }
    return false;
}

static double memory_bytes(const Model *m) {
    double bytes = 0;
    for (size_t i = 0; i < m->manifest->parameters.count; i++) {
        if (m->manifest->parameters.items[i].kind != PARAMETER_TENSOR) continue;
        double once = tensor_bytes(m, (int)i);
        if (moves(m->manifest, (int)i, WORK_COPY_IN, WORK_LOAD)) bytes += once;
        if (moves(m->manifest, (int)i, WORK_COPY_OUT, WORK_STORE)) bytes += once;
    }
    return bytes;
}

/* Bytes of the stages of a block that copies fill */
static double stage_bytes(const Manifest *manifest) {
    double bytes = 0;
    for (size_t i = 0; i < manifest->shared.count; i++) {
        const ManifestShared *range = &manifest->shared.items[i];
        if (range->kind != SHARED_FIELD) continue;
        for (size_t k = 0; k < manifest->work.count; k++) {
            const ManifestWork *work = &manifest->work.items[k];
            if (work->kind != WORK_COPY_IN || work->pipe == NULL ||
                strcmp(work->pipe, range->pipe) != 0)
                continue;
            bytes += (double)range->bytes * range->stages;
            break;
        }
    }
    return bytes;
}

static bool in_turn(const Manifest *manifest, int role) {
    for (size_t i = 0; i < manifest->work.count; i++) {
        const ManifestWork *work = &manifest->work.items[i];
        if (work->role == role && work->kind == WORK_GRID)
            return work->amount < manifest->roles.items[role].instances;
    }
    return false;
}

/* Cycles of a role of one block for its tiles; false: a formula overflows */
static bool role_cycles(const Model *m, int role, double *cycles) {
    const ManifestRole *row = &m->manifest->roles.items[role];
    WorkTotals own;
    if (!work_total(m->arena, m->manifest, m->symbols, role, (int64_t)m->blocks, NULL, &own))
        return false;
    double instances = larger(1, row->instances), warps = row->warps / instances;
    double one = own.amount[WORK_MATRIX] * m->at_once / m->tiles;
    double issued = own.amount[WORK_ISSUE] / m->tiles / warps * WARP_CYCLES +
                    own.amount[WORK_WAIT] / m->tiles * WAIT_CYCLES;
    if (in_turn(m->manifest, role))
        *cycles = larger(one, (one + issued) / instances) * m->turns;
    else
        *cycles = (one + issued / instances) * m->turns;
    return true;
}

/* Part of the bytes of boxes that is inside of the tensor */
static double inside_part(const ManifestMap *map, const MapShape *shape) {
    double part = 1;
    for (int d = 0; d < map->rank; d++) {
        double boxes = up((double)shape->extents[d], map->box[d]);
        if (boxes > 0) part *= (double)shape->extents[d] / (boxes * map->box[d]);
    }
    return part;
}

/* Cycles of an SM for a byte that is copied through the map: zeros for elements that are outside,
 * which no memory sends, are slower than the others. */
static double byte_cost(const Model *m, const ManifestMap *map) {
    MapShape shape;
    if (map_evaluate(map, m->symbols, &shape) != FORMULA_FINE) return 0;
    double inside = inside_part(map, &shape), rate = m->machine->l2_rate;
    uint64_t pitch = map->rank > 1 ? shape.strides[1] : 0;
    if (map->stored) return inside * (pitch % LINE == 0 ? STORED : STORED_CROOKED) / rate;
    return inside * (pitch % SECTOR == 0 ? 1 : LOADED_CROOKED) / rate + (1 - inside) / OUTSIDE_RATE;
}

/* By parameter: of what comes in, and of what goes out */
static double *byte_costs(const Model *m) {
    size_t count = 2 * m->manifest->parameters.count;
    double *costs = NEW_ARRAY(m->arena, double, count + 1);
    for (size_t i = 0; i < count; i++) costs[i] = 1.0 / m->machine->l2_rate;
    for (size_t i = 0; i < m->manifest->maps.count; i++) {
        const ManifestMap *map = &m->manifest->maps.items[i];
        costs[2 * map->parameter + map->stored] = byte_cost(m, map);
    }
    return costs;
}

static bool set_terms(Model *m) {
    const MachineRow *machine = m->machine;
    const double *amount = m->totals.amount;
    double *terms = m->out->terms, chain = 0;
    double far = m->totals.own + amount[WORK_LOAD] + amount[WORK_STORE] + amount[WORK_COPY_OUT];
    double near = amount[WORK_COPY_IN] + amount[WORK_COPY_OUT] + amount[WORK_SHARED];
    double stages = stage_bytes(m->manifest);
    for (int r = 0; r < (int)m->manifest->roles.count; r++) {
        double cycles;
        if (!role_cycles(m, r, &cycles)) return false;
        chain = larger(chain, cycles);
    }
    terms[MODEL_MATRIX] = amount[WORK_MATRIX] * m->share / m->hertz;
    far -= m->totals.own + amount[WORK_COPY_OUT];
    terms[MODEL_COPY] = (m->totals.cost + far / machine->l2_rate) * m->share / m->hertz;
    terms[MODEL_SHARED] = near * m->share / SHARED_RATE / m->hertz;
    terms[MODEL_ISSUE] = amount[WORK_ISSUE] * m->share / ISSUE_RATE / m->hertz;
    if (stages > 0)
        terms[MODEL_FLIGHT] =
            amount[WORK_COPY_IN] * m->share / (stages * m->at_once) * machine->latency * 1e-9;
    terms[MODEL_ROLE] = chain / m->hertz;
    double once = memory_bytes(m), again = larger(0, m->totals.own + amount[WORK_COPY_OUT] - once);
    terms[MODEL_MEMORY] = (once + AGAIN * smaller(again, once)) / (machine->memory_rate * 1e9);
    return true;
}

/* Terms of different units overlap, but not entirely: one that is nearly the longest delays it. */
static double joined(const double *terms) {
    double most = 0, sum = 0;
    for (int t = 0; t < MODEL_TERMS; t++) most = larger(most, terms[t]);
    for (int t = 0; t < MODEL_TERMS && most > 0; t++) sum += pow(terms[t] / most, OVERLAP);
    return most > 0 ? most * pow(sum, 1 / OVERLAP) : 0;
}

void model_predict(Arena *arena, const Manifest *manifest, const int64_t *symbols, int64_t tiles,
                   const MachineRow *machine, Prediction *out) {
    Model m = {.arena = arena,
               .manifest = manifest,
               .symbols = symbols,
               .machine = machine,
               .out = out,
               .tiles = (double)tiles,
               .hertz = machine->megahertz * 1e6};
    *out = (Prediction){.unknown = "its formulas overflow"};
    if (tiles <= 0) {
        out->unknown = NULL;
        out->seconds = out->overhead = machine->launch * 1e-9;
        return;
    }
    set_blocks(&m);
    if (!work_total(arena, manifest, symbols, -1, (int64_t)m.blocks, byte_costs(&m), &m.totals))
        return;
    out->unknown = manifest->work.count == 0 ? "its manifest lists no work"
                   : m.totals.unknown        ? "data, or an `unsafe` block, decide its work"
                                             : NULL;
    if (out->unknown != NULL || !set_terms(&m)) return;
    for (int t = 0; t < MODEL_TERMS; t++)
        if (out->terms[t] > out->terms[out->limit]) out->limit = (ModelTerm)t;
    out->overhead = (machine->launch + machine->latency) * 1e-9;
    out->seconds = out->overhead + joined(out->terms);
}
