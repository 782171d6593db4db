/* The text of a race: both accesses, in the order of this schedule, the edge that is missing
 * between them, and what both sides did last. */
#include "emulator/order/order.h"
#include "emulator/races/race.h"

static const char *verb(AccessKind kind) {
    return kind == ACCESS_READ ? "reads" : kind == ACCESS_WRITE ? "writes" : "updates";
}

static const char *participle(AccessKind kind) {
    return kind == ACCESS_READ ? "read" : kind == ACCESS_WRITE ? "written" : "updated";
}

/* What waits for an asynchronous operation of this instruction, unless it is an mbarrier */
static const char *wait_for(const Inst *inst) {
    switch (inst->opcode) {
    case OP_WGMMA: return "no `wgmma.wait_group` for it, or no release and acquire after the wait";
    case OP_CP_ASYNC:
        return "no `cp.async.wait_group` for it, or no release and acquire after the wait";
    case OP_ST_ASYNC: return NULL;
    default: break;
    }
    if (inst->mods.flags & FLAG_BULK_GROUP)
        return "no `cp.async.bulk.wait_group` for it, or no release and acquire after the wait";
    return NULL;
}

static bool by_mbarrier(const Machine *machine, const RaceSide *side) {
    return side->actor.async && !wait_for(actor_inst(machine, &side->actor));
}

/* "no wait for its mbarrier, the full barrier of stage 1 of `ab`, between" */
static const char *missing_wait(Machine *machine, const Race *race) {
    const Cluster *cluster = NULL;
    for (size_t i = 0; i < machine->made.count; i++)
        if (machine->made.items[i]->order &&
            order_cluster(machine->made.items[i]) == race->earlier.cluster)
            cluster = machine->made.items[i];
    uint64_t phase = 0;
    Epoch epoch = {race->earlier.component, race->earlier.time};
    const Barrier *barrier = cluster ? order_barrier_of(cluster, epoch, &phase) : NULL;
    if (!barrier) return "no wait for its mbarrier between";
    const char *name = name_barrier(machine, barrier->home, barrier->address),
               *relaxed = race_relaxed_wait(machine, race, barrier, phase);
    if (relaxed)
        return arena_printf(machine->arena,
                            "the wait for its mbarrier, %s, phase %llu (%s) is `.relaxed` and so "
                            "acquires nothing",
                            name, (unsigned long long)phase, relaxed);
    return arena_printf(machine->arena, "no wait for its mbarrier, %s, phase %llu, between", name,
                        (unsigned long long)phase);
}

static const char *missing(Machine *machine, const Race *race) {
    const Actor *earlier = &race->earlier.actor, *later = &race->later.actor;
    const Inst *inst = actor_inst(machine, earlier);
    if (race->fence)
        return arena_printf(machine->arena, "they are ordered, but there is no `%s` between",
                            race->fence);
    if (earlier->launch != later->launch)
        return "the earlier launch may still run: no `griddepcontrol.wait` before";
    if (by_mbarrier(machine, &race->earlier)) return missing_wait(machine, race);
    if (earlier->async) return wait_for(inst);
    if (later->async) return "not ordered before it was issued, and not after a wait for it";
    if (earlier->block == later->block && earlier->warp == later->warp)
        return "no `bar.warp.sync` between";
    return earlier->block == later->block ? "no barrier, and no release and acquire, between"
                                          : "no release and acquire between the two blocks";
}

static RaceCause cause_of(Machine *machine, const Race *race) {
    RaceCause cause = {NULL, NULL};
    if (race->fence)
        cause.help = "let each thread that has written execute `fence.proxy.async` after its "
                     "writes, before it arrives or releases";
    else if (!by_mbarrier(machine, &race->earlier))
        cause = race_cause(machine, race);
    const Actor *earlier = &race->earlier.actor, *later = &race->later.actor;
    bool one_warp = earlier->block == later->block && earlier->warp == later->warp;
    if (!cause.text && !race->fence && earlier->launch == later->launch && !one_warp)
        cause = race_flag(machine, race);
    if (!cause.text) cause.text = missing(machine, race);
    return cause;
}

