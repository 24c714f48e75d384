// Solves by the colours of a lattice (sptrsv/colours/slices.cu says what colours are) in one launch, for scalar factors on
// a box of cells: each thread block has a part of the box and keeps its numbers in shared memory, from r
// over y to z, with those of the cells around it that its rows read. There, the columns of all rows of a colour
// are at the same distances, so that factors have no index.
//
// A colour takes a thread block some steps, in each of which a thread has a row or less: at most ENTRIES of its
// entries. The values of the next AHEAD steps are under way in registers, whatever colour these are of. Rows that
// other thread blocks read come first in a colour and are published, each number with that of the launch, by
// which it is known to be there. While other rows are solved for, the carriers bring what the thread blocks
// around have published.
#include "stored.cuh"
#include "sptrsv/triangle.cuh"

// Warps that solve.
#ifndef WORKERS
#define WORKERS 20
#endif
// Warps that bring what others have published.
#ifndef CARRIERS
#define CARRIERS 4
#endif
// Steps whose values are under way.
#ifndef AHEAD
#define AHEAD 2
#endif
// Most entries of a row in a step.
constexpr u32 ENTRIES = 8;
constexpr u32 TEAM = WORKERS * WARP;
constexpr u32 CARRYING = CARRIERS * WARP;
constexpr u32 THREADS = TEAM + CARRYING;
constexpr u32 LAYOUT_THREADS = 512;
// Steps without rows behind the last.
constexpr u32 BEYOND = 2 * AHEAD;

// For the launcher.
extern "C" __constant__ u32 colour_boxes_shape[4] = {WORKERS, CARRIERS, ENTRIES, BEYOND};

// What a thread block has; all numbers of the arrays below.
struct Part {
    // First cell, and cells along x, y and z.
    u32 cell, nx, ny, nz;
    u32 value, row, step, steps;
    // First of its hand-overs; how many places of rows there are.
    u32 event, rows, pad[2];
};

// Begins and ends rows; times D before the first entry, or after the last; ends a colour that is handed over.
constexpr u32 FIRST = 1 << 8, LAST = 2 << 8, SCALE_FIRST = 4 << 8, SCALE_LAST = 8 << 8, ENDS = 16 << 8;

// A step of a thread block. A warp has 32 rows, whose values lie together: with SCALE_* those of the diagonal,
// then entry by entry.
struct __align__(16) Step {
    u32 words[4];

    // Place of the first entry's values, from the first value of the thread block on.
    __device__ u32 value() const { return words[0]; }
    __device__ u32 row() const { return (words[1] & 0x3ff) * WARP; }
    __device__ u32 rows() const { return words[1] >> 10 & 0x3ff; }
    // The rows of these threads are published, each in its place.
    __device__ bool publishes(u32 t) const { return t >= words[3] >> 22 && t < words[1] >> 20; }
    __device__ u32 place(u32 t) const { return (words[3] + t) & 0x3fffff; }
    // A bit for each entry.
    __device__ u32 entries() const { return words[2] & 0xff; }
    __device__ bool is(u32 what) const { return words[2] & what; }
    // Where its distances are, in pieces of ENTRIES.
    __device__ u32 list() const { return words[2] >> 14 & 0x3ff; }
    // Values of a row.
    __device__ u32 each() const { return words[2] >> 24; }
    __device__ bool scales() const { return is(SCALE_FIRST | SCALE_LAST); }
};

// A step of shared memory.
__device__ inline Step whole(const Step* s) {
    const uint4 w = *(const uint4*)s;
    return {{w.x, w.y, w.z, w.w}};
}

struct Boxes {
    const Part* part;
    const Step* steps;
    // Of each row its place in shared memory.
    const unsigned short* rows;
    const Stored* val;
    // Distances in shared memory, in bytes.
    const int* lists;
    // Where the cells of each hand-over begin; where these come from, and their place in shared memory.
    const u32* events;
    const u32* from;
    const unsigned short* to;
    // Launches that each thread block has been through.
    u32* launches;
    uint4* published;
    // Cells from a line to the next, and from a plane; the same in shared memory; where a part's first cell is
    // there, and how many there are.
    u32 line, plane, pitch, layer, origin, cells;
    u32 most_steps, listed, handovers, pad;
    const double* r;
    double* z;
};

#if __CUDA_ARCH__ >= 900
// What a thread holds of a step.
struct Held {
    Stored a[ENTRIES];
    Stored d;
    unsigned short at;
};

