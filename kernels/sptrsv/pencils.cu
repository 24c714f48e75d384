// Triangular solves of scalar factors on a box of cells, each coupled to its neighbours along the axes alone, with
// both triangles in one launch. Cells (x, y, z) of nx * ny * nz are in natural order, x fastest.
//
// A thread block has the cells of a patch of PX * PY pencils along z, of which each lane of one warp, the worker, has
// 2 * 2, and marches along z: in step t, lane (i, j) is at z = t - i - j. Its four cells follow one another in
// registers, and what the lanes before solved a step ago is in shared memory: no barrier on the way from level to
// level. Values for the next thread blocks go through the L2 cache, from where loaders bring them to shared memory; a
// value is its own flag. The vector stays in shared memory, in the order of steps, from r over y to z, taken and given
// by porters; a fetcher has factors brought. Backward, everything is mirrored. docs/triangular-solve.md tells what
// each of this is worth.
#include "sptrsv/pencils.cuh"
#include "sptrsv/triangle.cuh"

// For the launcher: threads, bytes of shared memory of each turn and besides.
extern "C" __constant__ u32 pencils_shape[3] = {THREADS, TURN * COLUMNS * 8 + 6 * 8,
                                                2 * COLUMNS * 8 + FACTORS * sizeof(Stored) + SIDE_STEPS * SIDES * 8};

#if __CUDA_ARCH__ >= 900
// Has factors brought, and clears sides that were used: before there are factors of the turn in which the
// worker looks for new ones in their place.
template <bool BACKWARD>
struct Fetcher {
    const Shared& s;
    const Stored* val;
    int turns;
    const u64 policy = once();

    __device__ Fetcher(const Pencils& b, const Shared& s) : s(s), turns(b.turns) {
        val = (BACKWARD ? b.upper : b.lower) + (size_t)blockIdx.x * Shared::steps(b) * RECORD;
    }
    __device__ void fetch(int turn) const {
        if (turn >= turns) return;
        u64* const full = s.full[BACKWARD] + turn;
        expect_bytes(full, TURN_BYTES);
        bulk_copy(shared_address(s.factors) + turn % SLOTS * TURN_BYTES, val + turn * (TURN * RECORD), TURN_BYTES, full, policy);
    }
    __device__ void prefetch(int turn) const {
        if (turn < turns) bring(val + turn * (TURN * RECORD), TURN_BYTES, policy);
    }
    __device__ void begin(int lane) const {
        if (lane > 0) return;
#pragma unroll 1
        for (int turn = 0; turn < SLOTS; ++turn) fetch(turn);
#pragma unroll 1
        for (int turn = SLOTS; turn < SLOTS + PREFETCH; ++turn) prefetch(turn);
    }
    __device__ void serve(int lane) const {
        static_assert(SIDE_TURNS > SLOTS, "sides are cleared before they are looked for");
        const double none = __longlong_as_double(ABSENT);
#pragma unroll 1
        for (int turn = 0; turn < turns; ++turn) {
            wait(s.solved[BACKWARD] + turn);
            const int first = turn % SIDE_TURNS * TURN;
#pragma unroll 1
            for (int n = lane; n < TURN * LY; n += 32) store_sides(shared_address(s.sides_x + (first + n / LY) * SIDES_X + n % LY * 2), none, none);
#pragma unroll 1
            for (int n = lane; n < TURN * LX; n += 32) store_sides(shared_address(s.sides_y + (first + n / LX) * SIDES_Y + n % LX * 2), none, none);
            __syncwarp();
            if (lane == 0) {
                fetch(turn + SLOTS);
                prefetch(turn + SLOTS + PREFETCH);
            }
            arrive_if(lane == 0, shared_address(s.cleared[BACKWARD] + turn));
        }
    }
};

// What a step needs of its own cells, numbered in the order of the march, x first.
template <bool BACKWARD>
struct Rows {
    double c[CELLS];
    Stored x[CELLS], y[CELLS], z[CELLS];

