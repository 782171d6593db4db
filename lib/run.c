/* lib: a run on host data. Arguments become a Launch, which the GPU or the emulator executes;
 * the arrays are compared with `ensures` and can be saved. It owns memory outside its arena
 * (arrays, copies, an open device) and frees it at its end. */
#include "lib/family.h"
#include "lib/machine.h"
#include "lib/private.h"

#include "lib/targets.h"

#include <math.h>
#include <string.h>

#define DEFAULT_PATIENCE 10.0 /* seconds */

struct PipecRun {
    Arena *arena;
    PipecProgram *program;
    Launch *launch; /* NULL if the arguments were refused */
    Before before;
    Array *inputs,
        /* by parameter; while several schedules run: the initial data, and the results of the
         * first schedule */
        *first;
    Runtime *runtime; /* NULL unless a GPU runs */
    uint64_t seed;
    Diags *diags; /* of the last call */
    const PipecDiagnostics *published;
    PipecStatus status;
    PipecRunInfo info;
    RunResult last; /* of the last execution */
    Prediction expected;
    const char *verdict, *arguments;
    EmulatorSuppressions *suppressions; /* of this execution; NULL: none */
};

/* ---- calls ----------------------------------------------------------------------------------- */

typedef struct Call { /* argument of the functions that run under `attempt` */
    PipecRun *run;
    const PipecRunOptions *options;
    const PipecExecuteOptions *execute;
    const PipecVerifyOptions *verify;
    const void *unsized; /* options of the caller that cannot be read; otherwise NULL */
    const PipecRun *other;
    const char *word;
    const char **text;
    PipecVerdict verdict;
    PipecStatus status;
} Call;

static void begin(PipecRun *run) {
    run->diags = diags_new(run->arena, run->program->source);
    diags_set_levels(run->diags, &run->program->levels);
}

