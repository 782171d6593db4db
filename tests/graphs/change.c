/* Variations of a role that keep the number of its acquires, and wounds. */
#include "tests/graphs/graphs.h"

static uint32_t pick(Graph *graph, uint32_t below) { return draw(&graph->random, below); }
static bool often(Graph *graph, int percent) { return chance(&graph->random, percent); }

/* ---- variations ------------------------------------------------------------------------------ */

static bool leaves(const Nodes *nodes) {
    for (size_t i = 0; i < nodes->count; i++)
        if (nodes->items[i]->kind == NODE_LEAVE ||
            (nodes->items[i]->kind == NODE_IF &&
             (leaves(&nodes->items[i]->body) || leaves(&nodes->items[i]->otherwise))))
            return true;
    return false;
}

/* if r nonempty { the first trip; the others } */
static Node *peeled(Graph *graph, Node *loop) {
    Node *branch = node_new(graph, NODE_IF), *first = node_copy(graph, loop);
    branch->condition.nonempty = loop->range;
    first->unrolled = true;
    loop->from = 1;
    vec_push(graph->arena, &branch->body, first);
    vec_push(graph->arena, &branch->body, loop);
    return branch;
}

static void part_loops(Graph *graph, Nodes *nodes) {
    for (size_t i = 0; i < nodes->count; i++) {
        Node *node = nodes->items[i];
        bool whole = node->kind == NODE_FOR && node->from < 0 && node->to < 0 && !node->unrolled &&
                     !leaves(&node->body);
        if (whole && graph->ranges[node->range].parity < 0 && often(graph, 15)) {
            nodes->items[i] = peeled(graph, node);
        } else if (whole && often(graph, 8)) {
            Node *rest = node_copy(graph, node);
            node->to = rest->from = 1 + (int)pick(graph, 3);
            nodes_insert(graph, nodes, i + 1, rest);
            i++;
        }
        part_loops(graph, &node->body);
        part_loops(graph, &node->otherwise);
    }
}

/* `let s = ..; use; .. release s;`, with the release after some of the following statements */
static void flatten(Graph *graph, Nodes *nodes, size_t at, bool freely) {
    Node *stage = nodes->items[at], *use = node_copy(graph, stage),
         *release = node_new(graph, NODE_RELEASE);
    size_t most = at + 2;
    stage->kind = NODE_ACQUIRE;
    use->kind = NODE_USE;
    use->stage = release->stage = stage->stage;
    release->pipe = stage->pipe;
    release->produce = stage->produce;
    release->by_call = often(graph, 15);
    graph->by_call |= release->by_call;
    nodes_insert(graph, nodes, at + 1, use);
    while (most < nodes->count && nodes->items[most]->kind != NODE_LEAVE) most++;
    size_t room = freely ? most - (at + 2) : 0;
    nodes_insert(graph, nodes, at + 2 + pick(graph, (uint32_t)(room < 3 ? room : 3) + 1), release);
}

static bool is_block(const Nodes *nodes, size_t at) {
    return at < nodes->count && nodes->items[at]->kind == NODE_STAGE;
}

static void add_hint(Graph *graph, Nodes *nodes, size_t at) {
    Node *hint = node_new(graph, NODE_HINT), *stage = nodes->items[at];
    hint->pipe = stage->pipe;
    hint->produce = stage->produce;
    hint->hint = stage->hint = graph->names++;
    bool earlier = at > 0 && is_block(nodes, at - 1) && nodes->items[at - 1]->pipe != stage->pipe &&
                   nodes->items[at - 1]->body.count == 0 && often(graph, 50);
    nodes_insert(graph, nodes, earlier ? at - 1 : at, hint);
}

/* A piece of a range with `where` is a loop with a condition around its body: no block in it has
 * `lag`. */
static bool is_filtered_piece(const Graph *graph, const Node *node) {
    return (node->from >= 0 || node->to >= 0) && graph->ranges[node->range].parity >= 0;
}

static void take_liberties(Graph *graph, const GraphRole *role, Nodes *nodes, bool in_loop,
                           bool freely) {
    for (size_t i = 0; i < nodes->count; i++) {
        Node *node = nodes->items[i];
        bool loops = node->kind == NODE_FOR && !node->unrolled && !is_filtered_piece(graph, node);
        take_liberties(graph, role, &node->body, loops, freely);
        take_liberties(graph, role, &node->otherwise, false, freely);
        if (freely && is_block(nodes, i) && is_block(nodes, i + 1) &&
            nodes->items[i + 1]->pipe != node->pipe && often(graph, 6)) {
            nodes->items[i] = nodes->items[i + 1];
            nodes->items[i + 1] = node;
            node = nodes->items[i];
        }
        while (freely && is_block(nodes, i) && is_block(nodes, i + 1) && often(graph, 20))
            vec_push(graph->arena, &node->body, nodes_remove(nodes, i + 1));
        if (!is_block(nodes, i) || node->hint >= 0 || graph->names + 8 > MAX_NAMES) continue;
        bool may_lag = freely && in_loop && !node->produce && !role->in_turn;
        if (may_lag && often(graph, 15))
            node->lag = (int)pick(graph, (uint32_t)graph->pipes[node->pipe].depth);
        if (!role->in_turn && often(graph, 8)) {
            add_hint(graph, nodes, i);
            i++;
        }
        for (; nodes->items[i] != node; i++) {
        }
        if (node->body.count == 0 && node->lag < 0 && often(graph, 25))
            flatten(graph, nodes, i, freely);
    }
}