    __device__ void come(u32 own, u32 factors) {
        constexpr u32 UNIT = 64 * sizeof(Stored);
        if constexpr (BACKWARD) load_pair(own + 512, c[1], c[0]), load_pair(own, c[3], c[2]);
        else load_pair(own, c[0], c[1]), load_pair(own + 512, c[2], c[3]);
#pragma unroll
        for (int k = 0; k < CELLS; ++k) load_pair(factors + k * UNIT, x[k], y[k]);
#pragma unroll
        for (int k = 0; k < CELLS; k += 2) load_pair(factors + (4 + k / 2) * UNIT, z[k], z[k + 1]);
    }
};

// Sides of a step.
struct Sides {
    double x[2], y[2];

    __device__ void look(u32 from_x, u32 from_y) { load_sides(from_x, x[0], x[1]), load_sides(from_y, y[0], y[1]); }
    // Whether one is absent, of any lane: the upper half of a value tells.
    __device__ bool missing() const {
        const u32 most = max(max((u32)__double2hiint(x[0]), (u32)__double2hiint(x[1])), max((u32)__double2hiint(y[0]), (u32)__double2hiint(y[1])));
        return __any_sync(FULL, most == 0xffffffffu);
    }
};

// The worker. At the end of a step it reads what the next one needs of the step's own values, and what the one after it
// needs of all else.
template <bool BACKWARD>
__device__ void march(const Pencils& b, const Shared& s, int lane, bool odd) {
    const Place<BACKWARD> at(b);
    const int i = BACKWARD ? LX - 1 - lane % LX : lane % LX, j = BACKWARD ? LY - 1 - lane / LX : lane / LX;
    constexpr u32 STEP = COLUMNS * 8, STRIDE = BACKWARD ? 0u - STEP : STEP, STEP_X = SIDES_X * 8, STEP_Y = SIDES_Y * 8;
    u32 own = shared_address(s.x + 2 * lane) + (BACKWARD ? (Shared::steps(b) - 1) * STEP : 0);
    // sides that come, or zeros
    const u32 sides_x = shared_address(s.sides_x + 2 * (i == 0 && at.before_x ? j : LY));
    const u32 sides_y = shared_address(s.sides_y + 2 * (j == 0 && at.before_y ? i : LX));
    // values before, from sides or from what the lanes before solved a step ago
    const u32 stride_x = i == 0 ? STEP_X : STRIDE, stride_y = j == 0 ? STEP_Y : STRIDE;
    constexpr u32 LAST = BACKWARD ? 0 : 512 + 8, OTHER = BACKWARD ? 512 : 8;
    const u32 back_x = own - STRIDE + (BACKWARD ? 16u : 0u - 16u), back_y = own - STRIDE + (BACKWARD ? LX * 16u : 512u - LX * 16u);
    // what goes to the thread blocks after this one
    const bool goes_x = i == LX - 1 && at.after_x, goes_y = j == LY - 1 && at.after_y;
    const int along_x = BACKWARD ? -1 : 1, along_y = BACKWARD ? -b.across : b.across;
    double* to_x = edge(b, odd, BACKWARD, goes_x ? (int)blockIdx.x + along_x : 0, false) + 2 * j - EARLIER_X * 2 * LY;
    double* to_y = edge(b, odd, BACKWARD, goes_y ? (int)blockIdx.x + along_y : 0, true) + 2 * i - EARLIER_Y * 2 * LX;
    const u32 place = shared_address(s.factors) + lane * 2 * sizeof(Stored);
    constexpr u32 EACH = RECORD * sizeof(Stored);

    double v[CELLS] = {}, x[2], y[2];
    // of this step and of the next one
    Rows<BACKWARD> rows[2];
    Sides next;
    int slot = 0, side_slot = 0;
    wait(s.full[BACKWARD]);
    rows[0].come(own, place), rows[1].come(own + STRIDE, place + EACH);
    do next.look(sides_x, sides_y);
        while (next.missing());
    u32 from_x = i == 0 ? sides_x : back_x + OTHER, last_x = i == 0 ? sides_x + 8 : back_x + LAST, from_y = j == 0 ? sides_y : back_y;
    const auto before = [&] {
        load_one(from_x, x[0]), load_one(last_x, x[1]), load_sides(from_y, y[0], y[1]);
        // backward a pair is stored in natural order
        if (BACKWARD) { const double other = y[0]; y[0] = y[1], y[1] = other; }
    };
    before();
    next.look(sides_x + STEP_X, sides_y + STEP_Y);
    for (int turn = 0; turn < b.turns; ++turn) {
        const bool more = turn + 1 < b.turns;
        const u32 factors = place + slot * TURN_BYTES;
        slot = slot + 1 == SLOTS ? 0 : slot + 1;
        const u32 next_factors = place + slot * TURN_BYTES;
        const u32 here_x = sides_x + side_slot * (TURN * STEP_X), here_y = sides_y + side_slot * (TURN * STEP_Y);
        side_slot = side_slot + 1 == SIDE_TURNS ? 0 : side_slot + 1;
        const u32 next_x = sides_x + side_slot * (TURN * STEP_X), next_y = sides_y + side_slot * (TURN * STEP_Y);
#pragma unroll
        for (int q = 0; q < TURN; ++q) {
            Rows<BACKWARD>& row = rows[q % 2];
            const auto look = [&](int q) {
                next.look(q < TURN ? here_x + q * STEP_X : next_x + (q - TURN) * STEP_X, q < TURN ? here_y + q * STEP_Y : next_y + (q - TURN) * STEP_Y);
            };
            double sum[CELLS];
#pragma unroll
            for (int k = 0; k < CELLS; ++k) sum[k] = fma(-(double)row.z[k], v[k], row.c[k]);
            const bool absent_next = next.missing() && (q + 1 < TURN || more);
            // the last to come is that of the lane before of its last cell
            v[0] = fma(-(double)row.y[0], y[0], fma(-(double)row.x[0], x[0], sum[0]));
            v[1] = fma(-(double)row.y[1], y[1], fma(-(double)row.x[1], v[0], sum[1]));
            v[2] = fma(-(double)row.x[2], x[1], fma(-(double)row.y[2], v[0], sum[2]));
            v[3] = fma(-(double)row.y[3], v[1], fma(-(double)row.x[3], v[2], sum[3]));
            if constexpr (BACKWARD) store_pair(own + q * STRIDE + 512, v[1], v[0]), store_pair(own + q * STRIDE, v[3], v[2]);
            else store_pair(own + q * STRIDE, v[0], v[1]), store_pair(own + q * STRIDE + 512, v[2], v[3]);
            __syncwarp();
            if (q + 1 == TURN) {
                from_x = i == 0 ? next_x : from_x + STRIDE, last_x = i == 0 ? next_x + 8 : last_x + STRIDE, from_y = j == 0 ? next_y : from_y + STRIDE;
            } else {
                from_x += stride_x, last_x += stride_x, from_y += stride_y;
            }
            before();
            // not before the first step of the next thread block
            publish_if(goes_x && (q >= EARLIER_X || q + TURN >= EARLIER_X && turn > 0 || turn > 1), to_x + q * 2 * LY, v[1], v[3]);
            publish_if(goes_y && (q >= EARLIER_Y || q + TURN >= EARLIER_Y && turn > 0), to_y + q * 2 * LX, v[BACKWARD ? 3 : 2], v[BACKWARD ? 2 : 3]);
            if (q + 2 == TURN && more) wait(s.full[BACKWARD] + turn + 1);
            if (absent_next) {
                do look(q + 1);
                    while (next.missing());
                before();
            }
            look(q + 2);
            row.come(q + 2 < TURN || more ? own + (q + 2) * STRIDE : own, q + 2 < TURN ? factors + (q + 2) * EACH : next_factors + (q + 2 - TURN) * EACH);
        }
        __syncwarp();
        arrive_if(lane == 0, shared_address(s.solved[BACKWARD] + turn));
        own += TURN * STRIDE;
        to_x += TURN * 2 * LY, to_y += TURN * 2 * LX;
    }
}

