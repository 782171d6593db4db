/* What a caller asks of a program before a launch: its parameters, statics, preconditions, claims
 * and head, and the extents of tensors that it allocates. */
#include "include/pipec.h"
#include "tests/unit/expect.h"

#include <stddef.h>

static const char text[] =
    "kernel k(A: bf16[M, 2*K], out C: f32[M, N], inout W: f32[K, 8], S: f32[N], s: f32, n: i32)\n"
    "        for sm_90a {\n"
    "    static T = 64 in {32, 64};\n"
    "    static SCALE = 0.5;\n"
    "    requires n > 0;\n"
    "    ensures { C[i, j]   == S[j] // the same for all rows\n"
    "              * SCALE;\n"
    "              W[i, j] == old W[i, j]; }\n"
    "    grid (t: ceil(M, T), c: N);\n"
    "    role all: 1 warp {\n"
    "        for t, c in grid { C[t*T + i, c] = S[c] * SCALE for i in 0 .. T; }\n"
    "    }\n"
    "}\n";

enum { A, C, W, S, SCALAR, COUNT, PARAMETERS };

static bool has_code(const PipecDiagnostics *diagnostics, const char *code, const char *words) {
    for (size_t i = 0; diagnostics != NULL && i < pipec_diagnostics_count(diagnostics); i++)
        if (strcmp(pipec_diagnostics_get(diagnostics, i)->code, code) == 0 &&
            strstr(pipec_diagnostics_text(diagnostics), words) != NULL)
            return true;
    return false;
}

static void parameters(const PipecProgram *program) {
    PipecParameter it = {.size = sizeof it};
    EXPECT(pipec_program_parameter(program, A, &it) && strcmp(it.name, "A") == 0);
    EXPECT(strcmp(it.type, "bf16") == 0 && it.element_bytes == 2 && it.is_tensor);
    EXPECT(it.mode == PIPEC_IN && it.rank == 2 && strcmp(it.extents[0], "M") == 0 &&
           strcmp(it.extents[1], "2 * K") == 0 && it.extents[2] == NULL && it.alignment >= 1);
    EXPECT(pipec_program_parameter(program, C, &it) && it.mode == PIPEC_OUT);
    EXPECT(pipec_program_parameter(program, W, &it) && it.mode == PIPEC_INOUT &&
           strcmp(it.extents[1], "8") == 0);
    EXPECT(pipec_program_parameter(program, COUNT, &it) && !it.is_tensor && it.rank == 0 &&
           strcmp(it.type, "i32") == 0 && it.extents[0] == NULL);
    EXPECT(!pipec_program_parameter(program, PARAMETERS, &it));
    it.size = 0;
    EXPECT(!pipec_program_parameter(program, A, &it));
    EXPECT(strcmp(pipec_program_head(program),
                  "kernel k(A: bf16[M, 2 * K], out C: f32[M, N], inout W: f32[K, 8], S: f32[N], s: "
                  "f32, n: i32) for sm_90a") == 0);
}

static void others(const PipecProgram *program) {
    PipecStatic it = {.size = sizeof it};
    const char *reason = NULL;
    EXPECT(pipec_program_static(program, 0, &it) && strcmp(it.name, "T") == 0);
    EXPECT(it.value.integer == 32 && !it.value.is_float && strcmp(it.value.name, "T") == 0);
    EXPECT(it.choice_count == 2 && it.choices[0] == 32 && it.choices[1] == 64);
    EXPECT(pipec_program_static(program, 1, &it) && it.value.is_float && it.value.number == 0.5 &&
           it.choice_count == 0);
    EXPECT(!pipec_program_static(program, 2, &it));
    size_t found = 0;
    for (size_t i = 0; pipec_program_precondition(program, i, &reason) != NULL; i++)
        found += strcmp(pipec_program_precondition(program, i, NULL), "n > 0") == 0;
    EXPECT(found == 1 && reason != NULL);
    EXPECT(strcmp(pipec_program_ensures(program, 0), "C[i, j] == S[j] * SCALE") == 0);
    EXPECT(strcmp(pipec_program_ensures(program, 1), "W[i, j] == old W[i, j]") == 0);
    EXPECT(pipec_program_ensures(program, 2) == NULL);
}

/* ---- extents --------------------------------------------------------------------------------- */

typedef struct Wanted {
    bool given[PARAMETERS];
    PipecArgument arguments[PARAMETERS];
    PipecValue extents[2];
    size_t count;
} Wanted;

