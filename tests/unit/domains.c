/* Kernels whose variants have random domains: overlapping, disjoint, empty, with statics and with
 * conditions of the kernel. The verdict on sizes that no variant takes is compared with all small
 * sizes, and so are the choices for some. `domains COUNT SEED` draws others. */
#include "include/pipec.h"
#include "tests/unit/expect.h"

#include <stdarg.h>
#include <stdlib.h>

#define VARIANTS_MOST 4
#define VALUES_MOST   3
#define NODES_MOST    32
#define SIDE          34 /* M and N: 0 .. SIDE - 1 */
#define SCALARS       13 /* s: -3 .. 9 */

typedef struct Sizes {
    int64_t m, n, s, t, u; /* t: a static of the kernel, u: of the variant */
} Sizes;

typedef enum Kind { AND, OR, COMPARE, REST } Kind;
typedef enum Side { SIDE_M, SIDE_N, SIDE_S, SIDE_SUM, SIDE_TWICE, SIDES } Side;

typedef struct Node {
    Kind kind;
    int left, right; /* of AND and OR */
    Side side;
    int op;           /* of COMPARE: <=, >, ==, !=, <; of REST: ==, != */
    int64_t by, with; /* by: of REST; with: a number, or -1: T, -2: U */
} Node;

typedef struct Static { /* none: count is 0 */
    int64_t values[VALUES_MOST];
    size_t count;
} Static;

typedef struct Variant {
    int requires_; /* root */
    Static u;
} Variant;

typedef struct Drawn {
    uint64_t random;
    Node nodes[NODES_MOST];
    int count;
    int requires_; /* of the kernel; -1: none */
    Static t;
    Variant variants[VARIANTS_MOST];
    size_t variant_count;
    char text[16384];
    size_t length;
} Drawn;

static uint64_t draw(Drawn *it, uint64_t below) {
    it->random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = it->random;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % below;
}

/* ---- conditions ------------------------------------------------------------------------------ */

static const char *const sides[SIDES] = {"M", "N", "s", "M + N", "2*M - N"};
static const char *const ops[] = {"<=", ">", "==", "!=", "<"};

static int64_t side_at(Side side, const Sizes *at) {
    switch (side) {
    case SIDE_M: return at->m;
    case SIDE_N: return at->n;
    case SIDE_S: return at->s;
    case SIDE_SUM: return at->m + at->n;
    case SIDE_TWICE: return 2 * at->m - at->n;
    case SIDES: break;
    }
    return 0;
}

static bool holds(const Drawn *it, int root, const Sizes *at) {
    const Node *node = &it->nodes[root];
    if (node->kind == AND) return holds(it, node->left, at) && holds(it, node->right, at);
    if (node->kind == OR) return holds(it, node->left, at) || holds(it, node->right, at);
    int64_t a = side_at(node->side, at), b = node->with == -1   ? at->t
                                             : node->with == -2 ? at->u
                                                                : node->with;
    if (node->kind == REST) return (a % node->by == b) == (node->op == 2);
    return node->op == 0   ? a <= b
           : node->op == 1 ? a > b
           : node->op == 2 ? a == b
           : node->op == 3 ? a != b
                           : a < b;
}

static int add_leaf(Drawn *it, bool has_t, bool has_u) {
    Node node = {.kind = draw(it, 3) == 0 ? REST : COMPARE, .side = (Side)draw(it, SIDES)};
    if (node.kind == REST) {
        node.side = draw(it, 2) == 0 ? SIDE_M : SIDE_N; /* not negative */
        node.by = 2 + (int64_t)draw(it, 3);
        node.with = (int64_t)draw(it, (uint64_t)node.by);
        node.op = 2 + (int)draw(it, 2);
    } else {
        node.op = (int)draw(it, 5);
        node.with = (int64_t)draw(it, 14) - (node.side == SIDE_S ? 3 : 0);
        if (node.with < 0) node.with = 0;
        if (has_t && draw(it, 2) == 0) node.with = -1;
        if (has_u && draw(it, 2) == 0) node.with = -2;
    }
    it->nodes[it->count] = node;
    return it->count++;
}

static int add_condition(Drawn *it, bool has_t, bool has_u, int depth) {
    if (depth == 0 || it->count > NODES_MOST - 12 || draw(it, 2) == 0)
        return add_leaf(it, has_t, has_u);
    int left = add_condition(it, has_t, has_u, depth - 1),
        right = add_condition(it, has_t, has_u, depth - 1);
    it->nodes[it->count] =
        (Node){.kind = draw(it, 2) == 0 ? AND : OR, .left = left, .right = right};
    return it->count++;
}

