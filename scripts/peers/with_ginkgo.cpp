// A peer: Ginkgo on the host with OpenMP, or on a GPU where PEER_CUDA is defined.

#include <omp.h>

#include <ginkgo/ginkgo.hpp>

#include "exchange.hpp"
#ifdef PEER_CUDA
#include "gpu.hpp"
#endif

using peer::Case;
using Matrix = gko::matrix::Csr<double, int>;
using Vector = gko::matrix::Dense<double>;
using Lower = gko::solver::LowerTrs<double, int>;
using Upper = gko::solver::UpperTrs<double, int>;
using Factory = std::shared_ptr<gko::LinOpFactory>;
using Algorithm = gko::factorization::incomplete_algorithm;
#ifdef PEER_CUDA
using Executor = std::shared_ptr<gko::CudaExecutor>;
static const char* const where = " with CUDA";
static const auto algorithm = Algorithm::sparselib;
static std::string (*const device)() = peer::gpu;

static Executor place() { return gko::CudaExecutor::create(0, gko::OmpExecutor::create()); }
#else
using Executor = std::shared_ptr<gko::OmpExecutor>;
static const char* const where = " with OpenMP";
static const auto algorithm = Algorithm::syncfree; // the only one
static std::string (*const device)() = nullptr;

static Executor place() { return gko::OmpExecutor::create(); }
#endif

// ILU(0) with exact triangular solves, or with approximate inverses of its factors.
template <class L, class U>
static Factory applied(const Executor& on, std::shared_ptr<const gko::LinOpFactory> factors) {
    using Ilu = gko::preconditioner::Ilu<L, U, false, int>;
    return gko::share(Ilu::build().with_factorization(gko::as<const gko::LinOpFactory>(factors)).on(on));
}

static Factory preconditioner(const Case& c, const Executor& on) {
    const std::string& name = c.word("precond");
    if (name == "none") return nullptr;
    if (name == "Jacobi") {
        const auto size = static_cast<gko::uint32>(c.whole("block-size"));
        return gko::share(gko::preconditioner::Jacobi<double, int>::build().with_max_block_size(size).on(on));
    }
    using Exact = gko::factorization::Ilu<double, int>;
    using Iterated = gko::factorization::ParIlu<double, int>;
    if (name == "ParILU") return applied<Lower, Upper>(on, gko::share(Iterated::build().on(on)));
    const auto exact = gko::share(Exact::build().with_algorithm(algorithm).on(on));
    if (name == "ISAI") {
        using namespace gko::preconditioner;
        return applied<LowerIsai<double, int>, UpperIsai<double, int>>(on, exact);
    }
    return applied<Lower, Upper>(on, exact);
}

template <class Solver, class Parameters>
static Factory built(const Case& c, const Executor& on, Parameters parameters) {
    const auto most = static_cast<gko::size_type>(c.whole("max-iterations"));
    parameters.with_criteria(gko::stop::Iteration::build().with_max_iters(most),
                             gko::stop::ResidualNorm<double>::build()
                                 .with_reduction_factor(c.number("rtol"))
                                 .with_baseline(gko::stop::mode::rhs_norm));
    if (const auto m = preconditioner(c, on)) parameters.with_preconditioner(m);
    return gko::share(parameters.on(on));
}

static Factory solver(const Case& c, const Executor& on) {
    const std::string& name = c.word("solver");
    if (name == "CG") return built<gko::solver::Cg<double>>(c, on, gko::solver::Cg<double>::build());
    if (name == "BiCGStab") return built<gko::solver::Bicgstab<double>>(c, on, gko::solver::Bicgstab<double>::build());
    auto gmres = gko::solver::Gmres<double>::build();
    gmres.with_krylov_dim(static_cast<gko::size_type>(c.whole("restart")));
    return built<gko::solver::Gmres<double>>(c, on, gmres);
}

static void run(const Case& c) {
    const auto on = place();
    const auto n = static_cast<gko::size_type>(c.n);
    auto copy = [&](const auto& from) { return gko::array<typename std::decay_t<decltype(from)>::value_type>(on, from.begin(), from.end()); };
    std::shared_ptr<Matrix> a;
    std::unique_ptr<gko::LinOp> s;
    auto forget = [&] {
        s.reset();
        a.reset();
    };
    auto move = [&] {
        a = gko::share(Matrix::create(on, gko::dim<2>(n), copy(c.values), copy(c.indices), copy(c.indptr)));
        on->synchronize();
    };
    auto setup = [&] {
        s = solver(c, on)->generate(a);
        on->synchronize();
    };
    try {
        c.time_setups({{nullptr, forget}, {"matrix", move}, {"seconds", setup}});
    } catch (const gko::NotImplemented& why) {
        throw peer::Unsupported(why.what());
    } catch (const gko::AllocationError&) {
        throw std::bad_alloc();
    } catch (const gko::Error& why) {
        throw peer::Breakdown(why.what());
    }
    const auto b = Vector::create(on, gko::dim<2>(n, 1), copy(c.b), 1), x = Vector::create(on, gko::dim<2>(n, 1));
    const auto told = gko::share(gko::log::Convergence<double>::create());
    s->add_logger(told);
    c.time_solves([&] {
        x->fill(0.0);
        s->apply(b, x);
        on->synchronize();
    });
    const auto found = gko::clone(on->get_master(), x);
    c.end(found->get_const_values(), told->has_converged(), static_cast<long>(told->get_num_iterations()), NAN);
}

int main(int count, char** arguments) {
    const auto version = gko::version_info::get().header_version;
    const std::string text = std::to_string(version.major) + "." + std::to_string(version.minor) + "." + std::to_string(version.patch);
    return peer::main(count, arguments, "Ginkgo " + text + where, run, omp_get_max_threads(), device);
}
