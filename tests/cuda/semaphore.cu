// A queue between blocks, guarded by semaphores of libcu++: block 0 puts numbers, the others take
// them.
// FAULT 1: a number is announced before it is written; 2: a place is freed before it is read.
#include <cuda/semaphore>
struct Queue {
    cuda::counting_semaphore<cuda::thread_scope_device, 1000> filled, free;
    int places[4];
};
extern "C" __global__ void semaphore(const int *x, int *y, Queue *queue, int n) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
#pragma unroll 1
        for (int i = 0; i < n; i++) {
            queue->free.acquire();
#if FAULT == 1
            queue->filled.release();
#endif
            queue->places[i % 4] = x[i];
#if FAULT != 1
            queue->filled.release();
#endif
        }
        return;
    }
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        queue->filled.acquire();
#if FAULT == 2
        queue->free.release();
#endif
        y[i] = queue->places[i % 4] * 3;
#if FAULT != 2
        queue->free.release();
#endif
    }
}
