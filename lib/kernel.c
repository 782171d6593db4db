/* lib: a program on a GPU, launched with the caller's device pointers on the caller's stream. A
 * program keeps the kernels that were loaded from it, one per device, and counts their users; its
 * lock protects that list. Any number of threads may launch one kernel. If its variant or statics
 * are open, a server finds the kernel for each launch. */
#include "lib/private.h"

#include "lib/cubins.h"
#include "lib/serve.h"
#include "runtime/runtime.h"

#include <string.h>
#include <time.h>

/* more are refused, because a launch copies them to its stack */
#define PARAMETERS_MOST 1024

struct PipecKernel {
    Arena *arena;
    PipecProgram *program;
    Runtime *runtime;
    RuntimeKernel *loaded;
    Server *server;       /* NULL: nothing is open */
    pthread_mutex_t lock; /* of the list */
    struct Other *others; /* kernels of siblings of the program, on this device */
    size_t users;
    bool is_first; /* the device is the first capable one */
    PipecKernelInfo info;
    PipecKernel *next; /* of the program */
};

typedef struct Other {
    struct Other *next;
    const PipecProgram *program;
    PipecKernel *kernel;
} Other;

/* ---- loading --------------------------------------------------------------------------------- */

typedef struct Load {
    PipecProgram *program;
    int device;
    Arena *arena, *words; /* of the kernel, and of its diagnostics */
    PipecKernel *kernel;  /* NULL: it failed */
    bool shared;          /* it was loaded before */
    double begun;
    const char *by; /* as PipecKernelInfo.loaded_by, in `words` */
    PipecDiagnostics *published;
    PipecStatus status;
} Load;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static PipecStatus status_of_load(const PipecProgram *program, Code code) {
    if (code == P0704) return PIPEC_REFUSED; /* the author's inline PTX */
    return code == P0801 ? status_of_run(program->manifest, RUN_REJECTED) : PIPEC_UNUSABLE;
}

static void new_kernel(void *data) {
    Load *it = data;
    it->kernel = NEW(it->arena, PipecKernel);
    *it->kernel = (PipecKernel){.arena = it->arena, .program = it->program};
    pthread_mutex_init(&it->kernel->lock, NULL); /* cannot fail: no attributes */
}

static void unload(PipecKernel *kernel) {
    for (Other *next, *at = kernel->others; at != NULL; at = next) {
        next = at->next;
        pipec_kernel_free(at->kernel);
    }
    pthread_mutex_destroy(&kernel->lock);
    server_free(kernel->server);
    runtime_unload(kernel->loaded);
    runtime_close(kernel->runtime);
    arena_free(kernel->arena);
}

static PipecKernel *find_loaded(const PipecProgram *program, int device) {
    for (PipecKernel *kernel = program->loaded; kernel != NULL; kernel = kernel->next)
        if (device < 0 ? kernel->is_first : kernel->info.ordinal == device) return kernel;
    return NULL;
}

static bool open_device(Load *it, Diags *diags) {
    const Manifest *manifest = it->program->manifest;
    RuntimeLack lack;
    const char *why = NULL;
    if (manifest->parameters.count > PARAMETERS_MOST) {
        diag_plain(diags, P0910, "kernel `%s` has %zu parameters; a launch takes at most %d",
                   manifest->kernel, manifest->parameters.count, PARAMETERS_MOST);
        return false;
    }
    it->kernel->runtime = runtime_open(it->words, it->device, manifest->target, manifest->ptx_major,
                                       manifest->ptx_minor, &lack, &why);
    if (it->kernel->runtime == NULL) diag_plain(diags, P0800, "no GPU can be used: %s", why);
    return it->kernel->runtime != NULL;
}

static void describe(void *data) {
    const Load *it = data;
    PipecKernel *kernel = it->kernel;
    kernel->info = (PipecKernelInfo){.device = runtime_device_name(kernel->runtime),
                                     .ordinal = runtime_ordinal(kernel->runtime),
                                     .multiprocessors = runtime_multiprocessors(kernel->runtime),
                                     .blocks_per_multiprocessor =
                                         runtime_blocks_per_multiprocessor(kernel->loaded),
                                     .registers = runtime_registers(kernel->loaded),
                                     .load_seconds = now() - it->begun,
                                     .loaded_by = arena_copy(it->arena, it->by, strlen(it->by))};
}

