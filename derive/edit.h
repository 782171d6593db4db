/* edit, private to derive/: the parts of the plan, to fill them. Other floors only read them. */
#ifndef PIPEC_DERIVE_EDIT_H
#define PIPEC_DERIVE_EDIT_H

#include "derive/plan.h"
#include "prog/edit.h"

static inline Plan *edit_plan(const Prog *prog) { return (Plan *)(uintptr_t)prog->plan; }
static inline RolePlan *edit_role(const Prog *prog, const Role *role) {
    return (RolePlan *)(uintptr_t)plan_role(prog, role);
}
static inline PipePlan *edit_pipe(const Prog *prog, const Pipe *pipe) {
    return (PipePlan *)(uintptr_t)plan_pipe(prog, pipe);
}
static inline TilePlan *edit_tile(const Prog *prog, const Role *role, int tile) {
    return (TilePlan *)(uintptr_t)plan_tile(prog, role, tile);
}

#endif
