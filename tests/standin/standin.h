/* The stand-in driver's interface for tests, found with dlsym("standin"). */
#ifndef TESTS_STANDIN_H
#define TESTS_STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct StandinMap {
    unsigned type, swizzle, interleave, promotion, fill;
    uint32_t rank, box[5], element_strides[5];
    uint64_t address, extents[5], strides[5]; /* strides[0 .. rank - 1) as given */
} StandinMap;

typedef struct Standin {
    int contexts, modules, allocations, host_allocations, streams, events; /* alive */
    /* contexts on the stacks of all threads, and pushes so far */
    int pushed, pushes;
    /* tensor maps encoded so far */
    int encoded;
    int launches;                  /* so far */
    int loads;                     /* of modules, so far */
    char loaded[16], launched[16]; /* target of the last module: "sm_90a"; "": a cubin */
    /* launches of modules that were unloaded, and modules that were unloaded during a launch, or
     * although a graph refers to them: so far, and always a fault */
    int stale;
    int load_milliseconds;              /* set by the test: a load takes so long */
    int waits;                          /* for a context, so far */
    StandinMap map;                     /* the last one */
    unsigned grid, block, shared_bytes; /* of the last launch */
    void *stream;
    bool programmatic;
    unsigned captures, capture_mode; /* set by the test: streams are captured */
    bool stays_relaxed;              /* set by the test: no mode but the relaxed one can be set */
    float milliseconds;              /* set by the test: each time; 0: those of PIPEC_STANDIN */
    /* executes a launch; set by the test; NULL: does nothing */
    void (*kernel)(void **parameters, unsigned blocks);
} Standin;

#endif
