/* Counts of acquires: pairs that people write are proved equal, and pairs that are proved equal
 * are equal at all tried sizes. Random pairs are made by rewriting, sometimes with an error. */
#include "check/pipes/counts.h"
#include "check/sizes/trace.h"
#include "derive/derive.h"
#include "tests/unit/program.h"

#include <stdio.h>
#include <string.h>

#define PAIRS   150
#define SAMPLES 60
/* otherwise the random half tests too little; wrapping counts are not proved */
#define PROVED_LEAST 110

static int failures;
static uint64_t state = 4;

static int below(int limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)((state >> 11) % (uint64_t)limit);
}

/* ---- one pair -------------------------------------------------------------------------------- */

typedef struct Trial {
    Arena *arena;
    Prog *prog;
    EndCode ends[2];
} Trial;

/* @ and $ */
static const char *filled(Arena *arena, const char *text, const char *x, const char *y) {
    Str out = str_new(arena);
    for (; *text; text++)
        if (*text == '@' || *text == '$')
            str_add(&out, *text == '@' ? x : y);
        else
            str_char(&out, *text);
    return out.text;
}

static bool start(Trial *trial, Arena *arena, const char *items, const char *produced,
                  const char *consumed) {
    const char *text = arena_printf(
        arena,
        "kernel k(X: f32[M, 64], L: i32[M], Z: f32[K], out Y: f32[M, 64], n: i32, b: i32) for "
        "sm_90a {\n"
        "grid (m: M); pipe p[4] load -> work { x: f32[64]; } %s\n"
        "role load: 1 warp { for m in grid {\n%s\n} }\nrole work: 1 warp { for m in grid {\n%s\n} "
        "} }",
        items, program_replaced(arena, produced, "produce <p> as s { s.x[c] = X[m, c]; }"),
        program_replaced(arena, consumed, "consume <p> as s { Y[m, c] = s.x[c]; }"));
    *trial = (Trial){.arena = arena, .prog = program_elaborated(arena, text)};
    if (!trial->prog) return false;
    for (int i = 0; i < 2; i++) {
        Role *role = &trial->prog->roles.items[i];
        role->code = code_lower(arena, trial->prog, role);
    }
    widths_require(arena, trial->prog);
    for (int i = 0; i < 2; i++) {
        Role *role = &trial->prog->roles.items[i];
        trial->ends[i] = end_code(arena, role, 0, i ? END_CONSUME : END_PRODUCE);
    }
    return true;
}

static bool proved(Trial *trial) {
    Emptiness *known = NEW_ARRAY(trial->arena, Emptiness, trial->prog->domains.count + 1);
    int first_difference[2];
    return counts_same(trial->arena, trial->prog, trial->ends, first_difference) ||
           counts_equal(trial->arena, trial->prog, trial->ends, known);
}

static int64_t *value_of(const Trial *trial, Sizes *sizes, const char *name) {
    for (size_t i = 0; i < trial->prog->symbols.count; i++)
        if (strcmp(trial->prog->symbols.items[i].name, name) == 0) return &sizes->values[i];
    return NULL;
}

