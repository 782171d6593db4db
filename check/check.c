/* check: kernels by name: elaborates each and runs the passes (passes.def). Reports all errors
 * of a kernel in one run: a pass runs also after errors of earlier ones if its needs hold. */
#include "check/passes.h"

#include <stdlib.h>
#include <string.h>

/* Names are interned: text is compared only if the pointer is no name */
static const AstItem *find_kernel(const Ast *ast, const char *kernel) {
    for (size_t i = 0; i < ast->kernels.count; i++)
        if (ast->kernel_names.items[i] == kernel) return ast->kernels.items[i];
    for (size_t i = 0; i < ast->kernels.count; i++)
        if (strcmp(ast->kernel_names.items[i], kernel) == 0) return ast->kernels.items[i];
    return NULL;
}

size_t check_kernels(const Ast *ast, const char *const **names) {
    *names = ast->kernel_names.items;
    return ast->kernels.count;
}

bool check_is_named(const char *name, const char *wanted) {
    const char *variant = strchr(name, ':');
    size_t length = strlen(wanted);
    if (variant && wanted[0] == ':') return strcmp(variant, wanted) == 0;
    return strncmp(name, wanted, length) == 0 && (name[length] == 0 || name[length] == ':');
}

void check_uncalled(const Ast *ast, Diags *diags) {
    for (size_t i = 0; i < ast->fns.count; i++) {
        const AstItem *fn = ast->fns.items[i];
        if (!fn->fn.reached || *fn->fn.reached || fn->fn.name.text[0] == '_') continue;
        /* another file that includes it may call it */
        if (source_file(ast->source, fn->span.lo) != ast->source->files) continue;
        Diag *diag =
            diag_at(diags, P0161, fn->head, "function `%s` is never called", fn->fn.name.text);
        diag_primary(diags, diag,
                     "its body is not checked: functions are compiled where they are called");
        diag_help(diags, diag, "remove it, or call it `_%s` if that is on purpose",
                  fn->fn.name.text);
    }
}

static const AstConst *find_static(const AstItem *item, const char *name) {
    if (item->kind != AST_ITEM_CONST) return NULL;
    for (size_t i = 0; i < item->consts.count; i++) {
        const AstConst *row = &item->consts.items[i];
        if (row->is_static && row->name.text && strcmp(row->name.text, name) == 0) return row;
    }
    return NULL;
}

bool check_is_static(const Ast *ast, const char *kernel, const char *name) {
    const AstItem *item = find_kernel(ast, kernel);
    for (size_t i = 0; i < ast->consts.count; i++)
        if (find_static(ast->consts.items[i], name)) return true;
    for (size_t i = 0; item && i < item->kernel.items.count; i++)
        if (find_static(item->kernel.items.items[i], name)) return true;
    return false;
}

static void add_bound(Arena *arena, BoundStatics *out, BoundStatic row) {
    for (size_t i = 0; i < out->count; i++)
        if (out->items[i].param == row.param && out->items[i].axis == row.axis) return;
    vec_push(arena, out, row);
}

void check_bound_statics(Arena *arena, const Ast *ast, const char *kernel, BoundStatics *out) {
    const AstItem *item = find_kernel(ast, kernel);
    for (size_t i = 0; item && i < item->kernel.params.count; i++) {
        const AstType *type = item->kernel.params.items[i].type;
        if (!type || type->dims.count == 0) continue;
        Element ignored;
        if (type->name.text && !element_by_name(type->name.text, &ignored) &&
            check_is_static(ast, kernel, type->name.text))
            add_bound(arena, out, (BoundStatic){type->name.text, (int)i, -1});
        for (size_t d = 0; d < type->dims.count; d++) {
            const AstExpr *dim = type->dims.items[d];
            if (dim->kind == AST_NAME && dim->name && check_is_static(ast, kernel, dim->name))
                add_bound(arena, out, (BoundStatic){dim->name, (int)i, (int)d});
        }
    }
}

const char *check_extent_name(const Ast *ast, const char *kernel) {
    const AstParams *params = &find_kernel(ast, kernel)->kernel.params;
    for (size_t i = 0; i < params->count; i++) {
        const AstType *type = params->items[i].type;
        for (size_t d = 0; type && d < type->dims.count; d++) {
            const AstExpr *dim = type->dims.items[d];
            if (dim->kind == AST_NAME && dim->name && !check_is_static(ast, kernel, dim->name))
                return dim->name;
        }
    }
    return NULL;
}

/* `FILE:KERNEL` names a kernel in the place of a variant */
static bool report_colon(const Ast *ast, const char *kernel, Diags *diags) {
    if (kernel[0] != ':' || !find_kernel(ast, kernel + 1)) return false;
    Diag *diag = diag_plain(diags, P0157, "`%s` is a kernel, and `:` names a variant", kernel + 1);
    diag_help(diags, diag, "write the kernel after the file: `%s %s`; `check` takes all",
              ast->source->name, kernel + 1);
    return true;
}

