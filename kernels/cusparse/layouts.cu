// What the vendor's routines are given: values in their layouts.
#include "common.cuh"

// Entries of A, in scalar rows, into blocks that follow one pattern with its diagonal, as cuSPARSE
// factorises them; those outside the pattern are dropped. One thread per scalar row. The blocks must
// be zero.
extern "C" __global__ void __launch_bounds__(256)
scatter_whole(u32 rows, const u32* __restrict__ row_ptr, const u32* __restrict__ col_ind,
              const double* __restrict__ val, double shift, Pattern whole, double* blocks) {
    const u32 row = blockIdx.x * 256 + threadIdx.x;
    if (row >= rows) return;
    const u32 i = row / BS, r = row % BS, begin = whole.row_ptr[i], end = whole.row_ptr[i + 1];
    const u32 diagonal = find(whole.col_ind, begin, end, i);
    if (diagonal != NONE) blocks[(size_t)diagonal * BB + r * BS + r] = shift;
    for (u32 e = row_ptr[row]; e < row_ptr[row + 1]; ++e) {
        const u32 at = find(whole.col_ind, begin, end, col_ind[e] / BS);
        if (at != NONE) blocks[(size_t)at * BB + col_ind[e] % BS * BS + r] += val[e];
    }
}

// A strict triangle with an identity block put into each row: after its last block, or `first`, as
// the triangular solves of cuSPARSE want it. One warp per block row.
extern "C" __global__ void __launch_bounds__(256)
insert_identity(u32 rows, const u32* __restrict__ row_ptr, const double* __restrict__ blocks,
                u32 first, double* __restrict__ out) {
    const u32 i = (blockIdx.x * 256 + threadIdx.x) / WARP, lane = threadIdx.x % WARP;
    if (i >= rows) return;
    const u32 begin = row_ptr[i], count = row_ptr[i + 1] - begin;
    const double* const from = blocks + (size_t)begin * BB;
    double* const to = out + (size_t)(begin + i) * BB;
    double* const identity = first ? to : to + (size_t)count * BB;
    double* const rest = first ? to + BB : to;
    for (u32 w = lane; w < BB; w += WARP) identity[w] = w / BS == w % BS ? 1.0 : 0.0;
    for (size_t w = lane; w < (size_t)count * BB; w += WARP) rest[w] = from[w];
}

// Blocks, stored column by column, as rows of points: the entries of a row of points lie side by side. One warp
// per block row.
extern "C" __global__ void __launch_bounds__(256)
take_apart(u32 rows, const u32* __restrict__ row_ptr, const double* __restrict__ blocks,
           double* __restrict__ out) {
    const u32 i = (blockIdx.x * 256 + threadIdx.x) / WARP, lane = threadIdx.x % WARP;
    if (i >= rows) return;
    const u32 width = (row_ptr[i + 1] - row_ptr[i]) * BS;
    const size_t first = (size_t)row_ptr[i] * BB;
    for (u32 r = 0; r < BS; ++r)
        for (u32 w = lane; w < width; w += WARP)
            out[first + (size_t)r * width + w] = blocks[first + (size_t)w * BS + r];
}
