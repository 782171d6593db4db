/* Runs a program by the language reference: the roles of each block as processes over rings of
 * stages, one after the other until none can continue. The order does not affect the results. */
#include "tests/adversary/machine.h"

#include <string.h>

#define STEPS_MOST 150000

const char *const harm_names[HARMS] = {"none",
                                       "unwritten value",
                                       "part of a stage",
                                       "bytes of a stage",
                                       "stages",
                                       "outside",
                                       "threads",
                                       "race",
                                       "hang",
                                       "counts",
                                       "padding",
                                       "carried",
                                       "arrivals",
                                       "hint",
                                       "too long"};

/* ---- rings ----------------------------------------------------------------------------------- */

static int instances_of(const Role *role) { return role->in_turn ? 1 : role->instances; }

Slot *slot_of(Machine *m, int pipe, int number) {
    Ring *ring = &m->rings[pipe];
    const Pipe *row = &m->program->pipes[pipe];
    while ((int)ring->slots.count <= number) {
        Slot *slot = NEW(m->arena, Slot);
        for (int f = 0; f < row->field_count; f++) {
            int64_t count = row->fields[f].extents[0];
            if (row->fields[f].rank > 1) count *= row->fields[f].extents[1];
            slot->cells[f] = NEW_ARRAY(m->arena, Cell, count);
        }
        vec_push(m->arena, &ring->slots, slot);
    }
    return ring->slots.items[number];
}

static bool payload_written(const Machine *m, int pipe, const Slot *slot) {
    const Pipe *row = &m->program->pipes[pipe];
    for (int f = 0; f < row->field_count; f++) {
        int64_t count = row->fields[f].extents[0];
        if (row->fields[f].rank > 1) count *= row->fields[f].extents[1];
        for (int64_t i = 0; i < count; i++)
            if (!slot->cells[f][i].set) return false;
    }
    return true;
}

static void join_clock(uint32_t *clock, const uint32_t *other) {
    for (int i = 0; i < PROCESSES; i++)
        if (other[i] > clock[i]) clock[i] = other[i];
}

/* False: the process must wait. */
static bool acquire(Machine *m, Process *p, const Stmt *stmt) {
    int number = p->cursors[stmt->pipe][stmt->produce], depth = m->program->pipes[stmt->pipe].depth;
    Held *held = &p->handles[stmt->local];
    if (stmt->hint >= 0 && !p->skipping && p->hints[stmt->hint] != number)
        machine_harm(m, HARM_HINT);
    if (!p->skipping) {
        Ring *ring = &m->rings[stmt->pipe];
        if (stmt->produce && number >= depth) {
            Slot *before = slot_of(m, stmt->pipe, number - depth);
            if (before->drains < ring->drains_wanted) return false;
            join_clock(p->clock, before->empty);
        }
        Slot *slot = slot_of(m, stmt->pipe, number);
        if (!stmt->produce) {
            if (slot->fills < ring->fills_wanted) return false;
            join_clock(p->clock, slot->full);
        }
        if (held->held) machine_harm(m, HARM_LINEAR);
        *held =
            (Held){.held = true, .produce = stmt->produce, .pipe = stmt->pipe, .number = number};
    }
    p->cursors[stmt->pipe][stmt->produce]++;
    return true;
}

static void hand_over(Machine *m, Process *p, const Held *held) {
    Slot *slot = slot_of(m, held->pipe, held->number);
    Ring *ring = &m->rings[held->pipe];
    join_clock(held->produce ? slot->full : slot->empty, p->clock);
    p->clock[p->number]++;
    if (!held->produce) {
        slot->drains++;
        return;
    }
    if (++slot->fills < ring->fills_wanted) return;
    if (!payload_written(m, held->pipe, slot)) machine_harm(m, HARM_PAYLOAD);
    if (ring->bytes < 0) ring->bytes = slot->bytes;
    if (ring->bytes != slot->bytes) machine_harm(m, HARM_BYTES);
}

static void release(Machine *m, Process *p, const Stmt *stmt) {
    if (p->skipping) return;
    Held *held = &p->handles[stmt->local];
    if (!held->held) {
        machine_harm(m, HARM_LINEAR);
        return;
    }
    if (stmt->kind == S_DROP) { /* the other threads have arrived already */
        int share = m->program->pipes[held->pipe].arrivals / instances_of(p->role);
        if (slot_of(m, held->pipe, held->number)->arrivals < share || !held->arrived)
            machine_harm(m, HARM_ARRIVALS);
    }
    hand_over(m, p, held);
    held->held = false;
}

