/* A check of a kernel whose static has two values reports what the checks with each value alone
 * report: what is known of one combination (check/known.c) hides nothing in another one. The
 * programs are those of tests/, with the depth of the first ring, or one of the numbers, made a
 * static. `variants 1` takes all of them, `variants N` every Nth. */
#include "include/pipec.h"
#include "tests/unit/expect.h"

#include <ctype.h>
#include <glob.h>
#include <stdlib.h>

#define TEXT_MOST  65536
#define CODES_MOST 64

typedef struct Codes { /* that a check reports, each once */
    size_t count;
    char items[CODES_MOST][8];
} Codes;

static bool has(const Codes *codes, const char *code) {
    for (size_t i = 0; i < codes->count; i++)
        if (strcmp(codes->items[i], code) == 0) return true;
    return false;
}

static void add(Codes *codes, const char *code) {
    if (has(codes, code) || codes->count == CODES_MOST) return;
    snprintf(codes->items[codes->count++], sizeof *codes->items, "%s", code);
}

static bool is_within(const Codes *a, const Codes *b) {
    for (size_t i = 0; i < a->count; i++)
        if (!has(b, a->items[i])) return false;
    return true;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool is_of_fit(const char *code) {
    return strcmp(code, "P0145") == 0 ||
           (strcmp(code, "P0220") >= 0 && strcmp(code, "P0224") <= 0) ||
           (strcmp(code, "P0500") >= 0 && strcmp(code, "P0508") <= 0);
}

/* About the whole file, about combinations themselves, or about what all variants take (as accesses
 * that are outside in every one, check/bounds/outside.c), which is not said when values are
 * given */
static bool is_of_file(const PipecDiagnostic *said) {
    const char *code = said->code;
    return (strcmp(code, "P0160") >= 0 && strcmp(code, "P0164") <= 0) ||
           strcmp(code, "P0167") == 0 || strcmp(code, "P0168") == 0 || strcmp(code, "P0232") == 0 ||
           strcmp(code, "P0243") == 0 || strcmp(code, "P0033") == 0 ||
           strncmp(said->message, "the check of the subscript", 26) == 0;
}

/* A combination other than the file's that only does not fit says nothing else. */
static bool only_unfit(const PipecDiagnostics *all) {
    size_t unfit = 0;
    for (size_t i = 0; i < pipec_diagnostics_count(all); i++)
        unfit += is_of_fit(pipec_diagnostics_get(all, i)->code);
    return unfit > 0 && unfit == pipec_diagnostics_errors(all);
}

/* Adds the codes of one check, with what `value` gives to a static, or NULL. False: it has errors.
 */
static bool check(const char *text, const char *value, bool other, Codes *codes) {
    PipecOptions options = {
        .size = sizeof options, .check_only = true, .values = &value, .value_count = value != NULL};
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    const PipecDiagnostics *all = pipec_program_diagnostics(program);
    bool silent = other && only_unfit(all);
    for (size_t i = 0; i < pipec_diagnostics_count(all) && !silent; i++) {
        const PipecDiagnostic *said = pipec_diagnostics_get(all, i);
        if (!is_of_file(said) && !(other && is_of_fit(said->code))) add(codes, said->code);
    }
    bool fine = pipec_diagnostics_errors(all) == 0;
    pipec_program_free(program);
    return fine;
}

/* ---- programs -------------------------------------------------------------------------------- */

static bool is_digit(char c) { return isdigit((unsigned char)c); }
static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }
static char *digits_end(char *number) { return number + strspn(number, "0123456789"); }

/* The depth of the first ring: `pipe name[4]`. NULL: no number stands there. */
static char *find_depth(char *text) {
    for (char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        char *at = line + strspn(line, " ");
        if (strncmp(at, "pipe ", 5) != 0) continue;
        at = strpbrk(at, "[{/\n");
        return at != NULL && *at == '[' && is_digit(at[1]) && *digits_end(at + 1) == ']' ? at + 1
                                                                                         : NULL;
    }
    return NULL;
}

