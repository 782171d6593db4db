/* The number of blocks that fit an SM at once, and the bytes that they load at once.
 *
 * Shared memory and threads are known; registers are those of setmaxnreg, or the predicted ones of
 * the assembler's choice, which codegen limits so that the blocks fit. A prediction below what the
 * assembler needs would make it keep values in local memory, so it is a generous one: if the
 * assembler takes fewer, more blocks fit. */
#include "derive/resources/resources.h"

/* bytes of shared memory that the system reserves per block: CUDA C Programming Guide, "Shared
 * Memory" of compute capability 8 and later */
#define RESERVED 1024
/* registers other than those of tiles, variables and single elements; ptxas 13.0 needs up to 36 for
 * the programs in examples and tests */
#define OTHER_REGISTERS 40
#define BATCH_REGISTERS 16 /* among these, for elements that are loaded at once */
#define SM_PARTS        4
#define WORD_BYTES      4

/* ---- registers ------------------------------------------------------------------------------- */

typedef struct Chosen {
    const Moves *moves;
    int count; /* selects along the vectors of the statement */
} Chosen;

static void count_select(Expr *expr, void *data) {
    Chosen *chosen = data;
    chosen->count += expr->kind == X_SELECT && expr_depends(expr, chosen->moves->inner);
}

/* Registers for the elements that a thread loads before it computes, beyond those of a batch */
static int64_t loaded_registers(const Moves *moves) {
    int64_t words = 0;
    for (size_t i = 0; i < moves->reads.count; i++) {
        const MovedRead *read = &moves->reads.items[i];
        int64_t bytes = (int64_t)moves->vector * element_rows[read->expr->read->type].bytes;
        if (read->kind != MOVE_REGISTERS) words += (bytes + WORD_BYTES - 1) / WORD_BYTES;
    }
    words *= moves->batch;
    return words > BATCH_REGISTERS ? words - BATCH_REGISTERS : 0;
}

/* Addresses and conditions of elements that a thread has in flight: those that do not follow from
 * one of their vector */
static int64_t single_registers(Arena *arena, const Tile *tile, const Moves *moves) {
    Chosen chosen = {.moves = moves};
    int each = moves->target == MOVE_EACH && tile->target.space != SPACE_REGISTER;
    for (size_t i = 0; i < moves->reads.count; i++) each += moves->reads.items[i].kind == MOVE_EACH;
    expr_visit(arena, (Expr *)(uintptr_t)moves->value, count_select, &chosen);
    return (int64_t)(each + chosen.count) * moves->vector * moves->batch;
}

static int64_t local_registers(const Role *role) {
    int64_t registers = 0;
    for (size_t i = 0; i < role->locals.count; i++)
        registers += element_rows[role->locals.items[i].type].bytes > WORD_BYTES ? 2 : 1;
    return registers;
}

/* Texts of PTX can declare any number. */
static bool is_unknown(const FlowCode *code, int at) {
    const Unsafe *what = code_row(code, at)->unsafe;
    return what != NULL && what->kind == UNSAFE_PTX;
}

static int64_t role_registers(Arena *arena, const Prog *prog, const Role *role) {
    const RolePlan *plan = plan_role(prog, role);
    int64_t most = 0;
    for (size_t at = 0; at < role->code->rows.count; at++) {
        const Moves *moves = plan->rows->moves[at];
        if (is_unknown(role->code, (int)at)) return prog->target->registers_max;
        if (moves == NULL) continue;
        int64_t own = loaded_registers(moves) +
                      single_registers(arena, code_row(role->code, (int)at)->tile, moves);
        if (own > most) most = own;
    }
    return plan->tile_registers + local_registers(role) + most + OTHER_REGISTERS;
}

