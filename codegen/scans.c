/* Scans between threads: the elements are in the registers of the result (chunks.c), the neutral
 * value where there is none.
 *
 * The digits of the scanned axis divide it into groups: a vector of a thread, the vectors of the
 * lanes, those of the warps, rounds of these. In the order of the scan, from the smallest groups
 * up, each level gives the groups what is before them in a group of the next level, and this one
 * its total. Then the results within a vector are combined with what is before its groups, from the
 * largest down. Within a thread the order is serial; lanes are combined at distances 1, 2, 4 ..;
 * warps in order. */
#include "codegen/exchange.h"

typedef struct Level {
    Reg *before; /* by group of the level below, for all lines; REG_NONE: nothing */
    int inner;   /* groups of the level below in one of this level, of a thread */
} Level;

typedef struct Scan {
    Gen *gen;
    const Tile *tile;
    const Spread *spread;
    bool backward;
    Reg lane, warp;
    Reg *elements;     /* by line, in the order of the scan */
    int lines, length; /* lines that a thread has elements of, and how many */
    Reg *totals;       /* of the groups, by line */
    int groups;        /* of a line */
    Reg *within;       /* by element: of those up to it in its vector */
    Level levels[5];
    int level_count;
} Scan;

/* ---- the elements ---------------------------------------------------------------------------- */

/* Coordinate of an element of a line, relative to the thread's part */
static int64_t coordinate(const Spread *spread, int64_t number) {
    int64_t at = 0;
    for (int d = 0; d < spread->count; d++) {
        const Digit *digit = &spread->digits[d];
        if (digit->in_thread) continue;
        at += number % digit->extent * digit->stride;
        number /= digit->extent;
    }
    return at;
}

static void open_elements(Scan *scan) {
    Gen *gen = scan->gen;
    const RegisterLayout *layout = &gen->role->plan->tiles[scan->tile->target.object].held;
    const Reg *result = gen->role->tiles[scan->tile->target.object];
    int64_t at[PROG_MAX_INDEXES], registers = layout_registers(layout);
    int own;
    scan->spread = layout_spread(layout, scan->tile->value->scan.along, &own);
    scan->elements = NEW_ARRAY(gen->arena, Reg, registers);
    scan->length = 1;
    for (int d = 0; d < scan->spread->count; d++)
        if (!scan->spread->digits[d].in_thread) scan->length *= (int)scan->spread->digits[d].extent;
    for (int64_t n = 0; n < registers; n++) {
        layout_coordinates(layout, n, at);
        if (at[own] != 0) continue;
        Reg *line = &scan->elements[scan->lines++ * scan->length];
        for (int e = 0; e < scan->length; e++) {
            at[own] = coordinate(scan->spread, e);
            line[scan->backward ? scan->length - 1 - e : e] = result[layout_number(layout, at)];
        }
    }
}

/* ---- one step -------------------------------------------------------------------------------- */

static Reg new_value(const Scan *scan) {
    return ptx_new_reg(scan->gen->ptx, scan->elements[0].class);
}

static void move(const Scan *scan, Reg to, Operand from) {
    INS(scan->gen->ptx, to.class == REG_64 ? "mov.b64" : "mov.b32", ptx_reg(to), from);
}

static Reg copy(const Scan *scan, Reg value) {
    Reg out = new_value(scan);
    move(scan, out, ptx_reg(value));
    return out;
}

/* REG_NONE: nothing */
static Reg sum(const Scan *scan, Reg a, Reg b) {
    if (a.class == REG_NONE || b.class == REG_NONE) return a.class == REG_NONE ? b : a;
    Reg out = copy(scan, a);
    reduction_add(scan->gen, scan->tile, out, value_reg(scan->tile->value->type, b));
    return out;
}

static Reg neutral_unless(const Scan *scan, Reg holds, Reg value) {
    Reg out = new_value(scan);
    INS(scan->gen->ptx, out.class == REG_64 ? "selp.b64" : "selp.b32", ptx_reg(out), ptx_reg(value),
        value_operand(reduction_neutral(scan->tile)), ptx_reg(holds));
    return out;
}

/* ---- levels ---------------------------------------------------------------------------------- */

static Level *add_level(Scan *scan, int inner) {
    Level *level = &scan->levels[scan->level_count++];
    level->inner = inner;
    level->before = NEW_ARRAY(scan->gen->arena, Reg, scan->lines * scan->groups);
    return level;
}

