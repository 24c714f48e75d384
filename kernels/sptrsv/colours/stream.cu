// Solves by one or two colours (sptrsv/colours/slices.cu says what they are) in one launch, for scalar factors:
// z_B = D (r_B - L r_R), then z_R = D r_R - U' z_B. With more colours launches of their own are faster.
//
// Launches of their own would each begin with a chain of loads and end with a machine that runs empty. Here
// what a warp needs of the factors lies in memory in the order in which it needs it, over both colours, cut
// into chunks: bulk copies bring them into a ring of shared memory as its stages become free, whatever colour
// it is then. Between the colours the thread blocks wait for one another, while the copies go on.
#include "barriers.cuh"
#include "sptrsv/colours/columns.cuh"

// Warps that solve; one more waits for the other thread blocks.
#ifndef WORKERS
#define WORKERS 31
#endif
// Most entries of a row in a chunk.
#ifndef ENTRIES
#define ENTRIES 4
#endif
// Bytes of shared memory for chunks; what it leaves caches vectors.
#ifndef RING
#define RING (144 << 10)
#endif
constexpr u32 MOST_STAGES = 8;
constexpr u32 THREADS = (WORKERS + 1) * WARP;
constexpr u32 LAYOUT_THREADS = 256;

// For the launcher.
extern "C" __constant__ u32 colour_stream_shape[4] = {WORKERS, ENTRIES, RING, MOST_STAGES};

// What is in a chunk, and where; the launcher counts its bytes the same way.
//
// A head of 16 bytes; with the first entries of the rows their diagonal; values of the entries, each of all
// rows in turn; columns of each row, or one number for all rows; with the first entries the rows' places in
// the vectors; what is stored in 16 bits.
struct Chunk {
    // Number of rows; entries of each; kind of columns; whether it is of the second colour to be solved for;
    // whether these are the first and the last entries of the rows; whether places are 16 bits beyond `place`.
    u32 what;
    // Bytes of the chunk that takes the stage of the one before this.
    u32 refill;
    // Whether the next one is of the second colour and this one is not.
    u32 turns;
    u32 place;

    __device__ u32 rows() const { return what & 63; }
    __device__ u32 entries() const { return what >> 6 & 31; }
    __device__ u32 kind() const { return what >> 11 & 3; }
    __device__ bool second() const { return what >> 13 & 1; }
    __device__ bool first() const { return what >> 14 & 1; }
    __device__ bool last() const { return what >> 15 & 1; }
    __device__ bool places_near() const { return what >> 16 & 1; }

    __device__ u32 values_at() const { return 16 + (first() ? rows() * (u32)sizeof(Stored) : 0); }
    __device__ u32 index_at() const { return values_at() + entries() * rows() * (u32)sizeof(Stored); }
    __device__ u32 places_at() const { return index_at() + 4 * entries() * (kind() == WIDE ? rows() : 1); }
    __device__ u32 near_at() const { return places_at() + (first() && !places_near() ? 4 * rows() : 0); }
    __device__ u32 near_places_at() const { return near_at() + (kind() == NEAR ? 2 * entries() * rows() : 0); }
};

struct Stream {
    const unsigned char* chunks;
    // For each warp: where its chunks begin, in 16 bytes, how many there are, whether there are none of the
    // first colour, and bytes of those that fill the ring at first.
    const u32* starts;
    // Counters of thread blocks that have arrived, and that have ended: zero before and after a launch.
    u32* arrivals;
    u32 colours, stages, stage_bytes;
    // Whether the chunks may stay in the L2 cache: it has room for them and the vectors.
    u32 stays;
    const double* r;
    double* z;
};
constexpr u32 OF_WARP = 3 + MOST_STAGES;
// Counters have lines of their own.
constexpr u32 ENDED = 32;

#if __CUDA_ARCH__ >= 900
// A stage is filled by bulk copies of one warp.
__device__ inline void fill(void* stage, const void* from, u32 bytes, u64* full, u64 policy) {
    expect_bytes(full, bytes);
    bulk_copy(shared_address(stage), from, bytes, full, policy);
}

// Workers have written all of the first colour; and they may go on to the second.
constexpr u32 WRITTEN = 1, GO_ON = 2;
__device__ inline void arrive_at(u32 barrier) {
    asm volatile("barrier.cta.arrive %0, %1;" : : "r"(barrier), "n"(THREADS) : "memory");
}
__device__ inline void wait_at(u32 barrier) {
    asm volatile("barrier.cta.sync %0, %1;" : : "r"(barrier), "n"(THREADS) : "memory");
}

