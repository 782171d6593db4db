/* launch: what the files of this floor share and nobody else sees. */
#ifndef PIPEC_LAUNCH_PRIVATE_H
#define PIPEC_LAUNCH_PRIVATE_H

#include "launch/launch.h"

#include <stdio.h>

/* ---- arrays -------------------------------------------------------------------------------------------------------- */

/* extents to elements and bytes; false on overflow or a negative extent */
bool array_size(Element type, int rank, const int64_t *extents, int64_t *count, size_t *bytes);
/* Host memory that can be had without waking the out-of-memory killer; UINT64_MAX where the machine does not say. */
uint64_t memory_available(void);
/* "1.5 GiB" */
const char *bytes_text(Arena *arena, uint64_t bytes);

/* ---- values -------------------------------------------------------------------------------------------------------- */

/* The whole numbers that fit an integer type. u64 ends at 2^63 - 1: symbols are signed. */
void integer_range(Element type, int64_t *least, int64_t *most);
double float_largest(Element type); /* largest finite value */
bool is_float(Element type);

/* What goes into one tensor. `key` tells the tensors of a launch apart. */
void fill_array(Array *array, const Fill *fill, uint64_t seed, uint64_t key);
void fill_poison(Array *array);
/* nonzero below which iota wraps: 0 .. period - 1 are exact in the type */
uint64_t iota_period(Element type);

/* ---- .npy in two steps: the shape is wanted before there is memory for the data ----------------------------------- */

#define NPY_MAX_RANK 32

typedef struct NpyFile {
    const char *name;
    FILE *stream;
    const char *descr; /* as in the header: "<f4" */
    bool fortran;
    int rank;
    int64_t shape[NPY_MAX_RANK];
    uint64_t bytes_left; /* of a regular file, after the header; else UINT64_MAX */
} NpyFile;

bool npy_open(Arena *arena, const char *file, NpyFile *out, Diags *diags);
void npy_close(NpyFile *npy);
/* Does the file hold this type, and a shape that a tensor can have? `tensor` names it in messages and may be NULL. */
bool npy_fits(const NpyFile *npy, Element type, const char *tensor, Diags *diags);
/* Reads the data into an array that array_new has made with the shape of the file. */
bool npy_data(NpyFile *npy, Array *into, Diags *diags);

/* ---- binding ------------------------------------------------------------------------------------------------------- */

bool extent_fits(int64_t extent); /* 0 .. EXTENT_MOST */

#endif