static PipecStatus call(PipecRun *run, Call *it, void (*work)(void *)) {
    if (!attempt(run->arena, work, it)) {
        run->published = &no_memory;
        it->status = PIPEC_UNUSABLE;
    } else if (it->status == PIPEC_FINE && pipec_diagnostics_errors(run->published) > 0) {
        /* a denied warning or note */
        it->status = PIPEC_REFUSED;
    }
    run->status = pipec_worse(run->status, it->status);
    return it->status;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static uint64_t nanoseconds(double seconds) {
    if (!(seconds > 0)) seconds = DEFAULT_PATIENCE;
    return seconds > 1e9 ? UINT64_C(1000000000000000000) : (uint64_t)(seconds * 1e9);
}

bool run_words(Arena *arena, const PipecProgram *program, const PipecRunOptions *options,
               Argument **given, size_t *count, Diags *diags) {
    VEC(Argument) list = {0};
    Argument argument;
    Words words = value_words(arena, options->values, options->value_count, options->numbers,
                              options->number_count);
    for (size_t i = 0; i < words.count; i++)
        if (!pipec_program_is_static(program, words.items[i]) &&
            argument_parse(arena, words.items[i], &argument, diags))
            vec_push(arena, &list, argument);
    for (size_t i = 0; i < options->fill_count; i++)
        if (argument_parse_fill(arena, options->fills[i], &argument, diags))
            vec_push(arena, &list, argument);
    *given = list.items;
    *count = list.count;
    return diags->errors == 0;
}

bool run_arguments(Arena *arena, const PipecProgram *program, const PipecRunOptions *options,
                   Argument **all, size_t *count, Diags *diags) {
    Argument *given;
    size_t given_count;
    if (!run_words(arena, program, options, &given, &given_count, diags)) return false;
    if (program->prog != NULL)
        return reference_arguments(arena, program->prog, program->manifest, given, given_count, all,
                                   count, diags);
    *all = given; /* there is no source, so no `example` */
    *count = given_count;
    return true;
}

/* Sets the strides of the tensors that the arrays stand for. False: the arguments are wrong */
static bool take_strides(const PipecRun *run, const PipecRunOptions *options,
                         LaunchOptions *launch) {
    const Manifest *manifest = run->program->manifest;
    DeviceArgument *given = NEW_ARRAY(run->arena, DeviceArgument, manifest->parameters.count + 1);
    launch->given = given;
    return arguments_strides(manifest, options, given, run->diags);
}

static void prepare(void *data) {
    Call *it = data;
    PipecRun *run = it->run;
    const PipecRunOptions *options = it->options;
    const PipecProgram *program = run->program;
    Argument *all;
    size_t count;
    begin(run);
    run->seed = options->seed;
    LaunchOptions launch = {.seed = options->seed,
                            .watchdog_ns = nanoseconds(options->watchdog_seconds),
                            .least_aligned = options->least_aligned,
                            .strided = options->strided};
    if (it->unsized != NULL)
        size_report(run->diags, "PipecRunOptions", sizeof *options, it->unsized);
    else if (program->cubin != NULL)
        diag_plain(run->diags, P0922,
                   "`%s` was loaded from a cubin: a run on host data needs its PTX or its source",
                   program->kernel);
    else if (run_arguments(run->arena, program, options, &all, &count, run->diags) &&
             take_strides(run, options, &launch))
        run->launch = launch_prepare(run->arena, program->manifest, program->ptx.text,
                                     program->ptx.length, all, count, &launch, run->diags);
    run->published = diagnostics_publish(run->diags);
    it->status = run->launch != NULL ? PIPEC_FINE : PIPEC_UNUSABLE;
}

static void new_run(void *data) {
    PipecRun **run = data;
    Arena *arena = (*run)->arena;
    PipecProgram *program = (*run)->program;
    *run = NEW(arena, PipecRun);
    **run = (PipecRun){.arena = arena, .program = program, .published = &no_diagnostics};
}

PIPEC_API PipecRun *pipec_run_new(PipecProgram *program, const PipecRunOptions *options) {
    Arena *arena = arena_new();
    PipecRun start = {.arena = arena, .program = program}, *run = &start;
    if (arena == NULL) return NULL;
    if (!attempt(arena, new_run, &run)) {
        arena_free(arena);
        return NULL;
    }
    run->published = program->published;
    if (program->manifest == NULL) {
        run->status = program->status;
        return run;
    }
    PipecRunOptions known;
    bool sized = size_read(&known, sizeof known, options);
    Call it = {.run = run, .options = &known, .unsized = sized ? NULL : options};
    call(run, &it, prepare);
    return run;
}

static void drop_kept(PipecRun *run) {
    for (size_t i = 0; run->inputs != NULL && i < run->program->manifest->parameters.count; i++) {
        array_free(&run->inputs[i]);
        array_free(&run->first[i]);
    }
}

PIPEC_API void pipec_run_free(PipecRun *run) {
    if (run == NULL) return;
    if (run->runtime != NULL) runtime_close(run->runtime);
    drop_kept(run);
    reference_before_free(&run->before);
    launch_free(run->launch);
    arena_free(run->arena);
}

PIPEC_API PipecStatus pipec_run_status(const PipecRun *run) { return run->status; }
PIPEC_API const PipecDiagnostics *pipec_run_diagnostics(const PipecRun *run) {
    return run->published;
}
PIPEC_API const PipecRunInfo *pipec_run_info(const PipecRun *run) { return &run->info; }
PIPEC_API const char *pipec_run_verdict(PipecRun *run) {
    return run->verdict != NULL ? run->verdict : "not checked";
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static bool is_tensor(const PipecRun *run, size_t index) {
    return run->program->manifest->parameters.items[index].kind == PARAMETER_TENSOR;
}

static PipecArray array_at(const PipecRun *run, size_t index) {
    const Array *from = &run->launch->arrays[index];
    PipecArray array = {.name = run->program->manifest->parameters.items[index].name,
                        .type = element_rows[from->type].spelling,
                        .rank = from->rank,
                        .bytes = from->bytes,
                        .data = from->data};
    for (int axis = 0; axis < from->rank; axis++) array.extents[axis] = from->extents[axis];
    return array;
}

PIPEC_API bool pipec_run_array(const PipecRun *run, size_t index, PipecArray *array) {
    for (size_t i = 0; run->launch != NULL && i < run->program->manifest->parameters.count; i++)
        if (is_tensor(run, i) && index-- == 0) {
            PipecArray found = array_at(run, i);
            return size_write(array, &found, sizeof found);
        }
    return false;
}

static bool find_tensor(const PipecRun *run, const char *name, size_t length, size_t *index) {
    for (size_t i = 0; run->launch != NULL && i < run->program->manifest->parameters.count; i++) {
        const char *it = run->program->manifest->parameters.items[i].name;
        if (!is_tensor(run, i) || strlen(it) != length || memcmp(it, name, length) != 0) continue;
        *index = i;
        return true;
    }
    return false;
}

PIPEC_API bool pipec_run_array_named(const PipecRun *run, const char *name, PipecArray *array) {
    size_t index;
    if (!find_tensor(run, name, strlen(name), &index)) return false;
    PipecArray found = array_at(run, index);
    return size_write(array, &found, sizeof found);
}

const char *arguments_text(Arena *arena, const Launch *launch) {
    const Manifest *manifest = launch->manifest;
    Str text = str_new(arena);
    str_add(&text, "");
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &manifest->parameters.items[i];
        const Array *array = &launch->arrays[i];
        str_printf(&text, "%s%s", i > 0 ? ", " : "", parameter->name);
        if (parameter->kind == PARAMETER_TENSOR) {
            str_printf(&text, ": %s[", element_rows[array->type].spelling);
            for (int d = 0; d < array->rank; d++)
                str_printf(&text, "%s%lld", d > 0 ? ", " : "", (long long)array->extents[d]);
            str_char(&text, ']');
        } else if (element_rows[parameter->type].kind == ELEMENT_FLOAT) {
            str_printf(&text, " = %.9g", launch->scalars[i].number);
        } else {
            str_printf(&text, parameter->type == E_U64 ? " = %llu" : " = %lld",
                       (long long)launch->scalars[i].integer);
        }
    }
    return text.text;
}

static void print_arguments(void *data) {
    const Call *it = data;
    it->run->arguments = arguments_text(it->run->arena, it->run->launch);
}

PIPEC_API const char *pipec_run_arguments(PipecRun *run) {
    Call it = {.run = run};
    if (run->launch == NULL) return "";
    if (run->arguments == NULL && !attempt(run->arena, print_arguments, &it)) return "";
    return run->arguments;
}

/* ---- differences ----------------------------------------------------------------------------- */

static void index_of(const Array *array, int64_t flat, int64_t *index) {
    for (int d = array->rank - 1; d >= 0; d--) {
        index[d] = flat % array->extents[d];
        flat /= array->extents[d];
    }
}

static const char *place_text(const PipecRun *run, size_t param, int64_t flat) {
    const Array *array = &run->launch->arrays[param];
    int64_t index[MAX_RANK];
    Str at = str_new(run->arena);
    index_of(array, flat, index);
    for (int d = 0; d < array->rank; d++)
        str_printf(&at, "%s%lld", d > 0 ? ", " : "", (long long)index[d]);
    return at.text;
}

/* True if the claim applies to this element: the target's subscripts are index names and
 * constants. */
static bool covers(const Access *target, const int64_t *index) {
    for (int d = 0; d < target->rank; d++)
        if (target->subs[d]->kind == X_CONST && target->subs[d]->constant.integer != index[d])
            return false;
    return true;
}

/* If instructions are approximate: twice the error that the claims about an element allow, because
 * both results may deviate in opposite directions (to two adjacent values of a narrow type if
 * the sum is between them); 0 if a claim is exact, 1e-3 of `size` if there is none, or no source.
 */
static double allowed_at(const Prog *prog, size_t param, const int64_t *index, double size) {
    double least = -1;
    for (size_t i = 0; prog != NULL && i < prog->claims.count; i++) {
        const Claim *claim = &prog->claims.items[i];
        if (claim->target.object != (int)param || !covers(&claim->target, index)) continue;
        double allowed = claim_allows(claim, size);
        least = least < 0 || allowed < least ? allowed : least;
    }
    return least < 0 ? 1e-3 * size : 2 * least;
}

static double mean_square_root(const Array *array) {
    double sum = 0, count = 0;
    for (int64_t i = 0; i < array->count; i++) {
        double value = element_load(array->type, array->data + i * element_rows[array->type].bytes);
        if (isfinite(value)) sum += value * value, count++;
    }
    return count > 0 ? sqrt(sum / count) : 0;
}

typedef struct Difference {
    int64_t count, first;
    double a, b;
} Difference;

static Difference differences(const Prog *prog, size_t param, const Array *a, const Array *b,
                              bool approximate) {
    Difference found = {0};
    size_t bytes = (size_t)element_rows[a->type].bytes;
    if (memcmp(a->data, b->data, a->bytes) == 0) return found;
    bool floats = element_rows[a->type].kind == ELEMENT_FLOAT;
    double scale = approximate && floats ? mean_square_root(b) : 0;
    for (int64_t i = 0; i < a->count; i++) {
        const unsigned char *x = a->data + (size_t)i * bytes, *y = b->data + (size_t)i * bytes;
        if (memcmp(x, y, bytes) == 0) continue;
        double p = element_load(a->type, x), q = element_load(b->type, y);
        if (floats && isnan(p) && isnan(q)) continue;
        int64_t index[MAX_RANK];
        index_of(a, i, index);
        if (floats && approximate && fabs(p - q) <= allowed_at(prog, param, index, fabs(q) + scale))
            continue;
        if (found.count++ == 0) found = (Difference){1, i, p, q};
    }
    return found;
}

/* ---- execution ------------------------------------------------------------------------------- */

/* Bytes of each tensor, counted once per direction of its mode */
static uint64_t moved_bytes(const PipecRun *run) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < run->program->manifest->parameters.count; i++)
        if (is_tensor(run, i))
            bytes += (uint64_t)run->launch->arrays[i].bytes *
                     (run->program->manifest->parameters.items[i].mode == MODE_INOUT ? 2u : 1u);
    return bytes;
}

