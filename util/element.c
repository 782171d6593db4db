/* Element types: their rows, and host conversions between stored bits and numbers.
 *
 * Narrow floats are decoded and encoded by one pair of functions that take a description of the
 * format; encoding rounds the double once, to nearest even. Stored elements may be unaligned. */
#include "util/util.h"

#include <math.h>
#include <string.h>

const ElementRow element_rows[E_COUNT] = {
#define ELEMENT(name, spelling, bytes, kind, widens, npy, map, ptx, what)                          \
    [E_##name] = {spelling, bytes, ELEMENT_##kind, E_##widens, npy, map, ptx, what},
#include "util/elements.def"
#undef ELEMENT
};

bool element_by_name(const char *spelling, Element *out) {
    for (int i = 0; i < E_COUNT; i++)
        if (strcmp(element_rows[i].spelling, spelling) == 0) {
            *out = (Element)i;
            return true;
        }
    return false;
}

bool element_same_bits(Element a, Element b) {
    return a == b || (a == E_F32 && b == E_TF32) || (a == E_TF32 && b == E_F32);
}

/* ---- narrow floats --------------------------------------------------------------------------- */

typedef struct Format {
    int mantissa; /* number of stored bits */
    int bias;
    uint32_t sign;     /* the sign bit */
    uint32_t largest;  /* bits of the largest finite value */
    uint32_t infinity; /* bits of infinity; 0: the format has none */
    uint32_t overflow; /* encoding of values that are too large, including infinity */
    uint32_t nan;      /* the NaN that cvt produces */
} Format;

static const Format f16_format = {10, 15, 0x8000, 0x7BFF, 0x7C00, 0x7C00, 0x7FFF};
static const Format bf16_format = {7, 127, 0x8000, 0x7F7F, 0x7F80, 0x7F80, 0x7FFF};
/* PTX ISA, cvt with .satfinite: larger magnitudes, including infinity, become the largest finite
 * value */
static const Format e4m3_format = {3, 7, 0x80, 0x7E, 0, 0x7E, 0x7F};
static const Format e5m2_format = {2, 15, 0x80, 0x7B, 0x7C, 0x7B, 0x7F};

/* 2^exponent, for exponents of normal doubles; ldexp is many times slower, and element_load is
 * used in inner loops */
static double power_of_two(int exponent) {
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

static double decode(const Format *format, uint32_t bits) {
    uint32_t magnitude = bits & (format->sign - 1);
    bool negative = bits & format->sign;
    double value;
    if (magnitude > format->largest) {
        value = magnitude == format->infinity ? (double)INFINITY : (double)NAN;
    } else {
        int exponent = (int)(magnitude >> format->mantissa);
        uint32_t fraction = magnitude & ((1u << format->mantissa) - 1);
        if (exponent > 0)
            fraction |= 1u << format->mantissa;
        else
            exponent = 1;
        value = fraction * power_of_two(exponent - format->bias - format->mantissa);
    }
    return negative ? -value : value;
}

static uint32_t encode(const Format *format, double value) {
    if (isnan(value)) return format->nan;
    uint32_t sign = signbit(value) ? format->sign : 0;
    double magnitude = fabs(value);
    if (magnitude == 0) return sign;
    int exponent;
    if (isinf(magnitude)) return sign | format->overflow;
    (void)frexp(magnitude, &exponent);
    exponent += format->bias - 1; /* biased exponent of the leading bit */
    if (exponent > 256) return sign | format->overflow;
    if (exponent < 1) exponent = 1;
    /* The hidden bit and a carry of the rounding each increment the exponent field */
    double units = nearbyint(ldexp(magnitude, format->bias + format->mantissa - exponent));
    uint32_t bits = ((uint32_t)(exponent - 1) << format->mantissa) + (uint32_t)units;
    return sign | (bits > format->largest ? format->overflow : bits);
}

/* ---- stored elements ------------------------------------------------------------------------- */

#define LOAD(Type, from)                                                                           \
    do {                                                                                           \
        Type stored;                                                                               \
        memcpy(&stored, (from), sizeof stored);                                                    \
        return stored;                                                                             \
    } while (0)
#define STORE(Type, to, value)                                                                     \
    do {                                                                                           \
        Type stored = (Type)(value);                                                               \
        memcpy((to), &stored, sizeof stored);                                                      \
        return;                                                                                    \
    } while (0)

static uint8_t load_8(const void *from) { LOAD(uint8_t, from); }
static uint16_t load_16(const void *from) { LOAD(uint16_t, from); }
static float load_f32(const void *from) { LOAD(float, from); }
static uint64_t load_u64(const void *from) { LOAD(uint64_t, from); }

double element_load(Element type, const void *from) {
    switch (type) {
    case E_F32:
    case E_TF32: return (double)load_f32(from);
    case E_F16: return decode(&f16_format, load_16(from));
    case E_BF16: return decode(&bf16_format, load_16(from));
    case E_E4M3: return decode(&e4m3_format, load_8(from));
    case E_E5M2: return decode(&e5m2_format, load_8(from));
    case E_U64: return (double)load_u64(from);
    case E_I8:
    case E_U8:
    case E_I32:
    case E_U32:
    case E_I64:
    case E_BOOL: return (double)element_load_integer(type, from);
    case E_COUNT: break;
    }
    return NAN;
}

/* The value in [low, high] nearest to the truncated one. `high` is 2^n - 1, and 2^n is exact in
 * a double. */
static int64_t truncated(double value, double low, double past, int64_t lowest, int64_t highest) {
    if (isnan(value)) return 0;
    value = trunc(value);
    if (value < low) return lowest;
    return value >= past ? highest : (int64_t)value;
}

void element_store(Element type, void *to, double value) {
    switch (type) {
    case E_F32:
    case E_TF32: STORE(float, to, value);
    case E_F16: STORE(uint16_t, to, encode(&f16_format, value));
    case E_BF16: STORE(uint16_t, to, encode(&bf16_format, value));
    case E_E4M3: STORE(uint8_t, to, encode(&e4m3_format, value));
    case E_E5M2: STORE(uint8_t, to, encode(&e5m2_format, value));
    case E_I8: element_store_integer(type, to, truncated(value, -128, 128, -128, 127)); return;
    case E_U8: element_store_integer(type, to, truncated(value, 0, 256, 0, 255)); return;
    case E_I32:
        element_store_integer(type, to, truncated(value, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX));
        return;
    case E_U32: element_store_integer(type, to, truncated(value, 0, 0x1p32, 0, UINT32_MAX)); return;
    case E_I64:
        element_store_integer(type, to, truncated(value, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX));
        return;
    case E_U64:
        STORE(uint64_t, to,
              isnan(value) || value <= 0 ? 0
              : value >= 0x1p64          ? UINT64_MAX
                                         : (uint64_t)value);
    case E_BOOL: STORE(uint8_t, to, value != 0); /* NaN counts as true, as with setp.neu */
    case E_COUNT: break;
    }
}

int64_t element_load_integer(Element type, const void *from) {
    switch (type) {
    case E_I8: LOAD(int8_t, from);
    case E_U8: return load_8(from);
    case E_BOOL: return load_8(from) != 0;
    case E_I32: LOAD(int32_t, from);
    case E_U32: LOAD(uint32_t, from);
    case E_I64:
    case E_U64: LOAD(int64_t, from);
    case E_F32:
    case E_TF32:
    case E_F16:
    case E_BF16:
    case E_E4M3:
    case E_E5M2: return truncated(element_load(type, from), -0x1p63, 0x1p63, INT64_MIN, INT64_MAX);
    case E_COUNT: break;
    }
    return 0;
}

void element_store_integer(Element type, void *to, int64_t value) {
    switch (type) {
    case E_I8:
    case E_U8: STORE(uint8_t, to, value);
    case E_BOOL: STORE(uint8_t, to, value != 0);
    case E_I32:
    case E_U32: STORE(uint32_t, to, value);
    case E_I64:
    case E_U64: STORE(uint64_t, to, value);
    case E_F32:
    case E_TF32:
    case E_F16:
    case E_BF16:
    case E_E4M3:
    case E_E5M2: element_store(type, to, (double)value); return;
    case E_COUNT: break;
    }
}
