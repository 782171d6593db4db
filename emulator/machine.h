/* emulator, private: the state of a running Program.
 *
 * A Cluster of blocks (mostly one block) owns all state that changes during the run except
 * global memory, so that clusters can later run on threads. Every memory access passes
 * memory_access (memory.c), every asynchronous operation is an Async (copy.c), every decision
 * about order is in schedule.c, every finding goes through finding (report.c). */
#ifndef PIPEC_EMULATOR_MACHINE_H
#define PIPEC_EMULATOR_MACHINE_H

#include <string.h>

#include "emulator/emulator.h"
#include "emulator/program.h"

#define ALL_LANES         UINT32_MAX
#define MAX_SHARED        232448          /* bytes of a block */
#define PROGRESS_INTERVAL UINT64_C(65536) /* warp instructions, a few milliseconds */

typedef enum ClockKind {
    CLOCK_LOW,
    CLOCK_HIGH,
    CLOCK_CYCLES,
    CLOCK_NS,
    CLOCK_NS_LOW,
    CLOCK_NS_HIGH
} ClockKind;
enum { MOVE_PLAIN, MOVE_UNPACK, MOVE_PACK }; /* Mods.choice of mov */

typedef struct Machine Machine;
typedef struct Cluster Cluster;
typedef struct Block Block;
typedef struct Warp Warp;
typedef struct Calls Calls;

/* ---- global memory --------------------------------------------------------------------------- */

/* Regions of global memory, sorted by address, with unmapped gaps between them: bounds are
 * exact. */
typedef EmulatorRegion Region;

/* The variables of a module: regions below those of the launch. They keep their values from one
 * launch of a run to the next. */
typedef struct ModuleMemory ModuleMemory;
struct ModuleMemory {
    ModuleMemory *next;
    const char *text; /* of the module */
    Region *regions;
    uint32_t region_count;
};
/* Finds the memory of the program's module, or makes it. */
void variables_map(Machine *machine);

/* Windows of generic addresses for the other spaces */
#define WINDOW_SHARED UINT64_C(0x7a0000000000)
#define WINDOW_LOCAL  UINT64_C(0x7b0000000000)
#define WINDOW_PARAM  UINT64_C(0x7c0000000000)
#define WINDOW_BYTES  UINT64_C(0x000100000000)
#define GLOBAL_BASE   UINT64_C(0x200000000000)
#define GLOBAL_GAP    UINT64_C(0x000040000000)

typedef enum AccessKind { ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC } AccessKind;
/* PROXY_MAPS: reads of tensor maps */
typedef enum Proxy { PROXY_GENERIC, PROXY_ASYNC, PROXY_MAPS } Proxy;

/* The origin of an access, named in findings */
typedef struct Agent {
    Warp *warp; /* the warp, or the one that issued the asynchronous operation */
    uint32_t lane;
    uint32_t pc;
    uint64_t async; /* number of the asynchronous operation, 0: the warp itself */
    bool alone;     /* of the warp only this lane: findings name it */
} Agent;

/* A memory access: `bytes` bytes from `address`. If several lanes access adjacent pieces in one
 * instruction, each accesses `piece` bytes, starting with lane `agent.lane`. */
typedef struct Access {
    Agent agent;
    AccessKind kind;
    Proxy proxy;
    Space space;
    uint64_t address;
    uint64_t bytes;
    uint32_t piece;
    uint32_t alignment; /* required alignment of `address` */
    /* SPACE_SHARED: any block of the cluster; always so for generic addresses */
    bool cluster;
    const struct Async *op; /* the asynchronous operation that performs it; NULL: the warp */
    uint32_t lanes;         /* these lanes access all of the bytes; 0: as `piece` says */
    /* Lanes of the instruction that access pieces of their own and learn nothing by it; 0: there
     * are no others */
    uint32_t together;
    /* The distance of their pieces, the first of which is at `address`; 0: each lane has an access
     * of its own */
    uint32_t stride;
    uint64_t series; /* one number for all accesses of the lanes, or parts; 0: none */
    /* Atomic, or with an order: does not race with others of the kind, or only with those of
     * other blocks */
    bool strong, in_block, in_cluster; /* not weak; and its scope */
} Access;