/* Compares at random sizes and contents; false: the counts differ, *where: the sizes */
static bool agree(Trial *trial, Str *where) {
    Sizes *sizes = sizes_new(trial->arena, trial->prog, false);
    Memory memory = {.arena = trial->arena};
    Traced *traced = trace_new(trial->arena, trial->prog, 0, NULL, NULL);
    sizes->memory = &memory;
    for (int sample = 0; sample < SAMPLES; sample++) {
        int64_t m = 1 + below(4), tile = below((int)m), counts[2], truth;
        Reads reads = {.memory = &memory};
        BlockRun block = {
            .sizes = sizes, .extents = {m}, .first = tile, .tiles = 1, .reads = &reads};
        *value_of(trial, sizes, "M") = m;
        *value_of(trial, sizes, "K") = below(sample % 2 ? 12 : 300);
        *value_of(trial, sizes, "n") = below(14) - 3;
        *value_of(trial, sizes, "b") = below(14) - 3;
        memory.cells.count = 0;
        for (int64_t i = 0; i < m; i++) {
            Cell cell = {.param = 1, .rank = 1, .subs = {i}, .value = below(7) - 1};
            vec_push(trial->arena, &memory.cells, cell);
        }
        bool allowed = true;
        Env env = {.prog = trial->prog, .symbols = sizes->values};
        for (size_t i = 0; i < trial->prog->preconditions.count && allowed; i++)
            allowed =
                evaluate(&env, trial->prog->preconditions.items[i].condition, &truth) && truth;
        for (int i = 0; i < 2 && allowed; i++) {
            Acquires acquires = {.number = -1};
            End end = i ? END_CONSUME : END_PRODUCE;
            allowed = trace_acquires(trial->arena, traced, trial->ends[i].role, 0, end, &block,
                                     &acquires);
            counts[i] = acquires.count;
        }
        if (!allowed || counts[0] == counts[1]) continue;
        str_printf(where, "M = %lld, K = %lld, n = %lld, b = %lld, m = %lld", (long long)m,
                   (long long)*value_of(trial, sizes, "K"), (long long)*value_of(trial, sizes, "n"),
                   (long long)*value_of(trial, sizes, "b"), (long long)tile);
        for (size_t i = 0; i < memory.cells.count; i++)
            str_printf(where, ", L[%d] = %lld", (int)i, (long long)memory.cells.items[i].value);
        str_printf(where, ": %lld and %lld", (long long)counts[0], (long long)counts[1]);
        return false;
    }
    return true;
}

/* ---- pairs that people write ----------------------------------------------------------------- */

