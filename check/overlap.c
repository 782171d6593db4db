/* Two tiles of the grid, or two roles, that write the same elements of a tensor and do not wait for one another.
 *
 * What is refused is shown: sizes are tried from the smallest up until two boxes of elements meet inside of the tensor. Only
 * statements count that each tile certainly executes, and subscripts that are a base plus indexes; of tiles, bases that move by
 * a constant from one to the next: where the last tile is pushed back, `min(t*T, N - T)`, it writes the same values again. Roles
 * between which stages go, be it through others, may be ordered by them. Where nothing is shown, nothing is said. */
#include "check/balance.h"
#include "check/tiles.h"

#define SIZES_MOST 200 /* sizes that are tried */
#define LOOPS_MOST 8   /* around a statement */
#define FAMILIES_MOST 32

typedef struct Writer {
    Site *site;
    const Stmt *grid;
    int loop_count;
    const Stmt *loops[LOOPS_MOST];
    struct Begin {
        int family;      /* of bases that differ by constants; -1: not known */
        int64_t at;      /* from the family's first */
    } begins[PROG_MAX_RANK];
} Writer;

typedef struct Overlap {
    Tiles *tiles;
    VEC(Writer) writers;
    VEC(const Poly *) families;
} Overlap;

typedef struct Box {
    int64_t lo[PROG_MAX_RANK], hi[PROG_MAX_RANK]; /* hi not included */
} Box;

/* ---- writers ---------------------------------------------------------------------------------------------------------- */

static void find_leave(Stmt *stmt, void *data) { *(bool *)data |= stmt->kind == S_LEAVE; }

/* Statements under a condition are left out: two of them may exclude each other. */
static void collect(Overlap *o, Stmt *stmt, Writer around) {
    if (!stmt) return;
    switch (stmt->kind) {
    case S_BLOCK:
        for (size_t i = 0; i < stmt->block.body.count; i++) collect(o, stmt->block.body.items[i], around);
        break;
    case S_GRID:
        around.grid = stmt;
        collect(o, stmt->grid.body, around);
        break;
    case S_FOR:
        if (stmt->loop.where || stmt->loop.var < 0 || around.loop_count == LOOPS_MOST) break;
        around.loops[around.loop_count++] = stmt;
        collect(o, stmt->loop.body, around);
        break;
    case S_STAGE: collect(o, stmt->stage.body, around); break;
    case S_TILE:
        if (!stmt->tile || stmt->tile->target.space != SPACE_GLOBAL || !around.grid) break;
        around.site = tiles_site(o->tiles, stmt);
        if (around.site && !around.site->poisoned) vec_push(o->tiles->arena, &o->writers, around);
        break;
    case S_IF:
    case S_SCALAR:
    case S_LEAVE:
    case S_TRY:
    case S_ACQUIRE:
    case S_RELEASE:
    case S_UNSAFE:
    case S_MOVE: break;
    }
}

/* ---- boxes at sizes --------------------------------------------------------------------------------------------------- */

/* The values of loop variables in their first iterations, and of `let`s; false where a loop has none */
static bool settle(const Writer *writer, Env *env, int64_t *locals, bool *known) {
    const Role *role = writer->site->role;
    env->locals = locals, env->known = known;
    for (size_t i = 0; i < role->locals.count; i++) {
        const Local *local = &role->locals.items[i];
        const Stmt *loop = NULL;
        int64_t hi;
        known[i] = false;
        for (int k = 0; k < writer->loop_count; k++)
            if (writer->loops[k]->loop.var == (int)i) loop = writer->loops[k];
        if (loop) {
            if (!evaluate(env, loop->loop.lo, &locals[i]) || !evaluate(env, loop->loop.hi, &hi) || locals[i] >= hi) return false;
            known[i] = true;
        } else if (local->kind == LOCAL_LET && local->value && local->value->type != E_F32) {
            known[i] = evaluate(env, local->value, &locals[i]);
        }
    }
    return true;
}

