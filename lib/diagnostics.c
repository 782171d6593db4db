/* lib: diagnostics as data. Converts a finished Diags to the structures and texts of pipec.h. */
#include "lib/private.h"

#include <string.h>

/* Constant text, because there is no memory to format it. */
static const char *const no_memory_help = "use smaller extents, or a machine with more memory";
static PipecDiagnostic no_memory_items[] = {{.code = "P0905",
                                             .severity = PIPEC_ERROR,
                                             .message = "not enough memory",
                                             .helps = &no_memory_help,
                                             .help_count = 1}};

#define NO_MEMORY_TEXT                                                                             \
    "error[P0905]: not enough memory\n  = help: use smaller extents, or a machine with more "      \
    "memory\n"
const PipecDiagnostics no_memory = {
    NULL,
    no_memory_items,
    1,
    1,
    NO_MEMORY_TEXT,
    NO_MEMORY_TEXT,
    "{\"file\":null,\"diagnostics\":[{\"code\":\"P0905\",\"severity\":\"error\","
    "\"message\":\"not enough memory\",\"labels\":[],"
    "\"notes\":[],\"helps\":[\"use smaller extents, or a machine with more memory\"]}]}\n",
    NULL};
const PipecDiagnostics no_diagnostics = {
    NULL, NULL, 0, 0, "", "", "{\"file\":null,\"diagnostics\":[]}\n", NULL};

static PipecSeverity severity_of(const Diag *diag) {
    switch (diag->severity) {
    case SEVERITY_ERROR: return PIPEC_ERROR;
    case SEVERITY_INCOMPLETE: return PIPEC_UNDECIDED;
    case SEVERITY_WARNING: return PIPEC_WARNING;
    case SEVERITY_NOTE: return PIPEC_NOTE;
    }
    return PIPEC_ERROR;
}

static PipecLabel publish_label(const Source *source, const Label *label) {
    uint32_t begin = source_file(source, label->span.lo)->lo;
    PipecLabel out = {
        .lo = label->span.lo - begin, .hi = label->span.hi - begin, .text = label->text};
    source_place(source, label->span.lo, &out.line, &out.column);
    source_place(source, label->span.hi, &out.end_line, &out.end_column);
    return out;
}

static PipecDiagnostic publish(const Diags *diags, const Diag *diag) {
    size_t labels = diag->has_place && diags->source != NULL ? (size_t)diag->label_count : 0;
    PipecLabel *published = NEW_ARRAY(diags->arena, PipecLabel, labels + 1);
    for (size_t i = 0; i < labels; i++)
        published[i] = publish_label(diags->source, &diag->labels[i]);
    return (PipecDiagnostic){.code = code_rows[diag->code].name,
                             .severity = severity_of(diag),
                             .message = diag->message,
                             .labels = published,
                             .label_count = labels,
                             .notes = diag->notes.items,
                             .note_count = diag->notes.count,
                             .helps = diag->helps.items,
                             .help_count = diag->helps.count};
}

static const char *rendered(const Diags *diags, bool colours) {
    Str text = str_new(diags->arena);
    str_add(&text, "");
    diags_render(diags, colours, &text);
    return text.text;
}

PipecDiagnostics *diagnostics_publish(Diags *diags) {
    diags_finish(diags);
    PipecDiagnostics *out = NEW(diags->arena, PipecDiagnostics);
    out->count = diags->items.count;
    out->errors = diags->errors;
    out->diags = diags;
    out->items = NEW_ARRAY(diags->arena, PipecDiagnostic, out->count + 1);
    for (size_t i = 0; i < out->count; i++) out->items[i] = publish(diags, diags->items.items[i]);
    out->text = rendered(diags, false);
    out->coloured = rendered(diags, true);
    Str json = str_new(diags->arena);
    diags_json(diags, &json);
    out->json = json.text;
    return out;
}

void diagnostics_hand_over(Arena *arena, PipecDiagnostics *published,
                           PipecDiagnostics **diagnostics) {
    bool wanted = diagnostics != NULL && published != NULL && published->count > 0;
    if (diagnostics != NULL) *diagnostics = wanted ? published : NULL;
    if (!wanted || published->arena == NULL) arena_free(arena);
}

PIPEC_API void pipec_diagnostics_free(PipecDiagnostics *diagnostics) {
    if (diagnostics != NULL) arena_free(diagnostics->arena);
}

