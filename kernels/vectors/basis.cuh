// What kernels take of a basis of vectors.
#pragma once
#include "common.cuh"

// Vectors that one pass over a basis takes.
constexpr u32 MOST = 32;

struct Basis {
    const double* v[MOST];
};

struct Numbers {
    double v[MOST];
};
