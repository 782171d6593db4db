/* lib: what launches of some shapes will need, loaded before them: shapes -> loaded kernels.
 * Several threads choose, compile and load; the caller's thread reports the progress. */
#include "lib/kernel.h"

#include <string.h>
#include <unistd.h>

#define THREADS_MOST 8

typedef struct Preparing {
    PipecKernel *kernel;
    const PipecPrepareOptions *options;
    pthread_mutex_t lock; /* of the members below */
    pthread_cond_t changed;
    size_t next, done; /* shapes that were begun, and that have ended */
    bool ends;         /* the caller, or an error, ends it */
    PipecStatus status;
    PipecDiagnostics *diagnostics; /* of the first error */
    const Slot **used;             /* by shape */
} Preparing;

/* ---- one shape ------------------------------------------------------------------------------- */

typedef struct Shape {
    Preparing *all;
    size_t index;
    PipecRunOptions options;
    Arena *words;
    Diags *diags;
    Server *server; /* NULL: nothing is chosen */
    PipecProgram *program;
    DeviceArgument *arguments; /* NULL: an error */
    Served served;
    PipecDiagnostics *published;
} Shape;

/* Every extent must be given: a launch has no `example`. */
static bool are_given(const Manifest *manifest, const Argument *given, size_t count) {
    for (size_t i = 0; i < manifest->symbols.count; i++) {
        bool found = !manifest->symbols.items[i].is_extent;
        for (size_t k = 0; k < count && !found; k++)
            found = strcmp(given[k].name, manifest->symbols.items[i].name) == 0;
        if (!found) return false;
    }
    return true;
}

static bool set_arguments(Shape *it) {
    Arena *arena = it->words;
    const Manifest *manifest = it->program->manifest;
    Argument *given;
    size_t count;
    int64_t *symbols = NEW_ARRAY(arena, int64_t, manifest->symbols.count + 1);
    if (!run_words(arena, it->program, &it->options, &given, &count, it->diags)) return false;
    bool fine = are_given(manifest, given, count)
                    ? reference_symbols(arena, it->program->prog, manifest, given, count, symbols,
                                        it->diags)
                    : launch_symbols(arena, manifest, given, count, symbols, it->diags);
    if (!fine) return false;
    it->arguments = NEW_ARRAY(arena, DeviceArgument, manifest->parameters.count + 1);
    if (family_arguments(manifest, symbols, it->arguments)) return true;
    diag_plain(it->diags, P0609, "an extent of `%s` does not fit 64 bits", manifest->kernel);
    it->arguments = NULL;
    return false;
}

static void read_shape(void *data) {
    Shape *it = data;
    const PipecPrepareOptions *options = it->all->options;
    PipecProgram *program = kernel_program(it->all->kernel);
    const char *at = (const char *)options->shapes + it->index * options->shape_size;
    it->diags = diags_new(it->words, program->source);
    if (!size_read(&it->options, sizeof it->options, at)) {
        size_report(it->diags, "PipecRunOptions", sizeof it->options, at);
        return;
    }
    it->program = program_for_words(program, &it->options, it->words, it->diags);
    if (it->program == NULL || !set_arguments(it)) return;
    if (!kernel_server(it->all->kernel, it->program, &it->server)) arena_fail(it->words);
}

/* Refused as a launch would be */
static void check(Shape *it) {
    const Manifest *manifest = kernel_program(it->served.kernel)->manifest;
    int64_t tiles, *symbols = NEW_ARRAY(it->words, int64_t, manifest->symbols.count + 1);
    (void)launch_bind(manifest, it->arguments, symbols, &tiles, it->diags);
}

static void conclude(void *data) {
    Shape *it = data;
    Words words = value_words(it->words, it->options.values, it->options.value_count,
                              it->options.numbers, it->options.number_count);
    if (it->arguments != NULL) check(it);
    if (it->diags->errors == 0) return;
    diag_note(it->diags, it->diags->items.items[0], "the shape is %s",
              statics_text(it->words, words.items, words.count));
    it->published = diagnostics_publish(it->diags);
    it->published->arena = it->words;
}

/* it->published: the errors, or NULL: warnings of a load are left to launches */
static PipecStatus prepare_shape(Shape *it) {
    PipecStatus status = PIPEC_UNUSABLE;
    it->published = (PipecDiagnostics *)&no_memory;
    if (it->words == NULL || !attempt(it->words, read_shape, it)) return status;
    it->served.kernel = it->all->kernel;
    it->published = NULL;
    if (it->server != NULL)
        it->served = server_find(it->server, it->arguments, 0, &status, &it->published);
    if (it->served.kernel == NULL) return status;
    it->all->used[it->index] = it->served.slot;
    pipec_diagnostics_free(it->published);
    it->published = NULL;
    if (!attempt(it->words, conclude, it)) it->published = (PipecDiagnostics *)&no_memory;
    server_release(&it->served);
    return it->published == NULL ? PIPEC_FINE : PIPEC_UNUSABLE;
}

