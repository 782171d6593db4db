/* Places in a source, and diagnostics as text and JSON. */
#include "tests/unit/expect.h"

static void expect_text(const char *got, const char *wanted, int line) {
    if (strcmp(got, wanted) == 0) return;
    fprintf(stderr, "%s:%d: expected\n%s\ngot\n%s\n", __FILE__, line, wanted, got);
    failed_expectations++;
}

typedef struct Text {
    Arena *arena;
    Diags *diags;
} Text;

static Text text_of(const char *bytes, size_t length) {
    Arena *arena = arena_new();
    return (Text){arena, diags_new(arena, source_new(arena, "x.pipe", bytes, length))};
}

static void expect_rendered(Text text, const char *wanted, int line) {
    Str out = str_new(text.arena);
    diags_finish(text.diags);
    diags_render(text.diags, false, &out);
    expect_text(out.text, wanted, line);
    arena_free(text.arena);
}

#define TEXT(literal)          text_of((literal), sizeof(literal) - 1)
#define RENDERED(text, wanted) expect_rendered((text), (wanted), __LINE__)

static void places(void) {
    Arena *arena = arena_new();
    const Source *source = source_new(arena, "x", "ab\n\xC3\xA9\xFFz\r\n\nlast", 13);
    static const uint32_t wanted[][3] = {{0, 1, 1},  {2, 1, 3},  {3, 2, 1}, {4, 2, 1},
                                         {5, 2, 2},  {6, 2, 3},  {7, 2, 4}, {9, 3, 1},
                                         {10, 4, 1}, {13, 4, 4}, {99, 4, 4}};
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        uint32_t line, column;
        source_place(source, wanted[i][0], &line, &column);
        EXPECT(line == wanted[i][1] && column == wanted[i][2]);
    }
    EXPECT(source->lines == 4);
    EXPECT(span_join((Span){5, 7}, (Span){1, 6}).lo == 1 &&
           span_join((Span){5, 7}, (Span){1, 6}).hi == 7);
    arena_free(arena);
}

/* Columns far into a line are not counted from its start; the result is the same. */
static void places_in_long_lines(void) {
    Arena *arena = arena_new();
    Str text = str_new(arena);
    str_add(&text, "x\n");
    while (text.length < 10000) str_add(&text, "a\xC3\xA9\xE2\x82\xAC");
    const Source *source = source_new(arena, "x", text.text, text.length);
    for (uint32_t at = 2, wanted = 1; at < source->length; wanted++) {
        uint32_t line, column,
            length = (uint32_t)utf8_length(source->text + at, source->length - at);
        /* a byte inside a character has the character's column */
        for (uint32_t inside = 0; inside < length; inside++) {
            source_place(source, at + inside, &line, &column);
            EXPECT(line == 2 && column == wanted);
        }
        at += length;
    }
    arena_free(arena);
}

static void one_line(void) {
    Text text = TEXT("\tcall(a, \xC3\xA9, b);\n");
    Diag *diag = diag_at(text.diags, P0001, (Span){6, 7}, "message with `%s`", "name");
    diag_primary(text.diags, diag, "primary");
    diag_label(text.diags, diag, (Span){9, 11}, "second");
    diag_label(text.diags, diag, (Span){13, 14}, "third");
    diag_note(text.diags, diag, "why\nand more");
    diag_help(text.diags, diag, "the fix");
    RENDERED(text, "error[P0001]: message with `name`\n"
                   " --> x.pipe:1:7\n"
                   "  |\n"
                   "1 |     call(a, \xC3\xA9, b);\n"
                   "  |          ^  -  - third\n"
                   "  |          |  |\n"
                   "  |          |  second\n"
                   "  |          primary\n"
                   "  |\n"
                   "  = note: why\n"
                   "          and more\n"
                   "  = help: the fix\n");
}

static void several_lines(void) {
    Text text = TEXT("one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n");
    Diag *diag = diag_at(text.diags, P0002, (Span){45, 48}, "far apart");
    diag_label(text.diags, diag, (Span){0, 3}, "first");
    diag_label(text.diags, diag, (Span){8, 13}, "a line between is shown");
    diag_label(text.diags, diag, (Span){19, 28}, "over lines");
    RENDERED(text, "error[P0002]: far apart\n"
                   "  --> x.pipe:10:1\n"
                   "   |\n"
                   " 1 | one\n"
                   "   | --- first\n"
                   " 2 | two\n"
                   " 3 | three\n"
                   "   | ----- a line between is shown\n"
                   " 4 | four\n"
                   " 5 | five\n"
                   "   | ----\n"
                   " 6 | six\n"
                   "   | --- over lines\n"
                   "...\n"
                   "10 | ten\n"
                   "   | ^^^\n");
}

