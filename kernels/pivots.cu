// Incomplete factorisations whose updates hit the diagonal alone, of entries (blocks of one): L and U keep
// the entries of A, but for their scaling, and D_i = 1 / (A_ii - sum over p < i of A_ip A_pi D_p). That is a
// forward solve, but for the division, which wavefront.cu makes (PIVOTS); here is what comes before and
// after it.
#include "common.cuh"

// A by rows; `shift` is added to its diagonal.
struct Scalars {
    const u32* row_ptr;
    const u32* col_ind;
    const double* val;
    double shift;
};

// Entries of a row of A, asked for by increasing column.
struct Cursor {
    const Scalars& a;
    u32 e, end;

    __device__ Cursor(const Scalars& matrix, u32 i) : a(matrix), e(matrix.row_ptr[i]), end(matrix.row_ptr[i + 1]) {}

    // Entry in column j, or 0.
    __device__ double entry(u32 j) {
        while (e < end && a.col_ind[e] < j) ++e;
        return e < end && a.col_ind[e] == j ? a.val[e] : 0.0;
    }
};

// A_ip A_pi for the entries of L, and the diagonal. One thread per row.
extern "C" __global__ void __launch_bounds__(256)
pivot_products(u32 rows, Scalars a, Pattern lower, double* products, double* diagonal) {
    const u32 i = blockIdx.x * 256 + threadIdx.x;
    if (i >= rows) return;
    Cursor row(a, i);
    for (u32 n = lower.row_ptr[i]; n < lower.row_ptr[i + 1]; ++n) {
        const u32 p = lower.col_ind[n], across = find(a.col_ind, a.row_ptr[p], a.row_ptr[p + 1], i);
        products[n] = across == NONE ? 0.0 : row.entry(p) * a.val[across];
    }
    diagonal[i] = row.entry(i) + a.shift;
}

// L_ip = A_ip D_p and U'_ij = D_i A_ij. A pivot that has no finite inverse came out as 0: the first such
// row is told. One thread per row.
extern "C" __global__ void __launch_bounds__(256)
scale_rows(u32 rows, Scalars a, Pattern lower, Pattern upper, const double* __restrict__ inverse, double* l, double* u,
           u64* error) {
    const u32 i = blockIdx.x * 256 + threadIdx.x;
    if (i >= rows) return;
    const double d = inverse[i];
    if (d == 0.0) atomicMin(error, (u64)i << 32);
    Cursor row(a, i);
    for (u32 n = lower.row_ptr[i]; n < lower.row_ptr[i + 1]; ++n) {
        const u32 p = lower.col_ind[n];
        l[n] = row.entry(p) * inverse[p];
    }
    for (u32 n = upper.row_ptr[i]; n < upper.row_ptr[i + 1]; ++n) u[n] = d * row.entry(upper.col_ind[n]);
}