// Loads that stay where they are written, before what the step before waits for; so many values of a warp
// beyond `from`.
template <int BEYOND> __device__ inline void load_if(u32 there, const double* from, double& to) {
    asm volatile("{\n.reg .pred there;\nsetp.ne.u32 there, %2, 0;\n@there ld.global.nc.L1::no_allocate.f64 %0, [%1+%3];\n}"
                 : "+d"(to) : "l"(from), "r"(there), "n"(BEYOND * (int)(WARP * sizeof(double))));
}
template <int BEYOND> __device__ inline void load_if(u32 there, const float* from, float& to) {
    asm volatile("{\n.reg .pred there;\nsetp.ne.u32 there, %2, 0;\n@there ld.global.nc.L1::no_allocate.f32 %0, [%1+%3];\n}"
                 : "+f"(to) : "l"(from), "r"(there), "n"(BEYOND * (int)(WARP * sizeof(float))));
}
#ifdef FACTOR_BFLOAT16
template <int BEYOND> __device__ inline void load_if(u32 there, const Stored* from, Stored& to) {
    asm volatile("{\n.reg .pred there;\nsetp.ne.u32 there, %2, 0;\n@there ld.global.nc.L1::no_allocate.u16 %0, [%1+%3];\n}"
                 : "+h"(to.bits) : "l"(from), "r"(there), "n"(BEYOND * (int)(WARP * sizeof(Stored))));
}
#endif
__device__ inline void load_if(u32 there, const unsigned short* from, unsigned short& to) {
    asm volatile("{\n.reg .pred there;\nsetp.ne.u32 there, %2, 0;\n@there ld.global.nc.u16 %0, [%1];\n}"
                 : "+h"(to) : "l"(from), "r"(there));
}

// Without branches, across which the compiler cannot tell loads that are under way apart.
__device__ inline void store_if(u32 there, double* to, double v) {
    asm volatile("{\n.reg .pred there;\nsetp.ne.u32 there, %2, 0;\n@there st.shared.f64 [%0], %1;\n}"
                 : : "r"((u32)__cvta_generic_to_shared(to)), "d"(v), "r"(there) : "memory");
}
__device__ inline void meet_if(u32 there) {
    asm volatile("{\n.reg .pred there;\nsetp.ne.u32 there, %0, 0;\n@there barrier.cta.sync 0;\n}" : : "r"(there) : "memory");
}

// A number and that of the launch in two words of eight bytes, each of which is read as it was written.
__device__ inline void publish_if(u32 there, uint4* to, double v, u32 launch) {
    asm volatile("{\n.reg .pred there;\nsetp.ne.u32 there, %4, 0;\n@there st.relaxed.gpu.global.v4.u32 [%0], {%1, %3, %2, %3};\n}"
                 : : "l"(to), "r"(__double2loint(v)), "r"(__double2hiint(v)), "r"(launch), "r"(there) : "memory");
}
__device__ inline bool published(const uint4* from, double& v, u32 launch) {
    u32 low, of_low, high, of_high;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(low), "=r"(of_low), "=r"(high), "=r"(of_high) : "l"(from) : "memory");
    v = __hiloint2double(high, low);
    return of_low == launch && of_high == launch;
}

// What a thread reads from: its first row's place, and its first value.
struct Source {
    const unsigned short* rows;
    const Stored* val;
};

// Brings what is read later into the L2 cache: whole lines of 16 bytes.
__device__ inline void bring(const void* from, u32 bytes) {
    const u32 before = (u64)from & 15;
    if (bytes > 0)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;"
                     : : "l"((const char*)from - before), "r"(bytes + before & ~15u) : "memory");
}

// Unrolled over the entries, whose number is part of the loads.
template <int U> __device__ inline void fetch_from(u32 there, const Stored* from, Held& held) {
    if constexpr (U < ENTRIES) {
        load_if<U>(there & 1u << U, from, held.a[U]);
        fetch_from<U + 1>(there, from, held);
    }
}

__device__ inline void fetch(const Source& from, const Step s, u32 first, Held& held) {
    const bool active = first < s.rows();
    const Stored* const val = from.val + (s.value() + first * s.each());
    load_if(active, from.rows + s.row(), held.at);
    load_if<-1>(active && s.scales(), val, held.d);
    fetch_from<0>(active ? s.entries() : 0, val, held);
}

__device__ inline void use(const Boxes& b, const Step s, const Held& held, double* x, const int4* lists, u32 launch, double& sum) {
    const u32 entries = s.entries();
    const bool mine = threadIdx.x < s.rows();
    double* const own = x + held.at;
    static_assert(ENTRIES == 8, "distances are read four by four");
    const int4 some = lists[s.list() * 2], others = lists[s.list() * 2 + 1];
    const int far[ENTRIES] = {some.x, some.y, some.z, some.w, others.x, others.y, others.z, others.w};
    double there[ENTRIES];
#pragma unroll
    for (u32 u = 0; u < ENTRIES; ++u) there[u] = mine ? *(const double*)((const char*)own + far[u]) : 0.0;
    if (mine && s.is(FIRST)) sum = *own;
    if (s.is(SCALE_FIRST)) sum *= (double)held.d;
#pragma unroll
    for (u32 u = 0; u < ENTRIES; ++u)
        if (entries & 1u << u) sum = fma(-(double)held.a[u], there[u], sum);
    if (s.is(SCALE_LAST)) sum *= (double)held.d;
    const bool last = s.is(LAST);
    store_if(mine && last, own, sum);
    publish_if(last && s.publishes(threadIdx.x), b.published + s.place(threadIdx.x), sum, launch);
    meet_if(s.is(ENDS));
}

