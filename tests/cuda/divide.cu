// Quotients and remainders of 128-bit integers, of which nvcc makes chains with the condition code.
// The block puts its remainders in reverse order through shared memory.
// FAULT 1: no barrier before the remainders are read; 2: none before they are overwritten.
extern "C" __global__ void divide(const unsigned __int128 *x, unsigned __int128 *quotients,
                                  unsigned __int128 *remainders, int rounds) {
    __shared__ unsigned __int128 part[64];
    int t = threadIdx.x;
    for (int round = 0; round < rounds; round++) {
        int i = round * 64 + t;
        unsigned __int128 a = x[2 * i], b = x[2 * i + 1];
        quotients[i] = a / b;
        part[t] = a % b;
#if FAULT != 1
        __syncthreads();
#endif
        remainders[round * 64 + 63 - t] = part[63 - t];
#if FAULT != 2
        __syncthreads();
#endif
    }
}
