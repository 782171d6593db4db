/* cli: how is it used. What the commands share: the table's row, options, and what is printed
 * where.
 *
 * Results go to standard output; diagnostics, usage errors and progress to standard error. Each
 * command returns its exit code. */
#ifndef PIPEC_CLI_H
#define PIPEC_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "include/pipec.h"

typedef struct Command {
    const char *name;
    int (*run)(const struct Command *command, int argc, char **argv); /* the words after it */
    const char *usage;   /* what follows "Usage: pipec " */
    const char *summary; /* one line, for `pipec --help` */
    const char *help;    /* the rest of `pipec NAME --help` */
} Command;

int command_check(const Command *command, int argc, char **argv);
int command_build(const Command *command, int argc, char **argv);
int command_run(const Command *command, int argc, char **argv);
int command_tune(const Command *command, int argc, char **argv);
int command_explain(const Command *command, int argc, char **argv);

/* ---- options --------------------------------------------------------------------------------- */

typedef struct Texts { /* room for all words of the command line */
    const char **items;
    size_t count;
} Texts;

typedef enum Format { FORMAT_TEXT, FORMAT_JSON, FORMAT_SARIF } Format;

typedef enum OptionKind {
    OPTION_FLAG,    /* bool */
    OPTION_TEXT,    /* const char * */
    OPTION_LIST,    /* Texts; may stand several times */
    OPTION_SEED,    /* uint64_t */
    OPTION_NUMBER,  /* int, 0 .. 1000000 */
    OPTION_SECONDS, /* double, >= 0 */
    OPTION_FORMAT,  /* Format: text or json */
    OPTION_FORMATS  /* Format: any */
} OptionKind;

typedef struct Option {
    const char *name; /* "--seed", "-o" */
    OptionKind kind;
    void *into;
} Option;

typedef enum Parsed { PARSED_FINE, PARSED_HELP, PARSED_WRONG } Parsed;

/* Options may stand anywhere; all else goes to `words`. `--` ends the options. --help is printed
 * here. */
Parsed options_parse(const Command *command, int argc, char **argv, const Option *options,
                     size_t count, Texts *words);
void texts_free(Texts *texts);
/* FILE [KERNEL] [NAME=VALUE ..]; false: something else stands there, and it was said */
typedef struct Words {
    const char *file, *kernel;
    Texts values;
} Words;
bool words_split(const Command *command, const Texts *words, Words *out);

/* ---- results as JSON (json.c), on standard output -------------------------------------------- */

typedef struct Json { /* an object or an array that is open */
    bool any;
    char close;
} Json;

/* `in` is NULL for the whole, and `field` for an element of an array. */
Json json_open(Json *in, const char *field, char bracket);
void json_close(const Json *json);
void json_text(Json *json, const char *field, const char *text); /* NULL: null */
void json_number(Json *json, const char *field, double number);  /* null where it is not finite */
void json_integer(Json *json, const char *field, int64_t number);
void json_bool(Json *json, const char *field, bool value);

/* ---- output ---------------------------------------------------------------------------------- */

bool output_colours(void);  /* may standard error have colours? */
bool output_terminal(void); /* is standard error a terminal? */
void say_error(const char *format, ...) __attribute__((format(printf, 1, 2))); /* "error: ..." */
void say_help(const char *format, ...) __attribute__((format(printf, 1, 2)));  /* "help: ..." */
int usage_error(const Command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* one line, and where to look; gives the exit code 2 */
/* on standard error, as text or JSON */
void say_diagnostics(const PipecDiagnostics *diagnostics, Format format);
int out_of_memory(void); /* says so, and gives the exit code 2 */
/* Where a standard stream is closed, no file that is opened may take its number. */
void output_begin(void);
/* Flushes standard output; `status` becomes worse where that fails. */
int output_end(int status);

/* Would writing one destroy the other? Two names of one file, by links or by the way to it; of
 * files that are not there yet, the same name in the same folder. "-" is standard input. Devices
 * are never the same. */
bool same_file(const char *a, const char *b);
/* A device, a pipe or a socket is written to, and not replaced. */
bool is_device(const char *path);

/* A file that is written beside its place. Either both or none of the two calls at its end
 * happen. */
typedef struct Beside {
    const char *path;
    char *beside; /* NULL: nothing there */
} Beside;
bool beside_write(Beside *file, const char *path, const char *text, size_t length);
bool beside_keep(Beside *file);
void beside_drop(Beside *file);

#endif
