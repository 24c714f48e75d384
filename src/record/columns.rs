//! What each column of a result file holds.

/// Version of the columns, in the column `schema`. Records without it have version 1; version 2 added the hashes.
pub const SCHEMA_VERSION: usize = 2;

/// Name and meaning of every column of the CSV file, in its order; the keys of JSON are the same.
pub const COLUMNS: &[(&str, &str)] = &[
    ("matrix", "generator, catalogue name or file"),
    ("read-as", "how a symmetric file was read: expanded to both triangles, or as-stored"),
    ("zeros", "explicitly stored zeros: keep or drop"),
    ("ordering", "ordering of the unknowns"),
    ("rhs", "right-hand side"),
    ("block-size", "unknowns per block"),
    ("kind", "solve, or spmv: the matrix-vector product alone"),
    ("precond", "preconditioner"),
    ("fill", "fill level k of ILU(k)"),
    ("level-rule", "update rule of the fill level: min or overwrite"),
    ("shift", "diagonal shift before the factorisation, relative to the largest diagonal entry"),
    ("deflation", "deflation vectors requested"),
    ("solver", "solver"),
    ("side", "side of the preconditioner"),
    ("restart", "basis vectors of GMRES between restarts"),
    ("orthogonalisation", "orthogonalisation of GMRES"),
    ("rtol", "tolerance on the monitored residual, relative to its initial value"),
    ("max-iterations", "iteration limit"),
    (
        "symmetry-tolerance",
        "largest relative difference of entries (i, j) and (j, i) that counts as rounding",
    ),
    ("format", "storage format requested"),
    ("factor-precision", "precision in which the factors are stored: float64 or float32"),
    ("trisolve", "algorithm of the triangular solves requested"),
    ("fgbilu-style", "execution of fgbilu requested"),
    ("execution", "execution of the solver requested"),
    ("backend", "backend that ran the case"),
    ("format-used", "storage format used by the product"),
    ("tuned", "parameters of the product kernel found by `tune`; empty for the default kernel"),
    ("round", "number of the round, from 1; empty without `--rounds`"),
    ("status", "how the run ended"),
    ("reason", "why it did not converge, or a remark"),
    ("n", "scalar unknowns, without padding"),
    ("nnz", "stored entries of the matrix"),
    ("padding", "identity rows appended so that the block size divides n"),
    ("block-rows", "block rows, padding included"),
    ("matrix-blocks", "nonzero blocks of the matrix"),
    ("matrix-hash", "XXH3 of n, pattern and values of the matrix, before `ordering` permutes it"),
    ("rhs-hash", "XXH3 of the right-hand side, before `ordering` permutes it"),
    ("factor-blocks", "blocks of L, D and U in total"),
    ("factor-entries", "scalar entries of the factors"),
    ("fill-ratio", "factor blocks divided by matrix blocks"),
    ("levels-lower", "levels of the L solve"),
    ("levels-upper", "levels of the U solve"),
    ("rows-per-level", "mean block rows per level of the L solve"),
    (
        "trisolve-used",
        "algorithm of the triangular solves; empty on a CPU and without triangular factors",
    ),
    (
        "trisolve-reason",
        "why the backend chose that algorithm: measured or predicted time of each candidate",
    ),
    ("deflation-vectors", "deflation vectors used"),
    (
        "ordering-s",
        "computing the permutation and applying it to the system, excluded from all phases, seconds",
    ),
    (
        "compile-s",
        "run-time compilation and loading of GPU kernels, excluded from all phases, seconds",
    ),
    (
        "trial-s",
        "trial runs that choose the algorithm of the triangular solves, excluded from all phases, seconds",
    ),
    (
        "matrix-s",
        "conversion of the matrix to the format of the product, and transfer to a GPU, seconds (median)",
    ),
    ("symbolic-s", "symbolic phase, seconds; cases that share its result report the same time"),
    ("analysis-s", "level schedule, storage and upload, seconds"),
    (
        "numeric-s",
        "numeric phase: transfer of the values, factorisation, storage of the factors for the solves, seconds",
    ),
    ("numeric-kernel-s", "factorisation on the device, part of numeric-s, seconds"),
    ("deflation-s", "deflation vectors, A Z, coarse matrix and its inverse, seconds"),
    (
        "setup-s",
        "sum of symbolic-s, analysis-s, numeric-s and deflation-s; matrix-s is not included",
    ),
    ("solve-s", "median solve, seconds"),
    ("solve-low-s", "lower end of solve-interval, seconds"),
    ("solve-high-s", "upper end of solve-interval, seconds"),
    (
        "solve-interval",
        "95%: confidence interval of the median solve; range: minimum and maximum, for fewer than six \
         solves; 95%-of-rounds, range-of-rounds: the same of the medians of the rounds; empty: a single \
         solve, or a file of an earlier version",
    ),
    (
        "repetitions",
        "timed solves, or samples of the product for kind spmv; number of rounds where solve-interval \
         refers to rounds",
    ),
    (
        "total-s",
        "time to solution: sum of ordering-s, matrix-s, setup-s and solve-s; in files of earlier versions \
         setup-s and solve-s only",
    ),
    ("ms-per-iteration", "solve-s divided by iterations, milliseconds"),
    (
        "renumeric-s",
        "numeric phase for new values, with symbolic phase and analysis reused, seconds (median)",
    ),
    (
        "rematrix-s",
        "update of the stored matrix and its copy on a GPU with new values, seconds (median)",
    ),
    ("iterations", "applications of the preconditioned operator (full steps of BiCGStab)"),
    ("monitored-residual", "final residual monitored by the solver, relative to its initial value"),
    ("true-residual", "|b - A x| / |b|, recomputed in float64"),
    ("residual-history", "norms of the monitored residual: initially, then after each iteration"),
    ("memory-bytes", "memory of matrix and factors on the backend, bytes"),
    ("apply-s", "one application of the preconditioner, seconds (median)"),
    ("apply-bytes", "least memory traffic of one application, bytes"),
    ("apply-gbps", "apply-bytes divided by apply-s, 1e9 bytes per second"),
    ("spmv-s", "one product y = A x, seconds (median)"),
    ("spmv-low-s", "lower end of spmv-interval, seconds"),
    ("spmv-high-s", "upper end of spmv-interval, seconds"),
    ("spmv-interval", "kind of interval of spmv-s, with the values of solve-interval"),
    (
        "spmv-samples",
        "timed samples of the product; number of rounds where spmv-interval refers to rounds",
    ),
    ("spmv-bytes", "least memory traffic of one product, bytes"),
    ("spmv-gbps", "spmv-bytes divided by spmv-s, 1e9 bytes per second"),
    ("spmv-gflops", "two operations per stored entry divided by spmv-s, 1e9 per second"),
    ("spmv-percent-of-bandwidth", "spmv-gbps as a percentage of copy-gbps"),
    ("residual-s", "correction: one residual r = b - A x, seconds (median)"),
    (
        "orthogonalisation-s",
        "GMRES: orthogonalisation of one vector against the full basis, seconds (median)",
    ),
    (
        "orthogonalisation-gbps",
        "its least memory traffic divided by its time, 1e9 bytes per second",
    ),
    ("dot-s", "one inner product of bicgstab or qmr, seconds (median)"),
    ("axpy-s", "one vector update of bicgstab or qmr, seconds (median)"),
    ("copy-gbps", "measured copy bandwidth of the backend, 1e9 bytes per second"),
    ("us-per-level", "microseconds per level of the preconditioner's application"),
    (
        "handover-us",
        "measured CTA-to-CTA latency: time for a value to reach another thread block, us",
    ),
    ("percent-of-bandwidth", "time of apply-bytes at copy bandwidth, as a percentage of apply-s"),
    ("percent-of-latency", "levels of L and U times handover-us, as a percentage of apply-s"),
    ("percent-of-roof", "the larger of percent-of-bandwidth and percent-of-latency"),
    ("numeric-bytes", "least memory traffic of the factorisation, bytes"),
    ("numeric-gbps", "numeric-bytes divided by numeric-kernel-s, 1e9 bytes per second"),
    ("numeric-us-per-level", "microseconds of the factorisation per level of L"),
    (
        "numeric-percent-of-bandwidth",
        "time of numeric-bytes at copy bandwidth, as a percentage of numeric-kernel-s",
    ),
    (
        "numeric-percent-of-latency",
        "levels of L times handover-us, as a percentage of numeric-kernel-s",
    ),
    (
        "numeric-percent-of-roof",
        "the larger of numeric-percent-of-bandwidth and numeric-percent-of-latency",
    ),
    ("device", "device of the backend"),
    ("threads", "threads of the backend"),
    ("cpu", "host processor"),
    ("os", "operating system and architecture"),
    ("compiler", "compiler that built the program"),
    ("revision", "program version and source revision"),
    ("schema", "version of these columns, 2; empty in records of earlier versions"),
    ("date", "start of the run, UTC"),
];

