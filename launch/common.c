/* launch: what a choice among manifests computes once for all of them. The manifests of one head,
 * which differ in their grids, pipes and roles, bind the same arguments to the same symbols, and
 * their formulas have the same parts: `ceil(M, 128)`. So each part has a place in the values of a
 * launch, after those of the symbols, and a copy of each manifest has places in place of formulas.
 *
 * All parts are evaluated, also those that a formula would not select. If one of them has no value,
 * nothing is common, and the manifests themselves serve. */
#include "launch/common.h"

#include "launch/private.h"

#include <string.h>

#define DEPTH_MOST 16 /* operands that wait in a formula */
#define OPERANDS   3

typedef struct CommonPart {
    FormulaOp op;
    int32_t operands[OPERANDS]; /* their places */
    int64_t value;              /* of a constant */
    const FormulaStep *step;    /* its place, as a formula */
} CommonPart;

/* ---- one head -------------------------------------------------------------------------------- */

static bool same_formula(const Formula *a, const Formula *b) {
    if (a->count != b->count) return false;
    for (int i = 0; i < a->count; i++)
        if (a->steps[i].op != b->steps[i].op || a->steps[i].value != b->steps[i].value)
            return false;
    return true;
}

static bool is_mapped(const Manifest *manifest, size_t parameter) {
    for (size_t i = 0; i < manifest->maps.count; i++)
        if (manifest->maps.items[i].parameter == (int)parameter) return true;
    return false;
}

static bool same_symbol(const ManifestSymbol *a, const ManifestSymbol *b) {
    return strcmp(a->name, b->name) == 0 && a->is_stride == b->is_stride &&
           a->is_float == b->is_float &&
           (!a->is_stride || (a->parameter == b->parameter && a->axis == b->axis));
}

static bool same_parameter(const ManifestParameter *a, const ManifestParameter *b) {
    if (a->kind != b->kind || a->type != b->type || a->symbol != b->symbol) return false;
    if (a->kind == PARAMETER_SCALAR) return true;
    if (a->mode != b->mode || a->rank != b->rank || a->joined != b->joined ||
        a->stride_alignment != b->stride_alignment)
        return false;
    for (int axis = 0; axis < a->rank; axis++)
        if (!same_formula(&a->extents[axis], &b->extents[axis])) return false;
    return true;
}

/* They bind all arguments alike. */
static bool same_head(const Manifest *a, const Manifest *b) {
    if (a->symbols.count != b->symbols.count || a->parameters.count != b->parameters.count)
        return false;
    for (size_t i = 0; i < a->symbols.count; i++)
        if (!same_symbol(&a->symbols.items[i], &b->symbols.items[i])) return false;
    for (size_t i = 0; i < a->parameters.count; i++)
        if (!same_parameter(&a->parameters.items[i], &b->parameters.items[i]) ||
            is_mapped(a, i) != is_mapped(b, i))
            return false;
    return true;
}

/* ---- parts of formulas ----------------------------------------------------------------------- */

typedef struct Placing {
    Arena *arena;
    Common *common;
    uint32_t *table; /* 1 + part, by hash; 0: free */
    size_t mask;
} Placing;

