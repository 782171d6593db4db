/* Random kernels that reduce: rows, columns, both, one within the other, over a loop, up to each
 * element; of stages, register tiles and shared tiles; in teams of any size; masked where the tile
 * extends outside of the tensor. */
#include "tests/generate/generate.h"

#include <string.h>

#define STAGE_BYTES 32768 /* most, of at most four stages */

typedef enum Op { SUM, MOST, LEAST, OPS } Op;

typedef struct Sketch {
    Arena *arena;
    Random random;
    Element type, held; /* of the elements, and of what they are computed in */
    int rows, columns, warps, outputs;
    const char *source; /* the tile that is reduced */
    Str parameters, claims, body;
} Sketch;

typedef struct Text { /* a value in the role, and in `ensures` */
    const char *role, *claim;
    bool exact; /* both are computed without rounding */
} Text;

static const char *const OP[OPS] = {"sum", "max", "min"};

static uint32_t pick(Sketch *k, uint32_t below) { return draw(&k->random, below); }
static bool often(Sketch *k, int percent) { return chance(&k->random, percent); }

/* ---- values ---------------------------------------------------------------------------------- */

/* The text with `operand` for each @ */
static const char *filled(Sketch *k, const char *text, const char *operand) {
    Str out = str_new(k->arena);
    str_add(&out, "");
    for (const char *c = text; *c != '\0'; c++)
        if (*c == '@')
            str_add(&out, operand);
        else
            str_char(&out, *c);
    return out.text;
}

static const char *neutral(const Sketch *k, Op op) {
    static const char *const reals[OPS] = {"0", "-inf", "inf"},
                             *const naturals[OPS] = {"0", "0", "4294967295"},
                             *const wholes[OPS] = {"0", "-2147483648", "2147483647"},
                             *const wides[OPS] = {"0", "(-9223372036854775807 - 1)",
                                                  "9223372036854775807"};
    return k->held == E_F32   ? reals[op]
           : k->held == E_U32 ? naturals[op]
           : k->held == E_I64 ? wides[op]
                              : wholes[op];
}

static Text element(Sketch *k, const char *i, const char *j) {
    const char *role = arena_printf(k->arena, "%s[%s, %s]", k->source, i, j),
               *claim = arena_printf(k->arena, "X[m, %s, %s]", i, j);
    if (k->type == k->held) return (Text){role, claim, true};
    const char *cast = element_rows[k->held].spelling;
    return (Text){arena_printf(k->arena, "%s(%s)", cast, role),
                  arena_printf(k->arena, "%s(%s)", cast, claim), true};
}

static const char *term(Sketch *k, const char *j, bool *exact) {
    bool real = k->held == E_F32;
    uint32_t dice = pick(k, 6);
    *exact = !real || dice > 2;
    if (dice == 0) return "(@ * @)";
    if (dice == 1 && k->held != E_U32) return real ? "(3.0 - @)" : "(3 - @)";
    if (dice == 2) return real ? "(@ + 1.0)" : "(@ + 1)";
    if (dice == 3 && (real || k->held == E_I32)) return "abs(@)";
    if (dice == 4 && k->held == E_I32) return arena_printf(k->arena, "(@ > 0 ? %s : 77)", j);
    *exact = true;
    return "@";
}

/* A masked term at [i, j]; over_rows, over_columns: it is reduced along these */
static Text masked(Sketch *k, Op op, const char *i, const char *j, bool over_rows,
                   bool over_columns) {
    Text at = element(k, i, j);
    bool exact;
    const char *form = term(k, j, &exact),
               *rows = over_rows ? arena_printf(k->arena, "%s < A", i) : "",
               *columns = over_columns ? arena_printf(k->arena, "%s < B", j) : "",
               *both = over_rows && over_columns ? " && " : "";
    return (Text){arena_printf(k->arena, "(%s%s%s ? %s : %s)", rows, both, columns,
                               filled(k, form, at.role), neutral(k, op)),
                  filled(k, form, at.claim), k->held != E_F32 || (op != SUM && exact)};
}