static const struct {
    const char *produced, *consumed, *items;
} written[] = {
    {"for k in 0 .. n { # }", "for i in 0 .. n/2 { # # } if n % 2 == 1 { # }", ""},
    {"for k in kt { # }", "for i in 0 .. ceil(K,64)/2 { # # } if ceil(K,64) % 2 == 1 { # }",
     "range kt = 0 .. ceil(K, 64);"},
    {"for k in kt { # }", "for i in 0 .. ceil(K,128) { # if 2*i+1 < ceil(K,64) { # } }",
     "range kt = 0 .. ceil(K, 64);"},
    {"for k in kt { # }",
     "let n4 = ceil(K,64); for i in 0 .. n4/4 { # # # # } for i in 0 .. n4 % 4 { # }",
     "range kt = 0 .. ceil(K, 64);"},
    {"for k in kt { # }",
     "let n4 = ceil(K,64); for i in 0 .. n4/4 { # # # # } for i in n4/4*4 .. n4 { # }",
     "range kt = 0 .. ceil(K, 64);"},
    {"for k in kt { # }",
     "for i in 0 .. ceil(ceil(K,64),4) { for j in 0 .. 4 { if i*4+j < ceil(K,64) { # } } }",
     "range kt = 0 .. ceil(K, 64);"},
    {"for k in kt { # }",
     "for i in 0 .. ceil(ceil(K,64),4) { for j in 0 .. min(4, ceil(K,64) - i*4) { # } }",
     "range kt = 0 .. ceil(K, 64);"},
    {"for k in kt { if k % 2 == 0 { # } }", "for k in 0 .. ceil(K,128) { # }",
     "range kt = 0 .. ceil(K, 64);"},
    {"for k in ke { # }", "for k in kt { if k % 2 == 0 { # } }",
     "range kt = 0 .. ceil(K, 64); range ke = 0 .. ceil(K,64) where ke % 2 == 0;"},
    {"for k in ke { # }", "for k in kt { if L[k] > 0 { # } }",
     "range kt = 0 .. ceil(K, 64); range ke = 0 .. ceil(K,64) where L[ke] > 0;"},
    {"for k in kt { if L[k] >= 1 { # } }", "for k in 0 .. ceil(K,64) { if !(L[k] < 1) { # } }",
     "range kt = 0 .. ceil(K, 64);"},
    {"if b > 7 { # }", "if b >= 8 { # }", ""},
    {"if b > n { # }", "if !(b <= n) { # }", ""},
    {"if K != 0 { # }", "if K > 0 { # }", ""},
    {"if b > 7 && n > 3 { # }", "if n > 3 { if b > 7 { # } }", ""},
    {"if b > 7 && n > 3 { # }", "if n <= 3 { } else if 8 <= b { # }", ""},
    {"if b == n { # }", "if b <= n && b >= n { # }", ""},
    {"if b == n { # } else { # # }", "if b != n { # } #", ""},
    {"for k in 0 .. ceil(K,64) { # }", "for k in 0 .. (K + 63)/64 { # }", ""},
    {"for k in 0 .. ceil(K,64) { # }", "for k in 0 .. (K - 1)/64 + 1 { # }", "requires K >= 1;"},
    {"for k in 0 .. ceil(ceil(K,64),2) { # }", "for k in 0 .. ceil(K,128) { # }", ""},
    {"for k in 0 .. ceil(K,64)*64/64 { # }", "for k in kt { # }", "range kt = 0 .. ceil(K, 64);"},
    {"for k in kt { # }", "if kt nonempty { # for k in kt from 1 { # } }",
     "range kt = 0 .. ceil(K, 64);"},
    {"for k in kt { # }", "if kt nonempty { for k in kt[0 .. ceil(K,64)-1] { # } # }",
     "range kt = 0 .. ceil(K, 64);"},
    {"for k in kt { # }",
     "if kt nonempty { # for k in kt[1 .. ceil(K,64) - 1] { # } if ceil(K,64) > 1 { # } }",
     "range kt = 0 .. ceil(K, 64);"},
    {"for k in kt { # }", "for k in kt[0 .. n] { # } for k in kt[n .. ceil(K,64)] { # }",
     "range kt = 0 .. ceil(K, 64); requires n >= 0;"},
    {"for k in kt { # }", "for k in kt[0 .. max(n, 0)] { # } for k in kt from max(n, 0) { # }",
     "range kt = 0 .. ceil(K, 64);"},
    {"for k in 0 .. n { # }", "for k in 0 .. min(n,2) { # } for k in 2 .. n { # }", ""},
    {"for k in 0 .. n { # }",
     "let pre = min(n, 2); for k in 0 .. pre { # } for k in pre .. n { # }", "requires n >= 0;"},
    {"for k in 0 .. n { # }",
     "let pre = min(n, 3); for k in 0 .. pre { # } for k in 0 .. n - pre { # }",
     "requires n >= 0;"},
    {"for k in 0 .. n { # }", "for k in 0 .. n { if k < 2 { # } } for k in 0 .. n - 2 { # }", ""},
    {"for k in 0 .. n { # }", "for k in 0 .. n + 2 { if k >= 2 { # } }", ""},
    {"for k in 0 .. n { # }", "for k in 0 .. n - 2 { # } for k in max(n - 2, 0) .. n { # }", ""},
    {"for k in kc { # }", "for k in 0 .. m + 1 { # }", "range kc = 0 .. m + 1;"},
    {"for k in kc { # }", "for k in 0 .. m { # } #", "range kc = 0 .. m + 1;"},
    {"for i in 0 .. n { for j in 0 .. i + 1 { # } }", "for t in 0 .. n*(n+1)/2 { # }",
     "requires n >= 0;"},
    {"for i in 0 .. n { for j in 0 .. i { # } }", "for i in 0 .. n { for j in i + 1 .. n { # } }",
     ""},
    {"for i in 0 .. n { for j in 0 .. n { if j <= i { # } } }",
     "for i in 0 .. n { for j in 0 .. i + 1 { # } }", ""},
    {"for k in 0 .. ceil((m+1)*128, 64) { # }", "for k in 0 .. 2*m + 2 { # }", ""},
    {"for k in 0 .. min(ceil(K,64), 2*m + 2) { # }", "for k in kt { if k < 2*(m + 1) { # } }",
     "range kt = 0 .. ceil(K, 64);"},
    {"for k in 0 .. min(ceil(K,64), 2*m + 2) { # }", "for k in kt { if k > 2*m + 1 { break; } # }",
     "range kt = 0 .. ceil(K, 64);"},
    {"for k in 0 .. min(ceil(K,64), 2*m + 2) { # }",
     "for k in kt { if k > 2*m + 1 { continue; } # }", "range kt = 0 .. ceil(K, 64);"},
    {"for k in 0 .. min(ceil(K,64), 2*m + 2) { # }",
     "for k in 0 .. min(ceil(K,64), 2*m) { # } for k in min(ceil(K,64), 2*m) .. min(ceil(K,64), "
     "2*m+2) { # }",
     ""},
    {"for k in 0 .. L[m] { # }", "let l = L[m]; for k in 0 .. l { # }", ""},
    {"for k in 0 .. L[m] { # }",
     "let l = L[m]; for k in 0 .. l/2 { # # } if l % 2 != 0 && l > 0 { # }", ""},
    {"for k in 0 .. ceil(min(L[m], 9999), 64) { # }",
     "let l = min(L[m], 9999); for k in 0 .. (l + 63)/64 { # }", "requires n >= 0;"},
    {"for k in 0 .. n { if k == b { break; } # }",
     "for k in 0 .. n { if k == b { break; } else { # } }", ""},
    {"for k in 0 .. n { if L[k] == 0 { break; } # }",
     "for k in 0 .. n { if !(L[k] != 0) { break; } else { # } }", ""},
    {"for k in 0 .. n { if L[k] == 0 { continue; } # }", "for k in 0 .. n { if L[k] != 0 { # } }",
     ""},
    {"for k in 0 .. n { if L[k] == 0 { continue; } # }",
     "for k in 1 .. n { if L[k] != 0 { # } } if n >= 1 { if L[0] != 0 { # } }", ""},
    {"for k in 0 .. 8 { # }", "for k in 0 .. 4 { for j in 0 .. 2 { # } }", ""},
    {"for k in 0 .. n { for j in 0 .. 4 { # } }", "for k in 0 .. 4*n { # }", ""},
    {"for k in 0 .. n*n { # }", "for k in 0 .. n { for j in 0 .. n { # } }", "requires n >= 0;"},
    {"for k in 0 .. K/8 { # }", "for k in 0 .. K/64 { for j in 0 .. 8 { # } }",
     "requires K % 64 == 0;"},
    {"for k in 0 .. ceil(K,64) { # }", "for k in 0 .. K/64 { # }", "requires K % 64 == 0;"},
    {"for k in 0 .. n { # # }", "for k in 0 .. n { # } for k in 0 .. n { # }", ""},
    {"if m % 2 == 0 { # } else { # }", "#", ""},
    {"if m % 2 == 0 { # }", "if m/2*2 == m { # }", ""},
    {"if m == 0 { # } for k in 0 .. m { # }", "for k in 0 .. max(m, 1) { # }", ""},
    {"for k in 0 .. n { let j = k * 2; if j < b { # } }",
     "for k in 0 .. n { if 2*k + 1 <= b { # } }", ""},
    {"for k in 0 .. n { if k % 4 == 3 { # } }", "for k in 0 .. n/4 { # }", ""},
    {"for k in 0 .. n { if (k + 1) % 4 == 0 || k == n - 1 { # } }",
     "for k in 0 .. ceil(n, 4) { # }", ""},
    {"for k in 0 .. n { if k > 0 { # } }  if n > 0 { # }", "for k in 0 .. n { # }", ""},
    {"for k in 0 .. n { if k < n - 1 { # } }  if n > 0 { # }", "for k in 0 .. n { # }", ""},
    {"for k in 0 .. max(n, b) { # }", "for k in 0 .. (n < b ? b : n) { # }", ""},
    {"for k in 0 .. ceil(K, b) { # }", "for k in 0 .. (K + b - 1) / b { # }", "requires b >= 1;"},
    {"for i in 0 .. n { # }", "for i in 0 .. ceil(n, 8) { for j in i*8 .. min(n, i*8 + 8) { # } }",
     ""},
    {"for i in 0 .. n { if i >= b { break; } # }", "for i in 0 .. min(n, max(b, 0)) { # }", ""},
    {"for i in 0 .. n { # if i == b { break; } }",
     "for i in 0 .. n { # if i >= b && i <= b { break; } }", ""},
    {"for k in kt { # } for k in kt { # }", "for j in 0 .. 2 { for k in kt { # } }",
     "range kt = 0 .. ceil(K, 64);"},
    {"for k in kt { # } for k in kt { # }", "for j in 0 .. 2*ceil(K,64) { # }",
     "range kt = 0 .. ceil(K, 64);"},
    {"for k in 0 .. K { if k % 64 == 0 { # } }", "for k in kt { # }",
     "range kt = 0 .. ceil(K, 64);"},
};

