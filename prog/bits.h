/* bits: what the operators and functions of integer bits compute, and the random numbers, for all
 * that computes with known values. Integers are held as in eval.h. */
#ifndef PIPEC_BITS_H
#define PIPEC_BITS_H

#include "prog/expr.h"

/* An intrinsic of bits with an integer result, of arguments that have this type: the first one of a
 * shift. False: it has another result, or is none of them. */
bool bits_call(Intrinsic which, Element type, const int64_t *args, int64_t *out);

/* The bits of the nearest f32; of NaN those of some NaN */
uint32_t bits_of_number(double number);
double bits_to_number(uint32_t bits);

/* The four words of Philox 4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3) */
void bits_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/* Constants of its rounds; codegen/bits.c emits the same */
#define PHILOX_ROUNDS 10
#define PHILOX_M0     UINT32_C(0xD2511F53)
#define PHILOX_M1     UINT32_C(0xCD9E8D57)
#define PHILOX_K0     UINT32_C(0x9E3779B9)
#define PHILOX_K1     UINT32_C(0xBB67AE85)

/* `random_bits(seed, position)`: the first word */
uint32_t bits_random(uint64_t seed, uint64_t position);
/* `random(seed, position)`, of that word: as tl.rand of Triton, in [0, 1) */
double bits_uniform(uint32_t word);
#define UNIFORM_SCALE 4.6566127342e-10F

#endif
