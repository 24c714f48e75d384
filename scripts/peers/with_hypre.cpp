// A peer: hypre, on one rank or, under mpirun, with a subdomain on each.
#include <HYPRE.h>
#include <HYPRE_IJ_mv.h>
#include <HYPRE_krylov.h>
#include <HYPRE_parcsr_ls.h>
#include <mpi.h>

#include <memory>

#include "exchange.hpp"

using peer::Case;

// Rows of this rank, of which each has as many.
struct Rows {
    int first, count;
    std::vector<int> starts;

    Rows(int n, int rank, int size) {
        for (int r = 0; r <= size; ++r) starts.push_back(static_cast<int>(static_cast<long>(n) * r / size));
        first = starts[rank];
        count = starts[rank + 1] - first;
    }
};

// A vector of these rows.
struct Vector {
    HYPRE_IJVector ij;
    HYPRE_ParVector parts;
    std::vector<HYPRE_BigInt> numbers;

    explicit Vector(const Rows& rows) {
        HYPRE_IJVectorCreate(MPI_COMM_WORLD, rows.first, rows.first + rows.count - 1, &ij);
        HYPRE_IJVectorSetObjectType(ij, HYPRE_PARCSR);
        HYPRE_IJVectorInitialize(ij);
        for (int i = 0; i < rows.count; ++i) numbers.push_back(rows.first + i);
        HYPRE_IJVectorAssemble(ij);
        HYPRE_IJVectorGetObject(ij, reinterpret_cast<void**>(&parts));
    }
    ~Vector() { HYPRE_IJVectorDestroy(ij); }

    void set(const double* values) {
        HYPRE_IJVectorSetValues(ij, static_cast<HYPRE_Int>(numbers.size()), numbers.data(), values);
    }
    void get(double* values) const {
        HYPRE_IJVectorGetValues(ij, static_cast<HYPRE_Int>(numbers.size()), numbers.data(), values);
    }
};

HYPRE_IJMatrix stored(const Case& c, const Rows& rows) {
    HYPRE_IJMatrix a;
    const int last = rows.first + rows.count - 1;
    HYPRE_IJMatrixCreate(MPI_COMM_WORLD, rows.first, last, rows.first, last, &a);
    HYPRE_IJMatrixSetObjectType(a, HYPRE_PARCSR);
    std::vector<HYPRE_Int> counts(rows.count);
    std::vector<HYPRE_BigInt> numbers(rows.count);
    for (int i = 0; i < rows.count; ++i) {
        numbers[i] = rows.first + i;
        counts[i] = c.indptr[rows.first + i + 1] - c.indptr[rows.first + i];
    }
    HYPRE_IJMatrixSetRowSizes(a, counts.data());
    HYPRE_IJMatrixInitialize(a);
    const int from = c.indptr[rows.first], to = c.indptr[rows.first + rows.count];
    const std::vector<HYPRE_BigInt> columns(c.indices.begin() + from, c.indices.begin() + to);
    HYPRE_IJMatrixSetValues(a, rows.count, counts.data(), numbers.data(), columns.data(), c.values.data() + from);
    HYPRE_IJMatrixAssemble(a);
    return a;
}

// A preconditioner: its functions, and what makes and ends it.
struct Preconditioner {
    HYPRE_Solver of = nullptr;
    HYPRE_PtrToParSolverFcn setup = HYPRE_ParCSRDiagScaleSetup, solve = HYPRE_ParCSRDiagScale;
    HYPRE_Int (*destroy)(HYPRE_Solver) = nullptr;
    bool none = false;

    explicit Preconditioner(const Case& c) {
        const std::string& name = c.word("precond");
        none = name == "none";
        if (name == "ilu" || name == "ras") {
            HYPRE_ILUCreate(&of);
            // ILU(k) of each rank's rows, or with those of its neighbours
            HYPRE_ILUSetType(of, name == "ilu" ? 0 : 30);
            HYPRE_ILUSetLevelOfFill(of, c.whole("fill"));
            HYPRE_ILUSetLocalReordering(of, 0);
            HYPRE_ILUSetMaxIter(of, 1);
            HYPRE_ILUSetTol(of, 0.0);
            setup = HYPRE_ILUSetup, solve = HYPRE_ILUSolve, destroy = HYPRE_ILUDestroy;
        } else if (name == "euclid") {
            HYPRE_EuclidCreate(MPI_COMM_WORLD, &of);
            HYPRE_EuclidSetLevel(of, c.whole("fill"));
            setup = HYPRE_EuclidSetup, solve = HYPRE_EuclidSolve, destroy = HYPRE_EuclidDestroy;
        } else if (name == "boomeramg") {
            HYPRE_BoomerAMGCreate(&of);
            HYPRE_BoomerAMGSetMaxIter(of, 1);
            HYPRE_BoomerAMGSetTol(of, 0.0);
            HYPRE_BoomerAMGSetPrintLevel(of, 0);
            setup = HYPRE_BoomerAMGSetup, solve = HYPRE_BoomerAMGSolve, destroy = HYPRE_BoomerAMGDestroy;
        }
    }
    ~Preconditioner() {
        if (destroy != nullptr) destroy(of);
    }
};

// The functions of a Krylov method.
struct Method {
    HYPRE_Int (*create)(MPI_Comm, HYPRE_Solver*);
    HYPRE_Int (*destroy)(HYPRE_Solver);
    HYPRE_Int (*tolerance)(HYPRE_Solver, HYPRE_Real);
    HYPRE_Int (*limit)(HYPRE_Solver, HYPRE_Int);
    HYPRE_Int (*precondition)(HYPRE_Solver, HYPRE_PtrToParSolverFcn, HYPRE_PtrToParSolverFcn, HYPRE_Solver);
    HYPRE_Int (*setup)(HYPRE_Solver, HYPRE_ParCSRMatrix, HYPRE_ParVector, HYPRE_ParVector);
    HYPRE_Int (*solve)(HYPRE_Solver, HYPRE_ParCSRMatrix, HYPRE_ParVector, HYPRE_ParVector);
    HYPRE_Int (*iterations)(HYPRE_Solver, HYPRE_Int*);
    HYPRE_Int (*residual)(HYPRE_Solver, HYPRE_Real*);
};

