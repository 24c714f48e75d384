// Inverses of diagonal blocks: Gauss-Jordan with column pivoting, as on the CPU.
//
// A block without a pivot is told by the step at which there was none; `pivot` is then the best
// candidate relative to its row.
#pragma once
#include "common.cuh"

// A pivot below this part of its row's largest entry counts as zero: a few roundings.
constexpr double SINGULAR = 16.0 * 2.220446049250313e-16;

// How a block of N <= 32 is spread over the lanes of a warp: each row over OF_ROW of them, which have every
// OF_ROW-th column.
__device__ constexpr u32 power_of_two(u32 least) {
    u32 p = 1;
    while (p < least) p *= 2;
    return p;
}
template <u32 N>
struct Spread {
    static constexpr u32 OF_ROW = N > 16 ? 1 : WARP / power_of_two(N), EACH = (N + OF_ROW - 1) / OF_ROW;

    __device__ static u32 row() { return threadIdx.x % WARP / OF_ROW; }
    __device__ static u32 column(u32 e) { return threadIdx.x % OF_ROW + OF_ROW * e; }
    __device__ static bool inside(u32 e) { return row() < N && column(e) < N; }
};

// yes ? a : b, which the compiler otherwise takes for a look into an array in memory.
__device__ inline double either(bool yes, double a, double b) {
    double v;
    asm("{\n"
        ".reg .pred yes;\n"
        "setp.ne.u32 yes, %3, 0;\n"
        "selp.f64 %0, %1, %2, yes;\n"
        "}"
        : "=d"(v)
        : "d"(a), "d"(b), "r"((u32)yes));
    return v;
}

__device__ inline u32 warp_max(u32 v) {
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(FULL, v);
#else
    for (int offset = 16; offset; offset >>= 1) v = max(v, __shfl_xor_sync(FULL, v, offset));
    return v;
#endif
}

// Blocks of up to 32 by one warp; entries outside the block are zero. Columns do not change places: the
// row of a lane becomes row `mine` of the inverse, and column c goes to where lane c says: `step`. Returns
// NONE, or the step without a pivot.
//
// Candidates are compared by exponent and 15 bits: the pivot may be smaller than the largest by 2^-15.
template <u32 N>
__device__ u32 invert_in_warp(double (&a)[Spread<N>::EACH], u32& mine, u32& step, double& pivot) {
    using S = Spread<N>;
    constexpr u32 OF_ROW = S::OF_ROW, EACH = S::EACH;
    const u32 row = S::row(), across = threadIdx.x % OF_ROW;
    double row_max = 0.0, poison = 0.0;
#pragma unroll
    for (u32 e = 0; e < EACH; ++e) {
        row_max = fmax(row_max, fabs(a[e]));
        poison += a[e] * 0.0;
    }
    pivot = 0.0;
    mine = step = 0;
    if (N == 1) {
        // no row to measure the pivot by: it will do if its inverse is a number
        const bool fails = threadIdx.x % WARP == 0 && !(isfinite(a[0]) && isfinite(1.0 / a[0]));
        a[0] = 1.0 / a[0];
        return __any_sync(FULL, fails) ? 0 : NONE;
    }
    if (__any_sync(FULL, poison != 0.0)) return 0;  // a NaN or infinite entry
#pragma unroll
    for (u32 offset = 1; offset < OF_ROW; offset *= 2)
        row_max = fmax(row_max, __shfl_xor_sync(FULL, row_max, offset));
    u32 used = 0;
#pragma unroll(N <= 8 ? N : 1)
    for (u32 k = 0; k < N; ++k) {
        const bool own = row == k;
        u32 best = 0;
#pragma unroll
        for (u32 e = 0; e < EACH; ++e) {
            const u32 c = S::column(e), size = __double2hiint(a[e]) & 0x7fffffe0;
            if (own && c < N && !(used >> c & 1)) best = max(best, size | (31 - c));
        }
        const u32 p = 31 - warp_max(best) % 32;
        used |= 1u << p;
        double held = a[0];
#pragma unroll
        for (u32 e = 1; e < EACH; ++e) held = OF_ROW == 1 ? (p == e ? a[e] : held) : either(p / OF_ROW == e, a[e], held);
        const double column = OF_ROW == 1 ? held : __shfl_sync(FULL, held, row * OF_ROW + p % OF_ROW);
        const double at = __shfl_sync(FULL, held, k * OF_ROW + p % OF_ROW);
        const double largest = __shfl_sync(FULL, row_max, k * OF_ROW);
        if (fabs(at) <= SINGULAR * largest) {
            pivot = largest > 0.0 ? fabs(at) / largest : 0.0;
            return k;
        }
        const double inverse = 1.0 / at;
        const double factor = own ? inverse : column * inverse;
        if (own) mine = p;
        if (threadIdx.x % WARP == p) step = k;
#pragma unroll
        for (u32 e = 0; e < EACH; ++e) {
            const bool there = S::column(e) == p;
            const double above = __shfl_sync(FULL, a[e], k * OF_ROW + across);
            a[e] = there ? factor : fma(-above, factor, own ? 0.0 : a[e]);
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
