/* slice: the rows of a Code that affect one property, with the control that decides about them. */
#include "flow/slice.h"

#include <stdlib.h>

typedef struct Slicer {
    const FlowCode *code;
    bool *kept;    /* by row */
    bool *regions; /* by region: its first row, END, NEXT and ELSE are kept */
    int *rows;     /* by row: its index in the slice, or that of the next kept row */
    int *numbers;  /* by region: its index in the slice, -1: none */
} Slicer;

static inline bool begins_region(RowKind kind) { return row_begins(kind); }

static inline bool frames(RowKind kind) { return begins_region(kind) || row_ends(kind); }

/* A region is kept if it contains a kept row. */
static void keep_row(Slicer *s, int at) {
    s->kept[at] = true;
    for (int r = s->code->rows.items[at].region; r >= 0; r = s->code->regions.items[r].parent)
        s->regions[r] = true;
}

/* True if the LEAVE has no effect on kept rows: control would reach its target anyway. */
static bool has_no_effect(const Slicer *s, int leave) {
    const Row *from = &s->code->rows.items[leave];
    for (int at = leave + 1;;) {
        const Row *row = &s->code->rows.items[at];
        const Region *region = &s->code->regions.items[row->region];
        bool target = row->region == from->target, kept = s->regions[row->region];
        if (row->kind == ROW_EXIT) return false;
        if (row->kind == ROW_NEXT && target) return from->again;
        if (row->kind == ROW_NEXT && kept) return false;
        if (row->kind == ROW_END && target) return !from->again;
        if (begins_region(row->kind) ? kept : s->kept[at]) return false;
        if (begins_region(row->kind))
            at = region->end + 1;
        else
            at = row->kind == ROW_ELSE || row->kind == ROW_NEXT ? region->end : at + 1;
    }
}

/* A LEAVE is kept if it skips kept rows; these may be LEAVEs. */
static void keep_leaves(Slicer *s) {
    for (bool more = true; more;) {
        more = false;
        for (int at = (int)s->code->rows.count; at-- > 0;) {
            const Row *row = &s->code->rows.items[at];
            if (row->kind != ROW_LEAVE || s->kept[at] || !s->regions[row->target]) continue;
            if (has_no_effect(s, at)) continue;
            keep_row(s, at);
            more = true;
        }
    }
}

/* A BLOCK without LEAVEs is replaced by its rows. */
static void drop_blocks(Slicer *s) {
    bool *left = s->regions;
    for (size_t r = 1; r < s->code->regions.count; r++) {
        RegionKind kind = s->code->regions.items[r].kind;
        if (kind == REGION_BLOCK || kind == REGION_TURN) left[r] = false;
    }
    for (size_t at = 0; at < s->code->rows.count; at++)
        if (s->kept[at] && s->code->rows.items[at].kind == ROW_LEAVE)
            left[s->code->rows.items[at].target] = true;
}

static int outer_kept(const Slicer *s, int region) {
    while (region >= 0 && !s->regions[region]) region = s->code->regions.items[region].parent;
    return region < 0 ? -1 : s->numbers[region];
}

static void copy_regions(Slicer *s, Arena *arena, FlowCode *out) {
    for (size_t r = 0; r < s->code->regions.count; r++) {
        if (!s->regions[r]) continue;
        Region region = s->code->regions.items[r];
        s->numbers[r] = (int)out->regions.count;
        region.parent = outer_kept(s, region.parent);
        const Region *parent = region.parent < 0 ? NULL : &out->regions.items[region.parent];
        bool loops = region_loops(&region);
        region.loop = loops ? s->numbers[r] : parent ? parent->loop : -1;
        region.depth = (parent ? parent->depth : 0) + loops;
        region.begin = s->rows[region.begin], region.end = s->rows[region.end];
        if (region.next >= 0) region.next = s->rows[region.next];
        if (region.otherwise >= 0) region.otherwise = s->rows[region.otherwise];
        vec_push(arena, &out->regions, region);
        vec_push(arena, &out->whole_regions, (int)r);
    }
}

static int number_rows(Slicer *s) {
    int count = 0;
    for (size_t at = 0; at < s->code->rows.count; at++) {
        const Row *row = &s->code->rows.items[at];
        if (frames(row->kind)) s->kept[at] = s->regions[row->region];
        s->rows[at] = count;
        count += s->kept[at];
    }
    return count;
}

static void copy_rows(Slicer *s, Arena *arena, FlowCode *out, int count) {
    vec_reserve(arena, (void **)&out->rows.items, &out->rows.capacity, (size_t)count, sizeof(Row));
    vec_reserve(arena, (void **)&out->whole_rows.items, &out->whole_rows.capacity, (size_t)count,
                sizeof(int));
    for (size_t at = 0; at < s->code->rows.count; at++) {
        if (!s->kept[at]) continue;
        vec_push(arena, &out->rows, s->code->rows.items[at]);
        Row *row = &out->rows.items[out->rows.count - 1];
        row->region = outer_kept(s, row->region);
        if (row->kind == ROW_LEAVE) row->target = s->numbers[row->target];
        vec_push(arena, &out->whole_rows, (int)at);
    }
}

FlowCode *code_slice(Arena *arena, const FlowCode *code, Keeps *keeps, const void *data) {
    size_t rows = code->rows.count, regions = code->regions.count;
    Slicer s = {.code = code,
                .kept = NEW_ARRAY(arena, bool, rows + 1),
                .regions = NEW_ARRAY(arena, bool, regions + 1)};
    s.rows = NEW_ARRAY(arena, int, rows + 1);
    s.numbers = NEW_ARRAY(arena, int, regions + 1);
    s.regions[0] = true;
    for (size_t at = 0; at < rows; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind == ROW_EXIT)
            s.kept[at] = true;
        else if (row->kind != ROW_LEAVE && !frames(row->kind) && keeps(code, row, data))
            keep_row(&s, (int)at);
    }
    keep_leaves(&s);
    drop_blocks(&s);
    int count = number_rows(&s);
    FlowCode *out = NEW(arena, FlowCode);
    *out = (FlowCode){.prog = code->prog, .role = code->role, .algebra = code->algebra};
    copy_regions(&s, arena, out);
    copy_rows(&s, arena, out, count);
    for (size_t i = 0; i < code->lates.count; i++) {
        Late late = code->lates.items[i];
        if (late.loop >= 0) late.loop = outer_kept(&s, late.loop);
        vec_push(arena, &out->lates, late);
    }
#if defined(__SANITIZE_ADDRESS__)
    if (!code_valid(arena, out, NULL)) abort();
#endif
    return out;
}
