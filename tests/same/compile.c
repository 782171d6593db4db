/* All outputs of one program: of the check of all kernels, then of the generated code of each
 * kernel, variant and combination of statics; for some programs also of the command line, which
 * has the exit codes. */
#include "include/pipec.h"
#include "tests/same/same.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATICS_MOST   64
#define WATCHDOG_SHARE 8 /* one program in this many is also built with the watchdog */
#define CHECK_SHARE    4 /* one drawn program in this many is also checked alone */

typedef struct Job {
    const Compile *compile;
    const Program *program;
    const char *kernel, *variant; /* of the present kernel; NULL: the only one */
    size_t left_out;
} Job;

/* A combination that does not end is ended by a signal, which the parent process reports. */
static void begin(const Job *job) {
    struct itimerval limit = {.it_value = {.tv_sec = job->compile->seconds}};
    setitimer(ITIMER_PROF, &limit, NULL);
    alarm((unsigned)job->compile->seconds * 10);
}

/* ---- the library ----------------------------------------------------------------------------- */

static PipecOptions options_of(const Job *job, const char *const *values, size_t count) {
    return (PipecOptions){.size = sizeof(PipecOptions),
                          .name = job->program->name,
                          .folder = job->program->folder,
                          .kernel = job->kernel,
                          .variant = job->variant,
                          .values = values,
                          .value_count = count,
                          .launch_values = true};
}

static bool is_wanted(const Job *job, const char *combination) {
    const Program *program = job->program;
    bool wanted = program->wanted_count == 0;
    for (size_t i = 0; i < program->wanted_count && !wanted; i++)
        wanted = strcmp(program->wanted[i], combination) == 0;
    return wanted;
}

static void receive(const Job *job, const char *combination, PipecProgram *program) {
    char status[16];
    snprintf(status, sizeof status, "exit %d", (int)pipec_program_status(program));
    const PipecDiagnostics *diagnostics = pipec_program_diagnostics(program);
    const char *outputs[OUTPUTS] = {
        [OUTPUT_EXIT] = status,
        [OUTPUT_DIAGNOSTICS] = pipec_diagnostics_text(diagnostics),
        [OUTPUT_JSON] = pipec_diagnostics_json(diagnostics),
        [OUTPUT_CODE] = pipec_program_emit(program, "code"),
        [OUTPUT_PTX] = pipec_program_ptx(program, NULL),
        [OUTPUT_MANIFEST] = pipec_program_manifest(program),
        [OUTPUT_REPORT] = pipec_program_report(program),
    };
    job->compile->receive(job->compile->data, combination, outputs);
}

/* Compiles one combination; the program may be NULL only if memory ran out. */
static PipecProgram *try(const Job *job, const char *combination, const PipecOptions *options) {
    begin(job);
    PipecProgram *program = pipec_compile(job->program->text, job->program->length, options);
    if (!is_wanted(job, combination)) {
        return program;
    } else if (program != NULL) {
        receive(job, combination, program);
    } else {
        const char *outputs[OUTPUTS] = {[OUTPUT_EXIT] = "no memory"};
        job->compile->receive(job->compile->data, combination, outputs);
    }
    return program;
}

/* ---- statics --------------------------------------------------------------------------------- */

typedef struct Open { /* the statics with sets */
    PipecStatic items[STATICS_MOST];
    size_t count;
    uint64_t total; /* of combinations; at most 2^32 */
} Open;

static Open open_statics(const PipecProgram *program) {
    Open open = {.total = 1};
    PipecStatic one = {.size = sizeof one};
    for (size_t i = 0; pipec_program_static(program, i, &one) && open.count < STATICS_MOST; i++) {
        if (one.choice_count == 0 || open.total * one.choice_count > UINT32_MAX) continue;
        open.total *= one.choice_count;
        open.items[open.count++] = one;
    }
    return open;
}

static bool is_open(const Open *open, const char *word) {
    size_t length = strcspn(word, "=");
    for (size_t i = 0; i < open->count; i++)
        if (strlen(open->items[i].name) == length &&
            strncmp(open->items[i].name, word, length) == 0)
            return true;
    return false;
}

static void add_kernel(const Job *job, Text *name) {
    text_add(name, "%s:%s", job->kernel != NULL ? job->kernel : "",
             job->variant != NULL ? job->variant : "");
}

/* Builds the combination number `place`, with the values of the head for other statics. */
static void build_place(const Job *job, const Open *open, uint64_t place) {
    const Program *program = job->program;
    const char **values = reserve(NULL, (program->value_count + open->count) * sizeof *values);
    Text words[STATICS_MOST] = {{0}}, name = {0};
    size_t count = 0;
    add_kernel(job, &name);
    for (size_t i = 0; i < program->value_count; i++)
        if (!is_open(open, program->values[i])) values[count++] = program->values[i];
    for (size_t i = open->count; i-- > 0;) {
        const PipecStatic *one = &open->items[i];
        text_add(&words[i], "%s=%s", one->name, one->choice_texts[place % one->choice_count]);
        place /= one->choice_count;
    }
    for (size_t i = 0; i < open->count; i++) {
        values[count++] = words[i].items;
        text_add(&name, " %s", words[i].items);
    }
    if (is_wanted(job, name.items)) {
        PipecOptions options = options_of(job, values, count);
        PipecProgram *built = try(job, name.items, &options);
        pipec_program_free(built);
    }
    for (size_t i = 0; i < open->count; i++) free(words[i].items);
    free(name.items);
    free(values);
}

