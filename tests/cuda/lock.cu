// A spin lock for each list of a hash table in global memory: threads insert their keys.
// FAULT 1: the lock is released without a fence; 2: taken without one.
extern "C" __global__ void lock(const int *keys, int *locks, int *heads, int *next, int buckets) {
    int i = blockIdx.x * 32 + threadIdx.x, bucket = keys[i] & (buckets - 1);
    bool done = false;
#pragma unroll 1
    while (!done) {
        if (atomicCAS(&locks[bucket], 0, 1) == 0) {
#if FAULT != 2
            __threadfence();
#endif
            next[i] = heads[bucket];
            heads[bucket] = i + 1;
#if FAULT != 1
            __threadfence();
#endif
            atomicExch(&locks[bucket], 0);
            done = true;
        }
    }
}
