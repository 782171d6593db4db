/* emulator, private: what a Program runs on.
 *
 * A Cluster of blocks (mostly of one) owns all that changes while it runs except global memory, so that clusters may run on threads one day. Every
 * memory access passes memory_access (memory.c), every asynchronous operation is an Async (copy.c), every decision about
 * order is in schedule.c, every finding goes through finding (report.c). */
#ifndef PIPEC_EMULATOR_MACHINE_H
#define PIPEC_EMULATOR_MACHINE_H

#include <string.h>

#include "emulator.h"
#include "program.h"

#define ALL_LANES UINT32_MAX
#define LOOK_EVERY UINT64_C(65536) /* warp instructions, a few milliseconds */

typedef enum ClockKind { CLOCK_LOW, CLOCK_HIGH, CLOCK_CYCLES, CLOCK_NS, CLOCK_NS_LOW, CLOCK_NS_HIGH } ClockKind;
enum { MOVE_PLAIN, MOVE_UNPACK, MOVE_PACK }; /* Mods.choice of mov */

typedef struct Machine Machine;
typedef struct Cluster Cluster;
typedef struct Block Block;
typedef struct Warp Warp;

/* ---- global memory ------------------------------------------------------------------------------------------------ */

/* Regions of global memory with unmapped gaps between them, sorted by address: bounds are exact. */
typedef struct Region {
    uint64_t base, bytes;
    unsigned char *data;
    bool read_only;
    const char *name; /* of the tensor */
} Region;

/* Generic addresses of the other spaces */
#define WINDOW_SHARED UINT64_C(0x7a0000000000)
#define WINDOW_LOCAL  UINT64_C(0x7b0000000000)
#define WINDOW_PARAM  UINT64_C(0x7c0000000000)
#define WINDOW_BYTES  UINT64_C(0x000100000000)
#define GLOBAL_BASE   UINT64_C(0x200000000000)
#define GLOBAL_GAP    UINT64_C(0x000040000000)

typedef enum AccessKind { ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC } AccessKind;
typedef enum Proxy { PROXY_GENERIC, PROXY_ASYNC } Proxy;

/* Who touches what: the one form in which memory is reached. `bytes` from `address` on; where several lanes touch
 * neighbouring pieces in one instruction, piece bytes each, beginning with lane `agent.lane`. */
typedef struct Agent {
    Warp *warp; /* the warp, or the one that issued the asynchronous operation */
    uint32_t lane;
    uint32_t pc;
    uint64_t async; /* number of the asynchronous operation, 0: the warp itself */
} Agent;

typedef struct Access {
    Agent agent;
    AccessKind kind;
    Proxy proxy;
    Space space;
    uint64_t address;
    uint64_t bytes;
    uint32_t piece;
    uint32_t alignment; /* that `address` must have */
    bool cluster;       /* SPACE_SHARED: of any block of the cluster; generic addresses always are */
} Access;

/* Addresses of shared memory in a cluster: what mapa gives names the block in its upper bits, rank + 1, and so do a block's own addresses where there
 * are several blocks (on an H200, the rank: seen to reach into the upper fields of a matrix descriptor that did not mask it); without
 * them it is an address of the block itself. */
#define RANK_SHIFT  24
#define OFFSET_MASK ((1u << RANK_SHIFT) - 1)
Block *cluster_block(const Block *block, uint64_t address); /* whose memory is this? NULL: there is no such block */
bool cluster_owns(const Block *block, uint64_t address);

/* Where the bytes are, or NULL after a finding. Checks bounds, alignment, modes, and that what is read was written. */
unsigned char *memory_access(Block *block, const Access *access);

/* Of one element, also used by bulk reductions: *at = *at op value. The old bits are returned. */
uint64_t memory_reduce(Reduce reduce, Type type, unsigned char *at, uint64_t value, uint64_t compare);

/* ---- tensor maps -------------------------------------------------------------------------------------------------- */

