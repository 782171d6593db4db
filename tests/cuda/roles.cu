// Three warps with different roles that meet at named barriers: one loads, one squares, one stores,
// by two buffers in shared memory.
// FAULT 1: the loader does not wait until its buffer is free; 2: the storer arrives at the barrier
// before its loads.
static __device__ void sync(int name) { asm volatile("bar.sync %0, 64;" ::"r"(name) : "memory"); }
static __device__ void arrive(int name) {
    asm volatile("bar.arrive %0, 64;" ::"r"(name) : "memory");
}
extern "C" __global__ void roles(const int *x, int *y, int rounds) {
    __shared__ int in[32], out[32];
    int role = threadIdx.x / 32, lane = threadIdx.x % 32;
    enum { LOADED = 1, TAKEN, SQUARED, STORED };
#pragma unroll 1
    for (int i = 0; i < rounds; i++) {
        if (role == 0) {
            in[lane] = x[i * 32 + lane];
            arrive(LOADED);
#if FAULT != 1
            sync(TAKEN);
#else
            arrive(TAKEN);
#endif
        } else if (role == 1) {
            sync(LOADED);
            int v = in[31 - lane];
            arrive(TAKEN);
            if (i > 0) sync(STORED);
            out[lane] = v * v;
            arrive(SQUARED);
        } else {
            sync(SQUARED);
#if FAULT == 2
            if (i + 1 < rounds) arrive(STORED);
#endif
            y[i * 32 + lane] = out[31 - lane];
#if FAULT != 2
            if (i + 1 < rounds) arrive(STORED);
#endif
        }
    }
}