/* Why the emulator runs in place of a GPU: a machine without one is nothing to explain. */
static const char *no_gpu(PipecRun *run, RuntimeLack lack, const char *why) {
    bool bare = lack == RUNTIME_NO_DRIVER || lack == RUNTIME_NO_DEVICE;
    return bare ? "no GPU" : arena_printf(run->arena, "no GPU: %s", why);
}

/* Opens a GPU if one is wanted. True: continue, on the GPU if run->runtime is set, otherwise on
 * the emulator. */
static bool choose_device(PipecRun *run, const PipecExecuteOptions *options) {
    RuntimeLack lack = RUNTIME_FINE;
    const char *why = NULL;
    bool scheduled = options->schedules != 0 || options->schedule != 0;
    if (options->where == PIPEC_ON_EMULATOR || (scheduled && options->where == PIPEC_ON_ANY))
        return true;
    if (scheduled) {
        diag_plain(run->diags, P0800,
                   "cannot run on a GPU: only the emulator can choose a schedule");
        return false;
    }
    run->runtime = targets_open(run->arena, run->program, options->device - 1, &lack, &why);
    if (run->runtime != NULL) return true;
    run->info.no_gpu = no_gpu(run, lack, why);
    if (options->where == PIPEC_ON_ANY && options->device == 0) return true;
    Diag *diag = diag_plain(run->diags, P0800, "no GPU can be used: %s", why);
    diag_help(run->diags, diag, "write `--on emulator` to run without a GPU");
    return false;
}

