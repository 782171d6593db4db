/* Tensor maps in numbers: an extent of 0 on any axis, and nothing else, makes it a map of one
 * element. */
#include "launch/launch.h"

#include "tests/unit/expect.h"
#include "tests/unit/sample.h"

static const FormulaStep axes[3][1] = {{{F_SYMBOL, 0}}, {{F_SYMBOL, 1}}, {{F_SYMBOL, 2}}};
static const FormulaStep row[] = {{F_SYMBOL, 0}, {F_CONST, 2}, {F_MUL, 0}};
static const FormulaStep plane[] = {
    {F_SYMBOL, 0}, {F_SYMBOL, 1}, {F_MUL, 0}, {F_CONST, 2}, {F_MUL, 0}};
static const ManifestMap map = {.type = E_BF16,
                                .rank = 3,
                                .extents = {{axes[0], 1}, {axes[1], 1}, {axes[2], 1}},
                                .strides = {{NULL, 0}, {row, 3}, {plane, 5}},
                                .box = {64, 8, 2}};

static void whole(void) {
    static const int64_t symbols[] = {72, 5, 3};
    MapShape shape;
    EXPECT(map_evaluate(&map, symbols, &shape) == FORMULA_FINE && !shape.is_empty);
    EXPECT(shape.extents[0] == 72 && shape.extents[1] == 5 && shape.extents[2] == 3);
    EXPECT(shape.strides[0] == 2 && shape.strides[1] == 144 && shape.strides[2] == 720);
}

static void empty(void) {
    for (int zeros = 1; zeros < 8; zeros++) {
        int64_t symbols[3] = {72, 5, 3};
        MapShape shape;
        for (int axis = 0; axis < 3; axis++)
            if (zeros >> axis & 1) symbols[axis] = 0;
        EXPECT(map_evaluate(&map, symbols, &shape) == FORMULA_FINE && shape.is_empty);
        for (int axis = 0; axis < 3; axis++)
            EXPECT(shape.extents[axis] == 1 &&
                   shape.strides[axis] == (axis == 0 ? 2 : EMPTY_BYTES));
    }
}

static void faults(void) {
    static const int64_t large[] = {INT64_MAX, 0, 3}, negative[] = {72, -5, 3};
    MapShape shape;
    EXPECT(map_evaluate(&map, large, &shape) == FORMULA_OVERFLOW);
    EXPECT(map_evaluate(&map, negative, &shape) == FORMULA_OVERFLOW);
}

int main(void) {
    whole();
    empty();
    faults();
    return expect_failures();
}
