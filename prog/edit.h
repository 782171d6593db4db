/* edit: for passes that fill facts of the program, which others only read. */
#ifndef PIPEC_EDIT_H
#define PIPEC_EDIT_H

#include "prog/prog.h"

static inline PipeUse *edit_use(const Role *role, int pipe) {
    return (PipeUse *)(uintptr_t)&role->pipes[pipe];
}

#endif
