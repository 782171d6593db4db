// A histogram by atomic additions in shared memory; each block writes its own counts, and the last
// one adds them up.
// FAULT 1: no fence before the block is counted; 2: no barrier after the bins are cleared.
__device__ unsigned finished;
extern "C" __global__ void histogram(const int *x, int *parts, int *counts, int n) {
    __shared__ int bins[64];
    __shared__ bool last;
    int t = threadIdx.x;
    if (t < 64) bins[t] = 0;
#if FAULT != 2
    __syncthreads();
#endif
#pragma unroll 1
    for (int i = blockIdx.x * 128 + t; i < n; i += gridDim.x * 128) atomicAdd(&bins[x[i] & 63], 1);
    __syncthreads();
    if (t < 64) parts[blockIdx.x * 64 + t] = bins[t];
#if FAULT != 1
    __threadfence();
#endif
    __syncthreads();
    if (t == 0) {
        last = atomicAdd(&finished, 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!last || t >= 64) return;
    int sum = 0;
#pragma unroll 1
    for (int b = 0; b < (int)gridDim.x; b++) sum += parts[b * 64 + t];
    counts[t] = sum;
}