/* ---- schedules of the emulator --------------------------------------------------------------- */

/* Copies the tensors that the kernel writes; the others are empty. False: no memory. */
static bool keep(PipecRun *run, Array *kept) {
    const Manifest *manifest = run->program->manifest;
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        if (!is_tensor(run, i) || manifest->parameters.items[i].mode == MODE_IN) continue;
        if (array_copy(&kept[i], &run->launch->arrays[i])) continue;
        diag_plain(run->diags, P0610,
                   "not enough host memory for a copy of `%s`, with which every schedule starts",
                   manifest->parameters.items[i].name);
        return false;
    }
    return true;
}

static void restore(PipecRun *run, const Array *kept) {
    for (size_t i = 0; i < run->program->manifest->parameters.count; i++)
        if (kept[i].block != NULL) memcpy(run->launch->arrays[i].data, kept[i].data, kept[i].bytes);
}

static void new_kept(PipecRun *run) {
    size_t count = run->program->manifest->parameters.count + 1;
    run->first = NEW_ARRAY(run->arena, Array, count);
    run->inputs = NEW_ARRAY(run->arena, Array, count);
}

/* A kernel is deterministic on one machine, except that sums of several threads may round
 * differently in another order. */
static bool depends_on_order(const char *ptx) {
    return strstr(ptx, " red.") != NULL || strstr(ptx, " atom.") != NULL ||
           strstr(ptx, "cp.reduce.async") != NULL;
}

