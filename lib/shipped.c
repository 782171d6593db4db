/* lib: the text of a program: a file, or one of the kernels that the library holds (kernels/). A
 * program that is linked with the library, the command and the Python package so find the same
 * kernels, wherever they are installed. */
#include "lib/private.h"

#include <string.h>

static const char prefix[] = "kernels:";

PIPEC_API const char *pipec_shipped(size_t index, const char **text) {
    if (index >= shipped_kernels_count) return NULL;
    if (text != NULL) *text = shipped_kernels[index].text;
    return shipped_kernels[index].name;
}

PIPEC_API bool pipec_shipped_file(size_t index, PipecFile *file) {
    if (index >= shipped_files_count) return false;
    const Page *page = &shipped_files[index];
    *file = (PipecFile){page->name, page->text, strlen(page->text)};
    return true;
}

bool source_is_shipped(const char *path) { return strncmp(path, prefix, strlen(prefix)) == 0; }

static void report_unknown(Diags *diags, Arena *arena, const char *name) {
    Str all = str_new(arena);
    for (size_t i = 0; i < shipped_kernels_count; i++)
        str_printf(&all, "%s`%s%s`", i > 0 ? ", " : "", prefix, shipped_kernels[i].name);
    Diag *diag = diag_plain(diags, P0900, "there is no shipped kernel `%s`", name);
    diag_help(diags, diag, "these are shipped: %s", all.text);
    diag_help(diags, diag, "a file of this name is `./%s%s`", prefix, name);
}

const char *source_text(Arena *arena, const char *path, size_t *length, Diags *diags) {
    if (!source_is_shipped(path)) return file_text(arena, path, length, diags);
    const char *text, *name = path + strlen(prefix), *found;
    for (size_t i = 0; (found = pipec_shipped(i, &text)) != NULL; i++) {
        if (strcmp(found, name) != 0) continue;
        *length = strlen(text);
        return text;
    }
    report_unknown(diags, arena, name);
    return NULL;
}
