/* Computes what a graph does at given sizes, without the compiler: each role, or each instance
 * of one in turn, becomes a list of actions; the processes run until none can continue. Written
 * from the language reference, independent of check/. */
#include "tests/graphs/graphs.h"

#include <string.h>

typedef enum ActionKind {
    ACTION_ACQUIRE,
    ACTION_RELEASE,
    ACTION_READ,
    ACTION_WRITE,
    ACTION_BEGIN,
    ACTION_END,
    ACTION_TAKE,
    ACTION_PASS
} ActionKind;

typedef struct Action {
    ActionKind kind;
    bool produce;
    /* number of the stage; turn: number over all instances; tile: its index in the result */
    int pipe, number;
    Form form; /* of a read */
    int copy;
    int64_t value; /* the value to add; or the row */
} Action;

typedef struct Held {
    int pipe, number;
    bool produce;
} Held;

typedef struct Late { /* a stage of a lagging block */
    const Node *block;
    Held held;
} Late;
typedef VEC(Late) Lates;

typedef struct Process {
    const GraphRole *role;
    int number, instance; /* of the role; -1: one for all instances */
    VEC(Action) actions;
    size_t at;
    int cursors[MAX_PIPES][2];
    Held held[MAX_NAMES];
    int64_t loops[MAX_NAMES], tile[2];
    bool skipping, inside;
    Lates *late; /* of the innermost loop */
    int32_t base[WIDTH], sum[WIDTH];
} Process;

typedef struct Ring {
    int *filled, *drained, count, producers, consumers;
    int32_t (*values)[WIDTH];
} Ring;

typedef struct Machine {
    Graph *graph;
    Arena *arena;
    const int64_t *sizes;
    bool early;
    Expected *out;
    Process *processes[2 * MAX_ROLES];
    int process_count;
    Ring rings[MAX_PIPES];
    int passed[MAX_ROLES];
} Machine;

int32_t graph_input(int tensor, int64_t row, int element) {
    return (int32_t)(row * 1009 + element * 31 + tensor * 500009 + 17);
}

/* ---- formulas -------------------------------------------------------------------------------- */

static int64_t term(const Machine *m, const Process *p, const Term *term) {
    int64_t value = 0;
    switch (term->kind) {
    case TERM_NUMBER: value = term->of; break;
    case TERM_SYMBOL: value = m->sizes[term->of]; break;
    case TERM_TILE: value = p->tile[term->of]; break;
    case TERM_LOOP: value = p->loops[term->of]; break;
    }
    value += term->add;
    return term->modulus ? value % term->modulus : value;
}

static int64_t end_of(const Machine *m, const Process *p, const Range *range) {
    int64_t a = term(m, p, &range->a), b = term(m, p, &range->b);
    switch (range->form) {
    case RANGE_PLAIN: return a;
    case RANGE_LEAST: return a < b ? a : b;
    case RANGE_HALF: return (a + 1) / 2;
    case RANGE_LESS: return a - b;
    case RANGE_FORMS: break;
    }
    return 0;
}

static bool is_in(const Range *range, int64_t index) {
    return range->parity < 0 || index % 2 == range->parity;
}

static bool holds(const Machine *m, const Process *p, const Condition *condition) {
    if (condition->nonempty >= 0) {
        const Range *range = &m->graph->ranges[condition->nonempty];
        bool any = false;
        for (int64_t k = 0; k < end_of(m, p, range); k++) any |= is_in(range, k);
        return any;
    }
    int64_t a = term(m, p, &condition->left), b = term(m, p, &condition->right);
    bool truths[OPERATORS] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
    return truths[condition->op];
}

/* ---- lists of actions ------------------------------------------------------------------------ */

typedef enum Flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } Flow;

static Flow walk(Machine *m, Process *p, const Nodes *nodes);

static void add(Machine *m, Process *p, Action action) {
    if (!p->skipping) vec_push(m->arena, &p->actions, action);
}

static void add_of(Machine *m, Process *p, ActionKind kind, const Held *held) {
    add(m, p,
        (Action){
            .kind = kind, .produce = held->produce, .pipe = held->pipe, .number = held->number});
}

