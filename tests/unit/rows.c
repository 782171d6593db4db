/* Reductions of rows, compared with plain C: softmax, norms, losses, sums and extremes.
 *
 * The expected results are computed here, in f64 for normal data and in f32, operation by
 * operation, for rows with infinities, NaN, huge and subnormal values. So they check the kernels
 * and, on the same data, the verdict of `ensures`: right for these results, wrong after a result
 * was changed. The table of special values in docs/language.md is compared with what the kernels
 * return. `rows --gpu` runs everything on a GPU. */
#include "include/pipec.h"
#include "runtime/runtime.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int failures;
static PipecWhere where = PIPEC_ON_EMULATOR;

static bool expect(bool fine, const char *what, const char *kernel, const char *values) {
    if (fine) return true;
    fprintf(stderr, "tests/unit/rows.c: %s %s: expected %s\n", kernel, values, what);
    failures++;
    return false;
}

/* ---- the data of a run ----------------------------------------------------------------------- */

#define ROWS_MOST 64
#define EPS       0.00390625 /* exact in f32 */

/* Every operation is rounded to f32 if `single`. */
typedef struct Rows {
    int64_t rows, length;
    const double *x, *weights, *biases, *labels; /* x: rows * length */
    bool single;
} Rows;

static double rounded(const Rows *rows, double value) {
    return rows->single ? (double)(float)value : value;
}

typedef double Combine(const Rows *rows, double total, double x, double shift);

static double add(const Rows *rows, double total, double x, double shift) {
    (void)shift;
    return rounded(rows, total + x);
}
static double add_square(const Rows *rows, double total, double x, double shift) {
    double difference = rounded(rows, x - shift);
    return rounded(rows, total + rounded(rows, difference * difference));
}
static double add_exponential(const Rows *rows, double total, double x, double shift) {
    return rounded(rows, total + rounded(rows, exp(rounded(rows, x - shift))));
}
static double larger(const Rows *rows, double most, double x, double shift) {
    (void)rows, (void)shift;
    return isnan(x) || x > most ? x : most;
}
static double smaller(const Rows *rows, double least, double x, double shift) {
    (void)rows, (void)shift;
    return isnan(x) || x < least ? x : least;
}

static double reduce(const Rows *rows, int64_t row, Combine *combine, double start, double shift) {
    for (int64_t k = 0; k < rows->length; k++)
        start = combine(rows, start, rows->x[row * rows->length + k], shift);
    return start;
}

/* ---- expected results: of one row ------------------------------------------------------------ */

static double most_of(const Rows *rows, int64_t row) {
    return reduce(rows, row, larger, -(double)INFINITY, 0);
}

static void softmax(const Rows *rows, int64_t row, double *out) {
    double top = most_of(rows, row), total = reduce(rows, row, add_exponential, 0, top);
    for (int64_t k = 0; k < rows->length; k++) {
        double power = rounded(rows, exp(rounded(rows, rows->x[row * rows->length + k] - top)));
        out[k] = rounded(rows, power / total);
    }
}

static void rmsnorm(const Rows *rows, int64_t row, double *out) {
    double total = reduce(rows, row, add_square, 0, 0);
    double scale = rounded(rows, 1 / sqrt(rounded(rows, total / (double)rows->length + EPS)));
    for (int64_t k = 0; k < rows->length; k++)
        out[k] = rounded(rows, rows->x[row * rows->length + k] * scale) * rows->weights[k];
}

static void layernorm(const Rows *rows, int64_t row, double *out) {
    double mean = rounded(rows, reduce(rows, row, add, 0, 0) / (double)rows->length);
    double total = reduce(rows, row, add_square, 0, mean);
    double scale = rounded(rows, 1 / sqrt(rounded(rows, total / (double)rows->length + EPS)));
    for (int64_t k = 0; k < rows->length; k++) {
        double x = rounded(rows, rows->x[row * rows->length + k] - mean);
        out[k] = rounded(rows, rounded(rows, x * scale) * rows->weights[k]) + rows->biases[k];
    }
}

