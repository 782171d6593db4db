/* Suite `docs`: the code blocks of the documentation are programs.
 *
 *     ```pipe               is accepted; code is generated for each of its kernels, and those with
 *                           an `example` run with it on the emulator (in docs/errors: only `check`)
 *     ```pipe,wrong P0302   is refused with this code; in docs/errors/PNNNN.md the code is optional
 *     ```pipe,file NAME     is a file that the programs after it can include
 *
 * A ```text block directly after a wrong one is its message. A ```diff block changes the ```pipe
 * block before it, and a ```console block runs commands on the program or its change, which print
 * the lines that it shows (tests/driver/console.c). After `</details>` that program is again the
 * one from before `<details>`, so that the page goes on after a solution. Other blocks are ignored.
 *
 * examples/README.md names each example.
 * Each file above docs that a page links to exists, with the case that the link names.
 * docs/bugs.md: its counts are those of its rows; what is refused has a test that is named after
 * it (or is a warning of the assembler); a row names the codes that its programs in PTX are
 * reported with, and one of them is clean; and each test that is named after a bug elsewhere has
 * a row.
 * docs/coming-from.md: its tables have exactly one row for each operation in
 * tests/coming-from.txt; each row has a form and links to programs or tests. */
#include "tests/driver/suite.h"

#include <string.h>

typedef struct Doc {
    Words lines;
    VEC(PipecFile) files; /* that programs can include */
    const char *program;  /* of the last ```pipe block; NULL before the first */
    const char *change;   /* the program after a ```diff block; NULL: its commands are done */
    const char *outside;  /* the program before the last <details> */
} Doc;

static PipecOptions options_of(const Doc *doc, const char *name) {
    return (PipecOptions){.size = sizeof(PipecOptions),
                          .name = name,
                          .files = doc->files.items,
                          .file_count = doc->files.count};
}

static void list_docs(Arena *arena, Items *items) {
    vec_push(arena, items, "README.md");
    vec_push(arena, items, "examples/README.md");
    files_in(arena, "docs", ".md", true, items);
}

static bool has_code(const PipecProgram *program, const char *code) {
    const PipecDiagnostics *diagnostics = pipec_program_diagnostics(program);
    for (size_t i = 0; i < pipec_diagnostics_count(diagnostics); i++)
        if (strcmp(pipec_diagnostics_get(diagnostics, i)->code, code) == 0) return true;
    return false;
}

static bool has_warning(const PipecProgram *program) {
    const PipecDiagnostics *diagnostics = pipec_program_diagnostics(program);
    for (size_t i = 0; i < pipec_diagnostics_count(diagnostics); i++)
        if (pipec_diagnostics_get(diagnostics, i)->severity == PIPEC_WARNING) return true;
    return false;
}

/* Compares the message shown after a wrong program with the real one, using the file name of the
 * shown one */
static void compare_message(Test *test, const Doc *doc, const char *name, const char *text,
                            size_t length, const char *shown) {
    const char *arrow = strstr(shown, "--> ");
    if (!expect(test, arrow != NULL, "%s: the message behind it has no place", name)) return;
    arrow += 4;
    const char *file = arena_copy(test->arena, arrow, strcspn(arrow, ":"));
    PipecOptions options = options_of(doc, file);
    options.check_only = true;
    PipecProgram *program = pipec_compile(text, length, &options);
    if (!program) return;
    const char *printed = pipec_diagnostics_text(pipec_program_diagnostics(program));
    Str difference = str_new(test->arena);
    bool same = strcmp(printed, shown) == 0;
    if (!same) text_difference(test->arena, printed, shown, &difference);
    expect(test, same, "%s: the message behind it is out of date: %s", name,
           same ? "" : difference.text);
    pipec_program_free(program);
}

/* Runs a kernel with the values of its `example` on the emulator: the result satisfies `ensures` */
static void run_example(Test *test, const char *name, PipecProgram *program) {
    PipecRun *run = pipec_run_new(program, NULL);
    if (!expect(test, run != NULL, "no memory")) return;
    if (pipec_run_status(run) == PIPEC_FINE)
        pipec_run_execute(run, &(PipecExecuteOptions){.size = sizeof(PipecExecuteOptions),
                                                      .where = PIPEC_ON_EMULATOR});
    bool right = pipec_run_verify(run) != PIPEC_WRONG && pipec_run_status(run) == PIPEC_FINE;
    expect(test, right, "%s: does not run: %s", name,
           pipec_diagnostics_text(pipec_run_diagnostics(run)));
    pipec_run_free(run);
}

