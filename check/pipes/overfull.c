/* Rings that are too short: more stages are held at once than the ring has, so the acquire waits
 * for itself. Needs the facts of flow/held.c. */
#include "check/passes.h"
#include "flow/held.h"

static void label_holdings(const FlowCode *code, const Overfull *overfull, Diag *diag,
                           Diags *diags) {
    const Row *rows = code->rows.items, *acquire = &rows[overfull->row];
    for (size_t i = 0; i < overfull->holdings.count; i++) {
        const Holding *what = &overfull->holdings.items[i];
        if (what->late < 0 && what->handle != acquire->handle &&
            diag->label_count < DIAG_MAX_LABELS - 1)
            diag_label(diags, diag, rows[what->acquired].span, "`%s` is held from here",
                       code->role->handles.items[what->handle].name);
    }
}

/* Labels stages in late sets; each set once */
static int label_lates(const FlowCode *code, const Overfull *overfull, Diag *diag, Diags *diags) {
    int count = 0, last_labelled = -1;
    for (size_t i = 0; i < overfull->holdings.count; i++) {
        int late = overfull->holdings.items[i].late;
        count += late >= 0;
        if (late < 0 || late == last_labelled) continue;
        last_labelled = late;
        const Late *set = &code->lates.items[late];
        if (set->acquire != overfull->row)
            diag_label(diags, diag, set->head, "`lag` holds %d back from here on", set->lag);
    }
    return count;
}

static void refuse(Prog *prog, const FlowCode *code, const Overfull *overfull, Diags *diags) {
    const Row *row = &code->rows.items[overfull->row];
    Pipe *pipe = &prog->pipes.items[code->role->handles.items[row->handle].pipe];
    int held = (int)overfull->holdings.count;
    pipe->faulty = true;
    Diag *diag = diag_at(diags, P0310, row->span,
                         "%d stages of pipe `%s` are held at once, but its ring has %d", held,
                         pipe->name, pipe->stages);
    diag_primary(diags, diag, "waits forever: `%s` itself holds all stages", code->role->name);
    label_holdings(code, overfull, diag, diags);
    int late = label_lates(code, overfull, diag, diags);
    if (late) diag_note(diags, diag, "`lag` holds %d of them back", late);
    diag_help(diags, diag, "release a stage before this, or give the ring %d stages: `pipe %s[%d]`",
              held, pipe->name, held);
}

void overfull_refuse(Prog *prog, const FlowCode *code, Diags *diags) {
    for (size_t i = 0; i < code->held->overfulls.count; i++)
        refuse(prog, code, &code->held->overfulls.items[i], diags);
}
