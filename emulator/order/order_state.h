/* emulator, private to order*.c: the state behind order.h. */
#ifndef PIPEC_EMULATOR_ORDER_STATE_H
#define PIPEC_EMULATOR_ORDER_STATE_H

#include "emulator/order/order.h"
#include "emulator/order/timeline.h"

#define EVERY_CLOCK ((1u << VIEW_PROXIES) - 1)

/* What a lane or several lanes of equal view knew at some time. `self` is as in Seen. */
typedef struct Snapshot {
    struct Snapshot *next; /* of the spare ones */
    View view;
    uint32_t self, times[VIEW_CLOCKS], copies, copied;
} Snapshot;

/* Fences of a lane. Strong stores after a release fence release what was known at the fence;
 * what strong loads have read is acquired at the next acquire fence. */
typedef struct LaneFences {
    Snapshot *released[REACHES]; /* at the last release fence of this scope */
    View pending[REACHES];       /* read since the last acquire fence, by the scope of the reads */
} LaneFences;

struct WarpOrder {
    uint32_t row;      /* its threads */
    uint32_t absent;   /* lanes that no thread of the block belongs to */
    uint32_t time;     /* of its accesses now */
    uint16_t stores;   /* number of store instructions */
    uint32_t in_use;   /* views, one bit each */
    uint8_t of[LANES]; /* the view of each lane */
    uint32_t lanes[LANES];
    View views[LANES];
    /* time of the last access that a proxy fence of the lane covers; [VIEW_GENERIC] is not used */
    uint32_t fenced[VIEW_CLOCKS][LANES];
    uint32_t fences;         /* lanes that have executed a proxy fence */
    LaneFences *lane_fences; /* [LANES], NULL until one has executed a fence or a strong load */
    /* rows of the other components of its lanes; 0: not taken */
    uint32_t reads_row, writes_row, copies_row, inits_row;
    uint32_t inits[LANES], inits_fenced[LANES];
    uint32_t inits_visible[LANES]; /* to the async proxy: at the last fence of either kind */
    uint32_t copied[LANES];        /* time of its cp.async that it has waited for */
    uint32_t waited;               /* lanes whose views may not have this yet */
    uint32_t arrives[LANES];       /* number of cp.async.mbarrier.arrive */
    /* their number when the lane committed its last groups, by the group's number */
    uint32_t arrives_at[8][LANES];
};

/* The phases of an mbarrier. Valid if `cluster` is the number of the running cluster */
struct BarrierOrder {
    uint64_t cluster;
    uint32_t component;
    uint32_t phase; /* phases completed, not reset by an init */
    View gather;    /* released by the arrivals of the present phase */
    View done;      /* of the last phase */
    View before;    /* of the phase before the last */
    Epoch init;
    const Warp *initialiser;
};

typedef struct Location Location;
/* Memory locations that something was released to, by their address in the emulator */
typedef struct Locations {
    Location **slots;
    uint32_t capacity, count; /* capacity: a power of two, or 0 */
    const unsigned char *low, *high;
} Locations;

struct ClusterOrder {
    Machine *machine;
    Clocks *clocks;
    uint64_t number;                /* of the cluster */
    uint64_t first_block;           /* of the cluster */
    uint32_t rows;                  /* taken so far */
    uint32_t barrier_row, barriers; /* the row of mbarriers that is being filled; 32: it is full */
    uint32_t matrix_rows[MAX_CLUSTER]; /* of each block, for its warpgroups; 0: not taken */
    View named[MAX_CLUSTER][NAMED_BARRIERS];
    View gather, done; /* the cluster's barrier */
    /* of it, what fences with the scope of the block have released, for the same block */
    View gather_near[MAX_CLUSTER], done_near[MAX_CLUSTER];
    View exits[MAX_CLUSTER]; /* of the lanes of each block that have exited */
    Locations shared;
};

struct OrderMachine {
    Clocks *clocks;
    uint64_t first, next; /* number of the first cluster of this launch, of the next launch */
    uint64_t below;       /* clusters that are known at the start of this launch */
    VEC(OrderLaunch) launches;
    Locations global;
    Snapshot *spare;
};

static inline View *order_view(const Warp *warp, uint32_t lane) {
    struct WarpOrder *order = warp->order;
    return &order->views[order->of[lane]];
}

/* Adds a moment to the timeline; `pc` 0: the instruction that the warp executes. Before a release,
 * whose accesses it then covers. */
void order_note(Warp *warp, Moment moment);
uint32_t order_take_row(struct ClusterOrder *order);
/* Adds the accesses of these lanes until now, and advances their time. */
void order_add_self(Warp *warp, uint32_t mask, View *into);
/* The lanes learn times of a row. */
void order_learn(Warp *warp, uint32_t mask, uint32_t which, uint32_t row, uint32_t components,
                 uint32_t time);

/* proxy fence: these clocks of the lanes know what their generic clocks know */
void order_fence_views(Warp *warp, uint32_t mask, uint32_t clocks);
void order_take_observed(Warp *warp, uint32_t mask);

Snapshot *order_snapshot(Warp *warp, uint32_t lane); /* advances the warp's time */
void order_forget(struct ClusterOrder *order, Snapshot **snapshot);
void order_add_snapshot(struct ClusterOrder *order, const Snapshot *snapshot, View *into);

/* Adds what fences of the lane of at least this reach have released. */
void order_release_fenced(Warp *warp, uint32_t lane, uint32_t least, View *into);
/* The lane learns `from` at its next acquire fence of at least this reach. */
void order_acquire_later(Warp *warp, uint32_t lane, uint32_t reach, const View *from);

void locations_clear(struct ClusterOrder *order, Locations *locations);

#endif
