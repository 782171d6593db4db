// The blocks smooth a row twice, with a barrier of the grid between: the first pass reads `x`, which
// is constant, the second one what the first pass has written.
// FAULT 1: the second pass reads by __ldg what other blocks have written; 2: its middle element, which
// the same thread has written.
#include <cuda/atomic>
#if FAULT == 1
#define NEIGHBOUR(p) __ldg(p)
#else
#define NEIGHBOUR(p) (*(p))
#endif
#if FAULT == 2
#define MIDDLE(p) __ldg(p)
#else
#define MIDDLE(p) (*(p))
#endif
extern "C" __global__ void readonly(const int *__restrict__ x, int *once, int *twice,
                                    unsigned *arrived, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    once[i] = x[(i + n - 1) % n] + 2 * x[i] + x[(i + 1) % n];
    __syncthreads();
    if (threadIdx.x == 0) {
        cuda::atomic_ref<unsigned, cuda::thread_scope_device> count(*arrived);
        count.fetch_add(1, cuda::memory_order_acq_rel);
        while (count.load(cuda::memory_order_acquire) < gridDim.x)
            ;
    }
    __syncthreads();
    twice[i] = NEIGHBOUR(once + (i + n - 1) % n) + 2 * MIDDLE(once + i) +
               NEIGHBOUR(once + (i + 1) % n);
}
