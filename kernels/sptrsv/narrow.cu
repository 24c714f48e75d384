// Factors on their way to storage in float or bfloat16: whether they stay in its range.
#include "stored.cuh"

constexpr u32 THREADS = 256;
// Of the finite numbers of both the largest, and the least normal one.
constexpr float LARGEST = 3.40282347e38f, SMALLEST = 1.17549435e-38f;

// A number as it is stored.
__device__ inline float stored(double v) { return (float)(double)(Stored)v; }

// Marks the place of the first number that is not finite as it is stored.
extern "C" __global__ void __launch_bounds__(THREADS)
first_beyond(u64 count, const double* __restrict__ values, u64* first) {
    const u64 stride = (u64)gridDim.x * THREADS;
    for (u64 n = (u64)blockIdx.x * THREADS + threadIdx.x; n < count; n += stride)
        if (!(fabsf(stored(values[n])) <= LARGEST)) atomicMin(first, n);
}

// Inverse diagonal blocks of size b as they are stored. Marks the first block with a number that is not finite
// there, or with a row of which nothing is left. One thread per row of a block.
extern "C" __global__ void __launch_bounds__(THREADS)
narrow_diagonal(u32 blocks, u32 b, const double* __restrict__ from, Stored* __restrict__ to, u64* first) {
    const u64 at = (u64)blockIdx.x * THREADS + threadIdx.x, i = at / b;
    if (i >= blocks) return;
    const u64 start = i * b * b + at % b;
    float largest = 0.0f;
    bool finite = true;
    for (u32 c = 0; c < b; ++c) {
        const float v = stored(from[start + c * b]);
        to[start + c * b] = (Stored)from[start + c * b];
        finite &= fabsf(v) <= LARGEST;
        largest = fmaxf(largest, fabsf(v));
    }
    if (!finite || largest < SMALLEST) atomicMin(first, i);
}
