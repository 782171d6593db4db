/* The sides of a part: for each role a slice with its operations on the part's pipes, the loops
 * of the slice with their tracks, and its conditions as questions. */
#include "check/deadlock/deadlock_search.h"

#define ROWS_MOST 100000 /* most rows of a slice */

/* ---- the slice ------------------------------------------------------------------------------- */

typedef struct Wanted {
    const Part *part;
    const Side *side;
} Wanted;

static bool takes(const Side *side, int handle) {
    return valid_index(handle, side->role->handles.count) && side->taken[handle];
}

static bool keeps(const FlowCode *code, const Row *row, const void *data) {
    const Wanted *wanted = data;
    const Side *side = wanted->side;
    if (side->without[row - code->rows.items]) return false;
    if (row_in_turn(row->kind)) return role_is_several(side->role);
    if (row->kind == ROW_FLUSH)
        return code->lates.items[row->late].lag > 0 &&
               takes(side, code->lates.items[row->late].handle);
    return row_changes_hold(row->kind) && takes(side, row->handle);
}

/* The rows for the part's pipes that are not in side->without */
static FlowCode *part_slice(const Part *part, const Side *side) {
    const Wanted wanted = {part, side};
    FlowCode *slice = code_slice(part->arena, side->role->code, keeps, &wanted);
    for (size_t at = 0; at < slice->rows.count; at++) {
        int handle = side->released[slice->whole_rows.items[at]];
        if (handle >= 0) slice->rows.items[at].handle = handle;
    }
    pieces_open(part->arena, slice);
    return slice;
}

static int mentions(const FlowCode *slice, int handle) {
    int count = 0;
    for (size_t at = 0; at < slice->rows.count; at++) {
        const Row *row = &slice->rows.items[at];
        if (row_changes_hold(row->kind)) count += row->handle == handle;
        if (row->kind == ROW_MOVE) count += row->other == handle;
    }
    return count;
}

/* A stage that is moved to a variable which is then only released, as by a function: the release
 * is attributed to the first variable. */
static bool release_in_place(Side *side) {
    bool found = false;
    for (size_t at = 0; at + 1 < side->slice->rows.count; at++) {
        const Row *move = &side->slice->rows.items[at], *release = move + 1;
        if (move->kind != ROW_MOVE || release->kind != ROW_RELEASE ||
            move->handle != release->handle)
            continue;
        if (!takes(side, move->other) || mentions(side->slice, move->handle) != 2) continue;
        side->without[side->slice->whole_rows.items[at]] = true;
        side->released[side->slice->whole_rows.items[at + 1]] = move->other;
        found = true;
    }
    return found;
}

static void find_taken(const Part *part, Side *side) {
    const Prog *prog = part->prog;
    int index = (int)(side->role - prog->roles.items);
    side->taken = NEW_ARRAY(part->arena, bool, side->role->handles.count + 1);
    for (size_t h = 0; h < side->role->handles.count; h++) {
        const Handle *handle = &side->role->handles.items[h];
        if (!valid_index(handle->pipe, prog->pipes.count) || !part->consumes[handle->pipe])
            continue;
        side->taken[h] = handle->end == END_PRODUCE
                             ? prog->pipes.items[handle->pipe].producer == index
                             : part->consumes[handle->pipe][index];
    }
}

/* ---- loops and conditions -------------------------------------------------------------------- */

static int loop_around(const FlowCode *slice, int region) {
    int parent = slice->regions.items[region].parent;
    return parent < 0 ? -1 : slice->regions.items[parent].loop;
}

/* The list that contains a region: the body of a loop, one arm of an IF, a block with leaves */
static int arm_of(const FlowCode *slice, const Region *region) {
    if (region->parent < 0) return 0;
    const Region *parent = &slice->regions.items[region->parent];
    return 2 * region->parent + (parent->kind == REGION_IF && region->begin > parent->otherwise);
}

