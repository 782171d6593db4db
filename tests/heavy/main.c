/* heavy-test [--count N] [--seed S] [--only SEED] [--jobs N] [--write DIR]
 *
 * Draws texts of less than 100 kB (heavy.h) and compiles each in a process of its own: as `pipec
 * check` does, with all combinations of the statics, and its first kernel as `pipec build` does, if
 * the check did not refuse it. Each of both must take less than 2 s of processor time and 200 MB,
 * and may not end by a signal or report a bug. A text that takes longer is tried again twice,
 * because the machine may be busy. Prints the slowest and the largest text; --only prints the text
 * of a seed before its figures. */
#include "include/pipec.h"
#include "tests/heavy/heavy.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define COUNT  20
#define SLOWER 20 /* slowdown by the sanitizers */
#else
#define COUNT  150
#define SLOWER 1
#endif
#define SECONDS_MOST (2.0 * SLOWER)
#define MEGA_MOST    (200L * SLOWER)
#define SECONDS_STOP (30 * SLOWER) /* a process that takes so long is killed */
#define TRIES        3
#define JOBS_MOST    64

typedef enum Step { CHECK, BUILD, STEPS } Step;
static const char *const step_names[STEPS] = {"check", "build"};

/* What one process found, in memory that it shares with its parent */
typedef struct Found {
    double seconds;
    long mega;
    int status;       /* a PipecStatus */
    char kernel[200]; /* the first one; empty: there is none */
} Found;

typedef struct Extreme {
    double value;
    uint64_t seed;
    size_t length;
} Extreme;

/* Of one job, shared with the parent */
typedef struct Totals {
    int texts, failed, statuses[PIPEC_INCOMPLETE + 1], tenths; /* tenths: took more than 0.1 s */
    Extreme slowest[STEPS], largest[STEPS];
    double seconds, bytes;
    Found found;
    size_t length;
    char text[LENGTH_MOST];
} Totals;

typedef struct Options {
    uint64_t count, seed;
    int jobs;
    bool only;
    const char *folder;
    Corpus corpus;
} Options;

/* ---- one text -------------------------------------------------------------------------------- */

static void compile(Totals *totals, Step step) {
    PipecOptions options = {.size = sizeof options, .name = "heavy.pipe", .folder = "kernels"};
    options.check_only = step == CHECK;
    options.kernel = step == BUILD ? totals->found.kernel : NULL;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    PipecProgram *program = pipec_compile(totals->text, totals->length, &options);
    getrusage(RUSAGE_SELF, &after);
    const struct timeval *a = &before.ru_utime, *b = &after.ru_utime, *c = &before.ru_stime,
                         *d = &after.ru_stime;
    const char *kernel = pipec_program_kernel(program, 0);
    Found found = {
        .seconds = (double)(b->tv_sec - a->tv_sec + d->tv_sec - c->tv_sec) +
                   (double)(b->tv_usec - a->tv_usec + d->tv_usec - c->tv_usec) * 1e-6,
        .mega = after.ru_maxrss / 1024,
        .status = (int)pipec_program_status(program),
    };
    snprintf(found.kernel, sizeof found.kernel, "%s", kernel != NULL ? kernel : "");
    totals->found = found;
    pipec_program_free(program);
}

static void draw_text(const Options *options, Totals *totals, uint64_t seed) {
    Arena *arena = arena_new();
    Str text = draw_heavy(arena, &options->corpus, seed);
    memcpy(totals->text, text.text, text.length);
    totals->length = text.length;
    arena_free(arena);
}

/* In a process of its own, so that its memory is known; false: it ended by a signal */
static bool alone(const Options *options, Totals *totals, uint64_t seed, int step) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CPU, &(struct rlimit){SECONDS_STOP, SECONDS_STOP});
        if (step == STEPS)
            draw_text(options, totals, seed);
        else
            compile(totals, (Step)step);
        _exit(0);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void keep(Extreme *extreme, double value, uint64_t seed, size_t length) {
    if (value > extreme->value) *extreme = (Extreme){value, seed, length};
}

static void write_text(const Options *options, const Totals *totals, uint64_t seed) {
    char name[4096];
    if (options->folder == NULL) return;
    snprintf(name, sizeof name, "%s/heavy-%llu.pipe", options->folder, (unsigned long long)seed);
    FILE *file = fopen(name, "wb");
    if (file == NULL) return;
    fwrite(totals->text, 1, totals->length, file);
    fclose(file);
}

static bool is_fine(const Found *found) {
    return found->seconds < SECONDS_MOST && found->mega < MEGA_MOST && found->status != PIPEC_BUG;
}

/* False: it failed */
static bool try_step(const Options *options, Totals *totals, uint64_t seed, Step step) {
    Found best = {0};
    bool ends = true;
    for (int i = 0; i < TRIES && (i == 0 || !is_fine(&best)) && ends; i++) {
        ends = alone(options, totals, seed, (int)step);
        if (i == 0 || totals->found.seconds < best.seconds) best = totals->found;
    }
    totals->found = best;
    keep(&totals->slowest[step], best.seconds, seed, totals->length);
    keep(&totals->largest[step], (double)best.mega, seed, totals->length);
    totals->seconds += best.seconds;
    totals->tenths += best.seconds > 0.1;
    if (options->only)
        fprintf(stderr, "%s: %.3f s, %ld MB, status %d\n", step_names[step], best.seconds,
                best.mega, best.status);
    if (ends && is_fine(&best)) return true;
    printf("seed %llu: %s of %zu bytes: %s, %.3f s, %ld MB, status %d\n", (unsigned long long)seed,
           step_names[step], totals->length, ends ? "ends" : "a signal ends it", best.seconds,
           best.mega, best.status);
    write_text(options, totals, seed);
    return false;
}

