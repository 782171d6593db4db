/* Instructions one by one: emulator_ops.def has source bits, and the result bits of the GPU. All
 * rows make one kernel, a scope each, which is also assembled if ptxas is found. */
#include "emulator/emulator.h"

#include "tests/unit/expect.h"

#include <math.h>
#include <stdlib.h>

typedef struct Row {
    const char *kinds; /* as in emulator_ops.def */
    const char *text;
    uint64_t a, b, c, d;
} Row;

static uint32_t f(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static uint64_t g(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
#define NAN32 0x7fffffffu
#define M(x)  ((uint32_t)(x))
#define L(x)  ((uint64_t)(x))

static size_t fill_rows(Row *rows) {
    const Row table[] = {
#define OP(...) {__VA_ARGS__},
#include "tests/unit/emulator_ops.def"
#undef OP
    };
    memcpy(rows, table, sizeof table);
    return COUNT_OF(table);
}

static uint32_t width_of(char kind) { return kind == 'l' ? 8 : kind == 'h' ? 2 : 4; }

/* Names of registers have a `%`; shared and local variables must not: `%s` in a row is the
 * variable's name. */
static void emit_row(Str *out, const Row *row, size_t index) {
    static const char names[] = "dabc";
    str_add(out, "  {\n");
    for (size_t k = 0; row->kinds[k]; k++) {
        char kind = row->kinds[k];
        str_printf(out, "    .reg %s %%%c;\n",
                   kind == 'p'   ? ".pred"
                   : kind == 'l' ? ".b64"
                   : kind == 'h' ? ".b16"
                                 : ".b32",
                   names[k]);
        uint64_t value = k == 1 ? row->a : k == 2 ? row->b : row->c;
        if (k > 0)
            str_printf(out, "    mov.b%u %%%c, %lld;\n", 8 * width_of(kind), names[k],
                       (long long)value);
    }
    str_add(out, "    ");
    for (const char *at = row->text; *at; at++)
        if (at[0] == '%' && at[1] == 's' && (at[2] < 'a' || at[2] > 'z') && at++)
            str_printf(out, "buffer_%zu", index);
        else
            str_char(out, *at);
    char kind = row->kinds[0];
    if (kind == 'p')
        str_printf(out,
                   "\n    selp.u32 %%scratch, 1, 0, %%d;\n    @%%first st.global.u32 [%%out+%zu], "
                   "%%scratch;\n  }\n",
                   8 * index);
    else
        str_printf(out, "\n    @%%first st.global.b%u [%%out+%zu], %%d;\n  }\n", 8 * width_of(kind),
                   8 * index);
}

int main(void) {
    Scratch scratch = scratch_new();
    static Row rows[400];
    size_t count = fill_rows(rows);
    Str ptx = str_new(scratch.arena);
    str_add(
        &ptx,
        ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry ops(.param .u64 "
        "out)\n.reqntid 32\n{\n"
        "  .reg .b64 %out; .reg .b32 %scratch; .reg .pred %first;\n  ld.param.u64 %out, [out];\n"
        "  mov.u32 %scratch, %tid.x;\n  setp.eq.u32 %first, %scratch, 0;\n");
    for (size_t i = 0; i < count; i++) emit_row(&ptx, &rows[i], i);
    str_add(&ptx, "  ret;\n}\n");

    Manifest manifest = {.kernel = "ops"};
    vec_push(scratch.arena, &manifest.parameters,
             (ManifestParameter){.name = "out",
                                 .kind = PARAMETER_TENSOR,
                                 .mode = MODE_OUT,
                                 .type = E_U64,
                                 .rank = 1,
                                 .symbol = -1});
    vec_push(scratch.arena, &manifest.arguments, (ManifestArgument){ARGUMENT_POINTER, 0});
    Array array;
    int64_t extent = (int64_t)count;
    EXPECT(array_new(&array, E_U64, 1, &extent));
    memset(array.data, 0, array.bytes);
    Launch launch = {.manifest = &manifest,
                     .ptx = ptx.text,
                     .ptx_length = ptx.length,
                     .arrays = &array,
                     .tiles = 1};
    /* all lanes store to one address */
    EmulatorOptions options = {.races = RACES_OFF};
    RunResult result;
    RunStatus status = emulator_run(scratch.arena, &launch, &options, &result, scratch.diags);
    EXPECT(status == RUN_DONE);
    EXPECT_CLEAN(&scratch);
    for (size_t i = 0; i < count && status == RUN_DONE; i++) {
        uint64_t got;
        memcpy(&got, array.data + 8 * i, 8);
        if (got == rows[i].d) continue;
        fprintf(stderr, "%s with 0x%llx, 0x%llx, 0x%llx gives 0x%llx, expected 0x%llx\n",
                rows[i].text, (unsigned long long)rows[i].a, (unsigned long long)rows[i].b,
                (unsigned long long)rows[i].c, (unsigned long long)got,
                (unsigned long long)rows[i].d);
        failed_expectations++;
    }
    if (system("command -v ptxas >/dev/null 2>&1") == 0) {
        FILE *pipe = popen("ptxas -arch=sm_90a -o /dev/null - 2>&1", "w");
        if (EXPECT(pipe != NULL)) {
            fwrite(ptx.text, 1, ptx.length, pipe);
            EXPECT(pclose(pipe) == 0);
        }
    }
    array_free(&array);
    scratch_free(&scratch);
    return expect_failures();
}
