// FGBILU in the style of OpenCL and CUDA (Luo et al. 2015, Algorithms 8, 9 and 10): one kernel per
// hyperplane, a thread per element of the matrices of a point, a thread block for POINTS points, which
// synchronises and hands values on through shared memory.
//
// The kernels work on `count` points of one hyperplane, those from `first` on in the order of the grid.
#include "fgbilu/grid.cuh"

// Beyond, the elements of one block are more than a thread block has threads.
#if BS <= 32

// Threads of a thread block: a common multiple of the warp and the elements of a block where there is a
// small one, else about 256 or one block.
constexpr u32 POWER = BB & (0 - BB);  // the largest power of two in BB
constexpr u32 COMMON = BB * (WARP / (POWER < WARP ? POWER : WARP));
constexpr u32 THREADS = COMMON <= 512 ? COMMON * (COMMON < 256 ? 256 / COMMON : 1)
                                      : BB * (BB < 256 ? 256 / BB : 1);
constexpr u32 POINTS = THREADS / BB;

// How the kernels are launched: threads of a thread block, and its points.
extern "C" __constant__ u32 fgbilu_launch[2] = {THREADS, POINTS};

// Algorithm 8: what a thread works on. A thread beyond the hyperplane does as the others do, with zeros.
struct Place {
    u32 u, v, within, point;
    bool there;

    __device__ Place(const Grid& g, u32 first, u32 count)
        : u(threadIdx.x % BS), v(threadIdx.x / BS % BS), within(threadIdx.x / BB) {
        const u32 q = blockIdx.x * POINTS + within;
        there = q < count;
        point = there ? g.order[first + q] : 0;
    }

    __device__ u32 element() const { return v * BS + u; }
};

// Algorithm 9.
extern "C" __global__ void __launch_bounds__(THREADS)
factor(Grid g, u32 first, u32 count, u64* error) {
    __shared__ double shared[3][POINTS][BB];
    const Place at(g, first, count);
    const u32 u = at.u, v = at.v, element = at.element();
    double* const s[3] = {shared[0][at.within], shared[1][at.within], shared[2][at.within]};
#pragma unroll
    for (u32 c = ALPHA; c <= GAMMA; ++c) {
        const u32 there = at.there ? neighbour(g, at.point, c) : NONE;
        s[c][element] = there == NONE ? 0.0 : dot(block(g, c, at.point), diagonal(g, there), u, v);
    }
    __syncthreads();
    const double delta = at.there ? block(g, DELTA, at.point)[element] : u == v ? 1.0 : 0.0;
    double d = delta;
#pragma unroll
    for (u32 c = ALPHA; c <= GAMMA; ++c) {
        const u32 there = at.there ? neighbour(g, at.point, c) : NONE;
        if (there != NONE) d -= dot(s[c], block(g, 6 - c, there), u, v);
    }
    __syncthreads();
    // what the pivot of row u is measured by, for the thread on the diagonal; the third array is free
    s[2][element] = fabs(delta);
    __syncthreads();
    double scale = 0.0;
    if (u == v)
        for (u32 w = 0; w < BS; ++w) scale = fmax(scale, s[2][w * BS + u]);
    // the first two arrays alternate, so that a step needs one barrier
    for (u32 r = 0; r < BS; ++r) {
        double* const t = r % 2 ? shared[1][at.within] : shared[0][at.within];
        const bool row = u == r, column = v == r;
        const double a = row, b = column, c = !row && !column;
        if (row || column) t[element] = d;
        __syncthreads();
        if (row && column && at.there) check(d, scale, at.point, r, error);
        d = (a * b + (a - b) * d - c * t[r * BS + u] * t[v * BS + r]) / t[r * BS + r] + c * d;
    }
    if (at.there) diagonal(g, at.point)[element] = d;
}

// Element (u, v) of the products of three arrays from `first` on with x: what a thread adds to row u.
__device__ inline double element_products(const Grid& g, const Place& at, u32 first,
                                          const double* x) {
    double sum = 0.0;
#pragma unroll
    for (u32 c = 0; c < 3; ++c) {
        const u32 there = at.there ? neighbour(g, at.point, first + c) : NONE;
        if (there != NONE)
            sum = fma(block(g, first + c, at.point)[at.element()], x[(size_t)there * BS + at.v], sum);
    }
    return sum;
}

// Sum over the columns of row u.
__device__ inline double row_sum(const double* s, u32 u) {
    double sum = 0.0;
#pragma unroll UNROLLED
    for (u32 w = 0; w < BS; ++w) sum += s[w * BS + u];
    return sum;
}

// Algorithm 10 (a): y = d (b - alpha y - beta y - gamma y).
extern "C" __global__ void __launch_bounds__(THREADS)
forward(Grid g, u32 first, u32 count, const double* __restrict__ b, double* x) {
    __shared__ double shared[POINTS][BB], rest[POINTS][BS];
    const Place at(g, first, count);
    double* const s = shared[at.within];
    double* const z = rest[at.within];
    const size_t row = (size_t)at.point * BS + at.u;
    s[at.element()] = element_products(g, at, ALPHA, x);
    __syncthreads();
    if (at.v == 0) z[at.u] = (at.there ? b[row] : 0.0) - row_sum(s, at.u);
    __syncthreads();
    s[at.element()] = at.there ? diagonal(g, at.point)[at.element()] * z[at.v] : 0.0;
    __syncthreads();
    if (at.v == 0 && at.there) x[row] = row_sum(s, at.u);
}

// Algorithm 10 (b): x = y - d (epsilon x + zeta x + eta x), y and x in the same place.
extern "C" __global__ void __launch_bounds__(THREADS)
backward(Grid g, u32 first, u32 count, double* x) {
    __shared__ double shared[POINTS][BB], rest[POINTS][BS];
    const Place at(g, first, count);
    double* const s = shared[at.within];
    double* const z = rest[at.within];
    const size_t row = (size_t)at.point * BS + at.u;
    s[at.element()] = element_products(g, at, EPSILON, x);
    __syncthreads();
    if (at.v == 0) z[at.u] = row_sum(s, at.u);
    __syncthreads();
    s[at.element()] = at.there ? diagonal(g, at.point)[at.element()] * z[at.v] : 0.0;
    __syncthreads();
    if (at.v == 0 && at.there) x[row] -= row_sum(s, at.u);
}

#endif
