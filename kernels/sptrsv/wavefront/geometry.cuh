// Tiles of a wavefront: columns of a box that march along x together. Unknowns and levels are explained in
// sptrsv/wavefront.cu.
#pragma once
#include "common.cuh"

// The host gives these; here: 7-point stencil, tiles of one column. Where rows alternate along y and z, there are
// four kinds of columns, by the parities of y' and z: OFFSETS has those of all, kind by kind, COUNTS how many of
// each, PHASES by how many levels each comes after kind 0, and ALPHA and BETA are levels per two columns.
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
// Of all kinds.
constexpr int OFFSET_COUNT = count_offsets();

#ifdef COUNTS
constexpr int KINDS = 4, PERIOD = 2;
// A list that is indexed at run time would be one in the memory of each thread.
__device__ constexpr int of_kinds(int kind, int k0, int k1, int k2, int k3) {
    return kind == 0 ? k0 : kind == 1 ? k1 : kind == 2 ? k2 : k3;
}
__device__ constexpr int count(int kind) { return of_kinds(kind, COUNTS); }
__device__ constexpr int phase(int kind) { return of_kinds(kind, PHASES); }
#else
constexpr int KINDS = 1, PERIOD = 1;
__device__ constexpr int count(int) { return OFFSET_COUNT; }
__device__ constexpr int phase(int) { return 0; }
#endif
// The first offset of a kind, or of the one after the last.
__device__ constexpr int first_offset(int kind) {
    int first = 0;
    for (int k = 0; k < kind; ++k) first += count(k);
    return first;
}
static_assert(first_offset(KINDS) == OFFSET_COUNT, "COUNTS are not those of OFFSETS");
__device__ constexpr int kind_of_offset(int o) {
    int kind = 0;
    while (first_offset(kind + 1) <= o) ++kind;
    return kind;
}
__device__ constexpr int kind_of_column(int ty, int tz) { return KINDS == 1 ? 0 : (ty & 1) + 2 * (tz & 1); }

