/* Prints a shape as a program. The claim and the fills depend on the filling, the kernel's items
 * do not. */
#include "tests/matrix/matrix.h"

#include <math.h>
#include <string.h>

/* Largest absolute values that encode coordinates: sums of 800 products of them are exact, also
 * in the type of the result, except that a float of 16 bits is rounded once */
static const int coded_range[MMA_COUNT] = {
    [MMA_BF16] = 31, [MMA_F16] = 15, [MMA_TF32] = 31, [MMA_E4M3] = 7,
    [MMA_E5M2] = 5,  [MMA_I8] = 201, [MMA_U8] = 101};

static bool whole(const Matrix *x) { return mma_rows[x->kind].sum == E_I32; }
static const char *spelling(Element type) { return element_rows[type].spelling; }
static const char *field_type(const Matrix *x) { return spelling(mma_rows[x->kind].operands); }
static const char *tensor_type(const Matrix *x) {
    return x->kind == MMA_TF32 ? "f32" : field_type(x);
}
static int products(const Matrix *x) { return x->second == NO_SECOND ? 1 : 2; }
static int k_tiles(const Matrix *x) { return x->copies > 0 ? x->copies : 1; }
static char extent_of(const Matrix *x, int product) {
    return product == 1 && x->second == IN_A_LOOP ? 'L' : 'K';
}

/* "[g, k, i]" or "[i, k]" */
static void subscripts(Str *out, const Matrix *x, const char *g, const char *last_but_one,
                       const char *last) {
    str_char(out, '[');
    if (x->batch) str_printf(out, "%s, ", g);
    str_printf(out, "%s, %s]", last_but_one, last);
}

static void operand(Str *out, const Matrix *x, bool is_b, int product, const char *g,
                    const char *free, const char *inner) {
    bool by_columns = is_b ? x->b_by_columns : x->a_by_columns;
    str_printf(out, "%c%d", is_b ? 'B' : 'A', product);
    subscripts(out, x, g, by_columns ? inner : free, by_columns ? free : inner);
}

/* ---- parameters and claims ------------------------------------------------------------------- */

static void add_parameters(Str *out, const Matrix *x) {
    for (int p = 0; p < products(x); p++) {
        const char inner[] = {extent_of(x, p), '\0'};
        for (int is_b = 0; is_b < 2; is_b++) {
            Str shape = str_new(x->arena);
            operand(&shape, x, is_b, p, "G", is_b ? "N" : "M", inner);
            str_printf(out, "%.2s: %s%s, ", shape.text, tensor_type(x), shape.text + 2);
        }
    }
    if (x->bias != FROM_NOWHERE) str_printf(out, "bias: %s[N], ", spelling(x->bias_type));
    if (x->residual != FROM_NOWHERE) {
        str_printf(out, "R: %s", spelling(x->out));
        subscripts(out, x, "G", "M", "N");
        str_add(out, ", ");
    }
    str_printf(out, "out C: %s", spelling(x->out));
    subscripts(out, x, "G", "M", "N");
    if (x->scaled) str_add(out, ", alpha: f32");
}

/* The value of an element whose sum is `sum`: as the epilogue computes it, and as the claim
 * states it */
static const char *finished(const Matrix *x, const char *sum, const char *bias,
                            const char *residual, bool scaled, bool rounded) {
    const char *text = whole(x) && x->out != E_I32 ? arena_printf(x->arena, "f32(%s)", sum) : sum;
    if (scaled) text = arena_printf(x->arena, "alpha * %s", text);
    if (bias != NULL) text = arena_printf(x->arena, "%s + %s", text, bias);
    if (residual != NULL) text = arena_printf(x->arena, "%s + %s", text, residual);
    if (x->relu) text = arena_printf(x->arena, "max(%s, 0)", text);
    if (rounded && (x->out == E_BF16 || x->out == E_F16))
        text = arena_printf(x->arena, "%s(%s)", spelling(x->out), text);
    return text;
}

