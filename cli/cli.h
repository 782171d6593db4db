/* cli, private: shared by the commands: their table, options, and output.
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
    /* argv: the words after the command */
    int (*run)(const struct Command *command, int argc, char **argv);
    const char *usage;   /* what follows "Usage: pipec " */
    const char *summary; /* one line, for `pipec --help` */
    const char *help;    /* the rest of `pipec NAME --help` */
} Command;

int command_check(const Command *command, int argc, char **argv);
int command_build(const Command *command, int argc, char **argv);
int command_run(const Command *command, int argc, char **argv);
int command_emulate(const Command *command, int argc, char **argv);
int command_tune(const Command *command, int argc, char **argv);
int command_choose(const Command *command, int argc, char **argv);
int command_calibrate(const Command *command, int argc, char **argv);
int command_cache(const Command *command, int argc, char **argv);
int command_explain(const Command *command, int argc, char **argv);

/* ---- options --------------------------------------------------------------------------------- */

typedef struct Texts { /* a list of words; capacity for the whole command line */
    const char **items;
    size_t count;
} Texts;

typedef enum Format { FORMAT_TEXT, FORMAT_JSON, FORMAT_SARIF } Format;

typedef enum OptionKind {
    OPTION_FLAG,    /* bool */
    OPTION_SWITCH,  /* bool: on or off */
    OPTION_TEXT,    /* const char * */
    OPTION_LIST,    /* Texts; repeatable */
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

/* Options may be anywhere; the other arguments go to `words`. `--` ends the options. Prints the
 * help for --help. */
Parsed options_parse(const Command *command, int argc, char **argv, const Option *options,
                     size_t count, Texts *words);
void texts_free(Texts *texts);
/* "linear" of "kernels:linear", which names a kernel that is shipped; NULL: a file */
const char *shipped_name(const char *file);
/* Cuts ":swapped" from "gemm.pipe:swapped" or "kernels:linear:swapped", words of the command line,
 * and returns "swapped"; NULL: the word has no such end */
const char *variant_cut(const char *file);
/* Parses FILE[:VARIANT] [KERNEL] [NAME=VALUE ..]; false: other arguments, which were reported */
typedef struct Words {
    const char *file, *kernel, *variant; /* the last two may be NULL */
    Texts values;
} Words;
bool words_split(const Command *command, const Texts *words, Words *out);
/* False: `--folder` is given with a file, which was reported */
bool folder_fits(const Command *command, const char *folder, const char *file);

/* ---- bundles (bundle.c) ---------------------------------------------------------------------- */

typedef struct BundleWords {
    const Command *command;
    const char *file, *kernel, *variant;
    const Texts *values, *denied, *accepted; /* values: statics, and sizes such as "M=1..8192" */
    const char *folder, *machine;            /* "h200,h100" */
    const char *target;                      /* NULL: all that the kernel names */
    const char *includes;                    /* folder of the includes of standard input, or NULL */
    bool cubins, invariant;
    Format format;
} BundleWords;
/* The exit code */
int bundle_write(const BundleWords *words);

/* ---- results as JSON (json.c), on standard output -------------------------------------------- */

typedef struct Json { /* an open object or array */
    bool any;
    char close;
} Json;

/* Opens an object or array: `in` is NULL at the top, `field` is NULL for an element of an array. */
Json json_open(Json *in, const char *field, char bracket);
void json_close(const Json *json);
void json_text(Json *json, const char *field, const char *text); /* NULL: null */
void json_number(Json *json, const char *field, double number);  /* null if it is not finite */
void json_integer(Json *json, const char *field, int64_t number);
void json_bool(Json *json, const char *field, bool value);

/* ---- output ---------------------------------------------------------------------------------- */

bool output_colours(void);  /* true if standard error may have colours */
bool output_terminal(void); /* true if standard error is a terminal */
void say_error(const char *format, ...) __attribute__((format(printf, 1, 2))); /* "error: ..." */
void say_help(const char *format, ...) __attribute__((format(printf, 1, 2)));  /* "help: ..." */
int usage_error(const Command *command, const char *format, ...)
    /* prints one line and a reference to --help; returns exit code 2 */
    __attribute__((format(printf, 2, 3)));
/* Prints to standard error, as text or JSON */
void say_diagnostics(const PipecDiagnostics *diagnostics, Format format);
int out_of_memory(void); /* prints that; returns exit code 2 */
/* Prints the log; returns the worse of `status` and a lack of memory */
int output_sarif(PipecSarif *sarif, int status);
/* If a standard stream is closed, opens it so that no other file gets its number. */
void output_begin(void);
/* Flushes standard output; returns the worse of `status` and a failure to write. */
int output_end(int status);

void print_time(double seconds); /* "3.20 us" */

/* Progress of a run on the emulator or of the comparison with `ensures`, from one second on.
 * progress_show is for PipecExecuteOptions and PipecVerifyOptions. */
typedef struct Progress {
    const char *what;   /* "emulating" */
    double begun, next; /* seconds */
    /* terminal: one line that is overwritten; otherwise lines at growing intervals */
    bool terminal, shown;
} Progress;
Progress progress_begin(const char *what);
bool progress_show(void *data, const PipecProgress *now);
void progress_end(const Progress *progress);

/* True if writing one destroys the other: two names of one file, by links or different paths;
 * for files that do not exist, the same name in the same folder. "-" is standard input. Devices
 * are never the same. */
bool same_file(const char *a, const char *b);
/* A device, a pipe or a socket is written directly, not replaced. */
bool is_device(const char *path);

/* An output file with a temporary name. After it is written, it is either committed or
 * discarded. */
typedef struct OutputFile {
    const char *path;
    char *temporary; /* NULL: no temporary file */
} OutputFile;
bool output_file_write(OutputFile *file, const char *path, const char *text, size_t length);
bool output_file_commit(OutputFile *file);
void output_file_discard(OutputFile *file);

#endif
