/* lib: what tuning and the look-up of its choices share. */
#ifndef PIPEC_LIB_TUNE_H
#define PIPEC_LIB_TUNE_H

#include "lib/cache.h"
#include "lib/private.h"

/* The key of choices for a program with the statics it was given; `manifest` names the symbols. Values are left open. */
Choice choice_key(Arena *arena, const PipecProgram *program, const Manifest *manifest, const int64_t *symbols,
                  const char *device);

#endif
