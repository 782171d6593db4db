/* Arguments of the command line. */
#include "launch/launch.h"

#include "tests/unit/expect.h"

#include <locale.h>
#include <math.h>

static void numbers(Scratch *scratch) {
    static const struct {
        const char *word;
        double number;
        bool is_integer;
        int64_t integer;
    } rows[] = {{"M=4096", 4096, true, 4096},
                {"M=-3", -3, true, -3},
                {"M=+3", 3, true, 3},
                {"M=0x10", 16, true, 16},
                {"M=-0x10", -16, true, -16},
                {"M=010", 10, true, 10},
                {"M=1e6", 1e6, true, 1000000},
                {"M=2.0", 2, true, 2},
                {"M=2.", 2, true, 2},
                {"M=1.e3", 1e3, true, 1000},
                {"a=2.E-5", 2e-5, false, 0},
                {"a=2.5", 2.5, false, 0},
                {"a=-1e-3", -1e-3, false, 0},
                {"a=inf", (double)INFINITY, false, 0},
                {"M=9223372036854775807", 9223372036854775807.0, true, INT64_MAX},
                {"M=9223372036854775808", 9223372036854775808.0, false, INT64_MIN},
                {"M=18446744073709551615", 18446744073709551616.0, false, -1},
                {"M=0xffffffffffffffff", 18446744073709551616.0, false, -1},
                {"M=18446744073709551616", 18446744073709551616.0, false, 0},
                {"M=-9223372036854775809", -9223372036854775808.0, false, 0},
                {"M=1e300", 1e300, false, 0}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        Argument argument;
        EXPECT(argument_parse(scratch->arena, rows[i].word, &argument, scratch->diags));
        EXPECT(argument.kind == ARGUMENT_NUMBER && argument.value.number == rows[i].number);
        EXPECT(argument.value.is_integer == rows[i].is_integer &&
               argument.value.integer == rows[i].integer);
        EXPECT(argument.value.is_above == (!rows[i].is_integer && rows[i].integer != 0));
        EXPECT(strlen(argument.name) == 1);
        EXPECT_CLEAN(scratch);
    }
    Argument nan;
    EXPECT(argument_parse(scratch->arena, "a=nan", &nan, scratch->diags) &&
           isnan(nan.value.number) && !nan.value.is_integer);
}

static void files(Scratch *scratch) {
    static const char *const words[] = {"A=a.npy", "A_1=12.npy", "A=x=y.npy", "A=4096x",
                                        "A= 3",    "A=1,5",      "A=-"};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        Argument argument;
        EXPECT(argument_parse(scratch->arena, words[i], &argument, scratch->diags));
        EXPECT(argument.kind == ARGUMENT_FILL && argument.fill.kind == FILL_FILE);
        EXPECT(strcmp(argument.fill.file, strchr(words[i], '=') + 1) == 0);
        EXPECT_CLEAN(scratch);
    }
}

static void refused(Scratch *scratch) {
    static const char *const words[] = {"", "=", "=3", "A", "A=", "3A=1", "A B=1", "A-B=1", " A=1"};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        Argument argument;
        EXPECT(!argument_parse(scratch->arena, words[i], &argument, scratch->diags));
        EXPECT_ERROR(scratch, P0600, "is not NAME=NUMBER or NAME=FILE.npy");
        EXPECT(!argument_parse_fill(scratch->arena, words[i], &argument, scratch->diags));
        EXPECT_ERROR(scratch, P0600, "is not NAME=normal");
    }
}

static void out_of_range(Scratch *scratch) {
    static const char *const large[] = {"a=1e999", "a=-1e309", "a=0x1p2000"}, *const small[] = {
                                                                                  "a=1e-400",
                                                                                  "a=-1e-999"};
    Argument argument;
    for (size_t i = 0; i < COUNT_OF(large); i++) {
        EXPECT(!argument_parse(scratch->arena, large[i], &argument, scratch->diags));
        EXPECT_ERROR(scratch, P0606, "is too large for 64-bit floating point");
        EXPECT(!argument_parse_fill(scratch->arena, large[i], &argument, scratch->diags));
        EXPECT_ERROR(scratch, P0606, "is too large for 64-bit floating point");
    }
    for (size_t i = 0; i < COUNT_OF(small); i++) {
        EXPECT(!argument_parse(scratch->arena, small[i], &argument, scratch->diags));
        EXPECT_ERROR(scratch, P0606, "is too small for 64-bit floating point");
    }
    EXPECT(argument_parse(scratch->arena, "a=1e-320", &argument, scratch->diags) &&
           argument.value.number > 0);
    EXPECT(argument_parse(scratch->arena, "a=0e-999", &argument, scratch->diags) &&
           argument.value.number == 0);
    EXPECT_CLEAN(scratch);
}

static void fills(Scratch *scratch) {
    static const struct {
        const char *word;
        FillKind kind;
        double value;
    } rows[] = {{"A=normal", FILL_NORMAL, 0}, {"A=uniform", FILL_UNIFORM, 0},
                {"A=iota", FILL_IOTA, 0},     {"A=zeros", FILL_ZEROS, 0},
                {"A=0.5", FILL_VALUE, 0.5},   {"A=-7", FILL_VALUE, -7}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        Argument argument;
        EXPECT(argument_parse_fill(scratch->arena, rows[i].word, &argument, scratch->diags));
        EXPECT(argument.kind == ARGUMENT_FILL && argument.fill.kind == rows[i].kind &&
               argument.fill.value.number == rows[i].value);
        EXPECT_CLEAN(scratch);
    }
    Argument argument;
    EXPECT(!argument_parse_fill(scratch->arena, "A=zeroes", &argument, scratch->diags));
    EXPECT_ERROR(scratch, P0600, "did you mean `A=zeros`?");
    EXPECT(!argument_parse_fill(scratch->arena, "A=a.npy", &argument, scratch->diags));
    EXPECT_ERROR(scratch, P0600, "without `--fill`");
}

int main(void) {
    Scratch scratch = scratch_new();
    numbers(&scratch);
    files(&scratch);
    refused(&scratch);
    out_of_range(&scratch);
    fills(&scratch);
    /* The host program's locale does not change the meaning of a number; without that locale
     * this tests nothing */
    if (setlocale(LC_ALL, "de_DE.UTF-8") != NULL) numbers(&scratch);
    scratch_free(&scratch);
    return expect_failures();
}
