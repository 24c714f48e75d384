// y = A x and r = b - A x in Bdia, for OFFSETS blocks of each cell.
#include "spmv/multiply.cuh"

#ifndef OFFSETS
#define OFFSETS 7
#endif
// Whether the blocks of cells with an odd number lie half a block further right.
#ifndef HALF_SHIFT
#define HALF_SHIFT 0
#endif
#ifndef ROWS
#define ROWS (BS % 2 ? 1 : 2)
#endif
// Blocks in flight at a time.
#ifndef UNROLL
#define UNROLL (BS <= 2 ? 7 : BS <= 4 ? 2 : 1)
#endif

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT / THREADS)
bdia(const __grid_constant__ Bdia a, const double* __restrict__ x, const double* __restrict__ b, double* __restrict__ y) {
    multiply<ROWS>(a, a.rows, x, b, y, [&](u32 base, double (&sum)[ROWS]) {
        return product<ROWS, Loads, UNROLL, OFFSETS, HALF_SHIFT>(a, base, x, sum);
    });
}
