/* --draw: programs for same-test, which reads them from a file (tests/same/programs.c). */
#include "tests/generate/generate.h"

#include <stdio.h>
#include <string.h>

void drawn_print(const char *kind, uint64_t seed, const char *text) {
    printf("= %s-%llu %zu\n%s", kind, (unsigned long long)seed, strlen(text), text);
}
