/* Files, lines and differences for the test driver. */
#include "tests/driver/suite.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool file_exists(const char *path) {
    struct stat status;
    return stat(path, &status) == 0;
}

char *file_read(Arena *arena, const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    Str text = str_new(arena);
    str_add(&text, "");
    char part[4096];
    size_t count;
    while ((count = fread(part, 1, sizeof part, file)) > 0) str_add_bytes(&text, part, count);
    fclose(file);
    if (length) *length = text.length;
    return text.text ? text.text : arena_copy(arena, "", 0);
}

void file_write(Test *test, const char *path, const char *text, size_t length) {
    FILE *file = fopen(path, "wb");
    bool fine = file && fwrite(text, 1, length, file) == length;
    if (file && fclose(file) != 0) fine = false;
    expect(test, fine, "cannot write %s", path);
}

bool ends_with(const char *text, const char *suffix) {
    size_t length = strlen(text), tail = strlen(suffix);
    return length >= tail && strcmp(text + length - tail, suffix) == 0;
}

const char *folder_of(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? arena_copy(arena, path, (size_t)(slash - path)) : ".";
}

const char *with_suffix(Arena *arena, const char *path, const char *suffix) {
    const char *dot = strrchr(path, '.');
    return arena_printf(arena, "%.*s%s", dot ? (int)(dot - path) : (int)strlen(path), path, suffix);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void collect(Arena *arena, const char *folder, const char *suffix, bool deep, Items *items) {
    DIR *dir = opendir(folder);
    if (!dir) return;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') continue;
        const char *path = arena_printf(arena, "%s/%s", folder, entry->d_name);
        struct stat status;
        if (stat(path, &status) != 0) continue;
        if (strcmp(entry->d_name, "common.pipe") == 0) continue;
        if (S_ISDIR(status.st_mode)) {
            if (deep && strcmp(entry->d_name, "include") != 0)
                collect(arena, path, suffix, true, items);
        } else if (ends_with(path, suffix)) {
            vec_push(arena, items, path);
        }
    }
    closedir(dir);
}

void files_in(Arena *arena, const char *folder, const char *suffix, bool deep, Items *items) {
    size_t first = items->count;
    collect(arena, folder, suffix, deep, items);
    if (items->count > first)
        qsort(items->items + first, items->count - first, sizeof *items->items, by_name);
}

/* ---- lines and words ------------------------------------------------------------------------- */

Words lines_of(Arena *arena, const char *text) {
    Words lines = {0};
    while (*text) {
        size_t length = strcspn(text, "\n");
        vec_push(arena, &lines, arena_copy(arena, text, length));
        text += length + (text[length] == '\n');
    }
    return lines;
}

Words words_of(Arena *arena, const char *line) {
    Words words = {0};
    for (;;) {
        line += strspn(line, " \t\r");
        size_t length = strcspn(line, " \t\r");
        if (length == 0) return words;
        vec_push(arena, &words, arena_copy(arena, line, length));
        line += length;
    }
}

const char *next_code(Arena *arena, const char **at) {
    for (const char *from = *at; (from = strchr(from, 'P')); from++) {
        if (strspn(from + 1, "0123456789") == 4) {
            *at = from + 5;
            return arena_copy(arena, from, 5);
        }
    }
    return NULL;
}

/* ---- differences ----------------------------------------------------------------------------- */

/* most lines between the common head and tail for which the longest common subsequence is
 * computed */
#define LONGEST 2000
#define SHOWN   12

typedef struct Difference {
    Str *out;
    size_t added, removed, shown;
} Difference;

static void differs(Difference *d, char sign, const char *line) {
    if (sign == '+')
        d->added++;
    else
        d->removed++;
    if (d->shown++ < SHOWN) str_printf(d->out, "    %c %s\n", sign, line);
}

/* Longest common subsequence of the middle parts, by dynamic programming */
static void compare_middle(Arena *arena, Difference *d, const char *const *a, size_t as,
                           const char *const *b, size_t bs) {
    size_t width = bs + 1;
    uint32_t *table = NEW_ARRAY(arena, uint32_t, (as + 1) * width);
    for (size_t i = as; i-- > 0;) {
        for (size_t j = bs; j-- > 0;) {
            uint32_t down = table[(i + 1) * width + j], right = table[i * width + j + 1];
            table[i * width + j] = strcmp(a[i], b[j]) == 0 ? 1 + table[(i + 1) * width + j + 1]
                                   : down > right          ? down
                                                           : right;
        }
    }
    size_t i = 0, j = 0;
    while (i < as || j < bs) {
        if (i < as && j < bs && strcmp(a[i], b[j]) == 0) {
            i++, j++;
        } else if (i < as && (j == bs || table[(i + 1) * width + j] >= table[i * width + j + 1])) {
            differs(d, '-', a[i++]);
        } else {
            differs(d, '+', b[j++]);
        }
    }
}

void text_difference(Arena *arena, const char *wanted, const char *got, Str *out) {
    Words a = lines_of(arena, wanted), b = lines_of(arena, got);
    size_t head = 0, tail = 0;
    while (head < a.count && head < b.count && strcmp(a.items[head], b.items[head]) == 0) head++;
    while (tail < a.count - head && tail < b.count - head &&
           strcmp(a.items[a.count - 1 - tail], b.items[b.count - 1 - tail]) == 0)
        tail++;
    Str body = str_new(arena);
    str_add(&body, "");
    Difference d = {.out = &body};
    size_t as = a.count - head - tail, bs = b.count - head - tail;
    if (as <= LONGEST && bs <= LONGEST) {
        compare_middle(arena, &d, a.items + head, as, b.items + head, bs);
    } else {
        for (size_t i = 0; i < as; i++) differs(&d, '-', a.items[head + i]);
        for (size_t i = 0; i < bs; i++) differs(&d, '+', b.items[head + i]);
    }
    str_printf(out, "+%zu -%zu lines, the first at line %zu\n%s", d.added, d.removed, head + 1,
               body.text ? body.text : "");
    if (d.shown > SHOWN) str_printf(out, "    ...\n");
}
