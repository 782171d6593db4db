/* Proves for all counts that the roles do not deadlock. Needs equal counts.
 *
 * In a deadlock there is a cycle of roles each of which waits for the next one, over a pipe.
 * Such a cycle is inside one biconnected component (part) of the graph of roles and pipes, so
 * each part is analysed separately, as if all other pipes never blocked. A part of one producer
 * and one consumer is deadlock-free if together they hold fewer stages than the ring has
 * (window.c); for other parts states are searched. Blocks of a cluster that share copies all
 * execute the same, or one role shares them (multicast.c): then no cycle passes through several
 * blocks unless one exists in a single block, so one block represents all. */
#include "check/deadlock/deadlock_search.h"
#include "check/pipes/window.h"

#define SEARCH_STEPS 10000000 /* for one search */

typedef struct Edge { /* producer and one consumer of a pipe */
    int pipe, producer, consumer;
    int part; /* index of its part; -1: none yet */
} Edge;

typedef struct Graph {
    Arena *arena;
    Prog *prog;
    VEC(Edge) edges;
    int *order, *low, clock; /* by role, of the depth-first search */
    VEC(int) open;           /* edges of incomplete parts */
    int parts;
    Budget work; /* for all searches */
} Graph;

/* ---- parts ----------------------------------------------------------------------------------- */

/* Tarjan's algorithm for biconnected components */
static void walk(Graph *g, int role, int by) {
    g->order[role] = g->low[role] = ++g->clock;
    for (int e = 0; e < (int)g->edges.count; e++) {
        Edge *edge = &g->edges.items[e];
        if (e == by || edge->part >= 0 || edge->producer == edge->consumer) continue;
        int other = edge->producer == role   ? edge->consumer
                    : edge->consumer == role ? edge->producer
                                             : -1;
        if (other < 0) continue;
        if (g->order[other]) {
            if (g->order[other] < g->order[role]) vec_push(g->arena, &g->open, e);
            if (g->order[other] < g->low[role]) g->low[role] = g->order[other];
            continue;
        }
        size_t mark = g->open.count;
        vec_push(g->arena, &g->open, e);
        walk(g, other, e);
        if (g->low[other] < g->low[role]) g->low[role] = g->low[other];
        if (g->low[other] < g->order[role]) continue;
        while (g->open.count > mark) g->edges.items[g->open.items[--g->open.count]].part = g->parts;
        g->parts++;
    }
}

static void unite(Graph *g, int a, int b) {
    for (size_t e = 0; e < g->edges.count && a != b; e++)
        if (g->edges.items[e].part == b) g->edges.items[e].part = a;
}

/* A role whose instances run independently is several processes: all of its edges belong to one
 * part */
static void unite_around(Graph *g, int role) {
    int part = -1;
    for (size_t e = 0; e < g->edges.count; e++) {
        const Edge *edge = &g->edges.items[e];
        if (edge->producer != role && edge->consumer != role) continue;
        if (part >= 0)
            unite(g, part, edge->part);
        else
            part = edge->part;
    }
}

static void find_parts(Graph *g) {
    /* the pipes of a dynamic grid are the last */
    size_t pipes = tiles_add_no_deadlock(g->arena, g->prog) ? (size_t)g->prog->draws.tiles
                                                            : g->prog->pipes.count;
    for (size_t p = 0; p < pipes; p++) {
        const Pipe *pipe = &g->prog->pipes.items[p];
        if (pipe->unproved) continue; /* explicit signals: reported as P0490 */
        for (size_t c = 0; c < pipe->consumers.count; c++)
            vec_push(g->arena, &g->edges,
                     (Edge){(int)p, pipe->producer, pipe->consumers.items[c], -1});
    }
    for (size_t r = 0; r < g->prog->roles.count; r++)
        if (!g->order[r]) walk(g, (int)r, -1);
    /* a pipe from a role to itself belongs to the part of the role's other edges */
    for (size_t e = 0; e < g->edges.count; e++)
        if (g->edges.items[e].part < 0) {
            g->edges.items[e].part = g->parts++;
            for (size_t k = 0; k < e; k++)
                if (g->edges.items[k].producer == g->edges.items[e].producer &&
                    g->edges.items[k].consumer == g->edges.items[k].producer)
                    unite(g, g->edges.items[k].part, g->edges.items[e].part);
        }
    for (size_t r = 0; r < g->prog->roles.count; r++)
        if (role_is_several(&g->prog->roles.items[r])) unite_around(g, (int)r);
}

/* ---- the window condition -------------------------------------------------------------------- */

