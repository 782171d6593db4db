/* The tiles of a dynamic grid: a role draws their numbers from a counter that all blocks of a
 * launch share, and publishes them to the other roles.
 *
 * A block executes the tiles n(0), n(1), .. up to the first that is not below the number T of
 * tiles. Let B be the number of blocks. The first two numbers of a block need no draw: n(j) = block
 * + j * B. When the first role of the block begins tile n(i), its number n(i + 2) is drawn: the
 * number of draws before it, plus 2 * B. So one number is on its way from the counter, and blocks
 * that start early draw no more than the tiles that they begin.
 *
 *   - Each number below T belongs to exactly one block: one below 2 * B by its remainder, the
 *     others because the counter gives each out once.
 *   - The numbers of a block increase, because draws of one thread are in order. So the first
 *     that is not below T is followed by none below T, and none is lost where the block stops.
 *   - A block draws once for each of its tiles, and all blocks together T times. The counter
 *     increments to T - 1, and the draw that finds T - 1 sets it to 0 (PTX ISA 9.7.13.5, atom.inc):
 *     it is 0 again after the launch, whatever the order of the blocks, and how many there are.
 *     Without tiles nothing is drawn.
 *
 * Draws are after griddepcontrol.wait, and so after all draws of the launch before it. */
#include "codegen/gen.h"

void tile_begin(Gen *gen) {
    RoleState *state = gen->role;
    const Draws *draws = &gen->prog->draws;
    if (draws->role < 0) return;
    state->tile_number = ptx_new_reg(gen->ptx, REG_32);
    if (draws->role == state->number)
        INS(gen->ptx, "mov.u32", ptx_reg(state->tile_number), ptx_text("%ctaid.x"));
}

static Operand number_at(Gen *gen, int pipe, Reg stage) {
    const PipePlan *plan = &gen->plan->pipes[pipe];
    Reg bytes =
        PURE(gen->ptx, REG_32, "mul.lo.s32", ptx_reg(stage), ptx_int((int64_t)plan->stride));
    Reg at = PURE(gen->ptx, REG_32, "add.s32", ptx_reg(bytes), ptx_reg(gen->shared));
    return ptx_at(at, plan->offset);
}

/* The shuffle tells ptxas that the number is uniform in a warp, and so are the coordinates and the
 * loop over the grid. */
void tile_take(Gen *gen, int pipe, Reg stage) {
    Reg number = gen->role->tile_number;
    if (pipe != gen->prog->draws.tiles) return;
    INS(gen->ptx, "ld.shared.b32", ptx_reg(number), number_at(gen, pipe, stage));
    if (!gen->role->role->one_lane)
        INS(gen->ptx, "shfl.sync.idx.b32", ptx_reg(number), ptx_reg(number), ptx_int(0),
            ptx_int(31), ptx_int(0xffffffff));
    ptx_forget(gen->ptx);
}

void tile_publish(Gen *gen, int pipe, Reg stage) {
    if (pipe != gen->prog->draws.tiles) return;
    INS(gen->ptx, "st.shared.b32", number_at(gen, pipe, stage), ptx_reg(gen->role->tile_number));
}

void tile_test(Gen *gen, Value tiles, int leave) {
    Reg done = ptx_new_reg(gen->ptx, REG_PRED);
    INS(gen->ptx, "setp.ge.u32", ptx_reg(done), ptx_reg(gen->role->tile_number),
        value_operand(tiles));
    INS_IF(gen->ptx, done, "bra", ptx_label(leave));
}

void draws_open(Gen *gen, Value tiles, TileDraws *draws) {
    Reg blocks = ptx_new_reg(gen->ptx, REG_32);
    draws->next = ptx_new_reg(gen->ptx, REG_32);
    draws->first = ptx_new_reg(gen->ptx, REG_32);
    draws->bound = ptx_new_reg(gen->ptx, REG_32);
    INS(gen->ptx, "mov.u32", ptx_reg(blocks), ptx_text("%nctaid.x"));
    INS(gen->ptx, "mul.lo.s32", ptx_reg(draws->first), ptx_reg(blocks), ptx_int(2));
    INS(gen->ptx, "add.s32", ptx_reg(draws->bound), value_operand(tiles), ptx_int(-1));
    INS(gen->ptx, "sub.s32", ptx_reg(draws->next), ptx_reg(gen->role->tile_number),
        ptx_reg(blocks));
}

void draws_arrive(Gen *gen, const TileDraws *draws) {
    INS(gen->ptx, "add.s32", ptx_reg(gen->role->tile_number), ptx_reg(draws->next),
        ptx_reg(draws->first));
    ptx_forget(gen->ptx);
}

void draws_issue(Gen *gen, const TileDraws *draws) {
    INS(gen->ptx, "atom.relaxed.gpu.global.inc.u32", ptx_reg(draws->next), ptx_at(gen->counter, 0),
        ptx_reg(draws->bound));
}
