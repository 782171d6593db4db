/* Code: what rows read and write, which regions lie in which, and whether a Code is well formed. */
#include "flow/code.h"

const char *const row_names[ROW_COUNT] = {
#define ROW(name, text, ...) [ROW_##name] = text,
#include "flow/rows.def"
#undef ROW
};

static bool row_ends_path(RowKind kind) {
    static const bool ends[ROW_COUNT] = {
#define ROW(name, text, path, what) [ROW_##name] = path,
#include "flow/rows.def"
#undef ROW
    };
    return ends[kind];
}

bool code_inside(const FlowCode *code, int inner, int outer) {
    while (inner > outer) inner = code->regions.items[inner].parent;
    return inner == outer;
}

/* ---- what a row reads and writes --------------------------------------------------------------------------------------- */

static void visit_if(Expr *expr, void (*visit)(Expr *, void *), void *data) {
    if (expr) visit(expr, data);
}

static void target_exprs(const Access *access, void (*visit)(Expr *, void *), void *data) {
    visit_if(access->element, visit, data);
    for (int i = 0; i < access->rank; i++) visit_if(access->subs[i], visit, data);
}

static void unsafe_exprs(const Unsafe *unsafe, void (*visit)(Expr *, void *), void *data) {
    visit_if(unsafe->stage, visit, data);
    visit_if(unsafe->at, visit, data);
    visit_if(unsafe->amount, visit, data);
    if (unsafe->tile) visit_if(unsafe->tile->element, visit, data);
    for (size_t i = 0; i < unsafe->operands.count; i++) visit_if(unsafe->operands.items[i].value, visit, data);
}

void row_exprs(const FlowCode *code, const Row *row, void (*visit)(Expr *, void *), void *data) {
    const Region *region = &code->regions.items[row->region];
    if (row->kind == ROW_LOOP) {
        visit_if(region->lo, visit, data);
        visit_if(region->hi, visit, data);
        visit_if(region->where, visit, data);
    } else if (row->kind == ROW_SET || row->kind == ROW_IF) {
        visit_if(row->value, visit, data);
    } else if (row->kind == ROW_TILE && row->tile) {
        target_exprs(&row->tile->target, visit, data);
        visit_if(row->tile->value, visit, data);
    } else if (row->unsafe) {
        unsafe_exprs(row->unsafe, visit, data);
    }
}

typedef struct Reads {
    Arena *arena;
    void (*visit)(Access *, bool, void *);
    void *data;
} Reads;

static void visit_read(Expr *expr, void *data) {
    const Reads *reads = data;
    if (expr->kind == X_READ && expr->read) reads->visit(expr->read, false, reads->data);
}

static void visit_root(Expr *expr, void *data) {
    const Reads *reads = data;
    expr_visit(reads->arena, expr, visit_read, data);
}

void row_accesses(Arena *arena, const FlowCode *code, const Row *row, void (*visit)(Access *, bool written, void *), void *data) {
    Reads reads = {arena, visit, data};
    if (row->kind == ROW_TILE && row->tile) visit(&row->tile->target, true, data);
    row_exprs(code, row, visit_root, &reads);
}

bool row_sets(const FlowCode *code, const Row *row, int local) {
    const Region *region = &code->regions.items[row->region];
    if (row->kind == ROW_LOOP && region->kind == REGION_FOR) return region->var == local;
    if (row->kind == ROW_LOOP) {
        for (size_t a = 0; a < code->prog->axes.count; a++)
            if (region->axes[a] == local) return true;
        return false;
    }
    for (size_t i = 0; row->unsafe && i < row->unsafe->operands.count; i++)
        if (row->unsafe->operands.items[i].local == local) return true;
    return (row->kind == ROW_SET || row->kind == ROW_UNSAFE) && row->local == local;
}

/* ---- validity ---------------------------------------------------------------------------------------------------------- */

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
    if (row->handle >= (int)code->role->handles.count || row->other >= (int)code->role->handles.count)
        return fail(why, at, "no such handle");
    if (row->late >= (int)code->lates.count) return fail(why, at, "no such late set");
    bool kept = row->kind == ROW_KEEP || row->kind == ROW_FLUSH, may = kept || (row->kind == ROW_ACQUIRE && row->block);
    if (row->late >= 0 ? !may : kept) return fail(why, at, "late set");
    if (row->kind == ROW_LEAVE) {
        if (!code_inside(code, row->region, row->target)) return fail(why, at, "leaves a region that it is not in");
        if (row->again && !region_loops(&code->regions.items[row->target])) return fail(why, at, "again, of no loop");
    }
    if (row->kind == ROW_TILE && !row->tile) return fail(why, at, "no tile");
    if ((row->kind == ROW_UNSAFE || row->kind == ROW_STEP) && !row->unsafe) return fail(why, at, "no operation");
    if (row->kind == ROW_EXIT) return at + 1 == code->rows.count || fail(why, at, "rows after the end");
    return ((int)at >= region->begin && (int)at <= region->end) || fail(why, at, "lies outside of its region");
}

/* Regions nest: `open` is the innermost at each row. */
static bool valid_nesting(const FlowCode *code, size_t at, int *open, Str *why) {
    const Row *row = &code->rows.items[at];
    const Region *region = &code->regions.items[row->region];
    bool first = (row->kind == ROW_LOOP || row->kind == ROW_IF || row->kind == ROW_BLOCK) && first_row_of(code, at);
    if ((row->kind == ROW_LOOP || row->kind == ROW_IF || row->kind == ROW_BLOCK) && !first)
        return fail(why, at, "begins a region again");
    if (first) {
        if (region->parent != *open) return fail(why, at, "the parent is not around it");
        *open = row->region;
    } else if (row->kind != ROW_EXIT && row->region != *open) return fail(why, at, "the wrong region");
    if (row->kind == ROW_NEXT && region->next != (int)at) return fail(why, at, "not the region's NEXT");
    if (row->kind == ROW_ELSE && region->otherwise != (int)at) return fail(why, at, "not the region's ELSE");
    if (row->kind == ROW_END) {
        if (region->end != (int)at) return fail(why, at, "not the region's END");
        *open = region->parent;
    }
    return true;
}

bool code_valid(const FlowCode *code, Str *why) {
    int open = -1;
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (row->region < 0 || row->region >= (int)code->regions.count) return fail(why, at, "no such region");
        if (!valid_row(code, at, why) || !valid_nesting(code, at, &open, why)) return false;
        bool ends = row_ends_path(row->kind);
        if (ends && row->kind == ROW_LEAVE && row->target < 0) return fail(why, at, "leaves nothing");
    }
    return open == -1 || fail(why, code->rows.count, "a region has no end");
}
