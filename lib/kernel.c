/* lib: a program on a GPU, launched with the caller's device pointers on the caller's stream.
 * Checks extents and preconditions before each launch; repeated launches allocate nothing unless
 * they fail. */
#include "lib/private.h"

#include "runtime/runtime.h"

struct PipecKernel {
    Arena *arena;
    PipecProgram *program;
    Runtime *runtime;
    RuntimeKernel *loaded; /* NULL if loading failed */
    PipecStatus status;
    Arena *words; /* arena of the last call's diagnostics */
    Diags *diags;
    const PipecDiagnostics *published;
    /* Buffers for a launch, one element per parameter or symbol */
    int64_t (*extents)[MAX_RANK];
    uint64_t *pointers;
    Scalar *scalars;
    int64_t *symbols;
};

typedef struct Call {
    PipecKernel *kernel;
    int ordinal;
    const PipecArgument *arguments;
    size_t count;
    void *stream;
} Call;

static PipecStatus status_of_load(Code code) {
    if (code == P0704) return PIPEC_REFUSED; /* the author's inline PTX */
    return code == P0801 ? PIPEC_BUG : PIPEC_UNUSABLE;
}

static void load(void *data) {
    const Call *call = data;
    PipecKernel *kernel = call->kernel;
    const PipecProgram *program = kernel->program;
    const Manifest *manifest = program->manifest;
    size_t parameters = manifest->parameters.count;
    RuntimeLack lack;
    const char *why = NULL;
    kernel->extents =
        (int64_t(*)[MAX_RANK])NEW_ARRAY(kernel->arena, int64_t, (parameters + 1) * MAX_RANK);
    kernel->pointers = NEW_ARRAY(kernel->arena, uint64_t, parameters + 1);
    kernel->scalars = NEW_ARRAY(kernel->arena, Scalar, parameters + 1);
    kernel->symbols = NEW_ARRAY(kernel->arena, int64_t, manifest->symbols.count + 1);
    kernel->diags = diags_new(kernel->arena, program->source);
    diags_set_levels(kernel->diags, &program->levels);
    kernel->runtime = runtime_open(kernel->arena, call->ordinal, manifest->target,
                                   manifest->ptx_major, manifest->ptx_minor, &lack, &why);
    if (kernel->runtime == NULL)
        diag_plain(kernel->diags, P0800, "no GPU can be used: %s", why);
    else
        kernel->loaded = runtime_load(kernel->arena, kernel->runtime, manifest, program->ptx.text,
                                      program->ptx.length, kernel->diags);
    kernel->status = PIPEC_FINE;
    for (size_t i = 0; kernel->loaded == NULL && i < kernel->diags->items.count; i++)
        kernel->status =
            pipec_worse(kernel->status, status_of_load(kernel->diags->items.items[i]->code));
    kernel->published = diagnostics_publish(kernel->diags);
    /* a denied warning */
    if (kernel->status == PIPEC_FINE && kernel->diags->errors > 0) {
        kernel->status = PIPEC_REFUSED;
        runtime_unload(kernel->loaded);
        kernel->loaded = NULL;
    }
    kernel->diags = NULL;
}

static void new_kernel(void *data) {
    Call *call = data;
    PipecKernel start = *call->kernel;
    call->kernel = NEW(start.arena, PipecKernel);
    *call->kernel = start;
}

PIPEC_API PipecKernel *pipec_kernel_load(PipecProgram *program, int ordinal) {
    Arena *arena = arena_new();
    PipecKernel start = {.arena = arena,
                         .program = program,
                         .status = program->status,
                         .published = program->published};
    Call call = {.kernel = &start, .ordinal = ordinal};
    if (arena == NULL) return NULL;
    if (!attempt(arena, new_kernel, &call)) {
        arena_free(arena);
        return NULL;
    }
    if (program->manifest != NULL && !attempt(arena, load, &call)) {
        call.kernel->published = &no_memory;
        call.kernel->status = PIPEC_UNUSABLE;
    }
    return call.kernel;
}

PIPEC_API void pipec_kernel_free(PipecKernel *kernel) {
    if (kernel == NULL) return;
    runtime_unload(kernel->loaded);
    if (kernel->runtime != NULL) runtime_close(kernel->runtime);
    arena_free(kernel->words);
    arena_free(kernel->arena);
}

PIPEC_API PipecStatus pipec_kernel_status(const PipecKernel *kernel) { return kernel->status; }
PIPEC_API const PipecDiagnostics *pipec_kernel_diagnostics(const PipecKernel *kernel) {
    return kernel->published;
}

PIPEC_API const char *pipec_kernel_device(const PipecKernel *kernel) {
    return kernel->loaded != NULL ? runtime_device_name(kernel->runtime) : NULL;
}

/* ---- launches -------------------------------------------------------------------------------- */

static PipecStatus launch_status(PipecKernel *kernel, const Call *call) {
    const Manifest *manifest = kernel->program->manifest;
    int64_t tiles;
    if (call->count != manifest->parameters.count) {
        diag_plain(kernel->diags, P0910,
                   "kernel `%s` has %zu parameters, but %zu arguments are given", manifest->kernel,
                   manifest->parameters.count, call->count);
        return PIPEC_UNUSABLE;
    }
    for (size_t i = 0; i < call->count; i++) {
        const PipecArgument *argument = &call->arguments[i];
        for (int axis = 0; axis < MAX_RANK; axis++)
            kernel->extents[i][axis] = argument->extents[axis];
        kernel->pointers[i] = argument->pointer;
        kernel->scalars[i] = (Scalar){argument->number, argument->integer};
    }
    if (!launch_bind(manifest, (const int64_t(*)[MAX_RANK])kernel->extents, kernel->scalars,
                     kernel->symbols, &tiles, kernel->diags))
        return PIPEC_UNUSABLE;
    return status_of_run(runtime_launch(kernel->loaded, kernel->pointers, kernel->scalars,
                                        kernel->symbols, tiles, call->stream, kernel->diags));
}

static void launch(void *data) {
    const Call *call = data;
    PipecKernel *kernel = call->kernel;
    if (kernel->diags == NULL) kernel->diags = diags_new(kernel->words, kernel->program->source);
    kernel->status = launch_status(kernel, call);
    kernel->published =
        kernel->diags->items.count > 0 ? diagnostics_publish(kernel->diags) : &no_diagnostics;
}

static PipecStatus out_of_memory(PipecKernel *kernel) {
    kernel->published = &no_memory;
    return kernel->status = PIPEC_UNUSABLE;
}

PIPEC_API PipecStatus pipec_kernel_launch(PipecKernel *kernel, const PipecArgument *arguments,
                                          size_t count, void *stream) {
    Call call = {.kernel = kernel, .arguments = arguments, .count = count, .stream = stream};
    if (kernel->loaded == NULL) return kernel->status;
    /* frees the last call's diagnostics */
    if (kernel->diags == NULL || kernel->diags->items.count > 0) {
        arena_free(kernel->words);
        kernel->diags = NULL;
        kernel->words = arena_new();
        if (kernel->words == NULL) return out_of_memory(kernel);
    }
    if (!attempt(kernel->words, launch, &call)) return out_of_memory(kernel);
    return kernel->status;
}