/// Renamed columns: former and present name.
const RENAMED: &[(&str, &str)] = &[("reorder", "ordering")];

/// The present name of a column.
pub fn current(name: &str) -> &str {
    RENAMED.iter().find(|(former, _)| *former == name).map_or(name, |(_, present)| present)
}

/// Columns that reports add to those of a record: the command, the column and its meaning.
pub const ADDED: &[(&str, &str, &str)] = &[
    ("reproduce", "experiment", "table or figure of the paper, `paper/table`"),
    ("reproduce", "published-iterations", "iterations that the paper reports for the case"),
    ("reproduce", "published-s", "solve time that the paper reports for the corresponding device"),
    (
        "reproduce",
        "deviation-percent",
        "relative deviation of the iterations from the published ones, percent",
    ),
    ("reproduce", "verdict", "ok (within the tolerance of the table), off, or failed"),
    (
        "reproduce",
        "published-speedup",
        "published time of the slow device divided by that of the fast one",
    ),
    ("reproduce", "speedup", "solve-s of the slow backend divided by that of the row"),
    ("reproduce", "speedup-over-cusparse", "solve-s of cusparse divided by that of the row"),
    (
        "reproduce",
        "digits-of-history",
        "decimal digits to which the residuals agree with those of one core",
    ),
    (
        "reproduce",
        "overall-us-per-point",
        "factorisation and corrections, microseconds per grid point",
    ),
    ("reproduce", "factorisation-us-per-point", "numeric-kernel-s, microseconds per grid point"),
    ("reproduce", "solve-us-per-point", "apply-s, microseconds per grid point"),
    ("reproduce", "residual-us-per-point", "residual-s, microseconds per grid point"),
];

