// Rows of a factorisation on a pattern that is one stencil on a box: which entries they have, what rows
// hand on to others, and how A is brought. See ilu/stencil/entries.cu.
#pragma once
#include "sptrsv/wavefront/geometry.cuh"
#include "sptrsv/wavefront/transport.cuh"

// Entries of a row: those of L at the offsets of the march, the diagonal, those of U' opposite to them.
static_assert(KINDS == 1, "rows are alike in a march that factorises");
constexpr int N = OFFSET_COUNT, EARLY = count_early(0);
constexpr int ENTRIES = 2 * N + 1;
// Entries that A has, by their numbers in a row, in natural order; the host gives them.
#ifndef GIVEN
#define GIVEN 0, 1, 2, 3, 6, 5, 4
#endif
__device__ constexpr int given(int n) {
    constexpr int list[] = {GIVEN};
    return list[n];
}
__device__ constexpr int count_given() {
    constexpr int list[] = {GIVEN};
    return sizeof(list) / sizeof(list[0]);
}
constexpr int OF_A = count_given();

// Sheared offset of entry e along an axis.
__device__ constexpr int step(int e, int axis) { return e < N ? offset(e, axis) : e == N ? 0 : -offset(e - N - 1, axis); }

// Entry at a sheared offset, or -1.
__device__ constexpr int entry_at(int dx, int dy, int dz) {
    if (dx == 0 && dy == 0 && dz == 0) return N;
    for (int o = 0; o < N; ++o) {
        const int x = offset(o, 0), y = offset(o, 1), z = offset(o, 2);
        if (dx == x && dy == y && dz == z) return o;
        if (dx == -x && dy == -y && dz == -z) return N + 1 + o;
    }
    return -1;
}

// Entry that U' of the row at offset p changes with its entry opposite to offset q, or -1.
struct Targets {
    signed char of[N][N];
    __device__ constexpr Targets() : of() {
        for (int p = 0; p < N; ++p)
            for (int q = 0; q < N; ++q)
                of[p][q] = (signed char)entry_at(offset(p, 0) - offset(q, 0), offset(p, 1) - offset(q, 1),
                                                 offset(p, 2) - offset(q, 2));
    }
};
__device__ constexpr int target(int p, int q) {
    constexpr Targets targets{};
    return targets.of[p][q];
}

// Place of an entry among those of a full row, in natural order.
__device__ constexpr int position(int e) { return e < N ? rank(e) : e == N ? N : 2 * N - rank(e - N - 1); }
__device__ constexpr u64 given_positions() {
    u64 bits = 0;
    for (int g = 0; g < OF_A; ++g) bits |= 1ull << position(given(g));
    return bits;
}
// Those at dx columns' distance along x, and how far that goes.
__device__ constexpr int reach() {
    int most = 0;
    for (int e = 0; e < ENTRIES; ++e) most = step(e, 0) > most ? step(e, 0) : most;
    return most;
}
struct Distances {
    u64 bits[2 * reach() + 1];
    __device__ constexpr Distances() : bits() {
        for (int e = 0; e < ENTRIES; ++e) bits[step(e, 0) + reach()] |= 1ull << position(e);
    }
};
__device__ constexpr u64 positions_at(int dx) {
    constexpr Distances distances{};
    return distances.bits[dx + reach()];
}
// What a row hands on: D, then its entries of U', by number.
constexpr int HANDED = N + 1;

// Numbers of the cells of a neighbouring tile, along axis 1 or 2, that are looked at.
struct Looks {
    bool at[3][HANDED];
    signed char list[3][HANDED];
    int count[3];
    __device__ constexpr Looks() : at(), list(), count() {
        constexpr Targets targets{};
        for (int axis = 1; axis < 3; ++axis)
            for (int n = 0; n < HANDED; ++n) {
                for (int p = 0; p < N; ++p)
                    if (offset(p, axis) < 0 && (n == 0 || targets.of[p][n - 1] >= 0)) at[axis][n] = true;
                if (at[axis][n]) list[axis][count[axis]++] = (signed char)n;
            }
    }
};
__device__ constexpr bool wanted(int axis, int n) {
    constexpr Looks looks{};
    return looks.at[axis][n];
}
__device__ constexpr int count_wanted(int axis) {
    constexpr Looks looks{};
    return looks.count[axis];
}
__constant__ const Looks LOOKS = Looks{};
// Columns of the halo before the tile in z, corner included, and in y'.
constexpr int ABOVE = (TY + CORNER) * HZ, BESIDE = HY * TZ;
constexpr int WANTED_Z = count_wanted(2), WANTED_Y = count_wanted(1);
constexpr int WANTED = ABOVE * WANTED_Z + BESIDE * WANTED_Y;