/* Checks the block, then generates code for each kernel if nothing is refused. `code`: the
 * expected code, NULL: none. */
static void try_block(Test *test, const Doc *doc, const char *name, const char *text, size_t length,
                      const char *code) {
    bool build = code || strncmp(test->item, "docs/errors/", 12) != 0;
    PipecOptions options = options_of(doc, name);
    options.check_only = true;
    PipecProgram *all = pipec_compile(text, length, &options);
    if (!expect(test, all != NULL, "no memory")) return;
    bool found = code && has_code(all, code),
         fine = pipec_program_status(all) == PIPEC_FINE && (code || !has_warning(all));
    Str errors = str_new(test->arena);
    str_add(&errors, pipec_diagnostics_text(pipec_program_diagnostics(all)));
    const char *kernel;
    for (size_t i = 0; build && fine && !found && (kernel = pipec_program_kernel(all, i)); i++) {
        PipecOptions one = options_of(doc, name);
        one.kernel = kernel;
        PipecProgram *program = pipec_compile(text, length, &one);
        if (!program) continue;
        found = code && has_code(program, code);
        fine = pipec_program_status(program) == PIPEC_FINE;
        if (!fine) str_add(&errors, pipec_diagnostics_text(pipec_program_diagnostics(program)));
        if (fine && !code && strstr(text, " example ")) run_example(test, name, program);
        pipec_program_free(program);
    }
    pipec_program_free(all);
    const char *shown = errors.text ? errors.text : "";
    if (code)
        expect(test, found, "%s: the block is not refused with %s\n%s", name, code, shown);
    else
        expect(test, fine, "%s: the block is refused, or has a warning\n%s", name, shown);
}

/* The lines of the block that begins after line `*i`, which becomes the closing fence */
static const char *block_at(Test *test, const Words *lines, size_t *i) {
    Str block = str_new(test->arena);
    str_add(&block, "");
    for (++*i; *i < lines->count && strncmp(lines->items[*i], "```", 3) != 0; ++*i)
        str_printf(&block, "%s\n", lines->items[*i]);
    return block.text ? block.text : "";
}

/* The expected code of a wrong block: given in its info string, or the page's own code */
static const char *code_of(Test *test, const char *info) {
    const char *item = test->item, *code = next_code(test->arena, &info);
    return code ? code : next_code(test->arena, &item);
}

/* "[name](../path)": the path exists, and the name after "wound: " and "hang: " is that of a
 * case in it */
static void follow_links(Test *test, const char *text) {
    for (const char *at = text; (at = strstr(at, "](../")) != NULL; at++) {
        const char *path = arena_copy(test->arena, at + 5, strcspn(at + 5, "#)")), *name = at;
        while (name > text && name[-1] != '[') name--;
        name = arena_copy(test->arena, name, (size_t)(at - name));
        const char *file = file_read(test->arena, path, NULL);
        if (!expect(test, file != NULL, "%s is not there", path)) continue;
        const char *title = strncmp(name, "wound: ", 7) == 0  ? name + 7
                            : strncmp(name, "hang: ", 6) == 0 ? name + 6
                                                              : "";
        expect(test, strstr(file, title) != NULL, "%s has no case \"%s\"", path, title);
    }
}

/* ---- docs/bugs.md ---------------------------------------------------------------------------- */

enum {
    BUGS_REFUSED,
    BUGS_UNWRITABLE,
    BUGS_FOUND,
    BUGS_LATER,
    BUGS_UNKNOWN,
    BUGS_ALL,
    BUGS_KINDS,
    BUGS_TABLES = 3
};
static const char *const bug_kinds[BUGS_KINDS] = {"refused",
                                                  "cannot be written",
                                                  "- of these found in PTX by the emulator",
                                                  "comes with sm_100a",
                                                  "cause unknown",
                                                  "all"};

/* ---- programs in PTX that a row shows */

