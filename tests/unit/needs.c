/* What instructions need of .version and .target: the emulator refuses the example of each row of
 * emulator/text/needs.def below its version and target, and takes it there; if ptxas is found, both
 * agree on each example for each version and target. */
#include "emulator/emulator.h"
#include "tests/unit/expect.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct Row {
    int version, target;
    const char *example;
} Row;

static const Row rows[] = {
#define NEEDS(begins, has, lacks, version, rule, target, example) {version, target, example},
#define FIRST(target, suffix, version)
#include "emulator/text/needs.def"
#undef NEEDS
#undef FIRST
};

static const char *const targets[] = {"sm_75",  "sm_80",   "sm_86",   "sm_89",  "sm_90",
                                      "sm_90a", "sm_100a", "sm_103a", "sm_120", "sm_120a"};
static const int versions[] = {70, 71, 73, 74, 75, 76, 78, 80, 81, 82, 83, 84, 86, 87, 88, 90};

/* The examples begin at line FIRST_LINE, one on each */
#define FIRST_LINE 9
static void add_module(Str *out, int version, const char *target, const Row *from, size_t count) {
    str_printf(out,
               ".version %d.%d\n.target %s\n.address_size 64\n"
               ".extern .shared .align 1024 .b8 sh[];\n.visible .entry k(.param .u64 p)\n{\n"
               ".reg .pred %%p<8>; .reg .b16 %%h<9>; .reg .b32 %%r<9>; .reg .b64 %%d<9>;\n"
               ".reg .f32 %%f<9>;\n",
               version / 10, version % 10, target);
    for (size_t i = 0; i < count; i++) str_printf(out, "%s\n", from[i].example);
    str_add(out, "ret;\n}\n");
}

static bool emulator_takes(int version, const char *target, const Row *row) {
    Scratch scratch = scratch_new();
    Str text = str_new(scratch.arena);
    EmulatorKernel kernel;
    add_module(&text, version, target, row, 1);
    RunStatus status =
        emulator_read(scratch.arena, text.text, text.length, NULL, &kernel, scratch.diags);
    if (status != RUN_DONE) EXPECT(scratch.diags->items.count == 1);
    scratch_free(&scratch);
    return status == RUN_DONE;
}

/* Sets refused[i] of each example that ptxas reports an error on; all of them if it does not take
 * the module at all. It may stop before the last error. */
static void ask_ptxas(int version, const char *target, const Row *from, size_t count,
                      bool *refused) {
    Scratch scratch = scratch_new();
    Str text = str_new(scratch.arena);
    const char *name = arena_printf(scratch.arena, "/tmp/pipec-needs-%d", (int)getpid());
    add_module(&text, version, target, from, count);
    FILE *file = fopen(name, "w");
    if (EXPECT(file != NULL)) {
        fputs(text.text, file);
        fclose(file);
    }
    FILE *output = popen(
        arena_printf(scratch.arena, "ptxas -O0 -arch=%s -o /dev/null %s 2>&1", target, name), "r");
    char line[1024];
    while (output && fgets(line, sizeof line, output)) {
        const char *at = strstr(line, ", line ");
        int number = at ? atoi(at + 7) : 0;
        if (number == 0) continue;
        if (number < FIRST_LINE)
            for (size_t i = 0; i < count; i++) refused[i] = true;
        else if ((size_t)(number - FIRST_LINE) < count)
            refused[number - FIRST_LINE] = true;
    }
    EXPECT(output != NULL);
    if (output) pclose(output);
    unlink(name);
    scratch_free(&scratch);
}

static void compare(int version, const char *target) {
    bool refused[COUNT_OF(rows)] = {0};
    ask_ptxas(version, target, rows, COUNT_OF(rows), refused);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (*rows[i].example == 0) continue;
        bool takes = emulator_takes(version, target, &rows[i]);
        if (!takes && !refused[i]) ask_ptxas(version, target, &rows[i], 1, &refused[i]);
        if (!EXPECT(takes == !refused[i]))
            fprintf(stderr, "%d %s: ptxas %s %s\n", version, target,
                    refused[i] ? "refuses" : "takes", rows[i].example);
    }
}

/* Without ptxas: a version or a target below that of the row is too little. */
static void below(const Row *row) {
    if (*row->example == 0) return;
    for (size_t v = 0; v < COUNT_OF(versions); v++)
        for (size_t t = 0; t < COUNT_OF(targets); t++)
            if ((versions[v] < row->version || atoi(targets[t] + 3) < row->target) &&
                !EXPECT(strstr(row->example, "e4m3x2") || strstr(row->example, "e5m2x2") ||
                        !emulator_takes(versions[v], targets[t], row)))
                fprintf(stderr, "%d %s: %s\n", versions[v], targets[t], row->example);
}

int main(void) {
    bool found = system("command -v ptxas >/dev/null 2>&1") == 0;
    for (size_t v = 0; found && v < COUNT_OF(versions); v++)
        for (size_t t = 0; t < COUNT_OF(targets); t++) compare(versions[v], targets[t]);
    for (size_t i = 0; i < COUNT_OF(rows); i++) below(&rows[i]);
    return expect_failures();
}
