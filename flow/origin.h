/* origin: how a value comes to differ, between the instances of a role or between the blocks of a cluster. */
#ifndef PIPEC_ORIGIN_H
#define PIPEC_ORIGIN_H

#include "flow/code.h"

typedef struct Differs {
    Uniformity least; /* between threads of the role: at least so much; where `along` is 0 */
    uint32_t along;   /* between blocks along one of these axes */
} Differs;

bool origin_differs(const Expr *expr, Differs how); /* NULL does not */
const char *origin_among(Differs how);              /* "instances" */
/* Labels on `diag`, from a value that differs back to where it came to: through variables, and the conditions and leaves that decide what
 * they hold. Where there is no room for all, the first and the last are shown. */
void origin_show(Arena *arena, const Prog *prog, const Role *role, Diags *diags, Diag *diag, Expr *cause, Differs how);

#endif
