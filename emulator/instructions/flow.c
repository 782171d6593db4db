/* Control flow: branches, exits, traps, pauses; the rank of each instruction; and the waits whose
 * answer nobody reads.
 *
 * The rank orders the instructions so that the body of a loop precedes what follows the loop,
 * and both arms of a branch precede their join: splits of a warp that run in this order
 * reconverge as early as possible. It is the weak topological order of the basic blocks
 * (Bourdoncle 1993), whose components are the loops. */
#include "emulator/order/order.h"

static Step run_bra(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    return schedule_branch(block, warp, inst, mask, inst->target);
}
static Step run_exit(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)inst;
    call_forget(warp, mask);
    return schedule_exit(block, warp, mask);
}
/* trap, and brkpt: without a debugger, which a launch here never has, it ends the kernel as well */
static Step run_trap(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    return fault(block, P0750, agent_of(block, warp, first_lane(mask)), "lane %u executes `%s`",
                 first_lane(mask), opcode_spellings[inst->opcode]);
}
static Step run_nanosleep(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)block, (void)inst, (void)mask;
    warp->split->suspect = true;
    return STEP_NEXT;
}
/* Programmatic dependent launch: a kernel runs alone in the emulator, so all work before it is
 * complete, but known only after the wait */
static Step run_griddep_wait(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)block, (void)inst;
    order_griddepcontrol_wait(warp, mask);
    return STEP_NEXT;
}
static Step run_nothing(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)block, (void)warp, (void)inst, (void)mask;
    return STEP_NEXT;
}

Run pick_flow(const Inst *inst) {
    switch (inst->opcode) {
    case OP_BRA: return run_bra;
    case OP_EXIT: return run_exit;
    case OP_TRAP:
    case OP_BRKPT: return run_trap;
    case OP_NANOSLEEP: return run_nanosleep;
    case OP_GRIDDEP_WAIT: return run_griddep_wait;
    case OP_GRIDDEP_LAUNCH:
    case OP_PMEVENT: return run_nothing;
    default: return NULL;
    }
}

/* ---- ranks ----------------------------------------------------------------------------------- */

typedef struct Node {
    uint32_t first, last; /* instructions, last included */
    uint32_t next;        /* the node behind it, UINT32_MAX: it does not go on there */
    /* instructions that it branches to */
    const uint32_t *targets;
    uint32_t target_count;
    uint32_t number, low; /* of Tarjan's algorithm; number 0: not visited yet */
    uint32_t edge;        /* successor to be visited next */
    uint32_t parent;
    bool on_stack;
    uint32_t level; /* of the pass that the node belongs to */
} Node;

typedef struct Graph {
    Node *nodes;
    uint32_t count, counter, filled;
    const uint32_t *node_of;        /* by instruction */
    uint32_t *stack, depth, *order; /* order: filled from the end */
    uint32_t *work;
} Graph;

/* The instructions that `inst` branches to */
static const uint32_t *targets_of(const Program *program, const Inst *inst, uint32_t *count) {
    *count = inst->opcode == OP_BRA;
    if (inst->opcode != OP_BRX) return &inst->target;
    *count = program->branch_targets.items[inst->target];
    return &program->branch_targets.items[inst->target + 1];
}

/* Control does not go on behind it, unless it is guarded. */
static bool ends_path(const Inst *inst) {
    return inst->opcode == OP_BRA || inst->opcode == OP_BRX || inst->opcode == OP_EXIT ||
           inst->opcode == OP_RET;
}

static void build(Arena *arena, const Program *program, Graph *graph) {
    uint32_t *node_of = NEW_ARRAY(arena, uint32_t, program->count + 1), count;
    bool *leads = NEW_ARRAY(arena, bool, program->count + 1);
    leads[0] = true;
    for (uint32_t i = 0; i < program->count; i++) {
        const Inst *inst = &program->code[i];
        const uint32_t *targets = targets_of(program, inst, &count);
        for (uint32_t n = 0; n < count; n++) leads[targets[n]] = true;
        if (ends_path(inst)) leads[i + 1] = true;
    }
    for (uint32_t i = 0; i < program->count; i++) graph->count += leads[i];
    graph->nodes = NEW_ARRAY(arena, Node, graph->count);
    graph->node_of = node_of;
    uint32_t n = 0;
    for (uint32_t i = 0; i < program->count; i++) {
        if (leads[i]) graph->nodes[n++].first = i;
        node_of[i] = n - 1;
        graph->nodes[n - 1].last = i;
    }
    for (n = 0; n < graph->count; n++) {
        Node *node = &graph->nodes[n];
        const Inst *inst = &program->code[node->last];
        bool ends = ends_path(inst) && !inst->guarded;
        node->next = ends || n + 1 == graph->count ? UINT32_MAX : n + 1;
        node->targets = targets_of(program, inst, &node->target_count);
    }
}

/* Successor `edge` of a node, UINT32_MAX: none */
static uint32_t successor(const Graph *graph, const Node *node, uint32_t edge) {
    return edge == 0 ? node->next : graph->node_of[node->targets[edge - 1]];
}

/* Handles a strongly connected component with `root` as its first node; its other nodes are
 * above `root` on the stack. Its order: root, then the other nodes, ordered by the same
 * algorithm without root, one level deeper. */
static void order_component(Graph *graph, uint32_t root, uint32_t level);

