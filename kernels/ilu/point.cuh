// Rows of blocks of one: several rows per warp.
#pragma once
#include "absent.cuh"
#include "ilu/jobs.cuh"
#include "ilu/rows.cuh"

constexpr u32 THREADS = 128;
constexpr u32 TEAMS = THREADS / LANES;
constexpr u32 TEAMS_OF_WARP = WARP / LANES;
constexpr u32 RESIDENT = AHEAD <= 3 ? 8 : AHEAD <= 6 ? 5 : 3;
constexpr u32 SCRATCH = 2 * TEAMS * sizeof(Task);

// Some jobs of a row, under way: the lane's update of each and its number of U'.
struct Batch {
    uint2 update[AHEAD];
    double u[AHEAD];

    // Starts the loads of the jobs from n0.
    __device__ void fetch(const Jobs& jobs, u32 n0, u32 lane, const double* upper) {
#pragma unroll
        for (u32 n = 0; n < AHEAD; ++n)
            update[n] = n0 + n < jobs.count ? jobs.list[(n0 + n) * WIDTH + lane] : make_uint2(NONE, NOTHING);
#pragma unroll
        for (u32 n = 0; n < AHEAD; ++n) u[n] = update[n].x == NONE ? 0.0 : load_relaxed(upper + update[n].x);
    }

    // Looks again for what is not there; all loads are under way before one is awaited.
    __device__ void look(const double* upper) {
#pragma unroll
        for (u32 n = 0; n < AHEAD; ++n) load_if_absent(u[n], upper + update[n].x);
    }

    // Number of jobs from the first on that have all they need.
    __device__ u32 ready() const {
        u32 missing = 1u << AHEAD;
#pragma unroll
        for (u32 n = 0; n < AHEAD; ++n) missing |= (u32)absent(u[n]) << n;
        return __ffs(warp_or(missing)) - 1;
    }

    // What the lane lacks of job n, or null.
    __device__ const double* lacks(u32 of, const double* upper) const {
        const double* first = nullptr;
#pragma unroll
        for (u32 n = 0; n < AHEAD; ++n)
            if (n == of && absent(u[n])) first = upper + update[n].x;
        return first;
    }
};

__device__ inline void point_row(const Task& task, double* w, uint2* list, u32 listed, u32 lane, const uint2* updates,
                                 const Matrix& a, const u32* columns, const Factors& f, u64* error) {
    const Row row = task;
    const bool active = row.i != NONE;
    const Jobs jobs(task, updates, list, listed, lane, LANES);
    u32 most = jobs.count;
    for (u32 offset = LANES; offset < WARP; offset *= 2)
        most = max(most, __shfl_xor_sync(FULL, most, offset));

    const u32 p = lane < row.lower ? __ldg(&columns[row.l0 + lane]) : 0;
    load_row<LANES>(task, w, lane, a);
    const bool no_diagonal = active && without_diagonal(a, row.i);
    if (!EARLY && threadIdx.x % WARP == 0) gate(task, f.diagonal);
    Gate all(EARLY ? __shfl_sync(FULL, task.gate, 0) : NONE, f.diagonal);
    copied();
    __syncwarp();
    Batch now, next;
    now.fetch(jobs, 0, lane, f.upper);
    for (u32 n0 = 0; n0 < most; n0 += AHEAD) {
        next.fetch(jobs, n0 + AHEAD, lane, f.upper);
        u32 ready = now.ready();
        for (u32 done = 0; done < AHEAD; ready = now.ready()) {
#pragma unroll
            for (u32 n = 0; n < AHEAD; ++n) {
                if (n < done || n >= ready) continue;
                const uint2 update = now.update[n];
                if (update.x != NONE) {
                    double& target = w[update.y & 0xffff];
                    target = fma(-w[update.y >> 16], now.u[n], target);
                }
                __syncwarp();
            }
            done = ready;
            if (done == AHEAD) break;
            if (!all.open) all.wait(now.lacks(done, f.upper));
            // what comes later is likely to be late as well
            now.look(f.upper);
            next.look(f.upper);
        }
        now = next;
    }
    if (active) {
        const double pivot = no_diagonal ? a.shift : w[row.lower];
        double inverse = 1.0 / pivot;
        if (!isfinite(pivot) || !isfinite(inverse)) {
            if (lane == 0) tell(error, row.i, 0);
            inverse = 0.0;
        }
        for (u32 n = lane; n < row.upper; n += LANES)
            store_relaxed(f.upper + row.u0 + n, arrived(inverse * w[row.lower + 1 + n]));
        if (lane == 0) store_relaxed(f.diagonal + row.i, arrived(inverse));
        if (lane < row.lower) f.lower[row.l0 + lane] = w[lane] * awaited(f.diagonal + p);
        for (u32 n = lane + LANES; n < row.lower; n += LANES)
            f.lower[row.l0 + n] = w[n] * awaited(f.diagonal + columns[row.l0 + n]);
    }
    __syncwarp();  // the next row takes this one's place
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
factor(Rows rows, const uint2* updates, Matrix a, Pattern lower, Pattern, Factors f, u64* error) {
    extern __shared__ double2 memory[];
    const u32 team = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    Task* const slots = reinterpret_cast<Task*>(memory);
    double* const shared = reinterpret_cast<double*>(slots + 2 * TEAMS) + team * (rows.held + rows.listed);
    uint2* const list = reinterpret_cast<uint2*>(shared + rows.held);
    for_tasks<LANES>(rows, blockIdx.x * TEAMS + team, gridDim.x * TEAMS, slots + 2 * team, lane, [&](const Task& row) {
        point_row(row, room(row, shared, rows), list, rows.listed, lane, updates, a, lower.col_ind, f, error);
    });
}
