/* same-test [--jobs N] [--combinations N] [--seconds N] [--pipec FILE] [--share N] [--backwards]
 *           [--only FILE] [--sums | --write DIR] FILE..
 *
 * Compiles programs (same.h), for tools/same.sh, which compares what two compilers make of them. A
 * line for each combination of statics: program, combination, exit code, and a hash of each other
 * output, or `-`. A program during which the compiler crashes or does not end has a line that says
 * so. `# left out` lines have the number of combinations above N of a kernel (512).
 *   --sums       one line for each program: a hash of its text, of its diagnostics with exit codes,
 *                and of the other outputs, each over all combinations
 *   --write DIR  writes each output to DIR/PROGRAM/OUTPUT instead, `/` in names being `_`
 *   --only FILE  only programs that are named on its lines
 *   --backwards  begins with the last program: no output may depend on what was compiled before
 *   --pipec FILE runs this command line as well for one program in 50, or in --share */
#include "tests/same/same.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS_MOST 64

static const char *const output_names[OUTPUTS] = {
    [OUTPUT_EXIT] = "exit",    [OUTPUT_DIAGNOSTICS] = "diagnostics",
    [OUTPUT_JSON] = "json",    [OUTPUT_CODE] = "code",
    [OUTPUT_PTX] = "ptx",      [OUTPUT_MANIFEST] = "manifest",
    [OUTPUT_REPORT] = "report"};

/* The columns of --sums, after that of the text */
static const int sum_of[OUTPUTS] = {
    [OUTPUT_CODE] = 1, [OUTPUT_PTX] = 2, [OUTPUT_MANIFEST] = 3, [OUTPUT_REPORT] = 4};
#define SUMS 5

typedef struct Options {
    Compile compile;
    int jobs;
    bool backwards, sums;
    const char *folder;
    Programs programs;
} Options;

/* Shared by the processes */
typedef struct Shared {
    atomic_size_t next;
    size_t current[JOBS_MOST]; /* program; their number: none */
} Shared;

/* ---- what becomes of outputs ----------------------------------------------------------------- */

typedef struct Result { /* of one program */
    const Options *options;
    const Program *program;
    Text lines;
    uint64_t sums[SUMS];
    Text files[OUTPUTS];
} Result;

static void add_line(Result *result, const char *combination, const char *const *outputs) {
    text_add(&result->lines, "%s\t%s\t%s", result->program->name, combination,
             outputs[OUTPUT_EXIT]);
    for (int i = OUTPUT_EXIT + 1; i < OUTPUTS; i++)
        if (outputs[i] != NULL)
            text_add(&result->lines, "\t%016llx",
                     (unsigned long long)hash_text(HASH_EMPTY, outputs[i]));
        else
            text_add(&result->lines, "\t-");
    text_add(&result->lines, "\n");
}

static void receive(void *data, const char *combination, const char *const *outputs) {
    Result *result = data;
    for (int i = 0; i < OUTPUTS; i++) {
        if (result->options->folder != NULL) {
            const char *output = outputs[i] != NULL ? outputs[i] : "(none)";
            text_add(&result->files[i], "==== %s\n%s\n", combination, output);
        } else if (result->options->sums) {
            uint64_t *sum = &result->sums[sum_of[i]];
            *sum = hash_text(hash_text(*sum, combination), outputs[i]);
        }
    }
    if (result->options->folder == NULL && !result->options->sums)
        add_line(result, combination, outputs);
}

static void write_file(const char *folder, const char *name, const char *bytes, size_t length) {
    Text path = {0};
    text_add(&path, "%s/%s", folder, name);
    FILE *file = fopen(path.items, "wb");
    if (file == NULL || fwrite(bytes, 1, length, file) != length || fclose(file) != 0) {
        perror(path.items);
        exit(2);
    }
    free(path.items);
}

