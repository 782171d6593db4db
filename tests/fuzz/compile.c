/* Any text, compiled: it is refused with diagnostics, or gives PTX that the emulator's reader
 * accepts. Never a bug, a crash or an endless loop; the forms of all passes can be printed, also
 * for refused text. What follows a NUL byte is a file that the text can include: "a.pipe". */
#include "emulator/emulator.h"
#include "include/pipec.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void compile(const char *text, size_t size, const char *kernel, const PipecFile *file) {
    PipecOptions options = {.size = sizeof options,
                            .name = "fuzz.pipe",
                            .kernel = kernel,
                            .watchdog = size % 2,
                            .files = file,
                            .file_count = 1};
    PipecProgram *program = pipec_compile(text, size, &options);
    if (!program) return;
    PipecStatus status = pipec_program_status(program);
    size_t length = 0;
    const char *ptx = pipec_program_ptx(program, &length);
    /* otherwise it may contain inline PTX of the author */
    bool decided = status != PIPEC_INCOMPLETE;
    if (status == PIPEC_BUG || (decided && status != PIPEC_FINE &&
                                pipec_diagnostics_errors(pipec_program_diagnostics(program)) == 0))
        abort();
    if (ptx) {
        Arena *arena = arena_new();
        if (decided && !emulator_accepts(arena, ptx, length, diags_new(arena, NULL))) abort();
        if (!pipec_program_manifest(program) || !pipec_program_report(program)) abort();
        arena_free(arena);
    }
    pipec_program_free(program);
}

static void print_forms(PipecProgram *program) {
    const PipecForm *form;
    for (size_t i = 0; program && (form = pipec_form(i)) != NULL; i++)
        (void)pipec_program_emit(program, form->name);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    const unsigned char *cut = size > 0 ? memchr(data, 0, size) : NULL;
    size_t length = cut ? (size_t)(cut - data) : size;
    PipecFile file = {.name = "a.pipe", .text = ""};
    if (cut) file.text = (const char *)cut + 1, file.length = size - length - 1;
    PipecOptions options = {.size = sizeof options,
                            .name = "fuzz.pipe",
                            .check_only = true,
                            .combinations = 4,
                            .files = &file,
                            .file_count = 1};
    size = length;
    PipecProgram *all = pipec_compile((const char *)data, size, &options);
    print_forms(all);
    const char *kernel;
    for (size_t i = 0; all && i < 4 && (kernel = pipec_program_kernel(all, i)); i++)
        compile((const char *)data, size, kernel, &file);
    pipec_program_free(all);
    return 0;
}
