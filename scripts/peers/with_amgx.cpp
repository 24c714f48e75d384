// A peer: AmgX on a GPU, its solvers with multicolour methods and its multigrid.

#include <amgx_c.h>

#include <memory>

#include "gpu.hpp"

using peer::Case;

static const AMGX_Mode mode = AMGX_mode_dDDI;

// What a call came to.
static void check(AMGX_RC status) {
    if (status == AMGX_RC_OK) return;
    if (status == AMGX_RC_NO_MEMORY) throw std::bad_alloc();
    char words[4096] = "";
    AMGX_get_error_string(status, words, sizeof words);
    if (status == AMGX_RC_NOT_SUPPORTED_BLOCKSIZE || status == AMGX_RC_NOT_IMPLEMENTED) throw peer::Unsupported(words);
    throw std::runtime_error(std::string("AmgX: ") + words);
}

// A matrix by blocks, stored row by row.
struct Blocks {
    int rows;
    std::vector<int> starts{0}, columns;
    std::vector<double> values;

    Blocks(const Case& c, int size) : rows(c.n / size) {
        std::vector<int> place(rows, -1);
        for (int row = 0; row < rows; ++row) {
            const int first = c.indptr[row * size], end = c.indptr[(row + 1) * size];
            for (int k = first; k < end; ++k) {
                const int column = c.indices[k] / size;
                if (place[column] < starts.back()) {
                    place[column] = starts.back(); // met in this row
                    columns.push_back(column);
                }
            }
            std::sort(columns.begin() + starts.back(), columns.end());
            for (size_t at = starts.back(); at < columns.size(); ++at) place[columns[at]] = static_cast<int>(at);
            values.resize(columns.size() * size * size, 0.0);
            for (int i = 0; i < size; ++i)
                for (int k = c.indptr[row * size + i]; k < c.indptr[row * size + i + 1]; ++k) {
                    const size_t block = place[c.indices[k] / size];
                    values[(block * size + i) * size + c.indices[k] % size] = c.values[k];
                }
            starts.push_back(static_cast<int>(columns.size()));
        }
    }
};

// The description of a preconditioner; those of multigrid are AmgX's own, FGMRES_CLASSICAL_AGGRESSIVE_PMIS,
// FGMRES_AGGREGATION and PCG_AGGREGATION_JACOBI.
static std::string preconditioner(const std::string& name) {
    const std::string once = R"("scope": "precond", "max_iters": 1, "monitor_residual": 0, )";
    const std::string colours = once + R"("relaxation_factor": 1.0, "matrix_coloring_scheme": "PARALLEL_GREEDY",
        "max_uncolored_percentage": 0.0, "solver": )";
    const std::string grids = once + R"("solver": "AMG", "max_levels": 50, "cycle": "V", )";
    if (name == "none") return once + R"("solver": "NOSOLVER")";
    if (name == "jacobi") return once + R"("solver": "BLOCK_JACOBI", "relaxation_factor": 1.0)";
    if (name == "dilu") return colours + R"("MULTICOLOR_DILU")";
    if (name == "gs") return colours + R"("MULTICOLOR_GS", "symmetric_GS": 1)";
    if (name == "ilu0" || name == "ilu1")
        return colours + R"("MULTICOLOR_ILU", "reorder_cols_by_color": 1, "insert_diag_while_reordering": 1,
            "ilu_sparsity_level": )" + name.back() + R"(, "coloring_level": )" + (name == "ilu0" ? "1" : "2");
    if (name == "classical")
        return grids + R"("interpolator": "D2", "selector": "PMIS", "aggressive_levels": 1, "interp_max_elements": 4,
            "max_row_sum": 0.9, "strength_threshold": 0.25, "presweeps": 2, "postsweeps": 2, "coarsest_sweeps": 2,
            "coarse_solver": "NOSOLVER", "min_coarse_rows": 2,
            "smoother": {"scope": "smoother", "solver": "JACOBI_L1", "relaxation_factor": 1.0})";
    if (name == "aggregation")
        return grids + R"("algorithm": "AGGREGATION", "selector": "SIZE_2", "presweeps": 0, "postsweeps": 3,
            "error_scaling": 0, "max_uncolored_percentage": 0.05, "matrix_coloring_scheme": "PARALLEL_GREEDY",
            "smoother": "MULTICOLOR_DILU", "relaxation_factor": 0.75, "coarse_solver": "DENSE_LU_SOLVER",
            "min_coarse_rows": 32)";
    return grids + R"("algorithm": "AGGREGATION", "selector": "SIZE_2", "presweeps": 0, "postsweeps": 3,
        "coarse_solver": "NOSOLVER",
        "smoother": {"scope": "smoother", "solver": "BLOCK_JACOBI", "relaxation_factor": 0.8, "monitor_residual": 0})";
}

