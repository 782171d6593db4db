// A ring of bulk copies to both blocks of a cluster: rank 0 copies each batch with multicast, and
// refills a stage when the consumers of both blocks have arrived at its barrier.
// FAULT 1: the blocks exit without a last barrier of the cluster; 2: the consumers of rank 1 do not
// free their stages, and rank 0 does not wait for them.
#include <cstdint>
struct Ring {
    alignas(128) float data[2][256];
    uint64_t full[2], empty[2];
};
static __device__ uint32_t at(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
static __device__ uint32_t first(const void *p) {
    uint32_t mapped;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(mapped) : "r"(at(p)));
    return mapped;
}
static __device__ void meet() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
static __device__ void wait(uint64_t *bar, uint32_t parity) {
    asm volatile("{\n.reg .pred p;\nWAIT:\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra WAIT;\n}" ::"r"(at(bar)),
                 "r"(parity)
                 : "memory");
}
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    multicast(const float *x, float *y, int batches) {
    __shared__ Ring s;
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; i++) {
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at(&s.full[i])) : "memory");
            asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at(&s.empty[i])),
                         "r"(FAULT == 2 ? 1 : 2)
                         : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    meet();
    if (threadIdx.x == 64) {
#pragma unroll 1
        for (int i = 0; i < batches; i++) {
            int stage = i % 2;
            // the expectation of the stage before this one is met
            if (rank == 0)
                wait(&s.empty[stage], i / 2 % 2 ^ 1);
            else if (i >= 2)
                wait(&s.full[stage], i / 2 % 2 ^ 1);
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" ::"r"(
                             at(&s.full[stage]))
                         : "memory");
            if (rank != 0) continue;
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                         ".multicast::cluster [%0], [%1], 1024, [%2], %3;" ::"r"(at(s.data[stage])),
                         "l"(x + i * 256), "r"(at(&s.full[stage])), "h"((uint16_t)3)
                         : "memory");
        }
    } else if (threadIdx.x < 64) {
#pragma unroll 1
        for (int i = 0; i < batches; i++) {
            int stage = i % 2;
            wait(&s.full[stage], i / 2 % 2);
#pragma unroll 1
            for (int k = threadIdx.x; k < 128; k += 64)
                y[i * 256 + rank * 128 + k] = s.data[stage][rank * 128 + k] + 1;
            asm volatile("fence.proxy.async.shared::cta;\nbar.sync 1, 64;" ::: "memory");
            if (threadIdx.x == 0 && (FAULT != 2 || rank == 0))
                asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                                 first(&s.empty[stage]))
                             : "memory");
        }
    }
    __syncwarp();
#if FAULT != 1
    meet();
#endif
}
