// A cuda::pipeline of two stages that all threads of the block share: asynchronous copies of the
// next batch while this one is used.
// FAULT 1: no wait for the stage; 2: the stage is released before it is read.
#include <cooperative_groups.h>
#include <cuda/pipeline>
#pragma nv_diag_suppress static_var_with_dynamic_init
extern "C" __global__ void pipeline(const float4 *x, float4 *y, int batches) {
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ float4 stage[2][64];
    auto group = cooperative_groups::this_thread_block();
    auto pipe = cuda::make_pipeline(group, &state);
    int t = threadIdx.x;
    pipe.producer_acquire();
    cuda::memcpy_async(&stage[0][t], &x[t], cuda::aligned_size_t<16>(16), pipe);
    pipe.producer_commit();
#pragma unroll 1
    for (int i = 0; i < batches; i++) {
        if (i + 1 < batches) {
            pipe.producer_acquire();
            cuda::memcpy_async(&stage[(i + 1) % 2][t], &x[(i + 1) * 64 + t],
                               cuda::aligned_size_t<16>(16), pipe);
            pipe.producer_commit();
        }
#if FAULT != 1
        pipe.consumer_wait();
#endif
#if FAULT == 2
        pipe.consumer_release();
#endif
        float4 v = stage[i % 2][63 - t];
        y[i * 64 + t] = make_float4(v.x + 1, v.y + 2, v.z + 3, v.w + 4);
#if FAULT != 2
        pipe.consumer_release();
#endif
    }
}
