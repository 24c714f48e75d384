// Krylov methods as one kernel (Al-Mouhamed and Khan 2017, section 6.4). A thread block has a range of rows. Of
// the vectors that only rows of a range are read of ("range vectors"), as many as fit lie in its shared memory
// from the first iteration to the last. What products read goes through the L2 cache.
//
// Macros, as the launcher gives them. FORMAT: 0 CSR, 1 BSR, 2 Bdia, 3 HYB, 4 DIA. PRECOND: 0 none, 1 block
// Jacobi, 2 triangular factors. PLACES: rows of a lane side by side. ROW_LANES: lanes that share a row of CSR. OFFSETS, HALF_SHIFT:
// those of Bdia.
#pragma once
#ifndef THREADS
#define THREADS 512
#endif
#ifndef FORMAT
#define FORMAT (BS == 1 ? 0 : 1)
#endif
#ifndef PRECOND
#define PRECOND 1
#endif
#ifndef PLACES
#define PLACES 1
#endif
#ifndef ROW_LANES
#define ROW_LANES 8
#endif
#ifndef OFFSETS
#define OFFSETS 7
#endif
#ifndef HALF_SHIFT
#define HALF_SHIFT 0
#endif
#ifndef PREFETCH
#define PREFETCH 96
#endif
#include "spmv/formats.cuh"
#include "krylov/grid_barrier.cuh"
#include "stored.cuh"
#if PRECOND == 2
// as the launcher cuts the factors: rows of a 7-point grid are on the way as a whole
#define UNEVEN 1
#define SPLIT (BS <= 4 ? 1 : 2)
#define AHEAD (BS <= 4 ? 4 : 2)
#include "sptrsv/parts.cuh"
#endif

#if FORMAT == 2
typedef Bdia Matrix;
#elif FORMAT == 3
typedef Hyb Matrix;
#elif FORMAT == 4
typedef Dia Matrix;
#else
typedef Blocks Matrix;
#endif

// How products within read: a matrix that is not read again before the next product, past the L1 cache, and a
// vector through it, which every barrier empties.
struct Within {
    template <class T> static __device__ T matrix(const T* p) { return __ldg(p); }
    static __device__ double matrix(const double* p) {
        double v;
        asm("ld.global.nc.L1::no_allocate.f64 %0, [%1];" : "=d"(v) : "l"(p));
        return v;
    }
    static __device__ double2 matrix(const double2* p) {
        double2 v;
        asm("ld.global.nc.L1::no_allocate.v2.f64 {%0, %1}, [%2];" : "=d"(v.x), "=d"(v.y) : "l"(p));
        return v;
    }
    template <class T> static __device__ T vector(const T* p) { return *p; }
};

#if FORMAT == 0
// CSR: ROW_LANES lanes share a row, and several rows at a time.
__device__ inline u32 shared_rows(const Blocks& a, u32 base, const double* x, double (&sum)[PLACES]) {
    constexpr u32 TOGETHER = WARP / ROW_LANES, TURNS = ROW_LANES < 4 ? ROW_LANES : 4;
    const u32 lane = lane_number();
#pragma unroll 1
    for (u32 turn = 0; turn < ROW_LANES; turn += TURNS) {
        u32 e[TURNS], end[TURNS], longest = 0;
        double s[TURNS];
#pragma unroll
        for (u32 t = 0; t < TURNS; ++t) {
            const u32 i = base + (turn + t) * TOGETHER + lane / ROW_LANES;
            const bool there = i < a.rows;
            e[t] = there ? a.row_ptr[i] : 0;
            end[t] = there ? a.row_ptr[i + 1] : 0;
            longest = max(longest, end[t] - e[t]);
            e[t] += lane % ROW_LANES;
            s[t] = 0.0;
        }
#pragma unroll 2
        for (u32 done = 0; done < longest; done += ROW_LANES) {
            u32 column[TURNS];
            double v[TURNS];
#pragma unroll
            for (u32 t = 0; t < TURNS; ++t) {
                const bool there = e[t] + done < end[t];
                column[t] = there ? Within::matrix(&a.col_ind[e[t] + done]) : NONE;
                v[t] = there ? Within::matrix(&a.val[e[t] + done]) : 0.0;
            }
#pragma unroll
            for (u32 t = 0; t < TURNS; ++t)
                if (column[t] != NONE) s[t] = fma(v[t], Within::vector(&x[column[t]]), s[t]);
        }
#pragma unroll
        for (u32 t = 0; t < TURNS; ++t) {
#pragma unroll
            for (u32 apart = ROW_LANES / 2; apart; apart /= 2) s[t] += __shfl_xor_sync(FULL, s[t], apart);
            // row `(turn + t) TOGETHER + g` is kept by the lane of that number
            const double there = __shfl_sync(FULL, s[t], lane % TOGETHER * ROW_LANES);
            if (lane / TOGETHER == turn + t) sum[0] = there;
        }
    }
    return base + lane < a.rows;
}
#endif

