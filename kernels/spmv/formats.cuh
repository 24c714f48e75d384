// Rows of y = A x in every format.
//
// A warp has 32 R consecutive places, R beside each other for a lane, and its first is a multiple of 32 R.
// `product` gives a lane the sums of its places, and a mask of those that are rows of its own to keep. What
// would hold a warp up has a warp of its own instead: `own_rows` counts such rows, and `own_product` gives
// all lanes the sum of one. Whole warps call all of these. x lies at a multiple of 16 bytes.
#pragma once
#include "common.cuh"

// How a product reads: a matrix that is too large to be found in a cache again, and an x that nothing writes
// in the same launch.
struct Streamed {
    template <class T> static __device__ T matrix(const T* p) { return __ldcs(p); }
    template <class T> static __device__ T vector(const T* p) { return __ldg(p); }
};

// The same without leave to drop the matrix from the caches.
struct Cached {
    template <class T> static __device__ T matrix(const T* p) { return __ldg(p); }
    template <class T> static __device__ T vector(const T* p) { return __ldg(p); }
};

// The same past the first-level cache, with more of a line fetched at once.
struct Passing {
    static __device__ double matrix(const double* p) {
        double v;
        asm("ld.global.nc.L1::no_allocate.L2::256B.f64 %0, [%1];" : "=d"(v) : "l"(p));
        return v;
    }
    static __device__ double2 matrix(const double2* p) {
        double2 v;
        asm("ld.global.nc.L1::no_allocate.L2::256B.v2.f64 {%0, %1}, [%2];" : "=d"(v.x), "=d"(v.y) : "l"(p));
        return v;
    }
    static __device__ u32 matrix(const u32* p) {
        u32 v;
        asm("ld.global.nc.L1::no_allocate.L2::256B.u32 %0, [%1];" : "=r"(v) : "l"(p));
        return v;
    }
    static __device__ uint2 matrix(const uint2* p) {
        uint2 v;
        asm("ld.global.nc.L1::no_allocate.L2::256B.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
        return v;
    }
    static __device__ uint4 matrix(const uint4* p) {
        uint4 v;
        asm("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
            : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
        return v;
    }
    template <class T> static __device__ T vector(const T* p) { return __ldg(p); }
};

__device__ inline u32 lane_number() { return threadIdx.x % WARP; }

// R neighbouring numbers of a matrix, at a multiple of their size.
template <class Load> __device__ inline void numbers(const double* p, double (&v)[1]) { v[0] = Load::matrix(p); }
template <class Load> __device__ inline void numbers(const double* p, double (&v)[2]) {
    const double2 two = Load::matrix((const double2*)p);
    v[0] = two.x, v[1] = two.y;
}
template <class Load> __device__ inline void numbers(const double* p, double (&v)[4]) {
    const double2 low = Load::matrix((const double2*)p), high = Load::matrix((const double2*)p + 1);
    v[0] = low.x, v[1] = low.y, v[2] = high.x, v[3] = high.y;
}
template <class Load> __device__ inline void numbers(const u32* p, u32 (&v)[1]) { v[0] = Load::matrix(p); }
template <class Load> __device__ inline void numbers(const u32* p, u32 (&v)[2]) {
    const uint2 two = Load::matrix((const uint2*)p);
    v[0] = two.x, v[1] = two.y;
}
template <class Load> __device__ inline void numbers(const u32* p, u32 (&v)[4]) {
    const uint4 four = Load::matrix((const uint4*)p);
    v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
}

// The places of a lane that are rows of the matrix.
template <u32 R> __device__ inline u32 rows_there(u32 i, u32 rows) {
    const u32 there = i < rows ? rows - i : 0;
    return there >= R ? (1u << R) - 1 : (1u << there) - 1;
}

// Rows of a tile of ELLPACK, DIA and Bdia: the numbers of a tile lie together, column after column, so that
// every distance is known. Mirrored by the launcher; the last tile has room for as many.
constexpr u32 TILE = 256;

// The number of row i in the first of so many columns.
__device__ inline size_t tiled(u32 i, u32 columns) { return (size_t)(i / TILE) * columns * TILE + i % TILE; }

// ---- Single entries beside another part, gathered by rows ----

// Rows with more single entries than this have a warp of their own; mirrored by the launcher.
constexpr u32 LONG = 16;

struct Rest {
    // for each 32 rows of the matrix the first gathered row in them, and the end; null when there is none
    const u32* near;
    const u32* row;
    const u32* start;
    const u32* col_ind;
    const double* val;
    // gathered rows with a warp of their own
    const u32* own;
    u32 owns;
};

// Adds the entries of short rows; takes long rows from `mine`.
template <u32 R, class Load>
__device__ inline void add_rest(const Rest& a, u32 base, const double* x, double (&sum)[R], u32& mine) {
    if (!a.near) return;
    const u32 lane = lane_number();
    const u32 from = a.near[base / WARP], to = a.near[base / WARP + R];
    for (u32 first = from; first < to; first += WARP) {
        const u32 at = first + lane;
        u32 place = NONE;
        bool own = false;
        double s = 0.0;
        if (at < to) {
            const u32 end = a.start[at + 1];
            u32 e = a.start[at];
            place = a.row[at] - base;
            own = end - e > LONG;
            if (!own)
                for (; e < end; ++e) s = fma(Load::matrix(&a.val[e]), Load::vector(&x[a.col_ind[e]]), s);
        }
        // to the lane that has the row
        const u32 owned = __ballot_sync(FULL, own);
        for (u32 t = 0; t < min(to - first, WARP); ++t) {
            const u32 there = __shfl_sync(FULL, place, t);
            const double add = __shfl_sync(FULL, s, t);
#pragma unroll
            for (u32 r = 0; r < R; ++r)
                if (there == lane * R + r) {
                    sum[r] += add;
                    if (owned >> t & 1) mine &= ~(1u << r);
                }
        }
    }
}

// A long row's single entries; a lane's share.
template <class Load> __device__ inline double rest_share(const Rest& a, u32 own, const double* x) {
    const u32 at = a.own[own];
    double s = 0.0;
#pragma unroll 4
    for (u32 e = a.start[at] + lane_number(); e < a.start[at + 1]; e += WARP)
        s = fma(Load::matrix(&a.val[e]), Load::vector(&x[a.col_ind[e]]), s);
    return s;
}

// ---- HYB: ELLPACK in tiles, and single entries ----

struct Hyb {
    u32 rows, width;
    const u32* col_ind;
    const double* val;
    Rest rest;
};

template <u32 R, class Load, u32 AHEAD>
__device__ inline u32 product(const Hyb& a, u32 base, const double* x, double (&sum)[R]) {
    const u32 i = base + lane_number() * R;
    u32 mine = rows_there<R>(i, a.rows);
    if (mine) {
        const u32* col_ind = a.col_ind + tiled(i, a.width);
        const double* val = a.val + tiled(i, a.width);
#pragma unroll AHEAD
        for (u32 c = 0; c < a.width; ++c, col_ind += TILE, val += TILE) {
            double v[R];
            u32 j[R];
            numbers<Load>(col_ind, j);
            numbers<Load>(val, v);
#pragma unroll
            for (u32 r = 0; r < R; ++r) sum[r] = fma(v[r], Load::vector(&x[j[r]]), sum[r]);
        }
    }
    add_rest<R, Load>(a.rest, base, x, sum, mine);
    return mine;
}

__device__ inline u32 own_rows(const Hyb& a) { return a.rest.owns; }
__device__ inline u32 own_row(const Hyb& a, u32 own) { return a.rest.row[a.rest.own[own]]; }

template <class Load> __device__ inline double own_product(const Hyb& a, u32 own, const double* x) {
    const u32 i = own_row(a, own);
    double s = rest_share<Load>(a.rest, own, x);
    for (u32 c = lane_number(); c < a.width; c += WARP) {
        const size_t at = tiled(i, a.width) + c * TILE;
        s = fma(Load::matrix(&a.val[at]), Load::vector(&x[Load::matrix(&a.col_ind[at])]), s);
    }
    return warp_sum(s);
}

// ---- DIA: whole diagonals in tiles, and single entries ----

struct Dia {
    u32 rows, count;
    const int* offsets;
    const double* val;
    Rest rest;
};

// Past its ends a diagonal holds zeros: any number of x will do.
__device__ inline u32 within(int j, u32 rows) { return (u32)max(0, min(j, (int)rows - 1)); }

template <u32 R, class Load, u32 AHEAD>
__device__ inline u32 product(const Dia& a, u32 base, const double* x, double (&sum)[R]) {
    const u32 i = base + lane_number() * R;
    u32 mine = rows_there<R>(i, a.rows);
    if (mine) {
        const double* val = a.val + tiled(i, a.count);
#pragma unroll AHEAD
        for (u32 d = 0; d < a.count; ++d, val += TILE) {
            const int j = (int)i + __ldg(&a.offsets[d]);
            double v[R];
            numbers<Load>(val, v);
#pragma unroll
            for (u32 r = 0; r < R; ++r)
                sum[r] = fma(v[r], Load::vector(&x[within(j + (int)r, a.rows)]), sum[r]);
        }
    }
    add_rest<R, Load>(a.rest, base, x, sum, mine);
    return mine;
}

__device__ inline u32 own_rows(const Dia& a) { return a.rest.owns; }
__device__ inline u32 own_row(const Dia& a, u32 own) { return a.rest.row[a.rest.own[own]]; }

template <class Load> __device__ inline double own_product(const Dia& a, u32 own, const double* x) {
    const u32 i = own_row(a, own);
    double s = rest_share<Load>(a.rest, own, x);
    for (u32 d = lane_number(); d < a.count; d += WARP) {
        const u32 j = within((int)i + a.offsets[d], a.rows);
        s = fma(Load::matrix(&a.val[tiled(i, a.count) + d * TILE]), Load::vector(&x[j]), s);
    }
    return warp_sum(s);
}

// ---- SELL with slices of a warp's rows ----

struct Sell {
    u32 rows;
    const u32* slice_ptr;
    // row at each place; null when the rows are in their order
    const u32* order;
    const u32* col_ind;
    const double* val;
};

// The row at a place: places are rows in every other format.
template <class A> __device__ inline u32 row_at(const A&, u32 place) { return place; }
__device__ inline u32 row_at(const Sell& a, u32 place) { return a.order ? a.order[place] : place; }

template <u32 R, class Load, u32 AHEAD>
__device__ inline u32 product(const Sell& a, u32 base, const double* x, double (&sum)[R]) {
    static_assert(R == 1, "a slice has the rows of a warp");
    const u32 i = base + lane_number(), slice = base / WARP;
    if (i >= a.rows) return 0;
    const u32 start = a.slice_ptr[slice], width = a.slice_ptr[slice + 1] - start;
    const u32* col_ind = a.col_ind + (size_t)start * WARP + lane_number();
    const double* val = a.val + (size_t)start * WARP + lane_number();
#pragma unroll AHEAD
    for (u32 c = 0; c < width; ++c)
        sum[0] = fma(Load::matrix(&val[c * WARP]), Load::vector(&x[Load::matrix(&col_ind[c * WARP])]), sum[0]);
    return 1;
}

__device__ inline u32 own_rows(const Sell&) { return 0; }
__device__ inline u32 own_row(const Sell&, u32) { return NONE; }
template <class Load> __device__ inline double own_product(const Sell&, u32, const double*) { return 0.0; }

// ---- Bdia: blocks at the offsets of a box, and wells behind the cells ----

// A well: its first row of a cell, the first of its numbers in W and WT and how many there are, and which it is.
struct __align__(16) Well {
    u32 first, start, length, number;
};

// W, WT and D, in the order of the cells; each well's row has a warp of its own.
struct Wells {
    u32 count;
    // for each 32 rows the first of the wells that reach into them, and the one after the last
    const uint2* near;
    const Well* well;
    const double* row;
    const double* column;
    const double* diagonal;

    __device__ Well operator[](u32 w) const {
        const uint4 all = __ldg((const uint4*)(well + w));
        return {all.x, all.y, all.z, all.w};
    }
};

// H is in tiles, whose columns are those of the cells' blocks, one block after the other.
struct Bdia {
    u32 rows;
    // first column of each block, less the cell's first row
    int at[7];
    const double* val;
    Wells wells;
};

// Wells that reach into a warp's places. Seldom is it more than one; what is known of that one is fetched in steps
// while the warp does other things, since each step waits for the one before.
template <u32 R, class Load> class WellsNear {
    const Wells& a;
    u32 w = NONE, end = 0;
    Well well;
    double there, column[R];

public:
    __device__ WellsNear(const Wells& a, u32 base) : a(a) {
        if (a.count)
#pragma unroll
            for (u32 g = 0; g < R; ++g) {
                const uint2 near = __ldg(&a.near[base / WARP + g]);
                w = min(w, near.x), end = max(end, near.y);
            }
    }

    __device__ void look() {
        if (w < end) well = a[w];
    }

    // W' x for this lane's places from `base`; `rows` counts those of the cells.
    __device__ void fetch(u32 rows, u32 base, const double* x) {
        if (w >= end) return;
        const u32 at = base + lane_number() * R - well.first;
        there = Load::vector(&x[rows + well.number]);
#pragma unroll
        for (u32 r = 0; r < R; ++r) column[r] = at + r < well.length ? Load::matrix(&a.column[well.start + at + r]) : 0.0;
    }

    __device__ void add(u32 rows, u32 base, const double* x, double (&sum)[R]) {
        while (w < end) {
#pragma unroll
            for (u32 r = 0; r < R; ++r) sum[r] = fma(column[r], there, sum[r]);
            ++w;
            look();
            fetch(rows, base, x);
        }
    }
};

// sum += block x for columns FROM to FROM + W of a block, whose part of x begins at j. Where the box ends the
// block holds zeros: any part of x will do.
template <u32 R, class Load, u32 W>
__device__ inline void add_columns(const double* val, int j, u32 rows, const double* x, double (&sum)[R]) {
    constexpr u32 PAIR = W % 2 ? 1 : 2;
    const double* part = x + max(0, min(j, (int)(rows - W)));
#pragma unroll(W <= 8 ? W / PAIR : 4)
    for (u32 c = 0; c < W; c += PAIR) {
        double there[PAIR], v[PAIR][R];
        if constexpr (PAIR == 2) {
            const double2 two = Load::vector((const double2*)(part + c));
            there[0] = two.x, there[1] = two.y;
        } else {
            there[0] = Load::vector(part + c);
        }
#pragma unroll
        for (u32 p = 0; p < PAIR; ++p) numbers<Load>(val + (c + p) * TILE, v[p]);
#pragma unroll
        for (u32 p = 0; p < PAIR; ++p)
#pragma unroll
            for (u32 r = 0; r < R; ++r) sum[r] = fma(v[p][r], there[p], sum[r]);
    }
}

// Places of H and WT. COUNT offsets; SHIFTED when the blocks of cells with an odd number lie half a block
// further right. R divides BS, or BS is 1.
template <u32 R, class Load, u32 AHEAD, u32 COUNT, bool SHIFTED>
__device__ inline u32 product(const Bdia& a, u32 base, const double* x, double (&sum)[R]) {
    static_assert(BS == 1 || BS % R == 0, "the rows of a lane are of one cell");
    const u32 i = base + lane_number() * R;
    const u32 mine = rows_there<R>(i, a.rows);
    WellsNear<R, Load> wells(a.wells, base);
    if (mine) {
        const double* val = a.val + tiled(i, COUNT * BS);
        const u32 cell = i / BS;
        constexpr u32 HALF = SHIFTED ? BS / 2 : BS;
        // large blocks need the registers for numbers of their own
        constexpr bool STAGED = BS < 8;
        const int first = (int)(cell * BS + (SHIFTED && cell % 2 ? HALF : 0));
#pragma unroll AHEAD
        for (u32 n = 0; n < COUNT; ++n) {
            const int j = first + a.at[n];
            const double* block = val + n * BS * TILE;
            if constexpr (BS == 1) {
                double v[R];
                numbers<Load>(block, v);
#pragma unroll
                for (u32 r = 0; r < R; ++r)
                    sum[r] = fma(v[r], Load::vector(&x[within(j + (int)r, a.rows)]), sum[r]);
            } else {
                add_columns<R, Load, HALF>(block, j, a.rows, x, sum);
                if constexpr (SHIFTED)
                    add_columns<R, Load, HALF>(block + HALF * TILE, j + (int)HALF, a.rows, x, sum);
            }
            if (STAGED && n == COUNT / 3) wells.look();
            if (STAGED && n == 2 * COUNT / 3) wells.fetch(a.rows, base, x);
        }
        if (!STAGED) wells.look(), wells.fetch(a.rows, base, x);
        wells.add(a.rows, base, x, sum);
    }
    return mine;
}

__device__ inline u32 own_rows(const Bdia& a) { return a.wells.count; }
__device__ inline u32 own_row(const Bdia& a, u32 own) { return a.rows + a.wells[own].number; }

// The sums of T own rows, `apart` from each other, each of them for all lanes; 0 behind the last. Their loads are
// on the way together.
template <u32 T, class Load>
__device__ inline void own_products(const Bdia& a, u32 own, u32 apart, const double* x, u32 (&row)[T], double (&sum)[T]) {
    const Wells& w = a.wells;
    const double *of_row[T], *part[T];
    double diagonal[T], there[T];
    u32 length[T], longest = 0;
#pragma unroll
    for (u32 t = 0; t < T; ++t) {
        const u32 at = own + t * apart;
        const Well well = at < w.count ? w[at] : Well{0, 0, 0, NONE};
        of_row[t] = w.row + well.start;
        part[t] = x + well.first;
        length[t] = well.length;
        longest = max(longest, well.length);
        row[t] = well.number == NONE ? NONE : a.rows + well.number;
        diagonal[t] = at < w.count ? __ldg(&w.diagonal[at]) : 0.0;
        there[t] = at < w.count ? Load::vector(&x[row[t]]) : 0.0;
        sum[t] = 0.0;
    }
#pragma unroll(T > 1 ? 2 : 4)
    for (u32 e = lane_number(); e < longest; e += WARP)
#pragma unroll
        for (u32 t = 0; t < T; ++t)
            if (e < length[t]) sum[t] = fma(Load::matrix(&of_row[t][e]), Load::vector(&part[t][e]), sum[t]);
#pragma unroll
    for (u32 t = 0; t < T; ++t) sum[t] = fma(diagonal[t], there[t], warp_sum(sum[t]));
}

template <class Load> __device__ inline double own_product(const Bdia& a, u32 own, const double* x) {
    u32 row[1];
    double sum[1];
    own_products<1, Load>(a, own, 1, x, row, sum);
    return sum[0];
}

// ---- CSR and BSR ----

// Blocks of BS x BS, column-major; BS = 1 is CSR.
struct Blocks {
    u32 rows;
    const u32* row_ptr;
    const u32* col_ind;
    const double* val;
};

// CSR: LANES lanes (a power of two) share a row.
template <u32 LANES, class Load>
__device__ inline u32 csr_product(const Blocks& a, u32 base, const double* x, double (&sum)[1]) {
    constexpr u32 TOGETHER = WARP / LANES;
    const u32 lane = lane_number();
#pragma unroll
    for (u32 turn = 0; turn < LANES; ++turn) {
        const u32 i = base + turn * TOGETHER + lane / LANES;
        double s = 0.0;
        if (i < a.rows) {
            const u32 end = a.row_ptr[i + 1];
#pragma unroll 2
            for (u32 e = a.row_ptr[i] + lane % LANES; e < end; e += LANES)
                s = fma(Load::matrix(&a.val[e]), Load::vector(&x[Load::matrix(&a.col_ind[e])]), s);
        }
#pragma unroll
        for (u32 apart = LANES / 2; apart; apart /= 2) s += __shfl_xor_sync(FULL, s, apart);
        // row `turn TOGETHER + g` is kept by the lane of that number
        const double there = __shfl_sync(FULL, s, lane % TOGETHER * LANES);
        if (lane / TOGETHER == turn) sum[0] = there;
    }
    return base + lane < a.rows;
}

// BSR: a lane has a scalar row.
template <u32 AHEAD, class Load>
__device__ inline u32 bsr_product(const Blocks& a, u32 base, const double* x, double (&sum)[1]) {
    const u32 i = base + lane_number();
    if (i >= a.rows) return 0;
    const u32 row = i / BS, r = i % BS, end = a.row_ptr[row + 1];
#pragma unroll AHEAD
    for (u32 e = a.row_ptr[row]; e < end; ++e) {
        const double* val = a.val + (size_t)e * BB + r;
        const double* part = x + (size_t)Load::matrix(&a.col_ind[e]) * BS;
#pragma unroll(BS <= 8 ? BS : 8)
        for (u32 c = 0; c < BS; ++c) sum[0] = fma(Load::matrix(&val[c * BS]), Load::vector(&part[c]), sum[0]);
    }
    return 1;
}
