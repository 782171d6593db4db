/* Memory of one compilation: a bump allocator, freed as a whole.
 *
 * Small objects are cut from blocks: a first one of BLOCK_MIN, then large pages; an
 * object that would waste such a block gets its own. Blocks of a freed scratch arena are kept
 * for the next one: returning pages to the system and getting them again takes longer than the
 * check of a kernel. Under AddressSanitizer every object is a separate block, so that overruns
 * inside the arena are found. Callers never see a failed allocation: the arena jumps to the
 * target that its owner has set. All arenas of a root share one meter of work and memory;
 * exceeding it also causes a jump. */
#define PIPEC_OWN_MEMORY
#include "util/util.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define OBJECT_A_BLOCK true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OBJECT_A_BLOCK true
#endif
#endif
#ifndef OBJECT_A_BLOCK
#define OBJECT_A_BLOCK false
#endif

#define BLOCK_MIN  (64u << 10)
#define LARGE_PAGE (2u << 20)
/* bytes of the first allocation of a list, at most 4 items */
#define VEC_FIRST 256

typedef struct Block Block;
struct Block {
    Block *next;
    /* bytes after the header; cut blocks: see block_size, less this header */
    size_t size;
    size_t used; /* of a spare block: bytes that are not zero */
    bool is_cut; /* holds several objects */
    char pad[7];
};
_Static_assert(sizeof(Block) % ARENA_ALIGNMENT == 0,
               "objects behind a block's header must stay aligned");

Arena *arena_new(void) {
    Arena *arena = calloc(1, sizeof *arena);
    if (!arena) return NULL;
    arena->meter = &arena->own;
    arena->own.steps_most = arena->own.bytes_most = UINT64_MAX;
    return arena;
}

Arena *arena_scratch(Arena *parent) {
    Arena *arena = arena_new();
    if (!arena) arena_fail(parent);
    arena->parent = parent;
    arena->meter = parent->meter;
    arena->next_scratch = parent->scratches;
    parent->scratches = arena;
    return arena;
}

static void forget(Arena *scratch) {
    Arena **at = &scratch->parent->scratches;
    while (*at != scratch) at = &(*at)->next_scratch;
    *at = scratch->next_scratch;
}