// Sums of a warp's places that begin at `base`, and which of them are rows.
__device__ inline u32 row_sums(const Matrix& a, u32 base, const double* x, double (&sum)[PLACES]) {
#if FORMAT == 0
    return shared_rows(a, base, x, sum);
#elif FORMAT == 1
    return bsr_product<BS <= 2 ? 4 : BS <= 8 ? 2 : 1, Within>(a, base, x, sum);
#elif FORMAT == 2
    return product<PLACES, Within, BS <= 2 ? 7 : BS <= 4 ? 2 : 1, OFFSETS, HALF_SHIFT != 0>(a, base, x, sum);
#else
    return product<PLACES, Within, 4>(a, base, x, sum);
#endif
}

// Wells of a warp that are on the way together.
constexpr u32 WELLS = THREADS > 512 ? 2 : 4;

// Rows of a thread block, from `first`.
struct Range {
    u32 first, rows;

    __device__ Range(const u32* starts)
        : first(starts[blockIdx.x]), rows(starts[blockIdx.x + 1] - starts[blockIdx.x]) {}

    // Does body(row of the range) for each.
    template <class Body> __device__ void each(Body body) const {
        for (u32 i = threadIdx.x; i < rows; i += THREADS) body(i);
    }

    // Has the L2 cache fetch what a product begins with, for the time in which its vector is waited for.
    template <bool BACKWARD> __device__ void prefetch(const Matrix& a) const {
#if FORMAT == 2
        // a range begins and ends within tiles
        constexpr u32 ROW = OFFSETS * BS * sizeof(double), PIECE = PREFETCH * 1024 / WARP;
        constexpr u32 LEAST = PREFETCH * 1024 + TILE * ROW;
        if (PREFETCH == 0 || threadIdx.x >= WARP || first + rows > a.rows || rows * ROW < LEAST) return;
        const u32 from = BACKWARD ? (first + rows) / WARP * WARP : first;
        const char* begin = (const char*)(a.val + tiled(from, OFFSETS * BS)) + threadIdx.x * PIECE;
        if (BACKWARD) begin -= PREFETCH * 1024;
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" : : "l"(begin), "r"(PIECE) : "memory");
#endif
    }

    // Does body(row of the range, its sum) for each row of A x. With every second product BACKWARD, a product
    // begins with what the one before has left in the L2 cache.
    template <bool BACKWARD, class Body>
    __device__ void product(const Matrix& a, const double* x, Body body) const {
        const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
        constexpr u32 STEP = WARP * PLACES, TOGETHER = WARPS * STEP;
#if FORMAT == 2
        // wells lie behind the cells; the last warps have them, which have fewer rows
        if (first + rows > a.rows)
            for (u32 own = WARPS - 1 - warp; own < own_rows(a); own += WELLS * WARPS) {
                u32 i[WELLS];
                double sum[WELLS];
                own_products<WELLS, Within>(a, own, WARPS, x, i, sum);
#pragma unroll
                for (u32 t = 0; t < WELLS; ++t)
                    if (i[t] - first < rows && lane == 0) body(i[t] - first, sum[t]);
            }
#endif
        const u32 turns = (rows + TOGETHER - 1) / TOGETHER;
        for (u32 turn = 0; turn < turns; ++turn) {
            const u32 i = (BACKWARD ? turns - 1 - turn : turn) * TOGETHER + warp * STEP;
            if (i >= rows) continue;
            double sum[PLACES] = {};
            const u32 mine = row_sums(a, first + i, x, sum);
#pragma unroll
            for (u32 r = 0; r < PLACES; ++r)
                if (mine >> r & 1) body(i + lane * PLACES + r, sum[r]);
        }
#if FORMAT > 2
        for (u32 own = warp; own < own_rows(a); own += WARPS) {
            const u32 i = own_row(a, own) - first;
            if (i >= rows) continue;
            const double sum = own_product<Within>(a, own, x);
            if (lane == 0) body(i, sum);
        }
#endif
    }
};

