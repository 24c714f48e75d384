// Block ILU on a filled pattern: factors L D U' (Yang et al., Algorithms 4 and 5, equation 5).
// L holds strictly lower blocks, U' = D^-1 U strictly upper ones, D the inverses of the diagonal blocks.
#include "common.cuh"

// Threads that work on one block row.
constexpr u32 TEAM = BS <= 8 ? 32 : BS <= 16 ? 128 : 256;
constexpr u32 THREADS = TEAM < 128 ? 128 : TEAM;
constexpr u32 TEAMS = THREADS / TEAM;

struct Pattern {
    const u32* row_ptr;
    const u32* col_ind;
};

struct Factors {
    double* lower;
    double* diagonal;
    double* upper;
};

__device__ inline void team_sync() {
    if (TEAM == WARP) __syncwarp();
    else __syncthreads();
}

// Entries of A, in scalar rows, into the filled blocks; those outside the pattern are dropped. One
// thread per scalar row. The blocks must be zero.
extern "C" __global__ void __launch_bounds__(256)
scatter(u32 rows, const u32* __restrict__ row_ptr, const u32* __restrict__ col_ind,
        const double* __restrict__ val, double shift, Pattern lower, Pattern upper, Factors f) {
    const u32 row = blockIdx.x * 256 + threadIdx.x;
    if (row >= rows) return;
    const u32 i = row / BS, r = row % BS;
    f.diagonal[(size_t)i * BB + r * BS + r] += shift;
    for (u32 e = row_ptr[row]; e < row_ptr[row + 1]; ++e) {
        const u32 column = col_ind[e], j = column / BS;
        const u32 within = column % BS * BS + r;
        if (j == i) {
            f.diagonal[(size_t)i * BB + within] += val[e];
            continue;
        }
        const Pattern p = j < i ? lower : upper;
        const u32 at = find(p.col_ind, p.row_ptr[i], p.row_ptr[i + 1], j);
        if (at != NONE) (j < i ? f.lower : f.upper)[(size_t)at * BB + within] = val[e];
    }
}

// The same into blocks that follow one pattern with its diagonal, as cuSPARSE factorises them.
extern "C" __global__ void __launch_bounds__(256)
scatter_whole(u32 rows, const u32* __restrict__ row_ptr, const u32* __restrict__ col_ind,
              const double* __restrict__ val, double shift, Pattern whole, double* blocks) {
    const u32 row = blockIdx.x * 256 + threadIdx.x;
    if (row >= rows) return;
    const u32 i = row / BS, r = row % BS, begin = whole.row_ptr[i], end = whole.row_ptr[i + 1];
    const u32 diagonal = find(whole.col_ind, begin, end, i);
    if (diagonal != NONE) blocks[(size_t)diagonal * BB + r * BS + r] = shift;
    for (u32 e = row_ptr[row]; e < row_ptr[row + 1]; ++e) {
        const u32 at = find(whole.col_ind, begin, end, col_ind[e] / BS);
        if (at != NONE) blocks[(size_t)at * BB + col_ind[e] % BS * BS + r] += val[e];
    }
}

// A strict triangle with an identity block put into each row: after its last block, or `first`, as
// the triangular solves of cuSPARSE want it. One warp per block row.
extern "C" __global__ void __launch_bounds__(256)
insert_identity(u32 rows, const u32* __restrict__ row_ptr, const double* __restrict__ blocks,
                u32 first, double* __restrict__ out) {
    const u32 i = (blockIdx.x * 256 + threadIdx.x) / WARP, lane = threadIdx.x % WARP;
    if (i >= rows) return;
    const u32 begin = row_ptr[i], count = row_ptr[i + 1] - begin;
    const double* const from = blocks + (size_t)begin * BB;
    double* const to = out + (size_t)(begin + i) * BB;
    double* const identity = first ? to : to + (size_t)count * BB;
    double* const rest = first ? to + BB : to;
    for (u32 w = lane; w < BB; w += WARP) identity[w] = w / BS == w % BS ? 1.0 : 0.0;
    for (size_t w = lane; w < (size_t)count * BB; w += WARP) rest[w] = from[w];
}

// Shared memory of one team.
struct Space {
    // The block that multiplies; later the diagonal block.
    double block[BB];
    double pivot_row[BS];
    double pivot_column[BS];
    double row_max[BS];
    u32 swap[BS];
    // Places of the blocks that one round of updates changes.
    double* target[TEAM];
};

