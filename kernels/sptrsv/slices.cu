// Triangular solves with block ILU factors (Yang et al., Algorithms 6 and 7): y = L^-1 r, then
// z = U'^-1 D y, both triangles with unit diagonals.
//
// A factor is kept in slices. A slice is a few block rows of one level, as many as a warp holds with
// one lane per scalar row; slices follow one another level by level. The e-th blocks of a slice's
// rows are stored together, column by column, so that the warp reads them in one piece.
#include "absent.cuh"
#include "stored.cuh"

constexpr u32 LANES = BS < 32 ? BS : 32;
constexpr u32 TILES = (BS + LANES - 1) / LANES;
constexpr u32 THREADS = 128;
constexpr u32 WARPS = THREADS / WARP;
// Blocks of a row that are under way together: for `syncfree` best the whole row.
#ifndef AHEAD
#define AHEAD (BS == 1 ? 8 : BS <= 4 ? 4 : BS <= 8 ? 2 : 1)
#endif

// Slice s holds the rows order[first[s]..first[s + 1]); its blocks start at `start[s]`, `length[s]` for
// each row, shorter rows being filled up with column NONE.
struct Slices {
    const u32* order;
    const u32* first;
    const u32* start;
    const u32* length;
    const u32* col_ind;
    const Stored* val;
    // A row that must be known long before those of the slice, or NONE.
    const u32* gate;
};

// The pattern and values that slices are made of have blocks of BS * SPREAD: SPREAD above 1 takes
// them apart, row by row, to point triangular systems (then BS is 1).

// Entry n of row i of the slices: block of the pattern, and column of blocks of BS in it. The last one
// of a row is the one nearest to the diagonal, which is the last to be known.
struct Entry {
    u32 block, within;
    bool there;

    __device__ Entry(const u32* row_ptr, u32 i, u32 n, u32 spread, bool backward) {
        const u32 begin = row_ptr[i / spread], count = (row_ptr[i / spread + 1] - begin) * spread;
        there = n < count;
        const u32 at = backward ? count - 1 - n : n;
        block = begin + at / spread;
        within = at % spread;
    }
};

// Columns of the slices from the rows of a pattern. One warp per slice.
extern "C" __global__ void __launch_bounds__(THREADS)
slice_columns(u32 slices, Slices t, const u32* __restrict__ row_ptr, const u32* __restrict__ columns,
              u32 spread, u32 backward, u32* __restrict__ col_ind, u32* __restrict__ gates) {
    const u32 s = blockIdx.x * WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (s >= slices) return;
    const u32 first = t.first[s], rows = t.first[s + 1] - first, length = t.length[s];
    if (lane == 0) {
        // two steps back from the last row, each to what is known last
        u32 j = t.order[first + rows - 1];
        for (u32 step = 0; step < 2 && j != NONE; ++step) {
            const u32 begin = row_ptr[j / spread], count = row_ptr[j / spread + 1] - begin;
            j = count == 0 ? NONE : columns[backward ? begin : begin + count - 1] * spread;
        }
        gates[s] = j;
    }
    for (u32 w = lane; w < rows * length; w += WARP) {
        const Entry from(row_ptr, t.order[first + w % rows], w / rows, spread, backward);
        col_ind[t.start[s] + w] = from.there ? columns[from.block] * spread + from.within : NONE;
    }
}

// Values of the slices from blocks in the order of the pattern. One warp per slice.
extern "C" __global__ void __launch_bounds__(THREADS, 8)
slice_values(u32 slices, Slices t, const u32* __restrict__ row_ptr, const double* __restrict__ blocks,
             u32 spread, u32 backward, Stored* __restrict__ val) {
    const u32 s = blockIdx.x * WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (s >= slices) return;
    const u32 first = t.first[s], rows = t.first[s + 1] - first, length = t.length[s];
    Stored* const to = val + (size_t)t.start[s] * BB;
    for (u32 w = lane; w < rows * length * BB; w += WARP) {
        // place in the slice: entry, column of the block, row of the slice, row of the block
        const u32 r = w % BS, g = w / BS % rows, c = w / (BS * rows) % BS, n = w / (BB * rows);
        const u32 i = t.order[first + g], size = BS * spread;
        const Entry from(row_ptr, i, n, spread, backward);
        const u32 row = i % spread * BS + r, column = from.within * BS + c;
        to[w] = (Stored)(from.there ? blocks[((size_t)from.block * size + column) * size + row] : 0.0);
    }
}

// Where a solve reads and writes.
struct Solve {
    // Right-hand side of the forward solve, read as it is.
    const double* r;
    // Inverse diagonal blocks, by which the backward solve multiplies y first; null when that is done.
    const Stored* diagonal;
    // Forward solution: right-hand side of the backward solve.
    double* y;
    double* z;
};

