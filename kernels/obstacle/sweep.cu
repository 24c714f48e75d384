// Projected Richardson sweeps over a part of the grid.
//
// METHOD: 0 Jacobi, from `old` to `next`; 1 lines of one parity of y from `old` to `next`, slice after slice
// with the new values of the slice before; 2 points of one colour, in place; 3 Jacobi in place, with whatever
// values are there. A thread has two points of LINES lines in AHEAD slices at a time, whose loads are all on
// their way before the first is needed; those of a warp are 64 points of a line. Neighbours in x come from the
// lanes beside, those in y and z from registers where the thread has them and from the caches otherwise. Of the
// shapes that were timed these are the fastest; docs/obstacle.md has the others.
//
// Bytes a point: Jacobi reads u and the source and writes u, 24; with an obstacle that is no constant 32.
#include "obstacle/grid.cuh"

#ifndef METHOD
#define METHOD 0
#endif
#ifndef FLOOR
#define FLOOR 0
#endif
#ifndef LOOK
#define LOOK 0
#endif
// warps of a thread block in x and y
#ifndef WARPS_X
#define WARPS_X 1
#endif
#ifndef WARPS_Y
#define WARPS_Y (METHOD == 1 ? 2 : 8)
#endif
// lines and slices of a thread at a time
#ifndef LINES
#define LINES 1
#endif
#ifndef AHEAD
#define AHEAD (METHOD == 1 ? 8 : METHOD == 2 ? 2 : FLOOR ? 3 : 4)
#endif
// most slices of a tile; 0: a thread block goes through all
#ifndef SLICES
#define SLICES (METHOD == 1 ? 0 : METHOD == 2 ? 64 : 16)
#endif
// whether the loads of the next slices are on their way while these are made
#ifndef PIPED
#define PIPED (METHOD == 1 || METHOD == 2)
#endif
// thread blocks that a multiprocessor holds at least
#ifndef RESIDENT
#define RESIDENT (METHOD == 1 ? 4 : 2)
#endif
// 1: the source is read past the first-level cache and goes first in the second; 2: so do new values
#ifndef STREAMED
#define STREAMED (METHOD == 1 || METHOD == 3 ? 1 : 3)
#endif

static_assert(METHOD != 1 || LINES == 1, "lines of one parity are not beside each other");

constexpr u32 THREADS = WARP * WARPS_X * WARPS_Y;
constexpr bool IN_PLACE = METHOD >= 2;

// Read by the host: points in x and lines of a thread block, its warps, slices of a tile.
extern "C" __constant__ u32 sweep_shape[4] = {2 * WARP * WARPS_X, (METHOD == 1 ? 2 : 1) * LINES * WARPS_Y,
                                              WARPS_X * WARPS_Y, SLICES};

// A number that this kernel does not write.
template <typename T>
__device__ inline T fixed(const T* p) {
    return IN_PLACE ? *p : __ldg(p);
}

template <typename T>
__device__ inline T once(const T* p) {
    return STREAMED & 1 ? __ldcs(p) : __ldg(p);
}

__device__ inline bool is_even(u32 v) { return (v & 1) == 0; }

// |min(A u - g, u - phi)| of a point whose value without the obstacle would be `free`.
__device__ inline double complementarity(const Grid& g, double u, double free, double floor) {
    const double residual = __dmul_rn(g.centre, __dadd_rn(u, -free)), gap = u - floor;
    return fabs(residual < gap ? residual : gap);
}

// What is read for AHEAD slices: the values a slice ahead of them, and of each the source, the lines beside and
// the number beside the warp.
struct Loads {
    double2 front[AHEAD][LINES], source[AHEAD][LINES], south[AHEAD], north[AHEAD];
#if FLOOR
    double2 floor[AHEAD][LINES];
#endif
    double edge[AHEAD][LINES];
};

// A thread's points.
struct Place {
    // the first number of line 0 in slice 0
    u64 at;
    // lines, and the last slice of the tile
    u32 lines, last;
    // where the number beside the warp is from there, in the outermost lanes
    int edge;
};

