// Factorisation of entries (blocks of one) on a pattern that is one stencil on a box, as a wavefront.
//
// Row i takes, for its entries p below the diagonal, those waited for longest first: A_ij -= A_ip U'_pj for j > p in
// the row. Then D_i = 1 / A_ii, U'_ij = D_i A_ij, L_ip = A_ip D_p. It depends on the rows on which the solve with L
// depends, so it marches in the same tiles (sptrsv/wavefront.cu), a lane with a column; what a lane hands on
// is D_i and the row of U' instead of one unknown. Which entry a product goes to is the same for all rows and known
// when the kernel is compiled: outside the box all is zero.
//
// A is read by rows as it is stored: where a row begins is known, and which entries it has follows from the place of
// its cell. The factors leave in the order of the march. The neighbouring tiles read U' and D where they are left:
// memory is marked ABSENT before.
#include "common.cuh"

// Bulk copies came with compute capability 9.0.
#if BS == 1 && __CUDA_ARCH__ >= 900

// The host gives these; here: 7-point stencil.
#ifndef OFFSETS
#define OFFSETS {0, 0, -1}, {0, -1, 0}, {-1, 0, 0}
#define SHEAR 0
#define ALPHA 1
#define BETA 1
#define PATCH_Y 8
#define PATCH_Z 4
#define WARPS_Y 2
#define WARPS_Z 2
#endif

#include "ilu/stencil/loader.cuh"

static_assert(PATCH == 32, "a warp has a column for each lane");

// Records: a unit of 32 numbers per entry, one for each lane; one for each step of a warp.
constexpr int UNIT = 32, RECORD_L = N * UNIT, RECORD_U = HANDED * UNIT;

constexpr int OF_LANE = loads_of_lane(WANTED), LOADERS = (WANTED + 32 * OF_LANE - 1) / (32 * OF_LANE);
// Those that meet at the end of a step, and porters, which bring A, one for each warp that computes.
constexpr int STEPPING = (WARPS + LOADERS) * 32, THREADS = STEPPING + WARPS * 32;

// The ring: rows of steps, in them what is handed on, in it columns.
constexpr int MEMORY = 222 * 1024;
__device__ constexpr int ring_numbers(int stride) { return RING * HANDED * LINES * stride; }
// Rows of A come in turns of several steps, those of a column together, an odd distance apart.
constexpr int TURNS = 2;
__device__ constexpr int column_of_a(int turn) { return turn * OF_A | 1; }
__device__ constexpr int shared_bytes(int stride, int turn) {
    return 8 * (ring_numbers(stride) + WARPS * TURNS * (32 * column_of_a(turn) + 2));
}
constexpr int TURN = shared_bytes(NARROW, 8) <= MEMORY ? 8 : shared_bytes(NARROW, 4) <= MEMORY ? 4 : 2;
constexpr int SY = shared_bytes(apart(), TURN) <= MEMORY ? apart() : NARROW;
constexpr int COLUMNS = LINES * SY, ROW = HANDED * COLUMNS, COLUMN_A = column_of_a(TURN), BROUGHT = 32 * COLUMN_A;
constexpr int SHARED = shared_bytes(SY, TURN);
__device__ constexpr int column_in_ring(int ty, int tz) { return (tz + HZ) * SY + ty + HY; }

// What the host has to know: threads, shared bytes, numbers of a record of L and U', steps of a turn, alignment
// of marches.
extern "C" __constant__ int stencil_ilu_layout[6] = {THREADS, SHARED, RECORD_L, RECORD_U, TURN, ALIGNED};

// Records of L, and of D and U'.
struct Factors {
    double* lower;
    double* upper;
    // first row without a pivot, in the upper half
    u64* error;
};

static_assert(OF_A <= 32, "A has more entries in a row than a word has bits");
// Entries of A, by their order, at dx columns' distance along x.
struct GivenAt {
    u32 bits[2 * reach() + 1];
    __device__ constexpr GivenAt() : bits() {
        for (int g = 0; g < OF_A; ++g) bits[step(given(g), 0) + reach()] |= 1u << g;
    }
};
__device__ constexpr u32 given_at(int dx) {
    constexpr GivenAt at{};
    return at.bits[dx + reach()];
}