static void identities(void) {
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        Arena *arena = arena_new();
        Trial trial;
        Str where = str_new(arena);
        str_add(&where, "");
        if (start(&trial, arena, written[i].items, written[i].produced, written[i].consumed)) {
            bool equal = agree(&trial, &where);
            if (!equal || !proved(&trial)) {
                failures++;
                fprintf(stderr, "counts: %s\n    %s\n    %s\n    %s\n",
                        equal ? "is not proved" : "is not even equal", written[i].produced,
                        written[i].consumed, where.text);
            }
        }
        arena_free(arena);
    }
}

/* ---- random pairs: each construct is written for both sides, sometimes in another form for the
 * second ---- */

typedef struct Writer {
    Str a, b;
    int depth, loops; /* enclosing loops have variables v0, v1, .. */
    bool mistaken;    /* at most one error per pair */
    bool may_leave;   /* there is a loop to leave */
    bool left;        /* some statement so far leaves a loop */
} Writer;

static void both(Writer *w, const char *text) {
    str_add(&w->a, text);
    str_add(&w->b, text);
}

static void formula(Writer *w, int depth);

/* The operands of two pairs of texts, which can be combined in either order */
typedef struct Texts {
    const char *a, *b;
} Texts;

static Texts operand(Writer *w, int depth) {
    Str a = w->a, b = w->b;
    Texts out;
    w->a = str_new(a.arena);
    w->b = str_new(a.arena);
    formula(w, depth);
    out = (Texts){w->a.text, w->b.text};
    w->a = a;
    w->b = b;
    return out;
}