/* A kernel that was given as a cubin: there is no PTX to load instead */
static void load_given(Load *it, Diags *diags) {
    const Manifest *manifest = it->program->manifest;
    const char *why;
    it->by = "cubin";
    it->kernel->loaded =
        runtime_load_cubin(it->kernel->runtime, manifest, it->program->cubin, &why, diags);
    if (it->kernel->loaded == NULL && why != NULL)
        diag_plain(diags, P0923, "cannot load the cubin of `%s`: %s", manifest->kernel, why);
}

/* From the cache of cubins or ptxas; otherwise the driver loads the PTX. */
static void load_image(Load *it, Diags *diags) {
    const PipecProgram *program = it->program;
    const char *why = NULL;
    Cubin cubin =
        cubin_of(it->words, program->manifest, program->ptx.text, program->ptx.length, diags);
    if (cubin.image != NULL)
        it->kernel->loaded =
            runtime_load_cubin(it->kernel->runtime, program->manifest, cubin.image, &why, diags);
    it->by = cubin.by;
    if (cubin.image != NULL && why == NULL) return;
    if (why != NULL) cubin_refused(program->manifest, diags, cubin.ptxas, why);
    it->by = "the driver";
    it->kernel->loaded = runtime_load(it->words, it->kernel->runtime, program->manifest,
                                      program->ptx.text, program->ptx.length, diags);
}

/* Loads it->kernel on its device, unless the first capable device turns out to have one: then
 * it->kernel is that one. */
static void load_module(Load *it, Diags *diags) {
    const PipecProgram *program = it->program;
    it->begun = now();
    if (!open_device(it, diags)) return;
    PipecKernel *same = find_loaded(program, runtime_ordinal(it->kernel->runtime));
    if (same != NULL) {
        unload(it->kernel);
        it->kernel = same;
        it->shared = true;
        return;
    }
    if (program->cubin != NULL)
        load_given(it, diags);
    else
        load_image(it, diags);
}

static void serve(Load *it, Diags *diags) {
    PipecKernel *kernel = it->kernel;
    const Runtime *runtime = kernel->runtime;
    if (it->shared || kernel->loaded == NULL || it->program->untuned ||
        !family_is_open(it->program))
        return;
    ServerDevice device = {.facts = runtime_facts(runtime), .ordinal = runtime_ordinal(runtime)};
    static const ServerLoader loader = {pipec_kernel_load, pipec_kernel_free};
    kernel->server = server_new(it->program, kernel, &loader, &device, diags);
    if (kernel->server == NULL) arena_fail(it->words);
}

static void load(void *data) {
    Load *it = data;
    const PipecProgram *program = it->program;
    Diags *diags = diags_new(it->words, program->source);
    diags_set_levels(diags, &program->levels);
    load_module(it, diags);
    serve(it, diags);
    for (size_t i = 0; it->kernel->loaded == NULL && i < diags->items.count; i++)
        it->status = pipec_worse(it->status, status_of_load(program, diags->items.items[i]->code));
    it->published = diagnostics_publish(diags);
    it->published->arena = it->words;
    /* a denied warning */
    if (it->status == PIPEC_FINE && diags->errors > 0) it->status = PIPEC_REFUSED;
}

static PipecStatus out_of_memory(Load *it) {
    it->published = (PipecDiagnostics *)&no_memory;
    return it->status = PIPEC_UNUSABLE;
}

/* Loads a new kernel and adds it to the program's. Needs the program's lock. */
static void load_new(Load *it) {
    it->arena = arena_new();
    if (it->arena == NULL || !attempt(it->arena, new_kernel, it)) {
        arena_free(it->arena);
        out_of_memory(it);
        return;
    }
    if (!attempt(it->words, load, it)) out_of_memory(it);
    bool loaded = it->status == PIPEC_FINE && !it->shared;
    if (loaded && !attempt(it->arena, describe, it)) out_of_memory(it);
    PipecKernel *kernel = it->kernel;
    if (it->status != PIPEC_FINE) {
        if (!it->shared) unload(kernel);
        it->kernel = NULL;
        return;
    }
    kernel->is_first = kernel->is_first || it->device < 0;
    kernel->users++;
    if (it->shared) return;
    kernel->next = it->program->loaded;
    it->program->loaded = kernel;
}

