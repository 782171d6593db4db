/* Suites `ptx` and `assemble`: the generated code.
 *
 * tests/ptx/NAME.pipe gives exactly NAME.ptx, and NAME.watchdog.ptx with the watchdog compiled
 * in. If ptxas is found, the text of every program of the repository, and every PTX file of
 * bench/, assembles without a warning, a spill or local memory. So does each program of examples/,
 * and a part of those of tests/run, written for another target, unless that lacks something
 * (P0500 to P0508). If ptxas is not found, nothing is assembled, which is an error where CI=true.
 * With --taken FOLDER, texts that passed are kept there whole, and a text that is equal to the kept
 * one of its kernel is not assembled again. */
#include "launch/launch.h"
#include "prog/target.h"
#include "tests/driver/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Compiles the item; NULL, with the errors printed, if it is refused */
static PipecProgram *compile(Test *test, const char *text, size_t length, const char *kernel,
                             bool watchdog) {
    PipecOptions options = {.size = sizeof options,
                            .name = test->item,
                            .folder = folder_of(test->arena, test->item),
                            .kernel = kernel,
                            .watchdog = watchdog};
    PipecProgram *program = pipec_compile(text, length, &options);
    if (!expect(test, program != NULL, "no memory")) return NULL;
    PipecStatus status = pipec_program_status(program);
    if ((status == PIPEC_FINE || status == PIPEC_INCOMPLETE) && pipec_program_ptx(program, NULL))
        return program;
    expect(test, false, "is refused:\n%s",
           pipec_diagnostics_text(pipec_program_diagnostics(program)));
    pipec_program_free(program);
    return NULL;
}

static void compare(Test *test, const char *golden, const char *ptx) {
    if (test->bless) {
        file_write(test, golden, ptx, strlen(ptx));
        return;
    }
    const char *wanted = file_read(test->arena, golden, NULL);
    if (!expect(test, wanted != NULL, "%s is missing (make bless)", golden)) return;
    Str difference = str_new(test->arena);
    bool same = strcmp(wanted, ptx) == 0;
    if (!same) text_difference(test->arena, wanted, ptx, &difference);
    expect(test, same, "%s: ptx diff: %s", golden, same ? "" : difference.text);
}

static void run_ptx(Test *test) {
    size_t length = 0;
    const char *text = file_read(test->arena, test->item, &length);
    for (int watchdog = 0; watchdog < 2; watchdog++) {
        PipecProgram *program = compile(test, text, length, NULL, watchdog);
        if (!program) return;
        compare(test, with_suffix(test->arena, test->item, watchdog ? ".watchdog.ptx" : ".ptx"),
                pipec_program_ptx(program, NULL));
        pipec_program_free(program);
    }
}

static void list_ptx(Arena *arena, Items *items) {
    files_in(arena, "tests/ptx", ".pipe", false, items);
}

/* ---- ptxas ----------------------------------------------------------------------------------- */

/* The target that the text names */
static const Target *target_of(Test *test, const char *ptx) {
    const char *at = strstr(ptx, "\n.target ");
    const Target *target =
        at ? target_by_name(arena_copy(test->arena, at + 9, strcspn(at + 9, "\n,"))) : NULL;
    expect(test, target != NULL, "the text names no target");
    return target ? target : target_default();
}

static const char *ptxas_for(Test *test, const char *ptx) {
    return arena_printf(test->arena, "ptxas -arch=%s -v -o /dev/null", target_of(test, ptx)->name);
}

/* Output of `ptxas --version`, read once before the driver starts its processes; "": not found */
static char ptxas_version[1024];

static bool have_ptxas(void) {
    FILE *output = popen("ptxas --version 2>/dev/null", "r");
    if (!output) return false;
    size_t length = fread(ptxas_version, 1, sizeof ptxas_version - 1, output);
    ptxas_version[length] = 0;
    return pclose(output) == 0 && length > 0;
}

static void list_assemble(Arena *arena, Items *items) {
    if (!have_ptxas()) {
        vec_push(arena, items, "ptxas");
        return;
    }
    files_in(arena, "examples", ".pipe", false, items);
    files_in(arena, "kernels", ".pipe", false, items);
    files_in(arena, "tests/ptx", ".pipe", false, items);
    files_in(arena, "tests/run", ".pipe", false, items);
    files_in(arena, "bench", ".pipe", true, items);
    files_in(arena, "bench", ".ptx", true, items);
}