static uint64_t divisor(uint64_t a, uint64_t b) { return b == 0 ? a : divisor(b, a % b); }

/* If there are too many combinations, the tried ones are those at the multiples of a step that
 * has no common divisor with their number: each value of a static is tried about equally often. */
static void build_combinations(Job *job, const Open *open) {
    uint64_t total = open->total, most = job->compile->combinations, step = 1;
    if (most > total) most = total;
    if (most < total) {
        step = total * 5 / 8;
        while (step == 0 || divisor(total, step) != 1) step++;
    }
    for (uint64_t i = 0; i < most; i++) build_place(job, open, i * step % total);
    job->left_out += total - most;
}

static bool is_one_in(const Program *program, uint64_t share) {
    return hash_text(HASH_EMPTY, program->name) % share == 0;
}

/* The first combination is that of the text and its head. */
static void build_kernel(Job *job) {
    const Program *program = job->program;
    PipecOptions options = options_of(job, program->values, program->value_count);
    Text name = {0};
    add_kernel(job, &name);
    PipecProgram *first = try(job, name.items, &options);
    Open open = {.total = 1};
    if (first != NULL) open = open_statics(first);
    if (open.total > 1) {
        if (job->compile->combinations > 1)
            build_combinations(job, &open);
        else
            job->left_out += open.total - 1;
    }
    pipec_program_free(first);
    if (is_one_in(program, WATCHDOG_SHARE)) {
        options.watchdog = true;
        text_add(&name, " watchdog");
        PipecProgram *watched = try(job, name.items, &options);
        pipec_program_free(watched);
    }
    free(name.items);
}

/* ---- the command line ------------------------------------------------------------------------ */

static char *contents(FILE *file) {
    Text text = {0};
    char piece[65536];
    rewind(file);
    text_bytes(&text, "", 0);
    for (size_t count; (count = fread(piece, 1, sizeof piece, file)) > 0;)
        text_bytes(&text, piece, count);
    fclose(file);
    return text.items;
}

/* Runs `pipec WORD - ..` on the text, which is its standard input. */
static void run_command(const Job *job, const char *const *words, const char *name) {
    if (!is_wanted(job, name)) return;
    FILE *in = tmpfile(), *out = tmpfile(), *err = tmpfile();
    if (in == NULL || out == NULL || err == NULL) give_up("no memory, or no processes");
    fwrite(job->program->text, 1, job->program->length, in);
    fflush(in);
    rewind(in);
    begin(job);
    pid_t pid = fork();
    if (pid == 0) {
        rlim_t seconds = (rlim_t)job->compile->seconds;
        setrlimit(RLIMIT_CPU, &(struct rlimit){seconds, seconds});
        dup2(fileno(in), 0), dup2(fileno(out), 1), dup2(fileno(err), 2);
        execv(job->compile->pipec, (char *const *)words);
        _exit(127);
    }
    int status = 0;
    char text[64];
    if (pid < 0 || waitpid(pid, &status, 0) != pid) give_up("no memory, or no processes");
    snprintf(text, sizeof text, WIFEXITED(status) ? "exit %d" : "signal %d",
             WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    fclose(in);
    char *printed = contents(out), *said = contents(err);
    const char *outputs[OUTPUTS] = {
        [OUTPUT_EXIT] = text, [OUTPUT_DIAGNOSTICS] = said, [OUTPUT_PTX] = printed};
    job->compile->receive(job->compile->data, name, outputs);
    free(printed);
    free(said);
}

static void run_commands(const Job *job) {
    const char *folder = job->program->folder != NULL ? job->program->folder : ".";
    const char *check[] = {"pipec", "check", "-", "--folder", folder, NULL};
    const char *json[] = {"pipec", "check", "-", "--folder", folder, "--format=json", NULL};
    const char *build[] = {"pipec", "build", "-", "--folder", folder, "-o", "-", NULL};
    run_command(job, check, "pipec check");
    run_command(job, json, "pipec check --format=json");
    run_command(job, build, "pipec build");
}

/* ---- one program ----------------------------------------------------------------------------- */

static void build_kernels(Job *job, const PipecProgram *checked) {
    const char *full;
    for (size_t i = 0; (full = pipec_program_kernel(checked, i)) != NULL; i++) {
        Text kernel = {0};
        text_add(&kernel, "%s", full);
        char *colon = strchr(kernel.items, ':');
        if (colon != NULL) *colon = '\0';
        job->kernel = kernel.items;
        job->variant = colon != NULL ? colon + 1 : NULL;
        build_kernel(job);
        free(kernel.items);
    }
}

/* A drawn program has one kernel, and what `check` says is also said when it is built. */
static bool is_checked_alone(const Program *program) {
    return program->folder != NULL || is_one_in(program, CHECK_SHARE);
}

size_t compile_all(const Compile *compile, const Program *program) {
    Job job = {.compile = compile, .program = program};
    PipecOptions options =
        options_of(&job, program->values, program->values_of_check ? program->value_count : 0);
    options.check_only = true;
    options.launch_values = false;
    /* sanitised builds need more work for all combinations of some kernels than the meter has */
    if (compile->combinations == 1) options.combinations = 1;
    if (is_checked_alone(program)) {
        PipecProgram *checked = try(&job, "check", &options);
        if (checked != NULL) build_kernels(&job, checked);
        pipec_program_free(checked);
    } else {
        build_kernel(&job);
    }
    if (compile->pipec != NULL && is_one_in(program, compile->share)) run_commands(&job);
    return job.left_out;
}
