// Barriers in shared memory, and copies that arrive at them.
#pragma once
#include "common.cuh"

__device__ inline u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ inline void prepare_barrier(u64* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
// When the asynchronous copies of this thread so far are done.
__device__ inline void arrive_with_copies(u64* barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" : : "r"(shared_address(barrier)) : "memory");
}
// An arrival; the barrier waits for so many bytes of bulk copies besides.
__device__ inline void expect_bytes(u64* barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(shared_address(barrier)), "r"(bytes) : "memory");
}
// Until the barrier has been passed as often as this; barriers that are used again and again have alternating parity.
__device__ inline void wait_parity(const u64* barrier, u32 parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}"
        :
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
}

#if __CUDA_ARCH__ >= 900
// From global to shared memory, for a barrier that expects the bytes; what stays in the L2 cache is up to the policy.
__device__ inline void bulk_copy(u32 to, const void* from, u32 bytes, u64* barrier, u64 policy) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;"
                 : : "r"(to), "l"(from), "r"(bytes), "r"(shared_address(barrier)), "l"(policy) : "memory");
}
#endif