typedef struct TensorMap {
    const char *name;
    uint64_t base;
    uint32_t rank, element_bytes;
    Element type;
    uint64_t extents[MAX_RANK], strides[MAX_RANK]; /* strides in bytes, [0] is the element's */
    uint32_t box[MAX_RANK];
    Swizzle swizzle;
    uint32_t box_bytes;
} TensorMap;

bool maps_encode(Machine *machine, const Launch *launch);

/* ---- asynchronous operations -------------------------------------------------------------------------------------- */

typedef enum AsyncKind {
    ASYNC_BULK_LOAD,
    ASYNC_BULK_STORE,
    ASYNC_TENSOR_LOAD,
    ASYNC_TENSOR_STORE, /* stores: with or without reduction */
    ASYNC_LANES,        /* cp.async of up to 32 lanes */
    ASYNC_LANES_ARRIVE, /* cp.async.mbarrier.arrive: arrives when the lanes' earlier copies are done */
    ASYNC_REMOTE,       /* st.async, red.async */
    ASYNC_MATRIX        /* a committed group of wgmma of a warpgroup */
} AsyncKind;

/* An agent of its own: issued by a lane (or lanes), later done in one or two steps (stores: read, then write). */
typedef struct Async {
    struct Async *next, *previous;
    Agent agent; /* agent.async is its number, counted from 1 */
    AsyncKind kind;
    uint64_t due;   /* turn from which on it may be done, in the plain order */
    uint32_t lanes; /* a bit a lane that issued it */
    uint32_t group; /* number of the group of the issuing threads */
    bool read_done; /* stores: the source has been read */
    Reduce reduce;
    Type type;
    uint32_t shared, bytes;
    uint32_t barrier; /* shared address; loads */
    Block *target;    /* loads: the block that `shared` and `barrier` are of */
    Space source;     /* loads: of `global`: global memory, or shared memory of the issuing block */
    uint64_t global;
    unsigned char value[16]; /* ASYNC_REMOTE: up to four of `type` */
    struct MatrixGroup *matrices;
    const TensorMap *map;
    int32_t coordinates[MAX_RANK];
    unsigned char *buffer; /* stores: what was read */
    uint32_t buffer_class;
    struct AsyncLanes { /* ASYNC_LANES, ASYNC_LANES_ARRIVE */
        uint64_t global[LANES];
        uint32_t shared[LANES], source_bytes[LANES];
    } * per_lane;
    bool no_increment;
} Async;

bool async_idle(const Block *block);
Async *async_new(Block *block, Warp *warp, AsyncKind kind, uint32_t lane, uint32_t lanes);
void async_enqueue(Block *block, Async *op);
bool async_land(Block *block, const Async *op); /* completes op->bytes at its barrier */
bool async_step(Block *block, bool force);      /* completes what is due; force: at least one. False: a finding */
bool async_check_exit(Block *block, Warp *warp, uint32_t mask);
bool async_check_end(Block *block);
bool tensor_load(Block *block, const Async *op);
bool tensor_store(Block *block, const Async *op); /* from op->buffer */

/* ---- barriers ----------------------------------------------------------------------------------------------------- */

/* An mbarrier; its phases are counted by generation, never by parity alone. */
typedef struct Barrier {
    bool live;
    Block *home;
    uint32_t address;
    uint32_t count, pending; /* arrivals that a phase wants, that this one still wants */
    int64_t tx;              /* bytes still to come */
    uint64_t generation;     /* phases completed */
    uint64_t landed,
        observed;    /* generation + 1 of the last phase into which bytes were copied; that a wait has seen complete */
    Agent last_copy; /* who issued that copy */
} Barrier;

#define MAX_TX 1048575 /* PTX ISA 9.7.13.15.2: tx-count range */

/* An address without a rank is one of `block`. NULL after a finding. */
Barrier *barrier_at(Block *block, Agent agent, uint64_t address, const char *what);
uint64_t barrier_address(const Warp *warp, const Inst *inst, const Operand *op, uint32_t lane);
bool barrier_arrive(Block *block, Agent agent, Barrier *barrier, uint32_t count);
bool barrier_transact(Block *block, Agent agent, Barrier *barrier, int64_t bytes); /* + expects, - completes */

