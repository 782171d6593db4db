/* The parts of the benchmarks that need no GPU: number formats, quantiles, the rows and their
 * kernels, the plot. */
#include "bench/measure.h"
#include "bench/plot.h"
#include "bench/rows.h"
#include "bench/variant.h"
#include "emulator/emulator.h"
#include "tests/unit/expect.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static void formats(void) {
    for (int bits = 0; bits < 256; bits++) {
        double value = measure_from_e4m3((uint8_t)bits);
        if ((bits & 0x7f) == 0x7f)
            EXPECT(isnan(value));
        else
            EXPECT(measure_e4m3(value) == bits);
    }
    /* halfway: the even neighbour, otherwise the nearer one */
    for (int bits = 0; bits < 0x7e; bits++) {
        double low = measure_from_e4m3((uint8_t)bits),
               high = measure_from_e4m3((uint8_t)(bits + 1));
        EXPECT(low < high);
        EXPECT(measure_e4m3((low + high) / 2) == (bits & 1 ? bits + 1 : bits));
        EXPECT(measure_e4m3(low + (high - low) * 0.49) == bits);
        EXPECT(measure_e4m3(low + (high - low) * 0.51) == bits + 1);
    }
    EXPECT(measure_from_e4m3(0x7e) == 448 && measure_e4m3(1e9) == 0x7e &&
           measure_e4m3(-1e9) == 0xfe);
    EXPECT(measure_bf16(1) == 0x3f80 && measure_from_bf16(0xc000) == -2);
    EXPECT(measure_bf16(1 + 0x1p-8) == 0x3f80 && measure_bf16(1 + 3 * 0x1p-8) == 0x3f82);
}

static void quantiles(void) {
    double values[] = {4, 1, 3, 2};
    EXPECT(measure_median(values, 4) == 2.5 && values[0] == 1 && values[3] == 4);
    EXPECT(measure_quantile(values, 4, 0) == 1 && measure_quantile(values, 4, 1) == 4);
    EXPECT(measure_quantile(values, 4, 0.25) == 1.75);
    EXPECT(measure_median(values, 1) == 1);
    EXPECT(isnan(measure_median(values, 0)));
}

/* Every row has a kernel that compiles and, if ptxas is found, assembles without a warning. */
static void rows_are_fit(void) {
    bool ptxas = system("ptxas --version >/dev/null 2>&1") == 0;
    const char *peer;
    EXPECT(row_count == 9 && row_named("nothing") == NULL);
    for (int i = 0; i < row_count; i++) {
        const Row *row = &rows[i];
        EXPECT(row_named(row->name) == row);
        EXPECT(row->lt > 0 && row->target > row->lt && row_factor(row, &peer) >= 1);
        Variant variant;
        if (!EXPECT(variant_compile(&variant, row->kernel, contest_parameters)) || !ptxas) continue;
        char path[] = "/tmp/pipec-bench-XXXXXX";
        int file = mkstemp(path);
        if (!EXPECT(file >= 0)) continue;
        close(file);
        EXPECT(pipec_program_assemble(variant.program, path) == PIPEC_FINE);
        const PipecDiagnostics *diagnostics = pipec_program_diagnostics(variant.program);
        if (!EXPECT(pipec_diagnostics_count(diagnostics) == 0))
            fprintf(stderr, "%s: %s", row->kernel, pipec_diagnostics_text(diagnostics));
        pipec_program_free(variant.program);
        unlink(path);
    }
    EXPECT(row_factor(row_named("2048"), &peer) == 598.0 / 517 && strcmp(peer, "DeepGEMM") == 0);
    EXPECT(row_factor(row_named("8192"), &peer) == 1 && peer[0] == 0);
    EXPECT(row_factor(&(Row){.lt = 0}, &peer) == 1);
}

static int occurrences(const char *text, const char *word) {
    int count = 0;
    for (; (text = strstr(text, word)) != NULL; text++) count++;
    return count;
}

static void plots(void) {
    const PlotRow two[] = {{"8192 <a & b>", {800, 790, NAN}, {795, 780, NAN}, {805, 799, NAN}, 949},
                           {"unmeasured", {NAN, NAN, NAN}, {NAN, NAN, NAN}, {NAN, NAN, NAN}, NAN}};
    Plot plot = {"title", "TFLOP/s", "limit", {"ours", "one", "two"}, two, 2};
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    EXPECT(plot_write(&plot, to));
    fclose(to);
    EXPECT(strncmp(text, "<svg xmlns=", 11) == 0 && strcmp(text + length - 7, "</svg>\n") == 0);
    EXPECT(strstr(text, "8192 &lt;a &amp; b&gt;") != NULL && strstr(text, "nan") == NULL &&
           strstr(text, "inf") == NULL);
    EXPECT(occurrences(text, "<rect") == 1 + 3 + 2); /* background, legend, bars */
    EXPECT(occurrences(text, "#c03030") == 2);       /* the limit, in the legend and on its row */
    EXPECT(occurrences(text, "<text") == occurrences(text, "</text>"));
    free(text);
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL) return;
    EXPECT(!plot_write(&plot, full));
    fclose(full);
}

/* Without ptxas too: the emulator reads the kernels of the limits. */
static void limits_are_read(void) {
    Arena *arena = arena_new();
    char *text = arena_alloc(arena, 1 << 20);
    FILE *file = fopen("bench/limits.ptx", "rb");
    if (!EXPECT(file != NULL)) return;
    size_t length = fread(text, 1, (1 << 20) - 1, file);
    text[length] = 0;
    fclose(file);
    EXPECT(occurrences(text, ".visible .entry limit_") >= 4);
    EXPECT(emulator_accepts(arena, text, length, diags_new(arena, NULL)));
    arena_free(arena);
}

int main(void) {
    formats();
    quantiles();
    rows_are_fit();
    plots();
    limits_are_read();
    return expect_failures();
}
