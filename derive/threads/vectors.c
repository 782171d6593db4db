/* How many adjacent elements a thread accesses at once: the number for which a warp's accesses take
 * the fewest instructions and rounds of the banks. */
#include "derive/tiles.h"

/* of a warp's instruction with one element per lane, and of a round of 128 bytes */
#define ACCESS_COST 16

static int64_t sum_within(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int64_t extent_product(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t elements_of(const IndexSpace *space, const Access *access) {
    int64_t elements = 1;
    for (int i = 0; i < space->count; i++) {
        bool depends = false;
        for (int d = 0; d < access->rank; d++)
            depends |= !access->affine[d].is || access->affine[d].coef[i] != 0;
        if (depends) elements = extent_product(elements, space->items[i].extent);
    }
    return elements;
}

void traffic_add(Traffic *traffic, const IndexSpace *space, const Access *access) {
    int64_t *elements = &traffic->elements[__builtin_ctz(element_rows[access->type].bytes)];
    *elements = sum_within(*elements, elements_of(space, access));
}

/* Lanes whose vectors are longer than 16 bytes take several instructions, each with the lanes
 * further apart: several of them meet in each bank. */
static int64_t cost_of(int64_t elements, int bytes, int vector) {
    int each = VECTOR_BYTES / bytes, apart = vector > each ? vector / each : 1;
    int at_once = vector < each ? vector : each;
    int round = at_once * bytes < BANK_BYTES ? BANK_BYTES / at_once : bytes;
    return extent_product(elements,
                          ACCESS_COST / at_once + ACCESS_COST / BANK_BYTES * round * apart);
}

int traffic_vector(const Traffic *traffic) {
    int64_t least = INT64_MAX;
    int best = 1;
    for (int vector = VECTOR_MOST; vector >= 1; vector /= 2) {
        int64_t cost = 0;
        for (int size = 0; size < TRAFFIC_SIZES; size++)
            cost = sum_within(cost, cost_of(traffic->elements[size], 1 << size, vector));
        if (cost < least) least = cost, best = vector;
    }
    return best;
}

/* What divides the rows of a tensor if `requires` excludes that 16 bytes do, otherwise 0 */
static int64_t crooked_of(Tiles *tiles, const Param *param) {
    int64_t whole = VECTOR_BYTES / element_rows[param->type].bytes;
    if (!param->is_tensor || param->rank < 2 || whole <= 1) return 0;
    Expr *along = param->extents[param->rank - 1],
         *of = expr_integer(tiles->arena, E_I32, whole, param->span);
    const Poly *rest = algebra_poly(tiles->formulas, NULL,
                                    expr_binary(tiles->arena, OP_MOD, along, of, param->span));
    if (!algebra_proves(tiles->formulas, CLAIM_NOT_ZERO, rest)) return 0;
    return common_divisor(
        whole, poly_divisor(tiles->formulas, algebra_poly(tiles->formulas, NULL, along)));
}

void tiles_crooked(Tiles *tiles) {
    for (size_t i = 0; i < tiles->prog->params.count; i++)
        tiles->prog->params.items[i].crooked = crooked_of(tiles, &tiles->prog->params.items[i]);
}

int64_t crooked_rows(const Prog *prog, const Access *access) {
    return access->space == SPACE_GLOBAL ? prog->params.items[access->object].crooked : 0;
}
