/* Candidates of a text that the cache keeps: a process that reads them chooses as the one that
 * compiled them, for any sizes; a file that is damaged, cut off, of another text or not trusted is
 * made again; any number of processes and threads may do so at once. With an argument: how long
 * both take. */
#define PIPEC_OWN_MEMORY
#include "lib/family.h"
#include "lib/store.h"

#include "tests/unit/expect.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/pipec-family-XXXXXX";

static const char text[] =
    "kernel copy(X: f32[N], out Y: f32[N]) for sm_90a {\n"
    "    static U = 64 in {32, 64, 2000000};\n"
    "    variant short {\n"
    "        requires N <= 1000;\n"
    "        static T = 64 in {64, 128};\n"
    "        grid (t: ceil(N, T));\n"
    "        role all: 4 warps { for t in grid { Y[t*T + i] = X[t*T + i] for i in 0 .. T; } }\n"
    "    }\n"
    "    variant long {\n"
    "        grid (t: ceil(N, U));\n"
    "        pipe p[2] load -> store { x: f32[U]; }\n"
    "        role load:  1 warp { for t in grid { produce <p> as s { s.x[i] = X[t*U + i]; } } }\n"
    "        role store: 1 warp { for t in grid { consume <p> as s { Y[t*U + i] = s.x[i]; } } }\n"
    "    }\n"
    "}\n";

static PipecProgram *compile_with(const char *source, const char *value, bool watchdog) {
    PipecOptions options = {.size = sizeof options,
                            .any_variant = true,
                            .values = &value,
                            .value_count = value != NULL,
                            .watchdog = watchdog};
    PipecProgram *program = pipec_compile(source, strlen(source), &options);
    EXPECT(pipec_program_status(program) == PIPEC_FINE);
    return program;
}

static PipecProgram *compile_file(const char *path) {
    PipecOptions options = {.size = sizeof options, .any_variant = true};
    PipecProgram *program = pipec_compile_file(path, &options);
    EXPECT(pipec_program_status(program) == PIPEC_FINE);
    return program;
}

static bool is_read(PipecProgram *program) { return family_of(program)->is_kept; }

/* ---- the same choices ------------------------------------------------------------------------ */

/* Arguments of a launch with random extents, most of them near tiles */
static bool draw(Arena *arena, const Manifest *manifest, DeviceArgument *arguments) {
    static const int64_t usual[] = {1, 8, 63, 64, 128, 1000, 4096, 16384};
    int64_t *symbols = NEW_ARRAY(arena, int64_t, manifest->symbols.count + 1);
    for (size_t i = 0; i < manifest->symbols.count; i++)
        symbols[i] = usual[rand() % 8] + (rand() % 2 == 0 ? 0 : rand() % 130);
    return family_arguments(manifest, symbols, arguments);
}

static bool same_text(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same_choice(const Family *a, const Family *b, const Chosen *x, const Chosen *y) {
    bool none = x->candidate == NULL || y->candidate == NULL;
    return none ? x->candidate == y->candidate
                : x->candidate - a->items == y->candidate - b->items &&
                      memcmp(&x->predicted.seconds, &y->predicted.seconds, sizeof(double)) == 0 &&
                      x->predicted.limit == y->predicted.limit &&
                      x->predicted.tiles == y->predicted.tiles;
}

static void choose_alike(const Family *a, const Family *b) {
    const Manifest *manifest = a->items[0].manifest;
    Chosen *all_a = calloc(a->count, sizeof *all_a), *all_b = calloc(a->count, sizeof *all_b);
    DeviceArgument *arguments = calloc(manifest->parameters.count + 1, sizeof *arguments);
    for (int round = 0; round < 60; round++) {
        Arena *words = arena_new();
        Wish wish = {.arguments = arguments,
                     .machine = machine_at((size_t)round % 2),
                     .multiprocessors = round % 7 == 0 ? 50 : 0};
        if (draw(words, manifest, arguments)) {
            if (round % 5 == 0) arguments[0].pointer += 4;
            (void)family_rate(a, &wish, words, all_a);
            (void)family_rate(b, &wish, words, all_b);
            Chosen x = family_best(a, all_a), y = family_best(b, all_b);
            EXPECT(same_choice(a, b, &x, &y));
            for (size_t i = 0; i < a->count; i++) EXPECT(same_text(all_a[i].why, all_b[i].why));
        }
        arena_free(words);
    }
    free(all_a), free(all_b), free(arguments);
}

static void compare(PipecProgram *made, PipecProgram *read) {
    const Family *a = family_of(made), *b = family_of(read);
    EXPECT(!is_read(made) && is_read(read));
    EXPECT(a->count == b->count && a->symbols == b->symbols &&
           same_text(a->key.source, b->key.source));
    for (size_t i = 0; i < a->count && a->count == b->count; i++) {
        const Candidate *x = &a->items[i], *y = &b->items[i];
        EXPECT(same_text(x->kernel, y->kernel) && same_text(x->values, y->values) &&
               same_text(x->why, y->why) && x->word_count == y->word_count &&
               (x->manifest == NULL) == (y->manifest == NULL));
        for (size_t w = 0; w < x->word_count; w++) EXPECT(same_text(x->words[w], y->words[w]));
    }
    if (a->count == b->count) choose_alike(a, b);
}

static void shipped(void) {
    static const char *const files[] = {"examples/gemm.pipe", "examples/softmax.pipe",
                                        "examples/attention.pipe", "kernels/linear.pipe"};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        PipecProgram *made = compile_file(files[i]);
        (void)family_of(made);
        PipecProgram *read = compile_file(files[i]);
        if (family_is_open(made)) compare(made, read);
        pipec_program_free(made);
        pipec_program_free(read);
    }
}

