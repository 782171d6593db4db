/* The stand-in driver (tests/standin/libcuda.c), from a test. */
#ifndef TESTS_UNIT_STANDIN_H
#define TESTS_UNIT_STANDIN_H

#include "runtime/runtime.h"
#include "tests/standin/standin.h"
#include "tests/unit/expect.h"
#include "tests/unit/sample.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

/* Sets PIPEC_LIBCUDA to the stand-in's file if it is unset: ../standin/libcuda.so.1, relative to
 * the test's program. */
static inline void standin_name(void) {
    char file[4096];
    ssize_t length = readlink("/proc/self/exe", file, sizeof file - 64);
    setenv("PIPEC_PTXAS", "", 0); /* the driver loads the PTX, also where there is a ptxas */
    if (getenv("PIPEC_LIBCUDA") != NULL || length < 0) return;
    file[length] = 0;
    char *slash = strrchr(file, '/');
    if (slash != NULL) strcpy(slash, "/../standin/libcuda.so.1");
    setenv("PIPEC_LIBCUDA", file, 1);
}

/* Opens the stand-in a second time, so that it stays loaded and keeps its counts between
 * runtimes. Ends the test if it does not load. */
static inline Standin *standin_open(void) {
    standin_name();
    const char *file = getenv("PIPEC_LIBCUDA");
    void *library = file != NULL ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    Standin *standin = library != NULL ? dlsym(library, "standin") : NULL;
    if (standin == NULL) {
        fprintf(stderr, "the stand-in driver (tests/standin/libcuda.c) is not at %s\n",
                file != NULL ? file : "any place");
        exit(1);
    }
    return standin;
}

static inline void standin_says(const char *words) { setenv("PIPEC_STANDIN", words, 1); }

static inline bool standin_is_clean(const Standin *standin) {
    return standin->contexts == 0 && standin->modules == 0 && standin->allocations == 0 &&
           standin->host_allocations == 0 && standin->streams == 0 && standin->events == 0 &&
           standin->pushed == 0 && standin->stale == 0;
}

#endif