/* The elements that are written at these sizes and coordinates, inside of the tensor; false: none, or they are no box */
static bool box_at(Overlap *o, const Writer *writer, const Sizes *sizes, const int64_t *axes, Box *box) {
    const Tile *tile = writer->site->tile;
    const Access *target = &tile->target;
    const Role *role = writer->site->role;
    int64_t *locals = NEW_ARRAY(o->tiles->arena, int64_t, role->locals.count + 1), extent;
    bool *known = NEW_ARRAY(o->tiles->arena, bool, role->locals.count + 1), used[PROG_MAX_INDEXES] = {false};
    Env env = {.prog = o->tiles->prog, .role = role, .symbols = sizes->values, .axes = axes};
    if (!settle(writer, &env, locals, known)) return false;
    for (int d = 0; d < target->rank; d++) {
        if (!target->affine[d].is || !evaluate(&env, target->affine[d].base, &box->lo[d])) return false;
        box->hi[d] = box->lo[d] + 1;
        for (int i = 0; i < tile->space.count; i++) {
            if (target->affine[d].coef[i] == 0) continue;
            if (target->affine[d].coef[i] != 1 || used[i] || tile->space.items[i].extent < 1) return false;
            used[i] = true;
            box->hi[d] += tile->space.items[i].extent - 1;
        }
        if (!evaluate(&env, access_extent(o->tiles, role, target, d), &extent)) return false;
        if (box->lo[d] < 0) box->lo[d] = 0;
        if (box->hi[d] > extent) box->hi[d] = extent;
        if (box->lo[d] >= box->hi[d]) return false;
    }
    return true;
}

static bool meet(const Box *a, const Box *b, int rank, int64_t *at) {
    for (int d = 0; d < rank; d++) {
        at[d] = a->lo[d] > b->lo[d] ? a->lo[d] : b->lo[d];
        if (at[d] >= a->hi[d] || at[d] >= b->hi[d]) return false;
    }
    return true;
}

static Sizes *sizes_for(Overlap *o, const Writer *a, const Writer *b) {
    const Prog *prog = o->tiles->prog;
    Sizes *sizes = sizes_new(o->tiles->arena, prog, false);
    for (size_t i = 0; i < prog->axes.count; i++) sizes_formula(sizes, prog->axes.items[i].extent);
    for (int side = 0; side < 2; side++) {
        const Writer *writer = side ? b : a;
        for (int d = 0; d < writer->site->tile->target.rank; d++)
            sizes_formula(sizes, access_extent(o->tiles, writer->site->role, &writer->site->tile->target, d));
        for (int i = 0; i < writer->loop_count; i++) sizes_formula(sizes, writer->loops[i]->loop.hi);
    }
    return sizes;
}

/* Sizes at which `a` at all coordinates 0 and `b` at 1 along the axis (-1: at 0 too) write the same element */
static bool find_sizes(Overlap *o, const Writer *a, const Writer *b, int axis, int64_t *at, Str *text) {
    Sizes *sizes = sizes_for(o, a, b);
    for (int tried = 0; tried < SIZES_MOST && sizes_next(sizes); tried++) {
        int64_t extents[PROG_MAX_RANK], tiles, first[PROG_MAX_RANK] = {0}, second[PROG_MAX_RANK] = {0};
        Box x, y;
        if (!sizes_tiles(sizes, extents, &tiles) || tiles < 1 || (axis >= 0 && extents[axis] < 2)) continue;
        if (axis >= 0) second[axis] = 1;
        if (!box_at(o, a, sizes, first, &x) || !box_at(o, b, sizes, second, &y)) continue;
        if (!meet(&x, &y, a->site->tile->target.rank, at)) continue;
        sizes_print(sizes, text);
        return true;
    }
    return false;
}

/* ---- does a value depend on an axis? ---------------------------------------------------------------------------------- */

typedef struct Depends {
    const Prog *prog;
    const Role *role;
    int axis;
    bool **fields, **tiles, **locals; /* by pipe, by role, by role */
    bool found, changed;
    Arena *arena;
} Depends;