// How `factor` is launched: threads, block rows in work at a time and shared bytes of a thread block.
extern "C" __constant__ u32 factor_launch[3] = {THREADS, TEAMS, (u32)sizeof(Space) * TEAMS};

// `block` becomes its inverse: Gauss-Jordan by columns with column pivoting, as on the CPU. Returns
// NONE, or the step at which there was no pivot; `pivot` is then the best candidate relative to
// its row.
__device__ u32 invert(Space& s, u32 tid, double& pivot) {
    double* a = s.block;
    pivot = 0.0;
#if BS == 1
    {
        const double inverse = 1.0 / a[0];
        const bool finite = isfinite(a[0]) && isfinite(inverse);
        team_sync();
        if (tid == 0) a[0] = inverse;
        team_sync();
        return finite ? NONE : 0;
    }
#else
    // a pivot below this part of its row's largest entry counts as zero: a few roundings
    constexpr double SINGULAR = 16.0 * 2.220446049250313e-16;
    for (u32 r = tid; r < BS; r += TEAM) {
        double most = 0.0, poison = 0.0;
        for (u32 c = 0; c < BS; ++c) {
            const double v = a[c * BS + r];
            most = fmax(most, fabs(v));
            poison += v * 0.0;
        }
        s.row_max[r] = poison == 0.0 ? most : -1.0;
    }
    team_sync();
    for (u32 r = 0; r < BS; ++r)
        if (s.row_max[r] < 0.0) return 0;  // a NaN or infinite entry
    const u32 lane = tid % WARP;
    for (u32 k = 0; k < BS; ++k) {
        // every warp finds the pivot for itself: largest in row k, the first of equals
        double best = -1.0;
        u32 p = BS;
        for (u32 c = lane; c < BS; c += WARP) {
            const double v = c >= k ? fabs(a[c * BS + k]) : -1.0;
            if (v > best) best = v, p = c;
        }
        for (int offset = 16; offset; offset >>= 1) {
            const double other = __shfl_xor_sync(FULL, best, offset);
            const u32 q = __shfl_xor_sync(FULL, p, offset);
            if (other > best || (other == best && q < p)) best = other, p = q;
        }
        if (best <= SINGULAR * s.row_max[k]) {
            pivot = s.row_max[k] > 0.0 ? best / s.row_max[k] : 0.0;
            return k;
        }
        team_sync();
        // columns k and p change places; the pivot's row and scaled column are kept apart
        const double inverse = 1.0 / a[p * BS + k];
        for (u32 c = tid; c < BS; c += TEAM) {
            const u32 from = c == k ? p : c == p ? k : c;
            s.pivot_row[c] = a[from * BS + k];
            s.pivot_column[c] = (c == k ? 1.0 : a[p * BS + c]) * inverse;
        }
        if (tid == 0) s.swap[k] = p;
        team_sync();
        if (p != k) {
            for (u32 r = tid; r < BS; r += TEAM) a[p * BS + r] = a[k * BS + r];
            team_sync();
        }
        for (u32 w = tid; w < BB; w += TEAM) {
            const u32 c = w / BS, r = w % BS;
            if (c == k) a[w] = s.pivot_column[r];
            else a[w] = fma(-s.pivot_row[c], s.pivot_column[r], r == k ? 0.0 : a[w]);
        }
        team_sync();
    }
    // swapped columns of the block are swapped rows of the inverse
    for (u32 c = tid; c < BS; c += TEAM) {
        for (u32 k = BS; k-- > 0;) {
            const u32 p = s.swap[k];
            const double v = a[c * BS + k];
            a[c * BS + k] = a[c * BS + p];
            a[c * BS + p] = v;
        }
    }
    team_sync();
    return NONE;
#endif
}

// sum_k a[k][r] x[k] with x in global memory, written by other multiprocessors.
__device__ inline double row_times(const double* a, u32 r, const double* x) {
    double s = 0.0;
#pragma unroll(BS <= 8 ? BS : 8)
    for (u32 k = 0; k < BS; ++k) s = fma(a[k * BS + r], __ldcg(&x[k]), s);
    return s;
}

