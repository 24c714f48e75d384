// What is known of the rows before the numeric phase: made once for a pattern, one warp per row.
#pragma once
#include "common.cuh"
#include "ilu/rows.cuh"

// Row that is awaited before all others look: two levels back, or NONE.
__device__ inline u32 gate_of(const Row& row, const Pattern& lower) {
    if (row.lower == 0) return NONE;
    const u32 p = lower.col_ind[row.l0 + row.lower - 1];
    const u32 begin = lower.row_ptr[p], end = lower.row_ptr[p + 1];
    return begin == end ? NONE : lower.col_ind[end - 1];
}

// `first_job` (jobs of the rows before each row) and `spilled` may be null. One thread per task.
extern "C" __global__ void __launch_bounds__(256)
list_tasks(u32 count, const u32* order, Pattern lower, Pattern upper, const u32* first_job, const u32* spilled,
           Task* tasks) {
    const u32 at = blockIdx.x * 256 + threadIdx.x;
    if (at >= count) return;
    const u32 i = order[at];
    Task task{row_of(i, lower, upper)};
    task.gate = NONE;
    if (i != NONE) {
        task.gate = gate_of(task, lower);
        if (first_job) task.first_job = first_job[i], task.jobs = first_job[i + 1] - first_job[i];
        if (spilled) task.spilled = spilled[i];
    }
    tasks[at] = task;
}

// Row within the block of A's entry e, which is in block row i.
__device__ inline u32 row_within(const u32* row_ptr, u32 i, u32 e) {
    const u32* const ends = row_ptr + (size_t)i * BS + 1;
    u32 r = 0;
    // the first that ends behind e
    for (u32 to = BS - 1; r < to;) {
        const u32 middle = (r + to) / 2;
        if (__ldg(&ends[middle]) > e) to = middle;
        else r = middle + 1;
    }
    return r;
}

// Tells the tasks where A has their entries, and for each entry its place in a row in work. One warp per
// task.
extern "C" __global__ void __launch_bounds__(256)
place_entries(u32 count, Task* tasks, const u32* row_ptr, const u32* col_ind, Pattern lower, Pattern upper,
              u32* place) {
    const u32 at = (blockIdx.x * 256 + threadIdx.x) / WARP, lane = threadIdx.x % WARP;
    if (at >= count || tasks[at].i == NONE) return;
    const Row row = tasks[at];
    const u32 begin = row_ptr[(size_t)row.i * BS], end = row_ptr[(size_t)(row.i + 1) * BS];
    if (lane == 0) tasks[at].first_entry = begin, tasks[at].entries = end - begin;
    for (u32 e = begin + lane; e < end; e += WARP) {
        const u32 j = col_ind[e], block = row.block(j / BS, lower, upper);
        place[e] = block == NONE ? NONE : block * BLOCK + row_within(row_ptr, row.i, e) * STRIDE + j % BS;
    }
}
