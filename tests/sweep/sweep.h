/* Sweeps: kernels of files on random shapes. A shape gives values to the statics and extents of a
 * kernel; it is drawn from the kernel's parameters. */
#ifndef TESTS_SWEEP_H
#define TESTS_SWEEP_H

#include "launch/manifest.h"
#include "prog/prog.h"
#include "tests/generate/generate.h"

typedef struct Shape {
    const char **values; /* "M=33", "BN=128": values of statics and of a launch */
    size_t count;
    const char *text; /* the same, separated by blanks */
} Shape;

/* Draws shape `number` of a kernel, which was compiled with its default statics. */
Shape shape_draw(Arena *arena, const Prog *prog, const Manifest *manifest, uint64_t seed,
                 uint64_t number);

/* True if the static is an extent in the kernel's head: its value is then drawn, and not only from
 * the set that the file gives. */
bool static_is_extent(const Prog *prog, const Constant *constant);

#endif