// Row i of the factorisation, for p < i in the row: A_ij -= A_ip U'_pj for j > p, then
// L_ip = A_ip D_p; at the end D_i is inverted and U'_ij = D_i A_ij.
//
// Teams take rows in the order of the levels, and wait for each row p until `ready[p]` shows this
// factorisation's `epoch`. All thread blocks must be resident.
extern "C" __global__ void __launch_bounds__(THREADS, 1024 / THREADS)
factor(u32 rows, const u32* __restrict__ order, Pattern lower, Pattern upper, Factors f, u32* ready,
       u32 epoch, const u32* __restrict__ absent, u32 n_absent, double shift, u64* error) {
    extern __shared__ double memory[];
    const u32 tid = threadIdx.x % TEAM, team = threadIdx.x / TEAM;
    Space& s = reinterpret_cast<Space*>(memory)[team];
    for (u32 at = blockIdx.x * TEAMS + team; at < rows; at += gridDim.x * TEAMS) {
        const u32 i = order[at];
        const u32 l0 = lower.row_ptr[i], l1 = lower.row_ptr[i + 1];
        const u32 u0 = upper.row_ptr[i], u1 = upper.row_ptr[i + 1];
        double* const diagonal = f.diagonal + (size_t)i * BB;
        for (u32 e = l0; e < l1; ++e) {
            const u32 p = lower.col_ind[e];
            const u32 q0 = upper.row_ptr[p], q1 = upper.row_ptr[p + 1];
            double* const block = f.lower + (size_t)e * BB;
            for (u32 w = tid; w < BB; w += TEAM) s.block[w] = block[w];
            if (tid == 0)
                while (load_acquire(&ready[p]) != epoch) {}
            team_sync();
            for (u32 q = q0; q < q1; q += TEAM) {
                const u32 n = min(TEAM, q1 - q);
                if (tid < n) {
                    const u32 j = upper.col_ind[q + tid];
                    double* target = nullptr;
                    if (j == i) {
                        target = diagonal;
                    } else {
                        const u32 place = j < i ? find(lower.col_ind, l0, l1, j)
                                                : find(upper.col_ind, u0, u1, j);
                        if (place != NONE) target = (j < i ? f.lower : f.upper) + (size_t)place * BB;
                    }
                    s.target[tid] = target;
                }
                team_sync();
                for (u32 w = tid; w < n * BB; w += TEAM) {
                    double* const target = s.target[w / BB];
                    if (!target) continue;
                    const u32 c = w % BB / BS, r = w % BS;
                    const double* u = f.upper + ((size_t)(q + w / BB) * BB + c * BS);
                    target[w % BB] -= row_times(s.block, r, u);
                }
                team_sync();
            }
            for (u32 w = tid; w < BB; w += TEAM)
                block[w] = row_times(s.block, w % BS, f.diagonal + ((size_t)p * BB + w / BS * BS));
            team_sync();
        }
        const bool no_diagonal = n_absent && find(absent, 0, n_absent, i) != NONE;
        for (u32 w = tid; w < BB; w += TEAM)
            s.block[w] = !no_diagonal ? diagonal[w] : w / BS == w % BS ? shift : 0.0;
        team_sync();
        double pivot;
        const u32 step = invert(s, tid, pivot);
        if (step != NONE && tid == 0) atomicMin(error, (u64)i << 32 | step);
        for (u32 w = tid; w < BB; w += TEAM) diagonal[w] = step == NONE ? s.block[w] : pivot;
        // U' = D U column by column, in place: whole columns are read before any of them is written
        constexpr u32 COLUMNS = TEAM / BS > 0 ? TEAM / BS : 1;
        double* const row = f.upper + (size_t)u0 * BB;
        for (u32 c0 = 0; c0 < (u1 - u0) * BS; c0 += COLUMNS) {
            const u32 c = c0 + tid / BS, r = tid % BS;
            const bool active = tid < COLUMNS * BS && c < (u1 - u0) * BS;
            double v = 0.0;
            if (active) {
                const double* x = row + (size_t)c * BS;
#pragma unroll(BS <= 8 ? BS : 8)
                for (u32 k = 0; k < BS; ++k) v = fma(s.block[k * BS + r], x[k], v);
            }
            team_sync();
            if (active) row[(size_t)c * BS + r] = v;
        }
        team_sync();
        if (tid == 0) {
            __threadfence();
            store_release(&ready[i], epoch);
        }
    }
}
