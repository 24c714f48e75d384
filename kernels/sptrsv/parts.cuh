// Triangular solves whose rows are cut into parts: what a thread block does for one of them.
//
// A part has rows of its own; a thread block marches through them, and the values that it computes stay in its
// shared memory, where the rows behind them find them after some 60 ns, against 1 us through the L2 cache.
//
// A part is kept in slices: a few block rows that do not depend on one another, as many as a warp holds with some
// lanes for each. Slices follow one another in the order in which their operands are expected. Of each row that
// SPLIT * BS lanes share, lane (s, r) takes row r of the blocks s, s + SPLIT, ...
//
// Who includes this has defined THREADS and WARPS.
#pragma once
#include "sptrsv/partition.cuh"
#include "stored.cuh"

// Lanes that share one row of a block row.
#ifndef SPLIT
#define SPLIT 1
#endif
// Blocks of a row that a lane has under way together; best the whole row.
#ifndef AHEAD
#define AHEAD (BS <= 2 ? 4 : BS <= 8 ? 2 : 1)
#endif

// Whether AHEAD is the length of the longest row.
#ifndef WHOLE
#define WHOLE 0
#endif

// Whether slices say how many lanes share a row; else SPLIT do.
#ifndef UNEVEN
#define UNEVEN 0
#endif

__device__ constexpr u32 logarithm(u32 n) { return n > 1 ? 1 + logarithm(n / 2) : 0; }
constexpr u32 LOG_SPLIT = logarithm(SPLIT);
static_assert(1 << LOG_SPLIT == SPLIT, "lanes add up in pairs");

// Rows of a slice, the logarithm of the lanes that share one, and lane groups.
__device__ inline u32 rows_of(const Slice& slice) { return UNEVEN ? slice.shape & 0xff : slice.shape; }
__device__ inline u32 sharing_of(const Slice& slice) { return UNEVEN ? slice.shape >> 8 : LOG_SPLIT; }
__device__ inline u32 groups_of(const Slice& slice) { return rows_of(slice) << sharing_of(slice); }

struct Parts {
    const Slice* slices;
    // Row of each place.
    const u32* order;
    // For block u of lane group h: word start + u * groups + h. A slot of shared memory where LOCAL is
    // set, else a row. A row ends with its block nearest to the diagonal, which is the last to be
    // known, and shorter rows begin with zeros.
    const u32* col_ind;
    // Its columns, each of the rows of all groups.
    const Stored* val;
    // First slices of the segments, and one past the last slice.
    const u32* segments;
    // First segments of the parts, and one past the last segment.
    const u32* parts;
    u32 count;
    // Slots of a region of shared memory, one segment's; 0 when every part is one segment.
    u32 region;
    // Slots, of which slot 0 holds zeros.
    u32 slots;
};

// Where a solve reads and writes.
struct Vectors {
    // Right-hand side of the forward solve.
    const double* r;
    // Inverse diagonal blocks, by which the backward solve multiplies y first.
    const Stored* diagonal;
    // Forward solution.
    double* y;
    double* z;
};

// "Not there yet": what has all bits of its upper half set. No arithmetic yields that.
constexpr long long ABSENT = -1;

__device__ inline bool absent(double v) { return __double2hiint(v) == -1; }

// A NaN of the input that looks like ABSENT would never arrive.
__device__ inline double arrived(double v) {
    return absent(v) ? __hiloint2double(0x7ff80000, __double2loint(v)) : v;
}

__device__ inline double load_shared(u32 address) {
    double v;
    asm volatile("ld.relaxed.cta.shared.f64 %0, [%1];" : "=d"(v) : "r"(address) : "memory");
    return v;
}

__device__ inline void store_shared(u32 address, double v) {
    asm volatile("st.relaxed.cta.shared.f64 [%0], %1;" : : "r"(address), "d"(v) : "memory");
}

