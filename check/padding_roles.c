/* Roles that the rule of padding follows: those with reductions that it may refuse, and those
 * that fill stages read by such roles. */
#include "check/padding.h"

typedef struct Own { /* does a value read its own target? */
    const Access *target;
    bool found;
} Own;

static void find_own(Expr *expr, void *data) {
    Own *own = data;
    if (expr->kind == X_READ && expr->read) own->found |= same_object(expr->read, own->target);
}

/* The innermost loop around the region; NULL: none */
static const Region *loop_around(const FlowCode *code, int region) {
    for (; region >= 0; region = code->regions.items[region].parent)
        if (code->regions.items[region].kind == REGION_FOR) return &code->regions.items[region];
    return NULL;
}

/* True for a reduction, or a statement in a loop whose target keeps its value from one iteration
 * to the next */
static bool row_reduces(Arena *arena, const FlowCode *code, const Row *row, const int *opened) {
    const Tile *tile = row->tile;
    if (row->kind == ROW_TILE && tile_reduces(tile)) return true;
    if (row->kind != ROW_SET && row->kind != ROW_TILE) return false;
    const Region *loop = loop_around(code, row->region);
    if (!loop) return false;
    const Access *target = row->kind == ROW_TILE ? &tile->target : NULL;
    if (!target && code->role->locals.items[row->local].kind == LOCAL_LET) return false;
    bool held = !target || target->space == SPACE_REGISTER || target->space == SPACE_SHARED;
    size_t object = target ? (size_t)target->object : code->role->tiles.count + (size_t)row->local;
    if (held) return opened[object] < loop->begin || opened[object] > loop->end;
    Own own = {.target = target};
    if (tile->value) expr_visit(arena, tile->value, find_own, &own);
    return tile->op != ASSIGN_SET || own.found;
}

static bool role_reduces(Arena *arena, const FlowCode *code) {
    const int *opened = padding_opened(arena, code);
    for (size_t at = 0; at < code->rows.count; at++)
        if (row_reduces(arena, code, &code->rows.items[at], opened)) return true;
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
