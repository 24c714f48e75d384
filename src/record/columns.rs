//! What each column of a result file holds.

/// Version of the columns, in the column `schema`. Records without one are of version 1; 2 added hashes.
pub const SCHEMA_VERSION: usize = 2;

/// Name and meaning of every column of the CSV file, in its order; the keys of JSON are the same.
pub const COLUMNS: &[(&str, &str)] = &[
    ("matrix", "generator, catalogue name or file"),
    ("read-as", "how a symmetric file was read: expanded or as-stored"),
    ("zeros", "entries stored although they are zero: keep or drop"),
    ("ordering", "order of the unknowns"),
    ("rhs", "right-hand side"),
    ("block-size", "unknowns per block"),
    ("kind", "what was run: solve or spmv, the product alone"),
    ("precond", "preconditioner"),
    ("fill", "fill level k of ILU(k)"),
    ("level-rule", "update rule of the fill level: min or overwrite"),
    ("shift", "added to the diagonal before factorisation, relative to its largest entry"),
    ("deflation", "deflation vectors asked for"),
    ("solver", "solver"),
    ("side", "side of the preconditioner"),
    ("restart", "basis vectors of GMRES between restarts"),
    ("orthogonalisation", "orthogonalisation of GMRES"),
    ("rtol", "tolerance on the monitored residual, relative to its initial value"),
    ("max-iterations", "iteration limit"),
    ("symmetry-tolerance", "relative difference of mirrored entries that was taken for rounding"),
    ("format", "storage format asked for"),
    ("factor-precision", "numbers in which the factors were stored: float64 or float32"),
    ("trisolve", "way of the triangular solves asked for"),
    ("fgbilu-style", "execution of fgbilu asked for"),
    ("execution", "execution of the solver asked for"),
    ("backend", "where it ran"),
    ("format-used", "storage format of the product"),
    ("tuned", "what `tune` chose for the product's kernel; empty where it runs as usual"),
    ("round", "round that the row is of, from 1; empty without `--rounds`"),
    ("status", "how the run ended"),
    ("reason", "why it did not converge, or a remark"),
    ("n", "scalar unknowns, without padding"),
    ("nnz", "stored entries of the matrix"),
    ("padding", "identity rows added because the block size does not divide n"),
    ("block-rows", "block rows, padding included"),
    ("matrix-blocks", "nonzero blocks of the matrix"),
    ("matrix-hash", "XXH3 of n, pattern and values of the matrix as solved, before `ordering`"),
    ("rhs-hash", "XXH3 of the values of the right-hand side, before `ordering`"),
    ("factor-blocks", "blocks of L, D and U together"),
    ("factor-entries", "scalar entries of the factors"),
    ("fill-ratio", "factor blocks over matrix blocks"),
    ("levels-lower", "levels of the L solve"),
    ("levels-upper", "levels of the U solve"),
    ("rows-per-level", "mean block rows per level of the L solve"),
    ("trisolve-used", "way of the triangular solves; empty on a CPU and without triangles"),
    ("trisolve-reason", "why the backend chose that way: times measured or expected of the ways"),
    ("deflation-vectors", "deflation vectors in use"),
    ("ordering-s", "finding the order and renumbering the system, in no phase, seconds"),
    ("compile-s", "run-time compilation and loading of a GPU's kernels, in no phase, seconds"),
    ("trial-s", "trying ways of triangular solves against each other, in no phase, seconds"),
    (
        "matrix-s",
        "conversion of the matrix for products and its transfer to a GPU, seconds (median)",
    ),
    ("symbolic-s", "symbolic phase, seconds; one time for the cases that share its result"),
    ("analysis-s", "level schedule, storage and upload, seconds"),
    ("numeric-s", "numeric phase: values to the device, factorisation, factors to solves, seconds"),
    ("numeric-kernel-s", "the factorisation on the device alone, a part of numeric-s, seconds"),
    ("deflation-s", "deflation vectors, A Z, coarse matrix and its inverse, seconds"),
    ("setup-s", "symbolic-s, analysis-s, numeric-s and deflation-s together, without matrix-s"),
    ("solve-s", "median solve, seconds"),
    ("solve-low-s", "lower end of what solve-interval says, seconds"),
    ("solve-high-s", "upper end of it, seconds"),
    (
        "solve-interval",
        "95%: confidence interval of the median solve; range: least and largest of fewer than six \
         solves, too few for one; 95%-of-rounds, range-of-rounds: of the medians of rounds; empty: one \
         solve, and in files of former versions",
    ),
    (
        "repetitions",
        "timed solves, or samples of the product where it runs alone; rounds where solve-interval is of \
         rounds",
    ),
    (
        "total-s",
        "time to solution: ordering-s, matrix-s, setup-s and solve-s together; in files of former \
         versions setup-s and solve-s alone",
    ),
    ("ms-per-iteration", "median solve over iterations, milliseconds"),
    (
        "renumeric-s",
        "numeric phase on new values, symbolic phase and analysis reused, seconds (median)",
    ),
    ("rematrix-s", "stored matrix and its copy on a GPU take over new values, seconds (median)"),
    ("iterations", "applications of the preconditioned operator (full steps of BiCGStab)"),
    ("monitored-residual", "residual the solver monitored, relative to its initial value"),
    ("true-residual", "|b - A x| / |b|, recomputed in float64"),
    ("residual-history", "norms of the monitored residual: at first, then after each iteration"),
    ("memory-bytes", "bytes of matrix and factors on the backend"),
    ("apply-s", "one application of the preconditioner, seconds (median)"),
    ("apply-bytes", "bytes that one application must move at least"),
    ("apply-gbps", "apply-bytes over apply-s, 1e9 bytes per second"),
    ("spmv-s", "one product y = A x, seconds (median)"),
    ("spmv-low-s", "lower end of what spmv-interval says, seconds"),
    ("spmv-high-s", "upper end of it, seconds"),
    ("spmv-interval", "what the ends of the product are, in the words of solve-interval"),
    ("spmv-samples", "timed samples of the product; rounds where spmv-interval is of rounds"),
    ("spmv-bytes", "bytes that one product must move at least"),
    ("spmv-gbps", "spmv-bytes over spmv-s, 1e9 bytes per second"),
    (
        "spmv-gflops",
        "two operations for each stored entry of the matrix over spmv-s, 1e9 per second",
    ),
    ("spmv-percent-of-bandwidth", "spmv-gbps in percent of copy-gbps"),
    ("residual-s", "correction: one residual r = b - A x, seconds (median)"),
    ("orthogonalisation-s", "GMRES: one vector against a whole restart's basis, seconds (median)"),
    ("orthogonalisation-gbps", "bytes that must move for that over its time, 1e9 bytes per second"),
    ("dot-s", "one inner product of bicgstab or qmr, seconds (median)"),
    ("axpy-s", "one vector update of bicgstab or qmr, seconds (median)"),
    ("copy-gbps", "measured copy bandwidth of the backend, 1e9 bytes per second"),
    ("us-per-level", "microseconds per level of the preconditioner's application"),
    ("handover-us", "measured time in which a value goes from thread block to thread block, us"),
    ("percent-of-bandwidth", "apply-bytes at copy bandwidth, in percent of apply-s"),
    ("percent-of-latency", "levels of L and U times handover-us, in percent of apply-s"),
    ("percent-of-roof", "the larger of percent-of-bandwidth and percent-of-latency"),
    ("numeric-bytes", "bytes that the factorisation must move at least"),
    ("numeric-gbps", "numeric-bytes over numeric-kernel-s, 1e9 bytes per second"),
    ("numeric-us-per-level", "microseconds per level of L of the factorisation"),
    ("numeric-percent-of-bandwidth", "numeric-bytes at copy bandwidth, in percent of its time"),
    ("numeric-percent-of-latency", "levels of L times handover-us, in percent of its time"),
    ("numeric-percent-of-roof", "the larger of both"),
    ("device", "device of the backend"),
    ("threads", "threads of the backend"),
    ("cpu", "host processor"),
    ("os", "operating system and architecture"),
    ("compiler", "compiler of the program"),
    ("revision", "program version and source revision"),
    ("schema", "version of these columns, 2; empty in records of before"),
    ("date", "start of the run, UTC"),
];

