/* Reductions between threads: each adds its elements to registers of its own (maps.c), then
 * lanes exchange by shuffles, and warps through shared memory. The order of the terms is fixed:
 * ascending within a thread, then lanes in pairs from the nearest, then warps ascending. */
#include "codegen/gen.h"

#include <math.h>

/* ---- one step -------------------------------------------------------------------------------- */

static ReduceOp op_of(const Tile *tile) { return tile->value->reduce.op; }

static Element type_of(const Tile *tile) { return tile->value->type; }

/* max and min give NaN if an operand is NaN (PTX ISA 9.7.3.12), as a sum does. */
static const char *instruction(Gen *gen, const Tile *tile) {
    static const char *const names[] = {
        [REDUCE_SUM] = "add", [REDUCE_MAX] = "max", [REDUCE_MIN] = "min"};
    bool number = type_of(tile) == E_F32 && op_of(tile) != REDUCE_SUM;
    return arena_printf(gen->arena, "%s%s.%s", names[op_of(tile)], number ? ".NaN" : "",
                        suffix_of(type_of(tile)));
}

void reduction_add(Gen *gen, const Tile *tile, Reg to, Value term) {
    INS(gen->ptx, instruction(gen, tile), ptx_reg(to), ptx_reg(to), value_operand(term));
}

/* The value that does not change the result */
static Value neutral(const Tile *tile) {
    Element type = type_of(tile);
    bool wide = element_rows[type].bytes == 8, max = op_of(tile) == REDUCE_MAX;
    if (type == E_F32)
        return (Value){.type = E_F32,
                       .number = op_of(tile) == REDUCE_SUM ? 0
                                 : max                     ? -(double)INFINITY
                                                           : (double)INFINITY};
    if (op_of(tile) == REDUCE_SUM) return value_integer(type, 0);
    if (element_rows[type].kind == ELEMENT_UNSIGNED) return value_integer(type, max ? 0 : -1);
    return value_integer(type,
                         max ? (wide ? INT64_MIN : INT32_MIN) : (wide ? INT64_MAX : INT32_MAX));
}

static int result_registers(const Gen *gen, const Tile *tile) {
    return (int)layout_registers(&gen->role->plan->tiles[tile->target.object].held);
}

void reduction_begin(Gen *gen, const Tile *tile) {
    const Reg *result = gen->role->tiles[tile->target.object];
    for (int n = 0; n < result_registers(gen, tile); n++)
        INS(gen->ptx, result[n].class == REG_64 ? "mov.b64" : "mov.b32", ptx_reg(result[n]),
            value_operand(neutral(tile)));
    ptx_forget(gen->ptx);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static Reg shuffled_word(Gen *gen, Reg word, int distance) {
    Reg out = ptx_new_reg(gen->ptx, REG_32);
    INS(gen->ptx, "shfl.sync.bfly.b32", ptx_reg(out), ptx_reg(word), ptx_int(distance), ptx_int(31),
        ptx_int(0xffffffff));
    return out;
}

/* The value of the lane whose number differs in the bit `distance` */
static Reg shuffled(Gen *gen, Reg value, int distance) {
    if (value.class == REG_32) return shuffled_word(gen, value, distance);
    Reg words[2];
    for (int w = 0; w < 2; w++) words[w] = ptx_new_reg(gen->ptx, REG_32);
    INS(gen->ptx, "mov.b64", ptx_vector(words, 2), ptx_reg(value));
    for (int w = 0; w < 2; w++) words[w] = shuffled_word(gen, words[w], distance);
    Reg out = ptx_new_reg(gen->ptx, REG_64);
    INS(gen->ptx, "mov.b64", ptx_reg(out), ptx_vector(words, 2));
    return out;
}

static void combine_lanes(Gen *gen, const Tile *tile) {
    const Reg *result = gen->role->tiles[tile->target.object];
    int count = result_registers(gen, tile);
    Reg *others = NEW_ARRAY(gen->arena, Reg, count);
    for (int distance = 1; distance < 32; distance *= 2) {
        if (!(tile->exchange.lanes & (uint32_t)distance)) continue;
        for (int n = 0; n < count; n++) others[n] = shuffled(gen, result[n], distance);
        for (int n = 0; n < count; n++)
            reduction_add(gen, tile, result[n], value_reg(type_of(tile), others[n]));
    }
}

/* ---- warps ----------------------------------------------------------------------------------- */

/* The number of the lane among those of its warp that hold different results: its number without
 * the bits over which lanes have exchanged */
static Lin kept_lane(Gen *gen, uint32_t exchanged, Reg lane) {
    Lin sum = lin_const(0);
    int to = 0;
    for (int bit = 0; bit < 5;) {
        int first = bit;
        while (bit < 5 && !(exchanged >> bit & 1)) bit++;
        int length = bit - first;
        if (length == 0) {
            bit++;
            continue;
        }
        Reg part = PURE(gen->ptx, REG_32, "shr.u32", ptx_reg(lane), ptx_int(first));
        part = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(part), ptx_int((1 << length) - 1));
        sum = lin_add(gen, sum, lin_scale(gen, lin_reg(part, 1, (1 << length) - 1), 1 << to));
        to += length;
    }
    return sum;
}