static void constant(Writer *w, int value) {
    str_printf(&w->a, "%d", value);
    if (!w->mistaken && below(40) == 0) {
        value++;
        w->mistaken = true;
    }
    str_printf(&w->b, "%d", value);
}

static void leaf(Writer *w) {
    int which = below(7);
    if (which == 0)
        constant(w, below(5));
    else if (which == 1)
        both(w, "ceil(K, 64)");
    else if (which == 2)
        both(w, "L[m]");
    else if (which == 3)
        both(w, "m");
    else if (w->loops && which == 4) {
        const char *name = arena_printf(w->a.arena, "v%d", below(w->loops));
        both(w, name);
    } else
        both(w, which == 5 ? "b" : "n");
}

/* x / by, x % by or ceil(x, by); b: `same`, or by other operations */
static void quotient(Writer *w, int which, Texts x, int by, bool same) {
    static const char *const forms[] = {"%s / %d", "(%s) %% %d", "ceil(%s, %d)"};
    str_printf(&w->a, forms[which], x.a, by);
    if (same)
        str_printf(&w->b, forms[which], x.b, by);
    else if (which == 0)
        str_printf(&w->b, "(%s < 0 ? -(-(%s) / %d) : %s / %d)", x.b, x.b, by, x.b, by);
    else if (which == 1)
        str_printf(&w->b, "(%s - (%s) / %d * %d)", x.b, x.b, by, by);
    else
        str_printf(&w->b, "(%s > 0 ? (%s + %d) / %d : (%s) / %d)", x.b, x.b, by - 1, by, x.b, by);
}