// The warp that waits for the other thread blocks.
__device__ void keep_step(const Stream& s) {
    if (s.colours < 2) return;
    const bool speaks = threadIdx.x % WARP == 0;
    wait_at(WRITTEN);
    if (speaks) {
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" : : "l"(s.arrivals) : "memory");
        while (load_acquire(s.arrivals) < gridDim.x) {}
    }
    __syncwarp();
    arrive_at(GO_ON);
    if (!speaks) return;
    u32 before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(s.arrivals + ENDED) : "memory");
    // nobody looks at the counters any more
    if (before == gridDim.x - 1) s.arrivals[0] = 0, s.arrivals[ENDED] = 0;
}

__device__ void work(const Stream& s, unsigned char* ring, u64* full, u32 warp, u32 lane) {
    const u32* const start = s.starts + (blockIdx.x * WORKERS + warp) * OF_WARP;
    const unsigned char* from = s.chunks + (size_t)start[0] * 16;
    u64 policy;
    if (s.stays) asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    else asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    u32 left = start[1];
    bool turns = start[2];
    if (lane == 0) {
        for (u32 k = 0; k < s.stages; ++k) prepare_barrier(full + k, 1);
        asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
        for (u32 k = 0; k < s.stages; ++k) {
            const u32 bytes = start[3 + k];
            if (bytes == 0) break;
            fill(ring + k * s.stage_bytes, from, bytes, full + k, policy);
            from += bytes;
        }
    }
    __syncwarp();
    if (turns) arrive_at(WRITTEN);
    u32 stage = 0, before = 0, parity = 0, i = 0;
    double sum = 0.0, d = 1.0;
    for (; left > 0; --left) {
        const unsigned char* const here = ring + stage * s.stage_bytes;
        wait_parity(full + stage, parity);
        const uint4 words = *(const uint4*)here;
        const Chunk c = {words.x, words.y, words.z, words.w};
        const u32 rows = c.rows(), entries = c.entries(), g = min(lane, rows - 1);

        // A stage is filled again when all lanes have what they need of it. A copy does not wait by itself for
        // loads under way, which can be long behind those of other warps: it takes its size from this head,
        // which was asked for after them, and loads of shared memory come back in order.
        asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
        __syncwarp();
        if (lane == 0 && c.refill > 0) {
            fill(ring + before * s.stage_bytes, from, c.refill, full + before, policy);
            from += c.refill;
        }

        // all that the first colour does not write comes before the wait for it
        if (c.first()) {
            i = c.places_near() ? c.place + ((const unsigned short*)(here + c.near_places_at()))[g]
                                : ((const u32*)(here + c.places_at()))[g];
            sum = __ldg(s.r + i);
            d = (double)((const Stored*)(here + 16))[g];
        }
        u32 j[ENTRIES];
        Stored a[ENTRIES];
        const u32* const index = (const u32*)(here + c.index_at());
        if (c.kind() == WIDE) {
#pragma unroll
            for (u32 e = 0; e < ENTRIES; ++e) j[e] = e < entries ? index[e * rows + g] : NONE;
        } else if (c.kind() == UNIFORM) {
#pragma unroll
            for (u32 e = 0; e < ENTRIES; ++e) j[e] = e < entries ? index[e] + i : NONE;
        } else {
            const unsigned short* const near = (const unsigned short*)(here + c.near_at());
#pragma unroll
            for (u32 e = 0; e < ENTRIES; ++e) {
                const u32 beyond = e < entries ? near[e * rows + g] : NOT_NEAR;
                j[e] = beyond == NOT_NEAR ? NONE : index[e] + beyond;
            }
        }
        const Stored* const values = (const Stored*)(here + c.values_at());
#pragma unroll
        for (u32 e = 0; e < ENTRIES; ++e) a[e] = e < entries ? values[e * rows + g] : Stored(0);
        before = stage;
        if (++stage == s.stages) stage = 0, parity ^= 1;

        if (turns) wait_at(GO_ON);
        double x[ENTRIES];
        if (c.second()) {
#pragma unroll
            for (u32 e = 0; e < ENTRIES; ++e) x[e] = j[e] == NONE ? 0.0 : s.z[j[e]];
            if (c.first()) sum *= d;
        } else {
#pragma unroll
            for (u32 e = 0; e < ENTRIES; ++e) x[e] = j[e] == NONE ? 0.0 : __ldg(s.r + j[e]);
        }
#pragma unroll
        for (u32 e = 0; e < ENTRIES; ++e) sum = fma(-(double)a[e], x[e], sum);
        if (c.last() && lane < rows) s.z[i] = c.second() ? sum : sum * d;
        turns = c.turns;
        if (turns) {
            __syncwarp();
            arrive_at(WRITTEN);
        }
    }
    if (turns) wait_at(GO_ON);
}
#endif

