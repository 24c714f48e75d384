// Tiles of a wavefront: columns of a box that march along x together. Unknowns and levels are explained in
// sptrsv/wavefront.cu.
#pragma once
#include "common.cuh"

// The host gives these; here: 7-point stencil, tiles of one column.
#ifndef OFFSETS
#define OFFSETS {0, 0, -1}, {0, -1, 0}, {-1, 0, 0}
#define SHEAR 0
#define ALPHA 1
#define BETA 1
#define PATCH_Y 1
#define PATCH_Z 1
#define WARPS_Y 2
#define WARPS_Z 2
#endif

// Sheared offset o along an axis: x, y', z.
__device__ constexpr int offset(int o, int axis) {
    constexpr int list[][3] = {OFFSETS};
    return list[o][axis];
}
__device__ constexpr int count_offsets() {
    constexpr int list[][3] = {OFFSETS};
    return sizeof(list) / sizeof(list[0]);
}
constexpr int N = count_offsets();

// Steps between a cell and the one at offset o.
__device__ constexpr int delay(int o) {
    return -(offset(o, 0) + ALPHA * offset(o, 1) + BETA * offset(o, 2));
}
__device__ constexpr int depth(int axis) {
    int most = 0;
    for (int o = 0; o < N; ++o) most = -offset(o, axis) > most ? -offset(o, axis) : most;
    return most;
}
__device__ constexpr int longest_delay() {
    int most = 0;
    for (int o = 0; o < N; ++o) most = delay(o) > most ? delay(o) : most;
    return most;
}
__device__ constexpr bool has_corner() {
    for (int o = 0; o < N; ++o)
        if (offset(o, 1) < 0 && offset(o, 2) < 0) return true;
    return false;
}
// A warp has a patch of columns, a lane one row of the blocks of one of them.
constexpr int PATCH = PATCH_Y * PATCH_Z, ACTIVE = PATCH * BS;
constexpr int WARPS = WARPS_Y * WARPS_Z, TY = PATCH_Y * WARPS_Y, TZ = PATCH_Z * WARPS_Z;
static_assert(ACTIVE <= 32, "a patch is more than a warp");
// Columns of neighbouring tiles that are looked at: so deep, with or without the corner.
constexpr int HY = depth(1), HZ = depth(2), CORNER = has_corner() ? HY : 0;
static_assert(HY <= TY && HZ <= TZ, "a tile is less than the reach of the stencil");
constexpr int HALO = (TY + CORNER) * HZ + HY * TZ;
// Columns of a row of a tile in shared memory, apart so that a patch meets different banks.
__device__ constexpr int apart() {
    int s = TY + HY;
    if (BS == 1 && PATCH_Y < 16 && (PATCH_Y & (PATCH_Y - 1)) == 0)
        while (s % 16 != PATCH_Y % 16) ++s;
    return s;
}

// Offsets that wait for the step before (they come last), and those that are known earlier.
__device__ constexpr int count_early() {
    int n = 0;
    while (n < N && delay(n) > 1) ++n;
    return n;
}
constexpr int EARLY = count_early(), FRESH = N - EARLY;
// Whether offset o is the cell before in the own column, which a lane keeps in a register.
__device__ constexpr bool own_column(int o) {
    return BS == 1 && offset(o, 0) == -1 && offset(o, 1) == 0 && offset(o, 2) == 0;
}

__device__ constexpr int power_of_two(int least) {
    int p = 1;
    while (p < least) p *= 2;
    return p;
}
constexpr int DELAY = longest_delay();
// Marches start and end at multiples of so many steps.
constexpr int ALIGNED = 8;

// Natural order of the offsets: how many come before offset o.
__device__ constexpr int rank(int o) {
    int before = 0;
    for (int p = 0; p < N; ++p) {
        const int dz = offset(p, 2) - offset(o, 2);
        const int dy = offset(p, 1) - SHEAR * offset(p, 2) - (offset(o, 1) - SHEAR * offset(o, 2));
        const int dx = offset(p, 0) - offset(o, 0);
        before += dz < 0 || (dz == 0 && (dy < 0 || (dy == 0 && dx < 0)));
    }
    return before;
}

// The offsets in that order, and what each is along the axes: for loops that are not unrolled, in which a list of
// constants is read from constant memory and would else be one of each thread.
struct Ranked {
    int offset[N], along[N][3];
};
__device__ constexpr Ranked by_rank() {
    Ranked all = {};
    for (int o = 0; o < N; ++o) {
        const int r = rank(o);
        all.offset[r] = o;
        for (int axis = 0; axis < 3; ++axis) all.along[r][axis] = offset(o, axis);
    }
    return all;
}

// What a march knows of its box.
struct Tiles {
    int nx, ny, nz;
    // Listed tiles, and tiles along y' of the grid of tiles.
    int tiles, across;
    // Steps for which the exchange has room.
    int steps;
    // y', z of a tile in tiles, first step, number of steps (aligned both).
    const int4* tile;
    // Of a warp of a tile: first step of its records relative to the tile's, number of records (whole turns
    // both), index of the first one.
    const int4* warp;
    // Place in the list of a tile of the grid of tiles, or NONE.
    const u32* place;
};

// Steps are counted in two ways: u from the start of the tile's march, s = u + first as the level
// within the tile: the cell x of column (ty, tz) is computed at s = x + ALPHA * ty + BETA * tz.
__device__ constexpr int skew(int ty, int tz) { return ALPHA * ty + BETA * tz; }

// First cell of the column (y', z) in natural order, or -1 if it is outside.
__device__ inline int line(const Tiles& box, int yy, int z) {
    const int y = yy - SHEAR * z;
    return yy >= 0 && z >= 0 && z < box.nz && y >= 0 && y < box.ny ? (z * box.ny + y) * box.nx : -1;
}

// Cell in the order of the vectors.
template <bool BACKWARD>
__device__ inline size_t natural(const Tiles& box, int cell) {
    return BACKWARD ? (size_t)box.nx * box.ny * box.nz - 1 - cell : cell;
}