static uint64_t hash_of(const CommonPart *part) {
    uint64_t hash = (uint64_t)part->op;
    for (int i = 0; i < OPERANDS; i++) hash = hash * 1000003 + (uint64_t)part->operands[i];
    hash = (hash * 1000003 + (uint64_t)part->value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash >> 32;
}

static bool same_part(const CommonPart *a, const CommonPart *b) {
    return a->op == b->op && a->value == b->value &&
           memcmp(a->operands, b->operands, sizeof a->operands) == 0;
}

static void grow_table(Placing *it) {
    const Common *common = it->common;
    it->mask = it->mask * 2 + 1;
    it->table = NEW_ARRAY(it->arena, uint32_t, it->mask + 1);
    for (size_t i = 0; i < common->parts.count; i++) {
        size_t at = hash_of(&common->parts.items[i]) & it->mask;
        while (it->table[at] != 0) at = (at + 1) & it->mask;
        it->table[at] = (uint32_t)i + 1;
    }
}

/* The place of the part, which is new or known */
static int32_t place_part(Placing *it, CommonPart part) {
    Common *common = it->common;
    if (it->table == NULL || 2 * (common->parts.count + 1) > it->mask) grow_table(it);
    size_t at = hash_of(&part) & it->mask;
    for (; it->table[at] != 0; at = (at + 1) & it->mask)
        if (same_part(&common->parts.items[it->table[at] - 1], &part))
            return (int32_t)(common->named + it->table[at] - 1);
    int32_t place = (int32_t)(common->named + common->parts.count);
    FormulaStep *step = NEW(common->arena, FormulaStep);
    *step = (FormulaStep){F_SYMBOL, place};
    part.step = step;
    vec_push(common->arena, &common->parts, part);
    it->table[at] = (uint32_t)common->parts.count;
    return place;
}

/* Not over axes and variables, which change in a launch, nor floats, whose NaNs hold nowhere */
static bool has_place(const Manifest *manifest, const Formula *formula) {
    for (int i = 0; i < formula->count; i++) {
        const FormulaStep *step = &formula->steps[i];
        if (step->op == F_FLOAT ||
            (step->op == F_SYMBOL && (step->value >= (int64_t)manifest->symbols.count ||
                                      manifest->symbols.items[step->value].is_float)))
            return false;
    }
    return formula->count > 0;
}

static void place(Placing *it, const Manifest *manifest, Formula *formula) {
    int32_t waiting[DEPTH_MOST];
    int depth = 0;
    if (!has_place(manifest, formula)) return;
    for (int i = 0; i < formula->count; i++) {
        const FormulaStep *step = &formula->steps[i];
        int count = formula_operands(step->op);
        depth -= count;
        if (depth == DEPTH_MOST) return;
        if (step->op == F_SYMBOL) {
            waiting[depth++] = (int32_t)step->value;
            continue;
        }
        CommonPart part = {.op = step->op, .value = step->value};
        for (int k = 0; k < count; k++) part.operands[k] = waiting[depth + k];
        waiting[depth++] = place_part(it, part);
    }
    if (formula->count > 1 || formula->steps->op != F_SYMBOL)
        *formula =
            (Formula){it->common->parts.items[waiting[0] - (int32_t)it->common->named].step, 1};
}

/* ---- work as lists --------------------------------------------------------------------------- */

typedef struct Listing {
    Placing *placing;
    const Manifest *manifest; /* with places for formulas */
    WorkLists *lists;
    int *counts; /* of the items, for what is inside */
    int tiles;   /* place */
} Listing;

/* The place of a formula that has one; -1: none */
static int place_of(const Formula *formula) {
    return formula->count == 1 && formula->steps->op == F_SYMBOL ? (int)formula->steps->value : -1;
}

static int add_part(Listing *it, FormulaOp op, int a, int b) {
    return place_part(it->placing, (CommonPart){.op = op, .operands = {a, b}});
}

static int add_count(Listing *it, WorkCount count) {
    vec_push(it->placing->common->arena, &it->lists->counts, count);
    return (int)it->lists->counts.count - 1;
}

static int add_constant(Listing *it, int64_t value) {
    return place_part(it->placing, (CommonPart){.op = F_CONST, .value = value});
}

/* max(value, 0) */
static int add_positive(Listing *it, int value) {
    return add_part(it, F_MAX, value, add_constant(it, 0));
}

/* The tiles, of which there are none if an axis has no coordinate */
static bool list_tiles(Listing *it) {
    it->tiles = add_constant(it, 1);
    for (size_t a = 0; a < it->manifest->axes.count; a++) {
        int extent = place_of(&it->manifest->axes.items[a].extent);
        if (extent < 0) return false;
        it->tiles = add_part(it, F_MUL, it->tiles, add_positive(it, extent));
    }
    return true;
}

static bool list_loop(Listing *it, const ManifestWork *work, int count, int *inside) {
    int lo = place_of(&work->lo), hi = place_of(&work->hi);
    if (lo < 0 || hi < 0 || work->varies || work->bound) return false;
    int trips = add_positive(it, add_part(it, F_SUB, hi, lo));
    *inside = add_count(it, (WorkCount){.of = count, .place = trips});
    return true;
}

static bool list_amount(Listing *it, const ManifestWork *work, int count) {
    int times = place_of(&work->times);
    bool in = work->kind == WORK_COPY_IN, copy = in || work->kind == WORK_COPY_OUT;
    if (work->times.count > 0 && times < 0) return false;
    if (times >= 0) count = add_count(it, (WorkCount){.of = count, .place = times});
    WorkAmount row = {.kind = work->kind,
                      .role = work->role,
                      .count = count,
                      .cost = copy && work->parameter >= 0 ? 2 * work->parameter + !in : -1,
                      .amount = (double)work->amount,
                      .own = (double)work->own,
                      .pieces = (double)work->pieces,
                      .beside = work->beside};
    vec_push(it->placing->common->arena, &it->lists->amounts, row);
    return true;
}

/* False: it is no item of a list, or data, an axis or a variable decide about it */
static bool list_item(Listing *it, int at) {
    const ManifestWork *work = &it->manifest->work.items[at];
    int instances = it->manifest->roles.items[work->role].instances;
    int count = work->parent >= 0 ? it->counts[work->parent] : -1;
    if (work->kind != WORK_GRID && count < 0)
        count = add_count(it, (WorkCount){.of = -1, .place = -1, .first = instances});
    switch (work->kind) {
    case WORK_GRID:
        if (work->parent >= 0 || work->varies) return false;
        it->counts[at] =
            add_count(it, (WorkCount){.of = -1, .place = it->tiles, .first = (double)work->amount});
        return true;
    case WORK_LOOP: return list_loop(it, work, count, &it->counts[at]);
    case WORK_COPY_IN:
    case WORK_COPY_OUT:
    case WORK_MATRIX:
    case WORK_LOAD:
    case WORK_STORE:
    case WORK_SHARED:
    case WORK_ISSUE:
    case WORK_WAIT: return list_amount(it, work, count);
    case WORK_IF:
    case WORK_ELSE:
    case WORK_UNSAFE:
    case WORK_KINDS: break;
    }
    return false;
}

static const WorkLists *list_work(Placing *placing, const Manifest *manifest) {
    Listing it = {.placing = placing,
                  .manifest = manifest,
                  .lists = NEW(placing->common->arena, WorkLists),
                  .counts = NEW_ARRAY(placing->arena, int, manifest->work.count + 1)};
    if (!list_tiles(&it)) return NULL;
    for (int i = 0; i < (int)manifest->work.count; i++)
        if (!list_item(&it, i)) return NULL;
    return it.lists->counts.count <= WORK_COUNTS_MOST ? it.lists : NULL;
}

/* ---- a manifest with places ------------------------------------------------------------------ */

/* A copy of the rows, to place their formulas */
#define OWN_ROWS(arena, vec)                                                                       \
    do {                                                                                           \
        void *own = arena_alloc((arena), ((vec)->count + 1) * sizeof *(vec)->items);               \
        if ((vec)->count > 0) memcpy(own, (vec)->items, (vec)->count * sizeof *(vec)->items);      \
        (vec)->items = own;                                                                        \
    } while (0)

static void place_rows(Placing *it, const Manifest *manifest, Manifest *out) {
    for (size_t i = 0; i < out->parameters.count; i++)
        for (int axis = 0; axis < out->parameters.items[i].rank; axis++)
            place(it, manifest, &out->parameters.items[i].extents[axis]);
    for (size_t i = 0; i < out->maps.count; i++)
        for (int axis = 0; axis < out->maps.items[i].rank; axis++) {
            place(it, manifest, &out->maps.items[i].extents[axis]);
            place(it, manifest, &out->maps.items[i].strides[axis]);
        }
    for (size_t i = 0; i < out->preconditions.count; i++)
        place(it, manifest, &out->preconditions.items[i].condition);
    for (size_t i = 0; i < out->axes.count; i++) place(it, manifest, &out->axes.items[i].extent);
    for (size_t i = 0; i < out->work.count; i++) {
        ManifestWork *work = &out->work.items[i];
        place(it, manifest, &work->lo);
        place(it, manifest, &work->hi);
        place(it, manifest, &work->times);
    }
    place(it, manifest, &out->tiles);
}

static const Manifest *placed(Placing *it, const Manifest *manifest) {
    Arena *arena = it->common->arena;
    Manifest *out = NEW(arena, Manifest);
    *out = *manifest;
    OWN_ROWS(arena, &out->parameters);
    OWN_ROWS(arena, &out->maps);
    OWN_ROWS(arena, &out->preconditions);
    OWN_ROWS(arena, &out->axes);
    OWN_ROWS(arena, &out->work);
    place_rows(it, manifest, out);
    out->lists = list_work(it, out);
    return out;
}

/* ---- all manifests --------------------------------------------------------------------------- */

static size_t find_head(Arena *arena, Commons *commons, const Manifest *manifest) {
    for (size_t i = 0; i < commons->count; i++)
        if (same_head(commons->items[i].first, manifest)) return i;
    vec_push(arena, commons, (Common){.arena = arena, .first = manifest});
    return commons->count - 1;
}

void common_find(Arena *arena, CommonMember *members, size_t count, Commons *out) {
    Arena *scratch = arena_scratch(arena);
    for (size_t i = 0; i < count; i++) {
        const Manifest *manifest = members[i].manifest;
        if (manifest == NULL) continue;
        members[i].common = find_head(arena, out, manifest);
        Common *common = &out->items[members[i].common];
        size_t named = work_symbols(manifest);
        if (named > common->named) common->named = named;
    }
    for (size_t c = 0; c < out->count; c++) {
        Placing it = {.arena = scratch, .common = &out->items[c]};
        for (size_t i = 0; i < count; i++)
            if (members[i].manifest != NULL && members[i].common == c)
                members[i].placed = placed(&it, members[i].manifest);
    }
    arena_free(scratch);
}

/* ---- one launch ------------------------------------------------------------------------------ */

size_t common_values(const Common *common) { return common->named + common->parts.count; }

static bool evaluate(const Common *common, int64_t *values) {
    int64_t *out = values + common->named;
    for (size_t i = 0; i < common->parts.count; i++) {
        const CommonPart *part = &common->parts.items[i];
        const int32_t *at = part->operands;
        if (part->op == F_CONST)
            out[i] = part->value;
        else if (!formula_apply(part->op, values[at[0]], values[at[1]], values[at[2]], &out[i]))
            return false;
    }
    return true;
}

bool common_bind(const Common *common, const DeviceArgument *arguments, int64_t *values,
                 Diags *diags) {
    if (!bind_symbols(common->first, arguments, values, diags)) return false;
    strides_set(common->first, arguments, values);
    return launch_strides(common->first, arguments, values, diags) && evaluate(common, values);
}
