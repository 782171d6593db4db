/* Compiles a program, interprets it at many sizes, and runs accepted ones on the emulator. */
#include "tests/adversary/judge.h"

#include "emulator/emulator.h"
#include "runtime/runtime.h"

#include <math.h>
#include <string.h>

#define LIMIT     4000000 /* warp instructions of a run */
#define RESIDENT  3       /* most resident blocks */
#define SCHEDULES 8       /* schedules tried to show harm that the interpreter has found */
#define CLOSER    4
#define WATCHDOG  2000000000 /* ns, on the GPU */

const char *const fault_names[FAULTS] = {"none",
                                         "A1 turns",
                                         "A2 wrapping arithmetic",
                                         "A3 padding",
                                         "A4 payload",
                                         "A5 unwritten values",
                                         "A6 races",
                                         "A7 carried from tile to tile",
                                         "outside of a tile",
                                         "stages, hints, arrivals",
                                         "balance and deadlock",
                                         "a run that differs"};

/* ---- a run ----------------------------------------------------------------------------------- */

/* Of a number that is one of f16 */
static uint16_t half_bits(double value) {
    int exponent;
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double digits = frexp(fabs(value), &exponent);
    if (value == 0) return sign;
    if (isinf(value)) return sign | 0x7c00;
    if (exponent < -13) return (uint16_t)(sign | (uint16_t)ldexp(fabs(value), 24));
    return (uint16_t)(sign | ((exponent + 14) << 10) | ((uint16_t)ldexp(digits, 11) & 0x3ff));
}

static void fill_element(const Program *program, int tensor, int64_t at, const Sizes *sizes,
                         unsigned char *data) {
    const Tensor *row = &program->tensors[tensor];
    int32_t value = tensor_value(program, tensor, at, sizes);
    if (row->type == TYPE_HALF) {
        uint16_t bits = half_bits(tensor_real(program, tensor, at, sizes));
        memcpy(data + (size_t)at * sizeof bits, &bits, sizeof bits);
    } else if (row->type == TYPE_REAL && row->mode != TENSOR_OUT) {
        float number = (float)tensor_real(program, tensor, at, sizes);
        memcpy(data + (size_t)at * sizeof number, &number, sizeof number);
    } else if (row->tiny) {
        data[at] = (unsigned char)value;
    } else {
        memcpy(data + (size_t)at * sizeof value, &value, sizeof value);
    }
}

static Launch *prepare(Program *program, Arena *arena, const Compiled *compiled, const Sizes *sizes,
                       Diags *diags) {
    Argument arguments[SYMBOLS + 2];
    size_t count = 0;
    const Manifest *manifest = compiled->manifest;
    for (int s = 0; s < SYMBOLS; s++)
        for (size_t i = 0; i < manifest->symbols.count; i++)
            if (strcmp(manifest->symbols.items[i].name, symbol_names[s]) == 0)
                arguments[count++] = (Argument){.name = symbol_names[s],
                                                .kind = ARGUMENT_NUMBER,
                                                .value = {.number = (double)sizes->values[s],
                                                          .integer = sizes->values[s],
                                                          .is_integer = true}};
    for (int r = 0; r < 2 && program->reals; r++)
        arguments[count++] = (Argument){.name = r == 0 ? "a" : "b",
                                        .kind = ARGUMENT_NUMBER,
                                        .value = {.number = sizes->reals[r]}};
    Launch *launch = launch_prepare(
        arena, manifest, compiled->ptx.text, compiled->ptx.length, arguments, count,
        &(LaunchOptions){.seed = 1, .strided = true, .watchdog_ns = WATCHDOG}, diags);
    if (launch == NULL) return NULL;
    for (int t = 0; t < program->tensor_count; t++)
        for (int64_t e = 0; e < launch->arrays[t].count; e++)
            fill_element(program, t, e, sizes, launch->arrays[t].data);
    return launch;
}

static bool has_precondition(const Diags *diags) {
    for (size_t i = 0; i < diags->items.count; i++)
        if (diags->items.items[i]->code == P0608) return true;
    return false;
}

