// Memory of a wavefront that solves: what is in shared memory, and how factors are stored.
#pragma once
#include "stored.cuh"
#include "sptrsv/wavefront/geometry.cuh"

constexpr int LOADERS = (HALO * BS + 31) / 32;
constexpr int THREADS = (2 * WARPS + LOADERS) * 32;
// Those that meet at the end of a step: workers and loaders.
constexpr int STEPPING = (WARPS + LOADERS) * 32;
// Columns that neighbours look at.
constexpr int BOUNDARY = HZ * TY + (TZ - HZ) * HY;

// How factors are stored: a record per step of a warp; in it a unit per offset of its kind (before them one for
// the diagonal when solving with U'), in it columns of blocks with an entry per lane.
// Units are whole pieces of a bulk copy.
constexpr int PIECE = 16 / sizeof(Stored);
constexpr int UNIT = (ACTIVE * BS + PIECE - 1) / PIECE * PIECE;
__device__ constexpr int units(bool backward, int kind) { return count(kind) + (backward ? 1 : 0); }
__device__ constexpr int largest(int (*of)(int)) {
    int most = 0;
    for (int kind = 0; kind < KINDS; ++kind) most = of(kind) > most ? of(kind) : most;
    return most;
}
__device__ constexpr int count_fresh(int kind) { return count(kind) - count_early(kind); }
// Of the kind with the most.
constexpr int MOST_OFFSETS = largest(count), MOST_FRESH = largest(count_fresh);
constexpr int LARGEST_RECORD = (MOST_OFFSETS + 1) * UNIT;

// Steps are worked off in turns. A porter, one warp for each that computes, brings what a turn needs
// from memory, TURNS turns ahead, and takes its solutions away.
constexpr int TURNS = 3;

// The ring of values: rows of steps; distances chosen against bank conflicts.
__device__ constexpr int ring_row() {
    int s = apart() * (TZ + HZ) * BS;
    while (s % 16 != 2) ++s;
    return s;
}
constexpr int SY = apart(), ROW = ring_row();
__device__ constexpr int column_in_ring(int ty, int tz) { return ((tz + HZ) * SY + column_in_row(ty)) * BS; }
__device__ constexpr Each asides() {
    Each all = {};
    for (int o = 0; o < OFFSET_COUNT; ++o) {
        const int kind = kind_of_offset(o), ty = kind & 1, tz = kind >> 1;
        all.of[o] = column_in_ring(ty + offset(o, 1), tz + offset(o, 2)) - column_in_ring(ty, tz);
    }
    return all;
}
// Numbers from a column to that of offset o, in a row of the ring.
__device__ constexpr int aside(int o) {
    constexpr Each all = asides();
    return all.of[o];
}
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
    return WARPS * TURNS * turn * LARGEST_RECORD <= left(turn);
}
constexpr bool CARRIED = MOST_FRESH * BS <= 16 && (MOST_OFFSETS + 1) * BS <= 32 && fits(2);
constexpr int TURN = CARRIED ? (BS <= 2 && fits(8) ? 8 : fits(4) ? 4 : 2) : BS <= 4 ? 4 : BS <= 8 ? 2 : 1;
constexpr int RING = ring_steps(TURN), RHS = rhs_size(TURN);
constexpr int STAGES = 4, MOST = left(TURN) / (WARPS * STAGES);
static_assert(CARRIED || UNIT <= MOST, "a tile is too large for the shared memory");
// stages per record, and units in each
__device__ constexpr int part_units(int units) {
    const int most = MOST / UNIT > 0 ? MOST / UNIT : 1, parts = (units + most - 1) / most;
    return (units + parts - 1) / parts;
}
__device__ constexpr int most_part_units() {
    int most = 0;
    for (int kind = 0; kind < KINDS; ++kind)
        for (int backward = 0; backward < 2; ++backward) {
            const int part = part_units(units(backward, kind));
            most = part > most ? part : most;
        }
    return most;
}
constexpr int FACTORS = CARRIED ? TURNS * TURN * LARGEST_RECORD : STAGES * most_part_units() * UNIT;
constexpr int BARRIERS = WARPS * (STAGES + 2 * TURNS) + 1;
constexpr int SHARED = 8 * (RING * ROW + WARPS * RHS + BARRIERS) + (int)sizeof(Stored) * WARPS * FACTORS;

// Steps by which the exchange starts before the first of a tile, and ends after the last.
constexpr int PAD = DELAY + 2 * ALIGNED;

// What the host has to know: threads, shared bytes, numbers of a unit, steps of a turn, boundary columns, alignment
// of marches, padding of the exchange.
extern "C" __constant__ int wavefront_layout[7] = {THREADS, SHARED, UNIT, TURN, BOUNDARY, ALIGNED, PAD};

struct Box : Tiles {
    const Stored* val;
    // Boundary values of this solve, per tile, step, column, row; and those of the next, which this
    // solve marks absent.
    double* exchange;
    double* other;
};

// Place of a boundary column among those of its tile, or -1.
__device__ inline int boundary_place(int ty, int tz) {
    if (tz >= TZ - HZ) return (tz - (TZ - HZ)) * TY + ty;
    return ty >= TY - HY ? HZ * TY + tz * HY + ty - (TY - HY) : -1;
}

// What a worker and its porter share: right-hand sides and factors of TURNS turns, barriers that
// tell when those of a turn are there and when its solutions are.
struct Desk {
    double* rhs;
    Stored* factors;
    u64* brought;
    u64* solved;
};

// Boundary values of step s of the tile at `place` of the list.
__device__ inline size_t boundary_row(const Box& box, u32 place, int s) {
    return ((size_t)place * box.steps + (s + PAD)) * (BOUNDARY * BS);
}