// Cells of a hand-over that a thread brings together.
#ifndef TOGETHER
#define TOGETHER 8
#endif
struct Carried {
    u32 from[TOGETHER];
    unsigned short to[TOGETHER];

    __device__ void places(const Boxes& b, u32 next, u32 end) {
#pragma unroll
        for (u32 u = 0; u < TOGETHER; ++u) {
            const u32 at = next + u * CARRYING;
            from[u] = at < end ? __ldg(b.from + at) : 0;
            to[u] = at < end ? __ldg(b.to + at) : 0;
        }
    }
};

// What a part brings from others at a hand-over.
template <typename Bring> __device__ void carry(const Boxes& b, u32 next, u32 end, double* x, Bring brings) {
    for (; next < end; next += TOGETHER * CARRYING) {
        Carried c;
        c.places(b, next, end);
        double v[TOGETHER];
        brings(c, next, v);
#pragma unroll
        for (u32 u = 0; u < TOGETHER; ++u)
            if (next + u * CARRYING < end) x[c.to[u]] = v[u];
    }
}

// The first hand-over, of r.
__device__ void carry_first(const Boxes& b, const Part& p, double* x) {
    const u32 next = b.events[p.event] + threadIdx.x - TEAM, end = b.events[p.event + 1];
    carry(b, next, end, x, [&](const Carried& c, u32 next, double (&v)[TOGETHER]) {
#pragma unroll
        for (u32 u = 0; u < TOGETHER; ++u) v[u] = next + u * CARRYING < end ? __ldg(b.r + c.from[u]) : 0.0;
    });
}

// The hand-overs after it.
__device__ void carry_others(const Boxes& b, const Part& p, double* x, u32 launch) {
    for (u32 e = 1; e < b.handovers; ++e) {
        const u32 next = b.events[p.event + e] + threadIdx.x - TEAM, end = b.events[p.event + e + 1];
        carry(b, next, end, x, [&](const Carried& c, u32 next, double (&v)[TOGETHER]) {
            // one number at a time, until it is there: others need the way
            while (!published(b.published + c.from[0], v[0], launch)) {}
            bool all;
            do {
                all = true;
#pragma unroll
                for (u32 u = 1; u < TOGETHER; ++u)
                    if (next + u * CARRYING < end) all &= published(b.published + c.from[u], v[u], launch);
            } while (!all);
        });
        __syncthreads();
    }
}

// Lines of a part, one for each of some warps in turn.
template <u32 WARPS, typename Does> __device__ void each_line(const Boxes& b, const Part& p, Does does) {
    u32 y = threadIdx.x / WARP, z = 0;
    while (true) {
        while (y >= p.ny) y -= p.ny, ++z;
        if (z >= p.nz) break;
        does(p.cell + y * b.line + z * b.plane, b.origin + y * b.pitch + z * b.layer);
        y += WARPS;
    }
}

// Takes the part's numbers from r, by the workers.
__device__ void take(const Boxes& b, const Part& p, double* x) {
    each_line<WORKERS>(b, p, [&](u32 cell, u32 place) {
        for (u32 i = threadIdx.x % WARP; i < p.nx; i += WARP)
            asm volatile("cp.async.ca.shared.global [%0], [%1], 8;"
                         : : "r"((u32)__cvta_generic_to_shared(x + place + i)), "l"(b.r + cell + i) : "memory");
    });
    asm volatile("cp.async.wait_all;" : : : "memory");
}

