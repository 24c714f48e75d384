// What solves by colours in a launch for each and in one have in common.
#pragma once
#include "stored.cuh"

// How a slice stores columns; mirrored by the launcher. WIDE: each as it is. UNIFORM: the distance from a
// row to its e-th column, one for all rows. NEAR: the least e-th column of all, and for each row how far
// beyond it its own is, in 16 bits. CLOSE: the least distance, and for each row how far beyond it its own is,
// in 8 bits. But for UNIFORM a row may lack any entries.
enum Kind : u32 { WIDE, UNIFORM, NEAR, CLOSE };
constexpr u32 NOT_NEAR = 0xffff, NOT_CLOSE = 0xff;
