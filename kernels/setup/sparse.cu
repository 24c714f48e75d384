// Sparse matrices by rows: products, sums, parts, transposes, and what is to be known of them. Rows are made
// in two passes: how long they are, and what they hold.
#include "setup/scan.cuh"

// Sums of parts of n lengths.
extern "C" __global__ void __launch_bounds__(THREADS)
sum_parts(u32 n, const u32* __restrict__ length, u64* sums) {
    u64 sum = 0, all;
    for (u32 e = 0; e < EACH; ++e) {
        const u32 i = blockIdx.x * PART + e * THREADS + threadIdx.x;
        if (i < n) sum += length[i];
    }
    before(sum, all);
    if (threadIdx.x == 0) sums[blockIdx.x] = all;
}

// Where each of the parts starts, and behind them the sum of all. One thread block.
extern "C" __global__ void __launch_bounds__(THREADS) start_parts(u32 parts, u64* sums) {
    u64 base = 0, all;
    for (u32 first = 0; first < parts; first += THREADS) {
        const u32 i = first + threadIdx.x;
        const u64 start = before(i < parts ? sums[i] : 0, all);
        if (i < parts) sums[i] = base + start;
        base += all;
    }
    if (threadIdx.x == 0) sums[parts] = base;
}

// Where each of n rows starts, and the end of the last.
extern "C" __global__ void __launch_bounds__(THREADS)
start_rows(u32 n, const u32* __restrict__ length, const u64* __restrict__ sums, u32* row_ptr) {
    const u32 first = blockIdx.x * PART + threadIdx.x * EACH;
    u32 own[EACH];
    u64 sum = 0, all;
#pragma unroll
    for (u32 e = 0; e < EACH; ++e) {
        own[e] = first + e < n ? length[first + e] : 0;
        sum += own[e];
    }
    u64 at = sums[blockIdx.x] + before(sum, all);
#pragma unroll
    for (u32 e = 0; e < EACH; ++e) {
        if (first + e <= n) row_ptr[first + e] = (u32)at;
        at += own[e];
    }
    if (first + EACH == n) row_ptr[n] = (u32)at;
}

// How often numbers occur; those above `most` count as that.
extern "C" __global__ void __launch_bounds__(THREADS)
count_numbers(u32 n, const u32* __restrict__ number, u32 most, u32* count) {
    const u32 i = thread(), v = i < n ? min(number[i], most) : NONE;
    const u32 same = __match_any_sync(FULL, v);
    if (v != NONE && __ffs(same) - 1 == threadIdx.x % WARP) atomicAdd(&count[v], __popc(same));
}

// The longest row.
extern "C" __global__ void __launch_bounds__(THREADS) longest_row(Sparse a, u32* longest) {
    const u32 i = thread();
    u32 length = i < a.rows ? a.row_ptr[i + 1] - a.row_ptr[i] : 0;
    for (u32 offset = WARP / 2; offset; offset /= 2) length = max(length, __shfl_xor_sync(FULL, length, offset));
    if (i % WARP == 0) atomicMax(longest, length);
}

// Whether a row has no diagonal (1), or an entry differs from the one across the diagonal by more than
// `rounding` of the larger (2). Bits of `found`.
extern "C" __global__ void __launch_bounds__(THREADS) irregular(Sparse a, double rounding, u32* found) {
    const u32 i = thread();
    if (i >= a.rows) return;
    u32 bits = 1;
    for (u32 at = a.row_ptr[i]; at < a.row_ptr[i + 1]; ++at) {
        const u32 j = a.col_ind[at];
        const double v = a.val[at];
        if (j == i) bits &= ~1u;
        const u32 across = find(a.col_ind, a.row_ptr[j], a.row_ptr[j + 1], i);
        const double mirrored = across == NONE ? 0.0 : a.val[across];
        if (!(fabs(v - mirrored) <= rounding * fmax(fabs(v), fabs(mirrored)))) bits |= 2;
    }
    if (bits) atomicOr(found, bits);
}

// Whether there is a number that is not finite.
extern "C" __global__ void __launch_bounds__(THREADS)
infinite(u64 count, const double* __restrict__ val, u32* found) {
    const u64 stride = (u64)gridDim.x * THREADS;
    for (u64 at = thread(); at < count; at += stride)
        if (!isfinite(val[at])) atomicOr(found, 1);
}

