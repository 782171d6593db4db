/* reference: compares results with the claims of `ensures` and reports a verdict.
 *
 * `a ~ b within t` holds if |a - b| <= t * (|b| + s), where s is the root mean square of the
 * finite checked b; `within t or u` also if |a - b| <= u. NaN matches NaN, and equal infinities
 * match. `==` is exact; b is first rounded to the type of the tensor, which can hold no other
 * values. */
#include "reference/code.h"

#include <math.h>
#include <string.h>

#define BUDGET 2e8 /* operations for a full check: about half a second */
/* operations of a sample before it shrinks below SAMPLE_LEAST */
#define PATIENCE     2e10
#define SAMPLE_MOST  (1 << 18)
#define SAMPLE_LEAST 10000
#define SAMPLE_TINY  16

typedef struct Worst {
    int64_t flat;
    Value expected, got;
    double error; /* |a - b|, infinite if one of them is not a number */
    double part;  /* error / allowed error */
} Worst;

typedef struct Progress Progress;

typedef struct Check {
    Arena *arena;
    Machine *machine;
    const Prog *prog;
    const Claim *claim;
    const Array *array;
    Function *function;
    Elements elements; /* none: the claim is not checked */
    double cost;       /* expected operations */
    Progress *progress;
    Value *kept;  /* expected and got of each element, one after the other; NULL: too many */
    double scale; /* s */
    int64_t wrong;
    double largest;
    Worst worst[VERDICT_WORST];
    int worst_count;
} Check;

/* ---- progress -------------------------------------------------------------------------------- */

/* Of all claims, in operations. Expected ones are estimates: values of a `let` that were computed
 * are cached, and may be lost again. */
struct Progress {
    const ReferenceOptions *options;
    const Machine *machine;
    double before, after; /* done for the claims before this one, expected for those after it */
    double cost;          /* expected for this one */
    /* elements of it in batches that have ended, as a share, and the operations for them; the same
     * after the first batch, which often computes all of a `let` */
    double share, ended, first_share, first_ended;
};

/* Expected for the elements that are left: the more batches have ended, the more theirs count */
static double expected_left(const Progress *it) {
    double expected = it->cost > it->ended ? it->cost - it->ended : 0;
    double later = it->share - it->first_share;
    if (later <= 0) return expected;
    double weight = later / (1 - it->first_share);
    double measured = (it->ended - it->first_ended) / later * (1 - it->share);
    return (1 - weight) * expected + weight * measured;
}

static bool tell(void *data) {
    const Progress *it = data;
    double now = it->machine->done, whole = it->before + it->ended + expected_left(it);
    double total = (whole > now ? whole : now) + it->after;
    double part = total > 0 ? now / total : 0;
    return it->options->progress(it->options->progress_data, part > 0.99 ? 0.99 : part);
}

static void begin_claim(Check *check) {
    Progress *it = check->progress;
    *it = (Progress){.options = it->options,
                     .machine = it->machine,
                     .before = it->machine->done,
                     .after = it->after - check->cost,
                     .cost = check->cost};
}

