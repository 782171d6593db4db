/* Conversions of element types: every pattern of the narrow types, and rounding compared with a
 * search that uses no bit patterns. */
#include "tests/unit/expect.h"

#include <math.h>

typedef struct Narrow {
    Element type;
    uint32_t patterns; /* number of patterns */
    uint32_t nan;      /* encoding of NaN */
    bool saturates;    /* to the largest finite value */
} Narrow;

static const Narrow narrow[] = {
    {E_F16, 0x10000, 0x7FFF, false},
    {E_BF16, 0x10000, 0x7FFF, false},
    {E_E4M3, 0x100, 0x7F, true},
    {E_E5M2, 0x100, 0x7F, true},
};

static double load(Element type, uint32_t bits) {
    uint16_t wide = (uint16_t)bits;
    uint8_t byte = (uint8_t)bits;
    return element_load(type, element_rows[type].bytes == 2 ? (const void *)&wide : &byte);
}

static uint32_t store(Element type, double value) {
    uint16_t wide = 0;
    uint8_t byte = 0;
    element_store(type, element_rows[type].bytes == 2 ? (void *)&wide : &byte, value);
    return element_rows[type].bytes == 2 ? wide : byte;
}

/* Every finite value and infinity is preserved; NaN becomes one NaN; patterns are ordered as
 * their values */
static void there_and_back(const Narrow *n) {
    for (uint32_t bits = 0; bits < n->patterns; bits++) {
        double value = load(n->type, bits);
        uint32_t again = store(n->type, value);
        if (isnan(value))
            EXPECT(again == n->nan);
        else if (isinf(value) && n->saturates)
            EXPECT(again == bits - 1); /* the largest finite value is the pattern before infinity */
        else
            EXPECT(again == bits);
        uint32_t half = n->patterns / 2;
        if (bits + 1 < half && !isnan(load(n->type, bits + 1)))
            EXPECT(load(n->type, bits + 1) > value);
        EXPECT(isnan(value) || load(n->type, bits ^ half) == -value);
    }
}

/* Between adjacent values: the nearer one, for a tie the even pattern */
static void rounding(const Narrow *n) {
    for (uint32_t bits = 0; bits + 1 < n->patterns / 2; bits++) {
        double low = load(n->type, bits), high = load(n->type, bits + 1);
        if (isnan(high) || isinf(high)) continue;
        double middle = (low + high) / 2;
        EXPECT(store(n->type, middle) == bits + bits % 2);
        EXPECT(store(n->type, nextafter(middle, low)) == bits);
        EXPECT(store(n->type, nextafter(middle, high)) == bits + 1);
        EXPECT(store(n->type, -middle) == (bits + bits % 2) + n->patterns / 2);
    }
}

static void overflow(void) {
    EXPECT(load(E_F16, 0x7BFF) == 65504 && load(E_E4M3, 0x7E) == 448 &&
           load(E_E5M2, 0x7B) == 57344);
    EXPECT(store(E_F16, 65519) == 0x7BFF && store(E_F16, 65520) == 0x7C00 &&
           store(E_F16, -1e300) == 0xFC00);
    EXPECT(store(E_BF16, 0x1.FFp127) == 0x7F80 && store(E_BF16, 0x1.FEFp127) == 0x7F7F);
    EXPECT(store(E_E4M3, 449) == 0x7E && store(E_E4M3, INFINITY) == 0x7E &&
           store(E_E4M3, -INFINITY) == 0xFE);
    EXPECT(store(E_E5M2, 1e9) == 0x7B && store(E_E5M2, -INFINITY) == 0xFB);
    EXPECT(store(E_F16, 0x1p-25) == 0 && store(E_F16, 0x1.01p-25) == 1 &&
           store(E_F16, -0.0) == 0x8000);
    EXPECT(store(E_BF16, 5e-324) == 0 && store(E_BF16, -5e-324) == 0x8000);
    EXPECT(isinf(load(E_E5M2, 0x7C)) && isnan(load(E_E4M3, 0xFF)) && isnan(load(E_E5M2, 0x7D)));
}

static int64_t stored_integer(Element type, double value) {
    unsigned char bytes[9] = {0};
    element_store(type, bytes + 1, value); /* may be unaligned */
    return element_load_integer(type, bytes + 1);
}

static void integers(void) {
    EXPECT(stored_integer(E_I8, -1.9) == -1 && stored_integer(E_I8, 300) == 127 &&
           stored_integer(E_I8, -300) == -128);
    EXPECT(stored_integer(E_U8, 255.9) == 255 && stored_integer(E_U8, -1) == 0 &&
           stored_integer(E_U8, 1e9) == 255);
    EXPECT(stored_integer(E_I32, 1e10) == INT32_MAX && stored_integer(E_I32, -1e10) == INT32_MIN);
    EXPECT(stored_integer(E_U32, 4294967295.0) == UINT32_MAX &&
           stored_integer(E_U32, 1e10) == UINT32_MAX);
    EXPECT(stored_integer(E_I64, 1e300) == INT64_MAX && stored_integer(E_I64, -1e300) == INT64_MIN);
    EXPECT(stored_integer(E_U64, 1e300) == -1 && stored_integer(E_I32, NAN) == 0 &&
           stored_integer(E_U64, NAN) == 0);
    EXPECT(stored_integer(E_BOOL, 2) == 1 && stored_integer(E_BOOL, 0) == 0);

    int64_t number = 0;
    element_store_integer(E_I64, &number, INT64_MIN + 1);
    EXPECT(element_load_integer(E_I64, &number) == INT64_MIN + 1);
    element_store_integer(E_U64, &number, -1);
    EXPECT(element_load(E_U64, &number) == 0x1p64 && element_load_integer(E_U64, &number) == -1);
    unsigned char byte = 0;
    element_store_integer(E_U8, &byte, 0x1FF);
    EXPECT(byte == 0xFF && element_load_integer(E_I8, &byte) == -1);
}

static void wide(void) {
    float single;
    element_store(E_F32, &single, 0.1);
    EXPECT(single == 0.1f && element_load(E_F32, &single) == (double)0.1f);
    element_store(E_TF32, &single, 0x1.000002p0); /* stored as binary32; contractions truncate it */
    EXPECT(element_load(E_TF32, &single) == 0x1.000002p0);
    element_store(E_F32, &single, 1e300);
    EXPECT(isinf(single));
}

static void rows(void) {
    for (int i = 0; i < E_COUNT; i++) {
        Element found;
        EXPECT(element_by_name(element_rows[i].spelling, &found) && found == (Element)i);
    }
    Element unused;
    EXPECT(!element_by_name("f64", &unused));
}

int main(void) {
    for (size_t i = 0; i < COUNT_OF(narrow); i++) {
        there_and_back(&narrow[i]);
        rounding(&narrow[i]);
    }
    overflow();
    integers();
    wide();
    rows();
    return expect_failures();
}