/* Shared addresses in a cluster: mapa names the block in the upper bits, as rank + 1, and so do
 * a block's own addresses if the cluster has several blocks. An address without these bits is in
 * the block itself. (An H200 puts the rank there; it was seen to reach the upper fields of a
 * matrix descriptor that did not mask it.) */
#define RANK_SHIFT  24
#define OFFSET_MASK ((1u << RANK_SHIFT) - 1)
/* The block that owns this address; NULL if there is none */
Block *cluster_block(const Block *block, uint64_t address);
bool cluster_owns(const Block *block, uint64_t address);

/* The last region that begins at this address or before; NULL: none */
const Region *memory_region(const Machine *machine, uint64_t address);

/* Where the bytes are, or NULL after a finding. Checks bounds, alignment and modes, and that
 * bytes that are read were written. */
unsigned char *memory_access(Block *block, const Access *access);

/* *at = *at op value, for one element; also used by bulk reductions. Returns the old bits. */
uint64_t memory_reduce(Reduce reduce, Type type, unsigned char *at, uint64_t value,
                       uint64_t compare);
/* The same for all elements of `bytes` bytes */
void memory_reduce_all(Reduce reduce, Type type, unsigned char *to, const unsigned char *from,
                       uint32_t bytes);

/* ---- tensor maps ----------------------------------------------------------------------------- */

typedef struct TensorMap {
    const char *name; /* of the region that it refers to */
    uint64_t base;
    uint32_t rank, element_bytes;
    Type type;                                     /* of reductions */
    uint64_t extents[MAX_RANK], strides[MAX_RANK]; /* strides in bytes, [0] is the element's */
    uint32_t box[MAX_RANK];
    Swizzle swizzle;
    uint32_t box_bytes;
} TensorMap;

typedef struct KnownMap KnownMap;
#define MAP_BUCKETS 64
/* The map whose bytes are at this generic address; NULL after a finding */
const TensorMap *map_read(Block *block, Agent agent, uint64_t address);
/* The map of these 128 bytes; NULL: they are none */
const TensorMap *map_decode(Machine *machine, const unsigned char *bytes);

/* ---- asynchronous operations ----------------------------------------------------------------- */

typedef enum AsyncKind {
    ASYNC_BULK_LOAD,
    ASYNC_BULK_STORE,
    ASYNC_TENSOR_LOAD,
    ASYNC_TENSOR_STORE, /* stores: with or without reduction */
    ASYNC_LANES,        /* cp.async of up to 32 lanes */
    /* cp.async.mbarrier.arrive: arrives when the earlier copies of its lanes are done */
    ASYNC_LANES_ARRIVE,
    ASYNC_REMOTE, /* st.async, red.async */
    ASYNC_MATRIX  /* a committed group of wgmma of a warpgroup */
} AsyncKind;

/* An asynchronous operation: issued by one or more lanes, done later in one step or two (stores:
 * read, then write). */
typedef struct Async {
    struct Async *next, *previous;
    Agent agent; /* agent.async is its number, counted from 1 */
    AsyncKind kind;
    uint64_t due;   /* in the plain order: the slice from which it may be done */
    uint32_t lanes; /* the lanes that issued it, one bit each */
    uint32_t group; /* number of the group of the issuing threads */
    bool read_done; /* stores: the source has been read */
    Reduce reduce;
    Type type;
    uint32_t shared, bytes;
    uint32_t barrier; /* shared address; loads */
    /* loads: the block that owns `shared` and `barrier` */
    Block *target;
    /* loads: space of `global`: global memory, or shared memory of the issuing block */
    Space source;
    uint64_t global;
    unsigned char value[16]; /* ASYNC_REMOTE: up to four of `type` */
    struct MatrixGroup *matrices;
    const TensorMap *map;
    int32_t coordinates[MAX_RANK];
    unsigned char *buffer; /* stores: the bytes that were read */
    uint32_t buffer_class;
    struct AsyncLanes { /* ASYNC_LANES, ASYNC_LANES_ARRIVE */
        uint64_t global[LANES];
        uint32_t shared[LANES], source_bytes[LANES];
        uint32_t times[LANES], copied[LANES]; /* see order.h */
    } * per_lane;
    struct Snapshot *order; /* what it knows, see order.h */
    uint32_t *steps;        /* what its issuer had executed, see steps.h */
    bool no_increment;
} Async;

/* The operation in flight that will write this shared address of the block and complete at an
 * mbarrier; NULL: none */
