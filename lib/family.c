/* lib: the candidates of a kernel, and the choice among them for one launch. The choice is a
 * function of the launch's extents, strides, alignments and scalars, of the machine, and of the
 * choices of tuning as they were when the family was made. */
#include "lib/family.h"

#include "lib/bundle.h"
#include "lib/invariant.h"

#include "lib/tune.h"

#include "launch/pack.h"

#include <inttypes.h>
#include <string.h>

/* ---- candidates ------------------------------------------------------------------------------ */

typedef struct Making {
    Family *family;
    const PipecProgram *program;
    VEC(Candidate) found;
    PipecProgram *one; /* freed also if memory runs out */
} Making;

/* The words of the program's statics and of the open ones. What tensors decide may be a static of
 * other variants only */
static void set_words(Making *it, Candidate *candidate, const char *const *open, size_t count) {
    Arena *arena = it->family->arena;
    const char **given = choice_given(arena, it->program);
    size_t fixed = it->program->static_count;
    candidate->words = NEW_ARRAY(arena, const char *, fixed + count + 1);
    for (size_t i = 0; i < fixed; i++) {
        const char *name = arena_copy(arena, given[i], strcspn(given[i], "="));
        if (check_is_static(it->program->ast, candidate->kernel, name))
            candidate->words[candidate->word_count++] = given[i];
    }
    for (size_t i = 0; i < count; i++) candidate->words[candidate->word_count++] = open[i];
    candidate->values = statics_text(arena, open, count);
}

static const char *first_fault(Arena *arena, const Diags *diags) {
    for (size_t i = 0; i < diags->items.count; i++) {
        const Diag *diag = diags->items.items[i];
        if (diag->severity == SEVERITY_ERROR || diag->severity == SEVERITY_INCOMPLETE)
            return arena_printf(arena, "%s: %s", code_rows[diag->code].name, diag->message);
    }
    return "it cannot be built";
}

/* What a choice reads of the manifest of it->one, in the arena of the family: the program is large.
 * What is not proved is not chosen, except the program itself, whose verdict its caller has. */
static void take_manifest(Making *it, Candidate *candidate) {
    Arena *arena = it->family->arena;
    bool proved = it->one->status == PIPEC_FINE || it->found.count == 0;
    if (proved && it->one->manifest != NULL)
        candidate->manifest = manifest_packed(arena, it->one->manifest);
    else
        candidate->why = first_fault(arena, it->one->diags);
    candidate->unproved = candidate->manifest == NULL && it->one->status == PIPEC_INCOMPLETE;
}

static void compile_one(Making *it, const char *kernel, const char *const *words, size_t count) {
    it->one = program_again(it->program, kernel, words, count);
    if (it->one == NULL) arena_fail(it->family->arena);
}

/* The words of the values that it->one was compiled with */
static const char **own_words(Making *it, const OpenStatics *open, const Prog *constants) {
    const char **words = NEW_ARRAY(it->family->arena, const char *, open->count + 1);
    for (size_t i = 0; i < open->count; i++)
        for (size_t k = 0; k < constants->constants.count; k++) {
            const Constant *constant = &constants->constants.items[k];
            if (strcmp(constant->name, open->items[i].name) == 0)
                words[i] = arena_printf(it->family->arena, "%s=%" PRId64, constant->name,
                                        constant->value->constant.integer);
        }
    return words;
}

static OpenStatics copy_statics(Arena *arena, const OpenStatics *from) {
    OpenStatics copy = {0};
    for (size_t i = 0; i < from->count; i++) {
        const OpenStatic *one = &from->items[i];
        OpenStatic to = {.name = arena_copy(arena, one->name, strlen(one->name))};
        for (size_t k = 0; k < one->values.count; k++)
            vec_push(arena, &to.values, one->values.items[k]);
        vec_push(arena, &copy, to);
    }
    return copy;
}

/* The candidate with these words for the open statics, compiled unless it->one is it */
static void add(Making *it, const char *kernel, const char *const *open, size_t count) {
    Candidate next = {.kernel = kernel};
    set_words(it, &next, open, count);
    if (it->one == NULL) compile_one(it, kernel, next.words, next.word_count);
    take_manifest(it, &next);
    pipec_program_free(it->one);
    it->one = NULL;
    vec_push(it->family->arena, &it->found, next);
}