/// Columns, beside the settings, of rows computed from several records: the command, the column and its
/// meaning.
pub const DERIVED: &[(&str, &str, &str)] = &[
    ("compare", "old-solve-s", "median solve of the old file, seconds"),
    ("compare", "new-solve-s", "median solve of the new file, seconds"),
    (
        "compare",
        "ratio",
        "new-solve-s divided by old-solve-s; with rounds the median over all pairs of rounds, with paired runs over the pairs",
    ),
    ("compare", "ratio-low", "lower end of the 95 % confidence interval of the ratio"),
    ("compare", "ratio-high", "upper end of the 95 % confidence interval of the ratio"),
    ("compare", "setup-ratio", "setup-s of the new file divided by that of the old file"),
    ("compare", "old-iterations", "iterations in the old file"),
    ("compare", "new-iterations", "iterations in the new file"),
    (
        "compare",
        "differs",
        "differences in processor, device, threads, operating system, compiler or revision: old -> new",
    ),
    ("versus", "group", "group of systems over which means are taken"),
    ("versus", "apply-cuda-s", "fastest application of the preconditioner on cuda, seconds"),
    (
        "versus",
        "apply-cusparse-s",
        "fastest application of the preconditioner by cuSPARSE, seconds",
    ),
    ("versus", "apply-ratio", "apply-cusparse-s divided by apply-cuda-s"),
    ("versus", "numeric-kernel-cuda-s", "fastest factorisation on the device on cuda, seconds"),
    (
        "versus",
        "numeric-kernel-cusparse-s",
        "fastest factorisation on the device by cuSPARSE, seconds",
    ),
    (
        "versus",
        "numeric-kernel-ratio",
        "numeric-kernel-cusparse-s divided by numeric-kernel-cuda-s",
    ),
    (
        "versus",
        "numeric-and-solve-cuda-s",
        "fastest sum of matrix-s, numeric-s and solve-s on cuda, seconds",
    ),
    ("versus", "numeric-and-solve-cusparse-s", "the same with cuSPARSE, seconds"),
    (
        "versus",
        "numeric-and-solve-ratio",
        "numeric-and-solve-cusparse-s divided by numeric-and-solve-cuda-s",
    ),
    (
        "versus",
        "apply-auto-ratio",
        "apply-cusparse-s divided by the time of the algorithm that auto chose",
    ),
];

/// Columns of the rows of `tune`.
pub const TUNING: &[(&str, &str)] = &[
    ("system", "system that was measured"),
    ("kernel", "kernel, with its compile-time parameters"),
    ("rows", "scalar rows of the system"),
    ("choices", "launch and compile parameters, name and value"),
    (
        "seconds",
        "median time of a product; empty where the kernel cannot run with these parameters",
    ),
    ("gbps", "least memory traffic of the product divided by seconds, 1e9 bytes per second"),
    ("percent-of-copy", "gbps as a percentage of the copy bandwidth"),
    ("search", "finished, or stopped by the time limit"),
];
