// cuda::memcpy_async with a cuda::barrier: each warp's leader copies, all threads wait.
// FAULT 1: no wait for the copy; 2: the next copy does not wait until all have read.
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init
extern "C" __global__ void copy(const int *x, int *y, int batches) {
    __shared__ alignas(128) int batch[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    int t = threadIdx.x;
    if (t == 0) {
        init(&bar, 64);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < batches; i++) {
        if (t % 32 == 0)
            cuda::memcpy_async(batch + t, x + i * 64 + t, cuda::aligned_size_t<16>(128), bar);
#if FAULT != 1
        bar.arrive_and_wait();
#else
        (void)bar.arrive();
#endif
        y[i * 64 + t] = batch[63 - t];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#if FAULT != 2
        __syncthreads();
#endif
    }
}