static void try_text(const Options *options, Totals *totals, uint64_t seed) {
    totals->texts++;
    if (!alone(options, totals, seed, STEPS)) {
        printf("seed %llu: it is not drawn\n", (unsigned long long)seed);
        totals->failed++;
        return;
    }
    totals->bytes += (double)totals->length;
    if (options->only) fwrite(totals->text, 1, totals->length, stdout);
    bool fine = try_step(options, totals, seed, CHECK);
    int status = totals->found.status;
    totals->statuses[status <= PIPEC_INCOMPLETE ? status : PIPEC_BUG]++;
    bool builds = fine && totals->found.kernel[0] != '\0';
    if (builds && (status == PIPEC_FINE || status == PIPEC_INCOMPLETE))
        fine = try_step(options, totals, seed, BUILD);
    totals->failed += !fine;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void read_file(Arena *arena, const char *path, Corpus *out) {
    struct stat status;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &status) != 0) return;
    char *text = arena_alloc(arena, (size_t)status.st_size + 1);
    size_t count = fread(text, 1, (size_t)status.st_size, file);
    fclose(file);
    if (count == 0 || strlen(text) != count) return;
    const char *expected =
        arena_printf(arena, "%.*s.err", (int)(strlen(path) - strlen(".pipe")), path);
    bool right = access(expected, F_OK) != 0 && strncmp(path, "tests/known", 11) != 0;
    vec_push(arena, right ? &out->right : &out->wrong, text);
}

static void read_folder(Arena *arena, const char *folder, Corpus *out) {
    DIR *dir = opendir(folder);
    if (dir == NULL) return;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        const char *path = arena_printf(arena, "%s/%s", folder, entry->d_name);
        size_t length = strlen(path);
        struct stat status;
        if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) read_folder(arena, path, out);
        if (length > 5 && strcmp(path + length - 5, ".pipe") == 0) read_file(arena, path, out);
    }
    closedir(dir);
}

/* The order in a folder differs between machines. */
static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void read_corpus(Arena *arena, Corpus *out) {
    static const char *const folders[] = {"examples",  "kernels",      "tests/check",
                                          "tests/run", "tests/corpus", "tests/known"};
    for (size_t i = 0; i < COUNT_OF(folders); i++) read_folder(arena, folders[i], out);
    for (int i = 0; i < 2; i++) {
        Texts *texts = i == 0 ? &out->right : &out->wrong;
        if (texts->count > 0) qsort(texts->items, texts->count, sizeof *texts->items, by_text);
    }
}

static void add(Totals *to, const Totals *from) {
    to->texts += from->texts, to->failed += from->failed, to->tenths += from->tenths;
    to->seconds += from->seconds, to->bytes += from->bytes;
    for (int i = 0; i <= PIPEC_INCOMPLETE; i++) to->statuses[i] += from->statuses[i];
    for (int s = 0; s < STEPS; s++) {
        const Extreme *slow = &from->slowest[s], *large = &from->largest[s];
        keep(&to->slowest[s], slow->value, slow->seed, slow->length);
        keep(&to->largest[s], large->value, large->seed, large->length);
    }
}

static void print(const Totals *all) {
    printf("%d texts of %.1f kB on average: %d accepted, %d refused, %d undecided; %d steps took "
           "more than 0.1 s\n",
           all->texts, all->bytes / (all->texts > 0 ? all->texts : 1) / 1000,
           all->statuses[PIPEC_FINE], all->statuses[PIPEC_REFUSED], all->statuses[PIPEC_INCOMPLETE],
           all->tenths);
    for (int s = 0; s < STEPS; s++) {
        const Extreme *slow = &all->slowest[s], *large = &all->largest[s];
        printf("%s: at most %.3f s, by seed %llu (%zu bytes), and %.0f MB, by seed %llu (%zu "
               "bytes)\n",
               step_names[s], slow->value, (unsigned long long)slow->seed, slow->length,
               large->value, (unsigned long long)large->seed, large->length);
    }
    printf("%d passed, %d failed\n", all->texts - all->failed, all->failed);
}

static bool read_options(int argc, char **argv, Options *options) {
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--count") == 0)
            options->count = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            options->seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--only") == 0)
            options->only = true, options->count = 1, options->seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--jobs") == 0)
            options->jobs = atoi(value);
        else if (strcmp(argv[i], "--write") == 0)
            options->folder = value;
        else
            return false;
    }
    if (options->jobs < 1 || options->jobs > JOBS_MOST) options->jobs = 1;
    return true;
}

int main(int argc, char **argv) {
    Options options = {.count = COUNT, .seed = 1, .jobs = 1};
    if (!read_options(argc, argv, &options)) {
        fprintf(stderr, "usage: heavy-test [--count N] [--seed S] [--only SEED] [--jobs N] "
                        "[--write DIR]\n");
        return 2;
    }
    Arena *arena = arena_new();
    read_corpus(arena, &options.corpus);
    size_t bytes = sizeof(Totals) * (size_t)(options.jobs + 1);
    Totals *totals = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (totals == MAP_FAILED || options.corpus.right.count == 0) return 2;
    for (int job = 0; job < options.jobs; job++) {
        fflush(NULL);
        if (fork() != 0) continue;
        for (uint64_t i = (uint64_t)job; i < options.count; i += (uint64_t)options.jobs)
            try_text(&options, &totals[job], options.seed + i);
        fflush(NULL);
        _exit(0);
    }
    int failed = 0, status;
    while (wait(&status) > 0) failed += status != 0;
    for (int job = 0; job < options.jobs; job++) add(&totals[options.jobs], &totals[job]);
    print(&totals[options.jobs]);
    failed += totals[options.jobs].failed;
    munmap(totals, bytes);
    arena_free(arena);
    return failed > 0;
}
