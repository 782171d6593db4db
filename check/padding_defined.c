/* The formula that a tile was set to: reads of tiles become the values that were assigned to them,
 * with the subscripts of the read, so that conditions on one element in several tiles are seen to
 * exclude each other. Only before a refusal: the formula is evaluated as any other. */
#include "check/padding.h"

#define NODES_MOST 1000 /* most nodes of a formula */

typedef struct Defined {
    Padding *p;
    int at;             /* the row of the values below, with these subscripts for its indexes */
    Expr *const *index; /* by index of the row's statement; NULL: the present one */
    int room;           /* for further nodes */
    bool failed;        /* some value is not the same at the present row, or there is no room */
    bool found;         /* some read was replaced */
    VEC(struct Known {  /* reads that were replaced, each once */
                       int at;
                       const Expr *read;
                       Expr *value;
    })
    known;
} Defined;

static Expr *rewritten(Defined *d, Expr *expr);

static bool stays(const Defined *d, Expr *expr, int from, int to) {
    int at = d->p->at;
    d->p->at = to;
    bool stable = padding_is_stable(d->p, expr, from);
    d->p->at = at;
    return stable;
}

static bool covers(const Access *target) {
    unsigned seen = 0;
    for (int i = 0; i < target->rank; i++) {
        if (target->subs[i]->kind != X_INDEX || seen >> target->subs[i]->index & 1) return false;
        seen |= 1u << target->subs[i]->index;
    }
    return true;
}

/* What row `at` sets the element to that `read` reads; NULL: unknown */
static Expr *before(Defined *d, Expr *read, int at);

static Expr *of_row(Defined *d, Expr *read, int at) {
    static const BinaryOp ops[] = {
        [ASSIGN_ADD] = OP_ADD, [ASSIGN_SUB] = OP_SUB, [ASSIGN_MUL] = OP_MUL, [ASSIGN_DIV] = OP_DIV};
    const Row *row = code_row(d->p->code, at);
    Expr *index[PROG_MAX_INDEXES] = {NULL};
    if (row->kind != ROW_TILE || !row->tile->value || !covers(&row->tile->target)) return NULL;
    if (row->tile->where || row->tile->value->type != read->type) return NULL;
    for (int i = 0; i < read->read->rank; i++)
        index[row->tile->target.subs[i]->index] = read->read->subs[i];
    Expr *old = row->tile->op == ASSIGN_SET ? NULL : before(d, read, at);
    if (row->tile->op != ASSIGN_SET && !old) return NULL;
    Defined outer = *d;
    d->at = at, d->index = index;
    Expr *value = rewritten(d, row->tile->value);
    d->at = outer.at, d->index = outer.index;
    return value && old ? expr_binary(d->p->arena, ops[row->tile->op], old, value, read->span)
                        : value;
}

static Expr *choice(Defined *d, Expr *condition, Expr *then, Expr *otherwise) {
    Expr *out = NEW(d->p->arena, Expr);
    if (!condition || !then || !otherwise) return NULL;
    *out = *then;
    out->kind = X_SELECT;
    out->indexes = condition->indexes | then->indexes | otherwise->indexes;
    out->select.condition = condition, out->select.then = then, out->select.otherwise = otherwise;
    return out;
}

/* One of the arms of an IF before row `at`, or both, set the tile. */
static Expr *of_arms(Defined *d, Expr *read, int region, int last, int at) {
    const Region *asked = code_region(d->p->code, region);
    if (asked->kind != REGION_IF || !asked->condition || asked->end >= at ||
        !stays(d, read, asked->end, at))
        return NULL;
    bool first = last < asked->otherwise;
    for (size_t i = 0; i < d->p->writes[read->read->object].count; i++) {
        int write = d->p->writes[read->read->object].items[i];
        first |= write > asked->begin && write < asked->otherwise;
    }
    Defined outer = *d;
    d->at = asked->begin, d->index = NULL;
    Expr *condition = asked->condition->indexes ? NULL : rewritten(d, asked->condition);
    d->at = outer.at, d->index = outer.index;
    return choice(d, condition, before(d, read, first ? asked->otherwise : asked->begin),
                  before(d, read, last > asked->otherwise ? asked->end : asked->begin));
}

static Expr *before(Defined *d, Expr *read, int at) {
    const FlowCode *code = d->p->code;
    int object = read->read->object, last = -1;
    for (size_t i = 0; i < d->p->writes[object].count; i++)
        if (d->p->writes[object].items[i] < at) last = d->p->writes[object].items[i];
    if (last < 0 || --d->room < 0) return NULL;
    int region = code_row(code, last)->region;
    const Region *around = code_region(code, region);
    bool other_arm =
        around->kind == REGION_IF && last < around->otherwise && around->otherwise < at;
    if (around->begin <= at && at <= around->end && !other_arm)
        return stays(d, read, last, at) ? of_row(d, read, last) : NULL;
    return of_arms(d, read, region, last, at);
}

