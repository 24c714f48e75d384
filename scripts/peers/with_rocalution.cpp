// A peer: rocALUTION on the host, one thread, built without HIP.

#include <iostream>
#include <memory>
#include <rocalution/rocalution.hpp>

#include "exchange.hpp"

using namespace rocalution;
using peer::Case;
using Rows = LocalMatrix<double>;
using Values = LocalVector<double>;
using Method = Preconditioner<Rows, Values, double>;
using Iteration = IterativeLinearSolver<Rows, Values, double>;

static std::unique_ptr<Method> preconditioner(const Case& c) {
    const std::string& name = c.word("precond");
    const int fill = static_cast<int>(c.whole("fill"));
    if (name == "none") return nullptr;
    if (name == "Jacobi") return std::make_unique<Jacobi<Rows, Values, double>>();
    if (name == "MultiColoredILU") {
        auto m = std::make_unique<MultiColoredILU<Rows, Values, double>>();
        m->Set(0, 1, true);
        return m;
    }
    auto m = std::make_unique<ILU<Rows, Values, double>>();
    m->Set(fill);
    return m;
}

static std::unique_ptr<Iteration> solver(const Case& c) {
    const std::string& name = c.word("solver");
    std::unique_ptr<Iteration> s;
    if (name == "CG") s = std::make_unique<CG<Rows, Values, double>>();
    else if (name == "BiCGStab") s = std::make_unique<BiCGStab<Rows, Values, double>>();
    else {
        // the flexible one acts on the right
        auto gmres = std::make_unique<FGMRES<Rows, Values, double>>();
        gmres->SetBasisSize(static_cast<int>(c.whole("restart")));
        s = std::move(gmres);
    }
    s->Init(1e-300, c.number("rtol"), 1e30, static_cast<int>(c.whole("max-iterations")));
    s->Verbose(0);
    return s;
}

static void run(const Case& c) {
    Rows a;
    Values x, b;
    const double stored = peer::timed([&] {
        const int64_t nnz = static_cast<int64_t>(c.values.size());
        a.AllocateCSR("A", nnz, c.n, c.n);
        a.CopyFromCSR(c.indptr.data(), c.indices.data(), c.values.data());
    });
    peer::Line("setup").with("matrix", stored).say();
    x.Allocate("x", c.n);
    b.Allocate("b", c.n);
    b.CopyFromData(c.b.data());
    std::unique_ptr<Method> m;
    std::unique_ptr<Iteration> s;
    auto set_up = [&] {
        // the solver refers to the preconditioner
        if (s) s->Clear();
        s = solver(c);
        m = preconditioner(c);
        s->SetOperator(a);
        if (m) s->SetPreconditioner(*m);
        s->Build();
    };
    c.time_setups({{"seconds", set_up}});
    c.time_solves([&] {
        x.Zeros();
        s->Solve(b, &x);
    });
    std::vector<double> solution(c.n);
    x.CopyToData(solution.data());
    // 1 and 2: the absolute or the relative tolerance is met
    const int status = s->GetSolverStatus();
    c.end(solution.data(), status == 1 || status == 2, s->GetIterationCount(), NAN);
    s->Clear();
}

int main(int count, char** arguments) {
    // standard output is for the answer
    std::cout.rdbuf(std::cerr.rdbuf());
    init_rocalution();
    const std::string version = std::to_string(__ROCALUTION_VER_MAJOR) + "." + std::to_string(__ROCALUTION_VER_MINOR);
    const int code = peer::main(count, arguments, "rocALUTION " + version + " on the host", run);
    stop_rocalution();
    return code;
}