static void acquire(Machine *m, Process *p, const Node *node) {
    Held *held = &p->held[node->stage];
    *held = (Held){node->pipe, p->cursors[node->pipe][node->produce]++, node->produce};
    add_of(m, p, ACTION_ACQUIRE, held);
}

static void use(Machine *m, Process *p, const Node *node) {
    const Held *held = &p->held[node->stage];
    if (m->graph->pipes[node->pipe].token) return;
    Action action = {.kind = node->produce ? ACTION_WRITE : ACTION_READ,
                     .pipe = held->pipe,
                     .number = held->number,
                     .form = node->form,
                     .copy = node->copy};
    int64_t value = term(m, p, &node->term);
    if (!node->produce)
        action.value = node->constant;
    else
        action.value = node->copy >= 0 ? value + node->constant % 3 : node->constant + 7 * value;
    add(m, p, action);
}

static Flow block(Machine *m, Process *p, const Node *node) {
    acquire(m, p, node);
    use(m, p, node);
    Flow flow = walk(m, p, &node->body);
    int late = 0;
    if (node->lag <= 0 || p->late == NULL || p->skipping) {
        add_of(m, p, ACTION_RELEASE, &p->held[node->stage]);
        return flow;
    }
    vec_push(m->arena, p->late, (Late){node, p->held[node->stage]});
    for (size_t i = 0; i < p->late->count; i++) late += p->late->items[i].block == node;
    for (size_t i = 0; i < p->late->count && late > node->lag; i++) {
        if (p->late->items[i].block != node) continue;
        add_of(m, p, ACTION_RELEASE, &p->late->items[i].held);
        for (size_t k = i + 1; k < p->late->count; k++) p->late->items[k - 1] = p->late->items[k];
        p->late->count--;
        break;
    }
    return flow;
}

static void flush(Machine *m, Process *p, Lates *outer) {
    for (size_t i = 0; i < p->late->count; i++)
        add_of(m, p, ACTION_RELEASE, &p->late->items[i].held);
    p->late = outer;
}

static Flow loop(Machine *m, Process *p, const Node *node) {
    const Range *range = &m->graph->ranges[node->range];
    Lates late = {0}, *outer = p->late;
    if (node->unrolled) {
        p->loops[node->loop] = 0;
        return walk(m, p, &node->body);
    }
    /* pieces count the iterations that the filter keeps */
    int64_t live = 0, end = end_of(m, p, range);
    p->late = &late;
    for (int64_t k = 0; k < end && (node->to < 0 || live < node->to); k++) {
        p->loops[node->loop] = k;
        if (!is_in(range, k) || live++ < node->from) continue;
        if (walk(m, p, &node->body) == FLOW_BREAK) break;
    }
    flush(m, p, outer);
    return FLOW_ON;
}

static Flow step(Machine *m, Process *p, const Node *node) {
    switch (node->kind) {
    case NODE_LIST: return walk(m, p, &node->body);
    case NODE_FOR: return loop(m, p, node);
    case NODE_IF: return walk(m, p, holds(m, p, &node->condition) ? &node->body : &node->otherwise);
    case NODE_LEAVE:
        return !holds(m, p, &node->condition) ? FLOW_ON
               : node->goes_on                ? FLOW_CONTINUE
                                              : FLOW_BREAK;
    case NODE_STAGE: return block(m, p, node);
    case NODE_ACQUIRE: acquire(m, p, node); break;
    case NODE_USE: use(m, p, node); break;
    case NODE_RELEASE: add_of(m, p, ACTION_RELEASE, &p->held[node->stage]); break;
    case NODE_MOVE: p->held[node->stage] = p->held[node->other]; break;
    case NODE_EVENT:
    case NODE_ROTATE:
    case NODE_HINT: break;
    }
    return FLOW_ON;
}

static Flow walk(Machine *m, Process *p, const Nodes *nodes) {
    for (size_t i = 0; i < nodes->count; i++) {
        Flow flow = step(m, p, nodes->items[i]);
        if (flow != FLOW_ON) return flow;
    }
    return FLOW_ON;
}