// Entries of each column.
extern "C" __global__ void __launch_bounds__(THREADS)
count_columns(u64 entries, const u32* __restrict__ col_ind, u32* length) {
    const u64 at = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (at < entries) atomicAdd(&length[col_ind[at]], 1);
}

// Puts entries into the rows of A', in any order; `next` is where each of its rows starts, and is moved.
extern "C" __global__ void __launch_bounds__(THREADS)
turn(Sparse a, u32* next, u32* __restrict__ col_ind, double* __restrict__ val) {
    const u32 i = thread();
    if (i >= a.rows) return;
    for (u32 at = a.row_ptr[i]; at < a.row_ptr[i + 1]; ++at) {
        const u32 to = atomicAdd(&next[a.col_ind[at]], 1);
        col_ind[to] = i;
        val[to] = a.val[at];
    }
}

// Orders the entries of each row by their columns.
extern "C" __global__ void __launch_bounds__(THREADS)
sort_rows(u32 rows, const u32* __restrict__ row_ptr, u32* col_ind, double* val) {
    const u32 i = thread();
    if (i >= rows) return;
    const u32 start = row_ptr[i], end = row_ptr[i + 1];
    for (u32 at = start + 1; at < end; ++at) {
        const u32 j = col_ind[at];
        const double v = val[at];
        u32 to = at;
        for (; to > start && col_ind[to - 1] > j; --to) {
            col_ind[to] = col_ind[to - 1];
            val[to] = val[to - 1];
        }
        col_ind[to] = j;
        val[to] = v;
    }
}

// A row of a product: lanes hold the place in the row of B that belongs to their entry of A, and the least of
// the columns there is the next of the product. With `lower` it ends at the diagonal.
template <typename Take>
__device__ u32 merged(const Group& g, const Sparse& a, const Sparse& b, u32 i, bool lower, Take take) {
    const u32 start = a.row_ptr[i], length = a.row_ptr[i + 1] - start;
    u32 at = 0, end = 0;
    if (g.lane < length) {
        const u32 p = a.col_ind[start + g.lane];
        at = b.row_ptr[p];
        end = b.row_ptr[p + 1];
    }
    u32 column = at < end ? b.col_ind[at] : NONE, count = 0;
    while (true) {
        const u32 least = g.least(column);
        if (least == NONE || (lower && least > i)) return count;
        const bool mine = column == least;
        take(count, least, mine, at, start + g.lane);
        ++count;
        if (mine) column = ++at < end ? b.col_ind[at] : NONE;
    }
}

// Lengths of the rows of A B.
extern "C" __global__ void __launch_bounds__(THREADS)
count_product(Sparse a, Sparse b, u32 lower, u32* length) {
    const Group g;
    if (g.number >= a.rows) return;
    const u32 count = merged(g, a, b, g.number, lower, [](u32, u32, bool, u32, u32) {});
    if (g.lane == 0) length[g.number] = count;
}

// The rows of A B: terms of a number are added in the order of the entries of A. Without `val` columns alone.
extern "C" __global__ void __launch_bounds__(THREADS)
fill_product(Sparse a, Sparse b, u32 lower, const u32* __restrict__ row_ptr, u32* __restrict__ col_ind,
             double* __restrict__ val) {
    const Group g;
    if (g.number >= a.rows) return;
    const u32 first = row_ptr[g.number];
    merged(g, a, b, g.number, lower, [&](u32 count, u32 column, bool mine, u32 at, u32 of_a) {
        double sum = 0.0;
        if (val) {
            const double term = mine ? multiply(a.val[of_a], b.val[at]) : 0.0;
            u32 left = g.ballot(mine);
            sum = g.from(term, __ffs(left) - 1);
            for (left &= left - 1; left; left &= left - 1) sum = add(sum, g.from(term, __ffs(left) - 1));
        }
        if (g.lane != 0) return;
        col_ind[first + count] = column;
        if (val) val[first + count] = sum;
    });
}

// The two rows i of A and B by their columns, each with the numbers there. B has A's rows and columns from `first` on.
template <typename Take> __device__ u32 side_by_side(const Sparse& a, const Sparse& b, u32 i, Take take, u32 first = 0) {
    u32 p = a.row_ptr[i], q = i < first ? 0 : b.row_ptr[i - first], count = 0;
    const u32 a_end = a.row_ptr[i + 1], b_end = i < first ? 0 : b.row_ptr[i - first + 1];
    while (p < a_end || q < b_end) {
        const u32 j = p < a_end ? a.col_ind[p] : NONE, k = q < b_end ? first + b.col_ind[q] : NONE;
        const u32 column = min(j, k);
        take(count++, column, j == column ? p++ : NONE, k == column ? q++ : NONE);
    }
    return count;
}

