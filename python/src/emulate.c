/* python: a call with host arrays runs on the emulator. The arrays are copied into a run and its
 * results back. The GIL is released but for signals; the lock of the unit admits one run at a time.
 */
#include "python/src/private.h"

#define FILL_BYTES 256

typedef struct Emulation {
    Call *call;
    PipecRun *run;
    PipecProgram *chosen;         /* for the extents; NULL: that of the unit */
    const PipecDiagnostics *said; /* of the choice; NULL: memory ran out */
    PipecValue numbers[EXTENTS_ALL + PARAMETERS_MOST];
    size_t number_count;
    char words[PARAMETERS_MOST][FILL_BYTES]; /* "A=zeros": the arrays are overwritten */
    const char *fills[PARAMETERS_MOST];
    size_t fill_count;
    char above[PARAMETERS_MOST][FILL_BYTES]; /* "seed=18446744073709551615" */
    const char *values[PARAMETERS_MOST];
    size_t value_count;
    PipecStatus status;
    bool verify;
    Watch watch;
} Emulation;

/* ---- values ---------------------------------------------------------------------------------- */

/* A u64 that is no int64_t */
static bool is_above(const Parameter *parameter, const PipecArgument *argument) {
    return !parameter->fact.is_tensor && parameter->type.code == DL_UINT &&
           parameter->type.bits == 64 && argument->integer < 0;
}

static void add_above(Emulation *it, const char *name, int64_t integer) {
    char *word = it->above[it->value_count];
    snprintf(word, FILL_BYTES, "%s=%llu", name, (unsigned long long)integer);
    it->values[it->value_count++] = word;
}

/* All scalars and extents: no value of `example` is left */
static void collect(Emulation *it) {
    it->number_count = call_extents(it->call, it->numbers);
    for (int i = 0; i < it->call->unit->count; i++) {
        const Parameter *parameter = &it->call->unit->parameters[i];
        const PipecParameter *fact = &parameter->fact;
        const PipecArgument *argument = &it->call->arguments[i];
        if (is_above(parameter, argument))
            add_above(it, fact->name, argument->integer);
        else if (!fact->is_tensor)
            it->numbers[it->number_count++] = (PipecValue){.name = fact->name,
                                                           .integer = argument->integer,
                                                           .number = argument->number,
                                                           .is_float = parameter->is_float};
        if (!fact->is_tensor || fact->mode == PIPEC_OUT || strlen(fact->name) + 7 > FILL_BYTES)
            continue;
        snprintf(it->words[it->fill_count], FILL_BYTES, "%s=zeros", fact->name);
        it->fills[it->fill_count] = it->words[it->fill_count];
        it->fill_count++;
    }
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Copies between a tensor with strides and memory without gaps, row by row */
static void copy(const Call *call, int index, char *dense, bool in) {
    const PipecArgument *argument = &call->arguments[index];
    const PipecParameter *fact = &call->unit->parameters[index].fact;
    int64_t at[PIPEC_MAX_RANK] = {0}, last = fact->rank - 1, rows = 1;
    size_t bytes = (size_t)argument->extents[last] * fact->element_bytes;
    for (int axis = 0; axis < last; axis++) rows *= argument->extents[axis];
    for (int64_t row = 0; row < rows && bytes > 0; row++, dense += bytes) {
        int64_t offset = 0;
        for (int axis = 0; axis < last; axis++)
            offset += at[axis] * (argument->strided ? argument->strides[axis] : 0);
        char *tensor = call->tensors[index].data;
        tensor += argument->strided ? offset * (int64_t)fact->element_bytes : row * (int64_t)bytes;
        memcpy(in ? dense : tensor, in ? tensor : dense, bytes);
        for (int axis = (int)last - 1; axis >= 0 && ++at[axis] == argument->extents[axis]; axis--)
            at[axis] = 0;
    }
}

static void copy_all(Emulation *it, bool in) {
    for (int i = 0; i < it->call->unit->count; i++) {
        const PipecParameter *fact = &it->call->unit->parameters[i].fact;
        PipecArray array = {.size = sizeof array};
        if (!fact->is_tensor || fact->mode == (in ? PIPEC_OUT : PIPEC_IN)) continue;
        if (pipec_run_array_named(it->run, fact->name, &array)) copy(it->call, i, array.data, in);
    }
}

/* ---- the run --------------------------------------------------------------------------------- */

static void execute(Emulation *it) {
    PipecRunOptions options = {.size = sizeof options,
                               .numbers = it->numbers,
                               .number_count = it->number_count,
                               .values = it->values,
                               .value_count = it->value_count,
                               .fills = it->fills,
                               .fill_count = it->fill_count,
                               .arguments = it->call->arguments,
                               .argument_size = sizeof *it->call->arguments,
                               .argument_count = (size_t)it->call->unit->count};
    PipecExecuteOptions where = {.size = sizeof where,
                                 .where = PIPEC_ON_EMULATOR,
                                 .progress = watch,
                                 .progress_data = &it->watch};
    PipecProgram *program = it->call->unit->program;
    PipecChooseOptions how = {.size = sizeof how, .machine = PIPEC_MACHINE};
    it->chosen = pipec_program_chosen(program, &options, &how, NULL);
    it->said = pipec_program_diagnostics(program);
    it->status = PIPEC_UNUSABLE;
    if (it->chosen == NULL && pipec_diagnostics_errors(it->said) > 0) return;
    it->run = pipec_run_new(it->chosen != NULL ? it->chosen : program, &options);
    it->said = it->run != NULL ? pipec_run_diagnostics(it->run) : NULL;
    if (it->run != NULL) it->status = pipec_run_status(it->run);
    if (it->status != PIPEC_FINE) return;
    copy_all(it, true);
    it->status = pipec_run_execute(it->run, &where);
    if (it->status != PIPEC_FINE) return;
    copy_all(it, false);
    if (!it->verify) return;
    PipecVerifyOptions watched = {
        .size = sizeof watched, .progress = watch_signals, .progress_data = &it->watch};
    pipec_run_verify_with(it->run, &watched);
    it->status = pipec_run_status(it->run);
}

bool emulate(Call *call, bool verify, PyObject **verdict) {
    Emulation it = {.call = call, .verify = verify};
    collect(&it);
    PyThread_type_lock lock = call->unit->lock; /* a fork in a handler of a signal may replace it */
    watch_begin(&it.watch, call->kernel);
    PyThread_acquire_lock(lock, WAIT_LOCK);
    execute(&it);
    PyThread_release_lock(lock);
    watch_end(&it.watch);
    bool fine = it.status == PIPEC_FINE && !it.watch.raised;
    if (!fine && !it.watch.raised)
        error_raise(call->state, it.status,
                    it.run != NULL ? pipec_run_diagnostics(it.run) : it.said);
    else if (fine && verify)
        *verdict = PyUnicode_FromString(pipec_run_verdict(it.run));
    pipec_run_free(it.run);
    pipec_program_free(it.chosen);
    return fine && (!verify || *verdict != NULL);
}