/* The difference at an element; NULL: none */
static const char *compare_at(Arena *arena, const Outcome *outcome, int tensor, int64_t at,
                              const void *data) {
    int32_t want = outcome->results[tensor][at], got;
    float number;
    memcpy(&got, (const char *)data + (size_t)at * sizeof got, sizeof got);
    memcpy(&number, &got, sizeof number);
    if (outcome->reals[tensor] == NULL)
        return got == want ? NULL : arena_printf(arena, "%d, and is to be %d", got, want);
    Real real = outcome->reals[tensor][at];
    return real_has(real, (double)number) ? NULL
                                          : arena_printf(arena, "%.9g, and is to be %.9g to %.9g",
                                                         (double)number, real.lo, real.hi);
}

static const char *compare(Program *program, Arena *arena, const Launch *launch,
                           const Outcome *outcome) {
    for (int t = 0; t < program->tensor_count; t++) {
        if (outcome->results[t] == NULL) continue;
        for (int64_t e = 0; e < launch->arrays[t].count && !outcome->vague; e++) {
            const char *seen = compare_at(arena, outcome, t, e, launch->arrays[t].data);
            if (seen != NULL)
                return arena_printf(arena, "%s: element %lld is %s", program->tensors[t].name,
                                    (long long)e, seen);
        }
    }
    return NULL;
}

/* Where a launch runs: on the GPU, or on the emulator */
typedef struct Place {
    Runtime *gpu; /* NULL: the emulator, with the following */
    int resident;
    uint64_t schedule;
} Place;

static RunStatus run_launch(Arena *arena, Launch *launch, const Place *place, Diags *diags) {
    RunResult result;
    if (place->gpu != NULL)
        return runtime_run(arena, place->gpu, launch, &(RuntimeOptions){0}, &result, diags);
    EmulatorOptions options = {
        .seed = place->schedule, .resident = place->resident, .limit = LIMIT};
    return emulator_run(arena, launch, &options, &result, diags);
}

/* The finding of the run; NULL: it ends with the right results. *left_out: the launch is
 * refused, or the run is too long. */
static const char *run(Program *program, Arena *keep, const Compiled *compiled, const Sizes *sizes,
                       const Place *place, const Outcome *outcome, bool *left_out) {
    Arena *arena = arena_scratch(keep);
    Diags *diags = diags_new(arena, compiled->source);
    const char *seen = NULL;
    *left_out = false;
    Launch *launch = prepare(program, arena, compiled, sizes, diags);
    if (launch == NULL) {
        *left_out = has_precondition(diags);
        if (!*left_out) seen = "the launch is refused";
    } else {
        RunStatus status = run_launch(arena, launch, place, diags);
        if (status == RUN_INCOMPLETE && place->gpu == NULL)
            *left_out = true;
        else if (status != RUN_DONE)
            seen = "a finding";
        else if (!launch_guards(launch, diags))
            seen = "a write outside of the tensors";
        else if (place->gpu == NULL || !outcome->divided) /* PTX leaves quotients by zero open */
            seen = compare(program, keep, launch, outcome);
    }
    const char *on = place->gpu != NULL ? "on the GPU, " : "";
    if (seen != NULL && diags->items.count > 0) {
        const Diag *first = diags->items.items[0];
        seen = arena_printf(keep, "%s%s %s", on, code_rows[first->code].name, first->message);
    } else if (seen != NULL) {
        seen = arena_printf(keep, "%s%s", on, seen);
    }
    launch_free(launch);
    arena_free(arena);
    return seen;
}

/* True if a launch at these sizes is refused */
static bool launch_refuses(Program *program, Arena *parent, const Compiled *compiled,
                           const Sizes *sizes) {
    Arena *arena = arena_scratch(parent);
    Diags *diags = diags_new(arena, compiled->source);
    Launch *launch = prepare(program, arena, compiled, sizes, diags);
    bool refuses = launch == NULL && has_precondition(diags);
    launch_free(launch);
    arena_free(arena);
    return refuses;
}

/* ---- faults ---------------------------------------------------------------------------------- */

static Fault fault_of(Harm harm, bool wrapped) {
    switch (harm) {
    case HARM_NONE:
    case HARM_LONG:
    case HARMS: return FAULT_NONE;
    case HARM_UNWRITTEN: return wrapped ? FAULT_WRAP : FAULT_UNWRITTEN;
    case HARM_PAYLOAD:
    case HARM_BYTES: return wrapped ? FAULT_WRAP : FAULT_PAYLOAD;
    case HARM_OUTSIDE: return wrapped ? FAULT_WRAP : FAULT_OUTSIDE;
    case HARM_THREADS:
    case HARM_RACE: return FAULT_RACE;
    case HARM_HANG:
    case HARM_COUNTS: return wrapped ? FAULT_WRAP : FAULT_BALANCE;
    case HARM_PADDING: return FAULT_PADDING;
    case HARM_CARRIED: return FAULT_CARRIED;
    case HARM_LINEAR:
    case HARM_ARRIVALS:
    case HARM_HINT: return FAULT_STAGES;
    }
    return FAULT_NONE;
}

