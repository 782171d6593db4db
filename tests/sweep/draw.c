/* Draws shapes. Sizes near those of the kernel's tiles, near a warp, 0, 1 and primes are frequent;
 * most extents that a launch divides are multiples of 16, because copies by TMA refuse other
 * pitches. Statics are
 * drawn from their sets. The product of all extents is bounded, and with it the time of a run. */
#include "tests/sweep/sweep.h"

#include <inttypes.h>
#include <string.h>

#define WORK_MOST    ((int64_t)1 << 21) /* product of the extents */
#define SIZE_MOST    5000
#define TILE_MOST    4096
#define ATTEMPTS     50
#define ROUND        16
#define ZERO_PERCENT 4

typedef struct Drawing {
    Arena *arena;
    const Prog *prog;
    Random random;
    VEC(const char *) values;
    int64_t work; /* product of the extents so far, without zeros */
} Drawing;

static uint64_t hash_of(const char *text, uint64_t seed) {
    for (; *text != 0; text++) seed = (seed ^ (uint64_t)(unsigned char)*text) * 0x100000001b3u;
    return seed;
}

static void give(Drawing *drawing, const char *name, int64_t value) {
    vec_push(drawing->arena, &drawing->values,
             arena_printf(drawing->arena, "%s=%" PRId64, name, value));
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static int64_t near_a_tile(Drawing *drawing) {
    const Prog *prog = drawing->prog;
    if (prog->constants.count == 0) return 1;
    const Constant *constant =
        &prog->constants.items[draw(&drawing->random, (uint32_t)prog->constants.count)];
    if (element_rows[constant->value->type].kind == ELEMENT_FLOAT) return 1;
    int64_t tile = constant->value->constant.integer;
    if (tile < 2 || tile > TILE_MOST) return 1;
    return tile * (1 + draw(&drawing->random, 2)) + draw(&drawing->random, 3) - 1;
}

/* Every order of magnitude is equally likely. */
static int64_t of_any_magnitude(Drawing *drawing) {
    uint32_t most = 2u << draw(&drawing->random, 12);
    return 1 + draw(&drawing->random, most);
}

static int64_t interesting(Drawing *drawing) {
    static const int64_t sizes[] = {1,   2,   3,   5,   7,    8,    9,    13,  15,  16,
                                    17,  24,  31,  32,  33,   61,   63,   64,  65,  97,
                                    101, 104, 127, 128, 129,  136,  199,  248, 251, 256,
                                    257, 264, 509, 512, 1021, 1023, 1024, 1032};
    return sizes[draw(&drawing->random, COUNT_OF(sizes))];
}

/* `wholes`: percentage of multiples of ROUND */
static int64_t draw_size(Drawing *drawing, int wholes) {
    uint32_t way = draw(&drawing->random, 3);
    int64_t size = way == 0   ? near_a_tile(drawing)
                   : way == 1 ? interesting(drawing)
                              : of_any_magnitude(drawing);
    if (chance(&drawing->random, wholes)) size = (size + ROUND - 1) / ROUND * ROUND;
    return size;
}

/* An extent of at most `most`; `left`: number of extents that will be drawn after it, for which
 * some of the work is kept. */
static int64_t draw_extent(Drawing *drawing, int64_t most, size_t left, int wholes) {
    int64_t room = WORK_MOST / drawing->work, size = 1;
    for (size_t i = 0; i < left; i++) room /= ROUND;
    if (room < most) most = room;
    for (int i = 0; i < ATTEMPTS; i++) {
        size = draw_size(drawing, wholes);
        if (size <= most) break;
        size = 1;
    }
    drawing->work *= size;
    return size;
}

/* ---- statics --------------------------------------------------------------------------------- */

static bool is_letter(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool static_is_extent(const Prog *prog, const Constant *constant) {
    size_t length = strlen(constant->name);
    const char *head = prog->source->text + prog->span.lo, *end = strchr(head, '{');
    if (!constant->is_static || constant->choices.count > 0 || end == NULL) return false;
    for (const char *at = head + 1; at + length < end; at++)
        if (memcmp(at, constant->name, length) == 0 && !is_letter(at[-1]) && !is_letter(at[length]))
            return true;
    return false;
}

/* Half of the statics keep their default, because many combinations exceed a block. */
static void draw_statics(Drawing *drawing) {
    for (size_t i = 0; i < drawing->prog->constants.count; i++) {
        const Constant *constant = &drawing->prog->constants.items[i];
        uint32_t choices = (uint32_t)constant->choices.count;
        if (static_is_extent(drawing->prog, constant))
            give(drawing, constant->name,
                 draw_extent(drawing, constant->value->constant.integer, 1, 50));
        else if (choices > 0 && chance(&drawing->random, 50))
            give(drawing, constant->name, constant->choices.items[draw(&drawing->random, choices)]);
    }
}

/* ---- extents --------------------------------------------------------------------------------- */

/* True if the steps alone compute one value */
static bool is_formula(const Formula *formula) {
    int values = 0;
    for (int i = 0; i < formula->count; i++) {
        values += 1 - formula_operands(formula->steps[i].op);
        if (values < 1) return false;
    }
    return values == 1;
}

/* The value that `requires` gives to a symbol: `D == ceil(N, T)`. False: none does. */
static bool required_value(const Manifest *manifest, size_t symbol, Formula *value) {
    for (size_t i = 0; i < manifest->preconditions.count; i++) {
        const Formula *condition = &manifest->preconditions.items[i].condition;
        const FormulaStep *steps = condition->steps;
        if (condition->count < 3 || steps[condition->count - 1].op != F_EQ) continue;
        *value = (Formula){steps + 1, condition->count - 2};
        if (steps[0].op == F_SYMBOL && steps[0].value == (int64_t)symbol && is_formula(value))
            return true;
    }
    return false;
}

/* True if a launch asks for multiples of the symbol: `K * 2 % 16 == 0` */
static bool is_divided(const Manifest *manifest, size_t symbol) {
    for (size_t i = 0; i < manifest->preconditions.count; i++) {
        const Formula *condition = &manifest->preconditions.items[i].condition;
        bool reads = false, divides = false;
        for (int s = 0; s < condition->count; s++) {
            const FormulaStep *step = &condition->steps[s];
            reads = reads || (step->op == F_SYMBOL && step->value == (int64_t)symbol);
            divides = divides || step->op == F_MOD;
        }
        if (reads && divides) return true;
    }
    return false;
}

/* The extents are drawn in any order, so that each may be the one that can still be large; those
 * that `requires` computes from others come last. */
static void draw_extents(Drawing *drawing, const Manifest *manifest) {
    size_t count = manifest->symbols.count;
    size_t first = count > 0 ? draw(&drawing->random, (uint32_t)count) : 0;
    int64_t *values = NEW_ARRAY(drawing->arena, int64_t, count + 1);
    Formula value;
    for (size_t i = 0; i < count; i++) {
        size_t which = (first + i) % count;
        const ManifestSymbol *symbol = &manifest->symbols.items[which];
        int wholes = is_divided(manifest, which) ? 85 : 10;
        if (!symbol->is_extent || required_value(manifest, which, &value)) continue;
        if (!chance(&drawing->random, ZERO_PERCENT))
            values[which] = draw_extent(drawing, SIZE_MOST, count - 1 - i, wholes);
        give(drawing, symbol->name, values[which]);
    }
    for (size_t i = 0; i < count; i++) {
        if (required_value(manifest, i, &value) &&
            formula_eval(&value, values, &values[i]) == FORMULA_FINE)
            give(drawing, manifest->symbols.items[i].name, values[i]);
    }
}

Shape shape_draw(Arena *arena, const Prog *prog, const Manifest *manifest, uint64_t seed,
                 uint64_t number) {
    Drawing drawing = {.arena = arena, .prog = prog, .work = 1};
    Str text = str_new(arena);
    str_add(&text, "");
    drawing.random.state = hash_of(prog->source->name, hash_of(prog->name, seed << 32 | number));
    draw_statics(&drawing);
    draw_extents(&drawing, manifest);
    for (size_t i = 0; i < drawing.values.count; i++)
        str_printf(&text, "%s%s", i > 0 ? " " : "", drawing.values.items[i]);
    return (Shape){drawing.values.items, drawing.values.count, text.text};
}
