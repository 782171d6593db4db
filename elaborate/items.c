/* The items of a kernel: target, grid, pipes and roles. */
#include "elaborate/items.h"

#include <string.h>

#define FOR_ITEMS(e, item, wanted)                                                                 \
    for (size_t i_ = 0; i_ < (e)->kernel->kernel.items.count; i_++)                                \
        for (const AstItem *item = (e)->kernel->kernel.items.items[i_]; item; item = NULL)         \
            if (item->kind == (wanted))

/* ---- the target ------------------------------------------------------------------------------ */

static void unknown_target(Elab *e, AstName name) {
    VEC(const char *) list = {0};
    for (size_t i = 0; i < target_count; i++) vec_push(e->arena, &list, target_rows[i].name);
    Diag *diag = elab_error(e, P0133, name.span, "unknown target `%s`", name.text);
    const char *near = elab_suggest(e, name.text, list.items, list.count);
    if (near) HELP(e, diag, "did you mean `%s`?", near);
    NOTE(e, diag, "known targets: %s", targets_known(e->arena));
}

static void refuse_twice(Elab *e, AstName name, AstName first) {
    Diag *diag = elab_error(e, P0137, name.span, "target `%s` is named twice", name.text);
    LABEL(e, diag, first.span, "the first time");
    HELP(e, diag, "remove one of them");
}

/* The one that is wanted, otherwise the first of the list; all names of the list are checked. */
static void target(Elab *e) {
    const AstNames *list = &e->kernel->kernel.targets;
    e->prog->target = e->target ? e->target : target_default();
    e->broken |= list->count == 0;
    for (size_t i = 0; i < list->count; i++) {
        AstName name = list->items[i];
        const Target *found = name.text ? target_by_name(name.text) : NULL;
        size_t first = 0;
        while (name.text && first < i && list->items[first].text != name.text) first++;
        if (name.text && first < i) refuse_twice(e, name, list->items[first]);
        if (name.text && !found && first == i) unknown_target(e, name);
        bool named = e->prog->target_span.hi > 0;
        if (!found || named || (e->target && found != e->target)) continue;
        e->prog->target = found;
        e->prog->target_span = name.span;
    }
    bool unknown = !e->target && e->prog->target_span.hi == 0;
    if (unknown && list->count > 0) e->prog->target_span = list->items[0].span;
}

/* ---- the grid -------------------------------------------------------------------------------- */

/* The first one; NULL: none */
static const AstItem *find_grid(const Elab *e) {
    FOR_ITEMS(e, item, AST_ITEM_GRID) return item;
    return NULL;
}

static void refuse_second_grid(Elab *e) {
    const AstItem *grid = find_grid(e);
    FOR_ITEMS(e, item, AST_ITEM_GRID) {
        if (item == grid) continue;
        Diag *diag = elab_error(e, P0137, item->head, "a second `grid`");
        LABEL(e, diag, grid->head, "the first `grid`");
    }
}

/* Coordinates in groups of the first axis, so that concurrent blocks share tiles in the cache */
static void grouped(Elab *e, const AstItem *grid) {
    int64_t count = 0;
    if (!grid->grid.grouped) return;
    if (!elab_constant_integer(e, grid->grid.grouped, "the size of a group", 1, INT32_MAX, &count))
        return;
    e->prog->grouped = (int)count;
    if (grid->grid.axes.count >= 2) return;
    Diag *diag = elab_error(e, P0159, grid->grid.grouped_span, "`grouped` on a grid of one axis");
    NOTE(e, diag,
         "`grouped` orders coordinates in groups of the first axis, each with the whole second "
         "axis");
    HELP(e, diag, "remove `grouped`, or add a second axis to the grid");
}