typedef struct NamedBarrier {
    uint32_t expected; /* threads; 0: nobody has come yet */
    bool whole_block;  /* without a count: all threads that have not exited */
    uint32_t arrived;
    uint32_t lanes[MAX_WARPS]; /* that have come, of warps that are not whole yet */
    uint32_t warps;            /* a bit a warp that has come */
    Agent first;
} NamedBarrier;
#define NAMED_BARRIERS 16

void named_recheck(Block *block); /* after lanes have exited */

/* ---- warps -------------------------------------------------------------------------------------------------------- */

typedef enum Wait {
    WAIT_NONE,
    WAIT_PHASE,     /* for an mbarrier's phase; seen: block->phase_epoch */
    WAIT_NAMED,     /* at a named barrier; its release sets the split going */
    WAIT_LANES,     /* for other lanes of its warp; seen: warp->live */
    WAIT_GROUP,     /* for asynchronous copies; seen: block->async_epoch */
    WAIT_REGISTERS, /* setmaxnreg.inc; seen: block->pool_epoch */
    WAIT_CLUSTER,   /* at the cluster's barrier; seen: its generation */
    WAIT_MATRIX,    /* for groups of wgmma; seen: block->async_epoch */
    WAIT_MEMORY     /* polls without effect; seen: effects of the cluster and the machine */
} Wait;

/* Lanes of a warp that share a program counter. A warp has one split while its lanes agree. */
typedef struct Split {
    uint32_t mask, pc;
    Wait wait;
    uint64_t seen, seen_machine;
    bool expire;             /* the next failed try_wait gives false instead of sleeping */
    uint64_t expired;        /* effects of the cluster + 1 at that time */
    bool suspect;            /* did something that a polling loop does */
    bool reads_clock, tests; /* since the loop's last turn */
    uint32_t quiet;          /* backward branches since something had an effect */
    uint32_t poll_pc;        /* backward branch whose state is in warp->snapshot */
    uint64_t poll_effects;
    uint32_t test_pc; /* the test_wait that failed last */
    uint64_t test_effects;
    uint64_t wait_address; /* what it waits for: address of the barrier, number of a named one, group, registers */
    uint64_t wait_phase;   /* generation that must be over; the parity form waits for this one's parity */
    uint32_t wait_mask;    /* WAIT_LANES: lanes wanted */
} Split;

/* Groups of asynchronous copies that a thread counts */
typedef struct Groups {
    uint32_t committed[LANES]; /* groups committed so far; what is issued now will be of this number */
    uint32_t issued[LANES];    /* number + 1 of the last group that holds a copy */
    uint32_t waited[LANES];    /* groups below this number are known to be over (bulk: read) */
} Groups;

/* What a warp knows of the registers that its wgmmas use; by slot. See wgmma.c. */
typedef struct Matrices {
    uint32_t *group;    /* number + 1 of the group in flight that uses the register; 0: none */
    const Inst **user;  /* the last wgmma of that group which uses it */
    uint32_t *written;  /* fences + 1 when it was last written by another instruction */
    uint32_t fences;    /* executed so far */
    uint32_t issued;    /* wgmmas of the group that is not committed yet */
    uint32_t committed; /* groups */
    uint32_t waited;    /* groups below this number are known to be over */
    uint32_t busy;      /* registers in flight */
} Matrices;

bool matrices_allow(Block *block, Warp *warp, const Inst *inst, uint32_t mask); /* false: a finding */
bool matrices_hold(const Warp *warp, uint32_t slot);                            /* is it in flight? */
bool matrices_touched(Block *block, Warp *warp, const Inst *inst, uint32_t slot, uint32_t lane, const char *verb);
bool matrices_check_exit(Block *block, Warp *warp);
bool matrices_run(Block *block, const Async *op); /* a group: reads shared memory, writes the accumulators */