/* The codes that the head of a program in tests/emulator expects; *clean: it runs right */
static const char *expected_of(Test *test, const char *text, bool *clean) {
    Str codes = str_new(test->arena);
    Words lines = lines_of(test->arena, text);
    *clean = true;
    str_add(&codes, "");
    for (size_t i = 0; i < lines.count && strncmp(lines.items[i], ".version", 8) != 0; i++) {
        const char *line = lines.items[i], *code;
        if (strncmp(line, "//> expect ", 11) != 0 && strncmp(line, "//> warns ", 10) != 0) continue;
        *clean = *clean && strcmp(line, "//> expect done") == 0;
        while ((code = next_code(test->arena, &line)) != NULL) str_printf(&codes, "%s ", code);
    }
    return codes.text;
}

/* "wound: TITLE": the code behind it in tests/hang/wounds.txt; "" if there is no such title */
static const char *code_of_wound(Test *test, const char *title) {
    const char *text = file_read(test->arena, "tests/hang/wounds.txt", NULL);
    const char *at = text ? strstr(text, arena_printf(test->arena, ": %s\n", title)) : NULL;
    at = at ? strstr(at, "\n= P") : NULL;
    const char *code = at ? next_code(test->arena, &at) : NULL;
    return code ? code : "";
}

/* The codes with which the link [name](path) of a row is reported; *clean: the program runs right,
 * or is followed by a corrected one that does */
static const char *codes_of_link(Test *test, const char *name, const char *path, bool *clean) {
    *clean = false;
    if (strncmp(name, "wound: ", 7) == 0) return code_of_wound(test, name + 7);
    if (strncmp(name, "hang: ", 6) == 0) return "P0730";
    const char *text =
        strncmp(path, "tests/emulator/", 15) == 0 ? file_read(test->arena, path, NULL) : NULL;
    if (!text) return "";
    const char *codes = expected_of(test, text, clean);
    bool modelled = strncmp(name, "mojo-", 5) == 0 || strncmp(name, "peers-", 6) == 0;
    const char *twin = arena_printf(test->arena, "tests/emulator/%s-ok.ptx", name);
    const char *corrected = modelled ? file_read(test->arena, twin, NULL) : NULL;
    if (corrected) expected_of(test, corrected, clean);
    expect(test, !modelled || *clean, "%s is not there, or not clean", twin);
    return codes;
}

/* True if the emulator finds the error in a program that the row shows */
static bool is_found(Test *test, const char *line) {
    bool found = false, clean = false;
    for (const char *at = line; (at = strstr(at, "](../tests/")) != NULL; at++) {
        const char *path = arena_copy(test->arena, at + 5, strcspn(at + 5, "#)")), *name = at;
        while (name > line && name[-1] != '[') name--;
        bool right;
        const char *codes =
            codes_of_link(test, arena_copy(test->arena, name, (size_t)(at - name)), path, &right);
        found = found || (codes[0] && strncmp(path, "tests/emulator/", 15) == 0);
        clean = clean || right;
        for (const char *code; (code = next_code(test->arena, &codes)) != NULL;)
            expect(test, strstr(line, code) != NULL, "%s is reported with %s: %s", path, code,
                   line);
    }
    expect(test, clean || !found, "no corrected program: %s", line);
    return found;
}

static void count_row(Test *test, const char *line, int *counts) {
    int found = -1;
    for (int kind = 0; kind < BUGS_ALL; kind++)
        if (kind != BUGS_FOUND &&
            strstr(line, arena_printf(test->arena, " | %s | ", bug_kinds[kind])) != NULL)
            found = kind;
    if (!expect(test, found >= 0, "what becomes of it? %s", line)) return;
    bool named = strstr(line, "[mojo-") || strstr(line, "[peers-") ||
                 strstr(line, "](../tests/unit/assembler.c)");
    expect(test, found != BUGS_REFUSED || named, "no test is named after it: %s", line);
    counts[found]++;
    counts[BUGS_ALL]++;
    bool in_ptx = is_found(test, line);
    counts[BUGS_FOUND] += found == BUGS_UNWRITABLE && in_ptx;
}

/* Rows begin with their number, in three tables that each follow a heading; the counts precede
 * them */