/* The tiles first, first + step, .. of a block */
static void walk_role(Machine *m, Process *p, int64_t first, int64_t step_by, int64_t tiles) {
    Lates late = {0};
    int iteration = 0;
    walk(m, p, &p->role->before);
    p->late = &late;
    for (int64_t t = first; t < tiles; t += step_by, iteration++) {
        p->tile[0] = t % m->sizes[SYMBOL_M];
        p->tile[1] = t / m->sizes[SYMBOL_M];
        p->skipping = p->role->in_turn && iteration % p->role->instances != p->instance;
        add(m, p, (Action){.kind = ACTION_BEGIN});
        if (p->role->in_turn) add(m, p, (Action){.kind = ACTION_TAKE, .number = iteration});
        Flow flow = walk(m, p, &p->role->body);
        if (p->role->in_turn) add(m, p, (Action){.kind = ACTION_PASS, .number = iteration});
        add(m, p,
            (Action){
                .kind = ACTION_END,
                .number =
                    (int)(m->graph->axes == 2 ? p->tile[0] * m->sizes[SYMBOL_L] + p->tile[1] : t)});
        p->skipping = false;
        if (flow == FLOW_BREAK) break;
    }
    flush(m, p, NULL);
    walk(m, p, &p->role->after);
}

/* ---- the run --------------------------------------------------------------------------------- */

static bool can_go(const Machine *m, const Process *p, const Action *action) {
    if (action->kind == ACTION_TAKE) return m->passed[p->number] == action->number;
    if (action->kind != ACTION_ACQUIRE) return true;
    const Ring *ring = &m->rings[action->pipe];
    if (!action->produce) return ring->filled[action->number] >= ring->producers;
    int before = action->number - m->graph->pipes[action->pipe].depth;
    return before < 0 || ring->drained[before] >= ring->consumers;
}

static int32_t wrap(int64_t value) { return (int32_t)(uint32_t)(uint64_t)value; }

/* The value that is the same for all elements of a read */
static int32_t reduction_of(Form form, const int32_t *values) {
    int32_t sum = 0, least = values[0], most = values[0];
    for (int e = 0; e < WIDTH; e++) {
        sum = wrap((int64_t)sum + values[e]);
        if (values[e] < least) least = values[e];
        if (values[e] > most) most = values[e];
    }
    return form == FORM_SUM ? sum : form == FORM_MIN ? least : form == FORM_MAX ? most : 0;
}

static void read_stage(Process *p, const Action *action, const int32_t *values) {
    int32_t *sum = p->inside ? p->sum : p->base, all = reduction_of(action->form, values);
    for (int e = 0; e < WIDTH; e++) {
        if (action->form == FORM_WHERE && values[e] % 3 == 0) continue;
        sum[e] = wrap((int64_t)wrap((int64_t)sum[e] * 31) + values[e] + all + action->value);
    }
}

static void write_stage(const Machine *m, const Process *p, const Action *action, int32_t *values) {
    const int32_t *sum = p->inside ? p->sum : p->base;
    int64_t rows = m->sizes[action->copy == 0 ? SYMBOL_K : SYMBOL_L];
    for (int e = 0; e < WIDTH; e++) {
        if (action->copy >= 0)
            values[e] = action->value < rows ? graph_input(action->copy, action->value, e) : 0;
        else
            values[e] = wrap((p->role->writes ? (int64_t)sum[e] * 3 : 0) + action->value);
    }
}

static bool early(const Machine *m, int pipe) {
    return m->early && m->graph->pipes[pipe].copied && !m->graph->pipes[pipe].token;
}

static void go(Machine *m, Process *p, const Action *action) {
    Ring *ring = &m->rings[action->pipe];
    switch (action->kind) {
    case ACTION_ACQUIRE: break;
    case ACTION_RELEASE:
        if (!action->produce)
            ring->drained[action->number]++;
        else if (!early(m, action->pipe))
            ring->filled[action->number]++;
        break;
    case ACTION_READ: read_stage(p, action, ring->values[action->number]); break;
    case ACTION_WRITE:
        write_stage(m, p, action, ring->values[action->number]);
        if (early(m, action->pipe)) ring->filled[action->number]++;
        break;
    case ACTION_BEGIN:
        memcpy(p->sum, p->base, sizeof p->sum);
        p->inside = true;
        break;
    case ACTION_END:
        if (p->role->writes)
            memcpy(m->out->results[p->number] + (size_t)action->number * WIDTH, p->sum,
                   sizeof p->sum);
        p->inside = false;
        break;
    case ACTION_TAKE: break;
    case ACTION_PASS: m->passed[p->number]++; break;
    }
}