static void visit_depends(Expr *expr, void *data) {
    Depends *d = data;
    size_t role = (size_t)(d->role - d->prog->roles.items);
    if (expr->kind == X_LOCAL && valid_index(expr->index, d->role->locals.count)) {
        const Local *local = &d->role->locals.items[expr->index];
        d->found |= d->locals[role][expr->index] || (local->kind == LOCAL_AXIS && local->axis == d->axis);
    }
    if (expr->kind != X_READ || !expr->read || expr->read->object < 0) return;
    const Access *read = expr->read;
    if (read->space == SPACE_STAGE) d->found |= d->fields[d->role->handles.items[read->object].pipe][read->field];
    if (read->space == SPACE_SHARED || read->space == SPACE_REGISTER) d->found |= d->tiles[role][read->object];
}

static void note(Depends *d, bool *what) {
    d->changed |= d->found && !*what;
    *what |= d->found;
}

static void visit_root(Expr *expr, void *data) {
    const Depends *d = data;
    expr_visit(d->arena, expr, visit_depends, data);
}

static void visit_stmt(Stmt *stmt, void *data) {
    Depends *d = data;
    size_t role = (size_t)(d->role - d->prog->roles.items);
    d->found = false;
    walk_exprs(stmt, visit_root, d);
    if (stmt->kind == S_SCALAR && stmt->scalar.local >= 0) note(d, &d->locals[role][stmt->scalar.local]);
    if (stmt->kind == S_FOR && stmt->loop.var >= 0) note(d, &d->locals[role][stmt->loop.var]);
    if (stmt->kind != S_TILE || !stmt->tile || stmt->tile->target.object < 0) return;
    const Access *target = &stmt->tile->target;
    if (target->space == SPACE_STAGE) note(d, &d->fields[d->role->handles.items[target->object].pipe][target->field]);
    if (target->space == SPACE_SHARED || target->space == SPACE_REGISTER) note(d, &d->tiles[role][target->object]);
}

static bool value_depends(Overlap *o, const Writer *writer, int axis) {
    Arena *arena = o->tiles->arena;
    const Prog *prog = o->tiles->prog;
    Depends d = {.prog = prog, .axis = axis, .arena = arena, .changed = true};
    d.fields = NEW_ARRAY(arena, bool *, prog->pipes.count + 1);
    d.tiles = NEW_ARRAY(arena, bool *, prog->roles.count + 1), d.locals = NEW_ARRAY(arena, bool *, prog->roles.count + 1);
    for (size_t i = 0; i < prog->pipes.count; i++) d.fields[i] = NEW_ARRAY(arena, bool, prog->pipes.items[i].fields.count + 1);
    for (size_t i = 0; i < prog->roles.count; i++) {
        d.tiles[i] = NEW_ARRAY(arena, bool, prog->roles.items[i].tiles.count + 1);
        d.locals[i] = NEW_ARRAY(arena, bool, prog->roles.items[i].locals.count + 1);
    }
    while (d.changed) {
        d.changed = false;
        for (size_t i = 0; i < prog->roles.count; i++) {
            d.role = &prog->roles.items[i];
            stmt_visit(d.role->body, visit_stmt, &d);
        }
    }
    d.role = writer->site->role, d.found = false;
    visit_root(writer->site->tile->value, &d);
    return d.found;
}

/* ---- verdicts --------------------------------------------------------------------------------------------------------- */

static const char *element_text(Overlap *o, const Access *target, const int64_t *at) {
    Str text = str_new(o->tiles->arena);
    str_printf(&text, "%s[", o->tiles->prog->params.items[target->object].name);
    for (int d = 0; d < target->rank; d++) str_printf(&text, "%s%lld", d ? ", " : "", (long long)at[d]);
    str_char(&text, ']');
    return text.text;
}

/* Elements from the first to the last that the statement writes along dimension d */
static int64_t width(const Tile *tile, int d) {
    int64_t width = 1;
    for (int i = 0; i < tile->space.count; i++)
        if (tile->target.affine[d].coef[i] != 0) width += tile->space.items[i].extent - 1;
    return width;
}

