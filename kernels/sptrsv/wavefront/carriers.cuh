// The warps of a wavefront that bring and take away: porters for memory, loaders for the tiles around.
#pragma once
#include "absent.cuh"
#include "sptrsv/wavefront/tile.cuh"
#include "sptrsv/wavefront/transport.cuh"

// A warp that brings the right-hand sides of a patch, turned from natural order to that of the steps,
// and takes its solutions back.
template <bool BACKWARD>
struct Porter {
    const Box& box;
    const double* ring;
    const Desk desk;
    const double* from;
    double* to;
    int lane;
    // numbers of a record
    int record;
    Turnstile<TURNS> turn;
    // the TURN elements of a turn that the lane carries: first cell of the column, cell at u = 0,
    // column in the ring
    int lines[TURN], cells[TURN], places[TURN];

    // Place of element q of the turn at u in the vectors, or -1.
    __device__ long long place(int q, int u) const {
        const int x = cells[q] + u;
        if (lines[q] < 0 || (u32)x >= (u32)box.nx) return -1;
        return (long long)natural<BACKWARD>(box, lines[q] + x) * BS + (q * 32 + lane) % BS;
    }

    // Brings the turn at u, `n` turns after the one that is next to be taken.
    __device__ void bring(int n, int u, const Stored* records) const {
        const int slot = (turn.slot + n) % TURNS;
        if constexpr (CARRIED)
            if (lane == 0)
                bulk_copy(desk.factors + slot * TURN * record, records, TURN * record, desk.brought + slot);
        double* const rows = desk.rhs + slot * TURN * RHS_ROW;
#pragma unroll
        for (int q = 0; q < TURN; ++q) {
            const int e = q * 32 + lane, step = e % (TURN * BS) / BS, column = e / (TURN * BS);
            if (e >= TURN * ACTIVE) continue;
            const long long i = place(q, u);
            copy_async(rows + step * RHS_ROW + column * BS + e % BS, from + max(i, 0ll), i >= 0);
        }
        arrive_with_copies(desk.brought + slot);
    }

    __device__ void take(int first, int u) const {
#pragma unroll
        for (int q = 0; q < TURN; ++q) {
            const int e = q * 32 + lane, step = e % (TURN * BS) / BS;
            const long long i = e < TURN * ACTIVE ? place(q, u) : -1;
            if (i >= 0) to[i] = ring[((first + u + step) & (RING - 1)) * ROW + places[q]];
        }
    }

    __device__ void march(int k, int warp) {
        const int4 tile = box.tile[k], mine = box.warp[k * WARPS + warp];
#pragma unroll
        for (int q = 0; q < TURN; ++q) {
            const int e = q * 32 + lane, column = min(e / (TURN * BS), PATCH - 1);
            const int ty = column_y(warp, column), tz = column_z(warp, column);
            lines[q] = line(box, tile.x * TY + ty, tile.y * TZ + tz);
            cells[q] = tile.z + e % (TURN * BS) / BS - skew(ty, tz);
            places[q] = column_in_ring(ty, tz) + e % BS;
        }
        const int end = mine.x + mine.y;
        const Stored* const records = box.val + (size_t)(u32)mine.z * UNIT;
        auto records_of = [&](int u) { return records + (size_t)(u - mine.x) * record; };
        for (int n = 0; n < TURNS; ++n)
            if (const int u = mine.x + n * TURN; u < end) bring(n, u, records_of(u));
        // the whole block marks what the next solve will wait for
        for (int e = warp * 32 + lane; e < tile.w * (BOUNDARY * BS); e += WARPS * 32)
            box.other[boundary_row(box, k, tile.z) + e] = __longlong_as_double(ABSENT);
        for (int u = mine.x; u < end; u += TURN) {
            wait(desk.solved + turn.slot, turn.round);
            take(tile.z, u);
            __syncwarp();
            if (const int later = u + TURNS * TURN; later < end) bring(0, later, records_of(later));
            turn.pass();
        }
    }
};

// Steps for which a loader asks at once. It asks for the next ones before it hands on these: a wait for
// the oldest of many loads under way would be one for the youngest, too.
constexpr int BATCH = 8;
static_assert(BATCH == ALIGNED, "marches are whole batches");

// A warp that awaits values of columns of neighbouring tiles.
__device__ void load_tile(const Box& box, double* ring, int k, int lane) {
    const int4 tile = box.tile[k];
    const int h = lane / BS;
    // columns before the tile in z, corner included; then those before it in y'
    constexpr int ABOVE = (TY + CORNER) * HZ, DEPTH = HY > 0 ? HY : 1;
    const int ty = h < ABOVE ? h % (TY + CORNER) - CORNER : (h - ABOVE) % DEPTH - HY;
    const int tz = h < ABOVE ? h / (TY + CORNER) - HZ : (h - ABOVE) / DEPTH;
    const bool mine = h < HALO;
    const int back_y = ty < 0, back_z = tz < 0;
    const double* from = nullptr;
    if (mine && tile.x >= back_y && tile.y >= back_z &&
        line(box, tile.x * TY + ty, tile.y * TZ + tz) >= 0) {
        const u32 place = box.place[(tile.y - back_z) * box.across + tile.x - back_y];
        const int column = boundary_place(ty + back_y * TY, tz + back_z * TZ);
        const int step = tile.z + back_y * ACROSS_Y + back_z * ACROSS_Z;
        from = box.exchange + boundary_row(box, place, step) + column * BS + lane % BS;
    }
    const int start = from ? skew(ty, tz) - tile.z : 1 << 30;
    auto needed = [&](int u) { return (u32)(u - start) < (u32)box.nx; };
    const u32 own = shared_address(ring + (mine ? column_in_ring(ty, tz) + lane % BS : 0));
    auto ask = [&](double (&v)[BATCH], int u) {
#pragma unroll
        for (int n = 0; n < BATCH; ++n)
            v[n] = needed(u + n) ? load_relaxed(from + (u + n) * (BOUNDARY * BS)) : 0.0;
    };
    auto ask_again = [&](double (&v)[BATCH], int u) {
#pragma unroll
        for (int n = 0; n < BATCH; ++n) load_if_absent(v[n], from + (u + n) * (BOUNDARY * BS));
    };
    double now[BATCH], next[BATCH];
    ask(now, 0);
    for (int u = 0; u < tile.w; u += BATCH) {
        ask(next, u + BATCH);
        const u32 rows = own + ((tile.z + u) & (RING - 1)) * (ROW * 8);
#pragma unroll
        for (int n = 0; n < BATCH; ++n) {
            while (__any_sync(FULL, absent(now[n]))) {
                ask_again(now, u);
                ask_again(next, u + BATCH);
            }
            if (mine)
                asm volatile("st.shared.f64 [%0], %1;" : : "r"(rows + n * (ROW * 8)), "d"(now[n]) : "memory");
            end_step<STEPPING>();
        }
#pragma unroll
        for (int n = 0; n < BATCH; ++n) now[n] = next[n];
    }
}
