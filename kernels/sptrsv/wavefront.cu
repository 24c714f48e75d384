// Triangular solves with factors whose pattern is one stencil on a box, as pipelined wavefronts.
//
// The unknowns are cells (x, y, z) of nx * ny * nz in natural order, x fastest; a cell depends on the
// cells at constant OFFSETS from it, all of them earlier in that order. With y' = y + SHEAR * z no
// dependency points forward in y' or z, and t = x + ALPHA * y' + BETA * z grows along all of them:
// t is the level. Where rows alternate along y and z, columns are of four kinds, by the parities of y' and z: each has
// its offsets, and t = x + ALPHA * (y' / 2) + BETA * (z / 2) + a phase of its kind; a warp has columns of one. A thread
// block owns a tile of columns (y', z) and marches along x, one level per
// step, all columns at once. Values that columns hand to one another live in a ring in shared
// memory, one row per step; those of neighbouring tiles are awaited in the L2 cache by warps of
// their own, one step like all others. Factors are stored in the order in which the lanes use them,
// without indices, and come by bulk copies; right-hand sides and solutions are in natural order, and
// are turned in shared memory. U' is solved as a lower triangle on the box turned around.
#include "common.cuh"

// A lane has one row of a block: there is no wavefront of larger ones; and bulk copies came with
// compute capability 9.0.
#if BS <= 32 && __CUDA_ARCH__ >= 900

#include "sptrsv/wavefront/carriers.cuh"
#include "sptrsv/wavefront/worker.cuh"

template <bool BACKWARD, int KIND>
__device__ void work(const Box& box, double* ring, const Desk& desk, u64* full, int lane, int warp) {
    Worker<BACKWARD, KIND> worker{box, ring, desk, full, min(lane, ACTIVE - 1), lane >= ACTIVE};
    for (int k = blockIdx.x; k < box.tiles; k += gridDim.x) worker.march(k, warp);
}

