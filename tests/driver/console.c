/* Suite `docs`: runs the commands that the documentation shows, with the `pipec` in the folder of
 * the driver, and compares what they print. Each block of commands gets a temporary folder with the
 * program of its page, its own cache of choices, and no GPU, so that runs use the emulator. */
#include "tests/driver/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- changes of a program -------------------------------------------------------------------- */

static size_t occurrences(const char *text, const char *part) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        count += at == text || at[-1] == '\n';
    return count;
}

const char *console_change(Test *test, const char *name, const char *program, const char *diff) {
    Str before = str_new(test->arena), after = str_new(test->arena), changed = str_new(test->arena);
    Words lines = lines_of(test->arena, diff);
    str_add(&before, "");
    str_add(&after, "");
    for (size_t i = 0; i < lines.count; i++) {
        const char *line = lines.items[i];
        if (!expect(test, line[0] == ' ' || line[0] == '-' || line[0] == '+',
                    "%s: a line of a change begins with a blank, - or +: %s", name, line))
            return program;
        if (line[0] != '+') str_printf(&before, "%s\n", line + 1);
        if (line[0] != '-') str_printf(&after, "%s\n", line + 1);
    }
    const char *part = before.text ? before.text : "";
    size_t found = part[0] ? occurrences(program, part) : 0;
    if (!expect(test, found == 1, "%s: the program has the changed lines %zu times", name, found))
        return program;
    const char *at = strstr(program, part);
    while (at != program && at[-1] != '\n') at = strstr(at + 1, part);
    str_add_bytes(&changed, program, (size_t)(at - program));
    str_add(&changed, after.text ? after.text : "");
    str_add(&changed, at + strlen(part));
    return changed.text;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* `..` in the shown line stands for any text */
static bool same_line(Arena *arena, const char *shown, const char *printed) {
    const char *dots = strstr(shown, "..");
    if (!dots) return strcmp(shown, printed) == 0;
    if (strncmp(shown, printed, (size_t)(dots - shown)) != 0) return false;
    printed += dots - shown;
    for (;;) {
        shown = dots + 2;
        dots = strstr(shown, "..");
        if (!dots) return ends_with(printed, shown);
        const char *part = arena_copy(arena, shown, (size_t)(dots - shown));
        printed = strstr(printed, part);
        if (!printed) return false;
        printed += strlen(part);
    }
}

/* A shown line `..` stands for any lines before the next shown one */
static bool same_output(Arena *arena, const Words *shown, const Words *printed) {
    size_t at = 0;
    bool skips = false;
    for (size_t i = 0; i < shown->count; i++) {
        const char *line = shown->items[i];
        if (strcmp(line + strspn(line, " "), "..") == 0) {
            skips = true;
            continue;
        }
        while (skips && at < printed->count && !same_line(arena, line, printed->items[at])) at++;
        if (at == printed->count || !same_line(arena, line, printed->items[at])) return false;
        at++;
        skips = false;
    }
    return skips || at == printed->count;
}

/* ---- commands -------------------------------------------------------------------------------- */

/* The folder of the driver, which also has `pipec` */
static const char *own_folder(Arena *arena) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    while (length > 0 && path[length - 1] != '/') length--;
    return length > 0 ? arena_copy(arena, path, (size_t)length) : "./";
}

/* Runs the command in the folder; its output, with that on standard error */
static const char *output_of(Test *test, const char *folder, const char *command) {
    Str out = str_new(test->arena);
    str_add(&out, "");
    FILE *pipe = popen(arena_printf(test->arena,
                                    "cd %s && PIPEC_LIBCUDA=/nonexistent PIPEC_CACHE=%s/cache "
                                    "PATH=%s:$PATH && export PIPEC_LIBCUDA PIPEC_CACHE PATH && "
                                    "%s 2>&1",
                                    folder, folder, own_folder(test->arena), command),
                       "r");
    if (!expect(test, pipe != NULL, "cannot run `%s`", command)) return "";
    char part[4096];
    size_t count;
    while ((count = fread(part, 1, sizeof part, pipe)) > 0) str_add_bytes(&out, part, count);
    pclose(pipe);
    return out.text ? out.text : "";
}

/* Saves the program in the file that the command names, runs the command, compares the output */
static void run_command(Test *test, const char *name, const char *folder, const char *program,
                        const char *command, const char *shown) {
    Words words = words_of(test->arena, command);
    if (!expect(test, words.count > 0 && strcmp(words.items[0], "pipec") == 0,
                "%s: not a command of pipec: %s", name, command))
        return;
    for (size_t i = 1; i < words.count; i++)
        if (ends_with(words.items[i], ".pipe"))
            file_write(test, arena_printf(test->arena, "%s/%s", folder, words.items[i]), program,
                       strlen(program));
    const char *printed = output_of(test, folder, command);
    Words a = lines_of(test->arena, shown), b = lines_of(test->arena, printed);
    expect(test, same_output(test->arena, &a, &b), "%s: `%s` prints\n%s", name, command, printed);
}

void console_run(Test *test, const char *name, const char *program, const char *block) {
    char folder[] = "/tmp/pipec-docs-XXXXXX";
    if (!expect(test, mkdtemp(folder) != NULL, "no folder for `%s`", name)) return;
    Words lines = lines_of(test->arena, block);
    expect(test, lines.count > 0 && strncmp(lines.items[0], "$ ", 2) == 0,
           "%s: the first line is no command", name);
    for (size_t i = 0; i < lines.count;) {
        const char *command = lines.items[i++] + 2;
        Str shown = str_new(test->arena);
        str_add(&shown, "");
        for (; i < lines.count && strncmp(lines.items[i], "$ ", 2) != 0; i++)
            str_printf(&shown, "%s\n", lines.items[i]);
        run_command(test, name, folder, program, command, shown.text ? shown.text : "");
    }
    const char *remove = arena_printf(test->arena, "rm -r %s", folder);
    expect(test, system(remove) == 0, "cannot remove %s", folder);
}
