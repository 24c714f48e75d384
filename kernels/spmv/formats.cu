// y = A x and r = b - A x in HYB, SELL and DIA.
#include "spmv/multiply.cuh"

#ifndef ROWS
#define ROWS 1
#endif
#ifndef UNROLL
#define UNROLL 8
#endif

// HYB_ALONE, SELL_ALONE or DIA_ALONE leave the others out.
#if !SELL_ALONE && !DIA_ALONE
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT / THREADS)
hyb(const __grid_constant__ Hyb a, const double* __restrict__ x, const double* __restrict__ b, double* __restrict__ y) {
    multiply<ROWS>(a, a.rows, x, b, y, [&](u32 base, double (&sum)[ROWS]) {
        return product<ROWS, Loads, UNROLL>(a, base, x, sum);
    });
}
#endif

#if !HYB_ALONE && !SELL_ALONE
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT / THREADS)
dia(const __grid_constant__ Dia a, const double* __restrict__ x, const double* __restrict__ b, double* __restrict__ y) {
    multiply<ROWS>(a, a.rows, x, b, y, [&](u32 base, double (&sum)[ROWS]) {
        return product<ROWS, Loads, UNROLL>(a, base, x, sum);
    });
}
#endif

#if !HYB_ALONE && !DIA_ALONE
// The longest rows may be the last: their slices come first.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT / THREADS)
sell(const __grid_constant__ Sell a, const double* __restrict__ x, const double* __restrict__ b, double* __restrict__ y) {
    const u32 slices = (a.rows + WARP - 1) / WARP, warp = warp_number();
    if (warp >= slices) return;
    const u32 base = (slices - 1 - warp) * WARP;
    double sum[1] = {};
    if (product<1, Loads, UNROLL>(a, base, x, sum)) put(b, y, row_at(a, base + lane_number()), sum[0]);
}
#endif