const Async *async_to(const Block *home, uint64_t address);
bool async_idle(const Block *block);
Async *async_new(Block *block, Warp *warp, AsyncKind kind, uint32_t lane, uint32_t lanes);
void async_enqueue(Block *block, Async *op);
bool async_land(Block *block, const Async *op); /* completes op->bytes at its barrier */
/* completes operations that are due; force: at least one. False: a finding */
bool async_step(Block *block, bool force);
bool async_check_exit(Block *block, Warp *warp, uint32_t mask);
bool async_check_end(Block *block);
/* The coordinates of the element whose byte a copy has at this address of shared memory, where its
 * box begins at `shared`; innermost first. False: it is not in the box. */
bool tensor_element(const TensorMap *map, uint32_t shared, const int32_t *coordinates,
                    uint32_t address, int64_t *at);
bool tensor_load(Block *block, const Async *op);
/* A store in two steps: reads the part of the box that is inside the tensor into op->buffer;
 * writes it */
bool tensor_read_box(Block *block, const Async *op);
bool tensor_store(Block *block, const Async *op);

/* ---- barriers -------------------------------------------------------------------------------- */

/* Uses of a barrier by lanes of one warp at one instruction: arrivals, completed copies, or waits
 */
typedef struct BarrierUse {
    uint32_t rank, warp, lanes, pc;
    bool async;
    uint64_t bytes; /* completed by its copies */
    /* races only: of the lanes, see order.h; of the warp, see steps.h */
    uint32_t row, time, step;
} BarrierUse;
typedef struct BarrierUses {
    VEC(BarrierUse) items;
} BarrierUses;

/* An mbarrier. Phases are counted by generation, not only by parity. */
typedef struct Barrier {
    bool live;
    Block *home;
    uint32_t address;
    uint32_t count, pending; /* arrivals per phase; arrivals that this phase still expects */
    int64_t tx;              /* tx-count: bytes that this phase still expects */
    uint64_t generation;     /* phases completed */
    /* generation + 1 of the last phase that bytes were copied in, and of the last phase that a
     * wait has seen complete */
    uint64_t landed, observed;
    uint64_t looked[MAX_WARPS]; /* for each warp: generation when a wait for a parity ended last */
    Agent last_copy;            /* agent that issued that copy */
    /* what arrived in the present phase, in the one before, and who has seen that one complete */
    BarrierUses *now, *last, *seen;
    BarrierUse init;
    uint32_t *steps_now, *steps_done; /* see steps.h; of the present phase, of the last one */
    struct BarrierOrder *order;       /* see order.h; kept when the barrier is initialised again */
} Barrier;

#define MAX_TX 1048575 /* PTX ISA 9.7.13.15.2: tx-count range */

void barrier_clear(Barrier *barrier); /* for another block: it was never initialised */
/* An address without a rank is in `block`. NULL after a finding. */
Barrier *barrier_at(Block *block, Agent agent, uint64_t address, const char *what);
uint64_t barrier_address(const Warp *warp, const Inst *inst, const Operand *op, uint32_t lane);
bool barrier_arrive(Block *block, Agent agent, Barrier *barrier, uint32_t count);
/* bytes > 0: expect-tx, bytes < 0: complete-tx */
bool barrier_transact(Block *block, Agent agent, Barrier *barrier, int64_t bytes);

typedef struct NamedBarrier {
    uint32_t last_warps;           /* warps that arrived in the last phase, one bit each */
    BarrierUse uses[2][MAX_WARPS]; /* of each warp, in the present phase and in the last one */
    uint32_t expected;             /* threads; 0: none has arrived yet */
    bool whole_block;              /* no count was given: all threads that have not exited */
    uint32_t arrived;
    uint32_t lanes[MAX_WARPS]; /* lanes that have arrived, for warps that are not complete */
    uint32_t warps;            /* warps that have arrived, one bit each */
    Agent first;
} NamedBarrier;
#define NAMED_BARRIERS 16

/* called after lanes have exited */
void named_recheck(Block *block);

/* ---- warps ----------------------------------------------------------------------------------- */

