/* The changes of tests/hang/wounds.txt: PTX of right programs without an instruction that the
 * compiler derives, each with the code that must find it.
 *
 *     FILE NAME=VALUE ..: what is wrong
 *     @ TEXT          the following places are searched for after this text
 *     - TEXT          an instruction to remove; a `+` line after it replaces only this text
 *     * TEXT          removes each such instruction, up to the end of the role
 *     + TEXT
 *                     `#` in a searched text is a number
 *     " TEXT          a part of the rendered finding; newlines and blanks count as one blank
 *     = P0730         found on at least one of the schedules: by the emulator, or by `ensures`
 *                     after the run (P085x)
 * Line numbers do not change, because the manifest's marks refer to them. */
#include "tests/hang/wounds.h"

#include "emulator/emulator.h"
#include "lib/private.h"
#include "reference/reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEDULES 12
#define LIMIT     20000000 /* warp instructions: a changed kernel may not end */

typedef struct Edit {
    char kind; /* '@', '-', '*' */
    const char *text, *with;
} Edit;

typedef struct Wound {
    const char *file, *what, *code;
    VEC(Argument) sizes;
    VEC(Edit) edits;
    VEC(const char *) says;
} Wound;

/* ---- the text -------------------------------------------------------------------------------- */

/* The next place of a text in which `#` matches digits, and its length */
static char *find(char *text, const char *pattern, size_t *length) {
    for (; *text; text++) {
        const char *at = text, *want = pattern;
        for (; *want; want++) {
            if (*want != '#' && *at++ != *want) break;
            if (*want == '#') at += strspn(at, "0123456789");
        }
        *length = (size_t)(at - text);
        if (!*want) return text;
    }
    return NULL;
}

static void blank_line(char *text, char *at) {
    while (at > text && at[-1] != '\n') at--;
    for (; *at != '\n' && *at; at++) *at = ' ';
}

/* NULL: the place does not exist. */
static char *wound_text(Arena *arena, const char *ptx, const Wound *wound) {
    char *text = arena_copy(arena, ptx, strlen(ptx));
    size_t from = 0;
    for (size_t i = 0; i < wound->edits.count; i++) {
        const Edit *edit = &wound->edits.items[i];
        size_t length;
        char *at = find(text + from, edit->text, &length);
        if (at == NULL) return NULL;
        from = (size_t)(at - text);
        if (edit->kind == '@') {
            from += length;
        } else if (edit->with != NULL) {
            text = arena_printf(arena, "%.*s%s%s", (int)from, text, edit->with, at + length);
            from += strlen(edit->with);
        } else {
            const char *end = strstr(at, "\n    ret;");
            do blank_line(text, at);
            while (edit->kind == '*' && (at = find(at, edit->text, &length)) != NULL &&
                   (end == NULL || at < end));
        }
    }
    return text;
}

/* ---- the runs -------------------------------------------------------------------------------- */

static bool has_code(const Diags *diags, const char *code) {
    for (size_t i = 0; i < diags->items.count; i++)
        if (strcmp(code_rows[diags->items.items[i]->code].name, code) == 0) return true;
    return false;
}

/* The text with one blank in place of several, and of newlines */
static const char *on_one_line(Arena *arena, const char *text) {
    Str out = str_new(arena);
    str_add(&out, "");
    for (; *text; text++) {
        bool blank = *text == ' ' || *text == '\n';
        if (!blank || (out.length > 0 && out.text[out.length - 1] != ' '))
            str_char(&out, blank ? ' ' : *text);
    }
    return out.text;
}

static bool says_all(Arena *arena, const Wound *wound, const char *text) {
    const char *line = on_one_line(arena, text);
    for (size_t i = 0; i < wound->says.count; i++)
        if (!strstr(line, wound->says.items[i])) {
            printf("%s: %s: does not say %s\n%s\n", wound->file, wound->what, wound->says.items[i],
                   text);
            return false;
        }
    return true;
}

