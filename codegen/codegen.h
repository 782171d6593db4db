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

#endif
