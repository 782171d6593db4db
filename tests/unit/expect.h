/* Shared by unit tests: expectations that report and continue, and a scratch of arena and
 * diagnostics. Each test program ends with `return expect_failures();`. */
#ifndef TESTS_EXPECT_H
#define TESTS_EXPECT_H

#include "util/util.h"

#include <stdio.h>
#include <string.h>

static int failed_expectations;

#define EXPECT(condition) expect_that((condition), __FILE__, __LINE__, #condition)

static inline bool expect_that(bool fine, const char *file, int line, const char *text) {
    if (!fine) {
        fprintf(stderr, "%s:%d: expected %s\n", file, line, text);
        failed_expectations++;
    }
    return fine;
}

static inline int expect_failures(void) { return failed_expectations > 0; }

typedef struct Scratch {
    Arena *arena;
    Diags *diags;
} Scratch;

static inline Scratch scratch_new(void) {
    Arena *arena = arena_new();
    return (Scratch){arena, diags_new(arena, NULL)};
}

static inline void scratch_free(Scratch *scratch) { arena_free(scratch->arena); }

/* True if there is exactly one error, of this code, whose message, notes or helps contain
 * `text`. Empties the list. */
#define EXPECT_ERROR(scratch, code, text)                                                          \
    expect_error((scratch), (code), (text), __FILE__, __LINE__)

static inline bool expect_error(Scratch *scratch, Code code, const char *text, const char *file,
                                int line) {
    Diags *diags = scratch->diags;
    Str rendered = str_new(scratch->arena);
    diags_render(diags, false, &rendered);
    bool fine = diags->items.count == 1 && diags->items.items[0]->code == code &&
                strstr(rendered.text, text) != NULL;
    if (!fine) {
        fprintf(stderr, "%s:%d: expected one %s with \"%s\", got:\n%s\n", file, line,
                code_rows[code].name, text, rendered.text);
        failed_expectations++;
    }
    scratch->diags = diags_new(scratch->arena, diags->source);
    return fine;
}

#define EXPECT_CLEAN(scratch) expect_clean((scratch), __FILE__, __LINE__)

static inline bool expect_clean(Scratch *scratch, const char *file, int line) {
    if (scratch->diags->items.count == 0) return true;
    Str rendered = str_new(scratch->arena);
    diags_render(scratch->diags, false, &rendered);
    fprintf(stderr, "%s:%d: expected no diagnostics, got:\n%s\n", file, line, rendered.text);
    failed_expectations++;
    scratch->diags = diags_new(scratch->arena, scratch->diags->source);
    return false;
}

#endif