static void load_or_share(Load *it) {
    PipecProgram *program = it->program;
    if (program->manifest == NULL) {
        it->status = program_unusable(program, it->words, &it->published);
        return;
    }
    pthread_mutex_lock(&program->lock);
    it->kernel = find_loaded(program, it->device);
    if (it->kernel != NULL)
        it->kernel->users++;
    else
        load_new(it);
    pthread_mutex_unlock(&program->lock);
}

PIPEC_API PipecStatus pipec_kernel_load(PipecProgram *program, int device, PipecKernel **kernel,
                                        PipecDiagnostics **diagnostics) {
    Load it = {.program = program, .device = device, .words = arena_new()};
    if (it.words == NULL)
        out_of_memory(&it);
    else
        load_or_share(&it);
    *kernel = it.kernel;
    diagnostics_hand_over(it.words, it.published, diagnostics);
    return it.status;
}

PIPEC_API void pipec_kernel_free(PipecKernel *kernel) {
    if (kernel == NULL) return;
    PipecProgram *program = kernel->program;
    pthread_mutex_lock(&program->lock);
    if (--kernel->users == 0) {
        PipecKernel **at = &program->loaded;
        while (*at != kernel) at = &(*at)->next;
        *at = kernel->next;
        unload(kernel);
    }
    pthread_mutex_unlock(&program->lock);
}

PIPEC_API bool pipec_kernel_info(const PipecKernel *kernel, PipecKernelInfo *info) {
    return size_write(info, &kernel->info, sizeof kernel->info);
}

/* ---- launches -------------------------------------------------------------------------------- */

typedef struct Call {
    PipecKernel *kernel;
    const PipecLaunch *given, *launch; /* the caller's, and its members that are known */
    RuntimeLaunch how;
    const DeviceArgument *arguments; /* NULL: `given` is wrong */
    Arena *words;
    PipecDiagnostics *published;
    PipecStatus status;
} Call;

static RuntimeLaunch how_of(const PipecLaunch *launch) {
    return (RuntimeLaunch){.stream = launch->stream,
                           .multiprocessors = launch->multiprocessors,
                           .programmatic = launch->programmatic};
}

static void report_launch(const Call *call, Diags *diags) {
    const PipecLaunch *launch = call->launch;
    if (launch->size == 0)
        size_report(diags, "PipecLaunch", sizeof *launch, call->given);
    else
        arguments_report(call->kernel->program->manifest, launch->argument_size, launch->count,
                         diags);
}

static void launch(void *data) {
    Call *call = data;
    PipecKernel *kernel = call->kernel;
    Diags *diags = diags_new(call->words, kernel->program->source);
    call->status = PIPEC_UNUSABLE;
    if (call->arguments == NULL)
        report_launch(call, diags);
    else if (launch_types(kernel->program->manifest, call->arguments, diags))
        call->status =
            status_of_run(kernel->program->manifest,
                          runtime_launch(kernel->loaded, call->arguments, &call->how, diags));
    call->published = diagnostics_publish(diags);
    call->published->arena = call->words;
}

/* With diagnostics: the first launch of these tensors, or a wrong one */
static PipecStatus launch_with_words(Call *call, PipecDiagnostics **diagnostics) {
    call->words = arena_new();
    if (call->words == NULL || !attempt(call->words, launch, call)) {
        call->published = (PipecDiagnostics *)&no_memory;
        call->status = PIPEC_UNUSABLE;
    }
    diagnostics_hand_over(call->words, call->published, diagnostics);
    return call->status;
}

/* ---- tensors that decide statics ------------------------------------------------------------- */

