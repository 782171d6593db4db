/* python: what a run on the emulator does now and then, while it has given up the GIL: it handles
 * signals, such as that of Ctrl-C. */
#include "python/src/private.h"

#include <time.h>

#define EVERY_NANOSECONDS 100000000

static int64_t nanoseconds(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void watch_begin(Watch *watch) {
    *watch = (Watch){.last = nanoseconds()};
    watch->thread = PyEval_SaveThread();
}

bool watch(void *data, const PipecProgress *progress) {
    Watch *it = data;
    int64_t now = nanoseconds();
    (void)progress;
    if (now >= it->last && now - it->last < EVERY_NANOSECONDS) return true;
    PyEval_RestoreThread(it->thread);
    it->raised = PyErr_CheckSignals() != 0;
    it->thread = PyEval_SaveThread();
    it->last = now;
    return !it->raised;
}

void watch_end(const Watch *watch) { PyEval_RestoreThread(watch->thread); }
