// Softmax of rows, one row per warp: the row lies in shared memory, and the lanes exchange by
// shuffles; then each lane writes what another one has computed.
// FAULT 1: no __syncwarp between the stores and the loads; 2: none before the next row.
extern "C" __global__ void softmax(const float *x, float *y, int rows, int width) {
    __shared__ float lines[4][128];
    int lane = threadIdx.x % 32;
    float *line = lines[threadIdx.x / 32];
#pragma unroll 1
    for (int r = blockIdx.x * 4 + threadIdx.x / 32; r < rows; r += gridDim.x * 4) {
        float most = -INFINITY, sum = 0;
#pragma unroll 1
        for (int i = lane; i < width; i += 32) {
            line[i] = x[r * width + i];
            most = fmaxf(most, line[i]);
        }
        for (int i = 16; i; i /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, i));
#pragma unroll 1
        for (int i = lane; i < width; i += 32) {
            line[i] = exp2f(line[i] - most);
            sum += line[i];
        }
        for (int i = 16; i; i /= 2) sum += __shfl_xor_sync(~0u, sum, i);
#pragma unroll 1
        for (int i = lane; i < width; i += 32) line[i] /= sum;
#if FAULT != 1
        __syncwarp();
#endif
#pragma unroll 1
        for (int i = width - 1 - lane; i >= 0; i -= 32) y[r * width + i] = line[i];
#if FAULT != 2
        __syncwarp();
#endif
    }
}
