// What all kernels share. NVRTC brings no standard headers; fixed-width names come from here.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

#ifndef BS
#define BS 1
#endif

constexpr u32 WARP = 32;
constexpr u32 FULL = 0xffffffffu;
constexpr u32 NONE = 0xffffffffu;

// A barrier that warps reach from several places. To the hardware the barrier's number alone matters, but
// synccheck of compute-sanitizer takes every second place for divergence: with ONE_BARRIER it is a function,
// which has one.
#if ONE_BARRIER
#define BARRIER __noinline__
#else
#define BARRIER inline
#endif

// Entries of a block; blocks are column-major.
constexpr u32 BB = BS * BS;

// Columns of the rows of a matrix, increasing.
struct Pattern {
    const u32* row_ptr;
    const u32* col_ind;
};

// A coefficient: a number of the host or one made of slots; mirrors `Coef` of the backend trait.
struct Coef {
    double value;
    u32 kind;
    unsigned short a, b;
};

// A quotient whose denominator is zero counts as zero.
__device__ inline double quotient(double num, double den) { return den == 0.0 ? 0.0 : num / den; }

__device__ inline double evaluate(const Coef c, const double* slots) {
    switch (c.kind) {
        case 0: return c.value;
        case 1: return slots[c.a];
        case 2: return quotient(1.0, slots[c.a]);
        case 3: return quotient(slots[c.a], slots[c.b]);
        default: return -quotient(slots[c.a], slots[c.b]);
    }
}

__device__ inline double warp_sum(double v) {
    for (int offset = 16; offset; offset >>= 1) v += __shfl_xor_sync(FULL, v, offset);
    return v;
}

// Loads and stores that meet in the L2 cache, where all multiprocessors see the same.
__device__ inline u32 load_acquire(const u32* p) {
    u32 v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ inline void store_release(u32* p, u32 v) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" : : "l"(p), "r"(v) : "memory");
}

__device__ inline u32 load_relaxed(const u32* p) {
    u32 v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ inline void store_relaxed(u32* p, u32 v) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" : : "l"(p), "r"(v) : "memory");
}

__device__ inline double load_relaxed(const double* p) {
    double v;
    asm volatile("ld.relaxed.gpu.global.f64 %0, [%1];" : "=d"(v) : "l"(p) : "memory");
    return v;
}

__device__ inline void store_relaxed(double* p, double v) {
    asm volatile("st.relaxed.gpu.global.f64 [%0], %1;" : : "l"(p), "d"(v) : "memory");
}

// Position of `key` in the increasing list[from..to), or NONE.
__device__ inline u32 find(const u32* __restrict__ list, u32 from, u32 to, u32 key) {
    while (from < to) {
        const u32 middle = from + (to - from) / 2;
        const u32 there = list[middle];
        if (there == key) return middle;
        if (there < key) from = middle + 1;
        else to = middle;
    }
    return NONE;
}
