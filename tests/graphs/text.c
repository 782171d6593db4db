/* Prints a graph as a program. Each role keeps a vector `acc` that depends on each value it has
 * read and on their order; the values that it writes to stages depend on it, and at the end of a
 * tile it is written to the role's tensor. Some reads add a reduction of the whole stage, some
 * leave elements out by `where`, and some statements name the range of their index. */
#include "tests/graphs/graphs.h"

const char *const symbol_names[SYMBOLS] = {"M", "K", "L", "q"};
const char *const operators[OPERATORS] = {"==", "!=", "<", "<=", ">", ">="};

typedef struct Printer {
    Graph *graph;
    const GraphRole *role;
    Str out;
    int indent;
    const char *sum; /* the vector: `acc` in a tile, `base` outside */
} Printer;

/* ---- formulas -------------------------------------------------------------------------------- */

static const char *term_text(Graph *graph, const Term *term) {
    static const char *const axes[] = {"t", "u"};
    const char *text = "";
    switch (term->kind) {
    case TERM_NUMBER: text = arena_printf(graph->arena, "%d", term->of); break;
    case TERM_SYMBOL: text = symbol_names[term->of]; break;
    case TERM_TILE: text = axes[term->of]; break;
    case TERM_LOOP: text = arena_printf(graph->arena, "k%d", term->of); break;
    }
    if (term->add != 0 && term->modulus != 0)
        return arena_printf(graph->arena, "(%s + %d) %% %d", text, term->add, term->modulus);
    if (term->add != 0) return arena_printf(graph->arena, "%s + %d", text, term->add);
    return term->modulus != 0 ? arena_printf(graph->arena, "%s %% %d", text, term->modulus) : text;
}

static const char *range_end(Graph *graph, const Range *range) {
    const char *a = term_text(graph, &range->a), *b = term_text(graph, &range->b);
    switch (range->form) {
    case RANGE_PLAIN: return a;
    case RANGE_LEAST: return arena_printf(graph->arena, "min(%s, %s)", a, b);
    case RANGE_HALF: return arena_printf(graph->arena, "ceil(%s, 2)", a);
    case RANGE_LESS: return arena_printf(graph->arena, "%s - (%s)", a, b);
    case RANGE_FORMS: break;
    }
    return "";
}

static const char *condition_text(Graph *graph, const Condition *condition) {
    if (condition->nonempty >= 0)
        return arena_printf(graph->arena, "r%d nonempty", condition->nonempty);
    return arena_printf(graph->arena, "%s %s %s", term_text(graph, &condition->left),
                        operators[condition->op], term_text(graph, &condition->right));
}

/* ---- statements ------------------------------------------------------------------------------ */

static void line(Printer *p, const char *format, ...) PRINTF_LIKE(2, 3);
static void line(Printer *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    str_printf(&p->out, "%*s", 4 * p->indent, "");
    str_vprintf(&p->out, format, args);
    str_char(&p->out, '\n');
    va_end(args);
}

static const char *share(const Printer *p) {
    return p->role->instances > 1 && !p->role->in_turn ? "rank*16 + i" : "i";
}

static int part_of(const GraphRole *role) {
    return role->instances > 1 && !role->in_turn ? WIDTH / role->instances : WIDTH;
}

static const char *range_text(const Printer *p, Form form) {
    if (form != FORM_RANGE) return "";
    return arena_printf(p->graph->arena, " for i in 0 .. %d", part_of(p->role));
}

static void print_read(Printer *p, const Node *node) {
    static const char *const reductions[] = {
        [FORM_SUM] = "sum", [FORM_MAX] = "max", [FORM_MIN] = "min"};
    Arena *arena = p->graph->arena;
    const char *value = arena_printf(arena, "s%d.v[%s]", node->stage, share(p)), *suffix = "";
    if (node->form == FORM_WHERE) suffix = arena_printf(arena, " where %s %% 3 != 0", value);
    if (node->form == FORM_RANGE) suffix = range_text(p, node->form);
    if (node->form == FORM_SUM || node->form == FORM_MAX || node->form == FORM_MIN)
        value = arena_printf(arena, "%s + (%s[e] s%d.v[e])", value, reductions[node->form],
                             node->stage);
    line(p, "%s[i] = %s[i] * 31 + %s + %d%s;", p->sum, p->sum, value, node->constant, suffix);
}

