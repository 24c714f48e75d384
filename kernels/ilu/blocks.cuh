// Rows of blocks of 2 to 8: one or a few warps per row.
#pragma once
#include "absent.cuh"
#include "ilu/jobs.cuh"
#include "ilu/products.cuh"
#include "ilu/rows.cuh"

constexpr u32 TEAM = WARPS * WARP;
constexpr u32 THREADS = 128;
constexpr u32 TEAMS = THREADS / TEAM;
constexpr u32 TEAMS_OF_WARP = 1;
constexpr u32 RESIDENT = AHEAD > 3 ? 4 - EARLY : BS == 4 || BS == 8 ? 6 : BS < 4 ? 5 : 4;
constexpr u32 SCRATCH = 2 * TEAMS * sizeof(Task);
static_assert(WARPS == 1 || TEAMS == 1, "warps of a team meet as thread blocks do");
// Columns of a product that a block takes.
constexpr u32 COLUMNS = 8 / WIDTH;

// What a lane reads and writes of the blocks of a job, by the layout of the operands.
struct Part {
    u32 read, column, row, write, first;

    __device__ explicit Part(u32 lane)
        : read(lane / 4 / COLUMNS), column(lane / 4 % COLUMNS), row(lane % 4),
          write(lane % 4 * 2 / COLUMNS), first(lane % 4 * 2 % COLUMNS) {}

    // Place in a block, column by column, of number n that the lane reads; NONE where there is none.
    __device__ u32 at(u32 n) const {
        return column < BS && row + 4 * n < BS ? column * BS + row + 4 * n : NONE;
    }
};

// Some jobs of a warp, under way: place of the block of U' that the lane reads, or NONE; target of the
// block that it writes; its numbers of U'.
struct Batch {
    u32 from[AHEAD], target[AHEAD];
    double u[AHEAD][UP4];

    // Starts the loads of the warp's jobs from n0.
    __device__ void fetch(const Jobs& jobs, u32 n0, const Part& part, const double* upper) {
#pragma unroll
        for (u32 n = 0; n < AHEAD; ++n) {
            const u32 job = n0 + n * WARPS;
            const bool there = job < jobs.count;
            from[n] = there ? jobs.list[(size_t)job * WIDTH + part.read].x : NONE;
            target[n] = there ? jobs.list[(size_t)job * WIDTH + part.write].y : NOTHING;
        }
#pragma unroll
        for (u32 n = 0; n < AHEAD; ++n)
#pragma unroll
            for (u32 k = 0; k < UP4; ++k)
                u[n][k] = from[n] != NONE && part.at(k) != NONE
                              ? load_relaxed(upper + (size_t)from[n] * BB + part.at(k))
                              : 0.0;
    }

    // Looks again for what is not there; all loads are under way before one is awaited.
    __device__ void look(const Part& part, const double* upper) {
#pragma unroll
        for (u32 n = 0; n < AHEAD; ++n)
#pragma unroll
            for (u32 k = 0; k < UP4; ++k)
                load_if_absent(u[n][k], upper + (size_t)from[n] * BB + part.at(k));
    }

    // Number of jobs from the first on that have all they need.
    __device__ u32 ready() const {
        u32 missing = 1u << AHEAD;
#pragma unroll
        for (u32 n = 0; n < AHEAD; ++n)
#pragma unroll
            for (u32 k = 0; k < UP4; ++k) missing |= (u32)absent(u[n][k]) << n;
        return __ffs(warp_or(missing)) - 1;
    }

    // What the lane lacks of job n, or null.
    __device__ const double* lacks(u32 of, const Part& part, const double* upper) const {
        const double* first = nullptr;
#pragma unroll
        for (u32 n = 0; n < AHEAD; ++n)
#pragma unroll
            for (u32 k = 0; k < UP4; ++k)
                if (n == of && absent(u[n][k])) first = upper + (size_t)from[n] * BB + part.at(k);
        return first;
    }
};

