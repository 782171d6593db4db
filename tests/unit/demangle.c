/* Names of C++ against those of c++filt (demangle.txt), names with an error, and names whose text
 * grows exponentially.
 *
 * demangle.txt has a name, and on the next line, after two blanks, what `c++filt` of binutils 2.40
 * prints for it; "-": it stays as it is. The names are of nvcc, of g++, and written by hand. */
#include "emulator/findings/demangle.h"

#include "tests/unit/expect.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_LINE = 4096, MOST_SECONDS = 1 };

static void test_name(const char *name, const char *expected) {
    Arena *arena = arena_new();
    const char *text = demangle(arena, name);
    if (!EXPECT(!strcmp(text ? text : "-", expected)))
        fprintf(stderr, "%s\n  is      %s\n  must be %s\n", name, text ? text : "-", expected);
    EXPECT(!strcmp(demangle_or_keep(arena, name), text ? text : name));
    arena_free(arena);
}

static size_t test_file(const char *file) {
    static char name[MOST_LINE], text[MOST_LINE];
    FILE *in = fopen(file, "r");
    size_t count = 0;
    if (!EXPECT(in != NULL)) return 0;
    for (; fgets(name, sizeof name, in) && fgets(text, sizeof text, in); count++) {
        name[strcspn(name, "\n")] = text[strcspn(text, "\n")] = '\0';
        EXPECT(!strncmp(text, "  ", 2));
        test_name(name, text + 2);
        /* each beginning of a name is read or refused */
        Arena *arena = arena_new();
        for (size_t length = strlen(name); length-- > 0;) {
            name[length] = '\0';
            (void)demangle(arena, name);
        }
        arena_free(arena);
    }
    fclose(in);
    return count;
}

/* `before`, `count` times `part`, and `after` */
static void test_growth(const char *before, const char *part, size_t count, const char *after) {
    Arena *arena = arena_new();
    Str name = str_new(arena);
    str_add(&name, before);
    for (size_t i = 0; i < count; i++) str_add(&name, part);
    str_add(&name, after);
    clock_t start = clock();
    const char *text = demangle(arena, name.text);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    EXPECT(seconds < MOST_SECONDS);
    EXPECT(text == NULL || strlen(text) <= 1 << 14);
    EXPECT(arena_bytes(arena) < 16 << 20);
    arena_free(arena);
}

/* Each argument has the one before twice: 2^n words */
static void test_doubling(void) {
    Arena *arena = arena_new();
    Str name = str_new(arena);
    str_add(&name, "_Z1f1A1BIS_S_E");
    for (int i = 0; i < 26; i++) str_printf(&name, "1CIS%c_S%c_E", 'A' + i, 'A' + i);
    test_growth(name.text, "", 0, "");
    arena_free(arena);
}

int main(void) {
    static const size_t counts[] = {10, 100, 1000, 4000};
    EXPECT(test_file("tests/unit/demangle.txt") > 300);
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        test_growth("_Z1f", "P", counts[i], "i");
        test_growth("_Z1f", "1AI", counts[i], "i");
        test_growth("_Z1f", "FP", counts[i], "iE");
        test_growth("_ZN", "1a", counts[i], "E");
        test_growth("_Z", "Z1fvE", counts[i], "1x");
        test_growth("_Z1f1AI", "J", counts[i], "EE");
        test_growth("_Z1fIT_T_T_EvO", "T_", counts[i], "");
        test_growth("_Z1fIJT_T_EEv", "DpT_", counts[i], "");
        test_growth("_Z1fIOT_Ev", "OT_", counts[i], "");
        test_growth("_Z1f", "A1_", counts[i], "i");
        test_growth("_Z1fI", "Li1E", counts[i], "Evv");
        test_growth("_Z1f1A", "1BIS_S0_S1_E", counts[i], "");
    }
    test_doubling();
    return expect_failures();
}
