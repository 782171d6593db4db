// C = A * B, 64 x 64 per block, by wgmma m64n64k16 in bf16; the threads store the operands into
// shared memory, both K-major, without swizzle.
// FAULT 1: no proxy fence after the stores; 2: the next stores do not wait for the wgmmas.
#include <cstdint>
static __device__ uint64_t descriptor(const void *p) {
    // chunks of 8 rows x 16 bytes; the next along K is 128 bytes on, the next along M or N 512
    uint32_t at = (uint32_t)__cvta_generic_to_shared(p);
    return (uint64_t)(at >> 4 & 0x3fff) | (uint64_t)(128 >> 4) << 16 | (uint64_t)(512 >> 4) << 32;
}
static __device__ int place(int row, int k) { // 64 x 32 elements
    return row / 8 * 256 + k / 8 * 64 + row % 8 * 8 + k % 8;
}
extern "C" __global__ void __launch_bounds__(128) wgmma(const uint16_t *a, const uint16_t *b,
                                                        float *c, int n, int depth) {
    __shared__ alignas(128) uint16_t as[64 * 32], bs[64 * 32];
    float d[32];
    for (int i = 0; i < 32; i++) d[i] = 0;
    int t = threadIdx.x;
#pragma unroll 1
    for (int k = 0; k < depth; k += 32) {
#pragma unroll 1
        for (int i = t; i < 64 * 32; i += 128) {
            as[place(i / 32, i % 32)] = a[(blockIdx.y * 64 + i / 32) * depth + k + i % 32];
            bs[place(i / 32, i % 32)] = b[(blockIdx.x * 64 + i / 32) * depth + k + i % 32];
        }
#if FAULT != 1
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int half = 0; half < 2; half++)
            asm volatile(
                "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                "%32, %33, 1, 1, 1, 0, 0;"
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                  "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                  "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
                  "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                  "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                  "+f"(d[30]), "+f"(d[31])
                : "l"(descriptor(as + half * 128)), "l"(descriptor(bs + half * 128)));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#if FAULT != 2
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();
#endif
    }
#if FAULT == 2
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
    int row = blockIdx.y * 64 + t / 32 * 16 + t % 32 / 4, column = blockIdx.x * 64 + t % 4 * 2;
#pragma unroll
    for (int i = 0; i < 32; i++)
        c[(row + i / 2 % 2 * 8) * n + column + i / 4 * 8 + i % 2] = d[i];
}