static void formula(Writer *w, int depth) {
    if (depth <= 0 || below(3) == 0) {
        leaf(w);
        return;
    }
    Texts x = operand(w, depth - 1), y = operand(w, depth - 1);
    int by = 2 + below(3), way = below(3);
    int which = below(8);
    switch (which) {
    case 0:
        str_printf(&w->a, "(%s + %s)", x.a, y.a);
        str_printf(&w->b, "(%s + %s)", way ? x.b : y.b, way ? y.b : x.b);
        break;
    case 1:
        str_printf(&w->a, "(%s - %s)", x.a, y.a);
        if (way)
            str_printf(&w->b, "(%s - %s)", x.b, y.b);
        else
            str_printf(&w->b, "(-(%s) + %s)", y.b, x.b);
        break;
    case 2:
    case 3:
    case 4: quotient(w, which - 2, x, by, way); break;
    case 5:
        str_printf(&w->a, "min(%s, %s)", x.a, y.a);
        if (way)
            str_printf(&w->b, "min(%s, %s)", x.b, y.b);
        else
            str_printf(&w->b, "(%s < %s ? %s : %s)", x.b, y.b, x.b, y.b);
        break;
    case 6:
        str_printf(&w->a, "max(%s, %s)", x.a, y.a);
        if (way)
            str_printf(&w->b, "max(%s, %s)", y.b, x.b);
        else
            str_printf(&w->b, "-min(-(%s), -(%s))", x.b, y.b);
        break;
    case 7:
        str_printf(&w->a, "%d * (%s)", by, x.a);
        if (way)
            str_printf(&w->b, "%d * (%s)", by, x.b);
        else
            str_printf(&w->b, "(%s) * %d", x.b, by);
        break;
    }
}

static Texts condition(Writer *w, int depth) {
    Arena *arena = w->a.arena;
    int way = below(4);
    if (depth > 0 && below(3) == 0) {
        Texts p = condition(w, depth - 1), q = condition(w, depth - 1);
        bool and = below(2);
        return (Texts){arena_printf(arena, "(%s %s %s)", p.a, and? "&&" : "||", q.a),
                       way ? arena_printf(arena, "(%s %s %s)", q.b, and? "&&" : "||", p.b)
                           : arena_printf(arena, "!(!%s %s !%s)", p.b, and? "||" : "&&", q.b)};
    }
    Texts x = operand(w, 1), y = operand(w, 1);
    static const char *const less[] = {"(@ < $)", "($ > @)", "(@ + 1 <= $)", "(!(@ >= $))"};
    static const char *const equal[] = {"(@ == $)", "(!($ != @))", "(@ >= $ && $ >= @)",
                                        "(@ - $ == 0)"};
    if (!w->mistaken && below(30) == 0) {
        w->mistaken = true;
        return (Texts){arena_printf(arena, "(%s < %s)", x.a, y.a),
                       arena_printf(arena, "(%s <= %s)", x.b, y.b)};
    }
    bool is_less = below(2);
    const char *const *forms = is_less ? less : equal;
    return (Texts){filled(arena, forms[0], x.a, y.a), filled(arena, forms[way], x.b, y.b)};
}

static void statements(Writer *w, int depth);

static Texts within(Writer *w, int depth) {
    Str a = w->a, b = w->b;
    w->a = str_new(a.arena);
    w->b = str_new(a.arena);
    str_add(&w->a, "");
    str_add(&w->b, "");
    statements(w, depth);
    Texts out = {w->a.text, w->b.text};
    w->a = a;
    w->b = b;
    return out;
}

