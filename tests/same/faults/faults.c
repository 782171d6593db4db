/* Faults that a compiler may have, for the tests of tools/same.sh: faults/same-test is same-test in
 * which the linker replaces functions of the library by these. SAME_FAULT names the fault. */
#include "include/pipec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

PipecProgram *__real_pipec_compile(const char *text, size_t length, const PipecOptions *options);
PipecProgram *__wrap_pipec_compile(const char *text, size_t length, const PipecOptions *options);
PipecStatus __real_pipec_program_status(const PipecProgram *program);
PipecStatus __wrap_pipec_program_status(const PipecProgram *program);
const char *__real_pipec_diagnostics_text(const PipecDiagnostics *diagnostics);
const char *__wrap_pipec_diagnostics_text(const PipecDiagnostics *diagnostics);
const char *__real_pipec_diagnostics_json(const PipecDiagnostics *diagnostics);
const char *__wrap_pipec_diagnostics_json(const PipecDiagnostics *diagnostics);
const char *__real_pipec_program_emit(PipecProgram *program, const char *form);
const char *__wrap_pipec_program_emit(PipecProgram *program, const char *form);
const char *__real_pipec_program_ptx(const PipecProgram *program, size_t *length);
const char *__wrap_pipec_program_ptx(const PipecProgram *program, size_t *length);
const char *__real_pipec_program_manifest(PipecProgram *program);
const char *__wrap_pipec_program_manifest(PipecProgram *program);

static int compiled; /* programs, by this process */

static bool has(const char *fault) {
    const char *wanted = getenv("SAME_FAULT");
    return wanted != NULL && strcmp(wanted, fault) == 0;
}

/* The text with another one in the place of its first `from`; it is never freed. */
static const char *changed(const char *text, const char *from, const char *to) {
    const char *at = text != NULL ? strstr(text, from) : NULL;
    char *out = NULL;
    if (at == NULL || asprintf(&out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) < 0)
        return text;
    return out;
}

/* The first `mov` and the instruction after it change their places. */
static const char *swapped(const char *text) {
    const char *first = text != NULL ? strstr(text, "\n    mov") : NULL;
    if (first == NULL) return text;
    const char *second = strchr(first + 1, '\n'), *end = second ? strchr(second + 1, '\n') : NULL;
    char *out = NULL;
    if (end == NULL || asprintf(&out, "%.*s%.*s%.*s%s", (int)(first - text), text,
                                (int)(end - second), second, (int)(second - first), first, end) < 0)
        return text;
    return out;
}

PipecProgram *__wrap_pipec_compile(const char *text, size_t length, const PipecOptions *options) {
    compiled++;
    bool chosen = strstr(text, "kernel axpy(") != NULL;
    if (has("crash") && chosen) abort();
    for (volatile int i = 0; has("endless") && chosen;) i = i + 1;
    return __real_pipec_compile(text, length, options);
}

PipecStatus __wrap_pipec_program_status(const PipecProgram *program) {
    PipecStatus status = __real_pipec_program_status(program);
    return has("status") && status == PIPEC_REFUSED ? PIPEC_INCOMPLETE : status;
}

const char *__wrap_pipec_diagnostics_text(const PipecDiagnostics *diagnostics) {
    const char *text = __real_pipec_diagnostics_text(diagnostics);
    return has("message") ? changed(text, "released in", "releases in") : text;
}

const char *__wrap_pipec_diagnostics_json(const PipecDiagnostics *diagnostics) {
    const char *text = __real_pipec_diagnostics_json(diagnostics);
    return has("json") ? changed(text, "\"line\":", "\"row\":") : text;
}

const char *__wrap_pipec_program_emit(PipecProgram *program, const char *form) {
    const char *text = __real_pipec_program_emit(program, form);
    return has("code") && strcmp(form, "code") == 0 ? changed(text, "loop", "loops") : text;
}

const char *__wrap_pipec_program_ptx(const PipecProgram *program, size_t *length) {
    const char *text = __real_pipec_program_ptx(program, length);
    char note[64];
    snprintf(note, sizeof note, "\n// %d\n", has("random") ? (int)getpid() : compiled);
    if (has("random") || has("order")) return changed(text, "\n", note);
    if (has("wait")) return changed(text, "    griddepcontrol.wait;\n", "");
    if (has("registers")) return changed(text, "%r1,", "%r1001,");
    return has("instructions") ? swapped(text) : text;
}

const char *__wrap_pipec_program_manifest(PipecProgram *program) {
    const char *text = __real_pipec_program_manifest(program);
    return has("manifest") ? changed(text, "\"threads\": ", "\"threads\": 1") : text;
}