static void print_use(Printer *p, const Node *node) {
    const char *at = share(p), *range = range_text(p, node->form), *before = "";
    if (p->graph->pipes[node->pipe].token) return;
    const char *term = term_text(p->graph, &node->term);
    if (!node->produce) {
        print_read(p, node);
    } else if (node->copy >= 0) {
        line(p, "s%d.v[%s] = %s[%s + %d, %s]%s;", node->stage, at, node->copy == 0 ? "A" : "B",
             term, node->constant % 3, at, range);
    } else {
        if (p->role->writes) before = arena_printf(p->graph->arena, "%s[i] * 3 + ", p->sum);
        line(p, "s%d.v[%s] = %s%d + 7 * (%s)%s;", node->stage, at, before, node->constant, term,
             range);
    }
}

static void print_nodes(Printer *p, const Nodes *nodes);

static void print_for(Printer *p, const Node *node) {
    const char *end = range_end(p->graph, &p->graph->ranges[node->range]);
    if (node->unrolled) {
        line(p, "{");
        p->indent++;
        line(p, "let k%d = 0;", node->loop);
        p->indent--;
    } else if (node->from < 0 && node->to < 0) {
        line(p, "for k%d in r%d {", node->loop, node->range);
    } else if (node->to < 0 && node->from == 1) {
        line(p, "for k%d in r%d from 1 {", node->loop, node->range);
    } else if (node->to < 0) {
        line(p, "for k%d in r%d[%d .. %s] {", node->loop, node->range, node->from, end);
    } else {
        line(p, "for k%d in r%d[%d .. %d] {", node->loop, node->range,
             node->from < 0 ? 0 : node->from, node->to);
    }
    print_nodes(p, &node->body);
    line(p, "}");
}

static void print_stage(Printer *p, const Node *node) {
    Arena *arena = p->graph->arena;
    const char *end = node->produce ? "produce" : "consume",
               *hint = node->hint >= 0 ? arena_printf(arena, " if h%d", node->hint) : "",
               *lag = node->lag >= 0 ? arena_printf(arena, " lag %d", node->lag) : "";
    line(p, "%s <p%d>%s%s as s%d {", end, node->pipe, hint, lag, node->stage);
    p->indent++;
    print_use(p, node);
    p->indent--;
    print_nodes(p, &node->body);
    line(p, "}");
}

static void print_node(Printer *p, const Node *node) {
    switch (node->kind) {
    case NODE_LIST: print_nodes(p, &node->body); break;
    case NODE_FOR: print_for(p, node); break;
    case NODE_IF:
        line(p, "if %s {", condition_text(p->graph, &node->condition));
        print_nodes(p, &node->body);
        if (node->otherwise.count > 0) {
            line(p, "} else {");
            print_nodes(p, &node->otherwise);
        }
        line(p, "}");
        break;
    case NODE_LEAVE:
        line(p, "if %s { %s; }", condition_text(p->graph, &node->condition),
             node->goes_on ? "continue" : "break");
        break;
    case NODE_STAGE: print_stage(p, node); break;
    case NODE_ACQUIRE:
        line(p, "%s s%d = %s <p%d>%s;", node->is_var ? "var" : "let", node->stage,
             node->produce ? "produce" : "consume", node->pipe,
             node->hint >= 0 ? arena_printf(p->graph->arena, " if h%d", node->hint) : "");
        break;
    case NODE_USE: print_use(p, node); break;
    case NODE_RELEASE:
        if (node->by_call)
            line(p, "done_%d(s%d);", node->pipe, node->stage);
        else
            line(p, "release s%d;", node->stage);
        break;
    case NODE_MOVE: line(p, "s%d = s%d;", node->stage, node->other); break;
    case NODE_HINT:
        line(p, "let h%d = try %s <p%d>;", node->hint, node->produce ? "produce" : "consume",
             node->pipe);
        break;
    case NODE_EVENT:
    case NODE_ROTATE: break; /* occurs only in scripts */
    }
}

static void print_nodes(Printer *p, const Nodes *nodes) {
    p->indent++;
    for (size_t i = 0; i < nodes->count; i++) print_node(p, nodes->items[i]);
    p->indent--;
}