static void declare_axes(Elab *e, const AstItem *grid) {
    if (!grid) {
        Diag *diag = elab_error(e, P0135, e->prog->span, "kernel `%s` has no grid", e->prog->name);
        HELP(e, diag, "declare the axes of its tiles: `grid (t: ceil(N, 4096));`");
        e->broken = true;
        return;
    }
    e->prog->persistent = grid->grid.persistent || grid->grid.dynamic;
    if (grid->grid.hardware) elab_refuse_word(e, grid->grid.hardware_span, "hardware");
    grouped(e, grid);
    size_t count = grid->grid.axes.count;
    if (count > PROG_MAX_RANK) {
        elab_error(e, P0120, grid->grid.axes.items[PROG_MAX_RANK].name.span,
                   "a grid has at most %d axes", PROG_MAX_RANK);
        count = PROG_MAX_RANK;
    }
    for (size_t i = 0; i < count; i++) {
        const AstAxis *ast = &grid->grid.axes.items[i];
        if (ast->heaviest_first) elab_refuse_word(e, ast->heaviest_span, "heaviest first");
        vec_push(e->arena, &e->prog->axes,
                 (Axis){.name = ast->name.text ? ast->name.text : "?",
                        .span = ast->name.span,
                        .cluster = 1});
        elab_scope_bind(e, e->axes, NAME_AXIS, ast->name.text, ast->name.span, (int)i);
        if (!ast->name.text || !ast->extent) e->broken = true;
    }
}

/* ---- the cluster ----------------------------------------------------------------------------- */

static void cluster_axis(Elab *e, const AstAxis *ast, Span *sized) {
    int64_t blocks = 1;
    if (ast->heaviest_first) elab_refuse_word(e, ast->heaviest_span, "heaviest first");
    if (!ast->name.text || !ast->extent) return;
    VEC(const char *) list = {0};
    for (size_t i = 0; i < e->prog->axes.count; i++) {
        Axis *axis = &e->prog->axes.items[i];
        vec_push(e->arena, &list, axis->name);
        if (axis->name != ast->name.text) continue;
        if (sized[i].hi > 0) {
            Diag *diag =
                elab_error(e, P0137, ast->name.span, "two cluster sizes along `%s`", axis->name);
            LABEL(e, diag, sized[i], "first declared here");
            return;
        }
        sized[i] = ast->name.span;
        if (!elab_constant_integer(e, ast->extent, "the size of a cluster", 1, INT32_MAX, &blocks))
            return;
        if (blocks > e->prog->target->cluster_limit)
            blocks = e->prog->target->cluster_limit + 1; /* too many, without overflow */
        axis->cluster = (int)blocks;
        return;
    }
    Diag *diag =
        elab_error(e, P0170, ast->name.span, "`%s` is not an axis of the grid", ast->name.text);
    const char *near = elab_suggest(e, ast->name.text, list.items, list.count);
    if (near) HELP(e, diag, "did you mean `%s`?", near);
    size_t axes = e->prog->axes.count;
    if (!near && axes > 0)
        LABEL(e, diag, span_join(e->prog->axes.items[0].span, e->prog->axes.items[axes - 1].span),
              "the axes of the grid");
}

