// Inverses of diagonal blocks: Gauss-Jordan with column pivoting, as on the CPU.
//
// A block without a pivot is told by the step at which there was none; `pivot` is then the best
// candidate relative to its row.
#pragma once
#include "common.cuh"

// A pivot below this part of its row's largest entry counts as zero: a few roundings.
constexpr double SINGULAR = 16.0 * 2.220446049250313e-16;

// Blocks of 2 to 32 by one warp: lane r has row r of the block in registers, so that the search for a
// pivot stays within a lane. Columns do not change places: `mine` becomes the column that was the pivot
// of row r, and a[c] row `mine` of the inverse, in the column whose lane has `mine` = c. Returns NONE, or
// the step without a pivot.
template <u32 N>
__device__ u32 invert_in_warp(double (&a)[N], u32& mine, double& pivot) {
    const u32 lane = threadIdx.x % WARP;
    double row_max = 0.0, poison = 0.0;
#pragma unroll
    for (u32 c = 0; c < N; ++c) {
        row_max = fmax(row_max, fabs(a[c]));
        poison += a[c] * 0.0;
    }
    pivot = 0.0;
    mine = 0;
    if (N == 1) {
        // no row to measure the pivot by: it will do if its inverse is a number
        const bool fails = lane == 0 && !(isfinite(a[0]) && isfinite(1.0 / a[0]));
        a[0] = 1.0 / a[0];
        return __any_sync(FULL, fails) ? 0 : NONE;
    }
    if (__any_sync(FULL, lane < N && poison != 0.0)) return 0;  // a NaN or infinite entry
    u32 used = 0;
#pragma unroll(N <= 4 ? N : 1)
    for (u32 k = 0; k < N; ++k) {
        double best = -1.0, at = 0.0;
        u32 p = 0;
#pragma unroll
        for (u32 c = 0; c < N; ++c) {
            const bool better = !(used >> c & 1) && fabs(a[c]) > best;
            best = better ? fabs(a[c]) : best;
            at = better ? a[c] : at;
            p = better ? c : p;
        }
        // the search is that of lane k; the others made it in vain
        const u32 none = best <= SINGULAR * row_max;
        p = __shfl_sync(FULL, p | none << 16, k);
        if (p >> 16) {
            pivot = __shfl_sync(FULL, row_max > 0.0 ? best / row_max : 0.0, k);
            return k;
        }
        used |= 1u << p;
        const double inverse = __shfl_sync(FULL, 1.0 / at, k);
        double column = 0.0;
#pragma unroll
        for (u32 c = 0; c < N; ++c) column = c == p ? a[c] : column;
        const bool own = lane == k;
        const double factor = own ? inverse : column * inverse;
        if (own) mine = p;
#pragma unroll
        for (u32 c = 0; c < N; ++c) {
            const double row = __shfl_sync(FULL, a[c], k);
            a[c] = c == p ? factor : fma(-row, factor, own ? 0.0 : a[c]);
        }
    }
    return NONE;
}

// Scratch of `invert_in_block`.
struct Inversion {
    double block[BB];
    double pivot_row[BS];
    double pivot_column[BS];
    double row_max[BS];
    u32 swap[BS];
};

// Larger blocks by all threads of a thread block: `s.block`, column-major, becomes its inverse.
template <u32 THREADS>
__device__ u32 invert_in_block(Inversion& s, double& pivot) {
    double* a = s.block;
    const u32 tid = threadIdx.x, lane = tid % WARP;
    pivot = 0.0;
    for (u32 r = tid; r < BS; r += THREADS) {
        double most = 0.0, poison = 0.0;
        for (u32 c = 0; c < BS; ++c) {
            const double v = a[c * BS + r];
            most = fmax(most, fabs(v));
            poison += v * 0.0;
        }
        s.row_max[r] = poison == 0.0 ? most : -1.0;
    }
    __syncthreads();
    for (u32 r = 0; r < BS; ++r)
        if (s.row_max[r] < 0.0) return 0;  // a NaN or infinite entry
    for (u32 k = 0; k < BS; ++k) {
        // every warp finds the pivot for itself: largest in row k, the first of equals
        double best = -1.0;
        u32 p = BS;
        for (u32 c = lane; c < BS; c += WARP) {
            const double v = c >= k ? fabs(a[c * BS + k]) : -1.0;
            if (v > best) best = v, p = c;
        }
        for (int offset = 16; offset; offset >>= 1) {
            const double other = __shfl_xor_sync(FULL, best, offset);
            const u32 q = __shfl_xor_sync(FULL, p, offset);
            if (other > best || (other == best && q < p)) best = other, p = q;
        }
        if (best <= SINGULAR * s.row_max[k]) {
            pivot = s.row_max[k] > 0.0 ? best / s.row_max[k] : 0.0;
            return k;
        }
        __syncthreads();
        // columns k and p change places; the pivot's row and scaled column are kept apart
        const double inverse = 1.0 / a[p * BS + k];
        for (u32 c = tid; c < BS; c += THREADS) {
            const u32 from = c == k ? p : c == p ? k : c;
            s.pivot_row[c] = a[from * BS + k];
            s.pivot_column[c] = (c == k ? 1.0 : a[p * BS + c]) * inverse;
        }
        if (tid == 0) s.swap[k] = p;
        __syncthreads();
        if (p != k) {
            for (u32 r = tid; r < BS; r += THREADS) a[p * BS + r] = a[k * BS + r];
            __syncthreads();
        }
        for (u32 w = tid; w < BB; w += THREADS) {
            const u32 c = w / BS, r = w % BS;
            if (c == k) a[w] = s.pivot_column[r];
            else a[w] = fma(-s.pivot_row[c], s.pivot_column[r], r == k ? 0.0 : a[w]);
        }
        __syncthreads();
    }
    // swapped columns of the block are swapped rows of the inverse
    for (u32 c = tid; c < BS; c += THREADS) {
        for (u32 k = BS; k-- > 0;) {
            const u32 p = s.swap[k];
            const double v = a[c * BS + k];
            a[c * BS + k] = a[c * BS + p];
            a[c * BS + p] = v;
        }
    }
    __syncthreads();
    return NONE;
}
