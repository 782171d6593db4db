/* Draws a script, and projects it on its roles. */
#include "tests/graphs/graphs.h"

static uint32_t pick(Graph *graph, uint32_t below) { return draw(&graph->random, below); }
static bool often(Graph *graph, int percent) { return chance(&graph->random, percent); }

/* ---- nodes ----------------------------------------------------------------------------------- */

Node *node_new(Graph *graph, NodeKind kind) {
    Node *node = NEW(graph->arena, Node);
    *node = (Node){.kind = kind, .from = -1, .to = -1, .lag = -1, .hint = -1, .copy = -1};
    node->condition.nonempty = -1;
    return node;
}

void nodes_insert(Graph *graph, Nodes *nodes, size_t at, Node *node) {
    vec_push(graph->arena, nodes, node);
    for (size_t i = nodes->count - 1; i > at; i--) nodes->items[i] = nodes->items[i - 1];
    nodes->items[at] = node;
}

Node *nodes_remove(Nodes *nodes, size_t at) {
    Node *node = nodes->items[at];
    for (size_t i = at + 1; i < nodes->count; i++) nodes->items[i - 1] = nodes->items[i];
    nodes->count--;
    return node;
}

static Nodes copy_all(Graph *graph, const Nodes *nodes) {
    Nodes copy = {0};
    for (size_t i = 0; i < nodes->count; i++)
        vec_push(graph->arena, &copy, node_copy(graph, nodes->items[i]));
    return copy;
}

Node *node_copy(Graph *graph, const Node *node) {
    Node *copy = node_new(graph, node->kind);
    *copy = *node;
    if (node->kind == NODE_STAGE && graph->names < MAX_NAMES) copy->stage = graph->names++;
    copy->body = copy_all(graph, &node->body);
    copy->otherwise = copy_all(graph, &node->otherwise);
    return copy;
}

/* ---- formulas -------------------------------------------------------------------------------- */

Term term_draw(Graph *graph, const int *loops, int loop_count, bool outside) {
    Term term = {.kind = TERM_NUMBER, .of = (int)pick(graph, 4)};
    uint32_t dice = pick(graph, 100);
    if (loop_count > 0 && dice < 50)
        term = (Term){.kind = TERM_LOOP, .of = loops[pick(graph, (uint32_t)loop_count)]};
    else if (!outside && graph->cluster == 1 && dice < 70)
        term = (Term){.kind = TERM_TILE, .of = (int)pick(graph, (uint32_t)graph->axes)};
    else if (dice < 85)
        term = (Term){.kind = TERM_SYMBOL, .of = 1 + (int)pick(graph, SYMBOLS - 1)};
    if (term.kind != TERM_NUMBER && often(graph, 15)) term.add = 1 + (int)pick(graph, 2);
    return term;
}

Condition condition_draw(Graph *graph, const int *loops, int loop_count) {
    Condition condition = {.nonempty = -1, .op = (int)pick(graph, OPERATORS)};
    int range = (int)pick(graph, (uint32_t)graph->range_count);
    if (often(graph, 15) && graph->ranges[range].parity < 0)
        condition.nonempty = range; /* with `where` whose truth is unknown */
    do condition.left = term_draw(graph, loops, loop_count, false);
    while (condition.left.kind == TERM_NUMBER);
    if (often(graph, 40)) {
        condition.left.modulus = 2 + (int)pick(graph, 2);
        condition.right = (Term){.kind = TERM_NUMBER, .of = (int)pick(graph, 2)};
    } else if (often(graph, 50)) {
        condition.right = (Term){.kind = TERM_NUMBER, .of = (int)pick(graph, 4)};
    } else {
        do condition.right = term_draw(graph, loops, loop_count, false);
        while (condition.right.kind == condition.left.kind &&
               condition.right.of == condition.left.of);
    }
    return condition;
}

static void draw_ranges(Graph *graph) {
    graph->range_count = 1 + (int)pick(graph, MAX_RANGES);
    for (int i = 0; i < graph->range_count; i++) {
        Range *range = &graph->ranges[i];
        *range = (Range){.form = RANGE_PLAIN, .parity = -1};
        range->a = (Term){.kind = TERM_SYMBOL, .of = 1 + (int)pick(graph, 2)};
        range->b = term_draw(graph, NULL, 0, false);
        if (often(graph, 50)) range->form = (RangeForm)pick(graph, RANGE_FORMS);
        if (range->form == RANGE_PLAIN && often(graph, 25))
            range->a = term_draw(graph, NULL, 0, false);
        if (often(graph, 10)) range->parity = (int)pick(graph, 2);
    }
}

