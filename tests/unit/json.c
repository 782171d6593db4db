/* JSON: texts that are read, and texts that are malformed, with the line of the fault. */
#include "util/json.h"

#include "tests/unit/expect.h"

static const JsonValue *read_text(Scratch *scratch, const char *text) {
    const char *why = NULL;
    const JsonValue *value = json_read(scratch->arena, text, strlen(text), &why);
    if (!EXPECT((value == NULL) == (why != NULL))) fprintf(stderr, "%s\n", text);
    return value;
}

static void number_is(Scratch *scratch, const char *text, bool is_integer, double number) {
    const JsonValue *value = read_text(scratch, text);
    if (!EXPECT(value != NULL && value->kind == JSON_NUMBER && value->is_integer == is_integer &&
                value->number == number))
        fprintf(stderr, "%s\n", text);
}

static void text_is(Scratch *scratch, const char *text, const char *wanted) {
    const JsonValue *value = read_text(scratch, text);
    if (!EXPECT(value != NULL && value->kind == JSON_TEXT && strcmp(value->text, wanted) == 0))
        fprintf(stderr, "%s\n", text);
}

static void values(Scratch *scratch) {
    number_is(scratch, " 0 ", true, 0);
    number_is(scratch, "-17", true, -17);
    number_is(scratch, "9223372036854775807", true, 0x1p63);
    number_is(scratch, "9223372036854775808", false, 0x1p63);
    number_is(scratch, "1.5e3", false, 1500);
    number_is(scratch, "2E+1", false, 20);
    text_is(scratch, "\"\"", "");
    text_is(scratch, "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "a\"\\/\b\f\n\r\t");
    text_is(scratch, "\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\xC3\xA9\"",
            "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xC3\xA9");
    EXPECT(read_text(scratch, "null")->kind == JSON_NULL);
    EXPECT(read_text(scratch, "true")->truth && !read_text(scratch, "false")->truth);
    const JsonValue *tree =
        read_text(scratch, "{\"a\": [1, {\"b\": null}, []], \"c\": {}, \"a\": 2}");
    const JsonValue *list = json_field(tree, "a");
    EXPECT(list != NULL && list->kind == JSON_LIST && list->first->integer == 1);
    EXPECT(json_field(list->first->next, "b")->kind == JSON_NULL);
    EXPECT(list->first->next->next->first == NULL && list->first->next->next->next == NULL);
    EXPECT(json_field(tree, "c")->first == NULL && json_field(tree, "d") == NULL);
    EXPECT(json_field(list, "a") == NULL && json_field(NULL, "a") == NULL);
}

static void malformed(Scratch *scratch) {
    static const struct {
        const char *text, *why;
    } rows[] = {{"", "line 1: a value is missing"},
                {"{", "line 1: the name of a field"},
                {"[1,\n2,\n]", "line 3: a value is missing"},
                {"[1 2]", "`,` or a closing bracket"},
                {"{\"a\" 1}", "`:` is missing"},
                {"{\"a\": 1,}", "name of a field"},
                {"{a: 1}", "name of a field"},
                {"[1]]", "text after the value"},
                {"01", "a value is missing or malformed"},
                {"1.", "malformed"},
                {".5", "malformed"},
                {"+1", "malformed"},
                {"1e", "malformed"},
                {"NaN", "malformed"},
                {"0x10", "text after the value"},
                {"nul", "malformed"},
                {"truefalse", "text after the value"},
                {"\"a", "not closed"},
                {"\"a\nb\"", "not closed"},
                {"\"\\x\"", "unknown escape"},
                {"\"\\u12g4\"", "four hexadecimal digits"},
                {"\"\\u0000\"", "does not name a character"},
                {"\"\\ud800\"", "does not name a character"},
                {"\"\\ud800\\u0041\"", "does not name a character"},
                {"\"\\udc00\"", "does not name a character"},
                {"\"\xC0\x80\"", "not valid UTF-8"},
                {"// no\n1", "malformed"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *why;
        bool none = json_read(scratch->arena, rows[i].text, strlen(rows[i].text), &why) == NULL;
        if (!EXPECT(none && strstr(why, rows[i].why) != NULL))
            fprintf(stderr, "%s: %s\n", rows[i].text, none ? why : "read");
    }
    const char *why;
    EXPECT(json_read(scratch->arena, "[1]\0", 4, &why) == NULL);
}

static void depth(Scratch *scratch) {
    for (int deep = JSON_DEPTH_MAX; deep <= JSON_DEPTH_MAX + 1; deep++) {
        Str text = str_new(scratch->arena);
        const char *why;
        for (int i = 0; i < deep; i++) str_char(&text, '[');
        for (int i = 0; i < deep; i++) str_char(&text, ']');
        bool read = json_read(scratch->arena, text.text, text.length, &why) != NULL;
        EXPECT(read == (deep == JSON_DEPTH_MAX));
    }
    Str open = str_new(scratch->arena);
    const char *why;
    for (int i = 0; i < 100000; i++) str_add(&open, "{\"a\":[");
    EXPECT(json_read(scratch->arena, open.text, open.length, &why) == NULL);
    EXPECT(strstr(why, "nested too deeply") != NULL);
}

int main(void) {
    Scratch scratch = scratch_new();
    values(&scratch);
    malformed(&scratch);
    depth(&scratch);
    scratch_free(&scratch);
    return expect_failures();
}
