// CUDA on the host, as far as kernels without PTX of their own need it: every thread of a block is a fibre, and the
// fibres take turns at barriers, at loads that may wait, and now and then at atomic operations. Blocks run one after
// the other, in an order of threads that differs from block to block. Included before a source and its headers.
#pragma once
#include <setjmp.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cmath>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline
#define __grid_constant__
#define __constant__

namespace emulated {

struct Dim {
    unsigned x, y, z;
};

struct Barrier {
    unsigned arrived = 0, generation = 0;
};

struct Warp {
    unsigned long long slot[32];
    unsigned live = 0;
    std::map<unsigned, Barrier> barriers;
};

struct Fibre {
    ucontext_t start;
    jmp_buf place;
    bool started, ended;
};

constexpr size_t STACK = 64 << 10;

static std::vector<Fibre> fibres;
static std::vector<Warp> warps;
static std::vector<unsigned> order;
static Barrier block_barrier;
static unsigned current, live;
static unsigned long long dice = 88172645463325252ull;
static jmp_buf scheduler;
static Dim block, threads, blocks;
static char* stacks;
static std::vector<double> dynamic;
static double* dynamic_shared;
static void (*kernel)(void**);
static void** arguments;

inline unsigned long long random() {
    dice ^= dice << 13;
    dice ^= dice >> 7;
    return dice ^= dice << 17;
}

inline void yield() {
    if (_setjmp(fibres[current].place) == 0) _longjmp(scheduler, 1);
}

inline void sometimes_yield() {
    if (random() % 16 == 0) yield();
}

template <typename Expected> void wait(Barrier& barrier, Expected expected) {
    const unsigned generation = barrier.generation;
    ++barrier.arrived;
    while (barrier.generation == generation) {
        if (barrier.arrived >= expected()) {
            barrier.arrived = 0;
            ++barrier.generation;
            return;
        }
        yield();
    }
}

inline unsigned lane() { return current % 32; }

inline void meet(unsigned mask) {
    Warp& warp = warps[current / 32];
    wait(warp.barriers[mask], [&] { return (unsigned)__builtin_popcount(mask & warp.live); });
}

// The value of `v` in the lane that `from` names.
template <typename T, typename From> T exchanged(unsigned mask, T v, From from) {
    Warp& warp = warps[current / 32];
    memcpy(&warp.slot[lane()], &v, sizeof(T));
    meet(mask);
    T got;
    memcpy(&got, &warp.slot[from(lane())], sizeof(T));
    meet(mask);
    return got;
}

// Bits of the lanes for which `holds` of their values.
template <typename T, typename Holds> unsigned voted(unsigned mask, T v, Holds holds) {
    Warp& warp = warps[current / 32];
    memcpy(&warp.slot[lane()], &v, sizeof(T));
    meet(mask);
    unsigned bits = 0;
    for (unsigned l = 0; l < 32; ++l) {
        T other;
        memcpy(&other, &warp.slot[l], sizeof(T));
        if (mask & warp.live & 1u << l && holds(other)) bits |= 1u << l;
    }
    meet(mask);
    return bits;
}

template <typename T> T load(const T* from) {
    yield();
    return *from;
}

template <typename T> void store(T* to, T v) {
    sometimes_yield();
    *to = v;
}

inline void entry() {
    kernel(arguments);
    fibres[current].ended = true;
    warps[current / 32].live &= ~(1u << lane());
    --live;
    _longjmp(scheduler, 1);
}

inline void run_block() {
    const unsigned count = threads.x;
    warps.assign((count + 31) / 32, Warp());
    block_barrier = Barrier();
    order.resize(count);
    live = count;
    for (unsigned t = 0; t < count; ++t) {
        warps[t / 32].live |= 1u << t % 32;
        fibres[t].started = fibres[t].ended = false;
        order[t] = t;
    }
    for (unsigned t = count; t > 1; --t) std::swap(order[t - 1], order[random() % t]);
    while (live > 0)
        for (unsigned t : order) {
            if (fibres[t].ended) continue;
            current = t;
            if (_setjmp(scheduler) != 0) continue;
            if (fibres[t].started) _longjmp(fibres[t].place, 1);
            fibres[t].started = true;
            getcontext(&fibres[t].start);
            fibres[t].start.uc_stack.ss_sp = stacks + t * STACK;
            fibres[t].start.uc_stack.ss_size = STACK;
            makecontext(&fibres[t].start, entry, 0);
            setcontext(&fibres[t].start);
        }
}

template <typename... A, size_t... I> void call_with(void (*f)(A...), void** a, std::index_sequence<I...>) {
    f(*(std::remove_cv_t<A>*)a[I]...);
}

template <typename... A> void call(void (*f)(A...), void** a) { call_with(f, a, std::index_sequence_for<A...>()); }

}  // namespace emulated

