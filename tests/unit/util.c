/* The lowest floor: memory, vectors, strings, names, UTF-8. */
#include "tests/unit/expect.h"

#include <setjmp.h>

static void arenas(void) {
    Arena *arena = arena_new();
    for (size_t size = 0; size < 3000; size += 7) {
        unsigned char *object = arena_alloc(arena, size);
        EXPECT((uintptr_t)object % 16 == 0);
        for (size_t i = 0; i < size; i++) EXPECT(object[i] == 0);
        memset(object, 0xFF, size); /* the next object must be zero nevertheless */
    }
    unsigned char *large = arena_alloc(arena, 5u << 20);
    EXPECT(large[0] == 0 && large[(5u << 20) - 1] == 0);

    char *text = arena_copy(arena, "abcdef", 3);
    EXPECT(strcmp(text, "abc") == 0);
    text = arena_grow(arena, text, 4, 100);
    EXPECT(strcmp(text, "abc") == 0 && text[99] == 0);
    (void)arena_alloc(arena, 1);
    text = arena_grow(arena, text, 100, 100000);
    EXPECT(strcmp(text, "abc") == 0 && text[99999] == 0);
    EXPECT(strcmp(arena_printf(arena, "%s-%d", "x", 7), "x-7") == 0);
    EXPECT(arena_bytes(arena) > 5u << 20);
    arena_free(arena);
    arena_free(NULL);
}

static void cuts(Arena *arena) {
    Cut cut = {.arena = arena};
    unsigned char *objects[600];
    bool zero = true, aligned = true, kept = true;
    for (size_t i = 0; i < COUNT_OF(objects); i++) {
        size_t bytes = i == 300 ? 2 * CUT_PIECE : 1 + i % 50;
        objects[i] = cut_alloc(&cut, bytes);
        aligned = aligned && (uintptr_t)objects[i] % CUT_ALIGNMENT == 0;
        for (size_t k = 0; k < bytes; k++) zero = zero && objects[i][k] == 0;
        memset(objects[i], (int)(i % 255 + 1), bytes);
    }
    for (size_t i = 0; i < COUNT_OF(objects); i++) kept = kept && objects[i][0] == i % 255 + 1;
    EXPECT(zero && aligned && kept);
}

static void failing_arena(void) {
    Arena *arena = arena_new();
    jmp_buf failed;
    volatile int jumps = 0;
    if (setjmp(failed)) {
        jumps++;
    } else {
        arena_on_failure(arena, &failed);
        (void)arena_alloc(arena, SIZE_MAX - 5);
    }
    if (setjmp(failed))
        jumps++;
    else
        (void)NEW_ARRAY(arena, uint64_t, SIZE_MAX / 4);
    EXPECT(jumps == 2);
    arena_free(arena);
}

static void vectors(Arena *arena) {
    VEC(int) numbers = {0};
    for (int i = 0; i < 10000; i++) vec_push(arena, &numbers, i * 3);
    EXPECT(numbers.count == 10000);
    for (int i = 0; i < 10000; i++) EXPECT(numbers.items[i] == i * 3);
    VEC(Span) spans = {0};
    vec_push(arena, &spans, (Span){1, 2});
    EXPECT(spans.items[0].hi == 2);
}

static void strings(Arena *arena) {
    Str str = str_new(arena);
    EXPECT(str.length == 0 && str.text[0] == 0);
    for (int i = 0; i < 1000; i++) str_printf(&str, "%d,", i % 10);
    EXPECT(str.length == 2000 && strlen(str.text) == 2000 && str.text[1998] == '9');
    Str wide = str_new(arena);
    str_printf(&wide, "%s", str.text);
    EXPECT(strcmp(wide.text, str.text) == 0);

    Str numbers = str_new(arena);
    const int64_t some[] = {0, -7, 42, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < COUNT_OF(some); i++)
        str_integer(&numbers, some[i]), str_char(&numbers, ' ');
    EXPECT(strcmp(numbers.text, "0 -7 42 9223372036854775807 -9223372036854775808 ") == 0);

    Str json = str_new(arena);
    str_json(&json, "a\"\\\n\t\x01\xC3\xA9\xFF");
    EXPECT(strcmp(json.text, "\"a\\\"\\\\\\n\\t\\u0001\xC3\xA9\xEF\xBF\xBD\"") == 0);
    str_json(&json, NULL);
    EXPECT(strcmp(json.text + json.length - 4, "null") == 0);

    Str visible = str_new(arena);
    str_visible(&visible, "a\0\x1B\xFF\xC3\xA9\xE2\x80\xAE", 9);
    EXPECT(strcmp(visible.text, "a\\x00\\x1B\\xFF\xC3\xA9\\u{202E}") == 0);
}

static void utf8(void) {
    EXPECT(utf8_length("", 0) == 0);
    EXPECT(utf8_length("a", 1) == 1);
    EXPECT(utf8_length("\xC3\xA9", 2) == 2);
    EXPECT(utf8_length("\xC3\xA9", 1) == 0);
    EXPECT(utf8_length("\xE2\x82\xAC", 3) == 3);
    EXPECT(utf8_length("\xF0\x9F\x98\x80", 4) == 4);
    EXPECT(utf8_length("\xC0\x80", 2) == 0);         /* overlong */
    EXPECT(utf8_length("\xE0\x80\x80", 3) == 0);     /* overlong */
    EXPECT(utf8_length("\xED\xA0\x80", 3) == 0);     /* a surrogate */
    EXPECT(utf8_length("\xF4\x90\x80\x80", 4) == 0); /* over U+10FFFF */
    EXPECT(utf8_length("\x80", 1) == 0);
}

static void names(Arena *arena) {
    Names *all = names_new(arena);
    const char *first[2000];
    for (int i = 0; i < 2000; i++) {
        const char *text = arena_printf(arena, "name%d", i);
        first[i] = names_intern(all, text, strlen(text));
        EXPECT(first[i] != text && strcmp(first[i], text) == 0);
    }
    for (int i = 0; i < 2000; i++) {
        const char *text = arena_printf(arena, "name%dtail", i);
        EXPECT(names_intern(all, text, strlen(text) - 4) == first[i]);
    }
    EXPECT(names_intern(all, "", 0) == names_intern(all, "x", 0));
}

static void closest(void) {
    const char *const words[] = {"load", "store", "math", "loaded", "sum"};
    EXPECT(closest_name("lod", words, 5) == words[0]);
    /* an exchange of adjacent letters counts once */
    EXPECT(closest_name("laod", words, 5) == words[0]);
    EXPECT(closest_name("stroe", words, 5) == words[1]);
    EXPECT(closest_name("loadde", words, 5) == words[3]);
    EXPECT(closest_name("load", words, 5) == words[0]);
    static const char *const letters[] = {"N", "X"};
    EXPECT(closest_name("M", letters, 2) == NULL); /* one change away, but no common letter */
    EXPECT(closest_name("x", letters, 2) == letters[1] &&
           closest_name("XX", letters, 2) == letters[1]);
    EXPECT(closest_name("son", words, 5) == NULL);
    EXPECT(closest_name("consumer", words, 5) == NULL);
    EXPECT(closest_name("", words, 5) == NULL);
    char huge[200];
    memset(huge, 'a', 199);
    huge[199] = 0;
    EXPECT(closest_name(huge, words, 5) == NULL);
}

int main(void) {
    Arena *arena = arena_new();
    arenas();
    cuts(arena);
    failing_arena();
    vectors(arena);
    strings(arena);
    utf8();
    names(arena);
    closest();
    arena_free(arena);
    return expect_failures();
}
