/* `unsafe { }`: signals, waits, steps, inline PTX, and the values available only in it. Each is
 * one S_UNSAFE. A value is stored in a local before the statement that uses it, because it is no
 * formula and may differ between evaluations. A pipe with arrivals that cannot be counted
 * becomes unproved. */
#include "prog/edit.h"
#include "elaborate/private.h"

#include <stdlib.h>
#include <string.h>

static bool in_role(const Elab *e) { return e->role && e->place == PLACE_ROLE; }

bool elab_is_unsafe(const Elab *e) { return e->unsafe && e->unsafe_frame == e->frame; }

/* True if the place is in an `unsafe` block; otherwise reports it. */
static bool needs_unsafe(Elab *e, Span span, const char *what) {
    if (elab_is_unsafe(e)) return true;
    Diag *diag = elab_error(e, P0422, span, "%s outside of an `unsafe` block", what);
    if (e->unsafe) NOTE(e, diag, "the `unsafe` block of the caller does not cover the function");
    HELP(e, diag, "write `unsafe { .. }` around it");
    return false;
}

/* The arrivals at the barrier that `end` signals must be declared. */
static bool needs_arrivals(Elab *e, int pipe, End end, Span span, const char *what) {
    Pipe *row = &e->prog->pipes.items[pipe];
    const char *word = end == END_PRODUCE ? "full" : "empty";
    if (row->declared[end]) return row->declared[end] > 0;
    row->declared[end] = -1; /* reported once */
    Diag *diag =
        elab_error(e, P0420, span, "%s needs declared arrivals of pipe `%s`", what, row->name);
    LABEL(e, diag, row->span, "declared without `arrivals %s`", word);
    HELP(e, diag,
         "declare the arrivals per phase of the %s barrier: `pipe %s[%d] .. arrivals %s n`", word,
         row->name, row->stages, word);
    return false;
}

static Unsafe *emit(Elab *e, UnsafeKind kind, Span span) {
    Stmt *s = elab_stmt_new(e, S_UNSAFE, span);
    s->unsafe = NEW(e->arena, Unsafe);
    *s->unsafe = (Unsafe){.kind = kind, .local = -1, .handle = -1, .pipe = -1};
    elab_emit(e, s);
    return s->unsafe;
}

static void leave_unproved(Elab *e, const Unsafe *what) {
    if (what->pipe >= 0) e->prog->pipes.items[what->pipe].unproved = true;
}

/* ---- stages and barriers --------------------------------------------------------------------- */

static bool find_stage(Elab *e, AstName wanted, Unsafe *out) {
    const Name *name = wanted.text ? elab_scope_find(e->scope, wanted.text) : NULL;
    if (!wanted.text || (name && name->kind == NAME_POISON)) return false;
    if (!name) {
        Diag *diag = elab_error(e, P0100, wanted.span, "unknown name `%s`", wanted.text);
        const char *near = elab_suggest_name(e, wanted.text, NULL);
        if (near) HELP(e, diag, "did you mean `%s`?", near);
        return false;
    }
    if (name->kind != NAME_HANDLE) {
        Diag *diag = elab_error(e, P0154, wanted.span, "`%s` is not a stage", wanted.text);
        LABEL(e, diag, name->span, "declared here");
        return false;
    }
    const Handle *handle = &e->role->handles.items[name->index];
    out->handle = name->index, out->pipe = handle->pipe, out->end = handle->end;
    return handle->pipe >= 0;
}

static bool find_cursor(Elab *e, const AstExpr *ast, Unsafe *out) {
    bool produce = ast->cursor.end == AST_PRODUCE;
    int role = (int)(e->role - e->prog->roles.items);
    out->pipe = elab_find_pipe(e, ast->cursor.pipe);
    out->end = elab_end(ast->cursor.end);
    if (out->pipe < 0) return false;
    Pipe *pipe = &e->prog->pipes.items[out->pipe];
    if (produce ? pipe->producer == role : pipe_consumed_by(pipe, role))
        return edit_use(e->role, out->pipe)->uses = true;
    Diag *diag =
        elab_error(e, produce ? P0400 : P0401, ast->span, "role `%s` does not %s pipe `%s`",
                   e->role->name, produce ? "produce" : "consume", pipe->name);
    LABEL(e, diag, pipe->span, "declared here");
    return false;
}

