// Triangular solves with factors whose pattern is one stencil on a box, as pipelined wavefronts.
//
// The unknowns are cells (x, y, z) of nx * ny * nz in natural order, x fastest; a cell depends on the
// cells at constant OFFSETS from it, all of them earlier in that order. With y' = y + SHEAR * z no
// dependency points forward in y' or z, and t = x + ALPHA * y' + BETA * z grows along all of them:
// t is the level. A thread block owns a tile of columns (y', z) and marches along x, one level per
// step, all columns at once. Values that columns hand to one another live in a ring in shared
// memory, one row per step; those of neighbouring tiles are awaited in the L2 cache by warps of
// their own, one step like all others. Factors are stored in the order in which the lanes use them,
// without indices, and come by bulk copies; right-hand sides and solutions are in natural order, and
// are turned in shared memory. U' is solved as a lower triangle on the box turned around.
#include "absent.cuh"

// A lane has one row of a block: there is no wavefront of larger ones; and bulk copies came with
// compute capability 9.0.
#if BS <= 32 && __CUDA_ARCH__ >= 900

// The host gives these; here: 7-point stencil, tiles of one column.
#ifndef OFFSETS
#define OFFSETS {-1, 0, 0}, {0, -1, 0}, {0, 0, -1}
#define SHEAR 0
#define ALPHA 1
#define BETA 1
#define PATCH_Y 1
#define PATCH_Z 1
#define WARPS_Y 2
#define WARPS_Z 2
#endif

// Sheared offset o along an axis: x, y', z.
__device__ constexpr int offset(int o, int axis) {
    constexpr int list[][3] = {OFFSETS};
    return list[o][axis];
}
__device__ constexpr int count_offsets() {
    constexpr int list[][3] = {OFFSETS};
    return sizeof(list) / sizeof(list[0]);
}
constexpr int N = count_offsets();

// Steps between a cell and the one at offset o.
__device__ constexpr int delay(int o) {
    return -(offset(o, 0) + ALPHA * offset(o, 1) + BETA * offset(o, 2));
}
__device__ constexpr int depth(int axis) {
    int most = 0;
    for (int o = 0; o < N; ++o) most = -offset(o, axis) > most ? -offset(o, axis) : most;
    return most;
}
__device__ constexpr int longest_delay() {
    int most = 0;
    for (int o = 0; o < N; ++o) most = delay(o) > most ? delay(o) : most;
    return most;
}
__device__ constexpr bool has_corner() {
    for (int o = 0; o < N; ++o)
        if (offset(o, 1) < 0 && offset(o, 2) < 0) return true;
    return false;
}
// A warp has a patch of columns, a lane one row of the blocks of one of them.
constexpr int PATCH = PATCH_Y * PATCH_Z, ACTIVE = PATCH * BS;
constexpr int WARPS = WARPS_Y * WARPS_Z, TY = PATCH_Y * WARPS_Y, TZ = PATCH_Z * WARPS_Z;
static_assert(ACTIVE <= 32, "a patch is more than a warp");
// Columns of neighbouring tiles that are looked at: so deep, with or without the corner.
constexpr int HY = depth(1), HZ = depth(2), CORNER = has_corner() ? HY : 0;
static_assert(HY <= TY && HZ <= TZ, "a tile is less than the reach of the stencil");
constexpr int HALO = (TY + CORNER) * HZ + HY * TZ;
constexpr int LOADERS = (HALO * BS + 31) / 32;
constexpr int THREADS = (2 * WARPS + LOADERS) * 32;
// Columns that neighbours look at.
constexpr int BOUNDARY = HZ * TY + (TZ - HZ) * HY;

// Offsets that wait for the step before (they come last), and those that are known earlier.
__device__ constexpr int count_early() {
    int n = 0;
    while (n < N && delay(n) > 1) ++n;
    return n;
}
constexpr int EARLY = count_early(), FRESH = N - EARLY;
// Whether offset o is the cell before in the own column, which a lane keeps in a register.
__device__ constexpr bool own_column(int o) {
    return BS == 1 && offset(o, 0) == -1 && offset(o, 1) == 0 && offset(o, 2) == 0;
}