// Brings sides from the thread block before this one along an axis.
template <bool BACKWARD, bool ALONG_Y>
__device__ void load_sides_from(const Pencils& b, const Shared& s, int lane, bool odd) {
    const Place<BACKWARD> at(b);
    if (!(ALONG_Y ? at.before_y : at.before_x)) return;
    // lanes have pairs of a step, and steps in turn
    constexpr int PAIRS = ALONG_Y ? LX : LY, STRIDE = 32 / PAIRS, NUMBERS = ALONG_Y ? SIDES_Y : SIDES_X, EDGE = 2 * PAIRS;
    // of its own steps, a lane asks for some at once
    constexpr int AT_ONCE = ALONG_Y ? 4 : 2;
    const int pair = lane % PAIRS;
    const double* const from = edge(b, odd, BACKWARD, blockIdx.x, ALONG_Y) + 2 * pair;
    double* const later = edge(b, !odd, BACKWARD, blockIdx.x, ALONG_Y) + 2 * pair;
    const u32 to = shared_address((ALONG_Y ? s.sides_y : s.sides_x) + 2 * pair);
    u64* const cleared = s.cleared[BACKWARD];
    const double none = __longlong_as_double(ABSENT);
    const int steps = Shared::steps(b), come = steps - (ALONG_Y ? EARLIER_Y : EARLIER_X);
    // a miss of the L2 cache would hold up what comes next
    if (lane == 0) bring(from, steps * EDGE * 8);
    // turns for whose sides there is room; step, and its place in the ring
    int room = SIDE_TURNS, t = lane / PAIRS, ring = t;
    // until the first has come, nobody asks for others: many thread blocks wait
    for (bool begun = false; __any_sync(FULL, t < steps); begun = __any_sync(FULL, t >= STRIDE)) {
        double v[AT_ONCE][2];
#pragma unroll
        for (int n = 0; n < AT_ONCE; ++n) {
            const int step = t + n * STRIDE;
            v[n][0] = v[n][1] = step < come ? none : 0.0;
            load_published_if(step < come && (begun || step == 0), from + step * EDGE, v[n][0], v[n][1]);
        }
        if (room < b.turns && passed(cleared + room - SIDE_TURNS)) ++room;
        const int end = min(steps, room * TURN);
        bool there = true;
#pragma unroll
        for (int n = 0; n < AT_ONCE; ++n) {
            there = there && t < end && !absent(v[n][0]) && !absent(v[n][1]);
            store_sides_if(there, to + ring * (NUMBERS * 8), v[n][0], v[n][1]);
            publish_if(there, later + t * EDGE, none, none);
            t += there ? STRIDE : 0, ring += there ? STRIDE : 0;
            ring -= ring >= SIDE_STEPS ? SIDE_STEPS : 0;
        }
    }
}

