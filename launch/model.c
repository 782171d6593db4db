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
#include "launch/machines.def"
#undef MACHINE
};

const char *const model_terms[MODEL_TERMS] = {[MODEL_MATRIX] = "matrix units",
                                              [MODEL_COPY] = "bytes from L2",
                                              [MODEL_SHARED] = "shared memory",
                                              [MODEL_ISSUE] = "instructions",
                                              [MODEL_FLIGHT] = "copies in flight",
                                              [MODEL_ROLE] = "one role",
                                              [MODEL_L2] = "L2 of all",
                                              [MODEL_MEMORY] = "memory",
                                              [MODEL_STARTS] = "starts of blocks"};

const char *const model_facts[MODEL_FACTS] = {
#define FACT(name, what) [FACT_##name] = what,
#include "launch/facts.def"
#undef FACT
};

/* Fitted to times of kernels/linear.pipe, as a whole: each stands for what it names and for what
 * happens together with it. */
#define SHARED_RATE 151.0 /* bytes per cycle of shared memory */
#define ISSUE_WARP  0.058 /* instructions per cycle of a warp, with waits for operands */
#define ISSUE_MOST  2.2   /* .. of an SM */
/* The same in loops with matrix instructions, or in kernels without: fitted to times of rows */
#define FREE_WARP          0.44
#define FREE_MOST          2.41
#define BESIDE_MOST        3.0   /* .. of an SM in such loops: fitted to attention */
#define START              141.0 /* ns after which an SM starts the next block */
#define START_WARP         23.6  /* .. for each of its warps, if that is more */
#define SCATTERED          3.5 /* cost for L2 of a byte, by element of vectors that are not whole */
#define WARP_CYCLES        0.76    /* of an instruction in one warp */
#define WAIT_CYCLES        114.0   /* of a wait for a stage that is there */
#define ALL_RATE           21600.0 /* GB/s of L2, to all SMs together */
#define ALL_CROOKED        4.7  /* cost for L2 of a byte in rows that are no multiples of sectors */
#define ALL_STORED_CROOKED 4.96 /* .. that is stored, in rows that are no multiples of lines */
#define LINE               128  /* bytes of memory that are fetched or written together */
#define SECTOR             32   /* the least of it */
#define LOADED_CROOKED     2.75 /* cost of a byte in rows that are no multiples of sectors */
#define STORED             1.9  /* cost of a byte that is stored */
#define STORED_CROOKED     1.92 /* .. of lines: parts of lines are written */
#define OUTSIDE_RATE       29.5 /* bytes per cycle of boxes that are outside of their tensor */
#define AGAIN              0.42 /* part of what is read again that the memory sends again */
#define OVERLAP            2.62 /* the terms are summed in this norm: infinite if all overlapped */
#define ROUNDING           1e-6 /* more than a sum, a root or a power is rounded */
#define LAST_CYCLES        1.31 /* of an instruction of a block's last tile: nothing overlaps it */
#define LAST_RATE          48.0 /* bytes per cycle of its stores */
#define CLUSTERED          146.0 /* ns that a launch of clusters takes longer */
#define COUPLED            1.36  /* of the roles of blocks that wait for each other's copies */
#define CLUSTERS_LARGE     0.91  /* part of the SMs that clusters of more than two blocks can use */
#define SM_SHARED          232448.0
#define BLOCK_SHARED       1024.0 /* that the system reserves */
#define SM_THREADS         2048
#define SM_BLOCKS          32

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
    int64_t *values; /* of the symbols, with room for axes and variables */
    const MachineRow *machine;
    Prediction *out;
    WorkTotals totals;
    RoleWork *roles;
    double tiles, blocks, share; /* share: of all tiles, on the busiest SM */
    double turns;                /* tiles of a block, one after the other */
    double at_once;              /* blocks that an SM holds at the same time */
    double once;                 /* bytes of memory, each once */
    double hertz;
    /* cycles: of the slowest role for the tiles of a block; for the last tile: of the instructions
     * of the slowest role, of all stores */
    double chain, last, stored;
    double waits; /* of all roles for a tile, of one instance each */
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

/* A cluster is within one GPC, and GPCs do not hold whole numbers of large ones. */
static double usable(const Model *m) {
    double all = m->machine->multiprocessors;
    return m->manifest->cluster[0] > 2 ? (double)(int)(all * CLUSTERS_LARGE) : all;
}