// How factors are stored: a record per step of a warp; in it a unit per offset (before them one for
// the diagonal when solving with U'), in it columns of blocks with an entry per lane.
constexpr int UNIT = (ACTIVE * BS + 1) / 2 * 2;
template <bool BACKWARD>
struct Records {
    static constexpr int UNITS = N + (BACKWARD ? 1 : 0), RECORD = UNITS * UNIT;
};

// Steps are worked off in turns. A porter, one warp for each that computes, brings what a turn needs
// from memory, TURNS turns ahead, and takes its solutions away.
constexpr int TURNS = 3;
__device__ constexpr int power_of_two(int least) {
    int p = 1;
    while (p < least) p *= 2;
    return p;
}
constexpr int DELAY = longest_delay();

// The ring of values: rows of steps; distances chosen against bank conflicts.
__device__ constexpr int ring_stride_y() {
    int s = TY + HY;
    if (BS == 1 && PATCH_Y < 16 && (PATCH_Y & (PATCH_Y - 1)) == 0)
        while (s % 16 != PATCH_Y % 16) ++s;
    return s;
}
__device__ constexpr int ring_row() {
    int s = ring_stride_y() * (TZ + HZ) * BS;
    while (s % 16 != 2) ++s;
    return s;
}
constexpr int SY = ring_stride_y(), ROW = ring_row();
__device__ constexpr int column_in_ring(int ty, int tz) { return ((tz + HZ) * SY + ty + HY) * BS; }
// Marches start and end at multiples of so many steps.
constexpr int ALIGNED = 8;
__device__ constexpr int ring_steps(int turn) {
    const int least = DELAY + turn > TURNS * turn ? DELAY + turn : TURNS * turn;
    return power_of_two(least > ALIGNED ? least : ALIGNED);
}
constexpr int RHS_ROW = ACTIVE + 2;
__device__ constexpr int rhs_size(int turn) { return (TURNS * turn * RHS_ROW + 1) / 2 * 2; }
// Doubles left for factors when a turn has so many steps.
constexpr int MEMORY = 222 * 1024 / 8;
__device__ constexpr int left(int turn) {
    return MEMORY - ring_steps(turn) * ROW - WARPS * rhs_size(turn) - WARPS * 16;
}

// Factors come with the right-hand sides of a turn if they fit, and if a lane has the registers to
// look one step ahead; else in stages, parts of a record, that a warp asks for itself.
__device__ constexpr bool fits(int turn) {
    return WARPS * TURNS * turn * Records<true>::RECORD <= left(turn);
}
constexpr bool CARRIED = FRESH * BS <= 16 && (N + 1) * BS <= 32 && fits(2);
constexpr int TURN = CARRIED ? (BS <= 2 && fits(8) ? 8 : fits(4) ? 4 : 2) : BS <= 4 ? 4 : BS <= 8 ? 2 : 1;
constexpr int RING = ring_steps(TURN), RHS = rhs_size(TURN);
constexpr int STAGES = 4, MOST = left(TURN) / (WARPS * STAGES);
static_assert(CARRIED || UNIT <= MOST, "a tile is too large for the shared memory");
// stages per record, and units in each
__device__ constexpr int part_units(int units) {
    const int most = MOST / UNIT > 0 ? MOST / UNIT : 1, parts = (units + most - 1) / most;
    return (units + parts - 1) / parts;
}
__device__ constexpr int larger(int a, int b) { return a > b ? a : b; }
constexpr int FACTORS = CARRIED ? TURNS * TURN * Records<true>::RECORD : STAGES * larger(part_units(N), part_units(N + 1)) * UNIT;
constexpr int BARRIERS = WARPS * (STAGES + 2 * TURNS);
constexpr int SHARED = 8 * (RING * ROW + WARPS * (RHS + FACTORS) + BARRIERS);

// Steps by which the exchange starts before the first of a tile, and ends after the last.
constexpr int PAD = DELAY + 2 * ALIGNED;

// What the host has to know: threads, shared bytes, doubles of a record forward and backward, steps
// of a turn, boundary columns, alignment of marches, padding of the exchange.
extern "C" __constant__ int wavefront_layout[8] = {
    THREADS, SHARED, Records<false>::RECORD, Records<true>::RECORD, TURN, BOUNDARY, ALIGNED, PAD};

