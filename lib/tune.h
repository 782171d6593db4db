/* lib, private: shared by tuning and the look-up of its choices. */
#ifndef PIPEC_LIB_TUNE_H
#define PIPEC_LIB_TUNE_H

#include "lib/cache.h"
#include "lib/private.h"

/* The key of the choices for a program and the given statics; `manifest` names the symbols. Does
 * not set the values. */
Choice choice_key(Arena *arena, const PipecProgram *program, const Manifest *manifest,
                  const int64_t *symbols, const char *device);

#endif
