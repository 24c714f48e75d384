// A peer: amgcl, ILU(k) by points and its algebraic multigrid; on a GPU where nvcc compiles it, on the host otherwise.
#include <omp.h>

#ifdef __CUDACC__
#include <amgcl/backend/cuda.hpp>
#include <amgcl/relaxation/cusparse_ilu0.hpp>
#include "gpu.hpp"
#else
#include <amgcl/backend/builtin.hpp>
#endif
#include <amgcl/adapter/crs_tuple.hpp>
#include <amgcl/amg.hpp>
#include <amgcl/coarsening/smoothed_aggregation.hpp>
#include <amgcl/make_solver.hpp>
#include <amgcl/preconditioner/dummy.hpp>
#include <amgcl/relaxation/as_preconditioner.hpp>
#include <amgcl/relaxation/ilu0.hpp>
#include <amgcl/relaxation/iluk.hpp>
#include <amgcl/relaxation/spai0.hpp>
#include <amgcl/solver/bicgstab.hpp>
#include <amgcl/solver/cg.hpp>
#include <amgcl/solver/gmres.hpp>

#include <memory>
#include <tuple>

#include "exchange.hpp"

using peer::Case;

#ifdef __CUDACC__
using Backend = amgcl::backend::cuda<double>;
using Vector = thrust::device_vector<double>;
using peer::wait;
static std::string (*const device)() = peer::gpu;
static const char* const where = " with CUDA";

static Backend::params place() {
    Backend::params chosen;
    AMGCL_CALL_CUDA(cusparseCreate(&chosen.cusparse_handle));
    return chosen;
}
#else
using Backend = amgcl::backend::builtin<double>;
using Vector = std::vector<double>;
static std::string (*const device)() = nullptr;
static const char* const where = "";

static void wait() {}
static Backend::params place() { return {}; }
#endif

static void settings(const Case& c, amgcl::solver::gmres<Backend>::params& p) {
    p.M = static_cast<unsigned>(c.whole("restart"));
    p.pside = c.word("side") == "left" ? amgcl::preconditioner::side::left : amgcl::preconditioner::side::right;
}

template <class Other>
static void settings(const Case&, Other&) {}

template <class Preconditioner, class Solver, class Set>
static void solve(const Case& c, Set set) {
    using Both = amgcl::make_solver<Preconditioner, Solver>;
    typename Both::params parameters;
    set(parameters.precond);
    settings(c, parameters.solver);
    parameters.solver.tol = c.number("rtol");
    parameters.solver.maxiter = static_cast<size_t>(c.whole("max-iterations"));
    const Backend::params on = place();
    std::unique_ptr<Both> both;
    const auto system = std::tie(c.n, c.indptr, c.indices, c.values);
    auto setup = [&] {
        both = std::make_unique<Both>(system, parameters, on);
        wait();
    };
    try {
        c.time_setups({{"seconds", setup}});
    } catch (const std::runtime_error& why) {
        const std::string what = why.what();
        if (what.find("pivot") == std::string::npos) throw;
        throw peer::Breakdown(what);
    }
    const Vector b(c.b.begin(), c.b.end());
    Vector x(c.n);
    size_t iterations = 0;
    double residual = 0.0;
    c.time_solves([&] {
        amgcl::backend::clear(x);
        std::tie(iterations, residual) = (*both)(b, x);
        wait();
    });
    std::vector<double> found(c.n);
    amgcl::backend::copy(x, found);
    c.end(found.data(), residual <= c.number("rtol"), static_cast<long>(iterations), residual);
}

template <template <class> class Smoother>
using Multigrid = amgcl::amg<Backend, amgcl::coarsening::smoothed_aggregation, Smoother>;

template <class Solver>
static void with(const Case& c) {
    using namespace amgcl::relaxation;
    const std::string& name = c.word("precond");
    auto nothing = [](auto&) {};
    if (name == "dummy") return solve<amgcl::preconditioner::dummy<Backend>, Solver>(c, nothing);
    if (name == "amg") return solve<Multigrid<spai0>, Solver>(c, nothing);
    if (name == "amg-ilu0") return solve<Multigrid<ilu0>, Solver>(c, nothing);
    // "iluk-2" has its level in its name
    const int fill = name == "ilu" ? static_cast<int>(c.whole("fill")) : std::stoi(name.substr(5));
    if (name == "ilu" && fill == 0) return solve<as_preconditioner<Backend, ilu0>, Solver>(c, nothing);
    return solve<as_preconditioner<Backend, iluk>, Solver>(c, [&](auto& p) { p.k = fill; });
}

static void run(const Case& c) {
    const std::string& name = c.word("solver");
    if (name == "gmres") return with<amgcl::solver::gmres<Backend>>(c);
    if (name == "cg") return with<amgcl::solver::cg<Backend>>(c);
    return with<amgcl::solver::bicgstab<Backend>>(c);
}

int main(int count, char** arguments) {
    return peer::main(count, arguments, std::string("amgcl " PEER_VERSION) + where, run, omp_get_max_threads(), device);
}
