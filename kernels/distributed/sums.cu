// Sums over the subdomains of a rank. A subdomain is cut into chunks, counted from its own first entry; a thread
// block sums a chunk, and the sums of the chunks are added up in their order. So a sum depends on the numbers of
// its subdomain alone, not on the others that the rank has.
#include "common.cuh"
#include "vectors/basis.cuh"

constexpr u32 THREADS = 256;
constexpr u32 WARPS = THREADS / WARP;

// Sums of V numbers of each thread: sums[j * gridDim.x + chunk] for those below `m`. All threads call it.
template <u32 V>
__device__ inline void sum_up(double (&sum)[V], u32 m, double* sums) {
    __shared__ double of_warps[WARPS][V];
#pragma unroll
    for (u32 k = 0; k < V; ++k) {
        sum[k] = warp_sum(sum[k]);
        if (threadIdx.x % WARP == 0) of_warps[threadIdx.x / WARP][k] = sum[k];
    }
    __syncthreads();
    if (threadIdx.x >= V || threadIdx.x >= m) return;
    double s = 0.0;
    for (u32 warp = 0; warp < WARPS; ++warp) s += of_warps[warp][threadIdx.x];
    sums[(size_t)threadIdx.x * gridDim.x + blockIdx.x] = s;
}

// v_j . w over each chunk, for the V vectors from number blockIdx.y * V on, those below m. Entries of `basis`
// beyond m repeat the last one.
template <u32 V>
__device__ inline void chunk_dots(const uint2* chunks, u32 m, const Basis& basis, const double* w, double* sums) {
    const uint2 chunk = chunks[blockIdx.x];
    const u32 first = blockIdx.y * V;
    const double* v[V];
#pragma unroll
    for (u32 k = 0; k < V; ++k) v[k] = basis.v[first + k];
    double sum[V] = {};
#pragma unroll 4
    for (u32 i = chunk.x + threadIdx.x; i < chunk.y; i += THREADS) {
        const double b = w[i];
#pragma unroll
        for (u32 k = 0; k < V; ++k) sum[k] = fma(v[k][i], b, sum[k]);
    }
    sum_up(sum, m - first, sums + (size_t)first * gridDim.x);
}

extern "C" __global__ void __launch_bounds__(THREADS)
dot(const uint2* __restrict__ chunks, u32 m, const __grid_constant__ Basis basis,
    const double* __restrict__ w, double* __restrict__ sums) {
    chunk_dots<1>(chunks, m, basis, w, sums);
}

extern "C" __global__ void __launch_bounds__(THREADS)
dots(const uint2* __restrict__ chunks, u32 m, const __grid_constant__ Basis basis,
     const double* __restrict__ w, double* __restrict__ sums) {
    chunk_dots<4>(chunks, m, basis, w, sums);
}

// w -= sum_j coef_j v_j for j < m, and w . w over each chunk.
extern "C" __global__ void __launch_bounds__(THREADS)
axpy(const uint2* __restrict__ chunks, u32 m, const __grid_constant__ Basis basis,
     const __grid_constant__ Numbers coef, double* __restrict__ w, double* __restrict__ sums) {
    const uint2 chunk = chunks[blockIdx.x];
    double sum[1] = {};
    for (u32 i = chunk.x + threadIdx.x; i < chunk.y; i += THREADS) {
        double s = w[i];
#pragma unroll 8
        for (u32 j = 0; j < m; ++j) s = fma(-coef.v[j], basis.v[j][i], s);
        w[i] = s;
        sum[0] = fma(s, s, sum[0]);
    }
    sum_up(sum, 1, sums);
}

// The chunks of subdomain s are those from first[s] to first[s + 1] of `chunks`: out[j * parts + s] is the sum of
// theirs of number j. One warp for each s (x) and j (y).
extern "C" __global__ void __launch_bounds__(WARP)
add_up(const u32* __restrict__ first, u32 chunks, const double* __restrict__ sums, double* __restrict__ out) {
    const u32 s = blockIdx.x, j = blockIdx.y, end = first[s + 1];
    double sum = 0.0;
    for (u32 c = first[s] + threadIdx.x; c < end; c += WARP) sum += sums[(size_t)j * chunks + c];
    sum = warp_sum(sum);
    if (threadIdx.x == 0) out[(size_t)j * gridDim.x + s] = sum;
}
