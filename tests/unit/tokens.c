/* A mutator of tokens and numbers: accepted programs of the tests and examples with some tokens
 * removed, doubled, swapped or replaced, and numbers replaced by critical ones. Each result is
 * refused, incomplete or built, in little time; nothing crashes.
 *
 *     tokens [COUNT [SEED]]     COUNT programs from SEED on; default: a few
 *     tokens --only SEED        prints the program of that seed */
#include "include/pipec.h"
#include "tests/unit/expect.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define SLOWER 20
#define FEW    60
#else
#define SLOWER 1
#define FEW    400
#endif
#define SECONDS_MOST   (2.0 * SLOWER)
#define MUTATIONS_MOST 2 /* per program */
#define BATCH          100

typedef struct Token {
    const char *text;
    /* space: offset of the space before it; length: of the token */
    size_t space, length;
} Token;

typedef VEC(Token) Tokens;
typedef VEC(char *) Files;

typedef struct Random {
    uint64_t state;
} Random;

static uint64_t draw(Random *random, uint64_t below) {
    random->state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = random->state;
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (z ^ z >> 31) % below;
}

/* ---- texts and tokens ------------------------------------------------------------------------ */

/* Files of the folder, and of those in it; of tests/check only accepted twins */
static void read_folder(Arena *arena, const char *folder, Files *files) {
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name);
        const char *path = arena_printf(arena, "%s/%s", folder, entry->d_name);
        if (!strchr(entry->d_name, '.')) read_folder(arena, path, files);
        if (length < 6 || strcmp(entry->d_name + length - 5, ".pipe") != 0) continue;
        bool twin = length > 8 && strcmp(entry->d_name + length - 8, "-ok.pipe") == 0;
        if (strncmp(folder, "tests/check/", 12) == 0 && !twin) continue;
        FILE *file = fopen(path, "rb");
        char *text = arena_alloc(arena, 20001);
        if (file && fread(text, 1, 20000, file) < 20000) vec_push(arena, files, text);
        if (file) fclose(file);
    }
    if (dir) closedir(dir);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static Files read_all(Arena *arena) {
    static const char *const folders[] = {"examples",    "tests/run",    "tests/check",
                                          "tests/known", "tests/corpus", "bench"};
    Files files = {0};
    for (size_t i = 0; i < COUNT_OF(folders); i++) read_folder(arena, folders[i], &files);
    if (files.count) qsort(files.items, files.count, sizeof *files.items, by_text);
    return files;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static Tokens split(Arena *arena, const char *text) {
    Tokens tokens = {0};
    for (const char *at = text; *at;) {
        const char *begun = at;
        while (isspace((unsigned char)*at) || (at[0] == '/' && at[1] == '/'))
            at += *at == '/' ? strcspn(at, "\n") : 1;
        const char *token = at;
        if (is_word(*at))
            while (is_word(*at) || (*at == '.' && isdigit((unsigned char)at[1]))) at++;
        else if (*at)
            at += strchr("=<>&|.+-*/~", *at) && at[1] && strchr("=&|.>", at[1]) ? 2 : 1;
        vec_push(arena, &tokens, ((Token){begun, (size_t)(token - begun), (size_t)(at - token)}));
    }
    return tokens;
}

/* ---- mutations ------------------------------------------------------------------------------- */

static Token number(Arena *arena, Random *random) {
    static const char *const numbers[] = {"0",
                                          "1",
                                          "-1",
                                          "2",
                                          "3",
                                          "7",
                                          "2147483647",
                                          "2147483648",
                                          "4294967295",
                                          "9223372036854775807",
                                          "-9223372036854775807",
                                          "65536",
                                          "1048576",
                                          "1000003",
                                          "64",
                                          "255",
                                          "0.5",
                                          "1e30"};
    const char *text = arena_printf(arena, " %s", numbers[draw(random, COUNT_OF(numbers))]);
    return (Token){text, 1, strlen(text) - 1};
}

/* `at` to the end of the statement that it is in */
static size_t rest_of_statement(const Tokens *tokens, size_t at) {
    size_t count = 1;
    while (at + count < tokens->count && count < 60 &&
           tokens->items[at + count - 1].text[tokens->items[at + count - 1].space] != ';')
        count++;
    return count;
}

static void remove_tokens(Tokens *tokens, size_t at, size_t count) {
    memmove(&tokens->items[at], &tokens->items[at + count],
            (tokens->count - at - count) * sizeof *tokens->items);
    tokens->count -= count;
}

static void insert_tokens(Arena *arena, Tokens *tokens, size_t at, const Token *what,
                          size_t count) {
    Token *copy = NEW_ARRAY(arena, Token, count);
    memcpy(copy, what, count * sizeof *what);
    for (size_t i = 0; i < count; i++) vec_push(arena, tokens, copy[i]);
    memmove(&tokens->items[at + count], &tokens->items[at],
            (tokens->count - count - at) * sizeof *copy);
    memcpy(&tokens->items[at], copy, count * sizeof *copy);
}

/* Kind of a token (word, number, sign): a token is often replaced by one of its kind */
static int kind_of(const Token *token) {
    char c = token->text[token->space];
    return isdigit((unsigned char)c) ? 0 : is_word(c) ? 1 : strchr("(){}[];,:", c) ? 2 : 3;
}

/* The first token of this kind from `at` on that begins a statement */
static size_t statement_from(const Tokens *tokens, size_t at) {
    while (at + 1 < tokens->count &&
           !strchr(";{}", tokens->items[at].text[tokens->items[at].space]))
        at++;
    return at + 1 < tokens->count ? at + 1 : at;
}
static size_t kind_from(const Tokens *tokens, size_t at, int kind) {
    while (at + 1 < tokens->count && kind_of(&tokens->items[at]) != kind) at++;
    return at;
}

static void mutate(Arena *arena, Tokens *tokens, Random *random) {
    if (tokens->count < 4) return;
    size_t at = draw(random, tokens->count), other = draw(random, tokens->count),
           begin = statement_from(tokens, at);
    size_t rest = rest_of_statement(tokens, begin),
           like = kind_from(tokens, other, kind_of(&tokens->items[at]));
    Token held = tokens->items[at];
    switch (draw(random, 20)) {
    case 0: remove_tokens(tokens, at, 1); return;
    case 1: insert_tokens(arena, tokens, at, &tokens->items[at], 1); return;
    case 2: tokens->items[at] = tokens->items[other], tokens->items[other] = held; return;
    case 3:
    case 4: remove_tokens(tokens, begin, rest); return;
    case 5:
    case 6: insert_tokens(arena, tokens, begin, &tokens->items[begin], rest); return;
    case 7:
    case 8:
        insert_tokens(arena, tokens, statement_from(tokens, other), &tokens->items[begin], rest);
        return;
    case 9:
    case 10:
    case 11: tokens->items[at] = tokens->items[like]; return;
    case 12:
    case 13: tokens->items[at] = tokens->items[like], tokens->items[like] = held; return;
    default: break;
    }
    at = kind_from(tokens, at, 0);
    if (kind_of(&tokens->items[at]) == 0) tokens->items[at] = number(arena, random);
}

static Str program(Arena *arena, const Files *files, uint64_t seed) {
    Random random = {seed};
    Str out = str_new(arena);
    Tokens tokens = split(arena, files->items[draw(&random, files->count)]);
    for (uint64_t left = 1 + draw(&random, MUTATIONS_MOST); left > 0; left--)
        mutate(arena, &tokens, &random);
    for (size_t i = 0; i < tokens.count; i++) {
        str_add_bytes(&out, tokens.items[i].text, tokens.items[i].space);
        bool meet =
            out.length > 0 && is_word(out.text[out.length - 1]) && is_word(*tokens.items[i].text);
        if (tokens.items[i].space == 0 && meet) str_char(&out, ' ');
        str_add_bytes(&out, tokens.items[i].text + tokens.items[i].space, tokens.items[i].length);
    }
    return out;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static double processor_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool compile(const Files *files, uint64_t seed) {
    Arena *arena = arena_new();
    Str text = program(arena, files, seed);
    double begun = processor_time();
    bool fine = true;
    for (int check_only = 0; check_only < 2; check_only++) {
        PipecProgram *out =
            pipec_compile(text.text, text.length,
                          &(PipecOptions){.size = sizeof(PipecOptions), .check_only = check_only});
        fine &= out && pipec_program_status(out) != PIPEC_BUG;
        if (out && !check_only && pipec_program_ptx(out, NULL)) (void)pipec_program_report(out);
        pipec_program_free(out);
    }
    double took = processor_time() - begun;
    if (took > 2 * SECONDS_MOST)
        fprintf(stderr, "seed %llu: %.2f s\n", (unsigned long long)seed, took);
    arena_free(arena);
    return fine && took <= 2 * SECONDS_MOST;
}

/* Runs in a separate process, which reports its current seed */
static int run_batch(const Files *files, uint64_t first, uint64_t past, volatile uint64_t *at) {
    pid_t child = fork();
    if (child == 0) {
        int failed = 0;
        for (*at = first; *at < past; ++*at) failed += !compile(files, *at);
        _exit(failed > 0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0) return 1;
    if (WIFEXITED(status) && WEXITSTATUS(status) <= 1 && *at == past) return WEXITSTATUS(status);
    fprintf(stderr, "seed %llu: crashed (status %d)\n", (unsigned long long)*at, status);
    return 1 + (*at + 1 < past ? run_batch(files, *at + 1, past, at) : 0);
}

int main(int argc, char **argv) {
    Arena *arena = arena_new();
    Files files = read_all(arena);
    if (argc > 2 && strcmp(argv[1], "--only") == 0)
        return fputs(program(arena, &files, strtoull(argv[2], NULL, 10)).text, stdout) < 0;
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : FEW,
             seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    volatile uint64_t *at =
        mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failed = at == MAP_FAILED || files.count == 0;
    for (uint64_t i = 0; i < count && !(at == MAP_FAILED); i += BATCH)
        failed += run_batch(&files, seed + i, seed + (i + BATCH < count ? i + BATCH : count), at);
    EXPECT(failed == 0);
    arena_free(arena);
    return expect_failures();
}
