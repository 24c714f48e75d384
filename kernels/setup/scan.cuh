// Sums over the threads of a block.
#pragma once
#include "setup/sparse.cuh"

constexpr u32 THREADS = 256;
// Numbers that a thread takes, and a thread block.
constexpr u32 EACH = 8, PART = THREADS * EACH;

__device__ inline u32 thread() { return blockIdx.x * THREADS + threadIdx.x; }

// Sums of the values of the threads before this one; the sum of all in `all`.
__device__ inline u64 before(u64 value, u64& all) {
    __shared__ u64 of_warp[THREADS / WARP];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    u64 sum = value;
    for (u32 offset = 1; offset < WARP; offset *= 2) {
        const u64 other = __shfl_up_sync(FULL, sum, offset);
        if (lane >= offset) sum += other;
    }
    if (lane == WARP - 1) of_warp[warp] = sum;
    __syncthreads();
    u64 start = 0;
    all = 0;
    for (u32 w = 0; w < THREADS / WARP; ++w) {
        if (w == warp) start = all;
        all += of_warp[w];
    }
    __syncthreads();
    return start + sum - value;
}