/* Clusters of blocks that are adjacent along axes of the grid */
static void clusters(Elab *e) {
    Prog *prog = e->prog;
    Span sized[PROG_MAX_RANK] = {{0, 0}};
    const AstItem *first = NULL;
    prog->cluster = 1;
    size_t errors = e->diags->errors;
    FOR_ITEMS(e, item, AST_ITEM_CLUSTER) {
        if (first) {
            Diag *diag = elab_error(e, P0137, item->head, "a second `cluster`");
            LABEL(e, diag, first->head, "first declared here");
            continue;
        }
        first = item;
        prog->cluster_span = item->head;
        if (!prog->target->has[CAP_CLUSTERS]) {
            target_lacks(e->arena, e->diags, prog, CAP_CLUSTERS, item->head);
            continue;
        }
        if (item->cluster.paired) elab_refuse_word(e, item->span, "paired");
        for (size_t i = 0; i < item->cluster.axes.count; i++)
            cluster_axis(e, &item->cluster.axes.items[i], sized);
    }
    int limit = prog->target->cluster_limit;
    for (size_t i = 0; i < prog->axes.count && prog->cluster <= limit; i++)
        prog->cluster *= prog->axes.items[i].cluster;
    if (prog->cluster > limit) {
        Diag *diag = elab_error(e, P0506, prog->cluster_span,
                                "a cluster on %s has at most %d blocks", prog->target->name, limit);
        PRIMARY(e, diag, "the product of these sizes is larger");
        for (size_t i = 0; i < prog->axes.count; i++) prog->axes.items[i].cluster = 1;
        prog->cluster = 1;
    }
    const AstItem *grid = find_grid(e);
    if (grid && grid->grid.dynamic && prog->cluster > 1) {
        Diag *diag =
            elab_error(e, P0172, prog->cluster_span, "clusters of blocks on a dynamic grid");
        LABEL(e, diag, grid->head, "each block draws tiles for itself");
        HELP(e, diag, "write `grid persistent`, or remove `cluster`");
    }
    prog->cluster_refused = e->diags->errors > errors;
    if (prog->grouped > 0 && prog->axes.count > 0 &&
        prog->grouped % prog->axes.items[0].cluster != 0) {
        const Axis *axis = &prog->axes.items[0];
        Diag *diag = elab_error(e, P0171, prog->cluster_span,
                                "groups of %d are not a multiple of the cluster size %d along `%s`",
                                prog->grouped, axis->cluster, axis->name);
        LABEL(e, diag, axis->span, "`grouped` applies to this axis");
        HELP(e, diag, "write `grouped %d`", (prog->grouped / axis->cluster + 1) * axis->cluster);
    }
}

/* ---- roles ----------------------------------------------------------------------------------- */

static void declare_role(Elab *e, const AstItem *item) {
    Role role = {.name = item->role.name.text ? item->role.name.text : "?",
                 .span = item->role.name.span,
                 .instances = 1,
                 .partials = -1,
                 .warps = 1};
    int64_t count = 1, regs = 0;
    bool groups = item->role.team == AST_WARPGROUPS;
    int limit = e->prog->target->threads_limit / (groups ? 128 : 32);
    if (item->role.count &&
        !elab_constant_integer(e, item->role.count,
                               groups ? "the number of warpgroups" : "the number of warps", 1,
                               limit, &count))
        e->broken = true, count = 1;
    role.warpgroups = groups;
    role.instances = groups ? (int)count : 1;
    role.warps = groups ? 4 : (int)count;
    role.in_turn = item->role.in_turn;
    if (item->role.regs && !e->prog->target->has[CAP_SETMAXNREG])
        target_lacks(e->arena, e->diags, e->prog, CAP_SETMAXNREG, item->role.regs_span);
    else if (item->role.regs &&
             elab_constant_integer(e, item->role.regs, "the register budget", 1, INT32_MAX, &regs))
        role.regs = (int)regs;
    int first = item->role.name.text
                    ? elab_table_add(e, e->roles, role.name, (int)e->prog->roles.count)
                    : -1;
    if (first >= 0) {
        Diag *diag = elab_error(e, P0137, role.span, "role `%s` is declared twice", role.name);
        LABEL(e, diag, e->prog->roles.items[first].span, "first declared here");
        e->broken = true;
    }
    vec_push(e->arena, &e->prog->roles, role);
}

static int find_role(Elab *e, AstName name, const char *end) {
    if (!name.text) return -1;
    int role = elab_table_find(e->roles, name.text);
    if (role >= 0) return role;
    Diag *diag = elab_error(e, P0138, name.span, "unknown role `%s`", name.text);
    PRIMARY(e, diag, "%s", end);
    const char *near = elab_suggest_of(e, name.text, e->roles);
    if (near) HELP(e, diag, "did you mean `%s`?", near);
    return -1;
}

