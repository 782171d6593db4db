/* The test driver: tests-driver [--gpu|--no-gpu] [--bless] [--known] [--filter TEXT] [--first]
 * [--jobs N] [--schedules N] [--taken FOLDER] SUITE.. (`all`: each). --first: stops after the first
 * failed item. --schedules: each run on the emulator takes place on N schedules, or more.
 * --taken: suite `assemble` keeps the texts there that ptxas has taken.
 *
 * Runs in the repository's root and needs only its files and, for suite `assemble`, ptxas. Items
 * are distributed over processes, so that a crash is one failure of one item. Items that use a
 * GPU run in one process, which opens it once. Prints failures in full; the last line is "N
 * passed, N failed[, N skipped]". */
#include "runtime/runtime.h"
#include "tests/driver/suite.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS_MAX    64
#define SECONDS_MAX (SANITIZED ? 600 : 120) /* per item */

static const Suite *const suites[] = {&suite_parse, &suite_check,    &suite_codes,    &suite_docs,
                                      &suite_ptx,   &suite_assemble, &suite_examples, &suite_run,
                                      &suite_known, &suite_corpus,   &suite_habits};

typedef struct Options {
    bool bless, gpu, no_gpu, known, first;
    const char *filter, *taken;
    int jobs, schedules;
    bool wanted[COUNT_OF(suites)];
} Options;

typedef struct Item {
    const Suite *suite;
    const char *name;
} Item;

typedef VEC(Item) Queue;

/* Shared by the processes */
typedef struct Shared {
    atomic_size_t next; /* next item */
    struct Worker {
        size_t item; /* current item; count of items if idle */
        Tally tally;
    } workers[JOBS_MAX];
} Shared;

bool expect(Test *test, bool fine, const char *format, ...) {
    if (fine) {
        test->tally.passed++;
        return true;
    }
    test->tally.failed++;
    va_list args;
    va_start(args, format);
    str_printf(&test->out, "%s: ", test->item);
    str_vprintf(&test->out, format, args);
    va_end(args);
    if (test->out.text[test->out.length - 1] != '\n') str_char(&test->out, '\n');
    return false;
}

static void add(Tally *to, const Tally *from) {
    to->passed += from->passed;
    to->failed += from->failed;
    to->skipped += from->skipped;
    to->known += from->known;
}

static void run_item(const Item *item, const Options *options, bool gpu, Tally *tally) {
    Arena *arena = arena_new();
    Test test = {.arena = arena,
                 .item = item->name,
                 .bless = options->bless,
                 .gpu = gpu,
                 .show_known = options->known,
                 .schedules = options->schedules,
                 .taken = options->taken,
                 .out = str_new(arena)};
#ifdef PIPEC_WITHOUT
    setenv("PIPEC_ITEM", item->name, 1);
#endif
    alarm(gpu || options->schedules > 1 ? 600 : SECONDS_MAX);
    item->suite->run(&test);
    alarm(0);
    if (test.out.length) {
        fwrite(test.out.text, 1, test.out.length, stdout);
        fflush(stdout);
    }
    add(tally, &test.tally);
    arena_free(arena);
}

/* ---- the GPU --------------------------------------------------------------------------------- */

static Runtime *open_gpu(Arena *arena, const char **why) {
    RuntimeLack lack;
    return runtime_open(arena, -1, "sm_90a", 8, 0, &lack, why);
}

/* Says which GPU there is, in a process of its own: a process that has opened one cannot fork
 * others that use it. */
static void name_gpu(const Options *options) {
    Arena *arena = arena_new();
    const char *why = "out of memory";
    Runtime *runtime = arena ? open_gpu(arena, &why) : NULL;
    if (runtime)
        printf("gpu: %s\n", runtime_device_name(runtime));
    else if (options->gpu)
        printf("gpu: FAILED, %s\n", why);
    else
        printf("gpu: SKIPPED, programs run on the emulator only: %s\n", why);
    fflush(stdout);
    _exit(runtime ? 0 : 1);
}

/* That there is none is counted. */
static bool find_gpu(const Options *options, Tally *tally) {
    if (options->no_gpu) return false;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) name_gpu(options);
    int status;
    if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    ++*(options->gpu ? &tally->failed : &tally->skipped);
    return false;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* With a GPU, the process opens it once; each of its runs uses its context. */
static pid_t start(Shared *shared, int which, const Queue *queue, const Options *options,
                   bool gpu) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0) return pid;
    struct Worker *me = &shared->workers[which];
    const char *why = "out of memory";
    Arena *arena = gpu ? arena_new() : NULL;
    if (gpu && (!arena || !open_gpu(arena, &why))) {
        printf("gpu: FAILED in a process of --jobs %d, %s\n", options->jobs, why);
        fflush(stdout);
        me->tally.failed++;
        atomic_store(&shared->next, queue->count);
    }
    for (;;) {
        size_t item = atomic_fetch_add(&shared->next, 1);
        me->item = item < queue->count ? item : queue->count;
        if (item >= queue->count) _exit(0);
        run_item(&queue->items[item], options, gpu, &me->tally);
        if (options->first && me->tally.failed) atomic_store(&shared->next, queue->count);
    }
}

