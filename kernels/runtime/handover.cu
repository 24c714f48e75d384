// How long a value takes from one thread block to another: the least that a level can take whose rows wait
// for rows of other multiprocessors.
#include "common.cuh"

// Two thread blocks hand a number back and forth through the L2 cache, `rounds` times there and back.
// `numbers` are 64, all zero.
extern "C" __global__ void __launch_bounds__(32) handover(u32 rounds, double* numbers) {
    if (threadIdx.x > 0) return;
    double* const there = numbers;
    double* const back = numbers + 32;
    for (u32 n = 1; n <= rounds; ++n) {
        if (blockIdx.x == 0) {
            store_relaxed(there, n);
            while (load_relaxed(back) != n) {}
        } else {
            while (load_relaxed(there) != n) {}
            store_relaxed(back, n);
        }
    }
}