/* The first of the warps that exchange with this one: all digits of the exchange are 0 */
static Lin first_warp(Gen *gen, const Exchange *exchange, Reg warp, int warps) {
    Lin at = lin_reg(warp, 1, warps - 1), first = at;
    for (int d = 0; d < exchange->digits; d++) {
        Lin digit, rest;
        lin_divide(gen, at, exchange->warps[d].place, &digit, &rest);
        lin_divide(gen, digit, exchange->warps[d].extent, &rest, &digit);
        first = lin_add(gen, first, lin_scale(gen, digit, -exchange->warps[d].place));
    }
    return first;
}

/* Distance from the first of the warps that exchange to number `n` of them */
static int warp_distance(const Exchange *exchange, int n) {
    int distance = 0;
    for (int d = 0; d < exchange->digits; d++) {
        distance += n % exchange->warps[d].extent * exchange->warps[d].place;
        n /= exchange->warps[d].extent;
    }
    return distance;
}

/* Address of a warp's part, for the first register of the result */
static Reg part_address(Gen *gen, Lin warp, Lin lane, int kept, int bytes) {
    Lin offset =
        lin_add(gen, lin_scale(gen, warp, (int64_t)kept * bytes), lin_scale(gen, lane, bytes));
    return PURE(gen->ptx, REG_32, "add.s32", ptx_reg(lin_in_reg(gen, offset)),
                ptx_reg(gen->role->partials));
}

static void write_parts(Gen *gen, const Tile *tile, Reg lane, Reg address, int step) {
    const Reg *result = gen->role->tiles[tile->target.object];
    Reg others = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(lane), ptx_int(tile->exchange.lanes));
    Reg one = PURE(gen->ptx, REG_PRED, "setp.eq.u32", ptx_reg(others), ptx_int(0));
    for (int n = 0; n < result_registers(gen, tile); n++)
        INS_IF(gen->ptx, one, result[n].class == REG_64 ? "st.shared.b64" : "st.shared.b32",
               ptx_at(address, (int64_t)n * step), ptx_reg(result[n]));
}

static void read_parts(Gen *gen, const Tile *tile, Reg address, int step, int warp_step) {
    const Reg *result = gen->role->tiles[tile->target.object];
    for (int n = 0; n < result_registers(gen, tile); n++)
        for (int w = 0; w < tile->exchange.warp_count; w++) {
            bool wide = result[n].class == REG_64;
            Reg part = w == 0 ? result[n] : ptx_new_reg(gen->ptx, result[n].class);
            int64_t at = (int64_t)n * step + (int64_t)warp_distance(&tile->exchange, w) * warp_step;
            INS(gen->ptx, wide ? "ld.shared.b64" : "ld.shared.b32", ptx_reg(part),
                ptx_at(address, at));
            if (w > 0) reduction_add(gen, tile, result[n], value_reg(type_of(tile), part));
        }
}

/* The halves of the memory take turns: the barrier of one exchange comes after all reads of the
 * one before it, which used the other half. */
static void combine_warps(Gen *gen, const Tile *tile) {
    RoleState *state = gen->role;
    const Role *role = state->role;
    int kept = 32 / tile->exchange.lane_count;
    int bytes = element_rows[type_of(tile)].bytes, step = role->warps * kept * bytes;
    Reg lane = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(state->thread), ptx_int(31));
    Reg warp = PURE(gen->ptx, REG_32, "shr.u32", ptx_reg(state->thread), ptx_int(5));
    Lin at = kept_lane(gen, tile->exchange.lanes, lane);
    write_parts(gen, tile, lane,
                part_address(gen, lin_reg(warp, 1, role->warps - 1), at, kept, bytes), step);
    instance_barrier(gen);
    Lin first = first_warp(gen, &tile->exchange, warp, role->warps);
    read_parts(gen, tile, part_address(gen, first, at, kept, bytes), step, kept * bytes);
    INS(gen->ptx, "sub.s32", ptx_reg(state->partials), ptx_reg(state->partials_sum),
        ptx_reg(state->partials));
}

void reduction_end(Gen *gen, const Tile *tile) {
    combine_lanes(gen, tile);
    if (tile->exchange.digits > 0) combine_warps(gen, tile);
    ptx_forget(gen->ptx);
}

void reductions_open(Gen *gen) {
    RoleState *state = gen->role;
    const Role *role = state->role;
    if (role->partials < 0) return;
    Access memory = {.space = SPACE_SHARED, .object = role->partials};
    Lin base = shared_base(gen, &memory, &(Point){.outer = NULL}), other = base;
    other.is.add += role->tiles.items[role->partials].extents[0] / 2 * 4;
    state->partials = ptx_new_reg(gen->ptx, REG_32);
    state->partials_sum = PURE(gen->ptx, REG_32, "add.s32", ptx_reg(lin_in_reg(gen, base)),
                               ptx_reg(lin_in_reg(gen, other)));
    INS(gen->ptx, "mov.b32", ptx_reg(state->partials), ptx_reg(lin_in_reg(gen, base)));
}