static void add_claim(Str *out, const Matrix *x, Filling filling) {
    Str sum = str_new(x->arena), residual = str_new(x->arena);
    str_char(&sum, '(');
    for (int p = 0; p < products(x); p++) {
        str_add(&sum, p > 0 ? " + sum[k] " : "sum[k] ");
        operand(&sum, x, false, p, "g", "i", "k");
        str_add(&sum, " * ");
        operand(&sum, x, true, p, "g", "j", "k");
    }
    str_char(&sum, ')');
    str_char(&residual, 'R');
    subscripts(&residual, x, "g", "i", "j");
    double within = filling == FILL_AT_RANDOM ? matrix_within(x) : 0;
    str_add(out, "    ensures C");
    subscripts(out, x, "g", "i", "j");
    str_printf(out, " %s %s", within > 0 ? "~" : "==",
               finished(x, sum.text, x->bias != FROM_NOWHERE ? "bias[j]" : NULL,
                        x->residual != FROM_NOWHERE ? residual.text : NULL, x->scaled,
                        within == 0));
    if (within > 0) str_printf(out, " within %.3g", within);
    str_add(out, ";\n");
}

double matrix_within(const Matrix *x) {
    double rounding = x->out == E_BF16 ? 0x1p-8 : x->out == E_F16 ? 0x1p-10 : 0x1p-20;
    double cut = x->kind == MMA_TF32 ? 0x1p-8 : 0; /* of operands, to 10 bits */
    /* The bound is relative to the sum of the products' absolute values, which is at most this
     * multiple of their root mean square */
    double sums = mma_rows[x->kind].bound * sqrt(800) * 2;
    return x->out == E_I32 ? 0 : rounding + cut + sums;
}

/* ---- fills ----------------------------------------------------------------------------------- */

/* Integers from -range/2 to range/2 that differ between nearby coordinates in every direction */
static void add_code(Str *out, const Matrix *x, const char *g, const char *r, const char *c,
                     int salt, int range) {
    str_printf(out, "(%s*%s*3 + %s*%s*7 + %s*%s*5 + %s*%d + %s*13", r, r, r, c, c, c, r, 11 + salt,
               c);
    if (x->batch) str_printf(out, " + %s*37", g);
    str_printf(out, " + %d) %% 251 %% %d", salt, range);
    if (x->kind != MMA_U8) str_printf(out, " - %d", range / 2);
}

static void add_operand_fill(Str *out, const Matrix *x, bool is_b, int product, Filling filling) {
    bool picks = filling == FILL_WITH_CHOICE && (int)is_b == (int)(x->seed & 1);
    str_add(out, ", ");
    operand(out, x, is_b, product, "g", "r", "c");
    str_add(out, " = ");
    if (picks) /* a one at the position given by the row's number, so from every k tile */
        str_printf(out, "c == (r*7 + %d) %% max(%c, 1) ? 1 : 0", product, extent_of(x, product));
    else
        add_code(out, x, "g", "r", "c", product * 2 + is_b, coded_range[x->kind]);
}

static void add_example(Str *out, const Matrix *x, Filling filling) {
    str_printf(out, "    example M = %d, N = %d, K = %d", x->m, x->n, x->k);
    if (x->second == IN_A_LOOP) str_printf(out, ", L = %d", x->l);
    if (x->batch) str_printf(out, ", G = %d", x->g);
    if (x->scaled) str_add(out, filling == FILL_AT_RANDOM ? ", alpha = 0.75" : ", alpha = 0.5");
    if (filling != FILL_AT_RANDOM) {
        for (int p = 0; p < products(x); p++)
            for (int is_b = 0; is_b < 2; is_b++) add_operand_fill(out, x, is_b, p, filling);
        if (x->bias != FROM_NOWHERE) str_add(out, ", bias[r] = (r*r*3 + r*11) % 251 % 97 - 48");
        if (x->residual != FROM_NOWHERE) {
            str_add(out, ", R");
            subscripts(out, x, "g", "r", "c");
            str_add(out, " = ");
            add_code(out, x, "g", "r", "c", 9, 61);
        }
    }
    str_add(out, ";\n");
}

/* ---- domains and pipes ----------------------------------------------------------------------- */

static const char *loop_names(const Matrix *x) {
    if (!x->batch) return x->n_first ? "(n, m)" : "(m, n)";
    return x->n_first ? "(n, m, g)" : "(m, n, g)";
}

static void add_domains(Str *out, const Matrix *x) {
    const char *m = arena_printf(x->arena, "m: ceil(M, %d)", x->rows);
    const char *n = arena_printf(x->arena, "n: ceil(N, %d)", x->columns);
    str_printf(out, "    grid%s (%s, %s%s)", x->persistent ? " persistent" : "", x->n_first ? n : m,
               x->n_first ? m : n, x->batch ? ", g: G" : "");
    if (x->grouped > 0) str_printf(out, " grouped %d", x->grouped);
    str_add(out, ";\n");
    if (*x->cluster->words != '\0') str_printf(out, "    %s\n", x->cluster->words);
    str_printf(out, "    range kt = 0 .. ceil(K, %d);\n", x->inner * k_tiles(x));
    if (x->second == IN_A_LOOP)
        str_printf(out, "    range lt = 0 .. ceil(L, %d);\n", x->inner * k_tiles(x));
}