// z = (L D U')^-1 r. A thread block for each share of the chunks, all resident.
extern "C" __global__ void __launch_bounds__(THREADS, 1) colour_stream(Stream s) {
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) unsigned char ring[];
    __shared__ u64 full[WORKERS * MOST_STAGES];
    const u32 warp = threadIdx.x / WARP;
    if (warp == WORKERS) return keep_step(s);
    work(s, ring + warp * s.stages * s.stage_bytes, full + warp * MOST_STAGES, warp, threadIdx.x % WARP);
#endif
}

// A chunk as the launcher lists it: where it is, in 16 bytes, whose slice and from which entry on, and its
// head.
struct Listed {
    u32 at, slice, from, what, refill, turns, place;
};

// A triangle's columns, as in sptrsv/colours/slices.cu.
struct Columns {
    const u32* shape;
    const u32* columns;
    const u32* index;
};

struct Rows {
    // Of the vectors, and of the factors, at each position.
    const u32* place;
    const u32* factor_row;
    // First position of each slice.
    const u32* first;
};

// Heads, columns and places; one warp per chunk.
extern "C" __global__ void __launch_bounds__(LAYOUT_THREADS)
colour_stream_pattern(u32 count, const Listed* __restrict__ chunks, Rows of, Columns lower, Columns upper,
                      unsigned char* __restrict__ stream) {
    const u32 k = blockIdx.x * (LAYOUT_THREADS / WARP) + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (k >= count) return;
    const Listed listed = chunks[k];
    const Chunk c = {listed.what, listed.refill, listed.turns, listed.place};
    const bool up = c.second();
    unsigned char* const here = stream + (size_t)listed.at * 16;
    const u32 rows = c.rows(), entries = c.entries(), s = listed.slice, position = of.first[s];
    const u32 length = (up ? upper.shape : lower.shape)[s] / 4;
    const u32* const index = up ? upper.index + upper.columns[s] : lower.index + lower.columns[s];
    if (lane == 0) *(uint4*)here = make_uint4(c.what, c.refill, c.turns, c.place);
    u32* const to = (u32*)(here + c.index_at());
    const u32 each = c.kind() == WIDE ? rows : 1;
    for (u32 w = lane; w < entries * each; w += WARP) to[w] = index[listed.from * each + w];
    if (c.kind() == NEAR) {
        const unsigned short* const near = (const unsigned short*)(index + length) + listed.from * rows;
        unsigned short* const beyond = (unsigned short*)(here + c.near_at());
        for (u32 w = lane; w < entries * rows; w += WARP) beyond[w] = near[w];
    }
    if (!c.first() || lane >= rows) return;
    const u32 place = of.place[position + lane];
    if (c.places_near()) ((unsigned short*)(here + c.near_places_at()))[lane] = (unsigned short)(place - c.place);
    else ((u32*)(here + c.places_at()))[lane] = place;
}

// A triangle's blocks in the order of its pattern.
struct Factor {
    const u32* row_ptr;
    const double* values;
};

// Values, and the diagonal; one warp per chunk.
extern "C" __global__ void __launch_bounds__(LAYOUT_THREADS)
colour_stream_values(u32 count, const Listed* __restrict__ chunks, Rows of, Factor lower, Factor upper,
                     const Stored* __restrict__ diagonal, unsigned char* __restrict__ stream) {
    const u32 k = blockIdx.x * (LAYOUT_THREADS / WARP) + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (k >= count) return;
    const Listed listed = chunks[k];
    const Chunk c = {listed.what, listed.refill, listed.turns, listed.place};
    if (lane >= c.rows()) return;
    const bool up = c.second();
    const u32* const row_ptr = up ? upper.row_ptr : lower.row_ptr;
    const double* const factor = up ? upper.values : lower.values;
    unsigned char* const here = stream + (size_t)listed.at * 16;
    const u32 i = of.factor_row[of.first[listed.slice] + lane], from = row_ptr[i] + listed.from, end = row_ptr[i + 1];
    Stored* const to = (Stored*)(here + c.values_at());
    for (u32 e = 0; e < c.entries(); ++e)
        to[e * c.rows() + lane] = (Stored)(from + e < end ? factor[from + e] : 0.0);
    if (c.first()) ((Stored*)(here + 16))[lane] = diagonal[i];
}
