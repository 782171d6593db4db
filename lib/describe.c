/* lib: what a caller asks of a compiled program before a launch: parameters, statics,
 * preconditions, claims, its head. The texts are made once, at the end of a compilation, so that
 * any thread may read them. */
#include "lib/private.h"

#include <string.h>

struct Description {
    VEC(PipecParameter) parameters;
    VEC(PipecStatic) statics;
    VEC(const char *) claims;
    const char *head;
};

static const PipecMode modes[] = {
    [MODE_IN] = PIPEC_IN, [MODE_OUT] = PIPEC_OUT, [MODE_INOUT] = PIPEC_INOUT};
static const char *const mode_words[] = {
    [PIPEC_IN] = "", [PIPEC_OUT] = "out ", [PIPEC_INOUT] = "inout "};

static void describe_parameter(Arena *arena, const Manifest *manifest,
                               const ManifestParameter *from, Description *out) {
    PipecParameter parameter = {.name = from->name,
                                .type = element_rows[from->type].spelling,
                                .element_bytes = (size_t)element_rows[from->type].bytes,
                                .is_tensor = from->kind == PARAMETER_TENSOR,
                                .alignment = from->alignment > 1 ? from->alignment : 1};
    if (parameter.is_tensor) {
        parameter.mode = modes[from->mode];
        parameter.rank = from->rank;
    }
    for (int axis = 0; axis < parameter.rank; axis++) {
        Str text = str_new(arena);
        formula_print(&from->extents[axis], manifest, &text);
        parameter.extents[axis] = text.text;
    }
    vec_push(arena, &out->parameters, parameter);
}

static const char *print_head(const PipecProgram *program, const Description *from) {
    Str text = str_new(program->arena);
    /* of all variants of the kernel */
    str_printf(&text, "kernel %.*s(", (int)strcspn(program->kernel, ":"), program->kernel);
    for (size_t i = 0; i < from->parameters.count; i++) {
        const PipecParameter *parameter = &from->parameters.items[i];
        str_printf(&text, "%s%s%s: %s", i > 0 ? ", " : "", mode_words[parameter->mode],
                   parameter->name, parameter->type);
        for (int axis = 0; axis < parameter->rank; axis++)
            str_printf(&text, "%s%s%s", axis > 0 ? ", " : "[", parameter->extents[axis],
                       axis + 1 == parameter->rank ? "]" : "");
    }
    const Targets *targets = &program->targets;
    str_printf(&text, ") for %s",
               targets->count > 1 ? targets->items[0]->name : program->manifest->target);
    for (size_t i = 1; i < targets->count; i++) str_printf(&text, ", %s", targets->items[i]->name);
    return text.text;
}

static void describe_static(PipecProgram *program, const ManifestConstant *from, Description *out) {
    PipecStatic it = {.name = from->name};
    it.value = value_number(program->arena, from->name, from->value);
    Element type;
    it.text = from->value;
    it.is_type = element_by_name(from->value, &type);
    for (size_t i = 0; program->prog != NULL && i < program->prog->constants.count; i++) {
        const Constant *constant = &program->prog->constants.items[i];
        if (strcmp(constant->name, from->name) != 0) continue;
        it.choices = constant->choices.items;
        it.choice_count = constant->choices.count;
        const char **texts = NEW_ARRAY(program->arena, const char *, it.choice_count + 1);
        for (size_t k = 0; k < it.choice_count; k++)
            texts[k] = constant_choice_text(program->arena, constant, it.choices[k]);
        it.choice_texts = texts;
    }
    vec_push(program->arena, &out->statics, it);
}

/* The source between two places, without comments, and with one space for each gap */
static const char *one_line(Arena *arena, const Source *source, Span span) {
    const char *from = source->text + span.lo, *end = source->text + span.hi;
    Str text = str_new(arena);
    str_add(&text, "");
    while (from < end) {
        size_t gap = strspn(from, " \t\r\n"), word = strcspn(from, " \t\r\n");
        if (from[0] == '/' && from[1] == '/')
            from += strcspn(from, "\n");
        else if (gap > 0)
            from += gap;
        else {
            if (from + word > end) word = (size_t)(end - from);
            str_printf(&text, "%s%.*s", text.length > 0 ? " " : "", (int)word, from);
            from += word;
        }
    }
    return text.text;
}

void program_describe(PipecProgram *program) {
    const Manifest *manifest = program->manifest;
    Description *out = NEW(program->arena, Description);
    for (size_t i = 0; i < manifest->parameters.count; i++)
        describe_parameter(program->arena, manifest, &manifest->parameters.items[i], out);
    for (size_t i = 0; i < manifest->constants.count; i++)
        if (manifest->constants.items[i].is_static)
            describe_static(program, &manifest->constants.items[i], out);
    for (size_t i = 0; program->prog != NULL && i < program->prog->claims.count; i++)
        vec_push(program->arena, &out->claims,
                 one_line(program->arena, program->source, program->prog->claims.items[i].span));
    out->head = print_head(program, out);
    program->description = out;
}

/* ---- public functions ------------------------------------------------------------------------ */

PIPEC_API bool pipec_program_parameter(const PipecProgram *program, size_t index,
                                       PipecParameter *parameter) {
    const Description *from = program->description;
    return from != NULL && index < from->parameters.count &&
           size_write(parameter, &from->parameters.items[index], sizeof *parameter);
}

PIPEC_API bool pipec_program_static(const PipecProgram *program, size_t index, PipecStatic *out) {
    const Description *from = program->description;
    return from != NULL && index < from->statics.count &&
           size_write(out, &from->statics.items[index], sizeof *out);
}

PIPEC_API const char *pipec_program_precondition(const PipecProgram *program, size_t index,
                                                 const char **reason) {
    if (program->manifest == NULL || index >= program->manifest->preconditions.count) return NULL;
    const ManifestPrecondition *found = &program->manifest->preconditions.items[index];
    if (reason != NULL) *reason = found->reason;
    return found->text;
}

PIPEC_API const char *pipec_program_ensures(const PipecProgram *program, size_t index) {
    const Description *from = program->description;
    return from != NULL && index < from->claims.count ? from->claims.items[index] : NULL;
}

PIPEC_API const char *pipec_program_head(const PipecProgram *program) {
    return program->description != NULL ? program->description->head : NULL;
}
