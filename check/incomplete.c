/* The one place that turns a limit on work into a verdict: what was not followed to its end is not
 * proved. */
#include "check/passes.h"

void incomplete_report(Diags *diags, const Role *role, const char *what) {
    Diag *diag =
        diag_at(diags, P0490, role->span, "role `%s` is not followed to its end", role->name);
    diag_primary(diags, diag, "it is not proved that %s", what);
    diag_help(diags, diag,
              "split the role, or its conditions that are asked again and again: they are followed "
              "apart");
}

void incomplete_kernel(Diags *diags, const char *kernel, Span head) {
    Diag *diag = diag_at(diags, P0490, head, "kernel `%s` is not checked to its end", kernel);
    diag_primary(diags, diag, "its check takes more work than is allowed: nothing is proved of it");
    diag_help(diags, diag,
              "split the kernel, or make it smaller: what functions and loops that are unrolled come to, large formulas, many pipes");
}
