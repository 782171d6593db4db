/* The correction of predicted times: it applies to launches with matrix instructions and facts like
 * those that were measured, it is the same for the same facts, and whoever is not near the least
 * time does not win by it. */
#include "lib/family.h"

#include "tests/unit/expect.h"

#include <string.h>

static size_t joined, known; /* predictions to the end, of all */

static Prediction usual(void) {
    Prediction p = {.seconds = 1e-5, .terms = {[MODEL_MATRIX] = 5e-6}};
    float facts[MODEL_FACTS] = {
        [FACT_MATRIX] = 0.5F,      [FACT_COPY] = 0.2F,       [FACT_SHARED] = 0.2F,
        [FACT_ISSUE] = 0.2F,       [FACT_FLIGHT] = 0.3F,     [FACT_ROLE] = 0.6F,
        [FACT_L2] = 0.2F,          [FACT_MEMORY] = 0.2F,     [FACT_OVERHEAD] = 0.2F,
        [FACT_TURNS] = 2,          [FACT_BLOCKS] = 132,      [FACT_AT_ONCE] = 1,
        [FACT_LAST] = 1.1F,        [FACT_STAGES] = 163840,   [FACT_CLUSTER] = 1,
        [FACT_WARPS] = 12,         [FACT_BYTES] = 2e7F,      [FACT_TILE] = 1e6F,
        [FACT_REUSE] = 4,          [FACT_OUT] = 0.05F,       [FACT_INSIDE_LEAST] = 1,
        [FACT_INSIDE_MOST] = 1,    [FACT_INSIDE_STORED] = 1, [FACT_PITCH] = 128,
        [FACT_PITCH_STORED] = 128, [FACT_WAITS] = 100,
    };
    memcpy(p.facts, facts, sizeof facts);
    return p;
}

static void applies(void) {
    Prediction p = usual();
    double correction = model_correction(&p);
    EXPECT(correction > 0.3 && correction < 3 && correction != 1);
    EXPECT(model_correction(&p) == correction);
    p.terms[MODEL_MATRIX] = 0; /* a kernel without matrix instructions */
    EXPECT(model_correction(&p) == 1);
    for (int f = 0; f < MODEL_FACTS; f++) { /* facts that no measured launch had */
        Prediction other = usual();
        other.facts[f] = 1e30F;
        EXPECT(model_correction(&other) == 1);
        other.facts[f] = -1;
        EXPECT(model_correction(&other) == 1);
        other.facts[f] = 0.0F / 0.0F;
        EXPECT(model_correction(&other) == 1);
    }
    Prediction unknown = {.unknown = "data decide its work"};
    EXPECT(model_correction(&unknown) == 1);
}

static double least_modelled(const Family *family, const Chosen *all) {
    double least = 0;
    for (size_t i = 0; i < family->count; i++) {
        double model = all[i].why == NULL ? all[i].predicted.modelled : 0;
        if (model > 0 && (least == 0 || model < least)) least = model;
    }
    return least;
}

/* Where only the best is asked for, it is the same, and most others are only bounded. */
static void bounds(const Family *family, Wish wish, Arena *arena, const Chosen *all) {
    Chosen *few = NEW_ARRAY(arena, Chosen, family->count + 1);
    wish.only_best = true;
    family_rate(family, &wish, arena, few);
    Chosen best = family_best(family, all), same = family_best(family, few);
    EXPECT(best.candidate == same.candidate && best.predicted.seconds == same.predicted.seconds);
    for (size_t i = 0; i < family->count; i++) {
        const Prediction *bound = &few[i].predicted, *time = &all[i].predicted;
        EXPECT(bound->modelled <= time->modelled && bound->correction == time->correction);
        EXPECT(bound->joined || bound->correction == 0);
        joined += bound->joined, known += time->joined;
    }
}

/* The best is one of those near the least time of the model, and has its own correction. */
static void stays_behind(const Family *family, int64_t m, int64_t n, int64_t k) {
    Arena *arena = arena_new();
    Chosen *all = NEW_ARRAY(arena, Chosen, family->count + 1);
    DeviceArgument arguments[] = {{.pointer = 1 << 20, .extents = {m, k}},
                                  {.pointer = UINT64_C(1) << 38, .extents = {n, k}},
                                  {.pointer = UINT64_C(1) << 40, .extents = {m, n}}};
    Wish wish = {.arguments = arguments, .machine = machine_by_name("h200")};
    family_rate(family, &wish, arena, all);
    Prediction best = family_best(family, all).predicted;
    double own = best.modelled * model_correction(&best), least = least_modelled(family, all);
    EXPECT(best.seconds > 0 && best.modelled <= least * MODEL_NEAR * (1 + 1e-12));
    EXPECT(best.seconds <= own * (1 + 1e-12) && best.seconds >= own * (1 - 1e-12));
    for (size_t i = 0; i < family->count; i++)
        EXPECT(all[i].why != NULL || all[i].predicted.seconds >= best.seconds);
    bounds(family, wish, arena, all);
    arena_free(arena);
}

int main(void) {
    PipecOptions options = {.size = sizeof options, .any_variant = true};
    PipecProgram *program = pipec_compile_file("kernels/linear.pipe", &options);
    EXPECT(pipec_program_status(program) == PIPEC_FINE);
    applies();
    const int64_t extents[] = {1, 8, 63, 64, 300, 1000, 4096, 16384};
    for (size_t i = 0; i < COUNT_OF(extents); i++)
        for (size_t j = 1; j < COUNT_OF(extents); j++)
            stays_behind(family_of(program), extents[i], (extents[j] + 7) / 8 * 8,
                         (extents[(i + j) % COUNT_OF(extents)] + 7) / 8 * 8);
    EXPECT(joined > 0 && joined < known * 6 / 10);
    pipec_program_free(program);
    return expect_failures();
}
