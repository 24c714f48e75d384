// Factors on their way to storage in float: whether they stay in its range.
#include "common.cuh"

constexpr u32 THREADS = 256;
constexpr float LARGEST = 3.40282347e38f, SMALLEST = 1.17549435e-38f;

// Marks the place of the first number that is not finite in float.
extern "C" __global__ void __launch_bounds__(THREADS)
first_beyond(u64 count, const double* __restrict__ values, u64* first) {
    const u64 stride = (u64)gridDim.x * THREADS;
    for (u64 n = (u64)blockIdx.x * THREADS + threadIdx.x; n < count; n += stride)
        if (!(fabsf((float)values[n]) <= LARGEST)) atomicMin(first, n);
}

// Inverse diagonal blocks of size b in float. Marks the first block with a number that is not finite
// there, or with a row of which nothing is left. One thread per row of a block.
extern "C" __global__ void __launch_bounds__(THREADS)
narrow_diagonal(u32 blocks, u32 b, const double* __restrict__ from, float* __restrict__ to, u64* first) {
    const u64 at = (u64)blockIdx.x * THREADS + threadIdx.x, i = at / b;
    if (i >= blocks) return;
    const u64 start = i * b * b + at % b;
    float largest = 0.0f;
    bool finite = true;
    for (u32 c = 0; c < b; ++c) {
        const float v = (float)from[start + c * b];
        to[start + c * b] = v;
        finite &= fabsf(v) <= LARGEST;
        largest = fmaxf(largest, fabsf(v));
    }
    if (!finite || largest < SMALLEST) atomicMin(first, i);
}