static void set_blocks(Model *m) {
    double sms = usable(m), most = sms * resident(m->manifest);
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
        if (formula_eval(&tensor->extents[a], m->values, &extent) != FORMULA_FINE) return 0;
        bytes *= (double)extent;
    }
    return bytes;
}

static double memory_bytes(const Model *m) {
    double bytes = 0;
    for (size_t i = 0; i < m->manifest->parameters.count; i++) {
        const ManifestParameter *tensor = &m->manifest->parameters.items[i];
        if (tensor->kind != PARAMETER_TENSOR) continue;
        double once = tensor_bytes(m, (int)i);
        if (tensor->moves_in) bytes += once;
        if (tensor->moves_out) bytes += once;
    }
    return bytes;
}

/* Adds the cycles of a role of one block */
static void add_role(Model *m, int role) {
    const ManifestRole *row = &m->manifest->roles.items[role];
    const RoleWork *own = &m->roles[role];
    bool alone = row->in_turn;
    double instances = larger(1, row->instances), warps = row->warps / instances;
    double one = own->amount[WORK_MATRIX] * m->at_once / m->tiles;
    double issued = own->amount[WORK_ISSUE] / m->tiles / warps;
    double waits = own->amount[WORK_WAIT] / m->tiles * WAIT_CYCLES;
    double rest = issued * WARP_CYCLES + waits;
    double all = alone ? larger(one * m->turns, (one + rest) * up(m->turns, instances))
                       : (one + rest / instances) * m->turns;
    m->chain = larger(m->chain, all);
    m->waits += own->amount[WORK_WAIT] / m->tiles;
    double last = issued - own->beside / m->tiles / warps;
    m->last = larger(m->last, last * LAST_CYCLES / (alone ? 1 : instances));
    m->stored += (own->amount[WORK_STORE] + own->amount[WORK_COPY_OUT]) / m->tiles / LAST_RATE;
}

/* Part of the bytes of boxes that is inside of the tensor, for the block with most outside: one of
 * its tiles is the last along an axis. Along the first one, that of rows, all tiles are alike. */
static double inside_part(const Model *m, const ManifestMap *map, const MapShape *shape) {
    double part = 1;
    for (int d = 0; d < map->rank; d++) {
        uint64_t outside = shape->extents[d] % map->box[d];
        if (outside == 0) continue; /* all is inside, or there is nothing */
        outside = map->box[d] - outside;
        double extent = (double)shape->extents[d], boxes = extent + (double)outside;
        double average = extent / boxes, last = 1 - (double)outside / map->box[d] / m->turns;
        part *= d == 0 ? average : smaller(average, last);
    }
    return part;
}

/* For the correction */
static void note_map(const Model *m, const ManifestMap *map, double inside, uint64_t pitch) {
    float *facts = m->out->facts, part = (float)inside;
    float start = pitch == 0 ? LINE : (float)smaller(LINE, (double)(pitch & -pitch));
    ModelFact least = map->stored ? FACT_INSIDE_STORED : FACT_INSIDE_LEAST;
    ModelFact starts = map->stored ? FACT_PITCH_STORED : FACT_PITCH;
    if (part < facts[least]) facts[least] = part;
    if (start < facts[starts]) facts[starts] = start;
    if (!map->stored && part > facts[FACT_INSIDE_MOST]) facts[FACT_INSIDE_MOST] = part;
}

/* Of a byte that is copied through the map. Zeros for elements that are outside come from no
 * memory, but an SM takes them more slowly than what is inside. */
static ByteCost byte_cost(const Model *m, const ManifestMap *map) {
    MapShape shape;
    if (map_evaluate(map, m->values, &shape) != FORMULA_FINE) return (ByteCost){0};
    double inside = inside_part(m, map, &shape), rate = m->machine->l2_rate;
    uint64_t pitch = map->rank > 1 ? shape.strides[1] : 0;
    bool lines = pitch % LINE == 0, sectors = pitch % SECTOR == 0;
    note_map(m, map, inside, pitch);
    if (map->stored)
        return (ByteCost){inside * (lines ? STORED : STORED_CROOKED) / rate,
                          inside * (lines ? 1 : ALL_STORED_CROOKED)};
    return (ByteCost){inside * (sectors ? 1 : LOADED_CROOKED) / rate + (1 - inside) / OUTSIDE_RATE,
                      inside * (sectors ? 1 : ALL_CROOKED)};
}