/* The candidate with the values of the text, then the others in the order of the sets */
static void add_kernel(Making *it, const char *kernel) {
    Arena *arena = it->family->arena;
    Candidate own_given = {.kernel = kernel};
    set_words(it, &own_given, NULL, 0);
    compile_one(it, kernel, own_given.words, own_given.word_count);
    PipecProgram *own = it->one;
    Settings given = {.statics = own->statics, .count = own->static_count};
    const Prog *constants = own->ast == NULL ? NULL
                                             : check_constants(own->arena, own->names, own->ast,
                                                               own->source, kernel, &given);
    OpenStatics open = {0};
    if (constants != NULL) {
        OpenStatics read = statics_open(arena, constants, own);
        open = copy_statics(arena, &read);
    }
    const char **first = constants != NULL ? own_words(it, &open, constants) : NULL;
    add(it, kernel, first, open.count);
    size_t all = statics_combinations(&open), own_place = it->found.count - 1;
    if (all > COMBINATIONS_TRIED && it->family->beyond == NULL) {
        it->family->beyond = kernel;
        it->family->fixed = first[0];
    }
    for (size_t place = 0; all <= COMBINATIONS_TRIED && place < all; place++) {
        const char **words = statics_words(arena, &open, place);
        if (strcmp(statics_text(arena, words, open.count), it->found.items[own_place].values) != 0)
            add(it, kernel, words, open.count);
    }
}

static void make(void *data) {
    Making *it = data;
    const PipecProgram *program = it->program;
    Family *family = it->family;
    family->key = choice_of_text(family->arena, program);
    family->is_kept = family_recall(family);
    if (family->is_kept) {
        family_finish(family);
        return;
    }
    add_kernel(it, program->kernel);
    for (size_t i = 0; i < program->kernel_count && program->open_kernel != NULL; i++) {
        const char *kernel = program->kernels[i];
        if (check_is_named(kernel, program->open_kernel) && strcmp(kernel, program->kernel) != 0 &&
            choice_has_statics(program, kernel))
            add_kernel(it, kernel);
    }
    family->items = it->found.items;
    family->count = it->found.count;
    family_keep(family);
    family_finish(family);
}

static void new_family(void *data) {
    Making *it = data;
    Arena *arena = it->family->arena;
    it->family = NEW(arena, Family);
    *it->family = (Family){.arena = arena, .program = it->program};
}

/* In an arena of its own */
static Family *family_new(const PipecProgram *program, Arena **arena) {
    Family start = {.arena = arena_new()};
    Making it = {.family = &start, .program = program};
    if (start.arena == NULL) return NULL;
    bool made = attempt(start.arena, new_family, &it) && attempt(start.arena, make, &it);
    pipec_program_free(it.one);
    *arena = made ? start.arena : NULL;
    if (!made) arena_free(start.arena);
    return made ? it.family : NULL;
}

const Family *family_of(PipecProgram *program) {
    pthread_mutex_lock(&program->lock);
    if (program->family == NULL) program->family = family_new(program, &program->family_arena);
    const Family *family = program->family;
    pthread_mutex_unlock(&program->lock);
    return family;
}

bool family_is_open(const PipecProgram *program) {
    if (program->bundle != NULL) return true;
    if (program->prog == NULL || program->manifest == NULL) return false;
    if (program->open_kernel != NULL) return true;
    for (size_t i = 0; i < program->prog->constants.count; i++) {
        const Constant *constant = &program->prog->constants.items[i];
        if (constant->choices.count > 1 && !constant->is_type &&
            !static_is_given(program, constant->name) && !static_is_bound(program, constant->name))
            return true;
    }
    return false;
}

PipecProgram *family_program(const Family *family, const Candidate *candidate) {
    if (family->program->bundle != NULL)
        return bundle_program(family->program->bundle, (size_t)(candidate - family->items));
    return program_again(family->program, candidate->kernel, candidate->words,
                         candidate->word_count);
}

/* ---- the choice ------------------------------------------------------------------------------ */

#define NEARBY 0.10 /* extents differ by at most this part */
#define AGREES 1.05 /* and the model expects at most so many times the least time */

typedef struct Choosing {
    const Family *family;
    const Wish *wish;
    Arena *words;
    Diags *diags;     /* without errors: of the next candidate */
    int64_t **common; /* values of what candidates have in common; NULL: they have none */
    int64_t *alone;   /* values of a candidate of its own */
    /* of a candidate that can run: the values, and the manifest for them */
    const Manifest *manifest;
    int64_t *values;
    int64_t tiles;
    /* what tuning measured for exactly these extents, once one candidate can run */
    const Choice *exact;
    size_t exact_count;
    bool known;
} Choosing;

static const char *alignment_fault(Choosing *it, const Manifest *manifest) {
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &manifest->parameters.items[i];
        if (parameter->kind == PARAMETER_TENSOR && parameter->alignment > 1 &&
            it->wish->arguments[i].pointer % parameter->alignment != 0)
            return arena_printf(it->words, "P0620: the base of `%s` must be a multiple of %u bytes",
                                parameter->name, parameter->alignment);
    }
    return NULL;
}