/* The negation of a leaf: two variants then take all sizes */
static int add_opposite(Drawn *it, int leaf) {
    static const int opposite[] = {1, 0, 3, 2, -1};
    Node node = it->nodes[leaf];
    bool whole = node.kind == REST || node.op != 4;
    if (node.kind == AND || node.kind == OR || !whole || node.with == -2) return -1;
    node.op = opposite[node.op];
    it->nodes[it->count] = node;
    return it->count++;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void say(Drawn *it, const char *format, ...) {
    va_list list;
    va_start(list, format);
    it->length +=
        (size_t)vsnprintf(it->text + it->length, sizeof it->text - it->length, format, list);
    va_end(list);
}

static void say_condition(Drawn *it, int root) {
    const Node *node = &it->nodes[root];
    if (node->kind == AND || node->kind == OR) {
        say(it, "(");
        say_condition(it, node->left);
        say(it, node->kind == AND ? " && " : " || ");
        say_condition(it, node->right);
        say(it, ")");
        return;
    }
    say(it, "%s", sides[node->side]);
    if (node->kind == REST) say(it, " %% %d", (int)node->by);
    say(it, " %s ", ops[node->op]);
    if (node->with >= 0)
        say(it, "%d", (int)node->with);
    else
        say(it, "%s", node->with == -1 ? "T" : "U");
}

static void say_static(Drawn *it, const char *name, const Static *of) {
    if (of->count == 0) return;
    say(it, "    static %s = %d in {", name, (int)of->values[0]);
    for (size_t i = 0; i < of->count; i++) say(it, "%s%d", i > 0 ? ", " : "", (int)of->values[i]);
    say(it, "};\n");
}

static void say_requires(Drawn *it, int root) {
    if (root < 0) return;
    say(it, "    requires ");
    say_condition(it, root);
    say(it, ";\n");
}

static void say_all(Drawn *it) {
    it->length = 0;
    say(it, "kernel k(X: f32[M, N], out Y: f32[M, N], s: i32) for sm_90a {\n");
    say_static(it, "T", &it->t);
    say_requires(it, it->requires_);
    for (size_t v = 0; v < it->variant_count; v++) {
        say(it, "    variant v%zu {\n", v);
        say_static(it, "U", &it->variants[v].u);
        say_requires(it, it->variants[v].requires_);
        say(it, "    grid (m: M);\n"
                "    role r: 1 warp {\n"
                "        for m in grid { Y[m, j] = X[m, j] + f32(s) for j in 0 .. 32; }\n"
                "    }\n"
                "    }\n");
    }
    say(it, "}\n");
}

static Static draw_static(Drawn *it) {
    Static made = {.count = draw(it, 2) == 0 ? 0 : 1 + draw(it, VALUES_MOST)};
    for (size_t i = 0; i < made.count; i++) made.values[i] = (int64_t)(1 + i * 4 + draw(it, 4));
    return made;
}

static void draw_kernel(Drawn *it) {
    it->t = draw_static(it);
    it->requires_ = draw(it, 2) == 0 ? -1 : add_condition(it, it->t.count > 0, false, 1);
    it->variant_count = 1 + draw(it, VARIANTS_MOST);
    for (size_t v = 0; v < it->variant_count; v++) {
        Variant *variant = &it->variants[v];
        variant->u = draw_static(it);
        int opposite = v > 0 && draw(it, 2) == 0 && it->variants[v - 1].requires_ >= 0
                           ? add_opposite(it, it->variants[v - 1].requires_)
                           : -1;
        variant->requires_ = opposite >= 0 ? opposite
                             : draw(it, 6) == 0
                                 ? -1
                                 : add_condition(it, it->t.count > 0, variant->u.count > 0, 2);
    }
    say_all(it);
}

/* ---- what is true ---------------------------------------------------------------------------- */

static size_t ways(const Static *of) { return of->count > 0 ? of->count : 1; }

static bool takes(const Drawn *it, size_t v, Sizes at) {
    const Variant *variant = &it->variants[v];
    for (size_t t = 0; t < ways(&it->t); t++)
        for (size_t u = 0; u < ways(&variant->u); u++) {
            at.t = it->t.values[t], at.u = variant->u.values[u];
            if ((it->requires_ < 0 || holds(it, it->requires_, &at)) &&
                (variant->requires_ < 0 || holds(it, variant->requires_, &at)))
                return true;
        }
    return false;
}

static bool is_allowed(const Drawn *it, Sizes at) {
    for (size_t t = 0; t < ways(&it->t); t++) {
        at.t = it->t.values[t];
        if (it->requires_ < 0 || holds(it, it->requires_, &at)) return true;
    }
    return false;
}

static bool is_taken(const Drawn *it, Sizes at) {
    for (size_t v = 0; v < it->variant_count; v++)
        if (takes(it, v, at)) return true;
    return false;
}

static bool find_lacking(const Drawn *it, Sizes *at) {
    for (at->m = 0; at->m < SIDE; at->m++)
        for (at->n = 0; at->n < SIDE; at->n++)
            for (at->s = -3; at->s < SCALARS - 3; at->s++)
                if (is_allowed(it, *at) && !is_taken(it, *at)) return true;
    return false;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static int64_t value_in(const char *message, const char *name) {
    const char *at = strstr(message, name);
    return at != NULL ? strtoll(at + strlen(name), NULL, 10) : 1;
}

typedef struct Counts {
    int covered, lacking, unknown;
} Counts;

static void check(const Drawn *it, Counts *counts) {
    PipecOptions options = {.size = sizeof options, .check_only = true};
    PipecProgram *program = pipec_compile(it->text, it->length, &options);
    const PipecDiagnostics *all = pipec_program_diagnostics(program);
    bool fine = EXPECT(pipec_program_status(program) == PIPEC_FINE), said = false;
    for (size_t i = 0; fine && i < pipec_diagnostics_count(all); i++) {
        const PipecDiagnostic *one = pipec_diagnostics_get(all, i);
        if (strcmp(one->code, "P0168") == 0) counts->unknown++, said = true;
        if (strcmp(one->code, "P0167") != 0) continue;
        const char *takes_ = strstr(one->message, "takes ");
        Sizes at = {value_in(takes_, "M = "), value_in(takes_, "N = "), value_in(takes_, "s = "), 0,
                    0};
        fine = EXPECT(is_allowed(it, at) && !is_taken(it, at));
        counts->lacking++, said = true;
    }
    Sizes at;
    if (!said) fine = EXPECT(!find_lacking(it, &at)) && fine;
    counts->covered += !said;
    if (!fine) fprintf(stderr, "%s%s", it->text, pipec_diagnostics_text(all));
    pipec_program_free(program);
}

/* A choice is a combination in whose domain the sizes are; if none is, P0623 says so. */
static void choose(Drawn *it) {
    PipecOptions options = {.size = sizeof options, .any_variant = true};
    PipecProgram *program = pipec_compile(it->text, it->length, &options);
    PipecChooseOptions how = {.size = sizeof how, .machine = PIPEC_MACHINE, .strict = 1};
    bool fine = EXPECT(pipec_program_status(program) == PIPEC_FINE);
    for (int tries = 0; fine && tries < 8; tries++) {
        Sizes at = {(int64_t)draw(it, SIDE), (int64_t)draw(it, SIDE),
                    (int64_t)draw(it, SCALARS) - 3, 0, 0};
        PipecValue values[] = {{.name = "M", .integer = at.m},
                               {.name = "N", .integer = at.n},
                               {.name = "s", .integer = at.s}};
        PipecRunOptions data = {.size = sizeof data, .numbers = values, .number_count = 3};
        PipecChoice choice = {.size = sizeof choice};
        PipecProgram *chosen = pipec_program_chosen(program, &data, &how, &choice);
        bool refused = pipec_diagnostics_errors(pipec_program_diagnostics(program)) > 0;
        if (refused) {
            fine = EXPECT(!is_taken(it, at));
        } else if (choice.kernel != NULL) {
            const char *variant = strchr(choice.kernel, ':');
            size_t v = (size_t)value_in(variant, ":v");
            at.t = value_in(choice.values, "T="), at.u = value_in(choice.values, "U=");
            fine = EXPECT(
                v < it->variant_count && (it->requires_ < 0 || holds(it, it->requires_, &at)) &&
                (it->variants[v].requires_ < 0 || holds(it, it->variants[v].requires_, &at)));
        }
        if (!fine)
            fprintf(stderr, "M=%d N=%d s=%d: %s %s\n%s", (int)at.m, (int)at.n, (int)at.s,
                    choice.kernel, choice.values, it->text);
        pipec_program_free(chosen);
    }
    pipec_program_free(program);
}

int main(int argc, char **argv) {
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : 150;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 25;
    Counts counts = {0};
    setenv("PIPEC_CACHE", "", 1);
    for (long i = 0; i < count; i++) {
        Drawn drawn = {.random = seed + (uint64_t)i * 1000003};
        draw_kernel(&drawn);
        check(&drawn, &counts);
        choose(&drawn);
    }
    if (argc > 1)
        printf("%d take all sizes, %d do not, %d are not known\n", counts.covered, counts.lacking,
               counts.unknown);
    EXPECT(counts.unknown * 10 < count);
    return expect_failures();
}
