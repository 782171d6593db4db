/* Parses messages of ptxas, or of the assembler in the driver, one line at a time. Error
 * numbers, spills and stack frames become warnings at the place in the .pipe file that the PTX
 * line belongs to. No other file parses them. */
#include "launch/launch.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* most warnings without a row that are quoted */
#define QUOTED_MAX 12

typedef struct AssemblerRow {
    int number;
    Code code;
    const char *cause, *help;
} AssemblerRow;

static const AssemblerRow rows[] = {
#define ASSEMBLER(number, code, cause, help) {number, code, cause, help},
#include "launch/assembler.def"
#undef ASSEMBLER
};

/* ---- a line ---------------------------------------------------------------------------------- */

/* "word   :", the severity as ptxas writes it */
static bool is_graded(const char *text, const char *word) {
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        if (at[strlen(word) + strspn(at + strlen(word), " ")] == ':') return true;
    return false;
}

/* The number before `unit`, "8 bytes stack frame"; 0 if there is none */
static unsigned long before(const char *text, const char *unit) {
    const char *at = strstr(text, unit);
    if (at == NULL) return 0;
    while (at > text && isdigit((unsigned char)at[-1])) at--;
    return strtoul(at, NULL, 10);
}

/* ", line 24;" or "around line 24" or "at line 24" */
static uint32_t line_in(const char *text) {
    const char *at = strstr(text, " line ");
    unsigned long line = at != NULL ? strtoul(at + strlen(" line "), NULL, 10) : 0;
    return line < UINT32_MAX ? (uint32_t)line : 0;
}

AssemblerLine assembler_line(const char *text) {
    AssemblerLine line = {.kind = ASSEMBLER_NOTHING, .line = line_in(text)};
    const char *number = strstr(text, "(C");
    if (number != NULL) line.number = (int)strtol(number + 2, NULL, 10);
    line.frame = before(text, " bytes stack frame");
    line.stores = before(text, " bytes spill stores");
    line.loads = before(text, " bytes spill loads");
    if (line.frame == 0) line.frame = before(text, " bytes lmem");
    if (is_graded(text, "error") || is_graded(text, "fatal"))
        line.kind = ASSEMBLER_ERROR;
    else if (line.frame + line.stores + line.loads > 0)
        line.kind = ASSEMBLER_MEMORY;
    else if (line.number > 0)
        line.kind = ASSEMBLER_NUMBER;
    else if (is_graded(text, "warning"))
        line.kind = ASSEMBLER_WARNING;
    return line;
}

const char *assembler_words(const char *text) {
    const char *message = strchr(text, ';');
    message = message != NULL ? message + 1 : strncmp(text, "ptxas ", 6) == 0 ? text + 6 : text;
    return message + strspn(message, " ");
}

/* ---- places ---------------------------------------------------------------------------------- */

Diag *assembler_diag(const Manifest *manifest, Diags *diags, Code code, uint32_t line,
                     const char *message) {
    const ManifestMark *mark = line > 0 ? manifest_mark(manifest, line) : NULL;
    if (mark == NULL) return diag_plain(diags, code, "%s", message);
    Diag *diag = manifest_diag(manifest, diags, code, mark->span, "%s", message);
    if (mark->what != NULL) diag_primary(diags, diag, "%s", mark->what);
    return diag;
}

void assembler_note_line(const Manifest *manifest, Diags *diags, Diag *diag, uint32_t line) {
    const ManifestMark *mark = line > 0 ? manifest_mark(manifest, line) : NULL;
    if (mark == NULL) return;
    const char *role = mark->role >= 0 ? manifest->roles.items[mark->role].name : NULL;
    diag_note(diags, diag, "line %u of the PTX is of %s%s%s%s%s%s", line,
              role != NULL ? "role `" : "the prologue", role != NULL ? role : "",
              role != NULL ? "`" : "", mark->pipe != NULL ? ", pipe `" : "",
              mark->pipe != NULL ? mark->pipe : "", mark->pipe != NULL ? "`" : "");
}

