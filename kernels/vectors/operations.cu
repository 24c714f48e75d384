// Vector operations and reductions. Scalars of the Krylov methods stay in `slots`.
#include "common.cuh"
#include "vectors/basis.cuh"

constexpr u32 THREADS = 256;
constexpr u32 WARPS = THREADS / WARP;

// Where a reduction over the whole grid meets: one row of partial sums per result.
struct Meeting {
    double* partials;
    u32* arrived;
};

// The block that arrives last gathers what all blocks left in `partials`, in a fixed order, and
// writes out[0..m), or their square roots. All threads of a block call it after they have written.
__device__ void finish(u32 m, Meeting meeting, double* out, bool root) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(meeting.arrived, 1) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    const u32 lane = threadIdx.x % WARP;
    for (u32 j = threadIdx.x / WARP; j < m; j += blockDim.x / WARP) {
        double s = 0.0;
        for (u32 k = lane; k < gridDim.x; k += WARP) s += __ldcg(&meeting.partials[j * gridDim.x + k]);
        s = warp_sum(s);
        if (lane == 0) out[j] = root ? sqrt(s) : s;
    }
    if (threadIdx.x == 0) *meeting.arrived = 0;
}

// Runs body(first, lanes) over pairs of entries, and over the odd one at the end.
#define FOR_PAIRS(n, i)                                                                   \
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x, step_ = (size_t)gridDim.x * THREADS; \
         i < (n) / 2; i += step_)
#define ODD_END(n) ((n) % 2 == 1 && blockIdx.x == 0 && threadIdx.x == 0)

__device__ inline double2 pair(const double* x, size_t i) {
    return reinterpret_cast<const double2*>(x)[i];
}

__device__ inline void set_pair(double* x, size_t i, double2 v) {
    reinterpret_cast<double2*>(x)[i] = v;
}

extern "C" __global__ void __launch_bounds__(THREADS) fill(size_t n, double value, double* x) {
    FOR_PAIRS(n, i) set_pair(x, i, make_double2(value, value));
    if (ODD_END(n)) x[n - 1] = value;
}

// y = a x + b y; a coefficient that is the host's zero leaves its operand unread.
extern "C" __global__ void __launch_bounds__(THREADS)
axpby(size_t n, Coef ca, const double* __restrict__ x, Coef cb, double* __restrict__ y,
      const double* slots) {
    const double a = evaluate(ca, slots), b = evaluate(cb, slots);
    const bool read_x = ca.kind != 0 || a != 0.0, read_y = cb.kind != 0 || b != 0.0;
    const double2 zero = make_double2(0.0, 0.0);
    FOR_PAIRS(n, i) {
        const double2 u = read_x ? pair(x, i) : zero, v = read_y ? pair(y, i) : zero;
        set_pair(y, i, make_double2(fma(a, u.x, b * v.x), fma(a, u.y, b * v.y)));
    }
    if (ODD_END(n)) {
        const double u = read_x ? x[n - 1] : 0.0, v = read_y ? y[n - 1] : 0.0;
        y[n - 1] = fma(a, u, b * v);
    }
}

// x = a x
extern "C" __global__ void __launch_bounds__(THREADS)
scale(size_t n, Coef ca, double* x, const double* slots) {
    const double a = evaluate(ca, slots);
    FOR_PAIRS(n, i) {
        const double2 v = pair(x, i);
        set_pair(x, i, make_double2(a * v.x, a * v.y));
    }
    if (ODD_END(n)) x[n - 1] *= a;
}

// out[j] = v_j . w for j < m, or their square roots. A warp takes V of the vectors; the warps of a
// block that take different vectors go through the same entries, so that w comes from memory once.
// Entries of `basis` beyond m repeat the last one.
template <u32 V>
__device__ void multi_dot(size_t n, u32 m, const Basis& basis, const double* __restrict__ w,
                          double* out, bool root, Meeting meeting) {
    // pairs of entries that a warp takes at a time
    constexpr u32 EACH = V == 1 ? 4 : 2, STEP = EACH * WARP;
    const u32 groups = (m + V - 1) / V, tiles = blockDim.x / WARP / groups;
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 group = warp % groups, tile = warp / groups;
    const double* v[V];
#pragma unroll
    for (u32 k = 0; k < V; ++k) v[k] = basis.v[group * V + k];
    double sum[V] = {};
    const size_t pairs = n / 2, stride = (size_t)gridDim.x * tiles * STEP;
    for (size_t at = ((size_t)blockIdx.x * tiles + tile) * STEP; at < pairs; at += stride) {
        double2 a[V][EACH], b[EACH];
#pragma unroll
        for (u32 u = 0; u < EACH; ++u) {
            const size_t i = min(at + u * WARP + lane, pairs - 1);
            b[u] = pair(w, i);
#pragma unroll
            for (u32 k = 0; k < V; ++k) a[k][u] = pair(v[k], i);
        }
#pragma unroll
        for (u32 u = 0; u < EACH; ++u) {
            if (at + u * WARP + lane >= pairs) break;
#pragma unroll
            for (u32 k = 0; k < V; ++k)
                sum[k] = fma(a[k][u].x, b[u].x, fma(a[k][u].y, b[u].y, sum[k]));
        }
    }
    if (n % 2 == 1 && blockIdx.x == 0 && tile == 0 && lane == 0) {
#pragma unroll
        for (u32 k = 0; k < V; ++k) sum[k] = fma(v[k][n - 1], w[n - 1], sum[k]);
    }
    __shared__ double sums[WARPS][V];
#pragma unroll
    for (u32 k = 0; k < V; ++k) {
        sum[k] = warp_sum(sum[k]);
        if (lane == 0) sums[warp][k] = sum[k];
    }
    __syncthreads();
    if (threadIdx.x < m) {
        const u32 j = threadIdx.x;
        double s = 0.0;
        for (u32 t = 0; t < tiles; ++t) s += sums[t * groups + j / V][j % V];
        __stcg(&meeting.partials[j * gridDim.x + blockIdx.x], s);
    }
    finish(m, meeting, out, root);
}

