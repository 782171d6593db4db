/* ptxmutants-test [--count N | --all] [--seed N] [--schedules N] [--jobs N] [--only TEXT] [--list]
 *                 [--say]
 *
 * Puts one fault after the other into the PTX of the kernels in kernels.txt, by the operators of
 * operators.def, and tests that each is found: reported by the emulator, or wrong by `ensures`.
 * Draws N mutants (default: 40), of each operator in turn. equivalent.txt lists mutants that are
 * right, with the reason: at most 5 % of an operator's.
 * --only: those whose kernel, operator and place contain the text; --list prints them, --say
 * prints how each was found. The last lines are the table of docs/emulator.md; with --all, each row
 * must stand there. */
#include "tests/ptxmutants/judge.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define COUNT 8 /* an instrumented emulator is slow */
#else
#define COUNT 40
#endif
#define FOLDER          "tests/ptxmutants/"
#define DOCS            "docs/emulator.md"
#define EQUIVALENT_MOST 5 /* percent of an operator's mutants */

typedef struct Item { /* a mutant of a kernel */
    size_t kernel, mutant;
    bool chosen;
    const char *reason; /* it is equivalent; NULL: it is not listed */
} Item;

/* what the processes share */
typedef struct Shared {
    atomic_size_t next;
    Judgement judgements[];
} Shared;

typedef struct Tester {
    Arena *arena;
    size_t count, jobs;
    uint64_t seed, schedules;
    const char *only;
    bool list, say;
    VEC(Kernel *) kernels;
    VEC(Item) items;
    Shared *shared;
    int passed, failed;
} Tester;

static void fail(Tester *tester, const char *what, const char *text) {
    printf("%s: %s\n", what, text);
    tester->failed++;
}

/* ---- files ----------------------------------------------------------------------------------- */

typedef void (*OfLine)(Tester *tester, char *line);

