/* The grid and ranges: formulas of values known at launch; ranges may also use the grid's axes. */
#include "elaborate/items.h"

/* ---- the grid -------------------------------------------------------------------------------- */

/* ceil(extent, cluster) * cluster */
static Expr *whole_clusters(Elab *e, const Axis *axis) {
    Span span = axis->extent->span;
    if (axis->cluster == 1 || axis->extent->kind == X_POISON) return axis->extent;
    Val size = elab_val_integer(e, axis->cluster, span), args[2] = {{axis->extent, FLEX_INT}, size};
    return elab_make_binary(e, OP_MUL, elab_make_call(e, IN_ceil_div, args, 2, span), size, span,
                            span)
        .x;
}

void elab_grid_evaluate(Elab *e, const AstItem *item) {
    for (size_t i = 0; i < e->prog->axes.count; i++) {
        const AstAxis *ast = &item->grid.axes.items[i];
        Axis *axis = &e->prog->axes.items[i];
        Val v = elab_operand(e, elab_expr_at(e, ast->extent, PLACE_GRID, "the grid"));
        axis->extent = elab_coerce(e, v, E_I32, "the extent of an axis");
        if (axis->extent->kind == X_POISON) e->broken = true;
        axis->padded = whole_clusters(e, axis);
        if (elab_is_const(axis->extent) && axis->extent->constant.integer < 0) {
            elab_error(e, P0111, ast->extent->span, "the extent of axis `%s` is negative: %lld",
                       axis->name, (long long)axis->extent->constant.integer);
            e->broken = true;
        }
    }
}

/* ---- ranges ---------------------------------------------------------------------------------- */

void elab_domains_declare(Elab *e) {
    const AstItems *items = &e->kernel->kernel.items;
    for (size_t i = 0; i < items->count; i++) {
        const AstItem *item = items->items[i];
        if (item->kind != AST_ITEM_RANGE || !item->range.name.text) continue;
        vec_push(e->arena, &e->prog->domains,
                 (Domain){.name = item->range.name.text, .span = item->range.name.span});
        vec_push(e->arena, &e->domain_items, item);
        elab_scope_bind(e, e->outer, NAME_DOMAIN, item->range.name.text, item->range.name.span,
                        (int)e->prog->domains.count - 1);
    }
    e->domain_progress = NEW_ARRAY(e->arena, Progress, e->prog->domains.count + 1);
    e->domain_axes = NEW_ARRAY(e->arena, uint32_t, e->prog->domains.count + 1);
}

static void evaluate_domain(Elab *e, int index) {
    const AstItem *item = e->domain_items.items[index];
    Elab saved = *e; /* the place that needed the range */
    e->domain_progress[index] = BUSY;
    elab_pend(e, item->range.name.text, item->range.name.span);
    e->scope = e->axes, e->place = PLACE_RANGE, e->place_words = "a range";
    e->role = NULL, e->space = NULL, e->frame = NULL, e->exact = false,
    e->bare_subscript = e->has_target = false;
    e->domain = index, e->axes_used = 0, e->domain_where = false;
    Expr *lo = elab_coerce(e, elab_operand(e, elab_expr(e, item->range.from)), E_I32,
                           "the start of a range");
    Expr *hi = elab_coerce(e, elab_operand(e, elab_expr(e, item->range.to)), E_I32,
                           "the end of a range"),
         *where = NULL;
    if (item->range.where) {
        e->domain_where = true;
        where = elab_condition(e, elab_operand(e, elab_expr(e, item->range.where))).x;
        if (elab_is_const(where) && where->constant.integer) where = NULL;
    }
    e->domain_axes[index] = e->axes_used;
    e->scope = saved.scope, e->place = saved.place, e->place_words = saved.place_words;
    e->role = saved.role, e->space = saved.space, e->frame = saved.frame, e->exact = saved.exact;
    e->bare_subscript = saved.bare_subscript, e->has_target = saved.has_target;
    e->domain = saved.domain, e->axes_used = saved.axes_used, e->domain_where = saved.domain_where;
    elab_unpend(e);
    Domain *domain = &e->prog->domains.items[index];
    domain->lo = lo, domain->hi = hi, domain->where = where;
    if (lo->kind == X_POISON || hi->kind == X_POISON || (where && where->kind == X_POISON))
        e->broken = true;
    e->domain_progress[index] = DONE;
}

void elab_domain_ready(Elab *e, int domain, Span use) {
    if (e->domain_progress[domain] == UNSEEN) evaluate_domain(e, domain);
    if (e->domain_progress[domain] == BUSY)
        elab_report_cycle(e, e->prog->domains.items[domain].name,
                          e->prog->domains.items[domain].span, use);
}

void elab_domains_evaluate(Elab *e) {
    for (size_t i = 0; i < e->prog->domains.count; i++)
        elab_domain_ready(e, (int)i, e->prog->domains.items[i].span);
}
