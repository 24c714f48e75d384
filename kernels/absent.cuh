// Values that are their own flags: memory is filled with ABSENT, and who needs a value looks until it is
// something else. One trip to the L2 cache, where a flag beside the value takes two.
#pragma once
#include "common.cuh"

// A value that no arithmetic yields: "not there yet".
constexpr long long ABSENT = -1;

__device__ inline bool absent(double v) { return __double_as_longlong(v) == ABSENT; }

// Loads from p if v is absent.
__device__ inline void load_if_absent(double& v, const double* p) {
    asm volatile(
        "{\n"
        ".reg .pred missing;\n"
        ".reg .b64 bits;\n"
        "mov.b64 bits, %0;\n"
        "setp.eq.s64 missing, bits, -1;\n"
        "@missing ld.relaxed.gpu.global.f64 %0, [%1];\n"
        "}"
        : "+d"(v)
        : "l"(p)
        : "memory");
}

// A NaN of the input that looks like ABSENT would never arrive.
__device__ inline double arrived(double v) {
    return absent(v) ? __longlong_as_double(0x7ff8000000000000LL) : v;
}

// The value at p, once it is there.
__device__ inline double awaited(const double* p) {
    double v = load_relaxed(p);
    while (absent(v)) v = load_relaxed(p);
    return v;
}