/* DIR/NAME with `_` for each `/` of the name */
static char *folder_of(const Options *options, const Program *program) {
    Text path = {0};
    text_add(&path, "%s/", options->folder);
    size_t at = path.length;
    text_add(&path, "%s", program->name);
    for (; path.items[at] != '\0'; at++)
        if (path.items[at] == '/') path.items[at] = '_';
    mkdir(path.items, 0777);
    return path.items;
}

static void write_files(const Options *options, Result *result) {
    char *folder = folder_of(options, result->program);
    for (int i = 0; i < OUTPUTS; i++)
        write_file(folder, output_names[i], result->files[i].items, result->files[i].length);
    write_file(folder, "program.pipe", result->program->text, result->program->length);
    free(folder);
}

/* ---- processes ------------------------------------------------------------------------------- */

static void append(int file, size_t index, const Text *lines) {
    size_t head[2] = {index, lines->length};
    Text record = {0};
    text_bytes(&record, (const char *)head, sizeof head);
    text_bytes(&record, lines->items != NULL ? lines->items : "", lines->length);
    if (write(file, record.items, record.length) != (ssize_t)record.length) {
        perror("same-test");
        exit(2);
    }
    free(record.items);
}

static void compile_one(const Options *options, size_t index, int file) {
    const Program *program = &options->programs.items[index];
    Result result = {.options = options, .program = program};
    Compile compile = options->compile;
    compile.receive = receive;
    compile.data = &result;
    for (int i = 0; i < SUMS; i++) result.sums[i] = HASH_EMPTY;
    size_t left_out = compile_all(&compile, program);
    if (options->folder != NULL) write_files(options, &result);
    if (options->sums) {
        text_add(&result.lines, "%s %08x", program->name,
                 (unsigned)hash_text(HASH_EMPTY, program->text));
        for (int i = 0; i < SUMS; i++) text_add(&result.lines, " %08x", (unsigned)result.sums[i]);
        text_add(&result.lines, "\n");
    } else if (left_out > 0) {
        text_add(&result.lines, "# left out\t%s\t%zu\n", program->name, left_out);
    }
    append(file, index, &result.lines);
    for (int i = 0; i < OUTPUTS; i++) free(result.files[i].items);
    free(result.lines.items);
}

static pid_t start(const Options *options, Shared *shared, int which, int file) {
    size_t count = options->programs.count;
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0) return pid;
    for (;;) {
        size_t taken = atomic_fetch_add(&shared->next, 1);
        if (taken >= count) break;
        shared->current[which] = options->backwards ? count - 1 - taken : taken;
        compile_one(options, shared->current[which], file);
        shared->current[which] = count;
    }
    _exit(0);
}

/* The line of a program that a signal ended */
static void report_signal(const Options *options, size_t index, int file, int status) {
    const Program *program = &options->programs.items[index];
    Text line = {0}, why = {0};
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (signal == SIGPROF || signal == SIGALRM)
        text_add(&why, "takes more than %d s", options->compile.seconds);
    else
        text_add(&why, signal != 0 ? "crash, signal %d" : "crash, exit %d",
                 signal != 0 ? signal : WEXITSTATUS(status));
    text_add(&line, "%s\t-\t%s\n", program->name, why.items);
    append(file, index, &line);
    if (options->folder != NULL) {
        char *folder = folder_of(options, program);
        write_file(folder, "program.pipe", program->text, program->length);
        text_add(&why, "\n");
        write_file(folder, "exit", why.items, why.length);
        free(folder);
    }
    free(line.items);
    free(why.items);
}

