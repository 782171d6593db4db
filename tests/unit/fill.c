/* Fills: their distributions; each element depends only on seed, tensor and index; and the exact
 * bits. */
#include "launch/private.h"

#include "tests/unit/expect.h"

#include <math.h>
#include <sched.h>

enum { MANY = 200000 };

static Array filled(Element type, int64_t count, Fill fill, uint64_t seed, uint64_t key) {
    Array array;
    if (EXPECT(array_new(&array, type, 1, &count))) fill_array(&array, &fill, seed, key);
    return array;
}

static double at(const Array *array, int64_t i) {
    return element_load(array->type, array->data + i * element_rows[array->type].bytes);
}

static void moments(void) {
    Array array = filled(E_F32, MANY, (Fill){.kind = FILL_NORMAL}, 1, 0);
    double sum = 0, squares = 0, fourth = 0, largest = 0;
    for (int64_t i = 0; i < MANY; i++) {
        double x = at(&array, i);
        sum += x, squares += x * x, fourth += x * x * x * x, largest = fmax(largest, fabs(x));
    }
    EXPECT(fabs(sum / MANY) < 0.01);
    EXPECT(fabs(squares / MANY - 1) < 0.02);
    EXPECT(fabs(fourth / MANY - 3) < 0.1);
    EXPECT(largest > 4 && largest < 6.7);
    array_free(&array);
}

static void uniforms(void) {
    for (int type = 0; type < E_COUNT; type++) {
        if (!is_float((Element)type)) continue;
        Array array = filled((Element)type, MANY, (Fill){.kind = FILL_UNIFORM}, 1, 0);
        double sum = 0, least = 1, most = 0;
        for (int64_t i = 0; i < MANY; i++)
            sum += at(&array, i), least = fmin(least, at(&array, i)),
                                  most = fmax(most, at(&array, i));
        EXPECT(least >= 0 && least < 0.01 && most < 1 && most > 0.85);
        EXPECT(fabs(sum / MANY - 0.5) < 0.05);
        array_free(&array);
    }
    Array whole = filled(E_U8, MANY, (Fill){.kind = FILL_UNIFORM}, 1, 0);
    int seen[256] = {0};
    for (int64_t i = 0; i < MANY; i++) seen[whole.data[i]]++;
    for (int i = 0; i < 256; i++) EXPECT(i < 100 ? seen[i] > 1500 : seen[i] == 0);
    array_free(&whole);
}

static void normal_integers(void) {
    Array bytes = filled(E_I8, MANY, (Fill){.kind = FILL_NORMAL}, 1, 0),
          naturals = filled(E_U32, MANY, (Fill){.kind = FILL_NORMAL}, 1, 0);
    double squares = 0;
    for (int64_t i = 0; i < MANY; i++) {
        squares += at(&bytes, i) * at(&bytes, i);
        EXPECT(at(&naturals, i) == fmax(at(&bytes, i), 0)); /* saturated, not wrapped */
    }
    EXPECT(fabs(sqrt(squares / MANY) - 16) < 0.5);
    array_free(&bytes);
    array_free(&naturals);
}

/* A shorter tensor is a prefix; other seeds and tensors differ; narrower types hold the rounded
 * values. */
static void keyed(void) {
    Fill fill = {.kind = FILL_NORMAL};
    Array a = filled(E_F32, 1000, fill, 5, 2), shorter = filled(E_F32, 10, fill, 5, 2),
          seed = filled(E_F32, 1000, fill, 6, 2), key = filled(E_F32, 1000, fill, 5, 3),
          half = filled(E_BF16, 1000, fill, 5, 2);
    EXPECT(memcmp(a.data, shorter.data, shorter.bytes) == 0);
    int same = 0;
    for (int64_t i = 0; i < 1000; i++) {
        same += (at(&a, i) == at(&seed, i)) + (at(&a, i) == at(&key, i));
        EXPECT(fabs(at(&half, i) - at(&a, i)) <= fabs(at(&a, i)) / 256);
    }
    EXPECT(same < 5);
    array_free(&a), array_free(&shorter), array_free(&seed), array_free(&key), array_free(&half);
}

