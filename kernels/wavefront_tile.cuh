// A wavefront's tiles: their geometry, what is in shared memory and how factors are stored. The
// unknowns and levels are explained in wavefront.cu.
#pragma once
#include "stored.cuh"

// The host gives these; here: 7-point stencil, tiles of one column.
#ifndef OFFSETS
#define OFFSETS {-1, 0, 0}, {0, -1, 0}, {0, 0, -1}
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
constexpr int LOADERS = (HALO * BS + 31) / 32;
constexpr int THREADS = (2 * WARPS + LOADERS) * 32;
// Columns that neighbours look at.
constexpr int BOUNDARY = HZ * TY + (TZ - HZ) * HY;

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

// How factors are stored: a record per step of a warp; in it a unit per offset (before them one for
// the diagonal when solving with U'), in it columns of blocks with an entry per lane.
// Units are whole pieces of a bulk copy.
constexpr int PIECE = 16 / sizeof(Stored);
constexpr int UNIT = (ACTIVE * BS + PIECE - 1) / PIECE * PIECE;
template <bool BACKWARD>
struct Records {
    static constexpr int UNITS = N + (BACKWARD ? 1 : 0), RECORD = UNITS * UNIT;
};

// Steps are worked off in turns. A porter, one warp for each that computes, brings what a turn needs
// from memory, TURNS turns ahead, and takes its solutions away.
constexpr int TURNS = 3;
__device__ constexpr int power_of_two(int least) {
    int p = 1;
    while (p < least) p *= 2;
    return p;
}
constexpr int DELAY = longest_delay();

// The ring of values: rows of steps; distances chosen against bank conflicts.
__device__ constexpr int ring_stride_y() {
    int s = TY + HY;
    if (BS == 1 && PATCH_Y < 16 && (PATCH_Y & (PATCH_Y - 1)) == 0)
        while (s % 16 != PATCH_Y % 16) ++s;
    return s;
}
__device__ constexpr int ring_row() {
    int s = ring_stride_y() * (TZ + HZ) * BS;
    while (s % 16 != 2) ++s;
    return s;
}
constexpr int SY = ring_stride_y(), ROW = ring_row();
__device__ constexpr int column_in_ring(int ty, int tz) { return ((tz + HZ) * SY + ty + HY) * BS; }
// Marches start and end at multiples of so many steps.
constexpr int ALIGNED = 8;
__device__ constexpr int ring_steps(int turn) {
    const int least = DELAY + turn > TURNS * turn ? DELAY + turn : TURNS * turn;
    return power_of_two(least > ALIGNED ? least : ALIGNED);
}
constexpr int RHS_ROW = ACTIVE + 2;
__device__ constexpr int rhs_size(int turn) { return (TURNS * turn * RHS_ROW + 1) / 2 * 2; }
// Numbers of factors for which there is room when a turn has so many steps.
constexpr int MEMORY = 222 * 1024;
__device__ constexpr int left(int turn) {
    return (MEMORY - 8 * (ring_steps(turn) * ROW + WARPS * (rhs_size(turn) + 16))) / (int)sizeof(Stored);
}

// Factors come with the right-hand sides of a turn if they fit, and if a lane has the registers to
// look one step ahead; else in stages, parts of a record, that a warp asks for itself.
__device__ constexpr bool fits(int turn) {
    return WARPS * TURNS * turn * Records<true>::RECORD <= left(turn);
}
constexpr bool CARRIED = FRESH * BS <= 16 && (N + 1) * BS <= 32 && fits(2);
constexpr int TURN = CARRIED ? (BS <= 2 && fits(8) ? 8 : fits(4) ? 4 : 2) : BS <= 4 ? 4 : BS <= 8 ? 2 : 1;
constexpr int RING = ring_steps(TURN), RHS = rhs_size(TURN);
constexpr int STAGES = 4, MOST = left(TURN) / (WARPS * STAGES);
static_assert(CARRIED || UNIT <= MOST, "a tile is too large for the shared memory");
// stages per record, and units in each
__device__ constexpr int part_units(int units) {
    const int most = MOST / UNIT > 0 ? MOST / UNIT : 1, parts = (units + most - 1) / most;
    return (units + parts - 1) / parts;
}
__device__ constexpr int larger(int a, int b) { return a > b ? a : b; }
constexpr int FACTORS = CARRIED ? TURNS * TURN * Records<true>::RECORD : STAGES * larger(part_units(N), part_units(N + 1)) * UNIT;
constexpr int BARRIERS = WARPS * (STAGES + 2 * TURNS) + 1;
constexpr int SHARED = 8 * (RING * ROW + WARPS * RHS + BARRIERS) + (int)sizeof(Stored) * WARPS * FACTORS;

// Steps by which the exchange starts before the first of a tile, and ends after the last.
constexpr int PAD = DELAY + 2 * ALIGNED;

// What the host has to know: threads, shared bytes, numbers of a record forward and backward, steps
// of a turn, boundary columns, alignment of marches, padding of the exchange.
extern "C" __constant__ int wavefront_layout[8] = {
    THREADS, SHARED, Records<false>::RECORD, Records<true>::RECORD, TURN, BOUNDARY, ALIGNED, PAD};

struct Box {
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
    const Stored* val;
    // Boundary values of this solve, per tile, step, column, row; and those of the next, which this
    // solve marks absent.
    double* exchange;
    double* other;
};

// Steps are counted in two ways: u from the start of the tile's march, s = u + first as the level
// within the tile: the cell x of column (ty, tz) is computed at s = x + ALPHA * ty + BETA * tz.
__device__ constexpr int skew(int ty, int tz) { return ALPHA * ty + BETA * tz; }

// Place of a boundary column among those of its tile, or -1.
__device__ inline int boundary_place(int ty, int tz) {
    if (tz >= TZ - HZ) return (tz - (TZ - HZ)) * TY + ty;
    return ty >= TY - HY ? HZ * TY + tz * HY + ty - (TY - HY) : -1;
}

// Boundary values of step s of the tile at `place` of the list.
__device__ inline size_t boundary_row(const Box& box, u32 place, int s) {
    return ((size_t)place * box.steps + (s + PAD)) * (BOUNDARY * BS);
}

// First cell of the column (y', z) in natural order, or -1 if it is outside.
__device__ inline int line(const Box& box, int yy, int z) {
    const int y = yy - SHEAR * z;
    return yy >= 0 && z >= 0 && z < box.nz && y >= 0 && y < box.ny ? (z * box.ny + y) * box.nx : -1;
}

// Cell in the order of the vectors.
template <bool BACKWARD>
__device__ inline size_t natural(const Box& box, int cell) {
    return BACKWARD ? (size_t)box.nx * box.ny * box.nz - 1 - cell : cell;
}
