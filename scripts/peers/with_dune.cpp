// A peer: dune-istl, ILU(k) of points or of blocks up to 4 x 4.
#include <dune/common/exceptions.hh>
#include <dune/common/fmatrix.hh>
#include <dune/common/fvector.hh>
#include <dune/istl/bcrsmatrix.hh>
#include <dune/istl/bvector.hh>
#include <dune/istl/operators.hh>
#include <dune/istl/preconditioners.hh>
#include <dune/istl/solvers.hh>

#include <memory>
#include <set>

#include "exchange.hpp"

using peer::Case;

template <int B>
struct Dune_ {
    using Matrix = Dune::BCRSMatrix<Dune::FieldMatrix<double, B, B>>;
    using Vector = Dune::BlockVector<Dune::FieldVector<double, B>>;
    using Preconditioner = Dune::Preconditioner<Vector, Vector>;

    static Matrix stored(const Case& c) {
        const int rows = c.n / B;
        std::vector<std::vector<int>> pattern(rows);
        for (int i = 0; i < c.n; ++i)
            for (int e = c.indptr[i]; e < c.indptr[i + 1]; ++e) pattern[i / B].push_back(c.indices[e] / B);
        Matrix a(rows, rows, Matrix::random);
        for (int i = 0; i < rows; ++i) {
            auto& row = pattern[i];
            std::sort(row.begin(), row.end());
            row.erase(std::unique(row.begin(), row.end()), row.end());
            a.setrowsize(i, row.size());
        }
        a.endrowsizes();
        for (int i = 0; i < rows; ++i)
            for (int j : pattern[i]) a.addindex(i, j);
        a.endindices();
        a = 0.0;
        for (int i = 0; i < c.n; ++i)
            for (int e = c.indptr[i]; e < c.indptr[i + 1]; ++e)
                a[i / B][c.indices[e] / B][i % B][c.indices[e] % B] = c.values[e];
        return a;
    }

    static std::unique_ptr<Preconditioner> prepared(const Case& c, const Matrix& a) {
        const std::string& name = c.word("precond");
        if (name == "richardson") return std::make_unique<Dune::Richardson<Vector, Vector>>(1.0);
        if (name == "jacobi") return std::make_unique<Dune::SeqJac<Matrix, Vector, Vector>>(a, 1, 1.0);
        // its factors are copied to rows, as its own solvers do for larger systems
        return std::make_unique<Dune::SeqILU<Matrix, Vector, Vector>>(a, c.whole("fill"), 1.0, true);
    }

    static void run(const Case& c) {
        Matrix a;
        const double stored_s = peer::timed([&] { a = stored(c); });
        peer::Line("setup").with("matrix", stored_s).say();
        Dune::MatrixAdapter<Matrix, Vector, Vector> product(a);
        std::unique_ptr<Preconditioner> m;
        try {
            c.time_setups({{"seconds", [&] { m = prepared(c, a); }}});
        } catch (const Dune::Exception& why) {
            throw peer::Breakdown(why.what());
        }
        Vector x(c.n / B), b(c.n / B);
        Dune::InverseOperatorResult result;
        const double rtol = c.number("rtol");
        const int limit = static_cast<int>(c.whole("max-iterations"));
        auto solve = [&] {
            for (int i = 0; i < c.n; ++i) b[i / B][i % B] = c.b[i];
            x = 0.0;
            result.clear();
            const std::string& name = c.word("solver");
            if (name == "fgmres") {
                // the flexible one acts on the right
                const int restart = static_cast<int>(c.whole("restart"));
                Dune::RestartedFlexibleGMResSolver<Vector> s(product, *m, rtol, restart, limit, 0);
                s.apply(x, b, result);
            } else if (name == "cg") {
                Dune::CGSolver<Vector> s(product, *m, rtol, limit, 0);
                s.apply(x, b, result);
            } else {
                Dune::BiCGSTABSolver<Vector> s(product, *m, rtol, limit, 0);
                s.apply(x, b, result);
            }
        };
        try {
            c.time_solves(solve);
        } catch (const Dune::Exception& why) {
            throw peer::Breakdown(why.what());
        }
        std::vector<double> solution(c.n);
        for (int i = 0; i < c.n; ++i) solution[i] = x[i / B][i % B];
        c.end(solution.data(), result.converged, result.iterations, result.reduction);
    }
};

void run(const Case& c) {
    switch (c.whole("block-size")) {
        case 1: return Dune_<1>::run(c);
        case 2: return Dune_<2>::run(c);
        case 3: return Dune_<3>::run(c);
        case 4: return Dune_<4>::run(c);
        default: throw peer::Unsupported("built for blocks up to 4 x 4");
    }
}

int main(int count, char** arguments) { return peer::main(count, arguments, "dune-istl " PEER_VERSION, run); }
