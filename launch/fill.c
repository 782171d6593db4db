/* launch: what stands in a tensor before the run. A fill, a seed and the tensor's key go in, elements come out.
 *
 * Element i depends on seed, key and i alone, through a counter-based generator, so the order of filling and the sizes of other
 * tensors change nothing. The normal distribution takes its logarithm and cosine from polynomials here: only + - * / and sqrt
 * of IEEE 754, which every machine rounds alike, where the C library's functions differ in last places. */
#include "launch/private.h"

#include <math.h>
#include <string.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* gcc contracts nothing under -std=c11 */
#endif

/* splitmix64's finaliser */
static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static uint64_t random_bits(uint64_t stream, uint64_t index) { return mix(stream + (index + 1) * 0x9E3779B97F4A7C15u); }

/* ln x for 0 < x <= 1, to about 1e-12: x = m * 2^e with m near 1, then the series of 2 artanh((m - 1) / (m + 1)) */
static double natural_log(double x) {
    int exponent;
    double m = frexp(x, &exponent);
    if (m < 0.70710678118654752) {
        m *= 2;
        exponent--;
    }
    double s = (m - 1) / (m + 1), q = s * s, sum = 0;
    for (int term = 15; term >= 1; term -= 2) sum = sum * q + 1.0 / term;
    return 2 * s * sum + exponent * 0.69314718055994531;
}

/* cos 2 pi t for 0 <= t < 1, to about 1e-12: Taylor's series on a quarter turn */
static double cosine_of_turns(double t) {
    if (t > 0.5) t = 1 - t;
    double sign = 1;
    if (t > 0.25) {
        t = 0.5 - t;
        sign = -1;
    }
    double x = 6.2831853071795865 * t, q = x * x, sum = 0;
    for (int n = 18; n >= 2; n -= 2) sum = (1 + sum) * (-q / ((n - 1) * n));
    return sign * (1 + sum);
}

/* Box and Muller, one of the pair; |value| < 6.7 */
static double normal(uint64_t bits) {
    double u = ((double)(bits >> 32) + 0.5) * 0x1p-32, t = (double)(bits & 0xFFFFFFFFu) * 0x1p-32;
    return sqrt(-2 * natural_log(u)) * cosine_of_turns(t);
}

/* ---- ranges of the types ------------------------------------------------------------------------------------------- */

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

/* ---- filling ------------------------------------------------------------------------------------------------------- */

/* A number into one element; integers round to nearest and stop at the ends of their range. */
static void store(Element type, void *to, double value) {
    if (is_float(type)) {
        element_store(type, to, value);
        return;
    }
    int64_t least, most;
    integer_range(type, &least, &most);
    double rounded = nearbyint(value);
    /* (double)most may be rounded up beyond most, which only `<` keeps out */
    int64_t whole = rounded < (double)least ? least : rounded < (double)most ? (int64_t)rounded : most;
    element_store_integer(type, to, whole);
}

static double drawn(FillKind kind, uint64_t bits, bool floats) {
    if (kind == FILL_NORMAL) return floats ? normal(bits) : normal(bits) * 16;
    return floats ? (double)(bits >> 40) * 0x1p-24 : (double)((bits >> 32) * 100 >> 32);
}

/* `uniform` stays below 1 in types with fewer than 24 bits: cut, not rounded */
static double cut_below_one(Element type, double value) {
    double steps = (double)iota_period(type);
    return value >= 0.5 ? floor(value * steps) / steps : value;
}

static void fill_random(Array *array, FillKind kind, uint64_t stream) {
    int bytes = element_rows[array->type].bytes;
    bool floats = is_float(array->type), cut = floats && kind == FILL_UNIFORM;
    for (int64_t i = 0; i < array->count; i++) {
        double value = drawn(kind, random_bits(stream, (uint64_t)i), floats);
        store(array->type, array->data + i * bytes, cut ? cut_below_one(array->type, value) : value);
    }
}

static void fill_iota(Array *array) {
    int bytes = element_rows[array->type].bytes;
    uint64_t period = iota_period(array->type);
    for (int64_t i = 0; i < array->count; i++) {
        uint64_t value = (uint64_t)i % period;
        if (is_float(array->type))
            element_store(array->type, array->data + i * bytes, (double)value);
        else
            element_store_integer(array->type, array->data + i * bytes, (int64_t)value);
    }
}

/* The first element, over and over */
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

void fill_array(Array *array, const Fill *fill, uint64_t seed, uint64_t key) {
    int bytes = element_rows[array->type].bytes;
    switch (fill->kind) {
    case FILL_NORMAL:
    case FILL_UNIFORM: fill_random(array, fill->kind, mix(mix(seed) + key)); return;
    case FILL_IOTA: fill_iota(array); return;
    case FILL_ZEROS: memset(array->data, 0, array->bytes); return;
    case FILL_VALUE:
        if (array->count > 0) {
            store(array->type, array->data, fill->value);
            repeat_first(array);
        }
        return;
    case FILL_ARRAY:
        for (int64_t i = 0; i < array->count; i++) store(array->type, array->data + i * bytes, fill->values[i]);
        return;
    case FILL_FILE: /* npy_data has done it */ return;
    }
}