/* Pipes acquired or released in the loop's rows; and those that are acquired in other rows too */
static uint64_t pipes_used(const Part *part, const Side *side, const Region *loop, bool inside) {
    uint64_t pipes = 0;
    for (size_t at = 0; at < side->slice->rows.count; at++) {
        const Row *row = &side->slice->rows.items[at];
        bool is_inside = (int)at > loop->begin && (int)at < loop->end;
        if (is_inside != inside || !takes(side, row->handle)) continue;
        if (row->kind != ROW_ACQUIRE &&
            (!inside || (row->kind != ROW_RELEASE && row->kind != ROW_MOVE)))
            continue;
        pipes |= UINT64_C(1) << part_pipe(part, side->role->handles.items[row->handle].pipe);
    }
    return pipes;
}

static bool add_loop(Part *part, int index, int region) {
    Side *side = &part->sides.items[index];
    const Region *row = &side->slice->regions.items[region];
    if (row->depth > DEPTH_MOST) {
        part->beyond = "these loops are nested too deeply";
        part->beyond_at = row->head;
        return false;
    }
    Loop loop = {.region = row,
                 .outer = loop_around(side->slice, region),
                 .depth = row->depth,
                 .left = row->left};
    loop.arm = arm_of(side->slice, row);
    bool fine = part_loop(part, index, region, &loop, pipes_used(part, side, row, true),
                          pipes_used(part, side, row, false));
    side->loops[region] = loop;
    return fine;
}

/* Truth of the condition on its path */
static Certainty path_decides(const Part *part, const Side *side, const Region *row) {
    FlowCode *code = side->role->code;
    int at = side->slice->whole_rows.items[row->begin];
    if (!part->proves) return NOT_CERTAIN;
    PathMark mark = values_assume(part->arena, code, at);
    Bindings before = values_at(part->arena, code, at);
    Certainty decided = algebra_decides(code->algebra, side->role, row->condition);
    (void)algebra_hold(code->algebra, before);
    algebra_undo(code->algebra, mark);
    return decided;
}

static bool add_condition(Part *part, int index, int region) {
    Side *side = &part->sides.items[index];
    const Region *row = &side->slice->regions.items[region];
    if (!row->condition) {
        part->beyond = "the value of this condition is unknown";
        part->beyond_at = row->head;
        return false;
    }
    bool piece = row->from && side->loops[row->loop].piece;
    Certainty decided = piece ? CERTAINLY : row->from ? NOT_CERTAIN : path_decides(part, side, row);
    if (decided != NOT_CERTAIN) {
        side->conditions[region] = decided == CERTAINLY ? QUESTION_YES : QUESTION_NO;
        return true;
    }
    size_t before = side->questions.count;
    side->conditions[region] = part_condition(part, index, row);
    for (size_t q = before; q < side->questions.count; q++)
        side->questions.items[q].region = region;
    return true;
}

/* ---- last use of decisions ------------------------------------------------------------------- */

/* The last step that needs each number: for one in an inner loop the end of that loop, because
 * it repeats */
static void note(Part *part, int index, int which, int step, const Loop *loop) {
    Number *number = &part->numbers.items[which];
    for (; loop && loop->track != number->track; loop = loop_of(part, index, loop->outer))
        step = 2 * loop->region->next;
    if (step > number->last[index]) number->last[index] = step;
}

static void note_questions(Part *part, int index) {
    const Side *side = &part->sides.items[index];
    for (size_t q = 0; q < side->questions.count; q++) {
        const Question *question = &side->questions.items[q];
        const Region *region = &side->slice->regions.items[question->region];
        note(part, index, question->number, 2 * region->begin, loop_of(part, index, region->loop));
    }
    for (size_t r = 0; r < side->slice->regions.count; r++) {
        const Region *region = &side->slice->regions.items[r];
        const Loop *loop = loop_of(part, index, region->loop);
        for (int b = 0; region_loops(region) && b < loop->bound_count; b++)
            if (loop->bounds[b].number >= 0)
                note(part, index, loop->bounds[b].number, 2 * region->begin + 1, loop);
    }
}

static void note_carried(const Part *part, Side *side) {
    const FlowCode *slice = side->slice;
    side->carried = NEW_ARRAY(part->arena, int, slice->rows.count + 1);
    for (size_t at = 0; at < slice->rows.count; at++) side->carried[at] = -1;
    for (size_t r = 0; r < slice->regions.count; r++) {
        const Loop *loop = &side->loops[r];
        if (!loop->region || loop->after < 0) continue;
        for (int at = side->loops[loop->after].region->end + 1; at <= loop->region->begin; at++)
            side->carried[at] = loop->after;
    }
}

