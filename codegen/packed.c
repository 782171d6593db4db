/* Copies between a `shared` tile and rows of a tensor that are adjacent in memory, whatever their
 * length: vectors of 16 bytes of the tensor, each of which holds parts of one or two rows. The
 * plan says which statements allow it (derive/plan/plan_wide.c); a launch, and the tile's place in
 * the tensor, decide whether they do it. */
#include "codegen/chunks.h"

#define IN_FLIGHT 4 /* vectors of a thread */

typedef struct Packing {
    Walk *walk;
    const Packed *packed;
    Reg length;            /* .b32: of a row */
    Reg tile;              /* .b32: the address of the tile */
    Reg start;             /* .b64: the address of the first row */
    Reg count;             /* .b32: number of vectors */
    int bytes, per, words; /* of an element; elements and words of a vector */
    bool pairs;            /* two elements of 2 bytes move at once: the length is even */
} Packing;

static Operand length_of(const Walk *walk) {
    const Access *rows = walk->moves->packed.rows;
    const Param *param = &walk->gen->prog->params.items[rows->object];
    return ptx_reg(walk->gen->symbols[param->extents[1]->index]);
}

static Reg first_row(Walk *walk) {
    const Access *rows = walk->moves->packed.rows;
    return value_in_reg(walk->gen, eval(walk->gen, &walk->statement, rows->affine[0].base));
}

/* All rows are inside of the tensor, which has no gaps between them, and begins at a multiple of
 * the vector. A vector holds parts of at most two rows. */
Reg packed_holds(Walk *walk) {
    Gen *gen = walk->gen;
    Ptx *ptx = gen->ptx;
    const Packed *packed = &walk->moves->packed;
    const Param *param = &gen->prog->params.items[packed->rows->object];
    int least = VECTOR_BYTES / element_rows[packed->rows->type].bytes - 1;
    Reg first = first_row(walk), stride = gen->strides[packed->rows->object * PROG_MAX_RANK];
    if (stride.class == REG_32) stride = PURE(ptx, REG_64, "cvt.u64.u32", ptx_reg(stride));
    Reg length = PURE(ptx, REG_64, "cvt.u64.u32", length_of(walk));
    Reg holds = PURE(ptx, REG_PRED, "setp.eq.u64", ptx_reg(stride), ptx_reg(length));
    holds = ptx_both(ptx, holds, pointer_aligned(gen, packed->rows->object, VECTOR_BYTES));
    Reg more = PURE(ptx, REG_32, "sub.s32", length_of(walk), ptx_int(least));
    holds = ptx_both(
        ptx, holds,
        PURE(ptx, REG_PRED, "setp.le.u32", ptx_reg(more), ptx_int(packed->columns - least)));
    Reg left = PURE(ptx, REG_32, "sub.s32", value_operand(eval_scalar(gen, param->extents[0])),
                    ptx_reg(first));
    holds = ptx_both(ptx, holds,
                     PURE(ptx, REG_PRED, "setp.ge.s32", ptx_reg(left), ptx_int(packed->count)));
    return ptx_both(ptx, holds, PURE(ptx, REG_PRED, "setp.ge.s32", ptx_reg(first), ptx_int(0)));
}

static Packing open_packing(Walk *walk) {
    Gen *gen = walk->gen;
    const Packed *packed = &walk->moves->packed;
    Packing p = {.walk = walk, .packed = packed};
    p.bytes = (int)element_rows[packed->rows->type].bytes;
    p.per = VECTOR_BYTES / p.bytes, p.words = VECTOR_BYTES / 4;
    p.length = length_of(walk).reg;
    p.tile = lin_in_reg(gen, shared_base(gen, packed->tile, &walk->statement));
    Reg wide = PURE(gen->ptx, REG_64, "mul.wide.u32", ptx_reg(first_row(walk)), ptx_reg(p.length));
    p.start = PURE(gen->ptx, REG_64, "mad.lo.s64", ptx_reg(wide), ptx_int(p.bytes),
                   ptx_reg(gen->pointers[packed->rows->object]));
    p.count =
        PURE(gen->ptx, REG_32, "mul.lo.s32", ptx_reg(p.length), ptx_int(packed->count / p.per));
    return p;
}

/* The thread's vector of a round, and the predicate that there is one */
static Reg vector_number(const Packing *p, int64_t round, Reg *exists) {
    Gen *gen = p->walk->gen;
    Lin number = lin_reg(gen->role->thread, 1, p->walk->threads - 1);
    number.is.add += round * p->walk->threads;
    Reg reg = lin_in_reg(gen, number);
    *exists = PURE(gen->ptx, REG_PRED, "setp.lt.u32", ptx_reg(reg), ptx_reg(p->count));
    return reg;
}

static Operand vector_at(const Packing *p, Reg number) {
    return ptx_at(PURE(p->walk->gen->ptx, REG_64, "mad.wide.u32", ptx_reg(number),
                       ptx_int(VECTOR_BYTES), ptx_reg(p->start)),
                  0);
}