static Text reduced(Sketch *k, Op op, const char *over, Text body) {
    return (Text){arena_printf(k->arena, "(%s[%s] %s)", OP[op], over, body.role),
                  arena_printf(k->arena, "(%s[%s] %s)", OP[op], over, body.claim), body.exact};
}

/* Of the elements before or after one, along a row or a column; at [i, j] */
static Text scanned(Sketch *k, Op op, bool rows) {
    static const char *const relations[] = {"<=", "<", ">=", ">"};
    const char *own = rows ? "e" : "q", *other = rows ? "i" : "j",
               *relation = relations[pick(k, COUNT_OF(relations))], *none = neutral(k, op);
    Text term = masked(k, op, rows ? "e" : "i", rows ? "j" : "q", rows, !rows);
    const char *condition = often(k, 80) ? arena_printf(k->arena, "%s %s %s", own, relation, other)
                                         : arena_printf(k->arena, "%s %s %s", other, relation, own);
    term.role = arena_printf(k->arena, "(%s ? %s : %s)", condition, term.role, none);
    term.claim = arena_printf(k->arena, "(%s ? %s : %s)", condition, term.claim, none);
    return reduced(k, op, own, term);
}

static Text joined(Sketch *k, Text a, const char *op, Text b) {
    return (Text){arena_printf(k->arena, "%s %s %s", a.role, op, b.role),
                  arena_printf(k->arena, "%s %s %s", a.claim, op, b.claim),
                  a.exact && b.exact && k->held != E_F32};
}

/* ---- statements ------------------------------------------------------------------------------ */

static void add_output(Sketch *k, const char *extents, const char *subs, Text value, bool named) {
    int number = k->outputs++;
    str_printf(&k->parameters, ", out Y%d: %s[M%s]", number, element_rows[k->held].spelling,
               extents);
    str_printf(&k->claims, " Y%d[m%s] %s %s%s;", number, subs, value.exact ? "==" : "~",
               value.claim, value.exact ? "" : " within 3e-2");
    if (named)
        str_printf(&k->body, " let t%d = %s; Y%d[m%s] = t%d;", number, value.role, number, subs,
                   number);
    else
        str_printf(&k->body, " Y%d[m%s] = %s;", number, subs, value.role);
}

/* A scan, or what is computed from one */
static void add_scan(Sketch *k) {
    Op op = (Op)pick(k, OPS), other = (Op)pick(k, OPS);
    Text scan = scanned(k, op, often(k, 40));
    switch (pick(k, 4)) {
    case 0: /* of finite values: there may be no element before the first one */
        if (op != SUM) break;
        scan = joined(k, element(k, "i", "j"), "+", scan);
        break;
    case 1:
        if (op != SUM || k->held == E_F32) break;
        scan.role = arena_printf(k->arena, "(j < B ? %s + %s : %s)", element(k, "i", "j").role,
                                 scan.role, neutral(k, other));
        scan.claim = arena_printf(k->arena, "(%s + %s)", element(k, "i", "j").claim, scan.claim);
        add_output(k, ", A", ", i", reduced(k, other, "j", scan), false);
        return;
    default: break;
    }
    add_output(k, ", A, B", ", i, j", scan, false);
}

/* A variable that begins with 3; each iteration of a loop multiplies it by a factor and adds the
 * same reduction. */
