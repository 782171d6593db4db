/* launch, private: shared by the files of this floor. */
#ifndef PIPEC_LAUNCH_PRIVATE_H
#define PIPEC_LAUNCH_PRIVATE_H

#include "launch/launch.h"

#include <stdio.h>

/* ---- arrays ---------------------------------------------------------------------------------- */

/* Number of elements and bytes; false on overflow or a negative extent */
bool array_size(Element type, int rank, const int64_t *extents, int64_t *count, size_t *bytes);
/* Host memory that can be allocated without the out-of-memory killer, in bytes; UINT64_MAX if
 * unknown. */
uint64_t memory_available(void);
/* "1.5 GiB" */
const char *bytes_text(Arena *arena, uint64_t bytes);

/* ---- values ---------------------------------------------------------------------------------- */

/* The range of an integer type. That of u64 ends at 2^63 - 1 here: symbols are signed. */
void integer_range(Element type, int64_t *least, int64_t *most);
double float_largest(Element type); /* largest finite value */
bool is_float(Element type);

/* Fills one tensor. `key` distinguishes the tensors of a launch. */
void fill_array(Array *array, const Fill *fill, uint64_t seed, uint64_t key);
void fill_poison(Array *array);
/* Nonzero for types in which iota wraps: 0 .. period - 1 are exact in the type */
uint64_t iota_period(Element type);

/* ---- .npy in two steps: the shape is needed before the data is allocated --------------------- */

typedef struct NpyFile {
    const char *name;
    FILE *stream;
    const char *descr; /* as in the header: "<f4" */
    bool fortran;
    int rank;
    int64_t shape[NPY_MAX_RANK];
    /* remaining after the header, in a regular file; otherwise UINT64_MAX */
    uint64_t bytes_left;
} NpyFile;

bool npy_open(Arena *arena, const char *file, NpyFile *out, Diags *diags);
void npy_close(NpyFile *npy);
/* True if the file holds this type and a shape that a tensor can have. `tensor` names it in
 * messages and may be NULL. */
bool npy_fits(const NpyFile *npy, Element type, const char *tensor, Diags *diags);
/* Reads the data into an array that array_new has made with the shape of the file. */
bool npy_data(NpyFile *npy, Array *into, Diags *diags);

/* ---- the manifest's JSON --------------------------------------------------------------------- */

enum {
    MANIFEST_MODE_COUNT = MODE_INOUT + 1,
    MANIFEST_SHARED_COUNT = SHARED_SCRATCH + 1,
    MANIFEST_ARGUMENT_COUNT = ARGUMENT_WATCHDOG + 1
};
extern const char *const manifest_mode_names[MANIFEST_MODE_COUNT];
extern const char *const manifest_shared_names[MANIFEST_SHARED_COUNT];
extern const char *const manifest_argument_names[MANIFEST_ARGUMENT_COUNT];
/* Index of a symbol; -1: there is none of this name */
int manifest_symbol(const Manifest *manifest, const char *name);
/* Reads a formula over the manifest's symbols. False: it is malformed, or nested too deeply */
bool formula_read(Arena *arena, const Manifest *manifest, const char *text, Formula *out);

/* ---- strides --------------------------------------------------------------------------------- */

/* Strides with the least gaps that the kernel accepts, see LaunchOptions */
void strides_with_gaps(const ManifestParameter *parameter, const int64_t *extents, uint64_t seed,
                       int64_t *strides);

/* ---- binding --------------------------------------------------------------------------------- */

bool extent_fits(int64_t extent); /* 0 .. EXTENT_MOST */
/* The symbol that this axis of a tensor solves; -1: none */
int64_t solved_symbol(const Manifest *manifest, size_t parameter, int axis);
/* The value with which its axis has this extent; false: there is none */
bool solve_extent(const ManifestSymbol *symbol, int64_t extent, int64_t *value);
/* Reports that. where: " in `first.npy`", or empty */
void report_unsolved(const Manifest *manifest, size_t parameter, int axis, int64_t extent,
                     const char *where, Diags *diags);
/* Solves `formula == extent` for the only symbol that is not known, if it occurs once, in a formula
 * that is linear in it: sets and returns it; otherwise -1. Without a whole solution it gets a value
 * near it, and a comparison of the extent must follow. */
int64_t formula_solve(const Formula *formula, int64_t extent, const bool *known, int64_t *symbols);
/* The part of launch_bind before preconditions: sets the symbols, except those of strides */
bool bind_symbols(const Manifest *manifest, const DeviceArgument *arguments, int64_t *symbols,
                  Diags *diags);
/* Compares an extent that came with a device pointer with its formula, whose symbols are known.
 * diags NULL: does not report a difference */
bool compare_axis(const Manifest *manifest, const DeviceArgument *arguments, size_t index, int axis,
                  const int64_t *symbols, Diags *diags);

#endif
