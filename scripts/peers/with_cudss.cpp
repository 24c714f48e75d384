// A peer: cuDSS, direct solves on a GPU: LU factors of any matrix, LDL' of symmetric ones, Cholesky factors of positive
// definite ones.

#include <cudss.h>

#include <memory>
#include <thread>

#include "gpu.hpp"

using peer::Case;

// What a call came to.
static void check(cudssStatus_t status) {
    if (status == CUDSS_STATUS_SUCCESS) return;
    if (status == CUDSS_STATUS_ALLOC_FAILED) throw std::bad_alloc();
    if (status == CUDSS_STATUS_NOT_SUPPORTED) throw peer::Unsupported("cuDSS does not support it");
    throw std::runtime_error("cuDSS ended with " + std::to_string(status));
}

template <class T>
static T told(cudssHandle_t handle, cudssData_t data, cudssDataParam_t what) {
    T value{};
    size_t written = 0;
    check(cudssDataGet(handle, data, what, &value, sizeof value, &written));
    return value;
}

static void run(const Case& c) {
    const std::string& name = c.word("solver");
    const bool any = name == "lu";
    const auto type = any ? CUDSS_MTYPE_GENERAL : name == "ldl" ? CUDSS_MTYPE_SYMMETRIC : CUDSS_MTYPE_SPD;
    const auto view = any ? CUDSS_MVIEW_FULL : CUDSS_MVIEW_LOWER; // the other triangle is ignored
    cudssHandle_t handle;
    cudssConfig_t config;
    check(cudssCreate(&handle));
    check(cudssConfigCreate(&config));
    // its library for threads of the host
    if (std::getenv("CUDSS_THREADING_LIB") != nullptr) check(cudssSetThreadingLayer(handle, nullptr));
    peer::wait();

    const peer::Array<double> right(c.b), solution(std::vector<double>(c.n));
    cudssMatrix_t a = nullptr, b, x;
    check(cudssMatrixCreateDn(&b, c.n, 1, c.n, right.data(), CUDA_R_64F, CUDSS_LAYOUT_COL_MAJOR));
    check(cudssMatrixCreateDn(&x, c.n, 1, c.n, solution.data(), CUDA_R_64F, CUDSS_LAYOUT_COL_MAJOR));
    std::unique_ptr<peer::Array<int>> pointers, columns;
    std::unique_ptr<peer::Array<double>> values;
    auto move = [&] {
        pointers = std::make_unique<peer::Array<int>>(c.indptr);
        columns = std::make_unique<peer::Array<int>>(c.indices);
        values = std::make_unique<peer::Array<double>>(c.values);
        if (a != nullptr) check(cudssMatrixDestroy(a));
        check(cudssMatrixCreateCsr(&a, c.n, c.n, static_cast<int64_t>(c.values.size()), pointers->data(), nullptr,
                                   columns->data(), values->data(), CUDA_R_32I, CUDA_R_32I, CUDA_R_64F, type, view,
                                   CUDSS_BASE_ZERO));
        peer::wait();
    };
    cudssData_t data = nullptr;
    auto phase = [&](int phase) {
        check(cudssExecute(handle, phase, config, data, a, x, b));
        peer::wait();
    };
    auto symbolic = [&] {
        if (data != nullptr) check(cudssDataDestroy(handle, data));
        check(cudssDataCreate(handle, &data));
        phase(CUDSS_PHASE_ANALYSIS);
    };
    auto numeric = [&] {
        phase(CUDSS_PHASE_FACTORIZATION);
        const int info = told<int>(handle, data, CUDSS_DATA_INFO);
        if (info != 0) throw peer::Breakdown("cuDSS: no factors, row " + std::to_string(info));
    };
    c.time_setups({{"matrix", move}, {"symbolic", symbolic}, {"numeric", numeric}},
                  [&] { return static_cast<double>(told<int64_t>(handle, data, CUDSS_DATA_LU_NNZ)); });
    c.time_solves([&] { phase(CUDSS_PHASE_SOLVE); });
    c.end(solution.back().data(), true, 1, NAN);
    for (auto matrix : {a, b, x}) cudssMatrixDestroy(matrix);
    cudssDataDestroy(handle, data);
    cudssConfigDestroy(config);
    cudssDestroy(handle);
}

int main(int count, char** arguments) {
    std::string text = "cuDSS";
    for (auto part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
        int number = 0;
        cudssGetProperty(part, &number);
        text += (part == MAJOR_VERSION ? " " : ".") + std::to_string(number);
    }
    const long threads = std::getenv("CUDSS_THREADING_LIB") != nullptr ? std::thread::hardware_concurrency() : 1;
    return peer::main(count, arguments, text, run, threads, peer::gpu);
}