static void add_carried(Sketch *k) {
    static const int trips[] = {0, 1, 2, 5};
    uint32_t dice = pick(k, COUNT_OF(trips) + 1);
    bool rows = often(k, 60), real = k->held == E_F32, sized = dice == COUNT_OF(trips);
    int number = k->outputs++;
    double factor = sized || often(k, 40) ? 1 : real ? 0.5 : 2, power = 1, sum = 0;
    for (int t = 0; !sized && t < trips[dice]; t++) sum = sum * factor + 1, power *= factor;
    const char *type = element_rows[k->held].spelling, *sub = rows ? "[i]" : "";
    Text term = reduced(k, SUM, rows ? "j" : "i, j", masked(k, SUM, "i", "j", !rows, true));
    str_printf(&k->parameters, ", out Y%d: %s[M%s]", number, type, rows ? ", A" : "");
    str_printf(&k->claims, " Y%d[m%s] %s 3 * ", number, rows ? ", i" : "", real ? "~" : "==");
    str_printf(&k->claims, real ? "%.6f" : "%.0f", power);
    str_printf(&k->claims, " + %s * ", term.claim);
    if (sized)
        str_printf(&k->claims, "%s(B)", type);
    else
        str_printf(&k->claims, real ? "%.6f" : "%.0f", sum);
    str_printf(&k->claims, "%s;", real ? " within 3e-2" : "");
    str_printf(&k->body, " var l%d: %s%s = 3; for p%d in 0 .. ", number, type,
               rows ? arena_printf(k->arena, "[%d]", k->rows) : "", number);
    str_add(&k->body, sized ? "B" : arena_printf(k->arena, "%d", trips[dice]));
    str_printf(&k->body, " { l%d%s = l%d%s%s + %s; } Y%d[m%s] = l%d%s;", number, sub, number, sub,
               factor == 1 ? ""
               : real      ? " * 0.5"
                           : " * 2",
               term.role, number, rows ? ", i" : "", number, sub);
}

static void add_statement(Sketch *k) {
    Op op = (Op)pick(k, OPS), other = (Op)pick(k, OPS);
    if (often(k, 25)) {
        add_carried(k);
        return;
    }
    bool small = k->rows * k->columns <= 32 * k->warps * 24;
    if (small && often(k, 25)) {
        add_scan(k);
        return;
    }
    switch (pick(k, small ? 6 : 4)) {
    case 0:
        add_output(k, ", A", ", i", reduced(k, op, "j", masked(k, op, "i", "j", false, true)),
                   false);
        break;
    case 1:
        add_output(k, ", B", ", j", reduced(k, op, "i", masked(k, op, "i", "j", true, false)),
                   false);
        break;
    case 2:
        add_output(k, "", "", reduced(k, op, "i, j", masked(k, op, "i", "j", true, true)),
                   often(k, 50));
        break;
    case 3: {
        Text row = reduced(k, op, "j", masked(k, op, "i", "j", false, true));
        row.role = arena_printf(k->arena, "(i < A ? %s : %s)", row.role, neutral(k, other));
        row.exact = row.exact && (k->held != E_F32 || other != SUM);
        add_output(k, "", "", reduced(k, other, "i", row), often(k, 50));
        break;
    }
    case 4: {
        Text row = reduced(k, op, "q", masked(k, op, "i", "q", false, true));
        add_output(k, ", A, B", ", i, j", joined(k, element(k, "i", "j"), "-", row), false);
        break;
    }
    default: {
        Text row = reduced(k, op, "q", masked(k, op, "i", "q", false, true)),
             column = reduced(k, other, "e", masked(k, other, "e", "j", true, false));
        /* the sum: of the difference little is left if a column is a single element */
        add_output(k, ", A, B", ", i, j",
                   joined(k, joined(k, element(k, "i", "j"), "+", row), "+", column), false);
        break;
    }
    }
}

/* ---- program --------------------------------------------------------------------------------- */