static bool infers(const PipecProgram *program, Wanted *it, const char *code, const char *words) {
    PipecDiagnostics *diagnostics;
    PipecStatus status =
        pipec_program_infer(program, it->arguments, sizeof it->arguments[0], PARAMETERS, it->given,
                            it->extents, it->count, &diagnostics);
    bool fine = code == NULL ? status == PIPEC_FINE && diagnostics == NULL
                             : status == PIPEC_UNUSABLE && has_code(diagnostics, code, words);
    if (!fine && diagnostics != NULL) fputs(pipec_diagnostics_text(diagnostics), stderr);
    pipec_diagnostics_free(diagnostics);
    return fine;
}

static void extents(const PipecProgram *program) {
    Wanted all = {.given = {[A] = true, [S] = true, [SCALAR] = true, [COUNT] = true},
                  .arguments = {[A] = {.extents = {100, 48}}, [S] = {.extents = {7}}}};
    Wanted it = all;
    EXPECT(infers(program, &it, NULL, NULL));
    EXPECT(it.arguments[C].extents[0] == 100 && it.arguments[C].extents[1] == 7 &&
           it.arguments[W].extents[0] == 24 && it.arguments[W].extents[1] == 8);
    it.arguments[A].extents[1] = 0;
    EXPECT(infers(program, &it, NULL, NULL) && it.arguments[W].extents[0] == 0);
    it.arguments[A].extents[1] = 49;
    EXPECT(infers(program, &it, "P0604", "axis 1 of `A` has 49 elements"));
    it.arguments[A].extents[1] = -2;
    EXPECT(infers(program, &it, "P0605", "is not between 0 and"));
    it = all, it.given[S] = false;
    EXPECT(infers(program, &it, "P0603", "no value for extent `N`"));
    it.extents[0] = (PipecValue){.name = "N", .integer = 9}, it.count = 1;
    EXPECT(infers(program, &it, NULL, NULL) && it.arguments[S].extents[0] == 9 &&
           it.arguments[C].extents[1] == 9);
    it.given[S] = true, it.arguments[S].extents[0] = 7;
    EXPECT(infers(program, &it, "P0604", "here `N` = 9"));
    it.given[S] = false, it.extents[0].integer = -1;
    EXPECT(infers(program, &it, "P0605", "extent `N` is -1"));
    it.extents[0] = (PipecValue){.name = "n", .integer = 1};
    EXPECT(infers(program, &it, "P0601", "has no extent `n`"));
    it = all, it.given[W] = true, it.arguments[W].extents[0] = 25, it.arguments[W].extents[1] = 8;
    EXPECT(infers(program, &it, "P0604", "axis 0 of `W` has 25 elements, but its extent is `K`"));
    it = all;
    EXPECT(pipec_program_infer(program, it.arguments, sizeof it.arguments[0], 3, it.given, NULL, 0,
                               NULL) == PIPEC_UNUSABLE);
    EXPECT(pipec_program_infer(program, it.arguments, 8, PARAMETERS, it.given, NULL, 0, NULL) ==
           PIPEC_UNUSABLE);
}

/* Arguments of a newer header, with zeros in its new members */
static void wider(const PipecProgram *program) {
    struct {
        PipecArgument known;
        int64_t more;
    } arguments[PARAMETERS] = {
        [A] = {.known = {.extents = {10, 20}}}, [S] = {.known = {.extents = {3}}}};
    const bool given[PARAMETERS] = {[A] = true, [S] = true};
    EXPECT(pipec_program_infer(program, &arguments[0].known, sizeof arguments[0], PARAMETERS, given,
                               NULL, 0, NULL) == PIPEC_FINE);
    EXPECT(arguments[C].known.extents[0] == 10 && arguments[W].known.extents[0] == 10);
}

static void without_manifest(void) {
    PipecOptions options = {.size = sizeof options, .check_only = true};
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    PipecParameter parameter = {.size = sizeof parameter};
    PipecStatic value = {.size = sizeof value};
    PipecDiagnostics *diagnostics;
    EXPECT(!pipec_program_parameter(program, 0, &parameter) &&
           !pipec_program_static(program, 0, &value) && pipec_program_head(program) == NULL);
    EXPECT(pipec_program_ensures(program, 0) == NULL &&
           pipec_program_precondition(program, 0, NULL) == NULL);
    EXPECT(pipec_program_infer(program, NULL, sizeof(PipecArgument), 0, NULL, NULL, 0,
                               &diagnostics) == PIPEC_UNUSABLE &&
           has_code(diagnostics, "P0919", ""));
    pipec_diagnostics_free(diagnostics);
    pipec_program_free(program);
}

int main(void) {
    const char *values[] = {"T=32"};
    PipecOptions options = {.size = sizeof options, .values = values, .value_count = 1};
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    if (EXPECT(pipec_program_manifest(program) != NULL)) {
        parameters(program);
        others(program);
        extents(program);
        wider(program);
    } else {
        fputs(pipec_diagnostics_text(pipec_program_diagnostics(program)), stderr);
    }
    pipec_program_free(program);
    without_manifest();
    return expect_failures();
}
