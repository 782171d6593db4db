/* Code as text, one row per line, indented by regions: --emit=code. */
#include "flow/code.h"
#include "flow/values.h"

typedef struct Out {
    const FlowCode *code;
    Str *text;
} Out;

static const char *handle_name(const Out *o, int handle) {
    return handle < 0 ? "?" : o->code->role->handles.items[handle].name;
}

static const char *local_name(const Out *o, int local) {
    return local < 0 ? "?" : o->code->role->locals.items[local].name;
}

/* "consume <loaded>" */
static void print_end(Out *o, int pipe, End end) {
    const char *word = end == END_PRODUCE ? "produce" : "consume";
    str_printf(o->text, "%s <%s>", word, pipe < 0 ? "?" : o->code->prog->pipes.items[pipe].name);
}

static void print_stage(Out *o, int handle) {
    if (handle >= 0)
        print_end(o, o->code->role->handles.items[handle].pipe,
                  o->code->role->handles.items[handle].end);
}

static void print_expr(Out *o, const Expr *expr, const IndexSpace *space) {
    if (expr)
        expr_print(expr, o->code->prog, o->code->role, space, o->text);
    else
        str_char(o->text, '?');
}

static void print_loop(Out *o, const Region *region) {
    if (region->kind == REGION_GRID) {
        str_add(o->text, " (");
        for (size_t a = 0; a < o->code->prog->axes.count; a++)
            str_printf(o->text, "%s%s", a ? ", " : "", local_name(o, region->axes[a]));
        str_add(o->text, ") in grid");
        return;
    }
    str_printf(o->text, " %s in ", local_name(o, region->var));
    print_expr(o, region->lo, NULL);
    str_add(o->text, " .. ");
    print_expr(o, region->hi, NULL);
    if (region->where) str_add(o->text, " where "), print_expr(o, region->where, NULL);
    if (region->domain >= 0) {
        const char *part = region->whole ? "" : "part of ";
        str_printf(o->text, "    ; %s%s", part, o->code->prog->domains.items[region->domain].name);
    }
}

static void print_tile(Out *o, const Tile *tile) {
    static const char *const operators[] = {[ASSIGN_SET] = "=",
                                            [ASSIGN_ADD] = "+=",
                                            [ASSIGN_SUB] = "-=",
                                            [ASSIGN_MUL] = "*=",
                                            [ASSIGN_DIV] = "/="};
    str_char(o->text, ' ');
    access_print(&tile->target, o->code->prog, o->code->role, &tile->space, o->text);
    str_printf(o->text, " %s ", operators[tile->op]);
    print_expr(o, tile->value, &tile->space);
    if (tile->where) str_add(o->text, " where "), print_expr(o, tile->where, &tile->space);
    if (class_rows[tile->class].text[0])
        str_printf(o->text, "    ; %s", class_rows[tile->class].text);
}

static void print_unsafe(Out *o, const Unsafe *unsafe) {
    static const char *const kinds[] = {
        [UNSAFE_VALUE] = "value",   [UNSAFE_ARRIVE] = "arrive", [UNSAFE_WAIT] = "wait",
        [UNSAFE_EXPECT] = "expect", [UNSAFE_STEP] = "",         [UNSAFE_PTX] = "ptx"};
    str_printf(o->text, "%s%s", unsafe->kind == UNSAFE_STEP ? "" : " ", kinds[unsafe->kind]);
    if (unsafe->local >= 0) str_printf(o->text, " %s", local_name(o, unsafe->local));
    if (unsafe->pipe >= 0) str_char(o->text, ' '), print_end(o, unsafe->pipe, unsafe->end);
}

static void print_object(Out *o, const Row *row) {
    const Role *role = o->code->role;
    switch (row->object) {
    case OBJECT_TILE: str_printf(o->text, " tile %s", role->tiles.items[row->index].name); break;
    case OBJECT_LOCAL: str_printf(o->text, " var %s", role->locals.items[row->index].name); break;
    case OBJECT_HANDLE:
        str_printf(o->text, " stage %s", role->handles.items[row->index].name);
        break;
    }
}

static void print_leave(Out *o, const Row *row) {
    const Region *target = &o->code->regions.items[row->target];
    static const char *const words[] = {
        [REGION_ROLE] = "role", [REGION_BLOCK] = "function", [REGION_GRID] = "loop",
        [REGION_FOR] = "loop",  [REGION_IF] = "if",          [REGION_TURN] = "turn"};
    str_printf(o->text, " %s %d%s", words[target->kind], row->target, row->again ? ", again" : "");
}

static void print_late(Out *o, const Row *row) {
    const Late *late = &o->code->lates.items[row->late];
    str_printf(o->text, " %s, lag %d", handle_name(o, late->handle), late->lag);
    if (late->loop >= 0) str_printf(o->text, " of loop %d", late->loop);
}

