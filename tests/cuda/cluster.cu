// A histogram in the shared memory of a cluster: each of 4 blocks owns a quarter of the bins.
// FAULT 1: no cluster barrier after the bins are cleared; 2: none before a block reads its own bins
// and exits.
#include <cooperative_groups.h>
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster(const int *x, int *counts, int n) {
    auto group = cooperative_groups::this_cluster();
    __shared__ int bins[32];
    if (threadIdx.x < 32) bins[threadIdx.x] = 0;
#if FAULT != 1
    group.sync();
#else
    __syncthreads();
#endif
#pragma unroll 1
    for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += 256) {
        int bin = x[i] & 127;
        atomicAdd(group.map_shared_rank(bins, bin / 32) + bin % 32, 1);
    }
#if FAULT != 2
    group.sync();
#else
    __syncthreads();
#endif
    if (threadIdx.x < 32) counts[blockIdx.x * 32 + threadIdx.x] = bins[threadIdx.x];
}
