/* lib, private: shared by tuning and the look-up of its choices. */
#ifndef PIPEC_LIB_TUNE_H
#define PIPEC_LIB_TUNE_H

#include "lib/cache.h"
#include "lib/private.h"

/* The part of the key of a choice that depends on the text and the given statics */
Choice choice_of_text(Arena *arena, const PipecProgram *program);
/* The part that depends on a launch: its extents */
const char *choice_extents(Arena *arena, const Manifest *manifest, const int64_t *symbols);
/* True if each extent of the choice is within this part of that of the launch */
bool choice_is_near(const Choice *choice, const Manifest *manifest, const int64_t *symbols,
                    double within);
/* Hash of the file's tokens, which ignores comments and layout, and of pipec's version */
const char *choice_source(Arena *arena, const PipecProgram *program);
/* "BK=32", one per static that was given, sorted by name */
const char **choice_given(Arena *arena, const PipecProgram *program);
/* True if all of them are statics of the kernel */
bool choice_has_statics(const PipecProgram *program, const char *kernel);
/* The same text and options as those of a program, for its target if the kernel has it, with
 * `words` for the statics; NULL: memory ran out */
PipecProgram *program_again(const PipecProgram *program, const char *kernel,
                            const char *const *words, size_t count);

#endif
