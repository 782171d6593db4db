/* lib: a bounded number of loaded kernels. A slot leaves the list under the lock, and only if no
 * launch uses it: then no thread can find its kernel, and the module is unloaded without the lock.
 * The driver ends the launches of a module before it unloads it. */
#include "lib/pool.h"

#include <time.h>

void pool_open(Pool *pool, const Loader *loader, size_t most) {
    pthread_condattr_t monotonic;
    *pool = (Pool){.loader = loader, .most = most > 0 ? most : LOADED_MOST};
    pthread_mutex_init(&pool->lock, NULL); /* these cannot fail: nothing is allocated */
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void unload(const Pool *pool, Slot slot) {
    pool->loader->free(slot.kernel);
    pipec_program_free(slot.program);
}

void pool_close(Pool *pool) {
    for (Slot *next, *at = pool->loaded; at != NULL; at = next) {
        next = at->next;
        if (!at->stays) unload(pool, *at);
    }
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
}

void pool_settle(Pool *pool) {
    pthread_mutex_lock(&pool->lock);
    while (pool->threads > 0) pool_wait(pool, 0);
    pthread_mutex_unlock(&pool->lock);
}

/* Needs the lock */
static void count(const Pool *pool, size_t *loaded, size_t *captured) {
    *loaded = *captured = 0;
    for (const Slot *at = pool->loaded; at != NULL; at = at->next) {
        ++*loaded;
        *captured += pool->loader->is_captured(at->kernel);
    }
}

void pool_count(Pool *pool, size_t *loaded, size_t *captured) {
    pthread_mutex_lock(&pool->lock);
    count(pool, loaded, captured);
    pthread_mutex_unlock(&pool->lock);
}

bool pool_use(Pool *pool, Slot *slot) {
    if (slot->kernel == NULL) return false;
    atomic_fetch_add(&slot->users, 1);
    slot->used = ++pool->clock;
    return true;
}

void pool_release(Slot *slot) { atomic_fetch_sub(&slot->users, 1); }

void pool_add(Pool *pool, Slot *slot, PipecKernel *kernel, PipecProgram *program) {
    slot->kernel = kernel;
    slot->program = program;
    slot->used = ++pool->clock;
    slot->next = pool->loaded;
    pool->loaded = slot;
}

/* Where the list has the one that was not used for longest, of those that can be unloaded */
static Slot **find_oldest(Pool *pool) {
    Slot **oldest = NULL;
    for (Slot **at = &pool->loaded; *at != NULL; at = &(*at)->next)
        if (!(*at)->stays && atomic_load(&(*at)->users) == 0 &&
            !pool->loader->is_captured((*at)->kernel) &&
            (oldest == NULL || (*at)->used < (*oldest)->used))
            oldest = at;
    return oldest;
}

static bool take_oldest(Pool *pool, Slot *out) {
    size_t loaded, captured;
    pthread_mutex_lock(&pool->lock);
    count(pool, &loaded, &captured);
    Slot **oldest = loaded - captured > pool->most ? find_oldest(pool) : NULL;
    if (oldest != NULL) {
        Slot *slot = *oldest;
        *out = (Slot){.kernel = slot->kernel, .program = slot->program};
        *oldest = slot->next;
        slot->kernel = NULL;
        slot->program = NULL;
    }
    pthread_mutex_unlock(&pool->lock);
    return oldest != NULL;
}

void pool_trim(Pool *pool) {
    Slot old;
    while (take_oldest(pool, &old)) unload(pool, old);
}

double pool_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

bool pool_wait(Pool *pool, double until) {
    if (until <= 0) return pthread_cond_wait(&pool->changed, &pool->lock) == 0;
    struct timespec time = {.tv_sec = (time_t)until,
                            .tv_nsec = (long)((until - (double)(time_t)until) * 1e9)};
    return pthread_cond_timedwait(&pool->changed, &pool->lock, &time) == 0;
}
