// Products of blocks by the tensor cores, 8 x 4 by 4 x 8 numbers at a time, and what follows the last
// update of a row of blocks.
#pragma once
#include "absent.cuh"
#include "ilu/rows.cuh"
#include "invert.cuh"

// c -= or += a b, spread over the lanes: a(lane / 4, lane % 4), b(lane % 4, lane / 4),
// c(lane / 4, 2 (lane % 4) + {0, 1}).
__device__ inline void multiply(double& c0, double& c1, double a, double b) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(c0), "+d"(c1)
                 : "d"(a), "d"(b));
#else
    const u32 lane = threadIdx.x % WARP;
    for (u32 k = 0; k < 4; ++k) {
        const double x = __shfl_sync(FULL, a, lane / 4 * 4 + k);
        c0 = fma(x, __shfl_sync(FULL, b, lane % 4 * 8 + k), c0);
        c1 = fma(x, __shfl_sync(FULL, b, lane % 4 * 8 + 4 + k), c1);
    }
#endif
}

// Steps of a product over the columns of a block.
constexpr u32 UP4 = (BS + 3) / 4;

// The lane's part of rows 8 m.. and columns 4 n.. of a block in work, as left operand.
__device__ inline double left(const double* block, u32 m, u32 n) {
    const u32 r = 8 * m + threadIdx.x % WARP / 4, c = 4 * n + threadIdx.x % 4;
    return r < BS && c < BS ? block[r * STRIDE + c] : 0.0;
}

// Inverse of the diagonal block, in place, by all of the team. Returns whether there is one; if not,
// the block is filled with the best pivot.
template <u32 TEAM>
__device__ inline void invert(const Row& row, double* w, u32 t, double* scratch, const Matrix& a, u64* error) {
    double* const block = w + (size_t)row.lower * BLOCK;
    const bool no_diagonal = without_diagonal(a, row.i);
    double pivot = 0.0;
    u32 step = NONE;
    if constexpr (BS <= 32) {
        if (t < WARP) {
            using S = Spread<BS>;
            double x[S::EACH];
            u32 mine, column;
            const u32 r = S::row();
#pragma unroll
            for (u32 e = 0; e < S::EACH; ++e) {
                const u32 c = S::column(e);
                x[e] = !S::inside(e) ? 0.0 : !no_diagonal ? block[r * STRIDE + c] : r == c ? a.shift : 0.0;
            }
            __syncwarp();
            step = invert_in_warp<BS>(x, mine, column, pivot);
#pragma unroll
            for (u32 e = 0; e < S::EACH; ++e) {
                const u32 c = __shfl_sync(FULL, column, S::column(e));
                if (!S::inside(e)) continue;
                if (step == NONE) block[mine * STRIDE + c] = x[e];
                else block[r * STRIDE + S::column(e)] = pivot;
            }
        }
    } else {
        Inversion& s = *reinterpret_cast<Inversion*>(scratch);
        for (u32 x = t; x < BB; x += TEAM) {
            const u32 c = x / BS, r = x % BS;
            s.block[x] = !no_diagonal ? block[r * STRIDE + c] : r == c ? a.shift : 0.0;
        }
        __syncthreads();
        step = invert_in_block<TEAM>(s, pivot);
        for (u32 x = t; x < BB; x += TEAM)
            block[x % BS * STRIDE + x / BS] = step == NONE ? s.block[x] : pivot;
    }
    if (t == 0 && step != NONE) tell(error, row.i, step);
    team_sync<TEAM>();
}

// D_i, which is needed last.
template <u32 TEAM>
__device__ inline void publish_diagonal(const Row& row, const double* w, u32 t, double* diagonal) {
    const double* const block = w + (size_t)row.lower * BLOCK;
    for (u32 x = t; x < BB; x += TEAM)
        store_relaxed(diagonal + (size_t)row.i * BB + x, arrived(block[x % BS * STRIDE + x / BS]));
}
