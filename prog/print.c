/* The printed form of a checked program: --emit=prog. One fact per line, in the order of the
 * tables; derived facts follow the object that they belong to. Tests depend on its exact text. */
#include "prog/prog.h"
#include "prog/stmt.h"

#include <string.h>

typedef struct Out {
    const Prog *prog;
    const Role *role;
    Str *text;
    int depth;
} Out;

static void begin_line(Out *o) {
    for (int i = 0; i < o->depth; i++) str_add(o->text, "  ");
}

#define LINE(o, ...) (begin_line(o), str_printf((o)->text, __VA_ARGS__), str_char((o)->text, '\n'))

static void formula(Out *o, const Expr *x, const IndexSpace *space) {
    if (x)
        expr_print(x, o->prog, o->role, space, o->text);
    else
        str_add(o->text, "-");
}

static const char *type_of(Element type) {
    return type < E_COUNT ? element_rows[type].spelling : "?";
}

/* ---- the kernel's tables --------------------------------------------------------------------- */

static void print_constants(Out *o) {
    for (size_t i = 0; i < o->prog->constants.count; i++) {
        const Constant *row = &o->prog->constants.items[i];
        begin_line(o);
        str_printf(o->text, "%s %s = ", row->is_static ? "static" : "const", row->name);
        if (row->is_type)
            str_add(o->text, constant_value_text(o->text->arena, row));
        else
            formula(o, row->value, NULL);
        if (row->choices.count) {
            str_add(o->text, " in {");
            for (size_t j = 0; j < row->choices.count; j++)
                str_printf(o->text, "%s%s", j ? ", " : "",
                           constant_choice_text(o->text->arena, row, row->choices.items[j]));
            str_char(o->text, '}');
        }
        str_char(o->text, '\n');
    }
}

static void print_symbols(Out *o) {
    for (size_t i = 0; i < o->prog->symbols.count; i++) {
        const Symbol *row = &o->prog->symbols.items[i];
        const char *name = o->prog->params.items[row->param].name;
        if (row->times == 0)
            LINE(o, "symbol %s: %s of %s", row->name, row->is_extent ? "extent" : "scalar", name);
        else
            LINE(o, "symbol %s: axis %d of %s has %d * %s + %d", row->name, row->axis, name,
                 row->times, row->name, row->plus);
    }
}

static void print_params(Out *o) {
    static const char *const modes[] = {
        [PARAM_IN] = "in", [PARAM_OUT] = "out", [PARAM_INOUT] = "inout"};
    for (size_t i = 0; i < o->prog->params.count; i++) {
        const Param *row = &o->prog->params.items[i];
        begin_line(o);
        str_printf(o->text, "param %s: ", row->name);
        if (row->is_tensor) str_printf(o->text, "%s ", modes[row->mode]);
        str_add(o->text, type_of(row->type));
        for (int d = 0; d < row->rank; d++) {
            str_add(o->text, d ? ", " : "[");
            formula(o, row->extents[d], NULL);
        }
        if (row->rank) str_char(o->text, ']');
        if (row->alignment) str_printf(o->text, " align %u", (unsigned)row->alignment);
        if (row->stride_alignment)
            str_printf(o->text, " strides align %u", (unsigned)row->stride_alignment);
        for (int d = 0; d + 1 < row->rank; d++)
            if (row->joined >> d & 1) str_printf(o->text, " joined %d", d);
        if (row->by_pointer) str_add(o->text, " by pointer");
        str_char(o->text, '\n');
    }
}

static void print_domains(Out *o) {
    begin_line(o);
    str_add(o->text, o->prog->draws.role >= 0 ? "grid dynamic ("
                     : o->prog->persistent    ? "grid persistent ("
                                              : "grid (");
    for (size_t i = 0; i < o->prog->axes.count; i++) {
        str_printf(o->text, "%s%s: ", i ? ", " : "", o->prog->axes.items[i].name);
        formula(o, o->prog->axes.items[i].extent, NULL);
    }
    str_char(o->text, ')');
    if (o->prog->grouped) str_printf(o->text, " grouped %d", o->prog->grouped);
    for (size_t i = 0; i < o->prog->axes.count; i++)
        if (o->prog->axes.items[i].cluster > 1)
            str_printf(o->text, ", %d of a cluster along %s", o->prog->axes.items[i].cluster,
                       o->prog->axes.items[i].name);
    str_char(o->text, '\n');
    for (size_t i = 0; i < o->prog->domains.count; i++) {
        const Domain *row = &o->prog->domains.items[i];
        begin_line(o);
        str_printf(o->text, "range %s = ", row->name);
        formula(o, row->lo, NULL);
        str_add(o->text, " .. ");
        formula(o, row->hi, NULL);
        if (row->where) str_add(o->text, " where "), formula(o, row->where, NULL);
        str_char(o->text, '\n');
    }
}