/* By parameter: of what comes in, and of what goes out */
static ByteCost *byte_costs(const Model *m) {
    size_t count = 2 * m->manifest->parameters.count;
    ByteCost *costs = NEW_ARRAY(m->arena, ByteCost, count + 1);
    float *facts = m->out->facts; /* without maps */
    facts[FACT_INSIDE_LEAST] = facts[FACT_INSIDE_STORED] = 1;
    facts[FACT_PITCH] = facts[FACT_PITCH_STORED] = LINE;
    for (size_t i = 0; i < count; i++) costs[i] = (ByteCost){1.0 / m->machine->l2_rate, 1};
    for (size_t i = 0; i < m->manifest->maps.count; i++) {
        const ManifestMap *map = &m->manifest->maps.items[i];
        costs[2 * map->parameter + map->stored] = byte_cost(m, map);
    }
    return costs;
}

static bool whole_vectors(const Model *m, int parameter, int64_t vector) {
    for (size_t i = 0; i < m->manifest->symbols.count; i++) {
        const ManifestSymbol *symbol = &m->manifest->symbols.items[i];
        if (symbol->is_stride && symbol->parameter == parameter && m->values[i] % vector != 0)
            return false;
    }
    return true;
}

/* Bytes that L2 takes more for tensors whose rows begin at no multiples of the vectors that threads
 * store: they store one element after the other, each time to the lines of a warp's vectors. */
static double scattered(const Model *m) {
    double bytes = 0;
    for (int i = 0; i < (int)m->manifest->parameters.count; i++) {
        int64_t vector = m->manifest->parameters.items[i].vector;
        if (vector > 1 && !whole_vectors(m, i, vector))
            bytes += tensor_bytes(m, i) * ((double)vector * SCATTERED - 1);
    }
    return bytes;
}

/* Cycles of an SM for all instructions */
static double issue_cycles(const Model *m) {
    double warps = m->manifest->threads / 32.0 * m->at_once;
    double all = m->totals.amount[WORK_ISSUE], free = smaller(FREE_MOST, warps * FREE_WARP);
    if (m->totals.amount[WORK_MATRIX] <= 0) return all / free;
    return (all - m->totals.beside) / smaller(ISSUE_MOST, warps * ISSUE_WARP) +
           m->totals.beside / smaller(BESIDE_MOST, warps * FREE_WARP);
}

/* Seconds until an SM has started its last block; the first is in the launch. */
static double starts(const Model *m) {
    double each = larger(START, START_WARP * m->manifest->threads / 32.0);
    return larger(0, m->blocks / usable(m) - 1) * each * 1e-9;
}

static void set_terms(Model *m) {
    const MachineRow *machine = m->machine;
    const double *amount = m->totals.amount;
    double *terms = m->out->terms;
    double far = amount[WORK_LOAD] + amount[WORK_STORE]; /* what threads move */
    double near = amount[WORK_COPY_IN] + amount[WORK_COPY_OUT] + amount[WORK_SHARED];
    double stages = (double)m->manifest->staged_bytes;
    for (int r = 0; r < (int)m->manifest->roles.count; r++) add_role(m, r);
    terms[MODEL_MATRIX] = amount[WORK_MATRIX] * m->share / m->hertz;
    terms[MODEL_COPY] = (m->totals.cost.block + far / machine->l2_rate) * m->share / m->hertz;
    terms[MODEL_L2] = (m->totals.cost.all + far + scattered(m)) / (ALL_RATE * 1e9);
    terms[MODEL_SHARED] = near * m->share / SHARED_RATE / m->hertz;
    terms[MODEL_ISSUE] = issue_cycles(m) * m->share / m->hertz;
    if (stages > 0)
        terms[MODEL_FLIGHT] =
            amount[WORK_COPY_IN] * m->share / (stages * m->at_once) * machine->latency * 1e-9;
    terms[MODEL_ROLE] = m->chain / m->hertz;
    if (m->manifest->cluster[0] > 1) terms[MODEL_ROLE] *= COUPLED;
    double once = m->once, again = larger(0, m->totals.own + amount[WORK_COPY_OUT] - once);
    if (!m->manifest->persistent) terms[MODEL_STARTS] = starts(m);
    terms[MODEL_MEMORY] = (once + AGAIN * smaller(again, once)) / (machine->memory_rate * 1e9);
}

/* ---- facts for the correction ---------------------------------------------------------------- */

