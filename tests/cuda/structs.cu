// Structures by value, with tables of pointers inside: each block normalises one row of one tensor
// of a group to the sum 1, after the function that its layer names.
// FAULT 1: no barrier before the sums of the warps are added; 2: none before they are overwritten.
struct Layer {
    const float *x;
    float *y;
    short rows;
    char kind; // 0: as it is, 1: squares, 2: magnitudes
};
struct Group {
    char unused;
    Layer layers[2];
    double scale;
};
extern "C" __global__ void structs(Group group, int width) {
    __shared__ float sums[4];
    const Layer &layer = group.layers[blockIdx.y];
    int t = threadIdx.x;
#pragma unroll 1
    for (int row = blockIdx.x; row < layer.rows; row += gridDim.x) {
        float v = t < width ? layer.x[row * width + t] : 0;
        if (layer.kind == 1) v *= v;
        if (layer.kind == 2) v = fabsf(v);
        float sum = v;
        for (int i = 16; i; i /= 2) sum += __shfl_xor_sync(~0u, sum, i);
        if (t % 32 == 0) sums[t / 32] = sum;
#if FAULT != 1
        __syncthreads();
#endif
        sum = sums[0] + sums[1] + sums[2] + sums[3];
        if (t < width) layer.y[row * width + t] = (float)(v * group.scale / sum);
#if FAULT != 2
        __syncthreads();
#endif
    }
}
