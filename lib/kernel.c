/* lib: a program on a GPU, launched with the caller's device pointers on the caller's stream. A
 * program keeps the kernels that were loaded from it, one per device, and counts their users; its
 * lock protects that list. Any number of threads may launch one kernel. If its variant or statics
 * are open, a server finds the kernel for each launch. */
#include "lib/kernel.h"

#include "lib/cubins.h"
#include "lib/targets.h"

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
    struct Other *others; /* servers of siblings of the program, on this device */
    bool is_served;       /* a server has loaded it: it has none itself */
    size_t users;
    bool is_first; /* the device is the first capable one */
    PipecKernelInfo info;
    PipecKernel *next; /* of the program */
};

typedef struct Other {
    struct Other *next;
    const PipecProgram *program;
    Server *server;
} Other;

/* ---- loading --------------------------------------------------------------------------------- */

typedef struct Load {
    PipecProgram *program;
    int device;
    Arena *arena, *words; /* of the kernel, and of its diagnostics */
    PipecKernel *kernel;  /* NULL: it failed */
    bool shared;          /* it was loaded before */
    bool is_served;       /* as of the kernel */
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
    *it->kernel =
        (PipecKernel){.arena = it->arena, .program = it->program, .is_served = it->is_served};
    pthread_mutex_init(&it->kernel->lock, NULL); /* cannot fail: no attributes */
}

static void unload(PipecKernel *kernel) {
    server_unload(kernel->server);
    for (const Other *at = kernel->others; at != NULL; at = at->next) server_free(at->server);
    pthread_mutex_destroy(&kernel->lock);
    server_free(kernel->server);
    runtime_unload(kernel->loaded);
    runtime_close(kernel->runtime);
    arena_free(kernel->arena);
}

