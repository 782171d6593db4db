/* Roles that the rule of padding follows: those with reductions that it may refuse, and those
 * that fill stages read by such roles. */
#include "check/padding.h"

typedef struct Roles {
    Arena *arena;
    const FlowCode *code;
    const int *opened; /* see padding_opened */
    /* by object: the rows that write it first and last; last -1: none */
    int *first, *last;
    bool *leaves; /* by region: a LEAVE is in it */
} Roles;

static void list_rows(Roles *r) {
    size_t count = padding_objects(r->code);
    r->leaves = NEW_ARRAY(r->arena, bool, r->code->regions.count + 1);
    r->first = NEW_ARRAY(r->arena, int, count + 1), r->last = NEW_ARRAY(r->arena, int, count + 1);
    for (size_t i = 0; i < count; i++) r->last[i] = -1;
    for (size_t at = 0; at < r->code->rows.count; at++) {
        const Row *row = code_row(r->code, (int)at);
        int object = padding_written_object(r->code, row);
        for (int i = row->region; row->kind == ROW_LEAVE && i >= 0;
             i = r->code->regions.items[i].parent)
            r->leaves[i] = true;
        if (object < 0) continue;
        if (r->last[object] < 0) r->first[object] = (int)at;
        r->last[object] = (int)at;
    }
}

/* Iterations of the loop leave the object to the next ones. */
static bool is_held(const Roles *r, int object, const Region *loop) {
    return r->first[object] <= loop->end && r->last[object] >= loop->begin &&
           (r->opened[object] < loop->begin || r->opened[object] > loop->end);
}

typedef struct Use {
    const Roles *roles;
    const Region *loop;
    const Access *target; /* of the statement; NULL: none */
    bool found;
} Use;

/* A value of an earlier iteration */
static void find_earlier(Expr *expr, void *data) {
    Use *use = data;
    int object = -1;
    if (expr->kind == X_LOCAL) object = padding_scalar_object(use->roles->code, expr->index);
    if (expr->kind == X_READ && expr->read) {
        object = padding_tile_object(expr->read);
        use->found |= use->target && same_object(expr->read, use->target);
    }
    use->found |= object >= 0 && is_held(use->roles, object, use->loop);
}

static void find_data(Expr *expr, void *data) {
    *(bool *)data |= expr->kind == X_READ || expr->kind == X_LOCAL;
}

/* Whether the row runs in an iteration of the loop may depend on data. */
static bool is_conditional(const Roles *r, const Row *row, const Region *loop) {
    bool found = r->leaves[loop - r->code->regions.items];
    for (int i = row->region; &r->code->regions.items[i] != loop;
         i = r->code->regions.items[i].parent) {
        const Region *region = &r->code->regions.items[i];
        Expr *exprs[] = {region->condition, region->lo, region->hi, region->where};
        for (size_t k = 0; k < COUNT_OF(exprs); k++)
            if (exprs[k]) expr_visit(r->arena, exprs[k], find_data, &found);
    }
    return found;
}

/* The statement may combine what iterations of the loop compute. */
static bool row_combines(const Roles *r, const Row *row, const Region *loop) {
    const Access *target = row->kind == ROW_TILE ? &row->tile->target : NULL;
    Expr *value = target ? row->tile->value : row->value;
    int object = padding_written_object(r->code, row);
    Use use = {.roles = r, .loop = loop, .target = target};
    bool held = object >= 0 && is_held(r, object, loop);
    if (target && row->tile->op != ASSIGN_SET && (held || object < 0)) return true;
    if (value) expr_visit(r->arena, value, find_earlier, &use);
    return use.found || (held && is_conditional(r, row, loop));
}

/* True for a reduction, or a statement in a loop that may combine what iterations compute */
static bool row_reduces(const Roles *r, const Row *row) {
    if (row->kind == ROW_TILE && tile_reduces(row->tile)) return true;
    if (row->kind != ROW_SET && row->kind != ROW_TILE) return false;
    for (int i = row->region; i >= 0; i = r->code->regions.items[i].parent) {
        const Region *loop = &r->code->regions.items[i];
        if (loop->kind == REGION_FOR && row_combines(r, row, loop)) return true;
    }
    return false;
}

static bool role_reduces(Arena *arena, const FlowCode *code) {
    Roles r = {.arena = arena, .code = code, .opened = padding_opened(arena, code)};
    list_rows(&r);
    for (size_t at = 0; at < code->rows.count; at++)
        if (row_reduces(&r, &code->rows.items[at])) return true;
    return false;
}

static bool fills(const FlowCode *code, const bool *read) {
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind != ROW_TILE || row->tile->target.space != SPACE_STAGE) continue;
        int pipe = code->role->handles.items[row->tile->target.object].pipe;
        if (pipe >= 0 && read[pipe]) return true;
    }
    return false;
}

static void follow(const Role *role, bool *follows, bool *read) {
    *follows = true;
    for (size_t i = 0; i < role->handles.count; i++)
        if (role->handles.items[i].pipe >= 0) read[role->handles.items[i].pipe] = true;
}

bool padding_roles(Arena *arena, const Prog *prog, bool *follows) {
    bool *read = NEW_ARRAY(arena, bool, prog->pipes.count + 1), any = false; /* by pipe */
    for (size_t r = 0; r < prog->roles.count; r++) {
        if (!role_reduces(arena, prog->roles.items[r].code)) continue;
        follow(&prog->roles.items[r], &follows[r], read);
        any = true;
    }
    for (bool more = any; more;) {
        more = false;
        for (size_t r = 0; r < prog->roles.count; r++) {
            if (follows[r] || !fills(prog->roles.items[r].code, read)) continue;
            follow(&prog->roles.items[r], &follows[r], read);
            more = true;
        }
    }
    return any;
}
