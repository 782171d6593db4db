/* Sizes and contents of memory at which the two ends of a pipe are acquired unequally often: the
 * smallest that are found. */
#include "check/pipes/counts.h"
#include "check/sizes/trace.h"
#include "prog/eval.h"

#define CELL_VALUES 8 /* most values tried for a cell of memory */
#define CELLS_MOST  2 /* most cells tried with all of them */
#define SIZES_MOST  1000

typedef struct Seek {
    Arena *arena;
    const Prog *prog;
    Traced *traced;
    int pipe;
    const EndCode *ends; /* producer, consumer */
    Memory memory;
    int64_t values[CELL_VALUES]; /* of a cell */
    int value_count;
    BlockRun block;      /* the present attempt */
    int64_t acquired[2]; /* at both ends */
} Seek;

/* ---- one block ------------------------------------------------------------------------------- */

static bool unequal(Seek *seek) {
    for (int i = 0; i < 2; i++) {
        End end = i ? END_CONSUME : END_PRODUCE;
        Reads reads = {.memory = &seek->memory};
        Arena *scratch = arena_scratch(seek->arena);
        seek->block.reads = &reads;
        Acquires acquires = {.number = -1};
        bool known = trace_acquires(scratch, seek->traced, seek->ends[i].role, seek->pipe, end,
                                    &seek->block, &acquires);
        seek->acquired[i] = acquires.count;
        arena_free(scratch);
        if (!known) return false;
    }
    return seek->acquired[0] != seek->acquired[1];
}

/* Finds the first tile, in the order of its coordinates, in which one end acquires more often
 * than the other; otherwise several tiles, or none */
static bool differ_at(Seek *seek) {
    BlockRun *block = &seek->block;
    int64_t tiles;
    if (!sizes_tiles(block->sizes, block->extents, &tiles)) return false;
    block->tiles = 1;
    for (block->first = 0; block->first < tiles && block->first < 4; ++block->first)
        if (unequal(seek)) return true;
    block->first = 0;
    for (block->tiles = 0; block->tiles <= tiles && block->tiles <= 2 && seek->prog->persistent;
         block->tiles += 2)
        if (unequal(seek)) return true;
    return false;
}

/* ---- contents of memory ---------------------------------------------------------------------- */

static void add_constant(Expr *expr, void *data) {
    Seek *seek = data;
    bool whole = expr->kind == X_CONST && expr->type != E_F32 && expr->type != E_BOOL;
    if (!whole || seek->value_count + 2 > CELL_VALUES) return;
    for (int next = 0; next < 2; next++) {
        int64_t value;
        bool there = __builtin_add_overflow(expr->constant.integer, next, &value);
        for (int i = 0; i < seek->value_count; i++) there |= seek->values[i] == value;
        if (!there) seek->values[seek->value_count++] = value;
    }
}

static void add_constants(Expr *expr, void *data) {
    expr_visit(((Seek *)data)->arena, expr, add_constant, data);
}

/* Values near the constants of conditions and bounds, after the smallest ones */
static void add_contents(Seek *seek, const FlowCode *code) {
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (row_decides(row->kind)) row_exprs(code, row, add_constants, seek);
    }
}

/* Cells beyond the first few stay 0, as do those whose type does not have the value. False: no
 * further combination */
static bool refill(Seek *seek, int number) {
    Memory *memory = &seek->memory;
    memory->cells.count = memory->cells.count < CELLS_MOST ? memory->cells.count : CELLS_MOST;
    for (size_t c = 0; c < memory->cells.count; c++, number /= seek->value_count) {
        Cell *cell = &memory->cells.items[c];
        int64_t value = seek->values[number % seek->value_count];
        cell->value = eval_fits(seek->prog->params.items[cell->param].type, value) ? value : 0;
    }
    return number == 0;
}

static bool differ_in(Seek *seek) {
    seek->memory.cells.count = 0;
    for (int number = 0; refill(seek, number); number++) {
        if (differ_at(seek)) return true;
        if (seek->memory.cells.count == 0) return false;
    }
    return false;
}

/* ---- search ---------------------------------------------------------------------------------- */

static void print_place(const Seek *seek, const Sizes *sizes, Str *where) {
    const BlockRun *block = &seek->block;
    size_t axes = seek->prog->axes.count;
    sizes_print(sizes, where);
    if (block->tiles != 1)
        str_printf(where, "%s%lld tiles per block", where->length ? ", " : "",
                   (long long)block->tiles);
    for (size_t i = 0; i < axes && block->first > 0; i++) {
        int64_t inner = 1;
        for (size_t k = i + 1; k < axes; k++) inner *= block->extents[k];
        str_printf(where, "%s%s = %lld", where->length ? ", " : "", seek->prog->axes.items[i].name,
                   (long long)(block->first / inner % block->extents[i]));
    }
}

static Span surplus_of(Seek *seek) {
    int more = seek->acquired[1] > seek->acquired[0];
    Acquires acquires = {.number = seek->acquired[1 - more]};
    Reads reads = {.memory = &seek->memory};
    Arena *scratch = arena_scratch(seek->arena);
    seek->block.reads = &reads;
    End end = more ? END_CONSUME : END_PRODUCE;
    trace_acquires(scratch, seek->traced, seek->ends[more].role, seek->pipe, end, &seek->block,
                   &acquires);
    arena_free(scratch);
    return acquires.place;
}

bool counts_difference(Arena *arena, const Prog *prog, int pipe, const EndCode *ends,
                       Difference *difference) {
    Seek seek = {.arena = arena,
                 .prog = prog,
                 .pipe = pipe,
                 .ends = ends,
                 .values = {0, 1, 2, 3},
                 .value_count = 4};
    Sizes *sizes = sizes_new(arena, prog, false);
    seek.traced = trace_new(arena, prog, pipe, NULL, NULL);
    seek.memory = (Memory){.arena = arena};
    sizes->memory = &seek.memory;
    seek.block.sizes = sizes;
    for (int i = 0; i < 2; i++) {
        sizes_code(sizes, ends[i].role->code);
        add_contents(&seek, ends[i].role->code);
    }
    for (size_t i = 0; i < prog->axes.count; i++) sizes_formula(sizes, prog->axes.items[i].extent);
    for (int tried = 0; tried < SIZES_MOST && sizes_next(sizes); tried++) {
        if (!differ_in(&seek)) continue;
        for (int i = 0; i < 2; i++) difference->acquired[i] = seek.acquired[i];
        difference->surplus = surplus_of(&seek);
        print_place(&seek, sizes, &difference->where);
        return true;
    }
    return false;
}