extern "C" __global__ void __launch_bounds__(THREADS)
dot(size_t n, u32 m, Basis basis, const double* w, double* out, u32 root, Meeting meeting) {
    multi_dot<1>(n, m, basis, w, out, root != 0, meeting);
}

extern "C" __global__ void __launch_bounds__(THREADS)
dots(size_t n, u32 m, Basis basis, const double* w, double* out, u32 root, Meeting meeting) {
    multi_dot<4>(n, m, basis, w, out, root != 0, meeting);
}

// w -= sum_j coef_j v_j for j < m, and norm_out = |w| when that is not null. Entries of `basis` beyond
// m repeat the last one.
extern "C" __global__ void __launch_bounds__(THREADS)
multi_axpy(size_t n, u32 m, Basis basis, const double* coef, double* __restrict__ w,
           double* norm_out, Meeting meeting) {
    constexpr u32 EACH = 4;
    __shared__ double c[MOST];
    if (threadIdx.x < MOST) c[threadIdx.x] = threadIdx.x < m ? -coef[threadIdx.x] : 0.0;
    __syncthreads();
    double sum = 0.0;
    FOR_PAIRS(n, i) {
        double2 s = pair(w, i);
#pragma unroll 2
        for (u32 j = 0; j < m; j += EACH) {
            double2 a[EACH];
#pragma unroll
            for (u32 k = 0; k < EACH; ++k) a[k] = pair(basis.v[j + k], i);
#pragma unroll
            for (u32 k = 0; k < EACH; ++k) {
                if (j + k >= m) break;
                s.x = fma(c[j + k], a[k].x, s.x);
                s.y = fma(c[j + k], a[k].y, s.y);
            }
        }
        set_pair(w, i, s);
        sum = fma(s.x, s.x, fma(s.y, s.y, sum));
    }
    if (ODD_END(n)) {
        double s = w[n - 1];
        for (u32 j = 0; j < m; ++j) s = fma(c[j], basis.v[j][n - 1], s);
        w[n - 1] = s;
        sum = fma(s, s, sum);
    }
    if (!norm_out) return;
    __shared__ double sums[WARPS];
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0) sums[threadIdx.x / WARP] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        double s = 0.0;
        for (u32 k = 0; k < WARPS; ++k) s += sums[k];
        __stcg(&meeting.partials[blockIdx.x], s);
    }
    finish(1, meeting, norm_out, true);
}

// x = sum_j coef_j v_j, or x += that.
extern "C" __global__ void __launch_bounds__(THREADS)
combine(size_t n, u32 m, Basis basis, Numbers coef, u32 add, double* __restrict__ x) {
    FOR_PAIRS(n, i) {
        double2 s = add ? pair(x, i) : make_double2(0.0, 0.0);
#pragma unroll 8
        for (u32 j = 0; j < m; ++j) {
            const double2 a = pair(basis.v[j], i);
            s.x = fma(coef.v[j], a.x, s.x);
            s.y = fma(coef.v[j], a.y, s.y);
        }
        set_pair(x, i, s);
    }
    if (ODD_END(n)) {
        double s = add ? x[n - 1] : 0.0;
        for (u32 j = 0; j < m; ++j) s = fma(coef.v[j], basis.v[j][n - 1], s);
        x[n - 1] = s;
    }
}

struct Slots {
    unsigned short at[8];
};

// slots[out] = product of the first n_num of num over product of the first n_den of den.
extern "C" __global__ void ratio(u32 out, u32 n_num, Slots num, u32 n_den, Slots den, double* slots) {
    double top = 1.0, bottom = 1.0;
#pragma unroll
    for (u32 i = 0; i < 8; ++i) {
        if (i < n_num) top *= slots[num.at[i]];
        if (i < n_den) bottom *= slots[den.at[i]];
    }
    slots[out] = quotient(top, bottom);
}

// A step of arithmetic with scalars, and a list of them.
struct Step {
    Coef a, b;
    u32 out, operation;
};

struct Steps {
    Step at[32];
};

// Does the steps one after the other: 0 adds, 1 multiplies, 2 is the root of the sum of squares.
extern "C" __global__ void scalars(u32 count, const __grid_constant__ Steps steps, double* slots) {
    for (u32 i = 0; i < count; ++i) {
        const Step& step = steps.at[i];
        const double a = evaluate(step.a, slots), b = evaluate(step.b, slots);
        slots[step.out] = step.operation == 0 ? a + b : step.operation == 1 ? a * b : hypot(a, b);
    }
}

// Blocks of `size` entries in another order: y_i = x_order(i).
extern "C" __global__ void __launch_bounds__(THREADS)
gather(u32 n, u32 size, const u32* __restrict__ order, const double* __restrict__ x,
       double* __restrict__ y) {
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i < n) y[i] = x[(size_t)order[i / size] * size + i % size];
}

// The way back: y_order(i) = x_i.
extern "C" __global__ void __launch_bounds__(THREADS)
scatter(u32 n, u32 size, const u32* __restrict__ order, const double* __restrict__ x,
        double* __restrict__ y) {
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i < n) y[(size_t)order[i / size] * size + i % size] = x[i];
}
