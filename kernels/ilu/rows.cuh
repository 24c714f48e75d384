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
// Whether a row begins before its gate opens, with the updates whose numbers are there: where it has many.
#ifndef EARLY
#define EARLY 0
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

// What is factorised: values of A in the order of its scalar rows, their places in the rows in work
// (NONE: outside the pattern), a number added to its diagonal, rows without a diagonal entry.
struct Matrix {
    const double* val;
    const u32* place;
    const u32* absent;
    u32 n_absent;
    double shift;
};

// One row of both patterns. Its blocks are numbered from the left: L, diagonal, U.
struct Row {
    u32 i, l0, lower, u0, upper;

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

__device__ inline Row row_of(u32 i, const Pattern& l, const Pattern& u) {
    if (i == NONE) return {NONE, 0, 0, 0, 0};
    const u32 l0 = l.row_ptr[i], u0 = u.row_ptr[i];
    return {i, l0, l.row_ptr[i + 1] - l0, u0, u.row_ptr[i + 1] - u0};
}

// All that is to be known of a row before it is worked on, in one piece: entries of A; jobs, if they are
// listed; a row two levels back (or NONE), see `gate`; where it is held if not in shared memory, in blocks.
struct alignas(16) Task : Row {
    u32 first_entry, entries, first_job, jobs, gate, spilled, unused;
};
static_assert(sizeof(Task) == 48, "three copies of 16 bytes");

// Rows in the order of the levels, in groups of the teams of a warp: rows NONE fill up the last group of
// a level. Those of up to `held` blocks find room in shared memory; beside it is room for `listed`
// updates.
struct Rows {
    const Task* task;
    u32 count;
    u32 held;
    u32 listed;
    double* spill;
};

__device__ BARRIER void block_sync() { __syncthreads(); }

template <u32 TEAM>
__device__ inline void team_sync() {
    if (TEAM <= WARP) __syncwarp();
    else block_sync();
}

// Starts to copy 8 or 16 bytes to shared memory; `copied` waits for all of the thread's.
template <class T>
__device__ inline void copy(T* to, const T* from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                 :
                 : "r"((u32)__cvta_generic_to_shared(to)), "l"(from), "n"((u32)sizeof(T))
                 : "memory");
#else
    *to = *from;
#endif
}

__device__ inline void copied() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" : : : "memory");
#endif
}

// Starts to copy the task at `at` to a team's slot; its threads t call together.
__device__ inline void fetch_task(const Rows& rows, u32 at, Task* slot, u32 t) {
    if (t < 3 && at < rows.count)
        copy(reinterpret_cast<uint4*>(slot) + t, reinterpret_cast<const uint4*>(rows.task + at) + t);
}

// Hands a team's tasks from the one at `at`, `stride` apart, to `work`. `slots`, two in shared memory, have
// the one in work and the next one, which is copied meanwhile.
template <u32 TEAM, class Work>
__device__ inline void for_tasks(const Rows& rows, u32 at, u32 stride, Task* slots, u32 t, Work work) {
    fetch_task(rows, at, slots, t);
    for (u32 turn = 0; at < rows.count; turn ^= 1) {
        copied();
        team_sync<TEAM>();
        at += stride;
        fetch_task(rows, at, slots + (turn ^ 1), t);
        work(slots[turn]);
    }
}

// Fills the row's blocks with A and the shift.
template <u32 TEAM>
__device__ inline void load_row(const Task& row, double* w, u32 t, const Matrix& a) {
    constexpr u32 BATCH = BS == 1 ? 2 : BS <= 4 ? 4 : TEAM <= WARP ? 16 : 8;
    const u32 begin = row.first_entry, end = begin + row.entries;
    u32 place[BATCH];
    double v[BATCH];
    auto fetch = [&](u32 e0) {
#pragma unroll
        for (u32 n = 0; n < BATCH; ++n) {
            const u32 e = e0 + n * TEAM;
            place[n] = e < end ? __ldg(&a.place[e]) : NONE;
            v[n] = e < end ? __ldg(&a.val[e]) : 0.0;
        }
    };
    fetch(begin + t);
    for (u32 x = t; x < row.blocks() * BLOCK; x += TEAM) w[x] = 0.0;
    team_sync<TEAM>();
    for (u32 e0 = begin + t; e0 < end;) {
#pragma unroll
        for (u32 n = 0; n < BATCH; ++n)
            if (place[n] != NONE) w[place[n]] = v[n];
        e0 += TEAM * BATCH;
        fetch(e0);
    }
    team_sync<TEAM>();
    if (row.i != NONE && a.shift != 0.0)
        for (u32 r = t; r < BS; r += TEAM) w[(size_t)row.lower * BLOCK + r * (STRIDE + 1)] += a.shift;
}

// Where a row has its blocks while it is worked on.
__device__ inline double* room(const Task& row, double* shared, const Rows& rows) {
    if (row.blocks() <= rows.held) return shared;
    return rows.spill + (size_t)row.spilled * BLOCK;
}

// Teams that come early would fill the L2 cache's queues with looking, and what all wait for must pass
// these too: so one lane first looks, at leisure, for a value two levels back.
__device__ inline void gate(const Task& row, const double* diagonal) {
    if (row.gate == NONE) return;
    while (absent(load_relaxed(diagonal + (size_t)row.gate * BB))) __nanosleep(20);
}

// A warp's gate, which all of its lanes have, for a row that begins before it opens.
struct Gate {
    const double* value;
    bool open;

    __device__ Gate(u32 row, const double* diagonal)
        : value(diagonal + (size_t)row * BB), open(row == NONE) {}

    // Until the gate opens one lane of those that lack a number looks for it, and at the gate, at leisure, until one
    // of both is there. All lanes call while it is not open; `lacks` is null where nothing is lacking.
    __device__ void wait(const double* lacks) {
        const u32 lane = threadIdx.x % WARP, who = __ffs(__ballot_sync(FULL, lacks != nullptr)) - 1;
        bool opened = false;
        if (lane == who) {
            for (;;) {
                const double number = load_relaxed(lacks);
                opened = !absent(load_relaxed(value));
                if (opened || !absent(number)) break;
                __nanosleep(20);
            }
        }
        open = __shfl_sync(FULL, (u32)opened, who);
    }
};

__device__ inline bool without_diagonal(const Matrix& a, u32 i) {
    return a.n_absent && find(a.absent, 0, a.n_absent, i) != NONE;
}

__device__ inline void tell(u64* error, u32 i, u32 step) { atomicMin(error, (u64)i << 32 | step); }