static void arrive(Machine *m, Process *p, const Stmt *stmt) {
    Held *held = &p->handles[stmt->local];
    if (p->skipping) return;
    if (!held->held) {
        machine_harm(m, HARM_LINEAR);
        return;
    }
    int lanes = 0, warps = p->role->warpgroups ? 4 : p->role->warps;
    for (p->lane = 0; p->lane < 32; p->lane++)
        lanes += stmt->condition == NULL || decide(m, p, stmt->condition) != 0;
    Slot *slot = slot_of(m, held->pipe, held->number);
    slot->arrivals += lanes * warps;
    if (slot->arrivals > m->program->pipes[held->pipe].arrivals) machine_harm(m, HARM_ARRIVALS);
    held->arrived =
        slot->arrivals * instances_of(p->role) >= m->program->pipes[held->pipe].arrivals;
}

/* ---- late releases --------------------------------------------------------------------------- */

static void take_late(Machine *m, Process *p, size_t at) {
    Held held = p->late.items[at].held;
    for (size_t i = at + 1; i < p->late.count; i++) p->late.items[i - 1] = p->late.items[i];
    p->late.count--;
    hand_over(m, p, &held);
}

static void keep(Machine *m, Process *p, const Instr *instr) {
    Held *held = &p->handles[instr->stmt->local];
    if (p->skipping) return;
    if (!held->held) {
        machine_harm(m, HARM_LINEAR);
        return;
    }
    vec_push(m->arena, &p->late, (Late){instr->stmt, instr->loop, *held});
    held->held = false;
    int count = 0;
    size_t oldest = p->late.count;
    for (size_t i = p->late.count; i-- > 0;)
        if (p->late.items[i].block == instr->stmt) count++, oldest = i;
    if (count > instr->stmt->lag) take_late(m, p, oldest);
}

static void flush(Machine *m, Process *p, const Stmt *loop) {
    for (size_t i = 0; i < p->late.count;)
        if (p->late.items[i].loop == loop)
            take_late(m, p, i);
        else
            i++;
}

/* ---- statements ------------------------------------------------------------------------------ */

static void declare(Machine *m, Process *p, const Stmt *stmt) {
    const Local *local = &m->program->locals[stmt->local];
    if (local->kind == LOCAL_SCALAR) {
        p->set[stmt->local] = stmt->value != NULL;
        if (stmt->value != NULL) p->env[stmt->local] = evaluate_expr(m, p, stmt->value);
        return;
    }
    int64_t count = (int64_t)local->extents[0] * (local->rank > 1 ? local->extents[1] : 1);
    Value value = {.v = POISON, .w = POISON};
    if (stmt->value != NULL) value = evaluate_expr(m, p, stmt->value);
    if (p->tiles[stmt->local] == NULL) p->tiles[stmt->local] = NEW_ARRAY(m->arena, Cell, count);
    for (int64_t i = 0; i < count; i++)
        p->tiles[stmt->local][i] = (Cell){.v = value.v,
                                          .w = value.w,
                                          .real = value.real,
                                          .r = value.r,
                                          .set = stmt->value != NULL,
                                          .pad = value.pad,
                                          .writer = p->number};
}

static void set_scalar(Machine *m, Process *p, const Stmt *stmt) {
    if (p->skipping &&
        (expr_mentions(stmt->value, X_FIELD, -1) || expr_mentions(stmt->value, X_TILE, -1)))
        return;
    Value value = evaluate_expr(m, p, stmt->value), *to = &p->env[stmt->local];
    padded_update(m, p, stmt, value);
    if (stmt->op != '=') {
        if (!p->set[stmt->local]) machine_harm(m, HARM_UNWRITTEN);
        Op op = stmt->op == '+' ? DO_ADD : DO_SUB;
        uint32_t sign = stmt->op == '+' ? 1 : UINT32_MAX;
        if (value.real) value.r = real_operate(op, to->r, value.r, (Real){0});
        value.v = (int32_t)((uint32_t)to->v + sign * (uint32_t)value.v);
        value.w = value.pad ? to->w : (int32_t)((uint32_t)to->w + sign * (uint32_t)value.w);
        value.pad = to->pad;
        if (m->program->tails) value.w = value.v;
    }
    *to = value;
    p->set[stmt->local] = true;
}

static void move(Machine *m, Process *p, const Stmt *stmt) {
    if (p->skipping) return;
    Held *from = &p->handles[stmt->other], *to = &p->handles[stmt->local];
    if (!from->held || (to->held && !stmt->fresh)) machine_harm(m, HARM_LINEAR);
    *to = *from;
    from->held = false;
}

