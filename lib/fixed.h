/* lib, private: choices that are fixed: a file that `pipec choose --save` writes, and launches
 * obey.
 */
#ifndef PIPEC_LIB_FIXED_H
#define PIPEC_LIB_FIXED_H

#include "lib/cache.h"
#include "lib/private.h"

/* Reads the file that the options of a program name into program->fixed. Errors are reported. */
void fixed_read(PipecProgram *program, const char *file, Diags *diags);
/* Adds the choice to a file, or replaces that for the same extents; `device` of it is the machine
 * that it was chosen for. False: an error was reported; the file is as it was. */
bool fixed_save(Arena *arena, const char *file, const Choice *choice, Diags *diags);
/* Those of a text and its given statics. Those of siblings are in the same file. */
Kept fixed_of(Arena *arena, const PipecProgram *program, const Choice *like);
/* The fixed choice cannot run */
void fixed_report(const PipecProgram *program, const Choice *fixed, const char *why, Diags *diags);

#endif
