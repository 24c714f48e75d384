// Factors as they are stored for solves: in double, in float where FACTOR_FLOAT is defined, or in bfloat16 where
// FACTOR_BFLOAT16 is. They are converted when they are used, so that all arithmetic is in double.
#pragma once
#include "common.cuh"

#if defined FACTOR_FLOAT
typedef float Stored;
#elif defined FACTOR_BFLOAT16
// bfloat16: the upper half of a float.
struct Stored {
    unsigned short bits;

    Stored() = default;
    // Rounded to nearest, ties to even. What a float cuts off leaves its last bit set: so rounding it again is right.
    __device__ Stored(double v) {
        const float cut = __double2float_rz(v);
        const u32 whole = __float_as_uint(cut) | (u32)((double)cut != v);
        bits = (unsigned short)((whole + 0x7fffu + (whole >> 16 & 1u)) >> 16);
    }
    __device__ operator double() const { return (double)__uint_as_float((u32)bits << 16); }
};

__device__ inline Stored stored_bits(unsigned short bits) {
    Stored v;
    v.bits = bits;
    return v;
}
__device__ inline Stored __ldg(const Stored* at) { return stored_bits(__ldg(&at->bits)); }
__device__ inline Stored __ldcs(const Stored* at) { return stored_bits(__ldcs(&at->bits)); }
#else
typedef double Stored;
#endif
