// The GPU of a peer: its name, and why there is none.
#pragma once

#include <cuda_runtime.h>

#include "exchange.hpp"

namespace peer {

// What a call of CUDA came to.
inline void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    if (status == cudaErrorMemoryAllocation) throw std::bad_alloc();
    throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(status));
}

// Waits for the GPU: before a clock is read.
inline void wait() { check(cudaDeviceSynchronize()); }

// The name of the GPU.
inline std::string gpu() {
    int driver = 0, count = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) throw Unsupported("no GPU: there is no CUDA driver");
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) throw Unsupported(std::string("no GPU: ") + cudaGetErrorString(status));
    cudaDeviceProp found;
    check(cudaGetDeviceProperties(&found, 0));
    return found.name;
}

// An array on the GPU, with a copy of these values.
template <class T>
class Array {
    T* start = nullptr;
    size_t bytes;

public:
    explicit Array(const std::vector<T>& from) : bytes(from.size() * sizeof(T)) {
        check(cudaMalloc(reinterpret_cast<void**>(&start), bytes));
        check(cudaMemcpy(start, from.data(), bytes, cudaMemcpyHostToDevice));
    }
    ~Array() { cudaFree(start); }
    Array(const Array&) = delete;

    T* data() const { return start; }
    std::vector<T> back() const {
        std::vector<T> to(bytes / sizeof(T));
        check(cudaMemcpy(to.data(), start, bytes, cudaMemcpyDeviceToHost));
        return to;
    }
};

}  // namespace peer
