/* origin: reasons why a value differs, between the instances of a role or between the blocks of
 * a cluster. */
#ifndef PIPEC_ORIGIN_H
#define PIPEC_ORIGIN_H

#include "flow/code.h"

typedef struct Differs {
    Uniformity least; /* between threads of the role: at least this; if `along` is 0 */
    uint32_t along;   /* between blocks along one of these axes */
} Differs;

bool origin_differs(const Expr *expr, Differs how); /* false for NULL */
const char *origin_among(Differs how);              /* "instances" */
/* Adds labels to `diag`, from a differing value to its use: through variables, and the
 * conditions and leaves that decide their values. If there are too many, shows the first and the
 * last. */
void origin_show(Arena *arena, const Prog *prog, const Role *role, Diags *diags, Diag *diag,
                 Expr *cause, Differs how);

#endif
