// Inclusive prefix sums with decoupled look-back, as programs without cuda::atomic have it: volatile
// flags and __threadfence. `sums` and `totals` are ordinary memory that `state` (1: sum, 2: total)
// announces. Blocks take their parts by their number.
// FAULT 1: no fence between a sum and its announcement; 2: none after the look at the state.
template <typename T> __device__ void publish(T *place, T value, volatile unsigned *state, int kind) {
    *place = value;
#if FAULT == 1
    if (kind != 1)
#endif
        __threadfence();
    *state = kind;
}
namespace {
template <typename T>
__device__ T look_back(const T *sums, const T *totals, const volatile unsigned *state, int block) {
    T all = 0;
#pragma unroll 1
    for (int b = block - 1; b >= 0; b--) {
        unsigned seen;
        while ((seen = state[b]) == 0)
            ;
#if FAULT != 2
        __threadfence();
#endif
        all += seen == 2 ? totals[b] : sums[b];
        if (seen == 2) break;
    }
    return all;
}
} // namespace
template <typename T, int size>
__global__ void prefix(const T *x, T *y, T *sums, T *totals, unsigned *state) {
    __shared__ T part[size], before;
    int t = threadIdx.x, block = blockIdx.x;
    part[t] = x[block * size + t];
    __syncthreads();
    if (t == 0) {
        for (int i = 1; i < size; i++) part[i] += part[i - 1];
        publish(&sums[block], part[size - 1], &state[block], 1);
        before = look_back(sums, totals, state, block);
        publish(&totals[block], before + part[size - 1], &state[block], 2);
    }
    __syncthreads();
    y[block * size + t] = before + part[t];
}
template __global__ void prefix<int, 64>(const int *, int *, int *, int *, unsigned *);