/* Where the elements of a vector are in the tile: *left of them, or more, after the first address,
 * the others after the second. The quotient by the length is exact: the numbers are below 2^16, and
 * the halves are further from the next integer than the error of the reciprocal. */
static void place_vector(const Packing *p, Reg number, Reg *left, Reg addresses[2]) {
    Ptx *ptx = p->walk->gen->ptx;
    Reg at = PURE(ptx, REG_32, "mul.lo.s32", ptx_reg(number), ptx_int(p->per));
    Reg middle = PURE(ptx, REG_32, "cvt.rn.f32.u32", ptx_reg(at));
    middle = PURE(ptx, REG_32, "add.rn.f32", ptx_reg(middle), ptx_f32(0.5f));
    Reg inverse = PURE(ptx, REG_32, "cvt.rn.f32.u32", ptx_reg(p->length));
    inverse = PURE(ptx, REG_32, "rcp.approx.ftz.f32", ptx_reg(inverse));
    Reg row = PURE(ptx, REG_32, "mul.rn.f32", ptx_reg(middle), ptx_reg(inverse));
    row = PURE(ptx, REG_32, "cvt.rzi.u32.f32", ptx_reg(row));
    Reg before = PURE(ptx, REG_32, "mul.lo.s32", ptx_reg(row), ptx_reg(p->length));
    Reg column = PURE(ptx, REG_32, "sub.s32", ptx_reg(at), ptx_reg(before));
    *left = PURE(ptx, REG_32, "sub.s32", ptx_reg(p->length), ptx_reg(column));
    int64_t pitch = p->packed->pitch;
    Reg line =
        PURE(ptx, REG_32, "mad.lo.s32", ptx_reg(row), ptx_int(pitch * p->bytes), ptx_reg(p->tile));
    addresses[0] =
        PURE(ptx, REG_32, "mad.lo.s32", ptx_reg(column), ptx_int(p->bytes), ptx_reg(line));
    Reg unused = PURE(ptx, REG_32, "sub.s32", ptx_int(pitch), ptx_reg(p->length));
    addresses[1] =
        PURE(ptx, REG_32, "mad.lo.s32", ptx_reg(unused), ptx_int(p->bytes), ptx_reg(addresses[0]));
}

static Operand element_at(const Packing *p, Reg left, const Reg addresses[2], int element) {
    Ptx *ptx = p->walk->gen->ptx;
    if (element == 0) return ptx_at(addresses[0], 0);
    Reg same = PURE(ptx, REG_PRED, "setp.gt.s32", ptx_reg(left), ptx_int(element));
    Reg address =
        PURE(ptx, REG_32, "selp.b32", ptx_reg(addresses[0]), ptx_reg(addresses[1]), ptx_reg(same));
    return ptx_at(address, (int64_t)element * p->bytes);
}

/* ---- into the tile --------------------------------------------------------------------------- */

static void load_vectors(const Packing *p, int64_t first, int64_t end, Reg (*words)[4]) {
    Ptx *ptx = p->walk->gen->ptx;
    for (int64_t round = first; round < end; round++) {
        Reg exists, number = vector_number(p, round, &exists), *to = words[round - first];
        for (int w = 0; w < p->words; w++) to[w] = ptx_new_reg(ptx, REG_32);
        INS_IF(ptx, exists, "ld.global.v4.b32", ptx_vector(to, p->words), vector_at(p, number));
    }
}

/* The columns after the rows are zeros. */
static void clear_tile(const Packing *p) {
    Gen *gen = p->walk->gen;
    int64_t vectors = p->packed->count * p->packed->pitch * p->bytes / VECTOR_BYTES;
    Reg zero = PURE(gen->ptx, REG_32, "mov.b32", ptx_int(0)), zeros[4] = {zero, zero, zero, zero};
    Reg base = PURE(gen->ptx, REG_32, "mad.lo.s32", ptx_reg(gen->role->thread),
                    ptx_int(VECTOR_BYTES), ptx_reg(p->tile));
    for (int64_t done = 0; done < vectors; done += p->walk->threads) {
        Reg exists = PTX_NONE;
        if (vectors - done < p->walk->threads)
            exists = PURE(gen->ptx, REG_PRED, "setp.lt.u32", ptx_reg(gen->role->thread),
                          ptx_int(vectors - done));
        ptx_ins(gen->ptx, exists, false, "st.shared.v4.b32",
                (Operand[]){ptx_at(base, done * VECTOR_BYTES), ptx_vector(zeros, 4)}, 2);
    }
}

