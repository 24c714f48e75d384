// Factorisation of entries on a pattern that is one stencil on a box, as a wavefront: ilu/stencil/entries.cu for long rows,
// of which lanes have parts.
//
// A row is spread over a group of lanes in natural order: entries of L first, then those of D and U'. An entry A_ip
// that no update changes any more is told to all lanes of the group; each takes its part of U'_p from shared memory,
// a zero where p changes nothing. Three warps have a patch of columns, one for each stage of a row: what is known
// long before the row ends, what is known a step before, and the rest. So three consecutive rows of a column are in
// work, and pass from warp to warp by shared memory. Factors are written where they belong, in the order of their
// pattern; rows at the faces may lack entries. Neighbouring tiles exchange what is handed on as in ilu/stencil/blocks.cu.
#include "common.cuh"

// Bulk copies came with compute capability 9.0.
#if BS == 1 && __CUDA_ARCH__ >= 900

// The host gives these; here: 7-point stencil with one level of fill.
#ifndef OFFSETS
#define OFFSETS {0, -1, -1}, {1, -1, -1}, {0, -1, 0}, {0, 0, -1}, {1, -1, 0}, {-1, 0, 0}
#define GIVEN 0, 2, 5, 6, 12, 9, 7
#define SHEAR 1
#define ALPHA 2
#define BETA 1
#define PATCH_Y 4
#define PATCH_Z 1
#define WARPS_Y 2
#define WARPS_Z 2
#define LOWER_AT 15, 15, 15, 15, 15, 15
#define UPPER_AT 15, 15, 15, 15, 15, 15
#endif

#define LEAVES_LATE 1
#include "ilu/stencil/exchange.cuh"
#include "ilu/stencil/shares.cuh"

// Stages of a row's products, each a step after the one before; one more writes the row. Stage 0 is ahead of the
// last one, in which the row ends.
constexpr int STAGES = DELAY > 3 && WARPS == 1 ? 4 : 3, AHEAD = STAGES - 1;
static_assert(RING >= DELAY + 2, "a row that leaves looks at all rows that it waited for");
static_assert(DELAY > AHEAD, "a tile begins with rows outside the box");
// Offsets before this one are done in the stages before stage k: equal parts, as far as they are known then.
__device__ constexpr int bound(int k) {
    if (k == 0) return 0;
    if (k == STAGES) return N;
    int known = 0;
    while (known < EARLY && delay(known) > STAGES - k) ++known;
    const int part = k * EARLY / AHEAD;
    return part < known ? part : known;
}

// Loads that a lane of a loader has under way at a time, of several numbers and steps.
constexpr int OF_LANE = WARPS == 2 ? 2 : loads_of_lane(WANTED);
constexpr int LOADERS = (WANTED + 32 * OF_LANE - 1) / (32 * OF_LANE);
constexpr int THREADS = ((STAGES + 1) * WARPS + LOADERS) * 32;

// The ring: rows of steps, in them columns, in them what is handed on.
constexpr int COLUMNS = LINES * NARROW, ROW = COLUMNS * CELL;
__device__ constexpr int column_in_ring(int ty, int tz) { return ((tz + HZ) * NARROW + ty + HY) * CELL; }
// Rows of A come in turns of several steps, those of a column together, an odd distance apart: those of the turn in
// work and of the next one.
constexpr int TURN = 8, TURNS = 2, COLUMN_A = TURN * OF_A | 1, BROUGHT = PATCH * COLUMN_A;
// Entries of L and of U' that rows have by their distance from the ends of the column.
constexpr int NEAR = reach() + 1;
// Rows on their way from a stage to the next: of this step and of the one before.
constexpr int PASSED = PARTS * 32, PASSES = STAGES * 2 * PASSED;
constexpr int SHARED = 8 * (RING * ROW + WARPS * (TURNS * BROUGHT + PASSES) + NEAR * NEAR);
static_assert(SHARED <= 222 * 1024, "a tile is too large for the shared memory");

EXCHANGE_LAYOUT(THREADS, SHARED, TURN, CELL);

// A row in work: the parts of a lane, and entries at offsets that nothing changes any more, known to all lanes.
struct Row {
    double w[PARTS], told[N];
};

// Brings the rows of A of a patch of columns, a turn ahead.
struct TurnsOfA {
    const Matrix& a;
    // first cell of the own column, or -1, and cell of it at which turn 0 begins
    const int cells, first, nx;
    const int lane;
    // where the rows of the turn that comes next begin and end, and those of the turn after end
    u32 begin, end, next;