/* NULL: the candidate can run, and the symbols are set */
static const char *why_not(Choosing *it, const Candidate *candidate) {
    const Manifest *manifest = candidate->manifest;
    if (manifest == NULL) return candidate->why;
    if (candidate->elsewhere) return arena_printf(it->words, "it is for %s", manifest->target);
    if (it->wish->multiprocessors > 0 && !manifest->persistent)
        return "P0918: its grid is not persistent, so its multiprocessors cannot be limited";
    it->values = it->common[candidate->common];
    it->manifest = candidate->placed;
    if (it->values != NULL && launch_check(it->manifest, it->values, &it->tiles, NULL))
        return alignment_fault(it, manifest);
    Diags *diags = it->diags;
    it->values = it->alone;
    it->manifest = manifest;
    if (launch_bind(manifest, it->wish->arguments, it->values, &it->tiles, diags))
        return alignment_fault(it, manifest);
    it->diags = diags_new(it->words, NULL);
    return first_fault(it->words, diags);
}

static void bind_commons(Choosing *it) {
    const Commons *commons = &it->family->commons;
    size_t alone = 0;
    it->common = NEW_ARRAY(it->words, int64_t *, commons->count + 1);
    for (size_t i = 0; i < commons->count; i++) {
        const Common *common = &commons->items[i];
        int64_t *values = NEW_ARRAY(it->words, int64_t, common_values(common) + 1);
        if (common->named > alone) alone = common->named;
        if (common_bind(common, it->wish->arguments, values, it->diags))
            it->common[i] = values;
        else
            it->diags = diags_new(it->words, NULL);
    }
    it->alone = NEW_ARRAY(it->words, int64_t, alone + 1);
}

static bool is_of(const Choice *choice, const Candidate *candidate) {
    return strcmp(choice->kernel, candidate->kernel) == 0 &&
           strcmp(choice->values, candidate->values) == 0;
}

/* What tuning measured of the candidate nearby */
static const Choice *find_near(Choosing *it, const Candidate *candidate) {
    const Kept *kept = it->wish->kept;
    const Choice *best = NULL;
    for (size_t i = 0; i < kept->count; i++) {
        const Choice *near = &kept->items[i];
        if (near->near && is_of(near, candidate) &&
            (best == NULL || near->seconds < best->seconds) &&
            choice_is_near(near, candidate->manifest, it->values, NEARBY))
            best = near;
    }
    return best;
}

static void find_kept(Choosing *it, Chosen *chosen) {
    const Manifest *manifest = chosen->candidate->manifest;
    const Kept *kept = it->wish->kept;
    if (kept == NULL || kept->count == 0) return;
    if (!it->known)
        it->exact =
            kept_find(kept, choice_extents(it->words, manifest, it->values), &it->exact_count);
    it->known = true;
    for (size_t i = 0; i < it->exact_count && chosen->kept == NULL; i++)
        if (is_of(&it->exact[i], chosen->candidate)) chosen->kept = &it->exact[i];
    if (chosen->kept == NULL) chosen->near = find_near(it, chosen->candidate);
}

/* The caller's choice for the extents of a candidate that can run */
static const Choice *find_fixed(const Choosing *it, const Candidate *candidate) {
    size_t count;
    if (it->wish->fixed == NULL || it->wish->fixed->count == 0) return NULL;
    const Choice *found = kept_find(
        it->wish->fixed, choice_extents(it->words, candidate->manifest, it->values), &count);
    return count > 0 ? found : NULL;
}

/* Why the fixed choice cannot run; NULL: it can. The others cannot. */
static const char *fix(const Family *family, const Choice *fixed, Chosen *all) {
    const char *why = "the kernel has no such variant, or not these values";
    for (size_t i = 0; i < family->count; i++) {
        if (is_of(fixed, all[i].candidate))
            why = all[i].why;
        else
            all[i].why = "another one is fixed for these extents";
    }
    return why;
}

/* Why a candidate that can run is not taken */
static const char *not_alike(const Choosing *it, const Candidate *candidate) {
    const char *fault = invariant_fault(it->words, candidate->manifest);
    return fault != NULL ? fault : "it adds in another order than the invariant one";
}

/* Why no invariant candidate can run, although others can; NULL: one can */
static const char *limit(const Choosing *it, Chosen *all) {
    const Family *family = it->family;
    const Candidate *like = invariant_reference(family, it->wish->arguments, it->words);
    const char *why = "none that is invariant can run for one row and for many, with these extents";
    bool runs = false;
    for (size_t i = 0; i < family->count; i++) {
        Chosen *next = &all[i];
        bool alike = like != NULL && invariant_alike(like, next->candidate);
        if (next->candidate == like) why = next->why;
        if (alike)
            runs = runs || next->why == NULL;
        else if (next->why == NULL)
            next->why = not_alike(it, next->candidate);
    }
    return runs ? NULL : why;
}

