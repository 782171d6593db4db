/* Small sizes: tries extents and scalars from the smallest up, at values near the constants that
 * occur with them (tiles), and evaluates formulas. For counterexamples; proves nothing. */
#include "check/sizes/sizes.h"
#include "prog/eval.h"

#define FREE_MOST       5 /* most symbols that vary */
#define CANDIDATES_MOST 24
#define TILES_MOST      4096
#define TILE_MOST       1024 /* largest constant that counts as a tile */
#define CELLS_SHOWN     6

/* ---- evaluation ------------------------------------------------------------------------------ */

static bool local(const Env *env, const Expr *expr, int64_t *out) {
    if (!env->role || !valid_index(expr->index, env->role->locals.count)) return false;
    const Local *what = &env->role->locals.items[expr->index];
    if (env->locals && env->known[expr->index]) return *out = env->locals[expr->index], true;
    if (what->kind == LOCAL_AXIS && env->axes) return *out = env->axes[what->axis], true;
    if (env->locals || what->kind != LOCAL_LET || !what->value) return false;
    arena_count(env->arena, 1); /* `let`s refer to others */
    return evaluate(env, what->value, out);
}

static bool is_whole(Element type) {
    return type == E_I8 || type == E_U8 || type == E_I32 || type == E_U32 || type == E_I64 ||
           type == E_U64;
}

static const int64_t *cell(Memory *memory, const struct Read *row, int rank) {
    for (size_t c = 0; c < memory->cells.count; c++) {
        bool same = memory->cells.items[c].param == row->param;
        for (int i = 0; i < rank && same; i++)
            same = memory->cells.items[c].subs[i] == row->subs[i];
        if (same) return &memory->cells.items[c].value;
    }
    Cell more = {.param = row->param, .rank = rank};
    for (int i = 0; i < rank; i++) more.subs[i] = row->subs[i];
    vec_push(memory->arena, &memory->cells, more);
    return &memory->cells.items[memory->cells.count - 1].value;
}

/* 0 outside of the tensor. */
static bool read(const Env *env, const Access *access, int64_t *out) {
    Reads *reads = env->reads;
    struct Read row = {.param = access->object};
    if (!reads || access->space != SPACE_GLOBAL ||
        !valid_index(access->object, env->prog->params.count))
        return false;
    const Param *param = &env->prog->params.items[access->object];
    if (param->mode != PARAM_IN || !is_whole(access->type)) return false;
    uint64_t hash = reads->seed * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)access->object;
    for (int i = 0; i < access->rank; i++) {
        int64_t extent;
        if (!evaluate(env, access->subs[i], &row.subs[i]) ||
            !evaluate(env, param->extents[i], &extent))
            return false;
        if (row.subs[i] < 0 || row.subs[i] >= extent) return *out = 0, true;
        hash = (hash ^ (uint64_t)row.subs[i]) * UINT64_C(0xBF58476D1CE4E5B9);
        hash ^= hash >> 31;
    }
    if (reads->memory) return *out = *cell(reads->memory, &row, access->rank), true;
    row.value = *out = (int64_t)(hash % (uint64_t)(reads->most + 1));
    bool known = reads->count == READS_MOST;
    for (int i = 0; i < reads->count && !known; i++) {
        known = reads->seen[i].param == row.param;
        for (int k = 0; k < access->rank; k++) known &= reads->seen[i].subs[k] == row.subs[k];
    }
    if (!known) reads->seen[reads->count++] = row;
    return true;
}

void reads_print(const Reads *reads, const Prog *prog, Str *out) {
    for (int i = 0; i < reads->count; i++) {
        const Param *param = &prog->params.items[reads->seen[i].param];
        str_printf(out, "%s%s[", out->length ? ", " : "", param->name);
        for (int k = 0; k < param->rank; k++)
            str_printf(out, "%s%lld", k ? ", " : "", (long long)reads->seen[i].subs[k]);
        str_printf(out, "] = %lld", (long long)reads->seen[i].value);
    }
}

static bool leaf(const void *data, const Expr *expr, int64_t *out) {
    const Env *env = data;
    switch (expr->kind) {
    case X_SYMBOL: return *out = env->symbols[expr->index], true;
    case X_AXIS: return env->axes ? *out = env->axes[expr->index], true : false;
    case X_LOCAL: return local(env, expr, out);
    case X_RANK:
        if (env->rank) return *out = *env->rank, true;
        return env->role && env->role->instances == 1 ? *out = 0, true : false;
    case X_READ: return read(env, expr->read, out);
    case X_POISON:
    case X_CONST:
    case X_PARAM:
    case X_INDEX:
    case X_UNARY:
    case X_BINARY:
    case X_SELECT:
    case X_CAST:
    case X_CALL:
    case X_REDUCE:
    case X_SCAN: break;
    }
    return false;
}