/* wgmmas of a warpgroup that have been issued, in groups; those of one group are done in order, and the groups too */
/* where the operands behind the accumulator's registers lie in `ops` */
static inline uint32_t wgmma_a(const Inst *inst) { return inst->vector; }
static inline uint32_t wgmma_b(const Inst *inst) { return inst->op_count - 6u; }
static inline uint32_t wgmma_scale(const Inst *inst) {
    return inst->op_count - 5u;
} /* scale-d; up to four immediates behind it */

typedef struct Matrix {
    const Inst *inst;
    uint64_t a, b; /* descriptors; a: 0 where the operand is in registers */
    bool accumulates;
    uint32_t low[2], high[2]; /* of A and B: shared addresses between which they lie; 0, 0: in registers */
} Matrix;
typedef struct MatrixGroup {
    struct MatrixGroup *next;
    uint32_t number, warps; /* a bit a warp of the warpgroup that has committed it */
    bool closed;            /* some warp has: `items` is complete */
    VEC(Matrix) items;
} MatrixGroup;
typedef struct Warpgroup {
    MatrixGroup *first, *last, *spare; /* by number; kept until some warp has waited for it */
    uint32_t done;                     /* groups below this number are over */
} Warpgroup;

/* After a wgmma is issued, and before shared memory of `home` is written: does one read it that nobody has waited for? */
void matrices_span(Block *block, Matrix *matrix);
bool matrices_let_write(Block *home, const Access *access, uint32_t address); /* false: a finding */

struct Warp {
    Block *block;
    unsigned char *banks[BANK_COUNT];
    uint32_t *valid; /* a mask a slot */
    unsigned char *tested; /* the registers after the test_wait that failed last */
    unsigned char *snapshot;
    uint32_t snapshot_mask;
    Split splits[LANES];
    Split *split; /* the one that runs */
    uint32_t split_count;
    uint32_t live; /* lanes that have not exited */
    uint32_t index;
    uint32_t turns;
    uint64_t effects;    /* things done that others can see */
    uint32_t carry;      /* the condition code, a bit a lane */
    Groups bulk, copies; /* cp.async.bulk, cp.async */
    uint32_t registers;  /* a thread: setmaxnreg */
    uint32_t register_changes, register_history[8];
    Matrices *matrices;                 /* NULL: the program has no wgmma */
    uint32_t cluster_arrived;           /* lanes that have come to the cluster's barrier, in its present phase */
    uint32_t cluster_pending;           /* that have come and not waited yet */
    unsigned char *local, *local_state; /* local_bytes a lane */
};

/* state of a byte of shared or local memory */
enum { BYTE_WRITTEN = 1, BYTE_BARRIER = 2 };

#define MAX_WARPGROUPS 8

struct Block {
    Machine *machine;
    Cluster *cluster;
    const Program *program;
    uint64_t index;
    uint32_t rank; /* in its cluster */
    bool exited;   /* with all that it had in flight: its shared memory is gone */
    Warp *warps;
    Warpgroup warpgroups[MAX_WARPGROUPS];
    uint32_t unwaited;            /* groups of wgmma that no warp has waited for */
    struct Tiles *tiles;          /* room for the operands of a wgmma, NULL until one runs */
    uint32_t warp_count, running; /* warps that have live lanes */
    uint32_t next_warp;
    unsigned char *shared, *shared_state;
    uint32_t shared_bytes;
    Barrier **barriers; /* one a barrier ever made, by address of 8 bytes; NULL: never */
    uint32_t barrier_slots;
    NamedBarrier named[NAMED_BARRIERS];
    Async *first, *last, *spare;
    unsigned char *spare_buffers[40];
    uint64_t async_count;
    uint64_t turn, phase_epoch, async_epoch, pool_epoch;
    uint64_t clock; /* moves when something happens, see schedule.c */
    uint32_t pool;  /* registers that setmaxnreg.inc may take */
    uint64_t random;
    uint32_t delay, slow; /* with a seed: turns that a copy may take; a bit a warp that seldom runs */
};

struct Cluster {
    Block *blocks[MAX_CLUSTER];
    uint32_t size, next_block;
    uint64_t effects;    /* of all its blocks */
    uint64_t generation; /* phases of its barrier that are over */
};