static void run_queue(const Queue *queue, const Options *options, bool gpu, Tally *tally) {
    Shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("tests-driver");
        exit(2);
    }
    pid_t pids[JOBS_MAX];
    for (int i = 0; i < options->jobs; i++) pids[i] = start(shared, i, queue, options, gpu);
    for (int alive = options->jobs; alive > 0;) {
        int status;
        pid_t ended = wait(&status);
        if (ended < 0) break;
        int which = 0;
        while (which < options->jobs && pids[which] != ended) which++;
        if (which == options->jobs) continue;
        size_t item = shared->workers[which].item;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
            alive--;
            continue;
        }
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
            printf("%s: takes more than %d s\n", queue->items[item].name, SECONDS_MAX);
        else
            printf("%s: crashes (%s %d)\n", queue->items[item].name,
                   WIFSIGNALED(status) ? "signal" : "exit code",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        tally->failed++;
        if (options->first) atomic_store(&shared->next, queue->count);
        pids[which] = start(shared, which, queue, options, gpu);
    }
    for (int i = 0; i < options->jobs; i++) add(tally, &shared->workers[i].tally);
    munmap(shared, sizeof *shared);
}

static void list(Arena *arena, const Options *options, bool uses_gpu, Queue *queue) {
    for (size_t i = 0; i < COUNT_OF(suites); i++) {
        if (!options->wanted[i] || suites[i]->uses_gpu != uses_gpu) continue;
        Items items = {0};
        suites[i]->list(arena, &items);
        for (size_t k = 0; k < items.count; k++) {
            Item item = {suites[i], items.items[k]};
            size_t share = suites[i]->sanitized_share;
            if (SANITIZED && share && k % share != 0 && !options->filter) continue;
            if (!options->filter || strstr(item.name, options->filter))
                vec_push(arena, queue, item);
        }
    }
}

static Tally run_all(Arena *arena, const Options *options) {
    Tally tally = {0};
    Queue plain = {0}, running = {0};
    list(arena, options, false, &plain);
    list(arena, options, true, &running);
    run_queue(&plain, options, false, &tally);
    if ((options->first && tally.failed) || !running.count) return tally;
    bool gpu = find_gpu(options, &tally);
    run_queue(&running, options, gpu, &tally);
    return tally;
}

/* ---- the command line ------------------------------------------------------------------------ */

static int usage(void) {
    fprintf(stderr, "usage: tests-driver [--gpu|--no-gpu] [--bless] [--known] [--filter TEXT] "
                    "[--first] [--jobs N]\n"
                    "                    [--schedules N] [--taken FOLDER] SUITE..\n"
                    "suites: all");
    for (size_t i = 0; i < COUNT_OF(suites); i++) fprintf(stderr, " %s", suites[i]->name);
    fprintf(stderr, "\n");
    return 2;
}

static bool want(Options *options, const char *name) {
    bool all = strcmp(name, "all") == 0, found = all;
    for (size_t i = 0; i < COUNT_OF(suites); i++) {
        if (!all && strcmp(name, suites[i]->name) != 0) continue;
        options->wanted[i] = true;
        found = true;
    }
    return found;
}

int main(int argc, char **argv) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    Options options = {.jobs = processors < 1          ? 1
                               : processors > JOBS_MAX ? JOBS_MAX
                                                       : (int)processors};
    bool any = false;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--bless") == 0)
            options.bless = true;
        else if (strcmp(argv[i], "--known") == 0)
            options.known = true;
        else if (strcmp(argv[i], "--first") == 0)
            options.first = true;
        else if (strcmp(argv[i], "--gpu") == 0)
            options.gpu = true;
        else if (strcmp(argv[i], "--no-gpu") == 0)
            options.no_gpu = true;
        else if (strcmp(argv[i], "--filter") == 0 && more)
            options.filter = argv[++i];
        else if (strcmp(argv[i], "--taken") == 0 && more)
            options.taken = argv[++i];
        else if (strcmp(argv[i], "--jobs") == 0 && more)
            options.jobs = atoi(argv[++i]);
        else if (strcmp(argv[i], "--schedules") == 0 && more)
            options.schedules = atoi(argv[++i]);
        else if (want(&options, argv[i]))
            any = true;
        else
            return usage();
    }
    if (!any || options.jobs < 1 || options.jobs > JOBS_MAX) return usage();
    Arena *arena = arena_new();
    if (!arena) return 2;
    Tally tally = run_all(arena, &options);
    arena_free(arena);
    if (tally.known) printf("known failures left: %d (--known shows them)\n", tally.known);
    printf("%d passed, %d failed", tally.passed, tally.failed);
    if (tally.skipped) printf(", %d skipped", tally.skipped);
    printf("\n");
    return tally.failed > 0;
}
