// y = A x and r = b - A x for block rows; blocks of BS x BS, column-major. BS = 1 is CSR.
#include "common.cuh"

constexpr u32 THREADS = 256;

#if BS == 1

// Entries that one thread block holds in shared memory; mirrored by the launcher.
constexpr u32 CHUNK = 2048;

// CSR by chunks of consecutive rows (Greathouse and Daga 2014): products are formed in the order of
// memory, then summed by row. A row longer than a chunk has a thread block of its own.
extern "C" __global__ void __launch_bounds__(THREADS)
spmv(const u32* __restrict__ chunk_row, const u32* __restrict__ row_ptr,
     const u32* __restrict__ col_ind, const double* __restrict__ val, const double* __restrict__ x,
     const double* __restrict__ b, double* __restrict__ y) {
    __shared__ double product[CHUNK];
    const u32 first = chunk_row[blockIdx.x], last = chunk_row[blockIdx.x + 1];
    const u32 start = row_ptr[first], end = row_ptr[last];
    if (end - start <= CHUNK) {
        // all loads of a thread are under way before the first is used
        constexpr u32 EACH = CHUNK / THREADS;
        double a[EACH];
        u32 column[EACH];
#pragma unroll
        for (u32 u = 0; u < EACH; ++u) {
            const u32 e = start + threadIdx.x + u * THREADS;
            column[u] = e < end ? __ldcs(&col_ind[e]) : NONE;
            a[u] = e < end ? __ldcs(&val[e]) : 0.0;
        }
#pragma unroll
        for (u32 u = 0; u < EACH; ++u)
            if (column[u] != NONE) product[threadIdx.x + u * THREADS] = a[u] * __ldg(&x[column[u]]);
        __syncthreads();
        for (u32 i = first + threadIdx.x; i < last; i += THREADS) {
            double s = 0.0;
            for (u32 e = row_ptr[i] - start; e < row_ptr[i + 1] - start; ++e) s += product[e];
            y[i] = b ? b[i] - s : s;
        }
        return;
    }
    double s = 0.0;
    for (u32 e = start + threadIdx.x; e < end; e += THREADS) s = fma(val[e], __ldg(&x[col_ind[e]]), s);
    s = warp_sum(s);
    if (threadIdx.x % WARP == 0) product[threadIdx.x / WARP] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        s = 0.0;
        for (u32 w = 0; w < THREADS / WARP; ++w) s += product[w];
        y[first] = b ? b[first] - s : s;
    }
}

#else

// BS lanes (at most a warp) work on a block row, a lane on one of its scalar rows, or on several
// when there are more rows than lanes.
constexpr u32 LANES = BS < 32 ? BS : 32;
constexpr u32 GROUPS = WARP / LANES;
constexpr u32 TILES = (BS + LANES - 1) / LANES;
// Blocks in flight at a time.
constexpr u32 AHEAD = BS <= 2 ? 8 : BS <= 4 ? 4 : BS <= 8 ? 2 : 1;

// sum += A x for one block; a block that is not `there` is read, but not added.
__device__ inline void add_block(const double* __restrict__ a, const double* __restrict__ xj, u32 r,
                                 bool there, double (&sum)[TILES]) {
#pragma unroll(BS <= 8 ? BS : 8)
    for (u32 c = 0; c < BS; ++c) {
        const double xc = __ldg(&xj[c]);
#pragma unroll
        for (u32 t = 0; t < TILES; ++t)
            if (TILES == 1 || r + t * LANES < BS) {
                const double v = __ldg(&a[c * BS + r + t * LANES]);
                if (there) sum[t] = fma(v, xc, sum[t]);
            }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 4)
spmv(u32 block_rows, const u32* __restrict__ row_ptr, const u32* __restrict__ col_ind,
     const double* __restrict__ val, const double* __restrict__ x, const double* __restrict__ b,
     double* __restrict__ y) {
    const u32 lane = threadIdx.x % WARP, group = lane / LANES, r = lane % LANES;
    const u32 warp = (blockIdx.x * THREADS + threadIdx.x) / WARP;
    const u32 i = warp * GROUPS + group;
    if (group >= GROUPS || i >= block_rows) return;
    double sum[TILES] = {};
    const u32 end = row_ptr[i + 1];
    for (u32 e = row_ptr[i]; e < end; e += AHEAD) {
        // past the end the last block is read again, so that no load waits for a branch
        u32 at[AHEAD], j[AHEAD];
#pragma unroll
        for (u32 u = 0; u < AHEAD; ++u) {
            at[u] = min(e + u, end - 1);
            j[u] = __ldg(&col_ind[at[u]]);
        }
#pragma unroll
        for (u32 u = 0; u < AHEAD; ++u)
            add_block(val + (size_t)at[u] * BB, x + (size_t)j[u] * BS, r, e + u < end, sum);
    }
#pragma unroll
    for (u32 t = 0; t < TILES; ++t) {
        const u32 row = r + t * LANES;
        if (row < BS) {
            const size_t at = (size_t)i * BS + row;
            y[at] = b ? b[at] - sum[t] : sum[t];
        }
    }
}

#endif