static Arena *root_of(Arena *arena) {
    while (arena->parent) arena = arena->parent;
    return arena;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* A block of this size lies on large pages if the system has them: the first access to each page
 * of 4 KiB costs more than the work done with it. */
static bool is_of_large_pages(size_t size) { return (sizeof(Block) + size) % LARGE_PAGE == 0; }

static void *large_pages(size_t bytes) {
    char *at =
        mmap(NULL, bytes + LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return NULL;
    size_t before = -(uintptr_t)at % LARGE_PAGE;
    if (before) (void)munmap(at, before);
    (void)munmap(at + before + bytes, LARGE_PAGE - before);
    (void)madvise(at + before, bytes, MADV_HUGEPAGE);
    return at + before;
}

/* Zeroed; NULL: no memory. */
static Block *block_new(size_t size) {
    size_t bytes = sizeof(Block) + size;
    Block *block = is_of_large_pages(size) ? large_pages(bytes) : calloc(1, bytes);
    if (block) block->size = size;
    return block;
}

static void free_blocks(Arena *arena, Block *blocks) {
    for (Block *next; blocks; blocks = next) {
        next = blocks->next;
        arena->meter->bytes -= blocks->size;
        if (is_of_large_pages(blocks->size))
            (void)munmap(blocks, sizeof(Block) + blocks->size);
        else
            free(blocks);
    }
}

/* Gives the cut blocks to the root */
static void return_blocks(Arena *arena) {
    Arena *root = root_of(arena);
    Block *others = NULL;
    for (Block *block = arena->blocks, *next; block; block = next) {
        char *start = (char *)(block + 1);
        Block **list = block->is_cut ? &root->spare : &others;
        next = block->next;
        block->used =
            start + block->size == arena->end ? (size_t)(arena->next - start) : block->size;
        block->next = *list;
        *list = block;
    }
    free_blocks(arena, others);
}

/* With its scratch arenas */
static void free_whole(Arena *arena) {
    for (Arena *scratch = arena->scratches, *next; scratch; scratch = next) {
        next = scratch->next_scratch;
        free_whole(scratch);
    }
    free_blocks(arena, arena->blocks);
    free_blocks(arena, arena->spare);
    free(arena);
}

void arena_free(Arena *arena) {
    if (!arena) return;
    if (!arena->parent) {
        free_whole(arena);
        return;
    }
    while (arena->scratches) arena_free(arena->scratches);
    arena->parent->bytes += arena->bytes;
    return_blocks(arena);
    forget(arena);
    free(arena);
}

void arena_on_failure(Arena *arena, jmp_buf *where) { arena->on_failure = where; }

void arena_fail(Arena *arena) {
    while (arena->parent) arena = arena->parent;
    if (arena->on_failure) longjmp(*arena->on_failure, 1);
    abort();
}

/* ---- the meter ------------------------------------------------------------------------------- */

Meter *arena_meter(const Arena *arena) { return arena->meter; }

void arena_end(Arena *arena) {
    jmp_buf *on_end = root_of(arena)->on_end;
    if (on_end) longjmp(*on_end, 1);
}

Budget arena_budget(Arena *arena, uint64_t steps) {
    return budget_of((Budget){arena->meter, UINT64_MAX}, steps);
}

Budget budget_of(Budget budget, uint64_t steps) {
    uint64_t left = budget_is_used(budget) ? 0 : budget.end - budget.meter->steps;
    return (Budget){budget.meter, budget.meter->steps + (left < steps ? left : steps)};
}

bool budget_is_used(Budget budget) { return budget.meter->steps >= budget.end; }

static bool reaches_end(Arena *root, void (*work)(void *), void *data) {
    jmp_buf ended;
    assert(!root->on_end);
    if (setjmp(ended) != 0) {
        root->on_end = NULL;
        return false;
    }
    root->on_end = &ended;
    work(data);
    root->on_end = NULL;
    return true;
}

bool arena_metered(Arena *arena, void (*work)(void *), void *data) {
    Arena *before = arena->scratches;
    if (reaches_end(root_of(arena), work, data)) return true;
    while (arena->scratches != before) arena_free(arena->scratches);
    return false;
}

/* ---- objects --------------------------------------------------------------------------------- */

size_t arena_bytes(const Arena *arena) { return arena->bytes; }

static Block *spare_block(Arena *arena, size_t size) {
    Block **at = &root_of(arena)->spare, *block;
    while (*at && (*at)->size != size) at = &(*at)->next;
    block = *at;
    if (!block) return NULL;
    *at = block->next;
    memset(block + 1, 0, block->used);
    return block;
}

static char *new_block(Arena *arena, size_t size, bool is_cut) {
    Block *block = is_cut ? spare_block(arena, size) : NULL;
    if (!block) {
        if (arena->meter->bytes > arena->meter->bytes_most ||
            size > arena->meter->bytes_most - arena->meter->bytes)
            arena_end(arena);
        block = block_new(size);
        if (!block) arena_fail(arena);
        arena->meter->bytes += size;
    }
    block->is_cut = is_cut;
    block->next = arena->blocks;
    arena->blocks = block;
    return (char *)(block + 1);
}

static size_t rounded_up(size_t bytes) {
    return bytes ? (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT
                 : ARENA_ALIGNMENT;
}

/* Of the next block that objects are cut from */
static size_t block_size(const Arena *arena, size_t object) {
    if (!arena->blocks && object <= BLOCK_MIN / 4) return BLOCK_MIN;
    return LARGE_PAGE;
}

/* Of the block of one object: large pages, but if overruns are to be found */
static size_t own_size(size_t bytes) {
    if (OBJECT_A_BLOCK) return bytes;
    return (sizeof(Block) + bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE - sizeof(Block);
}

/* Under AddressSanitizer no block has room, so that each object gets its own. */
void *arena_alloc_anew(Arena *arena, size_t bytes) {
    if (!bytes) return arena_alloc(arena, 1); /* each object has its own address */
    if (bytes > SIZE_MAX / 4) arena_fail(arena);
    size_t rounded = rounded_up(bytes);
    bool own = OBJECT_A_BLOCK || rounded > LARGE_PAGE / 2;
    size_t size = own ? own_size(bytes) : block_size(arena, rounded) - sizeof(Block);
    char *block = new_block(arena, size, !own);
    if (!own) {
        arena->next = block;
        arena->end = block + size;
        return arena_alloc(arena, bytes);
    }
    arena->bytes += bytes;
    arena_count(arena, 1 + bytes / ARENA_BYTES_A_STEP);
    return block;
}

/* Under AddressSanitizer no piece has room. */
void *cut_alloc_anew(Cut *cut, size_t bytes) {
    if (OBJECT_A_BLOCK || bytes > CUT_PIECE / 4) return arena_alloc(cut->arena, bytes);
    cut->next = arena_alloc(cut->arena, CUT_PIECE);
    cut->end = cut->next + CUT_PIECE;
    return cut_alloc(cut, bytes);
}

void *arena_grow(Arena *arena, void *old, size_t old_bytes, size_t new_bytes) {
    if (new_bytes <= old_bytes && old) return old;
    if (!OBJECT_A_BLOCK && old && new_bytes <= SIZE_MAX / 4) {
        /* The last object that was cut grows in place */
        size_t held = rounded_up(old_bytes), rounded = rounded_up(new_bytes);
        if ((char *)old + held == arena->next &&
            rounded - held <= (size_t)(arena->end - arena->next)) {
            arena->next += rounded - held;
            arena->bytes += new_bytes - old_bytes;
            arena_count(arena, (new_bytes - old_bytes) / ARENA_BYTES_A_STEP);
            return old;
        }
    }
    void *object = arena_alloc(arena, new_bytes);
    if (old_bytes) memcpy(object, old, old_bytes);
    return object;
}

void arena_drop(Arena *arena, void *object) {
    Block **at = &arena->blocks;
    while (*at && (void *)(*at + 1) != object) at = &(*at)->next;
    if (!*at || (*at)->is_cut) return;
    Block *block = *at;
    *at = block->next, block->next = NULL;
    free_blocks(arena, block);
}

void *arena_regrow(Arena *arena, void *old, size_t old_bytes, size_t new_bytes) {
    void *object = arena_grow(arena, old, old_bytes, new_bytes);
    bool may_own = OBJECT_A_BLOCK || rounded_up(old_bytes) > LARGE_PAGE / 2;
    if (old && object != old && may_own) arena_drop(arena, old);
    return object;
}

void arena_trim(Arena *arena, void *object, size_t bytes, size_t fewer) {
    if (OBJECT_A_BLOCK || (char *)object + rounded_up(bytes) != arena->next) return;
    arena->next = (char *)object + rounded_up(fewer);
}

char *arena_copy(Arena *arena, const char *text, size_t length) {
    if (length == SIZE_MAX) arena_fail(arena);
    char *copy = arena_alloc(arena, length + 1);
    if (length) memcpy(copy, text, length);
    return copy;
}

char *arena_vprintf(Arena *arena, const char *format, va_list args) {
    char few[256]; /* most texts are names */
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(few, sizeof few, format, args);
    if (length < 0) arena_fail(arena);
    char *text = arena_alloc(arena, (size_t)length + 1);
    if ((size_t)length < sizeof few)
        memcpy(text, few, (size_t)length);
    else
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *arena_printf(Arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

typedef void *Grow(Arena *arena, void *old, size_t old_bytes, size_t new_bytes);

static inline void reserve(Arena *arena, void **items, size_t *capacity, size_t wanted,
                           size_t item_bytes, Grow *grow) {
    if (wanted <= *capacity) return;
    size_t first = item_bytes > VEC_FIRST / 4 ? VEC_FIRST / item_bytes : 4;
    size_t larger = *capacity ? *capacity * 2 : first;
    if (larger < wanted) larger = wanted;
    size_t bytes = arena_array_bytes(arena, item_bytes, larger);
    *items = *capacity ? grow(arena, *items, *capacity * item_bytes, bytes)
                       : arena_alloc(arena, bytes); /* most lists stay short */
    *capacity = larger;
}

void vec_reserve(Arena *arena, void **items, size_t *capacity, size_t wanted, size_t item_bytes) {
    reserve(arena, items, capacity, wanted, item_bytes, arena_grow);
}

void vec_reserve_alone(Arena *arena, void **items, size_t *capacity, size_t wanted,
                       size_t item_bytes) {
    reserve(arena, items, capacity, wanted, item_bytes, arena_regrow);
}