static void add_field(Str *out, const Matrix *x, bool is_b, int product) {
    int rows = is_b ? x->columns : x->rows;
    bool by_columns = is_b ? x->b_by_columns : x->a_by_columns;
    str_printf(out, " %c%d", is_b ? 'b' : 'a', product);
    if (x->copies > 0) str_printf(out, "[%d]", x->copies);
    str_printf(out, ": %s[%d, %d];", field_type(x), by_columns ? x->inner : rows,
               by_columns ? rows : x->inner);
}

/* The pipe of an operand: 0 or 1 of its loop, separate or shared */
static const char *pipe_of(const Matrix *x, bool is_b, int product) {
    bool own = product == 1 && x->second == IN_A_LOOP;
    return arena_printf(x->arena, "%s%s",
                        !x->separate ? "ab"
                        : is_b       ? "pb"
                                     : "pa",
                        own ? "2" : "1");
}

static bool loop_has(const Matrix *x, int loop, int product) {
    return x->second == IN_A_LOOP ? product == loop : loop == 0 && product < products(x);
}

/* Number of result tiles that are computed in parallel */
static int taken_at_once(const Matrix *x) { return x->sharing == BY_TILES ? x->groups : 1; }

static void add_pipes(Str *out, const Matrix *x) {
    for (int loop = 0; loop < (x->second == IN_A_LOOP ? 2 : 1); loop++)
        for (int end = 0; end < (x->separate ? 2 : 1); end++) {
            bool second_load = x->two_loads && end == 1;
            str_printf(out, "    pipe %s[%d] %s -> math {", pipe_of(x, end == 1, loop), x->stages,
                       second_load ? "load2" : "load");
            for (int p = 0; p < products(x); p++)
                for (int is_b = 0; is_b < 2; is_b++)
                    if (loop_has(x, loop, p) && (!x->separate || is_b == end))
                        add_field(out, x, is_b, p);
            str_add(out, " }\n");
        }
    if (x->bias == FROM_PIPE)
        str_printf(out, "    pipe biases[%d] load -> math { v: %s[%d]; }\n", taken_at_once(x),
                   spelling(x->bias_type), x->columns);
    if (x->residual == FROM_PIPE)
        str_printf(out, "    pipe residuals[%d] load -> math { t: %s[%d, %d]; }\n",
                   taken_at_once(x), spelling(x->out), x->rows, x->columns);
    if (x->out_stages > 0)
        str_printf(out, "    pipe c[%d] math -> store { t: %s[%d, %d]; }\n", x->out_stages,
                   spelling(x->out), x->rows, x->columns);
}

/* ---- copying roles --------------------------------------------------------------------------- */

static void add_copy(Str *out, const Matrix *x, bool is_b, int product) {
    bool by_columns = is_b ? x->b_by_columns : x->a_by_columns;
    const char *tile = x->copies > 0 ? "[u]" : "";
    const char *inner = x->copies > 0
                            ? arena_printf(x->arena, "(k*%d + u)*%d + x", x->copies, x->inner)
                            : arena_printf(x->arena, "k*%d + x", x->inner);
    const char *free =
        arena_printf(x->arena, is_b ? "n*%d + i" : "m*%d + i", is_b ? x->columns : x->rows);
    str_printf(out,
               "                    %ss.%c%d%s[%s] = ", x->copies > 0 ? "for u in 0 .. 2 { " : "",
               is_b ? 'b' : 'a', product, tile, by_columns ? "x, i" : "i, x");
    operand(out, x, is_b, product, "g", free, inner);
    str_add(out, x->copies > 0 ? "; }\n" : ";\n");
}

