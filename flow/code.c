/* Code: reads and writes of rows, and nesting of regions. */
#include "flow/code.h"

const char *const row_names[ROW_COUNT] = {
#define ROW(name, text, ...) [ROW_##name] = text,
#include "flow/rows.def"
#undef ROW
};

const RowEffects row_effects[ROW_COUNT] = {
#define ROW(name, text, control, stage, scope, access, executes, signals, meaning)                 \
    [ROW_##name] = {CONTROL_##control, STAGE_##stage,       SCOPE_##scope,                         \
                    ACCESS_##access,   EXECUTES_##executes, SIGNALS_##signals},
#include "flow/rows.def"
#undef ROW
};

bool code_inside(const FlowCode *code, int inner, int outer) {
    while (inner > outer) inner = code->regions.items[inner].parent;
    return inner == outer;
}

bool code_in_grid(const FlowCode *code, int region) {
    while (region >= 0 && code->regions.items[region].kind != REGION_GRID)
        region = code->regions.items[region].parent;
    return region >= 0;
}

/* ---- accesses of a row ----------------------------------------------------------------------- */

static void visit_if(Expr *expr, void (*visit)(Expr *, void *), void *data) {
    if (expr) visit(expr, data);
}

void row_exprs(const FlowCode *code, const Row *row, void (*visit)(Expr *, void *), void *data) {
    if (row->kind != ROW_LOOP && !row->value && !row->tile && !row->unsafe) return; /* most rows */
    if (row->kind == ROW_LOOP) {
        const Region *region = &code->regions.items[row->region];
        visit_if(region->lo, visit, data);
        visit_if(region->hi, visit, data);
        visit_if(region->where, visit, data);
    } else if (row->kind == ROW_SET || row->kind == ROW_IF) {
        visit_if(row->value, visit, data);
    } else if (row->kind == ROW_TILE && row->tile) {
        access_exprs(&row->tile->target, visit, data);
        visit_if(row->tile->value, visit, data);
        visit_if(row->tile->where, visit, data);
    } else if (row->kind == ROW_PREFETCH && row->tile->value && row->tile->value->kind == X_READ) {
        access_exprs(row->tile->value->read, visit, data);
    } else if (row->unsafe) {
        unsafe_exprs(row->unsafe, visit, data);
    }
}

typedef struct Reads {
    Arena *arena;
    void (*visit)(Access *, bool, void *);
    void *data;
} Reads;

static void visit_reads(Expr *expr, void *data) {
    const Reads *reads = data;
    expr_reads(reads->arena, expr, reads->visit, reads->data);
}

void row_accesses(Arena *arena, const FlowCode *code, const Row *row,
                  void (*visit)(Access *, bool written, void *), void *data) {
    Reads reads = {arena, visit, data};
    if (row->kind == ROW_TILE && row->tile) visit(&row->tile->target, true, data);
    row_exprs(code, row, visit_reads, &reads);
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
    return row_computes(row->kind) && row->local == local;
}

static int goes_to(const FlowCode *code, const Row *leave) {
    const Region *target = &code->regions.items[leave->target];
    return leave->again ? target->next : target->end;
}

/* By region: the last row that is the target of a LEAVE in it; 0: none */
static int *find_farthest(Arena *arena, const FlowCode *code, bool returns) {
    int *farthest = NEW_ARRAY(arena, int, code->regions.count + 1);
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind != ROW_LEAVE || (row->target == 0 && !returns)) continue;
        int to = goes_to(code, row);
        for (int r = row->region; r >= row->target; r = code->regions.items[r].parent)
            if (to > farthest[r]) farthest[r] = to;
    }
    return farthest;
}

int *code_meetings(Arena *arena, const FlowCode *code, bool returns) {
    int *farthest = find_farthest(arena, code, returns);
    int *meetings = NEW_ARRAY(arena, int, code->regions.count + 1);
    for (int r = 0; r < (int)code->regions.count; r++) { /* enclosing regions come first */
        const Region *region = &code->regions.items[r];
        int at = farthest[r] > region->end ? farthest[r] : region->end;
        int home = code->rows.items[at].region;
        bool left = home != r && farthest[home] >= code->regions.items[home].end;
        meetings[r] = left ? meetings[home] : at; /* threads that are alone there may leave */
    }
    return meetings;
}

const Region *code_piece(const FlowCode *code, const Region *loop) {
    const Row *first = &code->rows.items[loop->begin + 1];
    if (first->kind != ROW_IF) return NULL;
    const Region *piece = &code->regions.items[first->region];
    return piece->from && piece->end + 1 == loop->next ? piece : NULL;
}