static void scatter(const Packing *p, Reg number, const Reg *words) {
    Gen *gen = p->walk->gen;
    Reg left, addresses[2], halves[2];
    place_vector(p, number, &left, addresses);
    const char *store =
        arena_printf(gen->arena, "st.shared.%s", memory_suffix(p->packed->rows->type));
    for (int w = 0; p->pairs && w < p->words; w++)
        INS(gen->ptx, "st.shared.b32", element_at(p, left, addresses, 2 * w), ptx_reg(words[w]));
    if (p->pairs) return;
    for (int e = 0; e < p->per; e++) {
        Reg value = words[e * p->words / p->per];
        if (p->bytes == 2 && e % 2 == 0) {
            for (int h = 0; h < 2; h++) halves[h] = ptx_new_reg(gen->ptx, REG_16);
            INS(gen->ptx, "mov.b32", ptx_vector(halves, 2), ptx_reg(value));
        }
        if (p->bytes == 2) value = halves[e % 2];
        INS(gen->ptx, store, element_at(p, left, addresses, e), ptx_reg(value));
    }
}

/* For threads that have the vector of the round; returns the label after it */
static int open_vector(const Packing *p, int64_t round, Reg *number) {
    Ptx *ptx = p->walk->gen->ptx;
    Reg exists;
    int skip = ptx_new_label(ptx);
    *number = vector_number(p, round, &exists);
    INS_UNLESS(ptx, exists, "bra", ptx_label(skip));
    return skip;
}

static void scatter_rounds(const Packing *p, int64_t first, int64_t end, Reg (*words)[4]) {
    Reg number;
    for (int64_t round = first; round < end; round++) {
        int skip = open_vector(p, round, &number);
        scatter(p, number, words[round - first]);
        ptx_place_label(p->walk->gen->ptx, skip);
    }
}

typedef void Rounds(const Packing *p, int64_t first, int64_t end, Reg (*words)[4]);

/* In pairs, if the length is even: half of the accesses of shared memory, whose lanes often meet in
 * a bank */
static void in_pairs(const Packing *p, Rounds *move, int64_t first, int64_t end, Reg (*words)[4]) {
    Ptx *ptx = p->walk->gen->ptx;
    Packing pairs = *p;
    if (p->bytes != 2 || p->packed->pitch % 2 != 0) {
        move(p, first, end, words);
        return;
    }
    pairs.pairs = true;
    int odd = ptx_new_label(ptx), done = ptx_new_label(ptx);
    Reg last = PURE(ptx, REG_32, "and.b32", ptx_reg(p->length), ptx_int(1));
    INS_IF(ptx, PURE(ptx, REG_PRED, "setp.ne.s32", ptx_reg(last), ptx_int(0)), "bra.uni",
           ptx_label(odd));
    move(&pairs, first, end, words);
    INS(ptx, "bra.uni", ptx_label(done));
    ptx_place_label(ptx, odd);
    move(p, first, end, words);
    ptx_place_label(ptx, done);
}

static void unpack(const Packing *p, int64_t rounds) {
    Gen *gen = p->walk->gen;
    Reg words[IN_FLIGHT][4];
    for (int64_t first = 0, end; first < rounds; first = end) {
        end = rounds - first < IN_FLIGHT ? rounds : first + IN_FLIGHT;
        load_vectors(p, first, end, words);
        if (first == 0) {
            clear_tile(p);
            instance_barrier(gen);
        }
        in_pairs(p, scatter_rounds, first, end, words);
    }
}

/* ---- out of it ------------------------------------------------------------------------------- */

static void gather(const Packing *p, Reg number, Reg *words) {
    Gen *gen = p->walk->gen;
    Reg left, addresses[2], values[VECTOR_MOST];
    place_vector(p, number, &left, addresses);
    const char *load =
        arena_printf(gen->arena, "ld.shared.%s", memory_suffix(p->packed->rows->type));
    for (int w = 0; p->pairs && w < p->words; w++) {
        words[w] = ptx_new_reg(gen->ptx, REG_32);
        INS(gen->ptx, "ld.shared.b32", ptx_reg(words[w]), element_at(p, left, addresses, 2 * w));
    }
    if (p->pairs) return;
    for (int e = 0; e < p->per; e++) {
        values[e] = ptx_new_reg(gen->ptx, memory_class(p->packed->rows->type));
        INS(gen->ptx, load, ptx_reg(values[e]), element_at(p, left, addresses, e));
    }
    pack_words(gen, p->packed->rows->type, values, p->per, words);
}

static void gather_rounds(const Packing *p, int64_t first, int64_t end, Reg (*unused)[4]) {
    Ptx *ptx = p->walk->gen->ptx;
    (void)unused;
    for (int64_t round = first; round < end; round++) {
        Reg number, words[4];
        int skip = open_vector(p, round, &number);
        gather(p, number, words);
        INS(ptx, "st.global.v4.b32", vector_at(p, number), ptx_vector(words, p->words));
        ptx_place_label(ptx, skip);
    }
}

void packed_copy(Walk *walk) {
    Packing p = open_packing(walk);
    int64_t rounds = (walk->moves->total / p.per + walk->threads - 1) / walk->threads;
    if (walk->tile->target.space == SPACE_SHARED)
        unpack(&p, rounds);
    else
        in_pairs(&p, gather_rounds, 0, rounds, NULL);
}