// A warp that computes a patch of columns. What does not wait for the step before is done one step ahead, so
// that two rows are in work; a step has no branches but for what leaves the registers.
struct Worker {
    const Tiles& box;
    const double shift;
    const Factors& f;
    double* const ring;
    const Desk desk;
    const int lane;
    Turnstile<TURNS> turn;
    // own column in the ring; first cell of it, or -1; which entries of A its rows have, but for the ends of the column
    double* own;
    int cells;
    u32 coupled;
    // next entry of A among the rows on the desk
    u32 next_entry;
    // the row in work and its entries of L, the row begun, and what the cell before in the own column has handed on
    double w[ENTRIES], l[N + 1], begun[ENTRIES], begun_l[N + 1], before[HANDED];

    __device__ const double* row(int s) const { return own + (s & (RING - 1)) * ROW; }

    // Number n of what the cell at offset p from those of step s has handed on.
    __device__ double handed(int p, int n, const double* at) const {
        return at[n * COLUMNS + offset(p, 2) * SY + offset(p, 1)];
    }

    // The part of offset p in the row w, and its entry of L.
    template <typename Get>
    __device__ static void take(int p, double (&w)[ENTRIES], double (&l)[N + 1], Get get) {
#pragma unroll
        for (int q = 0; q < N; ++q)
            if (target(p, q) >= 0) w[target(p, q) < 0 ? 0 : target(p, q)] = fma(-w[p], get(1 + q), w[target(p, q) < 0 ? 0 : target(p, q)]);
        l[p] = w[p] * get(0);
    }

    // Begins the row of cell x at step s: entries of A, and what is known at the step before.
    __device__ void begin(int s, int x, bool there) {
#pragma unroll
        for (int e = 0; e < ENTRIES; ++e) begun[e] = 0.0;
        // which entries of A the row has
        u32 has = 0;
#pragma unroll
        for (int dx = -reach(); dx <= reach(); ++dx)
            if (given_at(dx)) has |= (u32)(x + dx) < (u32)box.nx ? given_at(dx) : 0;
        has = there & ((u32)x < (u32)box.nx) ? has & coupled : 0;
#pragma unroll
        for (int g = 0; g < OF_A; ++g) {
            // what follows the row's last entry may be on its way for a later turn
            if (has & 1u << g) begun[given(g)] = desk.rows[next_entry];
            next_entry += has >> g & 1;
        }
        begun[N] += shift;
#pragma unroll
        for (int p = 0; p < EARLY; ++p) {
            const double* const at = row(s - delay(p));
            take(p, begun, begun_l, [&](int n) { return handed(p, n, at); });
        }
    }

    // Ends the row in work at step s.
    __device__ void end(int s) {
        const double* const at = row(s - 1);
#pragma unroll
        for (int p = EARLY; p < N; ++p)
            take(p, w, l, [&](int n) { return own_column(p) ? before[n] : handed(p, n, at); });
        const double d = inverse_pivot(w[N]);
        before[0] = d;
#pragma unroll
        for (int q = 0; q < N; ++q) before[1 + q] = d * w[N + 1 + q];
    }

    __device__ void hand_on(int s) const {
        double* const to = own + (s & (RING - 1)) * ROW;
#pragma unroll
        for (int n = 0; n < HANDED; ++n) to[n * COLUMNS] = before[n];
    }

    // The row of cell x to its record. No arithmetic yields ABSENT, and the matrix is finite.
    __device__ void leave(double* to, double* u, int x) const {
#pragma unroll
        for (int h = 0; h < HANDED; ++h) store_relaxed(u + h * UNIT, before[h]);
#pragma unroll
        for (int p = 0; p < N; ++p) to[p * UNIT] = l[p];
        if (before[0] == 0.0 && cells >= 0 && (u32)x < (u32)box.nx) atomicMin(f.error, (u64)(cells + x) << 32);
    }

