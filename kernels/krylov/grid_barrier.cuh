// A barrier of all thread blocks of a launch that adds numbers up on the way. All of them must be resident: the
// launch is cooperative, which the driver refuses otherwise.
#pragma once
#include "common.cuh"

constexpr u32 WARPS = THREADS / WARP;
// Most numbers of a barrier; mirrored by the launcher.
constexpr u32 MOST_SUMS = 4;
static_assert(WARPS <= WARP, "a lane for each warp's part");

// Parts of the sums that thread blocks hand to each other, and a counter of those that have arrived. One lane of a
// thread block looks at the counter, then its warp at the parts. Parts that were their own flags (absent.cuh) would
// save a trip to the L2 cache, but 132 thread blocks that look at 132 parts each hold up those that arrive: 5.6 us
// for a barrier where this takes 1.6 (H200; docs/almouhamed.md).
//
// Two sets of parts take turns: who writes to the first again has seen that all have arrived at the second, and so
// have read the first. Every thread block adds up all parts itself, in one order: all have the same bits, at every
// run.
class Barrier {
    // arrived thread blocks, in a line of its own, and the parts
    u32* const arrivals;
    double* const parts;
    // barriers until now
    u32 passed = 0;

    __device__ double* part(u32 block) const { return parts + (passed % 2 * gridDim.x + block) * MOST_SUMS; }

public:
    // Numbers before the parts; mirrored by the launcher.
    static constexpr u32 BEFORE_PARTS = 16;

    // `room` is BEFORE_PARTS and 2 MOST_SUMS for each thread block, all zero.
    __device__ explicit Barrier(double* room) : arrivals((u32*)room), parts(room + BEFORE_PARTS) {}

    // Hands over this thread's addends. What the thread block wrote before, all others see when they have
    // waited. All threads call it.
    template <u32 M> __device__ void arrive(const double (&addend)[M]) {
        static_assert(M >= 1 && M <= MOST_SUMS, "parts are what arrives");
        __shared__ double of_warp[MOST_SUMS][WARPS];
        const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
        for (u32 j = 0; j < M; ++j) {
            const double s = warp_sum(addend[j]);
            if (lane == 0) of_warp[j][warp] = s;
        }
        __syncthreads();
        if (warp > 0) return;
#pragma unroll
        for (u32 j = 0; j < M; ++j) {
            const double s = warp_sum(lane < WARPS ? of_warp[j][lane] : 0.0);
            if (lane == 0) store_relaxed(part(blockIdx.x) + j, s);
        }
        if (lane == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" : : "l"(arrivals) : "memory");
    }

    // The sums over all threads of the launch, once everybody has arrived. As many as were handed over.
    template <u32 M> __device__ void wait(double (&sum)[M]) {
        // parts that a lane reads at a time
        constexpr u32 EACH = M > 3 ? 3 : 5;
        __shared__ double of_all[MOST_SUMS];
        const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
        if (warp == 0) {
            // a thread block with little to do may be at the next barrier before this one has looked
            const u32 all = (passed + 1) * gridDim.x;
            if (lane == 0)
                while ((int)(load_acquire(arrivals) - all) < 0) {}
            __syncwarp();
            double s[M] = {};
            for (u32 first = lane; first < gridDim.x; first += EACH * WARP) {
                double v[EACH][M];
#pragma unroll
                for (u32 u = 0; u < EACH; ++u)
#pragma unroll
                    for (u32 j = 0; j < M; ++j)
                        v[u][j] = first + u * WARP < gridDim.x ? load_relaxed(part(first + u * WARP) + j) : 0.0;
#pragma unroll
                for (u32 u = 0; u < EACH; ++u)
#pragma unroll
                    for (u32 j = 0; j < M; ++j) s[j] += v[u][j];
            }
#pragma unroll
            for (u32 j = 0; j < M; ++j) {
                s[j] = warp_sum(s[j]);
                if (lane == 0) of_all[j] = s[j];
            }
        }
        __syncthreads();
#pragma unroll
        for (u32 j = 0; j < M; ++j) sum[j] = of_all[j];
        ++passed;
    }

    template <u32 M> __device__ void meet(double (&sum)[M]) {
        arrive(sum);
        wait(sum);
    }
};