struct Box {
    int nx, ny, nz;
    // Listed tiles, and tiles along y' of the grid of tiles.
    int tiles, across;
    // Steps for which the exchange has room.
    int steps;
    // y', z of a tile in tiles, first step, number of steps (aligned both).
    const int4* tile;
    // Of a warp of a tile: first step of its records relative to the tile's, number of records (whole turns
    // both), index of the first one.
    const int4* warp;
    // Place in the list of a tile of the grid of tiles, or NONE.
    const u32* place;
    const double* val;
    // Boundary values of this solve, per tile, step, column, row; and those of the next, which this
    // solve marks absent.
    double* exchange;
    double* other;
};

// Steps are counted in two ways: u from the start of the tile's march, s = u + first as the level
// within the tile: the cell x of column (ty, tz) is computed at s = x + ALPHA * ty + BETA * tz.
__device__ constexpr int skew(int ty, int tz) { return ALPHA * ty + BETA * tz; }

// Place of a boundary column among those of its tile, or -1.
__device__ inline int boundary_place(int ty, int tz) {
    if (tz >= TZ - HZ) return (tz - (TZ - HZ)) * TY + ty;
    return ty >= TY - HY ? HZ * TY + tz * HY + ty - (TY - HY) : -1;
}

// Boundary values of step s of the tile at `place` of the list.
__device__ inline size_t boundary_row(const Box& box, u32 place, int s) {
    return ((size_t)place * box.steps + (s + PAD)) * (BOUNDARY * BS);
}

// First cell of the column (y', z) in natural order, or -1 if it is outside.
__device__ inline int line(const Box& box, int yy, int z) {
    const int y = yy - SHEAR * z;
    return yy >= 0 && z >= 0 && z < box.nz && y >= 0 && y < box.ny ? (z * box.ny + y) * box.nx : -1;
}

// Cell in the order of the vectors.
template <bool BACKWARD>
__device__ inline size_t natural(const Box& box, int cell) {
    return BACKWARD ? (size_t)box.nx * box.ny * box.nz - 1 - cell : cell;
}

__device__ inline u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// 8 bytes to shared memory while the thread goes on, or zeros.
__device__ inline void copy_async(double* to, const double* from, bool there) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
                 :
                 : "r"(shared_address(to)), "l"(from), "r"(there ? 8 : 0)
                 : "memory");
}

// All workers and loaders of the block have come to the end of the step.
__device__ inline void end_step() {
    asm volatile("bar.sync 1, %0;" : : "n"((WARPS + LOADERS) * 32) : "memory");
}

// Barriers in shared memory, each used again and again: the n-th use has parity n.
__device__ inline void prepare_barrier(u64* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                 :
                 : "r"(shared_address(barrier)), "r"(arrivals)
                 : "memory");
}
__device__ inline void arrive(u64* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(shared_address(barrier)) : "memory");
}
// When the copies of this thread so far are done.
__device__ inline void arrive_with_copies(u64* barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];"
                 :
                 : "r"(shared_address(barrier))
                 : "memory");
}
__device__ inline void wait(u64* barrier, u32 use) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}"
        :
        : "r"(shared_address(barrier)), "r"(use & 1)
        : "memory");
}

// Doubles from global to shared memory; the barrier counts one arrival when they are there.
__device__ inline void bulk_copy(double* to, const double* from, int doubles, u64* barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :
                 : "r"(shared_address(barrier)), "r"(doubles * 8)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        :
        : "r"(shared_address(to)), "l"(from), "r"(doubles * 8), "r"(shared_address(barrier))
        : "memory");
}

// A barrier per slot of a ring: which slot is next, and how often the ring went round.
template <int SLOTS>
struct Turnstile {
    int slot;
    u32 round;

    __device__ void pass() {
        if (++slot == SLOTS) slot = 0, ++round;
    }
};

// What a worker and its porter share: right-hand sides and factors of TURNS turns, barriers that
// tell when those of a turn are there and when its solutions are.
struct Desk {
    double* rhs;
    double* factors;
    u64* brought;
    u64* solved;
};

// The units before offset 0 of a record.
template <bool BACKWARD>
constexpr int FIRST = BACKWARD ? 1 : 0;