/* ---- the key --------------------------------------------------------------------------------- */

static bool reads(const char *source, const char *value, bool watchdog) {
    PipecProgram *program = compile_with(source, value, watchdog);
    bool read = is_read(program);
    pipec_program_free(program);
    return read;
}

/* The text with a comment at its end, after which all places are the same */
static void keys(void) {
    char longer[sizeof text + 8];
    snprintf(longer, sizeof longer, "%s//\n", text);
    EXPECT(!reads(text, NULL, false) && reads(text, NULL, false));
    EXPECT(!reads(text, NULL, true) && reads(text, NULL, true));
    EXPECT(!reads(text, "T=128", false) && reads(text, "T=128", false));
    EXPECT(!reads(text, "T=64", false) && !reads(text, "U=32", false));
    EXPECT(!reads(longer, NULL, false) && reads(longer, NULL, false));
    EXPECT(reads(text, NULL, false));
}

/* ---- damage ---------------------------------------------------------------------------------- */

static const char *only_entry(Arena *arena) {
    Store store;
    const char *why;
    if (!EXPECT(store_open(arena, &store, &why))) return NULL;
    StoreEntries entries = store_list(arena, &store);
    return EXPECT(entries.count == 1) ? entries.items[0].file : NULL;
}

static void clear(void) {
    Arena *arena = arena_new();
    Store store;
    const char *why;
    size_t removed;
    uint64_t bytes;
    if (EXPECT(store_open(arena, &store, &why))) store_clear(arena, &store, &removed, &bytes);
    arena_free(arena);
}

static void change(const char *file, off_t at) {
    int to = open(file, O_RDWR);
    char byte = 0;
    EXPECT(to >= 0 && pread(to, &byte, 1, at) == 1);
    byte ^= 0x10;
    EXPECT(pwrite(to, &byte, 1, at) == 1);
    close(to);
}

static void damage(void) {
    Arena *arena = arena_new();
    clear();
    EXPECT(!reads(text, NULL, false));
    const char *file = only_entry(arena);
    struct stat about;
    EXPECT(file != NULL && stat(file, &about) == 0);
    for (off_t at = 0; file != NULL && at < about.st_size; at += 1 + about.st_size / 40) {
        change(file, at);
        EXPECT(!reads(text, NULL, false) && reads(text, NULL, false));
    }
    for (int parts = 0; file != NULL && parts < 8; parts++) {
        EXPECT(truncate(file, about.st_size * parts / 8) == 0);
        EXPECT(!reads(text, NULL, false) && reads(text, NULL, false));
    }
    EXPECT(file != NULL && chmod(file, 0666) == 0); /* anyone may have written it */
    EXPECT(!reads(text, NULL, false) && !reads(text, NULL, false));
    clear();
    EXPECT(!reads(text, NULL, false) && reads(text, NULL, false));
    arena_free(arena);
}

/* ---- at once --------------------------------------------------------------------------------- */

static void race_once(unsigned seed) {
    srand(seed);
    PipecProgram *made = compile_with(text, NULL, false);
    for (int round = 0; round < 12; round++) {
        if (rand() % 3 == 0) clear();
        PipecProgram *program = compile_with(text, NULL, false);
        const Family *a = family_of(made), *b = family_of(program);
        EXPECT(a->count == b->count);
        if (a->count == b->count) choose_alike(a, b);
        pipec_program_free(program);
    }
    pipec_program_free(made);
}

static void race(void) {
    pid_t children[4];
    for (unsigned i = 0; i < 4; i++)
        if ((children[i] = fork()) == 0) {
            race_once(i + 1);
            _exit(expect_failures() != 0);
        }
    for (int i = 0; i < 4; i++) {
        int status;
        EXPECT(waitpid(children[i], &status, 0) == children[i] && status == 0);
    }
}

/* ---- times ----------------------------------------------------------------------------------- */

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void costs(void) {
    static const char *const files[] = {"examples/gemm.pipe", "kernels/linear.pipe"};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        double best[2] = {1, 1};
        for (int round = 0; round < 10; round++) {
            clear();
            for (int k = 0; k < 2; k++) {
                PipecProgram *program = compile_file(files[i]);
                double begin = seconds();
                size_t count = family_of(program)->count;
                double spent = seconds() - begin;
                if (spent < best[k]) best[k] = spent;
                pipec_program_free(program);
                if (round == 9 && k == 1)
                    printf("%s: %zu candidates, compiled in %.2f ms, read in %.2f ms\n", files[i],
                           count, best[0] * 1e3, best[1] * 1e3);
            }
        }
    }
}

int main(int argc, char **argv) {
    (void)argv;
    if (mkdtemp(folder) == NULL) return 1;
    setenv("PIPEC_CACHE", folder, 1);
    keys();
    damage();
    shipped();
    race();
    if (argc > 1) costs();
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    EXPECT(system(command) == 0);
    return expect_failures();
}
