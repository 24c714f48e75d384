// Small dense systems, one for each row of an approximate inverse, in shared memory: LANES threads each. They
// compute what the CPU does, in its order and with its roundings.
#include "setup/sparse.cuh"

// A pivot below this part of the diagonal entry that it comes from is rounding.
constexpr double NO_PIVOT = 1e-14;

extern __shared__ double memory[];

// Where the numbers of a group begin; each has `room`.
__device__ inline double* own(u32 room) { return memory + threadIdx.x / LANES * room; }

// Marks that this row has no inverse.
__device__ inline void mark(const Group& g, u32* broken) {
    if (g.lane == 0) atomicOr(broken, 1);
}

// Cholesky's factor C of a matrix of order m, row by row, in its lower triangle; false without a positive
// pivot.
__device__ bool cholesky(const Group& g, double* a, u32 m) {
    for (u32 j = 0; j < m; ++j) {
        const double diagonal = a[j * m + j];
        double sum = 0.0;
        for (u32 p = 0; p < j; ++p) sum = add(sum, multiply(a[j * m + p], a[j * m + p]));
        const double pivot = subtract(diagonal, sum);
        if (!(pivot > NO_PIVOT * fabs(diagonal))) return false;
        const double root = sqrt(pivot);
        for (u32 i = j + 1 + g.lane; i < m; i += LANES) {
            double of_row = 0.0;
            for (u32 p = 0; p < j; ++p) of_row = add(of_row, multiply(a[i * m + p], a[j * m + p]));
            a[i * m + j] = subtract(a[i * m + j], of_row) / root;
        }
        // all have read the diagonal
        g.sync();
        if (g.lane == 0) a[j * m + j] = root;
        g.sync();
    }
    return true;
}

// Rows of the factorised inverse with more than `above` and at most `most` columns: y / sqrt(y_i) where
// A(J, J) y = e for the columns J of the row and the last unit vector e.
extern "C" __global__ void factorised(Sparse a, Sparse g_pattern, u32 above, u32 most, u32 room,
                                      double* __restrict__ val, u32* broken) {
    const Group g;
    if (g.number >= g_pattern.rows) return;
    const u32 start = g_pattern.row_ptr[g.number], m = g_pattern.row_ptr[g.number + 1] - start;
    if (m <= above || m > most) return;
    double* c = own(room);
    double* x = c + m * m;
    const u32* columns = g_pattern.col_ind + start;
    for (u32 r = g.lane; r < m; r += LANES) {
        u32 at = a.row_ptr[columns[r]];
        const u32 end = a.row_ptr[columns[r] + 1];
        for (u32 k = 0; k <= r; ++k) {
            while (at < end && a.col_ind[at] < columns[k]) ++at;
            c[r * m + k] = at < end && a.col_ind[at] == columns[k] ? a.val[at] : 0.0;
        }
    }
    g.sync();
    if (!cholesky(g, c, m)) {
        mark(g, broken);
        return;
    }
    if (g.lane == 0) {
        for (u32 j = m; j-- > 0;) {
            double sum = 0.0;
            for (u32 i = j + 1; i < m; ++i) sum = add(sum, multiply(c[i * m + j], x[i]));
            x[j] = subtract(j + 1 == m ? 1.0 : 0.0, sum) / c[j * m + j];
        }
    }
    g.sync();
    for (u32 k = g.lane; k < m; k += LANES) val[start + k] = x[k];
}