// Asks for what slice z needs, into place k.
__device__ inline void load(Loads& l, int k, u32 z, const Grid& g, const Place& p, const double* beside) {
    const u32 lane = threadIdx.x;
    // beyond the tile what is there already
    const u64 at = p.at + min(z, p.last) * g.slice, ahead = at + g.slice;
#pragma unroll
    for (int r = 0; r < LINES; ++r) {
        const u32 line = min(r, p.lines - 1) * g.pitch;
        l.front[k][r] = fixed((const double2*)(g.old + ahead + line));
        l.source[k][r] = once((const double2*)(g.source + at + line));
#if FLOOR
        l.floor[k][r] = __ldg((const double2*)(g.floor + at + line));
#endif
        if (lane == 0 || lane == WARP - 1) l.edge[k][r] = fixed(g.old + at + line + p.edge);
    }
    const double* south = beside + at - g.pitch;
    const double* north = beside + at + p.lines * g.pitch;
    l.south[k] = METHOD == 1 ? *(const double2*)south : fixed((const double2*)south);
    l.north[k] = METHOD == 1 ? *(const double2*)north : fixed((const double2*)north);
}

// `tiles` has `segments` for each thread block of a column, one behind the other in z. `first` is the parity of
// y that line 1 has in the grid, or the parity of x + y + z of the first point.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    sweep(const Grid g, const Tile* __restrict__ tiles, u32 segments, u32 colour, u32 first, const Ending e) {
    const u32 done = e.control->done;
    const u32 lane = threadIdx.x, column = threadIdx.y % WARPS_X, row = threadIdx.y / WARPS_X;
    const u32 x = 2 * ((blockIdx.x * WARPS_X + column) * WARP + lane);
    // the last pair of a line is not beyond its zeros
    const u32 own = min(x, g.pitch - 2);
    for (u32 s = 0; s < segments; ++s) {
        const Tile tile = tiles[blockIdx.y * segments + s];
        if (done) return;
        double squared = 0, worst = 0;
#if METHOD == 1
        // lines of the colour alone
        const u32 y = tile.y0 + ((tile.y0 - 1 + first + colour) & 1) + 2 * row;
        const double* beside = colour ? g.next : g.old;
#else
        const u32 y = tile.y0 + LINES * row;
        const double* beside = g.old;
#endif
        if (y < tile.y1) {
            Place place;
            place.at = (u64)y * g.pitch + own;
            place.lines = min((u32)LINES, tile.y1 - y);
            place.last = tile.z1 - 1;
            place.edge = lane == 0 ? -1 : own + 2 < g.pitch ? 2 : 1;
            double2 rear[LINES], centre[LINES];
#pragma unroll
            for (int r = 0; r < LINES; ++r) {
                const u64 at = place.at + tile.z0 * g.slice + min(r, place.lines - 1) * g.pitch;
                rear[r] = *(const double2*)((METHOD == 1 && s ? g.next : g.old) + at - g.slice);
                centre[r] = fixed((const double2*)(g.old + at));
            }
            Loads now;
#if PIPED
#pragma unroll
            for (int k = 0; k < AHEAD; ++k) load(now, k, tile.z0 + k, g, place, beside);
#endif
#pragma unroll 1
            for (u32 z0 = tile.z0; z0 < tile.z1; z0 += AHEAD) {
#if !PIPED
#pragma unroll
                for (int k = 0; k < AHEAD; ++k) load(now, k, z0 + k, g, place, beside);
#endif
#pragma unroll
                for (int k = 0; k < AHEAD; ++k) {
                    const u32 z = z0 + k;
                    if (z >= tile.z1) break;
                    double2 last = centre[0];
#pragma unroll
                    for (int r = 0; r < LINES; ++r) {
                        const double2 here = centre[r];
                        const u64 at = place.at + z * g.slice + r * g.pitch;
                        const double2 south = r > 0 ? last : now.south[k];
                        // of the last line that there is, what is beside the tile
                        double2 north = now.north[k];
                        if (r + 1 < LINES && r + 1 < place.lines) north = centre[r + 1 < LINES ? r + 1 : 0];
                        last = here;
                        double west = __shfl_up_sync(FULL, here.y, 1);
                        double east = __shfl_down_sync(FULL, here.x, 1);
                        if (lane == 0) west = now.edge[k][r];
                        if (lane == WARP - 1) east = now.edge[k][r];
#if FLOOR
                        const double2 floor = now.floor[k][r];
#else
                        const double2 floor = make_double2(g.flat, g.flat);
#endif
                        const double2 front = now.front[k][r], source = now.source[k][r];
                        const double2 free = make_double2(
                            relaxed(g, source.x, west, here.y, south.x, north.x, rear[r].x, front.x),
                            relaxed(g, source.y, here.x, east, south.y, north.y, rear[r].y, front.y));
                        double2 v = make_double2(larger(free.x, floor.x), larger(free.y, floor.y));
                        // of a colour one of a pair, the first of which is at even x
                        const bool firsts = METHOD != 2 || is_even(first + y + r + z + colour);
                        const bool seconds = METHOD != 2 || !firsts;
                        if (!firsts) v.x = here.x;
                        if (!seconds) v.y = here.y;
                        if (r < place.lines) {
                            if (x < g.nx) {
                                const double step = v.x - here.x;
                                squared += step * step;
#if LOOK
                                if (firsts) worst = larger(worst, complementarity(g, here.x, free.x, floor.x));
#endif
                            }
                            if (x + 1 < g.nx) {
                                const double step = v.y - here.y;
                                squared += step * step;
#if LOOK
                                if (seconds) worst = larger(worst, complementarity(g, here.y, free.y, floor.y));
#endif
                            } else {
                                // the zeros behind a line stay
                                v.y = 0;
                            }
                            if (x < g.nx) {
                                double2* to = (double2*)(g.next + at);
                                if (STREAMED & 2) __stcs(to, v);
                                else *to = v;
                                // the outermost slices also go to where the neighbours look for them
                                const u64 there = (u64)(y + r) * g.pitch + own;
                                if (z == 1 && g.before) *(double2*)(g.before + there) = v;
                                if (z == g.nz && g.behind) *(double2*)(g.behind + there) = v;
                            }
                        }
                        rear[r] = METHOD == 1 || METHOD == 3 ? v : here;
                        centre[r] = front;
                    }
#if PIPED
                    if (z + AHEAD < tile.z1) load(now, k, z + AHEAD, g, place, beside);
#endif
                }
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
}

// Adds up what a sweep left in its slots, a thread block for each part of the norm, in a fixed order; the last
// of them ends the time step where the change is small enough. A kernel of its own: a sweep whose thread
// blocks counted themselves would hold each of them until its count has come back.
constexpr u32 CONCLUDING = 1024;
extern "C" __global__ void __launch_bounds__(CONCLUDING) conclude(const Ending e) {
    // loads of a thread under way at a time
    constexpr u32 BATCH = 8;
    if (e.control->done) return;
    __shared__ bool last;
    const u32 part = blockIdx.x, end = e.first[part + 1];
    double sum = 0, top = 0;
    for (u32 s = e.first[part] + threadIdx.x; s < end; s += BATCH * CONCLUDING) {
        double sums[BATCH], tops[BATCH];
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k) {
            const u32 slot = s + k * CONCLUDING;
            sums[k] = slot < end ? e.squared[slot] : 0;
            tops[k] = slot < end ? e.worst[slot] : 0;
        }
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k) sum += sums[k], top = larger(top, tops[k]);
    }
    over_block<CONCLUDING>(sum, top);
    if (threadIdx.x == 0) {
        e.part[part] = sum;
        e.part[e.parts + part] = top;
        __threadfence();
        last = atomicAdd(&e.control->arrived, 1) == e.parts - 1;
        __threadfence();
    }
    __syncthreads();
    if (!last || threadIdx.x >= WARP) return;
    double norm = 0, worst = 0;
    for (u32 p = threadIdx.x; p < e.parts; p += WARP) {
        norm = larger(norm, __ldcg(e.part + p));
        worst = larger(worst, __ldcg(e.part + e.parts + p));
    }
    double none = 0;
    over_warp(none, norm);
    over_warp(none, worst);
    if (threadIdx.x == 0) {
        norm = sqrt(norm);
        e.control->norm = norm;
        e.control->worst = worst;
        e.control->sweeps = e.sweep;
        e.control->arrived = 0;
        e.control->done = (e.by_worst ? worst : norm) < e.bound;
    }
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
