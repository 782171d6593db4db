/* pipec build: compiles a kernel to a .ptx or .cubin file and its manifest, both or none; or
 * prints one step of the compilation. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct Build {
    const Command *command;
    const char *out, *emit, *machine;
    const char *bundle; /* a folder; NULL: one candidate is built */
    const char *folder; /* of standard input, for its includes; NULL: none */
    bool report, watchdog, invariant, cubins;
    Format format;
    Words words;
    Texts denied, accepted;
    PipecProgram *program;
    PipecProgram *asked; /* without sizes, if these chose `program` */
    const char *target;  /* NULL: that of the kernel */
    bool several;        /* `target` is one of several, which the names of the files tell */
    const PipecDiagnostics *said; /* of the target before; NULL: there is none */
    PipecChoice choice;
    /* seconds: CPU time to PTX, wall clock in ptxas */
    double compiled, assembled;
} Build;

static double seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

/* `path` with another ending after the last dot of its last component; NULL: no memory */
static char *with_ending(const char *path, const char *ending) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    size_t stem = dot != NULL && dot > (slash != NULL ? slash + 1 : path) ? (size_t)(dot - path)
                                                                          : strlen(path);
    char *name = malloc(stem + strlen(ending) + 1);
    if (name == NULL) return NULL;
    memcpy(name, path, stem);
    memcpy(name + stem, ending, strlen(ending) + 1);
    return name;
}

/* `path` with ".sm_90a" before its ending; NULL: no memory */
static char *with_target(const char *path, const char *target) {
    const char *dot = strrchr(path, '.');
    size_t bytes = strlen(path) + strlen(target) + 2;
    char *name = malloc(bytes);
    if (name != NULL) snprintf(name, bytes, "%.*s.%s%s", (int)(dot - path), path, target, dot);
    return name;
}

/* STEM.ptx in the current folder */
static char *default_out(const char *file) {
    const char *slash = strrchr(file, '/'), *shipped = shipped_name(file);
    if (slash != NULL) file = slash + 1;
    return with_ending(strcmp(file, "-") == 0 ? "stdin" : shipped != NULL ? shipped : file, ".ptx");
}

/* ---- printed forms --------------------------------------------------------------------------- */

static const PipecForm *form_named(const char *name) {
    const PipecForm *form;
    for (size_t i = 0; (form = pipec_form(i)) != NULL; i++)
        if (strcmp(form->name, name) == 0) return form;
    return NULL;
}

static int write_device(const char *path, const char *text, size_t length) {
    FILE *stream = fopen(path, "w");
    bool fine = stream != NULL && fwrite(text, 1, length, stream) == length;
    int why = errno;
    if (stream != NULL && fclose(stream) != 0) fine = false, why = errno;
    if (!fine) say_error("cannot write `%s`: %s", path, strerror(why));
    return fine ? PIPEC_FINE : PIPEC_UNUSABLE;
}

static int write_one(const char *path, const char *text, size_t length) {
    OutputFile file;
    if (path == NULL || strcmp(path, "-") == 0) {
        fwrite(text, 1, length, stdout);
        return PIPEC_FINE;
    }
    if (is_device(path)) return write_device(path, text, length);
    return output_file_write(&file, path, text, length) && output_file_commit(&file)
               ? PIPEC_FINE
               : PIPEC_UNUSABLE;
}

