/* emulator, private: vector clocks for the order of memory accesses ("happens before").
 *
 * Component: a source of accesses of one cluster. Thread `lane` of a warp is component
 * 32 * (rank * warps of a block + warp) + lane; the components after the threads stand for
 * asynchronous operations (order.h). Each component counts its own time, from 1; a clock maps
 * components to the last time that is known, 0 at first: all accesses of the component up to
 * this time are done and visible.
 *
 * A clock has rows of 32 components, mostly of equal time: threads of a warp. The clocks of
 * other clusters are immutable, shared, and found in a tree by the number of the cluster. All is
 * counted by references: a copy of a view costs nothing until one of both changes. */
#ifndef PIPEC_EMULATOR_CLOCK_H
#define PIPEC_EMULATOR_CLOCK_H

#include "util/util.h"

#define ROW 32

/* The time of component i of a row is the greater one of `all` and each[i]. */
typedef struct Row {
    uint32_t all;
    uint32_t *each; /* NULL, or [ROW]: some component has a greater time than `all` */
} Row;

typedef struct Rows {
    uint32_t references;
    uint32_t count; /* later rows: time 0 */
    uint32_t class; /* there is memory for 4 << class rows */
    Row rows[];
} Rows;

/* A tree node: sixteen subtrees, or at level 0 the rows of sixteen clusters. */
typedef struct Others {
    uint32_t references, level;
    union {
        struct Others *nodes[16];
        Rows *rows[16];
    } of;
} Others;

typedef struct Clock {
    Rows *rows;     /* of the own cluster; NULL: nothing is known */
    Others *others; /* of other clusters; NULL: nothing is known */
} Clock;

/* What an agent knows has clocks by the proxy that performs its next access:
 * - VIEW_GENERIC: the generic proxy;
 * - VIEW_ASYNC_SHARED, VIEW_ASYNC_GLOBAL: the async proxy, in shared memory and in global memory;
 * - VIEW_MAPS: the reads of tensor maps.
 * Each of the last three knows at most what the generic clock knows. Accesses of the generic proxy
 * get into them by a proxy fence only, completed operations of the async proxy without one.
 *
 * Two further clocks are for fence.sc, whose place is not the thread of the accesses beside it:
 * - VIEW_FENCED: what every fence.sc knew that is before;
 * - VIEW_OBSERVED: what the next fence.sc will know: VIEW_FENCED of the writers of all that was
 *   read before. */
enum { VIEW_GENERIC, VIEW_ASYNC_SHARED, VIEW_ASYNC_GLOBAL, VIEW_MAPS, VIEW_PROXIES };
enum { VIEW_FENCED = VIEW_PROXIES, VIEW_OBSERVED, VIEW_CLOCKS };

typedef struct View {
    Clock clocks[VIEW_CLOCKS];
    /* clusters with lower numbers are known entirely: earlier kernels */
    uint64_t below;
} View;

/* Memory of clocks. Reused when it is freed: it is proportional to what is known at one time. */
typedef struct Clocks Clocks;
Clocks *clocks_new(Arena *arena);

void view_share(View *to, const View *from); /* an independent copy; `to` must be empty */
void view_clear(Clocks *clocks, View *view); /* empties it */
/* Adds what `from` knows. True: `to` knows more than before. */
bool view_join(Clocks *clocks, View *to, const View *from);
/* True if `view` knows all that `other` knows. (May be false if it knows from `others` what the
 * other one knows of the same cluster from its rows.) */
bool view_covers(const View *view, const View *other);
/* keeps what both know of their own cluster; of other clusters nothing is left */
void view_intersect(Clocks *clocks, View *view, const View *other);
/* The components `mask` of this row are known until `time`. `which`: clocks, one bit each. */
void view_set(Clocks *clocks, View *view, uint32_t which, uint32_t row, uint32_t mask,
              uint32_t time);
/* a proxy fence: these clocks know what the generic clock knows */
void view_fence(Clocks *clocks, View *view, uint32_t which);
/* fence.sc: the generic clock knows what was observed */
void view_take_observed(Clocks *clocks, View *view);
/* What fences knew, to be observed: `into` has this clock only. */
void view_observe(Clocks *clocks, View *into, const View *fenced);
/* The view becomes one that other clusters can join: its own rows become those of `cluster`. */
void view_publish(Clocks *clocks, View *view, uint64_t cluster);
/* Adds a published view to one of `cluster`. True: `to` knows more than before. */
bool view_adopt(Clocks *clocks, View *to, const View *published, uint64_t cluster);

/* Of the components `mask` of a row: those that are not known until `time` */
uint32_t rows_unknown(const Rows *rows, uint32_t row, uint32_t mask, uint32_t time);
/* the rows of another cluster; NULL: none */
const Rows *others_find(const Others *others, uint64_t cluster);

/* True if the view of an agent of cluster `own` knows this component of `cluster` until `time`.
 * `clock`: VIEW_GENERIC .. */
bool view_knows(const View *view, uint32_t clock, uint64_t own, uint64_t cluster,
                uint32_t component, uint32_t time);

#endif
