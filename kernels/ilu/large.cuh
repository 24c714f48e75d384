// Rows of large blocks, or rows without a list of updates: one thread block per row.
#pragma once
#include "absent.cuh"
#include "ilu/products.cuh"
#include "ilu/rows.cuh"
#include "invert.cuh"

constexpr u32 THREADS = BS <= 16 ? 128 : 256;
constexpr u32 TEAMS = 1;
constexpr u32 TEAMS_OF_WARP = 1;
constexpr u32 TEAM_WARPS = THREADS / WARP;
// Parts of 8 rows or columns of a block.
constexpr u32 UP8 = (BS + 7) / 8;
constexpr u32 RESIDENT = BS <= 16 ? 4 : BS < 32 ? 2 : 1;
constexpr u32 SCRATCH = 2 * sizeof(Task) + (BS <= 32 ? 0 : sizeof(Inversion));

// Columns 8 m.. of a block of U' or D that other rows made, as right operand; waits for it.
__device__ inline void right(double (&b)[UP4], const double* block, u32 m) {
    const u32 c = 8 * m + threadIdx.x % WARP / 4, k = threadIdx.x % 4;
#pragma unroll
    for (u32 n = 0; n < UP4; ++n)
        b[n] = c < BS && k + 4 * n < BS ? load_relaxed(block + c * BS + k + 4 * n) : 0.0;
    bool waiting = true;
    while (waiting) {
        waiting = false;
#pragma unroll
        for (u32 n = 0; n < UP4; ++n) load_if_absent(b[n], block + c * BS + k + 4 * n);
#pragma unroll
        for (u32 n = 0; n < UP4; ++n) waiting |= absent(b[n]);
    }
    __syncwarp();
}

// Hands columns 8 m.. of `block` times b to `take(row, column, number)`.
template <class Take>
__device__ inline void product(const double* block, const double (&b)[UP4], u32 m, Take take) {
    const u32 lane = threadIdx.x % WARP, c = 8 * m + lane % 4 * 2;
#pragma unroll 1
    for (u32 n = 0; n < UP8; ++n) {
        double c0 = 0.0, c1 = 0.0;
#pragma unroll
        for (u32 k = 0; k < UP4; ++k) multiply(c0, c1, left(block, n, k), b[k]);
        const u32 r = 8 * n + lane / 4;
        if (r < BS && c < BS) take(r, c, c0);
        if (r < BS && c + 1 < BS) take(r, c + 1, c1);
    }
}

// The products of a row are shared out among the warps by columns of 8.
__device__ inline void large_row(const Task& row, double* w, double* scratch, const Matrix& a,
                                 const Pattern& lower, const Pattern& upper, const Factors& f, u64* error) {
    const u32 t = threadIdx.x, warp = t / WARP, lane = t % WARP;
    load_row<THREADS>(row, w, t, a);
    if (t == 0) gate(row, f.diagonal);
    __syncthreads();
    for (u32 e = 0; e < row.lower; ++e) {
        const u32 p = lower.col_ind[row.l0 + e], q0 = upper.row_ptr[p], q1 = upper.row_ptr[p + 1];
        const double* const multiplier = w + (size_t)e * BLOCK;
        for (u32 x = warp; x < (q1 - q0) * UP8; x += TEAM_WARPS) {
            const u32 q = q0 + x / UP8, block = row.block(upper.col_ind[q], lower, upper);
            if (block == NONE) continue;
            double b[UP4];
            right(b, f.upper + (size_t)q * BB, x % UP8);
            double* const to = w + (size_t)block * BLOCK;
            product(multiplier, b, x % UP8, [&](u32 r, u32 c, double v) { to[r * STRIDE + c] -= v; });
        }
        __syncthreads();
    }
    invert<THREADS>(row, w, t, scratch, a, error);
    const double* const d = w + (size_t)row.lower * BLOCK;
    for (u32 x = warp; x < row.upper * UP8; x += TEAM_WARPS) {
        const double* const block = d + (size_t)(1 + x / UP8) * BLOCK;
        const u32 c = 8 * (x % UP8) + lane / 4, k = lane % 4;
        double b[UP4];
#pragma unroll
        for (u32 n = 0; n < UP4; ++n)
            b[n] = c < BS && k + 4 * n < BS ? block[(k + 4 * n) * STRIDE + c] : 0.0;
        double* const to = f.upper + (size_t)(row.u0 + x / UP8) * BB;
        product(d, b, x % UP8, [&](u32 r, u32 c, double v) { store_relaxed(to + c * BS + r, arrived(v)); });
    }
    publish_diagonal<THREADS>(row, w, t, f.diagonal);
    for (u32 x = warp; x < row.lower * UP8; x += TEAM_WARPS) {
        const u32 e = x / UP8;
        double b[UP4];
        right(b, f.diagonal + (size_t)lower.col_ind[row.l0 + e] * BB, x % UP8);
        double* const to = f.lower + (size_t)(row.l0 + e) * BB;
        product(w + (size_t)e * BLOCK, b, x % UP8, [&](u32 r, u32 c, double v) { to[c * BS + r] = v; });
    }
    __syncthreads();  // the next row takes this one's place
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
factor(Rows rows, const uint2*, Matrix a, Pattern lower, Pattern upper, Factors f, u64* error) {
    extern __shared__ double2 memory[];
    Task* const slots = reinterpret_cast<Task*>(memory);
    double* const scratch = reinterpret_cast<double*>(slots + 2);
    double* const shared = reinterpret_cast<double*>(memory) + (SCRATCH + 15) / 16 * 2;
    for_tasks<THREADS>(rows, blockIdx.x, gridDim.x, slots, threadIdx.x, [&](const Task& row) {
        large_row(row, room(row, shared, rows), scratch, a, lower, upper, f, error);
    });
}