/* ---- program --------------------------------------------------------------------------------- */

static void print_result(Printer *p, int number, const char *place) {
    const char *target = arena_printf(p->graph->arena, "Y%d[%s, %s]", number, place, share(p));
    if (p->role->form == FORM_WHERE) {
        line(p, "%s = acc[i] where acc[i] %% 3 != 0;", target);
        line(p, "%s = acc[i] where acc[i] %% 3 == 0;", target);
    } else {
        line(p, "%s = acc[i]%s;", target, range_text(p, p->role->form));
    }
}

static void print_role(Printer *p, int number) {
    const GraphRole *role = p->role = &p->graph->roles[number];
    const char *grid = p->graph->axes == 2 ? "(t, u)" : "t",
               *place = p->graph->axes == 2 ? "t, u" : "t";
    int part = part_of(role);
    if (role->instances > 1)
        line(p, "role w%d: %d warpgroups%s {", number, role->instances,
             role->in_turn ? " in turn" : "");
    else
        line(p, "role w%d: %d warp%s {", number, role->warps, role->warps == 1 ? "" : "s");
    p->indent++;
    if (role->writes) line(p, "var base: i32[%d] = 0;", part);
    p->sum = "base";
    p->indent--;
    print_nodes(p, &role->before);
    p->indent++;
    line(p, "for %s in grid {", grid);
    p->indent++;
    p->sum = "acc";
    if (role->writes) {
        line(p, "var acc: i32[%d];", part);
        line(p, "acc[i] = base[i];");
    }
    if (role->in_turn) line(p, "turn {");
    p->indent -= !role->in_turn;
    print_nodes(p, &role->body);
    p->indent += !role->in_turn;
    if (role->in_turn) line(p, "}");
    if (role->writes) print_result(p, number, place);
    p->indent--;
    line(p, "}");
    p->indent--;
    p->sum = "base";
    print_nodes(p, &role->after);
    line(p, "}");
}

static void print_pipes(Printer *p) {
    for (int i = 0; i < p->graph->pipe_count; i++) {
        const GraphPipe *pipe = &p->graph->pipes[i];
        Str to = str_new(p->graph->arena);
        for (int c = 0; c < pipe->consumer_count; c++)
            str_printf(&to, "%sw%d", c > 0 ? ", " : "", pipe->consumers[c]);
        line(p, "pipe p%d[%d] w%d -> %s%s", i, pipe->depth, pipe->producer, to.text,
             pipe->token ? ";" : " { v: i32[32]; }");
    }
}

static void print_head(Printer *p) {
    Graph *graph = p->graph;
    Str tensors = str_new(graph->arena);
    str_add(&tensors, "");
    for (int i = 0; i < graph->role_count; i++)
        if (graph->roles[i].writes)
            str_printf(&tensors, ", out Y%d: i32[M, %s32]", i, graph->axes == 2 ? "L, " : "");
    for (int i = 0; i < graph->pipe_count && graph->by_call; i++)
        line(p, "fn done_%d(s: stage p%d) { release s; }", i, i);
    line(p, "kernel graph(A: i32[K, 32], B: i32[L, 32], q: i32%s) for sm_90a {", tensors.text);
    p->indent++;
    const char *blocks = graph->dynamic ? "dynamic " : graph->persistent ? "persistent " : "";
    line(p, "grid %s(t: M%s);", blocks, graph->axes == 2 ? ", u: L" : "");
    if (graph->cluster > 1) line(p, "cluster (t: %d);", graph->cluster);
    for (int i = 0; i < graph->range_count; i++) {
        const Range *range = &graph->ranges[i];
        const char *where = range->parity >= 0 ? arena_printf(graph->arena, " where r%d %% 2 == %d",
                                                              i, range->parity)
                                               : "";
        line(p, "range r%d = 0 .. %s%s;", i, range_end(graph, range), where);
    }
}

const char *graph_text(Graph *graph) {
    Printer p = {.graph = graph, .out = str_new(graph->arena)};
    print_head(&p);
    print_pipes(&p);
    for (int i = 0; i < graph->role_count; i++) print_role(&p, i);
    p.indent = 0;
    line(&p, "}");
    return p.out.text;
}
