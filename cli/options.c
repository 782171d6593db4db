/* cli: parses the command line by a table of options. Sets their values and collects the other
 * words; or reports a usage error that names the word. */
#include "cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool add_text(Texts *texts, const char *text, int room) {
    if (texts->items == NULL) texts->items = calloc((size_t)room + 1, sizeof *texts->items);
    if (texts->items == NULL) return false;
    texts->items[texts->count++] = text;
    return true;
}

void texts_free(Texts *texts) { free(texts->items); }

static bool whole_number(const char *text, uint64_t most, uint64_t *out) {
    char *end;
    if (text[0] < '0' || text[0] > '9') return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *out = value;
    return errno == 0 && *end == 0 && value <= most;
}

static bool format(const Command *command, const char *value, bool any, Format *out) {
    static const char *const names[] = {
        [FORMAT_TEXT] = "text", [FORMAT_JSON] = "json", [FORMAT_SARIF] = "sarif"};
    for (int i = FORMAT_TEXT; i <= (any ? FORMAT_SARIF : FORMAT_JSON); i++)
        if (strcmp(value, names[i]) == 0) {
            *out = (Format)i;
            return true;
        }
    if (any)
        usage_error(command, "`--format` takes text, json or sarif, not `%s`", value);
    else
        usage_error(command, "`--format` takes text or json, not `%s`", value);
    return false;
}

static bool set(const Command *command, const Option *option, const char *value, int room) {
    uint64_t whole;
    char *end;
    switch (option->kind) {
    case OPTION_FLAG: *(bool *)option->into = true; return true;
    case OPTION_SWITCH:
        *(bool *)option->into = strcmp(value, "on") == 0;
        if (*(bool *)option->into || strcmp(value, "off") == 0) return true;
        usage_error(command, "`%s` takes on or off, not `%s`", option->name, value);
        return false;
    case OPTION_TEXT: *(const char **)option->into = value; return true;
    case OPTION_LIST: return add_text(option->into, value, room) || out_of_memory() == PIPEC_FINE;
    case OPTION_SEED:
        if (whole_number(value, UINT64_MAX, option->into)) return true;
        usage_error(command, "`%s` takes an integer, not `%s`", option->name, value);
        return false;
    case OPTION_NUMBER:
        if (whole_number(value, 1000000, &whole)) {
            *(int *)option->into = (int)whole;
            return true;
        }
        usage_error(command, "`%s` takes an integer, not `%s`", option->name, value);
        return false;
    case OPTION_SECONDS:
        *(double *)option->into = strtod(value, &end);
        if (end != value && *end == 0 && *(double *)option->into >= 0 &&
            isfinite(*(double *)option->into))
            return true;
        usage_error(command, "`%s` takes a number of seconds, not `%s`", option->name, value);
        return false;
    case OPTION_FORMAT: return format(command, value, false, option->into);
    case OPTION_FORMATS: return format(command, value, true, option->into);
    }
    return false;
}

/* The option of a word `--name=value`, or of the name alone; then `value` is NULL */
static const Option *find(const char *word, const Option *options, size_t count,
                          const char **value) {
    const char *equals = strchr(word, '=');
    size_t length = equals != NULL && word[1] == '-' ? (size_t)(equals - word) : strlen(word);
    *value = word[length] == '=' ? word + length + 1 : NULL;
    for (size_t i = 0; i < count; i++)
        if (strlen(options[i].name) == length && memcmp(options[i].name, word, length) == 0)
            return &options[i];
    return NULL;
}

/* Options of other compilers; `*` at the end: any text */
static const struct {
    const char *option, *help;
} foreign[] = {
    {"-v", "remove it: `pipec --version` prints the version, `build --report` what was derived"},
    {"--verbose", "remove it: `pipec build FILE --report` prints what was derived, and why"},
    {"-V", "`pipec --version` prints the version"},
    {"-q", "remove it: a command prints only results and diagnostics"},
    {"--quiet", "remove it: a command prints only results and diagnostics"},
    {"-O*", "remove it: code is always optimised"},
    {"-c", "remove it: `pipec build FILE -o FILE.ptx` writes PTX"},
    {"-S", "remove it: `pipec build FILE -o FILE.ptx` writes PTX"},
    {"--ptx", "remove it: `pipec build FILE -o FILE.ptx` writes PTX"},
    {"-ptx", "remove it: `pipec build FILE -o FILE.ptx` writes PTX"},
    {"-g", "remove it: the emulator names lines of the program without it"},
    {"-G", "remove it: the emulator names lines of the program without it"},
    {"-lineinfo", "remove it: the emulator names lines of the program without it"},
    {"--arch*", "write `--target sm_90a`, or in the program: `kernel k(..) for sm_90a`"},
    {"-arch*", "write `--target sm_90a`, or in the program: `kernel k(..) for sm_90a`"},
    {"-gencode*", "write `--target sm_90a`, or in the program: `kernel k(..) for sm_90a`"},
    {"--gpu-architecture*",
     "write `--target sm_90a`, or in the program: `kernel k(..) for sm_90a`"},
    {"-W*", "`-D warnings` refuses programs with warnings"},
    {"-Dwarnings", "write `-D warnings`"},
    {"-j*", "remove it: a program is compiled in milliseconds"},
    {"--use_fast_math", "remove it: functions such as `exp` are the fast ones"},
    {"-use_fast_math", "remove it: functions such as `exp` are the fast ones"},
};