static void print_fields(Out *o, const Pipe *pipe) {
    o->depth++;
    for (size_t i = 0; i < pipe->fields.count; i++) {
        const Field *field = &pipe->fields.items[i];
        begin_line(o);
        str_printf(o->text, "field %s", field->name);
        if (field->is_array) str_printf(o->text, "[%d]", field->count);
        str_printf(o->text, ": %s[", type_of(field->type));
        for (int d = 0; d < field->rank; d++)
            str_printf(o->text, "%s%lld", d ? ", " : "", (long long)field->extents[d]);
        str_char(o->text, ']');
        str_char(o->text, '\n');
    }
    o->depth--;
}

static void print_pipes(Out *o) {
    for (size_t i = 0; i < o->prog->pipes.count; i++) {
        const Pipe *pipe = &o->prog->pipes.items[i];
        begin_line(o);
        str_printf(o->text, "pipe %s[%d] %s ->", pipe->name, pipe->stages,
                   pipe->producer >= 0 ? o->prog->roles.items[pipe->producer].name : "?");
        for (size_t j = 0; j < pipe->consumers.count; j++)
            str_printf(o->text, "%s %s", j ? "," : "",
                       o->prog->roles.items[pipe->consumers.items[j]].name);
        str_char(o->text, '\n');
        print_fields(o, pipe);
    }
}

static void print_preconditions(Out *o) {
    for (size_t i = 0; i < o->prog->preconditions.count; i++) {
        const Precondition *row = &o->prog->preconditions.items[i];
        begin_line(o);
        str_add(o->text, "precondition ");
        formula(o, row->condition, NULL);
        if (row->pitch_of > 0)
            str_printf(o->text, " or gaps in %s", o->prog->params.items[row->pitch_of - 1].name);
        str_printf(o->text, ": %s\n", row->reason ? row->reason : "");
    }
}

static void print_space(Out *o, const IndexSpace *space) {
    str_char(o->text, '{');
    for (int i = 0; i < space->count; i++) {
        const Index *index = &space->items[i];
        str_printf(o->text, "%s%s", i == 0 ? "" : i == space->bound ? "; " : ", ", index->name);
        if (index->extent >= 0)
            str_printf(o->text, ": %lld", (long long)index->extent);
        else if (index->dynamic)
            str_add(o->text, ": "), formula(o, index->dynamic, NULL);
    }
    str_char(o->text, '}');
}

static void print_claims(Out *o) {
    for (size_t i = 0; i < o->prog->lets.count; i++) {
        const Let *let = &o->prog->lets.items[i];
        begin_line(o);
        str_printf(o->text, "let %s: %s ", let->name, type_of(let->type));
        print_space(o, &let->space);
        str_add(o->text, " = ");
        formula(o, let->value, &let->space);
        str_char(o->text, '\n');
    }
    for (size_t i = 0; i < o->prog->claims.count; i++) {
        const Claim *claim = &o->prog->claims.items[i];
        begin_line(o);
        str_add(o->text, "claim ");
        print_space(o, &claim->space);
        str_char(o->text, ' ');
        access_print(&claim->target, o->prog, NULL, &claim->space, o->text);
        str_add(o->text, claim->within < 0 ? " == " : " ~ ");
        formula(o, claim->value, &claim->space);
        if (claim->within >= 0) str_printf(o->text, " within %g", claim->within);
        if (claim->absolute > 0) str_printf(o->text, " or %g", claim->absolute);
        str_char(o->text, '\n');
    }
}

