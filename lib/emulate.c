/* lib: PTX of any compiler on the emulator: described launches, runs, results, and the list of
 * entries. */
#include "lib/private.h"

#include "emulator/workload/workload.h"

#define DEFAULT_RESIDENT 132 /* multiprocessors of an H200 */

struct PipecEmulation {
    Arena *arena;
    Diags *diags; /* of the last call */
    Levels levels;
    const PipecDiagnostics *published;
    PipecStatus status;
    PipecEmulationOptions options;
    Workload *workload; /* NULL after errors, and for a list */
    EmulatorKernel *entries;
    size_t entry_count;
    PipecRunInfo info;
};

typedef struct Call { /* argument of the functions that run under `attempt` */
    Arena *arena;     /* of a new emulation */
    PipecEmulation *it;
    const void *unsized; /* options of the caller that cannot be read; otherwise NULL */
    const PipecExecuteOptions *execute;
    const char *ptx;
    PipecStatus status;
} Call;

/* Wrong text and wrong descriptions come from the caller. */
static PipecStatus status_of(RunStatus status) {
    static const Manifest theirs = {.is_read = true};
    return status_of_run(&theirs, status);
}

static void begin(PipecEmulation *it) {
    it->diags = diags_new(it->arena, NULL);
    diags_set_levels(it->diags, &it->levels);
}

static PipecStatus call(Call *call, void (*work)(void *)) {
    PipecEmulation *it = call->it;
    if (!attempt(it->arena, work, call)) {
        it->published = &no_memory;
        call->status = PIPEC_UNUSABLE;
    } else {
        it->published = diagnostics_publish(it->diags);
        if (call->status == PIPEC_FINE && pipec_diagnostics_errors(it->published) > 0)
            call->status = PIPEC_REFUSED; /* a denied warning or note */
    }
    it->status = pipec_worse(it->status, call->status);
    return call->status;
}

static void make(void *data) {
    Call *call = data;
    PipecEmulation *it = NEW(call->arena, PipecEmulation);
    it->arena = call->arena;
    it->published = &no_diagnostics;
    call->it = it;
}

static PipecEmulation *new_emulation(void) {
    Call call = {.arena = arena_new()};
    if (call.arena == NULL) return NULL;
    if (attempt(call.arena, make, &call)) return call.it;
    arena_free(call.arena);
    return NULL;
}

/* ---- descriptions ---------------------------------------------------------------------------- */

static void describe(void *data) {
    Call *call = data;
    PipecEmulation *it = call->it;
    const PipecEmulationOptions *options = &it->options;
    WorkloadWords words = {.ptx = options->ptx,
                           .entry = options->entry,
                           .grid = options->grid,
                           .block = options->block,
                           .cluster = options->cluster,
                           .shared_bytes = options->shared_bytes,
                           .arguments = options->arguments,
                           .argument_count = options->argument_count,
                           .cooperative = options->cooperative};
    RunStatus status = RUN_UNAVAILABLE;
    begin(it);
    call->status = PIPEC_UNUSABLE;
    if (call->unsized != NULL) {
        size_report(it->diags, "PipecEmulationOptions", sizeof *options, call->unsized);
        return;
    }
    for (size_t i = 0; i < options->denied_count; i++)
        levels_deny(&it->levels, options->denied[i], it->diags);
    if (it->diags->errors > 0) return;
    it->workload = options->launches != NULL
                       ? workload_from_file(it->arena, options->launches, &status, it->diags)
                       : workload_from_words(it->arena, &words, &status, it->diags);
    call->status = status_of(status);
}

PIPEC_API PipecEmulation *pipec_emulation_new(const PipecEmulationOptions *options) {
    PipecEmulation *it = new_emulation();
    if (it == NULL) return NULL;
    bool sized = size_read(&it->options, sizeof it->options, options);
    Call work = {.it = it, .unsized = sized ? NULL : options};
    call(&work, describe);
    return it;
}

PIPEC_API void pipec_emulation_free(PipecEmulation *emulation) {
    if (emulation == NULL) return;
    workload_free(emulation->workload);
    arena_free(emulation->arena);
}

PIPEC_API PipecStatus pipec_emulation_status(const PipecEmulation *emulation) {
    return emulation->status;
}

PIPEC_API const PipecDiagnostics *pipec_emulation_diagnostics(const PipecEmulation *emulation) {
    return emulation->published;
}

/* ---- execution ------------------------------------------------------------------------------- */