static PipecKernel *find_other(PipecKernel *kernel, const PipecProgram *program) {
    pthread_mutex_lock(&kernel->lock);
    const Other *at = kernel->others;
    while (at != NULL && at->program != program) at = at->next;
    pthread_mutex_unlock(&kernel->lock);
    return at != NULL ? at->kernel : NULL;
}

typedef struct Deciding {
    PipecKernel *kernel;
    const DeviceArgument *arguments;
    Arena *words;
    PipecProgram *program; /* NULL: there is none */
    PipecDiagnostics *published;
    PipecKernel *loaded;
} Deciding;

static void add_other(void *data) {
    const Deciding *it = data;
    Other *other = NEW(it->kernel->arena, Other);
    *other = (Other){it->kernel->others, it->program, it->loaded};
    it->kernel->others = other;
}

static void decide(void *data) {
    Deciding *it = data;
    Diags *diags = diags_new(it->words, it->kernel->program->source);
    it->program = program_for(it->kernel->program, it->arguments, NULL, diags);
    it->published = diagnostics_publish(diags);
    it->published->arena = it->words;
}

/* Loads the kernel of a program that was not used on this device; NULL: an error */
static PipecKernel *load_other(PipecKernel *kernel, const DeviceArgument *arguments,
                               PipecStatus *status, PipecDiagnostics **diagnostics) {
    Deciding it = {.kernel = kernel, .arguments = arguments, .words = arena_new()};
    *status = PIPEC_UNUSABLE;
    if (it.words == NULL || !attempt(it.words, decide, &it))
        it.published = (PipecDiagnostics *)&no_memory;
    diagnostics_hand_over(it.words, it.published, diagnostics);
    if (it.program == NULL || it.program == kernel->program) return it.program ? kernel : NULL;
    *status = pipec_kernel_load(it.program, kernel->info.ordinal, &it.loaded, diagnostics);
    if (it.loaded == NULL) return NULL;
    pthread_mutex_lock(&kernel->lock);
    bool added = attempt(kernel->arena, add_other, &it);
    pthread_mutex_unlock(&kernel->lock);
    if (added) return it.loaded;
    pipec_kernel_free(it.loaded);
    if (diagnostics != NULL) *diagnostics = (PipecDiagnostics *)&no_memory;
    return NULL;
}

static PipecKernel *kernel_for(PipecKernel *kernel, const DeviceArgument *arguments,
                               PipecStatus *status, PipecDiagnostics **diagnostics) {
    PipecProgram *program = kernel->program;
    if (program->siblings == NULL) return kernel;
    PipecProgram *known = program_known_for(program, arguments, NULL);
    if (known == program) return kernel;
    PipecKernel *other = known != NULL ? find_other(kernel, known) : NULL;
    return other != NULL ? other : load_other(kernel, arguments, status, diagnostics);
}

PIPEC_API PipecStatus pipec_kernel_launch(PipecKernel *kernel, const PipecLaunch *given,
                                          PipecDiagnostics **diagnostics) {
    size_t parameters = kernel->program->manifest->parameters.count;
    DeviceArgument arguments[parameters + 1];
    PipecLaunch launch;
    Call call = {.kernel = kernel, .given = given, .launch = &launch};
    if (size_read(&launch, sizeof launch, given) && launch.count == parameters &&
        arguments_read(launch.arguments, launch.argument_size, parameters, arguments)) {
        call.how = how_of(&launch);
        if (diagnostics != NULL) *diagnostics = NULL;
        call.kernel = kernel_for(kernel, arguments, &call.status, diagnostics);
        if (call.kernel != NULL && call.kernel->server != NULL) {
            Served served = server_find(call.kernel->server, arguments, launch.multiprocessors,
                                        &call.status, diagnostics);
            call.kernel = served.kernel;
            call.how.programmatic |= served.is_short && !launch.ordered;
        }
        if (call.kernel == NULL) return call.status;
        if (launch_types(call.kernel->program->manifest, arguments, NULL) &&
            runtime_launch_again(call.kernel->loaded, arguments, &call.how))
            return PIPEC_FINE;
        call.arguments = arguments;
    }
    return launch_with_words(&call, diagnostics);
}