/* Least predicted time of those that can run */
static double least_time(const Family *family, const Chosen *all) {
    double least = 0;
    for (size_t i = 0; i < family->count; i++) {
        double seconds = all[i].why == NULL ? all[i].predicted.seconds : 0;
        if (seconds > 0 && (least == 0 || seconds < least)) least = seconds;
    }
    return least;
}

/* Joins the terms of the candidates that can be near the least time, or of all. That with the least
 * bound is likely to have the least time. */
static void join_terms(const Family *family, Chosen *all, bool only_near) {
    double least = least_time(family, all), most = 0;
    for (size_t i = 0; i < family->count && only_near; i++) {
        Prediction *next = &all[i].predicted;
        if (all[i].why != NULL || next->seconds != least || next->unknown != NULL) continue;
        model_join(next);
        most = next->seconds;
    }
    for (size_t i = 0; i < family->count; i++) {
        Prediction *next = &all[i].predicted;
        if (all[i].why != NULL || (only_near && next->seconds > most * MODEL_NEAR)) continue;
        model_join(next);
        if (next->seconds > 0 && next->seconds < most) most = next->seconds;
    }
}

/* Corrects the predicted times of the candidates near the least one. The times of the others are
 * multiplied by the largest correction of these, so that none of them becomes the least. */
static void correct(const Family *family, Chosen *all) {
    double limit = least_time(family, all) * MODEL_NEAR, most = 1;
    for (size_t i = 0; i < family->count; i++) {
        Prediction *next = &all[i].predicted;
        if (all[i].why != NULL || next->seconds > limit) continue;
        next->correction = model_correction(next);
        if (next->correction > most) most = next->correction;
    }
    for (size_t i = 0; i < family->count; i++) {
        Prediction *next = &all[i].predicted;
        next->seconds *= next->correction > 0 ? next->correction : most;
    }
}

Limits family_rate(const Family *family, const Wish *wish, Arena *words, Chosen *all) {
    Choosing it = {.family = family, .wish = wish, .words = words, .diags = diags_new(words, NULL)};
    Limits limits = {NULL, NULL};
    bool runs = false;
    bind_commons(&it);
    for (size_t i = 0; i < family->count; i++) {
        Chosen *next = &all[i];
        *next = (Chosen){.candidate = &family->items[i]};
        next->why = why_not(&it, next->candidate);
        if (next->why != NULL) continue;
        if (!runs) limits.fixed = find_fixed(&it, next->candidate);
        runs = true;
        find_kept(&it, next);
        if (wish->machine != NULL)
            model_bound(words, it.manifest, it.values, it.tiles, wish->machine, &next->predicted);
    }
    bool only_near = wish->only_best && !wish->invariant && limits.fixed == NULL;
    if (wish->machine != NULL) join_terms(family, all, only_near);
    correct(family, all);
    if (runs && wish->invariant) limits.why = limit(&it, all);
    if (limits.fixed != NULL && limits.why == NULL) limits.why = fix(family, limits.fixed, all);
    return limits;
}

/* What tuning measured nearby, if the model agrees */
static const Choice *near_of(const Chosen *chosen, double least) {
    double expected = chosen->predicted.seconds;
    return expected > 0 && expected <= least * AGREES ? chosen->near : NULL;
}

static bool is_better(const Chosen *a, const Chosen *b, double least) {
    if ((a->kept != NULL) != (b->kept != NULL)) return a->kept != NULL;
    if (a->kept != NULL) return a->kept->seconds < b->kept->seconds;
    const Choice *near_a = near_of(a, least), *near_b = near_of(b, least);
    if ((near_a != NULL) != (near_b != NULL)) return near_a != NULL;
    if (near_a != NULL) return near_a->seconds < near_b->seconds;
    bool known_a = a->predicted.seconds > 0, known_b = b->predicted.seconds > 0;
    if (known_a != known_b) return known_a;
    return known_a && a->predicted.seconds < b->predicted.seconds;
}

Chosen family_best(const Family *family, const Chosen *all) {
    double least = least_time(family, all);
    const Chosen *best = NULL;
    for (size_t i = 0; i < family->count; i++)
        if (all[i].why == NULL && (best == NULL || is_better(&all[i], best, least))) best = &all[i];
    if (best == NULL) return (Chosen){0};
    Chosen chosen = *best;
    chosen.near = near_of(best, least);
    if (chosen.kept == NULL) chosen.kept = chosen.near;
    return chosen;
}