// A preconditioner's inverse.
struct Inverse {
#if PRECOND == 2
    // Factors L D U'; a thread block has the same rows in both, one part at most of each
    Parts lower, upper;
    const Stored* diagonal;
    // right-hand side and forward solution, where all thread blocks see them
    double *right, *y;
#else
    // the inverse diagonal blocks
    const Stored* blocks;
#endif
};

// z = M^-1 r for the rows of a range. Of triangular factors only what comes before the solves: r is put where all
// see it, and what `solve` will find is marked as absent, which takes a barrier. All threads call it: r may have
// just been written.
__device__ inline void precondition(const Range& range, const Inverse& m, const double* r, double* z) {
#if PRECOND == 0
    range.each([&](u32 i) { z[i] = r[i]; });
#elif PRECOND == 1
    const Stored* const inverse = m.blocks + (size_t)range.first * BS;
    if (BS > 1) __syncthreads();
    range.each([&](u32 i) {
        const u32 row = i % BS, begin = i - row;
        const Stored* block = inverse + (size_t)begin * BS + row;
        double s = 0.0;
#pragma unroll(BS <= 8 ? BS : 8)
        for (u32 c = 0; c < BS; ++c) s = fma((double)__ldg(block + c * BS), r[begin + c], s);
        z[i] = s;
    });
#else
    range.each([&](u32 i) {
        m.right[range.first + i] = r[i];
        m.y[range.first + i] = z[i] = __longlong_as_double(ABSENT);
    });
#endif
}

// After a barrier behind `precondition`: z = M^-1 r everywhere, where that is not done yet. Rows wait for rows of
// other thread blocks, whose values are their own flags (sptrsv/parts.cuh). No deadlock: all thread blocks are resident,
// each has one part at most of a triangle, and all sort their slices by one number, which is larger for a row than
// for those that it needs, so that of the rows that are left the one of the smallest number can always be solved.
// A thread block goes on to U' when all its rows of y are there, whoever else is still at L: rows of y are read by
// others until the barrier at the end, and marked again only behind it.
template <bool BACKWARD>
__device__ inline void solve(const Range& range, const Matrix& a, const Inverse& m, double* z, double* slots, Barrier& barrier) {
#if PRECOND == 2
    const Vectors v = {m.right, m.diagonal, m.y, z};
    if (blockIdx.x < m.lower.count) {
        solve_part<false, false>(m.lower, v, blockIdx.x, slots);
        solve_part<true, false>(m.upper, v, blockIdx.x, slots);
    }
    double nothing[1] = {0.0};
    barrier.arrive(nothing);
    range.prefetch<BACKWARD>(a);
    barrier.wait(nothing);
#endif
}

// When a launch ends; mirrors `Stop` and `Judge` of the solvers.
struct Rules {
    double rtol, diverged, stall;
    // iterations of this launch, iterations of those before, of a cycle, and cycles over which progress counts
    u32 most, before, cycle, stall_cycles;
};

// What a launch leaves behind; block 0 writes it.
struct Report {
    // norm of the initial residual, and what the next launch goes on with
    double initial, carried[7];
    // iterations of this launch
    u32 iterations;
    u32 broken;
};

// Residuals and what broke down, of each iteration of the launch; residuals at the ends of the last cycles.
struct History {
    double* norm;
    u32* broken;
    double* cycles;
};

// Cycles that are remembered; mirrored by the launcher.
constexpr u32 REMEMBERED = 16;

// Whether the solve ends after iteration `done` of this launch, whose residual has this norm.
__device__ inline bool ends(const Rules& rules, const History& history, u32 done, double norm, double initial,
                            u32 broken, u32 broken_before) {
    const double residual = norm / initial;
    const u32 total = rules.before + done;
    const bool reports = blockIdx.x == 0 && threadIdx.x == 0;
    if (reports) {
        history.norm[done - 1] = norm;
        history.broken[done - 1] = broken;
    }
    if (!(residual <= rules.diverged) || residual <= rules.rtol || done >= rules.most) return true;
    if (broken && broken_before) return true;
    if (total % rules.cycle) return false;
    // written in a cycle and read in a later one: all have met between
    const u32 cycle = total / rules.cycle;
    if (reports) __stcg(&history.cycles[cycle % REMEMBERED], residual);
    return cycle > rules.stall_cycles &&
           residual > rules.stall * __ldcg(&history.cycles[(cycle - rules.stall_cycles) % REMEMBERED]);
}
