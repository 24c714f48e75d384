// Sweeps of the projected Richardson method: the grid, the tiles that thread blocks take, and how a sweep
// ends; mirrors `backend/cuda/obstacle.rs`. New values are those of `backend/cpu/obstacle.rs` bit for bit:
// no product is fused with a sum.
#pragma once
#include "common.cuh"

// Numbers of a part of the grid, in lines of x with a 0 behind each; lines and slices of neighbours around
// it. Places count from the first number of the slice of neighbours before.
struct Grid {
    const double* old;
    double* next;
    const double* source;
    const double* floor;
    // the slices of neighbours of the parts before and behind, on other devices; null at the boundary
    double* before;
    double* behind;
    double centre, share, flat;
    u32 nx, ny, nz, pitch;
    u64 slice;
};

// Lines y0..y1 of slices z0..z1, counted from 1; `slot` is its place among the tiles sorted by the parts over
// which norms are taken.
struct Tile {
    u32 y0, y1, z0, z1, slot;
};

// How a time step goes on.
struct Control {
    u32 done;
    u32 sweeps;
    // thread blocks of `conclude` that are done
    u32 arrived;
    u32 unused;
    double norm;
    double worst;
};

// Where a sweep leaves its change, and when `conclude` ends the time step. `first[p]` is the first slot of part
// p, `first[parts]` the number of slots; `part` has the sums of the parts, then their largest.
struct Ending {
    Control* control;
    double* squared;
    double* worst;
    double* part;
    const u32* first;
    u32 parts;
    // number of the sweep, from 1; 0 when its change is not asked for
    u32 sweep;
    // whether the complementarity counts, and not the norm
    u32 by_worst;
    double bound;
};

// The value that an update gives without the obstacle.
__device__ inline double relaxed(const Grid& g, double source, double west, double east, double south, double north,
                                 double rear, double front) {
    const double around =
        __dadd_rn(__dadd_rn(__dadd_rn(west, east), __dadd_rn(south, north)), __dadd_rn(rear, front));
    return __dadd_rn(source, __dmul_rn(g.share, around));
}

__device__ inline double larger(double a, double b) { return a > b ? a : b; }

// Sum of `v` and largest of `w` over a warp.
__device__ inline void over_warp(double& v, double& w) {
    v = warp_sum(v);
    for (int offset = 16; offset; offset >>= 1) w = larger(w, __shfl_xor_sync(FULL, w, offset));
}

// The same over a thread block, in thread 0.
template <u32 THREADS>
__device__ inline void over_block(double& v, double& w) {
    __shared__ double sums[THREADS / WARP], tops[THREADS / WARP];
    const u32 thread = threadIdx.y * blockDim.x + threadIdx.x;
    over_warp(v, w);
    if (thread % WARP == 0) sums[thread / WARP] = v, tops[thread / WARP] = w;
    __syncthreads();
    if (thread == 0)
        for (u32 i = 1; i < THREADS / WARP; ++i) v += sums[i], w = larger(w, tops[i]);
    __syncthreads();
}