// Householder's reflections on `a`, m x n row by row, and the right-hand side b, whose first n numbers become
// the solution; false when a column depends on those before it.
__device__ bool least_squares(const Group& g, double* a, u32 m, u32 n, double* b) {
    double largest = 0.0;
    for (u32 e = g.lane; e < m * n; e += LANES) largest = fmax(largest, fabs(a[e]));
    largest = g.largest(largest);
    for (u32 j = 0; j < n; ++j) {
        double squares = 0.0;
        for (u32 i = j; i < m; ++i) squares = add(squares, multiply(a[i * n + j], a[i * n + j]));
        const double norm = sqrt(squares), first = a[j * n + j];
        if (!(norm > NO_PIVOT * largest)) return false;
        const double alpha = first > 0.0 ? -norm : norm;
        const double beta = 1.0 / multiply(norm, add(norm, fabs(first)));
        g.sync();
        if (g.lane == 0) a[j * n + j] = subtract(first, alpha);
        g.sync();
        // the right-hand side is the column behind the last
        for (u32 k = j + 1 + g.lane; k <= n; k += LANES) {
            double* column = k < n ? a + k : b;
            const u32 step = k < n ? n : 1;
            double dot = 0.0;
            for (u32 i = j; i < m; ++i) dot = add(dot, multiply(a[i * n + j], column[i * step]));
            const double by = multiply(beta, dot);
            for (u32 i = j; i < m; ++i)
                column[i * step] = subtract(column[i * step], multiply(by, a[i * n + j]));
        }
        g.sync();
        if (g.lane == 0) a[j * n + j] = alpha;
        g.sync();
    }
    if (g.lane == 0) {
        for (u32 j = n; j-- > 0;) {
            double sum = 0.0;
            for (u32 k = j + 1; k < n; ++k) sum = add(sum, multiply(a[j * n + k], b[k]));
            b[j] = subtract(b[j], sum) / a[j * n + j];
        }
    }
    g.sync();
    return true;
}

// Columns of the sparse inverse with more than `above` and at most `most` unknowns, rows of `a` here, which is
// the transpose: A(I, J) m = e_j for the rows J of column j and the rows I of `reach`.
extern "C" __global__ void least_square_columns(Sparse a, Sparse reach, u32 above, u32 most, u32 room,
                                                double* __restrict__ val, u32* broken) {
    const Group g;
    if (g.number >= a.rows) return;
    const u32 start = a.row_ptr[g.number], n = a.row_ptr[g.number + 1] - start;
    if (n <= above || n > most) return;
    const u32 m = reach.row_ptr[g.number + 1] - reach.row_ptr[g.number];
    const u32 *columns = a.col_ind + start, *rows = reach.col_ind + reach.row_ptr[g.number];
    if (m < n) {
        mark(g, broken);
        return;
    }
    double* matrix = own(room);
    double* right = matrix + m * n;
    for (u32 e = g.lane; e < m * n; e += LANES) matrix[e] = 0.0;
    for (u32 r = g.lane; r < m; r += LANES) right[r] = rows[r] == g.number ? 1.0 : 0.0;
    g.sync();
    for (u32 c = g.lane; c < n; c += LANES) {
        u32 r = 0;
        for (u32 at = a.row_ptr[columns[c]]; at < a.row_ptr[columns[c] + 1]; ++at) {
            while (rows[r] < a.col_ind[at]) ++r;
            matrix[r * n + c] = a.val[at];
        }
    }
    g.sync();
    if (!least_squares(g, matrix, m, n, right)) {
        mark(g, broken);
        return;
    }
    for (u32 c = g.lane; c < n; c += LANES) val[start + c] = right[c];
}

// W with (W L)_ij = I_ij on the pattern of a unit lower triangle L, whose diagonal is not stored but that of W
// is: w L(J, J) = e for the columns J of a row and the last unit vector e.
extern "C" __global__ void triangular(Sparse l, u32 room, u32* __restrict__ row_ptr,
                                      u32* __restrict__ col_ind, double* __restrict__ val) {
    const Group g;
    const u32 i = g.number;
    if (i >= l.rows) return;
    const u32 start = l.row_ptr[i], m = l.row_ptr[i + 1] - start;
    const u32* columns = l.col_ind + start;
    double* w = own(room);
    for (u32 t = g.lane; t < m; t += LANES) w[t] = -l.val[start + t];
    g.sync();
    for (u32 s = m; s-- > 0;) {
        const double value = w[s];
        for (u32 at = l.row_ptr[columns[s]] + g.lane; at < l.row_ptr[columns[s] + 1]; at += LANES) {
            const u32 t = find(columns, 0, s, l.col_ind[at]);
            if (t != NONE) w[t] = subtract(w[t], multiply(value, l.val[at]));
        }
        g.sync();
    }
    const u32 to = start + i;
    for (u32 t = g.lane; t < m; t += LANES) {
        col_ind[to + t] = columns[t];
        val[to + t] = w[t];
    }
    if (g.lane != 0) return;
    col_ind[to + m] = i;
    val[to + m] = 1.0;
    row_ptr[i] = to;
    if (i + 1 == l.rows) row_ptr[l.rows] = l.row_ptr[l.rows] + l.rows;
}
