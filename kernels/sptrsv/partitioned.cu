// Triangular solves with block ILU factors, most dependencies inside one multiprocessor (sptrsv/parts.cuh).
//
// The block rows are cut into parts. Of ranges of consecutive rows there may be any number: as a row depends on rows
// before it, a chain of dependencies goes from one part to another at most once per part. Tiles of a grid depend on each
// other in any direction, and each has a thread block of its own.
#ifndef THREADS
#define THREADS (BS <= 5 ? 512 : 256)
#endif
#include "common.cuh"
constexpr u32 WARPS = THREADS / WARP;
#include "sptrsv/parts.cuh"

// Values of the slices from blocks in the order of the pattern. One warp per slice.
extern "C" __global__ void __launch_bounds__(THREADS)
partitioned_values(u32 slices, Parts t, const u32* __restrict__ row_ptr,
                   const double* __restrict__ blocks, u32 backward, Stored* __restrict__ val) {
    const u32 s = blockIdx.x * WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (s >= slices) return;
    const Slice slice = t.slices[s];
    const u32 groups = groups_of(slice), sharing = sharing_of(slice), split = 1 << sharing;
    Stored* const to = val + (size_t)slice.start * BB;
    for (u32 w = lane; w < slice.length * groups * BB; w += WARP) {
        const u32 r = w % BS, h = w / BS % groups, c = w / (BS * groups) % BS;
        const u32 i = t.order[slice.first + (h >> sharing)];
        const u32 begin = row_ptr[i], count = row_ptr[i + 1] - begin;
        // how many places before the end of the row
        const u32 back = (slice.length - 1 - w / (BB * groups)) * split + split - 1 - h % split;
        const u32 from = begin + (backward ? back : count - 1 - back);
        to[w] = (Stored)(back < count ? blocks[(size_t)from * BB + c * BS + r] : 0.0);
    }
}

extern __shared__ double slots[];

// One triangle in one launch. Thread blocks take parts in turn and warps take slices in turn, so that everything
// depends only on what was begun before: on ranges in their order, or on slices that come earlier in the one order
// that all parts have. All thread blocks must be resident.
template <bool BACKWARD>
__device__ void partitioned(const Parts& t, const Vectors& v) {
    for (u32 part = blockIdx.x; part < t.count; part += gridDim.x) solve_part<BACKWARD, true>(t, v, part, slots);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
partitioned_forward(Parts t, Vectors v) {
    partitioned<false>(t, v);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
partitioned_backward(Parts t, Vectors v) {
    partitioned<true>(t, v);
}