/* ---- pipes ----------------------------------------------------------------------------------- */

static bool field_type(Elab *e, const AstField *ast, Field *field) {
    if (!ast->type || ast->type->is_stage || !elab_element_type(e, ast->type, &field->type))
        return false;
    if (field->type == E_BOOL) {
        Diag *diag = elab_error(e, P0131, ast->type->name.span, "a field cannot be bool");
        HELP(e, diag, "declare it u8, and write a comparison: `s.x[i] != 0`");
        return false;
    }
    size_t rank = ast->type->dims.count;
    if (rank == 0 || rank > PROG_MAX_RANK) {
        Diag *diag = elab_error(e, P0113, ast->type->span,
                                "a field must have 1 to %d dimensions, but this has %zu",
                                PROG_MAX_RANK, rank);
        if (rank == 0) HELP(e, diag, "write `%s[1]` for one element", elab_type_name(field->type));
        return false;
    }
    field->rank = (int)rank;
    field->elements = 1;
    bool fine = true;
    for (size_t i = 0; i < rank; i++) {
        if (!elab_constant_integer(e, ast->type->dims.items[i], "the extent of a field", 1,
                                   INT32_MAX, &field->extents[i]))
            fine = false;
        else if (__builtin_mul_overflow(field->elements, field->extents[i], &field->elements))
            field->elements = INT64_MAX / 64;
    }
    return fine;
}

static void declare_field(Elab *e, const AstField *ast, Pipe *pipe, Scope *names) {
    Field field = {.name = ast->name.text ? ast->name.text : "?",
                   .span = ast->name.span,
                   .count = 1,
                   .is_array = ast->count != NULL,
                   .type = E_COUNT};
    int64_t count = 1;
    bool fine = field_type(e, ast, &field);
    if (ast->count && !elab_constant_integer(e, ast->count, "the number of tiles", 1, 1024, &count))
        fine = false;
    field.count = (int)count;
    int first = ast->name.text ? elab_table_add(e, names, field.name, (int)pipe->fields.count) : -1;
    if (first >= 0) {
        Diag *diag = elab_error(e, P0137, field.span, "field `%s` is declared twice", field.name);
        LABEL(e, diag, pipe->fields.items[first].span, "first declared here");
        fine = false;
    }
    if (!fine) field.type = E_COUNT, e->broken = true;
    vec_push(e->arena, &pipe->fields, field);
}

static void pipe_ends(Elab *e, const AstItem *item, Pipe *pipe) {
    pipe->producer = find_role(e, item->pipe.producer, "the producer");
    if (pipe->producer < 0) e->broken = true;
    const AstNames *names = &item->pipe.consumers;
    for (size_t i = 0; i < names->count; i++) {
        int role = find_role(e, names->items[i], "a consumer");
        if (role < 0) {
            e->broken = true;
            continue;
        }
        arena_count(e->arena, i / 8);
        for (size_t j = 0; j < i; j++) {
            if (names->items[j].text != names->items[i].text) continue;
            Diag *diag = elab_error(e, P0139, names->items[i].span,
                                    "role `%s` is named twice as a consumer", names->items[i].text);
            LABEL(e, diag, names->items[j].span, "first named here");
            e->broken = true;
            break;
        }
        vec_push(e->arena, &pipe->consumers, role);
    }
}

/* most arrivals per phase (PTX ISA 9.7.13.15.2) */
#define ARRIVALS_MOST ((1 << 20) - 1)

static void declare_arrivals(Elab *e, const AstExpr *ast, const char *what, Pipe *pipe, End end) {
    if (!ast) return;
    pipe->declared_at[end] = ast->span;
    if (elab_constant_integer(e, ast, what, 1, ARRIVALS_MOST, &pipe->declared[end])) return;
    pipe->declared[end] = 1;
    pipe->faulty = true;
}

