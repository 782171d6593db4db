/* The manifest: the data that a launcher needs in addition to the text, copied from the checked
 * program. */
#include "codegen/gen.h"

#include <inttypes.h>
#include <string.h>

/* ---- symbols -----------------------------------------------------------------------------------
 */

/* The symbol of the stride of an outer axis of a tensor */
static int stride_symbol(const Prog *prog, int param, int axis) {
    int symbol = (int)prog->symbols.count + axis;
    for (int i = 0; i < param; i++)
        if (prog->params.items[i].rank > 1) symbol += prog->params.items[i].rank - 1;
    return symbol;
}

static bool is_float_scalar(const Param *param) {
    return !param->is_tensor && element_rows[param->type].kind == ELEMENT_FLOAT;
}

/* The symbol of a floating-point scalar: they follow those of all strides */
static int float_symbol(const Prog *prog, int param) {
    int symbol = stride_symbol(prog, (int)prog->params.count, 0);
    for (int i = 0; i < param; i++) symbol += is_float_scalar(&prog->params.items[i]);
    return symbol;
}

/* ---- formulas -------------------------------------------------------------------------------- */

typedef struct Steps {
    Arena *arena;
    const Prog *prog;
    const Manifest *manifest; /* of formulas of work, otherwise NULL */
    int item;                 /* of the plan's work, in which the formula is */
    VEC(FormulaStep) list;
} Steps;

static void push(Steps *steps, FormulaOp op, int64_t value) {
    vec_push(steps->arena, &steps->list, (FormulaStep){op, value});
}

static void add_steps(Steps *steps, const Expr *expr);

static void add_binary(Steps *steps, const Expr *expr) {
    static const FormulaOp ops[] = {
        [OP_ADD] = F_ADD, [OP_SUB] = F_SUB, [OP_MUL] = F_MUL, [OP_DIV] = F_DIV, [OP_MOD] = F_MOD,
        [OP_EQ] = F_EQ,   [OP_NE] = F_NE,   [OP_LT] = F_LT,   [OP_LE] = F_LE,   [OP_GT] = F_LT,
        [OP_GE] = F_LE,   [OP_AND] = F_AND, [OP_OR] = F_OR};
    bool turned = expr->binary.op == OP_GT || expr->binary.op == OP_GE;
    add_steps(steps, turned ? expr->binary.right : expr->binary.left);
    add_steps(steps, turned ? expr->binary.left : expr->binary.right);
    push(steps, ops[expr->binary.op], 0);
}

static void add_call(Steps *steps, const Expr *expr) {
    Intrinsic which = expr->call.which;
    if (which == IN_abs) { /* max(a, -a) */
        add_steps(steps, expr->call.args[0]);
        add_steps(steps, expr->call.args[0]);
        push(steps, F_NEG, 0);
        push(steps, F_MAX, 0);
        return;
    }
    for (int i = 0; i < expr->call.count; i++) add_steps(steps, expr->call.args[i]);
    push(steps, which == IN_ceil_div ? F_CEIL : which == IN_min ? F_MIN : F_MAX, 0);
}

/* Index among the symbols of the variable of the innermost loop with this local, whose item
 * precedes those in it; -1: none contains the item */
static int64_t loop_variable(const Steps *steps, int local) {
    const Plan *plan = steps->prog->plan;
    for (int i = plan->work.items[steps->item].parent; i >= 0; i = plan->work.items[i].parent)
        if (plan->work.items[i].kind == WORK_LOOP && plan->work.items[i].local == local)
            return steps->manifest->work.items[i].variable;
    return -1;
}

/* Integer formulas over symbols, and comparisons of floats in preconditions: the checker allows
 * nothing else in grids, maps and preconditions. */
static void add_steps(Steps *steps, const Expr *expr) {
    switch (expr->kind) {
    case X_CONST:
        if (expr->type == E_F32)
            push(steps, F_FLOAT, formula_order(expr->constant.number));
        else
            push(steps, F_CONST, expr->constant.integer);
        return;
    case X_PARAM: push(steps, F_SYMBOL, float_symbol(steps->prog, expr->index)); return;
    case X_SYMBOL: push(steps, F_SYMBOL, expr->index); return;
    case X_CAST: add_steps(steps, expr->cast); return;
    case X_UNARY:
        add_steps(steps, expr->unary.operand);
        push(steps, expr->unary.op == OP_NEG ? F_NEG : F_NOT, 0);
        return;
    case X_BINARY: add_binary(steps, expr); return;
    case X_SELECT:
        add_steps(steps, expr->select.condition);
        add_steps(steps, expr->select.then);
        add_steps(steps, expr->select.otherwise);
        push(steps, F_SELECT, 0);
        return;
    case X_CALL: add_call(steps, expr); return;
    case X_AXIS:
        push(steps, F_SYMBOL, (int64_t)steps->manifest->symbols.count + expr->index);
        return;
    case X_LOCAL: push(steps, F_SYMBOL, loop_variable(steps, expr->index)); return;
    case X_POISON:
    case X_RANK:
    case X_INDEX:
    case X_READ:
    case X_REDUCE:
    case X_SCAN: return;
    }
}

