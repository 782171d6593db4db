/* lib: PTX to a .cubin by ptxas. Passes the program's PTX in a temporary file; the .cubin gets a
 * temporary name and is renamed at the end; messages of ptxas become diagnostics at the lines of
 * the .pipe source (launch/assembler.c). */
#include "lib/cubins.h"
#include "lib/private.h"
#include "lib/ptxas.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Assemble {
    PipecProgram *program;
    const char *path;
    PipecStatus status;
} Assemble;

/* ---- messages of ptxas ----------------------------------------------------------------------- */

/* "ptxas FILE, line 12; error : Unknown symbol" */
static void report_error(PipecProgram *program, const char *text) {
    AssemblerLine line = assembler_line(text);
    const char *cause = assembler_cause(line.number);
    if (line.kind != ASSEMBLER_ERROR) return;
    Diag *diag = assembler_diag(program->manifest, program->diags, P0908, line.line,
                                arena_printf(program->arena, "ptxas: %s", assembler_words(text)));
    assembler_note_line(program->manifest, program->diags, diag, line.line);
    if (cause != NULL) diag_note(program->diags, diag, "%s", cause);
    diag_note(program->diags, diag, "this is a bug in pipec; please report it");
}

static void report_words(PipecProgram *program, const char *output) {
    char *rest, *words = arena_copy(program->arena, output, strlen(output));
    assembler_report(program->manifest, program->diags, P0909, words);
    for (char *line = strtok_r(words, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        report_error(program, line);
}

/* ---- process --------------------------------------------------------------------------------- */

static void cannot_run(Assemble *assemble, const char *why) {
    Diags *diags = assemble->program->diags;
    Diag *diag =
        diag_plain(diags, P0907, "cannot run ptxas, which is needed for .cubin files: %s", why);
    diag_help(diags, diag,
              "install ptxas of the CUDA toolkit and put it on PATH, or build a .ptx file, which "
              "the driver assembles");
    assemble->status = PIPEC_UNUSABLE;
}

/* Runs ptxas once. False: it cannot be run, and that was reported. */
static bool run_once(Assemble *assemble, const char *ptx, const char *cubin, PtxasRun *run) {
    PipecProgram *program = assemble->program;
    const char *why, *path = ptxas_find(program->arena, &why);
    if (path != NULL) {
        *run = ptxas_run(program->arena, path, program->manifest->target, ptx, cubin);
        why = run->error != 0 ? strerror(run->error) : NULL;
    }
    if (why != NULL) cannot_run(assemble, why);
    return why == NULL;
}

static bool write_text(const char *path, const char *text, size_t length) {
    FILE *stream = fopen(path, "w");
    if (stream == NULL) return false;
    bool fine = fwrite(text, 1, length, stream) == length;
    return fclose(stream) == 0 && fine;
}

/* If ptxas accepts the text without the author's inline PTX, reports that and returns true. */
static bool report_inline(Assemble *assemble, const char *ptx, const char *cubin,
                          const char *words) {
    PipecProgram *program = assemble->program;
    const Manifest *manifest = program->manifest;
    const char *why = NULL;
    PtxasRun more;
    uint32_t line = 0;
    if (manifest->inline_ptx.count == 0) return false;
    char *ours =
        manifest_without_inline(program->arena, manifest, program->ptx.text, program->ptx.length);
    if (!write_text(ptx, ours, program->ptx.length) || !run_once(assemble, ptx, cubin, &more) ||
        !more.fine)
        return false;
    for (const char *at = words; *at != 0 && line == 0; at += strcspn(at, "\n"), at += *at != 0) {
        const char *text = arena_copy(program->arena, at, strcspn(at, "\n"));
        if (assembler_line(text).kind != ASSEMBLER_ERROR) continue;
        line = assembler_line(text).line;
        why = assembler_words(text);
    }
    manifest_report_inline(manifest, program->diags, line,
                           why != NULL ? why : "ptxas gave no reason");
    assemble->status = PIPEC_REFUSED;
    return true;
}

static void run_ptxas(Assemble *assemble, const char *ptx, const char *cubin) {
    PipecProgram *program = assemble->program;
    PtxasRun run;
    if (!run_once(assemble, ptx, cubin, &run)) return;
    if (!run.fine && report_inline(assemble, ptx, cubin, run.words)) return;
    report_words(program, run.words);
    if (run.fine) return;
    assemble->status = PIPEC_BUG;
    if (program->diags->errors == 0)
        diag_plain(program->diags, P0908, "ptxas failed and gave no reason");
}

/* ---- files ----------------------------------------------------------------------------------- */

static void cannot_write(Assemble *assemble, const char *path, int why) {
    diag_plain(assemble->program->diags, P0618, "cannot write `%s`: %s", path, strerror(why));
    assemble->status = PIPEC_UNUSABLE;
}

/* Creates a new empty file in the folder of `path`. */
static char *new_temporary(Assemble *assemble, const char *path, const char *ending) {
    char *name = arena_printf(assemble->program->arena, "%s.XXXXXX%s", path, ending);
    int file = mkstemps(name, (int)strlen(ending));
    if (file < 0) {
        cannot_write(assemble, path, errno);
        return NULL;
    }
    close(file);
    return name;
}

static void refuse_cubin(void *data) {
    Assemble *assemble = data;
    PipecProgram *program = assemble->program;
    program->diags = diags_new(program->arena, program->source);
    diag_plain(program->diags, P0922, "`%s` was loaded from a cubin: there is no PTX to assemble",
               program->kernel);
    program->published = diagnostics_publish(program->diags);
    assemble->status = PIPEC_UNUSABLE;
}

/* Appends the mark that pipec_program_from looks for. */
static bool mark(Assemble *assemble, const char *cubin) {
    Arena *arena = assemble->program->arena;
    Piece image = cubin_read(arena, cubin);
    const char *text = cubin_mark(arena, assemble->program->manifest, image.bytes, image.length);
    FILE *stream = fopen(cubin, "a");
    if (stream == NULL) return false;
    bool fine = fputs(text, stream) >= 0;
    return fclose(stream) == 0 && fine;
}

static void publish_cubin(Assemble *assemble, const char *cubin) {
    chmod(cubin, 0644);
    if (!mark(assemble, cubin) || rename(cubin, assemble->path) != 0)
        cannot_write(assemble, assemble->path, errno);
}

static void assemble_all(void *data) {
    Assemble *assemble = data;
    PipecProgram *program = assemble->program;
    program->diags = diags_new(program->arena, program->source);
    diags_set_levels(program->diags, &program->levels);
    char *cubin = new_temporary(assemble, assemble->path, ".cubin");
    char *ptx = cubin != NULL ? new_temporary(assemble, assemble->path, ".ptx") : NULL;
    if (ptx != NULL) {
        if (write_text(ptx, program->ptx.text, program->ptx.length))
            run_ptxas(assemble, ptx, cubin);
        else
            cannot_write(assemble, ptx, errno);
        unlink(ptx);
    }
    program->published = diagnostics_publish(program->diags);
    /* a warning or note that is denied */
    if (assemble->status == PIPEC_FINE && program->diags->errors > 0)
        assemble->status = PIPEC_REFUSED;
    if (cubin != NULL && ptx != NULL && assemble->status == PIPEC_FINE)
        publish_cubin(assemble, cubin);
    if (cubin != NULL && assemble->status != PIPEC_FINE) unlink(cubin);
    program->published = diagnostics_publish(program->diags);
}

PIPEC_API PipecStatus pipec_program_assemble(PipecProgram *program, const char *cubin_path) {
    if (program->manifest == NULL) return program->status;
    Assemble assemble = {program, cubin_path, PIPEC_FINE};
    if (!attempt(program->arena, program->cubin != NULL ? refuse_cubin : assemble_all, &assemble)) {
        program->published = &no_memory;
        assemble.status = PIPEC_UNUSABLE;
    }
    return assemble.status;
}
