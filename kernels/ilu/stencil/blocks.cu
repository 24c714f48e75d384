// Factorisation of blocks on a pattern that is one stencil on a box, as a wavefront: ilu/stencil/entries.cu for
// blocks of two and more.
//
// A lane has one row of the blocks of its column's row. A_ip U'_pj and A_ip D_p take the blocks of U' and D from
// shared memory, where all lanes of a column read the same numbers; the diagonal block is inverted among the lanes of
// its column. The factors are written where they belong, in the order of their pattern. Neighbouring tiles
// exchange what is handed on as in sptrsv/wavefront.cu.
#include "common.cuh"

// Bulk copies came with compute capability 9.0.
#if BS > 1 && BS <= 32 && __CUDA_ARCH__ >= 900

#include "ilu/stencil/exchange.cuh"

// Loads that a lane of a loader has under way at a time, of several numbers and steps.
constexpr int LOADS = WANTED * (int)BB;
constexpr int OF_LANE = LOADS <= 64 ? 1 : LOADS <= 128 ? 2 : LOADS <= 512 ? 4 : 8;
constexpr int LOADERS = (LOADS + 32 * OF_LANE - 1) / (32 * OF_LANE);
constexpr int STEPPING = (WARPS + LOADERS) * 32, THREADS = STEPPING + WARPS * 32;

// The ring: rows of steps, in them what is handed on, in it columns of blocks, row-major and a little apart.
constexpr int BLOCK = BS % 2 ? BB + (BB % 2 ? 0 : 1) : BB + 2;
constexpr int COLUMNS = LINES * NARROW, NUMBER = COLUMNS * BLOCK, ROW = HANDED * NUMBER;
__device__ constexpr int column_in_ring(int ty, int tz) { return ((tz + HZ) * NARROW + ty + HY) * BLOCK; }
constexpr int MEMORY = 222 * 1024, COLUMN_A = (OF_A * BB + 1) / 2 * 2, BROUGHT = PATCH * COLUMN_A;
__device__ constexpr int shared_bytes(int turns) {
    return 8 * ((RING * ROW + 1) / 2 * 2 + WARPS * turns * (BROUGHT + 2) + BB);
}
constexpr int TURN = 1, TURNS = shared_bytes(4) <= MEMORY ? 4 : shared_bytes(3) <= MEMORY ? 3 : 2;
constexpr int SHARED = shared_bytes(TURNS);
static_assert(SHARED <= MEMORY, "a tile is too large for the shared memory");

EXCHANGE_LAYOUT(THREADS, SHARED, TURN, HANDED * BB);

// to += sign * row * block, block row-major in shared memory.
template <int SIGN>
__device__ inline void multiply(double (&to)[BS], const double (&row)[BS], const double* block) {
#pragma unroll
    for (int k = 0; k < BS; ++k) {
        const double v = SIGN * row[k];
        if (BS % 2 == 0) {
#pragma unroll
            for (int c = 0; c < BS; c += 2) {
                const double2 two = *reinterpret_cast<const double2*>(block + k * BS + c);
                to[c] = fma(v, two.x, to[c]);
                to[c + 1] = fma(v, two.y, to[c + 1]);
            }
        } else {
#pragma unroll
            for (int c = 0; c < BS; ++c) to[c] = fma(v, block[k * BS + c], to[c]);
        }
    }
}
__device__ inline void read_row(double (&row)[BS], const double* from) {
#pragma unroll
    for (int c = 0; c < BS; ++c) {
        if (BS % 2 == 0 && c % 2 == 0) {
            const double2 two = *reinterpret_cast<const double2*>(from + c);
            row[c] = two.x, row[c + 1 < BS ? c + 1 : c] = two.y;
        } else if (BS % 2) {
            row[c] = from[c];
        }
    }
}
__device__ inline void write_row(double* to, const double (&row)[BS]) {
#pragma unroll
    for (int c = 0; c < BS; ++c) {
        if (BS % 2 == 0 && c % 2 == 0) {
            *reinterpret_cast<double2*>(to + c) = make_double2(row[c], row[c + 1 < BS ? c + 1 : c]);
        } else if (BS % 2) {
            to[c] = row[c];
        }
    }
}

// yes ? a : b, which the compiler otherwise takes for a look into an array in memory.
__device__ inline double either(bool yes, double a, double b) {
    double v;
    asm("{\n"
        ".reg .pred yes;\n"
        "setp.ne.u32 yes, %3, 0;\n"
        "selp.f64 %0, %1, %2, yes;\n"
        "}"
        : "=d"(v)
        : "d"(a), "d"(b), "r"((u32)yes));
    return v;
}

