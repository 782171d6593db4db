/* Random roles and pipes: graphs that the check proves free of deadlock for all counts run to
 * the end at each small count; refused graphs deadlock; few are undecided, though many have
 * loops in pieces over one number. Two arguments: number of programs, and first seed; a third
 * one prints the undecided ones. */
#include "check/sizes/trace.h"
#include "check/check.h"
#include "parser/parser.h"
#include "tests/unit/expect.h"

#include <stdlib.h>

#define ROLES_MOST 4
#define PIPES_MOST 6
#define NODES_MOST 60

typedef enum NodeKind { NODE_OP, NODE_LOOP, NODE_IF } NodeKind;

typedef struct Node {
    NodeKind kind;
    int pipe;            /* OP */
    int range;           /* LOOP */
    int condition, loop; /* IF: index of the loop, -1: none */
    int children[10], count;
} Node;

typedef struct Kernel {
    Arena *arena;
    uint64_t state;
    int roles, pipes, nodes, names;
    int stages[PIPES_MOST], producer[PIPES_MOST], consumers[PIPES_MOST]; /* consumers: a set */
    bool in_turn[ROLES_MOST];
    Node node[NODES_MOST];
    bool reads, lively;
} Kernel;

static uint32_t draw(Kernel *k, uint32_t below) { /* splitmix64 */
    uint64_t z = k->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

static bool chance(Kernel *k, uint32_t percent) { return draw(k, 100) < percent; }

/* ---- a script for all roles ------------------------------------------------------------------ */

static int grow(Kernel *k, int depth, int loop) {
    int index = k->nodes++;
    Node *node = &k->node[index];
    uint32_t kind = depth == 0 ? 0 : draw(k, 10);
    *node = (Node){.kind = depth == 0                               ? NODE_LOOP
                           : kind < 5 || depth > 3 || k->nodes > 40 ? NODE_OP
                           : kind < 8                               ? NODE_LOOP
                                                                    : NODE_IF,
                   .loop = loop};
    if (node->kind == NODE_OP) {
        node->pipe = (int)draw(k, (uint32_t)k->pipes);
        return index;
    }
    node->range = depth == 0 ? -1 : (int)draw(k, 4);
    node->condition = (int)draw(k, 8);
    int count = depth == 0 ? 2 + (int)draw(k, 3) : 1 + (int)draw(k, 3),
        around = node->kind == NODE_LOOP ? index : loop;
    for (int i = 0; i < count; i++) {
        int child = grow(k, depth + 1, around);
        k->node[index].children[i] = child;
    }
    k->node[index].count = count;
    return index;
}

static bool uses(const Kernel *k, const Node *node, int pipe) {
    if (node->kind == NODE_OP) return node->pipe == pipe;
    for (int i = 0; i < node->count; i++)
        if (uses(k, &k->node[node->children[i]], pipe)) return true;
    return false;
}

/* Adds a pipe without events to some loop */
static void add_use(Kernel *k, int pipe) {
    int to = 0;
    if (uses(k, &k->node[0], pipe)) return;
    for (int i = 1; i < k->nodes; i++)
        if (k->node[i].kind != NODE_OP && k->node[i].count < 9 && chance(k, 40)) to = i;
    k->node[k->nodes] = (Node){.kind = NODE_OP, .pipe = pipe, .loop = to};
    k->node[to].children[k->node[to].count++] = k->nodes++;
}

static bool takes(const Kernel *k, const Node *node, int role) {
    if (node->kind == NODE_OP)
        return k->producer[node->pipe] == role || (k->consumers[node->pipe] >> role & 1);
    for (int i = 0; i < node->count; i++)
        if (takes(k, &k->node[node->children[i]], role)) return true;
    return false;
}

static void tell_list(Kernel *k, Str *out, const Node *node, int role, const char *variable);

static const char *condition_text(Kernel *k, const Node *node, const char *variable) {
    static const char *const fixed[] = {"N > 2", "M < N", "L[t] > 1", "t % 2 == 0"};
    const Node *loop = &k->node[node->loop];
    if (node->condition == 2) k->reads = true;
    if (node->condition < 4 || loop->range < 0) return fixed[node->condition % 4];
    switch (node->condition) {
    case 4: return arena_printf(k->arena, "%s %% 2 == 0", variable);
    case 5: return arena_printf(k->arena, "%s < 2 || %s == 4", variable, variable);
    case 6:
        return arena_printf(k->arena, "%s + 1 < %s", variable,
                            loop->range == 0   ? "N"
                            : loop->range == 1 ? "M"
                                               : "2");
    }
    return arena_printf(k->arena, "%s %% 3 == 1 && N != 3", variable);
}

static void tell_loop(Kernel *k, Str *out, const Node *node, int role) {
    static const char *const ranges[] = {"kn", "km", "0 .. 2", "kl"};
    const char *range = ranges[node->range], *name = arena_printf(k->arena, "v%d", k->names++);
    uint32_t how = node->range == 2 ? 9 : draw(k, 12);
    if (node->range == 3) k->reads = true;
    if (how == 0) { /* peels off the first one */
        str_printf(out, "if %s nonempty { ", range);
        tell_list(k, out, node, role, "0");
        str_printf(out, "for %s in %s from 1 { ", name, range);
        tell_list(k, out, node, role, name);
        str_add(out, "} } ");
    } else if (how == 1) {
        str_printf(out, "for %s in %s[0 .. 2] { ", name, range);
        tell_list(k, out, node, role, name);
        str_printf(out, "} for %s in %s from 2 { ", name, range);
        tell_list(k, out, node, role, name);
        str_add(out, "} ");
    } else if (how == 2 && node->range == 0) {
        str_printf(out, "for %s in kn[0 .. M] { ", name);
        tell_list(k, out, node, role, name);
        str_printf(out, "} for %s in kn[M .. N] { ", name);
        tell_list(k, out, node, role, name);
        str_add(out, "} ");
    } else {
        str_printf(out, "for %s in %s { ", name, range);
        tell_list(k, out, node, role, name);
        str_add(out, "} ");
    }
}

static void tell(Kernel *k, Str *out, const Node *node, int role, const char *variable) {
    if (!takes(k, node, role)) return;
    if (node->kind == NODE_LOOP) tell_loop(k, out, node, role);
    if (node->kind != NODE_IF) return;
    str_printf(out, "if %s { ", condition_text(k, node, variable));
    tell_list(k, out, node, role, variable);
    str_add(out, "} ");
}

/* In a random order, each stage held during some of the following events */
static void tell_list(Kernel *k, Str *out, const Node *node, int role, const char *variable) {
    int order[10], closing = 0, held[4], held_count = 0;
    for (int i = 0; i < node->count; i++) order[i] = node->children[i];
    for (int i = node->count; i-- > 1;)
        if (k->lively && chance(k, 25)) {
            int other = (int)draw(k, (uint32_t)i + 1), swap = order[i];
            order[i] = order[other];
            order[other] = swap;
        }
    for (int i = 0; i < node->count; i++) {
        const Node *child = &k->node[order[i]];
        if (child->kind != NODE_OP) tell(k, out, child, role, variable);
        if (child->kind != NODE_OP || !takes(k, child, role)) continue;
        for (int end = 0; end < 2; end++) {
            if (end == 0 ? k->producer[child->pipe] != role
                         : !(k->consumers[child->pipe] >> role & 1))
                continue;
            const char *verb = end ? "consume" : "produce";
            int name = k->names++;
            uint32_t how = draw(k, 10);
            if (how == 0) {
                str_printf(out, "%s <p%d> as s%d { ", verb, child->pipe, name);
                closing++;
            } else if (how == 1 && closing == 0) {
                str_printf(out, "let s%d = %s <p%d>; ", name, verb, child->pipe);
                held[held_count++] = name;
                if (held_count == 4) str_printf(out, "release s%d; ", held[--held_count]);
            } else if (how == 2 && end && closing == 0 && node->kind == NODE_LOOP && chance(k, 50))
                str_printf(out, "%s <p%d> lag 1 as s%d { } ", verb, child->pipe, name);
            else
                str_printf(out, "%s <p%d> as s%d { } ", verb, child->pipe, name);
        }
        if (held_count && closing == 0 && chance(k, 50))
            str_printf(out, "release s%d; ", held[--held_count]);
    }
    while (closing-- > 0) str_add(out, "} ");
    while (held_count > 0) str_printf(out, "release s%d; ", held[--held_count]);
}

static const char *program(Kernel *k) {
    Str out = str_new(k->arena);
    k->roles = 2 + (int)draw(k, ROLES_MOST - 1);
    k->pipes = 1 + (int)draw(k, PIPES_MOST);
    k->lively = chance(k, 60);
    str_add(&out,
            "kernel k(X: f32[N], Y: f32[M], L: i32[T]) for sm_90a {\n    grid persistent (t: T);\n"
            "    range kn = 0 .. N;\n    range km = 0 .. M;\n    range kl = 0 .. min(L[t], 3);\n");
    for (int p = 0; p < k->pipes; p++) {
        k->stages[p] = 1 + (int)draw(k, 3);
        k->producer[p] = (int)draw(k, (uint32_t)k->roles);
        k->consumers[p] = 0;
        str_printf(&out, "    pipe p%d[%d] r%d -> ", p, k->stages[p], k->producer[p]);
        int first =
            ((chance(k, 95) ? 1 + (int)draw(k, (uint32_t)k->roles - 1) : 0) + k->producer[p]) %
            k->roles;
        k->consumers[p] |= 1 << first;
        str_printf(&out, "r%d", first);
        int second = (int)draw(k, (uint32_t)k->roles);
        if (chance(k, 15) && second != first && second != k->producer[p]) {
            k->consumers[p] |= 1 << second;
            str_printf(&out, ", r%d", second);
        }
        str_add(&out, ";\n");
    }
    for (int r = 0; r < k->roles; r++) k->in_turn[r] = chance(k, 12);
    k->nodes = 0;
    grow(k, 0, 0);
    for (int p = 0; p < k->pipes; p++) add_use(k, p);
    for (int r = 0; r < k->roles; r++) {
        str_printf(&out, "    role r%d: %s { for t in grid { %s", r,
                   k->in_turn[r] ? "2 warpgroups in turn" : "1 warp",
                   k->in_turn[r] ? "turn { " : "");
        tell_list(k, &out, &k->node[0], r, "t");
        str_printf(&out, "%s} }\n", k->in_turn[r] ? "} " : "");
    }
    str_add(&out, "}\n");
    return out.text;
}

/* ---- verdict and runs ------------------------------------------------------------------------ */

typedef struct Tally {
    int programs, clean, stuck, undecided, needless, missed, other, wrong;
} Tally;

static int symbol_of(const Prog *prog, const char *name) {
    for (size_t i = 0; i < prog->symbols.count; i++)
        if (strcmp(prog->symbols.items[i].name, name) == 0) return (int)i;
    return -1;
}

/* True if some process waits for ever at small sizes */
static bool waits(Arena *arena, Prog *prog, bool reads, int64_t most, int64_t *at) {
    Sizes *sizes = sizes_new(arena, prog, true);
    Traced *traced = trace_new(arena, prog, ALL_PIPES, NULL, NULL);
    const char *const names[] = {"N", "M", "T"};
    int symbols[3];
    for (int i = 0; i < 3; i++) symbols[i] = symbol_of(prog, names[i]);
    for (at[0] = 0; at[0] <= most; at[0]++)
        for (at[1] = 0; at[1] <= most; at[1]++)
            for (at[2] = 0; at[2] <= 4; at[2]++)
                for (at[3] = reads; at[3] <= (reads ? 3 : 0); at[3]++) {
                    BlockRun block = {.sizes = sizes};
                    size_t steps = 0;
                    for (int i = 0; i < 3; i++)
                        if (symbols[i] >= 0) sizes->values[symbols[i]] = at[i];
                    Reads made = {.seed = (uint64_t)at[3], .most = 4};
                    block.reads = reads ? &made : NULL;
                    Arena *scratch = arena_scratch(arena);
                    bool stuck = sizes_allowed(sizes) &&
                                 sizes_tiles(sizes, block.extents, &block.tiles) &&
                                 trace_try(scratch, traced, &block, &steps) == TRACE_STUCK;
                    arena_free(scratch);
                    if (stuck) return true;
                }
    return false;
}

static void try_one(uint64_t seed, Tally *tally, bool loud) {
    Arena *arena = arena_new();
    Kernel *k = NEW(arena, Kernel);
    int64_t at[4];
    k->arena = arena;
    k->state = seed * 0x2545f4914f6cdd1du;
    const char *text = program(k);
    Source *source = source_new(arena, "random.pipe", text, strlen(text));
    Diags *diags = diags_new(arena, source);
    Names *names = names_new(arena);
    Ast *ast = parser_parse(arena, names, source, diags);
    Prog *prog = check_kernel(arena, names, ast, "k", NULL, 0, diags);
    bool undecided = false, stuck = false;
    for (size_t i = 0; i < diags->items.count; i++) {
        undecided |= diags->items.items[i]->code == P0461;
        stuck |= diags->items.items[i]->code == P0460;
    }
    tally->programs++;
    if (stuck)
        tally->stuck++;
    else if (!prog)
        tally->other++;
    else {
        bool found = waits(arena, prog, k->reads, 5, at);
        tally->clean += !undecided;
        tally->undecided += undecided;
        tally->needless += undecided && !found;
        if (found && !undecided) {
            tally->wrong++;
            fprintf(stderr,
                    "seed %llu: waits for ever with N = %d, M = %d, T = %d, reading %d, and is "
                    "found right:\n%s",
                    (unsigned long long)seed, (int)at[0], (int)at[1], (int)at[2], (int)at[3], text);
        }
        tally->missed += undecided && found;
        if (loud && undecided && !found) {
            Str out = str_new(arena);
            diags_render(diags, false, &out);
            fprintf(stderr, "seed %llu: undecided:\n%s%s", (unsigned long long)seed, text,
                    out.text);
        }
    }
    if (loud && !prog && !stuck && seed % 50 == 0) {
        Str out = str_new(arena);
        diags_render(diags, false, &out);
        fprintf(stderr, "seed %llu: other:\n%s%s", (unsigned long long)seed, text, out.text);
    }
    arena_free(arena);
}

int main(int argc, char **argv) {
    Tally tally = {0};
    int programs = argc > 1 ? atoi(argv[1]) : 150;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (int i = 0; i < programs; i++) try_one(first + (uint64_t)i, &tally, argc > 3);
    if (argc > 1)
        printf("%d programs: %d right, %d wait, %d undecided (%d where nobody waits), %d refused "
               "for other reasons, %d wrong\n",
               tally.programs, tally.clean, tally.stuck, tally.undecided, tally.needless,
               tally.other, tally.wrong);
    EXPECT(tally.wrong == 0);
    EXPECT(tally.clean > programs / 10 && tally.stuck > programs / 20);
    EXPECT(tally.needless <= tally.clean / 10 && tally.missed <= 1 + programs / 500);
    return expect_failures();
}