// Right-hand side of row `i`, scalar rows `r`, `r + LANES`, ...: r_i, or D_i y_i.
template <bool BACKWARD>
__device__ inline void start_row(const Solve& v, u32 i, u32 r, double (&sum)[TILES]) {
    const size_t at = (size_t)i * BS;
#pragma unroll
    for (u32 t = 0; t < TILES; ++t) {
        const u32 row = r + t * LANES;
        if (row >= BS) continue;
        if (!BACKWARD || !v.diagonal) {
            sum[t] = (BACKWARD ? v.y : v.r)[at + row];
            continue;
        }
        sum[t] = 0.0;
        const Stored* d = v.diagonal + (size_t)i * BB + row;
#pragma unroll(BS <= 8 ? BS : 8)
        for (u32 c = 0; c < BS; ++c) sum[t] = fma((double)d[c * BS], v.y[at + c], sum[t]);
    }
}

// z = D y for inverse diagonal blocks D. One warp for a few block rows.
extern "C" __global__ void __launch_bounds__(THREADS)
block_diagonal(u32 block_rows, Solve v) {
    const u32 lane = threadIdx.x % WARP, g = lane / LANES, r = lane % LANES;
    const u32 i = (blockIdx.x * WARPS + threadIdx.x / WARP) * (WARP / LANES) + g;
    if (g >= WARP / LANES || i >= block_rows) return;
    double sum[TILES] = {};
    start_row<true>(v, i, r, sum);
#pragma unroll
    for (u32 k = 0; k < TILES; ++k)
        if (r + k * LANES < BS) v.z[(size_t)i * BS + r + k * LANES] = sum[k];
}

// One level, one launch: what earlier launches wrote is there. One warp per slice.
template <bool BACKWARD>
__device__ void level(u32 begin, u32 end, const Slices& t, const Solve& v) {
    const u32 s = begin + blockIdx.x * WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (s >= end) return;
    const u32 first = t.first[s], rows = t.first[s + 1] - first, length = t.length[s];
    const u32 g = lane / LANES, r = lane % LANES;
    if (g >= rows) return;
    const u32 i = t.order[first + g];
    double* const x = BACKWARD ? v.z : v.y;
    double sum[TILES];
    start_row<BACKWARD>(v, i, r, sum);
    for (u32 e = 0; e < length; e += AHEAD) {
        u32 j[AHEAD];
#pragma unroll
        for (u32 u = 0; u < AHEAD; ++u)
            j[u] = e + u < length ? t.col_ind[t.start[s] + (e + u) * rows + g] : NONE;
#pragma unroll
        for (u32 u = 0; u < AHEAD; ++u) {
            if (j[u] == NONE) continue;
            const Stored* const a = t.val + (size_t)(t.start[s] + (e + u) * rows) * BB + g * BS;
            const double* const xj = x + (size_t)j[u] * BS;
#pragma unroll(BS <= 8 ? BS : 8)
            for (u32 c = 0; c < BS; ++c) {
#pragma unroll
                for (u32 k = 0; k < TILES; ++k)
                    if (TILES == 1 || r + k * LANES < BS)
                        sum[k] = fma(-(double)a[c * rows * BS + r + k * LANES], xj[c], sum[k]);
            }
        }
    }
#pragma unroll
    for (u32 k = 0; k < TILES; ++k)
        if (r + k * LANES < BS) x[(size_t)i * BS + r + k * LANES] = sum[k];
}

extern "C" __global__ void __launch_bounds__(THREADS, 4)
level_forward(u32 begin, u32 end, Slices t, Solve v) {
    level<false>(begin, end, t, v);
}

extern "C" __global__ void __launch_bounds__(THREADS, 4)
level_backward(u32 begin, u32 end, Slices t, Solve v) {
    level<true>(begin, end, t, v);
}

// Whether a lane has registers for its part of the blocks ahead.
constexpr bool HELD = TILES == 1;
// Whether blocks are worked off one by one as their operands come, not all at the end: worth a vote
// where a block is much work.
constexpr bool ONE_BY_ONE = BS >= 4;

// One block of a row, under way: entry of x that the lane reads, or NONE; its value; the lane's row
// of the block.
struct Ahead {
    u32 from;
    double x[TILES];
    Stored a[HELD ? BS : 1];
};

__device__ inline bool incomplete(const Ahead& block) {
    bool waiting = false;
#pragma unroll
    for (u32 k = 0; k < TILES; ++k) waiting |= absent(block.x[k]);
    return waiting;
}

// Looks again for the operands that are not there; all loads are under way before one is awaited.
// Returns whether some are still missing.
__device__ inline bool look(Ahead (&ahead)[AHEAD], const double* x) {
#pragma unroll
    for (u32 u = 0; u < AHEAD; ++u)
#pragma unroll
        for (u32 k = 0; k < TILES; ++k) load_if_absent(ahead[u].x[k], x + ahead[u].from + k * LANES);
    bool waiting = false;
#pragma unroll
    for (u32 u = 0; u < AHEAD; ++u) waiting |= incomplete(ahead[u]);
    return waiting;
}

