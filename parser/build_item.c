/* Constructors of items: functions, constants, kernels and what is declared in them. */
#include "parser/build.h"

/* As for expressions */
#define UP_TO(member) offsetof(AstItem, member) + sizeof((AstItem *)0)->member
static const unsigned char size_of[] = {
    [AST_ITEM_CONST] = UP_TO(consts),
    [AST_ITEM_INCLUDE] = UP_TO(include),
    [AST_ITEM_FN] = UP_TO(fn),
    [AST_ITEM_KERNEL] = sizeof(AstItem),
    /* copied for its variants */[AST_ITEM_REQUIRES] = UP_TO(requires_),
    [AST_ITEM_ENSURES] = UP_TO(ensures),
    [AST_ITEM_EXAMPLE] = UP_TO(example),
    [AST_ITEM_GRID] = UP_TO(grid),
    [AST_ITEM_CLUSTER] = UP_TO(cluster),
    [AST_ITEM_RANGE] = UP_TO(range),
    [AST_ITEM_PIPE] = UP_TO(pipe),
    [AST_ITEM_ROLE] = UP_TO(role),
    [AST_ITEM_VARIANT] = sizeof(AstItem),
};
#undef UP_TO

/* Room for one item, of which most such lists have no more */
#define ROOM_FOR_ONE(p, list, Type)                                                                \
    ((list)->items ? (void)0                                                                       \
                   : (void)((list)->items = NEW((p)->lexer.arena, Type), (list)->capacity = 1))

AstItem *make_item(Parse *p, AstItemKind kind, Span span) {
    AstItem *item = arena_alloc(p->lexer.arena, size_of[kind]);
    item->kind = kind;
    item->span = item->head = span;
    return item;
}

void add_item(Parse *p, AstItems *items, AstItem *item) {
    p->too_long = false;
    vec_push(p->lexer.arena, items, item);
}

AstItem *name_kernel(AstItem *kernel, Span span, Span head, AstName name, const AstParams *params,
                     const AstNames *targets) {
    kernel->span = span;
    kernel->head = head;
    kernel->kernel.name = name;
    kernel->kernel.params = *params;
    if (targets) kernel->kernel.targets = *targets;
    return kernel;
}

AstItem *name_variant(AstItem *variant, Span span, const AstItem *head) {
    variant->kind = AST_ITEM_VARIANT;
    variant->span = span;
    variant->head = head->span;
    variant->kernel.name = head->kernel.name;
    variant->kernel.targets = head->kernel.targets;
    return variant;
}

AstItem *make_include(Parse *p, Span span, Span text) {
    AstItem *item = make_item(p, AST_ITEM_INCLUDE, span);
    item->include = (AstName){
        arena_copy(p->lexer.arena, p->lexer.source->text + text.lo + 1, text.hi - text.lo - 2),
        text};
    return item;
}

AstConst *make_const(Parse *p, Span span, AstName name, Sized value) {
    AstConst *made = NEW(p->lexer.arena, AstConst);
    *made = (AstConst){.span = span, .name = name, .value = value.tree};
    return made;
}

AstConst *make_static(Parse *p, Span span, AstName name, Sized value, Exprs *choices) {
    AstConst *made = make_const(p, span, name, value);
    made->is_static = true;
    made->choices = take_exprs(p, choices);
    return made;
}

AstItem *add_const(Parse *p, AstItem *item, const AstConst *added) {
    ROOM_FOR_ONE(p, &item->consts, AstConst);
    vec_push(p->lexer.arena, &item->consts, *added);
    return item;
}

AstItem *make_fn(Parse *p, Span span, AstName name, const AstParams *params, AstType *result) {
    AstItem *item = make_item(p, AST_ITEM_FN, span);
    item->fn.name = name;
    item->fn.params = *params;
    item->fn.result = result;
    item->fn.reached = NEW(p->lexer.arena, bool);
    return item;
}

AstParam *make_param(Parse *p, Span span, AstMode mode, Span mode_span, AstName name,
                     AstType *type) {
    AstParam *param = NEW(p->lexer.arena, AstParam);
    *param =
        (AstParam){.span = span, .mode = mode, .mode_span = mode_span, .name = name, .type = type};
    return param;
}

