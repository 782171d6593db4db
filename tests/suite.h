/* The test driver's own door: what a suite is, what a test is given, and how it says what it found.
 *
 * A suite is a list of items, usually files; the driver hands each item to the suite's `run`, on several processes. A test
 * counts what it expects by EXPECT-like calls: `expect(test, fine, "what is wrong", ..)`. */
#ifndef TESTS_SUITE_H
#define TESTS_SUITE_H

#include "include/pipec.h"
#include "util/util.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

typedef struct Tally {
    int passed, failed, skipped;
    int known; /* programs that fail and are marked so; each counts as passed too */
} Tally;

typedef struct Test {
    Arena *arena;     /* of this item */
    const char *item; /* a path from the repository's root, or a code */
    bool bless;       /* write what came out as what is expected */
    bool gpu;         /* there is a GPU: use it too */
    bool show_known;  /* print why known failures fail */
    Tally tally;
    Str out;          /* failures, printed when the item is done */
} Test;

typedef VEC(const char *) Items;

typedef struct Suite {
    const char *name;
    bool uses_gpu;
    void (*list)(Arena *arena, Items *items);
    void (*run)(Test *test);
} Suite;

extern const Suite suite_parse, suite_check, suite_codes, suite_ptx, suite_assemble, suite_run, suite_examples, suite_docs,
    suite_known, suite_corpus;

/* Counts one expectation; a failed one is printed behind the item's name. Returns `fine`. */
bool expect(Test *test, bool fine, const char *format, ...) PRINTF_LIKE(3, 4);

/* ---- files --------------------------------------------------------------------------------------------------------- */

char *file_read(Arena *arena, const char *path, size_t *length); /* NULL: not there; length may be NULL */
bool file_exists(const char *path);
void file_write(Test *test, const char *path, const char *text, size_t length);
/* The files of a folder whose names end in `suffix`, sorted, as folder/name; folders inside it too where `deep`. */
void files_in(Arena *arena, const char *folder, const char *suffix, bool deep, Items *items);
bool ends_with(const char *text, const char *suffix);
/* "a/b.pipe", ".err" -> "a/b.err" */
const char *with_suffix(Arena *arena, const char *path, const char *suffix);

/* ---- lines and words ------------------------------------------------------------------------------------------------- */

typedef VEC(const char *) Words;

Words lines_of(Arena *arena, const char *text); /* without their ends */
Words words_of(Arena *arena, const char *line); /* cut at blanks */
/* The next code "P0102" in a line from *at on, NULL behind the last */
const char *next_code(Arena *arena, const char **at);

/* How two texts differ, line by line: "+3 -1 lines" and the first few of them */
void text_difference(Arena *arena, const char *wanted, const char *got, Str *out);

#endif