static void compare_counts(Test *test, const char *text, const Words *lines) {
    int counts[BUGS_TABLES][BUGS_KINDS] = {{0}}, table = -1;
    for (size_t i = 0; i < lines->count; i++) {
        const char *line = lines->items[i];
        table += strncmp(line, "## ", 3) == 0;
        if (table >= 0 && table < BUGS_TABLES && line[0] == '|' &&
            strchr("123456789", line[1 + (line[1] == ' ')]) != NULL)
            count_row(test, line, counts[table]);
    }
    for (int kind = 0; kind < BUGS_KINDS; kind++) {
        int *c[BUGS_TABLES] = {&counts[0][kind], &counts[1][kind], &counts[2][kind]};
        const char *wanted =
            arena_printf(test->arena, "| %s | %d | %d | %d | %d |\n", bug_kinds[kind], *c[0], *c[1],
                         *c[2], *c[0] + *c[1] + *c[2]);
        expect(test, strstr(text, wanted) != NULL, "the rows give %s", wanted);
    }
}

static void check_bugs(Test *test, const char *text, const Words *lines) {
    Items files = {0};
    compare_counts(test, text, lines);
    files_in(test->arena, "tests/check", ".pipe", true, &files);
    files_in(test->arena, "tests/emulator", ".ptx", false, &files);
    for (size_t i = 0; i < files.count; i++) {
        const char *name = strrchr(files.items[i], '/') + 1;
        if ((strncmp(name, "mojo-", 5) == 0 || strncmp(name, "peers-", 6) == 0) &&
            !ends_with(name, "-ok.pipe") && !ends_with(name, "-ok.ptx"))
            expect(test, strstr(text, name) != NULL, "%s does not stand there", name);
    }
}

/* ---- docs/coming-from.md --------------------------------------------------------------------- */

typedef struct Operation {
    const char *type, *name;
    int rows;
} Operation;

typedef VEC(Operation) Operations;

static Operations list_operations(Test *test) {
    Operations list = {0};
    const char *text = file_read(test->arena, "tests/coming-from.txt", NULL);
    if (!expect(test, text != NULL, "tests/coming-from.txt is missing")) return list;
    Words lines = lines_of(test->arena, text);
    for (size_t i = 0; i < lines.count; i++) {
        const char *line = lines.items[i], *colon = strstr(line, ": ");
        if (!line[0] || line[0] == '#' ||
            !expect(test, colon != NULL, "not `TYPE: NAMES`: %s", line))
            continue;
        const char *type = arena_copy(test->arena, line, (size_t)(colon - line));
        Words words = words_of(test->arena, colon + 1);
        for (size_t k = 0; k < words.count; k++)
            vec_push(test->arena, &list, ((Operation){.type = type, .name = words.items[k]}));
    }
    expect(test, list.count > 0, "tests/coming-from.txt lists nothing");
    return list;
}

/* The next name in backticks of the cell that ends at `end`, NULL after the last */
static const char *next_name(Arena *arena, const char **at, const char *end) {
    const char *open = strchr(*at, '`'), *close = open && open < end ? strchr(open + 1, '`') : NULL;
    if (!close || close > end) return NULL;
    *at = close + 1;
    return arena_copy(arena, open + 1, (size_t)(close - open - 1));
}

/* "| `wait`, `test_wait` | form | links |" of the table of `type` */
static void find_row(Test *test, const char *type, const char *line, Operations *operations) {
    const char *at = line, *form = strstr(line, "` | "),
               *links = form ? strstr(form + 4, " | ") : NULL;
    if (!expect(test, form && links && links > form + 4 && strstr(links, "](../") != NULL,
                "a row has a form, and links to what shows it: %s", line))
        return;
    for (const char *name; (name = next_name(test->arena, &at, form + 1)) != NULL;) {
        bool listed = false;
        for (size_t i = 0; i < operations->count; i++) {
            Operation *operation = &operations->items[i];
            if (strcmp(operation->type, type) != 0 || strcmp(operation->name, name) != 0) continue;
            operation->rows++;
            listed = true;
        }
        expect(test, listed, "tests/coming-from.txt does not list `%s` of %s", name, type);
    }
}

/* "### `TYPE`" or "### Beside them" -> the text after the mark, without backticks */
static const char *heading_of(Arena *arena, const char *line) {
    const char *name = line + 4, *at = line;
    return *name == '`' ? next_name(arena, &at, line + strlen(line))
                        : arena_copy(arena, name, strlen(name));
}

