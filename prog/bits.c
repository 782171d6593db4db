/* Arithmetic of integer bits, and random numbers. A shift amount is a number of 32 bits without a
 * sign; from the width on, it shifts all bits out, as shl and shr of PTX do (PTX ISA 9.7.8). */
#include "prog/bits.h"

#include <string.h>

static int width_of(Element type) { return 8 * element_rows[element_rows[type].widens].bytes; }

static bool has_sign(Element type) { return element_rows[type].kind == ELEMENT_SIGNED; }

static uint64_t mask_of(int width) { return width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1; }

/* ---- shifts ---------------------------------------------------------------------------------- */

static int64_t shifted_right(Element type, int64_t a, uint32_t by) {
    uint32_t last = (uint32_t)width_of(type) - 1;
    bool ones = has_sign(type) && a < 0;
    if (by > last) return ones ? -1 : 0;
    if (by == 0) return a;
    /* the upper half of an i32 has copies of the sign already */
    return (int64_t)((uint64_t)a >> by | (ones ? ~(UINT64_MAX >> by) : 0));
}

static int64_t shifted_left(Element type, int64_t a, uint32_t by) {
    uint32_t width = (uint32_t)width_of(type), above = 64 - width;
    if (by >= width) return 0;
    int64_t top = (int64_t)((uint64_t)a << by << above);
    return shifted_right(has_sign(type) ? E_I64 : E_U64, top, above);
}

/* ---- functions ------------------------------------------------------------------------------- */

/* The upper 64 bits of a product without signs, by halves */
static uint64_t high_product(uint64_t a, uint64_t b) {
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t low = a0 * b0, one = a1 * b0, other = a0 * b1;
    uint64_t middle = (low >> 32) + (uint32_t)one + (uint32_t)other;
    return a1 * b1 + (one >> 32) + (other >> 32) + (middle >> 32);
}

static int64_t product_high(Element type, int64_t a, int64_t b) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    if (width_of(type) == 32)
        return has_sign(type) ? shifted_right(E_I64, a * b, 32) : (int64_t)((x * y) >> 32);
    uint64_t high = high_product(x, y);
    if (has_sign(type)) high -= (a < 0 ? y : 0) + (b < 0 ? x : 0);
    return (int64_t)high;
}

static int64_t leading_zeros(Element type, int64_t a) {
    int width = width_of(type), count = 0;
    while (count < width && !((uint64_t)a >> (width - 1 - count) & 1)) count++;
    return count;
}

bool bits_call(Intrinsic which, Element type, const int64_t *args, int64_t *out) {
    int64_t a = args[0];
    if (which == IN_bit_and) return *out = a & args[1], true;
    if (which == IN_bit_or) return *out = a | args[1], true;
    if (which == IN_bit_xor) return *out = a ^ args[1], true;
    if (which == IN_shl) return *out = shifted_left(type, a, (uint32_t)args[1]), true;
    if (which == IN_shr) return *out = shifted_right(type, a, (uint32_t)args[1]), true;
    if (which == IN_mulhi) return *out = product_high(type, a, args[1]), true;
    if (which == IN_popc)
        return *out = __builtin_popcountll((uint64_t)a & mask_of(width_of(type))), true;
    if (which == IN_clz) return *out = leading_zeros(type, a), true;
    return which == IN_random_bits &&
           (*out = (int64_t)bits_random((uint64_t)a, (uint64_t)args[1]), true);
}

/* ---- bits of floats -------------------------------------------------------------------------- */

uint32_t bits_of_number(double number) {
    float value = (float)number;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

double bits_to_number(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* ---- random numbers -------------------------------------------------------------------------- */

void bits_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t k0 = key[0], k1 = key[1];
    memcpy(out, counter, 4 * sizeof *out);
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t a = (uint64_t)PHILOX_M0 * out[0], b = (uint64_t)PHILOX_M1 * out[2];
        out[0] = (uint32_t)(b >> 32) ^ out[1] ^ k0;
        out[1] = (uint32_t)b;
        out[2] = (uint32_t)(a >> 32) ^ out[3] ^ k1;
        out[3] = (uint32_t)a;
        k0 += PHILOX_K0, k1 += PHILOX_K1;
    }
}

uint32_t bits_random(uint64_t seed, uint64_t position) {
    const uint32_t counter[4] = {(uint32_t)position, (uint32_t)(position >> 32), 0, 0};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t words[4];
    bits_philox(counter, key, words);
    return words[0];
}

double bits_uniform(uint32_t word) {
    uint32_t magnitude = word >> 31 ? ~word : word;
    float scaled = (float)(int32_t)magnitude * UNIFORM_SCALE;
    return (double)scaled;
}
