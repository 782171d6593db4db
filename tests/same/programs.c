/* Programs from files, with their folders and the values that their heads give to statics. */
#include "tests/same/same.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *text, const char *suffix) {
    size_t length = strlen(text), tail = strlen(suffix);
    return length >= tail && strcmp(text + length - tail, suffix) == 0;
}

static char *copy(const char *from, size_t length) {
    char *to = reserve(NULL, length + 1);
    memcpy(to, from, length);
    to[length] = '\0';
    return to;
}

/* ---- heads ----------------------------------------------------------------------------------- */

/* The words NAME=VALUE of a line from `at` on. Those of options (`--fill A=iota`) are not for
 * statics, and are ignored by the compiler. */
static void read_values(Program *program, const char *at, bool of_check) {
    size_t end = strcspn(at, "\r\n");
    char *line = copy(at, end), *rest;
    for (char *word = strtok_r(line, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        if (strchr(word, '=') == NULL) continue;
        program->values =
            reserve(program->values, (program->value_count + 1) * sizeof *program->values);
        program->values[program->value_count++] = word;
    }
    program->values_of_check = of_check;
    if (program->value_count == 0) free(line);
}

static void read_head(Program *program) {
    static const char *const marks[] = {"//> check ", "//> build ", "//> run "};
    for (const char *line = program->text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "//> without a folder", 20) == 0) program->folder = NULL;
        for (size_t i = 0; i < 3 && program->value_count == 0; i++)
            if (strncmp(line, marks[i], strlen(marks[i])) == 0)
                read_values(program, line + strlen(marks[i]), i < 2);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static void add(Programs *out, const char *name, size_t name_length, const char *text,
                size_t length) {
    if (out->count == out->capacity) {
        out->capacity = 2 * out->capacity + 64;
        out->items = reserve(out->items, out->capacity * sizeof *out->items);
    }
    Program *program = &out->items[out->count++];
    *program =
        (Program){.name = copy(name, name_length), .text = copy(text, length), .length = length};
    const char *slash = strrchr(program->name, '/');
    if (slash != NULL) program->folder = copy(program->name, (size_t)(slash - program->name));
    read_head(program);
}

static bool read_file(const char *path, Text *out) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return false;
    }
    char piece[65536];
    for (size_t count; (count = fread(piece, 1, sizeof piece, file)) > 0;)
        text_bytes(out, piece, count);
    text_bytes(out, "", 0);
    bool fine = ferror(file) == 0;
    fclose(file);
    return fine;
}

/* A line "= NAME BYTES", then the text, for each */
static bool read_pack(const char *path, const Text *pack, Programs *out) {
    for (const char *at = pack->items, *end = at + pack->length; at < end;) {
        char name[200], line[256] = "";
        size_t length;
        const char *text = strchr(at, '\n');
        if (text != NULL && text - at < (ptrdiff_t)sizeof line)
            memcpy(line, at, (size_t)(text - at));
        if (sscanf(line, "= %199s %zu", name, &length) != 2 || (size_t)(end - text) <= length) {
            fprintf(stderr, "same-test: %s: no program at byte %td\n", path, at - pack->items);
            return false;
        }
        add(out, name, strlen(name), text + 1, length);
        at = text + 1 + length;
    }
    return true;
}

bool programs_read(const char *path, Programs *out) {
    Text text = {0};
    bool fine = read_file(path, &text);
    if (fine && ends_with(path, ".pack")) {
        fine = read_pack(path, &text, out);
    } else if (fine && ends_with(path, ".list")) {
        char *rest;
        for (char *line = strtok_r(text.items, "\n", &rest); line != NULL && fine;
             line = strtok_r(NULL, "\n", &rest))
            fine = programs_read(line, out);
    } else if (fine) {
        add(out, path, strlen(path), text.items, text.length);
    }
    free(text.items);
    return fine;
}

/* ---- a selection ----------------------------------------------------------------------------- */

typedef struct Wanted { /* a line "NAME[\tCOMBINATION]", cut in two */
    const char *name, *combination;
} Wanted;

static int by_name(const void *a, const void *b) {
    return strcmp(((const Wanted *)a)->name, ((const Wanted *)b)->name);
}

static void want(Program *program, const char *combination) {
    size_t bytes = (program->wanted_count + 1) * sizeof *program->wanted;
    program->wanted = reserve(program->wanted, bytes);
    program->wanted[program->wanted_count++] = combination;
}

/* True if some line names the program; equal names follow each other. */
static bool select_lines(Program *program, const Wanted *lines, size_t count) {
    Wanted key = {.name = program->name};
    const Wanted *found = count > 0 ? bsearch(&key, lines, count, sizeof *lines, by_name) : NULL;
    if (found == NULL) return false;
    while (found > lines && by_name(found - 1, &key) == 0) found--;
    bool all = false;
    for (; found < lines + count && by_name(found, &key) == 0; found++) {
        all |= strcmp(found->combination, "-") == 0;
        want(program, found->combination);
    }
    if (all) program->wanted_count = 0;
    return true;
}

bool programs_only(const char *path, Programs *programs) {
    Text text = {0};
    Wanted *lines = NULL;
    size_t count = 0, kept = 0;
    if (!read_file(path, &text)) return false;
    char *rest;
    for (char *line = strtok_r(text.items, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *tab = strchr(line, '\t');
        if (tab != NULL) *tab = '\0';
        lines = reserve(lines, (count + 1) * sizeof *lines);
        lines[count++] = (Wanted){line, tab != NULL ? tab + 1 : "-"};
    }
    if (count > 0) qsort(lines, count, sizeof *lines, by_name);
    for (size_t i = 0; i < programs->count; i++)
        if (select_lines(&programs->items[i], lines, count))
            programs->items[kept++] = programs->items[i];
    programs->count = kept;
    free(lines); /* the text stays: combinations point into it */
    return true;
}
