// What the roles of sptrsv/pencils.cu share: where things are, and how they are handed over.
#pragma once
#include "absent.cuh"
#include "barriers.cuh"
#include "stored.cuh"

// Lanes of the worker along x and y, each with 2 * 2 pencils.
constexpr int LX = 8, LY = 4, CELLS = 4;
constexpr int PX = 2 * LX, PY = 2 * LY;
// What the worker takes of a step from pencils before the patch along x, and along y, a pair for a lane; with a pair
// of zeros behind.
constexpr int SIDES_X = 2 * (LY + 1), SIDES_Y = 2 * (LX + 1), SIDES = SIDES_X + SIDES_Y;
// Steps of a turn; turns of which sides are in shared memory.
constexpr int TURN = 6, SIDE_TURNS = 5, SIDE_STEPS = SIDE_TURNS * TURN;
// Numbers of the vector in a step, and of the factors of a triangle; turns of which factors are in shared memory.
constexpr int COLUMNS = CELLS * 32, RECORD = 3 * COLUMNS, SLOTS = 3;
constexpr int FACTORS = SLOTS * TURN * RECORD;
constexpr u32 TURN_BYTES = TURN * RECORD * sizeof(Stored);
// Turns before they come to shared memory in which factors come to the L2 cache; by which r comes earlier than it is needed.
constexpr int PREFETCH = 4;
// What is solved in a step, the next thread block needs so many of its own steps earlier.
constexpr int EARLIER_X = LX - 1, EARLIER_Y = LY - 1;
// Warps: the worker, loaders for sides along x and y, the fetcher, porters with two lines of pencils each. The fetcher
// and the worker take turns at one scheduler.
constexpr int WORKER = 0, LOADER_X = 1, LOADER_Y = 2, FETCHER = 4, PORTERS = PY / 2, WARPS = 4 + PORTERS, THREADS = WARPS * 32;

struct Pencils {
    int nx, ny, nz;
    // Thread blocks along x and y; turns of a march.
    int across, down, turns;
    // Factors in the order of the steps: of each thread block and step, for each cell of all lanes the pair of
    // coefficients of the neighbours along x and y; then for pairs of cells those along z. Cells backward are mirrored.
    const Stored* lower;
    const Stored* upper;
    // The inverse diagonal in natural order.
    const Stored* diagonal;
    // What thread blocks hand over, of this launch and of the next one in turn: of each direction and thread block
    // sides along x by step, then those along y, without zeros.
    double* exchange;
    // Launches that each thread block has been through.
    u32* launches;
    const double* r;
    double* z;
};

#if __CUDA_ARCH__ >= 900

__device__ inline void load_pair(u32 at, double& a, double& b) {
    asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(a), "=d"(b) : "r"(at) : "memory");
}
__device__ inline void load_pair(u32 at, float& a, float& b) {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(a), "=f"(b) : "r"(at) : "memory");
}
#ifdef FACTOR_BFLOAT16
__device__ inline void load_pair(u32 at, Stored& a, Stored& b) {
    asm volatile("ld.shared.v2.u16 {%0, %1}, [%2];" : "=h"(a.bits), "=h"(b.bits) : "r"(at) : "memory");
}
#endif
__device__ inline void load_one(u32 at, double& a) { asm volatile("ld.relaxed.cta.shared.f64 %0, [%1];" : "=d"(a) : "r"(at) : "memory"); }
__device__ inline void store_pair(u32 at, double a, double b) {
    asm volatile("st.shared.v2.f64 [%0], {%1, %2};" : : "r"(at), "d"(a), "d"(b) : "memory");
}
// For others, or by others: each number as it was written.
__device__ inline void load_sides(u32 at, double& a, double& b) {
    asm volatile("ld.relaxed.cta.shared.v2.f64 {%0, %1}, [%2];" : "=d"(a), "=d"(b) : "r"(at) : "memory");
}
__device__ inline void store_sides(u32 at, double a, double b) {
    asm volatile("st.relaxed.cta.shared.v2.f64 [%0], {%1, %2};" : : "r"(at), "d"(a), "d"(b) : "memory");
}
// Without branches:
__device__ inline void store_sides_if(u32 there, u32 at, double a, double b) {
    asm volatile("{\n.reg .pred there;\nsetp.ne.u32 there, %3, 0;\n@there st.relaxed.cta.shared.v2.f64 [%0], {%1, %2};\n}"
                 : : "r"(at), "d"(a), "d"(b), "r"(there) : "memory");
}
__device__ inline void load_published_if(u32 there, const double* at, double& a, double& b) {
    asm volatile("{\n.reg .pred there;\nsetp.ne.u32 there, %3, 0;\n@there ld.relaxed.gpu.global.v2.f64 {%0, %1}, [%2];\n}"
                 : "+d"(a), "+d"(b) : "l"(at), "r"(there) : "memory");
}
__device__ inline void publish_if(u32 there, double* to, double a, double b) {
    asm volatile("{\n.reg .pred there;\nsetp.ne.u32 there, %3, 0;\n@there st.relaxed.gpu.global.v2.f64 [%0], {%1, %2};\n}"
                 : : "l"(to), "d"(a), "d"(b), "r"(there) : "memory");
}