/* Numbers are passed by value, so they are read by every call. */
static void call(Machine *m, Process *p, const Stmt *stmt) {
    Params params = call_params(m->program, m->arena, stmt);
    for (size_t i = 0; i < params.count && !p->skipping; i++)
        if (params.items[i].kind == PARAM_SCALAR && !params.items[i].written &&
            !p->set[params.items[i].of])
            machine_harm(m, HARM_UNWRITTEN);
}

static void run_stmt(Machine *m, Process *p, const Stmt *stmt) {
    switch (stmt->kind) {
    case S_DECLARE: declare(m, p, stmt); break;
    case S_SET: set_scalar(m, p, stmt); break;
    case S_MOVE: move(m, p, stmt); break;
    case S_ARRIVE: arrive(m, p, stmt); break;
    case S_CALL: call(m, p, stmt); break;
    case S_TILE:
        if (!p->skipping) run_assignment(m, p, stmt);
        break;
    case S_CONTRACT:
        if (!p->skipping) run_contraction(m, p, stmt);
        break;
    case S_HINT: p->hints[stmt->local] = p->cursors[stmt->pipe][stmt->produce]; break;
    case S_FOR:
    case S_GRID:
    case S_IF:
    case S_LEAVE:
    case S_STAGE:
    case S_ACQUIRE:
    case S_RELEASE:
    case S_DROP:
    case S_TURN:
    case S_UNSAFE:
    case S_EVENT:
    case S_ROTATE: break;
    }
}

/* ---- control --------------------------------------------------------------------------------- */

/* Ends a turn: the next instance sees all earlier effects. */
static void pass(Machine *m, Process *p) {
    if (p->skipping) return;
    m->passed[p->role_number]++;
    p->turns++;
    join_clock(m->turned[p->role_number], p->clock);
    p->clock[p->number]++;
}

static void enter(Machine *m, Process *p, const Stmt *stmt) {
    if (stmt->kind == S_GRID) {
        p->tile = m->block - m->blocks;
        p->iteration = -1;
        return;
    }
    const Expr *hi = stmt->range >= 0 ? m->program->ranges[stmt->range] : stmt->hi;
    int32_t lo = decide(m, p, stmt->lo), end = decide(m, p, hi), part = end;
    if (stmt->sliced && stmt->hi != NULL) part = decide(m, p, stmt->hi);
    if (stmt->inside != NULL && m->inside) part = decide(m, p, stmt->inside);
    bool less = part < end && (stmt->inside == NULL || part > lo);
    p->hi[stmt->local] = less ? part : end;
    p->env[stmt->local] = (Value){.v = lo, .w = lo};
    p->set[stmt->local] = true;
}

/* Advances to the next iteration of the range. */
static void skip_iterations(Machine *m, Process *p, const Stmt *loop) {
    const Expr *where = loop->range >= 0 ? m->program->wheres[loop->range] : NULL;
    if (where == NULL) return;
    int counter = m->program->counters[loop->range];
    Value *at = &p->env[loop->local];
    for (; at->v < p->hi[loop->local]; at->v++, at->w++) {
        p->env[counter] = *at;
        p->set[counter] = true;
        if (decide(m, p, where) != 0) return;
    }
}

/* Sets the coordinates of the tile: of its cluster, and of its block there. There are none after
 * the loop. */
static void set_axes(const Machine *m, Process *p) {
    int size = cluster_size(m->program);
    bool ended = p->tile < 0;
    int64_t cluster = p->tile / size, block = p->tile % size;
    for (int a = m->program->axis_count; a-- > 0;) {
        const Axis *axis = &m->program->axes[a];
        int64_t clusters = ended ? 1 : m->extents[a] / axis->cluster;
        int64_t at = cluster % clusters * axis->cluster + block % axis->cluster;
        if (ended) at = p->tile;
        cluster /= clusters;
        block /= axis->cluster;
        p->env[axis->local] = (Value){.v = (int32_t)at, .w = (int32_t)at};
        p->set[axis->local] = true;
    }
}

static void test(Machine *m, Process *p, const Instr *instr) {
    const Stmt *stmt = instr->stmt;
    if (stmt->kind == S_FOR) {
        skip_iterations(m, p, stmt);
        if (p->env[stmt->local].v >= p->hi[stmt->local]) p->pc = instr->target;
        return;
    }
    p->tile += m->blocks;
    p->iteration++;
    p->taken++;
    p->begun += p->tile < m->tiles;
    p->skipping = p->role->in_turn && p->iteration % p->role->instances != p->instance;
    if (p->tile >= m->tiles) {
        p->pc = instr->target;
        p->tile = -3 - m->block;
        p->skipping = false;
    }
    set_axes(m, p);
}