// A warp that computes a patch of columns.
template <bool BACKWARD>
struct Worker {
    using R = Records<BACKWARD>;
    static constexpr int STEPS_BACK = (DELAY + TURN - 1) / TURN;
    const Box& box;
    double* ring;
    const Desk desk;
    // barriers of the stages
    u64* full;
    // lane, or the last that has work
    int lane;
    bool idle;
    Turnstile<TURNS> turn;
    Turnstile<STAGES> stage;
    // own column in the ring, and rows of this turn and those before it
    double* own;
    const double* back[STEPS_BACK + 1];
    // stages still to be filled from `source`; part of a record that is next
    int fills, part;
    const double* source;

    __device__ void look_back(int s) {
#pragma unroll
        for (int n = 0; n <= STEPS_BACK; ++n) back[n] = own + ((s - n * TURN) & (RING - 1)) * ROW;
    }

    // Values of the cells at offset o from those of step q of the turn.
    __device__ const double* neighbour(int q, int o) const {
        const int steps = delay(o) - q, turns = steps <= 0 ? 0 : (steps + TURN - 1) / TURN;
        return back[turns] + (turns * TURN - steps) * ROW + (offset(o, 2) * SY + offset(o, 1)) * BS;
    }

    // Right-hand sides and factors of the first step of the turn that is next.
    __device__ const double* turn_rhs() const { return desk.rhs + turn.slot * (TURN * RHS_ROW); }
    __device__ const double* turn_records() const {
        return desk.factors + turn.slot * (TURN * R::RECORD) + lane;
    }

    // What is known of a step before the one before it is done.
    struct Known {
        double sum;
        double fresh[FRESH * BS];
    };
    // The same on its way from shared memory.
    struct Coming {
        double rhs[BACKWARD ? BS : 1];
        double diagonal[BACKWARD ? BS : 1];
        double a[EARLY * BS + 1], x[EARLY * BS + 1];
        double fresh[FRESH * BS];
    };

    // Step q of the turn that was looked back from, 1 to TURN: the last one is the first of the next.
    __device__ void come(Coming& c, int q, const double* row, const double* record) const {
#pragma unroll
        for (int k = 0; k < (BACKWARD ? BS : 1); ++k) {
            c.rhs[k] = BACKWARD ? row[lane / BS * BS + k] : row[lane];
            if (BACKWARD) c.diagonal[k] = record[k * ACTIVE];
        }
#pragma unroll
        for (int n = 0; n < N * BS; ++n) {
            const double entry = record[(FIRST<BACKWARD> + n / BS) * UNIT + n % BS * ACTIVE];
            if (n < EARLY * BS) {
                c.a[n] = entry;
                c.x[n] = neighbour(q, n / BS)[n % BS];
            } else {
                c.fresh[n - EARLY * BS] = entry;
            }
        }
    }

    __device__ Known known(const Coming& c) const {
        constexpr int WAYS = EARLY * BS < 6 ? 1 : EARLY * BS < 12 ? 2 : 4;
        double sums[WAYS] = {};
        if (BACKWARD) {
#pragma unroll
            for (int k = 0; k < BS; ++k) sums[0] = fma(c.diagonal[BACKWARD ? k : 0], c.rhs[BACKWARD ? k : 0], sums[0]);
        } else {
            sums[0] = c.rhs[0];
        }
#pragma unroll
        for (int n = 0; n < EARLY * BS; ++n) sums[n % WAYS] = fma(-c.a[n], c.x[n], sums[n % WAYS]);
#pragma unroll
        for (int w = 1; w < WAYS; ++w) sums[0] += sums[w];
        Known k;
        k.sum = sums[0];
#pragma unroll
        for (int n = 0; n < FRESH * BS; ++n) k.fresh[n] = c.fresh[n];
        return k;
    }

    __device__ void wait_brought() const { wait(desk.brought + turn.slot, turn.round); }

    __device__ void publish(double* to, double value) const {
        if (to) store_relaxed(to, arrived(value));
    }