// A job: blocks of the row less the multiplier times blocks of U'.
__device__ inline void subtract(u32 target, const double (&u)[UP4], const Part& part, double* w) {
    const u32 lane = threadIdx.x % WARP, r = lane / 4, block = target & 0xffff;
    const double* const multiplier = w + (target >> 16) * BLOCK;
    double c0 = 0.0, c1 = 0.0;
#pragma unroll
    for (u32 k = 0; k < UP4; ++k) multiply(c0, c1, left(multiplier, 0, k), u[k]);
    if (block == NOTHING || r >= BS || part.first >= BS) return;
    double* const to = w + block * BLOCK + r * STRIDE + part.first;
    // the column that fills up the stride may hold anything
    double2 x = *reinterpret_cast<double2*>(to);
    x.x -= c0, x.y -= c1;
    *reinterpret_cast<double2*>(to) = x;
}

// U'_i = D_i U_i, WIDTH blocks at a time.
__device__ inline void publish_upper(const Row& row, const double* w, const Part& part, double* upper) {
    const u32 r = threadIdx.x % WARP / 4;
    const double* const d = w + row.lower * BLOCK;
    double a[UP4];
#pragma unroll
    for (u32 k = 0; k < UP4; ++k) a[k] = left(d, 0, k);
    for (u32 n = threadIdx.x % TEAM / WARP * WIDTH; n < row.upper; n += WARPS * WIDTH) {
        double c0 = 0.0, c1 = 0.0;
#pragma unroll
        for (u32 k = 0; k < UP4; ++k) {
            const bool there = n + part.read < row.upper && part.at(k) != NONE;
            const double* const block = d + (1 + n + part.read) * BLOCK;
            multiply(c0, c1, a[k], there ? block[(part.row + 4 * k) * STRIDE + part.column] : 0.0);
        }
        if (n + part.write >= row.upper || r >= BS) continue;
        double* const to = upper + (size_t)(row.u0 + n + part.write) * BB + part.first * BS + r;
        if (part.first < BS) store_relaxed(to, arrived(c0));
        if (part.first + 1 < BS) store_relaxed(to + BS, arrived(c1));
    }
}

// L_ip = A_ip D_p. Products of WIDTH left with WIDTH right blocks at a time, of which the diagonal ones
// are wanted. `mine` is the lane-th column of the row.
__device__ inline void finish_lower(const Row& row, const double* w, const Part& part, u32 mine,
                                    const u32* columns, const double* diagonal, double* lower) {
    const u32 lane = threadIdx.x % WARP, which = lane / 4 / COLUMNS, r = lane / 4 % COLUMNS;
    const double* block[2];
    double d[2][UP4];
    // blocks of D for the products from n on
    auto fetch = [&](u32 n, u32 turn) {
        const u32 e = n + part.read;
        u32 p = __shfl_sync(FULL, mine, e % WARP);
        if (e >= WARP && e < row.lower) p = columns[row.l0 + e];
        block[turn] = diagonal + (size_t)p * BB;
#pragma unroll
        for (u32 k = 0; k < UP4; ++k)
            d[turn][k] = e < row.lower && part.at(k) != NONE ? load_relaxed(block[turn] + part.at(k)) : 0.0;
    };
    auto multiply_with = [&](u32 n, u32 turn) {
        double c0 = 0.0, c1 = 0.0;
#pragma unroll
        for (u32 k = 0; k < UP4; ++k) {
            if (absent(d[turn][k])) d[turn][k] = awaited(block[turn] + part.at(k));
            const u32 c = lane % 4 + 4 * k;
            const bool there = n + which < row.lower && r < BS && c < BS;
            __syncwarp();
            multiply(c0, c1, there ? w[(n + which) * BLOCK + r * STRIDE + c] : 0.0, d[turn][k]);
        }
        if (which != part.write || n + which >= row.lower || r >= BS) return;
        double* const to = lower + (size_t)(row.l0 + n + which) * BB + part.first * BS + r;
        if (part.first < BS) to[0] = c0;
        if (part.first + 1 < BS) to[BS] = c1;
    };
    constexpr u32 STEP = WARPS * WIDTH;
    u32 n = threadIdx.x % TEAM / WARP * WIDTH;
    fetch(n, 0);
    for (; n < row.lower; n += 2 * STEP) {
        fetch(n + STEP, 1);
        multiply_with(n, 0);
        if (n + STEP >= row.lower) break;
        fetch(n + 2 * STEP, 0);
        multiply_with(n + STEP, 1);
    }
}

