// Bulk copies: 1024 floats come in, are scaled in place, and go out.
// FAULT 1: no fence between the stores and the bulk store; 2: no wait for the copy.
#include <cstdint>
__device__ uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}
extern "C" __global__ void bulk(const float *x, float *y, float scale) {
    __shared__ alignas(128) float tile[1024];
    __shared__ uint64_t full;
    uint32_t at = shared_address(tile), bar = shared_address(&full);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 4096;" ::"r"(bar) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1], 4096, [%2];" ::"r"(at), "l"(x + blockIdx.x * 1024), "r"(bar)
                     : "memory");
    }
    __syncthreads();
#if FAULT != 2
    asm volatile("{\n.reg .pred p;\nWAIT:\n"
                 "mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra WAIT;\n}" ::"r"(bar)
                 : "memory");
#endif
#pragma unroll 1
    for (int i = threadIdx.x; i < 1024; i += 128) tile[i] *= scale;
#if FAULT != 1
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 4096;\n"
                     "cp.async.bulk.commit_group;\n"
                     "cp.async.bulk.wait_group.read 0;" ::"l"(y + blockIdx.x * 1024), "r"(at)
                     : "memory");
    }
}