static bool is_barrier_word(const char *text, bool *full) {
    *full = text && strcmp(text, "full") == 0;
    return *full || (text && strcmp(text, "empty") == 0);
}

static bool has_field(const Elab *e, int pipe, const char *name) {
    const Pipe *row = &e->prog->pipes.items[pipe];
    for (size_t i = 0; i < row->fields.count; i++)
        if (row->fields.items[i].name == name) return true;
    return false;
}

static bool no_barrier(Elab *e, Span span) {
    Diag *diag = elab_error(e, P0154, span, "`%s` is not a barrier", elab_text_of(e, span));
    HELP(e, diag,
         "write `s.full` or `s.empty` of a stage, `consume <p>.full` of the next stage, or "
         "`consume <p>.full[i]` of stage i");
    return false;
}

/* Integer operands of signals have 32 bits */
static Expr *integer_of(Elab *e, const AstExpr *ast, Element type, const char *what) {
    Val v = elab_operand(e, elab_expr(e, ast));
    if (elab_is_poison(v)) return NULL;
    bool fits = !elab_is_const(v.x) && (v.x->type == E_I32 || v.x->type == E_U32);
    Expr *x = fits ? elab_cast_to(e, v, type, ast->span) : elab_coerce(e, v, type, what);
    return x->kind == X_POISON ? NULL : x;
}

/* consume <p>.full, consume <p>.full[i] */
static bool cursor_barrier(Elab *e, const AstExpr *ast, Unsafe *out) {
    const AstExpr *cursor = ast->kind == AST_SUBSCRIPT ? ast->subscript.base : ast;
    if (!is_barrier_word(cursor->cursor.member.text, &out->full))
        return no_barrier(e, cursor->span);
    if (!find_cursor(e, cursor, out)) return false;
    if (ast->kind != AST_SUBSCRIPT) return true;
    if (ast->subscript.count != 1) {
        elab_error(e, P0113, ast->span, "a barrier takes one subscript, the index of the stage");
        return false;
    }
    out->stage = integer_of(e, ast->subscript.subs[0], E_I32, "the index of a stage");
    int64_t number, stages = e->prog->pipes.items[out->pipe].stages;
    if (!out->stage || !elab_is_const(out->stage)) return out->stage != NULL;
    number = out->stage->constant.integer;
    if (number >= 0 && number < stages) return true;
    Diag *diag = elab_error(e, P0202, out->stage->span, "stage %lld is outside of the ring",
                            (long long)number);
    LABEL(e, diag, e->prog->pipes.items[out->pipe].span, "the ring has %lld stages",
          (long long)stages);
    return false;
}

/* s, s.full, s.empty, consume <p>.full, consume <p>.full[i]; `s` alone is the barrier that its
 * release signals */
static bool find_barrier(Elab *e, const AstExpr *ast, Unsafe *out) {
    if (ast->kind == AST_NAME) {
        out->own = true;
        if (!find_stage(e, (AstName){ast->name, ast->span}, out)) return false;
        out->full = out->end == END_PRODUCE;
        return true;
    }
    if (ast->kind == AST_MEMBER) {
        const AstExpr *base = ast->member.base;
        if (!is_barrier_word(ast->member.member.text, &out->full)) return no_barrier(e, ast->span);
        return find_stage(e, (AstName){base->name, base->span}, out);
    }
    return ast->kind != AST_ERROR_EXPR && cursor_barrier(e, ast, out);
}

static End signalled_by(const Unsafe *what) { return what->full ? END_PRODUCE : END_CONSUME; }

/* ---- values ---------------------------------------------------------------------------------- */

/* Exclusive upper limit of a value that is at least 0; 0: none */
static int64_t limit_of(const Elab *e, UnsafeValue value, const Unsafe *what) {
    switch (value) {
    case VALUE_INDEX: return e->prog->pipes.items[what->pipe].stages;
    case VALUE_PHASE: return 2;
    case VALUE_LANE: return 32;
    case VALUE_WARP: return e->role->warps;
    case VALUE_BARRIER:
    case VALUE_ADDRESS: break;
    }
    return 0;
}

