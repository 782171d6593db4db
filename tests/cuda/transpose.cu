// A transpose by padded tiles of 32 x 32, blocks of 32 x 8 threads; a block does a row of tiles.
// FAULT 1: no barrier between the stores and the loads; 2: none before the tile is stored again.
extern "C" __global__ void transpose(const float *x, float *y, int width, int height) {
    __shared__ float tile[32][33];
    int i = threadIdx.x, top = blockIdx.y * 32;
#pragma unroll 1
    for (int left = 0; left < width; left += 32) {
#pragma unroll 1
        for (int j = threadIdx.y; j < 32; j += 8)
            if (left + i < width && top + j < height)
                tile[j][i] = x[(top + j) * width + left + i];
#if FAULT != 1
        __syncthreads();
#endif
#pragma unroll 1
        for (int j = threadIdx.y; j < 32; j += 8)
            if (left + j < width && top + i < height)
                y[(left + j) * height + top + i] = tile[i][j];
#if FAULT != 2
        __syncthreads();
#endif
    }
}
