/* codegen: how does the machine say it. The door of the floor: Prog -> PTX text + Manifest. */
#ifndef PIPEC_CODEGEN_H
#define PIPEC_CODEGEN_H

#include "prog/prog.h"
#include "launch/manifest.h"

typedef struct CodegenOptions {
    bool watchdog; /* compile the watchdog of the waits in */
} CodegenOptions;

/* Writes the PTX text of a kernel that check/ lets pass, and fills the manifest. */
void codegen_emit(Arena *arena, const Prog *prog, const CodegenOptions *options, Str *ptx,
                  Manifest *manifest);

/* What was derived and why: pipes, barriers, counts, bytes, layouts; roles, registers, copies, matrix
 * instructions, waits, loads; the map of shared memory. The same as text and as JSON, both in the
 * arena of `text` (docs/report.md). */
void codegen_report(const Prog *prog, const Manifest *manifest, Str *text, Str *json);

#endif
