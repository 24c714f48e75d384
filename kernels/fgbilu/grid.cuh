// A matrix of seven points on a box as FGBILU has it (Luo et al. 2015, Figure 2): seven arrays of BS x BS
// blocks, column-major, one block per point in each; i is fastest. Couplings across the faces of the box
// are zero and never read.
#pragma once
#include "common.cuh"
#include "invert.cuh"

// Arrays in the order of the columns they stand for. The coupling back from the neighbour of array c is
// its array 6 - c.
constexpr u32 ALPHA = 0, BETA = 1, GAMMA = 2, DELTA = 3, EPSILON = 4, ZETA = 5, ETA = 6;

// Steps of a dot product that are unrolled.
constexpr u32 UNROLLED = BS <= 8 ? BS : 4;

struct Grid {
    u32 ni, nj, nk;
    const u32* order;  // points by hyperplanes: the mapping W of Algorithm 1
    double* block;     // the seven arrays
    double* d;         // diagonal blocks, inverted by the factorisation
};

__device__ inline u32 points(const Grid& g) { return g.ni * g.nj * g.nk; }

__device__ inline double* block(const Grid& g, u32 array, u32 point) {
    return g.block + ((size_t)array * points(g) + point) * BB;
}

__device__ inline double* diagonal(const Grid& g, u32 point) { return g.d + (size_t)point * BB; }

// The point that array c of `point` couples with, or NONE beyond the box.
__device__ inline u32 neighbour(const Grid& g, u32 point, u32 array) {
    const u32 i = point % g.ni, j = point / g.ni % g.nj, k = point / g.ni / g.nj;
    switch (array) {
        case ALPHA: return k > 0 ? point - g.ni * g.nj : NONE;
        case BETA: return j > 0 ? point - g.ni : NONE;
        case GAMMA: return i > 0 ? point - 1 : NONE;
        case EPSILON: return i + 1 < g.ni ? point + 1 : NONE;
        case ZETA: return j + 1 < g.nj ? point + g.ni : NONE;
        case ETA: return k + 1 < g.nk ? point + g.ni * g.nj : NONE;
        default: return point;
    }
}

// <a^{u,:}, b^{:,v}> of two blocks.
__device__ inline double dot(const double* a, const double* b, u32 u, u32 v) {
    double sum = 0.0;
#pragma unroll UNROLLED
    for (u32 w = 0; w < BS; ++w) sum = fma(a[w * BS + u], b[v * BS + w], sum);
    return sum;
}

// <a^{u,:}, x> of a block and a segment.
__device__ inline double dot(const double* a, const double* x, u32 u) {
    double sum = 0.0;
#pragma unroll UNROLLED
    for (u32 w = 0; w < BS; ++w) sum = fma(a[w * BS + u], x[w], sum);
    return sum;
}

// Row u of the couplings of arrays first..last with a vector.
__device__ inline double couplings(const Grid& g, u32 point, u32 first, u32 last, const double* x, u32 u) {
    double sum = 0.0;
    for (u32 c = first; c <= last; ++c) {
        const u32 there = neighbour(g, point, c);
        if (there != NONE) sum += dot(block(g, c, point), x + (size_t)there * BS, u);
    }
    return sum;
}

// Whether `pivot` of row r can be divided by: it counts as zero as other blocks' pivots do, `scale` being
// the largest entry of the row in delta. The lowest point and row where it cannot is kept in `error`.
__device__ inline void check(double pivot, double scale, u32 point, u32 r, u64* error) {
    if (!(isfinite(pivot) && fabs(pivot) > SINGULAR * scale)) atomicMin(error, (u64)point << 32 | r);
}