static bool as_first(PipecRun *run, uint64_t seed, uint64_t of_first) {
    bool same = true, approximate = depends_on_order(run->program->ptx.text);
    for (size_t i = 0; i < run->program->manifest->parameters.count; i++) {
        if (run->first[i].block == NULL) continue;
        const Array *array = &run->launch->arrays[i];
        Difference found = differences(run->program->prog, i, array, &run->first[i], approximate);
        const char *name = run->program->manifest->parameters.items[i].name;
        if (found.count == 0) continue;
        Diag *diag =
            diag_plain(run->diags, P0852, "%lld of %lld elements of `%s` depend on the schedule",
                       (long long)found.count, (long long)array->count, name);
        diag_note(
            run->diags, diag,
            "the first is `%s[%s]`: %.9g on the schedule of seed %llu, %.9g on that of seed %llu",
            name, place_text(run, i, found.first), found.a, (unsigned long long)seed, found.b,
            (unsigned long long)of_first);
        same = false;
    }
    return same;
}

typedef struct Progress { /* the caller's progress function, and the schedule that runs */
    const PipecExecuteOptions *options;
    int schedule;
} Progress;

static bool follow(void *data, double part, uint64_t instructions) {
    const Progress *it = data;
    int schedules = it->options->schedules > 1 ? it->options->schedules : 1;
    PipecProgress progress = {.part = (it->schedule + part) / schedules,
                              .schedule = it->schedule + 1,
                              .schedules = schedules,
                              .instructions = instructions};
    return it->options->progress(it->options->progress_data, &progress);
}

static RunStatus run_schedule(PipecRun *run, const PipecExecuteOptions *options, uint64_t seed,
                              RunResult *result) {
    Progress following = {options, (int)(seed - options->schedule)};
    EmulatorOptions emulator = {.seed = seed,
                                .suppressions = run->suppressions,
                                .races = options->no_races ? RACES_OFF : RACES_DEFAULT,
                                .progress = options->progress != NULL ? follow : NULL,
                                .progress_data = &following};
    Arena *scratch = arena_scratch(run->arena);
    RunStatus status = emulator_run(scratch, run->launch, &emulator, result, run->diags);
    arena_free(scratch);
    return status == RUN_DONE && !launch_guards(run->launch, run->diags) ? RUN_FINDING : status;
}

/* False: the file cannot be read. */
bool suppressions_read(Arena *arena, const char *file, EmulatorSuppressions **out, Diags *diags) {
    size_t length;
    *out = NULL;
    if (file == NULL) return true;
    const char *text = file_text(arena, file, &length, diags);
    if (text != NULL) *out = emulator_suppressions(arena, file, text, length, diags);
    return *out != NULL;
}

/* Ends with the first finding or difference. The arrays then hold the results of that schedule. */
static RunStatus run_schedules(PipecRun *run, const PipecExecuteOptions *options,
                               RunResult *result) {
    uint64_t count = options->schedules > 1 ? (uint64_t)options->schedules : 1,
             seed = options->schedule;
    if (run->inputs == NULL) new_kept(run);
    RunStatus status = count == 1 || keep(run, run->inputs)
                           ? run_schedule(run, options, seed, result)
                           : RUN_UNAVAILABLE;
    if (status == RUN_DONE && count > 1 && !keep(run, run->first)) status = RUN_UNAVAILABLE;
    run->info.schedules = status == RUN_DONE;
    for (uint64_t i = 1; i < count && status == RUN_DONE; i++) {
        RunResult other;
        restore(run, run->inputs);
        status = run_schedule(run, options, ++seed, &other);
        if (status == RUN_DONE && !as_first(run, seed, options->schedule)) status = RUN_FINDING;
        run->info.schedules += status == RUN_DONE;
    }
    if (status == RUN_DONE && count > 1) restore(run, run->first);
    for (size_t i = 0; status == RUN_FINDING && seed != 0 && i < run->diags->items.count; i++)
        diag_help(run->diags, run->diags->items.items[i],
                  "`--schedule %llu` runs this schedule alone", (unsigned long long)seed);
    drop_kept(run);
    return status;
}

