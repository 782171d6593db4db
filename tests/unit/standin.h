/* The stand-in driver (tests/standin/libcuda.c) from a test: PIPEC_LIBCUDA must name it. */
#ifndef TESTS_UNIT_STANDIN_H
#define TESTS_UNIT_STANDIN_H

#include "runtime/runtime.h"
#include "tests/standin/standin.h"
#include "tests/unit/expect.h"
#include "tests/unit/sample.h"

#include <dlfcn.h>
#include <stdlib.h>

/* Opened here too, so that it stays loaded and keeps its counts between runtimes. Ends the test where it does not load. */
static inline Standin *standin_open(void) {
    const char *file = getenv("PIPEC_LIBCUDA");
    void *library = file != NULL ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    Standin *standin = library != NULL ? dlsym(library, "standin") : NULL;
    if (standin == NULL) {
        fprintf(stderr, "PIPEC_LIBCUDA must name the stand-in driver (tests/standin/libcuda.c); it names %s\n",
                file != NULL ? file : "nothing");
        exit(1);
    }
    return standin;
}

static inline void standin_says(const char *words) { setenv("PIPEC_STANDIN", words, 1); }

static inline bool standin_is_clean(const Standin *standin) {
    return standin->contexts == 0 && standin->modules == 0 && standin->allocations == 0 &&
           standin->host_allocations == 0 && standin->streams == 0 && standin->events == 0 && standin->pushed == 0;
}

#endif