/* Registers per thread, at the start of a block or until its end */
static int thread_registers(Arena *arena, const Prog *prog) {
    int64_t most = prog->target->registers_max;
    int64_t registers = prog->plan->launch_registers, needed;
    for (size_t r = 0; r < prog->roles.count && prog->plan->launch_registers == 0; r++) {
        needed = (role_registers(arena, prog, &prog->roles.items[r]) + 7) / 8 * 8;
        if (needed > registers) registers = needed;
    }
    return (int)(registers > most ? most : registers);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void limit(Plan *plan, const char *what, int64_t used, int64_t available) {
    if (used > 0 && available / used < plan->blocks)
        plan->blocks = available / used, plan->limited = what;
}

/* The most registers of a thread with so many warps on an SM: each of its four parts has its share
 * of the registers and of the warps, and hands out 8 registers per thread at once. */
static int64_t registers_of(const Target *target, int64_t warps) {
    int64_t units = target->registers_pool / (SM_PARTS * WARP_LANES * 8);
    int64_t registers = units / ((warps + SM_PARTS - 1) / SM_PARTS) * 8;
    return registers > target->registers_max ? target->registers_max : registers;
}

static void count_blocks(Arena *arena, const Prog *prog, Plan *plan) {
    const Target *target = prog->target;
    plan->predicted = thread_registers(arena, prog);
    plan->blocks = target->sm_blocks, plan->limited = "blocks";
    limit(plan, "shared memory", (int64_t)plan->shared_bytes + RESERVED, target->sm_shared);
    limit(plan, "threads", (int64_t)plan->warps * WARP_LANES, target->sm_threads);
    plan->most_blocks = plan->blocks;
    while (plan->blocks > 1 && registers_of(target, plan->blocks * plan->warps) < plan->predicted)
        plan->blocks--, plan->limited = "registers";
    if (plan->launch_registers > 0) plan->most_blocks = plan->blocks;
    plan->most_registers = (int)registers_of(target, plan->blocks * plan->warps);
}

/* ---- bytes in flight ------------------------------------------------------------------------- */

static int64_t stage_bytes(const Prog *prog, const Plan *plan) {
    int64_t bytes = 0;
    for (size_t p = 0; p < prog->pipes.count; p++) {
        const Pipe *pipe = &prog->pipes.items[p];
        const PipeUse *use = &prog->roles.items[pipe->producer].pipes[p];
        int64_t stage = 0;
        for (size_t f = 0; f < pipe->fields.count; f++)
            stage += (int64_t)plan->pipes[p].fields[f].bytes * pipe->fields.items[f].count;
        if (use->agents & AGENTS_FILL) bytes += stage * pipe->stages;
    }
    return bytes;
}

/* Bytes of tensors that a thread loads before it uses the first ones: a batch, or all that go to
 * registers of a tile */
static int64_t loaded_bytes(const Tile *tile, const Moves *moves) {
    bool kept = moves->walk == WALK_REGISTERS && tile->target.space == SPACE_REGISTER;
    int64_t vectors = kept ? moves->vectors : moves->batch, bytes = 0;
    for (size_t i = 0; i < moves->reads.count; i++) {
        const Expr *expr = moves->reads.items[i].expr;
        int elements = expr_depends(expr, moves->inner) ? moves->vector : 1;
        if (expr->read->space == SPACE_GLOBAL)
            bytes += elements * (int64_t)element_rows[expr->read->type].bytes;
    }
    return bytes * vectors;
}

static int64_t role_bytes(const Prog *prog, const Role *role) {
    const RolePlan *plan = plan_role(prog, role);
    int64_t most = 0;
    for (size_t at = 0; at < role->code->rows.count; at++) {
        const Row *row = code_row(role->code, (int)at);
        const Moves *moves = plan->rows->moves[at];
        if (moves == NULL || row->tile->class == TILE_LANES) continue; /* into stages */
        int64_t bytes = loaded_bytes(row->tile, moves);
        if (bytes > most) most = bytes;
    }
    return most * role_warps(role) * WARP_LANES;
}

void plan_occupancy(Arena *arena, const Prog *prog, Plan *plan) {
    count_blocks(arena, prog, plan);
    plan->in_flight = stage_bytes(prog, plan);
    for (size_t r = 0; r < prog->roles.count; r++)
        plan->loaded += role_bytes(prog, &prog->roles.items[r]);
}