static bool proved_by_windows(const Graph *g, int part) {
    VEC(PipeEdge) edges = {0};
    for (size_t e = 0; e < g->edges.count; e++)
        if (g->edges.items[e].part == part)
            vec_push(g->arena, &edges,
                     (PipeEdge){g->edges.items[e].pipe, g->edges.items[e].consumer});
    return window_proves(g->arena, g->prog, edges.items, edges.count);
}

/* ---- one part -------------------------------------------------------------------------------- */

static bool is_among(const int *items, size_t count, int index) {
    for (size_t i = 0; i < count; i++)
        if (items[i] == index) return true;
    return false;
}

/* Number of the part's edges between the role and roles that are already added; if there are
 * none, all edges of the role */
static int count_edges(const Graph *g, const Part *part, int which, int role) {
    const int *in = part->roles.items;
    size_t count = part->roles.count;
    int edges = 0;
    for (size_t e = 0; e < g->edges.count; e++) {
        const Edge *edge = &g->edges.items[e];
        if (edge->part != which || (edge->producer != role && edge->consumer != role)) continue;
        int other = edge->producer == role ? edge->consumer : edge->producer;
        edges += count == 0 || is_among(in, count, other);
    }
    return edges;
}

/* Adds the role with the most edges to earlier ones next: loops are matched by the pipes that
 * they share. -1: none is left */
static int next_role(const Graph *g, const Part *part, int which) {
    int next = -1, most = 0;
    for (int r = 0; r < (int)g->prog->roles.count; r++) {
        int edges =
            is_among(part->roles.items, part->roles.count, r) ? 0 : count_edges(g, part, which, r);
        if (edges > most) next = r, most = edges;
    }
    return next;
}

static Part *part_of(const Graph *g, Arena *arena, int which) {
    Part *part = NEW(arena, Part);
    *part = (Part){.arena = arena, .prog = g->prog};
    part->consumes = NEW_ARRAY(arena, bool *, g->prog->pipes.count + 1);
    for (int role; (role = next_role(g, part, which)) >= 0;) vec_push(arena, &part->roles, role);
    for (size_t e = 0; e < g->edges.count; e++) {
        const Edge *edge = &g->edges.items[e];
        if (edge->part != which) continue;
        bool **consumes = &part->consumes[edge->pipe];
        if (!*consumes) *consumes = NEW_ARRAY(arena, bool, g->prog->roles.count + 1);
        (*consumes)[edge->consumer] = true;
        if (!is_among(part->pipes.items, part->pipes.count, edge->pipe))
            vec_push(arena, &part->pipes, edge->pipe);
    }
    return part;
}

/* most other loops and conditions in the message if none is around a wait */
#define UNMATCHED_MOST 2

/* In an iteration of the grid no axis is empty */
static void learn_grid(const Graph *g, Part *part) {
    for (int inside = 0; inside < 2; inside++)
        part->algebra[inside] = algebra_new(part->arena, g->prog, NULL);
    for (size_t i = 0; i < g->prog->axes.count; i++) {
        Expr *extent = g->prog->axes.items[i].extent;
        if (!extent || extent->kind == X_POISON || extent->kind == X_CONST) continue;
        algebra_assume(part->algebra[1], NULL, positive(part->arena, extent), true);
    }
}

static bool others_ask(const Part *part, int side, int region) {
    const Side *own = &part->sides.items[side];
    for (size_t q = 0; q < own->questions.count; q++) {
        const int *last = part->numbers.items[own->questions.items[q].number].last;
        if (own->questions.items[q].region != region) continue;
        bool shared = false;
        for (size_t k = 0; k < part->sides.count; k++) shared |= (int)k != side && last[k] >= 0;
        if (!shared) return false;
    }
    return true;
}

static bool others_loop(const Part *part, int side, const Loop *loop) {
    bool shared = loop->group < 0;
    for (size_t k = 0; k < part->sides.count && !shared; k++)
        shared = (int)k != side && part->groups.items[loop->group].last[k] >= 0;
    return shared;
}

/* Records the innermost region around the wait that has no match in another role */
static void note_unmatched(const Graph *g, const Part *part, const Position *place, int side,
                           Undecided *undecided) {
    const FlowCode *slice = place->member->code;
    for (int r = position_row(place)->region; r >= 0; r = slice->regions.items[r].parent) {
        const Region *region = &slice->regions.items[r];
        bool loops = region_loops(region);
        if (loops ? others_loop(part, side, &part->sides.items[side].loops[r])
                  : region->kind != REGION_IF || others_ask(part, side, r))
            continue;
        vec_push(g->arena, &undecided->unmatched, ((Unmatched){region->head, loops}));
        return;
    }
}