static void set_facts(const Model *m) {
    float *facts = m->out->facts;
    const double *amount = m->totals.amount;
    double once = m->once, in = amount[WORK_COPY_IN];
    facts[FACT_TURNS] = (float)m->turns;
    facts[FACT_BLOCKS] = (float)m->blocks;
    facts[FACT_AT_ONCE] = (float)m->at_once;
    facts[FACT_LAST] = (float)(m->turns * m->blocks * m->at_once / m->tiles);
    facts[FACT_STAGES] = (float)m->manifest->staged_bytes;
    facts[FACT_CLUSTER] = (float)m->manifest->cluster[0];
    facts[FACT_WARPS] = (float)(m->manifest->threads / 32.0 * m->at_once);
    facts[FACT_BYTES] = (float)once;
    facts[FACT_TILE] = (float)(in / m->tiles);
    facts[FACT_REUSE] = (float)(m->totals.own / larger(1, once));
    facts[FACT_OUT] = (float)(amount[WORK_COPY_OUT] / larger(1, in));
    facts[FACT_WAITS] = (float)(m->waits * m->turns);
}

/* float: in double a power takes three times as long, and a choice many of them */
static double power(double part) {
    return part == 0 || part == 1 ? part : powf((float)part, (float)OVERLAP);
}

/* Terms of different units overlap, but not entirely: one that is nearly the longest delays it. */
static double joined(const double *terms) {
    double most = 0, sum = 0;
    for (int t = 0; t < MODEL_TERMS; t++) most = larger(most, terms[t]);
    for (int t = 0; t < MODEL_TERMS && most > 0; t++) sum += power(terms[t] / most);
    return most > 0 ? most * powf((float)sum, (float)(1 / OVERLAP)) : 0;
}

/* The norm of a higher order is less, and this one takes roots instead of powers. */
static double least_joined(const double *terms) {
    double sum = 0;
    for (int t = 0; t < MODEL_TERMS; t++) sum += terms[t] * terms[t] * terms[t] * terms[t];
    return sqrt(sqrt(sum)) * (1 - ROUNDING);
}

void model_join(Prediction *out) {
    if (out->joined || out->unknown != NULL) return;
    out->joined = true;
    out->seconds = out->modelled = out->overhead + joined(out->terms);
    _Static_assert(FACT_MATRIX == 0 && (int)FACT_OVERHEAD == MODEL_STARTS, "terms come first");
    for (int t = 0; t < MODEL_STARTS; t++) out->facts[t] = (float)(out->terms[t] / out->seconds);
    out->facts[FACT_OVERHEAD] = (float)(out->overhead / out->seconds);
}

void model_predict(Arena *arena, const Manifest *manifest, int64_t *values, int64_t tiles,
                   const MachineRow *machine, Prediction *out) {
    model_bound(arena, manifest, values, tiles, machine, out);
    model_join(out);
}

void model_bound(Arena *arena, const Manifest *manifest, int64_t *values, int64_t tiles,
                 const MachineRow *machine, Prediction *out) {
    RoleWork roles[MAX_WARPS]; /* set by the work */
    Model m = {.arena = arena,
               .manifest = manifest,
               .values = values,
               .machine = machine,
               .out = out,
               .roles = roles,
               .tiles = (double)tiles,
               .hertz = machine->megahertz * 1e6};
    *out = (Prediction){.unknown = "its formulas overflow"};
    if (tiles <= 0) {
        out->unknown = NULL;
        out->joined = true;
        out->seconds = out->modelled = out->overhead = machine->launch * 1e-9;
        return;
    }
    set_blocks(&m);
    m.once = memory_bytes(&m);
    if (manifest->roles.count > MAX_WARPS ||
        !work_total(manifest, values, (int64_t)m.blocks, byte_costs(&m), m.roles, &m.totals))
        return;
    out->unknown = manifest->work.count == 0 ? "its manifest lists no work"
                   : m.totals.unknown        ? "data, or an `unsafe` block, decide its work"
                                             : NULL;
    if (out->unknown != NULL) return;
    set_terms(&m);
    for (int t = 0; t < MODEL_TERMS; t++)
        if (out->terms[t] > out->terms[out->limit]) out->limit = (ModelTerm)t;
    out->overhead = (machine->launch + machine->latency) * 1e-9 + (m.last + m.stored) / m.hertz;
    if (manifest->cluster[0] > 1) out->overhead += CLUSTERED * 1e-9;
    out->seconds = out->modelled = out->overhead + least_joined(out->terms);
    set_facts(&m);
}
