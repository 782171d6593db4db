/* Reductions between threads: each adds its elements to registers of its own (chunks.c), then
 * lanes exchange by shuffles, and warps through shared memory. The order of the terms is fixed:
 * ascending within a thread, then lanes in pairs from the nearest, then warps ascending. */
#include "codegen/exchange.h"

#include <string.h>

/* ---- one step -------------------------------------------------------------------------------- */

static ReduceOp op_of(const Tile *tile) {
    const Expr *value = tile->value;
    return value->kind == X_SCAN ? value->scan.op : value->reduce.op;
}

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

void reduction_add_if(Gen *gen, const Tile *tile, Reg guard, Reg to, Reg term) {
    INS_IF(gen->ptx, guard, instruction(gen, tile), ptx_reg(to), ptx_reg(to), ptx_reg(term));
}

Value reduction_neutral(const Tile *tile) {
    int64_t integer;
    double number;
    reduce_neutral(op_of(tile), type_of(tile), &integer, &number);
    if (type_of(tile) == E_F32) return (Value){.type = E_F32, .number = number};
    return value_integer(type_of(tile), integer);
}

int reduction_registers(const Gen *gen, const Tile *tile) {
    return (int)layout_registers(&gen->role->plan->tiles[tile->target.object].held);
}

static const char *move_of(Reg reg) { return reg.class == REG_64 ? "mov.b64" : "mov.b32"; }

void reduction_begin(Gen *gen, const Tile *tile) {
    const Reg *result = gen->role->tiles[tile->target.object];
    for (int n = 0; n < reduction_registers(gen, tile); n++)
        INS(gen->ptx, move_of(result[n]), ptx_reg(result[n]),
            value_operand(reduction_neutral(tile)));
    ptx_forget(gen->ptx);
}