static Val value_of(Elab *e, UnsafeValue value, Element type, const Unsafe *what, Span span) {
    static const char *const names[] = {
        [VALUE_INDEX] = "index",     [VALUE_PHASE] = "phase", [VALUE_BARRIER] = "barrier",
        [VALUE_ADDRESS] = "address", [VALUE_LANE] = "lane",   [VALUE_WARP] = "warp"};
    int local = elab_add_local(e, names[value], span, LOCAL_VAR, type);
    Local *row = &e->role->locals.items[local];
    int64_t limit = limit_of(e, value, what);
    if (limit > 0) {
        row->lo = expr_integer(e->nodes, type, 0, span);
        row->hi = expr_integer(e->nodes, type, limit, span);
    }
    Unsafe *s = emit(e, UNSAFE_VALUE, span);
    *s = *what;
    s->kind = UNSAFE_VALUE, s->value = value, s->local = local;
    return (Val){elab_make_local(e, local, span),
                 value == VALUE_BARRIER || value == VALUE_ADDRESS ? FLEX_NONE : FLEX_INT};
}

static Val barrier_value(Elab *e, Unsafe *what, Span span) {
    if (!needs_unsafe(e, span, "a barrier")) return elab_poison(e, span);
    if (!needs_arrivals(e, what->pipe, signalled_by(what), span, "a barrier by hand"))
        return elab_poison(e, span);
    leave_unproved(e, what);
    return value_of(e, VALUE_BARRIER, E_U32, what, span);
}

bool elab_stage_member(Elab *e, const AstExpr *ast, Val *out) {
    const AstExpr *base = ast->member.base;
    const char *member = ast->member.member.text;
    const Name *name =
        base->kind == AST_NAME && base->name ? elab_scope_find(e->scope, base->name) : NULL;
    Unsafe what = {.handle = -1, .pipe = -1, .local = -1};
    if (!in_role(e) || !member || !name || name->kind != NAME_HANDLE) return false;
    bool index = strcmp(member, "index") == 0;
    const Handle *handle = &e->role->handles.items[name->index];
    if (handle->pipe < 0 || (!index && !is_barrier_word(member, &what.full)) ||
        has_field(e, handle->pipe, member))
        return false;
    what.handle = name->index, what.pipe = handle->pipe, what.end = handle->end;
    *out = index ? value_of(e, VALUE_INDEX, E_I32, &what, ast->span)
                 : barrier_value(e, &what, ast->span);
    return true;
}

static bool either_declared(Elab *e, const Unsafe *what, Span span, const char *text) {
    const Pipe *pipe = &e->prog->pipes.items[what->pipe];
    if (pipe->declared[END_PRODUCE] > 0 || pipe->declared[END_CONSUME] > 0) return true;
    return needs_arrivals(e, what->pipe, what->end, span, text);
}

Val elab_cursor_value(Elab *e, const AstExpr *ast) {
    const AstExpr *cursor = ast->kind == AST_SUBSCRIPT ? ast->subscript.base : ast;
    const char *member = cursor->cursor.member.text;
    Unsafe what = {.handle = -1, .pipe = -1, .local = -1};
    if (!in_role(e)) {
        elab_error(e, P0144, ast->span, "a pipe cannot be used in %s", e->place_words);
        return elab_poison(e, ast->span);
    }
    if (is_barrier_word(member, &what.full))
        return cursor_barrier(e, ast, &what) ? barrier_value(e, &what, ast->span)
                                             : elab_poison(e, ast->span);
    bool index = member && strcmp(member, "index") == 0,
         phase = member && strcmp(member, "phase") == 0;
    if (ast->kind == AST_SUBSCRIPT || (!index && !phase)) {
        if (!member) return elab_poison(e, ast->span);
        Diag *diag = elab_error(e, P0116, cursor->cursor.member.span,
                                "a stage that is not acquired has no `%s`", member);
        HELP(e, diag,
             "it has `index`, `phase`, `full` and `empty`; to use its fields, acquire it: "
             "`let s = %s <%s>;`",
             cursor->cursor.end == AST_PRODUCE ? "produce" : "consume",
             cursor->cursor.pipe.text ? cursor->cursor.pipe.text : "..");
        return elab_poison(e, ast->span);
    }
    if (!find_cursor(e, cursor, &what) || !needs_unsafe(e, ast->span, "the cursor of a pipe") ||
        !either_declared(e, &what, ast->span, "the cursor of a pipe"))
        return elab_poison(e, ast->span);
    leave_unproved(e, &what);
    return value_of(e, index ? VALUE_INDEX : VALUE_PHASE, index ? E_I32 : E_U32, &what, ast->span);
}