    __device__ void march(int k, int warp) {
        const int4 tile = box.tile[k], mine = box.warp[k * WARPS + warp];
        const int ty = warp % WARPS_Y * PATCH_Y + lane % PATCH_Y;
        const int tz = warp / WARPS_Y * PATCH_Z + lane / PATCH_Y;
        own = ring + column_in_ring(ty, tz);
        cells = line(box, tile.x * TY + ty, tile.y * TZ + tz);
        coupled = 0;
#pragma unroll
        for (int g = 0; g < OF_A; ++g) {
            const int y = tile.x * TY + ty + step(given(g), 1), z = tile.y * TZ + tz + step(given(g), 2);
            coupled |= (u32)(cells >= 0 && line(box, y, z) >= 0) << g;
        }
        next_entry = 0;
#pragma unroll
        for (int n = 0; n < HANDED; ++n) before[n] = 0.0;
#pragma unroll
        for (int e = 0; e < ENTRIES; ++e) w[e] = 0.0;
        double* lower = f.lower + (size_t)(u32)mine.z * RECORD_L + lane;
        double* upper = f.upper + (size_t)(u32)mine.z * RECORD_U + lane;
        // the step before the first only begins that; outside the march rows of zeros are made
#pragma unroll 1
        for (int u = -1; u < tile.w; ++u) {
            const u32 n = u - mine.x;
            const int s = tile.z + u, x = s - skew(ty, tz);
            const bool on = n < (u32)mine.y, next = n + 1 < (u32)mine.y;
            if (next && (n + 1) % TURN == 0) {
                wait(desk.brought + turn.slot, turn.round);
                next_entry = turn.slot * BROUGHT + lane * COLUMN_A;
            }
            begin(s + 1, x + 1, next);
            end(s);
            if (u >= 0) hand_on(s);
            if (on) leave(lower, upper, x), lower += RECORD_L, upper += RECORD_U;
            if (next && (n + 1) % TURN == TURN - 1) {
                arrive(desk.read + turn.slot);
                turn.pass();
            }
#pragma unroll
            for (int e = 0; e < ENTRIES; ++e) w[e] = begun[e];
#pragma unroll
            for (int p = 0; p < N; ++p) l[p] = begun_l[p];
            if (u >= 0) end_step<STEPPING>();
        }
    }
};

// What loaders await: numbers of U' and D where neighbouring tiles leave them.
struct Numbers {
    static constexpr int OF_LANE = ::OF_LANE, LOADERS = ::LOADERS, MEETING = STEPPING, ROW = ::ROW, APART = RECORD_U;
    static constexpr bool LAST = false;
    const Tiles& box;
    const Factors& f;

