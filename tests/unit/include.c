/* Included files: folders, links, other kinds of files and limits on a disk; what a program keeps
 * of them; and the programs of the repository with functions and constants moved to included files,
 * whose code must not change. */
#define PIPEC_OWN_MEMORY
#include "lib/private.h"
#include "lib/tune.h"
#include "parser/parser.h"

#include "tests/unit/expect.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/pipec-include-XXXXXX";

static const char twice[] = "fn twice(x: f32) -> f32 { return x * 2; }\n";

#define KERNEL                                                                                     \
    "kernel k(X: f32[N], out Y: f32[N]) for sm_90a {\n"                                            \
    "    static T = 128 in {128, 256};\n"                                                          \
    "    ensures Y[i] == twice(X[i]);\n"                                                           \
    "    example N = 1000;\n"                                                                      \
    "    grid (b: ceil(N, T));\n"                                                                  \
    "    role work: 4 warps { for b in grid { Y[b*T + i] = twice(X[b*T + i]) for i in 0 .. T; } "  \
    "}\n}\n"

static const char *path_of(const char *name) {
    static char paths[4][200];
    static int next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text, size_t length) {
    FILE *file = fopen(path_of(name), "wb");
    EXPECT(file != NULL && fwrite(text, 1, length, file) == length);
    if (file != NULL) fclose(file);
}

static void put_text(const char *name, const char *text) { put(name, text, strlen(text)); }

static PipecProgram *compile(const char *name) {
    PipecProgram *program = pipec_compile_file(path_of(name), NULL);
    EXPECT(program != NULL);
    return program;
}

/* The first diagnostic of the file; "": there is none */
static const char *code_of(const char *name) {
    static char code[8];
    PipecProgram *program = compile(name);
    const PipecDiagnostic *first = pipec_diagnostics_get(pipec_program_diagnostics(program), 0);
    (void)snprintf(code, sizeof code, "%s", first != NULL ? first->code : "");
    pipec_program_free(program);
    return code;
}

static bool is(const char *name, const char *code) {
    const char *got = code_of(name);
    if (strcmp(got, code) != 0) printf("%s: %s, not %s\n", name, got, code);
    return strcmp(got, code) == 0;
}

static bool includes(const char *path, const char *code) {
    char text[2000];
    (void)snprintf(text, sizeof text, "include \"%s\";\n%s", path, KERNEL);
    put_text("k.pipe", text);
    return is("k.pipe", code);
}

/* ---- what is on the disk --------------------------------------------------------------------- */

static void links(void) {
    EXPECT(mkdir(path_of("lib"), 0755) == 0 && mkdir(path_of("in"), 0755) == 0);
    put_text("twice.pipe", twice);
    put_text("lib/twice.pipe", twice);
    EXPECT(symlink("../twice.pipe", path_of("lib/up.pipe")) == 0);
    EXPECT(symlink("lib", path_of("library")) == 0);
    EXPECT(symlink("/etc", path_of("etc")) == 0);
    EXPECT(symlink("../twice.pipe", path_of("in/out.pipe")) == 0);
    EXPECT(symlink("loop.pipe", path_of("loop.pipe")) == 0);
    EXPECT(includes("lib/up.pipe", ""));
    EXPECT(includes("library/twice.pipe", ""));
    EXPECT(includes("library/../twice.pipe", "")); /* `..` is that of the path */
    EXPECT(includes("etc/passwd", "P0040"));
    EXPECT(includes("loop.pipe", "P0041"));
    /* the same link, seen from a folder that it leads out of */
    put_text("in/k.pipe", "include \"out.pipe\";\n" KERNEL);
    EXPECT(is("in/k.pipe", "P0040"));
    /* a folder whose name begins as that of the first file */
    EXPECT(mkdir(path_of("inner"), 0755) == 0);
    put_text("inner/twice.pipe", twice);
    EXPECT(symlink("../inner/twice.pipe", path_of("in/near.pipe")) == 0);
    put_text("in/k.pipe", "include \"near.pipe\";\n" KERNEL);
    EXPECT(is("in/k.pipe", "P0040"));
    /* the first file is a link: its folder is that of the link */
    put_text("lib/real.pipe", "include \"twice.pipe\";\n" KERNEL);
    EXPECT(symlink("../lib/real.pipe", path_of("in/link.pipe")) == 0);
    EXPECT(is("lib/real.pipe", "") && is("in/link.pipe", "P0041"));
}