void graph_decorate(Graph *graph, bool freely, bool in_pieces) {
    graph->freely = freely;
    for (int r = 0; r < graph->role_count; r++) {
        GraphRole *role = &graph->roles[r];
        if (in_pieces) part_loops(graph, &role->body);
        take_liberties(graph, role, &role->body, graph->persistent && !role->in_turn, freely);
    }
}

/* ---- wounds ---------------------------------------------------------------------------------- */

typedef struct Slot {
    Nodes *list;
    size_t at;
} Slot;
typedef VEC(Slot) Slots;

static void collect(Graph *graph, Nodes *nodes, Slots *slots) {
    for (size_t i = 0; i < nodes->count; i++) {
        vec_push(graph->arena, slots, (Slot){nodes, i});
        collect(graph, &nodes->items[i]->body, slots);
        collect(graph, &nodes->items[i]->otherwise, slots);
    }
}

typedef enum Wound {
    DROP,
    REPEAT,
    EXCHANGE,
    CARRY,
    SHALLOW,
    OTHER_RANGE,
    OTHER_CONDITION,
    WRAP,
    LAG,
    WOUNDS
} Wound;

static Node *wrapped(Graph *graph, Node *node) {
    Node *around = node_new(graph, often(graph, 60) ? NODE_IF : NODE_FOR);
    around->range = (int)pick(graph, (uint32_t)graph->range_count);
    around->loop = graph->names++;
    around->condition = condition_draw(graph, NULL, 0);
    vec_push(graph->arena, &around->body, node);
    return around;
}

/* False: not applicable. */
static bool wound(Graph *graph, Slots *slots, Wound kind) {
    Slot *slot = &slots->items[pick(graph, (uint32_t)slots->count)],
         *other = &slots->items[pick(graph, (uint32_t)slots->count)];
    Node *node = slot->list->items[slot->at];
    GraphPipe *pipe = &graph->pipes[pick(graph, (uint32_t)graph->pipe_count)];
    switch (kind) {
    case DROP: nodes_remove(slot->list, slot->at); return true;
    case REPEAT:
        if (node->kind != NODE_STAGE && node->kind != NODE_FOR && node->kind != NODE_IF)
            return false;
        nodes_insert(graph, slot->list, slot->at, node_copy(graph, node));
        return true;
    case EXCHANGE:
        if (slot->at + 1 >= slot->list->count) return false;
        nodes_insert(graph, slot->list, slot->at + 1, nodes_remove(slot->list, slot->at));
        return true;
    case CARRY:
        if (node->body.count > 0 || other->list == slot->list || node->kind == NODE_LEAVE)
            return false;
        nodes_insert(graph, other->list, other->at, nodes_remove(slot->list, slot->at));
        return true;
    case SHALLOW:
        if (pipe->depth == 1) return false;
        pipe->depth = 1 + (int)pick(graph, (uint32_t)pipe->depth - 1);
        return true;
    case OTHER_RANGE:
        if (node->kind != NODE_FOR) return false;
        if (often(graph, 50))
            node->range = (int)pick(graph, (uint32_t)graph->range_count);
        else
            node->from = 1, node->unrolled = false;
        return true;
    case OTHER_CONDITION:
        if (node->kind != NODE_IF && node->kind != NODE_LEAVE) return false;
        node->condition = condition_draw(graph, NULL, 0);
        return true;
    case WRAP:
        if (node->kind == NODE_LEAVE) return false;
        slot->list->items[slot->at] = wrapped(graph, node);
        return true;
    case LAG:
        if (node->kind != NODE_STAGE || node->produce) return false;
        node->lag = (int)pick(graph, 4);
        return true;
    case WOUNDS: break;
    }
    return false;
}

void graph_mutate(Graph *graph) {
    static const char *const words[WOUNDS] = {"dropped",           "repeated",  "exchanged",
                                              "carried elsewhere", "shallower", "another range",
                                              "another condition", "wrapped",   "lag"};
    Str what = str_new(graph->arena);
    str_add(&what, "");
    int wanted = 1 + often(graph, 30);
    for (int tries = 0; wanted > 0 && tries < 40; tries++) {
        Slots slots = {0};
        GraphRole *role = &graph->roles[pick(graph, (uint32_t)graph->role_count)];
        collect(graph, &role->before, &slots);
        collect(graph, &role->body, &slots);
        collect(graph, &role->after, &slots);
        if (slots.count == 0 || graph->names + 40 > MAX_NAMES) continue;
        Wound kind = (Wound)pick(graph, WOUNDS);
        if (!wound(graph, &slots, kind)) continue;
        str_printf(&what, "%s%s in w%d", what.length > 0 ? ", " : "", words[kind],
                   (int)(role - graph->roles));
        wanted--;
    }
    graph->mutated = what.length > 0;
    graph->mutation = what.text;
}