/// Columns that were called otherwise once: former and present name.
const RENAMED: &[(&str, &str)] = &[("reorder", "ordering")];

/// The present name of a column.
pub fn current(name: &str) -> &str {
    RENAMED.iter().find(|(former, _)| *former == name).map_or(name, |(_, present)| present)
}

/// What reports add to the columns of a record: the command, the column and its meaning.
pub const ADDED: &[(&str, &str, &str)] = &[
    ("reproduce", "experiment", "table of the paper, `paper/table`"),
    ("reproduce", "published-iterations", "printed iterations of the case"),
    ("reproduce", "published-s", "printed solve time of the device that the backend stands for"),
    ("reproduce", "deviation-percent", "iterations over the printed ones, less 1, in percent"),
    ("reproduce", "verdict", "ok within the table's tolerance, off, or failed"),
    ("reproduce", "published-speedup", "printed time of the slow device over that of the fast one"),
    ("reproduce", "speedup", "solve-s of the slow backend over the row's"),
    ("reproduce", "speedup-over-cusparse", "solve-s of cusparse over the row's"),
    (
        "reproduce",
        "digits-of-history",
        "digits to which the residuals agree with those of one core",
    ),
    ("reproduce", "overall-us-per-point", "factorisation and corrections, microseconds per point"),
    ("reproduce", "factorisation-us-per-point", "numeric-kernel-s per point, microseconds"),
    ("reproduce", "solve-us-per-point", "apply-s per point, microseconds"),
    ("reproduce", "residual-us-per-point", "residual-s per point, microseconds"),
];