static bool write_whole(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    bool fine = file && fputs(text, file) >= 0;
    return (!file || fclose(file) == 0) && fine;
}

/* Where the text of a kernel is kept: FOLDER/tests-run-NAME.pipe.KERNEL[.watchdog] */
static const char *taken_path(const Test *test, const char *kernel, bool watchdog) {
    const char *name =
        arena_printf(test->arena, "%s.%s%s", test->item, kernel, watchdog ? ".watchdog" : "");
    char *flat = arena_copy(test->arena, name, strlen(name));
    for (char *at = flat; *at; at++)
        if (*at == '/') *at = '-';
    return arena_printf(test->arena, "%s/%s", test->taken, flat);
}

/* Renamed when it is complete: another process may read it meanwhile. */
static void keep(Test *test, const char *path, const char *record) {
    const char *part = arena_printf(test->arena, "%s.%d", path, (int)getpid());
    if (!write_whole(part, record) || rename(part, path) != 0)
        expect(test, false, "cannot write %s", path);
}

/* Of targets besides sm_90a two complaints are those of any kernel: ptxas 13.0 makes calls of the
 * tensor copies of sm_120a, with 8 bytes on the stack and without a spill, and it advises against
 * .multicast::cluster where the target's name has no letter, and on sm_120a. */
static bool complains(const Target *target, const char *text) {
    AssemblerLine line = assembler_line(text);
    bool frame_only = line.kind == ASSEMBLER_MEMORY && line.stores + line.loads == 0,
         advice = strstr(text, "Advisory: '.multicast::cluster'") != NULL;
    return line.kind != ASSEMBLER_NOTHING &&
           (target == target_default() || !(frame_only || advice));
}

static bool assembles(Test *test, const char *what, const char *ptx) {
    const Target *target = target_of(test, ptx);
    const char *name = arena_printf(test->arena, "/tmp/pipec-ptx-%d", (int)getpid());
    if (!write_whole(name, ptx)) return expect(test, false, "cannot write %s", name);
    FILE *output = popen(arena_printf(test->arena, "%s %s 2>&1", ptxas_for(test, ptx), name), "r");
    Str complaints = str_new(test->arena);
    char line[1024];
    bool any = false;
    while (output && fgets(line, sizeof line, output)) {
        if (!complains(target, line)) continue;
        str_add(&complaints, line);
        any = true;
    }
    int code = output ? pclose(output) : -1;
    unlink(name);
    return expect(test, code == 0 && !any, "%s: ptxas ends with %d and prints\n%s", what, code,
                  any ? complaints.text : "");
}

/* Until a launch that starts early executes its wait, the launch before it may still run. Where
 * there is no such wait, no launch starts early. */
static bool waits_first(const char *ptx, bool early) {
    static const char *const accesses[] = {"ld.global", "st.global", "ld.volatile", "st.volatile",
                                           "red.",      "atom.",     "cp.async",    "cp.reduce"};
    const char *body = strstr(ptx, "\n{"), *wait = strstr(ptx, "griddepcontrol.wait;");
    if (!early) return body && !wait;
    for (size_t i = 0; body && wait && i < COUNT_OF(accesses); i++) {
        const char *access = strstr(body, accesses[i]);
        if (access && access < wait) return false;
    }
    return body && wait;
}

static void assemble(Test *test, const char *kernel, bool watchdog, const char *ptx) {
    const Target *target = target_of(test, ptx);
    const char *what = arena_printf(test->arena, "%s for %s%s", kernel, target->name,
                                    watchdog ? ", with the watchdog" : "");
    expect(test, waits_first(ptx, target->has[CAP_EARLY_STARTS]),
           "%s accesses memory before griddepcontrol.wait", what);
    if (!test->taken) {
        assembles(test, what, ptx);
        return;
    }
    if (target != target_default())
        kernel = arena_printf(test->arena, "%s.%s", kernel, target->name);
    const char *path = taken_path(test, kernel, watchdog);
    const char *record =
        arena_printf(test->arena, "%s%s\n%s", ptxas_version, ptxas_for(test, ptx), ptx);
    const char *taken = file_read(test->arena, path, NULL);
    if (taken && strcmp(taken, record) == 0)
        expect(test, true, "%s", "");
    else if (assembles(test, what, ptx))
        keep(test, path, record);
}

