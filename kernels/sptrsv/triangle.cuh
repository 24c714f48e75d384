// A triangle of scalar factors by rows.
#pragma once
#include "common.cuh"

struct Triangle {
    const u32* row_ptr;
    const u32* col_ind;
    const double* val;
};