struct Machine {
    Arena *arena;
    Diags *diags;
    const Program *program;
    const Manifest *manifest;
    uint64_t seed;
    Region *regions;
    uint32_t region_count;
    uint64_t *base_of_parameter; /* where the array of each of the manifest's parameters lies */
    uint64_t base_of_empty[2];   /* where maps of empty tensors lead: [ManifestMap.stored] */
    unsigned char *parameters;
    TensorMap *maps;
    int32_t *map_of_argument; /* by parameter of the entry; -1 */
    uint32_t threads, dynamic_bytes, dynamic_base;
    uint64_t blocks;
    uint32_t cluster_size, cluster[3];
    bool explicit_cluster;
    uint64_t effects;             /* of all clusters on global memory */
    uint64_t instructions, limit; /* warp instructions executed, and after which to give up; 0: never */
    uint64_t done;                /* blocks that have ended */
    uint64_t results, written;    /* bytes of the tensors that may be written, and that were written so far */
    uint64_t next_look;           /* instructions after which `options->progress` is called again */
    const EmulatorOptions *options;
    RunStatus status;
};

static inline void effect(Block *block, Warp *warp) {
    block->cluster->effects++;
    warp->effects++;
}
static inline Agent agent_of(const Block *block, Warp *warp, uint32_t lane) {
    (void)block;
    return (Agent){warp, lane, warp->split->pc, 0};
}

/* ---- operands ----------------------------------------------------------------------------------------------------- */

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
/* Any width, zero-extended; and back, cut to the register's width. */
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

/* ---- handlers: each gives the code that executes a decoded instruction, NULL: not modelled ------------------------ */

Run pick_arithmetic(const Inst *inst); /* exec_integer.c, exec_float.c or exec_half.c, by the type */
Run pick_integer(const Inst *inst);
Run pick_float(const Inst *inst);
Run pick_half(const Inst *inst);
Run pick_compare(const Inst *inst);
Run pick_select(const Inst *inst);
Run pick_convert(const Inst *inst);
Run pick_move(const Inst *inst);
Run pick_flow(const Inst *inst);
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

/* ---- running and reporting ---------------------------------------------------------------------------------------- */

typedef enum ClusterState {
    CLUSTER_DONE,
    CLUSTER_STOPPED,
    CLUSTER_SUSPENDED
} ClusterState; /* stopped: machine->status says why */
ClusterState schedule_run(Cluster *cluster, bool last_chance);
void cluster_recheck(Cluster *cluster); /* its barrier, after lanes have come or exited */
Step schedule_branch(Block *block, Warp *warp, const Inst *inst, uint32_t mask, uint32_t target);
Step schedule_exit(Block *block, Warp *warp, uint32_t mask);
Step schedule_lanes(Block *block, Warp *warp, uint32_t mask, uint32_t wanted); /* NEXT once all wanted lanes are here */
void schedule_start(Block *block);                       /* draws what the seed decides for the whole block */
bool schedule_gives_up(Block *block, Split *split);       /* does the failed try_wait of this split end early? */
uint64_t schedule_due(Block *block);
uint32_t schedule_pick(Block *block, uint32_t choices);
Step schedule_wait(Warp *warp, Wait wait, uint64_t seen);

/* A finding: where (role, pipe, place) comes from the agent. Always returns false. */
bool finding(Block *block, Code code, Agent agent, const char *format, ...) PRINTF_LIKE(4, 5);
Step fault(Block *block, Code code, Agent agent, const char *format, ...) PRINTF_LIKE(4, 5); /* the same; STEP_FAULT */
void report_deadlock(Cluster *cluster);
const char *report_shared(const Machine *machine, Arena *arena, uint64_t address); /* "stage 2 of `loaded.x`" or NULL */

/* float conversions, convert.c: number formats of up to 64 bits, all roundings */
float half_to_float(uint16_t bits);
float bfloat_to_float(uint16_t bits);
uint16_t half_from_double(double value); /* nearest even; `value` may carry a sticky last bit */
uint16_t bfloat_from_double(double value);

#endif