/* A process that exchanges a folder and a link to one outside, again and again */
static pid_t exchange(const char *a, const char *b) {
    pid_t child = fork();
    while (child == 0)
        if (renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) != 0) _exit(1);
    return child;
}

/* Whatever changes while it is looked up, no file outside of the folder is read. */
static void races(void) {
    char inside[200], other[200];
    EXPECT(mkdir(path_of("race"), 0755) == 0 && mkdir(path_of("race/a"), 0755) == 0);
    EXPECT(mkdir(path_of("beyond"), 0755) == 0 && symlink("../beyond", path_of("race/b")) == 0);
    put_text("race/a/twice.pipe", twice);
    put_text("beyond/twice.pipe", "const SECRET = 1;\n");
    put_text("race/k.pipe", "include \"a/twice.pipe\";\n" KERNEL);
    (void)snprintf(inside, sizeof inside, "%s", path_of("race/a"));
    (void)snprintf(other, sizeof other, "%s", path_of("race/b"));
    pid_t child = exchange(inside, other);
    for (int i = 0; i < 1000; i++) {
        const char *code = code_of("race/k.pipe");
        if (!EXPECT(strcmp(code, "") == 0 || strcmp(code, "P0040") == 0 ||
                    strcmp(code, "P0041") == 0))
            break;
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void once(void) {
    EXPECT(link(path_of("twice.pipe"), path_of("same.pipe")) == 0);
    EXPECT(symlink("twice.pipe", path_of("alias.pipe")) == 0);
    put_text("k.pipe", "include \"twice.pipe\"; include \"same.pipe\"; include \"alias.pipe\";\n"
                       "include \"lib/up.pipe\"; include \"twice.pipe\";\n" KERNEL);
    PipecProgram *program = compile("k.pipe");
    PipecFile file;
    EXPECT(pipec_program_status(program) == PIPEC_FINE);
    EXPECT(pipec_program_file(program, 1, &file) && strcmp(file.name, "twice.pipe") == 0);
    EXPECT(!pipec_program_file(program, 2, &file));
    pipec_program_free(program);
    put_text("k.pipe", "include \"lib/../k.pipe\";\n" KERNEL);
    EXPECT(is("k.pipe", "P0042"));
    enum { TIMES = 10000 };
    static const char again[] = "include \"twice.pipe\";\n";
    char *many = calloc(1, TIMES * sizeof again + sizeof KERNEL);
    for (int i = 0; i < TIMES; i++) memcpy(many + i * strlen(again), again, strlen(again));
    strcat(many, KERNEL);
    put_text("k.pipe", many);
    EXPECT(is("k.pipe", ""));
    free(many);
    put_text("back.pipe", "include \"k.pipe\";\n");
    EXPECT(includes("back.pipe", "P0042"));
}

/* A cycle of more files than a diagnostic has labels */
static void long_cycle(void) {
    char name[20], text[60];
    for (int i = 0; i < 9; i++) {
        (void)snprintf(name, sizeof name, "c%d.pipe", i);
        (void)snprintf(text, sizeof text, "include \"c%d.pipe\";\n", (i + 1) % 9);
        put_text(name, text);
    }
    put_text("k.pipe", "include \"c0.pipe\";\n" KERNEL);
    PipecProgram *program = compile("k.pipe");
    const PipecDiagnostic *first = pipec_diagnostics_get(pipec_program_diagnostics(program), 0);
    EXPECT(strcmp(first->code, "P0042") == 0 && first->label_count == 6 && first->note_count == 1);
    EXPECT(strstr(first->notes[0], "c8.pipe") != NULL);
    EXPECT(strcmp(pipec_diagnostics_file(pipec_program_diagnostics(program), 0, 0),
                  path_of("c8.pipe")) == 0);
    pipec_program_free(program);
}

static void kinds(void) {
    EXPECT(mkfifo(path_of("fifo"), 0644) == 0);
    EXPECT(includes("fifo", "P0041")); /* and does not wait */
    EXPECT(includes("lib", "P0041"));
    EXPECT(includes("none.pipe", "P0041"));
    put_text("secret.pipe", twice);
    EXPECT(chmod(path_of("secret.pipe"), 0) == 0);
    EXPECT(includes("secret.pipe", geteuid() == 0 ? "" : "P0041"));
    put("nul.pipe", "const A = 1;\n\0\n", 15);
    EXPECT(includes("nul.pipe", "P0007"));
    put_text("empty.pipe", "");
    EXPECT(includes("empty.pipe", "P0009"));
}

static void limits(void) {
    char name[40], text[8000];
    size_t used = 0;
    for (int i = 0; i < 65; i++) {
        (void)snprintf(name, sizeof name, "many%d.pipe", i);
        (void)snprintf(text, sizeof text, "const M%d = %d;\n", i, i);
        put_text(name, text);
    }
    for (int i = 0; i < 64; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "include \"many%d.pipe\";\n", i);
    (void)snprintf(text + used, sizeof text - used, "%s%s", twice, KERNEL);
    put_text("k.pipe", text);
    EXPECT(is("k.pipe", ""));
    (void)snprintf(text + used, sizeof text - used, "include \"many64.pipe\";\n%s%s", twice,
                   KERNEL);
    put_text("k.pipe", text);
    EXPECT(is("k.pipe", "P0045"));
    /* with its newline, and the first file, the limit is exceeded by one */
    put_text("k.pipe", "include \"large.pipe\";\n" KERNEL);
    size_t first = strlen("include \"large.pipe\";\n" KERNEL) + 1;
    char *large = calloc(1, SOURCE_MAX_BYTES + 2);
    memset(large, '\n', SOURCE_MAX_BYTES + 1);
    memcpy(large, twice, strlen(twice));
    put("large.pipe", large, SOURCE_MAX_BYTES - first);
    EXPECT(is("k.pipe", ""));
    put("large.pipe", large, SOURCE_MAX_BYTES - first + 1);
    EXPECT(is("k.pipe", "P0045"));
    put("large.pipe", large, SOURCE_MAX_BYTES + 1);
    EXPECT(is("k.pipe", "P0045"));
    free(large);
}

/* ---- what a program keeps -------------------------------------------------------------------- */

static const char *hash_of(Arena *arena, const PipecProgram *program) {
    return choice_source(arena, program);
}

/* A program compiles what it has read, whatever the file is now */
static void changes(void) {
    Arena *arena = arena_new();
    EXPECT(includes("twice.pipe", ""));
    PipecProgram *before = compile("k.pipe");
    const char *first = hash_of(arena, before), *value = "T=256";
    put_text("twice.pipe", "fn twice(x: f32) -> f32 { return x + x; }\n");
    PipecProgram *after = compile("k.pipe"), *again = program_again(before, "k", &value, 1);
    EXPECT(strcmp(first, hash_of(arena, after)) != 0);
    EXPECT(strcmp(first, hash_of(arena, again)) == 0);
    EXPECT(pipec_program_status(again) == PIPEC_FINE);
    const char *old = pipec_program_ptx(before, NULL), *new = pipec_program_ptx(after, NULL);
    EXPECT(strstr(old, "mul") != NULL && strcmp(old, new) != 0);
    EXPECT(strstr(pipec_program_ptx(again, NULL), "mul") != NULL);
    unlink(path_of("twice.pipe"));
    PipecProgram *gone = program_again(before, "k", NULL, 0);
    EXPECT(strcmp(pipec_program_ptx(gone, NULL), old) == 0);
    put_text("twice.pipe", twice);
    pipec_program_free(gone);
    pipec_program_free(again);
    pipec_program_free(after);
    pipec_program_free(before);
    arena_free(arena);
}

/* A text has the folder, or the files, that it is given; else none */
static void texts(void) {
    static const char text[] = "include \"lib/twice.pipe\";\n" KERNEL;
    PipecOptions options = {.size = sizeof options, .name = "k"};
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    EXPECT(pipec_program_status(program) == PIPEC_UNUSABLE);
    EXPECT(strstr(pipec_diagnostics_text(pipec_program_diagnostics(program)), "P0044") != NULL);
    pipec_program_free(program);
    options.folder = folder;
    program = pipec_compile(text, strlen(text), &options);
    EXPECT(pipec_program_status(program) == PIPEC_FINE);
    PipecFile files[3];
    EXPECT(pipec_program_file(program, 0, &files[0]) && strcmp(files[0].name, "k") == 0);
    EXPECT(pipec_program_file(program, 1, &files[1]) &&
           strcmp(files[1].name, "lib/twice.pipe") == 0 && files[1].length == strlen(twice));
    options.folder = NULL, options.files = &files[1], options.file_count = 1;
    PipecProgram *given = pipec_compile(text, strlen(text), &options);
    EXPECT(pipec_program_status(given) == PIPEC_FINE);
    EXPECT(strcmp(pipec_program_ptx(given, NULL), pipec_program_ptx(program, NULL)) == 0);
    pipec_program_free(given);
    options.file_count = 0;
    given = pipec_compile(text, strlen(text), &options);
    EXPECT(pipec_program_status(given) == PIPEC_UNUSABLE);
    pipec_program_free(given);
    pipec_program_free(program);
}

/* ---- places ---------------------------------------------------------------------------------- */

static void places(void) {
    static const char text[] = "include \"a.pipe\";\n\n\n\n" KERNEL;
    static const char wrong[] = "// \n// twice\nfn twice(x: f32) -> i32 { return x * 2; }\n";
    PipecFile file = {"a.pipe", wrong, strlen(wrong)};
    PipecOptions options = {.size = sizeof options, .name = "dir/k.pipe", .files = &file};
    options.file_count = 1;
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    const PipecDiagnostics *all = pipec_program_diagnostics(program);
    const PipecDiagnostic *last = pipec_diagnostics_get(all, pipec_diagnostics_count(all) - 1);
    size_t index = pipec_diagnostics_count(all) - 1;
    EXPECT(strcmp(pipec_diagnostics_file(all, index, 0), "dir/a.pipe") == 0);
    EXPECT(strcmp(pipec_diagnostics_file(all, index, 1), "dir/k.pipe") == 0);
    EXPECT(pipec_diagnostics_file(all, index, 9) == NULL);
    EXPECT(last->labels[0].line == 3 && last->labels[0].lo == strlen("// \n// twice\n") + 33);
    EXPECT(strstr(pipec_diagnostics_json(all), "{\"file\":\"dir/a.pipe\",\"line\":3,") != NULL);
    EXPECT(strstr(pipec_diagnostics_text(all), " --> dir/a.pipe:3:34\n") != NULL);
    EXPECT(strstr(pipec_diagnostics_text(all), " ::: dir/k.pipe:") != NULL);
    PipecSarif *sarif = pipec_sarif_new();
    EXPECT(pipec_sarif_add(sarif, all));
    EXPECT(strstr(pipec_sarif_text(sarif),
                  "{\"uri\":\"dir/a.pipe\"},\"region\":{\"startLine\":3") != NULL);
    pipec_sarif_free(sarif);
    pipec_program_free(program);
}

/* Statements of an included function have their file in the PTX, the manifest and the report */
static void code_places(void) {
    static const char text[] = "include \"a.pipe\";\n"
                               "kernel k(X: f32[N], out Y: f32[N]) for sm_90a {\n"
                               "    const T = 128;\n"
                               "    ensures Y[i] == 2 * X[i];\n"
                               "    example N = 1000;\n"
                               "    grid (b: ceil(N, T));\n"
                               "    role work: 4 warps {\n"
                               "        for b in grid {\n"
                               "            var t: f32[T];\n"
                               "            t[i] = X[b*T + i];\n"
                               "            double(t);\n"
                               "            Y[b*T + i] = t[i];\n"
                               "        }\n"
                               "    }\n"
                               "}\n";
    static const char a[] = "\n\nfn double(inout t: f32[T]) {\n    t[i] = 2 * t[i];\n}\n";
    PipecFile file = {"a.pipe", a, strlen(a)};
    PipecOptions options = {
        .size = sizeof options, .name = "dir/k.pipe", .files = &file, .file_count = 1};
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    EXPECT(pipec_program_status(program) == PIPEC_FINE);
    size_t length;
    const char *ptx = pipec_program_ptx(program, &length);
    EXPECT(strstr(ptx, ".file 1 \"dir/k.pipe\"\n.file 2 \"dir/a.pipe\"\n\n") != NULL);
    EXPECT(strstr(ptx, ".loc 2 4 5\n") != NULL);
    const char *manifest = pipec_program_manifest(program);
    EXPECT(strstr(manifest, "\"included\": [\"dir/a.pipe\"]") != NULL);
    EXPECT(strstr(manifest, "{\"file\": 1, \"line\": 4, ") != NULL);
    options = (PipecOptions){.size = sizeof options};
    PipecProgram *read = pipec_program_from(manifest, strlen(manifest), ptx, length, &options);
    EXPECT(pipec_program_status(read) == PIPEC_FINE);
    EXPECT(strcmp(pipec_program_manifest(read), manifest) == 0);
    pipec_program_free(read);
    pipec_program_free(program);
}

/* ---- moved declarations ---------------------------------------------------------------------- */

#define MOVED_FILES 3

typedef struct Moved {
    char *text; /* with blanks instead of what was moved */
    Str files[MOVED_FILES];
    size_t count;
} Moved;

static bool can_move(const AstItem *item) {
    return item->kind == AST_ITEM_FN ||
           (item->kind == AST_ITEM_CONST && !item->consts.items[0].is_static);
}

/* Moves some functions and constants to files; the first file includes the others. */
static Moved move(Arena *arena, const char *text, size_t length) {
    const Source *source = source_new(arena, "x", text, length);
    const Ast *ast = parser_parse(arena, names_new(arena), source, diags_new(arena, source));
    Moved moved = {.text = arena_copy(arena, text, length)};
    for (int i = 0; i < MOVED_FILES; i++) {
        moved.files[i] = str_new(arena);
        str_add(&moved.files[i], "const _nothing_");
        str_printf(&moved.files[i], "%d = 0;\n", i);
    }
    str_add(&moved.files[0], "include \"b.pipe\"; include \"d/c.pipe\";\n");
    str_add(&moved.files[2], "include \"../b.pipe\";\n");
    for (size_t i = 0; i < ast->items.count; i++) {
        const AstItem *item = ast->items.items[i];
        if (!can_move(item) || rand() % 3 == 0) continue;
        uint32_t end = item->span.hi;
        end += item->kind == AST_ITEM_CONST && text[end] == ';';
        Str *file = &moved.files[rand() % MOVED_FILES];
        str_add_bytes(file, text + item->span.lo, end - item->span.lo);
        if (item->kind == AST_ITEM_CONST && text[end - 1] != ';') str_char(file, ';');
        str_char(file, '\n');
        for (uint32_t at = item->span.lo; at < end; at++)
            if (moved.text[at] != '\n') moved.text[at] = ' ';
        moved.count++;
    }
    return moved;
}

/* The PTX without `.file` and `.loc` */
static const char *code_lines(Arena *arena, const char *ptx) {
    Str out = str_new(arena);
    for (const char *line = ptx; *line;) {
        size_t length = strcspn(line, "\n") + 1;
        const char *word = line + strspn(line, " ");
        if (strncmp(word, ".file ", 6) != 0 && strncmp(word, ".loc ", 5) != 0)
            str_add_bytes(&out, line, length);
        line += length;
    }
    return out.text;
}

static void same_code(Arena *arena, const char *path, const char *kernel, const Moved *moved,
                      const char *text, size_t length) {
    static const char first[] = "include \"a.pipe\";";
    const char *main = arena_printf(arena, "%s\n%s", moved->text, first);
    PipecFile files[] = {{"a.pipe", moved->files[0].text, moved->files[0].length},
                         {"b.pipe", moved->files[1].text, moved->files[1].length},
                         {"d/c.pipe", moved->files[2].text, moved->files[2].length}};
    char own[300] = "";
    (void)snprintf(own, sizeof own, "%.*s", (int)(strrchr(path, '/') - path), path);
    PipecOptions options = {.size = sizeof options, .name = path, .kernel = kernel, .folder = own};
    PipecProgram *whole = pipec_compile(text, length, &options);
    if (strstr(text, "include \"") == NULL)
        options.files = files, options.file_count = COUNT_OF(files);
    PipecProgram *parted = pipec_compile(main, strlen(main), &options);
    const char *a = pipec_program_ptx(whole, NULL), *b = pipec_program_ptx(parted, NULL);
    bool same = (a == NULL) == (b == NULL) &&
                (a == NULL || strcmp(code_lines(arena, a), code_lines(arena, b)) == 0);
    if (!same)
        printf("%s %s: the code changes\n%s", path, kernel,
               pipec_diagnostics_text(pipec_program_diagnostics(parted)));
    EXPECT(same);
    EXPECT(pipec_program_status(whole) == pipec_program_status(parted));
    pipec_program_free(parted);
    pipec_program_free(whole);
}

static size_t move_in(const char *path) {
    Arena *arena = arena_new();
    size_t length = 0;
    const char *text = file_text(arena, path, &length, diags_new(arena, NULL));
    Moved moved = move(arena, text, length);
    if (moved.count > 0 && strstr(text, "include \"") == NULL) {
        PipecOptions options = {.size = sizeof options, .check_only = true, .combinations = 1};
        PipecProgram *all = pipec_compile(text, length, &options);
        const char *kernel;
        for (size_t i = 0; i < 2 && (kernel = pipec_program_kernel(all, i)) != NULL; i++)
            same_code(arena, path, kernel, &moved, text, length);
        pipec_program_free(all);
    }
    size_t count = moved.count;
    arena_free(arena);
    return count;
}

static void moves(void) {
    static const char *const patterns[] = {"examples/*.pipe", "kernels/*.pipe", "tests/run/*.pipe",
                                           "tests/ptx/*.pipe", "tests/check/accepted/*.pipe"};
    size_t moved = 0;
    for (size_t i = 0; i < COUNT_OF(patterns); i++) {
        glob_t files;
        if (glob(patterns[i], 0, NULL, &files) != 0) continue;
        for (size_t k = 0; k < 3 * files.gl_pathc; k++)
            moved += move_in(files.gl_pathv[k % files.gl_pathc]);
        globfree(&files);
    }
    printf("include: %zu declarations moved\n", moved);
    EXPECT(moved > 100);
}

int main(void) {
    EXPECT(mkdtemp(folder) != NULL);
    links();
    races();
    once();
    long_cycle();
    kinds();
    changes();
    limits();
    texts();
    places();
    code_places();
    moves();
    char command[200];
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    EXPECT(system(command) == 0);
    return expect_failures();
}
