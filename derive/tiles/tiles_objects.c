/* What tile statements access: the object of an access, its shape, its name in messages, and the
 * elements that an expression reads. */
#include "derive/edit.h"
#include "derive/tiles.h"

/* ---- names and shapes ------------------------------------------------------------------------ */

const char *tiles_text(Tiles *tiles, Span span) {
    const Source *source = tiles->prog->source;
    Str text = str_new(tiles->arena);
    str_add(&text, "");
    if (!source || span.hi > source->length || span.lo > span.hi) return text.text;
    uint32_t length = span.hi - span.lo;
    for (uint32_t i = 0; i < length; i++)
        if (source->text[span.lo + i] == '\n') length = i;
    bool cut = length > 48 || length < span.hi - span.lo;
    str_add_bytes(&text, source->text + span.lo, length > 48 ? 48 : length);
    if (cut) str_add(&text, "..");
    return text.text;
}

const char *tiles_object(Tiles *tiles, const Role *role, const Access *access) {
    const Field *field;
    switch (access->space) {
    case SPACE_GLOBAL:
        return arena_printf(tiles->arena, "`%s`", tiles->prog->params.items[access->object].name);
    case SPACE_STAGE:
        field = access_field(tiles->prog, role, access);
        return arena_printf(tiles->arena, "`%s.%s`", role->handles.items[access->object].name,
                            field->name);
    case SPACE_SHARED:
    case SPACE_REGISTER:
        return arena_printf(tiles->arena, "`%s`", role->tiles.items[access->object].name);
    case SPACE_LET:
        return arena_printf(tiles->arena, "`%s`", tiles->prog->lets.items[access->object].name);
    }
    return "";
}

Span tiles_declared(Tiles *tiles, const Role *role, const Access *access) {
    switch (access->space) {
    case SPACE_GLOBAL: return tiles->prog->params.items[access->object].span;
    case SPACE_STAGE: return access_field(tiles->prog, role, access)->span;
    case SPACE_SHARED:
    case SPACE_REGISTER: return role->tiles.items[access->object].span;
    case SPACE_LET: return tiles->prog->lets.items[access->object].span;
    }
    return access->span;
}

bool is_tile_space(Space space) { return space != SPACE_GLOBAL; }

const Field *access_field(const Prog *prog, const Role *role, const Access *access) {
    if (access->space != SPACE_STAGE) return NULL;
    return &prog->pipes.items[role->handles.items[access->object].pipe].fields.items[access->field];
}

int64_t tile_extent(const Prog *prog, const Role *role, const Access *access, int d) {
    const Field *field = access_field(prog, role, access);
    return field ? field->extents[d] : role->tiles.items[access->object].extents[d];
}

Expr *access_extent(Tiles *tiles, const Role *role, const Access *access, int d) {
    if (access->space == SPACE_GLOBAL) return tiles->prog->params.items[access->object].extents[d];
    if (access->space != SPACE_LET)
        return expr_integer(tiles->arena, E_I32, tile_extent(tiles->prog, role, access, d),
                            access->span);
    const IndexSpace *space = &tiles->prog->lets.items[access->object].space;
    if (d >= space->count) return NULL;
    if (space->items[d].extent >= 0)
        return expr_integer(tiles->arena, E_I32, space->items[d].extent, access->span);
    return space->items[d].dynamic;
}

Layout *access_layout(const Prog *prog, const Role *role, const Access *access) {
    if (access->space == SPACE_STAGE) {
        int pipe = role->handles.items[access->object].pipe;
        return &prog->plan->pipes[pipe].fields[access->field].layout;
    }
    if (access->space != SPACE_SHARED) return NULL;
    return &edit_tile(prog, role, access->object)->layout;
}

bool same_object(const Access *a, const Access *b) {
    return a->space == b->space && a->object == b->object &&
           (a->space != SPACE_STAGE || a->field == b->field) && a->old == b->old;
}

/* ---- reads ----------------------------------------------------------------------------------- */

typedef struct Gather {
    Tiles *tiles;
    const Role *role;
    Accesses *reads;
    bool poisoned;
} Gather;

bool tiles_poisoned(const Prog *prog, const Role *role, const Access *access) {
    if (access->object < 0 || access->rank > PROG_MAX_RANK) return true;
    switch (access->space) {
    case SPACE_GLOBAL: return (size_t)access->object >= prog->params.count;
    case SPACE_STAGE: {
        if (!role || (size_t)access->object >= role->handles.count || access->field < 0)
            return true;
        int pipe = role->handles.items[access->object].pipe;
        return pipe < 0 || (size_t)access->field >= prog->pipes.items[pipe].fields.count;
    }
    case SPACE_SHARED:
    case SPACE_REGISTER: return !role || (size_t)access->object >= role->tiles.count;
    case SPACE_LET: return (size_t)access->object >= prog->lets.count;
    }
    return true;
}

static void gather_node(Expr *expr, void *data) {
    Gather *gather = data;
    if (expr->kind == X_POISON) gather->poisoned = true;
    if (expr->kind != X_READ) return;
    if (tiles_poisoned(gather->tiles->prog, gather->role, expr->read))
        gather->poisoned = true;
    else
        vec_push(gather->tiles->arena, gather->reads, expr->read);
}

bool tiles_reads(Tiles *tiles, const Role *role, Expr *expr, Accesses *reads) {
    Gather state = {tiles, role, reads, false};
    if (!expr) return true;
    expr_visit(tiles->arena, expr, gather_node, &state);
    return state.poisoned;
}

bool tiles_target_reads(Tiles *tiles, const Role *role, const Access *target, Accesses *reads) {
    bool poisoned = tiles_poisoned(tiles->prog, role, target);
    for (int d = 0; d < target->rank && !poisoned; d++)
        poisoned |= tiles_reads(tiles, role, target->subs[d], reads);
    if (target->element) poisoned |= tiles_reads(tiles, role, target->element, reads);
    return poisoned;
}