static Formula formula_of(Arena *arena, const Prog *prog, const Expr *expr) {
    if (expr == NULL) return (Formula){NULL, 0};
    Steps steps = {.arena = arena, .prog = prog};
    add_steps(&steps, expr);
    return (Formula){steps.list.items, (int)steps.list.count};
}

static Formula grid_tiles(Arena *arena, const Prog *prog) {
    Steps steps = {.arena = arena, .prog = prog};
    for (size_t a = 0; a < prog->axes.count; a++) {
        add_steps(&steps, prog->axes.items[a].padded);
        if (a > 0) push(&steps, F_MUL, 0);
    }
    return (Formula){steps.list.items, (int)steps.list.count};
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Those of the program, then the strides of each tensor, then the floating-point scalars */
static void fill_symbols(Arena *arena, const Prog *prog, Manifest *manifest) {
    for (size_t i = 0; i < prog->symbols.count; i++)
        vec_push(arena, &manifest->symbols,
                 ((ManifestSymbol){.name = prog->symbols.items[i].name,
                                   .is_extent = prog->symbols.items[i].is_extent,
                                   .parameter = prog->symbols.items[i].param,
                                   .axis = prog->symbols.items[i].axis,
                                   .times = prog->symbols.items[i].times,
                                   .plus = prog->symbols.items[i].plus,
                                   .is_row = sums_is_row(prog, (int)i)}));
    for (size_t i = 0; i < prog->params.count; i++)
        for (int axis = 0; axis + 1 < prog->params.items[i].rank; axis++)
            vec_push(arena, &manifest->symbols,
                     ((ManifestSymbol){.name = arena_printf(arena, "%s.stride%d",
                                                            prog->params.items[i].name, axis),
                                       .is_stride = true,
                                       .parameter = (int)i,
                                       .axis = axis}));
    for (size_t i = 0; i < prog->params.count; i++)
        if (is_float_scalar(&prog->params.items[i]))
            vec_push(arena, &manifest->symbols,
                     ((ManifestSymbol){.name = prog->params.items[i].name, .is_float = true}));
}

/* The stride of an outer axis of a tensor in bytes */
static Formula stride_bytes(Arena *arena, const Prog *prog, int param, int axis) {
    Steps steps = {.arena = arena};
    push(&steps, F_SYMBOL, stride_symbol(prog, param, axis));
    push(&steps, F_CONST, element_rows[prog->params.items[param].type].bytes);
    push(&steps, F_MUL, 0);
    return (Formula){steps.list.items, (int)steps.list.count};
}

/* Holds if each stride that the tensor has as in C order without gaps is a multiple of what the
 * kernel needs. Others are compared at a launch, see launch_strides. */
static Formula pitch_condition(Arena *arena, const Prog *prog, int param) {
    const Param *tensor = &prog->params.items[param];
    Steps steps = {.arena = arena, .prog = prog};
    for (int axis = tensor->rank - 2; axis >= 0; axis--) {
        push(&steps, F_SYMBOL, stride_symbol(prog, param, axis));
        for (int inner = axis + 1; inner < tensor->rank; inner++) {
            add_steps(&steps, tensor->extents[inner]);
            if (inner > axis + 1) push(&steps, F_MUL, 0);
        }
        push(&steps, F_NE, 0);
        push(&steps, F_SYMBOL, stride_symbol(prog, param, axis));
        push(&steps, F_CONST, element_rows[tensor->type].bytes);
        push(&steps, F_MUL, 0);
        push(&steps, F_CONST, tensor->stride_alignment);
        push(&steps, F_MOD, 0);
        push(&steps, F_CONST, 0);
        push(&steps, F_EQ, 0);
        push(&steps, F_OR, 0);
        if (axis < tensor->rank - 2) push(&steps, F_AND, 0);
    }
    return (Formula){steps.list.items, (int)steps.list.count};
}

static void fill_preconditions(Arena *arena, const Prog *prog, Manifest *manifest) {
    for (size_t i = 0; i < prog->preconditions.count; i++) {
        const Precondition *row = &prog->preconditions.items[i];
        Formula condition = row->pitch_of == 0 ? formula_of(arena, prog, row->condition)
                                               : pitch_condition(arena, prog, row->pitch_of - 1);
        ManifestPrecondition out = {condition, row->text, row->reason, row->help, row->span};
        vec_push(arena, &manifest->preconditions, out);
    }
}

static void fill_maps(Arena *arena, const Prog *prog, Manifest *manifest) {
    for (size_t i = 0; i < prog->plan->maps.count; i++) {
        const Map *map = &prog->plan->maps.items[i];
        ManifestMap out = {.parameter = map->param,
                           .type = prog->params.items[map->param].type,
                           .rank = map->rank,
                           .swizzle = (Swizzle)map->swizzle,
                           .promotion = map->narrow ? PROMOTION_NONE : PROMOTION_256,
                           .stored = map->stored};
        for (int d = 0; d < map->rank; d++) {
            out.extents[d] = formula_of(arena, prog, map->extents[d]);
            if (d > 0) out.strides[d] = stride_bytes(arena, prog, map->param, map->rank - 1 - d);
            out.box[d] = (uint32_t)map->box[d];
        }
        vec_push(arena, &manifest->maps, out);
    }
}

static void fill_parameters(Arena *arena, const Prog *prog, Manifest *manifest) {
    for (size_t i = 0; i < prog->params.count; i++) {
        const Param *param = &prog->params.items[i];
        static const ParameterMode modes[] = {
            [PARAM_IN] = MODE_IN, [PARAM_OUT] = MODE_OUT, [PARAM_INOUT] = MODE_INOUT};
        ManifestParameter out = {.name = param->name,
                                 .kind = param->is_tensor ? PARAMETER_TENSOR : PARAMETER_SCALAR,
                                 .mode = modes[param->mode],
                                 .type = param->type,
                                 .rank = param->rank,
                                 .symbol = is_float_scalar(param) ? float_symbol(prog, (int)i)
                                                                  : param->symbol,
                                 .alignment = param->alignment,
                                 .stride_alignment = param->stride_alignment,
                                 .joined = param->joined,
                                 .span = param->span};
        for (int axis = 0; axis < param->rank; axis++)
            out.extents[axis] = formula_of(arena, prog, param->extents[axis]);
        vec_push(arena, &manifest->parameters, out);
    }
}

/* Tensor maps, pointers, strides, extents, scalars, the watchdog's area. */
static void fill_arguments(Arena *arena, const Prog *prog, const CodegenOptions *options,
                           Manifest *manifest) {
    static const ArgumentKind kinds[] = {
        [PASSED_MAP] = ARGUMENT_TENSOR_MAP, [PASSED_POINTER] = ARGUMENT_POINTER,
        [PASSED_STRIDE] = ARGUMENT_STRIDE,  [PASSED_EXTENT] = ARGUMENT_EXTENT,
        [PASSED_SCALAR] = ARGUMENT_SCALAR,  [PASSED_COUNTER] = ARGUMENT_COUNTER};
    for (size_t i = 0; i < prog->plan->arguments.count; i++) {
        const Passed *argument = &prog->plan->arguments.items[i];
        int index = argument->kind == PASSED_STRIDE
                        ? stride_symbol(prog, argument->index, argument->axis)
                        : argument->index;
        vec_push(arena, &manifest->arguments, (ManifestArgument){kinds[argument->kind], index});
    }
    if (options->watchdog)
        vec_push(arena, &manifest->arguments, (ManifestArgument){ARGUMENT_WATCHDOG, 0});
}

typedef struct Inside {
    const Steps *steps;
    bool all;
} Inside;

static void find_outside(Expr *expr, void *data) {
    Inside *inside = data;
    inside->all &= expr->kind != X_LOCAL || loop_variable(inside->steps, expr->index) >= 0;
}

/* None if it names the variable of a loop that has ended: then data decide. */
static Formula formula_of_work(Arena *arena, const Prog *prog, const Manifest *manifest, int item,
                               Expr *expr) {
    Steps steps = {.arena = arena, .prog = prog, .manifest = manifest, .item = item};
    Inside inside = {&steps, true};
    if (expr == NULL) return (Formula){NULL, 0};
    expr_visit(arena, expr, find_outside, &inside);
    if (!inside.all) return (Formula){NULL, 0};
    add_steps(&steps, expr);
    return (Formula){steps.list.items, (int)steps.list.count};
}

/* "math.k3": its role, its name and the number of its loop */
static int add_variable(Arena *arena, const Prog *prog, Manifest *manifest, int item) {
    const Work *work = &prog->plan->work.items[item];
    const Role *role = &prog->roles.items[work->role];
    vec_push(
        arena, &manifest->variables,
        arena_printf(arena, "%s.%s%d", role->name, role->locals.items[work->local].name, item));
    return (int)(manifest->symbols.count + manifest->axes.count + manifest->variables.count) - 1;
}

static void fill_work(Arena *arena, const Prog *prog, Manifest *manifest) {
    for (size_t a = 0; a < prog->axes.count; a++)
        vec_push(arena, &manifest->axes,
                 ((ManifestAxis){prog->axes.items[a].name,
                                 formula_of(arena, prog, prog->axes.items[a].padded)}));
    for (int i = 0; i < (int)prog->plan->work.count; i++) {
        const Work *work = &prog->plan->work.items[i];
        ManifestWork out = {.kind = work->kind,
                            .role = work->role,
                            .parent = work->parent,
                            .of = work->of,
                            .variable = -1,
                            .parameter = work->param,
                            .pipe = work->pipe < 0 ? NULL : prog->pipes.items[work->pipe].name,
                            .amount = work->amount,
                            .own = work->own,
                            .pieces = work->pieces,
                            .bound = work->bound,
                            .span = work->span};
        out.lo = formula_of_work(arena, prog, manifest, i, work->lo);
        out.hi = formula_of_work(arena, prog, manifest, i, work->hi);
        out.times = formula_of_work(arena, prog, manifest, i, work->times);
        if (work->local >= 0) out.variable = add_variable(arena, prog, manifest, i);
        vec_push(arena, &manifest->work, out);
    }
}

static void fill_sums(Arena *arena, const Prog *prog, Manifest *manifest) {
    for (size_t i = 0; i < prog->plan->sums.count; i++) {
        const SumPlan *sum = &prog->plan->sums.items[i];
        ManifestSum out = {sum->text, sum->why, sum->threads, sum->span};
        vec_push(arena, &manifest->sums, out);
    }
}

static void fill_shared(Arena *arena, const Prog *prog, Manifest *manifest) {
    static const SharedKind kinds[] = {[RANGE_FULL] = SHARED_FULL,
                                       [RANGE_EMPTY] = SHARED_EMPTY,
                                       [RANGE_FIELD] = SHARED_FIELD,
                                       [RANGE_TILE] = SHARED_TILE};
    for (size_t i = 0; i < prog->plan->memory.count; i++) {
        const Range *range = &prog->plan->memory.items[i];
        ManifestShared out = {kinds[range->kind], range->pipe,   range->name,
                              range->note,        range->offset, range->bytes,
                              range->count,       range->stride, range->arrivals};
        vec_push(arena, &manifest->shared, out);
    }
}

/* The name of the PTX entry: the kernel's own, except for two names that PTX reserves (PTX ISA
 * 4.4, identifiers). */
static const char *entry_name(Arena *arena, const char *kernel) {
    bool taken = strcmp(kernel, "_") == 0 || strcmp(kernel, "WARP_SZ") == 0;
    return taken ? arena_printf(arena, "kernel_%s", kernel) : kernel;
}

void manifest_fill(Arena *arena, const Prog *prog, const CodegenOptions *options,
                   Manifest *manifest) {
    manifest->kernel = entry_name(arena, prog->name);
    manifest->target = prog->target->name;
    manifest->ptx_major = prog->target->ptx_major;
    manifest->ptx_minor = prog->target->ptx_minor;
    manifest->source = prog->source;
    manifest->head = prog->span;
    manifest->tiles = grid_tiles(arena, prog);
    manifest->persistent = prog->persistent;
    manifest->dynamic = prog->draws.role >= 0;
    manifest->ordered = !prog->target->has[CAP_EARLY_STARTS];
    manifest->threads = prog->plan->warps * 32;
    manifest->shared_bytes = prog->plan->shared_bytes;
    manifest->cluster[0] = prog->cluster, manifest->cluster[1] = manifest->cluster[2] = 1;
    manifest->registers = prog->plan->entry_registers;
    manifest->watchdog = options->watchdog;
    fill_symbols(arena, prog, manifest);
    fill_parameters(arena, prog, manifest);
    fill_maps(arena, prog, manifest);
    fill_arguments(arena, prog, options, manifest);
    fill_preconditions(arena, prog, manifest);
    manifest_find_compared(manifest);
    for (size_t i = 0; i < prog->constants.count; i++) {
        const Constant *constant = &prog->constants.items[i];
        vec_push(arena, &manifest->constants,
                 (ManifestConstant){constant->name, constant_value_text(arena, constant),
                                    constant->is_static});
    }
    fill_shared(arena, prog, manifest);
    for (size_t i = 0; i < prog->roles.count; i++) {
        const Role *role = &prog->roles.items[i];
        const RolePlan *plan = &prog->plan->roles[i];
        ManifestRole out = {.name = role->name,
                            .first_warp = plan->first_warp,
                            .warps = role->warps * role->instances,
                            .instances = role->instances,
                            .registers = plan->registers,
                            .span = role->span,
                            .held = plan->tile_registers};
        vec_push(arena, &manifest->roles, out);
    }
    fill_work(arena, prog, manifest);
    work_find_facts(manifest);
    fill_sums(arena, prog, manifest);
}
