/* The text of a race: both accesses, in the order of this schedule, and the edge that is missing
 * between them. */
#include "race.h"

static const char *verb(AccessKind kind) {
    return kind == ACCESS_READ ? "reads" : kind == ACCESS_WRITE ? "writes" : "updates";
}

/* What waits for an asynchronous operation of this instruction */
static const char *wait_for(const Inst *inst) {
    switch (inst->opcode) {
    case OP_WGMMA: return "no `wgmma.wait_group` for it, or no release and acquire after the wait";
    case OP_CP_ASYNC:
        return "no `cp.async.wait_group` for it, or no release and acquire after the wait";
    case OP_ST_ASYNC: return "no wait for its mbarrier";
    default: break;
    }
    if (inst->mods.flags & FLAG_BULK_GROUP)
        return "no `cp.async.bulk.wait_group` for it, or no release and acquire after the wait";
    return "no wait for its mbarrier";
}

static const char *missing(const Machine *machine, const Race *race) {
    const Actor *earlier = &race->earlier.actor, *later = &race->later.actor;
    const Inst *inst = actor_inst(machine, earlier);
    if (race->fence)
        return arena_printf(machine->arena, "they are ordered, but there is no `%s` between",
                            race->fence);
    if (earlier->launch != later->launch)
        return "the earlier launch may still run: no `griddepcontrol.wait` before";
    if (earlier->async) return wait_for(inst);
    if (later->async) return "not ordered before it was issued, and not after a wait for it";
    if (earlier->block == later->block && earlier->warp == later->warp)
        return "no `bar.warp.sync` between";
    return earlier->block == later->block ? "no barrier, and no release and acquire, between"
                                          : "no release and acquire between the two blocks";
}

/* The place of the earlier access, if it is another one */
static void label_earlier(Machine *machine, Diag *diag, const Race *race) {
    const ManifestMark *mark = mark_of_code(machine, race->earlier.actor.pc),
                       *later = mark_of_code(machine, race->later.actor.pc);
    if (!mark || !diag->has_place || diag->label_count >= DIAG_MAX_LABELS) return;
    if (later && mark->span.lo == later->span.lo && mark->span.hi == later->span.hi) return;
    diag_label(machine->diags, diag, mark->span, "%s", mark->what ? mark->what : "before");
}

bool race_report(Machine *machine, const Race *race) {
    const RaceSide *earlier = &race->earlier, *later = &race->later;
    Code code = !race->fence ? P0751 : earlier->kind == ACCESS_READ ? P0753 : P0752;
    if (finding_passed(machine, code, later->actor.pc)) return true;
    Str text = str_new(machine->arena);
    name_actor(machine, &later->actor, &text);
    str_printf(&text, ": %s %llu byte%s at ", verb(later->kind),
               (unsigned long long)race->range.bytes, race->range.bytes == 1 ? "" : "s");
    name_memory(machine, &race->range, &text);
    str_add(&text, ", which ");
    name_actor(machine, &earlier->actor, &text);
    str_printf(&text, " %s: %s", verb(earlier->kind), missing(machine, race));
    Treatment treatment = finding_treatment(machine, code, later->actor.pc, text.text);
    if (treatment == FINDING_HIDDEN) return true;
    Diag *diag = diag_of_code(machine, code, later->actor.pc, text.text);
    label_earlier(machine, diag, race);
    note_run(machine, diag, later->actor.block, later->actor.pc);
    diag_note(machine->diags, diag, "the other access is in %s, %s",
              name_block(machine, &earlier->actor), name_step(machine, &earlier->actor));
    if (treatment == FINDING_ENDS) machine->status = RUN_FINDING;
    return treatment != FINDING_ENDS;
}
