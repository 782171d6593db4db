/* Suites `ptx` and `assemble`: the generated code.
 *
 * tests/ptx/NAME.pipe gives exactly NAME.ptx, and NAME.watchdog.ptx with the watchdog compiled
 * in. If ptxas is found, the text of every program of the repository assembles without a
 * warning, a spill or local memory. */
#include "launch/launch.h"
#include "tests/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Compiles the item; NULL, with the errors printed, if it is refused */
static PipecProgram *compile(Test *test, const char *text, size_t length, const char *kernel, bool watchdog) {
    PipecOptions options = {.name = test->item, .kernel = kernel, .watchdog = watchdog};
    PipecProgram *program = pipec_compile(text, length, &options);
    if (!expect(test, program != NULL, "no memory")) return NULL;
    PipecStatus status = pipec_program_status(program);
    if ((status == PIPEC_FINE || status == PIPEC_INCOMPLETE) && pipec_program_ptx(program, NULL)) return program;
    expect(test, false, "is refused:\n%s", pipec_diagnostics_text(pipec_program_diagnostics(program)));
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

static void list_ptx(Arena *arena, Items *items) { files_in(arena, "tests/ptx", ".pipe", false, items); }

/* ---- ptxas ----------------------------------------------------------------------------------- */

static bool have_ptxas(void) { return system("ptxas --version >/dev/null 2>&1") == 0; }

static void list_assemble(Arena *arena, Items *items) {
    if (!have_ptxas()) {
        vec_push(arena, items, "ptxas");
        return;
    }
    files_in(arena, "examples", ".pipe", false, items);
    files_in(arena, "tests/ptx", ".pipe", false, items);
    files_in(arena, "tests/run", ".pipe", false, items);
    files_in(arena, "bench", ".pipe", false, items);
    files_in(arena, "bench", ".pipe", false, items);
}

static void assemble(Test *test, const char *what, const char *ptx) {
    char name[] = "/tmp/pipec-ptx-XXXXXX";
    int file = mkstemp(name);
    bool written = file >= 0 && write(file, ptx, strlen(ptx)) == (ssize_t)strlen(ptx);
    if (file >= 0) close(file);
    if (!expect(test, written, "cannot write %s", name)) return;
    const char *command = arena_printf(test->arena, "ptxas -arch=sm_90a -v -o /dev/null %s 2>&1", name);
    FILE *says = popen(command, "r");
    Str complaints = str_new(test->arena);
    char line[1024];
    bool any = false;
    while (says && fgets(line, sizeof line, says)) {
        if (assembler_line(line).says == ASSEMBLER_NOTHING) continue;
        str_add(&complaints, line);
        any = true;
    }
    int code = says ? pclose(says) : -1;
    expect(test, code == 0 && !any, "%s: ptxas ends with %d and says\n%s", what, code, any ? complaints.text : "");
    unlink(name);
}

static void run_assemble(Test *test) {
    if (strcmp(test->item, "ptxas") == 0) {
        str_printf(&test->out, "ptxas is not found: nothing is assembled\n");
        test->tally.skipped++;
        return;
    }
    size_t length = 0;
    const char *text = file_read(test->arena, test->item, &length);
    if (text && strstr(text, "//> says P0704")) return; /* inline PTX that ptxas refuses too */
    PipecOptions options = {.name = test->item, .check_only = true};
    PipecProgram *all = pipec_compile(text, length, &options);
    const char *kernel;
    for (size_t i = 0; all && (kernel = pipec_program_kernel(all, i)); i++) {
        for (int watchdog = 0; watchdog < 2; watchdog++) {
            PipecProgram *program = compile(test, text, length, kernel, watchdog);
            if (!program) continue;
            assemble(test, arena_printf(test->arena, "%s%s", kernel, watchdog ? ", with the watchdog" : ""),
                     pipec_program_ptx(program, NULL));
            pipec_program_free(program);
        }
    }
    pipec_program_free(all);
}

const Suite suite_ptx = {"ptx", false, list_ptx, run_ptx};
const Suite suite_assemble = {"assemble", false, list_assemble, run_assemble};
