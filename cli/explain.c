/* pipec explain: prints the pages of codes. */
#include "cli/cli.h"

static int list(void) {
    const char *code, *title;
    for (size_t i = 0; (code = pipec_code(i, &title)) != NULL; i++) printf("%s  %s\n", code, title);
    return PIPEC_FINE;
}

static int explain(const char *code, bool another) {
    const char *page = pipec_explain(code), *near = pipec_code_near(code);
    if (page != NULL) {
        printf("%s%s", another ? "\n" : "", page);
        return PIPEC_FINE;
    }
    say_error("unknown code `%s`: a code is P and four digits, such as P0102", code);
    if (near != NULL)
        say_help("did you mean `%s`?", near);
    else
        say_help("`pipec explain` lists them all");
    return PIPEC_UNUSABLE;
}

int command_explain(const Command *command, int argc, char **argv) {
    Texts codes = {0};
    int status = PIPEC_FINE;
    switch (options_parse(command, argc, argv, NULL, 0, &codes)) {
    case PARSED_FINE: break;
    case PARSED_HELP: texts_free(&codes); return PIPEC_FINE;
    case PARSED_WRONG: texts_free(&codes); return PIPEC_UNUSABLE;
    }
    if (codes.count == 0) status = list();
    for (size_t i = 0; i < codes.count; i++)
        status = (int)pipec_worse((PipecStatus)status, (PipecStatus)explain(codes.items[i], i > 0));
    texts_free(&codes);
    return status;
}