    __device__ Awaited find(int at, int4 tile) const {
        if (at >= WANTED) return nothing_at(-1);
        const auto [ty, tz, number] = wish(at);
        const int place = number * COLUMNS + column_in_ring(ty, tz);
        if (!exists(box, tile, ty, tz)) return nothing_at(place);
        const Source there = source(box, tile, ty, tz);
        const int warp = there.ty / PATCH_Y + there.tz / PATCH_Z * WARPS_Y;
        const int column = there.ty % PATCH_Y + there.tz % PATCH_Z * PATCH_Y;
        const int4 records = box.warp[there.tile * WARPS + warp];
        // record of this tile's step 0
        const int first = tile.z + there.steps - box.tile[there.tile].z - records.x;
        const double* const from = f.upper + ((long long)(u32)records.z + first) * RECORD_U;
        return {from + number * UNIT + column, skew(ty, tz) - tile.z, place};
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, 1) stencil_factor(Tiles box, Matrix a, Factors f) {
    extern __shared__ __align__(16) double memory[];
    double* const ring = memory;
    double* const rows = ring + RING * ROW;
    u64* const brought = reinterpret_cast<u64*>(rows + WARPS * TURNS * BROUGHT);
    u64* const read = brought + WARPS * TURNS;
    const int role = threadIdx.x / 32 / WARPS, warp = threadIdx.x / 32 % WARPS, lane = threadIdx.x % 32;
    for (int n = threadIdx.x; n < RING * ROW; n += THREADS) ring[n] = 0.0;
    for (int n = threadIdx.x; n < 2 * WARPS * TURNS; n += THREADS) prepare_barrier(brought + n, 32);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    const Desk desk = {rows + warp * TURNS * BROUGHT, brought + warp * TURNS, read + warp * TURNS};
    if (role == 0) {
        Worker worker{box, a.shift, f, ring, desk, lane};
        for (int k = blockIdx.x; k < box.tiles; k += gridDim.x) worker.march(k, warp);
    } else if (role == 1) {
        Porter<TURN, TURNS, COLUMN_A> porter{box, a, desk, lane};
        for (int k = blockIdx.x; k < box.tiles; k += gridDim.x) porter.march(k, warp);
    } else {
        Loader<Numbers>{box, {box, f}, ring, (int)threadIdx.x - 2 * WARPS * 32}.march_all();
    }
}

// What a pattern's entries are.
enum Kind : u32 { OF_LOWER, OF_UPPER, OF_DIAGONAL };

// Places of a pattern's entries among the records; those of the diagonal, one per row, have no pattern. One thread
// per row.
extern "C" __global__ void __launch_bounds__(256)
stencil_places(Tiles box, u32 kind, const u32* row_ptr, const u32* col_ind, u32* place) {
    const u32 i = blockIdx.x * 256 + threadIdx.x;
    if (i >= (u32)box.nx * box.ny * box.nz) return;
    const int x = i % box.nx, y = i / box.nx % box.ny, z = i / box.nx / box.ny, yy = y + SHEAR * z;
    const int ty = yy % TY, tz = z % TZ, warp = ty / PATCH_Y + tz / PATCH_Z * WARPS_Y;
    const u32 k = box.place[z / TZ * box.across + yy / TY];
    const int4 tile = box.tile[k], mine = box.warp[k * WARPS + warp];
    const u32 record = (u32)mine.z + (x + skew(ty, tz) - tile.z - mine.x);
    const u32 lane = ty % PATCH_Y + tz % PATCH_Z * PATCH_Y;
    if (kind == OF_DIAGONAL) {
        place[i] = record * RECORD_U + lane;
        return;
    }
    for (u32 e = row_ptr[i]; e < row_ptr[i + 1]; ++e) {
        const u32 j = col_ind[e];
        const int dz = (int)(j / box.nx / box.ny) - z, dy = (int)(j / box.nx % box.ny) - y, dx = (int)(j % box.nx) - x;
        const int entry = entry_at(dx, dy + SHEAR * dz, dz);
        place[e] = kind == OF_LOWER ? record * RECORD_L + entry * UNIT + lane
                                    : record * RECORD_U + (entry - N) * UNIT + lane;
    }
}

// Steps of a warp's records that are collected together: what fits 48 KiB, a row of numbers a little apart.
__device__ constexpr int collected(int units) {
    int steps = 32;
    while (steps > 1 && steps * units * 33 * 8 > 48 * 1024) steps /= 2;
    return steps;
}

// Entries of the pattern from the records of one warp of a tile, UNITS numbers for each cell. Records are read as
// they lie, and the entries of consecutive cells of a column written together.
template <int UNITS, int STEPS>
__device__ void collect(const Tiles& box, double* held, const u32* row_ptr, const u32* __restrict__ place,
                        const double* __restrict__ records, int first_unit, double* __restrict__ val, int stride) {
    const int warp = blockIdx.x % WARPS, lane = threadIdx.x % 32, part = threadIdx.x / 32;
    const int4 tile = box.tile[blockIdx.x / WARPS], mine = box.warp[blockIdx.x];
    for (int n0 = 0; n0 < mine.y; n0 += STEPS) {
        const int steps = min(STEPS, mine.y - n0);
        const size_t base = ((size_t)(u32)mine.z + n0) * stride;
        __syncthreads();
        for (int e = part; e < steps * UNITS; e += 8)
            held[e * 33 + lane] = records[base + (size_t)(e / UNITS) * stride + (first_unit + e % UNITS) * UNIT + lane];
        __syncthreads();
        for (int c = part; c < 32; c += 8) {
            const int ty = warp % WARPS_Y * PATCH_Y + c % PATCH_Y, tz = warp / WARPS_Y * PATCH_Z + c / PATCH_Y;
            const int cells = line(box, tile.x * TY + ty, tile.y * TZ + tz);
            const int x0 = tile.z + mine.x + n0 - skew(ty, tz), x1 = min(x0 + steps, box.nx);
            if (cells < 0 || x1 <= max(x0, 0)) continue;
            const u32 from = row_ptr ? row_ptr[cells + max(x0, 0)] : cells + max(x0, 0);
            const u32 to = row_ptr ? row_ptr[cells + x1] : cells + x1;
            for (u32 e = from + lane; e < to; e += 32) {
                const u32 at = (u32)(__ldcs(&place[e]) - base);
                const int unit = at % stride / UNIT - first_unit;
                __stcs(&val[e], held[(at / stride * UNITS + unit) * 33 + at % UNIT]);
            }
        }
    }
}

// The factors, in the order of their patterns. A thread block for each warp of a tile.
extern "C" __global__ void __launch_bounds__(256)
stencil_collect(Tiles box, Factors f, Pattern lower, Pattern upper, const u32* of_lower, const u32* of_diagonal,
                const u32* of_upper, double* l, double* d, double* u) {
    constexpr int STEPS = collected(N);
    __shared__ double held[STEPS * N * 33];
    collect<N, STEPS>(box, held, lower.row_ptr, of_lower, f.lower, 0, l, RECORD_L);
    collect<1, STEPS * N>(box, held, nullptr, of_diagonal, f.upper, 0, d, RECORD_U);
    collect<N, STEPS>(box, held, upper.row_ptr, of_upper, f.upper, 1, u, RECORD_U);
}

#endif