static void loop(Writer *w, int depth) {
    Texts hi = operand(w, 1), lo = {"0", "0"};
    int var = w->loops;
    bool may_leave = w->may_leave, left = w->left;
    if (below(3) == 0) lo = operand(w, 0);
    w->loops++;
    w->may_leave = true;
    w->left = false;
    Texts body = within(w, depth);
    bool leaves = w->left;
    w->loops--;
    w->may_leave = may_leave;
    w->left = left;
    str_printf(&w->a, "for v%d in %s .. %s { %s }\n", var, lo.a, hi.a, body.a);
    switch (leaves ? 3 : below(5)) {
    case 0: /* split */
        str_printf(&w->b,
                   "for v%d in %s .. min(n, %s) { %s }\nfor v%d in max(n, %s) .. %s { %s }\n", var,
                   lo.b, hi.b, body.b, var, lo.b, hi.b, body.b);
        break;
    case 1: /* the first one outside */
        str_printf(&w->b, "if %s < %s { let v%d = %s; %s }\nfor v%d in %s + 1 .. %s { %s }\n", lo.b,
                   hi.b, var, lo.b, body.b, var, lo.b, hi.b, body.b);
        break;
    case 2: /* by two */
        str_printf(&w->b,
                   "for w%d in 0 .. ceil(%s - %s, 2) { for u%d in 0 .. 2 { let v%d = %s + 2*w%d + "
                   "u%d; if v%d < %s { %s } } }\n",
                   var, hi.b, lo.b, var, var, lo.b, var, var, var, hi.b, body.b);
        break;
    default: str_printf(&w->b, "for v%d in %s .. %s { %s }\n", var, lo.b, hi.b, body.b); break;
    }
}

static void branch(Writer *w, int depth) {
    Texts asked = condition(w, 1), then = within(w, depth), otherwise = {"", ""};
    if (below(2)) otherwise = within(w, depth);
    str_printf(&w->a, "if %s { %s } else { %s }\n", asked.a, then.a, otherwise.a);
    if (below(2))
        str_printf(&w->b, "if %s { %s } else { %s }\n", asked.b, then.b, otherwise.b);
    else
        str_printf(&w->b, "if !%s { %s } else { %s }\n", asked.b, otherwise.b, then.b);
}

static void leave(Writer *w, int depth) {
    Texts asked = condition(w, 0), rest = within(w, depth);
    const char *word = below(2) ? "continue" : "break";
    w->left = true;
    str_printf(&w->a, "if %s { %s; }\n%s", asked.a, word, rest.a);
    str_printf(&w->b, "if !%s { %s } else { %s; }\n", asked.b, rest.b, word);
}

static void statements(Writer *w, int depth) {
    for (int i = 0; i < 1 + below(2); i++) {
        int which = depth <= 0 ? 0 : below(5);
        if (which < 2)
            both(w, "#\n");
        else if (which == 2)
            branch(w, depth - 1);
        else
            loop(w, depth - 1);
    }
    if (w->may_leave && depth > 0 && below(5) == 0) leave(w, depth - 1);
}

static void random_pairs(void) {
    int proofs = 0, equals = 0;
    for (int i = 0; i < PAIRS; i++) {
        Arena *arena = arena_new();
        Trial trial;
        Writer w = {.a = str_new(arena), .b = str_new(arena)};
        Str where = str_new(arena);
        str_add(&where, "");
        statements(&w, 2);
        if (start(&trial, arena, "", w.a.text, w.b.text)) {
            bool equal = agree(&trial, &where), is_proved = proved(&trial);
            proofs += is_proved;
            equals += equal;
            if (is_proved && !equal) {
                failures++;
                fprintf(stderr, "counts: is proved equal, and is not: %s\n--\n%s--\n%s\n",
                        where.text, w.a.text, w.b.text);
            }
        }
        arena_free(arena);
    }
    if (proofs < PROVED_LEAST) {
        failures++;
        fprintf(stderr, "counts: of %d pairs, %d seem equal and only %d are proved\n", PAIRS,
                equals, proofs);
    }
}

int main(void) {
    identities();
    random_pairs();
    return failures != 0 || expect_failures();
}
