/* lib: turns lack of memory into a return value. The only place that sets the jump target of an
 * arena. */
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
