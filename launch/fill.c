/* launch: the contents of a tensor before the run, from a fill, a seed and the tensor's key.
 *
 * Element i depends only on seed, key and i, through a counter-based generator, so neither the
 * order of filling nor the sizes of other tensors matter. The normal distribution computes
 * logarithm and cosine from polynomials: only + - * / and sqrt of IEEE 754, which every machine
 * rounds in the same way, whereas C libraries differ in the last bits. */
#include "launch/private.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#define THREADS_MAX 32
/* elements: below this, threads cost more than they save */
#define LARGE_ARRAY (1 << 20)

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* gcc contracts nothing under -std=c11 */
#endif

/* splitmix64's finaliser */
static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static uint64_t random_bits(uint64_t stream, uint64_t index) {
    return mix(stream + (index + 1) * 0x9E3779B97F4A7C15u);
}

/* 1, 1/3 .. 1/13; 1, -1/2!, 1/4! .. ; 1, -1/3!, 1/5! ..: highest power first, in the order of
 * Horner's scheme */
static const double logarithm[] = {1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1};
static const double cosine[] = {
    1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -1.0 / 2, 1};
static const double sine[] = {
    1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6, 1};

static double series(const double *coefficients, double x) {
    double sum = coefficients[0];
    for (int i = 1; i < 7; i++) sum = sum * x + coefficients[i];
    return sum;
}

/* ln x for a normal 0 < x <= 1, to about 1e-12: x = m * 2^e with m near 1, then the series of 2
 * artanh((m - 1) / (m + 1)) */
static double natural_log(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    double s = (m - 1) / (m + 1);
    return 2 * s * series(logarithm, s * s) + exponent * 0.69314718055994531;
}

/* Box and Muller: two normal values from 64 random bits; |value| < 6.7. The angle is reduced to
 * the nearest quarter turn, so the polynomials get at most an eighth. */
static void normal_pair(uint64_t bits, double out[2]) {
    double u = ((double)(bits >> 32) + 0.5) * 0x1p-32,
           turns = (double)(bits & 0xFFFFFFFFu) * 0x1p-32;
    int quarter = (int)(turns * 4 + 0.5);
    double x = (turns - quarter * 0.25) * 6.2831853071795865, radius = sqrt(-2 * natural_log(u));
    double c = radius * series(cosine, x * x), s = radius * x * series(sine, x * x);
    out[0] = quarter % 4 == 0 ? c : quarter % 4 == 1 ? -s : quarter % 4 == 2 ? -c : s;
    out[1] = quarter % 4 == 0 ? s : quarter % 4 == 1 ? c : quarter % 4 == 2 ? -s : -c;
}

/* ---- ranges of the types --------------------------------------------------------------------- */

bool is_float(Element type) { return element_rows[type].kind == ELEMENT_FLOAT; }

void integer_range(Element type, int64_t *least, int64_t *most) {
    const ElementRow *row = &element_rows[type];
    int bits = row->kind == ELEMENT_BOOLEAN ? 1 : row->bytes * 8;
    if (row->kind == ELEMENT_SIGNED) {
        *most = (int64_t)(UINT64_MAX >> (65 - bits));
        *least = -*most - 1;
    } else {
        *most = bits == 64 ? INT64_MAX : (int64_t)((UINT64_C(1) << bits) - 1);
        *least = 0;
    }
}

double float_largest(Element type) {
    switch (type) {
    case E_F32:
    case E_TF32: return 0x1.fffffep127;
    case E_F16: return 65504;
    case E_BF16: return 0x1.fep127;
    case E_E4M3: return 448;
    case E_E5M2: return 57344;
    case E_I8:
    case E_U8:
    case E_I32:
    case E_U32:
    case E_I64:
    case E_U64:
    case E_BOOL:
    case E_COUNT: break;
    }
    return 0;
}

/* Floats: 2 to the number of significand bits */
uint64_t iota_period(Element type) {
    switch (type) {
    case E_F32: return UINT64_C(1) << 24;
    case E_TF32:
    case E_F16: return 2048;
    case E_BF16: return 256;
    case E_E4M3: return 16;
    case E_E5M2: return 8;
    case E_I8: return 128;
    case E_U8: return 256;
    case E_I32: return UINT64_C(1) << 31;
    case E_U32: return UINT64_C(1) << 32;
    case E_I64:
    case E_U64: return UINT64_C(1) << 63;
    case E_BOOL: return 2;
    case E_COUNT: break;
    }
    return 1;
}

/* ---- filling --------------------------------------------------------------------------------- */

/* Stores a number as one element; integers round to nearest and saturate. */
static void store(Element type, void *to, double value) {
    if (is_float(type)) {
        element_store(type, to, value);
        return;
    }
    int64_t least, most;
    integer_range(type, &least, &most);
    double rounded = nearbyint(value);
    /* (double)most may round up above most, which only `<` excludes */
    int64_t whole = rounded < (double)least  ? least
                    : rounded < (double)most ? (int64_t)rounded
                                             : most;
    element_store_integer(type, to, whole);
}

/* `uniform` stays below 1 in types with fewer than 24 bits: truncated, not rounded */
static double cut_below_one(double value, double steps) {
    return value >= 0.5 ? (double)(int64_t)(value * steps) / steps : value;
}