static void print_examples(Out *o) {
    for (size_t i = 0; i < o->prog->examples.count; i++) {
        const Example *row = &o->prog->examples.items[i];
        begin_line(o);
        str_printf(o->text, "example %s", row->name);
        switch (row->kind) {
        case EXAMPLE_NUMBER:
            if (row->is_integer)
                str_printf(o->text, " = %lld", (long long)row->integer);
            else
                str_printf(o->text, " = %.9g", row->number);
            break;
        case EXAMPLE_FILL: str_printf(o->text, " = %s", row->fill); break;
        case EXAMPLE_FORMULA:
            print_space(o, &row->space);
            str_add(o->text, " = ");
            formula(o, row->value, &row->space);
            break;
        }
        str_char(o->text, '\n');
    }
}

/* ---- statements ------------------------------------------------------------------------------ */

static const char *const uniformities[] = {
    [UNIFORM_ROLE] = "role", [UNIFORM_INSTANCE] = "instance", [UNIFORM_LANE] = "lane"};

static const char *handle_name(const Out *o, int handle) {
    return handle >= 0 && (size_t)handle < o->role->handles.count
               ? o->role->handles.items[handle].name
               : "?";
}

static const char *handle_pipe(const Out *o, int handle) {
    int pipe = handle >= 0 && (size_t)handle < o->role->handles.count
                   ? o->role->handles.items[handle].pipe
                   : -1;
    return pipe >= 0 && (size_t)pipe < o->prog->pipes.count ? o->prog->pipes.items[pipe].name : "?";
}

static const char *handle_end(const Out *o, int handle) {
    bool produces = handle >= 0 && (size_t)handle < o->role->handles.count &&
                    o->role->handles.items[handle].end == END_PRODUCE;
    return produces ? "produce" : "consume";
}

static void print_axes(Out *o, uint32_t axes) {
    for (size_t i = 0; i < o->prog->axes.count; i++)
        if (axes >> i & 1) str_printf(o->text, " %s", o->prog->axes.items[i].name);
}

static void print_tile(Out *o, const Tile *tile) {
    static const char *const ops[] = {[ASSIGN_SET] = "=",
                                      [ASSIGN_ADD] = "+=",
                                      [ASSIGN_SUB] = "-=",
                                      [ASSIGN_MUL] = "*=",
                                      [ASSIGN_DIV] = "/="};
    begin_line(o);
    str_add(o->text, tile->prefetch ? "prefetch " : "tile ");
    print_space(o, &tile->space);
    str_char(o->text, ' ');
    access_print(&tile->target, o->prog, o->role, &tile->space, o->text);
    str_printf(o->text, " %s ", ops[tile->op]);
    formula(o, tile->value, &tile->space);
    if (tile->where) str_add(o->text, " where "), formula(o, tile->where, &tile->space);
    if (tile->by_lanes) str_add(o->text, " by lanes");
    if (tile->multicast_required) str_add(o->text, " multicast required");
    str_char(o->text, '\n');
}

static void print_stmt(Out *o, const Stmt *s);

static void print_body(Out *o, const Stmt *s) {
    o->depth++;
    if (s && s->kind == S_BLOCK)
        for (size_t i = 0; i < s->block.body.count; i++) print_stmt(o, s->block.body.items[i]);
    else if (s)
        print_stmt(o, s);
    o->depth--;
}

static void print_for(Out *o, const Stmt *s) {
    begin_line(o);
    str_printf(o->text, "for %s in ", o->role->locals.items[s->loop.var].name);
    if (s->loop.domain >= 0)
        str_printf(o->text, "%s%s = ", s->loop.whole ? "" : "a piece of ",
                   o->prog->domains.items[s->loop.domain].name);
    formula(o, s->loop.lo, NULL);
    str_add(o->text, " .. ");
    formula(o, s->loop.hi, NULL);
    if (s->loop.where) str_add(o->text, " where "), formula(o, s->loop.where, NULL);
    str_add(o->text, s->loop.unroll ? " unrolled\n" : "\n");
    print_body(o, s->loop.body);
}

static void print_if(Out *o, const Stmt *s) {
    begin_line(o);
    str_add(o->text, "if ");
    formula(o, s->branch.condition, NULL);
    if (s->branch.nonempty >= 0)
        str_printf(o->text, ": %s nonempty", o->prog->domains.items[s->branch.nonempty].name);
    str_char(o->text, '\n');
    print_body(o, s->branch.then);
    if (!s->branch.otherwise) return;
    LINE(o, "else");
    print_body(o, s->branch.otherwise);
}

