// Projected Richardson sweeps over a part of the grid that march through z, and what is around them.
//
// METHOD: 0 Jacobi, from `old` to `next`; 1 lines of one parity of y from `old` to `next`, slice after slice
// with the new values of the slice before; 2 points of one colour, in place; 3 Jacobi in place, with whatever
// values are there. Each thread has two points of a line, a warp 64, and keeps the values of the slices before
// and behind in registers; those of the lines beside come from the first-level cache.
//
// Bytes a point: Jacobi reads u and the source and writes u, 24; with an obstacle that is no constant 32.
#include "obstacle.cuh"

#ifndef METHOD
#define METHOD 0
#endif
#ifndef ROWS
#define ROWS 8
#endif
#ifndef FLOOR
#define FLOOR 0
#endif
#ifndef LOOK
#define LOOK 0
#endif
// thread blocks that a multiprocessor holds at least
#ifndef RESIDENT
#define RESIDENT (METHOD == 2 ? 2 : 3)
#endif
#ifndef UNROLL
#define UNROLL 1
#endif

constexpr u32 THREADS = WARP * ROWS;
constexpr bool IN_PLACE = METHOD >= 2;

// Read by the host: points in x of a thread block, lines of which it makes new values.
extern "C" __constant__ u32 sweep_shape[2] = {2 * WARP, ROWS};

// A number that this kernel does not write.
template <typename T>
__device__ inline T fixed(const T* p) {
    return IN_PLACE ? *p : __ldg(p);
}

__device__ inline bool is_even(u32 v) { return (v & 1) == 0; }

// |min(A u - g, u - phi)| of a point whose value without the obstacle would be `free`.
__device__ inline double complementarity(const Grid& g, double u, double free, double floor) {
    const double residual = __dmul_rn(g.centre, __dadd_rn(u, -free)), gap = u - floor;
    return fabs(residual < gap ? residual : gap);
}

// `tiles` has `segments` for each thread block of a column, one behind the other in z. `first` is the parity of
// y that line 1 has in the grid, or the parity of x + y + z of the first point.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    sweep(const Grid g, const Tile* __restrict__ tiles, u32 segments, u32 colour, u32 first, const Ending e) {
    if (e.control->done) return;
    const u32 lane = threadIdx.x;
    const u32 x = 2 * (blockIdx.x * WARP + lane);
    // the last pair of a line is not beyond its zeros
    const u32 own = min(x, g.pitch - 2);
    for (u32 s = 0; s < segments; ++s) {
        const Tile tile = tiles[blockIdx.y * segments + s];
        double squared = 0, worst = 0;
#if METHOD == 1
        // lines of the colour alone
        const u32 y = tile.y0 + ((tile.y0 - 1 + first + colour) & 1) + 2 * threadIdx.y;
#else
        const u32 y = tile.y0 + threadIdx.y;
#endif
        if (y < tile.y1) {
            const double* __restrict__ old = g.old;
#if METHOD == 1
            const double* beside = colour ? g.next : g.old;
#else
            const double* beside = g.old;
#endif
            u64 at = tile.z0 * g.slice + (u64)y * g.pitch + own;
            double2 rear = *(const double2*)((METHOD == 1 && s ? g.next : g.old) + at - g.slice);
            double2 centre = fixed((const double2*)(old + at));
            double2 front = fixed((const double2*)(old + at + g.slice));
            double2 source = __ldg((const double2*)(g.source + at));
#pragma unroll UNROLL
            for (u32 z = tile.z0; z < tile.z1; ++z, at += g.slice) {
                // what comes from memory is asked for a slice ahead
                const u64 ahead = z + 1 < tile.z1 ? g.slice : 0;
                const double2 front_ahead = fixed((const double2*)(old + at + g.slice + ahead));
                const double2 source_ahead = __ldg((const double2*)(g.source + at + ahead));
                const double2 south = METHOD == 1 ? *(const double2*)(beside + at - g.pitch)
                                                  : fixed((const double2*)(beside + at - g.pitch));
                const double2 north = METHOD == 1 ? *(const double2*)(beside + at + g.pitch)
                                                  : fixed((const double2*)(beside + at + g.pitch));
                double west = __shfl_up_sync(FULL, centre.y, 1);
                double east = __shfl_down_sync(FULL, centre.x, 1);
                if (lane == 0) west = fixed(old + at - 1);
                if (lane == WARP - 1) east = fixed(old + at + (own + 2 < g.pitch ? 2 : 1));
#if FLOOR
                const double2 floor = __ldg((const double2*)(g.floor + at));
#else
                const double2 floor = make_double2(g.flat, g.flat);
#endif
                const double2 free =
                    make_double2(relaxed(g, source.x, west, centre.y, south.x, north.x, rear.x, front.x),
                                 relaxed(g, source.y, centre.x, east, south.y, north.y, rear.y, front.y));
                double2 v = make_double2(larger(free.x, floor.x), larger(free.y, floor.y));
#if METHOD == 2
                // the first of a pair is at even x
                if (is_even(first + y - 1 + z - 1 + colour)) v.y = centre.y;
                else v.x = centre.x;
#endif
                if (x < g.nx) {
                    const double step = v.x - centre.x;
                    squared += step * step;
#if LOOK
                    if (METHOD != 2 || is_even(first + y - 1 + z - 1 + colour))
                        worst = larger(worst, complementarity(g, centre.x, free.x, floor.x));
#endif
                }
                if (x + 1 < g.nx) {
                    const double step = v.y - centre.y;
                    squared += step * step;
#if LOOK
                    if (METHOD != 2 || !is_even(first + y - 1 + z - 1 + colour))
                        worst = larger(worst, complementarity(g, centre.y, free.y, floor.y));
#endif
                    *(double2*)(g.next + at) = v;
                } else if (x < g.nx) {
                    g.next[at] = v.x;
                }
                // the outermost slices also go to where the neighbours look for them
                if (z == 1 && g.before && x < g.nx) {
                    double* to = g.before + (u64)y * g.pitch + own;
                    to[0] = v.x;
                    if (x + 1 < g.nx) to[1] = v.y;
                }
                if (z == g.nz && g.behind && x < g.nx) {
                    double* to = g.behind + (u64)y * g.pitch + own;
                    to[0] = v.x;
                    if (x + 1 < g.nx) to[1] = v.y;
                }
                rear = METHOD == 1 || METHOD == 3 ? v : centre;
                centre = front;
                front = front_ahead;
                source = source_ahead;
            }
        }
        if (e.sweep) {
            over_block<THREADS>(squared, worst);
            if (threadIdx.x == 0 && threadIdx.y == 0) {
                const u32 slot = tile.slot * gridDim.x + blockIdx.x;
                // the colours of a sweep add up
                e.squared[slot] = (METHOD == 1 || METHOD == 2) && colour ? e.squared[slot] + squared : squared;
                e.worst[slot] = (METHOD == 1 || METHOD == 2) && colour ? larger(e.worst[slot], worst) : worst;
            }
        }
    }
    if (e.sweep && (METHOD == 0 || METHOD == 3 || colour)) finish<THREADS>(e, gridDim.x * gridDim.y);
}

