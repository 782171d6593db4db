/* SARIF logs: what the writer makes of diagnostics, and whether it has the properties and values
 * that the standard asks for, which are listed in tests/unit/sarif.txt. With arguments, the logs
 * in these files are validated instead. */
#include "tests/unit/expect.h"

#include <ctype.h>
#include <stdlib.h>

#define ROWS_MAX 64

typedef struct Row {
    char object[32], property[32], need[16], type[64];
} Row;

typedef struct Check {
    const Row *rows;
    size_t count;
    const char *at;
    Arena *arena;
    const char *why; /* NULL: no fault so far */
} Check;

static size_t read_rows(Row *rows) {
    char line[256];
    size_t count = 0;
    FILE *file = fopen("tests/unit/sarif.txt", "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        Row *row = &rows[count];
        if (line[0] != '#' && count < ROWS_MAX &&
            sscanf(line, "%31s %31s %15s %63[^\n]", row->object, row->property, row->need,
                   row->type) == 4)
            count++;
    }
    fclose(file);
    return count;
}

static bool wrong(Check *check, const char *what, const char *name) {
    if (!check->why)
        check->why = arena_printf(check->arena, "%s: %s, before %.60s", what, name, check->at);
    return false;
}

static bool take(Check *check, char c) {
    while (*check->at == ' ' || *check->at == '\n') check->at++;
    if (*check->at != c) return false;
    check->at++;
    return true;
}

static const char *text(Check *check) {
    Str out = str_new(check->arena);
    str_add(&out, "");
    if (!take(check, '"')) {
        wrong(check, "a string is missing", "");
        return "";
    }
    for (; *check->at && *check->at != '"'; check->at++) {
        if ((unsigned char)*check->at < 0x20) wrong(check, "control character", "");
        bool escaped = *check->at == '\\';
        check->at += escaped;
        if (escaped && *check->at == 'u') {
            char digits[5] = {0};
            strncpy(digits, check->at + 1, 4);
            str_char(&out, (char)strtol(digits, NULL, 16));
            check->at += strlen(digits);
        } else {
            if (escaped && (!*check->at || !strchr("\"\\/bfnrt", *check->at))) {
                wrong(check, "unknown escape", "");
                return "";
            }
            str_char(&out, escaped && *check->at == 'n' ? '\n' : *check->at);
        }
    }
    if (!take(check, '"')) wrong(check, "a string is not closed", "");
    return out.text;
}

static bool is_uri(const char *text) {
    for (; *text; text++) {
        if (*text == '%' && !(isxdigit((unsigned char)text[1]) && isxdigit((unsigned char)text[2])))
            return false;
        if (!isalnum((unsigned char)*text) && !strchr("%-._~:/?#[]@!$&'()*+,;=", *text))
            return false;
    }
    return true;
}

/* `{{` and `}}` only: a single brace would be a placeholder */
static bool is_message(const char *text) {
    for (; *text; text++) {
        if (*text != '{' && *text != '}') continue;
        if (text[1] != text[0]) return false;
        text++;
    }
    return true;
}

static bool is_one_of(const char *word, const char *list) {
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == '|' || at[length] == 0)) return true;
    return false;
}

static void value(Check *check, const char *type);

static void object(Check *check, const char *type) {
    bool seen[ROWS_MAX] = {false};
    if (!take(check, '{')) wrong(check, "an object is missing", type);
    for (bool first = true; !check->why && !take(check, '}'); first = false) {
        if (!first && !take(check, ',')) wrong(check, "a comma is missing", type);
        const char *name = text(check);
        size_t i = 0;
        while (i < check->count && (strcmp(check->rows[i].object, type) != 0 ||
                                    strcmp(check->rows[i].property, name) != 0))
            i++;
        if (i == check->count || seen[i]) {
            wrong(check, "property that is not allowed, or twice", name);
            return;
        }
        seen[i] = true;
        if (!take(check, ':')) wrong(check, "a colon is missing", name);
        value(check, check->rows[i].type);
    }
    for (size_t i = 0; i < check->count; i++)
        if (strcmp(check->rows[i].object, type) == 0 &&
            strcmp(check->rows[i].need, "required") == 0 && !seen[i])
            wrong(check, "required property is missing", check->rows[i].property);
}

