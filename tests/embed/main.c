/* Calls the functions of docs/embedding.md, whose blocks are included: on the emulator and, with a
 * driver, on a device, whose memory is that of the stand-in: the host's. */
#include "embedding.c"

#include <stdlib.h>
#include <string.h>

static uint64_t allocate(size_t bytes) {
    return (uint64_t)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
}

/* The same program from its manifest and PTX: described alike, and launched */
static int again(PipecProgram *program, uint64_t x, bool on_device) {
    size_t length;
    const char *ptx = pipec_program_ptx(program, &length);
    const char *manifest = pipec_program_manifest(program);
    PipecProgram *other = without_source(manifest, strlen(manifest), ptx, length);
    if (other == NULL || without_source("{}", 2, ptx, length) != NULL) return 1;
    int wrong = strcmp(pipec_program_head(other), pipec_program_head(program)) != 0;
    PipecKernel *kernel = load(other, 0);
    wrong = wrong || (kernel != NULL) != on_device ||
            (on_device && launch(kernel, other, x, 5, 20, allocate, NULL));
    pipec_kernel_free(kernel);
    pipec_program_free(other);
    return wrong;
}

int main(int argc, char **argv) {
    static float x[6400] __attribute__((aligned(256)));
    PipecProgram *program = argc > 1 ? compile(argv[1], 128) : NULL;
    if (program == NULL || compile("no such file", 128) != NULL) return 2;
    describe(program);
    PipecKernel *kernel = load(program, 0);
    bool on_device = argc > 2 && strcmp(argv[2], "device") == 0;
    if ((kernel != NULL) != on_device) return 3;
    int wrong = on_device
                    ? launch(kernel, program, (uint64_t)(uintptr_t)x, 64, 100, allocate, NULL) ||
                          launch(kernel, program, (uint64_t)(uintptr_t)x, 1, 4, allocate, NULL)
                    : run(program, 3, 200);
    wrong = wrong || tuned(program, 64, 100) != NULL ||
            again(program, (uint64_t)(uintptr_t)x, on_device);
    pipec_kernel_free(kernel);
    pipec_program_free(program);
    puts(wrong ? "wrong" : "right");
    return wrong;
}
