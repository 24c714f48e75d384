// Triangular solves of scalar factors on a box of cells, each coupled to its neighbours along the axes alone, with
// both triangles in one launch. Cells (x, y, z) of nx * ny * nz are in natural order, x fastest.
//
// A lane has a pencil, all cells of one x and y, and marches along z; a warp has a patch of PX * PY pencils, a
// thread block WX * WY patches. In step t, lane (i, j) of a patch is at z = t - i - j, so that what it needs of its
// neighbours in the patch they have in a register since the step before: no barrier, no memory on the way from
// level to level. Values for other patches of the thread block go to shared memory, those for other thread blocks
// through the L2 cache, from where loaders bring them; a value is its own flag. The vector stays in shared memory,
// in the order of steps, from r over y to z. Backward, everything is mirrored.
#include "absent.cuh"
#include "stored.cuh"

// Patches of a thread block along x and y.
#ifndef WX
#define WX 2
#endif
#ifndef WY
#define WY 2
#endif
// Turns of which the factors are brought into the L2 cache before they are read.
#ifndef PREFETCH
#define PREFETCH 4
#endif

// Pencils of a patch along x and y.
constexpr int PX = 8, PY = 4;
constexpr int PATCHES = WX * WY;
// Lanes of a warp lag behind its first by so many steps at most.
constexpr int SKEW = PX + PY - 2;
// Values of neighbours that a patch takes of a step: of pencils before it along x, then of those along y.
constexpr int SIDES = PX + PY;
// The same of a thread block.
constexpr int EDGES = WY * PY + WX * PX;
// Steps of which factors are asked for together; these are under way in turns.
constexpr int BATCH = 4, BATCHES = 3, TURN = BATCH * BATCHES;
// Records of sides before the first step, for what is published before anything was solved.
constexpr int BEFORE = PX;
constexpr int LOADERS = WX + WY;
constexpr int WARPS = 2 * PATCHES + LOADERS;
constexpr int THREADS = WARPS * 32;

// For the launcher.
extern "C" __constant__ u32 pencils_shape[6] = {PX, PY, TURN, BEFORE, THREADS, EDGES};

struct Pencils {
    int nx, ny, nz;
    // Thread blocks along x; turns of a march.
    int across, turns, down;
    // Factors in the order of the steps: of each thread block, patch, step: coefficients of the neighbours along x,
    // y and z, backward after the inverse diagonal, of all lanes.
    const Stored* lower;
    const Stored* upper;
    // What thread blocks hand over, with the number of the launch: of each direction, thread block, step: edges.
    uint4* exchange;
    // Launches that each thread block has been through.
    u32* launches;
    const double* r;
    double* z;
};

#if __CUDA_ARCH__ >= 900

