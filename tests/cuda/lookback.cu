// Inclusive prefix sums with decoupled look-back. A block publishes the sum of its elements, then
// the sum of all elements up to its end; its first thread adds what the blocks before it published.
// `sums` and `totals` are ordinary memory that `state` (1: sum, 2: total) announces.
// FAULT 1: the announcement is relaxed; 2: the look-back is relaxed.
#include <cuda/atomic>
typedef cuda::atomic_ref<unsigned, cuda::thread_scope_device> State;
#if FAULT == 1
#define PUBLISH cuda::memory_order_relaxed
#else
#define PUBLISH cuda::memory_order_release
#endif
#if FAULT == 2
#define OBSERVE cuda::memory_order_relaxed
#else
#define OBSERVE cuda::memory_order_acquire
#endif
extern "C" __global__ void lookback(const int *x, int *y, int *sums, int *totals, unsigned *state,
                                    unsigned *ticket) {
    __shared__ int part[128], before;
    __shared__ unsigned block;
    int t = threadIdx.x;
    if (t == 0) block = atomicAdd(ticket, 1);
    __syncthreads();
    int own = x[block * 128 + t];
    part[t] = own;
    __syncthreads();
#pragma unroll 1
    for (int step = 1; step < 128; step *= 2) {
        int add = t >= step ? part[t - step] : 0;
        __syncthreads();
        part[t] += add;
        __syncthreads();
    }
    if (t == 0) {
        int sum = part[127], all = 0;
        sums[block] = sum;
        State(state[block]).store(1, PUBLISH);
#pragma unroll 1
        for (int b = (int)block - 1; b >= 0; b--) {
            unsigned seen;
            while ((seen = State(state[b]).load(OBSERVE)) == 0)
                ;
            all += seen == 2 ? totals[b] : sums[b];
            if (seen == 2) break;
        }
        totals[block] = all + sum;
        State(state[block]).store(2, PUBLISH);
        before = all;
    }
    __syncthreads();
    y[block * 128 + t] = before + part[t];
}