static bool same_results(const Program *program, const Outcome *a, const Outcome *b,
                         const Sizes *sizes) {
    for (int t = 0; t < program->tensor_count; t++) {
        if (a->results[t] == NULL || b->results[t] == NULL) continue;
        int64_t count = 1;
        for (int d = 0; d < program->tensors[t].rank; d++)
            count *= tensor_extent(&program->tensors[t], d, sizes);
        for (int64_t e = 0; e < count && a->reals[t] != NULL; e++)
            if (!real_meets(a->reals[t][e], b->reals[t][e])) return false;
        if (a->reals[t] == NULL &&
            memcmp(a->results[t], b->results[t], (size_t)count * sizeof(int32_t)) != 0)
            return false;
    }
    return true;
}

/* Interprets with this and with another number of resident blocks */
static void outcome_at(Program *program, const Sizes *sizes, int resident, Seen *seen, Arena *arena,
                       Outcome *out) {
    Outcome other;
    interpret(program, sizes, resident, false, seen, arena, out);
    if (out->vague) out->harm = HARM_NONE; /* a run has to show it */
    if (out->harm == HARM_NONE && (program->tails || program->edges)) {
        interpret(program, sizes, resident, true, NULL, arena, &other);
        bool known = !out->vague && !other.vague && other.harm == HARM_NONE;
        if (known && !same_results(program, out, &other, sizes)) out->harm = HARM_PADDING;
    }
    if (out->harm != HARM_NONE || !program->persistent || out->tiles < 2 || program->tails) return;
    int least = cluster_size(program);
    interpret(program, sizes, resident == least ? 6 * resident : least, false, NULL, arena, &other);
    if (!out->vague && other.harm == HARM_NONE && !same_results(program, out, &other, sizes))
        out->harm = HARM_CARRIED;
}

/* Divergent lanes at a turn's end, or something that the interpreter does not model */
static Fault fault_of_run(const Program *program, const char *finding) {
    bool turns = false;
    for (int r = 0; r < program->role_count; r++) turns |= program->roles[r].instances > 1;
    return turns && strncmp(finding, "P0732", 5) == 0 ? FAULT_TURN : FAULT_RUN;
}

static void note(Judgement *out, const Sizes *sizes, int resident, uint64_t schedule, Harm harm,
                 Fault fault, const Stmt *stmt) {
    out->harm = harm;
    out->fault = fault;
    out->sizes = *sizes;
    out->resident = resident;
    out->schedule = schedule;
    out->stmt = stmt;
}

/* Draws sizes: interprets the program, and runs it if requested */
static void try_sizes(Program *program, Arena *arena, const JudgeOptions *options, int round,
                      bool runs, Random *random, Judgement *out) {
    Sizes sizes;
    Outcome outcome;
    int resident = (1 + round % RESIDENT) * cluster_size(program);
    sizes_draw(program, random, round, &sizes);
    if (!sizes_meet(program, &sizes)) return;
    Arena *inner = arena_scratch(arena);
    outcome_at(program, &sizes, resident, out->seen, inner, &outcome);
    out->padded |= outcome.padded;
    out->vague += outcome.vague;
    if (runs && outcome.harm != HARM_NONE &&
        launch_refuses(program, inner, &out->compiled, &sizes)) {
        arena_free(inner);
        return;
    }
    if (outcome.harm == HARM_LONG)
        out->harm = HARM_LONG;
    else if (outcome.harm != HARM_NONE)
        note(out, &sizes, resident, 0, outcome.harm, fault_of(outcome.harm, outcome.wrapped),
             outcome.stmt);
    bool harmed = out->fault != FAULT_NONE;
    runs &= outcome.harm != HARM_LONG && (out->runs < options->runs || harmed);
    for (uint64_t s = 0; runs && s < (harmed ? SCHEDULES : 1) && out->finding == NULL; s++) {
        bool left_out;
        uint64_t schedule = s + (uint64_t)out->runs;
        Place place = {.resident = resident, .schedule = schedule};
        out->finding = run(program, arena, &out->compiled, &sizes, &place, &outcome, &left_out);
        out->runs += !left_out;
        if (out->finding == NULL && !left_out && !harmed && options->gpu != NULL) {
            place.gpu = options->gpu;
            out->finding = run(program, arena, &out->compiled, &sizes, &place, &outcome, &left_out);
            out->gpu_runs++;
        }
        if (out->finding == NULL) continue;
        if (harmed)
            out->schedule = schedule;
        else
            note(out, &sizes, resident, schedule, HARM_NONE, fault_of_run(program, out->finding),
                 NULL);
    }
    arena_free(inner);
}