/// Columns of rows that are made of several records, beside the settings: the command, the column and
/// its meaning.
pub const DERIVED: &[(&str, &str, &str)] = &[
    ("compare", "old-solve-s", "median solve of the old file, seconds"),
    ("compare", "new-solve-s", "median solve of the new file, seconds"),
    (
        "compare",
        "ratio",
        "new-solve-s over old-solve-s; of rounds the median of all quotients, of pairs that of theirs",
    ),
    ("compare", "ratio-low", "lower end of the 95 % interval of the ratio"),
    ("compare", "ratio-high", "upper end of it"),
    ("compare", "setup-ratio", "setup-s of the new file over that of the old one"),
    ("compare", "old-iterations", "iterations in the old file"),
    ("compare", "new-iterations", "iterations in the new file"),
    ("compare", "differs", "processor, device, threads, system, compiler, revision: old -> new"),
    ("versus", "group", "systems that are averaged together"),
    ("versus", "apply-cuda-s", "fastest application of the preconditioner by cuda, seconds"),
    ("versus", "apply-cusparse-s", "fastest one by cuSPARSE, seconds"),
    ("versus", "apply-ratio", "the second over the first"),
    ("versus", "numeric-kernel-cuda-s", "fastest factorisation on the device by cuda, seconds"),
    ("versus", "numeric-kernel-cusparse-s", "fastest one by cuSPARSE, seconds"),
    ("versus", "numeric-kernel-ratio", "the second over the first"),
    (
        "versus",
        "numeric-and-solve-cuda-s",
        "fastest conversion, numeric phase and solve by cuda, matrix-s included, seconds",
    ),
    ("versus", "numeric-and-solve-cusparse-s", "fastest by cuSPARSE, seconds"),
    ("versus", "numeric-and-solve-ratio", "the second over the first"),
    ("versus", "apply-auto-ratio", "apply-cusparse-s over the time of the way that auto chose"),
];

/// Columns of the rows of `tune`.
pub const TUNING: &[(&str, &str)] = &[
    ("system", "the system that was measured"),
    ("kernel", "the kernel, with what it is compiled for"),
    ("rows", "scalar rows of the system"),
    ("choices", "what was chosen, name and value"),
    ("seconds", "median time of a product; empty where the choices do not run"),
    ("gbps", "bytes that the product must move at least over seconds, 1e9 per second"),
    ("percent-of-copy", "gbps in percent of the copy bandwidth"),
    ("search", "finished, or stopped when the time was over"),
];