extern "C" inline __attribute__((used)) void emulated_launch(void (*f)(void**), unsigned grid, unsigned count,
                                                             unsigned shared, void** arguments) {
    using namespace emulated;
    if (!stacks)
        stacks = (char*)mmap(nullptr, 1024 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fibres.resize(1024);
    dynamic.assign(shared / 8 + 1, NAN);
    dynamic_shared = dynamic.data();
    kernel = f;
    emulated::arguments = arguments;
    threads = {count, 1, 1};
    blocks = {grid, 1, 1};
    for (unsigned b = 0; b < grid; ++b) {
        block = {b, 0, 0};
        run_block();
    }
}

#define threadIdx (emulated::Dim{emulated::current, 0, 0})
#define blockIdx (emulated::block)
#define blockDim (emulated::threads)
#define gridDim (emulated::blocks)

struct double2 {
    double x, y;
};
struct uint2 {
    unsigned x, y;
};
struct uint4 {
    unsigned x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }

inline double2 make_double2(double x, double y) { return {x, y}; }

template <typename T> T __ldcg(const T* from) { return *from; }
template <typename T> T __ldcs(const T* from) { return *from; }
template <typename T> T __ldg(const T* from) { return *from; }
template <typename T> void __stcg(T* to, T v) { *to = v; }

inline void __syncthreads() { emulated::wait(emulated::block_barrier, [] { return emulated::live; }); }
inline void __syncwarp(unsigned mask = ~0u) { emulated::meet(mask); }
inline void __threadfence() {}
inline void __nanosleep(unsigned) { emulated::yield(); }

template <typename T> T __shfl_sync(unsigned mask, T v, unsigned lane, unsigned width = 32) {
    return emulated::exchanged(mask, v, [&](unsigned own) { return own / width * width + lane % width; });
}
template <typename T> T __shfl_xor_sync(unsigned mask, T v, unsigned with, unsigned width = 32) {
    return emulated::exchanged(mask, v, [&](unsigned own) { return own ^ with; });
}
template <typename T> T __shfl_up_sync(unsigned mask, T v, unsigned by, unsigned width = 32) {
    return emulated::exchanged(mask, v, [&](unsigned own) { return own % width < by ? own : own - by; });
}
inline unsigned __ballot_sync(unsigned mask, bool v) {
    return emulated::voted(mask, v, [](bool other) { return other; });
}
inline bool __any_sync(unsigned mask, bool v) { return __ballot_sync(mask, v) != 0; }
template <typename T> unsigned __match_any_sync(unsigned mask, T v) {
    return emulated::voted(mask, v, [&](T other) { return other == v; });
}

template <typename T, typename Change> T emulated_atomic(T* at, Change change) {
    emulated::sometimes_yield();
    const T old = *at;
    *at = change(old);
    return old;
}
template <typename T, typename V> T atomicAdd(T* at, V v) {
    return emulated_atomic(at, [&](T old) { return (T)(old + v); });
}
template <typename T, typename V> T atomicOr(T* at, V v) {
    return emulated_atomic(at, [&](T old) { return (T)(old | v); });
}
template <typename T, typename V> T atomicMin(T* at, V v) {
    return emulated_atomic(at, [&](T old) { return old < (T)v ? old : (T)v; });
}
template <typename T, typename V> T atomicMax(T* at, V v) {
    return emulated_atomic(at, [&](T old) { return old > (T)v ? old : (T)v; });
}
template <typename T, typename V> T atomicCAS(T* at, V expected, V v) {
    return emulated_atomic(at, [&](T old) { return old == (T)expected ? (T)v : old; });
}

template <typename A, typename B> std::common_type_t<A, B> min(A a, B b) { return b < a ? b : a; }
template <typename A, typename B> std::common_type_t<A, B> max(A a, B b) { return a < b ? b : a; }
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __ffs(unsigned v) { return __builtin_ffs((int)v); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline float __double2float_rz(double v) {
    const float nearest = (float)v;
    return std::fabs((double)nearest) > std::fabs(v) ? std::nextafter(nearest, 0.0f) : nearest;
}
inline unsigned __float_as_uint(float v) {
    unsigned bits;
    memcpy(&bits, &v, 4);
    return bits;
}
inline float __uint_as_float(unsigned bits) {
    float v;
    memcpy(&v, &bits, 4);
    return v;
}
inline long long __double_as_longlong(double v) {
    long long bits;
    memcpy(&bits, &v, 8);
    return bits;
}
inline int __double2hiint(double v) { return (int)(__double_as_longlong(v) >> 32); }
inline double __longlong_as_double(long long bits) {
    double v;
    memcpy(&v, &bits, 8);
    return v;
}
inline bool isfinite(double v) { return std::isfinite(v); }
