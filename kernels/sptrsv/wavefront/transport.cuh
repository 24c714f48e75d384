// How values travel in a wavefront: copies to shared memory, and the barriers that tell of them.
#pragma once
#include "barriers.cuh"
#include "stored.cuh"

// 8 bytes to shared memory while the thread goes on, or zeros.
__device__ inline void copy_async(double* to, const double* from, bool there) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
                 :
                 : "r"(shared_address(to)), "l"(from), "r"(there ? 8 : 0)
                 : "memory");
}

// Numbers in shared memory by their plain addresses; zero, or nothing, where there is none.
__device__ inline double load_shared(u32 at) {
    double v;
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(v) : "r"(at));
    return v;
}
__device__ inline double load_shared_if(bool there, u32 at) {
    double v = 0.0;
    asm volatile(
        "{\n"
        ".reg .pred there;\n"
        "setp.ne.u32 there, %1, 0;\n"
        "@there ld.shared.f64 %0, [%2];\n"
        "}"
        : "+d"(v)
        : "r"((u32)there), "r"(at));
    return v;
}
__device__ inline void store_shared(u32 at, double v) {
    asm volatile("st.shared.f64 [%0], %1;" : : "r"(at), "d"(v) : "memory");
}

// Stores without a branch; INTO tells where and how.
#define STORE_IF(INTO, ADDRESS)                       \
    asm volatile(                                     \
        "{\n"                                         \
        ".reg .pred there;\n"                         \
        "setp.ne.u32 there, %0, 0;\n"                 \
        "@there st." INTO ".f64 [%1], %2;\n"          \
        "}"                                           \
        :                                             \
        : "r"((u32)there), ADDRESS(to), "d"(v)        \
        : "memory")
__device__ inline void store_shared_if(bool there, u32 to, double v) { STORE_IF("shared", "r"); }
__device__ inline void store_if(bool there, double* to, double v) { STORE_IF("global", "l"); }
// For others that wait for it.
__device__ inline void publish_if(bool there, double* to, double v) { STORE_IF("relaxed.gpu.global", "l"); }
#undef STORE_IF

// So many threads of the block have come to the end of the step.
template <int STEPPING>
__device__ BARRIER void end_step() {
    asm volatile("bar.sync 1, %0;" : : "n"(STEPPING) : "memory");
}

// Each barrier is used again and again: the n-th use has parity n.
__device__ inline void arrive(u64* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(shared_address(barrier)) : "memory");
}
__device__ inline void wait(u64* barrier, u32 use) { wait_parity(barrier, use & 1); }

// Numbers from global to shared memory; the barrier counts one arrival when they are there.
__device__ inline void bulk_copy(Stored* to, const Stored* from, int numbers, u64* barrier) {
    const int bytes = numbers * (int)sizeof(Stored);
    expect_bytes(barrier, bytes);
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        :
        : "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(barrier))
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
