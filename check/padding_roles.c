/* Roles that the rule of padding follows: those with reductions that it may refuse, and those
 * that fill stages read by such roles. */
#include "check/padding.h"

typedef struct Own { /* does a value read its own target? */
    const Row *row;
    bool found;
} Own;

static void find_own(Expr *expr, void *data) {
    Own *own = data;
    const Access *target = own->row->kind == ROW_TILE ? &own->row->tile->target : NULL;
    if (expr->kind == X_LOCAL) own->found |= !target && expr->index == own->row->local;
    if (expr->kind != X_READ || !expr->read || !target) return;
    own->found |= expr->read->space == target->space && expr->read->object == target->object;
}

static bool reads_own(Arena *arena, const Row *row, Expr *value) {
    Own own = {.row = row};
    if (value) expr_visit(arena, value, find_own, &own);
    return own.found;
}

static bool stands_in_loop(const FlowCode *code, int region) {
    for (; region >= 0; region = code->regions.items[region].parent)
        if (code->regions.items[region].kind == REGION_FOR) return true;
    return false;
}

/* In an arm of an IF: the other one keeps the previous value. */
static bool stands_in_arm(const FlowCode *code, int region) {
    for (; region >= 0; region = code->regions.items[region].parent) {
        if (code->regions.items[region].kind == REGION_FOR) return false;
        if (code->regions.items[region].kind == REGION_IF) return true;
    }
    return false;
}

/* True for a reduction, or a statement in a loop that combines or keeps its previous value */
static bool row_reduces(Arena *arena, const FlowCode *code, const Row *row) {
    const Tile *tile = row->tile;
    if (row->kind == ROW_TILE && tile_reduces(tile)) return true;
    if (row->kind != ROW_SET && row->kind != ROW_TILE) return false;
    if (!stands_in_loop(code, row->region)) return false;
    if (stands_in_arm(code, row->region)) return true;
    if (row->kind == ROW_TILE && tile->op != ASSIGN_SET) return true;
    return reads_own(arena, row, row->kind == ROW_TILE ? tile->value : row->value);
}

static bool role_reduces(Arena *arena, const FlowCode *code) {
    for (size_t at = 0; at < code->rows.count; at++)
        if (row_reduces(arena, code, &code->rows.items[at])) return true;
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