    // Where the rows of turn t begin.
    __device__ u32 bound(int t) const {
        return cells < 0 ? 0 : __ldg(&a.row_ptr[cells + min(max(first + t * TURN, 0), nx)]);
    }

    // Brings so many turns whose time has come before the march begins.
    __device__ void start(double* rows, int count) {
        begin = bound(0), end = bound(1), next = bound(2);
        for (int t = 0; t < count; ++t) bring(rows, t);
    }

    __device__ void bring(double* rows, int t) {
        double* const to = rows + t % TURNS * BROUGHT;
#pragma unroll
        for (int e = lane; e < TURN * OF_A * PATCH; e += 32) {
            const int c = e / (TURN * OF_A), n = e % (TURN * OF_A);
            const u32 from = __shfl_sync(FULL, begin, c * GROUP) + n;
            if (from < __shfl_sync(FULL, end, c * GROUP)) copy_async(to + c * COLUMN_A + n, a.val + from, true);
        }
        begin = end, end = next, next = bound(t + 3);
    }

    // What was brought is there for all after the next barrier.
    __device__ static void finish() { asm volatile("cp.async.wait_all;" : : : "memory"); }
};
static_assert(TURN * OF_A * PATCH % 32 == 0, "all lanes bring alike");

// A warp that does one stage of the rows of a patch of columns.
template <int STAGE>
struct Worker {
    const Tiles& box;
    const Matrix& a;
    const Factors& f;
    double* const ring;
    const u64* const near_ends;
    double* const rows;
    double* const passes;
    const int lane;
    // whether this step is an odd one
    int odd;
    // to the own entry that may be the diagonal
    double added;
    // place in the group; per part: its entry among those of L or of U', of A, as a bit, or 0
    int part;
    u32 entry[PARTS], of_a[PARTS];
    // where in the first row of the ring what offsets take is; for parts of L: D of the offset, and the steps since
    u32 from[N][PARTS], pivot[PARTS_L], since[PARTS_L];
    // own part of what the own column hands on, there; first cell of the column, or -1; which entries its rows have,
    // but for the ends
    u32 own;
    int cells;
    u32 coupled, lower, upper;
    // next entry of A among the rows on the desk; those of L and U' where they belong
    u32 next_entry;
    size_t next_lower, next_upper;
    // boundary values of step 0 of the own part, and those to be marked, or null
    double* out;
    double* mark;

    __device__ void prepare(int warp) {
        const int column = lane / GROUP;
        const int ty = warp % WARPS_Y * PATCH_Y + column % PATCH_Y;
        const int tz = warp / WARPS_Y * PATCH_Z + column / PATCH_Y;
        part = lane % GROUP;
        added = part == 0 ? a.shift : 0.0;
        const u32 column_in = shared_address(ring + column_in_ring(ty, tz));
        own = column_in + 8 * part;
#pragma unroll
        for (int m = 0; m < PARTS; ++m) {
            const int at = m * GROUP + part - (m < PARTS_L ? 0 : PARTS_L * GROUP + 1);
            entry[m] = at >= 0 && at < N ? 1u << at : 0;
            const int g = SHARES.given_in[m][part];
            of_a[m] = g >= 0 ? 1u << g : 0;
        }
#pragma unroll
        for (int p = 0; p < N; ++p) {
            const u32 column_of_p = column_in + 8 * (offset(p, 2) * NARROW + offset(p, 1)) * CELL;
#pragma unroll
            for (int m = 0; m < PARTS; ++m)
                if (SHARES.changes[p][m]) from[p][m] = column_of_p + 8 * SHARES.number[p][m][part];
#pragma unroll
            for (int m = 0; m < PARTS_L; ++m)
                if (p == 0 || m * GROUP + part == SHARES.order[p]) pivot[m] = column_of_p, since[m] = delay(p);
        }
    }

    // Bytes from the first row of the ring to that of step s.
    __device__ static u32 row(int s) { return (s & (RING - 1)) * (ROW * 8); }

    // The entry at offset p, if rows of these columns have it.
    __device__ double masked(int p, double v) const {
        return LINES_WITH.lower[p] == EVERY || (lower >> SHARES.order[p] & 1) ? v : 0.0;
    }

    // Tells all lanes of the group the entries of offsets before `end` that offset `by` was the last to change.
    __device__ void tell(Row& r, int by, int end) const {
#pragma unroll
        for (int p = 0; p < N; ++p)
            if (p < end && SHARES.last[p] == by)
                r.told[p] = masked(p, __shfl_sync(FULL, r.w[SHARES.part[p]], SHARES.lane[p], GROUP));
    }

