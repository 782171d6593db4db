/* Opens the GPU once for all programs of a test. */
#include "tests/generate/generate.h"

#include "runtime/runtime.h"

#include <stdio.h>

Runtime *open_gpu(Arena *arena, int *failed) {
    RuntimeLack lack;
    const char *why = "";
    Runtime *runtime = runtime_open(arena, -1, "sm_90a", 8, 0, &lack, &why);
    if (runtime != NULL) return runtime;
    printf("gpu: FAILED, %s\n", why);
    (*failed)++;
    return NULL;
}