static bool begins_alike(const Writer *writer, int atom) {
    Algebra *algebra = writer->site->algebra;
    for (int i = 0; i < writer->loop_count; i++)
        if (poly_mentions(algebra, algebra_poly(algebra, writer->site->role, writer->loops[i]->loop.lo), atom)) return false;
    return true;
}

/* Along the axis all bases move by constants; `stays`: by 0. `apart`: some base by so much that a tile never reaches the next one */
static bool moves_evenly(const Writer *writer, int axis, bool *stays, bool *apart) {
    Algebra *algebra = writer->site->algebra;
    const Access *target = &writer->site->tile->target;
    int atom = algebra_atom_local(algebra, writer->site->role, writer->grid->grid.vars[axis]);
    *stays = true, *apart = false;
    for (int d = 0; d < target->rank; d++) {
        const Poly *factor, *rest, *base = target->affine[d].is ? algebra_poly(algebra, writer->site->role, target->affine[d].base) : NULL;
        int64_t step;
        if (!base) return false;
        if (!poly_mentions(algebra, base, atom)) continue;
        if (!poly_split(algebra, base, atom, &factor, &rest) || !poly_is_constant(factor, &step)) return false;
        *stays = false;
        *apart |= step >= width(writer->site->tile, d) || -step >= width(writer->site->tile, d);
    }
    *apart = *apart && begins_alike(writer, atom);
    return true;
}

static void check_tiles(Overlap *o, const Writer *writer) {
    const Prog *prog = o->tiles->prog;
    const Access *target = &writer->site->tile->target;
    for (size_t a = 0; a < prog->axes.count; a++) {
        bool stays, apart;
        int64_t at[PROG_MAX_RANK];
        Str sizes = str_new(o->tiles->arena);
        if (!moves_evenly(writer, (int)a, &stays, &apart) || apart || (stays && !value_depends(o, writer, (int)a))) continue;
        if (!find_sizes(o, writer, writer, (int)a, at, &sizes)) continue;
        const char *axis = prog->axes.items[a].name;
        Diag *diag = diag_at(o->tiles->diags, P0229, target->span, "tiles of the grid write the same elements of `%s`",
                             prog->params.items[target->object].name);
        diag_primary(o->tiles->diags, diag, stays ? "the same place whatever `%s` is" : "reaches into the next tile along `%s`", axis);
        diag_label(o->tiles->diags, diag, prog->axes.items[a].span, "tiles along `%s` do not wait for one another", axis);
        diag_note(o->tiles->diags, diag, "%s: %s = 0 and %s = 1 both write `%s`", sizes.text, axis, axis, element_text(o, target, at));
        diag_help(o->tiles->diags, diag, stays ? "let the subscripts depend on `%s`, or take the axis out of the grid"
                                               : "write as many elements along `%s` as the base moves by", axis);
        return;
    }
}

/* Do stages go from one role to the other? */
static bool reaches(const Prog *prog, int from, int to, bool *seen) {
    if (from == to) return true;
    seen[from] = true;
    for (size_t p = 0; p < prog->pipes.count; p++) {
        const Pipe *pipe = &prog->pipes.items[p];
        for (size_t c = 0; c < pipe->consumers.count && pipe->producer == from; c++) {
            int next = pipe->consumers.items[c];
            if (valid_index(next, prog->roles.count) && !seen[next] && reaches(prog, next, to, seen)) return true;
        }
    }
    return false;
}

/* For each two roles: stages go from one to the other, or back */
static bool *connections(const Overlap *o) {
    size_t roles = o->tiles->prog->roles.count;
    bool *connected = NEW_ARRAY(o->tiles->arena, bool, roles * roles + 1);
    for (size_t x = 0; x < roles; x++)
        for (size_t y = 0; y < roles; y++)
            if (reaches(o->tiles->prog, (int)x, (int)y, NEW_ARRAY(o->tiles->arena, bool, roles + 1)))
                connected[x * roles + y] = connected[y * roles + x] = true;
    return connected;
}