static void exponents(const Rows *rows, int64_t row, double *out) {
    double top = most_of(rows, row);
    if (top == -(double)INFINITY) top = -3.4e38;
    out[0] = top + rounded(rows, log(reduce(rows, row, add_exponential, 0, top)));
}
static void loss(const Rows *rows, int64_t row, double *out) {
    exponents(rows, row, out);
    out[0] -= rows->x[row * rows->length + (int64_t)rows->labels[row]];
}
static void sum_of(const Rows *rows, int64_t row, double *out) {
    out[0] = reduce(rows, row, add, 0, 0);
}
static void sums_up_to(const Rows *rows, int64_t row, double *out) {
    double total = 0;
    for (int64_t k = 0; k < rows->length; k++)
        out[k] = total = add(rows, total, rows->x[row * rows->length + k], 0);
}
static void largest(const Rows *rows, int64_t row, double *out) { out[0] = most_of(rows, row); }
static void smallest(const Rows *rows, int64_t row, double *out) {
    out[0] = reduce(rows, row, smaller, (double)INFINITY, 0);
}

/* ---- kernels --------------------------------------------------------------------------------- */

typedef struct Kernel {
    const char *name; /* column of the table */
    const char *path, *out;
    void (*expected)(const Rows *rows, int64_t row, double *out);
    const char *length; /* extent or static of the length of a row */
    int multiple;       /* of elements: lengths that the kernel takes */
    bool columns;       /* reduces the columns of X */
    bool one;           /* the result of a row is one element */
    double within;
    bool scaled; /* has an `eps` */
} Kernel;

static const Kernel kernels[] = {
    {"softmax", "examples/softmax.pipe", "Y", softmax, "D", 8, false, false, 1e-2, false},
    {"softmax", "examples/softmax_masked.pipe", "Y", softmax, "D", 1, false, false, 1e-2, false},
    {"softmax", "bench/rows/softmax.pipe", "Y", softmax, "D", 1, false, false, 1e-2, false},
    {"rmsnorm", "examples/rmsnorm.pipe", "Y", rmsnorm, "D", 8, false, false, 1e-2, true},
    {"rmsnorm", "bench/rows/rmsnorm.pipe", "Y", rmsnorm, "D", 1, false, false, 1e-2, true},
    {"layernorm", "examples/layernorm.pipe", "Y", layernorm, "D", 8, false, false, 1e-2, true},
    {"layernorm", "bench/rows/layernorm.pipe", "Y", layernorm, "D", 1, false, false, 1e-2, true},
    {"cross_entropy", "examples/cross_entropy.pipe", "Loss", loss, "V", 8, false, true, 1e-3,
     false},
    {"its `Lse`", "examples/cross_entropy.pipe", "Lse", exponents, "V", 8, false, true, 1e-4,
     false},
    {"sum", "examples/rowsum.pipe", "Sum", sum_of, "D", 4, false, true, 1e-5, false},
    {"sum", "bench/rows/rowsum.pipe", "Y", sum_of, "D", 1, false, true, 1e-3, false},
    {"sum", "examples/colsum.pipe", "Sum", sum_of, "M", 1, true, true, 1e-5, false},
    {"max", "tests/run/extremes-of-rows.pipe", "Most", largest, "D", 1, false, true, 0, false},
    {"min", "tests/run/extremes-of-rows.pipe", "Least", smallest, "D", 1, false, true, 0, false},
};

/* Without a column in the table: infinities and NaN are in the results after them */
static const Kernel scans[] = {
    {"running sums", "examples/cumsum.pipe", "Y", sums_up_to, "D", 4, false, false, 1e-4, false},
};

typedef struct Trial {
    Arena *arena;
    const Kernel *kernel;
    PipecProgram *program;
    PipecRun *run;
    PipecArray x, out;
    Rows rows;
    double *expected; /* rows * results */
    int64_t results;  /* of a row */
    char text[128];   /* the values of the run */
} Trial;