// Whether the blocks of a row but the last are worked off before the last operand is there: worth a
// vote where they are much work.
constexpr bool IN_TWO = AHEAD > 1 && AHEAD * BS > 4;

// Bytes of a line of the L2 cache.
constexpr u32 LINE = 128;

// One block of a row, under way: address of the operand in shared memory, of zeros when it is not
// there but in the vector; else its row; the operand if it is in the vector; the lane's row of the block.
struct Ahead {
    u32 near, far;
    double x;
    Stored a[BS];
};

// What a lane knows of a slice before its values: the row, and where the first operands are.
struct Names {
    u32 row;
    u32 columns[AHEAD];
};

// One warp's share of a segment. With MARKS the forward solve leaves ABSENT in z for the backward solve, and that
// leaves it in y for the next forward solve, which must have been ordered by what stands between them.
template <bool BACKWARD, bool MARKS>
struct Warp {
    const Parts& t;
    const Vectors& v;
    // Lane, its group of lanes in the warp, its row of the block.
    u32 lane, h, r;
    // Address of slot 0 in shared memory.
    u32 known;

    // The slice of which lane `from` has the words.
    __device__ static Slice slice(uint4 words, u32 from) {
        Slice slice;
        slice.first = __shfl_sync(FULL, words.x, from);
        slice.start = __shfl_sync(FULL, words.y, from);
        const u32 shape = __shfl_sync(FULL, words.z, from);
        slice.shape = shape & 0xffff;
        slice.length = shape >> 16;
        slice.slot = __shfl_sync(FULL, words.w, from);
        return slice;
    }

    // Asks the L2 cache for the values and columns of a slice.
    __device__ void prefetch(const Slice& slice) const {
        const u32 blocks = groups_of(slice) * slice.length;
        const char* const values = reinterpret_cast<const char*>(t.val + (size_t)slice.start * BB);
        for (u32 at = lane * LINE; at < blocks * BB * (u32)sizeof(Stored); at += WARP * LINE) prefetch(values + at);
        const char* const columns = reinterpret_cast<const char*>(t.col_ind + slice.start);
        for (u32 at = lane * LINE; at < blocks * 4; at += WARP * LINE) prefetch(columns + at);
    }

    __device__ static void prefetch(const void* p) {
        asm volatile("prefetch.global.L2 [%0];" : : "l"(p));
    }

    // Block of the lane that is `u` blocks after the first of the slice, which may be negative.
    __device__ u32 column(const Slice& slice, int u) const {
        const u32 groups = groups_of(slice);
        return h < groups && u >= 0 ? __ldg(t.col_ind + slice.start + u * groups + h) : LOCAL;
    }

    // First block of the first window: windows end where rows end.
    __device__ static int first_window(const Slice& slice) {
        const int length = slice.length;
        return length - (length + (int)AHEAD - 1) / (int)AHEAD * (int)AHEAD;
    }

    __device__ Names names(const Slice& slice) const {
        Names names;
        names.row = h < groups_of(slice) ? __ldg(t.order + slice.first + (h >> sharing_of(slice))) : NONE;
        const int u0 = first_window(slice);
#pragma unroll
        for (u32 u = 0; u < AHEAD; ++u)
            names.columns[u] = slice.length == 0 ? LOCAL : column(slice, u0 + (int)u);
        return names;
    }

    // Starts the loads of a block of the lane.
    __device__ void fetch(Ahead& next, const Slice& slice, int u, u32 column, const double* x) const {
        const bool local = column & LOCAL;
        next.near = known + ((local ? column & ~LOCAL : 0) * BS + r) * 8;
        next.far = local ? NONE : column * BS + r;
        next.x = local ? 0.0 : load_relaxed(x + next.far);
        const u32 groups = groups_of(slice);
        const bool there = h < groups && u >= 0 && u < slice.length;
        const Stored* const a = t.val + (size_t)slice.start * BB + h * BS + r;
#pragma unroll
        for (u32 c = 0; c < BS; ++c)
            next.a[c] = there ? __ldg(a + (size_t)(u * BS + c) * groups * BS) : (Stored)0;
    }