// Lengths of the rows of A + B.
extern "C" __global__ void __launch_bounds__(THREADS) count_mean(Sparse a, Sparse b, u32* length) {
    const u32 i = thread();
    if (i < a.rows) length[i] = side_by_side(a, b, i, [](u32, u32, u32, u32) {});
}

// A / 2 + B / 2.
extern "C" __global__ void __launch_bounds__(THREADS)
fill_mean(Sparse a, Sparse b, const u32* __restrict__ row_ptr, u32* __restrict__ col_ind,
          double* __restrict__ val) {
    const u32 i = thread();
    if (i >= a.rows) return;
    side_by_side(a, b, i, [&](u32 count, u32 column, u32 p, u32 q) {
        const double u = p == NONE ? 0.0 : a.val[p] / 2, v = q == NONE ? 0.0 : b.val[q] / 2;
        col_ind[row_ptr[i] + count] = column;
        val[row_ptr[i] + count] = p == NONE ? v : q == NONE ? u : add(u, v);
    });
}

// Entries (i, j) of a part: all, below the diagonal, above it, or below and on it.
__device__ inline bool wanted(u32 part, u32 i, u32 j) {
    return part == 0 || (part == 1 && j < i) || (part == 2 && j > i) || (part == 3 && j <= i);
}

// Lengths of the rows of a part.
extern "C" __global__ void __launch_bounds__(THREADS) count_part(Sparse a, u32 part, u32* length) {
    const u32 i = thread();
    if (i >= a.rows) return;
    u32 count = 0;
    for (u32 at = a.row_ptr[i]; at < a.row_ptr[i + 1]; ++at) count += wanted(part, i, a.col_ind[at]);
    length[i] = count;
}

// D^-1 times a part, or its columns alone without `val`. Marks that a row with entries in it has no diagonal
// or a zero there.
extern "C" __global__ void __launch_bounds__(THREADS)
fill_part(Sparse a, u32 part, const u32* __restrict__ row_ptr, u32* __restrict__ col_ind,
          double* __restrict__ val, u32* broken) {
    const u32 i = thread();
    if (i >= a.rows || row_ptr[i] == row_ptr[i + 1]) return;
    const u32 start = a.row_ptr[i], end = a.row_ptr[i + 1];
    double pivot = 0.0;
    if (val) {
        const u32 diagonal = find(a.col_ind, start, end, i);
        if (diagonal != NONE) pivot = a.val[diagonal];
        if (!(fabs(pivot) > 0.0)) atomicOr(broken, 1);
    }
    u32 to = row_ptr[i];
    for (u32 at = start; at < end; ++at) {
        const u32 j = a.col_ind[at];
        if (!wanted(part, i, j)) continue;
        col_ind[to] = j;
        if (val) val[to] = a.val[at] / pivot;
        ++to;
    }
}

// Where each row goes, and the lengths of the rows there; `order` names the row of each place.
extern "C" __global__ void __launch_bounds__(THREADS)
count_permuted(Sparse a, const u32* __restrict__ order, u32* __restrict__ place, u32* __restrict__ length) {
    const u32 i = thread();
    if (i >= a.rows) return;
    const u32 row = order[i];
    place[row] = i;
    length[i] = a.row_ptr[row + 1] - a.row_ptr[row];
}

// The rows there, entries in the order that they had.
extern "C" __global__ void __launch_bounds__(THREADS)
fill_permuted(Sparse a, const u32* __restrict__ order, const u32* __restrict__ place,
              const u32* __restrict__ row_ptr, u32* __restrict__ col_ind, double* __restrict__ val) {
    const u32 i = thread();
    if (i >= a.rows) return;
    const u32 start = a.row_ptr[order[i]], to = row_ptr[i], length = row_ptr[i + 1] - to;
    for (u32 e = 0; e < length; ++e) {
        col_ind[to + e] = place[a.col_ind[start + e]];
        val[to + e] = a.val[start + e];
    }
}

