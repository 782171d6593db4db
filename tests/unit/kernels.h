/* Shared by tests of kernels that are loaded by the library, on the stand-in driver. */
#ifndef TESTS_KERNELS_H
#define TESTS_KERNELS_H

#include "include/pipec.h"
#include "tests/unit/standin.h"

#include <stddef.h>

static const char kernels_copy[] =
    "kernel copy(X: f32[N], out Y: f32[N]) for sm_90a {\n"
    "    grid (t: ceil(N, 256));\n"
    "    pipe p[2] load -> store { x: f32[256]; }\n"
    "    role load:  1 warp { for t in grid { produce <p> as s { s.x[i] = X[t*256 + i]; } } }\n"
    "    role store: 1 warp { for t in grid { consume <p> as s { Y[t*256 + i] = s.x[i]; } } }\n"
    "}\n";

static inline PipecProgram *compile(const char *text) {
    PipecProgram *program = pipec_compile(text, strlen(text), NULL);
    if (!EXPECT(pipec_program_status(program) == PIPEC_FINE))
        fputs(pipec_diagnostics_text(pipec_program_diagnostics(program)), stderr);
    return program;
}

static inline bool has_code(const PipecDiagnostics *diagnostics, const char *code) {
    for (size_t i = 0; i < pipec_diagnostics_count(diagnostics); i++)
        if (strcmp(pipec_diagnostics_get(diagnostics, i)->code, code) == 0) return true;
    return false;
}

/* True: a load ends with this status and, unless NULL, this code. */
static inline bool loads(PipecProgram *program, int device, PipecKernel **kernel,
                         PipecStatus status, const char *code) {
    PipecDiagnostics *diagnostics;
    PipecStatus got = pipec_kernel_load(program, device, kernel, &diagnostics);
    bool fine =
        got == status && (*kernel != NULL) == (status == PIPEC_FINE) &&
        (code == NULL ? diagnostics == NULL : diagnostics != NULL && has_code(diagnostics, code));
    if (!fine && diagnostics != NULL) fputs(pipec_diagnostics_text(diagnostics), stderr);
    pipec_diagnostics_free(diagnostics);
    return fine;
}

static inline PipecLaunch launch_of(const PipecArgument *arguments, size_t count) {
    return (PipecLaunch){.size = sizeof(PipecLaunch),
                         .argument_size = sizeof *arguments,
                         .arguments = arguments,
                         .count = count};
}

/* True: a launch is fine, or is refused with this code */
static inline bool launches(PipecKernel *kernel, const PipecLaunch *launch, const char *code) {
    PipecDiagnostics *diagnostics;
    PipecStatus status = pipec_kernel_launch(kernel, launch, &diagnostics);
    bool fine = code == NULL ? status == PIPEC_FINE && diagnostics == NULL
                             : status == PIPEC_UNUSABLE && diagnostics != NULL &&
                                   has_code(diagnostics, code);
    if (!fine && diagnostics != NULL) fputs(pipec_diagnostics_text(diagnostics), stderr);
    pipec_diagnostics_free(diagnostics);
    return fine;
}

#endif
