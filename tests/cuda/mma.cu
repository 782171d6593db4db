// C = A * B, 32 x 32 per block of 4 warps, by mma.sync m16n8k16 in f16 and ldmatrix; cp.async fills
// two stages in turn.
// FAULT 1: a group too few is waited for; 2: no barrier before a stage is filled again.
#include <cstdint>
static __device__ uint32_t at(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
static __device__ void copy(void *to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at(to)), "l"(from) : "memory");
}
extern "C" __global__ void mma(const uint16_t *a, const uint16_t *b, float *c, int n, int depth) {
    __shared__ alignas(16) uint16_t as[2][32][24], bs[2][32][24];
    int t = threadIdx.x, lane = t % 32, m = t / 64 * 16, half = t / 32 % 2 * 16, steps = depth / 16;
    float d[2][4] = {};
    const uint16_t *from = t < 64 ? a + (blockIdx.y * 32 + t / 2) * depth
                                  : b + (blockIdx.x * 32 + t / 2 - 32) * depth;
    uint16_t *to = t < 64 ? &as[0][t / 2][t % 2 * 8] : &bs[0][t / 2 - 32][t % 2 * 8];
    from += t % 2 * 8;
    copy(to, from);
    asm volatile("cp.async.commit_group;" ::: "memory");
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
        if (k + 1 < steps) copy(to + (k + 1) % 2 * 32 * 24, from + (k + 1) * 16);
        asm volatile("cp.async.commit_group;" ::: "memory");
#if FAULT != 1
        asm volatile("cp.async.wait_group 1;" ::: "memory");
#else
        asm volatile("cp.async.wait_group 2;" ::: "memory");
#endif
        __syncthreads();
        uint32_t x[4], y[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(at(&as[k % 2][m + lane % 16][lane / 16 * 8]))
                     : "memory");
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3])
                     : "r"(at(&bs[k % 2][half + lane % 8 + lane / 16 * 8][lane / 8 % 2 * 8]))
                     : "memory");
#pragma unroll
        for (int i = 0; i < 2; i++)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                         "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                         : "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
                         : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[2 * i]),
                           "r"(y[2 * i + 1]));
#if FAULT != 2
        __syncthreads();
#endif
    }
    for (int i = 0; i < 8; i++)
        c[(blockIdx.y * 32 + m + lane / 4 + i / 2 % 2 * 8) * n + blockIdx.x * 32 + half +
          i / 4 * 8 + lane % 4 * 2 + i % 2] = d[i / 4][i % 4];
}
