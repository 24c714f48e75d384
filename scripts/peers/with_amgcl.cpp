// A peer: amgcl, ILU(k) by points and its algebraic multigrid.
#include <omp.h>

#include <amgcl/adapter/crs_tuple.hpp>
#include <amgcl/amg.hpp>
#include <amgcl/backend/builtin.hpp>
#include <amgcl/coarsening/smoothed_aggregation.hpp>
#include <amgcl/make_solver.hpp>
#include <amgcl/preconditioner/dummy.hpp>
#include <amgcl/relaxation/as_preconditioner.hpp>
#include <amgcl/relaxation/damped_jacobi.hpp>
#include <amgcl/relaxation/ilu0.hpp>
#include <amgcl/relaxation/iluk.hpp>
#include <amgcl/relaxation/spai0.hpp>
#include <amgcl/solver/bicgstab.hpp>
#include <amgcl/solver/cg.hpp>
#include <amgcl/solver/gmres.hpp>

#include <memory>
#include <tuple>

#include "exchange.hpp"

using Backend = amgcl::backend::builtin<double>;
using peer::Case;

void settings(const Case& c, amgcl::solver::gmres<Backend>::params& p) {
    p.M = static_cast<unsigned>(c.whole("restart"));
    p.pside = c.word("side") == "left" ? amgcl::preconditioner::side::left : amgcl::preconditioner::side::right;
}

template <class Other>
void settings(const Case&, Other&) {}

template <class Preconditioner, class Solver, class Set>
void solve(const Case& c, Set set) {
    using Both = amgcl::make_solver<Preconditioner, Solver>;
    typename Both::params parameters;
    set(parameters.precond);
    settings(c, parameters.solver);
    parameters.solver.tol = c.number("rtol");
    parameters.solver.maxiter = static_cast<size_t>(c.whole("max-iterations"));
    std::unique_ptr<Both> both;
    const auto system = std::tie(c.n, c.indptr, c.indices, c.values);
    c.time_setups([&] { both = std::make_unique<Both>(system, parameters); }, [] { return 0.0; });
    std::vector<double> x(c.n);
    size_t iterations = 0;
    double residual = 0.0;
    c.time_solves([&] {
        std::fill(x.begin(), x.end(), 0.0);
        std::tie(iterations, residual) = (*both)(c.b, x);
    });
    c.end(x.data(), residual <= c.number("rtol"), static_cast<long>(iterations), residual);
}

template <class Solver>
void with(const Case& c) {
    using namespace amgcl::relaxation;
    using Multigrid = amgcl::amg<Backend, amgcl::coarsening::smoothed_aggregation, spai0>;
    const std::string& name = c.word("precond");
    auto nothing = [](auto&) {};
    if (name == "dummy") return solve<amgcl::preconditioner::dummy<Backend>, Solver>(c, nothing);
    if (name == "amg") return solve<Multigrid, Solver>(c, nothing);
    if (c.whole("fill") == 0) return solve<as_preconditioner<Backend, ilu0>, Solver>(c, nothing);
    const int fill = static_cast<int>(c.whole("fill"));
    return solve<as_preconditioner<Backend, iluk>, Solver>(c, [&](auto& p) { p.k = fill; });
}

void run(const Case& c) {
    const std::string& name = c.word("solver");
    if (name == "gmres") return with<amgcl::solver::gmres<Backend>>(c);
    if (name == "cg") return with<amgcl::solver::cg<Backend>>(c);
    return with<amgcl::solver::bicgstab<Backend>>(c);
}

int main(int count, char** arguments) { return peer::main(count, arguments, "amgcl " PEER_VERSION, run, omp_get_max_threads()); }
