/* lib: the printed forms of a compilation, `--emit=NAME`. One row per form: its name, what must
 * exist before it can be printed, and the function that prints it. The forms of the check's
 * passes have their rows in check/passes.def. */
#include "lib/private.h"

#include "derive/plan.h"
#include "parser/parser.h"

#include <string.h>

typedef enum FormNeeds {
    NEEDS_AST,
    NEEDS_PASS,
    NEEDS_PROG,
    NEEDS_MANIFEST,
    NEEDS_PLAN,
    NEEDS_PTX
} FormNeeds;

typedef struct FormRow {
    PipecForm form;
    FormNeeds needs;
    /* prints the form from the program; NULL: `of_prog` does */
    void (*of_program)(PipecProgram *program, Str *out);
    /* prints the form from the checked program */
    void (*of_prog)(const Prog *prog, Arena *arena, Str *out);
} FormRow;

static void print_tokens(PipecProgram *program, Str *out) {
    Diags *ignored = diags_new(program->arena, program->source);
    tokens_print(program->arena, program->names, program->source, ignored, out);
}

static void print_files(PipecProgram *program, Str *out) {
    for (uint32_t i = 0; i < program->source->file_count; i++)
        str_printf(out, "%s\n", program->source->files[i].name);
}

static void print_ast(PipecProgram *program, Str *out) { ast_print(program->ast, out); }

static void print_manifest(PipecProgram *program, Str *out) {
    manifest_json(program->manifest, out);
}

static void print_report(PipecProgram *program, Str *out) {
    Str text = str_new(program->arena);
    report_print(program->prog, &text, out);
}

static void print_ptx(PipecProgram *program, Str *out) { *out = program->ptx; }

static const FormRow rows[] = {
    {{"files", "the file and those that it includes", false}, NEEDS_AST, print_files, NULL},
    {{"tokens", "the tokens of the text", false}, NEEDS_AST, print_tokens, NULL},
    {{"ast", "the syntax tree of the text", false}, NEEDS_AST, print_ast, NULL},
#define SHOWN(name, function, needs, leaves, reads, when, print, what)                             \
    {{#name, what, false}, NEEDS_PASS, NULL, print},
#include "check/passes.def"
    {{"prog", "the checked program", false}, NEEDS_PROG, NULL, prog_print},
    {{"manifest", "the data for a launcher, as JSON", true}, NEEDS_MANIFEST, print_manifest, NULL},
    {{"report", "the report, as JSON", true}, NEEDS_PLAN, print_report, NULL},
    {{"ptx", "the PTX text", true}, NEEDS_PTX, print_ptx, NULL},
};

_Static_assert(COUNT_OF(rows) <= FORMS_MAX, "room for what was printed");

PIPEC_API const PipecForm *pipec_form(size_t index) {
    return index < COUNT_OF(rows) ? &rows[index].form : NULL;
}

static bool exists(const PipecProgram *program, const FormRow *row) {
    switch (row->needs) {
    case NEEDS_AST: return program->ast != NULL;
    case NEEDS_PASS: return program->whole != NULL && check_passed(program->whole, row->form.name);
    case NEEDS_PROG: return program->prog != NULL;
    case NEEDS_MANIFEST: return program->manifest != NULL;
    case NEEDS_PLAN: return program->manifest != NULL && program->prog != NULL;
    case NEEDS_PTX: return program->manifest != NULL && program->cubin == NULL;
    }
    return false;
}

typedef struct Emit {
    PipecProgram *program;
    size_t index;
} Emit;

static void print(void *data) {
    const Emit *emit = data;
    const FormRow *row = &rows[emit->index];
    PipecProgram *program = emit->program;
    Str text = str_new(program->arena);
    str_add(&text, "");
    if (row->of_program != NULL)
        row->of_program(program, &text);
    else
        row->of_prog(program->whole, program->arena, &text);
    program->emitted[emit->index] = text.text;
}

PIPEC_API const char *pipec_program_emit(PipecProgram *program, const char *form) {
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (strcmp(rows[i].form.name, form) != 0) continue;
        if (!exists(program, &rows[i])) return NULL;
        if (program->emitted[i] == NULL) attempt(program->arena, print, &(Emit){program, i});
        return program->emitted[i];
    }
    return NULL;
}