/* Groups of one thread, one after the other */
static void scan_registers(Scan *scan, int extent) {
    Level *level = add_level(scan, extent);
    int count = scan->lines * scan->groups;
    bool vectors = level == scan->levels;
    for (int g = 0; g < count; g += extent) {
        Reg total = PTX_NONE;
        for (int i = g; i < g + extent; i++) {
            level->before[i] = total;
            total = sum(scan, total, scan->totals[i]);
            if (vectors) scan->within[i] = total;
        }
        scan->totals[g / extent] = total;
    }
    scan->groups /= extent;
}

/* True in lanes that have another one at this distance before them */
static Reg has_before(const Scan *scan, const Digit *digit, int64_t distance) {
    Ptx *ptx = scan->gen->ptx;
    int64_t mask = digit->place * (digit->extent - 1);
    Reg own = PURE(ptx, REG_32, "and.b32", ptx_reg(scan->lane), ptx_int(mask));
    return scan->backward
               ? PURE(ptx, REG_PRED, "setp.le.u32", ptx_reg(own), ptx_int(mask - distance))
               : PURE(ptx, REG_PRED, "setp.ge.u32", ptx_reg(own), ptx_int(distance));
}

/* The value of the last lane, in the order of the scan */
static Reg last_of_lanes(const Scan *scan, const Digit *digit, Reg value) {
    Ptx *ptx = scan->gen->ptx;
    int64_t mask = digit->place * (digit->extent - 1);
    Reg last = scan->backward
                   ? PURE(ptx, REG_32, "and.b32", ptx_reg(scan->lane), ptx_int(31 & ~mask))
                   : PURE(ptx, REG_32, "or.b32", ptx_reg(scan->lane), ptx_int(mask));
    return exchange_shuffle(scan->gen, value, "idx", ptx_reg(last));
}

/* `more`: totals are needed */
static void scan_lanes(Scan *scan, const Digit *digit, bool more) {
    Gen *gen = scan->gen;
    Level *level = add_level(scan, 1);
    const char *mode = scan->backward ? "down" : "up";
    int count = scan->lines * scan->groups;
    Reg *others = NEW_ARRAY(gen->arena, Reg, count);
    for (int g = 0; g < count; g++) scan->totals[g] = copy(scan, scan->totals[g]);
    for (int64_t lanes = 1; lanes < digit->extent; lanes *= 2) {
        int64_t distance = lanes * digit->place;
        Reg holds = has_before(scan, digit, distance);
        for (int g = 0; g < count; g++)
            others[g] = exchange_shuffle(gen, scan->totals[g], mode, ptx_int(distance));
        for (int g = 0; g < count; g++)
            reduction_add_if(gen, scan->tile, holds, scan->totals[g], others[g]);
    }
    Reg holds = has_before(scan, digit, digit->place);
    for (int g = 0; g < count; g++) {
        Reg before = exchange_shuffle(gen, scan->totals[g], mode, ptx_int(digit->place));
        level->before[g] = neutral_unless(scan, holds, before);
        if (more) scan->totals[g] = last_of_lanes(scan, digit, scan->totals[g]);
    }
}

/* This warp's number in the order of the scan, of those that exchange */
static Reg order_of_warp(const Scan *scan, const Digit *digit) {
    Lin number = lin_reg(scan->warp, 1, scan->gen->role->role->warps - 1), rest;
    lin_divide(scan->gen, number, digit->place / 32, &number, &rest);
    lin_divide(scan->gen, number, digit->extent, &rest, &number);
    if (!scan->backward) return lin_in_reg(scan->gen, number);
    return lin_in_reg(scan->gen, lin_add(scan->gen, lin_const(digit->extent - 1),
                                         lin_scale(scan->gen, number, -1)));
}

/* Adds the parts of one warp, `holds`: those before this one. */
static void add_warp(Scan *scan, Level *level, int first, const Reg *words, int count, Reg holds) {
    for (int e = 0; e < count; e++) {
        Reg *before = &level->before[first + e], *total = &scan->totals[first + e];
        if (before->class == REG_NONE) {
            *before = neutral_unless(scan, holds, words[e]);
            *total = words[e];
            continue;
        }
        reduction_add_if(scan->gen, scan->tile, holds, *before, words[e]);
        *total = sum(scan, *total, words[e]);
    }
}