/* ---- the script ------------------------------------------------------------------------------ */

typedef struct Scope {
    int loops[8], count, events;
} Scope;

static Node *event(Graph *graph, Scope *scope, int pipe, bool outside) {
    Node *node = node_new(graph, NODE_EVENT);
    node->pipe = pipe;
    node->constant = 1 + (int)pick(graph, 90);
    node->copy = graph->pipes[pipe].copied ? (int)pick(graph, 2) : -1;
    node->term = term_draw(graph, scope->loops, scope->count, outside);
    graph->pipes[pipe].used = true;
    scope->events++;
    return node;
}

static int inside_pipe(Graph *graph) {
    int pipe;
    do pipe = (int)pick(graph, (uint32_t)graph->pipe_count);
    while (graph->pipes[pipe].outside);
    return pipe;
}

static void script_list(Graph *graph, Scope *scope, int depth, Nodes *out);

static Node *script_loop(Graph *graph, Scope *scope, int depth) {
    Node *node = node_new(graph, NODE_FOR);
    node->range = (int)pick(graph, (uint32_t)graph->range_count);
    node->loop = graph->names++;
    scope->loops[scope->count++] = node->loop;
    script_list(graph, scope, depth + 1, &node->body);
    if (often(graph, 25)) {
        Node *leave = node_new(graph, NODE_LEAVE);
        leave->condition = condition_draw(graph, scope->loops, scope->count);
        leave->goes_on = often(graph, 40);
        nodes_insert(graph, &node->body, pick(graph, (uint32_t)node->body.count + 1), leave);
    }
    scope->count--;
    return node;
}

static Node *script_rotation(Graph *graph, Scope *scope) {
    Node *node = event(graph, scope, inside_pipe(graph), false);
    node->kind = NODE_ROTATE;
    node->range = (int)pick(graph, (uint32_t)graph->range_count);
    node->loop = graph->names++;
    return node;
}

static void script_list(Graph *graph, Scope *scope, int depth, Nodes *out) {
    for (uint32_t left = 1 + pick(graph, depth == 0 ? 4 : 3); left > 0 && scope->events < 12;
         left--) {
        uint32_t dice = pick(graph, 100);
        Node *node;
        if (dice < 25 && depth < 3) {
            node = script_loop(graph, scope, depth);
        } else if (dice < 37 && depth < 3) {
            node = node_new(graph, NODE_IF);
            node->condition = condition_draw(graph, scope->loops, scope->count);
            script_list(graph, scope, depth + 1, &node->body);
            if (often(graph, 40)) script_list(graph, scope, depth + 1, &node->otherwise);
        } else if (dice < 43) {
            node = script_rotation(graph, scope);
        } else {
            node = event(graph, scope, inside_pipe(graph), false);
        }
        vec_push(graph->arena, out, node);
    }
}

/* ---- roles and pipes ------------------------------------------------------------------------- */

static bool takes_part(const Graph *graph, const GraphPipe *pipe, int role) {
    (void)graph;
    for (int c = 0; c < pipe->consumer_count; c++)
        if (pipe->consumers[c] == role) return true;
    return pipe->producer == role;
}

static void add_consumer(Graph *graph, GraphPipe *pipe, int role) {
    for (int c = 0; c < pipe->consumer_count; c++)
        if (pipe->consumers[c] == role) return;
    if (pipe->producer == role && graph->roles[role].in_turn) return;
    pipe->consumers[pipe->consumer_count++] = role;
}

static bool shares(const GraphRole *role) { return role->instances > 1 && !role->in_turn; }

