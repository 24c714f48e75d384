// Several sweeps in one pass through memory: levels of new values, one for each colour of each sweep, each a slice
// behind the one it is made of. A thread block has a tile of 64 x TY points, of which a rim at each side are its neighbours'; it
// marches through z. A warp has ROWS lines of the tile, a thread two points of each: values of the slices
// around are in its registers, those in x come from the lanes beside, and through shared memory go only the
// outermost lines of a warp and the source of the slices under way. Iterates are those of single sweeps, bit
// for bit.
//
// Bytes a point and pass: reads u and the source, writes u, 24, but for what the tiles share.
#include "obstacle/grid.cuh"

#ifndef SWEEPS
#define SWEEPS 4
#endif
// 1: all points from old values; 2: those of even x + y + z, then the others
#ifndef COLOURS
#define COLOURS 1
#endif
#ifndef FLOOR
#define FLOOR 0
#endif
// lines of a warp, warps of a thread block: what the registers hold
#ifndef ROWS
#define ROWS 3
#endif
#ifndef WARPS
#define WARPS 12
#endif

constexpr int LEVELS = SWEEPS * COLOURS;
constexpr u32 THREADS = WARPS * WARP;
constexpr int TX = 2 * WARP, TY = WARPS * ROWS;
// what is not right after all levels; in x even, for pairs
constexpr int RIM_X = (LEVELS + 1) / 2 * 2, RIM_Y = LEVELS;
constexpr int INNER_X = TX - 2 * RIM_X, INNER_Y = TY - 2 * RIM_Y;
// pairs of the outermost lines of all warps at a level, and of the source of a slice
constexpr u32 LEVEL = WARPS * 2 * WARP, SLICE = ROWS * THREADS;