/* All threads read the parts of all warps, and add them in the order of the scan. */
static void scan_warps(Scan *scan, const Digit *digit) {
    Gen *gen = scan->gen;
    const Exchange *exchange = &scan->tile->exchange;
    Level *level = add_level(scan, 1);
    int count = scan->lines * scan->groups, warps = exchange->warp_count;
    Parts parts = exchange_parts(gen, scan->tile, scan->totals, count, scan->lane);
    exchange_write(gen, &parts, scan->warp, scan->lane);
    instance_barrier(gen);
    Reg address = exchange_address(gen, &parts, exchange_first(gen, exchange, scan->warp));
    Reg order = order_of_warp(scan, digit);
    for (int n = 0; n < count; n += parts.vector)
        for (int w = 0; w < warps; w++) {
            Reg *words = NEW_ARRAY(gen->arena, Reg, parts.vector);
            for (int e = 0; e < parts.vector; e++) words[e] = new_value(scan);
            exchange_read(gen, &parts, address, n, scan->backward ? warps - 1 - w : w, words);
            Reg holds = PURE(gen->ptx, REG_PRED, "setp.gt.u32", ptx_reg(order), ptx_int(w));
            add_warp(scan, level, n, words, parts.vector, holds);
        }
    exchange_end(gen);
}

/* Level 0 is that of vectors. */
static void scan_levels(Scan *scan) {
    int count = scan->lines * scan->length;
    if (scan->spread->digits[0].in_thread) add_level(scan, 1);
    for (int e = 0; e < count; e++) scan->within[e] = scan->totals[e];
    for (int d = 0; d < scan->spread->count; d++) {
        const Digit *digit = &scan->spread->digits[d];
        bool more = false;
        for (int k = d + 1; k < scan->spread->count; k++)
            more |= scan->spread->digits[k].extent > 1;
        if (!digit->in_thread)
            scan_registers(scan, (int)digit->extent);
        else if (digit->place < 32)
            scan_lanes(scan, digit, more);
        else
            scan_warps(scan, digit);
    }
}

/* ---- the result ------------------------------------------------------------------------------ */

/* What is before each vector of a thread */
static Reg *before_vectors(const Scan *scan) {
    Reg *before = NEW_ARRAY(scan->gen->arena, Reg, scan->lines);
    int groups = 1;
    for (int l = scan->level_count - 1; l > 0; l--) {
        const Level *level = &scan->levels[l];
        int count = scan->lines * groups * level->inner;
        Reg *inner = NEW_ARRAY(scan->gen->arena, Reg, count);
        for (int g = 0; g < count; g++)
            inner[g] = sum(scan, before[g / level->inner], level->before[g]);
        before = inner;
        groups *= level->inner;
    }
    return before;
}

static void set_results(const Scan *scan, bool own) {
    const Level *vectors = &scan->levels[0];
    const Reg *before = before_vectors(scan);
    for (int e = 0; e < scan->lines * scan->length; e++) {
        Reg value =
            sum(scan, before[e / vectors->inner], own ? scan->within[e] : vectors->before[e]);
        move(scan, scan->elements[e],
             value.class == REG_NONE ? value_operand(reduction_neutral(scan->tile))
                                     : ptx_reg(value));
    }
}

void scan_end(Gen *gen, const Tile *tile) {
    BinaryOp relation = tile->value->scan.relation;
    Scan scan = {.gen = gen, .tile = tile, .backward = relation == OP_GE || relation == OP_GT};
    scan.lane = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(gen->role->thread), ptx_int(31));
    scan.warp = PURE(gen->ptx, REG_32, "shr.u32", ptx_reg(gen->role->thread), ptx_int(5));
    open_elements(&scan);
    int count = scan.lines * scan.length;
    scan.groups = scan.length;
    scan.totals = NEW_ARRAY(gen->arena, Reg, count);
    scan.within = NEW_ARRAY(gen->arena, Reg, count);
    for (int e = 0; e < count; e++) scan.totals[e] = copy(&scan, scan.elements[e]);
    scan_levels(&scan);
    set_results(&scan, relation == OP_LE || relation == OP_GE);
    ptx_forget(gen->ptx);
}