/* Elements first .. last of an array, filled by one thread; `first` is even. */
typedef struct Slice {
    Array *array;
    const Fill *fill;
    uint64_t stream;
    int64_t first, last;
} Slice;

static void slice_normal(const Slice *slice) {
    Element type = slice->array->type;
    int bytes = element_rows[type].bytes;
    double scale = is_float(type) ? 1 : 16;
    for (int64_t i = slice->first; i < slice->last; i += 2) {
        double pair[2];
        normal_pair(random_bits(slice->stream, (uint64_t)i), pair);
        store(type, slice->array->data + i * bytes, pair[0] * scale);
        if (i + 1 < slice->last) store(type, slice->array->data + (i + 1) * bytes, pair[1] * scale);
    }
}

static void slice_uniform(const Slice *slice) {
    Element type = slice->array->type;
    int bytes = element_rows[type].bytes;
    double steps = (double)iota_period(type);
    for (int64_t i = slice->first; i < slice->last; i++) {
        uint64_t bits = random_bits(slice->stream, (uint64_t)i);
        double value = is_float(type) ? cut_below_one((double)(bits >> 40) * 0x1p-24, steps)
                                      : (double)((bits >> 32) * 100 >> 32);
        store(type, slice->array->data + i * bytes, value);
    }
}

static void slice_iota(const Slice *slice) {
    Element type = slice->array->type;
    int bytes = element_rows[type].bytes;
    uint64_t mask = iota_period(type) - 1; /* a power of two */
    for (int64_t i = slice->first; i < slice->last; i++) {
        uint64_t value = (uint64_t)i & mask;
        if (is_float(type))
            element_store(type, slice->array->data + i * bytes, (double)value);
        else
            element_store_integer(type, slice->array->data + i * bytes, (int64_t)value);
    }
}

static void *fill_slice(void *given) {
    const Slice *slice = given;
    if (slice->fill->kind == FILL_NORMAL) slice_normal(slice);
    if (slice->fill->kind == FILL_UNIFORM) slice_uniform(slice);
    if (slice->fill->kind == FILL_IOTA) slice_iota(slice);
    return NULL;
}

/* Fills large arrays with all processors; an element does not depend on how many there are. */
static void fill_slices(Array *array, const Fill *fill, uint64_t stream) {
    Slice slices[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    bool started[THREADS_MAX] = {false};
    cpu_set_t processors;
    int count = 1;
    if (array->count > LARGE_ARRAY && sched_getaffinity(0, sizeof processors, &processors) == 0)
        count = CPU_COUNT(&processors);
    if (count > THREADS_MAX) count = THREADS_MAX;
    int64_t each = (array->count / count + 2) / 2 * 2;
    for (int i = 0; i < count; i++) {
        int64_t first = i * each < array->count ? i * each : array->count;
        int64_t last = array->count - first < each ? array->count : first + each;
        slices[i] = (Slice){array, fill, stream, first, last};
        /* The calling thread fills the last slice, and the slices for which no thread could be
         * created */
        started[i] =
            i + 1 < count && pthread_create(&threads[i], NULL, fill_slice, &slices[i]) == 0;
        if (!started[i]) fill_slice(&slices[i]);
    }
    for (int i = 0; i < count; i++)
        if (started[i]) pthread_join(threads[i], NULL);
}

/* Repeats the first element */
static void repeat_first(Array *array) {
    size_t done = (size_t)element_rows[array->type].bytes;
    while (done < array->bytes) {
        size_t more = done < array->bytes - done ? done : array->bytes - done;
        memcpy(array->data + done, array->data, more);
        done += more;
    }
}

void fill_poison(Array *array) {
    if (!is_float(array->type)) {
        memset(array->data, GUARD_BYTE, array->bytes);
    } else if (array->count > 0) {
        element_store(array->type, array->data, (double)NAN);
        repeat_first(array);
    }
}

/* A value that fits the type */
static void store_value(Array *array, int64_t i, double number, int64_t integer) {
    unsigned char *to = array->data + i * element_rows[array->type].bytes;
    if (is_float(array->type))
        element_store(array->type, to, number);
    else
        element_store_integer(array->type, to, integer);
}

void fill_array(Array *array, const Fill *fill, uint64_t seed, uint64_t key) {
    int bytes = element_rows[array->type].bytes;
    switch (fill->kind) {
    case FILL_NORMAL:
    case FILL_UNIFORM:
    case FILL_IOTA: fill_slices(array, fill, mix(mix(seed) + key)); return;
    case FILL_ZEROS: memset(array->data, 0, array->bytes); return;
    case FILL_VALUE:
        if (array->count > 0) {
            store_value(array, 0, fill->value.number, fill->value.integer);
            repeat_first(array);
        }
        return;
    case FILL_ARRAY:
        for (int64_t i = 0; i < array->count; i++)
            if (fill->integers != NULL)
                store_value(array, i, fill->values[i], fill->integers[i]);
            else
                store(array->type, array->data + i * bytes, fill->values[i]);
        return;
    case FILL_FILE: /* npy_data has filled it */ return;
    }
}
