// Producer and consumer warps with two cuda::barriers per buffer, and cuda::barrier as a barrier of
// all threads at the end.
// FAULT 1: the consumers do not wait for the buffer; 2: they free it before they have read it.
#include <cuda/barrier>
typedef cuda::barrier<cuda::thread_scope_block> Barrier;
#pragma nv_diag_suppress static_var_with_dynamic_init
extern "C" __global__ void barrier(const int *x, int *y, int rounds) {
    __shared__ Barrier ready[2], filled[2], end;
    __shared__ int buffer[2][32], sums[2];
    int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; i++) {
            init(&ready[i], 64);
            init(&filled[i], 64);
        }
        init(&end, 64);
    }
    __syncthreads();
    int sum = 0;
    if (threadIdx.x < 32) {
#pragma unroll 1
        for (int i = 0; i < rounds; i++) {
            ready[i % 2].arrive_and_wait();
            buffer[i % 2][lane] = x[i * 32 + lane];
            sum += x[i * 32 + lane];
            (void)filled[i % 2].arrive();
        }
    } else {
        (void)ready[0].arrive();
        (void)ready[1].arrive();
#pragma unroll 1
        for (int i = 0; i < rounds; i++) {
#if FAULT != 1
            filled[i % 2].arrive_and_wait();
#else
            (void)filled[i % 2].arrive();
#endif
#if FAULT != 2
            y[i * 32 + lane] = 2 * buffer[i % 2][31 - lane];
#endif
            if (i + 2 < rounds) (void)ready[i % 2].arrive();
#if FAULT == 2
            y[i * 32 + lane] = 2 * buffer[i % 2][31 - lane];
#endif
        }
    }
    if (lane == 0) sums[threadIdx.x / 32] = sum;
    end.arrive_and_wait();
    if (threadIdx.x == 0) y[rounds * 32] = sums[0] + sums[1];
}
