// Solves with block ILU factors of few levels with many rows each, as colours make them:
// y = L^-1 r, z = U'^-1 D y, a launch for each colour.
//
// Rows have positions: colour by colour, and within a colour as their slices follow one another. A slice
// is as many rows of a colour as a warp holds with one lane per scalar row, the same ones for L and U'.
// The e-th blocks of its rows are stored together, column by column; or those at like distances.
//
// The last colour needs no U' and ends the forward solve: one launch, `turn`, does both its parts. Of
// two colours the first needs no L either: what it has of y is r, and two launches are all.
#include "sptrsv/colours/columns.cuh"

constexpr u32 LANES = BS < 32 ? BS : 32;
constexpr u32 TILES = (BS + LANES - 1) / LANES;
constexpr u32 THREADS = 128;
constexpr u32 WARPS = THREADS / WARP;
// Threads that a multiprocessor has registers for.
#ifndef COLOUR_THREADS
#define COLOUR_THREADS (BS == 1 ? 1024 : 512)
#endif
// Blocks of a row that are under way together.
#ifndef COLOUR_AHEAD
#define COLOUR_AHEAD (BS == 1 ? 8 : BS <= 4 ? 4 : BS <= 8 ? 2 : 1)
#endif

struct Slices {
    // Row of the vectors at each position.
    const u32* row;
    // Slice s holds the positions first[s]..first[s + 1].
    const u32* first;
    // Its blocks begin at start[s], `shape` / 4 for each row with `shape` % 4 for their kind of columns,
    // which begin at columns[s] of `index`.
    const u32* start;
    const u32* shape;
    const u32* columns;
    const u32* index;
    const Stored* val;
};

// What a launch reads and writes. Vectors are by position or `placed`: in their own order.
struct Sweep {
    const double* right;
    // What the columns stand for.
    const double* x;
    const Stored* diagonal;
    // By position, and placed; null where nobody wants it.
    double* to;
    double* out;
    u32 right_placed, x_placed;
};

// Lets the next launch begin, whose thread blocks then wait here for all of this one.
__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ inline void wait_for_last() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The columns of one row of a slice.
struct Columns {
    const u32* index;
    u32 kind, length, rows, g, own;

    // Columns e, e + 1, ..; all loads are under way before one is awaited.
    __device__ void fetch(u32 e, u32 (&j)[COLOUR_AHEAD]) const {
        u32 beyond[COLOUR_AHEAD];
        const u32 last = length - 1;
        if (kind == WIDE) {
#pragma unroll
            for (u32 u = 0; u < COLOUR_AHEAD; ++u) j[u] = __ldcs(&index[min(e + u, last) * rows + g]);
        } else {
#pragma unroll
            for (u32 u = 0; u < COLOUR_AHEAD; ++u) j[u] = __ldg(&index[min(e + u, last)]);
            if (kind == UNIFORM) {
#pragma unroll
                for (u32 u = 0; u < COLOUR_AHEAD; ++u) j[u] += own;
            } else if (kind == CLOSE) {
                const unsigned char* const close = (const unsigned char*)(index + length);
#pragma unroll
                for (u32 u = 0; u < COLOUR_AHEAD; ++u) beyond[u] = __ldcs(&close[min(e + u, last) * rows + g]);
#pragma unroll
                for (u32 u = 0; u < COLOUR_AHEAD; ++u) j[u] = beyond[u] == NOT_CLOSE ? NONE : own + j[u] + beyond[u];
            } else {
                const unsigned short* const near = (const unsigned short*)(index + length);
#pragma unroll
                for (u32 u = 0; u < COLOUR_AHEAD; ++u) beyond[u] = __ldcs(&near[min(e + u, last) * rows + g]);
#pragma unroll
                for (u32 u = 0; u < COLOUR_AHEAD; ++u) j[u] = beyond[u] == NOT_NEAR ? NONE : j[u] + beyond[u];
            }
        }
#pragma unroll
        for (u32 u = 0; u < COLOUR_AHEAD; ++u)
            if (e + u >= length) j[u] = NONE;
    }
};

