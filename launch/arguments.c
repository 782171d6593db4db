/* launch: words of the command line to Arguments: "M=4096", "a=2.5", "A=a.npy" and, after
 * --fill, "A=iota". Names are not resolved at this point: a value that is not a number is taken
 * as a file name, and binding reports it if that is wrong. */
#include "launch/private.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_name(const char *text, size_t length) {
    if (length == 0 || isdigit((unsigned char)text[0])) return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_') return false;
    return true;
}

/* Result of strtod_l, and whether it is 0 or infinite only because of its range */
typedef struct Double {
    double value;
    bool too_large, too_small;
} Double;

/* strtod in the C locale: the host program's decimal comma must not change the meaning of a file
 * or script */
static Double to_double(const char *text, char **end) {
    locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    errno = 0;
    double value = c == (locale_t)0 ? strtod(text, end) : strtod_l(text, end, c);
    bool beyond = errno == ERANGE;
    if (c != (locale_t)0) freelocale(c);
    return (Double){value, beyond && isinf(value), beyond && value == 0};
}

bool text_double(const char *text, double *out) {
    char *end;
    if (text[0] == 0 || isspace((unsigned char)text[0])) return false;
    *out = to_double(text, &end).value;
    return *end == 0;
}

typedef enum Number { NUMBER_NONE, NUMBER_FINE, NUMBER_TOO_LARGE, NUMBER_TOO_SMALL } Number;

/* Whether the whole text is a number, and which one */
static Number read_number(const char *text, Numeral *out) {
    if (isspace((unsigned char)text[0]) || text[0] == 0) return NUMBER_NONE;
    char *end;
    Double read = to_double(text, &end);
    *out = (Numeral){.number = read.value, .text = text};
    if (*end != 0) return NUMBER_NONE;
    if (read.too_large) return NUMBER_TOO_LARGE;
    if (read.too_small) return NUMBER_TOO_SMALL;
    const char *digits = text[0] == '-' || text[0] == '+' ? text + 1 : text;
    bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    errno = 0;
    long long whole = strtoll(text, &end, hex ? 16 : 10);
    bool all = *end == 0;
    out->is_integer = all && errno == 0;
    out->integer = out->is_integer ? whole : 0;
    if (all && errno == ERANGE && text[0] != '-') {
        errno = 0;
        uint64_t natural = strtoull(text, &end, hex ? 16 : 10);
        out->is_above = errno == 0;
        out->integer = out->is_above ? (int64_t)natural : 0;
    }
    /* 1e6 is an integer too; from 2^53 on a double does not represent every integer */
    if (!all && read.value > -0x1p53 && read.value < 0x1p53 &&
        read.value == (double)(int64_t)read.value) {
        out->is_integer = true;
        out->integer = (int64_t)read.value;
    }
    return NUMBER_FINE;
}

/* False, with a diagnostic, if no type holds the number in `word`. */
static bool in_range(Number number, const char *word, Diags *diags) {
    if (number != NUMBER_TOO_LARGE && number != NUMBER_TOO_SMALL) return true;
    Diag *diag = diag_plain(diags, P0606, "the number of `%s` is too %s for 64-bit floating point",
                            word, number == NUMBER_TOO_SMALL ? "small" : "large");
    diag_note(diags, diag, "the range is 4.9e-324 to 1.8e308; write `inf` for infinity");
    return false;
}

/* Splits at the first '='. NULL and a diagnostic if the word does not have the form
 * NAME=something. */
static const char *split(Arena *arena, const char *word, const char *wanted, Argument *out,
                         Diags *diags) {
    *out = (Argument){0};
    const char *equals = strchr(word, '=');
    if (equals == NULL || equals[1] == 0 || !is_name(word, (size_t)(equals - word))) {
        Diag *diag = diag_plain(diags, P0600, "`%s` is not %s", word, wanted);
        if (equals != NULL && equals[1] == 0 && equals > word)
            diag_note(diags, diag, "the value after `=` is missing");
        return NULL;
    }
    out->name = arena_copy(arena, word, (size_t)(equals - word));
    return arena_copy(arena, equals + 1, strlen(equals + 1));
}

bool argument_parse(Arena *arena, const char *word, Argument *out, Diags *diags) {
    const char *value = split(arena, word, "NAME=NUMBER or NAME=FILE.npy", out, diags);
    if (value == NULL) return false;
    out->kind = ARGUMENT_NUMBER;
    Number number = read_number(value, &out->value);
    if (number != NUMBER_NONE) return in_range(number, word, diags);
    out->kind = ARGUMENT_FILL;
    out->fill.kind = FILL_FILE;
    out->fill.file = value;
    return true;
}

bool argument_parse_fill(Arena *arena, const char *word, Argument *out, Diags *diags) {
    static const char *const names[] = {[FILL_NORMAL] = "normal",
                                        [FILL_UNIFORM] = "uniform",
                                        [FILL_IOTA] = "iota",
                                        [FILL_ZEROS] = "zeros"};
    const char *value =
        split(arena, word, "NAME=normal, uniform, iota, zeros or a number", out, diags);
    if (value == NULL) return false;
    out->kind = ARGUMENT_FILL;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(value, names[i]) == 0) {
            out->fill.kind = (FillKind)i;
            return true;
        }
    out->fill.kind = FILL_VALUE;
    Number number = read_number(value, &out->fill.value);
    if (number != NUMBER_NONE) return in_range(number, word, diags);
    Diag *diag =
        diag_plain(diags, P0600,
                   "`%s` is not a fill: expected normal, uniform, iota, zeros or a number", value);
    const char *near = closest_name(value, names, COUNT_OF(names));
    if (near != NULL)
        diag_help(diags, diag, "did you mean `%s=%s`?", out->name, near);
    else if (strstr(value, ".npy") != NULL)
        diag_help(diags, diag, "pass data from a file without `--fill`: `%s`", word);
    return false;
}