static RunStatus run_on_device(PipecRun *run, const PipecExecuteOptions *options,
                               RunResult *result) {
    if (run->runtime == NULL) {
        if (!suppressions_read(run->arena, options->suppressions, &run->suppressions, run->diags))
            return RUN_UNAVAILABLE;
        RunStatus emulated = run_schedules(run, options, result);
        if (emulated == RUN_DONE && run->suppressions != NULL)
            emulator_suppressions_unused(run->suppressions, run->diags);
        return emulated;
    }
    RuntimeOptions runtime = {.timed = options->timed};
    RunStatus status =
        runtime_run(run->arena, run->runtime, run->launch, &runtime, result, run->diags);
    run->info.on_gpu = true;
    return status == RUN_DONE && !launch_guards(run->launch, run->diags) ? RUN_FINDING : status;
}

/* Keeps what the comparison with `ensures` needs, if there is a source. */
static bool keep_before(PipecRun *run) {
    const Prog *prog = run->program->prog;
    return prog == NULL ||
           reference_before(run->arena, prog, run->launch, &run->before, run->diags);
}

static void execute(void *data) {
    Call *it = data;
    PipecRun *run = it->run;
    RunResult result = {0};
    begin(run);
    run->info = (PipecRunInfo){.tiles = run->launch->tiles, .bytes = moved_bytes(run)};
    reference_before_free(&run->before);
    it->status = PIPEC_UNUSABLE;
    if (it->unsized != NULL)
        size_report(run->diags, "PipecExecuteOptions", sizeof *it->execute, it->unsized);
    else if (keep_before(run) && choose_device(run, it->execute))
        it->status = status_of_run(run->launch->manifest, run_on_device(run, it->execute, &result));
    MachineRow machine = {0};
    if (run->runtime != NULL) {
        DeviceFacts device = runtime_facts(run->runtime);
        machine = machine_for(run->arena, &device, run->diags);
        runtime_close(run->runtime);
    }
    run->runtime = NULL;
    run->last = result;
    run->expected = (Prediction){.unknown = "no GPU ran"};
    if (run->info.on_gpu && result.device != NULL) {
        const Manifest *manifest = run->launch->manifest;
        int64_t *values = work_values(run->arena, manifest, run->launch->symbols);
        model_predict(run->arena, manifest, values, run->launch->tiles, &machine, &run->expected);
        run->expected.seconds *= model_correction(&run->expected);
    }
    run->info.device = result.device;
    run->info.blocks = result.blocks;
    run->info.seconds = result.seconds;
    run->info.timed = result.timed;
    run->info.instructions = result.instructions;
    run->published = diagnostics_publish(run->diags);
}

bool run_work(const PipecRun *run, WorkTotals *expected, const RunResult **counted) {
    const Manifest *manifest = run->launch->manifest;
    *counted = &run->last;
    return work_total(manifest, work_values(run->arena, manifest, run->launch->symbols),
                      run->last.blocks, NULL,
                      NEW_ARRAY(run->arena, RoleWork, manifest->roles.count + 1), expected);
}

PIPEC_API double pipec_run_predicted(const PipecRun *run, const char **limit) {
    const Prediction *expected = &run->expected;
    if (limit != NULL)
        *limit = expected->unknown != NULL ? expected->unknown : model_terms[expected->limit];
    return expected->unknown != NULL ? 0 : expected->seconds;
}

PIPEC_API PipecStatus pipec_run_execute(PipecRun *run, const PipecExecuteOptions *options) {
    PipecExecuteOptions known;
    bool sized = size_read(&known, sizeof known, options);
    Call it = {.run = run, .execute = &known, .unsized = sized ? NULL : options};
    if (run->launch == NULL) return run->status;
    return call(run, &it, execute);
}

/* ---- verdict --------------------------------------------------------------------------------- */