// Steps are counted in two ways: u from the start of the tile's march, s = u + first as the level
// within the tile: the cell x of column (ty, tz) is computed at s = x + skew(ty, tz).
__device__ constexpr int skew(int ty, int tz) {
    return KINDS == 1 ? ALPHA * ty + BETA * tz : ALPHA * (ty >> 1) + BETA * (tz >> 1) + phase(kind_of_column(ty, tz));
}
// What is computed of each offset once, so that it is known wherever the offset is.
struct Each {
    int of[OFFSET_COUNT];
};
__device__ constexpr Each delays() {
    Each all = {};
    for (int o = 0; o < OFFSET_COUNT; ++o) {
        const int kind = kind_of_offset(o), ty = kind & 1, tz = kind >> 1;
        all.of[o] = skew(ty, tz) - skew(ty + offset(o, 1), tz + offset(o, 2)) - offset(o, 0);
    }
    return all;
}
// Steps between a cell and the one at offset o.
__device__ constexpr int delay(int o) {
    constexpr Each all = delays();
    return all.of[o];
}
__device__ constexpr int depth(int axis) {
    int most = 0;
    for (int o = 0; o < OFFSET_COUNT; ++o) most = -offset(o, axis) > most ? -offset(o, axis) : most;
    return most;
}
__device__ constexpr int longest_delay() {
    int most = 0;
    for (int o = 0; o < OFFSET_COUNT; ++o) most = delay(o) > most ? delay(o) : most;
    return most;
}
__device__ constexpr bool has_corner() {
    for (int o = 0; o < OFFSET_COUNT; ++o)
        if (offset(o, 1) < 0 && offset(o, 2) < 0) return true;
    return false;
}
// A warp has a patch of columns, a lane one row of the blocks of one of them.
constexpr int PATCH = PATCH_Y * PATCH_Z, ACTIVE = PATCH * BS;
constexpr int WARPS = WARPS_Y * WARPS_Z, TY = PATCH_Y * WARPS_Y, TZ = PATCH_Z * WARPS_Z;
static_assert(ACTIVE <= 32, "a patch is more than a warp");
static_assert(WARPS_Y % PERIOD == 0 && WARPS_Z % PERIOD == 0, "a warp has columns of one kind");
// Column `c` of a warp: with kinds those of one, every second one along both axes.
__device__ constexpr int kind_of_warp(int warp) { return kind_of_column(warp % WARPS_Y, warp / WARPS_Y); }
__device__ constexpr int column_y(int warp, int c) {
    const int w = warp % WARPS_Y;
    return w / PERIOD * PERIOD * PATCH_Y + w % PERIOD + PERIOD * (c % PATCH_Y);
}
__device__ constexpr int column_z(int warp, int c) {
    const int w = warp / WARPS_Y;
    return w / PERIOD * PERIOD * PATCH_Z + w % PERIOD + PERIOD * (c / PATCH_Y);
}
// Columns of neighbouring tiles that are looked at: so deep, with or without the corner.
constexpr int HY = depth(1), HZ = depth(2), CORNER = has_corner() ? HY : 0;
static_assert(HY <= TY && HZ <= TZ, "a tile is less than the reach of the stencil");
constexpr int HALO = (TY + CORNER) * HZ + HY * TZ;
// Columns of a row of a tile in shared memory, apart so that a patch meets different banks; those of one parity lie
// beside one another.
constexpr int BEFORE = (HY + PERIOD - 1) / PERIOD * PERIOD, OF_PARITY = (TY + BEFORE) / PERIOD;
__device__ constexpr int apart() {
    int s = OF_PARITY * PERIOD;
    if (BS == 1 && PATCH_Y < 16 && (PATCH_Y & (PATCH_Y - 1)) == 0)
        while (s * PERIOD % 16 != PATCH_Y % 16) ++s;
    return s;
}
__device__ constexpr int column_in_row(int ty) {
    return PERIOD == 1 ? ty + BEFORE : ((ty + BEFORE) & 1) * OF_PARITY + ((ty + BEFORE) >> 1);
}

// Of the offsets of a kind those that are known before the step before; the others come last.
__device__ constexpr int count_early(int kind) {
    int n = 0;
    while (n < count(kind) && delay(first_offset(kind) + n) > 1) ++n;
    return n;
}
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

// Natural order of the offsets of a kind: how many come before each.
__device__ constexpr Each ranks() {
    Each all = {};
    for (int o = 0; o < OFFSET_COUNT; ++o) {
        const int kind = kind_of_offset(o);
        for (int p = first_offset(kind); p < first_offset(kind + 1); ++p) {
            const int dz = offset(p, 2) - offset(o, 2);
            const int dy = offset(p, 1) - SHEAR * offset(p, 2) - (offset(o, 1) - SHEAR * offset(o, 2));
            const int dx = offset(p, 0) - offset(o, 0);
            all.of[o] += dz < 0 || (dz == 0 && (dy < 0 || (dy == 0 && dx < 0)));
        }
    }
    return all;
}
__device__ constexpr int rank(int o) {
    constexpr Each all = ranks();
    return all.of[o];
}

// The offsets in that order, and what each is along the axes: for loops that are not unrolled, in which a list of
// constants is read from constant memory and would else be one of each thread.
struct Ranked {
    int offset[OFFSET_COUNT], along[OFFSET_COUNT][3];
};
__device__ constexpr Ranked by_rank() {
    Ranked all = {};
    for (int o = 0; o < OFFSET_COUNT; ++o) {
        const int r = first_offset(kind_of_offset(o)) + rank(o);
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

// Steps from tile to tile.
constexpr int ACROSS_Y = skew(TY, 0) - skew(0, 0), ACROSS_Z = skew(0, TZ) - skew(0, 0);

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
