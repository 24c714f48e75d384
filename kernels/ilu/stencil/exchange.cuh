// Factors that are written where they belong, and what neighbouring tiles exchange meanwhile: values of the columns at
// their ends, which are their own flags. Those of the next factorisation are marked absent by this one.
#pragma once
#include "ilu/stencil/loader.cuh"

// Columns that neighbours look at, and steps by which the exchange starts before the first of a tile, and ends
// after the last.
constexpr int BOUNDARY = HZ * TY + (TZ - HZ) * HY, PAD = DELAY + 2 * ALIGNED;

// What the host has to know: threads, shared bytes, steps of a turn, boundary columns, numbers of one of them,
// alignment of marches, padding of the exchange.
#define EXCHANGE_LAYOUT(threads, shared, turn, numbers) \
    extern "C" __constant__ int stencil_exchange_layout[8] = {threads, shared, turn, BOUNDARY, numbers, ALIGNED, PAD, 0}

// L, D and U' in the order of their patterns, blocks column-major; boundary values of this factorisation and of the
// next.
struct Factors {
    Pattern lower_pattern, upper_pattern;
    double* lower;
    double* diagonal;
    double* upper;
    double* exchange;
    double* other;
    // first row without a pivot, in the upper half, and the step of its inversion
    u64* error;
};

// Place of a boundary column among those of its tile, or -1.
__device__ inline int boundary_place(int ty, int tz) {
    if (tz >= TZ - HZ) return (tz - (TZ - HZ)) * TY + ty;
    return ty >= TY - HY ? HZ * TY + tz * HY + ty - (TY - HY) : -1;
}

// Boundary values of a tile at step s, so many of each column.
template <int NUMBERS>
__device__ inline size_t boundary_row(const Tiles& box, u32 place, int s) {
    return ((size_t)place * box.steps + (s + PAD)) * (BOUNDARY * NUMBERS);
}

// Where number `within` of the values of column (ty, tz) of a neighbouring tile comes from, and its place in the ring.
template <int NUMBERS>
__device__ inline Awaited exchanged(const Tiles& box, const double* exchange, int4 tile, int ty, int tz, int within,
                                    int place) {
    if (!exists(box, tile, ty, tz)) return nothing_at(place);
    const Source there = source(box, tile, ty, tz);
    const double* const from = exchange + boundary_row<NUMBERS>(box, there.tile, tile.z + there.steps);
    return {from + (size_t)boundary_place(there.ty, there.tz) * NUMBERS + within, skew(ty, tz) - tile.z, place};
}