// A number that a column of the halo hands on: the column, and which.
struct Wish {
    int ty, tz, number;
};
__device__ inline Wish wish(int w) {
    constexpr int DEPTH = HY > 0 ? HY : 1, SIDE = BESIDE > 0 ? BESIDE : 1, OVER = ABOVE > 0 ? ABOVE : 1;
    if (w < ABOVE * WANTED_Z) {
        const int h = w % OVER;
        return {h % (TY + CORNER) - CORNER, h / (TY + CORNER) - HZ, LOOKS.list[2][w / OVER]};
    }
    const int h = (w - ABOVE * WANTED_Z) % SIDE;
    return {h % DEPTH - HY, h / DEPTH, LOOKS.list[1][(w - ABOVE * WANTED_Z) / SIDE]};
}

// Rows of the ring: those of the steps that are still looked at. Workers of entries look two steps back and begin
// a tile a step early, while loaders fill its first row already; where rows leave a step after they ended, D of those
// that they waited for is looked at a step longer, too.
#ifndef LEAVES_LATE
#define LEAVES_LATE 0
#endif
constexpr int LOOKED_AT = BS == 1 ? (DELAY > 2 ? DELAY : 2) + 1 + LEAVES_LATE : DELAY;
constexpr int RING = power_of_two(LOOKED_AT > 2 ? LOOKED_AT : 2);
constexpr int LINES = TZ + HZ, NARROW = TY + HY;

// A, by rows of numbers.
struct Matrix {
    const u32* row_ptr;
    const double* val;
    // added to the diagonal
    double shift;
};

// What a worker and its porter share: rows of A of some turns, and barriers that tell when they are there and
// when they have been read.
struct Desk {
    double* rows;
    u64* brought;
    u64* read;
};

// 16 bytes to shared memory while the thread goes on.
__device__ inline void copy_pair_async(double* to, const double* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(shared_address(to)), "l"(from) : "memory");
}

// A warp that brings the (block) rows of A of a patch of columns: TURN of each column together, TURNS
// turns ahead, COLUMN numbers apart.
template <int TURN, int TURNS, int COLUMN>
struct Porter {
    const Tiles& box;
    const Matrix& a;
    const Desk desk;
    const int lane;
    Turnstile<TURNS> turn;

    __device__ void march(int k, int warp) {
        constexpr int PIECE = BS % 2 == 0 ? 2 : 1, PIECES = TURN * OF_A * (int)BB / PIECE;
        const int4 tile = box.tile[k], mine = box.warp[k * WARPS + warp];
        const int column = min(lane, PATCH - 1);
        const int ty = warp % WARPS_Y * PATCH_Y + column % PATCH_Y;
        const int tz = warp / WARPS_Y * PATCH_Z + column / PATCH_Y;
        const int cells = line(box, tile.x * TY + ty, tile.y * TZ + tz), first = tile.z + mine.x - skew(ty, tz);
        // where the rows of turn t begin
        auto bound = [&](int t) {
            return cells < 0 ? 0 : __ldg(&a.row_ptr[(size_t)(cells + min(max(first + t * TURN, 0), box.nx)) * BS]);
        };
        u32 begin = bound(0), end = bound(1), next = bound(2);
        for (int t = 0; t * TURN < mine.y; ++t) {
            if (turn.round > 0) wait(desk.read + turn.slot, turn.round - 1);
            double* const to = desk.rows + turn.slot * (PATCH * COLUMN);
#pragma unroll 8
            for (int e = lane; e < (PATCH * PIECES + 31) / 32 * 32; e += 32) {
                const int c = min(e / PIECES, PATCH - 1), n = e % PIECES * PIECE;
                const u32 from = __shfl_sync(FULL, begin, c) + n;
                if (from < __shfl_sync(FULL, end, c) && e < PATCH * PIECES) {
                    if (PIECE == 2) copy_pair_async(to + c * COLUMN + n, a.val + from);
                    else copy_async(to + c * COLUMN + n, a.val + from, true);
                }
            }
            arrive_with_copies(desk.brought + turn.slot);
            begin = end, end = next, next = bound(t + 3);
            turn.pass();
        }
    }
};

// 1/x, or 0 when that or x is not finite (or the one so small that the other is not normal).
__device__ inline double inverse_pivot(double x) {
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    // 20 bits, 60, all
    double e = fma(-x, y, 1.0);
    y = fma(y, fma(e, e, e), y);
    e = fma(-x, y, 1.0);
    y = fma(y, e, y);
    return isfinite(y) ? y : 0.0;
}

// Place of a cell of a neighbouring tile's column.
struct Source {
    // tile in the list, column in it, steps from the own count to its
    u32 tile;
    int ty, tz, steps;
};

// Whose column (ty, tz), counted from tile k's first, is; for one that exists.
__device__ inline Source source(const Tiles& box, const int4 tile, int ty, int tz) {
    const int back_y = ty < 0, back_z = tz < 0;
    return {box.place[(tile.y - back_z) * box.across + tile.x - back_y], ty + back_y * TY, tz + back_z * TZ,
            back_y * ACROSS_Y + back_z * ACROSS_Z};
}
__device__ inline bool exists(const Tiles& box, const int4 tile, int ty, int tz) {
    return tile.x >= (ty < 0) && tile.y >= (tz < 0) && line(box, tile.x * TY + ty, tile.y * TZ + tz) >= 0;
}
