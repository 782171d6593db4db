/* emulator, private: which accesses to each byte of memory later ones must be ordered with.
 *
 * A Plane belongs to one memory (the shared memory of a block, a region of global memory) and
 * holds, per granule of 16 bytes, lists of accesses, each with the bytes of the granule that it
 * touched. An access removes from them the bytes of earlier ones that are ordered before it and
 * with which nothing conflicts that does not conflict with itself. Granules with equal histories
 * share their lists, so that an access to many granules mostly adds one record. Pages of granules
 * are allocated when they are first touched. */
#ifndef PIPEC_EMULATOR_SHADOW_H
#define PIPEC_EMULATOR_SHADOW_H

#include "util/util.h"

#define GRANULE 16u

enum {                           /* Touch.flags */
       TOUCH_OPERATION = 1 << 0, /* an asynchronous operation, not threads */
       TOUCH_ASYNC = 1 << 1,     /* in the async proxy */
       TOUCH_STRONG = 1 << 2,    /* atomic, or a load or store with an order */
       TOUCH_BLOCK = 1 << 3,     /* strong only among the threads of its block */
       TOUCH_ATOMIC = 1 << 4,
       TOUCH_WRITE = 1 << 5,
       TOUCH_CLUSTER = 1 << 6, /* strong only among the threads of its cluster */
       TOUCH_OBSERVES = 1 << 7 /* a thread gets a value by a strong access: ld or atom, not red */
};

/* Who accessed memory, when and how. Components and times are those of clock.h. */
typedef struct Touch {
    uint32_t cluster;   /* its number in the grid */
    uint32_t component; /* of the operation, or of the first thread */
    uint32_t time, pc;
    /* Threads: component + i for each bit i accessed all of the bytes; 0: component + i accessed
     * those of its bytes that are from start + i * stride on. Of an operation: the thread that
     * issued it. */
    uint32_t lanes;
    uint32_t start; /* lower bits of an address */
    uint16_t stride;
    uint8_t flags;
    uint16_t instance;  /* writes of threads: the execution of the instruction, see order.h */
    uint32_t statement; /* writes with the same one may write one value without an order */
} Touch;

typedef struct Record {
    Touch touch;
    uint32_t references; /* number of cells and records that refer to it */
    uint32_t next;       /* 0: the end of the list */
    uint32_t length;     /* of the list that begins here */
    uint16_t bytes;      /* of its granules, one bit each */
    bool alike;          /* see CONFLICT_ALIKE */
} Record;

typedef struct Shadow Shadow;
typedef struct Plane Plane;

/* The thread that accessed the byte at this address; for touches in pieces */
static inline uint32_t touch_thread(const Touch *touch, uint64_t address) {
    return touch->component + ((uint32_t)address - touch->start) / touch->stride;
}

Shadow *shadow_new(Arena *arena);
/* The plane of the addresses from `base` on; adjacent planes must not share a granule. */
Plane *plane_new(Arena *arena, uint64_t base, uint64_t bytes);
/* forgets all accesses */
void plane_clear(Shadow *shadow, Plane *plane);
/* True if some access so far was a write */
bool plane_written(const Plane *plane);
/* A write of some of these bytes, which are in one granule, by a cluster from `first` on. Sets
 * *common to those of them, one bit each of the granule. NULL: none. Later accesses end it. */
const Touch *shadow_written(const Shadow *shadow, const Plane *plane, uint64_t address,
                            uint32_t bytes, uint32_t first, uint32_t *common);
/* bytes of all pages and records in use: a measure for tests */
size_t shadow_bytes(Shadow *shadow);

/* Two accesses that conflict and are not ordered. CONFLICT_ALIKE: writes by one statement, which
 * are no race if they write the same; the judge looks at that later. Then all records of a list of
 * such writes have written the same at each byte, so that the newest one decides for them, however
 * many there are: record.alike says that the list from there on has no others. */
typedef enum Conflict { CONFLICT_RACE, CONFLICT_ALLOWED, CONFLICT_ALIKE } Conflict;

/* Decides about an earlier access, for the one that is being recorded. `bytes`: of the granule
 * at `address`, one bit each */
typedef struct Judge {
    /* Of these bytes, those of which it is not ordered before. Sets *everywhere to false if the
     * answer may differ for other bytes of the two accesses. */
    uint32_t (*unordered)(void *data, const Touch *old, uint32_t bytes, uint64_t address,
                          bool *everywhere);
    /* They conflict and are not ordered, at any of these bytes. A race has been reported. Sets
     * *everywhere as above. */
    Conflict (*conflict)(void *data, const Touch *old, uint32_t bytes, uint64_t address,
                         bool *everywhere);
    void *data;
    uint32_t warps; /* of a block of the accessing thread */
    /* The access is a part of a larger one, and not the first: the touch and the answers are those
     * of the part before, which was the last access of all. */
    bool part, again;
} Judge;

/* Compares an access with the earlier ones and records it. False: a race */
bool shadow_access(Shadow *shadow, Plane *plane, const Touch *touch, uint64_t address,
                   uint64_t bytes, const Judge *judge);
/* The same for lanes that access `piece` bytes each, touch->stride apart, the first of them at
 * `address` */
bool shadow_access_lanes(Shadow *shadow, Plane *plane, const Touch *touch, uint64_t address,
                         uint32_t piece, uint32_t lanes, const Judge *judge);

#endif
