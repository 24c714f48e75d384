// A barrier of all thread blocks of a launch that adds numbers up on the way. All of them must be resident: the
// launch is cooperative, which the driver refuses otherwise.
#pragma once
#include "absent.cuh"

constexpr u32 WARPS = THREADS / WARP;
// Most numbers of a barrier; mirrored by the launcher.
constexpr u32 MOST_SUMS = 4;
static_assert(WARPS >= MOST_SUMS && WARPS <= WARP, "a warp for each sum, and a lane for each warp's part");

// Parts of the sums that thread blocks hand to each other. A part is its own flag (absent.cuh): a barrier takes
// one trip to the L2 cache and one back, where a counter takes another for the parts it counts. Three sets take
// turns. A thread block that arrives at a barrier clears the set of the next one: it is that of the barrier
// before the last, which nobody reads any more, for everybody has arrived at the last.
//
// Every thread block adds up all parts itself, in one order: all have the same bits, at every run.
class Barrier {
    // Release before the relaxed store of a part, acquire after the relaxed loads of all. __threadfence orders
    // more, and takes longer.
    static __device__ void fence() { asm volatile("fence.acq_rel.gpu;" : : : "memory"); }

    double* const parts;
    u32 turn = 0;

    __device__ double* part(u32 set, u32 sum, u32 block) const {
        return parts + ((size_t)set * MOST_SUMS + sum) * gridDim.x + block;
    }

public:
    // `parts` are 3 MOST_SUMS for each thread block, all of them absent.
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
        if (warp >= MOST_SUMS) return;
        const double s = warp_sum(warp < M && lane < WARPS ? of_warp[warp][lane] : 0.0);
        if (lane > 0) return;
        store_relaxed(part((turn + 1) % 3, warp, blockIdx.x), __longlong_as_double(ABSENT));
        if (warp < M) fence(), store_relaxed(part(turn, warp, blockIdx.x), arrived(s));
    }

    // The sums over all threads of the launch, once everybody has arrived. As many as were handed over.
    template <u32 M> __device__ void wait(double (&sum)[M]) {
        // parts that a lane looks for at a time
        constexpr u32 EACH = 5;
        __shared__ double of_all[MOST_SUMS];
        const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
        if (warp < M) {
            double s = 0.0;
            for (u32 first = lane; first < gridDim.x; first += EACH * WARP) {
                double v[EACH];
#pragma unroll
                for (u32 u = 0; u < EACH; ++u) {
                    const u32 block = first + u * WARP;
                    v[u] = block < gridDim.x ? load_relaxed(part(turn, warp, block)) : 0.0;
                }
#pragma unroll
                for (u32 u = 0; u < EACH; ++u) {
                    while (absent(v[u])) v[u] = load_relaxed(part(turn, warp, first + u * WARP));
                    s += v[u];
                }
            }
            s = warp_sum(s);
            fence();
            if (lane == 0) of_all[warp] = s;
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
