/* ldmatrix and stmatrix: 8 x 8 matrices of 16-bit elements between shared memory and the
 * registers of a warp (PTX ISA 9.7.14.5). Lane 8 i + r gives the address of row r of matrix i;
 * register i of lane l holds elements 2 (l % 4) and the next of row l / 4, or with .trans of
 * column l / 4. */
#include "emulator/order/order.h"

static bool rows_of(Block *block, Warp *warp, const Inst *inst, const Operand *base,
                    AccessKind kind, unsigned char *rows[LANES]) {
    uint32_t count = 8u * inst->vector;
    uint64_t series = access_series(block);
    for (uint32_t lane = 0; lane < count; lane++) {
        uint64_t address = in_lane(warp, base, lane) + (uint64_t)base->add;
        Access access = {.agent = agent_of(block, warp, lane),
                         .kind = kind,
                         .proxy = PROXY_GENERIC,
                         .space = inst->mods.space_count ? SPACE_SHARED : SPACE_GENERIC,
                         .address = base->width == 4 || inst->mods.space_count ? (uint32_t)address
                                                                               : address,
                         .bytes = 16,
                         .piece = 16,
                         .alignment = 16,
                         .together = ALL_LANES >> (LANES - count),
                         .series = series};
        rows[lane] = memory_access(block, &access);
        if (!rows[lane]) return false;
    }
    return true;
}

/* Column of element `half` (0, 1) of register `i` of a lane; sets *row */
static uint32_t place_of(bool transposed, uint32_t lane, uint32_t half, uint32_t *row) {
    uint32_t pair = lane % 4 * 2 + half;
    *row = transposed ? pair : lane / 4;
    return transposed ? lane / 4 : pair;
}

/* ops: registers, [row] */
static Step run_load(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Step step = schedule_lanes(block, warp, mask, ALL_LANES);
    if (step != STEP_NEXT) return step;
    unsigned char *rows[LANES];
    if (!rows_of(block, warp, inst, &inst->ops[inst->vector], ACCESS_READ, rows)) return STEP_FAULT;
    for (uint32_t i = 0; i < inst->vector; i++) {
        uint32_t out[LANES];
        for (uint32_t lane = 0; lane < LANES; lane++) {
            uint16_t halves[2];
            for (uint32_t half = 0; half < 2; half++) {
                uint32_t row, column = place_of(inst->mods.transposed, lane, half, &row);
                memcpy(&halves[half], rows[8 * i + row] + 2 * column, 2);
            }
            out[lane] = halves[0] | (uint32_t)halves[1] << 16;
        }
        put32(warp, &inst->ops[i], out, mask);
    }
    return STEP_NEXT;
}

/* ops: [row], registers */
static Step run_store(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Step step = schedule_lanes(block, warp, mask, ALL_LANES);
    if (step != STEP_NEXT) return step;
    unsigned char *rows[LANES];
    order_store_begins(warp);
    if (!rows_of(block, warp, inst, &inst->ops[0], ACCESS_WRITE, rows)) return STEP_FAULT;
    for (uint32_t i = 0; i < inst->vector; i++)
        for (uint32_t lane = 0; lane < LANES; lane++)
            for (uint32_t half = 0; half < 2; half++) {
                uint16_t value = (uint16_t)(in32(warp, &inst->ops[1 + i])[lane] >> 16 * half);
                uint32_t row, column = place_of(inst->mods.transposed, lane, half, &row);
                memcpy(rows[8 * i + row] + 2 * column, &value, 2);
            }
    effect(block, warp);
    return STEP_NEXT;
}

Run pick_matrix(const Inst *inst) {
    const Mods *mods = &inst->mods;
    bool shared = mods->space_count == 0 || (mods->spaces[0] == SPACE_SHARED && !mods->cluster);
    if (!shared || !mods->eight || inst_type(inst) != T_B16 || mods->vector == 0 ||
        inst->vector != mods->vector)
        return NULL;
    if (mods->rows || !(mods->flags & FLAG_ALIGNED)) return NULL;
    return inst->opcode == OP_LDMATRIX ? run_load : run_store;
}
