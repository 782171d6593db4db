/* The bits of integers against loops over single bits, on numbers near the limits of each type; and
 * Philox 4x32-10 against the vectors that its authors publish (kat_vectors of Random123). */
#include "prog/bits.h"

#include <stdio.h>
#include <string.h>

#include "prog/eval.h"

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 WideBits;

static int failed;

static void expect(bool right, const char *what, Element type, int64_t a, int64_t b) {
    if (right) return;
    failed++;
    printf("bits: %s of %s: %lld, %lld\n", what, element_rows[type].spelling, (long long)a,
           (long long)b);
}

static int width_of(Element type) { return 8 * element_rows[type].bytes; }

/* Bit k of a number; above the width, of its sign */
static bool bit(Element type, int64_t a, int k) {
    bool sign = element_rows[type].kind == ELEMENT_SIGNED;
    if (k >= width_of(type)) return sign && a < 0;
    return (uint64_t)a >> k & 1;
}

static int64_t called(Intrinsic which, Element type, int64_t a, int64_t b) {
    int64_t args[] = {a, b}, value = 0;
    expect(bits_call(which, type, args, &value), "a result", type, a, b);
    return value;
}

static void logic(Element type, int64_t a, int64_t b) {
    int64_t both = called(IN_bit_and, type, a, b), one = called(IN_bit_or, type, a, b),
            apart = called(IN_bit_xor, type, a, b);
    bool right = eval_cast(type, both) == both && eval_cast(type, one) == one &&
                 eval_cast(type, apart) == apart;
    for (int k = 0; k < width_of(type); k++) {
        bool x = bit(type, a, k), y = bit(type, b, k);
        right &= bit(type, both, k) == (x && y) && bit(type, one, k) == (x || y) &&
                 bit(type, apart, k) == (x != y);
    }
    expect(right, "& | ^", type, a, b);
}

static void shifts(Element type, int64_t a, uint32_t by) {
    int64_t left = called(IN_shl, type, a, by), more = called(IN_shr, type, a, by);
    bool right = eval_cast(type, left) == left && eval_cast(type, more) == more;
    for (int k = 0; k < width_of(type); k++) {
        bool low = by <= (uint32_t)k && bit(type, a, k - (int)by);
        bool high = bit(type, a, by > 64 ? 64 : k + (int)by);
        right &= bit(type, left, k) == low && bit(type, more, k) == high;
    }
    expect(right, "<< >>", type, a, by);
}

static void products(Element type, int64_t a, int64_t b) {
    int64_t high = called(IN_mulhi, type, a, b);
    Wide x = type == E_U64 ? (Wide)(uint64_t)a : a, y = type == E_U64 ? (Wide)(uint64_t)b : b;
    Wide product = (Wide)((WideBits)x * (WideBits)y);
    expect(high == eval_cast(type, (int64_t)(product >> width_of(type))), "mulhi", type, a, b);
}

static void counts(Element type, int64_t a) {
    int ones = 0, zeros = 0;
    for (int k = 0; k < width_of(type); k++) ones += bit(type, a, k);
    while (zeros < width_of(type) && !bit(type, a, width_of(type) - 1 - zeros)) zeros++;
    expect(called(IN_popc, type, a, 0) == ones, "popc", type, a, 0);
    expect(called(IN_clz, type, a, 0) == zeros, "clz", type, a, 0);
}

static void numbers(Element type) {
    static const int64_t near[] = {0,         1,          31,        32,        INT32_MAX,
                                   INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN, 0x123456789ABCDEF};
    static const uint32_t amounts[] = {0, 1, 7, 30, 31, 32, 33, 62, 63, 64, INT32_MAX, UINT32_MAX};
    for (size_t i = 0; i < 3 * COUNT_OF(near); i++) {
        int64_t a = eval_cast(type, (int64_t)((uint64_t)near[i / 3] + i % 3 - 1));
        counts(type, a);
        for (size_t k = 0; k < COUNT_OF(amounts); k++) shifts(type, a, amounts[k]);
        for (size_t k = 0; k < 3 * COUNT_OF(near); k++) {
            int64_t b = eval_cast(type, (int64_t)((uint64_t)near[k / 3] + k % 3 - 1));
            logic(type, a, b);
            products(type, a, b);
        }
    }
}

static const struct {
    uint32_t counter[4], key[2], words[4];
} vectors[] = {{{0}, {0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
               {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                {0xffffffff, 0xffffffff},
                {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
               {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                {0xa4093822, 0x299f31d0},
                {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};

static void random_numbers(void) {
    for (size_t i = 0; i < COUNT_OF(vectors); i++) {
        uint32_t words[4];
        bits_philox(vectors[i].counter, vectors[i].key, words);
        expect(memcmp(words, vectors[i].words, sizeof words) == 0, "philox", E_U32, (int64_t)i, 0);
    }
    expect(bits_random(0, 0) == 0x6627e8d5, "random_bits", E_U64, 0, 0);
    /* the lower word of the position and of the seed comes first */
    const uint32_t counter[4] = {0x89ABCDEF, 0x01234567}, key[2] = {0x76543210, 0xFEDCBA98};
    uint32_t words[4];
    bits_philox(counter, key, words);
    expect(bits_random(0xFEDCBA9876543210, 0x0123456789ABCDEF) == words[0], "random_bits", E_U64, 0,
           1);
    expect(bits_uniform(0) == 0 && bits_uniform(UINT32_MAX) == 0, "random", E_F32, 0, 0);
    expect(bits_uniform(INT32_MAX) == (double)0x1.fffffep-1F, "random below 1", E_F32, 0, 0);
    expect(bits_uniform(0x80000000) == (double)0x1.fffffep-1F, "random below 1", E_F32, 1, 0);
    expect(bits_uniform(1) == (double)UNIFORM_SCALE, "random", E_F32, 1, 1);
}

int main(void) {
    numbers(E_I32), numbers(E_U32), numbers(E_I64), numbers(E_U64);
    random_numbers();
    expect(bits_of_number(-1.5) == 0xBFC00000 && bits_to_number(0x3FC00000) == 1.5, "bits", E_F32,
           0, 0);
    return failed > 0;
}