static void declare_pipe(Elab *e, const AstItem *item) {
    Pipe pipe = {.name = item->pipe.name.text ? item->pipe.name.text : "?",
                 .span = item->pipe.name.span};
    int64_t stages = 2;
    if (!item->pipe.stages ||
        !elab_constant_integer(e, item->pipe.stages, "the number of stages", 1, 4096, &stages))
        e->broken = true;
    pipe.stages = (int)stages;
    declare_arrivals(e, item->pipe.arrivals_full, "the arrival count of a full barrier", &pipe,
                     END_PRODUCE);
    declare_arrivals(e, item->pipe.arrivals_empty, "the arrival count of an empty barrier", &pipe,
                     END_CONSUME);
    int first = item->pipe.name.text
                    ? elab_table_add(e, e->pipes, pipe.name, (int)e->prog->pipes.count)
                    : -1;
    if (first >= 0) {
        Diag *diag = elab_error(e, P0137, pipe.span, "pipe `%s` is declared twice", pipe.name);
        LABEL(e, diag, e->prog->pipes.items[first].span, "first declared here");
        e->broken = true;
    }
    pipe_ends(e, item, &pipe);
    Scope *fields = item->pipe.fields.count ? elab_scope_new(e, NULL) : NULL;
    for (size_t i = 0; i < item->pipe.fields.count; i++)
        declare_field(e, &item->pipe.fields.items[i], &pipe, fields);
    vec_push(e->arena, &e->prog->pipes, pipe);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static void role_body(Elab *e, const AstItem *item, int index) {
    e->role = &e->prog->roles.items[index];
    e->role->pipes = NEW_ARRAY(e->arena, PipeUse, e->prog->pipes.count + 1);
    e->scope = elab_scope_new(e, e->outer);
    e->place = PLACE_ROLE, e->place_words = "a role";
    e->loop = NULL, e->frame = NULL, e->space = NULL, e->has_target = false, e->exact = false;
    e->loop_of.count = 0;
    for (int i = 0; i < PROG_MAX_RANK; i++) e->axis_locals[i] = -1;
    e->role->body = elab_body_of(e, item->role.body);
    elab_order_releases(e->arena, e->role);
    elab_number_turns(e->role);
    e->role = NULL;
    e->scope = e->outer;
}

void elab_kernel_declare(Elab *e) {
    e->prog->draws = (Draws){.role = -1, .tiles = -1, .begun = -1};
    target(e);
    elab_params_declare(e);
    elab_domains_declare(e);
    refuse_second_grid(e);
    declare_axes(e, find_grid(e));
    clusters(e);
    FOR_ITEMS(e, item, AST_ITEM_ROLE) declare_role(e, item);
    if (e->prog->roles.count == 0) {
        Diag *diag = elab_error(e, P0136, e->prog->span, "kernel `%s` has no role", e->prog->name);
        HELP(e, diag, "declare one: `role main: 4 warps { .. }`");
        e->broken = true;
    }
    FOR_ITEMS(e, item, AST_ITEM_PIPE) declare_pipe(e, item);
    const AstItem *grid = find_grid(e);
    if (grid && grid->grid.dynamic) elab_dynamic_declare(e, grid->head);
}

void elab_kernel_evaluate(Elab *e) {
    const AstItem *grid = find_grid(e);
    if (grid) elab_grid_evaluate(e, grid);
    elab_domains_evaluate(e);
    FOR_ITEMS(e, item, AST_ITEM_REQUIRES) elab_requires_item(e, item);
    FOR_ITEMS(e, item, AST_ITEM_ENSURES) elab_ensures_item(e, item);
    FOR_ITEMS(e, item, AST_ITEM_EXAMPLE) elab_example_item(e, item);
    elab_claims_done(e);
    int role = 0;
    FOR_ITEMS(e, item, AST_ITEM_ROLE) role_body(e, item, role++);
    elab_dynamic_evaluate(e);
}
