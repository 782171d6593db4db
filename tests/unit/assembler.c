/* Messages of ptxas, line by line, and their diagnostics. If ptxas is found, texts of pipec are
 * changed so that it reports errors. */
#include "launch/launch.h"

#include "include/pipec.h"
#include "tests/unit/expect.h"
#include "tests/unit/sample.h"

#include <stdlib.h>

static void classifies(int wanted, const char *text, int number, uint32_t line) {
    AssemblerLine it = assembler_line(text);
    if ((int)it.kind == wanted && it.number == number && it.line == line) return;
    fprintf(stderr, "%s: kind %d, number %d, line %u\n", text, (int)it.kind, it.number, it.line);
    failed_expectations++;
}

static void lines(void) {
    classifies(ASSEMBLER_NOTHING, "", 0, 0);
    classifies(ASSEMBLER_NOTHING, "ptxas info    : 0 bytes gmem", 0, 0);
    classifies(ASSEMBLER_NOTHING, "ptxas info    : Compiling entry function 'error' for 'sm_90a'",
               0, 0);
    classifies(ASSEMBLER_NOTHING,
               "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", 0, 0);
    classifies(ASSEMBLER_NOTHING,
               "ptxas info    : Used 168 registers, used 1 barriers, 0 bytes lmem", 0, 0);
    classifies(ASSEMBLER_MEMORY,
               "    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", 0, 0);
    classifies(ASSEMBLER_MEMORY,
               "    0 bytes stack frame, 4 bytes spill stores, 0 bytes spill loads", 0, 0);
    classifies(ASSEMBLER_MEMORY,
               "    0 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads", 0, 0);
    classifies(ASSEMBLER_MEMORY,
               "ptxas         .     8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads",
               0, 0);
    classifies(ASSEMBLER_MEMORY,
               "ptxas info    : Used 16 registers, used 1 barriers, 32 bytes lmem", 0, 0);
    classifies(ASSEMBLER_NUMBER,
               "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored", 7508, 0);
    classifies(
        ASSEMBLER_NUMBER,
        "ptxas info    : (C7519) warpgroup.arrive is injected in around line 398 by compiler", 7519,
        398);
    classifies(ASSEMBLER_WARNING, "ptxas a.ptx, line 812; warning : .minnctapersm is ignored", 0,
               812);
    classifies(ASSEMBLER_WARNING, "ptxas warning :  .debug_info section not found", 0, 0);
    classifies(ASSEMBLER_ERROR, "ptxas a.ptx, line 30; error   : Unknown symbol", 0, 30);
    classifies(ASSEMBLER_ERROR, "ptxas fatal   : Ptx assembly aborted due to errors", 0, 0);
    classifies(
        ASSEMBLER_ERROR,
        "ptxas fatal   : (C7602) Insufficient registers (64) to compile instruction at line 399 "
        "in f",
        7602, 399);
    EXPECT(strcmp(assembler_words("ptxas a.ptx, line 30; error   : Unknown"),
                  "error   : Unknown") == 0);
    EXPECT(strcmp(assembler_words("ptxas warning : Odd"), "warning : Odd") == 0);
    EXPECT(assembler_cause(7602) != NULL && assembler_cause(7599) == NULL);
}

static void reports(Scratch *scratch) {
    const Manifest *manifest = sample_manifest(scratch->arena);
    scratch->diags = diags_new(scratch->arena, manifest->source);
    assembler_report(manifest, scratch->diags, P0909, "ptxas info : (C7511) X\n");
    EXPECT_ERROR(
        scratch, P0810,
        "role `add` needs the most registers: 64 per thread for its register tiles, of 160");
    assembler_report(
        manifest, scratch->diags, P0909,
        "ptxas info : (C7519) around line 25 by\nptxas info : (C7519) around line 26 by");
    EXPECT_ERROR(scratch, P0810, " --> axpy.pipe:2:5");
    assembler_report(
        manifest, scratch->diags, P0909,
        "ptxas info : (C7519) around line 25 by\nptxas info : (C7517) around line 26 by\n");
    EXPECT(scratch->diags->items.count == 2);
    scratch->diags = diags_new(scratch->arena, manifest->source);
    assembler_report(manifest, scratch->diags, P0909,
                     "0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads");
    EXPECT_ERROR(scratch, P0812, "4 bytes of spill stores, 8 of spill loads\n --> axpy.pipe:1:1");
    assembler_report(manifest, scratch->diags, P0909, "ptxas info : (C7504) X\n\n\n");
    EXPECT_ERROR(scratch, P0811, "assemble it alone");
    for (int i = 0; i < 40; i++)
        assembler_report(manifest, scratch->diags, P0909,
                         "ptxas warning : Odd\nptxas error : Bad\n");
    EXPECT(scratch->diags->items.count == 40 && scratch->diags->errors == 0);
    Manifest bare = *manifest; /* no roles, no marks, no source: still a warning */
    bare.roles.count = bare.marks.count = 0;
    bare.source = NULL;
    scratch->diags = diags_new(scratch->arena, NULL);
    assembler_report(&bare, scratch->diags, P0909, "ptxas info : (C7519) around line 25 by\n");
    EXPECT_ERROR(scratch, P0810, "wait for each other");
}

/* The text of examples/gemm.pipe without its fences */
static void real(Scratch *scratch) {
    char name[] = "/tmp/pipec-assembler-XXXXXX", line[4096];
    PipecProgram *program = pipec_compile_file("examples/gemm.pipe", NULL);
    const char *ptx = program != NULL ? pipec_program_ptx(program, NULL) : NULL;
    int file = mkstemp(name);
    FILE *out = file >= 0 ? fdopen(file, "w") : NULL;
    if (!EXPECT(ptx != NULL && out != NULL)) return;
    for (const char *at = ptx; at[0] != 0; at += strcspn(at, "\n") + 1) {
        int length = (int)strcspn(at, "\n");
        if (strstr(arena_copy(scratch->arena, at, (size_t)length), "wgmma.fence") == NULL)
            fprintf(out, "%.*s\n", length, at);
    }
    fclose(out);
    FILE *from = popen(
        arena_printf(scratch->arena, "ptxas -arch=sm_90a -v -o /dev/null %s 2>&1", name), "r");
    bool number = false;
    while (from != NULL && fgets(line, sizeof line, from) != NULL) {
        AssemblerLine it = assembler_line(line);
        number |= it.kind == ASSEMBLER_NUMBER && it.line > 0 && assembler_cause(it.number) != NULL;
    }
    EXPECT(from != NULL && pclose(from) == 0 && number);
    remove(name);
    pipec_program_free(program);
}

int main(void) {
    Scratch scratch = scratch_new();
    lines();
    reports(&scratch);
    if (system("command -v ptxas >/dev/null 2>&1") == 0) real(&scratch);
    scratch_free(&scratch);
    return expect_failures();
}