typedef enum Wait {
    WAIT_NONE,
    WAIT_PHASE, /* for an mbarrier's phase; seen: block->phase_epoch */
    /* at a named barrier; its release makes the split runnable */
    WAIT_NAMED,
    WAIT_LANES,     /* for other lanes of its warp; seen: warp->live */
    WAIT_GROUP,     /* for asynchronous copies; seen: block->async_epoch */
    WAIT_REGISTERS, /* setmaxnreg.inc; seen: block->pool_epoch */
    WAIT_CLUSTER,   /* at the cluster's barrier; seen: its generation */
    WAIT_MATRIX,    /* for groups of wgmma; seen: block->async_epoch */
    WAIT_MEMORY     /* polls without effect; seen: effects of the cluster and the machine */
} Wait;

/* Lanes of a warp that share a program counter. A warp has one split as long as its lanes agree. */
typedef struct Split {
    uint32_t mask, pc;
    Wait wait;
    uint64_t seen, seen_machine;
    bool expire;             /* the next failed try_wait gives false instead of sleeping */
    uint64_t expired;        /* effects of the cluster + 1 when it expired */
    bool suspect;            /* has executed an instruction that is typical of polling loops */
    bool reads_clock, tests; /* since the last iteration of the loop */
    uint32_t quiet;          /* backward branches since the last effect */
    uint32_t poll_pc;        /* backward branch whose state is in warp->snapshot */
    uint64_t poll_effects;
    /* The wait by parity that failed last: its instruction + 1, mbarrier, generation at its first
     * failure, and effects of the warp since when it was repeated */
    struct {
        uint32_t pc;
        const struct Barrier *barrier;
        uint64_t phase, effects;
    } unmet;
    uint32_t test_pc; /* the last test_wait that failed */
    uint64_t test_effects;
    /* what it waits for: address of the mbarrier, number of the named barrier, group, or
     * registers */
    uint64_t wait_address;
    /* generation that must be complete; the parity form waits for this generation's parity */
    uint64_t wait_phase;
    uint32_t wait_mask; /* WAIT_LANES: the lanes it waits for */
} Split;

/* Groups of asynchronous copies that a thread counts */
typedef struct Groups {
    /* groups committed so far; also the number of the group that is open */
    uint32_t committed[LANES];
    uint32_t issued[LANES]; /* number + 1 of the last group that holds a copy */
    /* groups below this number are known to be complete (bulk: to have read) */
    uint32_t waited[LANES];
} Groups;

/* State of the registers that the warp's wgmma instructions use, indexed by slot. See wgmma.c. */
typedef struct Matrices {
    /* number + 1 of the group in flight that uses the register; 0: none */
    uint32_t *group;
    const Inst **user; /* the last wgmma of that group that uses it */
    /* value of `fences` + 1 when another instruction last wrote it */
    uint32_t *written;
    uint32_t fences;    /* number of fences executed so far */
    uint32_t issued;    /* number of wgmmas in the group that is not committed yet */
    uint32_t committed; /* number of committed groups */
    uint32_t waited;    /* groups below this number are known to be complete */
    uint32_t busy;      /* number of registers in flight */
} Matrices;

/* false: a finding */
bool matrices_allow(Block *block, Warp *warp, const Inst *inst, uint32_t mask);
/* true if the register is in flight */
bool matrices_in_flight(const Warp *warp, uint32_t slot);
bool matrices_report_use(Block *block, Warp *warp, const Inst *inst, uint32_t slot, uint32_t lane,
                         const char *verb);
bool matrices_check_exit(Block *block, Warp *warp);
/* a group: reads shared memory, writes the accumulators */
bool matrices_run(Block *block, Async *op);

/* Positions of the operands in `ops`, after the accumulator's registers */
static inline uint32_t wgmma_a(const Inst *inst) { return inst->vector; }
static inline uint32_t wgmma_b(const Inst *inst) { return inst->op_count - 6u; }
/* scale-d; up to four immediates follow it */
static inline uint32_t wgmma_scale(const Inst *inst) { return inst->op_count - 5u; }