static double *numbers_of(const Trial *trial, const char *name) {
    PipecArray array = {.size = sizeof array};
    Element type = E_F32;
    if (!pipec_run_array_named(trial->run, name, &array) || !element_by_name(array.type, &type))
        return NULL;
    size_t each = (size_t)element_rows[type].bytes, count = array.bytes / each;
    double *numbers = NEW_ARRAY(trial->arena, double, count + 1);
    for (size_t i = 0; i < count; i++) {
        const char *at = (const char *)array.data + i * each;
        numbers[i] = element_rows[type].kind == ELEMENT_FLOAT
                         ? element_load(type, at)
                         : (double)element_load_integer(type, at);
    }
    return numbers;
}

static void put(const PipecArray *array, int64_t i, double value) {
    Element type = E_F32;
    element_by_name(array->type, &type);
    element_store(type, (char *)array->data + i * element_rows[type].bytes, value);
}

static int64_t place_of(const Trial *trial, int64_t row, int64_t k) {
    return trial->kernel->columns ? k * trial->rows.rows + row : row * trial->rows.length + k;
}

/* Element k of a row of X and, for the reference, a copy in the order of rows */
static void read_inputs(Trial *trial) {
    Rows *rows = &trial->rows;
    double *all = numbers_of(trial, "X"),
           *x = NEW_ARRAY(trial->arena, double, rows->rows * rows->length + 1);
    for (int64_t row = 0; row < rows->rows; row++)
        for (int64_t k = 0; k < rows->length; k++)
            x[row * rows->length + k] = all[place_of(trial, row, k)];
    rows->x = x;
    rows->weights = numbers_of(trial, "W");
    if (rows->weights == NULL) rows->weights = numbers_of(trial, "G");
    rows->biases = numbers_of(trial, "B");
    rows->labels = numbers_of(trial, "Label");
}

static void compute(Trial *trial, bool single) {
    trial->rows.single = single;
    for (int64_t row = 0; row < trial->rows.rows; row++)
        trial->kernel->expected(&trial->rows, row, trial->expected + row * trial->results);
}

static bool trial_open(Trial *trial, const Kernel *kernel, int64_t rows, int64_t length) {
    char row_word[32], length_word[32];
    const char *values[] = {length_word, row_word, "eps=0.00390625"};
    snprintf(length_word, sizeof length_word, "%s=%lld", kernel->length, (long long)length);
    snprintf(row_word, sizeof row_word, "%s=%lld", kernel->columns ? "N" : "M", (long long)rows);
    *trial = (Trial){.arena = arena_new(),
                     .kernel = kernel,
                     .rows = {.rows = rows, .length = length},
                     .x = {.size = sizeof trial->x},
                     .out = {.size = sizeof trial->out}};
    snprintf(trial->text, sizeof trial->text, "%s %s", length_word, row_word);
    PipecOptions compile = {
        .size = sizeof compile, .values = values, .value_count = 1, .launch_values = true};
    PipecRunOptions run = {
        .size = sizeof run, .values = values, .value_count = kernel->scaled ? 3 : 2, .seed = 5};
    trial->results = kernel->one ? 1 : length;
    trial->expected = NEW_ARRAY(trial->arena, double, rows * trial->results + 1);
    trial->program = pipec_compile_file(kernel->path, &compile);
    trial->run = pipec_run_new(trial->program, &run);
    return expect(pipec_run_status(trial->run) == PIPEC_FINE &&
                      pipec_run_array_named(trial->run, "X", &trial->x) &&
                      pipec_run_array_named(trial->run, kernel->out, &trial->out),
                  "a run", kernel->path, trial->text);
}

static void trial_close(Trial *trial) {
    pipec_run_free(trial->run);
    pipec_program_free(trial->program);
    arena_free(trial->arena);
}

static bool trial_run(Trial *trial) {
    PipecExecuteOptions execute = {.size = sizeof execute, .where = where};
    read_inputs(trial);
    return expect(pipec_run_execute(trial->run, &execute) == PIPEC_FINE, "an execution",
                  trial->kernel->path, trial->text);
}