// (D + w L) D^-1 (D + w U) times `size` where A has entries, U divided by the pivots of its rows; terms of a
// number are added in the order of the entries of L.
extern "C" __global__ void __launch_bounds__(THREADS)
gauss_seidel(Sparse a, Sparse scaled, double omega, double size, double* __restrict__ val) {
    const Group g;
    if (g.number >= a.rows) return;
    const u32 i = g.number, start = a.row_ptr[i], end = a.row_ptr[i + 1];
    for (u32 e = start + g.lane; e < end; e += LANES) {
        const u32 j = a.col_ind[e];
        double sum = multiply(j == i ? 1.0 : omega, a.val[e]);
        for (u32 p = start; p < end && a.col_ind[p] < i; ++p) {
            const u32 k = a.col_ind[p];
            const u32 at = find(scaled.col_ind, scaled.row_ptr[k], scaled.row_ptr[k + 1], j);
            if (at == NONE) continue;
            const double factor = multiply(multiply(omega, omega), a.val[p]);
            sum = add(sum, multiply(factor, scaled.val[at]));
        }
        val[e] = multiply(size, sum);
    }
}

// Lengths of `rows` rows from `first` on, of columns from `left` to `right`.
extern "C" __global__ void __launch_bounds__(THREADS)
count_window(Sparse a, u32 first, u32 rows, u32 left, u32 right, u32* length) {
    const u32 i = thread();
    if (i >= rows) return;
    u32 count = 0;
    for (u32 at = a.row_ptr[first + i]; at < a.row_ptr[first + i + 1]; ++at)
        count += a.col_ind[at] >= left && a.col_ind[at] < right;
    length[i] = count;
}

// These rows, divided by their diagonals if `scaled`. Marks that a row with entries has no diagonal or a zero
// there.
extern "C" __global__ void __launch_bounds__(THREADS)
fill_window(Sparse a, u32 first, u32 rows, u32 left, u32 right, u32 scaled, const u32* __restrict__ row_ptr,
            u32* __restrict__ col_ind, double* __restrict__ val, u32* broken) {
    const u32 i = thread();
    if (i >= rows || row_ptr[i] == row_ptr[i + 1]) return;
    const u32 start = a.row_ptr[first + i], end = a.row_ptr[first + i + 1];
    double pivot = 1.0;
    if (scaled) {
        const u32 diagonal = find(a.col_ind, start, end, first + i);
        pivot = diagonal == NONE ? 0.0 : a.val[diagonal];
        if (!(fabs(pivot) > 0.0)) atomicOr(broken, 1);
    }
    u32 to = row_ptr[i];
    for (u32 at = start; at < end; ++at) {
        const u32 j = a.col_ind[at];
        if (j < left || j >= right) continue;
        col_ind[to] = j - left;
        val[to++] = scaled ? a.val[at] / pivot : a.val[at];
    }
}

// A - B.
extern "C" __global__ void __launch_bounds__(THREADS)
fill_difference(Sparse a, Sparse b, const u32* __restrict__ row_ptr, u32* __restrict__ col_ind,
                double* __restrict__ val) {
    const u32 i = thread();
    if (i >= a.rows) return;
    side_by_side(a, b, i, [&](u32 count, u32 column, u32 p, u32 q) {
        col_ind[row_ptr[i] + count] = column;
        val[row_ptr[i] + count] = q == NONE ? a.val[p] : p == NONE ? -b.val[q] : subtract(a.val[p], b.val[q]);
    });
}

// M has the last rows and columns of A.
extern "C" __global__ void __launch_bounds__(THREADS) count_with_last(Sparse a, Sparse m, u32* length) {
    const u32 i = thread();
    if (i < a.rows) length[i] = side_by_side(a, m, i, [](u32, u32, u32, u32) {}, a.rows - m.rows);
}

// A + (M - C) in the last rows and columns, C having the pattern of M.
extern "C" __global__ void __launch_bounds__(THREADS)
fill_with_last(Sparse a, Sparse m, const double* __restrict__ c, const u32* __restrict__ row_ptr,
               u32* __restrict__ col_ind, double* __restrict__ val) {
    const u32 i = thread();
    if (i >= a.rows) return;
    const auto put = [&](u32 count, u32 column, u32 p, u32 q) {
        const double change = q == NONE ? 0.0 : subtract(m.val[q], c[q]);
        col_ind[row_ptr[i] + count] = column;
        val[row_ptr[i] + count] = q == NONE ? a.val[p] : p == NONE ? change : add(a.val[p], change);
    };
    side_by_side(a, m, i, put, a.rows - m.rows);
}

