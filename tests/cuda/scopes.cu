// Each block gives its sum to the next one: fences of the device, flags of cuda::atomic_ref, and a
// barrier within the block that receives.
// FAULT 1: the flag has the scope of the block on both sides; 2: so has the fence that publishes.
#include <cuda/atomic>
#if FAULT == 1
typedef cuda::atomic_ref<int, cuda::thread_scope_block> Flag;
#else
typedef cuda::atomic_ref<int, cuda::thread_scope_device> Flag;
#endif
struct Chain {
    int *sums, *flags;
    __device__ int receive(int block) const {
        while (Flag(flags[block]).load(cuda::memory_order_acquire) == 0)
            ;
        return sums[block];
    }
    __device__ void send(int block, int sum) const {
        sums[block] = sum;
#if FAULT == 2
        __threadfence_block();
#else
        __threadfence();
#endif
        Flag(flags[block]).store(1, cuda::memory_order_relaxed);
    }
};
extern "C" __global__ void scopes(const int *x, int *y, Chain chain) {
    __shared__ int part[64], before;
    int t = threadIdx.x, block = blockIdx.x;
    part[t] = x[block * 64 + t];
    if (t == 32) before = block > 0 ? chain.receive(block - 1) : 0;
    __syncthreads();
    if (t == 0) {
        int sum = before;
        for (int i = 0; i < 64; i++) sum += part[i];
        chain.send(block, sum);
    }
    y[block * 64 + t] = before + part[t];
}
