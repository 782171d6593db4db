/* Whether accesses to tensors rely on the order that pipes pass on: a role knows, when it acquires
 * a stage, what the role that released it had done and learned before. No tensor needs that if each
 * is only read, or is accessed by the threads of a single instance in the order of its program.
 * Copies into stages are not in this order: they are complete only where the stage is acquired. */
#include "derive/plan.h"

typedef struct Known {
    bool written, copied;
    int instances; /* that access it, of all roles */
    int role;      /* that accesses it last; -1: none yet */
} Known;

typedef struct Finder {
    const Role *role;
    int number; /* of the role */
    bool copies;
    Known *known; /* by parameter */
} Finder;

static void note(Access *access, bool written, void *data) {
    const Finder *f = data;
    if (access->space != SPACE_GLOBAL) return;
    Known *known = &f->known[access->object];
    known->written |= written;
    known->copied |= f->copies && !written;
    if (known->role != f->number) known->instances += f->role->instances;
    known->role = f->number;
}

static bool copies_in(const Row *row) {
    if (row->kind == ROW_PREFETCH) return true;
    if (row->kind != ROW_TILE) return false;
    TileClass class = row->tile->class;
    return class == TILE_TENSOR_LOAD || class == TILE_BULK_LOAD || class == TILE_LANES;
}

bool plan_ordered(Arena *arena, const Prog *prog) {
    Known *known = NEW_ARRAY(arena, Known, prog->params.count + 1);
    for (size_t p = 0; p < prog->params.count; p++) known[p].role = -1;
    for (size_t r = 0; r < prog->roles.count; r++) {
        const Role *role = &prog->roles.items[r];
        for (size_t at = 0; at < role->code->rows.count; at++) {
            const Row *row = code_row(role->code, (int)at);
            if (row->unsafe != NULL) return true;
            Finder finder = {role, (int)r, copies_in(row), known};
            row_accesses(arena, role->code, row, note, &finder);
        }
    }
    for (size_t p = 0; p < prog->params.count; p++)
        if (known[p].written && (known[p].copied || known[p].instances > 1)) return true;
    return false;
}