__device__ inline void block_row(const Task& task, double* w, uint2* list, u32 listed, const Part& part,
                                 const uint2* updates, const Matrix& a, const u32* columns, const Factors& f,
                                 u64* error) {
    const u32 t = threadIdx.x % TEAM, warp = t / WARP;
    const Row row = task;
    const Jobs jobs(task, updates, list, listed, t, TEAM);
    const u32 mine = t % WARP < row.lower ? __ldg(&columns[row.l0 + t % WARP]) : 0;
    load_row<TEAM>(task, w, t, a);
    if (!EARLY && t == 0) gate(task, f.diagonal);
    Gate all(EARLY ? task.gate : NONE, f.diagonal);
    copied();
    team_sync<TEAM>();
    Batch now, next;
    now.fetch(jobs, warp, part, f.upper);
    // multipliers before `final` are final
    u32 final = 0;
    for (u32 n0 = warp; n0 < jobs.count; n0 += AHEAD * WARPS) {
        next.fetch(jobs, n0 + AHEAD * WARPS, part, f.upper);
        u32 ready = now.ready();
        for (u32 done = 0; done < AHEAD; ready = now.ready()) {
#pragma unroll
            for (u32 n = 0; n < AHEAD; ++n) {
                if (n < done || n >= ready || n0 + n * WARPS >= jobs.count) continue;
                // a target's upper half is the same in all lanes
                for (; final < (now.target[n] >> 16); ++final) team_sync<TEAM>();
                subtract(now.target[n], now.u[n], part, w);
            }
            done = ready;
            if (done == AHEAD) break;
            if (!all.open) all.wait(now.lacks(done, part, f.upper));
            // what comes later is likely to be late as well
            now.look(part, f.upper);
            next.look(part, f.upper);
        }
        now = next;
    }
    for (; final <= row.lower; ++final) team_sync<TEAM>();
    invert<TEAM>(row, w, t, nullptr, a, error);
    publish_upper(row, w, part, f.upper);
    publish_diagonal<TEAM>(row, w, t, f.diagonal);
    finish_lower(row, w, part, mine, columns, f.diagonal, f.lower);
    team_sync<TEAM>();  // the next row takes this one's place
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
factor(Rows rows, const uint2* updates, Matrix a, Pattern lower, Pattern, Factors f, u64* error) {
    extern __shared__ double2 memory[];
    const u32 team = threadIdx.x / TEAM, t = threadIdx.x % TEAM;
    const u32 listed = rows.listed / 2 * 2;  // pairs of numbers are aligned
    Task* const slots = reinterpret_cast<Task*>(memory);
    double* const shared = reinterpret_cast<double*>(slots + 2 * TEAMS) + (size_t)team * (rows.held * BLOCK + listed);
    uint2* const list = reinterpret_cast<uint2*>(shared + rows.held * BLOCK);
    const Part part(threadIdx.x % WARP);
    for_tasks<TEAM>(rows, blockIdx.x * TEAMS + team, gridDim.x * TEAMS, slots + 2 * team, t, [&](const Task& row) {
        block_row(row, room(row, shared, rows), list, listed, part, updates, a, lower.col_ind, f, error);
    });
}