bool evaluate(const Env *env, const Expr *expr, int64_t *out) {
    return eval_expr(
        &(EvalEnv){.leaf = leaf, .data = env, .exact = env->exact, .arena = env->arena}, expr, out);
}

/* ---- candidates ------------------------------------------------------------------------------ */

static void insert(Sizes *sizes, int symbol, int64_t value) {
    for (size_t i = 0; i < sizes->candidates[symbol].count; i++)
        if (sizes->candidates[symbol].items[i] == value) return;
    if (sizes->candidates[symbol].count >= sizes->most) return;
    vec_push(sizes->arena, &sizes->candidates[symbol], value);
    int64_t *items = sizes->candidates[symbol].items;
    for (size_t i = sizes->candidates[symbol].count - 1; i > 0 && items[i - 1] > items[i]; i--) {
        int64_t swap = items[i];
        items[i] = items[i - 1];
        items[i - 1] = swap;
    }
}

typedef struct Found {
    const Prog *prog;
    int symbols[FREE_MOST];
    int64_t constants[4];
    int symbol_count, constant_count;
} Found;

static void find(Expr *expr, void *data) {
    Found *found = data;
    if (expr->kind == X_SYMBOL && valid_index(expr->index, found->prog->symbols.count) &&
        found->symbol_count < FREE_MOST)
        found->symbols[found->symbol_count++] = expr->index;
    if (expr->kind == X_CONST && expr->type != E_F32 && expr->type != E_BOOL &&
        expr->constant.integer > 1 && expr->constant.integer < 1 << 20 && found->constant_count < 4)
        found->constants[found->constant_count++] = expr->constant.integer;
}

/* Values near each constant of a symbol, in multiples of a divisor given by preconditions */
static void add_candidates(Sizes *sizes, int symbol, const Found *found, bool constants) {
    Expr self = {.kind = X_SYMBOL, .type = E_I32};
    self.index = symbol;
    int64_t unit = algebra_divisor(sizes->arena, sizes->prog, NULL, &self);
    if (unit < 1 || unit > 4096) unit = 1;
    for (int64_t v = 0; v <= (!sizes->sparse                       ? 5
                              : constants && found->constant_count ? 1
                                                                   : sizes->rounds);
         v++)
        insert(sizes, symbol, v * unit);
    for (int c = 0; c < found->constant_count && constants; c++) {
        for (int64_t n = 1; n <= sizes->rounds; n++) {
            int64_t value = (n * found->constants[c] + unit - 1) / unit * unit;
            insert(sizes, symbol, value);
            if (!sizes->sparse) insert(sizes, symbol, value + unit);
        }
    }
}

static void add_formula(Sizes *sizes, Expr *expr, bool constants) {
    Found found = {.prog = sizes->prog};
    if (!expr) return;
    expr_visit(sizes->arena, expr, find, &found);
    for (int s = 0; s < found.symbol_count; s++) {
        int symbol = found.symbols[s];
        bool is_free = false;
        for (size_t i = 0; i < sizes->free.count; i++) is_free |= sizes->free.items[i] == symbol;
        if (!is_free && sizes->free.count == FREE_MOST) continue;
        if (!is_free) vec_push(sizes->arena, &sizes->free, symbol);
        add_candidates(sizes, symbol, &found, constants);
        for (int c = 0; c < found.constant_count; c++)
            if (found.constants[c] > sizes->tile[symbol] && found.constants[c] <= TILE_MOST)
                sizes->tile[symbol] = found.constants[c];
    }
}

void sizes_formula(Sizes *sizes, Expr *expr) { add_formula(sizes, expr, true); }

void sizes_code(Sizes *sizes, const FlowCode *code) {
    for (size_t r = 0; r < code->regions.count; r++) {
        const Region *region = &code->regions.items[r];
        if (region->kind == REGION_FOR) {
            sizes_formula(sizes, region->lo);
            sizes_formula(sizes, region->hi);
        }
        if (region->kind == REGION_IF) sizes_formula(sizes, region->condition);
    }
}

int sizes_rounds(const Prog *prog) {
    int most = 3;
    for (size_t r = 0; r < prog->roles.count; r++) {
        const Role *role = &prog->roles.items[r];
        if (role->in_turn && 2 * role->instances + 1 > most) most = 2 * role->instances + 1;
    }
    return most;
}

