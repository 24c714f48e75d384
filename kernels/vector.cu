// Vector operations and reductions. Scalars of the Krylov methods stay in `slots`.
#include "common.cuh"

constexpr u32 THREADS = 256;
constexpr u32 WARPS = THREADS / WARP;
// Vectors that one pass over a basis takes.
constexpr u32 MOST = 32;

struct Basis {
    const double* v[MOST];
};

struct Numbers {
    double v[MOST];
};

// Where a reduction over the whole grid meets: one row of partial sums per result.
struct Meeting {
    double* partials;
    u32* arrived;
};

// Sums the first m of `value` over all threads of the grid in a fixed order. The block that arrives
// last writes them to out[0..m), or their square roots.
template <u32 C>
__device__ void reduce(const double (&value)[C], u32 m, Meeting meeting, double* out, bool root) {
    __shared__ double sums[C][WARPS];
    __shared__ bool last;
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
    for (u32 j = 0; j < C; ++j) {
        if (j < m) {
            const double s = warp_sum(value[j]);
            if (lane == 0) sums[j][warp] = s;
        }
    }
    __syncthreads();
    if (threadIdx.x < m) {
        double s = 0.0;
        for (u32 k = 0; k < WARPS; ++k) s += sums[threadIdx.x][k];
        __stcg(&meeting.partials[threadIdx.x * gridDim.x + blockIdx.x], s);
        __threadfence();
    }
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(meeting.arrived, 1) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (u32 j = warp; j < m; j += WARPS) {
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

// slots[out + j] = v_j . w for j < m, in one pass.
template <u32 C>
__device__ void multi_dot(size_t n, u32 m, const Basis& basis, const double* __restrict__ w,
                          double* out, bool root, Meeting meeting) {
    double sum[C] = {};
    FOR_PAIRS(n, i) {
        const double2 b = pair(w, i);
#pragma unroll
        for (u32 j = 0; j < C; ++j) {
            if (j < m) {
                const double2 a = pair(basis.v[j], i);
                sum[j] = fma(a.x, b.x, fma(a.y, b.y, sum[j]));
            }
        }
    }
    if (ODD_END(n)) {
#pragma unroll
        for (u32 j = 0; j < C; ++j)
            if (j < m) sum[j] = fma(basis.v[j][n - 1], w[n - 1], sum[j]);
    }
    reduce<C>(sum, m, meeting, out, root);
}

// w -= sum_j slots[coef + j] v_j, and slots[norm_out] = |w| when asked.
template <u32 C>
__device__ void multi_axpy(size_t n, u32 m, const Basis& basis, const double* coef,
                           double* __restrict__ w, double* norm_out, Meeting meeting) {
    double c[C];
#pragma unroll
    for (u32 j = 0; j < C; ++j) c[j] = j < m ? coef[j] : 0.0;
    double sum[1] = {0.0};
    FOR_PAIRS(n, i) {
        double2 s = pair(w, i);
#pragma unroll
        for (u32 j = 0; j < C; ++j) {
            if (j < m) {
                const double2 a = pair(basis.v[j], i);
                s.x = fma(-c[j], a.x, s.x);
                s.y = fma(-c[j], a.y, s.y);
            }
        }
        set_pair(w, i, s);
        sum[0] = fma(s.x, s.x, fma(s.y, s.y, sum[0]));
    }
    if (ODD_END(n)) {
        double s = w[n - 1];
#pragma unroll
        for (u32 j = 0; j < C; ++j)
            if (j < m) s = fma(-c[j], basis.v[j][n - 1], s);
        w[n - 1] = s;
        sum[0] = fma(s, s, sum[0]);
    }
    if (norm_out) reduce<1>(sum, 1, meeting, norm_out, true);
}

#define PASSES(C)                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS)                                      \
    multi_dot_##C(size_t n, u32 m, Basis basis, const double* w, double* out, u32 root,        \
                  Meeting meeting) {                                                           \
        multi_dot<C>(n, m, basis, w, out, root != 0, meeting);                                 \
    }                                                                                          \
    extern "C" __global__ void __launch_bounds__(THREADS)                                      \
    multi_axpy_##C(size_t n, u32 m, Basis basis, const double* coef, double* w,                \
                   double* norm_out, Meeting meeting) {                                        \
        multi_axpy<C>(n, m, basis, coef, w, norm_out, meeting);                                \
    }

PASSES(1)
PASSES(4)
PASSES(8)
PASSES(16)
PASSES(24)
PASSES(32)

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