static void choose_tile(Sketch *k) {
    static const Element types[] = {E_F32, E_F32, E_BF16, E_F16, E_I32,
                                    E_I32, E_I8,  E_U8,   E_U32, E_I64};
    static const int rows[] = {1, 2, 3, 4, 5, 8, 16, 33, 64},
                     columns[] = {1, 4, 7, 8, 16, 24, 32, 33, 40, 64, 100, 128, 264, 512, 1024},
                     warps[] = {1, 2, 3, 4, 5, 6, 8, 8};
    k->type = types[pick(k, COUNT_OF(types))];
    bool real = element_rows[k->type].kind == ELEMENT_FLOAT,
         narrow = k->type == E_I8 || k->type == E_U8;
    k->held = real ? E_F32 : narrow ? E_I32 : k->type;
    k->rows = rows[pick(k, COUNT_OF(rows))];
    k->columns = columns[pick(k, COUNT_OF(columns))];
    k->warps = warps[pick(k, COUNT_OF(warps))];
    int bytes = element_rows[k->type].bytes, most = 32 * k->warps * (often(k, 30) ? 100 : 24);
    if (most > STAGE_BYTES / bytes) most = STAGE_BYTES / bytes;
    while (k->rows * k->columns > most && k->rows > 1) k->rows /= 2;
    while (k->columns > most) k->columns /= 2;
}

/* The role reduces the stage itself, or a copy of it in registers or shared memory. */
static void add_role(Sketch *k, Str *out) {
    static const char *const sources[] = {"s.x", "s.x", "t", "t"};
    uint32_t dice = pick(k, COUNT_OF(sources));
    bool turns = k->warps == 4 && often(k, 50), later = dice > 1 && often(k, 50);
    k->source = sources[dice];
    for (uint32_t count = 1 + pick(k, 3); count > 0; count--) add_statement(k);
    if (turns)
        str_add(out, "    role work: 2 warpgroups in turn { for m in grid { turn {\n");
    else
        str_printf(out, "    role work: %d warp%s { for m in grid {\n", k->warps,
                   k->warps > 1 ? "s" : "");
    if (dice > 1)
        str_printf(out, "        %s t: %s[%d, %d];\n", dice == 2 ? "var" : "shared",
                   element_rows[k->type].spelling, k->rows, k->columns);
    str_printf(out, "        consume <xs> as s {%s%s }%s\n    } }%s\n",
               dice > 1 ? " t[i, j] = s.x[i, j];" : "", later ? "" : k->body.text,
               later ? k->body.text : "", turns ? " }" : "");
}

Generated generate_reductions(Arena *arena, uint64_t seed) {
    Sketch k = {.arena = arena, .random = {seed * 0x2545f4914f6cdd1du + 7}};
    Generated result;
    Str text = str_new(arena), role = str_new(arena);
    k.parameters = str_new(arena), k.claims = str_new(arena), k.body = str_new(arena);
    choose_tile(&k);
    add_role(&k, &role);
    int rows[SIZES] = {k.rows, k.rows > 1 ? k.rows - 1 : 1, 1},
        columns[SIZES] = {k.columns, k.columns > 1 ? k.columns - 1 : 1, (k.columns + 1) / 2};
    const char *type = element_rows[k.type].spelling;
    for (int i = 0; i < SIZES; i++) {
        result.sizes[i] = arena_printf(arena, "M=%d A=%d B=%d", 1 + i, rows[i], columns[i]);
        str_printf(&text, "//> run %s\n", result.sizes[i]);
    }
    str_printf(&text, "kernel k%llu(X: %s[M, A, B]%s) for sm_90a {\n", (unsigned long long)seed,
               type, k.parameters.text);
    str_printf(&text, "    requires A <= %d;\n    requires B <= %d;\n    ensures {%s }\n", k.rows,
               k.columns, k.claims.text);
    str_printf(&text, "    example M = 3, A = %d, B = %d;\n    grid %s(m: M);\n", k.rows, k.columns,
               !often(&k, 70)  ? ""
               : seed % 3 == 0 ? "dynamic "
                               : "persistent ");
    str_printf(&text, "    pipe xs[%u] load -> work { x: %s[%d, %d]; }\n", 2 + 2 * pick(&k, 2),
               type, k.rows, k.columns);
    str_add(&text,
            "    role load: 1 warp { for m in grid { produce <xs> as s { s.x[i, j] = X[m, i, j] "
            "by lanes; } } }\n");
    str_add(&text, role.text);
    str_add(&text, "}\n");
    result.text = text.text;
    return result;
}
