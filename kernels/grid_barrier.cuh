// A barrier of all thread blocks of a launch that adds numbers up on the way. All of them must be resident: the
// launch is cooperative, which the driver refuses otherwise.
#pragma once
#include "absent.cuh"

constexpr u32 WARPS = THREADS / WARP;
// Most numbers of a barrier, and numbers from one thread block's place to the next: a line of the L2 cache, so
// that no two blocks write to one while all look at it. Mirrored by the launcher.
constexpr u32 MOST_SUMS = 4, PLACE = 16;
static_assert(WARPS >= MOST_SUMS && WARPS <= WARP, "a lane for each warp's part");

// Parts of the sums that thread blocks hand to each other. A part is its own flag (absent.cuh): a barrier takes
// one trip to the L2 cache and one back, where a counter takes another for the parts it counts. Three sets take
// turns. Who has waited at a barrier clears its part of the set before: everybody has arrived, so nobody reads
// that any more, and it is not read again before the barrier after the next.
//
// Every thread block adds up all parts itself, in one order: all have the same bits, at every run.
class Barrier {
    double* const parts;
    u32 turn = 0;

    // Release before the relaxed store of a part, acquire after the relaxed loads of all.
    static __device__ void fence() { asm volatile("fence.acq_rel.gpu;" : : : "memory"); }

    __device__ double* part(u32 set, u32 block) const {
        return parts + ((size_t)set * gridDim.x + block) * PLACE;
    }

public:
    // `parts` are 3 PLACE for each thread block, all of them absent.
    __device__ explicit Barrier(double* parts) : parts(parts) {}

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
        double mine = 0.0;
#pragma unroll
        for (u32 j = 0; j < M; ++j) {
            const double s = warp_sum(lane < WARPS ? of_warp[j][lane] : 0.0);
            if (lane == j) mine = s;
        }
        fence();
        if (lane < M) store_relaxed(part(turn, blockIdx.x) + lane, arrived(mine));
    }

    // The sums over all threads of the launch, once everybody has arrived. As many as were handed over.
    template <u32 M> __device__ void wait(double (&sum)[M]) {
        // thread blocks that a lane looks for at a time
        constexpr u32 EACH = M <= 2 ? 5 : 3;
        __shared__ double of_all[MOST_SUMS];
        const u32 lane = threadIdx.x % WARP;
        if (threadIdx.x < WARP) {
            double s[M] = {};
            for (u32 first = lane; first < gridDim.x; first += EACH * WARP) {
                double v[EACH][M];
#pragma unroll
                for (u32 u = 0; u < EACH; ++u) {
                    const u32 block = first + u * WARP;
#pragma unroll
                    for (u32 j = 0; j < M; ++j)
                        v[u][j] = block < gridDim.x ? load_relaxed(part(turn, block) + j) : 0.0;
                }
#pragma unroll
                for (u32 u = 0; u < EACH; ++u)
#pragma unroll
                    for (u32 j = 0; j < M; ++j) {
                        while (absent(v[u][j])) v[u][j] = load_relaxed(part(turn, first + u * WARP) + j);
                        s[j] += v[u][j];
                    }
            }
            fence();
#pragma unroll
            for (u32 j = 0; j < M; ++j) {
                s[j] = warp_sum(s[j]);
                if (lane == 0) of_all[j] = s[j];
            }
            if (lane < MOST_SUMS) store_relaxed(part((turn + 2) % 3, blockIdx.x) + lane, __longlong_as_double(ABSENT));
        }
        __syncthreads();
#pragma unroll
        for (u32 j = 0; j < M; ++j) sum[j] = of_all[j];
        turn = (turn + 1) % 3;
    }

    template <u32 M> __device__ void meet(double (&sum)[M]) {
        arrive(sum);
        wait(sum);
    }
};