/* "copies `A` to `s.a`" by the manifest, "warp 0, lane 3 writes" otherwise */
static const char *label_of(Machine *machine, const RaceSide *side) {
    bool now = side->actor.launch == machine->launch_index;
    const ManifestMark *mark = now ? mark_of_code(machine, side->actor.pc) : NULL;
    Str text = str_new(machine->arena);
    if (mark && mark->what) return mark->what;
    name_actor(machine, &side->actor, &text);
    str_printf(&text, " %s", verb(side->kind));
    return text.text;
}

/* Labels of both places, unless they are one */
static void label_both(Machine *machine, Diag *diag, const Race *race) {
    const Actor *earlier = &race->earlier.actor, *later = &race->later.actor;
    Span from, to;
    if (!diag->has_place || !span_of_code(machine, earlier->program, earlier->pc, &from) ||
        !span_of_code(machine, later->program, later->pc, &to))
        return;
    diag_primary(machine->diags, diag, "%s", label_of(machine, &race->later));
    if (from.lo != to.lo || from.hi != to.hi)
        diag_label(machine->diags, diag, from, "%s", label_of(machine, &race->earlier));
}

static const char *message_of(Machine *machine, const Race *race, const char *why) {
    const RaceSide *earlier = &race->earlier, *later = &race->later;
    Str text = str_new(machine->arena);
    name_actor(machine, &later->actor, &text);
    str_printf(&text, ": %s %llu byte%s at ", verb(later->kind),
               (unsigned long long)race->range.bytes, race->range.bytes == 1 ? "" : "s");
    name_element(machine, &race->range, &text);
    bool copy = by_mbarrier(machine, earlier);
    str_add(&text, copy ? " before " : ", which ");
    name_actor(machine, &earlier->actor, &text);
    if (copy)
        str_printf(&text, " has %s there: %s", participle(earlier->kind), why);
    else
        str_printf(&text, " %s: %s", verb(earlier->kind), why);
    return text.text;
}

/* True: the run continues. */
static bool report(Machine *machine, const Race *race, Code code, RaceCause cause) {
    const RaceSide *earlier = &race->earlier, *later = &race->later;
    const char *text = message_of(machine, race, cause.text);
    Treatment treatment = finding_treatment(machine, code, later->actor.pc, text);
    if (treatment == FINDING_HIDDEN) return true;
    Diag *diag = diag_of_code(machine, code, later->actor.pc, text);
    label_both(machine, diag, race);
    note_run(machine, diag, later->actor.block, later->actor.pc);
    diag_note(machine->diags, diag, "the other access is in %s, %s",
              name_block(machine, &earlier->actor), name_step(machine, &earlier->actor));
    race_timeline(machine, diag, race);
    if (cause.help) diag_help(machine->diags, diag, "%s", cause.help);
    if (treatment == FINDING_ENDS) machine->status = RUN_FINDING;
    return treatment != FINDING_ENDS;
}

bool race_report(Machine *machine, const Race *race) {
    Code code = !race->fence ? P0751 : race->earlier.kind == ACCESS_READ ? P0753 : P0752;
    if (finding_passed(machine, code, race->later.actor.pc)) return true;
    return report(machine, race, code, cause_of(machine, race));
}

bool race_report_constant(Machine *machine, const Race *race) {
    const Actor *reader = &race->later.actor;
    if (finding_passed(machine, P0754, reader->pc)) return true;
    bool nc = actor_inst(machine, reader)->opcode == OP_LD;
    return report(
        machine, race, P0754,
        (RaceCause){nc ? "a load by `.nc` is for data that the launch does not write"
                       : "`ldu` is for data that the launch does not write",
                    nc ? "load it without `.nc`: in CUDA without `__ldg`, and by a pointer "
                         "that is not both `const` and `__restrict__`"
                       : "load it by `ld`"});
}