typedef struct Matrix {
    const Inst *inst;
    uint64_t a, b; /* descriptors; a: 0 if the operand is in registers */
    bool accumulates;
    /* of A and B: range of the shared addresses; 0, 0: in registers */
    uint32_t low[2], high[2];
    struct Snapshot *order; /* what all four warps knew, see order.h */
} Matrix;
/* A group of issued wgmmas. The wgmmas of a group are done in order, and so are the groups. */
typedef struct MatrixGroup {
    struct MatrixGroup *next;
    /* warps: the warps of the warpgroup that have committed it, one bit each */
    uint32_t number, warps;
    bool closed; /* some warp has committed it: `items` is complete */
    VEC(Matrix) items;
} MatrixGroup;
typedef struct Warpgroup {
    /* sorted by number; kept until some warp has waited for it */
    MatrixGroup *first, *last, *spare;
    uint32_t done; /* groups below this number are done */
} Warpgroup;

/* matrices_span is called after a wgmma is issued. matrices_check_write is called before shared
 * memory of `home` is written: is it an operand of a wgmma that no warp has waited for? */
void matrices_span(Block *block, Matrix *matrix);
/* false: a finding */
bool matrices_check_write(Block *home, const Access *access, uint32_t address);

struct Warp {
    Block *block;
    unsigned char *banks[BANK_COUNT];
    uint32_t *valid; /* one mask per slot */
    /* contents of the registers at the last test_wait that failed */
    unsigned char *test_registers;
    unsigned char *snapshot;
    uint32_t snapshot_mask;
    Split splits[LANES];
    Split *split; /* the running split */
    uint32_t split_count;
    uint32_t live; /* lanes that have not exited */
    uint32_t index;
    uint32_t selections;
    uint64_t effects;    /* number of actions that other warps can observe */
    uint32_t carry;      /* the condition code, one bit per lane */
    Groups bulk, copies; /* cp.async.bulk, cp.async */
    uint32_t registers;  /* registers per thread, set by setmaxnreg */
    uint32_t register_changes, register_history[8];
    Matrices *matrices; /* NULL: the program has no wgmma */
    Calls *calls;       /* NULL: it has called nothing so far */
    /* lanes that have arrived at the cluster's barrier in its present phase */
    uint32_t cluster_arrived;
    uint32_t cluster_pending;           /* lanes that have arrived and not waited yet */
    unsigned char *local, *local_state; /* local_bytes per lane */
    uint32_t *steps;                    /* see steps.h; NULL: no races are looked for */
    struct WarpOrder *order;            /* see order.h; NULL: no races are looked for */
    struct Timeline *timeline;          /* see timeline.h; NULL: nothing was added yet */
    struct LaneMarks *marks;            /* see flags.h; NULL: it has executed no fence */
};

/* State of a byte of shared or local memory */
enum { BYTE_WRITTEN = 1, BYTE_BARRIER = 2 };

#define MAX_WARPGROUPS 8

/* Accesses of a warp to the shared memory of another block of its cluster; races only */
typedef struct RemoteUse {
    uint32_t lanes, pc; /* pc: of the last one */
    uint32_t row, times[LANES], step;
} RemoteUse;

struct Block {
    Machine *machine;
    Cluster *cluster;
    const Program *program;
    uint64_t index; /* in the order in which blocks begin: cluster by cluster */
    uint32_t at[3]; /* its coordinates in the grid */
    uint32_t rank;  /* rank in its cluster */
    /* its threads have exited and its asynchronous work is done: its shared memory is gone */
    bool exited;
    Warp *warps;
    Warpgroup warpgroups[MAX_WARPGROUPS];
    /* groups of wgmma that no warp has waited for */
    uint32_t unwaited;
    /* buffers for the operands of a wgmma; NULL until the first one runs */
    struct Tiles *tiles;
    uint32_t warp_count, running; /* running: warps that have live lanes */
    uint32_t next_warp;
    unsigned char *shared, *shared_state;
    uint32_t shared_bytes;
    struct Plane *plane; /* records of accesses to `shared`, see race.h; NULL: none yet */
    /* each barrier that was ever initialised, indexed by address / 8; NULL: none */
    Barrier **barriers;
    uint32_t barrier_slots;
    NamedBarrier named[NAMED_BARRIERS];
    Async *first, *last, *spare;
    unsigned char *spare_buffers[40];
    uint64_t async_count;
    RemoteUse *remote; /* by warps of the cluster; NULL: none yet */
    /* see steps.h; of exited warps, of named barriers, of issued wgmmas */
    uint32_t *exit_steps, *named_steps[NAMED_BARRIERS], *group_steps[MAX_WARPGROUPS];
    uint64_t slice, phase_epoch, async_epoch, pool_epoch;
    /* advances when something happens, see schedule.c */
    uint64_t clock;
    uint32_t pool; /* registers that setmaxnreg.inc can take */
    uint64_t random;
    /* with a seed: most slices that a copy takes; the slow warps, one bit each */
    uint32_t delay, slow;
};

