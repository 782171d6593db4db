/* lib, private: bundles, from which programs are loaded without their source (bundle.c,
 * unbundle.c). */
#ifndef PIPEC_LIB_BUNDLE_H
#define PIPEC_LIB_BUNDLE_H

#include "lib/family.h"

#define BUNDLE_FORMAT "pipec bundle"
#define BUNDLE_INDEX  "bundle.json"

/* A candidate of a bundle, as it was written */
typedef struct BundlePiece {
    const char *manifest;
    const char *image;
    size_t image_length;
} BundlePiece;

struct Bundle {
    const char *folder;
    BundlePiece *pieces; /* by candidate of the family */
    PipecSizes *sizes;
    size_t size_count;
};

/* The program of a candidate; NULL: memory ran out */
PipecProgram *bundle_program(const Bundle *bundle, size_t index);
/* The program of the candidates for a target, of a program of the same bundle. NULL: memory ran
 * out */
PipecProgram *bundle_for(const PipecProgram *program, const char *target);
/* True if the bundle was not made for these extents */
bool bundle_lacks(const Bundle *bundle, const Manifest *manifest, const int64_t *symbols);

#endif
