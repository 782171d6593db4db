/* libFuzzer: arbitrary bytes as a .npy file. The first byte selects the wanted type, the rest is
 * the file. An array that is read has the size of its shape, and is the same after it was
 * written and read again. Build with -fsanitize=fuzzer,address,undefined. */
#include "launch/launch.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static bool put(const char *name, const uint8_t *bytes, size_t count) {
    FILE *stream = fopen(name, "wb");
    if (stream == NULL) return false;
    bool fine = fwrite(bytes, 1, count, stream) == count;
    return fclose(stream) == 0 && fine;
}

static void round_trip(Arena *arena, const char *name, const Array *array, Diags *diags) {
    Array back;
    assert(npy_write(arena, name, array, diags));
    assert(npy_read(arena, name, array->type, &back, diags));
    assert(back.rank == array->rank && back.bytes == array->bytes);
    assert(back.bytes == 0 || memcmp(back.data, array->data, back.bytes) == 0);
    array_free(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    if (count == 0) return 0;
    char name[64];
    snprintf(name, sizeof name, "/dev/shm/pipec-fuzz-%ld.npy", (long)getpid());
    Element type = (Element)(bytes[0] % E_COUNT);
    if (!put(name, bytes + 1, count - 1)) return 0;
    Arena *arena = arena_new();
    Diags *diags = diags_new(arena, NULL);
    Array array;
    if (npy_read(arena, name, type, &array, diags)) {
        assert(diags->items.count == 0 && array.bytes < count && array.rank >= 1 &&
               array.rank <= MAX_RANK);
        round_trip(arena, name, &array, diags);
        array_free(&array);
    } else {
        assert(diags->errors == 1 && array.block == NULL);
    }
    arena_free(arena);
    unlink(name);
    return 0;
}