// Read by the host: threads, points of a tile in x and y that are written, bytes of shared memory.
extern "C" __constant__ u32 blocked_shape[4] = {THREADS, INNER_X, INNER_Y,
                                                 (2 * LEVELS * LEVEL + LEVELS * SLICE) * 16};

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    blocked(const Grid g, const Tile* __restrict__ tiles, const Ending e) {
    extern __shared__ double2 space[];
    if (e.control->done) return;
    const u32 thread = threadIdx.x, lane = thread % WARP, warp = thread / WARP;
    const Tile tile = tiles[blockIdx.y];
    // where this thread's points are in the grid, from 0; x is even
    const int x = (int)blockIdx.x * INNER_X + 2 * (int)lane - RIM_X;
    const int y = (int)tile.y0 - 1 + (int)warp * ROWS - RIM_Y;
    const bool left = 0 <= x && x < (int)g.nx, right = left && x + 1 < (int)g.nx;
    const bool mine = (u32)(2 * lane - RIM_X) < (u32)INNER_X;
    bool inside[ROWS], write[ROWS];
#pragma unroll
    for (int p = 0; p < ROWS; ++p) {
        inside[p] = left && 0 <= y + p && y + p < (int)g.ny;
        write[p] = mine && inside[p] && y + p >= (int)tile.y0 - 1 && y + p < (int)tile.y1 - 1;
    }
    // line p is this many numbers behind line 0, which may be outside of the grid
    const long long place = (long long)(y + 1) * g.pitch + x;
    // values of a level at the slice before, and at the slice whose neighbours are wanted
    double2 rear[LEVELS][ROWS], centre[LEVELS][ROWS];
#pragma unroll
    for (int l = 0; l < LEVELS; ++l)
#pragma unroll
        for (int p = 0; p < ROWS; ++p) rear[l][p] = centre[l][p] = make_double2(0, 0);
    for (u32 i = thread; i < 2 * LEVELS * LEVEL; i += THREADS) space[i] = make_double2(0, 0);
    // the source of slice z is in ring z % LEVELS, where no thread but its own looks
    double2* const ring = space + 2 * LEVELS * LEVEL + thread;
    // outermost lines of this warp and of those beside; what is beyond the tile does not matter
    const u32 low = warp * 2 * WARP + lane, high = low + WARP;
    const u32 below = (warp + WARPS - 1) % WARPS * 2 * WARP + WARP + lane, above = (warp + 1) % WARPS * 2 * WARP + lane;
    double squared = 0;
    int turn = 0;
    __syncthreads();
    // slices are counted from 1; level 0 at slice z meets level l at slice z - l
    const int from = (int)tile.z0 - LEVELS, to = (int)tile.z1 - 1 + LEVELS;
    double2 ahead[ROWS], source_ahead[ROWS];
    const auto fetch = [&](int z) {
        const bool in_z = 0 <= z && z <= (int)g.nz + 1 && z <= to;
        const long long at = (long long)z * (long long)g.slice + place;
#pragma unroll
        for (int p = 0; p < ROWS; ++p) {
            const bool there = inside[p] && in_z;
            ahead[p] = there ? __ldg((const double2*)(g.old + at + p * (int)g.pitch)) : make_double2(0, 0);
            source_ahead[p] = there ? __ldg((const double2*)(g.source + at + p * (int)g.pitch)) : make_double2(0, 0);
        }
    };
    fetch(from);
    for (int z = from; z <= to; ++z) {
        double2* const fresh = space + (z & 1 ? LEVELS * LEVEL : 0);
        const double2* const known = space + (z & 1 ? 0 : LEVELS * LEVEL);
        double2 front[ROWS], source_here[ROWS];
#pragma unroll
        for (int p = 0; p < ROWS; ++p) {
            front[p] = ahead[p];
            source_here[p] = source_ahead[p];
        }
        fresh[low] = front[0];
        fresh[high] = front[ROWS - 1];
        // the next slice is on its way meanwhile
        fetch(z + 1);
#pragma unroll
        for (int l = 1; l <= LEVELS; ++l) {
            const int slice = z - l;
            // beyond the grid everything stays 0
            const bool in_z = 1 <= slice && slice <= (int)g.nz;
            const double2 south_of_first = known[(l - 1) * LEVEL + below];
            const double2 north_of_last = known[(l - 1) * LEVEL + above];
            const double2* const source = ring + (turn - l + (turn < l ? LEVELS : 0)) * (int)SLICE;
            double2 made[ROWS];
#pragma unroll
            for (int p = 0; p < ROWS; ++p) {
                const double2 own = centre[l - 1][p];
                const double2 south = p > 0 ? centre[l - 1][p > 0 ? p - 1 : 0] : south_of_first;
                const double2 north = p + 1 < ROWS ? centre[l - 1][p + 1 < ROWS ? p + 1 : 0] : north_of_last;
                const double2 rhs = source[p * THREADS];
                // at the ends of a warp the rim
                const double west = __shfl_up_sync(FULL, own.y, 1), east = __shfl_down_sync(FULL, own.x, 1);
                const double2 free =
                    make_double2(relaxed(g, rhs.x, west, own.y, south.x, north.x, rear[l - 1][p].x, front[p].x),
                                 relaxed(g, rhs.y, own.x, east, south.y, north.y, rear[l - 1][p].y, front[p].y));
                const bool here = inside[p] && in_z;
#if FLOOR
                const double2 least =
                    here ? __ldg((const double2*)(g.floor + slice * (long long)g.slice + place + p * (int)g.pitch))
                         : make_double2(0, 0);
#else
                const double2 least = make_double2(g.flat, g.flat);
#endif
                made[p].x = here ? larger(free.x, least.x) : 0;
                made[p].y = here && right ? larger(free.y, least.y) : 0;
#if COLOURS == 2
                // of a colour one of a pair, the first of which is at even x
                if ((y + p + slice + l) & 1) made[p].x = own.x;
                else made[p].y = own.y;
#endif
            }
            const bool owned = slice >= (int)tile.z0 && slice < (int)tile.z1;
            // the last sweep counts
            if (l > LEVELS - COLOURS && owned)
#pragma unroll
                for (int p = 0; p < ROWS; ++p)
                    if (write[p]) {
                        const double2 old = centre[l - 1][p];
                        const double step = made[p].x - old.x, other = made[p].y - old.y;
                        squared += step * step;
                        squared += other * other;
                    }
            if (l == LEVELS) {
                double* const line = g.next + slice * (long long)g.slice + place;
#pragma unroll
                for (int p = 0; p < ROWS; ++p)
                    // a zero behind the end of a line stays one
                    if (write[p] && owned) *(double2*)(line + p * (int)g.pitch) = made[p];
            } else {
                fresh[l * LEVEL + low] = made[0];
                fresh[l * LEVEL + high] = made[ROWS - 1];
            }
#pragma unroll
            for (int p = 0; p < ROWS; ++p) {
                rear[l - 1][p] = centre[l - 1][p];
                centre[l - 1][p] = front[p];
                front[p] = made[p];
            }
        }
        // in place of the source of slice z - LEVELS
#pragma unroll
        for (int p = 0; p < ROWS; ++p) ring[turn * (int)SLICE + p * THREADS] = source_here[p];
        turn = turn + 1 == LEVELS ? 0 : turn + 1;
        __syncthreads();
    }
    if (e.sweep) {
        double none = 0;
        over_block<THREADS>(squared, none);
        if (thread == 0) {
            const u32 slot = tile.slot * gridDim.x + blockIdx.x;
            e.squared[slot] = squared;
            e.worst[slot] = 0;
        }
    }
}
