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

void incomplete_access(Diags *diags, Span at, const char *sub, const char *param) {
    Diag *diag =
        diag_at(diags, P0490, at, "the check of the subscript `%s` reached its limit", sub);
    diag_primary(diags, diag, "not proved: it can be inside of `%s`", param);
    diag_help(
        diags, diag,
        "write shorter formulas: in the subscript, and in the conditions and loops around it, with "
        "fewer `min` and `max` one inside another");
}

void incomplete_kernel(Diags *diags, const char *kernel, Span head) {
    Diag *diag = diag_at(diags, P0490, head, "the check of kernel `%s` reached its limit", kernel);
    diag_primary(diags, diag, "nothing is proved about this kernel");
    diag_help(diags, diag,
              "split the kernel, or use fewer calls of functions, unrolled loops, pipes, or "
              "shorter formulas");
}