static void run_jobs(const Options *options, FILE **files) {
    Shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[JOBS_MOST];
    size_t count = options->programs.count;
    if (shared == MAP_FAILED) give_up("no memory, or no processes");
    for (int i = 0; i < options->jobs; i++) {
        shared->current[i] = count;
        pids[i] = start(options, shared, i, fileno(files[i]));
    }
    for (int alive = options->jobs; alive > 0;) {
        int status, which = 0;
        pid_t ended = wait(&status);
        while (which < options->jobs && pids[which] != ended) which++;
        if (which == options->jobs) break;
        size_t index = shared->current[which];
        if (index == count) { /* between two programs only at the end */
            alive--;
            continue;
        }
        report_signal(options, index, fileno(files[which]), status);
        shared->current[which] = count;
        pids[which] = start(options, shared, which, fileno(files[which]));
    }
    munmap(shared, sizeof *shared);
}

/* Prints the lines in the order of the programs. */
static void print_lines(const Options *options, FILE **files) {
    Text *lines = calloc(options->programs.count + 1, sizeof *lines);
    if (lines == NULL) give_up("no memory, or no processes");
    for (int i = 0; i < options->jobs; i++) {
        size_t head[2];
        rewind(files[i]);
        while (fread(head, sizeof head, 1, files[i]) == 1) {
            Text *text = &lines[head[0]];
            char *bytes = reserve(NULL, head[1] + 1);
            if (fread(bytes, 1, head[1], files[i]) == head[1]) text_bytes(text, bytes, head[1]);
            free(bytes);
        }
        fclose(files[i]);
    }
    for (size_t i = 0; i < options->programs.count; i++) {
        if (lines[i].items != NULL) fputs(lines[i].items, stdout);
        free(lines[i].items);
    }
    free(lines);
}

/* ---- the command line ------------------------------------------------------------------------ */

static int usage(void) {
    fprintf(stderr, "usage: same-test [--jobs N] [--combinations N] [--seconds N] [--pipec FILE] "
                    "[--share N]\n"
                    "                 [--backwards] [--only FILE] [--sums | --write DIR] FILE..\n");
    return 2;
}

/* 0, or the exit code of a wrong command line */
static int read_words(int argc, char **argv, Options *options) {
    const char *only = NULL;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(word, "--backwards") == 0) {
            options->backwards = true;
        } else if (strcmp(word, "--sums") == 0) {
            options->sums = true;
        } else if (strncmp(word, "--", 2) != 0) {
            if (!programs_read(word, &options->programs)) return 2;
        } else if (value == NULL) {
            return usage();
        } else {
            i++;
            if (strcmp(word, "--jobs") == 0)
                options->jobs = atoi(value);
            else if (strcmp(word, "--combinations") == 0)
                options->compile.combinations = strtoull(value, NULL, 10);
            else if (strcmp(word, "--seconds") == 0)
                options->compile.seconds = atoi(value);
            else if (strcmp(word, "--pipec") == 0)
                options->compile.pipec = value;
            else if (strcmp(word, "--share") == 0)
                options->compile.share = strtoull(value, NULL, 10);
            else if (strcmp(word, "--only") == 0)
                only = value;
            else if (strcmp(word, "--write") == 0)
                options->folder = value;
            else
                return usage();
        }
    }
    const Compile *compile = &options->compile;
    if (options->jobs < 1 || options->jobs > JOBS_MOST || compile->combinations < 1 ||
        compile->seconds < 1 || compile->share < 1 || options->programs.count == 0 ||
        (options->sums && options->folder != NULL))
        return usage();
    return only == NULL || programs_only(only, &options->programs) ? 0 : 2;
}

int main(int argc, char **argv) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    Options options = {.compile = {.combinations = 512, .seconds = 20, .share = 50},
                       .jobs = processors < 1           ? 1
                               : processors > JOBS_MOST ? JOBS_MOST
                                                        : (int)processors};
    int wrong = read_words(argc, argv, &options);
    if (wrong != 0) return wrong;
    FILE *files[JOBS_MOST];
    for (int i = 0; i < options.jobs; i++) {
        files[i] = tmpfile();
        if (files[i] == NULL) {
            perror("same-test");
            return 2;
        }
    }
    run_jobs(&options, files);
    print_lines(&options, files);
    fflush(stdout);
    _exit(0); /* the programs are not freed */
}
