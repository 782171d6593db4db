/* codegen: Prog with Code and plans -> PTX text + Manifest. Public header of the floor. */
#ifndef PIPEC_CODEGEN_H
#define PIPEC_CODEGEN_H

#include "prog/prog.h"
#include "launch/manifest.h"

typedef struct CodegenOptions {
    /* compile a watchdog into the waits */
    bool watchdog;
} CodegenOptions;

/* Writes the PTX text of a kernel that check/ accepted, and fills the manifest. */
void codegen_emit(Arena *arena, const Prog *prog, const CodegenOptions *options, Str *ptx,
                  Manifest *manifest);

/* What was derived, and why: pipes, barriers, counts, bytes, layouts; roles, registers, copies,
 * matrix instructions, waits, loads; the map of shared memory. The same facts as text and as
 * JSON, both in the arena of `text` (docs/report.md). */
void codegen_report(const Prog *prog, const Manifest *manifest, Str *text, Str *json);

#endif
