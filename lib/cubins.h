/* lib: cubins, the machine code of kernels: from the cache of the disk or from ptxas, and accepted
 * only if they are what the manifest describes. */
#ifndef PIPEC_LIB_CUBINS_H
#define PIPEC_LIB_CUBINS_H

#include "launch/launch.h"
#include "lib/store.h"

/* What a load uses, besides the text */
typedef struct CubinCache {
    Store store;         /* its folder is NULL if there is none */
    const char *ptxas;   /* its path; NULL: none was looked for, or found */
    const char *version; /* what it prints; NULL: unknown */
    const char *off;     /* why the driver loads all kernels; NULL: the cache is used */
} CubinCache;
CubinCache cubin_cache(Arena *arena);

typedef struct Cubin {
    const void *image; /* NULL: the driver has to load the PTX */
    size_t length;
    /* where it is from, as PipecKernelInfo.loaded_by: "ptxas, cached in FILE"; NULL: no image */
    const char *by;
    /* why there is no image; NULL: there is one */
    const char *why;
    const char *ptxas; /* path of the ptxas that made it; NULL: none was found */
} Cubin;

/* The cubin of a text, from the cache, otherwise from ptxas, which takes tens of milliseconds; it
 * is then kept. ptxas is used only if the cache can be written, because otherwise each process
 * would wait for it, while the driver has a cache of its own. Reports what ptxas says of the text,
 * each time, and P0921 if the cubin is not accepted. */
Cubin cubin_of(Arena *arena, const Manifest *manifest, const char *ptx, size_t length,
               Diags *diags);
/* The same from the cache alone, without reports */
Cubin cubin_cached(Arena *arena, const Manifest *manifest, const char *ptx, size_t length);

/* P0921: the cubin that this ptxas made is not used. */
void cubin_refused(const Manifest *manifest, Diags *diags, const char *ptxas, const char *why);

/* The bytes of the file; none if it cannot be read */
Piece cubin_read(Arena *arena, const char *path);

/* The text that `pipec build` appends to a cubin: from the PTX that it was made of, and its bytes.
 * Readers of ELF files, and the driver, read only what the ELF header refers to. */
const char *cubin_mark(Arena *arena, const Manifest *manifest, const void *image, size_t length);

/* NULL, or why the image is not used: it is no cubin of the kernel, or its kernel is launched with
 * other registers than the manifest says, so that setmaxnreg was ignored. */
const char *cubin_fault(Arena *arena, const void *image, size_t length, const Manifest *manifest);

/* Registers per thread of the kernel at its entry; -1: the image is no cubin with this kernel
 * (cubin_elf.c) */
int cubin_registers(const void *image, size_t length, const char *kernel);

/* A cached cubin, as it is listed */
typedef struct CubinEntry {
    const char *file, *kernel, *target, *version; /* version: of ptxas */
    uint64_t bytes;
    int64_t used;
} CubinEntry;
/* False: the entry holds something else */
bool cubin_entry(Arena *arena, const StoreEntry *entry, CubinEntry *out);

#endif