static void for_lines(Tester *tester, const char *path, OfLine work) {
    Source none = {.name = path};
    Diags *diags = diags_new(tester->arena, &none);
    size_t length = 0;
    const char *text = file_text(tester->arena, path, &length, diags);
    if (text == NULL) {
        fail(tester, path, "cannot be read");
        return;
    }
    char *rest, *copy = arena_copy(tester->arena, text, length);
    for (char *line = strtok_r(copy, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        if (*line != '#') work(tester, line);
}

static void add_kernel(Tester *tester, char *line) {
    const char *why = "";
    Kernel *kernel = kernel_open(tester->arena, line, &why);
    if (kernel == NULL) {
        fail(tester, line, why);
        return;
    }
    for (size_t i = 0; i < kernel->mutants.count; i++)
        vec_push(tester->arena, &tester->items,
                 (Item){.kernel = tester->kernels.count, .mutant = i});
    vec_push(tester->arena, &tester->kernels, kernel);
}

static const Mutant *mutant_of(const Tester *tester, const Item *item) {
    return &tester->kernels.items[item->kernel]->mutants.items[item->mutant];
}

/* "examples/gemm.pipe M=1 | drop arrive | load 2" */
static const char *name_of(const Tester *tester, Arena *arena, const Item *item) {
    const Mutant *mutant = mutant_of(tester, item);
    return arena_printf(arena, "%s | %s | %s", tester->kernels.items[item->kernel]->name,
                        mutant->row->name, mutant->place);
}

/* KERNEL | operator | place | reason */
static void add_equivalent(Tester *tester, char *line) {
    char *end = strrchr(line, '|');
    if (end == NULL || end == line) {
        fail(tester, FOLDER "equivalent.txt: not a row", line);
        return;
    }
    end[-1] = '\0';
    for (size_t i = 0; i < tester->items.count; i++) {
        Item *item = &tester->items.items[i];
        if (strcmp(name_of(tester, tester->arena, item), line) != 0) continue;
        item->reason = end + 2;
        return;
    }
    fail(tester, FOLDER "equivalent.txt: no such mutant", line);
}

/* ---- the choice ------------------------------------------------------------------------------ */

static uint64_t draw(uint64_t *state) { /* splitmix64 */
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* One more mutant of the operator; false: all are chosen */
static bool choose_one(Tester *tester, const Operator *row, uint64_t *state) {
    size_t left = 0;
    for (size_t i = 0; i < tester->items.count; i++)
        left += !tester->items.items[i].chosen &&
                mutant_of(tester, &tester->items.items[i])->row == row;
    if (left == 0) return false;
    for (size_t i = 0, skip = draw(state) % left; i < tester->items.count; i++) {
        Item *item = &tester->items.items[i];
        if (item->chosen || mutant_of(tester, item)->row != row) continue;
        if (skip-- > 0) continue;
        item->chosen = true;
        return true;
    }
    return false;
}

/* Each operator in turn, until there are enough */
static void choose(Tester *tester) {
    uint64_t state = tester->seed;
    size_t chosen = 0, before = 1;
    if (tester->only != NULL) {
        for (size_t i = 0; i < tester->items.count; i++) {
            Item *item = &tester->items.items[i];
            item->chosen = strstr(name_of(tester, tester->arena, item), tester->only) != NULL;
        }
        return;
    }
    size_t first = draw(&state) % operator_count();
    while (chosen < tester->count && chosen != before) {
        before = chosen;
        for (size_t i = 0; i < operator_count() && chosen < tester->count; i++)
            chosen += choose_one(tester, operator_row((first + i) % operator_count()), &state);
    }
}

/* ---- the runs -------------------------------------------------------------------------------- */

static void judge_item(Tester *tester, const Item *item, Judgement *out) {
    Kernel *kernel = tester->kernels.items[item->kernel];
    Arena *arena = arena_new();
    const char *why = "";
    Str text = str_new(arena);
    str_add(&text, "");
    if (!kernel_check(kernel, &why)) {
        printf("%s: the kernel itself: %s\n", kernel->name, why);
        out->fate = FATE_UNKNOWN;
    } else {
        Judgement judgement =
            kernel_judge(kernel, mutant_of(tester, item), tester->schedules, &text);
        *out = judgement;
        if (tester->say) printf("%s\n%s\n", name_of(tester, arena, item), text.text);
    }
    fflush(stdout);
    arena_free(arena);
}

static void work(Tester *tester) {
    for (;;) {
        size_t i = atomic_fetch_add(&tester->shared->next, 1);
        if (i >= tester->items.count) return;
        if (tester->items.items[i].chosen)
            judge_item(tester, &tester->items.items[i], &tester->shared->judgements[i]);
    }
}

/* Processes, so that one that dies costs one mutant */
static void judge_all(Tester *tester) {
    size_t bytes = sizeof(Shared) + tester->items.count * sizeof(Judgement);
    tester->shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tester->shared == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    fflush(stdout);
    for (size_t i = 0; i < tester->jobs; i++)
        if (fork() == 0) {
            work(tester);
            _exit(0);
        }
    while (wait(NULL) > 0) {
    }
}

/* ---- the report ------------------------------------------------------------------------------ */

typedef struct Score {
    int all, tried, fates[FATE_COUNT], equivalent;
} Score;

static const char *const fate_names[] = {"not judged", "named",    "wrong",
                                         "endless",    "survives", "rejected"};

static void count_item(Tester *tester, size_t index, Score *score) {
    const Item *item = &tester->items.items[index];
    const Judgement *judgement = &tester->shared->judgements[index];
    const char *name = name_of(tester, tester->arena, item);
    const char *line =
        tester->kernels.items[item->kernel]->lines.items[mutant_of(tester, item)->line].text;
    score->all++;
    score->equivalent += item->reason != NULL;
    if (!item->chosen) return;
    if (tester->list)
        printf("%s: %s %s (%d)\n", name, fate_names[judgement->fate], judgement->code,
               (int)judgement->seed);
    score->tried++;
    score->fates[judgement->fate]++;
    bool fine = judgement->fate != FATE_UNKNOWN && judgement->fate != FATE_REJECTED &&
                (judgement->fate == FATE_SURVIVES) == (item->reason != NULL);
    *(fine ? &tester->passed : &tester->failed) += 1;
    if (fine) return;
    printf("%s: %s%s %s:%s\n", name, fate_names[judgement->fate],
           item->reason != NULL ? ", and is listed as equivalent" : "", judgement->code, line);
}

/* A row of the table; NULL as docs: it need not be there */
static void print_row(Tester *tester, const char *name, const Score *score, const char *docs) {
    const char *row = arena_printf(
        tester->arena, "| %s | %d | %d | %d | %d |\n", name, score->tried, score->fates[FATE_NAMED],
        score->fates[FATE_WRONG] + score->fates[FATE_ENDLESS], score->fates[FATE_SURVIVES]);
    printf("%s", row);
    if (docs != NULL && strstr(docs, row) == NULL) fail(tester, DOCS " has another row", name);
}

/* The page with the table, if each mutant was judged */
static const char *read_docs(Tester *tester) {
    Source none = {.name = DOCS};
    size_t length = 0;
    if (tester->count != SIZE_MAX || tester->only != NULL) return NULL;
    return file_text(tester->arena, DOCS, &length, diags_new(tester->arena, &none));
}

static void report(Tester *tester) {
    Score sum = {0}, *scores = NEW_ARRAY(tester->arena, Score, operator_count());
    for (size_t i = 0; i < tester->items.count; i++)
        count_item(tester, i,
                   &scores[mutant_of(tester, &tester->items.items[i])->row - operator_row(0)]);
    const char *docs = read_docs(tester);
    printf("| operator | mutants | finding | wrong result | equivalent |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < operator_count(); i++) {
        const Score *score = &scores[i];
        if (score->tried > 0) print_row(tester, operator_row(i)->name, score, docs);
        sum.tried += score->tried;
        for (size_t f = 0; f < FATE_COUNT; f++) sum.fates[f] += score->fates[f];
        if (score->equivalent * 100 > EQUIVALENT_MOST * score->all)
            fail(tester, operator_row(i)->name, "too many of its mutants are listed as equivalent");
    }
    print_row(tester, "all", &sum, docs);
}

/* Each example and bench kernel must be listed */
static void all_are_listed(Tester *tester) {
    static const char *const folders[] = {"examples", "bench", "bench/rows"};
    for (size_t f = 0; f < COUNT_OF(folders); f++) {
        DIR *folder = opendir(folders[f]);
        for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
            const char *end = strrchr(entry->d_name, '.');
            bool found = end == NULL || strcmp(end, ".pipe") != 0;
            const char *path = arena_printf(tester->arena, "%s/%s", folders[f], entry->d_name);
            for (size_t i = 0; i < tester->kernels.count; i++)
                found |= strcmp(tester->kernels.items[i]->file, path) == 0;
            if (!found) fail(tester, path, "is not in " FOLDER "kernels.txt");
        }
        if (folder != NULL) closedir(folder);
    }
}

static bool read_options(Tester *tester, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--all") == 0)
            tester->count = SIZE_MAX;
        else if (strcmp(argv[i], "--list") == 0)
            tester->list = true;
        else if (strcmp(argv[i], "--say") == 0)
            tester->say = true;
        else if (strcmp(argv[i], "--count") == 0 && i++)
            tester->count = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0 && i++)
            tester->seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--schedules") == 0 && i++)
            tester->schedules = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--jobs") == 0 && i++)
            tester->jobs = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--only") == 0 && i++)
            tester->only = value;
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv) {
    Tester tester = {.arena = arena_new(), .count = COUNT, .jobs = 1, .seed = 1, .schedules = 3};
    if (!read_options(&tester, argc, argv)) {
        fprintf(stderr, "ptxmutants-test [--count N | --all] [--seed N] [--schedules N] [--jobs N] "
                        "[--only TEXT] [--list] [--say]\n");
        return 2;
    }
    for_lines(&tester, FOLDER "kernels.txt", add_kernel);
    all_are_listed(&tester);
    for_lines(&tester, FOLDER "equivalent.txt", add_equivalent);
    choose(&tester);
    judge_all(&tester);
    report(&tester);
    for (size_t i = 0; i < tester.kernels.count; i++) kernel_close(tester.kernels.items[i]);
    printf("%d passed, %d failed\n", tester.passed, tester.failed);
    arena_free(tester.arena);
    return tester.failed > 0;
}