    // The march of a tile whose factors are carried. One step: values of the step before are read
    // first; while they come, the last own value goes out and all else of the next step is read.
    __device__ void march_carried(const int4 tile, const int4 mine, double* out) {
        constexpr int WAYS = FRESH * BS < 6 ? 1 : FRESH * BS < 12 ? 2 : 4;
        // boundary values of a step
        constexpr int BEYOND = BOUNDARY * BS;
        double value = 0.0;
        Known now = {};
        Coming c;
        double* pending = nullptr;
        if (mine.x == 0 && mine.y > 0) {
            look_back(tile.z - TURN);
            wait_brought();
            come(c, TURN, turn_rhs(), turn_records());
            now = known(c);
        }
        for (int u = 0; u < tile.w; u += TURN, out = out ? out + TURN * BEYOND : nullptr) {
            const bool next = (u32)(u + TURN - mine.x) < (u32)mine.y;
            look_back(tile.z + u);
            if ((u32)(u - mine.x) >= (u32)mine.y) {
                publish(pending, value);
                pending = nullptr;
                value = 0.0;
                for (int q = 0; q < TURN - 1; ++q) end_step();
                if (next) {
                    wait_brought();
                    come(c, TURN, turn_rhs(), turn_records());
                    now = known(c);
                }
                end_step();
                continue;
            }
            double* const rows = own + ((tile.z + u) & (RING - 1)) * ROW + lane % BS;
            const double* const rhs = turn_rhs();
            const double* const records = turn_records();
            u64* const solved = desk.solved + turn.slot;
            turn.pass();
#pragma unroll
            for (int q = 0; q < TURN; ++q) {
                double x[FRESH * BS];
#pragma unroll
                for (int n = 0; n < FRESH * BS; ++n)
                    x[n] = own_column(EARLY + n / BS) ? value : neighbour(q, EARLY + n / BS)[n % BS];
                if (q == 0) publish(pending, value);
                else if (out) store_relaxed(out + (q - 1) * BEYOND, arrived(value));
                // past the last turn this reads what nobody will use
                if (q == TURN - 1 && next) wait_brought();
                if (q < TURN - 1) come(c, q + 1, rhs + (q + 1) * RHS_ROW, records + (q + 1) * R::RECORD);
                else come(c, TURN, turn_rhs(), turn_records());
                double sums[WAYS] = {now.sum};
#pragma unroll
                for (int n = 0; n < FRESH * BS; ++n)
                    sums[n % WAYS] = fma(-now.fresh[n], x[n], sums[n % WAYS]);
#pragma unroll
                for (int w = 1; w < WAYS; ++w) sums[0] += sums[w];
                value = sums[0];
                if (!idle) rows[q * ROW] = value;
                now = known(c);
                if (q == TURN - 1) arrive(solved);
                end_step();
            }
            pending = out ? out + (TURN - 1) * BEYOND : nullptr;
        }
        publish(pending, value);
    }

    // Fills the stage `ahead` of the one in work.
    __device__ void fill(int ahead) {
        constexpr int PART = part_units(R::UNITS), PARTS = (R::UNITS + PART - 1) / PART;
        if (fills == 0) return;
        --fills;
        const int doubles = (part == PARTS - 1 ? R::UNITS - part * PART : PART) * UNIT;
        const int slot = (stage.slot + ahead) % STAGES;
        if (!idle && lane == 0)
            bulk_copy(desk.factors + slot * (FACTORS / STAGES), source, doubles, full + slot);
        source += doubles;
        part = part == PARTS - 1 ? 0 : part + 1;
    }

    // The unknowns of step q, blocks from the stages.
    __device__ double solve_in_stages(int q) {
        constexpr int PART = part_units(R::UNITS), WAYS = N * BS < 8 ? 2 : 4;
        const double* const row = turn_rhs() + q * RHS_ROW;
        double sums[WAYS] = {BACKWARD ? 0.0 : row[lane]};
        const double* entries = nullptr;
#pragma unroll
        for (int unit = 0; unit < R::UNITS; ++unit) {
            if (unit % PART == 0) {
                wait(full + stage.slot, stage.round);
                entries = desk.factors + stage.slot * (FACTORS / STAGES) + lane;
            }
            const int o = unit - FIRST<BACKWARD>;
            const double* const x = o < 0 ? row + lane / BS * BS : neighbour(q, o < 0 ? 0 : o);
#pragma unroll
            for (int k = 0; k < BS; ++k) {
                const double entry = entries[unit % PART * UNIT + k * ACTIVE];
                sums[k % WAYS] = fma(o < 0 ? entry : -entry, x[k], sums[k % WAYS]);
            }
            if (unit % PART == PART - 1 || unit == R::UNITS - 1) {
                __syncwarp();
                stage.pass();
                fill(STAGES - 1);
            }
        }
#pragma unroll
        for (int w = 1; w < WAYS; ++w) sums[0] += sums[w];
        return sums[0];
    }