bool elab_is_thread_word(const Elab *e, const char *name) {
    return (name == e->word_lane || name == e->word_warp) && in_role(e) &&
           !elab_scope_find(e->scope, name);
}

Val elab_thread_value(Elab *e, const char *name, Span span) {
    Unsafe what = {.handle = -1, .pipe = -1, .local = -1};
    if (!needs_unsafe(e, span,
                      arena_printf(e->arena, "`%s`, the number of a %s,", name,
                                   name == e->word_lane ? "thread" : "warp")))
        return elab_poison(e, span);
    return value_of(e, name == e->word_lane ? VALUE_LANE : VALUE_WARP, E_I32, &what, span);
}

/* address(s.x), address(s.x[k]) of an array, address(t) of a `shared` tile, address(X) of a
 * tensor: address of the first element */
Val elab_address(Elab *e, const AstExpr *ast) {
    Unsafe what = {.handle = -1, .pipe = -1, .local = -1};
    const AstExpr *arg = ast->call.count ? ast->call.args[0] : NULL;
    Object object;
    if (ast->call.count != 1) {
        elab_error(e, P0122, ast->span, "`address` takes one tile, not %u arguments",
                   ast->call.count);
        return elab_poison(e, ast->span);
    }
    bool subscript = arg->kind == AST_SUBSCRIPT;
    const AstExpr *base = subscript ? arg->subscript.base : arg;
    if (!in_role(e) || !needs_unsafe(e, ast->span, "an address") ||
        !elab_object_of(e, base, &object, false))
        return elab_poison(e, ast->span);
    Access *tile = NEW(e->nodes, Access);
    *tile = (Access){.space = object.space,
                     .object = object.object,
                     .field = object.field,
                     .type = object.type,
                     .rank = object.rank,
                     .span = arg->span};
    access_allocate(e->nodes, e->arena, tile);
    const Pipe *pipe = NULL;
    if (object.space == SPACE_STAGE) {
        const Handle *handle = &e->role->handles.items[object.object];
        pipe = &e->prog->pipes.items[handle->pipe];
        what.handle = object.object, what.pipe = handle->pipe, what.end = handle->end;
    }
    bool array = pipe && pipe->fields.items[object.field].is_array;
    if (object.space == SPACE_REGISTER || object.space == SPACE_LET || array != subscript ||
        (subscript && arg->subscript.count != 1)) {
        Diag *diag = elab_error(e, P0115, arg->span, "`%s` is not a tile in shared memory",
                                elab_text_of(e, arg->span));
        HELP(e, diag,
             array ? "select one tile of the array: `address(%s[k])`"
                   : "write the name of a whole tile: `address(s.x)`",
             elab_text_of(e, base->span));
        return elab_poison(e, ast->span);
    }
    if (array) tile->element = integer_of(e, arg->subscript.subs[0], E_I32, "the number of a tile");
    if (array && !tile->element) return elab_poison(e, ast->span);
    if (pipe && !needs_arrivals(e, what.pipe, what.end, ast->span, "the address of a stage"))
        return elab_poison(e, ast->span);
    leave_unproved(e, &what);
    if (pipe) {
        PipeUse *use = edit_use(e->role, what.pipe);
        use->agents |= AGENT_BIT(ADDRESS);
        use->agents |= what.end == END_PRODUCE ? AGENT_BIT(STORES_IN) : AGENT_BIT(LOADS_OUT);
        e->prog->pipes.items[what.pipe].fields.items[object.field].address_taken[what.end] = true;
    }
    if (object.space == SPACE_SHARED) e->role->tiles.items[object.object].address_taken = true;
    what.tile = tile;
    bool global = object.space == SPACE_GLOBAL;
    if (global) {
        e->prog->params.items[object.object].by_pointer = true;
        e->prog->params.items[object.object].joined = ~0u; /* its text may assume C order */
    }
    return value_of(e, VALUE_ADDRESS, global ? E_U64 : E_U32, &what, ast->span);
}

/* ---- statements ------------------------------------------------------------------------------ */