static void add_loads(Str *out, const Matrix *x, int loop, bool a, bool b) {
    str_printf(out, "            for k in %s {\n", loop == 0 ? "kt" : "lt");
    for (int end = 0; end < (x->separate ? 2 : 1); end++) {
        if (x->separate && !(end == 0 ? a : b)) continue;
        str_printf(out, "                produce <%s> as s {\n", pipe_of(x, end == 1, loop));
        for (int p = 0; p < products(x); p++)
            for (int is_b = 0; is_b < 2; is_b++)
                if (loop_has(x, loop, p) && (!x->separate || is_b == end))
                    add_copy(out, x, is_b, p);
        str_add(out, "                }\n");
    }
    str_add(out, "            }\n");
}

static void add_load_role(Str *out, const Matrix *x, bool a, bool b) {
    str_printf(out, "    role %s: 1 warp {\n        for %s in grid {\n", a ? "load" : "load2",
               loop_names(x));
    for (int loop = 0; loop < (x->second == IN_A_LOOP ? 2 : 1); loop++)
        add_loads(out, x, loop, a, b);
    if (a && x->bias == FROM_PIPE)
        str_printf(out, "            produce <biases> as s { s.v[j] = bias[n*%d + j]; }\n",
                   x->columns);
    if (a && x->residual == FROM_PIPE) {
        str_add(out, "            produce <residuals> as s { s.t[i, j] = R");
        subscripts(out, x, "g", arena_printf(x->arena, "m*%d + i", x->rows),
                   arena_printf(x->arena, "n*%d + j", x->columns));
        str_add(out, "; }\n");
    }
    str_add(out, "        }\n    }\n");
}

static void add_store_role(Str *out, const Matrix *x) {
    str_printf(
        out, "    role store: 1 warp {\n        for %s in grid {\n            consume <c> as o { C",
        loop_names(x));
    subscripts(out, x, "g", arena_printf(x->arena, "m*%d + i", x->rows),
               arena_printf(x->arena, "n*%d + j", x->columns));
    str_add(out, " = o.t[i, j]; }\n        }\n    }\n");
}

/* ---- the multiplying role -------------------------------------------------------------------- */

static const char *row_text(const Matrix *x) {
    bool parts = x->groups > 1 && x->sharing == BY_ROWS;
    return parts ? arena_printf(x->arena, "rank*%d + i", x->rows / x->groups) : "i";
}

static const char *column_text(const Matrix *x) {
    bool parts = x->groups > 1 && x->sharing == BY_COLUMNS;
    return parts ? arena_printf(x->arena, "rank*%d + j", x->columns / x->groups) : "j";
}

static const char *contraction(const Matrix *x, int product, const char *op) {
    const char *tile = x->copies > 0 ? "[u]" : "", *row = row_text(x), *column = column_text(x);
    const char *a = arena_printf(x->arena, x->a_by_columns ? "s.a%d%s[x, %s]" : "s.a%d%s[%s, x]",
                                 product, tile, row);
    const char *b = arena_printf(x->arena, x->b_by_columns ? "%s.b%d%s[x, %s]" : "%s.b%d%s[%s, x]",
                                 x->separate ? "t" : "s", product, tile, column);
    return arena_printf(x->arena, "acc[i, j] %s sum[x] %s * %s;", op, x->swapped ? b : a,
                        x->swapped ? a : b);
}

static void add_contractions(Str *out, const Matrix *x, int loop, const char *op) {
    if (x->in_turn) str_add(out, "turn { ");
    if (x->copies > 0) str_add(out, "for u in 0 .. 2 { ");
    for (int p = 0; p < products(x); p++)
        if (loop_has(x, loop, p)) str_printf(out, "%s ", contraction(x, p, p > 0 ? "+=" : op));
    if (x->copies > 0) str_add(out, "} ");
    if (x->in_turn) str_add(out, "} ");
}

static void add_stage(Str *out, const Matrix *x, int loop, const char *op) {
    const char *lag = x->lag >= 0 ? arena_printf(x->arena, " lag %d", x->lag) : "",
               *pipe = pipe_of(x, false, loop);
    if (x->flat) {
        str_printf(out, "                let s = consume <%s>; ", pipe);
        add_contractions(out, x, loop, op);
        str_add(out, "release s;\n");
        return;
    }
    str_printf(out, "                consume <%s>%s as s { ", pipe, lag);
    if (x->separate) str_printf(out, "consume <%s> as t { ", pipe_of(x, true, loop));
    add_contractions(out, x, loop, op);
    str_add(out, x->separate ? "} }\n" : "}\n");
}

