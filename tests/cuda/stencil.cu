// Five points of a 2-D grid, two steps in shared memory: blocks of 16 x 8 threads, a halo of 2.
// FAULT 1: no barrier after the tile is loaded; 2: none between the steps.
extern "C" __global__ void stencil(const float *x, float *y, int width, int height) {
    __shared__ float tile[12][20], next[10][18];
    int left = blockIdx.x * 16 - 2, top = blockIdx.y * 8 - 2;
#pragma unroll 1
    for (int j = threadIdx.y; j < 12; j += 8)
#pragma unroll 1
        for (int i = threadIdx.x; i < 20; i += 16) {
            int column = left + i, row = top + j;
            bool inside = column >= 0 && column < width && row >= 0 && row < height;
            tile[j][i] = inside ? x[row * width + column] : 0;
        }
#if FAULT != 1
    __syncthreads();
#endif
#pragma unroll 1
    for (int j = threadIdx.y; j < 10; j += 8)
#pragma unroll 1
        for (int i = threadIdx.x; i < 18; i += 16) {
            int column = left + 1 + i, row = top + 1 + j;
            bool inside = column >= 0 && column < width && row >= 0 && row < height;
            float sum = tile[j][i + 1] + tile[j + 1][i] + tile[j + 1][i + 2] + tile[j + 2][i + 1];
            next[j][i] = inside ? sum - 4 * tile[j + 1][i + 1] : 0;
        }
#if FAULT != 2
    __syncthreads();
#endif
    int i = threadIdx.x, j = threadIdx.y, column = left + 2 + i, row = top + 2 + j;
    if (column < width && row < height)
        y[row * width + column] = next[j][i + 1] + next[j + 1][i] + next[j + 1][i + 2] +
                                  next[j + 2][i + 1] - 4 * next[j + 1][i + 1];
}
