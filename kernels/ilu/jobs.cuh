// The updates of the rows, which depend on the pattern alone and are listed once.
#pragma once
#include "common.cuh"
#include "ilu/rows.cuh"

// The bits that some lane has.
__device__ inline u32 warp_or(u32 bits) {
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(FULL, bits);
#else
    for (int offset = 16; offset; offset >>= 1) bits |= __shfl_xor_sync(FULL, bits, offset);
    return bits;
#endif
}

// Updates of a row that a warp, or a team that is part of one, makes at once: a job. They share the
// multiplier A_ip.
constexpr u32 WIDTH = BS == 1 ? LANES : BS == 2 ? 4 : BS <= 4 ? 2 : 1;

// Target of an update: number of the block in the row, and of its multiplier in the upper half. NOTHING
// in the lower half fills up a job.
constexpr u32 NOTHING = 0xffff;

// Number of jobs of each row, or their list. One warp per row.
template <bool LIST>
__device__ void plan_row(u32 rows, const Pattern& lower, const Pattern& upper, u32* jobs, uint2* list) {
    const u32 i = (blockIdx.x * 256 + threadIdx.x) / WARP, lane = threadIdx.x % WARP;
    if (i >= rows) return;
    const Row row = row_of(i, lower, upper);
    u32 job = LIST ? jobs[i] : 0;
    for (u32 e = 0; e < row.lower; ++e) {
        const u32 p = lower.col_ind[row.l0 + e];
        u32 found = 0;
        for (u32 q0 = upper.row_ptr[p]; q0 < upper.row_ptr[p + 1]; q0 += WARP) {
            const u32 q = q0 + lane;
            u32 block = NONE;
            if (q < upper.row_ptr[p + 1]) block = row.block(upper.col_ind[q], lower, upper);
            const u32 hits = __ballot_sync(FULL, block != NONE);
            if (LIST && block != NONE)
                list[(size_t)job * WIDTH + found + __popc(hits & ((1u << lane) - 1))] =
                    make_uint2(q, block | e << 16);
            found += __popc(hits);
        }
        const u32 more = (found + WIDTH - 1) / WIDTH;
        if (LIST && found + lane < more * WIDTH)
            list[(size_t)job * WIDTH + found + lane] = make_uint2(NONE, NOTHING | e << 16);
        job += more;
    }
    if (!LIST && lane == 0) jobs[i] = job;
}

extern "C" __global__ void __launch_bounds__(256)
count_jobs(u32 rows, Pattern lower, Pattern upper, u32* jobs) {
    plan_row<false>(rows, lower, upper, jobs, nullptr);
}

// `first`: jobs of the rows before each row.
extern "C" __global__ void __launch_bounds__(256)
list_jobs(u32 rows, Pattern lower, Pattern upper, u32* first, uint2* updates) {
    plan_row<true>(rows, lower, upper, first, updates);
}

// The jobs of one row; each is WIDTH updates: the place of a block of U', or NONE, and the target.
struct Jobs {
    u32 count;
    const uint2* list;

    // Starts to copy the list to `shared`, if it fits; thread t of `team` calls.
    __device__ Jobs(const Task& row, const uint2* updates, uint2* shared, u32 listed, u32 t, u32 team)
        : count(row.jobs), list(updates + (size_t)row.first_job * WIDTH) {
        if (count * WIDTH > listed) return;
        for (u32 x = t; x < count * WIDTH; x += team) copy(shared + x, list + x);
        list = shared;
    }
};