static void value(Check *check, const char *type) {
    if (check->why) return;
    if (strncmp(type, "array ", 6) == 0) {
        if (!take(check, '[')) wrong(check, "an array is missing", type);
        for (bool first = true; !check->why && !take(check, ']'); first = false) {
            if (!first && !take(check, ',')) wrong(check, "a comma is missing", type);
            value(check, type + 6);
        }
    } else if (strncmp(type, "integer ", 8) == 0) {
        char *end;
        long number = strtol(check->at, &end, 10);
        if (end == check->at || number < atol(type + 8))
            wrong(check, "not an integer, or too small", type);
        check->at = end;
    } else if (strncmp(type, "one ", 4) == 0) {
        const char *word = text(check);
        if (!is_one_of(word, type + 4))
            wrong(check, "value that the enumeration does not have", word);
    } else if (strcmp(type, "string") == 0) {
        text(check);
    } else if (strcmp(type, "message") == 0) {
        if (!is_message(text(check))) wrong(check, "single brace in a message", type);
    } else if (strcmp(type, "uri") == 0) {
        const char *word = text(check);
        if (!is_uri(word)) wrong(check, "not a URI reference", word);
    } else {
        object(check, type);
    }
}

/* NULL: it is valid */
static const char *fault(Arena *arena, const char *log) {
    static Row rows[ROWS_MAX];
    Check check = {.rows = rows, .count = read_rows(rows), .at = log, .arena = arena};
    if (check.count == 0) return "tests/unit/sarif.txt cannot be read";
    value(&check, "log");
    if (!check.why && (!take(&check, '\n') && *check.at)) wrong(&check, "text after the log", "");
    return check.why;
}

#define EXPECT_VALID(log) expect_valid((log), __LINE__)

static void expect_valid(const char *log, int line) {
    Arena *arena = arena_new();
    const char *why = fault(arena, log);
    if (why) fprintf(stderr, "tests/unit/sarif.c:%d: not valid: %s\n", line, why);
    EXPECT(why == NULL);
    arena_free(arena);
}

static const char *printed(Arena *arena, const Sarif *sarif) {
    Str out = str_new(arena);
    sarif_print(sarif, "1.2.3", &out);
    return out.text;
}

static bool has(const char *log, const char *part) {
    if (strstr(log, part)) return true;
    fprintf(stderr, "no %s in\n%s\n", part, log);
    return false;
}

static void empty_log(void) {
    Arena *arena = arena_new();
    const char *log = printed(arena, sarif_new(arena));
    EXPECT_VALID(log);
    EXPECT(has(log, "\"name\":\"pipec\",\"version\":\"1.2.3\",\"rules\":[]}}") &&
           has(log, "\"results\":[]"));
    arena_free(arena);
}

static void results(void) {
    Arena *arena = arena_new();
    Sarif *sarif = sarif_new(arena);
    const char *bytes = "ab\n\xC3\xA9\xE2\x82\xACxyz {}\n";
    Diags *diags =
        diags_new(arena, source_new(arena, "a dir/k:1\xC3\xA9%.pipe", bytes, strlen(bytes)));
    Diag *diag = diag_at(diags, P0241, (Span){8, 11}, "copy of `{a}` is alone");
    diag_primary(diags, diag, "here \"it\" is");
    diag_label(diags, diag, (Span){0, 2}, "declared {here}");
    diag_note(diags, diag, "because");
    diag_help(diags, diag, "do something");
    diag_at(diags, P0100, (Span){0, 4}, "over two lines");
    diags_finish(diags);
    sarif_add(sarif, diags);
    Diags *file = diags_new(arena, source_new(arena, "/abs.pipe", "", 0)),
          *none = diags_new(arena, NULL);
    diag_plain(file, P0100, "no place");
    diag_plain(none, P0810, "not even a file");
    sarif_add(sarif, file);
    sarif_add(sarif, none);
    const char *log = printed(arena, sarif);
    EXPECT_VALID(log);
    EXPECT(has(log, "{\"ruleId\":\"P0100\",\"ruleIndex\":0,\"level\":\"error\",\"message\":{"
                    "\"text\":\"over two lines\"}"));
    EXPECT(
        has(log, "\"region\":{\"startLine\":1,\"startColumn\":1,\"endLine\":2,\"endColumn\":1}"));
    EXPECT(has(log, "\"ruleIndex\":1,\"level\":\"note\",\"message\":{\"text\":\"copy of `{{a}}` is "
                    "alone\\nnote: "
                    "because\\nhelp: do something\"}"));
    EXPECT(has(log, "{\"uri\":\"a%20dir/"
                    "k%3A1%C3%A9%25.pipe\"},\"region\":{\"startLine\":2,\"startColumn\":3,"
                    "\"endLine\":2,\"endColumn\":6}"));
    EXPECT(has(log, "\"message\":{\"text\":\"here \\\"it\\\" is\"}"));
    EXPECT(has(log, "\"message\":{\"text\":\"declared {{here}}\"},\"id\":1}]"));
    EXPECT(has(log, "{\"uri\":\"file:///abs.pipe\"}}}]"));
    EXPECT(has(log, "\"ruleId\":\"P0810\",\"ruleIndex\":2,\"level\":\"warning\",\"message\":{"
                    "\"text\":\"not even a "
                    "file\"},\"locations\":[]}"));
    EXPECT(has(log, "{\"id\":\"P0241\",\"shortDescription\":{\"text\":\"copy is not multicast "
                    "along an axis of the cluster\"}"));
    EXPECT(has(log, "\"fullDescription\":{\"text\":\"A note: the kernel is accepted, but"));
    EXPECT(has(log, "\"defaultConfiguration\":{\"level\":\"note\"}"));
    arena_free(arena);
}