template <bool BACKWARD>
__device__ void load(const Pencils& b, const Shared& s, bool along_y, int lane, bool odd) {
    if (along_y) load_sides_from<BACKWARD, true>(b, s, lane, odd);
    else load_sides_from<BACKWARD, false>(b, s, lane, odd);
}

// A pencil of a porter's lane.
struct Pencil {
    // First cell in natural order, cells of a plane; place in the vector and steps before its first cell.
    long long cell, plane;
    int place, lag;
    bool inside;

    __device__ Pencil(const Pencils& b, int porter, int lane) {
        const int px = lane % PX, py = porter * 2 + lane / PX;
        const int x = blockIdx.x % b.across * PX + px, y = blockIdx.x / b.across * PY + py;
        inside = x < b.nx && y < b.ny;
        cell = inside ? (long long)y * b.nx + x : 0;
        plane = (long long)b.nx * b.ny;
        place = py % 2 * 64 + (px / 2 + py / 2 * LX) * 2 + px % 2;
        lag = px / 2 + py / 2;
    }
    // Zeros where there is no cell.
    __device__ void pad(const Pencils& b, const Shared& s) const {
        const int steps = Shared::steps(b), first = inside ? lag : steps, end = inside ? lag + b.nz : steps;
#pragma unroll 1
        for (int t = 0; t < first; ++t) s.x[t * COLUMNS + place] = 0.0;
#pragma unroll 1
        for (int t = end; t < steps; ++t) s.x[t * COLUMNS + place] = 0.0;
    }
};