static int emit(const Build *build) {
    const char *text = pipec_program_emit(build->program, build->emit);
    int status = text == NULL ? PIPEC_FINE : write_one(build->out, text, strlen(text));
    fflush(stdout); /* before the messages about it */
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int write_ptx(const Build *build, const char *out, const char *json) {
    size_t length;
    const char *ptx = pipec_program_ptx(build->program, &length),
               *manifest = pipec_program_manifest(build->program);
    OutputFile text, fields;
    if (manifest == NULL) return out_of_memory();
    if (!output_file_write(&text, out, ptx, length)) return PIPEC_UNUSABLE;
    if (!output_file_write(&fields, json, manifest, strlen(manifest))) {
        output_file_discard(&text);
        return PIPEC_UNUSABLE;
    }
    if (!output_file_commit(&text)) {
        output_file_discard(&fields);
        return PIPEC_UNUSABLE;
    }
    if (output_file_commit(&fields)) return PIPEC_FINE;
    unlink(out);
    return PIPEC_UNUSABLE;
}

static int write_cubin(Build *build, const char *out, const char *json) {
    const char *manifest = pipec_program_manifest(build->program);
    OutputFile fields;
    if (manifest == NULL) return out_of_memory();
    if (!output_file_write(&fields, json, manifest, strlen(manifest))) return PIPEC_UNUSABLE;
    double begun = seconds(CLOCK_MONOTONIC);
    PipecStatus status = pipec_program_assemble(build->program, out);
    build->assembled = seconds(CLOCK_MONOTONIC) - begun;
    say_diagnostics(pipec_program_diagnostics(build->program), build->format);
    if (status == PIPEC_FINE && output_file_commit(&fields)) {
        if (build->report)
            printf("\ntime: %.1f ms of CPU time to PTX, %.0f ms in ptxas\n", build->compiled * 1e3,
                   build->assembled * 1e3);
        return PIPEC_FINE;
    }
    output_file_discard(&fields);
    if (status != PIPEC_FINE) return (int)status;
    unlink(out);
    return PIPEC_UNUSABLE;
}

static bool no_files(const Build *build) {
    return build->out != NULL && (strcmp(build->out, "-") == 0 || is_device(build->out));
}

/* The names of the output files, to be freed: the program, and its manifest or NULL if there is
 * none. False: no memory */
static bool name_files(const Build *build, char **out, char **json) {
    *out = build->out != NULL ? strdup(build->out) : default_out(build->words.file);
    if (build->several && *out != NULL) {
        char *one = with_target(*out, build->target);
        free(*out);
        *out = one;
    }
    *json = *out != NULL && build->emit == NULL ? with_ending(*out, ".json") : NULL;
    return *out != NULL && (*json != NULL || build->emit != NULL);
}

static int write_files(Build *build) {
    char *out, *json;
    int status;
    if (!name_files(build, &out, &json))
        status = out_of_memory();
    else
        status =
            ends_with(out, ".cubin") ? write_cubin(build, out, json) : write_ptx(build, out, json);
    free(json);
    free(out);
    return status;
}

/* False, with an error, if an output file is the source. */
static bool keeps_source(const Build *build) {
    char *out, *json;
    if (no_files(build) || (build->emit != NULL && build->out == NULL)) return true;
    bool named = name_files(build, &out, &json);
    const char *hit = !named                                               ? NULL
                      : same_file(out, build->words.file)                  ? out
                      : json != NULL && same_file(json, build->words.file) ? json
                                                                           : NULL;
    if (!named) out_of_memory();
    if (hit != NULL) {
        say_error("`%s` is the source and would be overwritten", hit);
        say_help("write another file after `-o`");
    }
    free(json);
    free(out);
    return named && hit == NULL;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Standard input cannot be read again */
static bool has_sizes(const Build *build) {
    if (strcmp(build->words.file, "-") == 0) return false;
    for (size_t i = 0; i < build->words.values.count; i++)
        if (!pipec_program_is_static(build->program, build->words.values.items[i])) return true;
    return false;
}

/* Replaces the program, which has errors, by the one that the model chooses for the sizes among the
 * values; `options`: its own. Leaves it if there is nothing to choose, or it is wrong otherwise. */
static bool choose(Build *build, PipecOptions options) {
    options.launch_values = true;
    PipecProgram *any = pipec_compile_file(build->words.file, &options);
    if (any == NULL) return false;
    PipecRunOptions data = {.size = sizeof data,
                            .values = build->words.values.items,
                            .value_count = build->words.values.count};
    PipecChooseOptions how = {.size = sizeof how, .machine = build->machine, .strict = 1};
    build->choice = (PipecChoice){.size = sizeof build->choice};
    PipecProgram *other = pipec_program_chosen(any, &data, &how, &build->choice);
    bool wrong = pipec_diagnostics_errors(pipec_program_diagnostics(any)) > 0;
    if (other == NULL && build->choice.kernel == NULL && !wrong) {
        pipec_program_free(any);
        return true;
    }
    pipec_program_free(build->program);
    build->program = other != NULL ? other : any;
    build->asked = other != NULL ? any : NULL;
    return true;
}

static void print_choice(const Build *build) {
    const PipecChoice *choice = &build->choice;
    bool to_output = build->out != NULL && strcmp(build->out, "-") == 0;
    if (choice->kernel == NULL) return;
    fprintf(to_output ? stderr : stdout, "chosen: `%s`%s%s, of %zu (%s%s)\n", choice->kernel,
            choice->values[0] != 0 ? " " : "", choice->values, choice->candidates,
            choice->limit != NULL ? "the fastest as predicted for " : "the first that can run",
            choice->limit != NULL ? choice->machine : "");
}

/* Compiles for build->target. False: no memory */
static bool compile(Build *build) {
    bool early = build->emit != NULL && !form_named(build->emit)->generated;
    PipecOptions options = {.size = sizeof options,
                            .folder = build->folder,
                            .kernel = build->words.kernel,
                            .variant = build->words.variant,
                            .values = build->words.values.items,
                            .value_count = build->words.values.count,
                            .denied = build->denied.items,
                            .denied_count = build->denied.count,
                            .accepted = build->accepted.items,
                            .accepted_count = build->accepted.count,
                            .watchdog = build->watchdog,
                            .invariant = build->invariant,
                            .target = build->target,
                            .check_only = early};
    double begun = seconds(CLOCK_PROCESS_CPUTIME_ID);
    build->program = pipec_compile_file(build->words.file, &options);
    if (build->program == NULL || (!early && has_sizes(build) && !choose(build, options)))
        return false;
    build->compiled = seconds(CLOCK_PROCESS_CPUTIME_ID) - begun;
    return true;
}

/* What another target has said is not repeated. */
static void say_new(const Build *build, const PipecDiagnostics *diagnostics) {
    bool same = build->said != NULL && strcmp(pipec_diagnostics_text(build->said),
                                              pipec_diagnostics_text(diagnostics)) == 0;
    if (!same) say_diagnostics(diagnostics, build->format);
}

static int write_program(Build *build) {
    int status = (int)pipec_program_status(build->program);
    int emitted = build->emit != NULL ? emit(build) : PIPEC_FINE;
    say_new(build, pipec_program_diagnostics(build->program));
    bool prints = no_files(build);
    if (build->emit != NULL) return (int)pipec_worse((PipecStatus)status, (PipecStatus)emitted);
    size_t length;
    const char *ptx = pipec_program_ptx(build->program, &length);
    if (ptx == NULL) return status;
    print_choice(build);
    if (build->report) {
        const char *report = pipec_program_report(build->program);
        if (report == NULL) return out_of_memory();
        fputs(report, prints && strcmp(build->out, "-") == 0 ? stderr : stdout);
    }
    int written = prints ? write_one(build->out, ptx, length) : write_files(build);
    return (int)pipec_worse((PipecStatus)status, (PipecStatus)written);
}

/* What has the targets of the kernel: a program that sizes chose has one. */
static const PipecProgram *named(const Build *build) {
    return build->asked != NULL ? build->asked : build->program;
}

/* Several targets cannot be one text. */
static int refuse_several(const Build *build) {
    const char *first = pipec_program_target(named(build), 0),
               *second = pipec_program_target(named(build), 1);
    say_error("`%s` has several targets, and %s prints one", build->words.file,
              build->emit != NULL ? "`--emit`" : "`-o`");
    say_help("name it: `--target %s` or `--target %s`", first, second);
    return PIPEC_UNUSABLE;
}

static void free_programs(Build *build) {
    pipec_program_free(build->program);
    pipec_program_free(build->asked);
    build->program = build->asked = NULL;
}

/* Writes the files of all targets, if the kernel can be built for each; the first was compiled. */
static int build_each(const Build *first) {
    size_t count = 0;
    int status = PIPEC_FINE;
    while (pipec_program_target(named(first), count) != NULL) count++;
    Build *all = calloc(count, sizeof *all);
    if (all == NULL) return out_of_memory();
    for (size_t i = 0; i < count && status != PIPEC_UNUSABLE; i++) {
        all[i] = *first;
        all[i].program = all[i].asked = NULL;
        all[i].target = pipec_program_target(named(first), i);
        all[i].several = true;
        if (!compile(&all[i])) status = out_of_memory();
    }
    bool built = status == PIPEC_FINE;
    for (size_t i = 0; i < count && built; i++)
        built = pipec_program_ptx(all[i].program, NULL) != NULL;
    for (size_t i = 0; i < count && status != PIPEC_UNUSABLE; i++) {
        bool writes = built || pipec_program_ptx(all[i].program, NULL) == NULL;
        int one = !keeps_source(&all[i]) ? PIPEC_UNUSABLE : writes ? write_program(&all[i]) : 0;
        if (i + 1 < count) all[i + 1].said = pipec_program_diagnostics(all[i].program);
        status = (int)pipec_worse((PipecStatus)status, (PipecStatus)one);
    }
    for (size_t i = 0; i < count; i++) free_programs(&all[i]);
    free(all);
    return status;
}

static int build_all(Build *build) {
    if (!compile(build)) return out_of_memory();
    bool several = pipec_program_target(named(build), 1) != NULL;
    if (several && (build->emit != NULL || no_files(build))) return refuse_several(build);
    return several ? build_each(build) : write_program(build);
}

static int unknown_form(const Build *build) {
    char names[256] = "";
    const PipecForm *form;
    for (size_t i = 0; (form = pipec_form(i)) != NULL; i++) {
        size_t length = strlen(names);
        const char *between = i == 0 ? "" : pipec_form(i + 1) != NULL ? ", " : " or ";
        snprintf(names + length, sizeof names - length, "%s%s", between, form->name);
    }
    return usage_error(build->command, "`--emit` takes %s, not `%s`", names, build->emit);
}

static int list_forms(void) {
    const PipecForm *form;
    for (size_t i = 0; (form = pipec_form(i)) != NULL; i++)
        printf("%-10s %s\n", form->name, form->what);
    return PIPEC_FINE;
}

static int check_options(const Build *build) {
    if (build->cubins) return usage_error(build->command, "`--cubins` is for `--bundle`");
    if (build->emit != NULL && form_named(build->emit) == NULL) return unknown_form(build);
    if (build->emit != NULL && build->report)
        return usage_error(build->command, "`--emit` and `--report` cannot be combined");
    if (build->emit == NULL && build->out != NULL && !no_files(build) &&
        !ends_with(build->out, ".ptx") && !ends_with(build->out, ".cubin"))
        return usage_error(build->command, "the name `%s` must end in .ptx or .cubin", build->out);
    return PIPEC_FINE;
}

static int check_bundle(const Build *build) {
    if (build->out != NULL || build->emit != NULL || build->report || build->watchdog)
        return usage_error(build->command,
                           "`--bundle` has no `-o`, `--emit`, `--report` and `--watchdog`");
    return PIPEC_FINE;
}

static int write_bundle(const Build *build) {
    BundleWords words = {.command = build->command,
                         .file = build->words.file,
                         .kernel = build->words.kernel,
                         .variant = build->words.variant,
                         .values = &build->words.values,
                         .denied = &build->denied,
                         .accepted = &build->accepted,
                         .folder = build->bundle,
                         .includes = build->folder,
                         .machine = build->machine,
                         .target = build->target,
                         .cubins = build->cubins,
                         .invariant = build->invariant,
                         .format = build->format};
    return bundle_write(&words);
}

int command_build(const Command *command, int argc, char **argv) {
    Build build = {.command = command, .machine = PIPEC_MACHINE};
    Texts words = {0};
    const Option options[] = {{"-o", OPTION_TEXT, &build.out},
                              {"--emit", OPTION_TEXT, &build.emit},
                              {"--report", OPTION_FLAG, &build.report},
                              {"--watchdog", OPTION_FLAG, &build.watchdog},
                              {"--folder", OPTION_TEXT, &build.folder},
                              {"--target", OPTION_TEXT, &build.target},
                              {"-D", OPTION_LIST, &build.denied},
                              {"--accept", OPTION_LIST, &build.accepted},
                              {"--format", OPTION_FORMAT, &build.format},
                              {"--machine", OPTION_TEXT, &build.machine},
                              {"--invariant", OPTION_FLAG, &build.invariant},
                              {"--bundle", OPTION_TEXT, &build.bundle},
                              {"--cubins", OPTION_FLAG, &build.cubins}};
    int status = PIPEC_UNUSABLE;
    switch (
        options_parse(command, argc, argv, options, sizeof options / sizeof options[0], &words)) {
    case PARSED_FINE:
        if (build.emit != NULL && strcmp(build.emit, "list") == 0)
            status = list_forms();
        else if (!words_split(command, &words, &build.words))
            break;
        else if (!folder_fits(command, build.folder, build.words.file))
            break;
        else if (build.bundle != NULL)
            status = check_bundle(&build) == PIPEC_FINE ? write_bundle(&build) : PIPEC_UNUSABLE;
        else
            status = check_options(&build) == PIPEC_FINE && keeps_source(&build) ? build_all(&build)
                                                                                 : PIPEC_UNUSABLE;
        break;
    case PARSED_HELP: status = PIPEC_FINE; break;
    case PARSED_WRONG: break;
    }
    free_programs(&build);
    texts_free(&build.words.values);
    texts_free(&build.denied);
    texts_free(&build.accepted);
    texts_free(&words);
    return status;
}