void elab_unsafe_block(Elab *e, const AstStmt *ast) {
    bool before = e->unsafe;
    Frame *frame = e->unsafe_frame;
    e->unsafe = true, e->unsafe_frame = e->frame;
    elab_emit(e, elab_body_of(e, ast));
    e->unsafe = before, e->unsafe_frame = frame;
}

static const char *verb_of(AstStmtKind kind) {
    return kind == AST_ARRIVE   ? "`arrive`"
           : kind == AST_WAIT   ? "`wait`"
           : kind == AST_EXPECT ? "`expect`"
                                : "`step`";
}

/* Another block's barrier, and bytes that are expected at one */
static bool target_signals(Elab *e, const AstStmt *ast) {
    const bool *has = e->prog->target->has;
    bool bytes = ast->signal.value && ast->kind != AST_WAIT;
    Capability lacking = CAP_COUNT;
    if (ast->signal.at && !has[CAP_CLUSTERS]) lacking = CAP_CLUSTERS;
    if (bytes && !has[CAP_TX_COUNTS]) lacking = CAP_TX_COUNTS;
    if (lacking == CAP_COUNT) return true;
    target_lacks(e->arena, e->diags, e->prog, lacking, ast->span);
    return false;
}

void elab_signal_stmt(Elab *e, const AstStmt *ast) {
    Unsafe what = {.handle = -1, .pipe = -1, .local = -1};
    const char *verb = verb_of(ast->kind);
    Span word = {ast->span.lo, ast->span.lo + (uint32_t)strlen(verb) - 2};
    if (!needs_unsafe(e, word, verb)) return;
    if (ast->kind == AST_STEP) {
        AstExpr cursor = {.kind = AST_CURSOR, .span = ast->signal.barrier->span};
        cursor.cursor.end = ast->signal.barrier->acquire.end;
        cursor.cursor.pipe = ast->signal.barrier->acquire.pipe;
        if (!find_cursor(e, &cursor, &what) || !either_declared(e, &what, ast->span, verb)) return;
        what.kind = UNSAFE_STEP;
    } else {
        if (!find_barrier(e, ast->signal.barrier, &what)) return;
        if (what.own && ast->kind != AST_ARRIVE) {
            no_barrier(e, ast->signal.barrier->span);
            return;
        }
        if (ast->kind == AST_WAIT
                ? !either_declared(e, &what, ast->span, verb)
                : !needs_arrivals(e, what.pipe, signalled_by(&what), ast->span, verb))
            return;
        what.kind = ast->kind == AST_ARRIVE ? UNSAFE_ARRIVE
                    : ast->kind == AST_WAIT ? UNSAFE_WAIT
                                            : UNSAFE_EXPECT;
    }
    if (!target_signals(e, ast)) return;
    if (ast->signal.at &&
        !(what.at = integer_of(e, ast->signal.at, E_I32, "the number of a block")))
        return;
    const char *amount = ast->kind == AST_WAIT ? "a phase" : "a number of bytes";
    if (ast->signal.value && !(what.amount = integer_of(e, ast->signal.value, E_U32, amount)))
        return;
    bool counted = what.kind == UNSAFE_ARRIVE && what.own && !what.at && !what.amount;
    if (!counted) leave_unproved(e, &what);
    if (what.at) what.own = false, e->prog->touches_peers = true;
    *emit(e, what.kind, ast->span) = what;
}

static bool refuse_operand(Elab *e, Span span, const char *why, const char *help) {
    Diag *diag = elab_error(e, P0425, span, "%s", why);
    if (help) HELP(e, diag, "%s", help);
    return false;
}

static bool is_half(Element type) { return type == E_F16 || type == E_BF16; }

static bool operand_in(Elab *e, const AstOperand *ast, PtxOperand *out) {
    Val v = elab_expr(e, ast->value);
    if (elab_is_poison(v)) return false;
    out->value = elab_settled(e, v);
    out->type = out->value->type;
    if (is_half(out->type) || element_rows[out->type].widens == out->type) return true;
    return refuse_operand(
        e, ast->span, arena_printf(e->arena, "an operand cannot be %s", elab_type_name(out->type)),
        "operands can be f32, i32, u32, i64, u64, bool, f16 or bf16");
}