typedef struct Unusable {
    const PipecProgram *program;
    Arena *words;
    PipecDiagnostics *published;
} Unusable;

static void report_unusable(void *data) {
    Unusable *it = data;
    Diags *diags = diags_new(it->words, it->program->source);
    diag_plain(diags, P0919, "`%s` has neither PTX nor a manifest: it was only checked",
               it->program->source->name);
    it->published = diagnostics_publish(diags);
    it->published->arena = it->words;
}

PipecStatus program_unusable(const PipecProgram *program, Arena *words,
                             PipecDiagnostics **published) {
    Unusable it = {program, words, (PipecDiagnostics *)&no_memory};
    if (program->status != PIPEC_FINE) {
        *published = (PipecDiagnostics *)program->published;
        return program->status;
    }
    attempt(words, report_unusable, &it);
    *published = it.published;
    return PIPEC_UNUSABLE;
}

PIPEC_API size_t pipec_diagnostics_count(const PipecDiagnostics *diagnostics) {
    return diagnostics->count;
}
PIPEC_API const char *pipec_diagnostics_file(const PipecDiagnostics *diagnostics, size_t index,
                                             size_t label) {
    if (index >= diagnostics->count || label >= diagnostics->items[index].label_count) return NULL;
    const Diag *diag = diagnostics->diags->items.items[index];
    return source_file(diagnostics->diags->source, diag->labels[label].span.lo)->name;
}

PIPEC_API size_t pipec_diagnostics_errors(const PipecDiagnostics *diagnostics) {
    return diagnostics->errors;
}
PIPEC_API const char *pipec_diagnostics_text(const PipecDiagnostics *diagnostics) {
    return diagnostics->text;
}
PIPEC_API const char *pipec_diagnostics_coloured(const PipecDiagnostics *diagnostics) {
    return diagnostics->coloured;
}
PIPEC_API const char *pipec_diagnostics_json(const PipecDiagnostics *diagnostics) {
    return diagnostics->json;
}

PIPEC_API const PipecDiagnostic *pipec_diagnostics_get(const PipecDiagnostics *diagnostics,
                                                       size_t index) {
    return index < diagnostics->count ? &diagnostics->items[index] : NULL;
}

/* ---- status ---------------------------------------------------------------------------------- */

PIPEC_API PipecStatus pipec_worse(PipecStatus a, PipecStatus b) {
    static const int badness[] = {[PIPEC_FINE] = 0,
                                  [PIPEC_UNUSABLE] = 1,
                                  [PIPEC_INCOMPLETE] = 2,
                                  [PIPEC_REFUSED] = 3,
                                  [PIPEC_BUG] = 4};
    return badness[a] > badness[b] ? a : b;
}

PipecStatus status_of_run(const Manifest *manifest, RunStatus status) {
    switch (status) {
    case RUN_DONE: return PIPEC_FINE;
    case RUN_FINDING: return PIPEC_REFUSED;
    case RUN_UNAVAILABLE: return PIPEC_UNUSABLE;
    case RUN_REJECTED: return manifest->is_read ? PIPEC_UNUSABLE : PIPEC_BUG;
    case RUN_INCOMPLETE: return PIPEC_INCOMPLETE;
    }
    return PIPEC_BUG;
}

/* ---- explain --------------------------------------------------------------------------------- */

PIPEC_API const char *pipec_version(void) { return PIPEC_VERSION; }

PIPEC_API const char *pipec_explain(const char *code) {
    Code found;
    if (!code_by_name(code, &found)) return NULL;
    for (size_t i = 0; i < explain_pages_count; i++)
        if (strcmp(explain_pages[i].name, code_rows[found].name) == 0) return explain_pages[i].text;
    return NULL;
}

PIPEC_API const char *pipec_code(size_t index, const char **title) {
    Code found;
    if (index >= explain_pages_count) return NULL;
    if (title != NULL)
        *title = code_by_name(explain_pages[index].name, &found) ? code_rows[found].title : "";
    return explain_pages[index].name;
}

PIPEC_API const char *pipec_code_near(const char *code) { return code_near(code); }

PIPEC_API const char *pipec_near(const char *wanted, const char *const *names, size_t count) {
    return closest_name(wanted, names, count);
}