static void print_leave(Out *o, const Stmt *s) {
    const Stmt *target = s->leave.target;
    begin_line(o);
    if (!target)
        str_add(o->text, "leave the role");
    else if (target->kind == S_BLOCK)
        str_add(o->text, "leave the function");
    else
        str_add(o->text, s->leave.kind == LEAVE_BREAK ? "break" : "continue");
    str_char(o->text, '\n');
}

static void print_hint(Out *o, int hint) {
    if (hint >= 0) str_printf(o->text, " if %s", o->role->hints.items[hint].name);
}

static void print_stage(Out *o, const Stmt *s) {
    int handle = s->stage.handle;
    begin_line(o);
    str_printf(o->text, "%s <%s>", handle_end(o, handle), handle_pipe(o, handle));
    print_hint(o, s->stage.hint);
    if (s->stage.lag >= 0) str_printf(o->text, " lag %d", s->stage.lag);
    str_printf(o->text, " as %s\n", handle_name(o, handle));
    print_body(o, s->stage.body);
}

static void print_scalar(Out *o, const Stmt *s) {
    begin_line(o);
    str_printf(o->text, "%s = ", o->role->locals.items[s->scalar.local].name);
    formula(o, s->scalar.value, NULL);
    str_char(o->text, '\n');
}

static void print_grid(Out *o, const Stmt *s) {
    begin_line(o);
    str_add(o->text, "for (");
    for (size_t i = 0; i < o->prog->axes.count; i++)
        str_printf(o->text, "%s%s", i ? ", " : "", o->role->locals.items[s->grid.vars[i]].name);
    str_add(o->text, ") in grid\n");
    print_body(o, s->grid.body);
}

/* Prints the barrier, stage or tile of an `unsafe` operation */
static void print_meant(Out *o, const Unsafe *what) {
    const char *which =
        what->kind == UNSAFE_STEP || what->value == VALUE_INDEX || what->value == VALUE_PHASE ? ""
        : what->full ? ".full"
                     : ".empty";
    if (what->tile) {
        access_print(what->tile, o->prog, o->role, NULL, o->text);
        return;
    }
    if (what->pipe < 0) return;
    if (what->handle >= 0)
        str_add(o->text, handle_name(o, what->handle));
    else
        str_printf(o->text, "%s <%s>", what->end == END_PRODUCE ? "produce" : "consume",
                   o->prog->pipes.items[what->pipe].name);
    str_add(o->text, which);
    if (!what->stage) return;
    str_char(o->text, '[');
    formula(o, what->stage, NULL);
    str_char(o->text, ']');
}

static void print_part(Out *o, const char *word, Expr *expr) {
    if (!expr) return;
    str_add(o->text, word);
    formula(o, expr, NULL);
}

static void print_ptx(Out *o, const Unsafe *what) {
    str_add(o->text, "ptx \"");
    str_visible(o->text, what->text, strlen(what->text));
    str_char(o->text, '"');
    for (size_t i = 0; i < what->operands.count; i++) {
        const PtxOperand *operand = &what->operands.items[i];
        str_printf(o->text, "%s %s", i ? "," : "", type_of(operand->type));
        print_part(o, " in ", operand->value);
        if (operand->local >= 0)
            str_printf(o->text, " out %s", o->role->locals.items[operand->local].name);
    }
}

static void print_unsafe(Out *o, const Unsafe *what) {
    static const char *const values[] = {
        [VALUE_INDEX] = "index of ",     [VALUE_PHASE] = "phase of ",
        [VALUE_BARRIER] = "address of ", [VALUE_ADDRESS] = "address of ",
        [VALUE_LANE] = "lane",           [VALUE_WARP] = "warp"};
    begin_line(o);
    switch (what->kind) {
    case UNSAFE_VALUE:
        str_printf(o->text, "%s = %s", o->role->locals.items[what->local].name,
                   values[what->value]);
        break;
    case UNSAFE_ARRIVE: str_add(o->text, what->own ? "arrive as a release: " : "arrive "); break;
    case UNSAFE_WAIT: str_add(o->text, "wait "); break;
    case UNSAFE_EXPECT: str_add(o->text, "expect "); break;
    case UNSAFE_STEP: str_add(o->text, "step "); break;
    case UNSAFE_PTX: print_ptx(o, what); break;
    }
    print_meant(o, what);
    print_part(o, " at ", what->at);
    print_part(o, what->kind == UNSAFE_WAIT ? " phase " : " bytes ", what->amount);
    str_char(o->text, '\n');
}

