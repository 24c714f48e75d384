// Rows of a block ILU factorisation: what they are made of, and what teams of any size do with them.
#pragma once
#include "absent.cuh"
#include "common.cuh"

// Lanes that work on a row of blocks of one.
#ifndef LANES
#define LANES 8
#endif
// Warps that work on a row of blocks of 2 to 8.
#ifndef WARPS
#define WARPS 1
#endif
// Jobs of a row whose operands are fetched together, while those before them are worked off.
#ifndef AHEAD
#define AHEAD (BS == 1 ? 6 : BS <= 4 ? 6 : BS == 8 ? 4 : 3)
#endif
// Whether the targets of updates are searched for, not listed beforehand: for large blocks, which make
// up for it, and for patterns whose list would be too large.
#ifndef SEARCHED
#define SEARCHED (BS > 8)
#endif

// A block in work is stored by rows, in pairs of columns.
constexpr u32 STRIDE = BS == 1 ? 1 : (BS + 1) / 2 * 2;
constexpr u32 BLOCK = BS * STRIDE;

struct Factors {
    double* lower;
    double* diagonal;
    double* upper;
};

// What is factorised: A by scalar rows, a number added to its diagonal, rows without a diagonal entry.
struct Matrix {
    const u32* row_ptr;
    const u32* col_ind;
    const double* val;
    const u32* absent;
    u32 n_absent;
    double shift;
};

// Rows in the order of the levels, in groups of the teams of a warp: NONE fills up the last group of a
// level. Rows of up to `held` blocks find room in shared memory; the others have theirs at block
// spilled[i] of `spill`. Beside it is room for `listed` updates.
struct Rows {
    const u32* order;
    u32 count;
    u32 held;
    u32 listed;
    const u32* spilled;
    double* spill;
};

// One row of both patterns. Its blocks are numbered from the left: L, diagonal, U.
struct Row {
    u32 i, l0, lower, u0, upper;

    __device__ Row(u32 row, const Pattern& l, const Pattern& u) : i(row), l0(0), lower(0), u0(0), upper(0) {
        if (i == NONE) return;
        l0 = l.row_ptr[i], lower = l.row_ptr[i + 1] - l0;
        u0 = u.row_ptr[i], upper = u.row_ptr[i + 1] - u0;
    }

    __device__ u32 blocks() const { return i == NONE ? 0 : lower + 1 + upper; }

    // Number of the block in column j, or NONE.
    __device__ u32 block(u32 j, const Pattern& l, const Pattern& u) const {
        if (j == i) return lower;
        const bool below = j < i;
        const u32 from = below ? l0 : u0;
        const u32 at = find(below ? l.col_ind : u.col_ind, from, from + (below ? lower : upper), j);
        return at == NONE ? NONE : at - from + (below ? 0 : lower + 1);
    }
};

template <u32 TEAM>
__device__ inline void team_sync() {
    if (TEAM <= WARP) __syncwarp();
    else __syncthreads();
}

// Row within the block of A's entry e, which is in block row i.
__device__ inline u32 row_within(const Matrix& a, u32 i, u32 e) {
    const u32* const ends = a.row_ptr + (size_t)i * BS + 1;
    u32 r = 0;
    if constexpr (BS == 1) {
        return r;
    } else if constexpr (BS <= 8) {
#pragma unroll
        for (u32 k = 0; k < BS; ++k) r += e >= __ldg(&ends[k]);
    } else {
        // the first that ends behind e
        for (u32 to = BS - 1; r < to;) {
            const u32 middle = (r + to) / 2;
            if (__ldg(&ends[middle]) > e) to = middle;
            else r = middle + 1;
        }
    }
    return r;
}

// Fills the row's blocks with A and the shift; what is outside the pattern is dropped.
template <u32 TEAM>
__device__ inline void load_row(const Row& row, double* w, u32 t, const Matrix& a, const Pattern& lower,
                                const Pattern& upper) {
    constexpr u32 BATCH = BS == 1 ? 2 : 4;
    const bool active = row.i != NONE;
    const u32 begin = active ? a.row_ptr[(size_t)row.i * BS] : 0;
    const u32 end = active ? a.row_ptr[(size_t)(row.i + 1) * BS] : 0;
    for (u32 x = t; x < row.blocks() * BLOCK; x += TEAM) w[x] = 0.0;
    team_sync<TEAM>();
    for (u32 e0 = begin + t; e0 < end; e0 += TEAM * BATCH) {
        u32 column[BATCH];
        double v[BATCH];
#pragma unroll
        for (u32 n = 0; n < BATCH; ++n) {
            const u32 e = e0 + n * TEAM;
            column[n] = e < end ? __ldg(&a.col_ind[e]) : NONE;
            v[n] = e < end ? __ldg(&a.val[e]) : 0.0;
        }
#pragma unroll
        for (u32 n = 0; n < BATCH; ++n) {
            if (column[n] == NONE) continue;
            const u32 block = row.block(column[n] / BS, lower, upper);
            if (block == NONE) continue;
            const u32 r = row_within(a, row.i, e0 + n * TEAM);
            w[(size_t)block * BLOCK + r * STRIDE + column[n] % BS] = v[n];
        }
    }
    team_sync<TEAM>();
    if (active && a.shift != 0.0)
        for (u32 r = t; r < BS; r += TEAM) w[(size_t)row.lower * BLOCK + r * (STRIDE + 1)] += a.shift;
}

// Where a row has its blocks while it is worked on.
__device__ inline double* room(const Row& row, double* shared, const Rows& rows) {
    if (row.blocks() <= rows.held) return shared;
    return rows.spill + (size_t)rows.spilled[row.i] * BLOCK;
}

// Teams that come early would fill the L2 cache's queues with looking, and what all wait for must pass
// these too: so one lane first looks, at leisure, for a value two levels back.
__device__ inline void gate(const Row& row, const Pattern& lower, const double* diagonal) {
    if (row.i == NONE || row.lower == 0) return;
    const u32 p = lower.col_ind[row.l0 + row.lower - 1];
    const u32 begin = lower.row_ptr[p], end = lower.row_ptr[p + 1];
    if (begin == end) return;
    const double* const there = diagonal + (size_t)lower.col_ind[end - 1] * BB;
    while (absent(load_relaxed(there))) __nanosleep(20);
}

__device__ inline bool without_diagonal(const Matrix& a, u32 i) {
    return a.n_absent && find(a.absent, 0, a.n_absent, i) != NONE;
}

__device__ inline void tell(u64* error, u32 i, u32 step) { atomicMin(error, (u64)i << 32 | step); }