__device__ inline u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ inline double load_shared(u32 at) {
    double v;
    asm volatile("ld.relaxed.cta.shared.f64 %0, [%1];" : "=d"(v) : "r"(at) : "memory");
    return v;
}
// What follows has no branches: across these the compiler cannot tell loads that are under way apart.
__device__ inline void load_shared_if(u32 there, u32 at, double& v) {
    asm volatile("{\n.reg .pred there;\nsetp.ne.u32 there, %2, 0;\n@there ld.relaxed.cta.shared.f64 %0, [%1];\n}"
                 : "+d"(v) : "r"(at), "r"(there) : "memory");
}
__device__ inline void store_shared_if(u32 there, u32 at, double v) {
    asm volatile("{\n.reg .pred there;\nsetp.ne.u32 there, %2, 0;\n@there st.relaxed.cta.shared.f64 [%0], %1;\n}"
                 : : "r"(at), "d"(v), "r"(there) : "memory");
}
__device__ inline void load_if(u32 there, const double* from, double& to) {
    asm volatile("{\n.reg .pred there;\nsetp.ne.u32 there, %2, 0;\n@there ld.global.nc.L1::no_allocate.f64 %0, [%1];\n}"
                 : "+d"(to) : "l"(from), "r"(there));
}
__device__ inline void load_if(u32 there, const float* from, float& to) {
    asm volatile("{\n.reg .pred there;\nsetp.ne.u32 there, %2, 0;\n@there ld.global.nc.L1::no_allocate.f32 %0, [%1];\n}"
                 : "+f"(to) : "l"(from), "r"(there));
}
__device__ inline void bring_if(u32 there, const void* from, u32 bytes) {
    asm volatile("{\n.reg .pred there;\nsetp.ne.u32 there, %2, 0;\n@there cp.async.bulk.prefetch.L2.global [%0], %1;\n}"
                 : : "l"(from), "r"(bytes), "r"(there) : "memory");
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

__device__ inline void prepare_barrier(u64* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
__device__ inline void arrive(u64* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(shared_address(barrier)) : "memory");
}
__device__ inline void arrive_with_copies(u64* barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" : : "r"(shared_address(barrier)) : "memory");
}
// Each barrier is used once. A branch that a warp takes as one.
__device__ inline void wait(u64* barrier) {
    u32 done;
    do {
        asm volatile("{\n.reg .pred done;\nmbarrier.try_wait.parity.shared::cta.b64 done, [%1], 0;\nselp.u32 %0, 1, 0, done;\n}"
                     : "=r"(done) : "r"(shared_address(barrier)) : "memory");
    } while (!__all_sync(FULL, done));
}

// Where a warp stands, mirrored where it marches backward.
template <bool BACKWARD>
struct Place {
    int patch, wx, wy, i, j;
    bool before_x, before_y, after_x, after_y;

    __device__ Place(const Pencils& b, int patch, int lane) : patch(patch) {
        const int tx = blockIdx.x % b.across, ty = blockIdx.x / b.across;
        wx = patch % WX, wy = patch / WX;
        i = lane % PX, j = lane / PX;
        before_x = tx > 0, after_x = tx < b.across - 1;
        before_y = ty > 0, after_y = ty < b.down - 1;
        if (BACKWARD) {
            wx = WX - 1 - wx, wy = WY - 1 - wy, i = PX - 1 - i, j = PY - 1 - j;
            bool swap = before_x;
            before_x = after_x, after_x = swap;
            swap = before_y, before_y = after_y, after_y = swap;
        }
        before_x |= wx > 0, before_y |= wy > 0;
    }
    // Thread block after this one along x or y.
    __device__ int block_after(const Pencils& b, bool along_y) const {
        const int by = along_y ? b.across : 1;
        return (int)blockIdx.x + (BACKWARD ? -by : by);
    }
};

// What thread blocks have in shared memory.
struct Shared {
    // r, y, z by patch, step and lane; sides by patch, step, and side.
    double* x;
    double* sides;
    // By patch and turn: r is there; z is there.
    u64* brought;
    u64* solved;

    __device__ Shared(const Pencils& b, double* memory) {
        x = memory;
        sides = x + PATCHES * steps(b) * 32;
        brought = (u64*)(sides + PATCHES * records(b) * SIDES);
        solved = brought + PATCHES * b.turns;
    }
    __device__ static int steps(const Pencils& b) { return b.turns * TURN; }
    __device__ static int records(const Pencils& b) { return BEFORE + steps(b) + 1; }
    __device__ double* vector(const Pencils& b, int patch) const { return x + patch * steps(b) * 32; }
    // Sides of step 0.
    __device__ double* sides_of(const Pencils& b, int patch) const { return sides + (patch * records(b) + BEFORE) * SIDES; }
};

__device__ inline uint4* edges_of(const Pencils& b, bool backward, int block) {
    return b.exchange + ((size_t)(backward * gridDim.x + block) * Shared::records(b) + BEFORE) * EDGES;
}

// Marks the sides that will be waited for, and gives those zeros that never come.
template <bool BACKWARD>
__device__ void clear_sides(const Pencils& b, const Shared& s) {
    for (int patch = 0; patch < PATCHES; ++patch) {
        const Place<BACKWARD> at(b, patch, 0);
        double* const sides = s.sides_of(b, patch);
        for (int n = threadIdx.x - BEFORE * SIDES; n < (Shared::steps(b) + 1) * SIDES; n += THREADS) {
            const int side = (n + BEFORE * SIDES) % SIDES, t = (n + BEFORE * SIDES) / SIDES - BEFORE;
            const bool along_x = side < PY;
            const bool waits = (along_x ? at.before_x : at.before_y) && (u32)(t - (along_x ? side : side - PY)) < (u32)b.nz;
            sides[n] = waits ? __longlong_as_double(ABSENT) : 0.0;
        }
    }
}

template <bool BACKWARD>
struct March {
    static constexpr int COEFS = BACKWARD ? 4 : 3, FIRST = BACKWARD ? 1 : 0;
    // Numbers of a step.
    static constexpr int RECORD = COEFS * 32;
    Stored a[BATCHES][BATCH][COEFS];
    const Stored* val;

    __device__ static const Stored* values(const Pencils& b, int patch) {
        return (BACKWARD ? b.upper : b.lower) + (size_t)(blockIdx.x * PATCHES + patch) * Shared::steps(b) * RECORD;
    }
    __device__ static void prefetch(const Pencils& b, int patch, int lane) {
        for (int turn = 0; turn < min(PREFETCH, b.turns); ++turn)
            bring_if(lane == 0, values(b, patch) + turn * TURN * RECORD, TURN * RECORD * sizeof(Stored));
    }
    // Steps of a batch of the turn at `from`.
    __device__ void ask(u32 there, int batch, const Stored* from) {
#pragma unroll
        for (int k = 0; k < BATCH; ++k)
#pragma unroll
            for (int c = 0; c < COEFS; ++c) load_if(there, from + (batch * BATCH + k) * RECORD + c * 32, a[batch][k][c]);
    }
    __device__ void begin(const Pencils& b, int patch, int lane) {
        val = values(b, patch) + lane;
#pragma unroll
        for (int batch = 0; batch < BATCHES; ++batch) ask(1, batch, val);
    }

    __device__ void march(const Pencils& b, const Shared& s, int patch, int lane, u32 launch) {
        const Place<BACKWARD> at(b, patch, lane);
        const bool first_x = at.i == 0, first_y = at.j == 0;
        // sides that come
        const u32 sides = shared_address(s.sides_of(b, patch));
        u32 side_x = sides + at.j * 8, side_y = sides + (PY + at.i) * 8;
        // what goes: to patches after this one, or to thread blocks after this one
        const bool last_x = at.i == PX - 1, last_y = at.j == PY - 1;
        const u32 near_x = last_x && at.wx < WX - 1, near_y = last_y && at.wy < WY - 1;
        const u32 far_x = last_x && at.wx == WX - 1 && at.after_x, far_y = last_y && at.wy == WY - 1 && at.after_y;
        const int next_x = near_x ? BACKWARD ? patch - 1 : patch + 1 : patch;
        const int next_y = near_y ? BACKWARD ? patch - WX : patch + WX : patch;
        u32 out_x = shared_address(s.sides_of(b, next_x) - (PX - 1) * SIDES + at.j);
        u32 out_y = shared_address(s.sides_of(b, next_y) - (PY - 1) * SIDES + PY + at.i);
        uint4* to_x = edges_of(b, BACKWARD, far_x ? at.block_after(b, false) : 0) - (PX - 1) * EDGES + at.wy * PY + at.j;
        uint4* to_y = edges_of(b, BACKWARD, far_y ? at.block_after(b, true) : 0) - (PY - 1) * EDGES + WY * PY + at.wx * PX + at.i;
        // the vector
        constexpr int STRIDE = BACKWARD ? -256 : 256;
        u32 own = shared_address(s.vector(b, patch) + lane) + (BACKWARD ? (Shared::steps(b) - 1) * 256 : 0);

        double v = 0.0, base, hx = 0.0, hy = 0.0;
        // what of a step does not depend on the step before
        auto fold = [&](double c, const Stored (&a)[COEFS]) {
            double sum = BACKWARD ? (double)a[0] * c : c;
            sum = fma(-(double)a[FIRST], hx, sum);
            return fma(-(double)a[FIRST + 1], hy, sum);
        };
        auto look = [&](int q) {
            load_shared_if(first_x, side_x + q * (SIDES * 8), hx);
            load_shared_if(first_y, side_y + q * (SIDES * 8), hy);
        };
        auto await = [&](int q) {
            while (__any_sync(FULL, __double2hiint(hx) == -1 || __double2hiint(hy) == -1)) look(q);
        };
        if (!BACKWARD) wait(s.brought + patch * b.turns);
        look(0);
        base = load_shared(own);
        await(0);
        base = fold(base, a[0][0]);
        for (int turn = 0; turn < b.turns; ++turn) {
            const u32 more = turn + 1 < b.turns;
            if (!BACKWARD && more) wait(s.brought + patch * b.turns + turn + 1);
            bring_if(lane == 0 && turn + PREFETCH < b.turns, val - lane + PREFETCH * TURN * RECORD, TURN * RECORD * sizeof(Stored));
            val += TURN * RECORD;
#pragma unroll
            for (int q = 0; q < TURN; ++q) {
                const double before_x = BACKWARD ? __shfl_down_sync(FULL, v, 1) : __shfl_up_sync(FULL, v, 1);
                const double before_y = BACKWARD ? __shfl_down_sync(FULL, v, PX) : __shfl_up_sync(FULL, v, PX);
                look(q + 1);
                const double c = load_shared(own + (q + 1 < TURN || more ? (q + 1) * STRIDE : 0));
                const Stored(&k)[COEFS] = a[q / BATCH][q % BATCH];
                const double ax = first_x ? 0.0 : -(double)k[FIRST], ay = first_y ? 0.0 : -(double)k[FIRST + 1];
                base = fma(-(double)k[FIRST + 2], v, base);
                base = fma(ax, before_x, base);
                v = fma(ay, before_y, base);
                store_shared_if(1, own + q * STRIDE, v);
                store_shared_if(near_x, out_x + q * (SIDES * 8), v);
                store_shared_if(near_y, out_y + q * (SIDES * 8), v);
                publish_if(far_x, to_x + q * EDGES, v, launch);
                publish_if(far_y, to_y + q * EDGES, v, launch);
                if (q % BATCH == BATCH - 1) ask(more, q / BATCH, val);
                await(q + 1);
                base = fold(c, a[(q + 1) % TURN / BATCH][(q + 1) % BATCH]);
            }
            own += TURN * STRIDE;
            side_x += TURN * SIDES * 8, side_y += TURN * SIDES * 8;
            out_x += TURN * SIDES * 8, out_y += TURN * SIDES * 8;
            to_x += TURN * EDGES, to_y += TURN * EDGES;
            if (BACKWARD) arrive(s.solved + patch * b.turns + turn);
        }
    }
};

// Brings values of the patches of thread blocks before this one: `which` of the patches at its edges.
template <bool BACKWARD>
__device__ void load_edges(const Pencils& b, const Shared& s, int which, int lane, u32 launch) {
    const bool along_x = which < WY;
    const int w = along_x ? which : which - WY;
    int wx = along_x ? 0 : w, wy = along_x ? w : 0;
    if (BACKWARD) wx = WX - 1 - wx, wy = WY - 1 - wy;
    const int patch = wy * WX + wx;
    const Place<BACKWARD> at(b, patch, 0);
    if (!(along_x ? at.before_x : at.before_y)) return;
    const int columns = along_x ? PY : PX, column = lane % columns, stride = 32 / columns;
    const uint4* const from = edges_of(b, BACKWARD, blockIdx.x) + (along_x ? w * PY : WY * PY + w * PX) + column;
    const u32 to = shared_address(s.sides_of(b, patch) + (along_x ? 0 : PY) + column);
    int t = column + lane / columns;
    const int end = column + b.nz;
    while (__any_sync(FULL, t < end)) {
        double v[2];
        const bool first = published(from + min(t, end - 1) * EDGES, v[0], launch) && t < end;
        const bool second = published(from + min(t + stride, end - 1) * EDGES, v[1], launch) && first && t + stride < end;
        store_shared_if(first, to + t * (SIDES * 8), v[0]);
        store_shared_if(second, to + (t + stride) * (SIDES * 8), v[1]);
        t += second ? 2 * stride : first ? stride : 0;
    }
}

// Cells of a patch in natural order; -1 outside of the box.
struct Columns {
    long long cell, plane;
    int lag;
    bool inside;

    __device__ Columns(const Pencils& b, int patch, int lane) {
        const int tx = blockIdx.x % b.across, ty = blockIdx.x / b.across;
        const int x = (tx * WX + patch % WX) * PX + lane % PX, y = (ty * WY + patch / WX) * PY + lane / PX;
        inside = x < b.nx && y < b.ny;
        cell = inside ? (long long)y * b.nx + x : 0;
        plane = (long long)b.nx * b.ny;
        lag = lane % PX + lane / PX;
    }
};

// Brings r of a patch.
__device__ void bring(const Pencils& b, const Shared& s, int patch, int lane) {
    const Columns own(b, patch, lane);
    double* const x = s.vector(b, patch) + lane;
    const int steps = Shared::steps(b);
    for (int t = 0; t < own.lag; ++t) x[t * 32] = 0.0;
    for (int turn = 0; turn < b.turns; ++turn) {
#pragma unroll 4
        for (int z = turn * TURN; z < (turn + 1) * TURN; ++z) {
            const int t = z + own.lag;
            if (z < b.nz && own.inside)
                asm volatile("cp.async.ca.shared.global [%0], [%1], 8;"
                             : : "r"(shared_address(x + t * 32)), "l"(b.r + own.cell + z * own.plane) : "memory");
            else if (t < steps) x[t * 32] = 0.0;
        }
        arrive_with_copies(s.brought + patch * b.turns + turn);
    }
}

// Takes z of a patch away.
__device__ void give(const Pencils& b, const Shared& s, int patch, int lane) {
    const Columns own(b, patch, lane);
    const double* const x = s.vector(b, patch) + lane;
    const int steps = Shared::steps(b);
    for (int turn = 0; turn < b.turns; ++turn) {
        wait(s.solved + patch * b.turns + turn);
        const int from = steps - (turn + 1) * TURN;
#pragma unroll 4
        for (int z = from + TURN - 1; z >= from; --z)
            if (z < b.nz && own.inside) __stcs(b.z + own.cell + z * own.plane, x[(z + own.lag) * 32]);
    }
}
#endif

extern "C" __global__ void __block_size__((32, WARPS, 1)) __launch_bounds__(THREADS, 1) pencils(const __grid_constant__ Pencils b) {
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) double memory[];
    const Shared s(b, memory);
    // the same for all lanes, as the compiler sees
    const int warp = threadIdx.y, lane = threadIdx.x;
    const int role = warp / PATCHES, patch = warp % PATCHES;
    const u32 launch = b.launches[blockIdx.x] + 1;
    for (int n = threadIdx.x; n < 2 * PATCHES * b.turns; n += THREADS) prepare_barrier(s.brought + n, 32);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    clear_sides<false>(b, s);
    __syncthreads();
    if (role == 0) {
        March<false> m;
        March<false>::prefetch(b, patch, lane);
        m.begin(b, patch, lane);
        m.march(b, s, patch, lane, launch);
        March<true>::prefetch(b, patch, lane);
    } else if (role == 1) {
        bring(b, s, patch, lane);
    } else {
        load_edges<false>(b, s, warp - 2 * PATCHES, lane, launch);
    }
    __syncthreads();
    clear_sides<true>(b, s);
    __syncthreads();
    if (role == 0) {
        March<true> m;
        m.begin(b, patch, lane);
        m.march(b, s, patch, lane, launch);
    } else if (role == 1) {
        give(b, s, patch, lane);
    } else {
        load_edges<true>(b, s, warp - 2 * PATCHES, lane, launch);
    }
    if (threadIdx.x == 0) b.launches[blockIdx.x] = launch;
#endif
}
