// Cooperative groups: memcpy_async of the block and its wait, tiles of 8 threads that reduce and
// scan, a labelled partition.
// FAULT 1: no wait for the copies; 2: no barrier before the next batch is copied.
#include <cuda/barrier>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void groups(const int *x, int *y, int *sums, int batches) {
    alignas(16) __shared__ int batch[64];
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int t = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < batches; i++) {
        cg::memcpy_async(block, batch, x + i * 64, cuda::aligned_size_t<16>(256));
#if FAULT != 1
        cg::wait(block);
#endif
        int v = batch[63 - t], sum = cg::reduce(tile, v, cg::plus<int>());
        y[i * 64 + t] = cg::exclusive_scan(tile, v) * (v & 1 ? 1 : -1);
        if (tile.thread_rank() == 0) sums[i * 8 + t / 8] = sum;
#if FAULT != 2
        block.sync();
#endif
    }
}