/* If there is none: records other unmatched regions, in the first role that has any */
static void note_others(const Graph *g, const Part *part, Undecided *undecided) {
    for (size_t i = 0; i < part->sides.count && !undecided->unmatched.count; i++) {
        const Side *side = &part->sides.items[i];
        for (size_t r = 0; r < side->slice->regions.count; r++)
            if (side->loops[r].region && undecided->unmatched.count < UNMATCHED_MOST &&
                !others_loop(part, (int)i, &side->loops[r]))
                vec_push(g->arena, &undecided->unmatched,
                         ((Unmatched){side->loops[r].region->head, true}));
    }
}

static void note_waits(const Graph *g, const Part *part, const Machine *m, const State *stuck,
                       Undecided *undecided) {
    for (int p = 0; p < (int)m->processes.count; p++) {
        Position place = machine_position(m, stuck, p);
        if (position_ended(&place)) continue;
        note_unmatched(g, part, &place, m->processes.items[p].member, undecided);
        vec_push(g->arena, &undecided->waits, position_row(&place));
        vec_push(g->arena, &undecided->roles, place.member->role);
    }
}

typedef struct Way { /* a variant of the search. A proof by one variant suffices. */
    bool proves, cuts, drops;
    int32_t exact;
} Way;

/* The cheapest first */
static const Way ways[] = {{.exact = EXACT},
                           {.proves = true, .exact = EXACT},
                           {.proves = true, .cuts = true, .exact = EXACT},
                           {.proves = true, .drops = true, .exact = EXACT},
                           {.proves = true, .exact = EXACT_MORE}};
#define WAYS COUNT_OF(ways)

static Verdict search_part(const Graph *g, Part *part, uint64_t steps, Undecided *undecided) {
    learn_grid(g, part);
    if (part->split.by) part_split_begin(part);
    part->work = budget_of(g->work, steps);
    bool compiled = part_compile(part);
    undecided->span = part->beyond_at;
    undecided->why = part->beyond;
    if (!compiled) return VERDICT_BEYOND;
    undecided->span = part->sides.items[0].role->span;
    part->work = budget_of(g->work, steps);
    Search *search = search_new(part->arena, part);
    State state;
    Verdict verdict = search_states(search, &state);
    if (verdict == VERDICT_BEYOND) undecided->why = search->machine->beyond;
    if (verdict == VERDICT_STUCK) note_waits(g, part, search->machine, &state, undecided);
    if (verdict != VERDICT_CLEAN) note_others(g, part, undecided);
    return verdict;
}

/* Tries all variants, first with few steps: most parts need no more. undecided, *part: of the
 * second variant, which keeps all rows as written. */
static bool part_proved(const Graph *g, Arena *arena, int which, Split split, Part **part,
                        Undecided *undecided) {
    bool settled[WAYS] = {false};
    for (uint64_t steps = SEARCH_STEPS / 10; steps <= SEARCH_STEPS; steps *= 10)
        for (size_t w = 0; w < WAYS; w++) {
            if (settled[w]) continue;
            Undecided found = {0};
            Part *searched = part_of(g, arena, which);
            searched->proves = ways[w].proves, searched->exact = ways[w].exact;
            searched->cuts = ways[w].cuts, searched->drops = ways[w].drops;
            searched->split = split;
            if (search_part(g, searched, steps, &found) == VERDICT_CLEAN) return true;
            settled[w] = !budget_is_used(searched->work);
            if (w <= 1) *undecided = found, *part = searched;
        }
    return false;
}

/* Proves each remainder of a size separately */
static bool split_proved(const Graph *g, Arena *arena, int which, Split split) {
    bool proved = true;
    for (split.rest = 0; split.rest < split.by && proved; split.rest++) {
        Undecided undecided = {0};
        Part *part;
        proved = part_proved(g, arena, which, split, &part, &undecided);
    }
    return proved;
}

static bool check_part(const Graph *g, Arena *arena, int which, Undecided *undecided) {
    Part *part;
    Split split = {0};
    if (part_proved(g, arena, which, split, &part, undecided)) return true;
    return part_split_find(part, &split) && split_proved(g, arena, which, split);
}

bool deadlock_proves(Arena *arena, Prog *prog, Budget work, Undecided *undecided) {
    size_t roles = prog->roles.count;
    Graph g = {.arena = arena,
               .prog = prog,
               .work = work,
               .order = NEW_ARRAY(arena, int, roles + 1),
               .low = NEW_ARRAY(arena, int, roles + 1)};
    bool clean = true;
    find_parts(&g);
    for (int part = 0; part < g.parts && clean; part++) {
        bool used = false;
        for (size_t e = 0; e < g.edges.count; e++) used |= g.edges.items[e].part == part;
        if (used && !proved_by_windows(&g, part)) clean = check_part(&g, arena, part, undecided);
    }
    return clean;
}
