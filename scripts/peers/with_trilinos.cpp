// A peer: Trilinos, ILU(k) of Ifpack2 in the Krylov solvers of Belos, on one rank.

#include <BelosBiCGStabSolMgr.hpp>
#include <BelosLinearProblem.hpp>
#include <BelosPseudoBlockCGSolMgr.hpp>
#include <BelosPseudoBlockGmresSolMgr.hpp>
#include <BelosTpetraAdapter.hpp>
#include <Ifpack2_Factory.hpp>
#include <Teuchos_DefaultSerialComm.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_CrsMatrix.hpp>
#include <Tpetra_MultiVector.hpp>

#include "exchange.hpp"

using peer::Case;
using Matrix = Tpetra::CrsMatrix<>;
using Scalar = Matrix::scalar_type;
using Local = Matrix::local_ordinal_type;
using Global = Matrix::global_ordinal_type;
using Node = Matrix::node_type;
using Map = Tpetra::Map<Local, Global, Node>;
using Rows = Tpetra::RowMatrix<Scalar, Local, Global, Node>;
using Vectors = Tpetra::MultiVector<Scalar, Local, Global, Node>;
using Operator = Tpetra::Operator<Scalar, Local, Global, Node>;
using Preconditioner = Ifpack2::Preconditioner<Scalar, Local, Global, Node>;
using Teuchos::RCP;
using Teuchos::rcp;

static RCP<Matrix> stored(const Case& c, const RCP<const Map>& map) {
    Teuchos::ArrayRCP<size_t> pointers(c.n + 1);
    std::copy(c.indptr.begin(), c.indptr.end(), pointers.begin());
    Teuchos::ArrayRCP<Local> columns(c.indices.size());
    std::copy(c.indices.begin(), c.indices.end(), columns.begin());
    Teuchos::ArrayRCP<Scalar> values(c.values.size());
    std::copy(c.values.begin(), c.values.end(), values.begin());
    RCP<Matrix> a = rcp(new Matrix(map, map, pointers, columns, values));
    a->fillComplete(map, map);
    return a;
}

// Sets up as often as samples are asked for, with the seconds of both phases.
static RCP<Preconditioner> prepared(const Case& c, const RCP<const Matrix>& a) {
    const bool factors = c.word("precond") == "RILUK";
    std::vector<double> samples;
    RCP<Preconditioner> m;
    while (samples.empty() || c.another(samples)) {
        double symbolic = 0.0, numeric = 0.0;
        if (factors) {
            m = Ifpack2::Factory::create<Rows>("RILUK", RCP<const Rows>(a));
            Teuchos::ParameterList chosen;
            chosen.set("fact: iluk level-of-fill", static_cast<int>(c.whole("fill")));
            m->setParameters(chosen);
            symbolic = peer::timed([&] { m->initialize(); });
            numeric = peer::timed([&] { m->compute(); });
        }
        samples.push_back(symbolic + numeric);
        peer::Line("setup").with("symbolic", symbolic).with("numeric", numeric).say();
    }
    return m;
}

static RCP<Belos::SolverManager<Scalar, Vectors, Operator>> solver(
    const Case& c, const RCP<Belos::LinearProblem<Scalar, Vectors, Operator>>& problem) {
    RCP<Teuchos::ParameterList> chosen = Teuchos::parameterList();
    const int limit = static_cast<int>(c.whole("max-iterations"));
    chosen->set("Maximum Iterations", limit);
    chosen->set("Convergence Tolerance", c.number("rtol"));
    const std::string& name = c.word("solver");
    if (name == "CG") return rcp(new Belos::PseudoBlockCGSolMgr<Scalar, Vectors, Operator>(problem, chosen));
    if (name == "BiCGStab") return rcp(new Belos::BiCGStabSolMgr<Scalar, Vectors, Operator>(problem, chosen));
    chosen->set("Num Blocks", static_cast<int>(c.whole("restart")));
    chosen->set("Maximum Restarts", limit);
    return rcp(new Belos::PseudoBlockGmresSolMgr<Scalar, Vectors, Operator>(problem, chosen));
}

static void run(const Case& c) {
    auto map = rcp(new Map(c.n, 0, Tpetra::getDefaultComm()));
    RCP<Matrix> a;
    const double stored_s = peer::timed([&] { a = stored(c, map); });
    peer::Line("setup").with("matrix", stored_s).say();
    RCP<Preconditioner> m;
    try {
        m = prepared(c, a);
    } catch (const std::exception& why) {
        throw peer::Breakdown(why.what());
    }
    auto x = rcp(new Vectors(map, 1)), b = rcp(new Vectors(map, 1));
    for (int i = 0; i < c.n; ++i) b->replaceLocalValue(i, 0, c.b[i]);
    bool converged = false;
    long iterations = 0;
    double residual = NAN;
    c.time_solves([&] {
        x->putScalar(0.0);
        auto problem = rcp(new Belos::LinearProblem<Scalar, Vectors, Operator>(a, x, b));
        if (!m.is_null()) {
            if (c.word("solver") == "CG") problem->setLeftPrec(m);
            else problem->setRightPrec(m);
        }
        problem->setProblem();
        auto s = solver(c, problem);
        converged = s->solve() == Belos::Converged;
        iterations = s->getNumIters();
        residual = s->achievedTol();
    });
    const auto data = x->getData(0);
    c.end(data.getRawPtr(), converged, iterations, residual);
}

int main(int count, char** arguments) {
    Tpetra::ScopeGuard guard(&count, &arguments);
    return peer::main(count, arguments, "Trilinos " PEER_VERSION, run);
}
