// Factors as they are stored for solves: in double, or in float where FACTOR_FLOAT is defined. They
// are converted when they are used, so that all arithmetic is in double.
#pragma once
#include "common.cuh"

#ifdef FACTOR_FLOAT
typedef float Stored;
#else
typedef double Stored;
#endif
