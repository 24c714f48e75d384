// Warps that await what the columns of neighbouring tiles have handed on, and put it into the ring as if it had been
// computed there. See ilu/stencil/entries.cu.
#pragma once
#include "absent.cuh"
#include "ilu/stencil/rows.cuh"

// A number that is awaited: where it comes from at step u = 0 of the march; the first step at which it is wanted, after
// all others if never; its place in a row of the ring, or -1.
struct Awaited {
    const double* from;
    int start, place;
};
__device__ constexpr Awaited nothing_at(int place) { return {nullptr, 1 << 30, place}; }

// How `wanted` numbers are shared among lanes: loads that a lane has under way at a time, of several numbers and steps.
__device__ constexpr int loads_of_lane(int wanted) { return wanted <= 96 ? 1 : wanted <= 256 ? 2 : 4; }

// A loader of one of the kernels. Numbers gives OF_LANE, the numbers that a lane awaits; LOADERS, warps; MEETING,
// threads that meet at the end of a step; ROW, numbers of a row of the ring; APART, from a step to the next where numbers
// come from; LAST, whether all meet once more after the last step; and find(at, tile), which number `at` is.
template <class Numbers>
struct Loader {
    static constexpr int OF_LANE = Numbers::OF_LANE, BATCH = ALIGNED / OF_LANE;
    const Tiles& box;
    const Numbers numbers;
    double* const ring;
    // among all loaders
    const int thread;
    Awaited of[OF_LANE];

    __device__ bool needed(int j, int u) const { return (u32)(u - of[j].start) < (u32)box.nx; }

    __device__ const double* at(int j, int u) const { return of[j].from + (long long)u * Numbers::APART; }

    __device__ void ask(double (&v)[BATCH][OF_LANE], int u) const {
#pragma unroll
        for (int n = 0; n < BATCH; ++n)
#pragma unroll
            for (int j = 0; j < OF_LANE; ++j) v[n][j] = needed(j, u + n) ? load_relaxed(at(j, u + n)) : 0.0;
    }

    __device__ void ask_again(double (&v)[BATCH][OF_LANE], int u) const {
#pragma unroll
        for (int n = 0; n < BATCH; ++n)
#pragma unroll
            for (int j = 0; j < OF_LANE; ++j) load_if_absent(v[n][j], at(j, u + n));
    }

    __device__ static bool missing(const double (&v)[OF_LANE]) {
        bool any = false;
#pragma unroll
        for (int j = 0; j < OF_LANE; ++j) any |= absent(v[j]);
        return __any_sync(FULL, any);
    }

    __device__ void march(int k) {
        const int4 tile = box.tile[k];
#pragma unroll
        for (int j = 0; j < OF_LANE; ++j) of[j] = numbers.find(thread + j * Numbers::LOADERS * 32, tile);
        double now[BATCH][OF_LANE], next[BATCH][OF_LANE];
        ask(now, 0);
        for (int u = 0; u < tile.w; u += BATCH) {
            ask(next, u + BATCH);
#pragma unroll
            for (int n = 0; n < BATCH; ++n) {
                while (missing(now[n])) {
                    ask_again(now, u);
                    ask_again(next, u + BATCH);
                }
                double* const to = ring + ((tile.z + u + n) & (RING - 1)) * Numbers::ROW;
#pragma unroll
                for (int j = 0; j < OF_LANE; ++j)
                    if (of[j].place >= 0) to[of[j].place] = now[n][j];
                end_step<Numbers::MEETING>();
            }
#pragma unroll
            for (int n = 0; n < BATCH; ++n)
#pragma unroll
                for (int j = 0; j < OF_LANE; ++j) now[n][j] = next[n][j];
        }
        if (Numbers::LAST) end_step<Numbers::MEETING>();
    }

    __device__ void march_all() {
        for (int k = blockIdx.x; k < box.tiles; k += gridDim.x) march(k);
    }
};
