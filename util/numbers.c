/* Arithmetic of integers, and hashes */
#include "util/util.h"

int64_t common_divisor(int64_t a, int64_t b) {
    uint64_t x = a < 0 ? 0u - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0u - (uint64_t)b : (uint64_t)b;
    while (y != 0) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x > INT64_MAX ? 1 : (int64_t)x;
}

uint64_t fnv1a(uint64_t from, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++) from = (from ^ at[i]) * UINT64_C(0x100000001B3);
    return from;
}