static void note_largest(const Manifest *manifest, Diags *diags, Diag *diag) {
    const ManifestRole *largest = NULL;
    for (size_t i = 0; i < manifest->roles.count; i++) {
        const ManifestRole *role = &manifest->roles.items[i];
        if (largest == NULL || role->held > largest->held ||
            (role->held == largest->held && role->registers > largest->registers))
            largest = role;
    }
    if (largest == NULL || largest->held + largest->registers == 0) return;
    Str text = str_new(diags->arena);
    str_printf(&text, "role `%s` needs the most registers: %d per thread for its register tiles",
               largest->name, largest->held);
    if (largest->registers > 0)
        str_printf(&text, ", of %d available (setmaxnreg)", largest->registers);
    diag_note(diags, diag, "%s", text.text);
}

/* At the PTX line, otherwise at the kernel's head. NULL: the same was reported at the same place
 * before. */
static Diag *complain(const Manifest *manifest, Diags *diags, Code code, uint32_t line,
                      const char *message) {
    const ManifestMark *mark = line > 0 ? manifest_mark(manifest, line) : NULL;
    Span span = mark != NULL ? mark->span : manifest->head;
    for (size_t i = 0; i < diags->items.count; i++) {
        const Diag *other = diags->items.items[i];
        bool same_place = !other->has_place || (other->labels[0].span.lo == span.lo &&
                                                other->labels[0].span.hi == span.hi);
        if (other->code == code && same_place && strcmp(other->message, message) == 0) return NULL;
    }
    if (mark != NULL) return assembler_diag(manifest, diags, code, line, message);
    return manifest_diag(manifest, diags, code, span, "%s", message);
}

/* ---- diagnostics ----------------------------------------------------------------------------- */

static const AssemblerRow *row_of(int number) {
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].number == number) return &rows[i];
    return NULL;
}

const char *assembler_cause(int number) {
    const AssemblerRow *row = row_of(number);
    return row != NULL ? row->cause : NULL;
}

static void report_number(const Manifest *manifest, Diags *diags, const AssemblerRow *row,
                          const AssemblerLine *line, const char *text) {
    const char *what = row->code == P0811 ? "setmaxnreg has no effect in"
                                          : "matrix instructions wait for each other in";
    const char *message = arena_printf(diags->arena, "%s `%s`: %s (C%d)", what, manifest->kernel,
                                       row->cause, row->number);
    Diag *diag = complain(manifest, diags, row->code, line->line, message);
    if (diag == NULL) return;
    assembler_note_line(manifest, diags, diag, line->line);
    note_largest(manifest, diags, diag);
    diag_note(diags, diag, "ptxas said: %s", text);
    if (row->help != NULL)
        diag_help(diags, diag, "%s", row->help);
    else
        diag_note(diags, diag, "this is a weakness of the PTX that pipec emits; please report it");
}

static void report_memory(const Manifest *manifest, Diags *diags, const AssemblerLine *line) {
    Str text = str_new(diags->arena);
    str_printf(&text, "`%s` keeps values in local memory:", manifest->kernel);
    if (line->frame > 0) str_printf(&text, " a frame of %lu bytes per thread", line->frame);
    if (line->stores + line->loads > 0)
        str_printf(&text, "%s %lu bytes of spill stores, %lu of spill loads",
                   line->frame > 0 ? "," : "", line->stores, line->loads);
    Diag *diag = complain(manifest, diags, P0812, line->line, text.text);
    if (diag == NULL) return;
    note_largest(manifest, diags, diag);
    diag_help(diags, diag,
              "make the tiles of the role smaller, split them among more warps, or give it more "
              "registers (`regs`)");
}

void assembler_report(const Manifest *manifest, Diags *diags, Code warning, const char *words) {
    int quoted = 0;
    for (const char *at = words; at[0] != 0;) {
        size_t length = strcspn(at, "\n");
        const char *text = arena_copy(diags->arena, at, length);
        AssemblerLine line = assembler_line(text);
        const AssemblerRow *row = row_of(line.number);
        bool warns =
            line.kind == ASSEMBLER_WARNING || (line.kind == ASSEMBLER_NUMBER && row == NULL);
        at += length + (at[length] != 0);
        if (line.kind == ASSEMBLER_MEMORY) report_memory(manifest, diags, &line);
        if (line.kind == ASSEMBLER_NUMBER && row != NULL)
            report_number(manifest, diags, row, &line, text);
        if (!warns || quoted++ >= QUOTED_MAX) continue;
        Diag *diag = assembler_diag(manifest, diags, warning, line.line,
                                    arena_printf(diags->arena, "ptxas: %s", assembler_words(text)));
        assembler_note_line(manifest, diags, diag, line.line);
    }
}
