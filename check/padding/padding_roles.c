/* Roles that the rule of padding follows: those with reductions that it may refuse, and those
 * that fill stages read by such roles. */
#include "check/padding/padding.h"

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

static bool role_scatters(Arena *arena, const FlowCode *code) {
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind == ROW_TILE && padding_scatters(arena, code->role, row->tile)) return true;
    }
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

typedef struct Names {
    Arena *arena;
    const Prog *prog;
    const FlowCode *code; /* of the present role */
    /* by role and tile, by pipe and field: some element is not only copied from a tensor */
    bool **tiles, **fields;
    bool found;
} Names;

/* The mark of the tile or field; NULL: it is neither */
static bool *computed(const Names *names, const Access *access) {
    const Role *role = names->code->role;
    if (padding_tile_object(access) >= 0)
        return &names->tiles[role - names->prog->roles.items][access->object];
    int pipe = access->space == SPACE_STAGE ? role->handles.items[access->object].pipe : -1;
    return pipe >= 0 ? &names->fields[pipe][access->field] : NULL;
}

static bool computes(const Names *names, const Tile *tile) {
    const Expr *value = tile->value;
    while (value && value->kind == X_CAST) value = value->cast;
    bool copies = tile->op == ASSIGN_SET && value && value->kind == X_READ && value->read;
    const bool *from = copies ? computed(names, value->read) : NULL;
    return value && (!copies || (from && *from));
}

static bool mark_computed(Names *names, const FlowCode *code) {
    bool any = false;
    names->code = code;
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = code_row(code, (int)at);
        bool *mark = row->kind == ROW_TILE ? computed(names, &row->tile->target) : NULL;
        if (!mark || *mark || !computes(names, row->tile)) continue;
        *mark = any = true;
    }
    return any;
}

static void list_computed(Names *names) {
    const Prog *prog = names->prog;
    names->tiles = NEW_ARRAY(names->arena, bool *, prog->roles.count + 1);
    names->fields = NEW_ARRAY(names->arena, bool *, prog->pipes.count + 1);
    for (size_t r = 0; r < prog->roles.count; r++)
        names->tiles[r] = NEW_ARRAY(names->arena, bool, prog->roles.items[r].tiles.count + 1);
    for (size_t i = 0; i < prog->pipes.count; i++)
        names->fields[i] = NEW_ARRAY(names->arena, bool, prog->pipes.items[i].fields.count + 1);
    for (bool more = true; more;) {
        more = false;
        for (size_t r = 0; r < prog->roles.count; r++)
            more |= mark_computed(names, prog->roles.items[r].code);
    }
}

/* Copies are zero where they are padding, and may be named. */
static void find_named(Access *access, bool written, void *data) {
    Names *names = data;
    const bool *mark = computed(names, access);
    (void)written;
    for (int d = 0; mark && *mark && d < access->rank && !names->found; d++)
        names->found = padding_is_named(names->code, access, d);
}

static bool role_names(Names *names, const FlowCode *code) {
    names->found = false, names->code = code;
    for (size_t at = 0; at < code->rows.count && !names->found; at++)
        row_accesses(names->arena, code, code_row(code, (int)at), find_named, names);
    return names->found;
}

/* Consumes from a role that is followed */
static bool drains(const Prog *prog, size_t role, const bool *follows) {
    const Role *row = &prog->roles.items[role];
    for (size_t i = 0; i < row->handles.count; i++) {
        int pipe = row->handles.items[i].pipe;
        int producer = pipe >= 0 ? prog->pipes.items[pipe].producer : -1;
        if (producer >= 0 && follows[producer]) return true;
    }
    return false;
}

/* Those that name elements, and those that may write what these compute */
static bool follow_names(Arena *arena, const Prog *prog, bool *follows, bool *read) {
    bool any = false, *names = NEW_ARRAY(arena, bool, prog->roles.count + 1);
    Names all = {.arena = arena, .prog = prog};
    list_computed(&all);
    for (size_t r = 0; r < prog->roles.count; r++)
        any |= names[r] = role_names(&all, prog->roles.items[r].code);
    for (bool more = any; more;) {
        more = false;
        for (size_t r = 0; r < prog->roles.count; r++) {
            if (names[r] || !drains(prog, r, names)) continue;
            names[r] = more = true;
        }
    }
    for (size_t r = 0; r < prog->roles.count; r++)
        if (names[r]) follow(&prog->roles.items[r], &follows[r], read);
    return any;
}

bool padding_roles(Arena *arena, const Prog *prog, bool *follows, bool *names) {
    bool *read = NEW_ARRAY(arena, bool, prog->pipes.count + 1); /* by pipe */
    bool any = *names = follow_names(arena, prog, follows, read);
    for (size_t r = 0; r < prog->roles.count; r++) {
        const FlowCode *code = prog->roles.items[r].code;
        if (follows[r] || (!role_reduces(arena, code) && !role_scatters(arena, code))) continue;
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