    __device__ void march_in_stages(const int4 tile, const int4 mine, double* out) {
        constexpr int PARTS = (R::UNITS + part_units(R::UNITS) - 1) / part_units(R::UNITS);
        source = box.val + (size_t)(u32)mine.z * R::RECORD;
        fills = mine.y * PARTS;
        part = 0;
        for (int n = 0; n < STAGES; ++n) fill(n);
        for (int u = 0; u < tile.w; u += TURN) {
            const bool on = (u32)(u - mine.x) < (u32)mine.y;
            double* const rows = own + ((tile.z + u) & (RING - 1)) * ROW + lane % BS;
            look_back(tile.z + u);
            if (on) wait_brought();
#pragma unroll
            for (int q = 0; q < TURN; ++q) {
                if (on) {
                    const double value = solve_in_stages(q);
                    if (!idle) rows[q * ROW] = value;
                    if (out) store_relaxed(out + q * (BOUNDARY * BS), arrived(value));
                }
                if (q == TURN - 1 && on) {
                    arrive(desk.solved + turn.slot);
                    turn.pass();
                }
                end_step();
            }
            if (out) out += TURN * (BOUNDARY * BS);
        }
    }

    __device__ void march(int k, int warp) {
        const int4 tile = box.tile[k], mine = box.warp[k * WARPS + warp];
        const int column = lane / BS;
        const int ty = warp % WARPS_Y * PATCH_Y + column % PATCH_Y;
        const int tz = warp / WARPS_Y * PATCH_Z + column / PATCH_Y;
        own = ring + column_in_ring(ty, tz);
        const int place = boundary_place(ty, tz);
        double* const out = place < 0 || idle
                                ? nullptr
                                : box.exchange + boundary_row(box, k, tile.z) + place * BS + lane % BS;
        if constexpr (CARRIED) march_carried(tile, mine, out);
        else march_in_stages(tile, mine, out);
    }
};

// A warp that brings the right-hand sides of a patch, turned from natural order to that of the steps,
// and takes its solutions back.
template <bool BACKWARD>
struct Porter {
    using R = Records<BACKWARD>;
    const Box& box;
    const double* ring;
    const Desk desk;
    const double* from;
    double* to;
    int lane;
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
    __device__ void bring(int n, int u, const double* records) const {
        const int slot = (turn.slot + n) % TURNS;
        if constexpr (CARRIED)
            if (lane == 0)
                bulk_copy(desk.factors + slot * TURN * R::RECORD, records, TURN * R::RECORD,
                          desk.brought + slot);
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
            const int ty = warp % WARPS_Y * PATCH_Y + column % PATCH_Y;
            const int tz = warp / WARPS_Y * PATCH_Z + column / PATCH_Y;
            lines[q] = line(box, tile.x * TY + ty, tile.y * TZ + tz);
            cells[q] = tile.z + e % (TURN * BS) / BS - skew(ty, tz);
            places[q] = column_in_ring(ty, tz) + e % BS;
        }
        const int end = mine.x + mine.y;
        const double* const records = box.val + (size_t)(u32)mine.z * R::RECORD;
        auto records_of = [&](int u) { return records + (size_t)(u - mine.x) * R::RECORD; };
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
        const int step = tile.z + back_y * ALPHA * TY + back_z * BETA * TZ;
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
            end_step();
        }
#pragma unroll
        for (int n = 0; n < BATCH; ++n) now[n] = next[n];
    }
}