/* The first reason why the program is not accepted; NULL: it is accepted */
const Diag *first_reason(const Compiled *compiled) {
    Severity severity = compiled->refused ? SEVERITY_ERROR : SEVERITY_INCOMPLETE;
    for (size_t i = 0; i < compiled->diags->items.count; i++)
        if (compiled->diags->items.items[i]->severity == severity)
            return compiled->diags->items.items[i];
    return NULL;
}

/* True if the diagnostic begins in the first line of the statement */
static bool is_about(Program *program, const Compiled *compiled, const Diag *diag,
                     const Stmt *stmt) {
    const Source *source = compiled->source;
    const char *wanted = stmt_text(program, stmt);
    uint32_t at = source->line_starts[source_line(source, diag->labels[0].span.lo) - 1];
    while (source->text[at] == ' ') at++;
    return strncmp(source->text + at, wanted, strlen(wanted)) == 0;
}

/* True if the statement that is not accepted includes padding at some size */
static bool refuses_padding(Program *program, const Judgement *judgement) {
    const Diag *diag = first_reason(&judgement->compiled);
    if (diag == NULL || !diag->has_place) return false;
    Sites sites = program_sites(program);
    for (size_t i = 0; i < sites.count; i++)
        if (judgement->seen[i].padded && is_about(program, &judgement->compiled, diag,
                                                  sites.items[i].list->items[sites.items[i].at]))
            return true;
    return false;
}

/* Tries more sizes for a program that is not accepted although no harm was found. */
void judge_program(Program *program, Arena *arena, const JudgeOptions *options, Judgement *out) {
    *out = (Judgement){0};
    bool accepted =
        compile_text(arena, program_text(program), &out->compiled) && !out->compiled.undecided;
    if (out->compiled.greedy) return;
    Random random = {program->seed * 31 + 7};
    size_t statements = program_number(program);
    out->seen = NEW_ARRAY(arena, Seen, statements + 1);
    int rounds = options->sizes;
    if (program->matrix || program->large) rounds = (rounds + 1) / 2;
    if (!accepted && !program->textual)
        rounds *= program->edges ? 6 * CLOSER : program->tails ? 2 * CLOSER : CLOSER;
    for (int round = 0; round < rounds && out->fault == FAULT_NONE; round++)
        try_sizes(program, arena, options, round, accepted, &random, out);
    for (size_t i = 0; i < statements; i++) out->dead |= !out->seen[i].ran;
    out->padded |= refuses_padding(program, out);
}

bool shows_fault(Program *program, Arena *arena, const Judgement *like) {
    Compiled compiled;
    Outcome outcome;
    Arena *inner = arena_new(); /* the compiler sets the failure handler of a root arena */
    if (!compile_text(inner, program_text(program), &compiled) || compiled.undecided ||
        compiled.greedy) {
        arena_free(inner);
        return false;
    }
    program_number(program);
    outcome_at(program, &like->sizes, like->resident, NULL, inner, &outcome);
    bool shows = outcome.harm == like->harm &&
                 fault_of(outcome.harm, outcome.wrapped) == like->fault &&
                 !launch_refuses(program, inner, &compiled, &like->sizes);
    if (like->harm == HARM_NONE) { /* only the run has shown it */
        bool left_out;
        Place place = {.resident = like->resident, .schedule = like->schedule};
        const char *seen = outcome.harm != HARM_NONE ? NULL
                                                     : run(program, arena, &compiled, &like->sizes,
                                                           &place, &outcome, &left_out);
        shows = seen != NULL && fault_of_run(program, seen) == like->fault;
    }
    arena_free(inner);
    return shows;
}
