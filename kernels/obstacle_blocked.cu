// Several Jacobi sweeps in one pass through memory: SWEEPS levels of new values, each a slice behind the one it
// is made of. A thread block has a tile of TX x TY points, of which SWEEPS at each side are its neighbours'; it
// marches through z and keeps, for each level, a slice in shared memory for the neighbours in x and y and the
// slices around in registers; the source of the slices under way is in shared memory too. Iterates are those of single sweeps, bit for bit.
//
// Bytes a point and pass: reads u and the source, writes u, 24, but for what the tiles share.
#include "obstacle.cuh"

#ifndef SWEEPS
#define SWEEPS 4
#endif
#ifndef TX
#define TX 48
#endif
#ifndef TY
#define TY 40
#endif
// points of a thread, one above the other in y
#ifndef POINTS
#define POINTS 5
#endif
#ifndef FLOOR
#define FLOOR 0
#endif

constexpr u32 THREADS = TX * TY / POINTS;
static_assert(TY % POINTS == 0 && THREADS % WARP == 0, "whole warps");
// numbers of a slice of a level; a line of zeros around makes neighbours outside of the tile harmless
constexpr u32 LINE = TX + 2;
constexpr u32 LEVEL = LINE * (TY + 2);
// what is right after all levels
constexpr u32 INNER_X = TX - 2 * SWEEPS;
constexpr u32 INNER_Y = TY - 2 * SWEEPS;

// Read by the host: threads, points of a tile in x and y that are written, bytes of shared memory.
extern "C" __constant__ u32 blocked_shape[4] = {THREADS, INNER_X, INNER_Y,
                                                 (2 * SWEEPS * LEVEL + SWEEPS * TX * TY) * 8};

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    blocked(const Grid g, const Tile* __restrict__ tiles, const Ending e) {
    extern __shared__ double level[];
    if (e.control->done) return;
    const u32 thread = threadIdx.x;
    for (u32 i = thread; i < 2 * SWEEPS * LEVEL; i += THREADS) level[i] = 0;
    const Tile tile = tiles[blockIdx.y];
    const int column = thread % TX, row = thread / TX * POINTS;
    // where this thread's points are in the grid, from 0
    const int x = (int)(blockIdx.x * INNER_X) + column - SWEEPS;
    const int y = (int)tile.y0 - 1 + row - SWEEPS;
    const bool in_x = 0 <= x && x < (int)g.nx;
    const bool write_x = in_x && SWEEPS <= column && column < TX - SWEEPS;
    bool inside[POINTS], write[POINTS];
    u64 place[POINTS];
#pragma unroll
    for (int p = 0; p < POINTS; ++p) {
        inside[p] = in_x && 0 <= y + p && y + p < (int)g.ny;
        write[p] = write_x && y + p >= (int)tile.y0 - 1 && y + p < (int)tile.y1 - 1;
        place[p] = inside[p] ? (u64)(y + p + 1) * g.pitch + x : 0;
    }
    // values of the level at the slice before and at the slice of the neighbours in shared memory
    double rear[SWEEPS][POINTS], centre[SWEEPS][POINTS];
#pragma unroll
    for (int l = 0; l < SWEEPS; ++l)
#pragma unroll
        for (int p = 0; p < POINTS; ++p) rear[l][p] = centre[l][p] = 0;
    double squared = 0;
    __syncthreads();
    // slices are counted from 1; level 0 at slice z meets level l at slice z - l
    const int from = (int)tile.z0 - SWEEPS, to = (int)tile.z1 - 1 + SWEEPS;
    double ahead[POINTS], source_ahead[POINTS];
#pragma unroll
    for (int p = 0; p < POINTS; ++p) {
        const bool there = inside[p] && from >= 0 && from <= (int)g.nz + 1;
        ahead[p] = there ? __ldg(g.old + from * g.slice + place[p]) : 0;
        source_ahead[p] = there ? __ldg(g.source + from * g.slice + place[p]) : 0;
    }
    const u32 own = (row + 1) * LINE + column + 1;
    // the source of slice z is in ring z % SWEEPS, where no thread but its own looks
    double* const ring = level + 2 * SWEEPS * LEVEL + thread;
    int turn = 0;
    for (int z = from; z <= to; ++z) {
        double* const fresh = level + (z & 1 ? SWEEPS * LEVEL : 0);
        const double* const known = level + (z & 1 ? 0 : SWEEPS * LEVEL);
        double front[POINTS], source_here[POINTS];
#pragma unroll
        for (int p = 0; p < POINTS; ++p) {
            front[p] = ahead[p];
            fresh[own + p * LINE] = front[p];
            source_here[p] = source_ahead[p];
        }
        // the next slice is on its way meanwhile
        const int next = z + 1;
#pragma unroll
        for (int p = 0; p < POINTS; ++p) {
            const bool there = inside[p] && next >= 0 && next <= (int)g.nz + 1 && next <= to;
            ahead[p] = there ? __ldg(g.old + next * g.slice + place[p]) : 0;
            source_ahead[p] = there ? __ldg(g.source + next * g.slice + place[p]) : 0;
        }
#pragma unroll
        for (int l = 1; l <= SWEEPS; ++l) {
            const int slice = z - l;
            // beyond the grid everything stays 0
            const bool in_z = 1 <= slice && slice <= (int)g.nz;
            const double* const line = known + (l - 1) * LEVEL + own;
            const double* const source = ring + (turn - l + (turn < l ? SWEEPS : 0)) * (TX * TY);
            double made[POINTS];
#pragma unroll
            for (int p = 0; p < POINTS; ++p) {
                const double south = p > 0 ? centre[l - 1][p > 0 ? p - 1 : 0] : line[-(int)LINE];
                const double north =
                    p + 1 < POINTS ? centre[l - 1][p + 1 < POINTS ? p + 1 : 0] : line[p * LINE + LINE];
                const double free = relaxed(g, source[p * THREADS], line[p * LINE - 1], line[p * LINE + 1], south, north,
                                            rear[l - 1][p], front[p]);
#if FLOOR
                const double least = inside[p] && in_z ? __ldg(g.floor + slice * g.slice + place[p]) : 0;
#else
                const double least = g.flat;
#endif
                made[p] = inside[p] && in_z ? larger(free, least) : 0;
            }
            if (l == SWEEPS) {
                if (slice >= (int)tile.z0 && slice < (int)tile.z1) {
#pragma unroll
                    for (int p = 0; p < POINTS; ++p)
                        if (write[p]) {
                            const double step = made[p] - centre[l - 1][p];
                            squared += step * step;
                            g.next[slice * g.slice + place[p]] = made[p];
                        }
                }
            } else {
#pragma unroll
                for (int p = 0; p < POINTS; ++p) fresh[l * LEVEL + own + p * LINE] = made[p];
            }
#pragma unroll
            for (int p = 0; p < POINTS; ++p) {
                rear[l - 1][p] = centre[l - 1][p];
                centre[l - 1][p] = front[p];
                front[p] = made[p];
            }
        }
        // in place of the source of slice z - SWEEPS
#pragma unroll
        for (int p = 0; p < POINTS; ++p) ring[turn * (TX * TY) + p * THREADS] = source_here[p];
        turn = turn + 1 == SWEEPS ? 0 : turn + 1;
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
        finish<THREADS>(e, gridDim.x * gridDim.y);
    }
}
