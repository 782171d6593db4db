/* Assembles a text by ptxas: no warnings, and only few spills. */
#include "tests/generate/generate.h"
#include "launch/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of targets besides sm_90a, ptxas 13.0 expects less speed of copies to several blocks. */
static bool is_advice(const char *target, const char *line) {
    return strcmp(target, "sm_90a") != 0 && strstr(line, "Advisory: '.multicast::cluster'") != NULL;
}

bool assembles(Arena *arena, const char *target, const char *ptx, uint64_t spills,
               const char **output) {
    char name[] = "/tmp/pipec-generate-XXXXXX", line[512];
    int file = mkstemp(name);
    if (file < 0 || write(file, ptx, strlen(ptx)) != (ssize_t)strlen(ptx)) return false;
    close(file);
    FILE *pipe =
        popen(arena_printf(arena, "ptxas -arch=%s -v -o /dev/null %s 2>&1", target, name), "r");
    Str text = str_new(arena);
    bool fine = pipe != NULL;
    str_add(&text, "");
    while (pipe != NULL && fgets(line, sizeof line, pipe) != NULL) {
        str_add(&text, line);
        AssemblerLine it = assembler_line(line);
        bool little = it.kind == ASSEMBLER_MEMORY && it.stores + it.loads <= spills;
        fine = fine && (it.kind == ASSEMBLER_NOTHING || little || is_advice(target, line));
    }
    fine = (pipe == NULL || pclose(pipe) == 0) && fine;
    unlink(name);
    *output = text.text;
    return fine;
}
