/* Ranges of indexes, `for i in a .. b`, which follow a statement, a declaration or a claim. An
 * index counts from 0, so its value is the sum of the lower bound and the index. Bounds are
 * constants; in `ensures` they may be formulas of extents and scalars. */
#include "elaborate/private.h"

static const AstIndexRange *range_of(const Elab *e, const char *name) {
    if (!e->ranges.list || e->ranges.frame != e->frame) return NULL;
    for (size_t i = 0; i < e->ranges.list->count; i++)
        if (e->ranges.list->items[i].name.text == name) return &e->ranges.list->items[i];
    return NULL;
}

bool elab_has_range(const Elab *e, const char *name) { return range_of(e, name) != NULL; }

static void report_twice(Elab *e, const AstIndexRange *first, const AstIndexRange *second) {
    Diag *diag =
        elab_error(e, P0137, second->name.span, "index `%s` has two ranges", second->name.text);
    LABEL(e, diag, first->span, "first given here");
}

RangesOf elab_ranges_begin(Elab *e, const AstIndexRanges *list) {
    static const AstIndexRanges none = {0};
    RangesOf before = e->ranges;
    if (!list) list = &none;
    bool *used = list->count ? NEW_ARRAY(e->arena, bool, list->count) : NULL;
    e->ranges = (RangesOf){list, used, e->frame};
    for (size_t i = 0; i < list->count; i++) {
        const AstIndexRange *range = &list->items[i];
        const Name *old = range->name.text ? elab_scope_find(e->scope, range->name.text) : NULL;
        bool word = range->name.text && elab_is_word(e, range->name.text);
        const AstIndexRange *first = range->name.text ? range_of(e, range->name.text) : range;
        e->ranges.used[i] = old || word || first != range; /* then reported here */
        if (first != range) report_twice(e, first, range);
        if (!old && !word) continue;
        Diag *diag =
            elab_error(e, P0101, range->name.span, "`%s` is already declared", range->name.text);
        if (old) LABEL(e, diag, old->span, "first declared here");
        HELP(e, diag, "choose another name for the index");
    }
    return before;
}

void elab_ranges_end(Elab *e, RangesOf before) {
    for (size_t i = 0; i < e->ranges.list->count; i++) {
        const AstIndexRange *range = &e->ranges.list->items[i];
        if (e->ranges.used[i] || e->target_faulty) continue;
        Diag *diag = elab_error(e, P0118, range->name.span, "`%s` is not an index of the target",
                                range->name.text);
        NOTE(e, diag,
             "an index must appear in a subscript of the target, or be declared by a reduction");
    }
    e->ranges = before;
}

static Val bound(Elab *e, const AstExpr *ast) {
    static const char words[] = "the range of an index";
    bool bare = e->bare_subscript;
    e->bare_subscript = false;
    Place place = e->place == PLACE_CLAIM ? PLACE_GRID : PLACE_CONST;
    Val v = elab_operand(e, elab_expr_at(e, ast, place, words));
    e->bare_subscript = bare;
    if (elab_is_poison(v)) return v;
    if (!elab_is_integer(v.x->type)) {
        elab_error(e, P0104, ast->span, "%s must be an integer, but this is %s", words,
                   elab_type_name(v.x->type));
        return elab_poison(e, ast->span);
    }
    if (elab_is_const(v.x)) return (Val){elab_cast_to(e, v, E_I32, ast->span), FLEX_ANY};
    if (place == PLACE_GRID) return v;
    elab_error(e, P0110, ast->span, "%s is not a constant", words);
    return elab_poison(e, ast->span);
}

static void set_extent(Elab *e, Index *index, Val extent, const AstIndexRange *range) {
    index->extent = 1; /* after an error */
    if (elab_is_poison(extent)) return;
    extent.x = elab_settled(e, extent);
    if (!elab_is_const(extent.x)) {
        index->extent = -1, index->dynamic = extent.x;
        return;
    }
    int64_t count = extent.x->constant.integer;
    if (count >= 1 && count <= INT32_MAX)
        index->extent = count;
    else
        elab_error(e, P0111, range->span, "the range of index `%s` has %lld elements", index->name,
                   (long long)count);
}

void elab_apply_range(Elab *e, Index *index, Name *name) {
    const AstIndexRange *range = range_of(e, index->name);
    if (!range) return;
    e->ranges.used[range - e->ranges.list->items] = true;
    Val from = bound(e, range->from), to = bound(e, range->to);
    bool poisoned = elab_is_poison(from) || elab_is_poison(to);
    bool zero = !poisoned && elab_is_const(from.x) && from.x->constant.integer == 0;
    index->range = range->span;
    name->value = (Val){NULL, FLEX_NONE};
    Val extent = poisoned ? elab_poison(e, range->span)
                 : zero   ? to
                          : elab_make_binary(e, OP_SUB, to, from, range->span, range->span);
    set_extent(e, index, extent, range);
    if (!poisoned && !zero) name->value = from;
}

Val elab_index_value(Elab *e, const Name *name, Span span) {
    Val index = {elab_make_index(e, name->index, span), FLEX_INT};
    if (!name->value.x) return index;
    return elab_make_binary(e, OP_ADD, name->value, index, span, span);
}