    // Where a part of a row is that stage `from` passes on at an odd step or an even one.
    __device__ u32 passed(int from, int odd) const { return shared_address(passes + (from * 2 + odd) * PASSED + lane); }

    __device__ void pass(const Row& r) const {
#pragma unroll
        for (int m = 0; m < (STAGE == AHEAD ? PARTS_L : PARTS); ++m) store_shared(passed(STAGE, odd) + 256 * m, r.w[m]);
    }

    // The row that the stage before has passed on, and the entries of offsets from BEGIN to END that it has finished.
    template <int BEGIN, int END>
    __device__ void receive(Row& r) const {
        const u32 at = passed(STAGE - 1, 1 - odd), of_group = at - 8 * part;
#pragma unroll
        for (int p = BEGIN; p < END; ++p)
            if (SHARES.last[p] < BEGIN)
                r.told[p] = masked(p, load_shared(of_group + 256 * SHARES.part[p] + 8 * SHARES.lane[p]));
#pragma unroll
        for (int m = 0; m < PARTS; ++m) r.w[m] = load_shared(at + 256 * m);
    }

    // The parts of offsets in a row that ends at step s.
    template <int BEGIN, int END>
    __device__ void take(Row& r, int s) const {
#pragma unroll
        for (int p = BEGIN; p < END; ++p) {
            const u32 at = row(s - delay(p));
#pragma unroll
            for (int m = 0; m < PARTS; ++m)
                if (SHARES.changes[p][m]) r.w[m] = fma(-r.told[p], load_shared(at + from[p][m]), r.w[m]);
            tell(r, p, END);
        }
    }

    // Begins the row of cell x that ends at step s.
    __device__ void begin(Row& r, int s, int x, bool there) {
        u32 has = 0;
#pragma unroll
        for (int dx = -reach(); dx <= reach(); ++dx)
            if (given_at(dx)) has |= (u32)(x + dx) < (u32)box.nx ? given_at(dx) : 0;
        has = there & ((u32)x < (u32)box.nx) ? has & coupled : 0;
        const u32 entries = shared_address(rows) + 8 * next_entry;
#pragma unroll
        for (int m = 0; m < PARTS; ++m) {
            // what follows the row's last entry may be on its way for a later turn
            r.w[m] = SHARES.any_given[m] ? load_shared_if(has & of_a[m], entries + 8 * __popc(has & (of_a[m] - 1))) : 0.0;
        }
        next_entry += __popc(has);
        r.w[PARTS_L] += added;
        tell(r, -1, bound(1));
        take<0, bound(1)>(r, s);
    }

    // Ends the row: entries of D and U'.
    __device__ void end(Row& r, int s) const {
        take<EARLY, N>(r, s);
        const double d = inverse_pivot(__shfl_sync(FULL, r.w[PARTS_L], 0, GROUP));
#pragma unroll
        for (int m = PARTS_L; m < PARTS; ++m) {
            r.w[m] *= d;
            if (SHARES.lacking[m] && !(upper & entry[m])) r.w[m] = 0.0;
        }
        if (part == 0) r.w[PARTS_L] = d;
    }

    __device__ bool handed(int m) const { return m < PARTS - 1 || HANDED % GROUP == 0 || part < HANDED % GROUP; }

    __device__ void hand_on(const Row& r, int s) const {
        const u32 to = row(s) + own;
#pragma unroll
        for (int m = PARTS_L; m < PARTS; ++m)
            store_shared_if(handed(m), to + 8 * GROUP * (m - PARTS_L), r.w[m]);
    }

    __device__ bool inside(int x) const { return cells >= 0 && (u32)x < (u32)box.nx; }

    // D and U' of the row of cell x, step u from the start of the march, to the neighbours.
    __device__ void publish(const Row& r, int u, int x) const {
        const bool looked_at = out && inside(x);
        const size_t at = (size_t)u * (BOUNDARY * CELL);
#pragma unroll
        for (int m = PARTS_L; m < PARTS; ++m)
            publish_if(looked_at && handed(m), out + at + (m - PARTS_L) * GROUP, arrived(r.w[m]));
#pragma unroll
        for (int m = PARTS_L; m < PARTS; ++m)
            store_if(looked_at && handed(m), mark + at + (m - PARTS_L) * GROUP, __longlong_as_double(ABSENT));
    }