AstParams *add_param(Parse *p, AstParams *params, const AstParam *added) {
    ROOM_FOR_ONE(p, params, AstParam);
    vec_push(p->lexer.arena, params, *added);
    return params;
}

AstType *make_type(Parse *p, Span span, AstName name, Exprs *dims) {
    AstType *type = cut_alloc(&p->nodes, sizeof *type);
    type->span = span;
    type->name = name;
    if (dims) type->dims = take_exprs(p, dims);
    return type;
}

/* ---- a kernel -------------------------------------------------------------------------------- */

AstItem *make_range(Parse *p, Span span, AstName name, Sized from, Sized to, Sized where) {
    AstItem *item = make_item(p, AST_ITEM_RANGE, span);
    item->range.name = name;
    item->range.from = from.tree;
    item->range.to = to.tree;
    item->range.where = where.tree;
    return item;
}

AstItem *make_ensures(Parse *p, Span span, Span head, const AstClaims *claims) {
    AstItem *item = make_item(p, AST_ITEM_ENSURES, span);
    item->head = head;
    item->ensures = *claims;
    return item;
}

AstClaims *add_claim(Parse *p, AstClaims *claims, const AstClaim *added) {
    p->too_long = false;
    ROOM_FOR_ONE(p, claims, AstClaim);
    vec_push(p->lexer.arena, claims, *added);
    return claims;
}

AstClaim *make_claim(Parse *p, Span span, Sized target, Sized value, Sized bound) {
    AstClaim *claim = NEW(p->lexer.arena, AstClaim);
    *claim =
        (AstClaim){.span = span, .target = target.tree, .value = value.tree, .within = bound.tree};
    return claim;
}

AstClaim *make_let_claim(Parse *p, Span span, Sized target, Sized value) {
    AstClaim *claim = make_claim(p, span, target, value, (Sized){NULL, 0});
    claim->is_let = true;
    return claim;
}

void add_example(Parse *p, AstItem *example, Span span, Sized target, Sized value) {
    AstExampleItem added = {.span = span, .target = target.tree, .value = value.tree};
    ROOM_FOR_ONE(p, &example->example, AstExampleItem);
    vec_push(p->lexer.arena, &example->example, added);
}

void set_axes(AstItem *grid, const AstAxes *axes, Sized grouped, Span grouped_span) {
    grid->grid.axes = *axes;
    grid->grid.grouped = grouped.tree;
    grid->grid.grouped_span = grouped_span;
}

AstAxis *make_axis(Parse *p, AstName name, Sized extent) {
    AstAxis *axis = NEW(p->lexer.arena, AstAxis);
    *axis = (AstAxis){.name = name, .extent = extent.tree};
    return axis;
}

AstItem *make_pipe(Parse *p, Span span, AstName name, Sized stages, AstName producer,
                   const AstNames *consumers, Arrivals arrivals) {
    AstItem *item = make_item(p, AST_ITEM_PIPE, span);
    item->pipe.name = name;
    item->pipe.stages = stages.tree;
    item->pipe.producer = producer;
    item->pipe.consumers = *consumers;
    item->pipe.arrivals_full = arrivals.full;
    item->pipe.arrivals_empty = arrivals.empty;
    return item;
}

AstField *make_field(Parse *p, Span span, AstName name, Sized count, AstType *type) {
    AstField *field = NEW(p->lexer.arena, AstField);
    *field = (AstField){.span = span, .name = name, .count = count.tree, .type = type};
    return field;
}

AstItem *make_role(Parse *p, Span span, AstName name, Sized count, AstTeam team) {
    AstItem *item = make_item(p, AST_ITEM_ROLE, span);
    item->role.name = name;
    item->role.count = count.tree;
    item->role.team = team;
    return item;
}

void set_regs(AstItem *role, Sized regs, Span regs_span) {
    role->role.regs = regs.tree;
    role->role.regs_span = regs_span;
}
