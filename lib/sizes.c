/* lib: structures of the caller, which begin with their size. An older caller's are shorter than
 * the library's, a newer caller's longer. */
#include "lib/private.h"

#include <string.h>

bool size_read(void *ours, size_t known, const void *given) {
    size_t size;
    memset(ours, 0, known);
    if (given == NULL) return true;
    memcpy(&size, given, sizeof size);
    if (size < sizeof size) return false;
    for (size_t i = known; i < size; i++)
        if (((const unsigned char *)given)[i] != 0) return false;
    memcpy(ours, given, size < known ? size : known);
    return true;
}

bool size_write(void *given, const void *ours, size_t known) {
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size < sizeof size) return false;
    memset(given, 0, size);
    memcpy(given, ours, size < known ? size : known);
    memcpy(given, &size, sizeof size);
    return true;
}

void size_report(Diags *diags, const char *name, size_t known, const void *given) {
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size > known) {
        Diag *diag = diag_plain(diags, P0917,
                                "`%s` has %zu bytes, of which the library knows the first %zu; the "
                                "others must be zeros",
                                name, size, known);
        diag_note(diags, diag, "the library is version %s, older than the program's pipec.h",
                  PIPEC_VERSION);
        return;
    }
    Diag *diag = diag_plain(diags, P0917, "the `size` of `%s` is %zu", name, size);
    diag_help(diags, diag, "begin with `{.size = sizeof(%s)}`", name);
}
