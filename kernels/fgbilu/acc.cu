// FGBILU in the style of directives (Luo et al. 2015, Algorithms 4, 6 and 7): a thread per matrix element,
// and a kernel for every step between which threads have to wait for each other.
//
// The kernels of the factorisation and the sweeps work on `count` points of one hyperplane, those from
// `first` on in the order of the grid; q counts them.
#include "fgbilu/grid.cuh"

constexpr u32 THREADS = 256;

__device__ inline u32 thread() { return blockIdx.x * THREADS + threadIdx.x; }

// Scalar rows of A to the seven arrays; delta gets `shift` on its diagonal besides.
extern "C" __global__ void __launch_bounds__(THREADS)
load(Grid g, const u32* __restrict__ row_ptr, const u32* __restrict__ col_ind,
     const double* __restrict__ val, double shift) {
    const u32 row = thread();
    if (row >= points(g) * BS) return;
    const u32 point = row / BS, u = row % BS, plane = g.ni * g.nj;
    bool diagonal = false;
    for (u32 e = row_ptr[row]; e < row_ptr[row + 1]; ++e) {
        const u32 there = col_ind[e] / BS, v = col_ind[e] % BS;
        const u32 below = point - there, above = there - point;
        const u32 array = there == point   ? DELTA
                          : below == plane ? ALPHA
                          : below == g.ni  ? BETA
                          : there < point  ? GAMMA
                          : above == plane ? ETA
                          : above == g.ni  ? ZETA
                                           : EPSILON;
        const bool own = col_ind[e] == row;
        diagonal |= own;
        block(g, array, point)[v * BS + u] = val[e] + (own ? shift : 0.0);
    }
    if (!diagonal) block(g, DELTA, point)[u * BS + u] = shift;
}

// Algorithm 4, kernel 1: alpha, beta and gamma times the inverses of their points. `s` are three arrays
// of `count` blocks.
extern "C" __global__ void __launch_bounds__(THREADS)
products(Grid g, u32 first, u32 count, double* __restrict__ s) {
    const u32 t = thread(), q = t / BB, u = t % BS, v = t / BS % BS;
    if (q >= count) return;
    const u32 point = g.order[first + q];
    for (u32 c = ALPHA; c <= GAMMA; ++c) {
        const u32 there = neighbour(g, point, c);
        s[((size_t)c * count + q) * BB + v * BS + u] =
            there == NONE ? 0.0 : dot(block(g, c, point), diagonal(g, there), u, v);
    }
}

// Kernel 2: d less these times the couplings back; d holds delta before.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
subtract(Grid g, u32 first, u32 count, const double* __restrict__ s) {
    const u32 t = thread(), q = t / BB, u = t % BS, v = t / BS % BS;
    if (q >= count) return;
    const u32 point = g.order[first + q];
    double rest = diagonal(g, point)[v * BS + u];
    for (u32 c = ALPHA; c <= GAMMA; ++c) {
        const u32 there = neighbour(g, point, c);
        if (there != NONE)
            rest -= dot(s + ((size_t)c * count + q) * BB, block(g, 6 - c, there), u, v);
    }
    diagonal(g, point)[v * BS + u] = rest;
}

// Number w of those that are not r.
__device__ inline u32 beside(u32 w, u32 r) { return w + (w >= r ? 1 : 0); }

#if BS > 1

// Kernel 3: row r over the pivot, column r over minus the pivot.
extern "C" __global__ void __launch_bounds__(THREADS)
divide(Grid g, u32 first, u32 count, u32 r) {
    constexpr u32 EACH = 2 * (BS - 1);
    const u32 t = thread(), q = t / EACH, at = t % EACH;
    if (q >= count) return;
    double* const d = diagonal(g, g.order[first + q]);
    const bool column = at >= BS - 1;
    const u32 w = beside(column ? at - (BS - 1) : at, r);
    double& entry = column ? d[r * BS + w] : d[w * BS + r];
    entry = (column ? -entry : entry) / d[r * BS + r];
}

// Kernel 4: all other entries.
extern "C" __global__ void __launch_bounds__(THREADS)
eliminate(Grid g, u32 first, u32 count, u32 r) {
    constexpr u32 EACH = (BS - 1) * (BS - 1);
    const u32 t = thread(), q = t / EACH, u = beside(t % (BS - 1), r), v = beside(t / (BS - 1) % (BS - 1), r);
    if (q >= count) return;
    double* const d = diagonal(g, g.order[first + q]);
    d[v * BS + u] += d[r * BS + u] * d[v * BS + r] * d[r * BS + r];
}

#endif

// Kernel 5: the pivot's own place.
extern "C" __global__ void __launch_bounds__(THREADS)
invert_pivot(Grid g, u32 first, u32 count, u32 r, u64* error) {
    const u32 q = thread();
    if (q >= count) return;
    const u32 point = g.order[first + q];
    const double* const delta = block(g, DELTA, point);
    double scale = 0.0;
    for (u32 v = 0; v < BS; ++v) scale = fmax(scale, fabs(delta[v * BS + r]));
    double& pivot = diagonal(g, point)[r * BS + r];
    check(pivot, scale, point, r, error);
    pivot = 1.0 / pivot;
}

// Algorithm 6 (a), first kernel: z = b - alpha y - beta y - gamma y.
extern "C" __global__ void __launch_bounds__(THREADS)
forward_rest(Grid g, u32 first, u32 count, const double* __restrict__ b, const double* x,
             double* __restrict__ z) {
    const u32 t = thread(), q = t / BS, u = t % BS;
    if (q >= count) return;
    const u32 point = g.order[first + q];
    z[t] = b[(size_t)point * BS + u] - couplings(g, point, ALPHA, GAMMA, x, u);
}

// Second kernel: y = d z.
extern "C" __global__ void __launch_bounds__(THREADS)
forward_solve(Grid g, u32 first, u32 count, const double* __restrict__ z, double* __restrict__ x) {
    const u32 t = thread(), q = t / BS, u = t % BS;
    if (q >= count) return;
    const u32 point = g.order[first + q];
    x[(size_t)point * BS + u] = dot(diagonal(g, point), z + (size_t)q * BS, u);
}

// Algorithm 6 (b), first kernel: z = epsilon x + zeta x + eta x.
extern "C" __global__ void __launch_bounds__(THREADS)
backward_rest(Grid g, u32 first, u32 count, const double* x, double* __restrict__ z) {
    const u32 t = thread(), q = t / BS, u = t % BS;
    if (q >= count) return;
    z[t] = couplings(g, g.order[first + q], EPSILON, ETA, x, u);
}

// Second kernel: x = y - d z, y and x in the same place.
extern "C" __global__ void __launch_bounds__(THREADS)
backward_solve(Grid g, u32 first, u32 count, const double* __restrict__ z, double* __restrict__ x) {
    const u32 t = thread(), q = t / BS, u = t % BS;
    if (q >= count) return;
    const u32 point = g.order[first + q];
    x[(size_t)point * BS + u] -= dot(diagonal(g, point), z + (size_t)q * BS, u);
}

// Algorithm 7: r = b - A x.
extern "C" __global__ void __launch_bounds__(THREADS)
residual(Grid g, const double* __restrict__ x, const double* __restrict__ b, double* __restrict__ r) {
    const u32 row = thread();
    if (row >= points(g) * BS) return;
    r[row] = b[row] - couplings(g, row / BS, ALPHA, ETA, x, row % BS);
}