Sizes *sizes_new(Arena *arena, const Prog *prog, bool sparse) {
    Sizes *sizes = NEW(arena, Sizes);
    sizes->arena = arena;
    sizes->prog = prog;
    sizes->sparse = sparse;
    sizes->rounds = sizes_rounds(prog);
    sizes->most = CANDIDATES_MOST;
    sizes->values = NEW_ARRAY(arena, int64_t, prog->symbols.count + 1);
    sizes->tile = NEW_ARRAY(arena, int64_t, prog->symbols.count + 1);
    sizes->candidates = arena_alloc(arena, (prog->symbols.count + 1) * sizeof *sizes->candidates);
    for (size_t i = 0; i < prog->symbols.count; i++) sizes->values[i] = sizes->tile[i] = 1;
    for (size_t i = 0; i < prog->preconditions.count; i++)
        if (!prog->preconditions.items[i].of_width)
            add_formula(sizes, prog->preconditions.items[i].condition, !sparse);
    return sizes;
}

/* ---- enumeration: by increasing sum of indexes in the candidates ----------------------------- */

static int last_of(const Sizes *sizes, size_t i) {
    return (int)sizes->candidates[sizes->free.items[i]].count - 1;
}

/* The first indexes from `first` on with this sum: all of it in the last ones */
static bool fill(Sizes *sizes, size_t first, int sum) {
    for (size_t i = sizes->free.count; i-- > first;) {
        sizes->at[i] = sum < last_of(sizes, i) ? sum : last_of(sizes, i);
        sum -= sizes->at[i];
    }
    return sum == 0;
}

/* The next distribution of the sum over the indexes */
static bool advance(Sizes *sizes) {
    int later = 0;
    if (!sizes->started) {
        sizes->started = true;
        return fill(sizes, 0, sizes->sum);
    }
    for (size_t i = sizes->free.count; i-- > 0; later += sizes->at[i])
        if (later > 0 && sizes->at[i] < last_of(sizes, i)) {
            sizes->at[i]++;
            return fill(sizes, i + 1, later - 1);
        }
    return false;
}

bool sizes_allowed(const Sizes *sizes) {
    Env env = {.arena = sizes->arena, .prog = sizes->prog, .symbols = sizes->values, .exact = true};
    for (size_t i = 0; i < sizes->prog->preconditions.count; i++) {
        int64_t truth;
        if (evaluate(&env, sizes->prog->preconditions.items[i].condition, &truth) && !truth)
            return false;
    }
    return true;
}

bool sizes_next(Sizes *sizes) {
    int most = 0;
    if (!sizes->at) sizes->at = NEW_ARRAY(sizes->arena, int, sizes->free.count + 1);
    for (size_t i = 0; i < sizes->free.count; i++) most += last_of(sizes, i);
    for (;;) {
        while (advance(sizes)) {
            for (size_t i = 0; i < sizes->free.count; i++)
                sizes->values[sizes->free.items[i]] =
                    sizes->candidates[sizes->free.items[i]].items[sizes->at[i]];
            if (sizes_allowed(sizes)) return true;
        }
        if (++sizes->sum > most) return false;
        sizes->started = false;
    }
}

bool sizes_wide(Sizes *sizes, int symbol, int64_t trips) {
    for (size_t i = 0; i < sizes->free.count; i++) {
        int at = sizes->free.items[i];
        sizes->values[at] = (symbol < 0 || symbol == at ? trips : 1) * sizes->tile[at];
    }
    return sizes_allowed(sizes);
}

void sizes_print(const Sizes *sizes, Str *out) {
    for (size_t i = 0; i < sizes->free.count; i++)
        str_printf(out, "%s%s = %lld", i ? ", " : "",
                   sizes->prog->symbols.items[sizes->free.items[i]].name,
                   (long long)sizes->values[sizes->free.items[i]]);
    for (size_t c = 0; sizes->memory && c < sizes->memory->cells.count && c < CELLS_SHOWN; c++) {
        const Cell *cell = &sizes->memory->cells.items[c];
        str_printf(out, "%s%s[", out->length ? ", " : "",
                   sizes->prog->params.items[cell->param].name);
        for (int i = 0; i < cell->rank; i++)
            str_printf(out, "%s%lld", i ? ", " : "", (long long)cell->subs[i]);
        str_printf(out, "] = %lld", (long long)cell->value);
    }
}

bool sizes_tiles(const Sizes *sizes, int64_t *extents, int64_t *tiles) {
    Env env = {.arena = sizes->arena, .prog = sizes->prog, .symbols = sizes->values, .exact = true};
    *tiles = 1;
    for (size_t i = 0; i < sizes->prog->axes.count; i++) {
        if (!evaluate(&env, sizes->prog->axes.items[i].extent, &extents[i])) return false;
        if (extents[i] < 0) extents[i] = 0;
        if (extents[i] > TILES_MOST) return false;
        *tiles *= extents[i];
        if (*tiles > TILES_MOST) return false;
    }
    return true;
}