/* Number of processes that take each stage of the pipe for this role */
static int takers(const Graph *graph, int role, int pipe) {
    return graph->roles[role].in_turn && graph->pipes[pipe].outside ? graph->roles[role].instances
                                                                    : 1;
}

static void start_rings(Machine *m) {
    for (int i = 0; i < m->graph->pipe_count; i++) {
        const GraphPipe *pipe = &m->graph->pipes[i];
        Ring *ring = &m->rings[i];
        int most = 0;
        for (int k = 0; k < m->process_count; k++)
            for (int end = 0; end < 2; end++)
                if (m->processes[k]->cursors[i][end] > most)
                    most = m->processes[k]->cursors[i][end];
        *ring = (Ring){.producers = takers(m->graph, pipe->producer, i)};
        for (int c = 0; c < pipe->consumer_count; c++)
            ring->consumers += takers(m->graph, pipe->consumers[c], i);
        ring->filled = NEW_ARRAY(m->arena, int, (size_t)most + 1);
        ring->drained = NEW_ARRAY(m->arena, int, (size_t)most + 1);
        ring->values = arena_alloc(m->arena, ((size_t)most + 1) * sizeof *ring->values);
    }
}

static void count(Machine *m) {
    Expected *out = m->out;
    if (!out->balanced) return;
    for (int k = 0; k < m->process_count; k++)
        for (int i = 0; i < m->graph->pipe_count; i++) {
            const Process *p = m->processes[k];
            const GraphPipe *pipe = &m->graph->pipes[i];
            if (pipe->producer == p->number) out->produced[i] = p->cursors[i][1];
            for (int c = 0; c < pipe->consumer_count; c++)
                if (pipe->consumers[c] == p->number) out->consumed[i][c] = p->cursors[i][0];
        }
    for (int i = 0; i < m->graph->pipe_count; i++)
        for (int c = 0; c < m->graph->pipes[i].consumer_count; c++)
            out->balanced &= out->consumed[i][c] == out->produced[i];
}

static void run_block(Machine *m, int64_t first, int64_t step_by, int64_t tiles) {
    m->process_count = 0;
    memset(m->passed, 0, sizeof m->passed);
    for (int r = 0; r < m->graph->role_count; r++)
        for (int i = 0; i < (m->graph->roles[r].in_turn ? m->graph->roles[r].instances : 1); i++) {
            Process *p = m->processes[m->process_count++] = NEW(m->arena, Process);
            *p = (Process){.role = &m->graph->roles[r], .number = r, .instance = i};
            walk_role(m, p, first, step_by, tiles);
            m->out->actions += p->actions.count;
        }
    start_rings(m);
    count(m);
    bool moved = true, ended = true;
    while (moved) {
        moved = false;
        for (int k = 0; k < m->process_count; k++) {
            Process *p = m->processes[k];
            for (; p->at < p->actions.count && can_go(m, p, &p->actions.items[p->at]);
                 p->at++, moved = true)
                go(m, p, &p->actions.items[p->at]);
        }
    }
    for (int k = 0; k < m->process_count; k++)
        ended &= m->processes[k]->at == m->processes[k]->actions.count;
    m->out->hangs |= !ended;
}

void graph_expect(Graph *graph, const int64_t *sizes, int resident, bool early, Arena *arena,
                  Expected *out) {
    Machine m = {.graph = graph, .arena = arena, .sizes = sizes, .early = early, .out = out};
    int64_t tiles = sizes[SYMBOL_M] * (graph->axes == 2 ? sizes[SYMBOL_L] : 1);
    int64_t blocks = graph->persistent && tiles > resident ? resident : tiles > 0 ? tiles : 1;
    *out = (Expected){.balanced = true};
    for (int r = 0; r < graph->role_count; r++)
        if (graph->roles[r].writes)
            out->results[r] = NEW_ARRAY(arena, int32_t, (size_t)tiles * WIDTH + 1);
    for (int64_t b = 0; b < blocks; b++) run_block(&m, b, blocks, tiles);
}