static void end_batch(Check *check, double share) {
    Progress *it = check->progress;
    it->share += share;
    it->ended = it->machine->done - it->before;
    if (it->first_share > 0) return;
    it->first_share = it->share;
    it->first_ended = it->ended;
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Of consecutive elements of the check */
typedef struct Batch {
    int64_t first;
    int lanes;
    const Value *expected, *got;
} Batch;

static Batch compute(Check *check, int64_t first, int lanes) {
    const Function *function = check->function;
    if (check->elements.all)
        function_place(function, first, lanes);
    else
        function_place_list(function, check->elements.flat + first, lanes);
    function_run(check->machine, function, lanes);
    return (Batch){first, lanes, register_of(function, function->result),
                   register_of(function, function->got)};
}

/* The first of two passes over the same elements */
static void keep(Check *check, const Batch *batch) {
    if (check->kept == NULL) return;
    Value *expected = check->kept + batch->first;
    size_t bytes = (size_t)batch->lanes * sizeof *expected;
    memcpy(expected, batch->expected, bytes);
    memcpy(expected + check->elements.count, batch->got, bytes);
}

static void each_batch(Check *check, bool again, void (*look)(Check *, const Batch *)) {
    bool computes = !again || check->kept == NULL;
    double passes = check->claim->within >= 0 && check->kept == NULL ? 2 : 1;
    double all = passes * (double)check->elements.count;
    for (int64_t first = 0; first < check->elements.count; first += LANES) {
        int64_t left = check->elements.count - first;
        int lanes = left < LANES ? (int)left : LANES;
        const Value *kept = again && check->kept != NULL ? check->kept + first : NULL;
        Batch batch = kept != NULL ? (Batch){first, lanes, kept, kept + check->elements.count}
                                   : compute(check, first, lanes);
        if (check->machine->stopped) return;
        if (!again) keep(check, &batch);
        look(check, &batch);
        if (computes) end_batch(check, lanes / all);
    }
}

static double as_number(Element type, Value value) {
    if (is_number(type)) return value.number;
    return type == E_U64 ? (double)(uint64_t)value.integer : (double)value.integer;
}

static void add_square(Check *check, const Batch *batch) {
    for (int i = 0; i < batch->lanes; i++) {
        double b = as_number(check->function->type, batch->expected[i]);
        if (!isfinite(b)) continue;
        check->scale += b * b;
        check->largest += 1; /* a count, until the root is computed */
    }
}

static void find_scale(Check *check) {
    if (check->elements.count <= SAMPLE_MOST)
        check->kept = NEW_ARRAY(check->arena, Value, 2 * check->elements.count + 1);
    each_batch(check, false, add_square);
    check->scale = check->largest > 0 ? sqrt(check->scale / check->largest) : 0;
    check->largest = 0;
}

/* ---- one element ----------------------------------------------------------------------------- */

static void keep_worst(Check *check, const Worst *it) {
    int at = check->worst_count;
    while (at > 0 && check->worst[at - 1].part < it->part) at--;
    if (at == VERDICT_WORST) return;
    if (check->worst_count < VERDICT_WORST) check->worst_count++;
    memmove(&check->worst[at + 1], &check->worst[at],
            (size_t)(check->worst_count - at - 1) * sizeof check->worst[0]);
    check->worst[at] = *it;
}

static double distance(double a, double b) {
    if (a == b || (isnan(a) && isnan(b))) return 0;
    return isfinite(a) && isfinite(b) ? fabs(a - b) : (double)INFINITY;
}

/* Integers: the exact distance, 0 only for equal ones */
static double exact_distance(Element type, Value a, Value b) {
    if (is_number(type)) return distance(a.number, b.number);
    if (a.integer == b.integer) return 0;
    double difference = fabs(as_number(type, a) - as_number(type, b));
    return difference > 1 ? difference : 1;
}

/* A float claimed for a tensor of integers: both are compared as numbers. */
static bool as_numbers(Element claimed, Element stored) {
    return is_number(claimed) && !is_number(stored);
}

/* The value rounded to the tensor's type. Signed integers are unchanged: one out of range never
 * matches. */
static Value stored_value(Element from, Element type, Value value) {
    unsigned char stored[8];
    if (is_number(type)) {
        element_store(type, stored, as_number(from, value));
        return (Value){.number = element_load(type, stored)};
    }
    if (element_rows[type].kind != ELEMENT_UNSIGNED || is_number(from)) return value;
    element_store_integer(type, stored, value.integer);
    return (Value){.integer = element_load_integer(type, stored)};
}

static void compare(Check *check, const Batch *batch) {
    const Function *function = check->function;
    const Value *expected = batch->expected, *got = batch->got;
    Element type = check->array->type;
    bool exact = check->claim->within < 0;
    for (int i = 0; i < batch->lanes; i++) {
        int64_t at = batch->first + i, flat = check->elements.all ? at : check->elements.flat[at];
        Worst it = {.flat = flat, .got = got[i]};
        if (exact) {
            it.expected = stored_value(function->type, type, expected[i]);
            it.error = as_numbers(function->type, type)
                           ? distance(as_number(type, got[i]), expected[i].number)
                           : exact_distance(type, got[i], it.expected);
            it.part = it.error;
            if (it.error == 0) continue;
        } else {
            double b = as_number(function->type, expected[i]);
            it.expected = expected[i];
            it.error = distance(as_number(type, got[i]), b);
            if (it.error == 0) continue;
            it.part = it.error / claim_allows(check->claim, fabs(b) + check->scale);
            if (it.part > check->largest) check->largest = it.part;
            if (it.part <= 1) continue;
        }
        check->wrong++;
        keep_worst(check, &it);
    }
}

/* ---- reports --------------------------------------------------------------------------------- */

/* A subscript of the claim's tensor for one of its elements */
static int64_t subscript_of(const Check *check, int d, int64_t flat) {
    Function *function =
        function_compile(check->machine, &check->claim->space, check->claim->target.subs[d], NULL);
    function_place_list(function, &flat, 1);
    function_run(check->machine, function, 1);
    return register_of(function, function->result)->integer;
}

/* Prints the subscripts of the claim's tensor for one of its elements; returns the element's
 * address */
static const unsigned char *element_place(const Check *check, int64_t flat, Str *name) {
    const Access *target = &check->claim->target;
    int64_t at = 0;
    str_printf(name, "%s[", check->prog->params.items[target->object].name);
    for (int d = 0; d < target->rank; d++) {
        int64_t sub = subscript_of(check, d, flat);
        str_printf(name, "%s%lld", d > 0 ? ", " : "", (long long)sub);
        at = at * check->array->extents[d] + sub;
    }
    str_char(name, ']');
    return check->array->data + at * element_rows[check->array->type].bytes;
}

static void add_value(Str *text, Element type, Value value) {
    if (is_number(type))
        str_printf(text, "%.9g", value.number);
    else if (type == E_U64)
        str_printf(text, "%llu", (unsigned long long)value.integer);
    else
        str_printf(text, "%lld", (long long)value.integer);
}

static void note_allowed(const Check *check, Diag *diag, Diags *diags) {
    const Claim *claim = check->claim;
    if (claim->absolute > 0)
        diag_note(diags, diag,
                  "the allowed error is the larger of %g * (|expected| + %.3g) and %g; %.3g is the "
                  "root mean square of the expected values",
                  claim->within, check->scale, claim->absolute, check->scale);
    else
        diag_note(diags, diag,
                  "the allowed error is %g * (|expected| + %.3g); the last number is the root mean "
                  "square of the expected values",
                  claim->within, check->scale);
}

static void report_wrong(Check *check, Verdict *verdict, Diags *diags) {
    const Param *param = &check->prog->params.items[check->claim->target.object];
    Diag *diag = diag_at(diags, P0850, check->claim->span,
                         "%lld of %lld checked elements of `%s` violate `ensures`",
                         (long long)check->wrong, (long long)check->elements.count, param->name);
    bool exact = check->claim->within < 0;
    Str text = str_new(check->arena);
    str_add(&text, "worst elements:");
    for (int i = 0; i < check->worst_count; i++) {
        const Worst *worst = &check->worst[i];
        str_char(&text, '\n');
        const unsigned char *at = element_place(check, worst->flat, &text);
        str_add(&text, ": expected ");
        bool as_stored = exact && !as_numbers(check->function->type, check->array->type);
        add_value(&text, as_stored ? check->array->type : check->function->type, worst->expected);
        str_add(&text, ", got ");
        add_value(&text, check->array->type, worst->got);
        if (param->mode == PARAM_OUT && element_untouched(check->array->type, at))
            str_add(&text, ": never written");
        else if (!exact && isfinite(worst->error))
            str_printf(&text, ", error %.3g, allowed %.3g", worst->error,
                       worst->error / worst->part);
    }
    diag_note(diags, diag, "%s", text.text);
    if (!exact) note_allowed(check, diag, diags);
    if (!check->elements.all)
        diag_note(diags, diag, "a sample of %lld of %lld elements was checked, seed %llu",
                  (long long)check->elements.count, (long long)check->function->count,
                  (unsigned long long)verdict->seed);
}

static void report_untouched(const Prog *prog, size_t param, const Array *array,
                             const Untouched *untouched, Diags *diags) {
    const Param *it = &prog->params.items[param];
    Diag *diag = diag_at(diags, P0851, it->span, "%lld of %lld elements of `%s` were never written",
                         (long long)untouched->count, (long long)array->count, it->name);
    Str at = str_new(diags->arena);
    int64_t flat = untouched->first[0], index[MAX_RANK];
    for (int d = array->rank - 1; d >= 0; d--) {
        index[d] = flat % array->extents[d];
        flat /= array->extents[d];
    }
    for (int d = 0; d < array->rank; d++)
        str_printf(&at, "%s%lld", d > 0 ? ", " : "", (long long)index[d]);
    diag_note(diags, diag, "the first is `%s[%s]`", it->name, at.text);
    diag_help(diags, diag,
              "write every element of an `out` tensor, or declare it `inout` to keep the others");
}

/* ---- untouched elements ---------------------------------------------------------------------- */

/* True if it is about all elements of its tensor */
static bool all_bare(const Claim *claim) {
    for (int d = 0; d < claim->target.rank; d++)
        if (claim->target.subs[d]->kind != X_INDEX ||
            index_ranged(&claim->space.items[claim->target.subs[d]->index]))
            return false;
    return true;
}

static bool covered(const Prog *prog, size_t param) {
    for (size_t i = 0; i < prog->claims.count; i++)
        if (prog->claims.items[i].target.object == (int)param && all_bare(&prog->claims.items[i]))
            return true;
    return false;
}

/* Converts flat indexes of the array to those of the claim, whose indexes may be in another
 * order. */
static void to_claim(const Check *check, const Untouched *untouched, int64_t *out) {
    const Access *target = &check->claim->target;
    for (int64_t i = 0; i < untouched->listed; i++) {
        int64_t flat = untouched->first[i], index[PROG_MAX_INDEXES] = {0};
        for (int d = target->rank - 1; d >= 0; d--) {
            index[target->subs[d]->index] = flat % check->array->extents[d];
            flat /= check->array->extents[d];
        }
        out[i] = 0;
        for (int k = 0; k < check->function->bound; k++)
            out[i] = out[i] * check->function->extents[k] + index[k];
    }
}

/* ---- claims ---------------------------------------------------------------------------------- */

static double cost_of(Check *check, int64_t elements) {
    int64_t count = check->function->count;
    if (count >= 0 && count < elements) elements = count;
    /* the scale needs a pass of its own, unless the values are kept for the second */
    double passes = check->claim->within < 0 || elements <= SAMPLE_MOST ? 1 : 2;
    return passes * function_cost(check->machine, check->function, (double)elements);
}

/* Number of elements to check: all if that is cheap, otherwise as many as the budget allows, but
 * at least a share of SAMPLE_LEAST unless those would take minutes. 0: even a few would. */
static int64_t affordable(Check *check, double budget, double share) {
    int64_t wanted = SAMPLE_MOST, least = (int64_t)(SAMPLE_LEAST * share);
    if (check->function->count >= 0 && cost_of(check, check->function->count) <= budget)
        return check->function->count;
    while (wanted > least && cost_of(check, wanted) > budget)
        wanted = wanted / 2 < least ? least : wanted / 2;
    while (wanted > SAMPLE_TINY && cost_of(check, wanted) > PATIENCE) wanted /= 2;
    return cost_of(check, wanted) <= PATIENCE ? wanted : 0;
}

static void refuse(const Check *check, Verdict *verdict, Diags *diags) {
    Diag *diag = diag_at(diags, P0853, check->claim->span,
                         "this claim is not checked: one element takes %.0e operations on the host",
                         function_cost(check->machine, check->function, 1));
    diag_help(diags, diag,
              "run the kernel at smaller extents, or name inner sums with `let`, which are then "
              "computed once");
    verdict->why = "it would take too long on the host";
    verdict->undecided = true;
}

/* Chooses the elements of a claim that are checked */
static void prepare(Check *check, const Untouched *untouched, double budget, double share,
                    Verdict *verdict, Diags *diags) {
    check->function = function_compile(check->machine, &check->claim->space, check->claim->value,
                                       &check->claim->target);
    if (check->function->count == 0) return;
    int64_t wanted = affordable(check, budget, share);
    verdict->elements += check->function->count; /* never -1: they are elements of an array */
    if (wanted == 0) {
        refuse(check, verdict, diags);
        return;
    }
    int64_t *extra = NEW_ARRAY(check->arena, int64_t, untouched->listed + 1), extra_count = 0;
    if (all_bare(check->claim)) {
        to_claim(check, untouched, extra);
        extra_count = untouched->listed;
    }
    elements_choose(check->arena, check->prog, check->claim, check->function, wanted, extra,
                    extra_count, verdict->seed, &check->elements);
    check->cost = cost_of(check, check->elements.count);
    check->progress->after += check->cost;
}

static void check_claim(Check *check, Verdict *verdict, Diags *diags) {
    if (check->elements.count == 0 || check->machine->stopped) return;
    begin_claim(check);
    if (check->claim->within >= 0) find_scale(check);
    each_batch(check, check->kept != NULL, compare);
    if (check->machine->stopped) return;
    verdict->checked += check->elements.count;
    verdict->wrong += check->wrong;
    verdict->sampled = verdict->sampled || !check->elements.all;
    if (check->largest > verdict->largest) verdict->largest = check->largest;
    if (check->wrong > 0) report_wrong(check, verdict, diags);
}

static void check_claims(const Check *start, const Untouched *untouched,
                         const ReferenceOptions *options, Verdict *verdict, Diags *diags) {
    size_t count = start->prog->claims.count;
    double share = options->share > 0 ? options->share : 1;
    double budget = (options->budget > 0 ? options->budget : BUDGET) * share / (double)count;
    Check *checks = NEW_ARRAY(start->arena, Check, count);
    for (size_t i = 0; i < count; i++) {
        const Claim *claim = &start->prog->claims.items[i];
        checks[i] = *start;
        checks[i].claim = claim;
        checks[i].array = &start->machine->arrays[claim->target.object];
        prepare(&checks[i], &untouched[claim->target.object], budget, share, verdict, diags);
    }
    for (size_t i = 0; i < count; i++) check_claim(&checks[i], verdict, diags);
    if (!start->machine->stopped) return;
    verdict->why = "the caller ended the comparison";
    verdict->undecided = true;
}

void reference_verdict(Arena *arena, const Prog *prog, const Launch *launch, const Before *before,
                       const ReferenceOptions *options, Verdict *verdict, Diags *diags) {
    *verdict = (Verdict){.seed = options->seed};
    Machine *machine =
        machine_new(arena, prog, launch->symbols, launch->scalars, launch->arrays, before->arrays);
    Progress progress = {.options = options, .machine = machine};
    if (options->progress != NULL) machine->watch = tell, machine->watch_data = &progress;
    Untouched *untouched = NEW_ARRAY(arena, Untouched, prog->params.count + 1);
    for (size_t i = 0; i < prog->params.count; i++) {
        if (!prog->params.items[i].is_tensor || prog->params.items[i].mode != PARAM_OUT) continue;
        untouched_find(arena, &launch->arrays[i], &untouched[i]);
        /* otherwise the claim decides: it may expect a NaN */
        if (untouched[i].count == 0 || covered(prog, i)) continue;
        verdict->untouched += untouched[i].count;
        report_untouched(prog, i, &launch->arrays[i], &untouched[i], diags);
    }
    Check start = {.arena = arena, .machine = machine, .prog = prog, .progress = &progress};
    if (prog->claims.count > 0)
        check_claims(&start, untouched, options, verdict, diags);
    else
        verdict->why = "the kernel has no `ensures`";
    if (verdict->wrong > 0 || verdict->untouched > 0)
        verdict->kind = VERDICT_WRONG;
    else
        verdict->kind = verdict->why != NULL ? VERDICT_NOT_CHECKED : VERDICT_RIGHT;
}