static void end(Machine *m, Process *p) {
    p->ended = true;
    for (int i = 0; i < m->program->local_count; i++)
        if (p->handles[i].held) machine_harm(m, HARM_LINEAR);
    if (p->late.count > 0) machine_harm(m, HARM_LINEAR);
}

static bool is_unset(const Process *p, const Expr *expr) {
    if (expr == NULL) return false;
    if (expr->kind == X_LOCAL && !p->set[expr->of]) return true;
    return is_unset(p, expr->a) || is_unset(p, expr->b) || is_unset(p, expr->c);
}

/* In the turn of another instance, variables that stages set have no value: what they decide is
 * not executed. */
static bool is_skipped(const Process *p, const Stmt *branch) {
    return p->skipping && is_unset(p, branch->condition);
}

/* Padding decides nothing in the run without it. */
static bool takes_arm(Machine *m, Process *p, const Stmt *stmt) {
    bool ignores = m->inside && m->program->edges;
    m->deciding++;
    Value truth = evaluate_expr(m, p, stmt->condition);
    m->deciding--;
    return truth.v != 0 && !(ignores && truth.pad);
}

/* Executes one instruction. False: the process must wait. */
static bool step(Machine *m, Process *p) {
    const Instr *instr = &p->code->items[p->pc];
    const Stmt *stmt = m->stmt = instr->stmt;
    int turn = p->turns * p->role->instances + p->instance;
    if (instr->kind == I_ACQUIRE && !acquire(m, p, stmt)) return false;
    if (instr->kind == I_GRID && !draws_have_next(m, p)) return false;
    if (instr->kind == I_TAKE && !p->skipping && m->passed[p->role_number] < turn) return false;
    p->pc++;
    m->steps++;
    if (m->seen != NULL && stmt != NULL && !p->skipping && instr->kind != I_FLUSH)
        m->seen[stmt->number].ran = true;
    switch (instr->kind) {
    case I_STMT: run_stmt(m, p, stmt); break;
    case I_RELEASE: release(m, p, stmt); break;
    case I_KEEP: keep(m, p, instr); break;
    case I_FLUSH: flush(m, p, stmt); break;
    case I_ENTER: enter(m, p, stmt); break;
    case I_TEST:
    case I_GRID: test(m, p, instr); break;
    case I_NEXT: p->env[stmt->local].v++, p->env[stmt->local].w++; /* fall through */
    case I_GRID_NEXT:
    case I_JUMP: p->pc = instr->target; break;
    case I_BRANCH:
        if (is_skipped(p, stmt) || !takes_arm(m, p, stmt)) p->pc = instr->target;
        break;
    case I_TAKE:
        if (!p->skipping) join_clock(p->clock, m->turned[p->role_number]);
        break;
    case I_PASS: pass(m, p); break;
    case I_END: end(m, p); break;
    case I_ACQUIRE: break;
    }
    return true;
}

/* ---- blocks and grid ------------------------------------------------------------------------- */

static void start_block(Machine *m) {
    m->process_count = 0;
    memset(m->passed, 0, sizeof m->passed);
    memset(m->turned, 0, sizeof m->turned);
    for (int i = 0; i < m->program->pipe_count; i++) {
        const Pipe *pipe = &m->program->pipes[i];
        int64_t bytes = m->rings[i].bytes;
        m->rings[i] = (Ring){.bytes = m->block == 0 ? -1 : bytes};
        m->rings[i].fills_wanted = instances_of(&m->program->roles[pipe->producer]);
        for (int c = 0; c < pipe->consumer_count; c++)
            m->rings[i].drains_wanted += instances_of(&m->program->roles[pipe->consumers[c]]);
    }
    for (int r = 0; r < m->program->role_count; r++) {
        if (m->program->roles[r].body.count == 0) continue;
        for (int i = 0; i < m->program->roles[r].instances; i++) {
            Process *p = NEW(m->arena, Process);
            p->role = &m->program->roles[r];
            p->number = m->process_count;
            p->role_number = r;
            p->instance = i;
            p->code = &m->codes[r];
            p->tile = -3 - m->block;
            p->clock[p->number] = 1;
            for (int l = 0; l < MAX_LOCALS; l++) p->hints[l] = -1;
            m->processes[m->process_count++] = p;
        }
    }
}