// Gives the part's numbers to z. Lines of the L2 cache that are written together may leave it first, which is
// faster: 97.7 us for 99.4.
__device__ void give(const Boxes& b, const Part& p, const double* x) {
    each_line<THREADS / WARP>(b, p, [&](u32 cell, u32 place) {
        for (u32 i = threadIdx.x % WARP; i < p.nx; i += WARP) __stcs(b.z + cell + i, x[place + i]);
    });
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1) colour_boxes(const __grid_constant__ Boxes b) {
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) unsigned char shared[];
    const Part p = b.part[blockIdx.x];
    const u32 launch = b.launches[blockIdx.x] + 1;
    double* const x = (double*)shared;
    // what lies around the whole box is multiplied by zeros
    for (u32 i = threadIdx.x; i < b.cells / 2; i += THREADS) ((double2*)x)[i] = {0.0, 0.0};
    Step* const steps = (Step*)(x + b.cells);
    int4* const lists = (int4*)(steps + b.most_steps + BEYOND);
    for (u32 w = threadIdx.x; w < 4 * (p.steps + BEYOND); w += THREADS)
        steps[w / 4].words[w % 4] = w < 4 * p.steps ? b.steps[p.step + w / 4].words[w % 4] : 0;
    for (u32 w = threadIdx.x; w < b.listed; w += THREADS) ((int*)lists)[w] = b.lists[w];
    __syncthreads();
    const u32 lane = threadIdx.x % WARP, first = threadIdx.x - lane;
    const bool works = threadIdx.x < TEAM;
    const Source from = {b.rows + p.row + threadIdx.x, b.val + p.value + lane};
    Held held[AHEAD];
    if (works) {
#pragma unroll
        for (u32 k = 0; k < AHEAD; ++k) {
            held[k].at = b.origin;
            fetch(from, whole(steps + k), first, held[k]);
        }
        take(b, p, x);
    } else {
        if (threadIdx.x == TEAM) {
            const u32 begin = b.events[p.event + 1], end = b.events[p.event + b.handovers];
            bring(b.from + begin, (end - begin) * sizeof(u32));
            bring(b.to + begin, (end - begin) * sizeof(unsigned short));
            bring(b.rows + p.row, p.rows * sizeof(unsigned short));
        }
        carry_first(b, p, x);
    }
    __syncthreads();
    if (works) {
        double sum = 0.0;
        for (u32 s = 0; s < p.steps; s += AHEAD) {
#pragma unroll
            for (u32 k = 0; k < AHEAD; ++k) {
                use(b, whole(steps + s + k), held[k], x, lists, launch, sum);
                fetch(from, whole(steps + s + k + AHEAD), first, held[k]);
            }
        }
    } else {
        carry_others(b, p, x, launch);
    }
    __syncthreads();
    give(b, p, x);
    if (threadIdx.x == 0) b.launches[blockIdx.x] = launch;
#endif
}

// Where the values of a colour's rows are, in one of the triangles.
struct Listed {
    // First of its distances between cells, and how many.
    u32 first, count;
    // Steps of a row, and entries in each but the last.
    u32 pieces, size;
};

struct Layout {
    // For L and for U' one per colour.
    const Listed* listed;
    const int* distances;
    // For each thread block: of each colour the place of its first row, the number of its rows, and its first
    // steps of L and of U'.
    const uint4* starts;
    // Cell of each row of the factors, and the other way round.
    const u32* cell;
    const u32* row;
    u32 colours, pad;
};

// Values of a colour of a triangle, and of the diagonal where they are scaled by it. A thread block for each
// part and colour.
__device__ void lay_out(const Boxes& b, const Layout& l, u32 upper, const Triangle& of, const Stored* __restrict__ diagonal,
                        Stored* __restrict__ to) {
    const Part p = b.part[blockIdx.x];
    const u32 colour = blockIdx.y;
    const uint4 start = l.starts[blockIdx.x * l.colours + colour];
    const Listed list = l.listed[upper * l.colours + colour];
    if (list.pieces == 0) return;
    const Step* const steps = b.steps + p.step + (upper ? start.w : start.z);
    for (u32 q = threadIdx.x; q < start.y; q += LAYOUT_THREADS) {
        const u32 place = b.rows[p.row + start.x + q] - b.origin;
        const u32 cell = p.cell + place / b.layer * b.plane + place % b.layer / b.pitch * b.line + place % b.layer % b.pitch;
        const u32 row = l.row[cell], warp = q % TEAM / WARP, lane = q % WARP;
        const Step* const step = steps + q / TEAM * list.pieces;
        // where the row's first value of a step is
        auto place_of = [&](const Step& s) { return p.value + s.value() + warp * s.each() * WARP + lane; };
        for (u32 k = 0; k < list.pieces; ++k)
            if (step[k].scales()) to[place_of(step[k]) - WARP] = diagonal[row];
        for (u32 at = of.row_ptr[row]; at < of.row_ptr[row + 1]; ++at) {
            const int far = (int)(l.cell[of.col_ind[at]] - cell);
            u32 e = 0;
            while (e + 1 < list.count && l.distances[list.first + e] != far) ++e;
            const Step s = step[e / list.size];
            to[place_of(s) + e % list.size * WARP] = (Stored)of.val[at];
        }
    }
}

extern "C" __global__ void __launch_bounds__(LAYOUT_THREADS)
colour_boxes_values(const __grid_constant__ Boxes b, Layout l, Triangle lower, Triangle upper, const Stored* __restrict__ diagonal,
                    Stored* __restrict__ to) {
    lay_out(b, l, 0, lower, diagonal, to);
    lay_out(b, l, 1, upper, diagonal, to);
}