static PipecKernel *find_loaded(const PipecProgram *program, int device, bool is_served) {
    for (PipecKernel *kernel = program->loaded; kernel != NULL; kernel = kernel->next)
        if (kernel->is_served == is_served &&
            (device < 0 ? kernel->is_first : kernel->info.ordinal == device))
            return kernel;
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
                                     .target = kernel->program->manifest->target,
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
    Cubin cubin = {0};
    if (runtime_takes_cubin(it->kernel->runtime, program->manifest->target))
        cubin =
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
    PipecKernel *same = find_loaded(program, runtime_ordinal(it->kernel->runtime), it->is_served);
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

static PipecStatus load_served(PipecProgram *program, int device, PipecKernel **kernel,
                               PipecDiagnostics **diagnostics);
static bool is_captured(const PipecKernel *kernel) { return runtime_is_captured(kernel->loaded); }

static void serve(Load *it, Diags *diags) {
    PipecKernel *kernel = it->kernel;
    const PipecProgram *program = it->program;
    if (it->shared || kernel->loaded == NULL || it->is_served || program->untuned ||
        (program->siblings == NULL && !family_is_open(program)))
        return;
    ServerDevice device = {.facts = runtime_facts(kernel->runtime),
                           .ordinal = runtime_ordinal(kernel->runtime)};
    static const Loader loader = {load_served, pipec_kernel_free, is_captured};
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

static void find_target(void *data) {
    Load *it = data;
    RuntimeLack lack;
    const char *why;
    PipecProgram *program = targets_on(it->program, it->device, it->words, &lack, &why);
    if (program == NULL && why == NULL) arena_fail(it->words);
    if (program != NULL) {
        it->program = program;
        return;
    }
    Diags *diags = diags_new(it->words, it->program->source);
    diag_plain(diags, P0800, "no GPU can be used: %s", why);
    it->status = PIPEC_UNUSABLE;
    it->published = diagnostics_publish(diags);
    it->published->arena = it->words;
}

static void load_or_share(Load *it) {
    /* a server loads for the device that its program is for */
    if (!it->is_served && !attempt(it->words, find_target, it)) out_of_memory(it);
    if (it->status != PIPEC_FINE) return;
    PipecProgram *program = it->program;
    if (program->manifest == NULL) {
        it->status = program_unusable(program, it->words, &it->published);
        return;
    }
    pthread_mutex_lock(&program->lock);
    it->kernel = find_loaded(program, it->device, it->is_served);
    if (it->kernel != NULL)
        it->kernel->users++;
    else
        load_new(it);
    pthread_mutex_unlock(&program->lock);
}

static PipecStatus load_kernel(Load it, PipecKernel **kernel, PipecDiagnostics **diagnostics) {
    it.words = arena_new();
    if (it.words == NULL)
        out_of_memory(&it);
    else
        load_or_share(&it);
    *kernel = it.kernel;
    diagnostics_hand_over(it.words, it.published, diagnostics);
    return it.status;
}

static PipecStatus load_served(PipecProgram *program, int device, PipecKernel **kernel,
                               PipecDiagnostics **diagnostics) {
    Load it = {.program = program, .device = device, .is_served = true};
    return load_kernel(it, kernel, diagnostics);
}

PIPEC_API PipecStatus pipec_kernel_load(PipecProgram *program, int device, PipecKernel **kernel,
                                        PipecDiagnostics **diagnostics) {
    return load_kernel((Load){.program = program, .device = device}, kernel, diagnostics);
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
    PipecKernelInfo now = kernel->info;
    now.variants_loaded = now.variants_most = 1;
    now.variants_captured = is_captured(kernel);
    if (kernel->server != NULL)
        server_count(kernel->server, &now.variants_loaded, &now.variants_captured,
                     &now.variants_most);
    return size_write(info, &now, sizeof now);
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

/* The same after a load, whose warnings *diagnostics may have */
static void launch_new(Call *call, PipecDiagnostics **diagnostics) {
    PipecDiagnostics *before = diagnostics != NULL ? *diagnostics : NULL;
    launch_with_words(call, diagnostics);
    if (diagnostics != NULL && *diagnostics == NULL)
        *diagnostics = before;
    else
        pipec_diagnostics_free(before);
}

/* ---- tensors that decide statics ------------------------------------------------------------- */

/* Needs the lock of the list */
static Server *look_up(const PipecKernel *kernel, const PipecProgram *program) {
    const Other *at = kernel->others;
    while (at != NULL && at->program != program) at = at->next;
    return at != NULL ? at->server : NULL;
}

static Server *find_other(PipecKernel *kernel, const PipecProgram *program) {
    pthread_mutex_lock(&kernel->lock);
    Server *server = look_up(kernel, program);
    pthread_mutex_unlock(&kernel->lock);
    return server;
}

typedef struct Deciding {
    PipecKernel *kernel;
    const DeviceArgument *arguments;
    Arena *words;
    PipecProgram *program; /* NULL: there is none */
    PipecDiagnostics *published;
    Server *server;
} Deciding;

static void decide(void *data) {
    Deciding *it = data;
    Diags *diags = diags_new(it->words, it->kernel->program->source);
    it->program = program_for(it->kernel->program, it->arguments, NULL, diags);
    it->published = diagnostics_publish(diags);
    it->published->arena = it->words;
}

/* Unless another thread was faster */
static void add_other(void *data) {
    Deciding *it = data;
    it->server = look_up(it->kernel, it->program);
    if (it->server != NULL) return;
    Other *other = NEW(it->kernel->arena, Other);
    it->server = server_of_sibling(it->kernel->server, it->program);
    if (it->server == NULL) arena_fail(it->kernel->arena);
    *other = (Other){it->kernel->others, it->program, it->server};
    it->kernel->others = other;
}

static bool find_or_add_other(Deciding *it) {
    pthread_mutex_lock(&it->kernel->lock);
    bool added = attempt(it->kernel->arena, add_other, it);
    pthread_mutex_unlock(&it->kernel->lock);
    return added;
}

/* The server of a program that was not used on this device; NULL: an error */
static Server *new_other(PipecKernel *kernel, const DeviceArgument *arguments, PipecStatus *status,
                         PipecDiagnostics **diagnostics) {
    Deciding it = {.kernel = kernel, .arguments = arguments, .words = arena_new()};
    *status = PIPEC_UNUSABLE;
    if (it.words == NULL || !attempt(it.words, decide, &it))
        it.published = (PipecDiagnostics *)&no_memory;
    diagnostics_hand_over(it.words, it.published, diagnostics);
    if (it.program == NULL || it.program == kernel->program)
        return it.program ? kernel->server : NULL;
    if (find_or_add_other(&it)) return it.server;
    if (diagnostics != NULL) *diagnostics = (PipecDiagnostics *)&no_memory;
    return NULL;
}

/* NULL: an error */
static Server *server_for(PipecKernel *kernel, const DeviceArgument *arguments, PipecStatus *status,
                          PipecDiagnostics **diagnostics) {
    PipecProgram *program = kernel->program;
    if (program->siblings == NULL) return kernel->server;
    const PipecProgram *known = program_known_for(program, arguments, NULL);
    if (known == program) return kernel->server;
    Server *other = known != NULL ? find_other(kernel, known) : NULL;
    return other != NULL ? other : new_other(kernel, arguments, status, diagnostics);
}

PipecProgram *kernel_program(const PipecKernel *kernel) { return kernel->program; }

bool kernel_server(PipecKernel *kernel, PipecProgram *program, Server **server) {
    Deciding it = {.kernel = kernel, .program = program, .server = kernel->server};
    bool found = program == kernel->program || find_or_add_other(&it);
    *server = it.server;
    return found;
}

/* Finds the kernel of the call; NULL: an error */
static Served find_kernel(Call *call, PipecDiagnostics **diagnostics) {
    const PipecLaunch *launch = call->launch;
    Served served = {.kernel = call->kernel};
    if (diagnostics != NULL) *diagnostics = NULL;
    if (call->kernel->server == NULL) return served;
    Server *server = server_for(call->kernel, call->arguments, &call->status, diagnostics);
    if (server == NULL) return (Served){0};
    served =
        server_find(server, call->arguments, launch->multiprocessors, &call->status, diagnostics);
    call->how.programmatic |= served.is_short && !launch->ordered;
    return served;
}

PIPEC_API PipecStatus pipec_kernel_launch(PipecKernel *kernel, const PipecLaunch *given,
                                          PipecDiagnostics **diagnostics) {
    size_t parameters = kernel->program->manifest->parameters.count;
    DeviceArgument arguments[parameters + 1];
    PipecLaunch launch;
    Call call = {.kernel = kernel, .given = given, .launch = &launch};
    if (!size_read(&launch, sizeof launch, given) || launch.count != parameters ||
        !arguments_read(launch.arguments, launch.argument_size, parameters, arguments))
        return launch_with_words(&call, diagnostics);
    call.arguments = arguments;
    call.how = how_of(&launch);
    Served served = find_kernel(&call, diagnostics);
    call.kernel = served.kernel;
    if (call.kernel == NULL) return call.status;
    if (launch_types(call.kernel->program->manifest, arguments, NULL) &&
        runtime_launch_again(call.kernel->loaded, arguments, &call.how))
        call.status = PIPEC_FINE;
    else
        launch_new(&call, diagnostics);
    server_release(&served);
    return call.status;
}
