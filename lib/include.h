/* lib, private: the source of a program from its text and the files that it includes. */
#ifndef PIPEC_LIB_INCLUDE_H
#define PIPEC_LIB_INCLUDE_H

#include "lib/private.h"

/* Where included files come from. Neither `files` nor `folder`: includes are refused */
typedef struct SourceOrigin {
    const PipecFile *files; /* these, by their paths; NULL: those of the folder */
    size_t count;
    const char *folder; /* that of the first file */
    const char *file;   /* the first file; NULL: it is no file */
    const char *shown;  /* what precedes their paths in messages: "kernels/" */
} SourceOrigin;

/* The text, which lives as long as the arena, and what it includes. After errors, which are
 * reported at their includes, the files that were read before. */
Source *include_all(Arena *arena, const char *name, const char *text, size_t length,
                    const SourceOrigin *from, Diags *diags);
/* That of a file, or of a text of this name (path: NULL, or "-") */
SourceOrigin include_origin(Arena *arena, const PipecOptions *options, const char *path,
                            const char *name);

#endif