static bool is_tile(const Access *read) {
    return read->space == SPACE_REGISTER || read->space == SPACE_SHARED;
}

static Expr *copy_of(Defined *d, const Expr *expr) {
    Expr *out = NEW(d->p->arena, Expr);
    if (--d->room < 0) d->failed = true;
    *out = *expr;
    return out;
}

/* The read with rewritten subscripts. Padding that the role itself reads stays where it is read: it
 * decides differently. */
static Expr *moved(Defined *d, const Expr *expr) {
    Expr *out = copy_of(d, expr);
    if (expr->indexes == 0 || !d->index) return out;
    Access *read = NEW(d->p->arena, Access);
    *read = *expr->read;
    read->subs = NEW_ARRAY(d->p->arena, Expr *, read->rank);
    out->indexes = 0;
    for (int i = 0; i < read->rank && !d->failed; i++) {
        read->subs[i] = rewritten(d, expr->read->subs[i]);
        if (read->subs[i]) out->indexes |= read->subs[i]->indexes;
    }
    if (read->element) read->element = rewritten(d, read->element);
    d->failed |= read->space == SPACE_GLOBAL;
    out->read = read;
    return out;
}

static Expr *read_of(Defined *d, Expr *expr) {
    for (size_t i = 0; i < d->known.count; i++) {
        const struct Known *known = &d->known.items[i];
        if (known->at == d->at && !d->index && expr_same(known->read, expr)) return known->value;
    }
    Expr *read = moved(d, expr);
    if (d->failed) return NULL;
    Expr *value =
        is_tile(read->read) && read->type == read->read->type ? before(d, read, d->at) : NULL;
    if (d->failed) return NULL;
    if (!value && d->at != d->p->at && !stays(d, expr, d->at, d->p->at)) d->failed = true;
    d->found |= value != NULL;
    value = value ? value : read;
    vec_push(d->p->arena, &d->known, (struct Known){d->at, expr, value});
    return value;
}

static Expr *parts_of(Defined *d, const Expr *expr) {
    Expr *out = copy_of(d, expr);
    Expr **parts[3] = {NULL};
    switch (expr->kind) {
    case X_UNARY: parts[0] = &out->unary.operand; break;
    case X_CAST: parts[0] = &out->cast; break;
    case X_BINARY: parts[0] = &out->binary.left, parts[1] = &out->binary.right; break;
    case X_SELECT:
        parts[0] = &out->select.condition;
        parts[1] = &out->select.then, parts[2] = &out->select.otherwise;
        break;
    case X_CALL:
        for (int i = 0; i < expr->call.count; i++) parts[i] = &out->call.args[i];
        break;
    case X_POISON:
    case X_CONST:
    case X_SYMBOL:
    case X_PARAM:
    case X_AXIS:
    case X_LOCAL:
    case X_RANK:
    case X_INDEX:
    case X_READ:
    case X_REDUCE:
    case X_SCAN: d->failed = true;
    }
    out->indexes = 0;
    for (int i = 0; i < 3 && parts[i] && !d->failed; i++) {
        *parts[i] = rewritten(d, *parts[i]);
        if (*parts[i]) out->indexes |= (*parts[i])->indexes;
    }
    return d->failed ? NULL : out;
}

static Expr *rewritten(Defined *d, Expr *expr) {
    if (d->failed) return NULL;
    switch (expr->kind) {
    case X_CONST:
    case X_SYMBOL:
    case X_PARAM:
    case X_AXIS:
    case X_RANK: return expr;
    case X_LOCAL: d->failed = d->at != d->p->at && !stays(d, expr, d->at, d->p->at); return expr;
    case X_INDEX:
        if (d->index && !d->index[expr->index]) d->failed = true;
        return d->index ? d->index[expr->index] : expr;
    case X_READ: return read_of(d, expr);
    case X_UNARY:
    case X_BINARY:
    case X_SELECT:
    case X_CAST:
    case X_CALL: return parts_of(d, expr);
    case X_POISON:
    case X_REDUCE:
    case X_SCAN: break;
    }
    d->failed = true;
    return NULL;
}

Expr *padding_defined(Padding *p, Expr *expr) {
    Defined d = {.p = p, .at = p->at, .room = NODES_MOST};
    Expr *out = rewritten(&d, expr);
    return d.failed || !d.found ? NULL : out;
}