// Brings r, and multiplies what is solved forward, once nobody reads it any more, by the inverse diagonal.
__device__ void take(const Pencils& b, const Shared& s, int porter, int lane) {
    const Pencil own(b, porter, lane);
    double* const x = s.x + own.place;
    const int steps = Shared::steps(b);
    // planes of a turn are solved so many turns later, and with these the step in which they are read
    constexpr int LATER = 2;
    static_assert(LATER * TURN >= LX + LY - 1, "the last lane is at its end");
#pragma unroll 1
    for (int turn = 0; turn < b.turns + PREFETCH + LATER; ++turn) {
        const int solved = turn - PREFETCH, done = solved - LATER;
        double d[TURN];
#pragma unroll
        for (int q = 0; q < TURN; ++q) {
            const int z = done * TURN + q;
            d[q] = z >= 0 && z < b.nz && own.inside ? (double)__ldg(b.diagonal + own.cell + z * own.plane) : 0.0;
        }
        if (solved >= 0) wait(s.solved[0] + min(solved, b.turns - 1));
        if (turn < b.turns) {
#pragma unroll
            for (int q = 0; q < TURN; ++q) {
                const int z = turn * TURN + q;
                if (z < b.nz && own.inside)
                    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;"
                                 : : "r"(shared_address(x + (z + own.lag) * COLUMNS)), "l"(b.r + own.cell + z * own.plane) : "memory");
            }
            arrive_with_copies(s.full[0] + turn);
        }
        if (done >= 0) {
#pragma unroll
            for (int q = 0; q < TURN; ++q)
                if (done * TURN + q + own.lag < steps) x[(done * TURN + q + own.lag) * COLUMNS] *= d[q];
        }
    }
}

// Takes z away.
__device__ void give(const Pencils& b, const Shared& s, int porter, int lane) {
    const Pencil own(b, porter, lane);
    const double* const x = s.x + own.place;
    const int steps = Shared::steps(b);
    for (int turn = 0; turn < b.turns; ++turn) {
        wait(s.solved[1] + turn);
        const int from = steps - (turn + 1) * TURN;
#pragma unroll
        for (int q = TURN - 1; q >= 0; --q)
            if (from + q < b.nz && own.inside) __stcs(b.z + own.cell + (from + q) * own.plane, x[(from + q + own.lag) * COLUMNS]);
    }
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1) pencils(const __grid_constant__ Pencils b) {
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) double memory[];
    const Shared s(b, memory);
    // the same for all lanes, as the compiler sees
    const int warp = __shfl_sync(FULL, threadIdx.x / 32, 0), lane = threadIdx.x % 32, porter = warp < FETCHER ? 0 : warp - FETCHER;
    const u32 launch = b.launches[blockIdx.x];
    const bool odd = launch & 1;
    s.prepare(b);
    s.clear_sides();
    if (warp > LOADER_Y && warp != FETCHER) Pencil(b, porter, lane).pad(b, s);
    __syncthreads();
    if (warp == WORKER) {
        march<false>(b, s, lane, odd);
    } else if (warp == FETCHER) {
        const Fetcher<false> fetcher(b, s);
        fetcher.begin(lane);
        fetcher.serve(lane);
        Fetcher<true>(b, s).begin(lane);
    } else if (warp == LOADER_X || warp == LOADER_Y) {
        load<false>(b, s, warp == LOADER_Y, lane, odd);
    } else {
        take(b, s, porter, lane);
    }
    __syncthreads();
    s.clear_sides();
    __syncthreads();
    if (warp == WORKER) march<true>(b, s, lane, odd);
    else if (warp == FETCHER) Fetcher<true>(b, s).serve(lane);
    else if (warp == LOADER_X || warp == LOADER_Y) load<true>(b, s, warp == LOADER_Y, lane, odd);
    else give(b, s, porter, lane);
    if (lane == 0 && warp == 0) b.launches[blockIdx.x] = launch + 1;