// One triangle. `from` is the right-hand side (y when solving with U', which is multiplied by D first).
template <bool BACKWARD>
__device__ void wavefront(const Box& box, const double* from, double* to) {
    extern __shared__ __align__(16) double memory[];
    double* const ring = memory;
    double* const rhs = ring + RING * ROW;
    Stored* const factors = reinterpret_cast<Stored*>(rhs + WARPS * RHS);
    u64* const brought = reinterpret_cast<u64*>(factors + WARPS * FACTORS);
    u64* const solved = brought + WARPS * TURNS;
    u64* const full = solved + WARPS * TURNS;
    u64* const finished = full + WARPS * STAGES;
    const int role = threadIdx.x / 32 / WARPS, warp = threadIdx.x / 32 % WARPS, lane = threadIdx.x % 32;
    for (int n = threadIdx.x; n < RING * ROW; n += THREADS) ring[n] = 0.0;
    for (int n = threadIdx.x; n < BARRIERS; n += THREADS) {
        u64* const barrier = brought + n;
        prepare_barrier(barrier, barrier == finished ? (WARPS + LOADERS) * 32
                                 : barrier >= full   ? 1
                                 : barrier < solved && CARRIED ? 33
                                                               : 32);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    const Desk desk = {rhs + warp * RHS, factors + warp * FACTORS, brought + warp * TURNS,
                       solved + warp * TURNS};
    if (role == 0) {
        const int kind = kind_of_warp(warp);
        if (kind == 0) work<BACKWARD, 0>(box, ring, desk, full + warp * STAGES, lane, warp);
#if defined COUNTS
        else if (kind == 1) work<BACKWARD, 1>(box, ring, desk, full + warp * STAGES, lane, warp);
        else if (kind == 2) work<BACKWARD, 2>(box, ring, desk, full + warp * STAGES, lane, warp);
        else work<BACKWARD, 3>(box, ring, desk, full + warp * STAGES, lane, warp);
#endif
    } else if (role == 1) {
        Porter<BACKWARD> porter{box, ring, desk, from, to, lane, units(BACKWARD, kind_of_warp(warp)) * UNIT};
        for (int k = blockIdx.x; k < box.tiles; k += gridDim.x) porter.march(k, warp);
    } else {
        for (int k = blockIdx.x; k < box.tiles; k += gridDim.x)
            load_tile(box, ring, k, threadIdx.x - 2 * WARPS * 32);
    }
    // no warp is gone while others still meet at the end of a step
    if (role == 1) wait(finished, 0);
    else arrive(finished);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
wavefront_forward(Box box, const double* r, double* y) {
    wavefront<false>(box, r, y);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
wavefront_backward(Box box, const double* y, double* z) {
    wavefront<true>(box, y, z);
}

// Factors into records: blocks of the pattern of L or U', and inverse diagonal blocks. Four warps per
// warp of a tile and part of its steps.
struct Filed {
    const u32* row_ptr;
    const u32* col_ind;
    const double* blocks;
    const Stored* diagonal;
};

__constant__ const Ranked ranked = by_rank();

template <bool BACKWARD>
__device__ void store_blocks(const Box& box, const Filed& f, Stored* __restrict__ val) {
    const int k = blockIdx.x / WARPS, warp = blockIdx.x % WARPS, lane = threadIdx.x % 32;
    const int kind = kind_of_warp(warp), first = first_offset(kind), n_offsets = count(kind);
    const int record = units(BACKWARD, kind) * UNIT;
    const int4 tile = box.tile[k], mine = box.warp[blockIdx.x];
    const int column = min(lane, ACTIVE - 1) / BS;
    const int ty = column_y(warp, column), tz = column_z(warp, column);
    val += (size_t)(u32)mine.z * UNIT;
    const int yy = tile.x * TY + ty, z = tile.y * TZ + tz, here = line(box, yy, z);
    if (lane >= ACTIVE) return;
    for (int n = 4 * blockIdx.y + threadIdx.x / 32; n < mine.y; n += 4 * gridDim.y) {
        const int x = tile.z + mine.x + n - skew(ty, tz);
        const bool inside = here >= 0 && (u32)x < (u32)box.nx;
        const u32 i = inside ? natural<BACKWARD>(box, here + x) : 0;
        Stored* to = val + (size_t)n * record + lane;
        if (BACKWARD) {
            for (int c = 0; c < BS; ++c)
                to[c * ACTIVE] = (Stored)(inside ? f.diagonal[(size_t)i * BB + c * BS + lane % BS] : (Stored)0);
            to += UNIT;
        }
#pragma unroll 1
        for (int r = first; r < first + n_offsets; ++r) {
            const int(&along)[3] = ranked.along[r];
            const int there = line(box, yy + along[1], z + along[2]), from = x + along[0];
            u32 e = NONE;
            if (inside && there >= 0 && (u32)from < (u32)box.nx)
                e = find(f.col_ind, f.row_ptr[i], f.row_ptr[i + 1], natural<BACKWARD>(box, there + from));
            Stored* const of_offset = to + (size_t)(ranked.offset[r] - first) * UNIT;
            for (int c = 0; c < BS; ++c)
                of_offset[c * ACTIVE] = (Stored)(e == NONE ? 0.0 : f.blocks[(size_t)e * BB + c * BS + lane % BS]);
        }
    }
}

#if BS == 1
// The same for entries (blocks of one), of which lanes read those of consecutive cells and write those of
// neighbouring columns. Offsets are taken in the order of the entries of a row, which is read once.
template <bool BACKWARD>
__device__ void store_entries(const Box& box, const Filed& f, Stored* __restrict__ val) {
    constexpr int OWN = (ACTIVE + 3) / 4;
    __shared__ Stored turned[32][33];
    const int k = blockIdx.x / WARPS, warp = blockIdx.x % WARPS, lane = threadIdx.x % 32, part = threadIdx.x / 32;
    const int kind = kind_of_warp(warp), first_of_kind = first_offset(kind), n_offsets = count(kind);
    const int record = units(BACKWARD, kind) * UNIT;
    const int4 tile = box.tile[k], mine = box.warp[blockIdx.x];
    val += (size_t)(u32)mine.z * UNIT;
    for (int first = 32 * blockIdx.y; first < mine.y; first += 32 * gridDim.y) {
        auto write = [&](int unit) {
            __syncthreads();
            for (int n = part; n < min(32, mine.y - first); n += 4)
                if (lane < ACTIVE)
                    val[(size_t)(first + n) * record + unit * UNIT + lane] = turned[n][lane];
            __syncthreads();
        };
        // the cells of the thread, and what is left of their rows
        int x[OWN];
        u32 at[OWN], end[OWN];
#pragma unroll
        for (int q = 0; q < OWN; ++q) {
            const int c = part + 4 * q;
            const int ty = column_y(warp, c), tz = column_z(warp, c);
            const int here = line(box, tile.x * TY + ty, tile.y * TZ + tz);
            x[q] = tile.z + mine.x + first + lane - skew(ty, tz);
            at[q] = end[q] = 0;
            Stored d = 0;
            if (c < ACTIVE && here >= 0 && (u32)x[q] < (u32)box.nx) {
                const u32 i = natural<BACKWARD>(box, here + x[q]);
                at[q] = f.row_ptr[i], end[q] = f.row_ptr[i + 1];
                if (BACKWARD) d = f.diagonal[i];
            }
            if (BACKWARD && c < ACTIVE) turned[lane][c] = d;
        }
        if (BACKWARD) write(0);
#pragma unroll 1
        for (int r = 0; r < n_offsets; ++r) {
            const int number = first_of_kind + (BACKWARD ? n_offsets - 1 - r : r);
            const int(&along)[3] = ranked.along[number];
#pragma unroll
            for (int q = 0; q < OWN; ++q) {
                const int c = part + 4 * q, from = x[q] + along[0];
                Stored v = 0;
                if (at[q] < end[q] && (u32)from < (u32)box.nx) {
                    const int ty = column_y(warp, c), tz = column_z(warp, c);
                    const int there = line(box, tile.x * TY + ty + along[1], tile.y * TZ + tz + along[2]);
                    if (there >= 0) {
                        const u32 j = natural<BACKWARD>(box, there + from);
                        while (at[q] < end[q] && f.col_ind[at[q]] < j) ++at[q];
                        if (at[q] < end[q] && f.col_ind[at[q]] == j) v = (Stored)f.blocks[at[q]++];
                    }
                }
                if (c < ACTIVE) turned[lane][c] = v;
            }
            write(ranked.offset[number] - first_of_kind + FIRST<BACKWARD>);
        }
    }
}
#endif

template <bool BACKWARD>
__device__ void store_records(const Box& box, const Filed& f, Stored* val) {
#if BS == 1
    store_entries<BACKWARD>(box, f, val);
#else
    store_blocks<BACKWARD>(box, f, val);
#endif
}

extern "C" __global__ void __launch_bounds__(128)
wavefront_store_lower(Box box, const u32* row_ptr, const u32* col_ind, const double* blocks,
                      const Stored* diagonal, Stored* val) {
    store_records<false>(box, {row_ptr, col_ind, blocks, diagonal}, val);
}

extern "C" __global__ void __launch_bounds__(128)
wavefront_store_upper(Box box, const u32* row_ptr, const u32* col_ind, const double* blocks,
                      const Stored* diagonal, Stored* val) {
    store_records<true>(box, {row_ptr, col_ind, blocks, diagonal}, val);
}

#endif