// GMRES and BiCGSTAB of hypre act on the right.
const std::map<std::string, Method> METHODS = {
    {"gmres",
     {HYPRE_ParCSRGMRESCreate, HYPRE_ParCSRGMRESDestroy, HYPRE_ParCSRGMRESSetTol, HYPRE_ParCSRGMRESSetMaxIter,
      HYPRE_ParCSRGMRESSetPrecond, HYPRE_ParCSRGMRESSetup, HYPRE_ParCSRGMRESSolve, HYPRE_ParCSRGMRESGetNumIterations,
      HYPRE_ParCSRGMRESGetFinalRelativeResidualNorm}},
    {"cg",
     {HYPRE_ParCSRPCGCreate, HYPRE_ParCSRPCGDestroy, HYPRE_ParCSRPCGSetTol, HYPRE_ParCSRPCGSetMaxIter,
      HYPRE_ParCSRPCGSetPrecond, HYPRE_ParCSRPCGSetup, HYPRE_ParCSRPCGSolve, HYPRE_ParCSRPCGGetNumIterations,
      HYPRE_ParCSRPCGGetFinalRelativeResidualNorm}},
    {"bicgstab",
     {HYPRE_ParCSRBiCGSTABCreate, HYPRE_ParCSRBiCGSTABDestroy, HYPRE_ParCSRBiCGSTABSetTol,
      HYPRE_ParCSRBiCGSTABSetMaxIter, HYPRE_ParCSRBiCGSTABSetPrecond, HYPRE_ParCSRBiCGSTABSetup,
      HYPRE_ParCSRBiCGSTABSolve, HYPRE_ParCSRBiCGSTABGetNumIterations,
      HYPRE_ParCSRBiCGSTABGetFinalRelativeResidualNorm}},
};

// Says what went wrong since the last time.
void check(const char* what) {
    if (HYPRE_Int error = HYPRE_GetError()) {
        char text[256];
        HYPRE_DescribeError(error, text);
        HYPRE_ClearAllErrors();
        throw peer::Breakdown(std::string(what) + ": " + text);
    }
}

void run(const Case& c) {
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const Rows rows(c.n, rank, size);
    HYPRE_IJMatrix ij;
    const double stored_s = peer::timed([&] { ij = stored(c, rows); });
    peer::Line("setup").with("matrix", stored_s).say();
    HYPRE_ParCSRMatrix a;
    HYPRE_IJMatrixGetObject(ij, reinterpret_cast<void**>(&a));
    Vector b(rows), x(rows);
    b.set(c.b.data() + rows.first);
    check("matrix");

    const Method& method = METHODS.at(c.word("solver"));
    std::unique_ptr<Preconditioner> m;
    HYPRE_Solver solver = nullptr;
    c.time_setups({{nullptr,
                    [&] {
                        m = std::make_unique<Preconditioner>(c);
                        if (solver != nullptr) method.destroy(solver);
                        method.create(MPI_COMM_WORLD, &solver);
                        method.tolerance(solver, c.number("rtol"));
                        method.limit(solver, c.whole("max-iterations"));
                        if (c.word("solver") == "gmres") HYPRE_ParCSRGMRESSetKDim(solver, c.whole("restart"));
                        if (c.word("solver") == "cg") HYPRE_ParCSRPCGSetTwoNorm(solver, 1);
                        if (!m->none) method.precondition(solver, m->solve, m->setup, m->of);
                        MPI_Barrier(MPI_COMM_WORLD);
                    }},
                   {"seconds", [&] {
                        method.setup(solver, a, b.parts, x.parts);
                        MPI_Barrier(MPI_COMM_WORLD);
                    }}});
    check("setup");
    const std::vector<double> zeros(rows.count);
    c.time_solves([&] {
        x.set(zeros.data());
        method.solve(solver, a, b.parts, x.parts);
        MPI_Barrier(MPI_COMM_WORLD);
    });
    // one that has not converged is no error here
    HYPRE_ClearError(HYPRE_ERROR_CONV);
    check("solve");
    HYPRE_Int iterations = 0;
    HYPRE_Real residual = 0.0;
    method.iterations(solver, &iterations);
    method.residual(solver, &residual);
    std::vector<double> part(rows.count), all(rank == 0 ? c.n : 0);
    x.get(part.data());
    std::vector<int> counts;
    for (int r = 0; r < size; ++r) counts.push_back(rows.starts[r + 1] - rows.starts[r]);
    MPI_Gatherv(part.data(), rows.count, MPI_DOUBLE, all.data(), counts.data(), rows.starts.data(), MPI_DOUBLE, 0,
                MPI_COMM_WORLD);
    c.end(all.data(), residual <= c.number("rtol"), iterations, residual);
    method.destroy(solver);
    HYPRE_IJMatrixDestroy(ij);
}

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    HYPRE_Init();
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    peer::silent = rank > 0;
    peer::ranks = size;
    peer::agreed = [](bool own) {
        int said = own;
        MPI_Bcast(&said, 1, MPI_INT, 0, MPI_COMM_WORLD);
        return said != 0;
    };
    const int code = peer::main(count, arguments, "hypre " HYPRE_RELEASE_VERSION, run);
    HYPRE_Finalize();
    MPI_Finalize();
    return code;
}