/* A seed defines the bits on every machine. */
static void golden(void) {
    Array normal = filled(E_F32, MANY, (Fill){.kind = FILL_NORMAL}, 42, 1);
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < normal.bytes; i++) hash = (hash ^ normal.data[i]) * 1099511628211u;
    if (!EXPECT(hash == UINT64_C(0x294f7a549dc1cfc6)))
        fprintf(stderr, "hash %llx\n", (unsigned long long)hash);
    array_free(&normal);
}

/* Large arrays are filled by several threads; one processor gives the same. */
static void threads(void) {
    static const FillKind kinds[] = {FILL_NORMAL, FILL_UNIFORM, FILL_IOTA};
    cpu_set_t all, one;
    if (!EXPECT(sched_getaffinity(0, sizeof all, &all) == 0)) return;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        for (int64_t count = (1 << 20) + 1; count < (1 << 20) + 70; count += 17) {
            Array many = filled(E_F32, count, (Fill){.kind = kinds[i]}, 5, 2);
            EXPECT(sched_setaffinity(0, sizeof one, &one) == 0);
            Array alone = filled(E_F32, count, (Fill){.kind = kinds[i]}, 5, 2);
            EXPECT(sched_setaffinity(0, sizeof all, &all) == 0);
            EXPECT(memcmp(many.data, alone.data, many.bytes) == 0 &&
                   many.data[many.bytes] == GUARD_BYTE);
            array_free(&many), array_free(&alone);
        }
}

static void iota(void) {
    for (int type = 0; type < E_COUNT; type++) {
        uint64_t period = iota_period((Element)type);
        int64_t count = period < 5000 ? (int64_t)period + 3 : 5000;
        Array array = filled((Element)type, count, (Fill){.kind = FILL_IOTA}, 0, 0);
        for (int64_t i = 0; i < count; i++) EXPECT(at(&array, i) == (double)((uint64_t)i % period));
        array_free(&array);
    }
}

static void constants_and_poison(void) {
    Array zeros = filled(E_BF16, 77, (Fill){.kind = FILL_ZEROS}, 0, 0),
          value = filled(E_F16, 77, (Fill){.kind = FILL_VALUE, .value = {.number = 2.5}}, 0, 0);
    const double given[] = {1, -2, 3};
    Array array = filled(E_I32, 3, (Fill){.kind = FILL_ARRAY, .values = given, .count = 3}, 0, 0);
    for (int64_t i = 0; i < 77; i++) EXPECT(at(&zeros, i) == 0 && at(&value, i) == 2.5);
    for (int64_t i = 0; i < 3; i++) EXPECT(at(&array, i) == given[i]);
    array_free(&zeros), array_free(&value), array_free(&array);
    for (int type = 0; type < E_COUNT; type++) {
        Array poison = filled((Element)type, 1001, (Fill){.kind = FILL_ZEROS}, 0, 0);
        fill_poison(&poison);
        for (int64_t i = 0; i < 1001; i++)
            EXPECT(is_float((Element)type) ? isnan(at(&poison, i)) : poison.data[i] == 0xA5);
        EXPECT(poison.data[poison.bytes] == GUARD_BYTE);
        array_free(&poison);
        Array none = filled(
            (Element)type, 0,
            (Fill){.kind = FILL_VALUE, .value = {.number = 1, .integer = 1, .is_integer = true}}, 0,
            0);
        fill_poison(&none);
        EXPECT(none.data[0] == GUARD_BYTE);
        array_free(&none);
    }
}

int main(void) {
    moments();
    uniforms();
    normal_integers();
    keyed();
    golden();
    threads();
    iota();
    constants_and_poison();
    return expect_failures();
}