static void odd_bytes(void) {
    Text text = TEXT("a\0b\xFF\xE2\x80\xAE"
                     "c\r\n");
    diag_primary(text.diags, diag_at(text.diags, P0002, (Span){7, 8}, "here"), "c");
    diag_at(text.diags, P0003, (Span){10, 10}, "at the end");
    diag_at(text.diags, P0003, (Span){90, 95}, "beyond the end");
    RENDERED(text, "error[P0002]: here\n"
                   " --> x.pipe:1:6\n"
                   "  |\n"
                   "1 | a\\x00b\\xFF\\u{202E}c\n"
                   "  |                   ^ c\n"
                   "\n"
                   "error[P0003]: at the end\n"
                   " --> x.pipe:2:1\n"
                   "  |\n"
                   "2 |\n"
                   "  | ^\n"
                   "\n"
                   "error[P0003]: beyond the end\n"
                   " --> x.pipe:2:1\n"
                   "  |\n"
                   "2 |\n"
                   "  | ^\n");
}

static void long_line(void) {
    static char bytes[10000];
    memset(bytes, 'a', sizeof bytes);
    memcpy(bytes + 5000, "HERE", 4);
    Text text = text_of(bytes, sizeof bytes);
    diag_label(text.diags, diag_at(text.diags, P0001, (Span){5000, 5004}, "m"), (Span){0, 9999},
               "all of it");
    Str out = str_new(text.arena);
    diags_render(text.diags, false, &out);
    for (const char *line = out.text; *line; line += strcspn(line, "\n") + 1)
        EXPECT(strcspn(line, "\n") < 170);
    /* the first mark is at the head of the line, which is shown */
    EXPECT(strstr(out.text, "HERE") == NULL);
    arena_free(text.arena);

    text = text_of(bytes, sizeof bytes);
    diag_at(text.diags, P0001, (Span){5000, 5004}, "m");
    Str cut = str_new(text.arena);
    diags_render(text.diags, false, &cut);
    EXPECT(strstr(cut.text, "| ...aaa") && strstr(cut.text, "HEREaaa") &&
           strstr(cut.text, "aaa...\n") && strstr(cut.text, " ^^^^\n"));
    arena_free(text.arena);
}

static void order(void) {
    Text text = TEXT("abc\n");
    diag_plain(text.diags, P0009, "without a place");
    diag_at(text.diags, P0002, (Span){2, 3}, "later");
    diag_at(text.diags, P0001, (Span){0, 1}, "first");
    diag_at(text.diags, P0003, (Span){0, 1}, "second at the place");
    diag_at(text.diags, P0001, (Span){0, 1}, "first");
    EXPECT(text.diags->errors == 5);
    diags_finish(text.diags);
    EXPECT(text.diags->errors == 4 && text.diags->items.count == 4);
    EXPECT(text.diags->items.items[0]->code == P0001 && text.diags->items.items[1]->code == P0003);
    EXPECT(text.diags->items.items[2]->code == P0002 && text.diags->items.items[3]->code == P0009);
    arena_free(text.arena);
}

static void many_labels(void) {
    Text text = TEXT("abc\n");
    Diag *diag = diag_at(text.diags, P0001, (Span){0, 3}, "m");
    for (int i = 0; i < 20; i++) diag_label(text.diags, diag, (Span){1, 2}, "label %d", i);
    EXPECT(diag->label_count == DIAG_MAX_LABELS && diag->notes.count == 20 - (DIAG_MAX_LABELS - 1));
    Str out = str_new(text.arena);
    diags_render(text.diags, true, &out);
    for (int i = 0; i < 20; i++)
        EXPECT(strstr(out.text, arena_printf(text.arena, "label %d", i)) != NULL);
    EXPECT(strstr(out.text, "\033[1;31m") && strstr(out.text, "\033[0m"));
    arena_free(text.arena);
}

static void json(void) {
    Text text = TEXT("ab\ncd\n");
    Diag *diag = diag_at(text.diags, P0001, (Span){1, 4}, "say \"%s\"", "x");
    diag_primary(text.diags, diag, "here");
    diag_help(text.diags, diag, "do");
    diag_plain(text.diags, P0002, "all");
    Str out = str_new(text.arena);
    diags_json(text.diags, &out);
    expect_text(out.text,
                "{\"file\":\"x.pipe\",\"diagnostics\":[{\"code\":\"P0001\",\"severity\":\"error\","
                "\"message\":\"say "
                "\\\"x\\\"\","
                "\"labels\":[{\"line\":1,\"column\":2,\"end_line\":2,\"end_column\":2,\"lo\":1,"
                "\"hi\":4,\"text\":\"here\"}],"
                "\"notes\":[],\"helps\":[\"do\"]},{\"code\":\"P0002\",\"severity\":\"error\","
                "\"message\":\"all\",\"labels\":[],"
                "\"notes\":[],\"helps\":[]}]}\n",
                __LINE__);
    arena_free(text.arena);
}

static void codes(void) {
    Code code;
    EXPECT(code_by_name("p0001", &code) && code == P0001);
    EXPECT(!code_by_name("P9999", &code) && !code_by_name("", &code));
    for (int i = 0; i < CODE_COUNT; i++)
        EXPECT(code_by_name(code_rows[i].name, &code) && code == (Code)i);
}

int main(void) {
    places();
    places_in_long_lines();
    one_line();
    several_lines();
    odd_bytes();
    long_line();
    order();
    many_labels();
    json();
    codes();
    return expect_failures();
}
