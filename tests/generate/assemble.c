/* Assembles a text by ptxas: no warnings, and only few spills. */
#include "tests/generate/generate.h"
#include "launch/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool assembles(Arena *arena, const char *ptx, uint64_t spills, const char **output) {
    char name[] = "/tmp/pipec-generate-XXXXXX", line[512];
    int file = mkstemp(name);
    if (file < 0 || write(file, ptx, strlen(ptx)) != (ssize_t)strlen(ptx)) return false;
    close(file);
    FILE *pipe =
        popen(arena_printf(arena, "ptxas -arch=sm_90a -v -o /dev/null %s 2>&1", name), "r");
    Str text = str_new(arena);
    bool fine = pipe != NULL;
    str_add(&text, "");
    while (pipe != NULL && fgets(line, sizeof line, pipe) != NULL) {
        str_add(&text, line);
        AssemblerLine it = assembler_line(line);
        bool little = it.kind == ASSEMBLER_MEMORY && it.stores + it.loads <= spills;
        fine = fine && (it.kind == ASSEMBLER_NOTHING || little);
    }
    fine = (pipe == NULL || pclose(pipe) == 0) && fine;
    unlink(name);
    *output = text.text;
    return fine;
}