static void check_counts(Machine *m) {
    for (int i = 0; i < m->program->pipe_count && m->harm == HARM_NONE; i++) {
        const Ring *ring = &m->rings[i];
        for (size_t n = 0; n < ring->slots.count; n++)
            if (ring->slots.items[n]->fills != ring->fills_wanted ||
                ring->slots.items[n]->drains != ring->drains_wanted)
                machine_harm(m, HARM_COUNTS);
    }
}

static void run_block(Machine *m) {
    start_block(m);
    bool any = true;
    int left = m->process_count;
    while (any && left > 0) {
        any = false;
        left = 0;
        for (int i = 0; i < m->process_count; i++) {
            Process *p = m->processes[i];
            while (!p->ended && m->harm == HARM_NONE && step(m, p)) {
                any = true;
                if (m->steps > STEPS_MOST) machine_harm(m, HARM_LONG);
            }
            if (m->harm != HARM_NONE) return;
            left += !p->ended;
        }
    }
    if (left > 0) machine_harm(m, HARM_HANG);
    check_counts(m);
}

static void fill_tensors(Machine *m) {
    for (int i = 0; i < m->program->tensor_count; i++) {
        m->counts[i] = 1;
        for (int d = 0; d < m->program->tensors[i].rank; d++)
            m->counts[i] *= tensor_extent(&m->program->tensors[i], d, m->sizes);
        m->tensors[i] = NEW_ARRAY(m->arena, GlobalCell, m->counts[i] + 1);
        for (int64_t e = 0; e < m->counts[i]; e++) {
            int32_t value = tensor_value(m->program, i, e, m->sizes);
            m->tensors[i][e] = (GlobalCell){.v = value, .w = value, .reader_tile = -1, .tile = -1};
            if (m->program->tensors[i].type >= TYPE_REAL)
                m->tensors[i][e].r = real_point(tensor_real(m->program, i, e, m->sizes));
        }
    }
}

static void look_at_results(Machine *m, Outcome *out) {
    for (int i = 0; i < m->program->tensor_count; i++) {
        if (m->program->tensors[i].mode == TENSOR_IN) continue;
        bool floats = m->program->tensors[i].type >= TYPE_REAL;
        out->results[i] = NEW_ARRAY(m->arena, int32_t, m->counts[i] + 1);
        if (floats) out->reals[i] = NEW_ARRAY(m->arena, Real, m->counts[i] + 1);
        for (int64_t e = 0; e < m->counts[i]; e++) {
            const GlobalCell *cell = &m->tensors[i][e];
            out->padded |= cell->v != cell->w && !m->program->tails;
            if ((m->program->matrix || m->program->edges) && cell->v != cell->w)
                machine_harm(m, HARM_PADDING);
            if (!cell_again(cell)) machine_harm(m, HARM_RACE);
            out->results[i][e] = cell->v;
            if (floats) out->reals[i][e] = cell->r;
        }
    }
}

/* Tiles and blocks are padded to whole clusters along each axis. */
static void count_blocks(Machine *m, int resident) {
    int size = cluster_size(m->program);
    Process *none = NEW(m->arena, Process);
    m->tiles = 1;
    for (int a = 0; a < m->program->axis_count; a++) {
        const Axis *axis = &m->program->axes[a];
        int64_t extent = evaluate_expr(m, none, axis->extent).v;
        int64_t clusters = extent > 0 ? (extent + axis->cluster - 1) / axis->cluster : 0;
        m->extents[a] = clusters * axis->cluster;
        m->tiles *= m->extents[a];
    }
    int64_t clusters = m->tiles / size;
    int most = resident / size > 1 ? resident / size : 1;
    if (clusters < 1) clusters = 1;
    m->blocks = (int)(m->program->persistent && clusters > most ? most : clusters) * size;
}

void interpret(const Program *program, const Sizes *sizes, int resident, bool inside, Seen *seen,
               Arena *arena, Outcome *out) {
    Machine *m = NEW(arena, Machine);
    *out = (Outcome){0};
    m->program = program;
    m->arena = arena;
    m->sizes = sizes;
    m->seen = seen;
    m->inside = inside;
    m->draws = draws_of(program);
    padded_begin(m);
    fill_tensors(m);
    count_blocks(m, resident);
    for (int r = 0; r < program->role_count; r++)
        flatten(program, arena, &program->roles[r], &m->codes[r]);
    for (m->block = 0; m->block < m->blocks && m->harm == HARM_NONE; m->block++) run_block(m);
    if (m->harm == HARM_NONE) look_at_results(m, out);
    out->harm = m->harm;
    out->tiles = m->tiles;
    out->wrapped = m->wrapped;
    out->vague = m->vague;
    out->divided = m->divided;
    out->stmt = m->harm_stmt;
}
