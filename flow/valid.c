/* Validity of Code, which every pass assumes: operands are in range, regions nest, a LEAVE goes
 * to an enclosing region, scopes are paired and nest in regions as they were opened. */
#include "flow/code.h"

/* ---- one row --------------------------------------------------------------------------------- */

static bool fail(Str *why, size_t at, const char *what) {
    if (why) str_printf(why, "row %zu: %s", at, what);
    return false;
}

static bool first_row_of(const FlowCode *code, size_t at) {
    const Row *row = &code->rows.items[at];
    return code->regions.items[row->region].begin == (int)at;
}

static bool valid_row(const FlowCode *code, size_t at, Str *why) {
    const Row *row = &code->rows.items[at];
    const Region *region = &code->regions.items[row->region];
    if (row->handle >= (int)code->role->handles.count ||
        row->other >= (int)code->role->handles.count)
        return fail(why, at, "no such handle");
    if (row->hint >= (int)code->role->hints.count || row->local >= (int)code->role->locals.count)
        return fail(why, at, "no such hint or variable");
    if (row->late >= (int)code->lates.count) return fail(why, at, "no such late set");
    bool kept = row->kind == ROW_KEEP || row->kind == ROW_FLUSH,
         may = kept || (row->kind == ROW_ACQUIRE && row->block);
    if (row->late >= 0 ? !may : kept) return fail(why, at, "late set");
    if (row->kind == ROW_LEAVE) {
        if (row->target < 0) return fail(why, at, "leaves nothing");
        if (!code_inside(code, row->region, row->target))
            return fail(why, at, "leaves a region that it is not in");
        if (row->again && !region_loops(&code->regions.items[row->target]))
            return fail(why, at, "again, of no loop");
    }
    bool turns = row_in_turn(row->kind);
    if (turns && (row->turn < 1 || row->turn > code->role->turns))
        return fail(why, at, "no such turn");
    if (row->kind == ROW_TILE && !row->tile) return fail(why, at, "no tile");
    if ((row->kind == ROW_UNSAFE || row->kind == ROW_STEP) && !row->unsafe)
        return fail(why, at, "no operation");
    if (row->kind == ROW_EXIT)
        return at + 1 == code->rows.count || fail(why, at, "rows after the end");
    return ((int)at >= region->begin && (int)at <= region->end) ||
           fail(why, at, "lies outside of its region");
}

/* ---- regions --------------------------------------------------------------------------------- */

/* Regions nest: `open` is the innermost at each row. */
static bool valid_nesting(const FlowCode *code, size_t at, int *open, Str *why) {
    const Row *row = &code->rows.items[at];
    const Region *region = &code->regions.items[row->region];
    bool first = row_begins(row->kind) && first_row_of(code, at);
    if (row_begins(row->kind) && !first) return fail(why, at, "begins a region again");
    if (first) {
        if (region->parent != *open) return fail(why, at, "the parent is not around it");
        *open = row->region;
    } else if (row->kind != ROW_EXIT && row->region != *open)
        return fail(why, at, "the wrong region");
    if (row->kind == ROW_NEXT && region->next != (int)at)
        return fail(why, at, "not the region's NEXT");
    if (row->kind == ROW_ELSE && region->otherwise != (int)at)
        return fail(why, at, "not the region's ELSE");
    if (row->kind == ROW_END) {
        if (region->end != (int)at) return fail(why, at, "not the region's END");
        *open = region->parent;
    }
    return true;
}

/* ---- scopes ---------------------------------------------------------------------------------- */

typedef struct Scopes {
    /* OPEN rows of tiles and stage variables whose scope is open, innermost last */
    VEC(int) open;
} Scopes;

static bool same_object(const Row *a, const Row *b) {
    return a->object == b->object && a->index == b->index;
}

static size_t objects_of(const FlowCode *code, ObjectKind object) {
    const Role *role = code->role;
    if (object == OBJECT_LOCAL) return role->locals.count;
    return object == OBJECT_TILE ? role->tiles.count : role->handles.count;
}

/* A leave closes scopes only on its own path. */
static bool valid_scope(const FlowCode *code, Arena *arena, size_t at, Scopes *scopes, Str *why) {
    const Row *row = &code->rows.items[at];
    if (row->kind != ROW_OPEN && row->kind != ROW_CLOSE) return true;
    if (!valid_index(row->index, objects_of(code, row->object)))
        return fail(why, at, "no such object");
    if (row->object == OBJECT_LOCAL)
        return row->kind == ROW_OPEN || fail(why, at, "closes a variable");
    if (row->kind == ROW_OPEN) {
        vec_push(arena, &scopes->open, (int)at);
        return true;
    }
    size_t k = scopes->open.count;
    while (k > 0 && row->leaving && !same_object(&code->rows.items[scopes->open.items[k - 1]], row))
        k--;
    if (k == 0) return fail(why, at, "closes what is not open");
    if (row->leaving) return true;
    const Row *opened = &code->rows.items[scopes->open.items[--scopes->open.count]];
    if (!same_object(opened, row)) return fail(why, at, "closes another object than the last one");
    return opened->region == row->region ||
           fail(why, at, "a scope ends in another region than it began in");
}

/* ---- Code ------------------------------------------------------------------------------------ */

bool code_valid(Arena *arena, const FlowCode *code, Str *why) {
    int open = -1;
    Scopes scopes = {0};
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (row->region < 0 || row->region >= (int)code->regions.count)
            return fail(why, at, "no such region");
        if (!valid_row(code, at, why) || !valid_nesting(code, at, &open, why)) return false;
        if (!valid_scope(code, arena, at, &scopes, why)) return false;
    }
    if (scopes.open.count > 0) return fail(why, (size_t)scopes.open.items[0], "a scope has no end");
    if (!code->rows.count || code->rows.items[code->rows.count - 1].kind != ROW_EXIT)
        return fail(why, code->rows.count, "no EXIT");
    return open == -1 || fail(why, code->rows.count, "a region has no end");
}
