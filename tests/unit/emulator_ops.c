/* One row per instruction: source bits, and the result bits of the GPU. All rows make one
 * kernel, a scope each, which is also assembled if ptxas is found. */
#include "emulator/emulator.h"

#include "tests/unit/expect.h"

#include <math.h>
#include <stdlib.h>

typedef struct Row {
    /* of d, a, b, c: r 32 bits, l 64, h 16, p predicate; d is written, the others are sources */
    const char *kinds;
    const char *text;
    uint64_t a, b, c, d;
} Row;

static uint32_t f(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static uint64_t g(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
#define NAN32 0x7fffffffu
#define M(x)  ((uint32_t)(x))
#define L(x)  ((uint64_t)(x))

static size_t fill_rows(Row *rows) {
    const Row table[] = {
        /* integers */
        {"rrr", "add.u32 %d, %a, %b;", 0xffffffff, 2, 0, 1},
        {"rrr", "add.s32 %d, %a, %b;", 5, M(-7), 0, M(-2)},
        {"hhh", "add.u16 %d, %a, %b;", 0xffff, 2, 0, 1},
        {"lll", "add.s64 %d, %a, %b;", L(-1), 3, 0, 2},
        {"rrr", "add.sat.s32 %d, %a, %b;", 0x7fffffff, 1, 0, 0x7fffffff},
        {"rrr", "sub.sat.s32 %d, %a, %b;", 0x80000000, 1, 0, 0x80000000},
        {"rrr", "sub.u32 %d, %a, %b;", 3, 5, 0, M(-2)},
        {"rr", "sub.s32 %d, 10, %a;", 3, 0, 0, 7},
        {"rrr", "mul.lo.u32 %d, %a, %b;", 0x10001, 0x10001, 0, 0x20001},
        {"rrr", "mul.hi.u32 %d, %a, %b;", 0x80000000, 6, 0, 3},
        {"rrr", "mul.hi.s32 %d, %a, %b;", 0x80000000, 6, 0, M(-3)},
        {"lll", "mul.hi.u64 %d, %a, %b;", L(1) << 63, 6, 0, 3},
        {"lll", "mul.hi.s64 %d, %a, %b;", L(1) << 63, 6, 0, L(-3)},
        {"lrr", "mul.wide.u32 %d, %a, %b;", 0xffffffff, 2, 0, 0x1fffffffe},
        {"lrr", "mul.wide.s32 %d, %a, %b;", 0xffffffff, 2, 0, L(-2)},
        {"rhh", "mul.wide.s16 %d, %a, %b;", 0xffff, 2, 0, M(-2)},
        {"rhh", "mul.wide.u16 %d, %a, %b;", 0xffff, 2, 0, 0x1fffe},
        {"hhh", "mul.lo.u16 %d, %a, %b;", 0x101, 0x101, 0, 0x201},
        {"rrrr", "mad.lo.s32 %d, %a, %b, %c;", 7, M(-3), 1, M(-20)},
        {"lrrl", "mad.wide.u32 %d, %a, %b, %c;", 0xffffffff, 16, 5, 0xffffffff5},
        {"lrrl", "mad.wide.s32 %d, %a, %b, %c;", M(-1), 16, 5, L(-11)},
        {"rrrr", "mad.hi.u32 %d, %a, %b, %c;", 0x80000000, 6, 10, 13},
        {"rrr", "div.u32 %d, %a, %b;", 17, 5, 0, 3},
        {"rrr", "div.s32 %d, %a, %b;", M(-17), 5, 0, M(-3)},
        {"rrr", "div.s32 %d, %a, %b;", 0x80000000, M(-1), 0, 0x80000000},
        {"rrr", "rem.s32 %d, %a, %b;", M(-17), 5, 0, M(-2)},
        {"rrr", "rem.u32 %d, %a, %b;", 17, 5, 0, 2},
        {"lll", "rem.u64 %d, %a, %b;", 1000000007, 1000, 0, 7},
        {"lll", "div.s64 %d, %a, %b;", L(-9), 2, 0, L(-4)},
        {"rr", "abs.s32 %d, %a;", M(-9), 0, 0, 9},
        {"rr", "neg.s32 %d, %a;", 9, 0, 0, M(-9)},
        {"hh", "neg.s16 %d, %a;", 9, 0, 0, 0xfff7},
        {"rrr", "min.s32 %d, %a, %b;", M(-9), 3, 0, M(-9)},
        {"rrr", "min.u32 %d, %a, %b;", M(-9), 3, 0, 3},
        {"rrr", "max.s32 %d, %a, %b;", M(-9), 3, 0, 3},
        {"lll", "max.u64 %d, %a, %b;", L(-9), 3, 0, L(-9)},
        {"rrrr", "sad.s32 %d, %a, %b, %c;", M(-3), 4, 10, 17},
        {"rrr", "mul24.lo.u32 %d, %a, %b;", 0xff000003, 4, 0, 12},
        {"rrrr", "dp4a.u32.u32 %d, %a, %b, %c;", 0x01020304, 0x01010101, 5, 15},
        {"rrrr", "dp4a.s32.s32 %d, %a, %b, %c;", 0xff020304, 0x01010101, 5, 13},
        {"rrr", "{ .reg .b32 %t; add.cc.u32 %t, %a, %b; addc.u32 %d, 0, 0; }", 0xffffffff, 1, 0, 1},
        {"rrr", "{ .reg .b32 %t; sub.cc.u32 %t, %a, %b; subc.u32 %d, 5, 0; }", 0, 1, 0, 4},
        /* bits */
        {"rrr", "and.b32 %d, %a, %b;", 12, 10, 0, 8},
        {"rrr", "or.b32 %d, %a, %b;", 12, 10, 0, 14},
        {"lll", "xor.b64 %d, %a, %b;", 12, 10, 0, 6},
        {"hh", "not.b16 %d, %a;", 0xf0f0, 0, 0, 0x0f0f},
        {"rr", "cnot.b32 %d, %a;", 0, 0, 0, 1},
        {"rrr", "shl.b32 %d, %a, %b;", 3, 4, 0, 48},
        {"rrr", "shl.b32 %d, %a, %b;", 3, 40, 0, 0},
        {"llr", "shl.b64 %d, %a, %b;", 3, 40, 0, L(3) << 40},
        {"rrr", "shr.u32 %d, %a, %b;", 0x80000000, 31, 0, 1},
        {"rrr", "shr.s32 %d, %a, %b;", 0x80000000, 99, 0, 0xffffffff},
        {"hhr", "shr.s16 %d, %a, %b;", 0x8000, 3, 0, 0xf000},
        {"llr", "shr.s64 %d, %a, %b;", L(-16), 2, 0, L(-4)},
        {"rrrr", "bfe.u32 %d, %a, %b, %c;", 0xabcd1234, 8, 8, 0x12},
        {"rrrr", "bfe.s32 %d, %a, %b, %c;", 0xabcdf234, 8, 8, 0xfffffff2},
        {"rrr", "bfi.b32 %d, %a, %b, 8, 8;", 0x7f, 0xffffffff, 0, 0xffff7fff},
        {"rr", "bfind.u32 %d, %a;", 0x00010000, 0, 0, 16},
        {"rr", "bfind.s32 %d, %a;", 0xffff0000, 0, 0, 15},
        {"rr", "bfind.shiftamt.u32 %d, %a;", 0x00010000, 0, 0, 15},
        {"rr", "brev.b32 %d, %a;", 1, 0, 0, 0x80000000},
        {"rr", "popc.b32 %d, %a;", 0xf0f0, 0, 0, 8},
        {"rl", "clz.b64 %d, %a;", 1, 0, 0, 63},
        {"rrr", "prmt.b32 %d, %a, %b, 0x5410;", 0x11112222, 0x33334444, 0, 0x44442222},
        {"rrr", "prmt.b32 %d, %a, %b, 0x0123;", 0x11223344, 0, 0, 0x44332211},
        {"rrr", "prmt.b32 %d, %a, %b, 0x888b;", 0x80000000, 0, 0, 0x000000ff},
        {"rrrr", "lop3.b32 %d, %a, %b, %c, 0xe8;", 12, 10, 6, 14},
        {"rrr", "shf.l.wrap.b32 %d, %a, %b, 8;", 0x11223344, 0x55667788, 0, 0x66778811},
        {"rrr", "shf.r.clamp.b32 %d, %a, %b, 40;", 0x11223344, 0x55667788, 0, 0x55667788},
        /* comparison and selection */
        {"prr", "setp.lt.s32 %d, %a, %b;", M(-1), 1, 0, 1},
        {"prr", "setp.lt.u32 %d, %a, %b;", M(-1), 1, 0, 0},
        {"prr", "setp.hs.u32 %d, %a, %b;", M(-1), 1, 0, 1},
        {"pll", "setp.ge.s64 %d, %a, %b;", L(-1), 1, 0, 0},
        {"phh", "setp.gt.s16 %d, %a, %b;", 0xffff, 0, 0, 0},
        {"prr", "setp.lt.f32 %d, %a, %b;", NAN32, f(1), 0, 0},
        {"prr", "setp.ltu.f32 %d, %a, %b;", NAN32, f(1), 0, 1},
        {"prr", "setp.neu.f32 %d, %a, %b;", f(1), f(1), 0, 0},
        {"prr", "setp.ne.f32 %d, %a, %b;", NAN32, NAN32, 0, 0},
        {"prr", "setp.num.f32 %d, %a, %b;", f(1), NAN32, 0, 0},
        {"prr", "setp.nan.f32 %d, %a, %b;", f(1), NAN32, 0, 1},
        {"prr", "setp.eq.ftz.f32 %d, %a, %b;", 1, 0, 0, 1},
        {"prr", "{ .reg .pred %q; setp.lt.s32 %q|%d, %a, %b; }", 1, 2, 0, 0},
        {"prr", "{ .reg .pred %q; setp.eq.s32 %q, %a, 1; setp.lt.and.s32 %d, %a, %b, !%q; }", 1, 2,
         0, 0},
        {"prr", "{ .reg .pred %q; setp.eq.s32 %q, %a, 1; setp.gt.or.s32 %d, %a, %b, %q; }", 1, 2, 0,
         1},
        {"prr", "{ .reg .pred %q; setp.eq.s32 %q, %a, 1; not.pred %q, %q; xor.pred %d, %q, %q; }",
         1, 2, 0, 0},
        {"rrr", "set.lt.u32.s32 %d, %a, %b;", 1, 2, 0, 0xffffffff},
        {"rrr", "set.lt.f32.s32 %d, %a, %b;", 1, 2, 0, f(1)},
        {"rrr", "{ .reg .pred %q; setp.eq.s32 %q, %a, 1; selp.b32 %d, %a, %b, %q; }", 1, 2, 0, 1},
        {"lll", "{ .reg .pred %q; setp.eq.s64 %q, %a, 1; selp.b64 %d, %a, %b, %q; }", 3, 2, 0, 2},
        {"rrrr", "slct.b32.s32 %d, %a, %b, %c;", 1, 2, M(-1), 2},
        {"rrrr", "slct.f32.f32 %d, %a, %b, %c;", 1, 2, f(0.5f), 1},
        /* f32 */
        {"rrr", "add.f32 %d, %a, %b;", f(0.1f), f(0.2f), 0, f(0.1f + 0.2f)},
        {"rrr", "add.rz.f32 %d, %a, %b;", f(1), f(0x1.8p-24f), 0, f(1)},
        {"rrr", "add.rp.f32 %d, %a, %b;", f(1), f(0x1p-60f), 0, f(1 + 0x1p-23f)},
        {"rrr", "add.rm.f32 %d, %a, %b;", f(1), f(-0x1p-60f), 0, f(1 - 0x1p-24f)},
        {"rrr", "sub.f32 %d, %a, %b;", 0x7f800000, 0x7f800000, 0, NAN32},
        {"rrr", "mul.f32 %d, %a, %b;", f(3), f(-0.5f), 0, f(-1.5f)},
        {"rrr", "mul.ftz.f32 %d, %a, %b;", f(0x1p-100f), f(0x1p-40f), 0, 0},
        {"rrr", "mul.sat.f32 %d, %a, %b;", f(3), f(2), 0, f(1)},
        {"rrr", "mul.rn.ftz.sat.f32 %d, %a, %b;", f(-3), f(2), 0, 0},
        {"rrrr", "fma.rn.f32 %d, %a, %b, %c;", f(1 + 0x1p-12f), f(1 + 0x1p-12f), f(-1),
         f(0x1p-11f + 0x1p-24f)},
        {"rrrr", "fma.rn.f32 %d, %a, %b, %c;", f(1 + 0x1p-23f), f(1 + 0x1p-23f), f(0x1p-80f),
         f(fmaf(1 + 0x1p-23f, 1 + 0x1p-23f, 0x1p-80f))},
        {"rrrr", "fma.rz.f32 %d, %a, %b, %c;", f(1 + 0x1p-12f), f(1 + 0x1p-12f), 0,
         f(1 + 0x1p-11f)},
        {"rrr", "fma.rn.f32 %d, %a, 0f40000000, %b;", f(3), f(1), 0, f(7)},
        {"rrr", "fma.rn.f32 %d, %a, 2.0, %b;", f(3), f(1), 0, f(7)},
        {"rrr", "div.rn.f32 %d, %a, %b;", f(1), f(3), 0, f(1.0f / 3.0f)},
        {"rrr", "div.approx.f32 %d, %a, %b;", f(1), f(4), 0, f(0.25f)},
        {"rrr", "div.full.f32 %d, %a, %b;", f(6), f(4), 0, f(1.5f)},
        {"rr", "rcp.rn.f32 %d, %a;", f(3), 0, 0, f(1.0f / 3.0f)},
        {"rr", "rcp.approx.ftz.f32 %d, %a;", f(4), 0, 0, f(0.25f)},
        {"rr", "sqrt.rn.f32 %d, %a;", f(2), 0, 0, f(sqrtf(2))},
        {"rr", "rsqrt.approx.f32 %d, %a;", f(4), 0, 0, f(0.5f)},
        {"rr", "ex2.approx.ftz.f32 %d, %a;", f(10), 0, 0, f(1024)},
        {"rr", "lg2.approx.f32 %d, %a;", f(8), 0, 0, f(3)},
        {"rr", "sin.approx.f32 %d, %a;", f(0), 0, 0, f(0)},
        {"rr", "cos.approx.f32 %d, %a;", f(0), 0, 0, f(1)},
        {"rr", "tanh.approx.f32 %d, %a;", f(0), 0, 0, f(0)},
        {"rr", "abs.f32 %d, %a;", f(-2), 0, 0, f(2)},
        {"rr", "neg.f32 %d, %a;", f(-2), 0, 0, f(2)},
        {"rrr", "min.f32 %d, %a, %b;", NAN32, f(2), 0, f(2)},
        {"rrr", "min.NaN.f32 %d, %a, %b;", NAN32, f(2), 0, NAN32},
        {"rrr", "max.f32 %d, %a, %b;", 0x80000000, 0, 0, 0},
        {"rrr", "min.f32 %d, %a, %b;", 0x80000000, 0, 0, 0x80000000},
        {"rrr", "copysign.f32 %d, %a, %b;", f(-1), f(3), 0, f(-3)},
        {"pr", "testp.infinite.f32 %d, %a;", 0x7f800000, 0, 0, 1},
        {"pr", "testp.subnormal.f32 %d, %a;", 5, 0, 0, 1},
        {"pr", "testp.normal.f32 %d, %a;", 5, 0, 0, 0},
        /* f64 */
        {"lll", "add.f64 %d, %a, %b;", g(0.1), g(0.2), 0, g(0.1 + 0.2)},
        {"llll", "fma.rn.f64 %d, %a, %b, %c;", g(0.1), g(10), g(-1), g(fma(0.1, 10, -1))},
        {"lll", "div.rn.f64 %d, %a, %b;", g(1), g(3), 0, g(1.0 / 3.0)},
        {"ll", "sqrt.rn.f64 %d, %a;", g(2), 0, 0, g(sqrt(2))},
        {"lll", "max.f64 %d, %a, %b;", g(2), g(3), 0, g(3)},
        {"lll", "mul.f64 %d, %a, 0d4000000000000000;", g(2), 0, 0, g(4)},
        /* 16-bit floats */
        {"hhh", "add.f16 %d, %a, %b;", 0x3c00, 0x3c00, 0, 0x4000},
        {"hhh", "add.rn.f16 %d, %a, %b;", 0x7bff, 0x7bff, 0, 0x7c00},
        {"hhh", "mul.f16 %d, %a, %b;", 0x4000, 0x4200, 0, 0x4600},
        {"hhhh", "fma.rn.f16 %d, %a, %b, %c;", 0x4000, 0x4200, 0x3c00, 0x4700},
        {"hhhh", "fma.rn.relu.f16 %d, %a, %b, %c;", 0x4000, 0xc200, 0x3c00, 0},
        {"rrr", "add.f16x2 %d, %a, %b;", 0x3c004000, 0x3c003c00, 0, 0x40004200},
        {"rrr", "add.rn.bf16x2 %d, %a, %b;", 0x3f804000, 0x3f803f80, 0, 0x40004040},
        {"hhhh", "fma.rn.bf16 %d, %a, %b, %c;", 0x4000, 0x4040, 0x3f80, 0x40e0},
        {"rrr", "max.bf16x2 %d, %a, %b;", 0x3f804000, 0x4000bf80, 0, 0x40004000},
        {"rr", "neg.bf16x2 %d, %a;", 0x3f804000, 0, 0, 0xbf80c000},
        {"hhh", "min.f16 %d, %a, %b;", 0x7fff, 0x3c00, 0, 0x3c00},
        {"hh", "ex2.approx.f16 %d, %a;", 0x4000, 0, 0, 0x4400},
        /* conversions */
        {"hr", "cvt.rn.bf16.f32 %d, %a;", f(1 + 0x1p-8f), 0, 0, 0x3f80},
        {"hr", "cvt.rn.bf16.f32 %d, %a;", f(1 + 0x3p-8f), 0, 0, 0x3f82},
        {"hr", "cvt.rz.bf16.f32 %d, %a;", f(1 + 0x3p-8f), 0, 0, 0x3f81},
        {"hr", "cvt.rn.relu.bf16.f32 %d, %a;", f(-1), 0, 0, 0},
        {"hr", "cvt.rn.bf16.f32 %d, %a;", 0xffc00001, 0, 0, 0x7fff},
        {"rrr", "cvt.rn.bf16x2.f32 %d, %a, %b;", f(1), f(2), 0, 0x3f804000},
        {"rrr", "cvt.rn.f16x2.f32 %d, %a, %b;", f(1), f(2), 0, 0x3c004000},
        {"hr", "cvt.rn.f16.f32 %d, %a;", f(65520), 0, 0, 0x7c00},
        {"hr", "cvt.rz.f16.f32 %d, %a;", f(65520), 0, 0, 0x7bff},
        {"hr", "cvt.rn.f16.f32 %d, %a;", f(0x1p-24f), 0, 0, 1},
        {"hr", "cvt.rn.f16.f32 %d, %a;", f(0x1p-25f), 0, 0, 0},
        {"rh", "cvt.f32.bf16 %d, %a;", 0x4040, 0, 0, f(3)},
        {"rh", "cvt.f32.f16 %d, %a;", 0x0001, 0, 0, f(0x1p-24f)},
        {"hrr", "cvt.rn.satfinite.e4m3x2.f32 %d, %a, %b;", f(1000), f(1), 0, 0x7e38},
        {"hrr", "cvt.rn.satfinite.e5m2x2.f32 %d, %a, %b;", f(-2), f(1), 0, 0xc03c},
        {"rh", "cvt.rn.f16x2.e4m3x2 %d, %a;", 0x7e38, 0, 0, 0x5f003c00},
        {"rh", "cvt.rn.f16x2.e5m2x2 %d, %a;", 0xc03c, 0, 0, 0xc0003c00},
        {"rr", "cvt.rna.tf32.f32 %d, %a;", f(1 + 0x1p-11f), 0, 0, f(1 + 0x1p-10f)},
        {"rr", "cvt.rzi.s32.f32 %d, %a;", f(-2.7f), 0, 0, M(-2)},
        {"rr", "cvt.rni.s32.f32 %d, %a;", f(2.5f), 0, 0, 2},
        {"rr", "cvt.rmi.s32.f32 %d, %a;", f(-2.1f), 0, 0, M(-3)},
        {"rr", "cvt.rpi.s32.f32 %d, %a;", f(2.1f), 0, 0, 3},
        {"rr", "cvt.rzi.u32.f32 %d, %a;", f(-2.7f), 0, 0, 0},
        {"rr", "cvt.rzi.s32.f32 %d, %a;", f(3e9f), 0, 0, 0x7fffffff},
        {"rr", "cvt.rzi.s32.f32 %d, %a;", NAN32, 0, 0, 0},
        {"rl", "cvt.rzi.s32.f64 %d, %a;", L(0x7ff8) << 48, 0, 0, 0x80000000},
        {"rr", "cvt.rni.f32.f32 %d, %a;", f(3.5f), 0, 0, f(4)},
        {"rr", "cvt.rmi.f32.f32 %d, %a;", f(-0.5f), 0, 0, f(-1)},
        {"rr", "cvt.rpi.f32.f32 %d, %a;", f(-0.5f), 0, 0, 0x80000000},
        {"rr", "cvt.sat.f32.f32 %d, %a;", f(3.5f), 0, 0, f(1)},
        {"rr", "cvt.rn.f32.s32 %d, %a;", M(-16777217), 0, 0, f(-16777216)},
        {"rr", "cvt.rz.f32.u32 %d, %a;", 0xffffffff, 0, 0, f(0x1.fffffep31f)},
        {"rr", "cvt.rp.f32.u32 %d, %a;", 0xffffffff, 0, 0, f(0x1p32f)},
        {"lr", "cvt.rn.f64.s32 %d, %a;", M(-3), 0, 0, g(-3)},
        {"rl", "cvt.rn.f32.f64 %d, %a;", g(0.1), 0, 0, f(0.1f)},
        {"lr", "cvt.f64.f32 %d, %a;", f(0.1f), 0, 0, g((double)0.1f)},
        {"rl", "cvt.rn.f32.u64 %d, %a;", L(-1), 0, 0, f(0x1p64f)},
        {"lr", "cvt.s64.s32 %d, %a;", M(-3), 0, 0, L(-3)},
        {"lr", "cvt.u64.u32 %d, %a;", M(-3), 0, 0, 0xfffffffd},
        {"rl", "cvt.u32.u64 %d, %a;", 0x123456789, 0, 0, 0x23456789},
        {"rr", "cvt.s32.s8 %d, %a;", 0x1ff, 0, 0, M(-1)},
        {"rr", "cvt.u32.u8 %d, %a;", 0x1ff, 0, 0, 0xff},
        {"rr", "cvt.s8.s32 %d, %a;", 0x1ff, 0, 0, M(-1)},
        {"rr", "cvt.sat.s8.s32 %d, %a;", 0x1ff, 0, 0, 127},
        {"rr", "cvt.sat.u8.s32 %d, %a;", M(-4), 0, 0, 0},
        {"rr", "cvt.sat.u32.s32 %d, %a;", M(-4), 0, 0, 0},
        {"rr", "cvt.rzi.s8.f32 %d, %a;", f(200), 0, 0, 127},
        /* moves */
        {"rhh", "mov.b32 %d, {%a, %b};", 0x1234, 0x5678, 0, 0x56781234},
        {"lrr", "mov.b64 %d, {%a, %b};", 1, 2, 0, 0x200000001},
        {"rl", "{ .reg .b32 %t; mov.b64 {%t, %d}, %a; }", 0x200000001, 0, 0, 2},
        {"rl", "mov.b64 {_, %d}, %a;", 0x200000001, 0, 0, 2},
        {"rr", "mov.b32 %d, %a;", 77, 0, 0, 77},
        {"r", "mov.u32 %d, 0xFFFFFFFF;", 0, 0, 0, 0xffffffff},
        {"r", "mov.f32 %d, 0fBF800000;", 0, 0, 0, f(-1)},
        {"r", "mov.u32 %d, %laneid;", 0, 0, 0, 0},
        {"r", "mov.u32 %d, %ntid.x;", 0, 0, 0, 32},
        {"r", "mov.u32 %d, %lanemask_le;", 0, 0, 0, 1},
        {"l",
         "{ .shared .align 8 .b8 %s[16]; .reg .u64 %t; mov.u64 %t, %s; cvta.shared.u64 %t, %t; "
         "cvta.to.shared.u64 %t, "
         "%t; mov.u64 %d, %s; sub.u64 %d, %d, %t; }",
         0, 0, 0, 0},
        {"r", "{ .local .align 4 .b8 %s[16]; st.local.u32 [%s+4], 9; ld.local.u32 %d, [%s+4]; }", 0,
         0, 0, 9},
        {"r", "{ .shared .align 4 .b8 %s[16]; st.shared.u8 [%s+3], 200; ld.shared.s8 %d, [%s+3]; }",
         0, 0, 0, M(-56)},
        {"r",
         "{ .shared .align 4 .b32 %s; .reg .u64 %t; cvta.shared.u64 %t, %s; st.u32 [%t], 5; "
         "atom.add.u32 %d, [%t], 3; "
         "ld.shared.u32 %d, [%s]; }",
         0, 0, 0, 5 + 3 * 32},
        {"r",
         "{ .shared .align 4 .b32 %s; st.shared.u32 [%s], 5; bar.warp.sync -1; atom.shared.max.s32 "
         "_, [%s], -3; "
         "red.shared.or.b32 [%s], 8; atom.shared.cas.b32 %d, [%s], 13, 20; ld.shared.u32 %d, [%s]; "
         "}",
         0, 0, 0, 20},
        {"r", "redux.sync.add.s32 %d, 3, -1;", 0, 0, 0, 96},
        {"r", "{ .reg .b32 %t; mov.u32 %t, %laneid; shfl.sync.down.b32 %d, %t, 5, 31, -1; }", 0, 0,
         0, 5},
        {"p", "{ .reg .b32 %t; mov.u32 %t, %laneid; shfl.sync.up.b32 %t|%d, %t, 1, 0, -1; }", 0, 0,
         0, 0},
        {"r",
         "{ .reg .b32 %t; .reg .pred %q; mov.u32 %t, %laneid; setp.lt.u32 %q, %t, 4; "
         "vote.sync.ballot.b32 %d, %q, -1; "
         "}",
         0, 0, 0, 15},
        {"p",
         "{ .reg .b32 %t; .reg .pred %q; mov.u32 %t, %laneid; setp.lt.u32 %q, %t, 4; "
         "vote.sync.all.pred %d, %q, -1; }",
         0, 0, 0, 0},
        {"r",
         "{ .reg .b32 %t; mov.u32 %t, %laneid; shr.u32 %t, %t, 2; match.any.sync.b32 %d, %t, -1; }",
         0, 0, 0, 15},
        {"r", "activemask.b32 %d;", 0, 0, 0, 0xffffffff},
        {"p", "elect.sync _|%d, -1;", 0, 0, 0, 1},
        {"p", "{ .shared .b32 %s; .reg .u64 %t; cvta.shared.u64 %t, %s; isspacep.shared %d, %t; }",
         0, 0, 0, 1},
    };
    memcpy(rows, table, sizeof table);
    return COUNT_OF(table);
}

static uint32_t width_of(char kind) { return kind == 'l' ? 8 : kind == 'h' ? 2 : 4; }

/* Names of registers have a `%`; shared and local variables must not: `%s` in a row is the
 * variable's name. */
static void emit_row(Str *out, const Row *row, size_t index) {
    static const char names[] = "dabc";
    str_add(out, "  {\n");
    for (size_t k = 0; row->kinds[k]; k++) {
        char kind = row->kinds[k];
        str_printf(out, "    .reg %s %%%c;\n",
                   kind == 'p'   ? ".pred"
                   : kind == 'l' ? ".b64"
                   : kind == 'h' ? ".b16"
                                 : ".b32",
                   names[k]);
        uint64_t value = k == 1 ? row->a : k == 2 ? row->b : row->c;
        if (k > 0)
            str_printf(out, "    mov.b%u %%%c, %lld;\n", 8 * width_of(kind), names[k],
                       (long long)value);
    }
    str_add(out, "    ");
    for (const char *at = row->text; *at; at++)
        if (at[0] == '%' && at[1] == 's' && (at[2] < 'a' || at[2] > 'z') && at++)
            str_printf(out, "buffer_%zu", index);
        else
            str_char(out, *at);
    char kind = row->kinds[0];
    if (kind == 'p')
        str_printf(out,
                   "\n    selp.u32 %%scratch, 1, 0, %%d;\n    @%%first st.global.u32 [%%out+%zu], "
                   "%%scratch;\n  }\n",
                   8 * index);
    else
        str_printf(out, "\n    @%%first st.global.b%u [%%out+%zu], %%d;\n  }\n", 8 * width_of(kind),
                   8 * index);
}

int main(void) {
    Scratch scratch = scratch_new();
    static Row rows[400];
    size_t count = fill_rows(rows);
    Str ptx = str_new(scratch.arena);
    str_add(
        &ptx,
        ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry ops(.param .u64 "
        "out)\n.reqntid 32\n{\n"
        "  .reg .b64 %out; .reg .b32 %scratch; .reg .pred %first;\n  ld.param.u64 %out, [out];\n"
        "  mov.u32 %scratch, %tid.x;\n  setp.eq.u32 %first, %scratch, 0;\n");
    for (size_t i = 0; i < count; i++) emit_row(&ptx, &rows[i], i);
    str_add(&ptx, "  ret;\n}\n");

    Manifest manifest = {.kernel = "ops"};
    vec_push(scratch.arena, &manifest.parameters,
             (ManifestParameter){.name = "out",
                                 .kind = PARAMETER_TENSOR,
                                 .mode = MODE_OUT,
                                 .type = E_U64,
                                 .rank = 1,
                                 .symbol = -1});
    vec_push(scratch.arena, &manifest.arguments, (ManifestArgument){ARGUMENT_POINTER, 0});
    Array array;
    int64_t extent = (int64_t)count;
    EXPECT(array_new(&array, E_U64, 1, &extent));
    memset(array.data, 0, array.bytes);
    Launch launch = {.manifest = &manifest,
                     .ptx = ptx.text,
                     .ptx_length = ptx.length,
                     .arrays = &array,
                     .tiles = 1};
    EmulatorOptions options = {0};
    RunResult result;
    RunStatus status = emulator_run(scratch.arena, &launch, &options, &result, scratch.diags);
    EXPECT(status == RUN_DONE);
    EXPECT_CLEAN(&scratch);
    for (size_t i = 0; i < count && status == RUN_DONE; i++) {
        uint64_t got;
        memcpy(&got, array.data + 8 * i, 8);
        if (got == rows[i].d) continue;
        fprintf(stderr, "%s with 0x%llx, 0x%llx, 0x%llx gives 0x%llx, expected 0x%llx\n",
                rows[i].text, (unsigned long long)rows[i].a, (unsigned long long)rows[i].b,
                (unsigned long long)rows[i].c, (unsigned long long)got,
                (unsigned long long)rows[i].d);
        failed_expectations++;
    }
    if (system("command -v ptxas >/dev/null 2>&1") == 0) {
        FILE *pipe = popen("ptxas -arch=sm_90a -o /dev/null - 2>&1", "w");
        if (EXPECT(pipe != NULL)) {
            fwrite(ptx.text, 1, ptx.length, pipe);
            EXPECT(pclose(pipe) == 0);
        }
    }
    array_free(&array);
    scratch_free(&scratch);
    return expect_failures();
}
