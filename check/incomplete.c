/* The only place that turns a reached limit into a verdict: an analysis that did not finish
 * proves nothing. */
#include "check/passes.h"

void incomplete_report(Diags *diags, const Role *role, const char *what) {
    Diag *diag =
        diag_at(diags, P0490, role->span, "the check of role `%s` reached its limit", role->name);
    diag_primary(diags, diag, "not proved: %s", what);
    diag_help(diags, diag,
              "split the role, or test fewer conditions more than once: each doubles the paths "
              "that are checked");
}

void incomplete_kernel(Diags *diags, const char *kernel, Span head) {
    Diag *diag = diag_at(diags, P0490, head, "the check of kernel `%s` reached its limit", kernel);
    diag_primary(diags, diag, "nothing is proved about this kernel");
    diag_help(diags, diag,
              "split the kernel, or use fewer calls of functions, unrolled loops, pipes, or "
              "shorter formulas");
}