/* Tarjan's algorithm from `root` over the nodes of one level, without recursion along edges */
static void visit(Graph *graph, uint32_t root, uint32_t level) {
    uint32_t at = root;
    graph->nodes[root].parent = UINT32_MAX;
    for (;;) {
        Node *node = &graph->nodes[at];
        if (node->number == 0) {
            node->number = node->low = ++graph->counter;
            node->edge = 0;
            node->on_stack = true;
            graph->stack[graph->depth++] = at;
        }
        if (node->edge <= node->target_count) {
            uint32_t next = successor(graph, node, node->edge++);
            if (next == UINT32_MAX || graph->nodes[next].level != level) continue;
            Node *to = &graph->nodes[next];
            if (to->number == 0) {
                to->parent = at;
                at = next;
            } else if (to->on_stack && to->number < node->low) {
                node->low = to->number;
            }
            continue;
        }
        uint32_t parent = node->parent;
        if (node->low == node->number) order_component(graph, at, level);
        if (parent == UINT32_MAX) return;
        if (graph->nodes[at].low < graph->nodes[parent].low && graph->nodes[at].on_stack)
            graph->nodes[parent].low = graph->nodes[at].low;
        at = parent;
    }
}

enum { MAX_LOOP_DEPTH = 60, MAX_NODES = 20000 };

static void order_component(Graph *graph, uint32_t root, uint32_t level) {
    uint32_t top = graph->depth;
    do graph->nodes[graph->stack[--top]].on_stack = false;
    while (graph->stack[top] != root);
    uint32_t members = graph->depth - top;
    graph->depth = top;
    if (members == 1 || level >= MAX_LOOP_DEPTH) {
        /* A single node, or loops nested too deeply for the recursion: text order */
        for (uint32_t i = members; i-- > 0;) graph->order[--graph->filled] = graph->stack[top + i];
        return;
    }
    /* Iterates over a copy of the members, because the deeper level uses the stack above `top` */
    uint32_t *rest = graph->work;
    graph->work += members;
    memcpy(rest, graph->stack + top, members * sizeof *rest);
    for (uint32_t i = 1; i < members; i++) {
        graph->nodes[rest[i]].level = level + 1;
        graph->nodes[rest[i]].number = 0;
    }
    for (uint32_t i = members; i-- > 1;)
        if (graph->nodes[rest[i]].number == 0) visit(graph, rest[i], level + 1);
    graph->order[--graph->filled] = root;
    graph->work = rest;
}

void flow_rank(Arena *arena, Program *program) {
    Graph graph = {0};
    build(arena, program, &graph);
    for (uint32_t i = 0; i < program->count; i++) program->code[i].rank = i;
    /* text order is correct too; splits only reconverge later */
    if (graph.count > MAX_NODES) return;
    graph.stack = NEW_ARRAY(arena, uint32_t, graph.count);
    graph.order = NEW_ARRAY(arena, uint32_t, graph.count);
    graph.work = NEW_ARRAY(arena, uint32_t, (size_t)graph.count * (MAX_LOOP_DEPTH + 1));
    graph.filled = graph.count;
    for (uint32_t n = 0; n < graph.count; n++)
        if (graph.nodes[n].number == 0) visit(&graph, n, 0);
    uint32_t rank = 0;
    for (uint32_t i = 0; i < graph.count; i++)
        for (uint32_t at = graph.nodes[graph.order[i]].first;
             at <= graph.nodes[graph.order[i]].last; at++)
            program->code[at].rank = rank++;
}

/* ---- answers of waits ------------------------------------------------------------------------ */

/* A search for the reader of a register */
typedef struct Search {
    const Program *program;
    uint32_t *seen, number; /* by instruction: the last search that was there */
    VEC(uint32_t) open;     /* instructions where it goes on */
    uint64_t budget;        /* instructions left for all searches, so that the time is linear */
} Search;

static bool reads(const Inst *inst, uint32_t slot) {
    if (inst->guarded && inst->guard_slot == slot) return true;
    for (uint32_t i = 0; i < inst->use_count; i++)
        if (inst->uses[i] == slot) return true;
    return false;
}

static bool overwrites(const Inst *inst, uint32_t slot) {
    for (uint32_t i = 0; i < inst->def_count && !inst->guarded; i++)
        if (inst->defs[i] == slot) return true;
    return false;
}

/* True if some path from the instruction reads the register before it is written again, or if
 * that is unknown. */
static bool is_read(Arena *arena, Search *search, uint32_t from, uint32_t slot) {
    const Program *program = search->program;
    search->number++;
    search->open.count = 0;
    vec_push(arena, &search->open, from);
    while (search->open.count > 0) {
        uint32_t at = search->open.items[--search->open.count], count;
        for (; at < program->count && search->seen[at] != search->number; at++) {
            const Inst *inst = &program->code[at];
            if (reads(inst, slot) || search->budget == 0) return true;
            search->seen[at] = search->number;
            search->budget--;
            if (overwrites(inst, slot)) break;
            const uint32_t *targets = targets_of(program, inst, &count);
            for (uint32_t i = 0; i < count; i++) vec_push(arena, &search->open, targets[i]);
            if (ends_path(inst) && !inst->guarded) break;
        }
    }
    return false;
}

enum { SEARCH_FACTOR = 64 };

void flow_answers(Arena *arena, Program *program) {
    Search search = {.program = program, .budget = (uint64_t)SEARCH_FACTOR * program->count};
    for (uint32_t i = 0; i < program->count; i++) {
        Inst *inst = &program->code[i];
        if (inst->opcode != OP_MB_TRY && inst->opcode != OP_MB_TEST) continue;
        if (!search.seen) search.seen = NEW_ARRAY(arena, uint32_t, program->count);
        inst->ignored = inst->def_count == 1 && !is_read(arena, &search, i + 1, inst->defs[0]);
    }
}