void reduction_scale(Gen *gen, const Tile *tile, const Expr *factor) {
    const Reg *result = gen->role->tiles[tile->target.object];
    Value by = eval_scalar(gen, factor);
    for (int n = 0; n < reduction_registers(gen, tile); n++)
        INS(gen->ptx, "mul.rn.f32", ptx_reg(result[n]), ptx_reg(result[n]), value_operand(by));
    ptx_forget(gen->ptx);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* `up` has its bound below: lane 0 (PTX ISA 9.7.9.6) */
static Reg shuffled_word(Gen *gen, Reg word, const char *mode, Operand which) {
    Reg out = ptx_new_reg(gen->ptx, REG_32);
    INS(gen->ptx, arena_printf(gen->arena, "shfl.sync.%s.b32", mode), ptx_reg(out), ptx_reg(word),
        which, ptx_int(strcmp(mode, "up") == 0 ? 0 : 31), ptx_int(0xffffffff));
    return out;
}

Reg exchange_shuffle(Gen *gen, Reg value, const char *mode, Operand which) {
    if (value.class == REG_32) return shuffled_word(gen, value, mode, which);
    Reg words[2];
    for (int w = 0; w < 2; w++) words[w] = ptx_new_reg(gen->ptx, REG_32);
    INS(gen->ptx, "mov.b64", ptx_vector(words, 2), ptx_reg(value));
    for (int w = 0; w < 2; w++) words[w] = shuffled_word(gen, words[w], mode, which);
    Reg out = ptx_new_reg(gen->ptx, REG_64);
    INS(gen->ptx, "mov.b64", ptx_reg(out), ptx_vector(words, 2));
    return out;
}

static void combine_lanes(Gen *gen, const Tile *tile) {
    const Reg *result = gen->role->tiles[tile->target.object];
    int count = reduction_registers(gen, tile);
    Reg *others = NEW_ARRAY(gen->arena, Reg, count);
    for (int distance = 1; distance < 32; distance *= 2) {
        if (!(tile->exchange.lanes & (uint32_t)distance)) continue;
        for (int n = 0; n < count; n++)
            others[n] = exchange_shuffle(gen, result[n], "bfly", ptx_int(distance));
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

Lin exchange_first(Gen *gen, const Exchange *exchange, Reg warp) {
    Lin at = lin_reg(warp, 1, gen->role->role->warps - 1), first = at;
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

Parts exchange_parts(Gen *gen, const Tile *tile, const Reg *values, int count, Reg lane) {
    Parts parts = {
        .tile = tile, .values = values, .count = count, .kept = 32 / tile->exchange.lane_count};
    int bytes = element_rows[type_of(tile)].bytes;
    parts.vector = VECTOR_BYTES / bytes;
    while (parts.count % parts.vector != 0) parts.vector /= 2;
    parts.bytes = parts.vector * bytes;
    parts.lane = kept_lane(gen, tile->exchange.lanes, lane);
    return parts;
}

Reg exchange_address(Gen *gen, const Parts *parts, Lin warp) {
    Lin offset = lin_add(gen, lin_scale(gen, warp, (int64_t)parts->kept * parts->bytes),
                         lin_scale(gen, parts->lane, parts->bytes));
    return PURE(gen->ptx, REG_32, "add.s32", ptx_reg(lin_in_reg(gen, offset)),
                ptx_reg(gen->role->partials));
}

/* Distance from the start of the exchange to the parts of vector `n`, of a warp at this distance
 * from the first */
static int64_t part_offset(const Gen *gen, const Parts *parts, int n, int warp) {
    return parts->tile->exchange.at * 4 +
           ((int64_t)n * gen->role->role->warps + warp) * parts->kept * parts->bytes;
}

static const char *part_move(Gen *gen, const Parts *parts, const char *op) {
    const char *vector = parts->vector == 4 ? ".v4" : parts->vector == 2 ? ".v2" : "";
    return arena_printf(gen->arena, "%s.shared%s.b%d", op, vector,
                        8 * parts->bytes / parts->vector);
}

static Operand part_operand(const Parts *parts, Reg *regs) {
    return parts->vector == 1 ? ptx_reg(regs[0]) : ptx_vector(regs, parts->vector);
}

void exchange_write(Gen *gen, const Parts *parts, Reg warp, Reg lane) {
    Reg address = exchange_address(gen, parts, lin_reg(warp, 1, gen->role->role->warps - 1));
    Reg others =
        PURE(gen->ptx, REG_32, "and.b32", ptx_reg(lane), ptx_int(parts->tile->exchange.lanes));
    Reg one = PURE(gen->ptx, REG_PRED, "setp.eq.u32", ptx_reg(others), ptx_int(0));
    for (int n = 0; n < parts->count; n += parts->vector) {
        Reg *words = NEW_ARRAY(gen->arena, Reg, parts->vector);
        for (int e = 0; e < parts->vector; e++) words[e] = parts->values[n + e];
        INS_IF(gen->ptx, one, part_move(gen, parts, "st"),
               ptx_at(address, part_offset(gen, parts, n / parts->vector, 0)),
               part_operand(parts, words));
    }
}

void exchange_read(Gen *gen, const Parts *parts, Reg address, int n, int w, Reg *words) {
    int64_t at =
        part_offset(gen, parts, n / parts->vector, warp_distance(&parts->tile->exchange, w));
    INS(gen->ptx, part_move(gen, parts, "ld"), part_operand(parts, words), ptx_at(address, at));
}

static void read_parts(Gen *gen, const Parts *parts, Reg warp) {
    const Exchange *exchange = &parts->tile->exchange;
    Reg address = exchange_address(gen, parts, exchange_first(gen, exchange, warp));
    for (int n = 0; n < parts->count; n += parts->vector)
        for (int w = 0; w < exchange->warp_count; w++) {
            Reg *words = NEW_ARRAY(gen->arena, Reg, parts->vector);
            for (int e = 0; e < parts->vector; e++)
                words[e] = w == 0 ? parts->values[n + e]
                                  : ptx_new_reg(gen->ptx, parts->values[n + e].class);
            exchange_read(gen, parts, address, n, w, words);
            for (int e = 0; e < parts->vector && w > 0; e++)
                reduction_add(gen, parts->tile, parts->values[n + e],
                              value_reg(type_of(parts->tile), words[e]));
        }
}

/* The halves of the memory take turns: the barrier of one exchange comes after all reads of the
 * one before it, which used the other half. */
void exchange_end(Gen *gen) {
    RoleState *state = gen->role;
    INS(gen->ptx, "sub.s32", ptx_reg(state->partials), ptx_reg(state->partials_sum),
        ptx_reg(state->partials));
}

static Parts result_parts(Gen *gen, const Tile *tile, Reg lane) {
    return exchange_parts(gen, tile, gen->role->tiles[tile->target.object],
                          reduction_registers(gen, tile), lane);
}

/* For all reductions that share the exchange, of which `last` is the last */
static void combine_warps(Gen *gen, const Tile *last) {
    RoleState *state = gen->role;
    Reg lane = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(state->thread), ptx_int(31));
    Reg warp = PURE(gen->ptx, REG_32, "shr.u32", ptx_reg(state->thread), ptx_int(5));
    for (const Tile *tile = last; tile != NULL; tile = tile->exchange.before) {
        Parts parts = result_parts(gen, tile, lane);
        exchange_write(gen, &parts, warp, lane);
    }
    instance_barrier(gen);
    for (const Tile *tile = last; tile != NULL; tile = tile->exchange.before) {
        Parts parts = result_parts(gen, tile, lane);
        read_parts(gen, &parts, warp);
    }
    exchange_end(gen);
}

static void combine(Gen *gen, const Tile *tile) {
    combine_lanes(gen, tile);
    if (tile->exchange.digits > 0 && !tile->exchange.later) combine_warps(gen, tile);
    ptx_forget(gen->ptx);
}

void reduction_end(Gen *gen, const Tile *tile) {
    if (tile->exchange.loop == 0) combine(gen, tile);
}

/* ---- parts of variables during a loop -------------------------------------------------------- */

/* The reduction of a row whose variable is in parts during a loop; NULL: it is none */
static const Tile *carried(const Row *row) {
    bool reduces = row->kind == ROW_TILE && row->tile->class == TILE_REDUCTION;
    return reduces && row->tile->exchange.loop > 0 ? row->tile : NULL;
}

/* The first of these at row `at` or later, for this loop; NULL: none. Sets `at` to the row after
 * it. */
static const Tile *next_part(const Gen *gen, int region, int *at) {
    const FlowCode *code = gen->role->code;
    const Region *loop = code_region(code, region);
    if (*at < loop->begin) *at = loop->begin;
    while (*at <= loop->end) {
        const Tile *tile = carried(code_row(code, (*at)++));
        if (tile && tile->exchange.loop == region) return tile;
    }
    return NULL;
}

static Reg part_register(const Gen *gen, const Tile *tile, int n) {
    int variable = tile->exchange.variable;
    return tile->exchange.local ? gen->role->locals[variable].reg : gen->role->tiles[variable][n];
}

static void copy_register(Gen *gen, Reg to, Reg from) {
    INS(gen->ptx, move_of(to), ptx_reg(to), ptx_reg(from));
}

/* True in the first of the threads that exchange */
static Reg first_thread(Gen *gen, const Exchange *exchange) {
    RoleState *state = gen->role;
    Reg lane = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(state->thread), ptx_int(exchange->lanes));
    Reg first = PURE(gen->ptx, REG_PRED, "setp.eq.u32", ptx_reg(lane), ptx_int(0));
    if (exchange->digits == 0) return first;
    Reg warp = PURE(gen->ptx, REG_32, "shr.u32", ptx_reg(state->thread), ptx_int(5));
    Reg least = lin_in_reg(gen, exchange_first(gen, exchange, warp));
    Reg same = PURE(gen->ptx, REG_PRED, "setp.eq.u32", ptx_reg(warp), ptx_reg(least));
    return PURE(gen->ptx, REG_PRED, "and.pred", ptx_reg(first), ptx_reg(same));
}

/* The negative zero is neutral for both zeros. */
static Value neutral_part(const Tile *tile) {
    Value value = reduction_neutral(tile);
    if (type_of(tile) == E_F32 && op_of(tile) == REDUCE_SUM) value.number = -0.0;
    return value;
}

/* Threads beyond the extent of a tile write no element of it, but exchange their registers too. */
void reductions_declare(Gen *gen, int variable, int at) {
    const FlowCode *code = gen->role->code;
    int end = code_region(code, code_row(code, at)->region)->end;
    for (; at < end; at++) {
        const Tile *tile = carried(code_row(code, at));
        if (!tile || tile->exchange.local || tile->exchange.variable != variable) continue;
        for (int n = 0; n < reduction_registers(gen, tile); n++) {
            Reg part = part_register(gen, tile, n);
            INS(gen->ptx, move_of(part), ptx_reg(part), value_operand(neutral_part(tile)));
        }
        ptx_forget(gen->ptx);
        return;
    }
}

void reductions_divide(Gen *gen, int region) {
    int at = 0;
    for (const Tile *tile; (tile = next_part(gen, region, &at)) != NULL; ptx_forget(gen->ptx)) {
        Reg first = first_thread(gen, &tile->exchange);
        for (int n = 0; n < reduction_registers(gen, tile); n++) {
            Reg part = part_register(gen, tile, n);
            INS_UNLESS(gen->ptx, first, move_of(part), ptx_reg(part),
                       value_operand(neutral_part(tile)));
        }
    }
}

/* Parts are combined in the registers of the reductions' results, which are not needed any more. */
void reductions_complete(Gen *gen, int region) {
    int at = 0;
    for (const Tile *tile; (tile = next_part(gen, region, &at)) != NULL;) {
        for (int n = 0; n < reduction_registers(gen, tile); n++)
            copy_register(gen, gen->role->tiles[tile->target.object][n],
                          part_register(gen, tile, n));
        combine(gen, tile);
    }
    at = 0;
    for (const Tile *tile; (tile = next_part(gen, region, &at)) != NULL; ptx_forget(gen->ptx))
        for (int n = 0; n < reduction_registers(gen, tile); n++)
            copy_register(gen, part_register(gen, tile, n),
                          gen->role->tiles[tile->target.object][n]);
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