__device__ inline void arrive_if(u32 there, u32 barrier) {
    asm volatile("{\n.reg .pred there;\nsetp.ne.u32 there, %1, 0;\n@there mbarrier.arrive.shared::cta.b64 _, [%0];\n}" : : "r"(barrier), "r"(there) : "memory");
}
// Each barrier is used once. Without waiting:
__device__ inline bool passed(u64* barrier) {
    u32 done;
    asm volatile("{\n.reg .pred done;\nmbarrier.test_wait.parity.shared::cta.b64 done, [%1], 0;\nselp.u32 %0, 1, 0, done;\n}"
                 : "=r"(done) : "r"(shared_address(barrier)) : "memory");
    return done;
}
// A branch that a warp takes as one.
__device__ inline void wait(u64* barrier) {
    u32 done;
    do {
        asm volatile("{\n.reg .pred done;\nmbarrier.try_wait.parity.shared::cta.b64 done, [%1], 0;\nselp.u32 %0, 1, 0, done;\n}"
                     : "=r"(done) : "r"(shared_address(barrier)) : "memory");
    } while (!__all_sync(FULL, done));
}
__device__ inline void bring(const void* from, u32 bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" : : "l"(from), "r"(bytes) : "memory");
}
// Of what is read once, so that it does not drive out of the L2 cache what is handed over.
__device__ inline u64 once() {
    u64 policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
__device__ inline void bring(const void* from, u32 bytes, u64 policy) {
    asm volatile("cp.async.bulk.prefetch.L2.global.L2::cache_hint [%0], %1, %2;" : : "l"(from), "r"(bytes), "l"(policy) : "memory");
}

// Thread blocks before and after this one, in the order of the march.
template <bool BACKWARD>
struct Place {
    bool before_x, before_y, after_x, after_y;

    __device__ Place(const Pencils& b) {
        const int tx = blockIdx.x % b.across, ty = blockIdx.x / b.across;
        before_x = BACKWARD ? tx < b.across - 1 : tx > 0, after_x = BACKWARD ? tx > 0 : tx < b.across - 1;
        before_y = BACKWARD ? ty < b.down - 1 : ty > 0, after_y = BACKWARD ? ty > 0 : ty < b.down - 1;
    }
};

// What a thread block has in shared memory.
struct Shared {
    // r, y, z by step, cell along y, lane, and cell along x, between zeros; factors by step; sides along x and y by step.
    double* x;
    Stored* factors;
    double* sides_x;
    double* sides_y;
    // For each turn of a direction: factors and r are there; it is solved; there is room for sides of a later one.
    u64* full[2];
    u64* solved[2];
    u64* cleared[2];

    __device__ Shared(const Pencils& b, double* memory) {
        x = memory + COLUMNS;
        factors = (Stored*)(x + (steps(b) + 1) * COLUMNS);
        sides_x = (double*)(factors + FACTORS);
        sides_y = sides_x + SIDE_STEPS * SIDES_X;
        full[0] = (u64*)(sides_y + SIDE_STEPS * SIDES_Y), full[1] = full[0] + b.turns;
        solved[0] = full[1] + b.turns, solved[1] = solved[0] + b.turns;
        cleared[0] = solved[1] + b.turns, cleared[1] = cleared[0] + b.turns;
    }
    __device__ static int steps(const Pencils& b) { return b.turns * TURN; }

    __device__ void prepare(const Pencils& b) const {
#pragma unroll 1
        for (int n = threadIdx.x; n < 6 * b.turns; n += THREADS)
            prepare_barrier(full[0] + n, n < b.turns ? PORTERS * 32 + 1 : 1);
#pragma unroll 1
        for (int n = threadIdx.x; n < 2 * COLUMNS; n += THREADS) x[n < COLUMNS ? n - COLUMNS : steps(b) * COLUMNS + n - COLUMNS] = 0.0;
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __device__ void clear_sides() const {
#pragma unroll 1
        for (int n = threadIdx.x; n < SIDE_STEPS * SIDES; n += THREADS) {
            const int along_y = n - SIDE_STEPS * SIDES_X;
            const bool zero = along_y < 0 ? n % SIDES_X >= 2 * LY : along_y % SIDES_Y >= 2 * LX;
            sides_x[n] = zero ? 0.0 : __longlong_as_double(ABSENT);
        }
    }
};

// Sides that other thread blocks hand over.
__device__ inline double* edge(const Pencils& b, bool odd, bool backward, int block, bool along_y) {
    const size_t steps = Shared::steps(b), which = (odd * 2 + backward) * gridDim.x + block;
    return b.exchange + (which * (2 * LX + 2 * LY) + (along_y ? 2 * LY : 0)) * steps;
}
#endif
