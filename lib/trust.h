/* lib: files that no other user can have written. Code that runs on the GPU is read only from
 * these: each folder on the way, and the file, belong to the user or to root, and no one else may
 * write them. Checked on open descriptors, so that a check holds for what is read afterwards. */
#ifndef PIPEC_LIB_TRUST_H
#define PIPEC_LIB_TRUST_H

#include "util/util.h"

#include <sys/stat.h>

/* NULL, or why the file or folder is not trusted: its owner or its mode */
const char *trust_fault(Arena *arena, const char *path, const struct stat *about);

/* Opens the folder for the functions of openat, through folders and links that are all trusted; a
 * folder above it may be writable for all if it is sticky, as /tmp. Missing ones are made if
 * `make`, with mode 0700 whatever the umask. -1: *fault says what is not trusted, or it is NULL and
 * errno says why. */
int trust_open_folder(Arena *arena, const char *path, bool make, const char **fault);

#endif