// The right-hand side of a time step over the diagonal entry: (delta u + f) / centre, where f is a product of
// numbers of x, y and z.
extern "C" __global__ void begin_step(const Grid g, double* source, const double* __restrict__ fx,
                                      const double* __restrict__ fy, const double* __restrict__ fz, double delta) {
    const u32 x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= g.nx) return;
    const u32 y = blockIdx.y + 1;
    const double of_x = fx[x], of_y = fy[y - 1];
    for (u32 z = blockIdx.z + 1; z <= g.nz; z += gridDim.z) {
        const u64 at = z * g.slice + (u64)y * g.pitch + x;
        const double force = __dmul_rn(__dmul_rn(of_y, fz[z - 1]), of_x);
        source[at] = __ddiv_rn(__dadd_rn(__dmul_rn(delta, g.old[at]), force), g.centre);
    }
}

__device__ inline u64 mixed(u64 v) {
    v = (v ^ (v >> 32)) * 0x9e3779b97f4a7c15ull;
    return (v ^ (v >> 29)) * 0xbf58476d1ce4e5b9ull;
}

// Points on the obstacle, and the fingerprint of the solution, into out[0] and out[1]. `line` is the number of
// lines of the grid before this part, `lines` that of a slice of the grid.
extern "C" __global__ void judge(const Grid g, u64 line, u64 lines, u64* out) {
    const u32 x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= g.nx) return;
    const u32 y = blockIdx.y + 1;
    u64 contact = 0, sum = 0;
    for (u32 z = blockIdx.z + 1; z <= g.nz; z += gridDim.z) {
        const u64 at = z * g.slice + (u64)y * g.pitch + x;
        const double v = g.old[at];
#if FLOOR
        const double floor = g.floor[at];
#else
        const double floor = g.flat;
#endif
        contact += v <= floor;
        const u64 number = (line + (z - 1) * lines + y - 1) * g.nx + x + 1;
        // 0.0 and -0.0 are one value
        sum += mixed((u64)__double_as_longlong(v + 0.0) ^ mixed(number));
    }
    if (contact) atomicAdd(out, contact);
    atomicAdd(out + 1, sum);
}
