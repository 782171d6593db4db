/* The test driver, private: a suite, the input of a test, and its expectations.
 *
 * A suite is a list of items, usually files; the driver passes each item to the suite's `run`,
 * on several processes. A test counts its expectations by EXPECT-like calls: `expect(test, fine,
 * "what is wrong", ..)`. */
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
    int known; /* programs that fail and are marked; each counts as passed too */
} Tally;

typedef struct Test {
    Arena *arena;      /* of this item */
    const char *item;  /* a path from the repository's root, or a code */
    bool bless;        /* write the result as the expected one */
    bool gpu;          /* there is a GPU: use it too */
    bool show_known;   /* print why known failures fail */
    int schedules;     /* of each run on the emulator, at least */
    const char *taken; /* folder of texts that ptxas has taken; NULL: none are kept */
    Tally tally;
    Str out; /* failures, printed at the end of the item */
} Test;

typedef VEC(const char *) Items;

typedef struct Suite {
    const char *name;
    bool uses_gpu;
    void (*list)(Arena *arena, Items *items);
    void (*run)(Test *test);
    /* a sanitised build, which is slow, runs one item in this many if none is named; 0: all */
    size_t sanitized_share;
} Suite;

extern const Suite suite_parse, suite_check, suite_codes, suite_ptx, suite_assemble, suite_run,
    suite_examples, suite_docs, suite_known, suite_corpus, suite_habits;

/* Counts one expectation; prints a failed one after the item's name. Returns `fine`. */
bool expect(Test *test, bool fine, const char *format, ...) PRINTF_LIKE(3, 4);

/* ---- files ----------------------------------------------------------------------------------- */

/* NULL: it does not exist; length may be NULL */
char *file_read(Arena *arena, const char *path, size_t *length);
bool file_exists(const char *path);
void file_write(Test *test, const char *path, const char *text, size_t length);
/* The files of a folder whose names end in `suffix`, sorted, as folder/name; `deep`: subfolders
 * too. Not those that programs include: common.pipe, and what is in folders named include. */
void files_in(Arena *arena, const char *folder, const char *suffix, bool deep, Items *items);
bool ends_with(const char *text, const char *suffix);
/* "a/b.pipe" -> "a" */
const char *folder_of(Arena *arena, const char *path);
/* "a/b.pipe", ".err" -> "a/b.err" */
const char *with_suffix(Arena *arena, const char *path, const char *suffix);

/* ---- lines and words ------------------------------------------------------------------------- */

typedef VEC(const char *) Words;

Words lines_of(Arena *arena, const char *text); /* without line ends */
Words words_of(Arena *arena, const char *line); /* split at blanks */
/* The next code "P0102" of a line from *at, NULL after the last */
const char *next_code(Arena *arena, const char **at);

/* The difference of two texts, line by line: "+3 -1 lines" and the first few of them */
void text_difference(Arena *arena, const char *wanted, const char *got, Str *out);

/* ---- commands of the documentation ----------------------------------------------------------- */

/* The program with the lines of a change: those that begin with a blank or `-` are in the program,
 * next to each other and only there; a blank keeps the line, and those with `+` are added. */
const char *console_change(Test *test, const char *name, const char *program, const char *diff);
/* Runs each command of the block, a line "$ pipec ..", on the program, and compares what it prints
 * with the lines after it. There, `..` is any text, and on a line of its own any lines. */
void console_run(Test *test, const char *name, const char *program, const char *block);

#endif