/* ---- a side ---------------------------------------------------------------------------------- */

/* Removes rows in arms that their path proves to be dead; false: there are none */
static bool leave_out_dead(const Part *part, Side *side) {
    bool found = false;
    for (size_t r = 1; r < side->slice->regions.count; r++) {
        const Region *branch = &side->slice->regions.items[r];
        if (branch->kind != REGION_IF || !branch->condition || branch->from) continue;
        Certainty decided = path_decides(part, side, branch);
        if (decided == NOT_CERTAIN) continue;
        const Region *whole = &side->role->code->regions.items[side->slice->whole_regions.items[r]];
        int at = decided == CERTAINLY ? whole->otherwise : whole->begin;
        int end = decided == CERTAINLY ? whole->end : whole->otherwise;
        for (; at < end; at++) side->without[at] = true;
        found = true;
    }
    return found;
}

/* The slice without facts about loops; true: dead rows were removed */
static bool slice_side(Part *part, Side *side) {
    size_t rows = side->role->code->rows.count;
    find_taken(part, side);
    side->without = NEW_ARRAY(part->arena, bool, rows + 1);
    side->released = NEW_ARRAY(part->arena, int, rows + 1);
    for (size_t at = 0; at < rows; at++) side->released[at] = -1;
    side->slice = part_slice(part, side);
    while (release_in_place(side)) side->slice = part_slice(part, side);
    if (!part->drops || !leave_out_dead(part, side)) return false;
    side->slice = part_slice(part, side);
    return true;
}

/* False: no role has its loop in pieces */
static bool cut_sides(Part *part) {
    size_t count = part->sides.count;
    FlowCode **slices = NEW_ARRAY(part->arena, FlowCode *, count + 1);
    for (size_t i = 0; i < count; i++) slices[i] = part->sides.items[i].slice;
    bool cut = pieces_cut(part->arena, part->algebra[0], slices, count);
    for (size_t i = 0; i < count; i++) part->sides.items[i].slice = slices[i];
    return cut;
}

static bool compile(Part *part, int index) {
    Side *side = &part->sides.items[index];
    part->beyond_at = side->role->span;
    if (side->slice->rows.count > ROWS_MOST) return part->beyond = "the role is too long", false;
    *side = (Side){.role = side->role, .slice = side->slice, .taken = side->taken};
    side->loops = NEW_ARRAY(part->arena, Loop, side->slice->regions.count + 1);
    side->conditions = NEW_ARRAY(part->arena, int, side->slice->regions.count + 1);
    for (size_t r = 0; r < side->slice->regions.count; r++) {
        const Region *region = &side->slice->regions.items[r];
        if (region_loops(region) && !add_loop(part, index, (int)r)) return false;
        if (region->kind == REGION_IF && !add_condition(part, index, (int)r)) return false;
    }
    note_questions(part, index);
    note_carried(part, side);
    return true;
}

static bool compile_all(Part *part) {
    part->tracks.count = part->numbers.count = part->views.count = part->groups.count = 0;
    for (size_t r = 0; r < part->roles.count; r++)
        if (!compile(part, (int)r)) return false;
    return true;
}

bool part_compile(Part *part) {
    for (size_t r = 0; r < part->roles.count; r++)
        vec_push(part->arena, &part->sides,
                 (Side){.role = &part->prog->roles.items[part->roles.items[r]]});
    part->beyond_at = part->sides.items[0].role->span;
    bool dropped = false;
    for (size_t r = 0; r < part->roles.count; r++)
        dropped |= slice_side(part, &part->sides.items[r]);
    if (part->drops && !dropped) return false;
    if (part->cuts && !cut_sides(part)) return false;
    /* repeats for each loop that is excluded */
    for (size_t excluded = 0;; excluded = part->excluded.count) {
        if (compile_all(part)) {
            part_order(part);
            return true;
        }
        if (part->beyond || part->excluded.count == excluded) return false;
    }
}