static bool is_close(double got, double expected, double tolerance) {
    if (isnan(expected) || isnan(got)) return isnan(expected) && isnan(got);
    return got == expected || fabs(got - expected) <= tolerance;
}

/* ---- normal data ----------------------------------------------------------------------------- */

static double size_of(const Trial *trial) { /* root mean square */
    double squares = 0;
    int64_t count = trial->rows.rows * trial->results;
    for (int64_t i = 0; i < count; i++) squares += trial->expected[i] * trial->expected[i];
    return count > 0 ? sqrt(squares / (double)count) : 0;
}

/* `ensures` refuses one changed result. */
static void test_change(Trial *trial, int64_t at, double size) {
    double within = trial->kernel->within, e = trial->expected[at];
    put(&trial->out, at, e + (within > 0 ? 3 * within * (fabs(e) + size) : 1));
    expect(pipec_run_verify(trial->run) == PIPEC_WRONG, "a changed result to be wrong",
           trial->kernel->path, trial->text);
}

static void test_shape(const Kernel *kernel, int64_t rows, int64_t length) {
    Trial trial;
    if (trial_open(&trial, kernel, rows, length) && trial_run(&trial)) {
        double *got = numbers_of(&trial, kernel->out);
        int64_t count = rows * trial.results, wrong = 0;
        compute(&trial, false);
        double size = size_of(&trial);
        for (int64_t i = 0; i < count; i++)
            wrong += !is_close(got[i], trial.expected[i],
                               kernel->within * (fabs(trial.expected[i]) + size));
        expect(wrong == 0, "the results of plain C", kernel->path, trial.text);
        expect(pipec_run_verify(trial.run) == PIPEC_RIGHT, "`ensures` to hold", kernel->path,
               trial.text);
        if (count > 0) test_change(&trial, count / 2, size);
    }
    trial_close(&trial);
}

static void test_shapes(const Kernel *kernel) {
    static const int64_t shapes[][2] = {{1, 1},   {8, 31},   {7, 32},  {16, 33}, {24, 40},
                                        {32, 64}, {33, 101}, {5, 200}, {9, 256}};
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        int64_t rows = shapes[i][0], length = shapes[i][1];
        if (kernel->columns) rows = (rows + 7) / 8 * 8; /* rows of X are copied by TMA */
        if (length % kernel->multiple != 0) continue;
        test_shape(kernel, rows, length);
    }
}

/* ---- special values -------------------------------------------------------------------------- */

typedef struct Special {
    const char *name; /* row of the table */
    double value;
    bool all; /* in every element; otherwise only in element SINGLED, others are normal */
} Special;

#define SINGLED 1
static const Special specials[] = {{"all -inf", -(double)INFINITY, true},
                                   {"one -inf", -(double)INFINITY, false},
                                   {"one inf", (double)INFINITY, false},
                                   {"one NaN", (double)NAN, false},
                                   {"one 3e38", 3e38, false},
                                   {"all 3e38", 3e38, true},
                                   {"all 1e-40", 1e-40, true},
                                   {"all 0", 0, true}};
#define SPECIAL_ROWS 8
#define SPECIAL_ROW  3     /* has the special values; the labels of its loss are not SINGLED */
#define SUBNORMAL    2e-40 /* two steps of the subnormal numbers of bf16 */

static const char *word_of(double value) {
    if (isnan(value)) return "NaN";
    if (isinf(value)) return value > 0 ? "inf" : "-inf";
    return value == 0 ? "0" : "finite";
}

/* One word for the elements of a result without SINGLED; finite ones may contain zeros. */
static const char *word_of_others(const double *results, int64_t count) {
    const char *word = NULL;
    for (int64_t k = 0; k < count; k++) {
        const char *next = word_of(results[k]);
        if (k == SINGLED && count > 1) continue;
        if (word == NULL || strcmp(word, "0") == 0)
            word = next;
        else if (strcmp(word, next) != 0 && strcmp(next, "0") != 0)
            return "mixed";
    }
    return word;
}

