// Slices of the parts of a triangle, as plans and solves have them.
#pragma once
#include "common.cuh"

// Consecutive slices hold consecutive rows of `order`.
struct Slice {
    // Its first row in `order`, and its first block in the columns and values.
    u32 first, start;
    // Rows, with UNEVEN also the logarithm of the lanes that share one in the upper byte; blocks per lane.
    unsigned short shape, length;
    // Slot of its first row in shared memory; the others follow.
    u32 slot;
};

// A column that is a slot of shared memory; else it is a row.
constexpr u32 LOCAL = 0x80000000u;

// Regions through which the segments of a part pass in turn. A row finds in shared memory what its
// segment and the two before it computed, while the fourth region is cleared for the next segment.
constexpr u32 REGIONS = 4;