static std::string description(const Case& c) {
    return R"({"config_version": 2, "solver": {"scope": "main", "monitor_residual": 1, "convergence": "RELATIVE_INI",
        "norm": "L2", "use_scalar_norm": 1, "solver": ")" + c.word("solver") + R"(", "tolerance": )" + c.word("rtol") +
           R"(, "max_iters": )" + c.word("max-iterations") + R"(, "gmres_n_restart": )" + c.word("restart") +
           R"(, "preconditioner": {)" + preconditioner(c.word("precond")) + "}}}";
}

// Its messages: standard output is for the answer.
static void print(const char* words, int) { std::fputs(words, stderr); }

static void run(const Case& c) {
    const int size = static_cast<int>(c.whole("block-size"));
    const Blocks blocks(c, size);
    AMGX_config_handle config;
    AMGX_resources_handle resources;
    AMGX_vector_handle b, x;
    AMGX_matrix_handle a = nullptr;
    AMGX_solver_handle solver = nullptr;
    check(AMGX_register_print_callback(print));
    check(AMGX_initialize());
    check(AMGX_config_create(&config, description(c).c_str()));
    check(AMGX_resources_create_simple(&resources, config));
    check(AMGX_vector_create(&b, resources, mode));
    check(AMGX_vector_create(&x, resources, mode));
    // the matrix anew each time: a setup orders its columns by colours
    auto forget = [&] {
        if (solver != nullptr) check(AMGX_solver_destroy(solver));
        solver = nullptr;
        if (a != nullptr) check(AMGX_matrix_destroy(a));
        a = nullptr;
    };
    auto move = [&] {
        check(AMGX_matrix_create(&a, resources, mode));
        check(AMGX_matrix_upload_all(a, blocks.rows, blocks.starts.back(), size, size, blocks.starts.data(),
                                     blocks.columns.data(), blocks.values.data(), nullptr));
        peer::wait();
    };
    auto setup = [&] {
        check(AMGX_solver_create(&solver, resources, mode, config));
        check(AMGX_solver_setup(solver, a));
        peer::wait();
    };
    c.time_setups({{nullptr, forget}, {"matrix", move}, {"seconds", setup}});
    std::vector<double> found(c.n, 0.0);
    check(AMGX_vector_upload(b, blocks.rows, size, c.b.data()));
    check(AMGX_vector_upload(x, blocks.rows, size, found.data()));
    c.time_solves([&] {
        // the solve of a zero guess takes it for zero, and adds to what is there
        check(AMGX_vector_set_zero(x, blocks.rows, size));
        check(AMGX_solver_solve_with_0_initial_guess(solver, b, x));
        peer::wait();
    });
    AMGX_SOLVE_STATUS status;
    int iterations = 0;
    check(AMGX_solver_get_status(solver, &status));
    check(AMGX_solver_get_iterations_number(solver, &iterations));
    check(AMGX_vector_download(x, found.data()));
    if (status == AMGX_SOLVE_FAILED || status == AMGX_SOLVE_DIVERGED) {
        const std::string word = status == AMGX_SOLVE_FAILED ? "failed" : "diverged";
        peer::Line("end").with("status", word).with("iterations", static_cast<long>(iterations)).with("reason", "AmgX says so").say();
    } else {
        c.end(found.data(), status == AMGX_SOLVE_SUCCESS, iterations, NAN);
    }
    AMGX_solver_destroy(solver);
    AMGX_vector_destroy(x);
    AMGX_vector_destroy(b);
    AMGX_matrix_destroy(a);
    AMGX_resources_destroy(resources);
    AMGX_config_destroy(config);
    AMGX_finalize();
}

int main(int count, char** arguments) {
    char *version, *date, *time;
    AMGX_get_build_info_strings(&version, &date, &time);
    return peer::main(count, arguments, std::string("AmgX ") + version, run, 1, peer::gpu);
}