const char *verdict_text(Arena *arena, const Verdict *verdict) {
    Str text = str_new(arena);
    switch (verdict->kind) {
    case VERDICT_RIGHT: str_add(&text, "right"); break;
    case VERDICT_WRONG: str_add(&text, "WRONG"); break;
    case VERDICT_NOT_CHECKED: str_printf(&text, "not checked: %s", verdict->why); return text.text;
    }
    if (verdict->wrong > 0)
        str_printf(&text, ": %lld elements violate `ensures`", (long long)verdict->wrong);
    if (verdict->untouched > 0)
        str_printf(&text, "%s %lld elements were never written", verdict->wrong > 0 ? "," : ":",
                   (long long)verdict->untouched);
    if (verdict->checked == verdict->elements)
        str_printf(&text, " (all %lld elements checked", (long long)verdict->elements);
    else
        str_printf(&text, " (a sample of %lld of %lld elements checked, seed %llu",
                   (long long)verdict->checked, (long long)verdict->elements,
                   (unsigned long long)verdict->seed);
    if (verdict->largest > 0)
        str_printf(&text, ", largest error %.2g x the tolerance", verdict->largest);
    str_char(&text, ')');
    return text.text;
}

static bool follow_check(void *data, double part) {
    const PipecVerifyOptions *options = data;
    return options->progress(options->progress_data, &(PipecProgress){.part = part});
}

static void verify(void *data) {
    Call *it = data;
    PipecRun *run = it->run;
    PipecVerifyOptions known = *it->verify;
    ReferenceOptions options = {.seed = run->seed,
                                .progress = known.progress != NULL ? follow_check : NULL,
                                .progress_data = &known};
    Verdict verdict;
    begin(run);
    if (it->unsized != NULL) {
        size_report(run->diags, "PipecVerifyOptions", sizeof known, it->unsized);
        run->published = diagnostics_publish(run->diags);
        it->status = PIPEC_UNUSABLE;
        return;
    }
    reference_verdict(run->arena, run->program->prog, run->launch, &run->before, &options, &verdict,
                      run->diags);
    run->verdict = verdict_text(run->arena, &verdict);
    run->published = diagnostics_publish(run->diags);
    bool denied = pipec_diagnostics_errors(run->published) > 0;
    it->verdict = verdict.kind == VERDICT_RIGHT   ? PIPEC_RIGHT
                  : verdict.kind == VERDICT_WRONG ? PIPEC_WRONG
                                                  : PIPEC_NOT_CHECKED;
    it->status = verdict.kind == VERDICT_WRONG || denied ? PIPEC_REFUSED
                 : verdict.undecided                     ? PIPEC_INCOMPLETE
                                                         : PIPEC_FINE;
}

PIPEC_API PipecVerdict pipec_run_verify(PipecRun *run) {
    return pipec_run_verify_with(run, &(PipecVerifyOptions){.size = sizeof(PipecVerifyOptions)});
}

PIPEC_API PipecVerdict pipec_run_verify_with(PipecRun *run, const PipecVerifyOptions *options) {
    PipecVerifyOptions known;
    bool sized = size_read(&known, sizeof known, options);
    Call it = {.run = run,
               .verify = &known,
               .unsized = sized ? NULL : options,
               .verdict = PIPEC_NOT_CHECKED};
    /* there are no results */
    if (run->launch == NULL || run->before.arrays == NULL) return PIPEC_NOT_CHECKED;
    call(run, &it, verify);
    return it.verdict;
}

/* ---- two runs -------------------------------------------------------------------------------- */

static void report_difference(Call *it, size_t param, const Difference *found) {
    PipecRun *run = it->run;
    const Array *array = &run->launch->arrays[param];
    const char *name = run->program->manifest->parameters.items[param].name;
    Diag *diag =
        diag_plain(run->diags, P0852, "%lld of %lld elements of `%s` differ between %s and %s",
                   (long long)found->count, (long long)array->count, name, run->info.device,
                   it->other->info.device);
    diag_note(run->diags, diag, "the first is `%s[%s]`: %.9g on %s, %.9g on %s", name,
              place_text(run, param, found->first), found->a, run->info.device, found->b,
              it->other->info.device);
    it->status = PIPEC_REFUSED;
}

