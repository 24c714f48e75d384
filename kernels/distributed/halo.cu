// What a rank does with values of others, the ghosts.
#include "common.cuh"

constexpr u32 THREADS = 256;

// to_i is the unknown places[i] of `from`, which has `own`, and behind its end one of the ghosts.
extern "C" __global__ void __launch_bounds__(THREADS)
extend(u32 n, const u32* __restrict__ places, u32 own, const double* __restrict__ from,
       const double* __restrict__ ghosts, double* __restrict__ to) {
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    const u32 at = places[i];
    to[i] = at < own ? from[at] : ghosts[at - own];
}

// y += sign C g for the rows of C that are listed; one thread for each, which adds in the order of the columns.
extern "C" __global__ void __launch_bounds__(THREADS)
add_coupling(u32 n, const u32* __restrict__ rows, const u32* __restrict__ row_ptr, const u32* __restrict__ columns,
             const double* __restrict__ values, double sign, const double* __restrict__ ghosts,
             double* __restrict__ y) {
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    double sum = 0.0;
    for (u32 e = row_ptr[i], end = row_ptr[i + 1]; e < end; ++e) sum = fma(values[e], ghosts[columns[e]], sum);
    y[rows[i]] += sign * sum;
}
