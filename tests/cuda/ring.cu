// A ring of tensor copies: a producer warp fills 3 stages of 8 x 32 floats through a tensor map,
// 4 consumer warps transpose each tile on its way into another tensor.
// FAULT 1: the consumers do not wait for the copy; 2: the producer does not wait for a free stage.
#include <cstdint>
struct alignas(64) Map {
    unsigned char bytes[128];
};
struct Ring {
    alignas(128) float tile[3][256];
    uint64_t full[3], empty[3];
};
static __device__ uint32_t at(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
static __device__ void wait(uint64_t *bar, uint32_t parity) {
    asm volatile("{\n.reg .pred p;\nWAIT:\n"
                 "mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@!p bra WAIT;\n}" ::"r"(at(bar)),
                 "r"(parity)
                 : "memory");
}
extern "C" __global__ void ring(const __grid_constant__ Map map, float *y, int tiles) {
    __shared__ Ring s;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 3; i++) {
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at(&s.full[i])) : "memory");
            asm volatile("mbarrier.init.shared.b64 [%0], 4;" ::"r"(at(&s.empty[i])) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        if (threadIdx.x != 128) return;
#pragma unroll 1
        for (int i = 0; i < tiles; i++) {
            int stage = i % 3;
#if FAULT != 2
            wait(&s.empty[stage], i / 3 % 2 ^ 1);
#endif
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" ::"r"(
                             at(&s.full[stage]))
                         : "memory");
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::"
                         "complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(at(s.tile[stage])),
                         "l"(&map), "r"(0), "r"(i * 8), "r"(at(&s.full[stage]))
                         : "memory");
        }
        return;
    }
#pragma unroll 1
    for (int i = 0; i < tiles; i++) {
        int stage = i % 3;
#if FAULT != 1
        wait(&s.full[stage], i / 3 % 2);
#endif
#pragma unroll 1
        for (int k = threadIdx.x; k < 256; k += 128)
            y[i * 256 + k] = s.tile[stage][k % 8 * 32 + k / 8];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at(&s.empty[stage]))
                         : "memory");
    }
}
