// Sparse matrices by rows, with which setups compute.
#pragma once
#include "common.cuh"

// Square; columns increase within a row.
struct Sparse {
    u32 rows;
    const u32* row_ptr;
    const u32* col_ind;
    const double* val;
};

// Sums and products as the CPU rounds them: none is contracted, so that the numbers are equal.
__device__ inline double add(double a, double b) { return __dadd_rn(a, b); }
__device__ inline double subtract(double a, double b) { return __dadd_rn(a, -b); }
__device__ inline double multiply(double a, double b) { return __dmul_rn(a, b); }

#ifndef LANES
#define LANES 8
#endif

// Threads that work together: LANES neighbours of a warp.
struct Group {
    u32 number, lane, first, mask;

    __device__ Group() {
        const u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
        number = thread / LANES;
        lane = thread % LANES;
        first = threadIdx.x % WARP / LANES * LANES;
        mask = (LANES == WARP ? FULL : (1u << LANES % WARP) - 1) << first;
    }

    __device__ void sync() const { __syncwarp(mask); }
    __device__ u32 ballot(bool p) const { return (__ballot_sync(mask, p) & mask) >> first; }
    __device__ double from(double v, u32 lane) const { return __shfl_sync(mask, v, lane, LANES); }

    __device__ u32 least(u32 v) const {
        for (u32 offset = LANES / 2; offset; offset /= 2)
            v = min(v, __shfl_xor_sync(mask, v, offset, LANES));
        return v;
    }

    __device__ double largest(double v) const {
        for (u32 offset = LANES / 2; offset; offset /= 2)
            v = fmax(v, __shfl_xor_sync(mask, v, offset, LANES));
        return v;
    }
};