static bool follow(void *data, double part, uint64_t instructions) {
    const PipecExecuteOptions *options = data;
    PipecProgress progress = {
        .part = part, .schedule = 1, .schedules = 1, .instructions = instructions};
    return options->progress(options->progress_data, &progress);
}

static void execute(void *data) {
    Call *call = data;
    PipecEmulation *it = call->it;
    PipecExecuteOptions options = *call->execute;
    WorkloadOptions how = {.emulator = {.resident = it->options.resident,
                                        .seed = options.schedule,
                                        .progress = options.progress != NULL ? follow : NULL,
                                        .progress_data = &options,
                                        .races = options.no_races ? RACES_OFF : RACES_DEFAULT,
                                        .blocks = it->options.blocks,
                                        .seconds = it->options.seconds},
                           .schedules = options.schedules};
    RunResult result = {0};
    begin(it);
    if (it->workload != NULL) it->diags->source = workload_source(it->workload);
    call->status = PIPEC_UNUSABLE;
    if (how.emulator.resident <= 0) how.emulator.resident = DEFAULT_RESIDENT;
    if (call->unsized != NULL) {
        size_report(it->diags, "PipecExecuteOptions", sizeof options, call->unsized);
        return;
    }
    if (!suppressions_read(it->arena, options.suppressions, &how.emulator.suppressions, it->diags))
        return;
    RunStatus status = workload_run(it->workload, &how, &result, it->diags);
    if (status == RUN_DONE && how.emulator.suppressions != NULL)
        emulator_suppressions_unused(how.emulator.suppressions, it->diags);
    it->info = (PipecRunInfo){.device = result.device,
                              .blocks = result.blocks,
                              .seconds = result.seconds,
                              .timed = result.timed,
                              .instructions = result.instructions,
                              .schedules = options.schedules > 1 ? options.schedules : 1};
    call->status = status_of(status);
}

PIPEC_API PipecStatus pipec_emulation_execute(PipecEmulation *emulation,
                                              const PipecExecuteOptions *options) {
    PipecExecuteOptions known;
    bool sized = size_read(&known, sizeof known, options);
    Call work = {.it = emulation, .execute = &known, .unsized = sized ? NULL : options};
    return emulation->workload != NULL ? call(&work, execute) : emulation->status;
}

PIPEC_API const PipecRunInfo *pipec_emulation_info(const PipecEmulation *emulation) {
    return &emulation->info;
}

static void save(void *data) {
    Call *call = data;
    begin(call->it);
    call->status = workload_save(call->it->workload, call->it->diags) ? PIPEC_FINE : PIPEC_UNUSABLE;
}

PIPEC_API PipecStatus pipec_emulation_save(PipecEmulation *emulation) {
    Call work = {.it = emulation};
    return emulation->workload != NULL ? call(&work, save) : emulation->status;
}

/* ---- entries --------------------------------------------------------------------------------- */

static void list(void *data) {
    Call *call = data;
    PipecEmulation *it = call->it;
    size_t length;
    begin(it);
    const char *text = file_text(it->arena, call->ptx, &length, it->diags);
    call->status = PIPEC_UNUSABLE;
    if (text != NULL)
        call->status = status_of(
            emulator_list(it->arena, text, length, &it->entries, &it->entry_count, it->diags));
}

PIPEC_API PipecEmulation *pipec_emulation_list(const char *ptx) {
    PipecEmulation *it = new_emulation();
    Call work = {.it = it, .ptx = ptx};
    if (it != NULL) call(&work, list);
    return it;
}

PIPEC_API bool pipec_emulation_entry(const PipecEmulation *emulation, size_t index,
                                     PipecEntry *entry) {
    if (index >= emulation->entry_count) return false;
    const EmulatorKernel *kernel = &emulation->entries[index];
    PipecEntry ours = {.name = kernel->name,
                       .parameters = kernel->parameter_count,
                       .most_threads = kernel->most_threads};
    for (int i = 0; i < 3; i++) {
        ours.block[i] = kernel->required_block[i];
        ours.cluster[i] = kernel->cluster[i];
    }
    return size_write(entry, &ours, sizeof ours);
}

PIPEC_API bool pipec_emulation_parameter(const PipecEmulation *emulation, size_t entry,
                                         size_t index, PipecEntryParameter *parameter) {
    if (entry >= emulation->entry_count || index >= emulation->entries[entry].parameter_count)
        return false;
    const EmulatorParameter *from = &emulation->entries[entry].parameters[index];
    PipecEntryParameter ours = {
        .name = from->name, .type = from->type, .bytes = from->bytes, .alignment = from->alignment};
    return size_write(parameter, &ours, sizeof ours);
}