struct Cluster {
    Block *blocks[MAX_CLUSTER];
    uint32_t size, next_block;
    uint64_t effects;    /* of all its blocks */
    uint64_t generation; /* completed phases of its barrier */
    /* has executed an atomic operation on global memory, whose result depends on other clusters */
    bool drew;
    /* Seed 0: by instruction, whether others have run before the cluster polled there (NULL: it has
     * polled nowhere); and they are to run now */
    bool *polled, polls;
    uint32_t *steps_now, *steps_done; /* of its barrier, see steps.h */
    struct ClusterOrder *order;       /* see order.h; NULL: no races are looked for */
};

/* A finding that did not end the run: it is not reported again */
typedef struct PassedFinding {
    const Program *program;
    Code code;
    uint32_t pc;
} PassedFinding;

struct Machine {
    Arena *arena;
    Diags *diags;
    const Program *program;
    const Manifest *manifest; /* names for findings */
    uint64_t seed;
    const Region *regions;
    uint32_t region_count;
    KnownMap *maps[MAP_BUCKETS]; /* those that were used, by their content */
    uint32_t resident;           /* most blocks that wait for others */
    ModuleMemory *modules;       /* of the launches so far */

    /* of the launch that runs, see launch.c */
    const EmulatorLaunch *launch;
    size_t launch_index, launch_count;
    ModuleMemory *variables;
    unsigned char *parameters;
    uint32_t dynamic_bytes, dynamic_base;
    /* extents along x, y, z: blocks, threads of a block, blocks of a cluster, clusters */
    uint32_t grid[3], block[3], cluster[3], clusters[3];
    uint64_t blocks;
    uint32_t threads, cluster_size; /* of a block; of a cluster */
    bool explicit_cluster;

    uint64_t effects; /* effects of all clusters on global memory */
    /* warp instructions executed so far; limit after which the run ends; 0: none */
    uint64_t instructions, limit;
    /* bytes that copy engines have moved; matrix instructions, once per warp */
    uint64_t copied_in, copied_out, matrices;
    uint64_t done;  /* number of blocks that have ended, in this launch */
    uint64_t begun; /* number of blocks that have begun, in all launches */
    struct {
        /* `instructions` and `begun` when this launch began */
        uint64_t first, before;
        /* executed since then, and blocks begun, when a block ended last */
        uint64_t instructions, begun;
    } settled;
    /* bytes of the tensors that may be written; bytes of them that were written so far */
    uint64_t results, written;
    /* value of `instructions` at the next call of `options->progress` and look at the clock */
    uint64_t next_progress;
    double deadline; /* on emulator_clock */
    const EmulatorOptions *options;
    RunStatus status;
    VEC(PassedFinding) passed;
    uint32_t weak;                 /* number of warnings and notes that are not suppressed */
    bool races;                    /* looks for races */
    struct OrderMachine *order;    /* see order.h; NULL: no races are looked for */
    struct RaceRecords *race;      /* records of accesses, see race.h; NULL: none yet */
    struct FlagWrite *flag_writes; /* see flags.h; NULL: none yet */
    struct FlagRead *flag_reads;   /* the same */
    struct FlagFence *flag_fences;
    uint64_t flag_serial;
    uint64_t series;     /* number of series of accesses so far */
    VEC(Cluster *) made; /* all clusters of all launches, which run one after the other */
};

/* Constant memory has a part of the generic addresses. */
static inline bool is_constant_address(uint64_t address) {
    return address >= CONSTANTS_BASE && address < GLOBAL_BASE;
}
static inline void effect(Block *block, Warp *warp) {
    block->cluster->effects++;
    warp->effects++;
}
/* A new number for Access.series. The accesses must follow each other immediately. */
static inline uint64_t access_series(Block *block) { return ++block->machine->series; }
static inline Agent agent_of(const Block *block, Warp *warp, uint32_t lane) {
    (void)block;
    return (Agent){warp, lane, warp->split->pc, 0, false};
}

/* ---- operands -------------------------------------------------------------------------------- */

