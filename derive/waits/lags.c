/* Lags: the number of iterations by which a `consume` block delays its release. A written lag is
 * checked. Otherwise, a block whose stage is only read by bulk stores or matrix instructions
 * releases one iteration later if that creates no new deadlock, so that the next ones are issued
 * before the last ones are done. */
#include "derive/waits/lags.h"

static void refuse_produce(const Prog *prog, const FlowCode *code, const Row *row, Diags *diags) {
    Diag *diag = diag_at(diags, P0312, row->head, "`lag` on a `produce` block");
    diag_primary(diags, diag, "consumers of `%s` would wait for the delayed stage",
                 prog->pipes.items[code->role->handles.items[row->handle].pipe].name);
    diag_help(diags, diag, "remove `lag`: it delays the release of a `consume` block");
}

static void refuse_place(const FlowCode *code, const Row *row, Diags *diags) {
    int loop = code->regions.items[row->region].loop;
    Diag *diag = diag_at(diags, P0312, row->head,
                         "a block with `lag` must be directly in the body of a loop");
    diag_primary(diags, diag, "to be released %d iteration%s later", row->lag,
                 row->lag == 1 ? "" : "s");
    if (loop >= 0)
        diag_label(diags, diag, code->regions.items[loop].head, "not directly in this one");
    if (code->regions.items[row->region].from)
        diag_note(
            diags, diag,
            "the loop runs over a part of a range with `where`, so its body is under a condition");
    diag_help(diags, diag,
              "move the block directly into the body of the loop, outside of conditions, or remove "
              "`lag`");
}

static bool known(const Prog *prog, const FlowCode *code, int handle) {
    const Role *role = code->role;
    return valid_index(handle, role->handles.count) && !role->handles.items[handle].forgotten &&
           valid_index(role->handles.items[handle].pipe, prog->pipes.count);
}

void lags_written(const Prog *prog, FlowCode *code, Diags *diags) {
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind != ROW_ACQUIRE || row->lag < 0) continue;
        Late *late = row->late < 0 ? NULL : &code->lates.items[row->late];
        if (!known(prog, code, row->handle)) {
            if (late) late->lag = 0;
        } else if (code->role->handles.items[row->handle].end == END_PRODUCE) {
            refuse_produce(prog, code, row, diags);
        } else if (row->lag > 0 && !(late && late->direct)) {
            refuse_place(code, row, diags);
            if (late) late->lag = 0;
        }
    }
}

/* ---- derived --------------------------------------------------------------------------------- */

typedef struct Scan {
    const Row *row;
    int handle;
    bool asynchronous;      /* a bulk store or matrix instruction reads the stage */
    bool touched_otherwise; /* another row accesses it */
} Scan;

static bool reads_asynchronously(const Tile *tile, const Access *access) {
    if (tile->class == TILE_MMA) return access == tile->mma.a.tile || access == tile->mma.b.tile;
    return tile_is_store(tile) && access == tile->value->read;
}

static void scan_access(Access *access, bool written, void *data) {
    Scan *scan = data;
    if (access->space != SPACE_STAGE || access->object != scan->handle) return;
    const Tile *tile = scan->row->kind == ROW_TILE ? scan->row->tile : NULL;
    if (!written && tile && reads_asynchronously(tile, access))
        scan->asynchronous = true;
    else
        scan->touched_otherwise = true;
}

/* True if only asynchronous operations read the stage, in a loop without other acquires and
 * without early exits. The number of a tile does not wait for the release of a stage. */
static bool pays(Arena *arena, const FlowCode *code, const Late *late) {
    const Region *loop = &code->regions.items[late->loop];
    Scan scan = {.handle = late->handle};
    for (int at = loop->begin + 1; at < loop->next; at++) {
        scan.row = &code->rows.items[at];
        bool acquires = scan.row->kind == ROW_ACQUIRE && at != late->acquire && !scan.row->every;
        if (scan.row->kind == ROW_LEAVE || acquires) return false;
        scan.touched_otherwise |= scan.row->unsafe && scan.row->unsafe->handle == late->handle;
        row_accesses(arena, code, scan.row, scan_access, &scan);
        if (scan.touched_otherwise) return false;
    }
    return scan.asynchronous;
}

/* Number of stages that the producer of a pipe holds at once; -1: unknown */
static int produced(const Prog *prog, int pipe) {
    int role = prog->pipes.items[pipe].producer;
    const Held *held =
        valid_index(role, prog->roles.count) ? prog->roles.items[role].code->held : NULL;
    return held ? held->ends[2 * pipe + END_PRODUCE].most : -1;
}

static bool lags(Arena *arena, const Prog *prog, const FlowCode *code, const Late *late) {
    const Role *role = code->role;
    const Pipe *pipe = &prog->pipes.items[role->handles.items[late->handle].pipe];
    const Held *held = code->held;
    int most = produced(prog, role->handles.items[late->handle].pipe);
    if (!late->direct || most < 0 || most > 1) return false;
    if (pipe->stages < 2 || held->at[late->acquire] >= pipe->stages) return false;
    bool grid = code->regions.items[late->loop].kind == REGION_GRID;
    if (grid && !prog->persistent) return false; /* one iteration */
    if (grid && role->in_turn) return false; /* held during the iterations of the other instances */
    return pays(arena, code, late);
}

bool lags_derive(Arena *arena, const Prog *prog, FlowCode *code) {
    /* number of blocks directly in each loop */
    int *directly = NEW_ARRAY(arena, int, code->regions.count + 1);
    bool any = false;
    for (size_t i = 0; i < code->lates.count; i++)
        directly[code->lates.items[i].loop] += code->lates.items[i].direct;
    for (size_t i = 0; i < code->lates.count; i++) {
        Late *late = &code->lates.items[i];
        if (code->rows.items[late->acquire].lag >= 0 || !known(prog, code, late->handle)) continue;
        if (directly[late->loop] > 1 || !lags(arena, prog, code, late))
            continue; /* bounds the work for a loop with many blocks */
        late->lag = 1;
        any = true;
    }
    return any;
}