static void unknown_kernel(Arena *arena, const Ast *ast, const char *kernel, Diags *diags) {
    if (report_colon(ast, kernel, diags)) return;
    const char *const *names;
    size_t count = check_kernels(ast, &names);
    bool variant = kernel[0] == ':'; /* of some kernel */
    const char **ends = NEW_ARRAY(arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++) {
        const char *end = variant ? strchr(names[i], ':') : names[i];
        ends[i] = end ? end + variant : names[i];
    }
    Diag *diag = diag_plain(diags, P0157, variant ? "unknown variant `%s`" : "unknown kernel `%s`",
                            kernel + variant);
    const char *near = closest_name(kernel + variant, ends, count);
    if (near) diag_help(diags, diag, "did you mean `%s`?", near);
    Str text = str_new(arena);
    for (size_t i = 0; i < count; i++) str_printf(&text, "%s`%s`", i ? ", " : "", names[i]);
    if (count)
        diag_note(diags, diag, "the file has %s", text.text);
    else
        diag_note(diags, diag, "the file has no kernel");
    if (!near)
        diag_help(diags, diag,
                  "a word without `=` names the kernel; a static, an extent or a scalar is set by "
                  "`NAME=VALUE`");
}

/* NULL: elaboration failed */
static Prog *pass(Arena *arena, Names *names, const Ast *ast, const char *kernel,
                  const Settings *given, Known *known, Diags *diags) {
    size_t before = diags->errors, made = diags->made;
    const AstItem *item = find_kernel(ast, kernel);
    if (!item) {
        unknown_kernel(arena, ast, kernel, diags);
        return NULL;
    }
    Spent begin = times_begin(arena);
    Prog *prog = elaborate(arena, names, ast, item, given, diags);
    times_end(arena, "elaborate", begin);
    if (diags->made > made) known = NULL; /* statements are missing from Code */
    if (prog) passes_run(arena, prog, known, diags, before);
    return prog;
}

/* True if the statics have other values to choose from */
static bool has_choices(const Prog *prog) {
    for (size_t i = 0; i < prog->constants.count; i++)
        if (prog->constants.items[i].choices.count > 1) return true;
    return false;
}

Prog *check_kernel_whole(Arena *arena, Names *names, const Ast *ast, const char *kernel,
                         const Settings *given, Known *known, Diags *diags, bool *clean) {
    size_t before = diags->errors;
    Prog *prog = pass(arena, names, ast, kernel, given, known, diags);
    if (prog && !has_choices(prog)) outside_report(prog, &prog->outside, diags);
    *clean = prog && diags->errors == before;
    diags_finish(diags);
    return prog;
}

Prog *check_kernel(Arena *arena, Names *names, const Ast *ast, const char *kernel,
                   const StaticValue *statics, size_t count, Diags *diags) {
    bool clean;
    Settings given = {.statics = statics, .count = count};
    Prog *prog = check_kernel_whole(arena, names, ast, kernel, &given, NULL, diags, &clean);
    return clean ? prog : NULL;
}

void check_ended(const Ast *ast, const char *kernel, Diags *diags) {
    incomplete_kernel(diags, kernel, find_kernel(ast, kernel)->head);
    diags_finish(diags);
}

Prog *check_kernel_on_trial(Arena *arena, Names *names, const Ast *ast, const char *kernel,
                            Diags *diags) {
    Prog *prog = pass(arena, names, ast, kernel, &(Settings){0}, NULL, diags);
    for (size_t i = 0; i < diags->items.count; i++) {
        const Diag *diag = diags->items.items[i];
        bool verdict = diag->code >= P0450 && strcmp(code_rows[diag->code].name, "P0480") < 0;
        if (diag->severity == SEVERITY_ERROR && !verdict) prog = NULL;
    }
    if (prog != NULL && !check_passed(prog, "plan")) plan_make(arena, prog);
    diags_finish(diags);
    return prog;
}

const Prog *check_constants(Arena *arena, Names *names, const Ast *ast, const Source *source,
                            const char *kernel, const Settings *given) {
    const AstItem *item = find_kernel(ast, kernel);
    return item ? elaborate(arena, names, ast, item, given, diags_new(arena, source)) : NULL;
}

static const AstNames no_targets = {0};

const AstNames *check_head_targets(const Ast *ast, const char *unit) {
    for (size_t i = 0; i < ast->items.count; i++) {
        const AstItem *item = ast->items.items[i];
        if (item->kind == AST_ITEM_KERNEL && item->kernel.name.text &&
            check_is_named(unit, item->kernel.name.text))
            return &item->kernel.targets;
    }
    return &no_targets;
}

const AstNames *check_targets(const Ast *ast, const char *kernel) {
    const AstItem *item = find_kernel(ast, kernel);
    return item ? &item->kernel.targets : &no_targets;
}