static inline const uint32_t *in32(const Warp *warp, const Operand *op) {
    return (const uint32_t *)(const void *)(warp->banks[op->bank] + op->offset);
}
static inline const uint64_t *in64(const Warp *warp, const Operand *op) {
    return (const uint64_t *)(const void *)(warp->banks[op->bank] + op->offset);
}
static inline uint32_t in_mask(const Warp *warp, const Operand *op) {
    uint32_t bits = *in32(warp, op);
    return op->negated ? ~bits : bits;
}
static inline void put32(Warp *warp, const Operand *op, const uint32_t *from, uint32_t mask) {
    uint32_t *to = (uint32_t *)(void *)(warp->banks[BANK_REGISTERS] + op->offset);
    if (mask == ALL_LANES) {
        memcpy(to, from, LANES * sizeof *to);
        return;
    }
    for (uint32_t lane = 0; lane < LANES; lane++)
        if (mask >> lane & 1) to[lane] = from[lane];
}
static inline void put64(Warp *warp, const Operand *op, const uint64_t *from, uint32_t mask) {
    uint64_t *to = (uint64_t *)(void *)(warp->banks[BANK_REGISTERS] + op->offset);
    if (mask == ALL_LANES) {
        memcpy(to, from, LANES * sizeof *to);
        return;
    }
    for (uint32_t lane = 0; lane < LANES; lane++)
        if (mask >> lane & 1) to[lane] = from[lane];
}
static inline void put_mask(Warp *warp, const Operand *op, uint32_t bits, uint32_t mask) {
    uint32_t *to = (uint32_t *)(void *)(warp->banks[BANK_REGISTERS] + op->offset);
    *to = (*to & ~mask) | (bits & mask);
}
/* Reads and writes a register of any width: zero-extended to 64 bits, and cut to the register's
 * width. */
static inline uint64_t in_lane(const Warp *warp, const Operand *op, uint32_t lane) {
    if (op->width == 8) return in64(warp, op)[lane];
    return op->width == 0 ? in_mask(warp, op) >> lane & 1 : in32(warp, op)[lane];
}
static inline void put_lane(Warp *warp, const Operand *op, uint32_t lane, uint64_t value) {
    unsigned char *to = warp->banks[BANK_REGISTERS] + op->offset;
    if (op->width == 8)
        ((uint64_t *)(void *)to)[lane] = value;
    else
        ((uint32_t *)(void *)to)[lane] =
            op->width == 4 ? (uint32_t)value : (uint32_t)value & ((1u << (8 * op->width)) - 1);
}
static inline uint32_t first_lane(uint32_t mask) { return (uint32_t)__builtin_ctz(mask); }

/* ---- handlers -------------------------------------------------------------------------------- */

/* Each pick function returns the code for a decoded instruction, NULL: not modelled. */

Run pick_arithmetic(const Inst *inst); /* by type: in exec_integer.c, exec_float.c or exec_half.c */
Run pick_integer(const Inst *inst);
Run pick_carry(const Inst *inst);
Run pick_video(const Inst *inst);
Run pick_float(const Inst *inst);
Run pick_half(const Inst *inst);
Run pick_compare(const Inst *inst);
Run pick_select(const Inst *inst);
Run pick_convert(const Inst *inst);
Run pick_move(const Inst *inst);
Run pick_flow(const Inst *inst);
Run pick_call(const Inst *inst);
/* the code for a function that a module may use without its text, and how many results and inputs
 * it has; NULL: there is none of that name */
Run call_external(const char *name, uint32_t *results, uint32_t *inputs);
/* these lanes exit, perhaps within calls */
void call_forget(Warp *warp, uint32_t mask);
Run pick_memory(const Inst *inst);
Run pick_fence(const Inst *inst);
Run pick_named(const Inst *inst);
Run pick_warp(const Inst *inst);
Run pick_mbarrier(const Inst *inst);
Run pick_copy(const Inst *inst);
Run pick_remote(const Inst *inst);
Run pick_cluster(const Inst *inst);
Run pick_wgmma(const Inst *inst);
Run pick_matrix(const Inst *inst);
Run pick_mma(const Inst *inst);

/* ---- launches -------------------------------------------------------------------------------- */