// One triangle. `from` is the right-hand side (y when solving with U', which is multiplied by D first).
template <bool BACKWARD>
__device__ void wavefront(const Box& box, const double* from, double* to) {
    extern __shared__ __align__(16) double memory[];
    double* const ring = memory;
    double* const rhs = ring + RING * ROW;
    double* const factors = rhs + WARPS * RHS;
    u64* const brought = reinterpret_cast<u64*>(factors + WARPS * FACTORS);
    u64* const solved = brought + WARPS * TURNS;
    u64* const full = solved + WARPS * TURNS;
    const int role = threadIdx.x / 32 / WARPS, warp = threadIdx.x / 32 % WARPS, lane = threadIdx.x % 32;
    for (int n = threadIdx.x; n < RING * ROW; n += THREADS) ring[n] = 0.0;
    for (int n = threadIdx.x; n < BARRIERS; n += THREADS)
        prepare_barrier(brought + n, brought + n >= full ? 1 : brought + n < solved && CARRIED ? 33 : 32);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    const Desk desk = {rhs + warp * RHS, factors + warp * FACTORS, brought + warp * TURNS,
                       solved + warp * TURNS};
    if (role == 0) {
        Worker<BACKWARD> worker{box, ring, desk, full + warp * STAGES, min(lane, ACTIVE - 1), lane >= ACTIVE};
        for (int k = blockIdx.x; k < box.tiles; k += gridDim.x) worker.march(k, warp);
    } else if (role == 1) {
        Porter<BACKWARD> porter{box, ring, desk, from, to, lane};
        for (int k = blockIdx.x; k < box.tiles; k += gridDim.x) porter.march(k, warp);
    } else {
        for (int k = blockIdx.x; k < box.tiles; k += gridDim.x)
            load_tile(box, ring, k, threadIdx.x - 2 * WARPS * 32);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
wavefront_forward(Box box, const double* r, double* y) {
    wavefront<false>(box, r, y);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
wavefront_backward(Box box, const double* y, double* z) {
    wavefront<true>(box, y, z);
}

// Factors into records: blocks of the pattern of L or U', and inverse diagonal blocks. Four warps per
// warp of a tile.
template <bool BACKWARD>
__device__ void store_records(const Box& box, const u32* __restrict__ row_ptr,
                              const u32* __restrict__ col_ind, const double* __restrict__ blocks,
                              const double* __restrict__ diagonal, double* __restrict__ val) {
    using R = Records<BACKWARD>;
    const int k = blockIdx.x / WARPS, warp = blockIdx.x % WARPS, lane = threadIdx.x % 32;
    const int4 tile = box.tile[k], mine = box.warp[blockIdx.x];
    const int column = min(lane, ACTIVE - 1) / BS;
    const int ty = warp % WARPS_Y * PATCH_Y + column % PATCH_Y;
    const int tz = warp / WARPS_Y * PATCH_Z + column / PATCH_Y;
    const int yy = tile.x * TY + ty, z = tile.y * TZ + tz, here = line(box, yy, z);
    if (lane >= ACTIVE) return;
    for (int n = threadIdx.x / 32; n < mine.y; n += 4) {
        const int x = tile.z + mine.x + n - skew(ty, tz);
        const bool inside = here >= 0 && (u32)x < (u32)box.nx;
        const u32 i = inside ? natural<BACKWARD>(box, here + x) : 0;
        double* to = val + ((size_t)(u32)mine.z + n) * R::RECORD + lane;
        if (BACKWARD) {
            for (int c = 0; c < BS; ++c)
                to[c * ACTIVE] = inside ? diagonal[(size_t)i * BB + c * BS + lane % BS] : 0.0;
            to += UNIT;
        }
#pragma unroll 1
        for (int o = 0; o < N; ++o, to += UNIT) {
            const int there = line(box, yy + offset(o, 1), z + offset(o, 2)), from = x + offset(o, 0);
            u32 e = NONE;
            if (inside && there >= 0 && (u32)from < (u32)box.nx)
                e = find(col_ind, row_ptr[i], row_ptr[i + 1], natural<BACKWARD>(box, there + from));
            for (int c = 0; c < BS; ++c)
                to[c * ACTIVE] = e == NONE ? 0.0 : blocks[(size_t)e * BB + c * BS + lane % BS];
        }
    }
}

extern "C" __global__ void __launch_bounds__(128)
wavefront_store_lower(Box box, const u32* row_ptr, const u32* col_ind, const double* blocks,
                      const double* diagonal, double* val) {
    store_records<false>(box, row_ptr, col_ind, blocks, diagonal, val);
}

extern "C" __global__ void __launch_bounds__(128)
wavefront_store_upper(Box box, const u32* row_ptr, const u32* col_ind, const double* blocks,
                      const double* diagonal, double* val) {
    store_records<true>(box, row_ptr, col_ind, blocks, diagonal, val);
}

#endif
