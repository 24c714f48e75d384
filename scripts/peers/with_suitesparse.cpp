// A peer: direct solves with SuiteSparse, UMFPACK for any matrix and CHOLMOD for symmetric positive definite ones.

#include <suitesparse/cholmod.h>
#include <suitesparse/umfpack.h>

#include "exchange.hpp"

using peer::Case;

// What a call of UMFPACK came to.
static void check(int status) {
    if (status == UMFPACK_OK) return;
    if (status == UMFPACK_ERROR_out_of_memory) throw std::bad_alloc();
    if (status == UMFPACK_WARNING_singular_matrix) throw peer::Breakdown("UMFPACK: the matrix is singular");
    throw std::runtime_error("UMFPACK ended with " + std::to_string(status));
}

static void umfpack(const Case& c) {
    std::vector<SuiteSparse_long> pointers, columns;
    const double stored = peer::timed([&] {
        pointers.assign(c.indptr.begin(), c.indptr.end());
        columns.assign(c.indices.begin(), c.indices.end());
    });
    peer::Line("setup").with("matrix", stored).say();
    void *symbolic = nullptr, *numeric = nullptr;
    // rows taken as columns: the transposed of A, whose transposed is solved with
    auto analyse = [&] {
        umfpack_dl_free_symbolic(&symbolic);
        check(umfpack_dl_symbolic(c.n, c.n, pointers.data(), columns.data(), c.values.data(), &symbolic, nullptr,
                                  nullptr));
    };
    auto factorise = [&] {
        umfpack_dl_free_numeric(&numeric);
        check(umfpack_dl_numeric(pointers.data(), columns.data(), c.values.data(), symbolic, &numeric, nullptr,
                                 nullptr));
    };
    auto entries = [&] {
        SuiteSparse_long lower, upper, rows, cols, diagonal;
        umfpack_dl_get_lunz(&lower, &upper, &rows, &cols, &diagonal, numeric);
        // both have the diagonal
        return static_cast<double>(lower + upper - c.n);
    };
    c.time_setups({{"symbolic", analyse}, {"numeric", factorise}}, entries);
    std::vector<double> x(c.n);
    c.time_solves([&] {
        check(umfpack_dl_solve(UMFPACK_Aat, pointers.data(), columns.data(), c.values.data(), x.data(), c.b.data(),
                               numeric, nullptr, nullptr));
    });
    c.end(x.data(), true, 1, NAN);
    umfpack_dl_free_symbolic(&symbolic);
    umfpack_dl_free_numeric(&numeric);
}

static void cholmod(const Case& c) {
    cholmod_common common;
    cholmod_l_start(&common);
    common.print = 0;
    auto check = [&](const void* made) {
        if (common.status == CHOLMOD_NOT_POSDEF) throw peer::Breakdown("CHOLMOD: not positive definite");
        if (common.status == CHOLMOD_OUT_OF_MEMORY) throw std::bad_alloc();
        if (common.status < 0 || made == nullptr)
            throw std::runtime_error("CHOLMOD ended with " + std::to_string(common.status));
    };
    // the rows of the lower triangle are the columns of the upper one
    const size_t nnz = c.values.size();
    cholmod_sparse* a = nullptr;
    const double stored = peer::timed([&] {
        a = cholmod_l_allocate_sparse(c.n, c.n, nnz, true, true, 1, CHOLMOD_REAL, &common);
        check(a);
        std::copy(c.indptr.begin(), c.indptr.end(), static_cast<SuiteSparse_long*>(a->p));
        std::copy(c.indices.begin(), c.indices.end(), static_cast<SuiteSparse_long*>(a->i));
        std::copy(c.values.begin(), c.values.end(), static_cast<double*>(a->x));
    });
    peer::Line("setup").with("matrix", stored).say();
    cholmod_factor* factor = nullptr;
    auto analyse = [&] {
        cholmod_l_free_factor(&factor, &common);
        factor = cholmod_l_analyze(a, &common);
        check(factor);
    };
    auto factorise = [&] {
        cholmod_l_factorize(a, factor, &common);
        check(factor);
    };
    c.time_setups({{"symbolic", analyse}, {"numeric", factorise}}, [&] { return common.lnz; });
    cholmod_dense b{};
    b.nrow = b.nzmax = b.d = c.n;
    b.ncol = 1;
    b.x = const_cast<double*>(c.b.data());
    b.xtype = CHOLMOD_REAL;
    b.dtype = CHOLMOD_DOUBLE;
    cholmod_dense* x = nullptr;
    c.time_solves([&] {
        cholmod_l_free_dense(&x, &common);
        x = cholmod_l_solve(CHOLMOD_A, factor, &b, &common);
        check(x);
    });
    c.end(static_cast<double*>(x->x), true, 1, NAN);
    cholmod_l_free_dense(&x, &common);
    cholmod_l_free_factor(&factor, &common);
    cholmod_l_free_sparse(&a, &common);
    cholmod_l_finish(&common);
}

static void run(const Case& c) {
    if (c.word("solver") == "umfpack") umfpack(c);
    else cholmod(c);
}

int main(int count, char** arguments) {
    int version[3];
    SuiteSparse_version(version);
    std::string text = "SuiteSparse";
    for (int i = 0; i < 3; ++i) text += (i == 0 ? " " : ".") + std::to_string(version[i]);
    return peer::main(count, arguments, text, run);
}