enum Part { FORWARD, TURN, BACKWARD };

// to = right - L x; D times that; or D right - U' x.
template <Part PART>
__device__ void sweep(u32 begin, u32 end, const Slices& t, const Sweep& v) {
    let_next_begin();
    const u32 s = begin + blockIdx.x * WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (s >= end) return;
    const u32 first = t.first[s], rows = t.first[s + 1] - first, shape = t.shape[s], start = t.start[s];
    const u32 g = lane / LANES, r = lane % LANES, p = first + min(g, rows - 1);
    const bool active = g < rows;
    const u32 i = t.row[p];
    const Columns columns = {t.index + t.columns[s], shape % 4, shape / 4, rows, p - first, v.x_placed ? i : p};
    const Stored* const val = t.val + (size_t)start * BB + (p - first) * BS;
    const double* const right = v.right + (size_t)(v.right_placed ? i : p) * BS;

    // all that no launch before has written comes before the wait
    u32 j[COLOUR_AHEAD];
    Stored held[BS == 1 ? COLOUR_AHEAD : 1];
    auto fetch = [&](u32 e) {
        if (columns.length == 0) return;
        columns.fetch(e, j);
        if (BS == 1) {
#pragma unroll
            for (u32 u = 0; u < COLOUR_AHEAD; ++u) held[u] = __ldcs(&val[min(e + u, columns.length - 1) * rows]);
        }
    };
    fetch(0);
    Stored d = 0;
    if (BS == 1 && PART != FORWARD) d = __ldcs(&v.diagonal[p]);
    double sum[TILES];
    const bool early = PART != BACKWARD || v.right_placed;
    if (BS == 1 && early) sum[0] = right[0];
    wait_for_last();
    if constexpr (BS == 1) {
        if (!early) sum[0] = right[0];
        if (PART == BACKWARD) sum[0] *= (double)d;
    } else {
#pragma unroll
        for (u32 k = 0; k < TILES; ++k) {
            const u32 row = r + k * LANES;
            sum[k] = 0.0;
            if (row >= BS) continue;
            if (PART != BACKWARD) {
                sum[k] = right[row];
                continue;
            }
            const Stored* const of_row = v.diagonal + (size_t)p * BB + row;
#pragma unroll(BS <= 8 ? BS : 8)
            for (u32 c = 0; c < BS; ++c) sum[k] = fma((double)of_row[c * BS], right[c], sum[k]);
        }
    }
    for (u32 e = 0; e < columns.length; e += COLOUR_AHEAD) {
        if (e > 0) fetch(e);
        if constexpr (BS == 1) {
            double x[COLOUR_AHEAD];
#pragma unroll
            for (u32 u = 0; u < COLOUR_AHEAD; ++u) x[u] = j[u] == NONE ? 0.0 : v.x[j[u]];
#pragma unroll
            for (u32 u = 0; u < COLOUR_AHEAD; ++u) sum[0] = fma(-(double)held[u], x[u], sum[0]);
        } else {
#pragma unroll
            for (u32 u = 0; u < COLOUR_AHEAD; ++u) {
                if (j[u] == NONE) continue;
                const Stored* const a = val + (size_t)(e + u) * rows * BB;
                const double* const xj = v.x + (size_t)j[u] * BS;
#pragma unroll(BS <= 8 ? BS : 8)
                for (u32 c = 0; c < BS; ++c) {
#pragma unroll
                    for (u32 k = 0; k < TILES; ++k)
                        if (TILES == 1 || r + k * LANES < BS)
                            sum[k] = fma(-(double)a[c * rows * BS + r + k * LANES], xj[c], sum[k]);
                }
            }
        }
    }
    if constexpr (PART == TURN && BS == 1) sum[0] *= (double)d;
    if constexpr (PART == TURN && BS > 1) {
        double y[TILES];
#pragma unroll
        for (u32 k = 0; k < TILES; ++k) y[k] = sum[k], sum[k] = 0.0;
        const Stored* const of_row = v.diagonal + (size_t)p * BB + r;
#pragma unroll
        for (u32 part = 0; part < TILES; ++part) {
            const u32 most = min(LANES, BS - part * LANES);
#pragma unroll(TILES == 1 && BS <= 8 ? BS : 8)
            for (u32 c = 0; c < most; ++c) {
                const double yc = __shfl_sync(FULL, y[part], (p - first) * LANES + c);
#pragma unroll
                for (u32 k = 0; k < TILES; ++k)
                    if (TILES == 1 || r + k * LANES < BS)
                        sum[k] = fma((double)of_row[(part * LANES + c) * BS + k * LANES], yc, sum[k]);
            }
        }
    }
    __syncwarp();  // all lanes of a row have read its right-hand side, which `to` may overwrite
    if (!active) return;
#pragma unroll
    for (u32 k = 0; k < TILES; ++k) {
        const u32 row = r + k * LANES;
        if (BS > 1 && row >= BS) continue;
        if (v.to) v.to[(size_t)p * BS + row] = sum[k];
        if (v.out) v.out[(size_t)i * BS + row] = sum[k];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, COLOUR_THREADS / THREADS)
colour_forward(u32 begin, u32 end, Slices t, Sweep v) {
    sweep<FORWARD>(begin, end, t, v);
}

extern "C" __global__ void __launch_bounds__(THREADS, COLOUR_THREADS / THREADS)
colour_turn(u32 begin, u32 end, Slices t, Sweep v) {
    sweep<TURN>(begin, end, t, v);
}

extern "C" __global__ void __launch_bounds__(THREADS, COLOUR_THREADS / THREADS)
colour_backward(u32 begin, u32 end, Slices t, Sweep v) {
    sweep<BACKWARD>(begin, end, t, v);
}

// Values of the slices from blocks in the order of the pattern, whose row at each position is
// `factor_row`. One warp per slice.
extern "C" __global__ void __launch_bounds__(THREADS, 1024 / THREADS)
colour_values(u32 slices, Slices t, const u32* __restrict__ factor_row, const u32* __restrict__ row_ptr,
              const double* __restrict__ blocks, Stored* __restrict__ val) {
    const u32 s = blockIdx.x * WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (s >= slices) return;
    const u32 first = t.first[s], rows = t.first[s + 1] - first, length = t.shape[s] / 4;
    const u32* const index = t.index + t.columns[s];
    const u32 kind = t.shape[s] % 4;
    const unsigned short* const near = (const unsigned short*)(index + length);
    const unsigned char* const close = (const unsigned char*)near;
    auto there = [&](u32 at) {
        return kind == UNIFORM || (kind == WIDE ? index[at] != NONE
                                   : kind == NEAR ? near[at] != NOT_NEAR : close[at] != NOT_CLOSE);
    };
    Stored* const to = val + (size_t)t.start[s] * BB;
    for (u32 w = lane; w < rows * length * BB; w += WARP) {
        // place in the slice: entry, column of the block, row of the slice, row of the block
        const u32 r = w % BS, g = w / BS % rows, c = w / (BS * rows) % BS, e = w / (BB * rows);
        u32 from = row_ptr[factor_row[first + g]];
        for (u32 k = 0; k < e; ++k) from += there(k * rows + g);
        to[w] = (Stored)(there(e * rows + g) ? blocks[((size_t)from * BS + c) * BS + r] : 0.0);
    }
}

// Diagonal blocks by position.
extern "C" __global__ void __launch_bounds__(THREADS)
colour_diagonal(u32 rows, const u32* __restrict__ factor_row, const Stored* __restrict__ from,
                Stored* __restrict__ to) {
    const size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (at < (size_t)rows * BB) to[at] = from[(size_t)factor_row[at / BB] * BB + at % BB];
}