static const char *foreign_help(const char *word) {
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        size_t length = strlen(foreign[i].option);
        bool begins = foreign[i].option[length - 1] == '*';
        if (begins ? strncmp(word, foreign[i].option, length - 1) == 0
                   : strcmp(word, foreign[i].option) == 0)
            return foreign[i].help;
    }
    return NULL;
}

/* `--N=5` and `-DN=5` in the place of `N=5`: what begins with the name; NULL: another option */
static const char *value_word(const char *word) {
    bool define = strncmp(word, "-D", 2) == 0;
    const char *name = define ? word + 2 : word + strspn(word, "-");
    bool named = define || (*name >= 'A' && *name <= 'Z');
    return named && strchr(name, '=') > name ? name : NULL;
}

static Parsed unknown(const Command *command, const char *word, const Option *options,
                      size_t count) {
    const char *advice = foreign_help(word), *value = value_word(word);
    if (value != NULL || advice != NULL) {
        say_error("unknown option `%s`", word);
        if (value != NULL)
            say_help("write a static, an extent or a scalar without `-`: `%s`", value);
        else
            say_help("%s", advice);
        return PARSED_WRONG;
    }
    const char *names[64];
    size_t known = 0, length = strcspn(word, "=");
    for (; known < count && known < sizeof names / sizeof names[0]; known++)
        names[known] = options[known].name;
    char *name = strndup(word, length);
    /* all options of one letter are similar */
    const char *near = name != NULL && length > 2 ? pipec_near(name, names, known) : NULL;
    free(name);
    if (near == NULL) {
        usage_error(command, "unknown option `%s`", word);
    } else {
        say_error("unknown option `%s`", word);
        say_help("did you mean `%s`? `pipec %s --help` lists them all", near, command->name);
    }
    return PARSED_WRONG;
}

static Parsed help(const Command *command) {
    printf("Usage: pipec %s\n\n%s", command->usage, command->help);
    return PARSED_HELP;
}

Parsed options_parse(const Command *command, int argc, char **argv, const Option *options,
                     size_t count, Texts *words) {
    bool ended = false;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i], *value;
        if (!ended && strcmp(word, "--") == 0) {
            ended = true;
            continue;
        }
        if (ended || word[0] != '-' || word[1] == 0) {
            if (!add_text(words, word, argc)) return out_of_memory(), PARSED_WRONG;
            continue;
        }
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) return help(command);
        const Option *option = find(word, options, count, &value);
        if (option == NULL) return unknown(command, word, options, count);
        if (option->kind == OPTION_FLAG && value != NULL)
            return usage_error(command, "`%s` takes no value", option->name), PARSED_WRONG;
        if (option->kind != OPTION_FLAG && value == NULL) {
            if (i + 1 == argc)
                return usage_error(command, "`%s` needs a value", option->name), PARSED_WRONG;
            value = argv[++i];
        }
        if (!set(command, option, value, argc)) return PARSED_WRONG;
    }
    return PARSED_FINE;
}

const char *shipped_name(const char *file) {
    static const char prefix[] = "kernels:";
    return strncmp(file, prefix, strlen(prefix)) == 0 ? file + strlen(prefix) : NULL;
}

const char *variant_cut(const char *file) {
    const char *shipped = shipped_name(file);
    char *end = shipped != NULL ? strchr(shipped, ':') : strstr(file, ".pipe:");
    if (end == NULL) return NULL;
    if (shipped == NULL) end += strlen(".pipe");
    *end = 0; /* a string of argv may be changed (C11 5.1.2.2.1) */
    return end + 1;
}

bool words_split(const Command *command, const Texts *words, Words *out) {
    *out = (Words){0};
    if (words->count == 0) return usage_error(command, "no file is given"), false;
    out->file = words->items[0];
    out->variant = variant_cut(out->file);
    for (size_t i = 1; i < words->count; i++) {
        const char *word = words->items[i];
        if (strchr(word, '=') != NULL) {
            if (!add_text(&out->values, word, (int)words->count)) return out_of_memory(), false;
        } else if (out->kernel == NULL) {
            out->kernel = word;
        } else {
            return usage_error(command,
                               "`%s` is not NAME=VALUE, and the kernel is already given: `%s`",
                               word, out->kernel),
                   false;
        }
    }
    return true;
}

bool folder_fits(const Command *command, const char *folder, const char *file) {
    if (folder == NULL || strcmp(file, "-") == 0) return true;
    usage_error(command, "`--folder` is for standard input; `%s` has its own", file);
    return false;
}
