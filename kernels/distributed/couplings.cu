// Rows of factors of a rank that are solved with group by group: what a group's rows owe to rows of other groups, and
// the group's own part of the factors.
#include "stored.cuh"

constexpr u32 LANES = BS < 32 ? BS : 32;
constexpr u32 TILES = (BS + LANES - 1) / LANES;
constexpr u32 THREADS = 128;
constexpr u32 WARPS = THREADS / WARP;
// Block rows of a warp.
constexpr u32 ROWS = WARP / LANES;

// to_i = from_i - C x, or D_i from_i - C x where there is a `diagonal`, for the rows that are listed. x has `own_rows`
// block rows in `own`, and more in `ghosts`. `to` may be `from`. A lane has a row of a block, and one more every 32.
extern "C" __global__ void __launch_bounds__(THREADS)
couple(u32 count, const u32* __restrict__ rows, const u32* __restrict__ row_ptr, const u32* __restrict__ columns,
       const Stored* __restrict__ val, const Stored* __restrict__ diagonal, const double* from, const double* own,
       const double* ghosts, u32 own_rows, double* to) {
    const u32 lane = threadIdx.x % WARP, g = lane / LANES, r = lane % LANES;
    const u32 i = (blockIdx.x * WARPS + threadIdx.x / WARP) * ROWS + g;
    const bool active = g < ROWS && i < count;
    const size_t at = active ? (size_t)rows[i] * BS : 0;
    double sum[TILES] = {};
    if (active) {
#pragma unroll
        for (u32 t = 0; t < TILES; ++t) {
            const u32 row = r + t * LANES;
            if (row >= BS) continue;
            if (!diagonal) {
                sum[t] = from[at + row];
                continue;
            }
            const Stored* const d = diagonal + (size_t)i * BB + row;
#pragma unroll(BS <= 8 ? BS : 8)
            for (u32 c = 0; c < BS; ++c) sum[t] = fma((double)d[c * BS], from[at + c], sum[t]);
        }
        for (u32 e = row_ptr[i], end = row_ptr[i + 1]; e < end; ++e) {
            const u32 j = columns[e];
            const double* const x = j < own_rows ? own + (size_t)j * BS : ghosts + (size_t)(j - own_rows) * BS;
            const Stored* const a = val + (size_t)e * BB + r;
#pragma unroll(BS <= 8 ? BS : 8)
            for (u32 c = 0; c < BS; ++c) {
#pragma unroll
                for (u32 t = 0; t < TILES; ++t)
                    if (TILES == 1 || r + t * LANES < BS)
                        sum[t] = fma(-(double)a[c * BS + t * LANES], x[c], sum[t]);
            }
        }
    }
    __syncwarp();  // all lanes of a row have read its block before one of them writes it
    if (!active) return;
#pragma unroll
    for (u32 t = 0; t < TILES; ++t)
        if (r + t * LANES < BS) to[at + r + t * LANES] = sum[t];
}

// Numbers of the blocks that are listed.
template <typename Number>
__device__ void pick(u64 numbers, const u32* __restrict__ blocks, const double* __restrict__ from,
                     Number* __restrict__ to) {
    const u64 n = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (n < numbers) to[n] = (Number)from[(u64)blocks[n / BB] * BB + n % BB];
}

extern "C" __global__ void __launch_bounds__(THREADS)
pick_blocks(u64 numbers, const u32* __restrict__ blocks, const double* __restrict__ from, double* __restrict__ to) {
    pick(numbers, blocks, from, to);
}

extern "C" __global__ void __launch_bounds__(THREADS)
pick_stored(u64 numbers, const u32* __restrict__ blocks, const double* __restrict__ from, Stored* __restrict__ to) {
    pick(numbers, blocks, from, to);
}

// Inverse diagonal blocks of the rows that are listed; the identity for NONE.
extern "C" __global__ void __launch_bounds__(THREADS)
pick_diagonal(u64 numbers, const u32* __restrict__ rows, const Stored* __restrict__ from, Stored* __restrict__ to) {
    const u64 n = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (n >= numbers) return;
    const u32 row = rows[n / BB], k = n % BB;
    to[n] = row == NONE ? (Stored)(k % (BS + 1) == 0) : from[(u64)row * BB + k];
}