/* The cell of the table: "0 there, finite"; `*`: `ensures`, in f64, has another result */
static void describe(const Trial *trial, const double *got, bool right, char *cell, size_t size) {
    const double *results = got + SPECIAL_ROW * trial->results;
    const char *others = word_of_others(results, trial->results), *there = others;
    if (trial->results > 1) there = word_of(results[SINGLED]);
    if (strcmp(there, others) == 0)
        snprintf(cell, size, "%s%s", others, right ? "" : " *");
    else
        snprintf(cell, size, "%s there, %s%s", there, others, right ? "" : " *");
}

static void test_special(const Kernel *kernel, const Special *special, char *cell, size_t size) {
    Trial trial;
    cell[0] = 0;
    if (trial_open(&trial, kernel, SPECIAL_ROWS, 64)) {
        for (int64_t k = 0; k < 64; k++)
            if (special->all || k == SINGLED)
                put(&trial.x, place_of(&trial, SPECIAL_ROW, k), special->value);
        if (trial_run(&trial)) {
            double *got = numbers_of(&trial, kernel->out);
            int64_t count = trial.rows.rows * trial.results, wrong = 0;
            compute(&trial, true);
            for (int64_t i = 0; i < count; i++)
                wrong +=
                    !is_close(got[i], trial.expected[i],
                              2 * kernel->within * (fabs(trial.expected[i]) + 1e-3) + SUBNORMAL);
            expect(wrong == 0, "the results of f32", kernel->path, special->name);
            describe(&trial, got, pipec_run_verify(trial.run) == PIPEC_RIGHT, cell, size);
        }
    }
    trial_close(&trial);
}

/* The line of the table for one special value. Kernels with the same name must agree. */
static void test_line(const Special *special, const char *document) {
    char line[512], cell[64], last[64] = "";
    size_t length = (size_t)snprintf(line, sizeof line, "| %s |", special->name);
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        test_special(&kernels[i], special, cell, sizeof cell);
        if (i > 0 && strcmp(kernels[i].name, kernels[i - 1].name) == 0) {
            expect(strcmp(cell, last) == 0, last, kernels[i].path, special->name);
            continue;
        }
        length += (size_t)snprintf(line + length, sizeof line - length, " %s |", cell);
        strcpy(last, cell);
    }
    if (!expect(strstr(document, line) != NULL, "this line in docs/language.md", "table", line))
        fprintf(stderr, "%s\n", line);
}

/* Opens the GPU, so that each run does not open it again; NULL: there is none */
static Runtime *open_gpu(Arena *arena) {
    RuntimeLack lack;
    const char *why = "";
    Runtime *gpu = runtime_open(arena, -1, "sm_90a", 8, 0, &lack, &why);
    expect(gpu != NULL, why, "a GPU", "");
    where = PIPEC_ON_GPU;
    return gpu;
}

static void test_all(const char *document) {
    for (size_t i = 0; i < COUNT_OF(kernels); i++) test_shapes(&kernels[i]);
    for (size_t i = 0; i < COUNT_OF(scans); i++) test_shapes(&scans[i]);
    for (size_t i = 0; i < COUNT_OF(specials); i++) test_line(&specials[i], document);
}

int main(int argc, char **argv) {
    static char document[1 << 20];
    bool on_gpu = argc > 1 && strcmp(argv[1], "--gpu") == 0;
    Arena *arena = arena_new();
    Runtime *gpu = on_gpu ? open_gpu(arena) : NULL;
    FILE *file = fopen("docs/language.md", "r");
    if (!expect(file != NULL, "the file", "docs/language.md", "")) return 1;
    document[fread(document, 1, sizeof document - 1, file)] = 0;
    fclose(file);
    if (!on_gpu || gpu != NULL) test_all(document);
    if (gpu != NULL) runtime_close(gpu);
    arena_free(arena);
    return failures > 0;
}