    // Right-hand side: r_i, or D_i y_i.
    __device__ double start(u32 i) const {
        const size_t at = (size_t)i * BS;
        if (!BACKWARD) return v.r[at + r];
        double sum = 0.0;
        const Stored* const d = v.diagonal + (size_t)i * BB + r;
#pragma unroll(BS <= 8 ? BS : 8)
        for (u32 c = 0; c < BS; ++c) sum = fma((double)d[c * BS], v.y[at + c], sum);
        return sum;
    }

    // Waits for the operands that come through the L2 cache and takes them off the sum.
    __device__ void take_far(Ahead (&ahead)[AHEAD], const double* x, double& sum) const {
        bool far = false;
#pragma unroll
        for (u32 u = 0; u < AHEAD; ++u) far |= ahead[u].far != NONE;
        if (!__any_sync(FULL, far)) return;
        for (;;) {
            bool waiting = false;
#pragma unroll
            for (u32 u = 0; u < AHEAD; ++u) waiting |= absent(ahead[u].x);
            if (!__any_sync(FULL, waiting)) break;
#pragma unroll
            for (u32 u = 0; u < AHEAD; ++u)
                if (absent(ahead[u].x)) ahead[u].x = load_relaxed(x + ahead[u].far);
        }
#pragma unroll
        for (u32 u = 0; u < AHEAD; ++u) {
            if (BS > 1 && !__any_sync(FULL, ahead[u].far != NONE)) continue;
#pragma unroll
            for (u32 c = 0; c < BS; ++c) {
                const double xc = BS == 1 ? ahead[u].x : __shfl_sync(FULL, ahead[u].x, h * BS + c);
                sum = fma(-(double)ahead[u].a[c], xc, sum);
            }
        }
    }

    // Takes a block off the sum whose operand is in shared memory; `x` is the lane's entry of it.
    __device__ static void take(const Ahead& block, u32 r, double x, double& sum) {
        if (BS == 1) {
            sum = fma(-(double)block.a[0], x, sum);
            return;
        }
        double other = 0.0;
#pragma unroll
        for (u32 c = 0; c < BS; ++c) {
            double& to = c % 2 ? other : sum;
            to = fma(-(double)block.a[c], load_shared(block.near + (c - r) * 8), to);
        }
        sum += other;
    }

    // Waits for the operands that come through shared memory and takes them off the sum.
    __device__ void take_near(const Ahead (&ahead)[AHEAD], double& sum) const {
        const Ahead& latest = ahead[AHEAD - 1];
        for (;;) {
            double x[AHEAD];
#pragma unroll
            for (u32 u = 0; u < AHEAD; ++u) x[u] = load_shared(ahead[u].near);
            bool waiting = false;
#pragma unroll
            for (u32 u = 0; u + 1 < AHEAD; ++u) waiting |= absent(x[u]);
            double last = x[AHEAD - 1];
            const bool all = !__any_sync(FULL, waiting || absent(last));
            if (!all && (!IN_TWO || __any_sync(FULL, waiting))) continue;
#pragma unroll
            for (u32 u = 0; u + 1 < AHEAD; ++u) take(ahead[u], r, x[u], sum);
            if (!all)
                while (__any_sync(FULL, absent(last))) last = load_shared(latest.near);
            take(latest, r, last, sum);
            return;
        }
    }