/* Runs one schedule. True if the code is among the diagnostics, whose text is in *text. */
static bool found(Arena *arena, const PipecProgram *program, const char *ptx, const Wound *wound,
                  uint64_t seed, Str *text) {
    Diags *diags = diags_new(arena, program->source);
    LaunchOptions options = {.seed = 1};
    EmulatorOptions how = {.seed = seed, .limit = LIMIT};
    RunResult result = {0};
    Verdict verdict;
    Before before = {0};
    Argument *all;
    size_t count;
    Launch *launch = NULL;
    if (reference_arguments(arena, program->prog, program->manifest, wound->sizes.items,
                            wound->sizes.count, &all, &count, diags))
        launch =
            launch_prepare(arena, program->manifest, ptx, strlen(ptx), all, count, &options, diags);
    if (launch != NULL && reference_before(arena, program->prog, launch, &before, diags) &&
        emulator_run(arena, launch, &how, &result, diags) == RUN_DONE)
        reference_verdict(arena, program->prog, launch, &before, &(ReferenceOptions){.seed = 1},
                          &verdict, diags);
    reference_before_free(&before);
    if (launch != NULL) launch_free(launch);
    diags_render(diags, false, text);
    return has_code(diags, wound->code) && says_all(arena, wound, text->text);
}

static bool try_wound(Arena *arena, const Wound *wound, int *failed) {
    PipecProgram *program = pipec_compile_file(wound->file, NULL);
    bool fine = program != NULL && program->ptx.text != NULL, hit = false;
    /* `.relaxed` arrivals and waits need PTX 8.6 */
    char *version = fine ? strstr(program->ptx.text, ".version 8.0") : NULL;
    if (version) memcpy(version, ".version 8.6", 12);
    const char *ptx = fine ? wound_text(arena, program->ptx.text, wound) : NULL;
    Str text = str_new(arena);
    str_add(&text, "");
    for (uint64_t seed = 0; ptx != NULL && !hit && seed < SCHEDULES; seed++)
        hit = found(arena, program, ptx, wound, seed, &text);
    if (!hit)
        printf("%s: %s: %s%s\n%.1500s\n", wound->file, wound->what,
               ptx ? "not found as " : "the place is not there, ", wound->code, text.text);
    *failed += !hit;
    pipec_program_free(program);
    return hit;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* "FILE NAME=VALUE ..: what" */
static Wound head(Arena *arena, char *line) {
    Wound wound = {0};
    char *what = strstr(line, ": "), *save = NULL;
    if (what == NULL) return wound;
    *what = '\0';
    wound.what = what + 2;
    wound.file = strtok_r(line, " ", &save);
    for (char *word; (word = strtok_r(NULL, " ", &save)) != NULL;) {
        Argument size;
        if (argument_parse(arena, word, &size, diags_new(arena, NULL)))
            vec_push(arena, &wound.sizes, size);
    }
    return wound;
}

static int run_file(Arena *arena, char *text, int *failed) {
    int passed = 0;
    Wound wound = {0};
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        const char *rest = line[0] && line[1] == ' ' ? line + 2 : "";
        Edit edit = {line[0], rest, NULL};
        if (line[0] == '#') continue;
        if (line[0] == '"') {
            vec_push(arena, &wound.says, rest);
        } else if (strchr("@-*", line[0])) {
            vec_push(arena, &wound.edits, edit);
        } else if (line[0] == '+' && wound.edits.count > 0) {
            wound.edits.items[wound.edits.count - 1].with = rest;
        } else if (line[0] == '=') {
            wound.code = rest;
            if (wound.file != NULL)
                passed += try_wound(arena, &wound, failed);
            else
                printf("tests/hang/wounds.txt: `= %s` without its head\n", rest), ++*failed;
        } else {
            wound = head(arena, line);
        }
    }
    return passed;
}

int wounds_run(int *failed) {
    Arena *arena = arena_new();
    FILE *file = fopen("tests/hang/wounds.txt", "rb");
    size_t room = 1 << 18;
    char *text = arena_alloc(arena, room);
    if (file == NULL) return perror("tests/hang/wounds.txt"), ++*failed, 0;
    text[fread(text, 1, room - 1, file)] = '\0';
    fclose(file);
    int passed = run_file(arena, text, failed);
    arena_free(arena);
    return passed;
}
