// CUB: a scan and a reduction of the block, by the same temporary storage.
// FAULT 1: no barrier between the two; 2: no barrier before the next batch.
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
extern "C" __global__ void cub_block(const int *x, int *y, int *most, int batches) {
    typedef cub::BlockScan<int, 128, cub::BLOCK_SCAN_WARP_SCANS> Scan;
    typedef cub::BlockReduce<int, 128> Reduce;
    __shared__ union {
        typename Scan::TempStorage scan;
        typename Reduce::TempStorage reduce;
    } temporary;
#pragma unroll 1
    for (int i = 0; i < batches; i++) {
        int v = x[i * 128 + threadIdx.x], before;
        Scan(temporary.scan).ExclusiveSum(v, before);
        y[i * 128 + threadIdx.x] = before;
#if FAULT != 1
        __syncthreads();
#endif
        int all = Reduce(temporary.reduce).Reduce(v, [](int a, int b) { return a > b ? a : b; });
        if (threadIdx.x == 0) most[i] = all;
#if FAULT != 2
        __syncthreads();
#endif
    }
}
