/* same-test, private: programs, what a compiler makes of each, and where that is written.
 *
 * tools/same.sh links these files with the library of another commit, so they include nothing of
 * pipec except include/pipec.h. */
#ifndef TESTS_SAME_H
#define TESTS_SAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- programs.c ------------------------------------------------------------------------------ */

typedef struct Program {
    char *name;   /* in messages; before its last `/` is the folder that its includes are in */
    char *folder; /* NULL: includes are refused */
    char *text;
    size_t length;
    /* NAME=VALUE words of the first line `//> check`, `//> build` or `//> run` that has some */
    const char **values;
    size_t value_count;
    bool values_of_check; /* they stand in a line that `check` is called with */
    /* the only combinations that are received; none: all */
    const char **wanted;
    size_t wanted_count;
} Program;

typedef struct Programs {
    Program *items;
    size_t count, capacity;
} Programs;

/* Adds the programs of a file: of a `.list`, which names files on its lines, of a `.pack`, which
 * has drawn ones (tests/generate/drawn.c), or one program. False: it cannot be read. */
bool programs_read(const char *path, Programs *out);
/* Keeps those that are named on the lines of a file, each with a tab and one combination after it,
 * or all if it is `-` or there is none. False: it cannot be read. */
bool programs_only(const char *path, Programs *programs);

/* ---- outputs of a compilation ---------------------------------------------------------------- */

typedef enum Output {
    OUTPUT_EXIT,
    OUTPUT_DIAGNOSTICS,
    OUTPUT_JSON,
    OUTPUT_CODE,
    OUTPUT_PTX,
    OUTPUT_MANIFEST,
    OUTPUT_REPORT,
    OUTPUTS
} Output;

/* ---- text.c ---------------------------------------------------------------------------------- */

typedef struct Text { /* grows; {0} is empty */
    char *items;
    size_t length, capacity;
} Text;

_Noreturn void give_up(const char *why);
void *reserve(void *old, size_t bytes); /* gives up if there is no memory */
void text_bytes(Text *text, const char *bytes, size_t length);
void text_add(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* FNV-1a; begins with HASH_EMPTY. NULL differs from "". */
#define HASH_EMPTY UINT64_C(0xcbf29ce484222325)
uint64_t hash_text(uint64_t hash, const char *text);

/* ---- compile.c ------------------------------------------------------------------------------- */

/* Receives the outputs of each combination; an output is NULL if there is none. */
typedef void Receive(void *data, const char *combination, const char *const outputs[OUTPUTS]);

typedef struct Compile {
    /* most combinations of statics of a kernel that are built; 1: the check tries one as well */
    size_t combinations;
    int seconds;       /* of processor time for each combination; then a signal ends the process */
    const char *pipec; /* the command line is run as well for one program in `share`; NULL: never */
    size_t share;
    Receive *receive;
    void *data;
} Compile;

/* Number of combinations that were left out */
size_t compile_all(const Compile *compile, const Program *program);

#endif
