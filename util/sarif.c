/* SARIF 2.1.0 (OASIS, Static Analysis Results Interchange Format): combines finished diagnostics
 * of several texts to one log of one run. Rules are the codes that occur, in the order of their
 * first occurrence; columns are counted in characters; paths are relative references as the user
 * gave them, percent-encoded. */
#include "util/util.h"

#include <string.h>

struct Sarif {
    Arena *arena;
    Str results; /* comma-separated objects */
    /* 1 + index of the code's rule; 0: has not occurred */
    size_t rules[CODE_COUNT];
    VEC(Code) codes;
};

Sarif *sarif_new(Arena *arena) {
    Sarif *sarif = NEW(arena, Sarif);
    sarif->arena = arena;
    sarif->results = str_new(arena);
    str_add(&sarif->results, "");
    return sarif;
}

static const char *level_of(Severity severity) {
    switch (severity) {
    case SEVERITY_ERROR: return "error";
    /* SARIF has kind "open" with level "none", but viewers hide that */
    case SEVERITY_INCOMPLETE: return "warning";
    case SEVERITY_WARNING: return "warning";
    case SEVERITY_NOTE: return "note";
    }
    return "none";
}

/* In message strings a brace begins a placeholder; a literal brace is doubled (3.11.5). */
static void message(Str *out, const char *text, size_t length) {
    Str braced = str_new(out->arena);
    str_add(&braced, "");
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '{' || text[i] == '}') str_char(&braced, text[i]);
        str_char(&braced, text[i]);
    }
    str_add(out, "{\"text\":");
    str_json(out, braced.text);
    str_char(out, '}');
}

/* ---- places ---------------------------------------------------------------------------------- */

/* RFC 3986: encodes everything except unreserved characters and the slashes between components,
 * so that no component looks like a scheme */
static void uri(Str *out, const char *path) {
    str_add(out, path[0] == '/' ? "\"file://" : "\"");
    for (const unsigned char *c = (const unsigned char *)path; *c; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || strchr("-._~/", *c);
        if (plain)
            str_char(out, (char)*c);
        else
            str_printf(out, "%%%02X", (unsigned)*c);
    }
    str_char(out, '"');
}

/* Prints the beginning of a location: a whole file, or a span of it. Leaves it open for more
 * properties. */
static void open_location(Str *out, const Source *source, const Label *label) {
    str_add(out, "{\"physicalLocation\":{\"artifactLocation\":{\"uri\":");
    uri(out, label ? source_file(source, label->span.lo)->name : source->name);
    str_char(out, '}');
    if (label) {
        uint32_t line, column, end_line, end_column;
        source_place(source, label->span.lo, &line, &column);
        source_place(source, label->span.hi, &end_line, &end_column);
        str_printf(
            out,
            ",\"region\":{\"startLine\":%u,\"startColumn\":%u,\"endLine\":%u,\"endColumn\":%u}",
            (unsigned)line, (unsigned)column, (unsigned)end_line, (unsigned)end_column);
    }
    str_char(out, '}');
    if (label && label->text[0]) {
        str_add(out, ",\"message\":");
        message(out, label->text, strlen(label->text));
    }
}

static void locations(Str *out, const Diags *diags, const Diag *diag) {
    bool placed = diag->has_place && diags->source;
    str_add(out, ",\"locations\":[");
    if (diags->source) {
        open_location(out, diags->source, placed ? &diag->labels[0] : NULL);
        str_char(out, '}');
    }
    str_char(out, ']');
    if (!placed || diag->label_count < 2) return;
    str_add(out, ",\"relatedLocations\":[");
    for (int i = 1; i < diag->label_count; i++) {
        if (i > 1) str_char(out, ',');
        open_location(out, diags->source, &diag->labels[i]);
        str_printf(out, ",\"id\":%d}", i);
    }
    str_char(out, ']');
}

/* ---- results --------------------------------------------------------------------------------- */

static size_t rule_of(Sarif *sarif, Code code) {
    if (sarif->rules[code] == 0) {
        vec_push(sarif->arena, &sarif->codes, code);
        sarif->rules[code] = sarif->codes.count;
    }
    return sarif->rules[code] - 1;
}

static void add_lines(Str *text, const char *word, const char *const *lines, size_t count) {
    for (size_t i = 0; i < count; i++) str_printf(text, "\n%s: %s", word, lines[i]);
}

void sarif_add(Sarif *sarif, const Diags *diags) {
    Str *out = &sarif->results;
    for (size_t i = 0; i < diags->items.count; i++) {
        const Diag *diag = diags->items.items[i];
        size_t rule = rule_of(sarif, diag->code);
        if (out->length) str_char(out, ',');
        str_printf(out, "\n{\"ruleId\":\"%s\",\"ruleIndex\":%zu,\"level\":\"%s\",\"message\":",
                   code_rows[diag->code].name, rule, level_of(diag->severity));
        Str text = str_new(sarif->arena);
        str_add(&text, diag->message);
        add_lines(&text, "note", diag->notes.items, diag->notes.count);
        add_lines(&text, "help", diag->helps.items, diag->helps.count);
        message(out, text.text, text.length);
        locations(out, diags, diag);
        str_char(out, '}');
    }
}

/* ---- rules ----------------------------------------------------------------------------------- */

static const char *page_of(Code code) {
    for (size_t i = 0; i < explain_pages_count; i++)
        if (strcmp(explain_pages[i].name, code_rows[code].name) == 0) return explain_pages[i].text;
    return NULL;
}

/* The first paragraph of prose of a page: not its title, and no code block */
static const char *first_paragraph(const char *page, size_t *length) {
    bool code = false;
    for (const char *line = page; *line;) {
        const char *end = strchr(line, '\n');
        size_t width = end ? (size_t)(end - line) : strlen(line);
        if (width >= 3 && memcmp(line, "```", 3) == 0) {
            code = !code;
        } else if (!code && width && line[0] != '#') {
            const char *blank = strstr(line, "\n\n");
            *length = blank ? (size_t)(blank - line) : strlen(line);
            while (*length && line[*length - 1] == '\n') --*length;
            return line;
        }
        line += width + (end != NULL);
    }
    return NULL;
}

static void print_rule(Str *out, Code code) {
    const CodeRow *row = &code_rows[code];
    const char *page = page_of(code);
    str_printf(out, "\n{\"id\":\"%s\",\"shortDescription\":", row->name);
    message(out, row->title, strlen(row->title));
    size_t length;
    const char *paragraph = page ? first_paragraph(page, &length) : NULL;
    if (paragraph) {
        str_add(out, ",\"fullDescription\":");
        message(out, paragraph, length);
    }
    if (page) {
        str_add(out, ",\"help\":");
        message(out, page, strlen(page));
    }
    str_printf(out, ",\"defaultConfiguration\":{\"level\":\"%s\"}}", level_of(row->severity));
}

void sarif_print(const Sarif *sarif, const char *version, Str *out) {
    str_add(
        out,
        "{\"$schema\":\"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"
        "sarif-schema-2.1.0.json\","
        "\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{\"name\":\"pipec\",\"version\":");
    str_json(out, version);
    str_add(out, ",\"rules\":[");
    for (size_t i = 0; i < sarif->codes.count; i++) {
        if (i) str_char(out, ',');
        print_rule(out, sarif->codes.items[i]);
    }
    str_add(out, "]}},\"columnKind\":\"unicodeCodePoints\",\"results\":[");
    str_add(out, sarif->results.text);
    str_add(out, "]}]}\n");
}