static void print_stmt(Out *o, const Stmt *s) {
    switch (s->kind) {
    case S_BLOCK:
        if (s->block.turn)
            LINE(o, "turn %d", s->block.turn);
        else
            LINE(o, "block");
        for (size_t i = 0; i < s->block.loans.count; i++)
            LINE(o, "borrows %s", handle_name(o, s->block.loans.items[i].handle));
        print_body(o, s);
        break;
    case S_SCALAR: print_scalar(o, s); break;
    case S_TILE: print_tile(o, s->tile); break;
    case S_GRID: print_grid(o, s); break;
    case S_FOR: print_for(o, s); break;
    case S_IF: print_if(o, s); break;
    case S_LEAVE: print_leave(o, s); break;
    case S_TRY:
        LINE(o, "%s = try %s <%s>", o->role->hints.items[s->ask.hint].name,
             o->role->hints.items[s->ask.hint].end == END_PRODUCE ? "produce" : "consume",
             o->prog->pipes.items[o->role->hints.items[s->ask.hint].pipe].name);
        break;
    case S_ACQUIRE:
        begin_line(o);
        str_printf(o->text, "%s = %s <%s>", handle_name(o, s->acquire.handle),
                   handle_end(o, s->acquire.handle), handle_pipe(o, s->acquire.handle));
        print_hint(o, s->acquire.hint);
        str_char(o->text, '\n');
        break;
    case S_RELEASE:
        LINE(o, "release %s%s", handle_name(o, s->release.handle),
             s->release.silent ? " without signal" : "");
        break;
    case S_UNSAFE: print_unsafe(o, s->unsafe); break;
    case S_MOVE:
        LINE(o, "%s takes over %s", handle_name(o, s->move.to), handle_name(o, s->move.from));
        break;
    case S_STAGE: print_stage(o, s); break;
    }
}

/* ---- roles ----------------------------------------------------------------------------------- */

static void print_locals(Out *o) {
    static const char *const kinds[] = {
        [LOCAL_LET] = "let", [LOCAL_VAR] = "var", [LOCAL_LOOP] = "loop", [LOCAL_AXIS] = "axis"};
    for (size_t i = 0; i < o->role->locals.count; i++) {
        const Local *local = &o->role->locals.items[i];
        begin_line(o);
        str_printf(o->text, "%s %s: %s, uniform over the %s", kinds[local->kind], local->name,
                   type_of(local->type), uniformities[local->uniformity]);
        if (local->along & cluster_axes(o->prog))
            str_add(o->text, ", not along"), print_axes(o, local->along & cluster_axes(o->prog));
        str_char(o->text, '\n');
    }
    for (size_t i = 0; i < o->role->tiles.count; i++) {
        const RoleTile *tile = &o->role->tiles.items[i];
        begin_line(o);
        str_printf(o->text, "%s %s: %s[", tile->in_registers ? "registers" : "shared", tile->name,
                   type_of(tile->type));
        for (int d = 0; d < tile->rank; d++)
            str_printf(o->text, "%s%lld", d ? ", " : "", (long long)tile->extents[d]);
        str_char(o->text, ']');
        str_char(o->text, '\n');
    }
}

static void print_role(Out *o, const Role *role) {
    o->role = role;
    begin_line(o);
    str_printf(o->text, "role %s: %d instance%s of %d warp%s", role->name, role->instances,
               role->instances == 1 ? "" : "s", role->warps, role->warps == 1 ? "" : "s");
    if (role->in_turn) str_add(o->text, " in turn");
    if (role->regs) str_printf(o->text, " regs %d", role->regs);
    str_char(o->text, '\n');
    o->depth++;
    print_locals(o);
    LINE(o, "body");
    print_body(o, role->body);
    o->depth--;
    o->role = NULL;
}

void prog_print(const Prog *prog, Arena *arena, Str *out) {
    (void)arena;
    Out o = {.prog = prog, .text = out};
    LINE(&o, "kernel %s for %s", prog->name, prog->target->name);
    o.depth++;
    print_constants(&o);
    print_symbols(&o);
    print_params(&o);
    print_domains(&o);
    print_preconditions(&o);
    print_claims(&o);
    print_examples(&o);
    print_pipes(&o);
    for (size_t i = 0; i < prog->roles.count; i++) print_role(&o, &prog->roles.items[i]);
}
