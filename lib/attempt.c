/* lib: memory that runs out becomes a value. The one place where the library sets the jump that an arena takes. */
#include "lib/private.h"

bool attempt(Arena *arena, void (*work)(void *), void *data) {
    jmp_buf failed;
    if (setjmp(failed) != 0) {
        arena_on_failure(arena, NULL);
        return false;
    }
    arena_on_failure(arena, &failed);
    work(data);
    arena_on_failure(arena, NULL);
    return true;
}