// The whole triangle in one launch. A row waits for each value it needs: the value itself is the
// flag. Warps take slices in turn, so that a slice depends only on slices begun before; all thread
// blocks must be resident. Everything but the operands is fetched before the wait.
//
// A warp that comes early would fill the L2 cache's queues with looking for operands, and the values
// that all wait for must pass these too: so one lane first looks, at leisure, for a value two levels
// back.
//
// The forward solve leaves ABSENT in z for the backward solve, and that leaves it in y for the next
// forward solve.
template <bool BACKWARD>
__device__ void syncfree(u32 slices, const Slices& t, const Solve& v) {
    const u32 lane = threadIdx.x % WARP, g = lane / LANES, r = lane % LANES;
    double* const x = BACKWARD ? v.z : v.y;
    for (u32 s = blockIdx.x * WARPS + threadIdx.x / WARP; s < slices; s += gridDim.x * WARPS) {
        const u32 first = t.first[s], rows = t.first[s + 1] - first, length = t.length[s];
        const u32* const columns = t.col_ind + t.start[s] + g;
        const Stored* const a0 = t.val + (size_t)t.start[s] * BB + g * BS + r;
        const u32 stride = rows * BS, gate = t.gate[s];
        const bool active = g < rows;
        const u32 i = active ? t.order[first + g] : 0;

        Ahead ahead[AHEAD];
        // starts the loads of entry e
        auto fetch = [&](Ahead& next, u32 e) {
            const u32 j = active && e < length ? __ldg(&columns[e * rows]) : NONE;
            next.from = j == NONE ? NONE : j * BS + r;
#pragma unroll
            for (u32 k = 0; k < TILES; ++k)
                next.x[k] = j != NONE && (TILES == 1 || r + k * LANES < BS)
                                ? load_relaxed(x + next.from + k * LANES)
                                : 0.0;
            if (HELD) {
#pragma unroll
                for (u32 c = 0; c < BS; ++c)
                    next.a[c] = j == NONE ? (Stored)0 : __ldg(&a0[(size_t)(e * BS + c) * stride]);
            }
        };
#pragma unroll
        for (u32 u = 0; u < AHEAD; ++u) fetch(ahead[u], u);

        double sum[TILES] = {};
        if (active) start_row<BACKWARD>(v, i, r, sum);
        __syncwarp();  // all lanes of a row have read y before one of them marks it
        if (active) {
#pragma unroll
            for (u32 k = 0; k < TILES; ++k)
                if (r + k * LANES < BS)
                    (BACKWARD ? v.y : v.z)[(size_t)i * BS + r + k * LANES] =
                        __longlong_as_double(ABSENT);
        }
        if (lane == 0 && gate != NONE)
            while (absent(load_relaxed(x + (size_t)gate * BS))) __nanosleep(20);
        __syncwarp();

        for (u32 e0 = 0; e0 < length; e0 += AHEAD) {
            bool waiting = look(ahead, x);
            if (!ONE_BY_ONE)
                while (__any_sync(FULL, waiting))
                    if (waiting) waiting = look(ahead, x);
#pragma unroll
            for (u32 u = 0; u < AHEAD; ++u) {
                const u32 e = e0 + u;
                Ahead& now = ahead[u];
                if (ONE_BY_ONE)
                    while (__any_sync(FULL, incomplete(now)))
                        if (waiting) waiting = look(ahead, x);
#pragma unroll
                for (u32 part = 0; part < TILES; ++part) {
                    const u32 end = min(LANES, BS - part * LANES);
#pragma unroll(TILES == 1 ? BS : 8)
                    for (u32 c = 0; c < end; ++c) {
                        const u32 column = e * BS + part * LANES + c;
                        const double xc = BS == 1 ? now.x[0]
                                                  : __shfl_sync(FULL, now.x[part], g * LANES + c);
                        if (HELD) {
                            sum[0] = fma(-(double)now.a[c], xc, sum[0]);
                        } else if (now.from != NONE) {
#pragma unroll
                            for (u32 k = 0; k < TILES; ++k)
                                if (TILES == 1 || r + k * LANES < BS)
                                    sum[k] = fma(-(double)a0[(size_t)column * stride + k * LANES], xc, sum[k]);
                        }
                    }
                }
                if (e0 + AHEAD < length) fetch(now, e + AHEAD);
            }
        }
        if (active) {
#pragma unroll
            for (u32 k = 0; k < TILES; ++k)
                if (r + k * LANES < BS)
                    store_relaxed(x + (size_t)i * BS + r + k * LANES, arrived(sum[k]));
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
syncfree_forward(u32 slices, Slices t, Solve v) {
    syncfree<false>(slices, t, v);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
syncfree_backward(u32 slices, Slices t, Solve v) {
    syncfree<true>(slices, t, v);
}