#endif
}

// Factors into the order of the steps, by way of shared memory: a thread block for each thread block and turn of a
// march, a thread for each of its pencils. Neighbours along x read cells of one plane, or a turn of planes apart, and
// so numbers that follow one another.
template <bool BACKWARD>
__device__ void lay_out(const Pencils& b, const Triangle& of, Stored* __restrict__ to) {
    __shared__ __align__(16) Stored records[TURN * RECORD];
    const int block = blockIdx.x / b.turns, turn = blockIdx.x % b.turns;
    const int dx = threadIdx.x % PX, dy = threadIdx.x / PX, lag = dx / 2 + dy / 2;
    const int x = block % b.across * PX + dx, y = block / b.across * PY + dy;
    const u32 line = b.nx, plane = b.nx * b.ny;
    // step q of all is step (q + lag) % TURN of this thread
    const auto z = [&](int q) { return turn * TURN + (q + lag) % TURN - lag; };
    const auto row = [&](int q) { return z(q) * plane + y * line + x; };
    u32 first[TURN], count[TURN];
#pragma unroll
    for (int q = 0; q < TURN; ++q) {
        const bool there = x < b.nx && y < b.ny && (u32)z(q) < (u32)b.nz;
        first[q] = there ? __ldg(of.row_ptr + row(q)) : 0, count[q] = there ? __ldg(of.row_ptr + row(q) + 1) - first[q] : 0;
    }
    double along[TURN][3] = {};
#pragma unroll
    for (int q = 0; q < TURN; ++q) {
        const bool near[3] = {BACKWARD ? x + 1 < b.nx : x > 0, BACKWARD ? y + 1 < b.ny : y > 0,
                              BACKWARD ? z(q) + 1 < b.nz : z(q) > 0};
        // where no neighbour is missing, columns need not be read
        if (count[q] == (u32)(near[0] + near[1] + near[2])) {
            const double* val = of.val + first[q];
#pragma unroll
            for (int n = 0; n < 3; ++n) {
                const int axis = BACKWARD ? n : 2 - n;
                if (near[axis]) along[q][axis] = __ldg(val++);
            }
            count[q] = 0;
        }
    }
#pragma unroll
    for (int q = 0; q < TURN; ++q)
#pragma unroll 1
        for (u32 at = first[q]; at < first[q] + count[q]; ++at) {
            const u32 far = BACKWARD ? of.col_ind[at] - row(q) : row(q) - of.col_ind[at];
            const int axis = far == plane ? 2 : far == line ? 1 : 0;
#pragma unroll
            for (int n = 0; n < 3; ++n)
                if (n == axis) along[q][n] = of.val[at];
        }
    const int cell = dx % 2 + dy % 2 * 2, k = BACKWARD ? CELLS - 1 - cell : cell, lane = dy / 2 * LX + dx / 2;
#pragma unroll
    for (int q = 0; q < TURN; ++q) {
        const int step = (q + lag) % TURN;
        Stored* const record = records + (BACKWARD ? TURN - 1 - step : step) * RECORD + lane * 2;
        record[k * 64] = (Stored)along[q][0], record[k * 64 + 1] = (Stored)along[q][1];
        record[(4 + k / 2) * 64 + k % 2] = (Stored)along[q][2];
    }
    __syncthreads();
    uint4* const place = (uint4*)(to + (size_t)(block * b.turns + (BACKWARD ? b.turns - 1 - turn : turn)) * (TURN * RECORD));
    for (u32 n = threadIdx.x; n < TURN_BYTES / sizeof(uint4); n += COLUMNS) place[n] = ((const uint4*)records)[n];
}

extern "C" __global__ void __launch_bounds__(COLUMNS, 7)
pencils_values(const __grid_constant__ Pencils b, Triangle lower, Triangle upper, Stored* __restrict__ to_lower,
               Stored* __restrict__ to_upper) {
    if (blockIdx.y) lay_out<true>(b, upper, to_upper);
    else lay_out<false>(b, lower, to_lower);
}
