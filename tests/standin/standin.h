/* What the stand-in driver tells a test that asks: found with dlsym("standin"). */
#ifndef TESTS_STANDIN_H
#define TESTS_STANDIN_H

#include <stddef.h>
#include <stdint.h>

typedef struct StandinMap {
    unsigned type, swizzle, interleave, promotion, fill;
    uint32_t rank, box[5], element_strides[5];
    uint64_t address, extents[5], strides[5]; /* strides[0 .. rank - 1) as they were given */
} StandinMap;

typedef struct Standin {
    int contexts, modules, allocations, host_allocations, streams, events; /* alive */
    int pushed;                                                            /* contexts on the stack */
    int encoded;                                                           /* tensor maps encoded so far */
    int launches;                                                          /* so far */
    StandinMap map;                                                        /* the last one */
    unsigned grid, block, shared_bytes;                                    /* of the last launch */
    void *stream;
    void (*kernel)(void **parameters, unsigned blocks); /* what a launch does: set by the test; NULL: nothing */
} Standin;

#endif