// I - A, where A has no diagonal: a row has one entry more.
extern "C" __global__ void __launch_bounds__(THREADS)
identity_minus(Sparse a, u32* __restrict__ row_ptr, u32* __restrict__ col_ind, double* __restrict__ val) {
    const u32 i = thread();
    if (i >= a.rows) return;
    u32 to = a.row_ptr[i] + i;
    row_ptr[i] = to;
    if (i + 1 == a.rows) row_ptr[a.rows] = a.row_ptr[a.rows] + a.rows;
    bool placed = false;
    for (u32 at = a.row_ptr[i]; at < a.row_ptr[i + 1]; ++at) {
        const u32 j = a.col_ind[at];
        if (!placed && j > i) {
            placed = true;
            col_ind[to] = i;
            val[to++] = 1.0;
        }
        col_ind[to] = j;
        val[to++] = -a.val[at];
    }
    if (placed) return;
    col_ind[to] = i;
    val[to] = 1.0;
}

// D^-1 as a matrix. Marks that a row has no diagonal or a zero there.
extern "C" __global__ void __launch_bounds__(THREADS)
invert_diagonal(Sparse a, u32* __restrict__ row_ptr, u32* __restrict__ col_ind, double* __restrict__ val,
                u32* broken) {
    const u32 i = thread();
    if (i >= a.rows) return;
    const u32 at = find(a.col_ind, a.row_ptr[i], a.row_ptr[i + 1], i);
    const double pivot = at == NONE ? 0.0 : a.val[at];
    if (!(fabs(pivot) > 0.0)) atomicOr(broken, 1);
    row_ptr[i] = i;
    if (i + 1 == a.rows) row_ptr[a.rows] = a.rows;
    col_ind[i] = i;
    val[i] = 1.0 / pivot;
}

// Largest sum of the magnitudes of a row, by its bits; they are ordered as such numbers are.
extern "C" __global__ void __launch_bounds__(THREADS) largest_sum(Sparse a, u64* largest) {
    const u32 i = thread();
    double sum = 0.0;
    if (i < a.rows)
        for (u32 at = a.row_ptr[i]; at < a.row_ptr[i + 1]; ++at) sum = add(sum, fabs(a.val[at]));
    for (u32 offset = WARP / 2; offset; offset /= 2) sum = fmax(sum, __shfl_xor_sync(FULL, sum, offset));
    if (i % WARP == 0) atomicMax(largest, (u64)__double_as_longlong(sum));
}

// Entries of each diagonal j - i, at the place n - 1 + j - i.
extern "C" __global__ void __launch_bounds__(THREADS) count_diagonals(Sparse a, u32* count) {
    const u32 i = thread();
    u32 at = i < a.rows ? a.row_ptr[i] : 0;
    const u32 end = i < a.rows ? a.row_ptr[i + 1] : 0;
    // neighbours have mostly the same diagonals: one adds for all of them
    while (__any_sync(FULL, at < end)) {
        const u32 place = at < end ? a.rows - 1 + a.col_ind[at] - i : NONE;
        const u32 same = __match_any_sync(FULL, place);
        if (place != NONE && __ffs(same) - 1 == threadIdx.x % WARP) atomicAdd(&count[place], __popc(same));
        ++at;
    }
}

// The diagonals that hold entries, with their counts, in any order; the first `most` are listed.
extern "C" __global__ void __launch_bounds__(THREADS)
list_diagonals(u32 places, const u32* __restrict__ count, u32 most, u32* found, u32* list) {
    const u32 place = thread();
    if (place >= places || count[place] == 0) return;
    const u32 at = atomicAdd(found, 1);
    if (at >= most) return;
    list[2 * at] = place;
    list[2 * at + 1] = count[place];
}

// The numbers of whole diagonals, in tiles of `spmv/formats.cuh`; there are no others.
extern "C" __global__ void __launch_bounds__(THREADS)
fill_diagonals(Sparse a, u32 count, const int* __restrict__ offsets, double* __restrict__ val) {
    const u32 i = thread();
    u32 at = i < a.rows ? a.row_ptr[i] : 0;
    const u32 end = i < a.rows ? a.row_ptr[i + 1] : 0;
    double* to = val + (size_t)blockIdx.x * count * THREADS + threadIdx.x;
    for (u32 d = 0; d < count; ++d) {
        const bool here = at < end && a.col_ind[at] == i + offsets[d];
        to[(size_t)d * THREADS] = here ? a.val[at] : 0.0;
        at += here;
    }
}
