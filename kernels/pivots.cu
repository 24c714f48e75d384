// Incomplete factorisations whose updates hit the diagonal alone, of entries (blocks of one): L and U keep
// the entries of A, but for their scaling, and D_i = 1 / (A_ii - sum over p < i of A_ip A_pi D_p). That is a
// forward solve, but for the division, which wavefront.cu makes (PIVOTS); here is what comes before and
// after it.
#include "common.cuh"

// Rows of a thread block; the host gives room for their entries.
constexpr u32 ROWS = 256;

// A by rows; `shift` is added to its diagonal.
struct Scalars {
    const u32* row_ptr;
    const u32* col_ind;
    const double* val;
    double shift;
};

// Entries of a row of A, in shared memory, asked for by increasing column. The block's are read together:
// a thread that reads its own row from global memory touches as many lines as there are threads.
struct Cursor {
    const u32* columns;
    const double* values;
    u32 begin, e, end;

    __device__ Cursor(const Scalars& a, u32 rows, u32 room) {
        extern __shared__ double memory[];
        u32* const list = reinterpret_cast<u32*>(memory + room);
        const u32 first = blockIdx.x * ROWS, last = min(rows, first + ROWS), i = min(first + threadIdx.x, last - 1);
        const u32 from = a.row_ptr[first], to = a.row_ptr[last];
        for (u32 n = threadIdx.x; n < to - from; n += ROWS) {
            memory[n] = __ldg(&a.val[from + n]);
            list[n] = __ldg(&a.col_ind[from + n]);
        }
        __syncthreads();
        columns = list, values = memory;
        begin = e = a.row_ptr[i] - from, end = a.row_ptr[i + 1] - from;
    }

    // Entry in column j, or 0; the next one is then asked for.
    __device__ double entry(u32 j) {
        while (e < end && columns[e] < j) ++e;
        return e < end && columns[e] == j ? values[e] : 0.0;
    }
};

// Entry (p, i) of A, of which (i, p) is the n-th of its row: most often the n-th from the end.
__device__ inline double across(const Scalars& a, u32 p, u32 i, u32 n) {
    const u32 begin = a.row_ptr[p], end = a.row_ptr[p + 1];
    u32 e = end - 1 - n;
    if (n >= end - begin || a.col_ind[e] != i) e = find(a.col_ind, begin, end, i);
    return e == NONE ? 0.0 : a.val[e];
}

// A_ip A_pi for the entries of L, and the diagonal. One thread per row. `room`: entries of ROWS rows.
extern "C" __global__ void __launch_bounds__(ROWS)
pivot_products(u32 rows, u32 room, Scalars a, Pattern lower, double* products, double* diagonal) {
    const u32 i = blockIdx.x * ROWS + threadIdx.x;
    Cursor row(a, rows, room);
    if (i >= rows) return;
    for (u32 n = lower.row_ptr[i]; n < lower.row_ptr[i + 1]; ++n) {
        const u32 p = lower.col_ind[n];
        const double v = row.entry(p);
        products[n] = v == 0.0 ? 0.0 : v * across(a, p, i, row.e - row.begin);
    }
    diagonal[i] = row.entry(i) + a.shift;
}

// L_ip = A_ip D_p and U'_ij = D_i A_ij. A pivot that has no finite inverse came out as 0: the first such
// row is told. One thread per row.
extern "C" __global__ void __launch_bounds__(ROWS)
scale_rows(u32 rows, u32 room, Scalars a, Pattern lower, Pattern upper, const double* __restrict__ inverse,
           double* l, double* u, u64* error) {
    const u32 i = blockIdx.x * ROWS + threadIdx.x;
    Cursor row(a, rows, room);
    if (i >= rows) return;
    const double d = inverse[i];
    if (d == 0.0) atomicMin(error, (u64)i << 32);
    for (u32 n = lower.row_ptr[i]; n < lower.row_ptr[i + 1]; ++n) {
        const u32 p = lower.col_ind[n];
        l[n] = row.entry(p) * inverse[p];
    }
    for (u32 n = upper.row_ptr[i]; n < upper.row_ptr[i + 1]; ++n) u[n] = d * row.entry(upper.col_ind[n]);
}