    // The row of cell x, which ended at step s, to where it belongs. Returns the cell if it has no pivot, else NONE.
    __device__ u32 leave(int s, int x) {
        const bool there = inside(x);
        const u64 both = there ? near_ends[min(x, reach()) * NEAR + min(box.nx - 1 - x, reach())] : 0;
        const u32 l = (u32)both & lower, up = (u32)(both >> 32) & upper;
#pragma unroll
        for (int m = 0; m < PARTS_L; ++m) {
            const double v = load_shared(passed(STAGES - 1, 1 - odd) + 256 * m) * load_shared(row(s - since[m]) + pivot[m]);
            store_if(l & entry[m], f.lower + next_lower + __popc(l & (entry[m] - 1)), v);
        }
        double d = 1.0;
#pragma unroll
        for (int m = PARTS_L; m < PARTS; ++m) {
            const double v = load_shared(row(s) + own + 8 * GROUP * (m - PARTS_L));
            store_if(up & entry[m], f.upper + next_upper + __popc(up & (entry[m] - 1)), v);
            if (m == PARTS_L) d = v;
        }
        next_lower += __popc(l);
        next_upper += __popc(up);
        store_if(there && part == 0, f.diagonal + (cells + x), d);
        return there && part == 0 && d == 0.0 ? cells + x : NONE;
    }

    __device__ void find_column(int k, int4 tile, int warp) {
        const int column = lane / GROUP;
        const int ty = warp % WARPS_Y * PATCH_Y + column % PATCH_Y;
        const int tz = warp / WARPS_Y * PATCH_Z + column / PATCH_Y;
        const int yy = tile.x * TY + ty, z = tile.y * TZ + tz;
        cells = line(box, yy, z);
        coupled = lower = upper = 0;
#pragma unroll
        for (int g = 0; g < OF_A; ++g)
            coupled |= (u32)(cells >= 0 && line(box, yy + step(given(g), 1), z + step(given(g), 2)) >= 0) << g;
        const int kind = (yy > SHEAR * z ? 1 : 0) + (z > 0 ? 2 : 0);
#pragma unroll
        for (int o = 0; o < N; ++o) {
            const bool below = cells >= 0 && line(box, yy + offset(o, 1), z + offset(o, 2)) >= 0;
            const bool above = cells >= 0 && line(box, yy - offset(o, 1), z - offset(o, 2)) >= 0;
            lower |= (u32)(below && (LINES_WITH.lower[o] >> kind & 1)) << SHARES.order[o];
            upper |= (u32)(above && (LINES_WITH.upper[o] >> kind & 1)) << (N - 1 - SHARES.order[o]);
        }
        next_lower = cells < 0 ? 0 : f.lower_pattern.row_ptr[cells];
        next_upper = cells < 0 ? 0 : f.upper_pattern.row_ptr[cells];
        const int place = boundary_place(ty, tz);
        const size_t at = place < 0 ? 0 : boundary_row<CELL>(box, k, tile.z) + (size_t)place * CELL + part;
        out = place < 0 ? nullptr : f.exchange + at;
        mark = f.other + at;
    }

    __device__ void march(int k, int warp) {
        const int4 tile = box.tile[k], mine = box.warp[k * WARPS + warp];
        const int column = lane / GROUP;
        const int late = skew(warp % WARPS_Y * PATCH_Y + column % PATCH_Y, warp / WARPS_Y * PATCH_Z + column / PATCH_Y);
        find_column(k, tile, warp);
        u32 singular = NONE;
        TurnsOfA turns{a, cells, tile.z + mine.x - late, box.nx, lane};
        if (STAGE == 1) turns.start(rows, mine.x < AHEAD ? 2 : mine.x < TURN + AHEAD ? 1 : 0);
        next_entry = lane / GROUP * COLUMN_A;
#pragma unroll 1
        for (int u = 0; u < tile.w; ++u) {
            const int s = tile.z + u, x = s - late;
            Row r;
            if (STAGE < AHEAD) {
                // row of the turns that is begun, which come from a turn before
                const int n = u + AHEAD - mine.x;
                if (STAGE == 0) {
                    if (n % TURN == 0) next_entry = n / TURN % TURNS * BROUGHT + lane / GROUP * COLUMN_A;
                    begin(r, s + AHEAD, x + AHEAD, (u32)n < (u32)mine.y);
                } else {
                    if (STAGE == 1 && n % TURN == 0 && n >= -TURN && n + TURN < mine.y) turns.bring(rows, n / TURN + 1);
                    receive<bound(STAGE), bound(STAGE + 1)>(r);
                    take<bound(STAGE), bound(STAGE + 1)>(r, s + AHEAD - STAGE);
                }
                pass(r);
                if (STAGE == 1 && (n % TURN == TURN - 1 || n == -1 || u == 0)) TurnsOfA::finish();
            } else if (STAGE == AHEAD) {
                receive<EARLY, N>(r);
                end(r, s);
                hand_on(r, s);
                pass(r);
                publish(r, u, x);
            } else if (u > 0) {
                singular = min(singular, leave(s - 1, x - 1));
            }
            odd ^= 1;
            end_step<THREADS>();
        }
        if (STAGE == STAGES) singular = min(singular, leave(tile.z + tile.w - 1, tile.z + tile.w - 1 - late));
        // the next tile begins when the last row has left
        end_step<THREADS>();
        if (singular != NONE) atomicMin(f.error, (u64)singular << 32);
    }
};