static void add_products(Str *out, const Matrix *x) {
    /* `=` starts a new sum, which is right only for the first tile of an array */
    bool peeled = x->peeled && x->copies == 0;
    if (peeled) {
        str_add(out, "            if kt nonempty {\n");
        add_stage(out, x, 0, "=");
        str_add(out, "                for k in kt from 1 {\n");
    } else {
        str_add(out, "            for k in kt {\n");
    }
    add_stage(out, x, 0, "+=");
    str_add(out, peeled ? "                }\n            }\n" : "            }\n");
    if (x->second != IN_A_LOOP) return;
    str_add(out, "            for k in lt {\n");
    add_stage(out, x, 1, "+=");
    str_add(out, "            }\n");
}

static void add_result(Str *out, const Matrix *x) {
    const char *row = row_text(x), *column = column_text(x);
    const char *m = arena_printf(x->arena, "m*%d + %s", x->rows, row),
               *n = arena_printf(x->arena, "n*%d + %s", x->columns, column);
    const char *bias = x->bias == FROM_PIPE ? arena_printf(x->arena, "w.v[%s]", column)
                                            : arena_printf(x->arena, "bias[%s]", n);
    Str direct = str_new(x->arena);
    str_char(&direct, 'R');
    subscripts(&direct, x, "g", m, n);
    const char *residual =
        x->residual == FROM_PIPE ? arena_printf(x->arena, "r.t[%s, %s]", row, column) : direct.text;
    if (x->scaled_before) str_add(out, "            acc[i, j] = acc[i, j] * alpha;\n");
    if (x->bias == FROM_PIPE) str_add(out, "            consume <biases> as w {\n");
    if (x->residual == FROM_PIPE) str_add(out, "            consume <residuals> as r {\n");
    const char *value = finished(x, "acc[i, j]", x->bias != FROM_NOWHERE ? bias : NULL,
                                 x->residual != FROM_NOWHERE ? residual : NULL,
                                 x->scaled && !x->scaled_before, true);
    if (x->out_stages > 0) {
        str_printf(out, "            produce <c> as o { o.t[%s, %s] = %s; }\n", row, column, value);
    } else {
        str_add(out, "            C");
        subscripts(out, x, "g", m, n);
        str_printf(out, " = %s;\n", value);
    }
    if (x->residual == FROM_PIPE) str_add(out, "            }\n");
    if (x->bias == FROM_PIPE) str_add(out, "            }\n");
}

static void add_math_role(Str *out, const Matrix *x) {
    int rows = x->sharing == BY_ROWS ? x->rows / x->groups : x->rows;
    int columns = x->sharing == BY_COLUMNS ? x->columns / x->groups : x->columns;
    str_printf(out, "    role math: %d warpgroup%s%s {\n        for %s in grid {\n", x->groups,
               x->groups == 1 ? "" : "s", x->sharing == BY_TILES ? " in turn" : "", loop_names(x));
    str_printf(out, "            var acc: %s[%d, %d] = 0;\n", spelling(mma_rows[x->kind].sum), rows,
               columns);
    if (x->sharing == BY_TILES) str_add(out, "            turn {\n");
    add_products(out, x);
    if (x->sharing == BY_TILES) str_add(out, "            }\n");
    add_result(out, x);
    str_add(out, "        }\n    }\n");
}

/* ---- program --------------------------------------------------------------------------------- */

const char *matrix_text(const Matrix *x, Filling filling) {
    Str out = str_new(x->arena);
    str_printf(&out, "kernel matrix_%llu(", (unsigned long long)x->seed);
    add_parameters(&out, x);
    str_add(&out, ") for sm_90a {\n");
    add_claim(&out, x, filling);
    add_example(&out, x, filling);
    add_domains(&out, x);
    add_pipes(&out, x);
    for (int i = 0; i < 4; i++) {
        if (x->order[i] == 0) add_load_role(&out, x, true, !x->two_loads);
        if (x->order[i] == 1 && x->two_loads) add_load_role(&out, x, false, true);
        if (x->order[i] == 2) add_math_role(&out, x);
        if (x->order[i] == 3 && x->out_stages > 0) add_store_role(&out, x);
    }
    str_add(&out, "}\n");
    return out.text;
}

const char *matrix_sizes(const Matrix *x) {
    Str out = str_new(x->arena);
    str_printf(&out, "M=%d N=%d K=%d", x->m, x->n, x->k);
    if (x->second == IN_A_LOOP) str_printf(&out, " L=%d", x->l);
    if (x->batch) str_printf(&out, " G=%d", x->g);
    return out.text;
}