static bool operand_out(Elab *e, const AstOperand *ast, PtxOperand *out) {
    const Name *name = ast->name.text ? elab_scope_find(e->scope, ast->name.text) : NULL;
    if (!ast->name.text || (name && name->kind == NAME_POISON)) return false;
    if (!name || name->kind != NAME_LOCAL || e->role->locals.items[name->index].kind != LOCAL_VAR)
        return refuse_operand(
            e, ast->name.span,
            arena_printf(e->arena, "`%s` is not a scalar variable", ast->name.text),
            "declare the output before: `var x: u32;`");
    out->local = name->index;
    out->type = e->role->locals.items[name->index].type;
    if (ast->mode == AST_OPERAND_INOUT) out->value = elab_make_local(e, name->index, ast->span);
    if (!ast->type.text) return true;
    Element type;
    if (!elab_element_type(e, &(AstType){.span = ast->type.span, .name = ast->type}, &type))
        return false;
    if (type != out->type && !(is_half(type) && out->type == E_F32))
        return refuse_operand(e, ast->type.span,
                              arena_printf(e->arena, "`%s` is %s and cannot be %s in the PTX text",
                                           ast->name.text, elab_type_name(out->type),
                                           elab_type_name(type)),
                              "only f32 variables can be converted, to f16 or bf16");
    out->type = type;
    return true;
}

/* Every `{n}` names an operand, every operand is named. */
static bool check_places(Elab *e, const AstStmt *ast) {
    size_t count = ast->ptx.operands.count;
    bool *named = NEW_ARRAY(e->arena, bool, count + 1);
    for (const char *at = ast->ptx.text.text; *at; at++) {
        char *end;
        if (*at != '{' || at[1] < '0' || at[1] > '9') continue;
        unsigned long number = strtoul(at + 1, &end, 10);
        if (*end != '}') continue;
        if (number >= count)
            return refuse_operand(
                e, ast->ptx.text.span,
                arena_printf(e->arena, "the PTX text names operand {%lu}, but has %zu operand%s",
                             number, count, count == 1 ? "" : "s"),
                "operands follow the text in parentheses and count from {0}; write a brace of PTX "
                "with a space: `{ 0 }`");
        named[number] = true;
    }
    for (size_t i = 0; i < count; i++)
        if (!named[i])
            return refuse_operand(
                e, ast->ptx.operands.items[i].span,
                arena_printf(e->arena, "the PTX text does not name operand {%zu}", i),
                "use it in the text, or remove the operand");
    return true;
}

void elab_ptx_stmt(Elab *e, const AstStmt *ast) {
    if (!needs_unsafe(e, (Span){ast->span.lo, ast->span.lo + 3}, "inline PTX") ||
        !check_places(e, ast))
        return;
    Unsafe what = {
        .kind = UNSAFE_PTX, .handle = -1, .pipe = -1, .local = -1, .text = ast->ptx.text.text};
    bool fine = true;
    for (size_t i = 0; i < ast->ptx.operands.count; i++) {
        const AstOperand *operand = &ast->ptx.operands.items[i];
        PtxOperand out = {.span = operand->span, .local = -1};
        fine &= operand->mode == AST_OPERAND_IN ? operand_in(e, operand, &out)
                                                : operand_out(e, operand, &out);
        if (!fine) continue;
        vec_push(e->arena, &what.operands, out);
    }
    if (!fine) return;
    e->prog->touches_peers = true;
    *emit(e, UNSAFE_PTX, ast->span) = what;
}

bool elab_release_silent(Elab *e, const AstStmt *ast, int handle) {
    const Handle *what = &e->role->handles.items[handle];
    if (!needs_unsafe(e, ast->span, "`release .. without signal`")) return false;
    return what->pipe >= 0 &&
           needs_arrivals(e, what->pipe, what->end, ast->span, "`release .. without signal`");
}

bool elab_unwaited(Elab *e, const AstExpr *acquire, int pipe, End end) {
    Unsafe what = {.pipe = pipe, .end = end};
    if (!acquire->acquire.unwaited) return false;
    if (pipe < 0 || !needs_unsafe(e, acquire->span, "an acquire that does not wait") ||
        !either_declared(e, &what, acquire->span, "an acquire that does not wait"))
        return false;
    leave_unproved(e, &what);
    return true;
}