    __device__ void run(u32 begin, u32 end) const {
        if (begin >= end) return;
        double* const x = BACKWARD ? v.z : v.y;
        // each lane has the words of one of the next 32 slices of the warp, and of the 32 after them
        const uint4* const all = reinterpret_cast<const uint4*>(t.slices);
        u32 held = begin + lane * WARPS;
        uint4 words = __ldg(all + min(held, end - 1)), later;
        Slice next = slice(words, 0);
        Names names = this->names(next);
        u32 at = 0;
        for (u32 s = begin; s < end; s += WARPS) {
            if (at == 0) {
                held += WARP * WARPS;
                later = __ldg(all + min(held, end - 1));
            }
            const Slice now = next;
            const u32 row = names.row;
            const u32 sharing = sharing_of(now);
            const bool first = row != NONE && h % (1u << sharing) == 0;
            const int length = now.length;
            int u0 = first_window(now);
            Ahead ahead[AHEAD];
#pragma unroll
            for (u32 u = 0; u < AHEAD; ++u) fetch(ahead[u], now, u0 + (int)u, names.columns[u], x);
            double sum = first ? start(row) : 0.0;
            // the names of the next slice, and the rest of the one after it
            if (++at == WARP) {
                words = later;
                at = 0;
            }
            next = slice(words, at);
            names = this->names(next);
            prefetch(at + 1 < WARP ? slice(words, at + 1) : slice(later, 0));
            if (MARKS) {
                __syncwarp();  // all lanes of a row have read y before one of them marks it
                if (first) (BACKWARD ? v.y : v.z)[(size_t)row * BS + r] = __longlong_as_double(ABSENT);
            }
            const u32 own = known + ((now.slot + (h >> sharing)) * BS + r) * 8;

            take_far(ahead, x, sum);
            take_near(ahead, sum);
            if constexpr (!WHOLE) {
                for (u0 += AHEAD; u0 < length; u0 += AHEAD) {
#pragma unroll
                    for (u32 u = 0; u < AHEAD; ++u)
                        fetch(ahead[u], now, u0 + (int)u, column(now, u0 + (int)u), x);
                    take_far(ahead, x, sum);
                    take_near(ahead, sum);
                }
            }
#pragma unroll(UNEVEN ? 1 : 5)
            for (u32 offset = (1u << sharing) / 2; offset; offset /= 2)
                sum += __shfl_down_sync(FULL, sum, offset * BS);
            if (first) {
                sum = arrived(sum);
                store_shared(own, sum);
                store_relaxed(x + (size_t)row * BS + r, sum);
            }
            if (BACKWARD && BS > 1 && names.row != NONE)
                prefetch(v.diagonal + (size_t)names.row * BB + r * BS);
        }
    }
};

// Marks slots begin..end as not there yet. All threads.
__device__ inline void clear(double* slots, u32 begin, u32 end) {
    for (u32 w = begin * BS + threadIdx.x; w < end * BS; w += THREADS)
        slots[w] = __longlong_as_double(ABSENT);
}

// One part of a triangle. A row waits for each value it needs: the value itself is the flag, in shared memory
// and, for what other thread blocks compute or what no longer is in shared memory, in the vector. All threads call
// it; `slots` is in shared memory.
template <bool BACKWARD, bool MARKS>
__device__ inline void solve_part(const Parts& t, const Vectors& v, u32 part, double* slots) {
    const u32 lane = threadIdx.x % WARP;
    const u32 known = static_cast<u32>(__cvta_generic_to_shared(slots));
    const Warp<BACKWARD, MARKS> warp = {t, v, lane, lane / BS, lane % BS, known};
    const u32 begin = t.parts[part], end = t.parts[part + 1];
    __syncthreads();
    clear(slots, 1, t.slots);
    if (threadIdx.x < BS) slots[threadIdx.x] = 0.0;
    for (u32 q = begin; q < end; ++q) {
        __syncthreads();
        // a region that no row reads until the next segment fills it
        const u32 free = 1 + (q + 1 - begin) % REGIONS * t.region;
        if (q + 1 - begin >= REGIONS) clear(slots, free, free + t.region);
        warp.run(t.segments[q] + threadIdx.x / WARP, t.segments[q + 1]);
    }
}
