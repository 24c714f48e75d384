// A launch that multiplies: a warp for each row that needs one, and one for each 32 ROWS places.
#pragma once
#include "spmv/formats.cuh"

// The choices that `tune` makes; ROWS and UNROLL are those of a format.
#ifndef THREADS
#define THREADS 256
#endif
// Threads of a multiprocessor: the more, the fewer registers, and so loads in flight, each has.
#ifndef RESIDENT
#define RESIDENT 1024
#endif
// Streamed, Cached or Passing.
#ifndef LOADS
#define LOADS 0
#endif

#if LOADS == 0
typedef Streamed Loads;
#elif LOADS == 1
typedef Cached Loads;
#else
typedef Passing Loads;
#endif

__device__ inline u32 warp_number() { return blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP; }

__device__ inline void put(const double* __restrict__ b, double* __restrict__ y, u32 i, double s) {
    y[i] = b ? b[i] - s : s;
}

// `places(base, sum)` yields the sums of the places from `base` on and which are to be kept. Rows with a warp
// of their own begin first, since they take longest.
template <u32 R, class A, class Places>
__device__ inline void multiply(const A& a, u32 rows, const double* __restrict__ x,
                                const double* __restrict__ b, double* __restrict__ y, Places places) {
    const u32 warp = warp_number(), lane = lane_number(), owns = own_rows(a);
    if (warp < owns) {
        const double s = own_product<Loads>(a, warp, x);
        if (lane == 0) put(b, y, own_row(a, warp), s);
        return;
    }
    const u32 base = (warp - owns) * WARP * R;
    if (base >= rows) return;
    double sum[R] = {};
    const u32 mine = places(base, sum);
    const u32 i = base + lane * R;
    if constexpr (R % 2 == 0)
        if (mine == (1u << R) - 1) {
#pragma unroll
            for (u32 r = 0; r < R; r += 2) {
                double2 two = make_double2(sum[r], sum[r + 1]);
                if (b) {
                    const double2 from = *(const double2*)(b + i + r);
                    two.x = from.x - two.x, two.y = from.y - two.y;
                }
                *(double2*)(y + i + r) = two;
            }
            return;
        }
#pragma unroll
    for (u32 r = 0; r < R; ++r)
        if (mine >> r & 1) put(b, y, i + r, sum[r]);
}