/* The table of each type has a heading */
static void check_operations(Test *test, const Words *lines) {
    Operations operations = list_operations(test);
    const char *type = "";
    for (size_t i = 0; i < lines->count; i++) {
        const char *line = lines->items[i];
        if (strncmp(line, "### ", 4) == 0) type = heading_of(test->arena, line);
        if (type && strncmp(line, "| `", 3) == 0) find_row(test, type, line, &operations);
    }
    for (size_t i = 0; i < operations.count; i++) {
        const Operation *operation = &operations.items[i];
        expect(test, operation->rows == 1, "`%s` of %s has %d rows, not one", operation->name,
               operation->type, operation->rows);
    }
}

/* examples/README.md names each example */
static void check_examples(Test *test, const char *text) {
    Items files = {0};
    files_in(test->arena, "examples", ".pipe", false, &files);
    for (size_t i = 0; i < files.count; i++) {
        const char *name = strrchr(files.items[i], '/') + 1;
        expect(test, strstr(text, arena_printf(test->arena, "](%s)", name)) != NULL,
               "%s is not named", name);
    }
}

/* A program that is accepted, or one that is refused with a code, whose message can follow it.
 * `*i`: the closing fence of the last block that was read */
static void run_program(Test *test, Doc *doc, const char *name, const char *info, const char *block,
                        size_t *i) {
    const Words *lines = &doc->lines;
    bool wrong = strncmp(info, "```pipe,wrong", 13) == 0;
    const char *code = wrong ? code_of(test, info) : NULL;
    if (!expect(test, wrong ? code != NULL : strcmp(info, "```pipe") == 0, "%s: what is %s?", name,
                info))
        return;
    try_block(test, doc, name, block, strlen(block), code);
    if (!wrong) doc->program = block;
    bool followed = wrong && *i + 2 < lines->count && !lines->items[*i + 1][0] &&
                    strcmp(lines->items[*i + 2], "```text") == 0;
    if (!followed) return;
    *i += 2;
    compare_message(test, doc, name, block, strlen(block), block_at(test, lines, i));
}

static void run_block(Test *test, Doc *doc, size_t *i) {
    const char *info = doc->lines.items[*i];
    const char *name = arena_printf(test->arena, "%s:%zu", test->item, *i + 1);
    const char *block = block_at(test, &doc->lines, i);
    bool changes = strcmp(info, "```diff") == 0, commands = strcmp(info, "```console") == 0;
    if (strncmp(info, "```pipe,file ", 13) == 0)
        vec_push(test->arena, &doc->files, (PipecFile){info + 13, block, strlen(block)});
    else if (strcmp(info, "```pipe") == 0 || strncmp(info, "```pipe,", 8) == 0)
        run_program(test, doc, name, info, block, i);
    if (!changes && !commands) return;
    if (!expect(test, doc->program != NULL, "%s: no program precedes it", name)) return;
    if (commands) console_run(test, name, doc->change ? doc->change : doc->program, block);
    doc->change = changes ? console_change(test, name, doc->program, block) : NULL;
}

static void run_docs(Test *test) {
    const char *text = file_read(test->arena, test->item, NULL);
    if (!expect(test, text != NULL, "is missing")) return;
    Doc doc = {.lines = lines_of(test->arena, text)};
    if (strncmp(test->item, "docs/errors/", 12) != 0) follow_links(test, text);
    if (strcmp(test->item, "examples/README.md") == 0) check_examples(test, text);
    if (strcmp(test->item, "docs/bugs.md") == 0) check_bugs(test, text, &doc.lines);
    if (strcmp(test->item, "docs/coming-from.md") == 0) check_operations(test, &doc.lines);
    for (size_t i = 0; i < doc.lines.count; i++) {
        const char *line = doc.lines.items[i];
        if (strncmp(line, "<details>", 9) == 0) doc.outside = doc.program;
        if (strcmp(line, "</details>") == 0) doc.program = doc.outside;
        if (strncmp(line, "```", 3) == 0) run_block(test, &doc, &i);
    }
    expect(test, !doc.change, "no command follows the last change");
}

const Suite suite_docs = {"docs", false, list_docs, run_docs, 3};