/* Many statements of two roles are compared, two and two: what is asked first is what is known of each */
static void find_family(Overlap *o, const Writer *writer, const Affine *affine, struct Begin *begin) {
    Algebra *algebra = o->tiles->formulas;
    const Poly *base = affine->is ? algebra_poly(algebra, writer->site->role, affine->base) : NULL;
    *begin = (struct Begin){.family = -1};
    for (size_t f = 0; base && f < o->families.count && begin->family < 0; f++)
        if (poly_is_constant(poly_sum(algebra, base, o->families.items[f], -1), &begin->at)) begin->family = (int)f;
    if (!base || begin->family >= 0 || o->families.count == FAMILIES_MOST) return;
    *begin = (struct Begin){.family = (int)o->families.count};
    vec_push(o->tiles->arena, &o->families, base);
}

/* In some dimension the two begin apart by a constant, and neither reaches the other */
static bool always_apart(const Writer *a, const Writer *b) {
    for (int d = 0; d < a->site->tile->target.rank; d++) {
        int64_t distance;
        if (a->begins[d].family < 0 || a->begins[d].family != b->begins[d].family) continue;
        if (__builtin_sub_overflow(b->begins[d].at, a->begins[d].at, &distance)) continue;
        if (distance >= width(a->site->tile, d) || (distance < 0 && distance + width(b->site->tile, d) <= 0)) return true;
    }
    return false;
}

static void check_roles(Overlap *o, const Writer *a, const Writer *b, const bool *connected) {
    const Prog *prog = o->tiles->prog;
    const Access *one = &a->site->tile->target, *two = &b->site->tile->target;
    int x = (int)(a->site->role - prog->roles.items), y = (int)(b->site->role - prog->roles.items);
    int64_t at[PROG_MAX_RANK];
    if (x == y || one->object != two->object || connected[(size_t)x * prog->roles.count + (size_t)y]) return;
    if (always_apart(a, b)) return;
    Str sizes = str_new(o->tiles->arena);
    if (!find_sizes(o, a, b, -1, at, &sizes)) return;
    Diag *diag = diag_at(o->tiles->diags, P0229, two->span, "roles `%s` and `%s` write the same elements of `%s`", a->site->role->name,
                         b->site->role->name, prog->params.items[one->object].name);
    diag_primary(o->tiles->diags, diag, "by `%s`", b->site->role->name);
    diag_label(o->tiles->diags, diag, one->span, "by `%s`", a->site->role->name);
    diag_note(o->tiles->diags, diag, "%s%sboth write `%s`, and no stage goes from one of them to the other", sizes.text ? sizes.text : "",
              sizes.length ? ": " : "", element_text(o, one, at));
    diag_help(o->tiles->diags, diag, "let each role write its own part of the tensor");
    b->site->poisoned = true;
}

void tiles_overlap(Tiles *tiles) {
    Overlap o = {.tiles = tiles};
    for (size_t r = 0; r < tiles->prog->roles.count; r++) {
        bool leaves = false;
        stmt_visit(tiles->prog->roles.items[r].body, find_leave, &leaves);
        if (!leaves && tiles->prog->roles.items[r].body) collect(&o, tiles->prog->roles.items[r].body, (Writer){0});
    }
    for (size_t i = 0; i < o.writers.count; i++) {
        Writer *writer = &o.writers.items[i];
        const Access *target = &writer->site->tile->target;
        for (int d = 0; d < target->rank; d++) find_family(&o, writer, &target->affine[d], &writer->begins[d]);
    }
    for (size_t i = 0; i < o.writers.count; i++) check_tiles(&o, &o.writers.items[i]);
    const bool *connected = connections(&o);
    for (size_t i = 0; i < o.writers.count; i++)
        for (size_t k = i + 1; k < o.writers.count; k++)
            if (!o.writers.items[i].site->poisoned && !o.writers.items[k].site->poisoned)
                check_roles(&o, &o.writers.items[i], &o.writers.items[k], connected);
}