// A pivot below this part of its row's largest entry counts as zero, as in invert.cuh.
constexpr double SINGULAR = 16.0 * 2.220446049250313e-16;

// An inverse among the lanes of a column, row by row: where rows and columns belong (invert.cuh), the step without
// a pivot or NONE, and the best candidate there relative to its row.
struct Inverted {
    u32 row, column, failed;
    double pivot;
};

// Gauss-Jordan with column pivoting; lane `first` has row 0.
__device__ inline Inverted invert(double (&a)[BS], int first, u32 r) {
    double largest = 0.0, poison = 0.0;
#pragma unroll
    for (int c = 0; c < BS; ++c) {
        largest = fmax(largest, fabs(a[c]));
        poison += a[c] * 0.0;
    }
    constexpr u32 ROWS = BS == 32 ? FULL : (1u << BS) - 1;
    const bool bad = (__ballot_sync(FULL, poison != 0.0) >> first & ROWS) != 0;
    Inverted done{0, 0, bad ? 0 : NONE, 0.0};
    u32 used = 0;
#pragma unroll(BS <= 6 ? BS : 1)
    for (int k = 0; k < BS; ++k) {
        const bool own = r == (u32)k;
        u32 best = 0;
#pragma unroll
        for (int c = 0; c < BS; ++c) {
            const u32 size = __double2hiint(a[c]) & 0x7fffffe0;
            if (!(used >> c & 1)) best = max(best, size | (31 - c));
        }
        const u32 p = 31 - __shfl_sync(FULL, best, first + k) % 32;
        used |= 1u << p;
        double held = a[0];
#pragma unroll
        for (int c = 1; c < BS; ++c) held = either(p == (u32)c, a[c], held);
        const double at = __shfl_sync(FULL, held, first + k), most = __shfl_sync(FULL, largest, first + k);
        if (!(fabs(at) > SINGULAR * most) && done.failed == NONE) {
            done.failed = k;
            done.pivot = most > 0.0 ? fabs(at) / most : 0.0;
        }
        const double inverse = inverse_pivot(at);
        const double factor = own ? inverse : held * inverse;
        if (own) done.row = p;
        if (r == p) done.column = k;
#pragma unroll
        for (int c = 0; c < BS; ++c) {
            const double above = __shfl_sync(FULL, a[c], first + k);
            a[c] = either(p == (u32)c, factor, fma(-above, factor, own ? 0.0 : a[c]));
        }
    }
    return done;
}

__device__ inline u32 before(u32 bits, int at) { return __popc(bits & ((1u << at) - 1)); }

static_assert(ENTRIES <= 32, "a row has more entries than a word has bits");

// A warp that computes a patch of columns.
struct Worker {
    const Tiles& box;
    const double shift;
    const Factors& f;
    double* const ring;
    const Desk desk;
    // lane, or the last that has work
    const int lane;
    const bool idle;
    Turnstile<TURNS> turn;
    // own row of the block, lane of row 0
    int r, first;
    // own column in the ring; first cell of it, or -1; which entries its rows have, but for the ends
    double* own;
    int cells;
    u32 lines;
    // boundary values of step 0 of the own row, those to be marked, or null
    double* out;
    double* mark;
    bool out_y, out_z;
    // the row in work: its entries, and where its blocks of L and U' begin
    double w[ENTRIES][BS];
    u32 here, l0, u0;

    __device__ double* row(int s) const { return own + (s & (RING - 1)) * ROW; }

    // What the cell at offset p hands on.
    __device__ const double* neighbour(int p, int s) const {
        return row(s - delay(p)) + (offset(p, 2) * NARROW + offset(p, 1)) * BLOCK;
    }

    // The part of offset p in the row in work.
    __device__ void take(int p, int s) {
        const double* const at = neighbour(p, s);
        double l[BS] = {};
#pragma unroll
        for (int q = 0; q < N; ++q)
            if (target(p, q) >= 0) multiply<-1>(w[target(p, q) < 0 ? 0 : target(p, q)], w[p], at + (1 + q) * NUMBER);
        multiply<1>(l, w[p], at);
        const bool there = !idle && (here >> rank(p) & 1);
        double* const to = f.lower + (size_t)(l0 + before(here, rank(p))) * BB + r;
#pragma unroll
        for (int c = 0; c < BS; ++c)
            if (there) to[c * BS] = l[c];
    }

