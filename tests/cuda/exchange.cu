// Blocks of a cluster in a ring: each sends its numbers to the next one by st.async, which counts
// the bytes at an mbarrier there, adds, and sends the sum on.
// FAULT 1: no wait for the bytes; 2: no barrier of the cluster after the barriers are initialised.
#include <cstdint>
static __device__ uint32_t at(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
static __device__ uint32_t there(const void *p, uint32_t rank) {
    uint32_t mapped;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(at(p)), "r"(rank));
    return mapped;
}
extern "C" __global__ void __cluster_dims__(4, 1, 1) exchange(const int *x, int *y) {
    __shared__ int got[3][64];
    __shared__ uint64_t bar[3];
    uint32_t rank, t = threadIdx.x;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (t == 0) {
        for (int i = 0; i < 3; i++) {
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at(&bar[i])) : "memory");
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" ::"r"(at(&bar[i]))
                         : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
#if FAULT != 2
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
    int own = x[blockIdx.x * 64 + t], sum = own;
#pragma unroll 1
    for (int i = 0; i < 3; i++) {
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
                     ::"r"(there(&got[i][t], (rank + 1) % 4)),
                     "r"(sum), "r"(there(&bar[i], (rank + 1) % 4))
                     : "memory");
#if FAULT != 1
        asm volatile("{\n.reg .pred p;\nWAIT:\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0;\n"
                     "@!p bra WAIT;\n}" ::"r"(at(&bar[i]))
                     : "memory");
#endif
        sum = own + got[i][t ^ 1];
    }
    y[blockIdx.x * 64 + t] = sum;
}