static void compare(void *data) {
    Call *it = data;
    PipecRun *run = it->run;
    const PipecProgram *program = run->program;
    begin(run);
    bool approximate = strstr(program->ptx.text, ".approx") != NULL ||
                       strstr(program->ptx.text, "div.full.") != NULL ||
                       strstr(program->ptx.text, "wgmma.mma_async") != NULL;
    for (size_t i = 0; i < program->manifest->parameters.count; i++) {
        if (!is_tensor(run, i) || program->manifest->parameters.items[i].mode == MODE_IN) continue;
        Difference found = differences(program->prog, i, &run->launch->arrays[i],
                                       &it->other->launch->arrays[i], approximate);
        if (found.count > 0) report_difference(it, i, &found);
    }
    if (it->text != NULL)
        *it->text = approximate ? "compared within twice the tolerance of `ensures`: the kernel "
                                  "uses approximate or matrix instructions"
                                : "compared bit for bit";
    run->published = diagnostics_publish(run->diags);
}

/* The programs may be two compilations of one text; only the tensors must have the same types
 * and extents. */
static bool same_shape(const PipecRun *a, const PipecRun *b) {
    if (a->launch == NULL || b->launch == NULL) return false;
    size_t count = a->launch->manifest->parameters.count;
    if (count != b->launch->manifest->parameters.count) return false;
    for (size_t i = 0; i < count; i++) {
        const Array *x = &a->launch->arrays[i], *y = &b->launch->arrays[i];
        if (is_tensor(a, i) != is_tensor(b, i) || x->type != y->type || x->rank != y->rank)
            return false;
        for (int axis = 0; axis < x->rank; axis++)
            if (x->extents[axis] != y->extents[axis]) return false;
    }
    return true;
}

PIPEC_API PipecStatus pipec_run_compare(PipecRun *run, const PipecRun *other, const char **text) {
    Call it = {.run = run, .other = other, .text = text};
    if (!same_shape(run, other)) return PIPEC_UNUSABLE;
    return call(run, &it, compare);
}

/* ---- saving ---------------------------------------------------------------------------------- */

static bool find_saved(Call *it, size_t *index, const char **file) {
    PipecRun *run = it->run;
    const char *equals = strchr(it->word, '=');
    begin(run);
    if (equals == NULL || equals == it->word || equals[1] == 0) {
        diag_plain(run->diags, P0600, "`%s` is not NAME=FILE.npy", it->word);
        return false;
    }
    *file = equals + 1;
    if (find_tensor(run, it->word, (size_t)(equals - it->word), index)) return true;
    const char *name = arena_copy(run->arena, it->word, (size_t)(equals - it->word));
    Diag *diag = diag_plain(run->diags, P0906, "kernel `%s` has no tensor `%s`",
                            run->program->manifest->kernel, name);
    VEC(const char *) names = {0};
    for (size_t i = 0; i < run->program->manifest->parameters.count; i++)
        if (is_tensor(run, i))
            vec_push(run->arena, &names, run->program->manifest->parameters.items[i].name);
    const char *near = closest_name(name, names.items, names.count);
    if (near != NULL) diag_help(run->diags, diag, "did you mean `%s`?", near);
    return false;
}

static void can_save(void *data) {
    Call *it = data;
    size_t index;
    const char *file;
    it->status = find_saved(it, &index, &file) ? PIPEC_FINE : PIPEC_UNUSABLE;
    it->run->published = diagnostics_publish(it->run->diags);
}

static void save(void *data) {
    Call *it = data;
    PipecRun *run = it->run;
    size_t index;
    const char *file;
    bool fine = find_saved(it, &index, &file) &&
                npy_write(run->arena, file, &run->launch->arrays[index], run->diags);
    it->status = fine ? PIPEC_FINE : PIPEC_UNUSABLE;
    run->published = diagnostics_publish(run->diags);
}

PIPEC_API PipecStatus pipec_run_can_save(PipecRun *run, const char *word) {
    Call it = {.run = run, .word = word};
    return run->launch == NULL ? run->status : call(run, &it, can_save);
}

PIPEC_API PipecStatus pipec_run_save(PipecRun *run, const char *word) {
    Call it = {.run = run, .word = word};
    return run->launch == NULL ? run->status : call(run, &it, save);
}
