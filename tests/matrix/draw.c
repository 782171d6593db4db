/* Draws a shape: types, tiles, layouts, roles, epilogue and sizes. Shapes fit a block by
 * construction, except a few that the compiler must refuse. */
#include "tests/matrix/matrix.h"

#include <string.h>

#define SHARED_ROOM (224 * 1024) /* of 227 KB, less barriers and alignment */
#define TOO_LARGE   3            /* percent of the shapes that need not fit */

static const ClusterRow clusters[] = {{"", 1, 1, 60},
                                      {"cluster (m: 2);", 2, 1, 14},
                                      {"cluster (n: 2);", 1, 2, 12},
                                      {"cluster (m: 2, n: 2);", 2, 2, 10},
                                      {"cluster (m: 4);", 4, 1, 6},
                                      {"cluster (m: 3);", 3, 1, 3}};

static int pick(Matrix *x, int below) { return (int)draw(&x->random, (uint32_t)below); }
static bool often(Matrix *x, int percent) { return chance(&x->random, percent); }

#define ANY(x, table) ((table)[pick((x), (int)COUNT_OF(table))])

static int bytes_of(Element type) { return element_rows[type].bytes; }
static bool whole(const Matrix *x) { return mma_rows[x->kind].sum == E_I32; }
static int smaller(int a, int b) { return a < b ? a : b; }

/* ---- the tile -------------------------------------------------------------------------------- */

static int rows_of_group(const Matrix *x) {
    return x->sharing == BY_ROWS ? x->rows / x->groups : x->rows;
}
static int columns_of_group(const Matrix *x) {
    return x->sharing == BY_COLUMNS ? x->columns / x->groups : x->columns;
}

static bool legal_columns(const Matrix *x, int n) {
    const MmaRow *row = &mma_rows[x->kind];
    bool contiguous = !x->b_by_columns || n % 16 == 0; /* 16 elements of two bytes each */
    return n > 0 && n <= 256 && n % (n <= 32 ? row->n_step : row->n_step_large) == 0 && contiguous;
}

static void draw_groups(Matrix *x) {
    static const Sharing ways[] = {BY_ROWS, BY_ROWS, BY_ROWS, BY_COLUMNS, BY_TILES};
    x->groups = 1 + pick(x, 3);
    x->sharing = x->groups == 1 ? BY_ROWS : ANY(x, ways);
    x->rows = x->sharing == BY_ROWS ? 64 * x->groups : 64;
    if (x->rows <= 128 && x->sharing != BY_TILES && often(x, 35)) x->rows *= 2;
    int most = 256 / (x->sharing == BY_COLUMNS ? x->groups : 1), n = 0;
    while (!legal_columns(x, n) || (x->sharing == BY_COLUMNS && n * x->groups % 8 != 0))
        n = 8 * (1 + pick(x, often(x, 50) ? most / 8 : smaller(most, 96) / 8));
    x->columns = x->sharing == BY_COLUMNS ? n * x->groups : n;
}

static void draw_inner(Matrix *x) {
    static const int rows_of_bytes[] = {32, 64, 128, 128};
    int bytes = bytes_of(mma_rows[x->kind].operands), least = mma_rows[x->kind].k;
    x->inner = ANY(x, rows_of_bytes) / bytes;
    if (often(x, 10)) x->inner = 96 / bytes;
    if (often(x, 10) && bytes <= 2) x->inner = 128;
    if (x->inner < least) x->inner = least;
    x->copies = often(x, 12) ? 2 : 0;
}

/* ---- shared memory --------------------------------------------------------------------------- */

static int shared_bytes(const Matrix *x) {
    int tile = x->rows * x->columns, k_tiles = x->copies > 0 ? x->copies : 1;
    int stage = (x->rows + x->columns) * x->inner * k_tiles * bytes_of(mma_rows[x->kind].operands);
    int extra = (x->residual == FROM_PIPE ? tile * bytes_of(x->out) : 0) +
                (x->bias == FROM_PIPE ? x->columns * 4 : 0);
    return stage * x->stages * (x->second == NO_SECOND ? 1 : 2) +
           tile * bytes_of(x->out) * x->out_stages +
           extra * (x->sharing == BY_TILES ? x->groups : 1);
}

static bool registers_fit(const Matrix *x) {
    return rows_of_group(x) * columns_of_group(x) / 128 <= (x->groups == 3 ? 96 : 160);
}

static bool fits(const Matrix *x) { return shared_bytes(x) <= SHARED_ROOM && registers_fit(x); }

/* ---- types and layouts ----------------------------------------------------------------------- */

static void draw_types(Matrix *x) {
    static const MmaKind kinds[] = {MMA_BF16, MMA_BF16, MMA_BF16, MMA_F16,  MMA_F16, MMA_TF32,
                                    MMA_TF32, MMA_E4M3, MMA_E4M3, MMA_E5M2, MMA_I8,  MMA_U8};
    static const Element floats[] = {E_BF16, E_BF16, E_F32, E_F16},
                         integers[] = {E_I32, E_I32, E_F32, E_BF16};
    x->kind = ANY(x, kinds);
    x->out = whole(x) ? ANY(x, integers) : ANY(x, floats);
    x->a_by_columns = mma_rows[x->kind].either_major && often(x, 50);
    x->b_by_columns = mma_rows[x->kind].either_major && often(x, 50);
    x->batch = often(x, 15);
}

