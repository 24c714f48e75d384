// The warps of a wavefront that compute.
#pragma once
#include "absent.cuh"
#include "sptrsv/wavefront/tile.cuh"
#include "sptrsv/wavefront/transport.cuh"

// The units before those of the offsets in a record.
template <bool BACKWARD>
constexpr int FIRST = BACKWARD ? 1 : 0;

// A warp that computes a patch of columns of a kind.
template <bool BACKWARD, int KIND>
struct Worker {
    static constexpr int N = count(KIND), EARLY = count_early(KIND), FRESH = N - EARLY;
    static constexpr int UNITS = units(BACKWARD, KIND), RECORD = UNITS * UNIT;
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
    const Stored* source;

    __device__ void look_back(int s) {
#pragma unroll
        for (int n = 0; n <= STEPS_BACK; ++n) back[n] = own + ((s - n * TURN) & (RING - 1)) * ROW;
    }

    // Offset n of the kind among all.
    static constexpr int FIRST_OFFSET = first_offset(KIND);
    __device__ static constexpr int of_kind(int n) { return FIRST_OFFSET + n; }

    // Values of the cells at offset n of the kind from those of step q of the turn.
    __device__ const double* neighbour(int q, int n) const {
        const int o = of_kind(n), steps = delay(o) - q, turns = steps <= 0 ? 0 : (steps + TURN - 1) / TURN;
        return back[turns] + (turns * TURN - steps) * ROW + aside(o);
    }

    // Right-hand sides and factors of the first step of the turn that is next.
    __device__ const double* turn_rhs() const { return desk.rhs + turn.slot * (TURN * RHS_ROW); }
    __device__ const Stored* turn_records() const {
        return desk.factors + turn.slot * (TURN * RECORD) + lane;
    }

    // What is known of a step before the one before it is done.
    struct Known {
        double sum;
        Stored fresh[FRESH * BS];
    };
    // The same on its way from shared memory.
    struct Coming {
        double rhs[BACKWARD ? BS : 1];
        Stored diagonal[BACKWARD ? BS : 1];
        double x[EARLY * BS + 1];
        Stored a[EARLY * BS + 1], fresh[FRESH * BS];
    };

    // Step q of the turn that was looked back from, 1 to TURN: the last one is the first of the next.
    __device__ void come(Coming& c, int q, const double* row, const Stored* record) const {
#pragma unroll
        for (int k = 0; k < (BACKWARD ? BS : 1); ++k) {
            c.rhs[k] = BACKWARD ? row[lane / BS * BS + k] : row[lane];
            if (BACKWARD) c.diagonal[k] = record[k * ACTIVE];
        }
#pragma unroll
        for (int n = 0; n < N * BS; ++n) {
            const Stored entry = record[(FIRST<BACKWARD> + n / BS) * UNIT + n % BS * ACTIVE];
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
            for (int k = 0; k < BS; ++k) sums[0] = fma((double)c.diagonal[BACKWARD ? k : 0], c.rhs[BACKWARD ? k : 0], sums[0]);
        } else {
            sums[0] = c.rhs[0];
        }
#pragma unroll
        for (int n = 0; n < EARLY * BS; ++n) sums[n % WAYS] = fma(-(double)c.a[n], c.x[n], sums[n % WAYS]);
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
                for (int q = 0; q < TURN - 1; ++q) end_step<STEPPING>();
                if (next) {
                    wait_brought();
                    come(c, TURN, turn_rhs(), turn_records());
                    now = known(c);
                }
                end_step<STEPPING>();
                continue;
            }
            double* const rows = own + ((tile.z + u) & (RING - 1)) * ROW + lane % BS;
            const double* const rhs = turn_rhs();
            const Stored* const records = turn_records();
            u64* const solved = desk.solved + turn.slot;
            turn.pass();
#pragma unroll
            for (int q = 0; q < TURN; ++q) {
                double x[FRESH * BS];
#pragma unroll
                for (int n = 0; n < FRESH * BS; ++n)
                    x[n] = own_column(of_kind(EARLY + n / BS)) ? value : neighbour(q, EARLY + n / BS)[n % BS];
                if (q == 0) publish(pending, value);
                else if (out) store_relaxed(out + (q - 1) * BEYOND, arrived(value));
                // past the last turn this reads what nobody will use
                if (q == TURN - 1 && next) wait_brought();
                if (q < TURN - 1) come(c, q + 1, rhs + (q + 1) * RHS_ROW, records + (q + 1) * RECORD);
                else come(c, TURN, turn_rhs(), turn_records());
                double sums[WAYS] = {now.sum};
#pragma unroll
                for (int n = 0; n < FRESH * BS; ++n)
                    sums[n % WAYS] = fma(-(double)now.fresh[n], x[n], sums[n % WAYS]);
#pragma unroll
                for (int w = 1; w < WAYS; ++w) sums[0] += sums[w];
                value = sums[0];
                if (!idle) rows[q * ROW] = value;
                now = known(c);
                if (q == TURN - 1) arrive(solved);
                end_step<STEPPING>();
            }
            pending = out ? out + (TURN - 1) * BEYOND : nullptr;
        }
        publish(pending, value);
    }

    // Fills the stage `ahead` of the one in work.
    __device__ void fill(int ahead) {
        constexpr int PART = part_units(UNITS), PARTS = (UNITS + PART - 1) / PART;
        if (fills == 0) return;
        --fills;
        const int numbers = (part == PARTS - 1 ? UNITS - part * PART : PART) * UNIT;
        const int slot = (stage.slot + ahead) % STAGES;
        if (!idle && lane == 0)
            bulk_copy(desk.factors + slot * (FACTORS / STAGES), source, numbers, full + slot);
        source += numbers;
        part = part == PARTS - 1 ? 0 : part + 1;
    }

    // The unknowns of step q, blocks from the stages.
    __device__ double solve_in_stages(int q) {
        constexpr int PART = part_units(UNITS), WAYS = N * BS < 8 ? 2 : 4;
        const double* const row = turn_rhs() + q * RHS_ROW;
        double sums[WAYS] = {BACKWARD ? 0.0 : row[lane]};
        const Stored* entries = nullptr;
#pragma unroll
        for (int unit = 0; unit < UNITS; ++unit) {
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
            if (unit % PART == PART - 1 || unit == UNITS - 1) {
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
        constexpr int PARTS = (UNITS + part_units(UNITS) - 1) / part_units(UNITS);
        source = box.val + (size_t)(u32)mine.z * UNIT;
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
                end_step<STEPPING>();
            }
            if (out) out += TURN * (BOUNDARY * BS);
        }
    }

    __device__ void march(int k, int warp) {
        const int4 tile = box.tile[k], mine = box.warp[k * WARPS + warp];
        const int ty = column_y(warp, lane / BS), tz = column_z(warp, lane / BS);
        own = ring + column_in_ring(ty, tz);
        const int place = boundary_place(ty, tz);
        double* const out = place < 0 || idle
                                ? nullptr
                                : box.exchange + boundary_row(box, k, tile.z) + place * BS + lane % BS;
        if constexpr (CARRIED) march_carried(tile, mine, out);
        else march_in_stages(tile, mine, out);
    }
};