template <int STAGE>
__device__ inline void work(Worker<STAGE> worker, int warp) {
    worker.prepare(warp);
    for (int k = blockIdx.x; k < worker.box.tiles; k += gridDim.x) worker.march(k, warp);
}

// As wish, numbers of a column one after another.
__device__ inline Wish wish_by_column(int w) {
    constexpr int DEPTH = HY > 0 ? HY : 1, OF_Z = WANTED_Z > 0 ? WANTED_Z : 1, OF_Y = WANTED_Y > 0 ? WANTED_Y : 1;
    if (w < ABOVE * WANTED_Z) {
        const int h = w / OF_Z;
        return {h % (TY + CORNER) - CORNER, h / (TY + CORNER) - HZ, LOOKS.list[2][w % OF_Z]};
    }
    const int beside = w - ABOVE * WANTED_Z, h = beside / OF_Y;
    return {h % DEPTH - HY, h / DEPTH, LOOKS.list[1][beside % OF_Y]};
}

// What loaders await.
struct Numbers {
    static constexpr int OF_LANE = ::OF_LANE, LOADERS = ::LOADERS, MEETING = THREADS, ROW = ::ROW, APART = BOUNDARY * CELL;
    static constexpr bool LAST = true;
    const Tiles& box;
    const Factors& f;

    __device__ Awaited find(int at, int4 tile) const {
        if (at >= WANTED) return nothing_at(-1);
        const auto [ty, tz, number] = wish_by_column(at);
        const int within = SHARES.place[number];
        return exchanged<CELL>(box, f.exchange, tile, ty, tz, within, column_in_ring(ty, tz) + within);
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, 1) stencil_factor(Tiles box, Matrix a, Factors f) {
    extern __shared__ __align__(16) double memory[];
    double* const ring = memory;
    double* const rows = ring + RING * ROW;
    double* const passes = rows + WARPS * TURNS * BROUGHT;
    u64* const near_ends = reinterpret_cast<u64*>(passes + WARPS * PASSES);
    const int role = threadIdx.x / 32 / WARPS, warp = threadIdx.x / 32 % WARPS, lane = threadIdx.x % 32;
    for (int n = threadIdx.x; n < RING * ROW; n += THREADS) ring[n] = 0.0;
    for (int n = threadIdx.x; n < WARPS * PASSES; n += THREADS) passes[n] = 0.0;
    for (int n = threadIdx.x; n < NEAR * NEAR; n += THREADS) {
        u64 bits = 0;
#pragma unroll
        for (int dx = -reach(); dx <= reach(); ++dx)
            if (n / NEAR + dx >= 0 && n % NEAR - dx >= 0) bits |= positions_at(dx);
        near_ends[n] = (bits & ((1ull << N) - 1)) | bits >> (N + 1) << 32;
    }
    __syncthreads();
    double* const given = rows + warp * TURNS * BROUGHT;
    double* const passed = passes + warp * PASSES;
    if (role == 0) {
        work(Worker<0>{box, a, f, ring, near_ends, given, passed, lane}, warp);
    } else if (role == 1) {
        work(Worker<1>{box, a, f, ring, near_ends, given, passed, lane}, warp);
    } else if (role == 2) {
        work(Worker<2>{box, a, f, ring, near_ends, given, passed, lane}, warp);
    } else if (role == 3) {
        work(Worker<3>{box, a, f, ring, near_ends, given, passed, lane}, warp);
    } else if (role == STAGES) {
        work(Worker<STAGES>{box, a, f, ring, near_ends, given, passed, lane}, warp);
    } else {
        Loader<Numbers>{box, {box, f}, ring, (int)threadIdx.x - (STAGES + 1) * WARPS * 32}.march_all();
    }
}

#endif