/* The next number, but in comments and in declarations of statics; NULL: there is none. */
static char *next_number(char *at) {
    for (; *at != 0; at++) {
        if (strncmp(at, "//", 2) == 0 || strncmp(at, "static ", 7) == 0) at += strcspn(at, "\n");
        if (*at == 0) break;
        if (is_digit(*at) && !is_word(at[-1]) && !is_word(*digits_end(at))) return at;
    }
    return NULL;
}

/* Where the first kernel ends: the static is only its own */
static const char *kernel_end(const char *body) {
    const char *next = strstr(body, "\nkernel ");
    return next != NULL ? next : body + strlen(body);
}

/* One of the numbers of the first kernel, by the length of the text */
static char *find_number(char *body) {
    size_t count = 0, wanted;
    const char *end = kernel_end(body);
    for (char *at = next_number(body); at != NULL && at < end; at = next_number(digits_end(at)))
        count++;
    if (count == 0) return NULL;
    wanted = strlen(body) % count;
    char *found = next_number(body);
    for (; wanted > 0; wanted--) found = next_number(digits_end(found));
    return found;
}

/* The `{` of the first kernel */
static char *find_body(char *text) {
    char *kernel = strncmp(text, "kernel ", 7) == 0 ? text : strstr(text, "\nkernel ");
    return kernel != NULL ? strchr(kernel, '{') : NULL;
}

/* The text with a static in the place of a number, which *own is then */
static void with_static(char *text, char *body, char *number, char *out, int *own) {
    *own = (int)strtol(number, NULL, 10);
    snprintf(out, TEXT_MOST + 256, "%.*s static WAS = %d in {%d, %d}; %.*sWAS%s",
             (int)(body + 1 - text), text, *own, *own, *own + 1, (int)(number - body - 1), body + 1,
             digits_end(number));
}

static bool read_text(const char *path, char *text) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return false;
    size_t length = fread(text, 1, TEXT_MOST, file);
    fclose(file);
    text[length < TEXT_MOST ? length : 0] = 0;
    return true;
}

static bool try_number(const char *path, char *text, char *body, char *number) {
    static char variant[TEXT_MOST + 256];
    int own;
    if (number == NULL || number < body || number > kernel_end(body)) return false;
    if (digits_end(number) - number > 8) return false;
    with_static(text, body, number, variant, &own);
    Codes together = {0}, apart = {0};
    (void)check(variant, NULL, false, &together);
    char value[32], other[32];
    snprintf(value, sizeof value, "WAS=%d", own);
    snprintf(other, sizeof other, "WAS=%d", own + 1);
    bool fine = check(variant, value, false, &apart); /* else the others may not be checked */
    (void)check(variant, other, true, &apart);
    if (!EXPECT(is_within(&together, &apart) && (!fine || is_within(&apart, &together))))
        fprintf(stderr, "%s: %zu codes together, %zu apart\n%s\n", path, together.count,
                apart.count, variant);
    return true;
}

static size_t try_program(const char *path) {
    static char text[TEXT_MOST];
    if (!read_text(path, text) || strstr(text, "//> check") != NULL) return 0;
    char *body = find_body(text);
    if (body == NULL) return 0;
    return (size_t)try_number(path, text, body, find_depth(text)) +
           (size_t)try_number(path, text, body, find_number(body));
}

/* Every `step` th program of the pattern */
static size_t try_all(const char *pattern, size_t step) {
    glob_t found;
    size_t count = 0;
    if (glob(pattern, 0, NULL, &found) != 0) return 0;
    for (size_t i = 0; i < found.gl_pathc; i += step) count += try_program(found.gl_pathv[i]);
    globfree(&found);
    return count;
}

#if defined(__SANITIZE_ADDRESS__)
#define STEP 64 /* these builds take 30 times as long */
#else
#define STEP 4
#endif

int main(int argc, char **argv) {
    size_t step = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : STEP;
    size_t count = try_all("examples/*.pipe", (step + 15) / 16) +
                   try_all("tests/check/*.pipe", step) + try_all("tests/check/*/*.pipe", step) +
                   try_all("tests/known/*.pipe", step) + try_all("tests/corpus/*.pipe", step);
    EXPECT(count > 1000 / step);
    return expect_failures();
}