void kernel_describe(Arena *arena, const Program *program, EmulatorKernel *out);
const char *read_fault_text(Arena *arena, const ReadFault *fault);
void read_fault_more(Diags *diags, Diag *diag, const ReadFault *fault); /* as notes */
uint32_t emulator_resident(const EmulatorOptions *options);
double emulator_clock(void); /* seconds */
/* Ends the run as RUN_INCOMPLETE, and says what was covered; false */
bool grid_give_up(Machine *machine, const char *why);
/* Makes it the launch that runs. False: it does not fit its kernel (P0702) */
bool launch_begin(Machine *machine, const EmulatorLaunch *launch);
const char *extents_text(Arena *arena, const uint32_t *extents); /* "12", "12 x 2 x 1" */
bool grid_run(Machine *machine); /* false: machine->status says why */
/* "in block 3 of 8", for the number of a block in the order in which they begin */
const char *grid_place(const Machine *machine, uint64_t block);

/* ---- running and reporting ------------------------------------------------------------------- */

typedef enum ClusterState {
    CLUSTER_DONE,
    CLUSTER_STOPPED,   /* machine->status says why */
    CLUSTER_SUSPENDED, /* it waits for another one */
    CLUSTER_YIELDS     /* it can go on, but lets others run before */
} ClusterState;
ClusterState schedule_run(Cluster *cluster, bool last_chance);
/* checks the cluster's barrier, after lanes have arrived or exited */
void cluster_recheck(Cluster *cluster);
Step schedule_branch(Block *block, Warp *warp, const Inst *inst, uint32_t mask, uint32_t target);
/* Each lane of `mask` continues at its target, the others of the split after this instruction. */
Step schedule_scatter(Warp *warp, uint32_t mask, const uint32_t *targets);
Step schedule_exit(Block *block, Warp *warp, uint32_t mask);
/* These lanes of a split, which may wait, continue after its instruction. */
void schedule_pass(Warp *warp, Split *split, uint32_t mask);
/* STEP_NEXT when all `wanted` lanes have arrived */
Step schedule_lanes(Block *block, Warp *warp, uint32_t mask, uint32_t wanted);
void schedule_start(Block *block); /* draws the random parameters of the block */
/* true if the failed try_wait of this split ends early */
bool schedule_gives_up(Block *block, Split *split);
uint64_t schedule_due(Block *block);
uint32_t schedule_pick(Block *block, uint32_t choices);
Step schedule_wait(Warp *warp, Wait wait, uint64_t seen);
/* Before a read that can be a poll of global memory. True: other clusters are to run first, and the
 * handler returns STEP_AGAIN. */
bool schedule_polls(Block *block, const Inst *inst);

/* Reports a finding. Its role, pipe and source place come from the agent. Returns true if the run
 * continues after it: it is a warning or a note, or it is suppressed; false otherwise. */
bool finding(Block *block, Code code, Agent agent, const char *format, ...) PRINTF_LIKE(4, 5);
/* the same, returns STEP_NEXT or STEP_FAULT */
Step fault(Block *block, Code code, Agent agent, const char *format, ...) PRINTF_LIKE(4, 5);
/* true if a run can continue after findings of this code */
bool finding_continues(Code code);
/* true if a finding of this code at this instruction was already shown or suppressed */
bool finding_passed(const Machine *machine, Code code, uint32_t pc);
/* What to do with a finding; once per finding, because it is counted */
typedef enum Treatment {
    FINDING_ENDS,  /* show it and end the run */
    FINDING_SHOWN, /* show it and continue */
    FINDING_HIDDEN /* continue: it is suppressed, or one of too many warnings and notes */
} Treatment;
Treatment finding_treatment(Machine *machine, Code code, uint32_t pc, const char *message);
/* true if the caller suppresses this finding */
bool suppressed(const Machine *machine, Code code, uint32_t pc, const char *message);
/* the number of warnings and notes that were not shown */
void report_hidden(Machine *machine);
void report_deadlock(Cluster *cluster);

/* the element of a matrix at this place, of a type with at least 8 bits; multiply.c */
float element_to_float(Type type, const unsigned char *from);
/* float conversions, convert.c: number formats of up to 64 bits, all roundings */
float half_to_float(uint16_t bits);
float bfloat_to_float(uint16_t bits);
/* rounds to nearest even; `value` may have a sticky last bit */
uint16_t half_from_double(double value);
uint16_t bfloat_from_double(double value);

#endif