    // Begins the row of cell x at step s.
    __device__ void begin(int s, int x) {
        const bool inside = cells >= 0 && (u32)x < (u32)box.nx;
        here = 0;
#pragma unroll
        for (int dx = -reach(); dx <= reach(); ++dx)
            if ((u32)(x + dx) < (u32)box.nx) here |= (u32)positions_at(dx);
        here = inside ? here & lines : 0;
        const u32 cell = inside ? cells + x : 0;
        l0 = __ldg(&f.lower_pattern.row_ptr[cell]);
        u0 = __ldg(&f.upper_pattern.row_ptr[cell]);
        wait(desk.brought + turn.slot, turn.round);
        constexpr u32 GIVEN_HERE = (u32)given_positions();
        const u32 a = here & GIVEN_HERE;
        const double* const from = desk.rows + turn.slot * BROUGHT + lane / BS * COLUMN_A + r * (__popc(a) * BS);
#pragma unroll
        for (int e = 0; e < ENTRIES; ++e) {
            const bool there = a >> position(e) & 1;
#pragma unroll
            for (int c = 0; c < BS; ++c) w[e][c] = e == N && !inside && c == r ? 1.0 : 0.0;
            if (GIVEN_HERE >> position(e) & 1) {
                double v[BS];
                read_row(v, from + before(a, position(e)) * BS);
#pragma unroll
                for (int c = 0; c < BS; ++c) w[e][c] = there ? v[c] : w[e][c];
            }
        }
#pragma unroll
        for (int c = 0; c < BS; ++c)
            if (c == r) w[N][c] += shift;
        arrive(desk.read + turn.slot);
        turn.pass();
#pragma unroll
        for (int p = 0; p < EARLY; ++p) take(p, s);
    }

    // Ends the row of cell x at step s, and hands it on.
    __device__ void end(int s, int x) {
#pragma unroll
        for (int p = EARLY; p < N; ++p) take(p, s);
        const Inverted d = invert(w[N], first, r);
        const bool inside = here != 0, fine = d.failed == NONE;
        double* const to = row(s);
        // rows and columns of the inverse to their places, the rest of the row for the lanes of this column
#pragma unroll
        for (int c = 0; c < BS; ++c) {
            const u32 column = __shfl_sync(FULL, d.column, first + c);
            if (!idle) to[d.row * BS + column] = fine ? w[N][c] : 0.0;
        }
        if (!idle) {
#pragma unroll
            for (int q = 0; q < N; ++q) write_row(to + (1 + q) * NUMBER + r * BS, w[N + 1 + q]);
        }
        __syncwarp();
        read_row(w[N], to + r * BS);
#pragma unroll
        for (int q = 0; q < N; ++q) {
#pragma unroll
            for (int c = 0; c < BS; ++c) w[N + 1 + q][c] = 0.0;
            multiply<1>(w[N + 1 + q], w[N], to + (1 + q) * NUMBER);
        }
        __syncwarp();
        if (!fine)
#pragma unroll
            for (int e = N; e < ENTRIES; ++e)
#pragma unroll
                for (int c = 0; c < BS; ++c) w[e][c] = 0.0;
        if (idle) return;
#pragma unroll
        for (int q = 0; q < N; ++q) write_row(to + (1 + q) * NUMBER + r * BS, w[N + 1 + q]);
        if (!inside) return;
        const u32 cell = cells + x;
        double* const diagonal = f.diagonal + (size_t)cell * BB + r;
#pragma unroll
        for (int c = 0; c < BS; ++c) diagonal[c * BS] = w[N][c];
#pragma unroll
        for (int q = 0; q < N; ++q) {
            const bool there = here >> position(N + 1 + q) & 1;
            double* const u = f.upper + (size_t)(u0 + before(here >> (N + 1), position(N + 1 + q) - N - 1)) * BB + r;
#pragma unroll
            for (int c = 0; c < BS; ++c)
                if (there) u[c * BS] = w[N + 1 + q][c];
        }
        if (!fine && r == 0) {
            *diagonal = d.pivot;
            atomicMin(f.error, (u64)cell << 32 | d.failed);
        }
    }

    // Boundary values of step u from the start of the march.
    __device__ void publish(int u) const {
        if (!out) return;
        const size_t at = (size_t)u * (BOUNDARY * HANDED * BB);
#pragma unroll
        for (int n = 0; n < HANDED; ++n) {
            if (!((wanted(2, n) && out_z) || (wanted(1, n) && out_y))) continue;
#pragma unroll
            for (int c = 0; c < BS; ++c) {
                store_relaxed(out + at + n * BB + c, arrived(w[N + n][c]));
                mark[at + n * BB + c] = __longlong_as_double(ABSENT);
            }
        }
    }

