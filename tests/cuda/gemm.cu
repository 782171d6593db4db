// C = A * B by tensor copies and wgmma: a producer warp fills 3 stages of 64 x 64 bf16, swizzled by
// 128 bytes, a warpgroup multiplies, and stores its tile of f32 by tensor copies.
// FAULT 1: a stage is freed before the wgmmas that read it are complete; 2: no fence before the
// tensor stores.
#include <cstdint>
struct alignas(64) Map {
    unsigned char bytes[128];
};
struct Shared {
    alignas(1024) uint16_t a[3][64 * 64], b[3][64 * 64];
    alignas(1024) float c[64 * 64];
    uint64_t full[3], empty[3];
};
static __device__ uint32_t at(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
static __device__ void wait(uint64_t *bar, uint32_t parity) {
    asm volatile("{\n.reg .pred p;\nWAIT:\n"
                 "mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@!p bra WAIT;\n}" ::"r"(at(bar)),
                 "r"(parity)
                 : "memory");
}
static __device__ void load(void *to, const Map *map, int k, int row, uint64_t *full) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(at(to)),
                 "l"(map), "r"(k), "r"(row), "r"(at(full))
                 : "memory");
}
// K-major, 8 rows of 128 bytes are a pattern, swizzled by 128 bytes
static __device__ uint64_t descriptor(const void *p) {
    return (uint64_t)(at(p) >> 4 & 0x3fff) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}
extern "C" __global__ void __launch_bounds__(160)
    gemm(const __grid_constant__ Map a, const __grid_constant__ Map b, const __grid_constant__ Map c,
         int depth) {
    extern __shared__ __align__(1024) unsigned char memory[];
    Shared &s = *(Shared *)memory;
    int t = threadIdx.x, steps = depth / 64, m = blockIdx.y * 64, n = blockIdx.x * 64;
    if (t == 0) {
        for (int i = 0; i < 3; i++) {
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at(&s.full[i])) : "memory");
            asm volatile("mbarrier.init.shared.b64 [%0], 128;" ::"r"(at(&s.empty[i])) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (t >= 128) {
        if (t != 128) return;
#pragma unroll 1
        for (int i = 0; i < steps; i++) {
            int stage = i % 3;
            wait(&s.empty[stage], i / 3 % 2 ^ 1);
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 16384;" ::"r"(
                             at(&s.full[stage]))
                         : "memory");
            load(s.a[stage], &a, i * 64, m, &s.full[stage]);
            load(s.b[stage], &b, i * 64, n, &s.full[stage]);
        }
        return;
    }
    float d[32];
    for (int i = 0; i < 32; i++) d[i] = 0;
#pragma unroll 1
    for (int i = 0; i < steps; i++) {
        int stage = i % 3;
        wait(&s.full[stage], i / 3 % 2);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < 4; k++)
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
                : "l"(descriptor(s.a[stage] + k * 16)), "l"(descriptor(s.b[stage] + k * 16)));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#if FAULT == 1
        asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at(&s.empty[stage])) : "memory");
#endif
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#if FAULT != 1
        asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at(&s.empty[stage])) : "memory");
#endif
    }
    float *to = s.c + (t / 32 * 16 + t % 32 / 4) * 64 + t % 4 * 2;
#pragma unroll
    for (int i = 0; i < 32; i++) to[i / 2 % 2 * 512 + i / 4 * 8 + i % 2] = d[i];
#if FAULT != 2
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (t == 0)
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], "
                     "[%3];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::"l"(
                         &c),
                     "r"(n), "r"(m), "r"(at(s.c))
                     : "memory");
}