/* All pages give valid strings, and each rule's first paragraph is prose. */
static void every_rule(void) {
    Arena *arena = arena_new();
    Sarif *sarif = sarif_new(arena);
    Diags *diags = diags_new(arena, NULL);
    for (int code = 0; code < CODE_COUNT; code++) diag_plain(diags, (Code)code, "x");
    diags_finish(diags);
    sarif_add(sarif, diags);
    const char *log = printed(arena, sarif);
    EXPECT_VALID(log);
    size_t described = 0;
    for (const char *at = log; (at = strstr(at, "\"fullDescription\"")); at++) described++;
    EXPECT(described == CODE_COUNT);
    EXPECT(strstr(log, "\"fullDescription\":{\"text\":\"```") == NULL &&
           strstr(log, "\"fullDescription\":{\"text\":\"#") == NULL);
    arena_free(arena);
}

/* A denied note is an error in its result, and a note in its rule. */
static void denied(void) {
    Arena *arena = arena_new();
    Sarif *sarif = sarif_new(arena);
    Diags *diags = diags_new(arena, NULL);
    Levels levels = {.denied[P0241] = true};
    diags_set_levels(diags, &levels);
    diag_plain(diags, P0241, "x");
    diags_finish(diags);
    diags_finish(diags);
    EXPECT(diags->errors == 1);
    sarif_add(sarif, diags);
    const char *log = printed(arena, sarif);
    EXPECT(has(log, "\"level\":\"error\",\"message\":{\"text\":\"x\\nnote: this note is denied by "
                    "`-D`\"}") &&
           has(log, "\"defaultConfiguration\":{\"level\":\"note\"}"));
    arena_free(arena);
}

/* The validator finds each kind of fault. */
static void faults(void) {
    static const char *const wrong_logs[] = {
        "",
        "{}",
        "{\"version\":\"2.1.0\"}",
        "{\"version\":\"2.0.0\",\"runs\":[]}",
        "{\"version\":\"2.1.0\",\"runs\":[{}]}",
        "{\"version\":\"2.1.0\",\"runs\":[],\"more\":1}",
        "{\"version\":\"2.1.0\",\"runs\":[]} x",
        "{\"version\":\"2.1.0\",\"runs\":[],}",
        "{\"version\":\"2.1.0\",\"version\":\"2.1.0\",\"runs\":[]}",
        "{\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{\"name\":\"p\"}},"
        "\"results\":[{\"message\":{\"text\":\"{0}\"}}]}]}",
        "{\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{\"name\":\"p\"}},"
        "\"results\":[{\"level\":\"bad\",\"message\":{\"text\":\"\"}}]}]}",
        "{\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{\"name\":\"p\"}},"
        "\"results\":[{\"ruleIndex\":-1,\"message\":{\"text\":\"\"}}]}]}"};
    Arena *arena = arena_new();
    for (size_t i = 0; i < COUNT_OF(wrong_logs); i++) EXPECT(fault(arena, wrong_logs[i]) != NULL);
    EXPECT(fault(arena,
                 "{\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{\"name\":\"p\"}}}]}\n") ==
           NULL);
    arena_free(arena);
}

static void validate(const char *path) {
    Arena *arena = arena_new();
    FILE *file = fopen(path, "rb");
    Str log = str_new(arena);
    str_add(&log, "");
    for (int c; file && (c = fgetc(file)) != EOF;) str_char(&log, (char)c);
    if (file) fclose(file);
    const char *why = fault(arena, log.text);
    if (why) fprintf(stderr, "%s: %s\n", path, why);
    EXPECT(why == NULL);
    arena_free(arena);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) validate(argv[i]);
    if (argc > 1) return expect_failures();
    empty_log();
    results();
    every_rule();
    denied();
    faults();
    return expect_failures();
}
