// Checksums (CRC-32) by a table in constant memory that the block copies into shared memory, and
// counters in variables of the module; the last block reads what all have written.
// FAULT 1: no barrier after the table is copied; 2: no fence before the block is counted.
struct Totals {
    unsigned sum;
    int blocks;
};
__constant__ unsigned table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                   0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                   0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                   0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
__device__ Totals totals = {7, 0};
__device__ unsigned slots[64];
__device__ const char alphabet[] = "0123456789abcdef";
extern "C" __global__ void tables(const unsigned char *text, char *digits, unsigned *result) {
    __shared__ unsigned copy[16];
    int t = threadIdx.x, line = blockIdx.x * 64 + t;
    if (t < 16) copy[t] = table[t];
#if FAULT != 1
    __syncthreads();
#endif
    unsigned crc = ~0u;
#pragma unroll 1
    for (int i = 0; i < 12; i++) {
        crc ^= text[line * 12 + i];
        crc = copy[crc & 15] ^ crc >> 4;
        crc = copy[crc & 15] ^ crc >> 4;
    }
    crc = ~crc;
#pragma unroll 1
    for (int i = 0; i < 8; i++) digits[line * 8 + i] = alphabet[crc >> (28 - 4 * i) & 15];
    crc = __reduce_xor_sync(~0u, crc);
    if (t % 32 == 0) {
        slots[line / 32] = crc;
#if FAULT != 2
        __threadfence();
#endif
        if (atomicAdd(&totals.blocks, 1) == 2 * (int)gridDim.x - 1) {
            __threadfence();
            unsigned all = totals.sum;
#pragma unroll 1
            for (int i = 0; i < 2 * (int)gridDim.x; i++) all += slots[i];
            *result = all;
        }
    }
}
