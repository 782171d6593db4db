// Steps of a diffusion over a whole array in global memory, with a barrier of the grid between.
// FAULT 1: a barrier of the block instead; 2: a counter without fences instead.
#include <cooperative_groups.h>
extern "C" __global__ void grid(float *x, float *y, unsigned *counter, int n, int steps) {
    int i = blockIdx.x * 64 + threadIdx.x;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        float left = i > 0 ? x[i - 1] : 0, right = i < n - 1 ? x[i + 1] : 0;
        y[i] = left + right - x[i];
        float *other = x;
        x = y;
        y = other;
#if FAULT == 0
        cooperative_groups::this_grid().sync();
#elif FAULT == 1
        __syncthreads();
#else
        __syncthreads();
        if (threadIdx.x == 0) {
            atomicAdd(counter, 1);
            while (*(volatile unsigned *)counter < gridDim.x * (step + 1))
                ;
        }
        __syncthreads();
#endif
    }
}