static void draw_pipes(Graph *graph) {
    graph->pipe_count = 1 + (int)pick(graph, 4);
    bool outside = graph->pipe_count > 1 && often(graph, 25);
    for (int i = 0; i < graph->pipe_count; i++) {
        GraphPipe *pipe = &graph->pipes[i];
        *pipe = (GraphPipe){.depth = 1 + (int)pick(graph, 4),
                            .producer = (int)pick(graph, (uint32_t)graph->role_count)};
        pipe->outside =
            outside && i == graph->pipe_count - 1 && !graph->roles[pipe->producer].in_turn;
        pipe->token = often(graph, 12);
        pipe->copied = !shares(&graph->roles[pipe->producer]) && often(graph, 45);
        int next = (pipe->producer + 1 + (int)pick(graph, (uint32_t)graph->role_count - 1)) %
                   graph->role_count;
        add_consumer(graph, pipe, often(graph, 8) ? pipe->producer : next);
        if (pipe->consumer_count == 0) add_consumer(graph, pipe, next);
        if (often(graph, 20))
            add_consumer(graph, pipe, (int)pick(graph, (uint32_t)graph->role_count));
    }
    for (int r = 0; r < graph->role_count; r++) {
        bool used = false;
        for (int i = 0; i < graph->pipe_count; i++) used |= takes_part(graph, &graph->pipes[i], r);
        if (!used) add_consumer(graph, &graph->pipes[0], r);
    }
}

static void draw_roles(Graph *graph) {
    int groups = 0;
    graph->role_count = 2 + (int)pick(graph, 3);
    for (int r = 0; r < graph->role_count; r++) {
        GraphRole *role = &graph->roles[r];
        *role =
            (GraphRole){.warps = often(graph, 75) ? 1 : 2 + (int)pick(graph, 2), .instances = 1};
        if (groups == 2 || !often(graph, 20)) continue;
        role->instances = 2;
        role->in_turn = graph->persistent && often(graph, 60);
        groups++;
    }
}

/* ---- projections ----------------------------------------------------------------------------- */

/* Forms are drawn apart, so that the graph of a seed does not depend on them. */
static Random apart(const Graph *graph, int number) {
    return (Random){graph->seed * 0x9e3779b97f4a7c15u + (uint64_t)number};
}

static Form form_draw(const Graph *graph, int number, bool reads) {
    Random random = apart(graph, number);
    if (chance(&random, 50)) return FORM_PLAIN;
    return reads ? (Form)draw(&random, FORMS) : FORM_RANGE;
}

static Node *stage_of(Graph *graph, const Node *event, bool produce) {
    Node *node = node_copy(graph, event);
    node->kind = NODE_STAGE;
    node->produce = produce;
    node->stage = graph->names++;
    node->form = form_draw(graph, node->stage, !produce);
    node->body = node->otherwise = (Nodes){0};
    return node;
}

static bool is_consumer(const GraphPipe *pipe, int role) {
    for (int c = 0; c < pipe->consumer_count; c++)
        if (pipe->consumers[c] == role) return true;
    return false;
}

static void project_event(Graph *graph, int role, const Node *event, Nodes *out) {
    const GraphPipe *pipe = &graph->pipes[event->pipe];
    if (pipe->producer == role) vec_push(graph->arena, out, stage_of(graph, event, true));
    if (is_consumer(pipe, role)) vec_push(graph->arena, out, stage_of(graph, event, false));
}

static void flat(Graph *graph, Nodes *out, const Node *stage, bool is_var) {
    Node *acquire = node_copy(graph, stage), *use = node_copy(graph, stage);
    acquire->kind = NODE_ACQUIRE, use->kind = NODE_USE;
    acquire->is_var = is_var;
    acquire->stage = use->stage = stage->stage;
    vec_push(graph->arena, out, acquire);
    vec_push(graph->arena, out, use);
}

static Node *of_stage(Graph *graph, NodeKind kind, const Node *stage) {
    Node *node = node_new(graph, kind);
    node->pipe = stage->pipe;
    node->produce = stage->produce;
    node->stage = stage->stage;
    return node;
}

/* The consumer holds the last stage while it takes the next one, so it needs two. */
static void project_rotation(Graph *graph, int role, const Node *event, Nodes *out) {
    const GraphPipe *pipe = &graph->pipes[event->pipe];
    if (!takes_part(graph, pipe, role)) return;
    Node *loop = node_new(graph, NODE_FOR);
    loop->range = event->range;
    loop->loop = event->loop;
    bool rotates = pipe->producer != role && pipe->depth > 1 && often(graph, 60);
    if (!rotates) {
        project_event(graph, role, event, out);
        project_event(graph, role, event, &loop->body);
        vec_push(graph->arena, out, loop);
        return;
    }
    Node *last = stage_of(graph, event, false), *next = stage_of(graph, event, false);
    flat(graph, out, last, true);
    flat(graph, &loop->body, next, false);
    vec_push(graph->arena, &loop->body, of_stage(graph, NODE_RELEASE, last));
    Node *move = of_stage(graph, NODE_MOVE, last);
    move->other = next->stage;
    vec_push(graph->arena, &loop->body, move);
    vec_push(graph->arena, out, loop);
    vec_push(graph->arena, out, of_stage(graph, NODE_RELEASE, last));
}