/* ---- other targets --------------------------------------------------------------------------- */

/* The text with another target instead of sm_90a; NULL: it names none, or has PTX of its author */
static const char *written_for(Test *test, const char *text, const char *target) {
    static const char old[] = "for sm_90a";
    Str out = str_new(test->arena);
    const char *at;
    if (!strstr(text, old) || strstr(text, "ptx \"")) return NULL;
    for (; (at = strstr(text, old)); text = at + sizeof old - 1)
        str_printf(&out, "%.*sfor %s", (int)(at - text), text, target);
    str_add(&out, text);
    return out.text;
}

/* A program that a target does not take lacks something of it, and nothing else. */
static void judge_refusal(Test *test, const PipecProgram *program, const char *target) {
    const PipecDiagnostics *said = pipec_program_diagnostics(program);
    bool lacks = false;
    for (size_t i = 0; i < pipec_diagnostics_count(said); i++)
        lacks |= strncmp(pipec_diagnostics_get(said, i)->code, "P05", 3) == 0;
    expect(test, lacks, "for %s it is refused:\n%s", target, pipec_diagnostics_text(said));
}

static void assemble_for(Test *test, const char *text, const char *kernel, const char *target) {
    PipecOptions options = {.size = sizeof options,
                            .name = test->item,
                            .folder = folder_of(test->arena, test->item),
                            .kernel = kernel};
    const char *other = written_for(test, text, target);
    PipecProgram *program = other ? pipec_compile(other, strlen(other), &options) : NULL;
    if (!program) return;
    const char *ptx = pipec_program_ptx(program, NULL);
    if (ptx && pipec_program_status(program) != PIPEC_REFUSED)
        assemble(test, kernel, false, ptx);
    else
        judge_refusal(test, program, target);
    pipec_program_free(program);
}

/* One in PART programs of tests/run, each for one target */
#define PART 4
static void assemble_for_others(Test *test, const char *text, const char *kernel) {
    bool example = strncmp(test->item, "examples/", 9) == 0;
    uint64_t hash = fnv1a(FNV_START, test->item, strlen(test->item));
    if (!example && (strncmp(test->item, "tests/run/", 10) != 0 || hash % PART != 0)) return;
    for (size_t i = 0; i < target_count; i++)
        if (&target_rows[i] != target_default() && (example || hash / PART % target_count == i))
            assemble_for(test, text, kernel, target_rows[i].name);
}

static void run_assemble(Test *test) {
    if (strcmp(test->item, "ptxas") == 0) {
        const char *ci = getenv("CI");
        if (ci && strcmp(ci, "true") == 0) {
            expect(test, false, "it is not found, and CI=true needs it: nothing is assembled");
            return;
        }
        str_printf(&test->out, "ptxas is not found: skipped, nothing is assembled\n");
        test->tally.skipped++;
        return;
    }
    size_t length = 0;
    const char *text = file_read(test->arena, test->item, &length);
    if (text && ends_with(test->item, ".ptx")) {
        assembles(test, test->item, text);
        return;
    }
    if (text && strstr(text, "//> says P0704")) return; /* inline PTX that ptxas refuses too */
    PipecOptions options = {.size = sizeof options,
                            .name = test->item,
                            .folder = folder_of(test->arena, test->item),
                            .check_only = true};
    PipecProgram *all = pipec_compile(text, length, &options);
    const char *kernel;
    for (size_t i = 0; all && (kernel = pipec_program_kernel(all, i)); i++) {
        for (int watchdog = 0; watchdog < 2; watchdog++) {
            PipecProgram *program = compile(test, text, length, kernel, watchdog);
            if (!program) continue;
            assemble(test, kernel, watchdog, pipec_program_ptx(program, NULL));
            pipec_program_free(program);
        }
        assemble_for_others(test, text, kernel);
    }
    pipec_program_free(all);
}

const Suite suite_ptx = {"ptx", false, list_ptx, run_ptx, 0};
const Suite suite_assemble = {"assemble", false, list_assemble, run_assemble, 8};
