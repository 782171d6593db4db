/* lib: ptxas, the assembler of the CUDA toolkit: where it is, which version it is, one run. */
#ifndef PIPEC_LIB_PTXAS_H
#define PIPEC_LIB_PTXAS_H

#include "util/util.h"

/* Path of ptxas: PIPEC_PTXAS if it is set (empty: none), otherwise in the absolute folders of PATH,
 * in $CUDA_HOME/bin, in /usr/local/cuda/bin. NULL: there is none, *why says so. */
const char *ptxas_find(Arena *arena, const char **why);
/* The file at the path, in one line that changes with the file: size, times, inode */
const char *ptxas_identity(Arena *arena, const char *path);
/* What `ptxas --version` prints; NULL: it cannot be run. Takes some milliseconds. */
const char *ptxas_version(Arena *arena, const char *path);
/* "13.0.88" of such a text; the text itself if it names no version */
const char *ptxas_version_number(Arena *arena, const char *version);

/* Options of every run, besides the target: a part of the key of cached cubins */
#define PTXAS_OPTIONS "-v"

typedef struct PtxasRun {
    int error;         /* why it could not be run, an errno; 0: it ran */
    bool fine;         /* it ended with 0 */
    const char *words; /* both of its outputs */
} PtxasRun;

/* Assembles a file of PTX into a file. */
PtxasRun ptxas_run(Arena *arena, const char *path, const char *target, const char *ptx,
                   const char *cubin);

#endif
