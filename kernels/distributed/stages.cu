// Blocks of factors that ranks give each other between the stages of a factorisation. Place i < rows is the inverse
// diagonal block of row i, place rows + e the entry e of U'.
#include "common.cuh"

constexpr u32 THREADS = 256;

__device__ inline double* number(u32 n, u32 bb, const u32* places, u32 rows, double* diagonal, double* upper) {
    const u32 place = places[n / bb];
    return place < rows ? diagonal + (size_t)place * bb + n % bb : upper + (size_t)(place - rows) * bb + n % bb;
}

extern "C" __global__ void __launch_bounds__(THREADS)
read_blocks(u32 count, u32 bb, const u32* __restrict__ places, u32 rows, double* diagonal, double* upper,
            double* __restrict__ out) {
    const u32 n = blockIdx.x * THREADS + threadIdx.x;
    if (n < count) out[n] = *number(n, bb, places, rows, diagonal, upper);
}

extern "C" __global__ void __launch_bounds__(THREADS)
write_blocks(u32 count, u32 bb, const u32* __restrict__ places, u32 rows, double* diagonal, double* upper,
             const double* __restrict__ from) {
    const u32 n = blockIdx.x * THREADS + threadIdx.x;
    if (n < count) *number(n, bb, places, rows, diagonal, upper) = from[n];
}

// Inverse diagonal blocks of other ranks' rows are the identity until they come.
extern "C" __global__ void __launch_bounds__(THREADS)
identity(u32 count, u32 size, const u32* __restrict__ rows, double* __restrict__ diagonal) {
    const u32 n = blockIdx.x * THREADS + threadIdx.x, bb = size * size;
    if (n < count) diagonal[(size_t)rows[n / bb] * bb + n % bb] = n % bb % (size + 1) == 0 ? 1.0 : 0.0;
}