static void print_operands(Out *o, const Row *row) {
    const Region *region = &o->code->regions.items[row->region];
    switch (row->kind) {
    case ROW_LOOP: print_loop(o, region); break;
    case ROW_IF: str_char(o->text, ' '), print_expr(o, row->value, NULL); break;
    case ROW_BLOCK:
        if (region->turn) str_printf(o->text, " turn %d", region->turn);
        break;
    case ROW_NEXT:
    case ROW_ELSE:
    case ROW_END: str_printf(o->text, " %d", row->region); break;
    case ROW_LEAVE: print_leave(o, row); break;
    case ROW_EXIT: break;
    case ROW_OPEN:
    case ROW_CLOSE: print_object(o, row); break;
    case ROW_SET:
        str_printf(o->text, " %s = ", local_name(o, row->local));
        print_expr(o, row->value, NULL);
        break;
    case ROW_PREFETCH:
    case ROW_TILE: print_tile(o, row->tile); break;
    case ROW_UNSAFE:
    case ROW_STEP: print_unsafe(o, row->unsafe); break;
    case ROW_ASK: {
        const Hint *hint = &o->code->role->hints.items[row->hint];
        str_printf(o->text, " %s = ", hint->name);
        print_end(o, hint->pipe, hint->end);
        break;
    }
    case ROW_ACQUIRE:
        str_printf(o->text, " %s = ", handle_name(o, row->handle));
        print_stage(o, row->handle);
        if (row->hint >= 0)
            str_printf(o->text, " if %s", o->code->role->hints.items[row->hint].name);
        if (row->unwaited) str_add(o->text, " without a wait");
        break;
    case ROW_RELEASE:
    case ROW_DROP:
    case ROW_LEND: str_printf(o->text, " %s", handle_name(o, row->handle)); break;
    case ROW_MOVE:
        str_printf(o->text, " %s = %s", handle_name(o, row->handle), handle_name(o, row->other));
        break;
    case ROW_KEEP:
    case ROW_FLUSH: print_late(o, row); break;
    case ROW_TAKE:
    case ROW_PASS: str_printf(o->text, " turn %d", row->turn); break;
    case ROW_COUNT: break;
    }
}

static int depth_of(const FlowCode *code, const Row *row) {
    int depth = 0;
    for (int r = row->region; r > 0; r = code->regions.items[r].parent) depth++;
    bool bracket = row->kind == ROW_LOOP || row->kind == ROW_NEXT || row->kind == ROW_IF ||
                   row->kind == ROW_ELSE || row->kind == ROW_BLOCK || row->kind == ROW_END;
    return depth - (bracket && row->region > 0);
}

/* Values of the variables that a row reads */
typedef struct Read {
    Out *out;
    Arena *arena;
    FlowCode *code;
    Bindings bindings;
    bool *printed;
} Read;

static void print_local(Expr *expr, void *data) {
    const Read *read = data;
    if (expr->kind != X_LOCAL || !read->bindings.locals[expr->index] || read->printed[expr->index])
        return;
    read->printed[expr->index] = true;
    str_printf(read->out->text, "    ; %s = ", local_name(read->out, expr->index));
    poly_print(read->code->algebra, read->bindings.locals[expr->index], read->out->text);
}

static void print_locals(Expr *expr, void *data) {
    const Read *read = data;
    expr_visit(read->arena, expr, print_local, data);
}

static void print_values(Out *o, Arena *arena, FlowCode *code, int at) {
    Bindings before = values_at(arena, code, at);
    Read read = {o, arena, code, code->algebra->bindings,
                 NEW_ARRAY(arena, bool, code->role->locals.count + 1)};
    if (read.bindings.locals) row_exprs(code, &code->rows.items[at], print_locals, &read);
    (void)algebra_hold(code->algebra, before);
}

static void print_role(FlowCode *code, Arena *arena, bool values, Str *out) {
    Out o = {code, out};
    str_printf(out, "role %s: %zu rows, %zu regions\n", code->role->name, code->rows.count,
               code->regions.count);
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        str_printf(out, "%4zu  ", at);
        for (int i = depth_of(code, row); i > 0; i--) str_add(out, "  ");
        bool begins = row_begins(row->kind);
        str_add(out, row_names[row->kind]);
        if (begins && row->region > 0) str_printf(out, " %d:", row->region);
        print_operands(&o, row);
        if (row->leaving) str_add(out, "    ; on the way out");
        if (values) print_values(&o, arena, code, (int)at);
        str_char(out, '\n');
    }
}

static void print_all(const Prog *prog, Arena *arena, bool values, Str *out) {
    for (size_t r = 0; r < prog->roles.count; r++) {
        FlowCode *code = prog->roles.items[r].code;
        if (r > 0) str_char(out, '\n');
        if (code) print_role(code, arena, values, out);
    }
}

void code_print(const Prog *prog, Arena *arena, Str *out) { print_all(prog, arena, false, out); }
void code_print_values(const Prog *prog, Arena *arena, Str *out) {
    print_all(prog, arena, true, out);
}
