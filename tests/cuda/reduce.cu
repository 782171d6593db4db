// The sum of n numbers: a tree in shared memory, a warp for the rest, an atomic addition per block.
// FAULT 1: no barrier after the stores; 2: no barrier in the loop.
extern "C" __global__ void reduce(const float *x, float *sum, int n) {
    __shared__ float part[256];
    float own = 0;
#pragma unroll 1
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) own += x[i];
    part[threadIdx.x] = own;
#if FAULT != 1
    __syncthreads();
#endif
#pragma unroll 1
    for (int half = 128; half >= 32; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
#if FAULT != 2
        __syncthreads();
#endif
    }
    if (threadIdx.x < 32) {
        own = part[threadIdx.x];
        for (int i = 16; i; i /= 2) own += __shfl_down_sync(~0u, own, i);
        if (threadIdx.x == 0) atomicAdd(sum, own);
    }
}
