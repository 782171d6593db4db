/* Fuzzes names of C++: any text is read or refused, and what is read has a text of limited length.
 */
#include "emulator/findings/demangle.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    Arena *arena = arena_new();
    char *name = arena_copy(arena, (const char *)data, size);
    const char *text = demangle(arena, name);
    if (text && (strlen(text) > 1 << 14 || *text == '\0')) abort();
    arena_free(arena);
    return 0;
}