/* The first error ends all. */
static void finish(Shape *it, PipecStatus status) {
    Preparing *all = it->all;
    bool holds_words = it->published != NULL && it->published->arena == it->words;
    if (!holds_words) arena_free(it->words);
    pthread_mutex_lock(&all->lock);
    all->done++;
    if (status != PIPEC_FINE && all->status == PIPEC_FINE) {
        all->status = status;
        all->diagnostics = it->published;
        all->ends = true;
        it->published = NULL;
    }
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
    pipec_diagnostics_free(it->published);
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool take(Preparing *all, size_t *index) {
    pthread_mutex_lock(&all->lock);
    bool more = !all->ends && all->next < all->options->shape_count;
    if (more) *index = all->next++;
    pthread_mutex_unlock(&all->lock);
    return more;
}

static void *work(void *data) {
    Preparing *all = data;
    size_t index;
    while (take(all, &index)) {
        Shape shape = {.all = all, .index = index, .words = arena_new()};
        finish(&shape, prepare_shape(&shape));
    }
    return NULL;
}

static size_t thread_count(const PipecPrepareOptions *options) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = options->threads > 0 ? (size_t)options->threads
                   : processors > 0     ? (size_t)processors
                                        : 1;
    if (count > THREADS_MOST) count = THREADS_MOST;
    return count < options->shape_count ? count : options->shape_count;
}

/* Needs the lock, but not during the call */
static void report(Preparing *all, size_t shown) {
    const PipecPrepareOptions *options = all->options;
    if (options->progress == NULL) return;
    pthread_mutex_unlock(&all->lock);
    bool goes_on = options->progress(options->progress_data, shown, options->shape_count);
    pthread_mutex_lock(&all->lock);
    all->ends = all->ends || !goes_on;
}

/* Until all shapes that were begun have ended; the caller may end it between them. */
static void watch(Preparing *all) {
    size_t shown = 0;
    pthread_mutex_lock(&all->lock);
    while (shown < all->next || (!all->ends && all->next < all->options->shape_count)) {
        while (shown == all->done) pthread_cond_wait(&all->changed, &all->lock);
        shown = all->done;
        if (!all->ends) report(all, shown);
    }
    pthread_mutex_unlock(&all->lock);
}

static void run(Preparing *all) {
    pthread_t threads[THREADS_MOST];
    size_t wanted = thread_count(all->options), count = 0;
    while (count < wanted && pthread_create(&threads[count], NULL, work, all) == 0) count++;
    if (count == 0)
        (void)work(all);
    else
        watch(all);
    for (size_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static size_t count_used(const Preparing *all) {
    size_t count = 0;
    for (size_t i = 0; i < all->options->shape_count; i++) {
        size_t first = 0;
        while (all->used[first] != all->used[i]) first++;
        count += first == i && all->used[i] != NULL;
    }
    return count;
}

typedef struct Ending {
    Preparing *all;
    Arena *words;
} Ending;

/* What was loaded first may be unloaded again. */
static void warn(void *data) {
    Ending *it = data;
    const PipecProgram *program = kernel_program(it->all->kernel);
    PipecKernelInfo info = {.size = sizeof info};
    size_t used = count_used(it->all);
    Diags *diags = diags_new(it->words, program->source);
    diags_set_levels(diags, &program->levels);
    pipec_kernel_info(it->all->kernel, &info);
    if (used > info.variants_most) {
        Diag *diag = diag_plain(diags, P0930,
                                "these shapes of `%s` use %zu variants, of which at most %zu stay "
                                "loaded",
                                program->kernel, used, info.variants_most);
        diag_help(diags, diag, "compile it with a larger `loaded_most`");
    }
    it->all->diagnostics = diagnostics_publish(diags);
    it->all->diagnostics->arena = it->words;
    if (diags->errors > 0) it->all->status = PIPEC_REFUSED; /* it is denied */
}

static void begin(void *data) {
    Ending *it = data;
    it->all->used = NEW_ARRAY(it->words, const Slot *, it->all->options->shape_count + 1);
}

static void refuse(void *data) {
    Ending *it = data;
    const PipecProgram *program = kernel_program(it->all->kernel);
    Diags *diags = diags_new(it->words, program->source);
    if (program->prog == NULL)
        diag_plain(diags, P0922, "`%s` was loaded without its source, so that nothing is chosen",
                   program->kernel);
    else
        size_report(diags, "PipecPrepareOptions", sizeof *it->all->options, it->all->options);
    it->all->diagnostics = diagnostics_publish(diags);
    it->all->diagnostics->arena = it->words;
    it->all->status = PIPEC_UNUSABLE;
}

static void prepare(Preparing *all, Ending *ending) {
    pthread_mutex_init(&all->lock, NULL); /* neither can fail: no attributes */
    pthread_cond_init(&all->changed, NULL);
    run(all);
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->lock);
    if (all->status == PIPEC_FINE && !attempt(ending->words, warn, ending))
        all->status = PIPEC_UNUSABLE;
}

PIPEC_API PipecStatus pipec_kernel_prepare(PipecKernel *kernel, const PipecPrepareOptions *given,
                                           PipecDiagnostics **diagnostics) {
    PipecPrepareOptions options;
    Preparing all = {.kernel = kernel, .options = given};
    Ending ending = {.all = &all, .words = arena_new()};
    bool read = size_read(&options, sizeof options, given);
    if (read) all.options = &options;
    bool fine = ending.words != NULL && attempt(ending.words, begin, &ending);
    if (fine && read && kernel_program(kernel)->prog != NULL)
        prepare(&all, &ending);
    else if (fine)
        fine = attempt(ending.words, refuse, &ending);
    if (!fine) all.status = PIPEC_UNUSABLE;
    if (all.status != PIPEC_FINE && all.diagnostics == NULL)
        all.diagnostics = (PipecDiagnostics *)&no_memory;
    bool is_ours = all.diagnostics != NULL && all.diagnostics->arena == ending.words;
    diagnostics_hand_over(is_ours ? ending.words : NULL, all.diagnostics, diagnostics);
    if (!is_ours) arena_free(ending.words);
    return all.status;
}
