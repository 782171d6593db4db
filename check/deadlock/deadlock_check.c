/* Whether the roles deadlock: a proof that they do not, or a refusal at sizes that deadlock
 * (check/sizes/trace.h), or a message about what is undecided. Needs equal counts. */
#include "check/deadlock/deadlock.h"
#include "check/sizes/trace.h"

#define DEADLOCK_STEPS 36000000 /* steps of the meter for all searches */

static void say_undecided(Diags *diags, const Undecided *undecided) {
    Span span = undecided->waits.count ? undecided->waits.items[0]->head : undecided->span;
    Diag *diag = diag_at(diags, P0461, span, "cannot decide whether roles deadlock");
    for (size_t i = 0; i < undecided->waits.count; i++) {
        const char *name = undecided->roles.items[i]->name;
        if (i == 0)
            diag_primary(diags, diag, "`%s` may wait here", name);
        else if (diag->label_count < DIAG_MAX_LABELS &&
                 undecided->waits.items[i]->head.lo != span.lo)
            diag_label(diags, diag, undecided->waits.items[i]->head, "`%s` may wait here", name);
    }
    for (size_t i = 0; i < undecided->unmatched.count && diag->label_count < DIAG_MAX_LABELS; i++)
        diag_label(diags, diag, undecided->unmatched.items[i].place,
                   undecided->unmatched.items[i].loops
                       ? "no loop of another role is known to have the same iterations"
                       : "no other role is known to test the same condition");
    if (undecided->why)
        diag_note(diags, diag, "%s", undecided->why);
    else
        diag_note(diags, diag,
                  "some order of iterations and conditions would deadlock; no concrete sizes that "
                  "lead there were found");
    diag_help(diags, diag,
              "use the same `range`s and the same conditions in these roles, in the same order");
}

void deadlock_check(Arena *arena, Prog *prog, Diags *diags) {
    Undecided undecided = {0};
    Budget work = arena_budget(arena, DEADLOCK_STEPS);
    if (deadlock_proves(arena, prog, work, &undecided) || trace_check(arena, prog, diags)) return;
    say_undecided(diags, &undecided);
}