static Addend draw_source(Matrix *x, int percent) {
    if (!often(x, percent)) return FROM_NOWHERE;
    return often(x, 50) ? FROM_PIPE : FROM_TENSOR;
}

static void draw_epilogue(Matrix *x) {
    x->out_stages = often(x, 65) ? 1 + pick(x, 2) : 0;
    x->bias = draw_source(x, 30);
    x->residual = draw_source(x, 25);
    x->bias_type = x->out == E_I32 ? E_I32 : often(x, 50) ? E_F32 : x->out;
    x->scaled = x->out != E_I32 && often(x, 35);
    x->scaled_before = x->scaled && !whole(x) && often(x, 50);
    x->relu = often(x, 25);
}

static void draw_roles(Matrix *x) {
    x->persistent = often(x, 60);
    x->n_first = often(x, 35);
    x->grouped = often(x, 35) ? 1 + pick(x, 4) : 0;
    x->separate = often(x, 15);
    x->two_loads = x->separate && often(x, 60);
    x->swapped = often(x, 30);
    x->peeled = often(x, 15);
    x->stages = 1 + pick(x, 5);
    x->second = often(x, 80) ? NO_SECOND : often(x, 50) ? IN_THE_STAGE : IN_A_LOOP;
    x->flat = !x->separate && !x->peeled && often(x, 20);
    x->in_turn = x->flat && x->groups > 1 && x->sharing != BY_TILES && x->second != IN_A_LOOP &&
                 often(x, 50);
    x->lag =
        x->separate || x->peeled || x->flat || often(x, 60) ? -1 : pick(x, smaller(x->stages, 3));
    /* Each group takes its own stage of the result, so the ring needs one for each */
    if (x->sharing == BY_TILES && x->out_stages > 0 && x->out_stages < x->groups)
        x->out_stages = x->groups;
    for (int i = 0; i < 4; i++) x->order[i] = i;
    for (int i = 3; i > 0; i--) {
        int other = pick(x, i + 1), role = x->order[i];
        x->order[i] = x->order[other], x->order[other] = role;
    }
}

static void draw_cluster(Matrix *x) {
    int total = 0;
    for (size_t i = 0; i < COUNT_OF(clusters); i++) total += clusters[i].weight;
    int at = pick(x, total);
    x->cluster = clusters;
    while (at >= x->cluster->weight) at -= x->cluster++->weight;
    x->grouped *= x->n_first ? x->cluster->n : x->cluster->m; /* groups consist of whole clusters */
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static int up(int size, int multiple) { return (size + multiple - 1) / multiple * multiple; }

/* An axis along which rows are contiguous is a multiple of 16 bytes */
static void row_along(int *multiple, Element type, bool is) {
    int elements = 16 / bytes_of(type);
    if (is && elements > *multiple) *multiple = elements;
}

static int draw_size(Matrix *x, int tile, int most, int multiple) {
    int choices[] = {1,
                     5,
                     tile - 1,
                     tile,
                     tile + 1,
                     2 * tile - 3,
                     2 * tile,
                     2 * tile + 7,
                     3 * tile + 2,
                     4 * tile - 9,
                     pick(x, most)};
    int size = often(x, 4) ? 0 : ANY(x, choices);
    return up(smaller(size, most), multiple);
}

static void draw_sizes(Matrix *x) {
    Element operand = mma_rows[x->kind].operands;
    int m = 1, n = 1, k = 1, step = x->inner * (x->copies > 0 ? x->copies : 1);
    row_along(&m, operand, x->a_by_columns);
    row_along(&n, operand, x->b_by_columns);
    row_along(&k, operand, !x->a_by_columns || !x->b_by_columns);
    row_along(&n, x->out, x->out_stages > 0 || x->residual == FROM_PIPE);
    x->m = draw_size(x, x->rows, 400, m), x->n = draw_size(x, x->columns, 400, n);
    x->k = draw_size(x, step, 320, k), x->l = draw_size(x, step, 200, k);
    if (often(x, 20)) x->k = up(smaller(step * (x->stages + pick(x, 3) - 1) + 1, 400), k);
    x->g = x->batch ? 1 + pick(x, 3) : 1;
    if (x->batch) x->m = up(smaller(x->m, 200), m), x->n = up(smaller(x->n, 200), n);
    if (!often(x, 4)) return;
    if (m > 1)
        x->broken = "M", x->m += 1;
    else if (k > 1)
        x->broken = "K", x->k += 1 + pick(x, k - 1);
    else if (n > 1)
        x->broken = "N", x->n += n / 2;
}

/* ---- shape ----------------------------------------------------------------------------------- */

Matrix matrix_draw(Arena *arena, uint64_t seed) {
    Matrix x = {.arena = arena, .random = {seed * 0x2545f4914f6cdd1du + 7}, .seed = seed};
    bool any = often(&x, TOO_LARGE);
    draw_types(&x);
    do {
        draw_groups(&x);
        draw_inner(&x);
        draw_epilogue(&x);
        draw_roles(&x);
    } while (!any && !fits(&x));
    draw_cluster(&x);
    draw_sizes(&x);
    return x;
}