    __device__ void march(int k, int warp) {
        const int4 tile = box.tile[k], mine = box.warp[k * WARPS + warp];
        const int column = lane / BS;
        const int ty = warp % WARPS_Y * PATCH_Y + column % PATCH_Y;
        const int tz = warp / WARPS_Y * PATCH_Z + column / PATCH_Y;
        own = ring + column_in_ring(ty, tz);
        r = lane % BS;
        first = lane - r;
        cells = line(box, tile.x * TY + ty, tile.y * TZ + tz);
        lines = 0;
#pragma unroll
        for (int e = 0; e < ENTRIES; ++e)
            if (cells >= 0 && line(box, tile.x * TY + ty + step(e, 1), tile.y * TZ + tz + step(e, 2)) >= 0)
                lines |= 1u << position(e);
        const int place = boundary_place(ty, tz);
        out_y = ty >= TY - HY, out_z = tz >= TZ - HZ;
        const size_t at = place < 0 ? 0 : boundary_row<HANDED * BB>(box, k, tile.z) + (size_t)place * (HANDED * BB) + r * BS;
        out = place < 0 || idle || cells < 0 ? nullptr : f.exchange + at;
        mark = f.other + at;
        // the step before the first only begins that
#pragma unroll 1
        for (int u = -1; u < tile.w; ++u) {
            const int n = u - mine.x, s = tile.z + u, x = s - skew(ty, tz);
            const bool on = (u32)n < (u32)mine.y, next = (u32)(n + 1) < (u32)mine.y;
            if (on) {
                end(s, x);
                if (here) publish(u);
            } else if (u >= 0 && !idle) {
                for (int h = 0; h < HANDED; ++h)
                    for (int c = 0; c < BS; ++c) row(s)[h * NUMBER + r * BS + c] = 0.0;
            }
            if (next) begin(s + 1, x + 1);
            if (u >= 0) end_step<STEPPING>();
        }
    }
};

// What loaders await: blocks of U' and D.
struct Numbers {
    static constexpr int OF_LANE = ::OF_LANE, LOADERS = ::LOADERS, MEETING = STEPPING, ROW = ::ROW;
    static constexpr int OF_CELL = HANDED * BB, APART = BOUNDARY * OF_CELL;
    static constexpr bool LAST = false;
    const Tiles& box;
    const Factors& f;

    __device__ Awaited find(int at, int4 tile) const {
        if (at >= LOADS) return nothing_at(-1);
        const auto [ty, tz, number] = wish(at / BB);
        const int within = at % BB, place = number * NUMBER + column_in_ring(ty, tz) + within;
        return exchanged<OF_CELL>(box, f.exchange, tile, ty, tz, number * BB + within, place);
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, 1) stencil_factor(Tiles box, Matrix a, Factors f) {
    extern __shared__ __align__(16) double memory[];
    double* const ring = memory;
    double* const rows = ring + (RING * ROW + 1) / 2 * 2;
    // a lane without work reads past the last row
    u64* const brought = reinterpret_cast<u64*>(rows + WARPS * TURNS * BROUGHT + BB);
    u64* const read = brought + WARPS * TURNS;
    const int role = threadIdx.x / 32 / WARPS, warp = threadIdx.x / 32 % WARPS, lane = threadIdx.x % 32;
    for (int n = threadIdx.x; n < RING * ROW; n += THREADS) ring[n] = 0.0;
    for (int n = threadIdx.x; n < 2 * WARPS * TURNS; n += THREADS) prepare_barrier(brought + n, 32);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    const Desk desk = {rows + warp * TURNS * BROUGHT, brought + warp * TURNS, read + warp * TURNS};
    if (role == 0) {
        Worker worker{box, a.shift, f, ring, desk, min(lane, ACTIVE - 1), lane >= ACTIVE};
        for (int k = blockIdx.x; k < box.tiles; k += gridDim.x) worker.march(k, warp);
    } else if (role == 1) {
        Porter<TURN, TURNS, COLUMN_A> porter{box, a, desk, lane};
        for (int k = blockIdx.x; k < box.tiles; k += gridDim.x) porter.march(k, warp);
    } else {
        Loader<Numbers>{box, {box, f}, ring, (int)threadIdx.x - 2 * WARPS * 32}.march_all();
    }
}

#endif
