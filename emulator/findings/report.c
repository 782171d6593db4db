/* Findings: one diagnostic for each, and whether the run continues after it.
 *
 * The severity of a finding is that of its code (util/errors.def). An error is certain and ends
 * the run. A warning (PTX leaves it undefined, but it is customary) or a note does not: it is
 * reported once per instruction, up to a limit of instructions. A suppressed finding is not
 * reported, and the run continues (findings.def). */
#include "emulator/findings/names.h"

/* Most warnings and notes that one run reports */
enum { MOST_WEAK = 20 };

static const bool continues[CODE_COUNT] = {
#define CONTINUES(number) [P##number] = true,
#include "emulator/findings/findings.def"
#undef CONTINUES
};

static bool is_weak(Code code) {
    return code_rows[code].severity == SEVERITY_WARNING ||
           code_rows[code].severity == SEVERITY_NOTE;
}

bool finding_continues(Code code) { return is_weak(code) || continues[code]; }

bool finding_passed(const Machine *machine, Code code, uint32_t pc) {
    for (size_t i = 0; i < machine->passed.count; i++)
        if (machine->passed.items[i].program == machine->program &&
            machine->passed.items[i].code == code && machine->passed.items[i].pc == pc)
            return true;
    return false;
}

Treatment finding_treatment(Machine *machine, Code code, uint32_t pc, const char *message) {
    bool weak = is_weak(code), hidden = suppressed(machine, code, pc, message);
    if (!weak && !hidden) return FINDING_ENDS;
    vec_push(machine->arena, &machine->passed, ((PassedFinding){machine->program, code, pc}));
    if (hidden) return FINDING_HIDDEN;
    return ++machine->weak <= MOST_WEAK ? FINDING_SHOWN : FINDING_HIDDEN;
}

/* Returns true if the run continues. */
static bool report(Block *block, Code code, Agent agent, const char *format, va_list args) {
    Machine *machine = block->machine;
    if (finding_passed(machine, code, agent.pc)) return true;
    Str message = str_new(machine->arena);
    Actor actor = actor_of(&agent);
    name_actor(machine, &actor, &message);
    str_add(&message, ": ");
    str_vprintf(&message, format, args);
    Treatment treatment = finding_treatment(machine, code, agent.pc, message.text);
    if (treatment == FINDING_HIDDEN) return true;
    Diag *diag = diag_of_code(machine, code, agent.pc, message.text);
    note_run(machine, diag, agent.warp->block->index, agent.pc);
    if (treatment == FINDING_ENDS) machine->status = RUN_FINDING;
    return treatment != FINDING_ENDS;
}

bool finding(Block *block, Code code, Agent agent, const char *format, ...) {
    va_list args;
    va_start(args, format);
    bool on = report(block, code, agent, format, args);
    va_end(args);
    return on;
}

Step fault(Block *block, Code code, Agent agent, const char *format, ...) {
    va_list args;
    va_start(args, format);
    bool on = report(block, code, agent, format, args);
    va_end(args);
    return on ? STEP_NEXT : STEP_FAULT;
}

void report_hidden(Machine *machine) {
    if (machine->weak <= MOST_WEAK) return;
    uint32_t hidden = machine->weak - MOST_WEAK;
    diag_plain(machine->diags, P0764, "%u further warning%s or notes at other instructions", hidden,
               hidden == 1 ? "" : "s");
}