static bool acquires(const Nodes *nodes) {
    for (size_t i = 0; i < nodes->count; i++) {
        const Node *node = nodes->items[i];
        if (node->kind == NODE_STAGE || node->kind == NODE_ACQUIRE || acquires(&node->body) ||
            acquires(&node->otherwise))
            return true;
    }
    return false;
}

static void project(Graph *graph, int role, const Nodes *script, Nodes *out) {
    for (size_t i = 0; i < script->count; i++) {
        const Node *node = script->items[i];
        if (node->kind == NODE_EVENT) project_event(graph, role, node, out);
        if (node->kind == NODE_ROTATE) project_rotation(graph, role, node, out);
        if (node->kind == NODE_LEAVE) vec_push(graph->arena, out, node_copy(graph, node));
        if (node->kind != NODE_FOR && node->kind != NODE_IF) continue;
        Node *copy = node_new(graph, node->kind);
        *copy = *node;
        copy->body = copy->otherwise = (Nodes){0};
        project(graph, role, &node->body, &copy->body);
        project(graph, role, &node->otherwise, &copy->otherwise);
        if (acquires(&copy->body) || acquires(&copy->otherwise)) vec_push(graph->arena, out, copy);
    }
}

/* A stage that is handed over before the grid is sometimes held until after it. */
static void project_outside(Graph *graph, int number, const Node *event) {
    GraphRole *role = &graph->roles[number];
    bool consumes = is_consumer(&graph->pipes[event->pipe], number) &&
                    graph->pipes[event->pipe].producer != number;
    if (!consumes || !often(graph, 50)) {
        project_event(graph, number, event, &role->before);
        return;
    }
    Node *stage = stage_of(graph, event, false);
    flat(graph, &role->before, stage, false);
    vec_push(graph->arena, &role->after, of_stage(graph, NODE_RELEASE, stage));
}

Graph *graph_draw(Arena *arena, uint64_t seed) {
    Graph *graph = NEW(arena, Graph);
    *graph = (Graph){
        .arena = arena, .random = {seed * 0x2545f4914f6cdd1du + 77}, .seed = seed, .cluster = 1};
    graph->axes = often(graph, 15) ? 2 : 1;
    graph->persistent = often(graph, 70);
    if (!graph->persistent && often(graph, 35)) graph->cluster = 2;
    Random random = apart(graph, -1);
    graph->dynamic = graph->persistent && chance(&random, 30);
    draw_roles(graph);
    draw_pipes(graph);
    draw_ranges(graph);
    Scope scope = {0};
    Nodes script = {0};
    script_list(graph, &scope, 0, &script);
    for (int p = 0; p < graph->pipe_count; p++)
        if (!graph->pipes[p].used && !graph->pipes[p].outside)
            vec_push(arena, &script, event(graph, &scope, p, false));
    for (int r = 0; r < graph->role_count; r++) project(graph, r, &script, &graph->roles[r].body);
    for (int r = 0; r < graph->role_count; r++)
        graph->roles[r].writes = shares(&graph->roles[r]); /* a tile gives `i` its extent */
    graph->roles[0].writes = true;                         /* some tensor needs the extent M */
    for (int r = 0; r < graph->role_count; r++)
        graph->roles[r].form = form_draw(graph, MAX_NAMES + r, true);
    for (int p = 0; p < graph->pipe_count; p++) {
        if (graph->pipes[p].outside) {
            const Node *once = event(graph, &scope, p, true);
            for (int r = 0; r < graph->role_count; r++) project_outside(graph, r, once);
        }
        for (int c = 0; c < graph->pipes[p].consumer_count && !graph->pipes[p].token; c++)
            graph->roles[graph->pipes[p].consumers[c]].writes = true;
    }
    return graph;
}
