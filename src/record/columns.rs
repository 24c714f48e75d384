//! What each column of a result file holds.

/// Columns of earlier versions without which nothing is lost: they follow from others.
pub(super) const RETIRED: [&str; 4] = [
    "percent-of-latency",
    "percent-of-roof",
    "numeric-percent-of-latency",
    "numeric-percent-of-roof",
];

/// Version of the columns, in the column `schema`. Records without it have version 1; version 2 added the hashes.
pub(crate) const SCHEMA_VERSION: usize = 2;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Whole,
    Number,
    Numbers,
}

/// What a field can hold to be a column.
pub(super) trait Cell {
    const KIND: Kind = Kind::Text;
}

impl Cell for String {}

impl Cell for f64 {
    const KIND: Kind = Kind::Number;
}

impl Cell for u64 {
    const KIND: Kind = Kind::Whole;
}

impl Cell for usize {
    const KIND: Kind = Kind::Whole;
}

impl Cell for Vec<f64> {
    const KIND: Kind = Kind::Numbers;
}

impl<T: Cell> Cell for Option<T> {
    const KIND: Kind = T::KIND;
}

/// Name, type and meaning of a column; underscores of the name stand for hyphens.
pub(super) type Described = (&'static str, Kind, &'static str);

/// Declares a part of a record. The doc comment of a field is the meaning of its column, as users read it.
macro_rules! part {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[doc = $doc:literal])+ $(#[serde($($serde:tt)*)])? pub $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub struct $name {
            $($(#[doc = $doc])+ $(#[serde($($serde)*)])? pub $field: $type,)*
        }

        impl $name {
            pub(super) const COLUMNS: &[$crate::record::columns::Described] = &[$((
                stringify!($field),
                <$type as $crate::record::columns::Cell>::KIND,
                concat!($($doc),+).trim_ascii_start(),
            ),)*];
        }
    };
}
pub(super) use part;

/// The settings of a case of `run`.
pub(super) const SETTINGS: &[(&str, &str)] = &[
    ("matrix", "generator, catalogue name or file"),
    ("sequence", "sequence of which the matrix is a step; empty for none"),
    ("read-as", "how a symmetric file was read: expanded to both triangles, or as-stored"),
    ("zeros", "explicitly stored zeros: keep or drop"),
    ("ordering", "ordering of the unknowns"),
    ("scaling", "scaling of rows and columns by powers of two: none, rows or ruiz"),
    ("rhs", "right-hand side"),
    ("block-size", "unknowns per block"),
    ("kind", "solve, or spmv: the matrix-vector product alone"),
    ("precond", "preconditioner"),
    ("fill", "fill level k of ILU(k)"),
    ("level-rule", "update rule of the fill level: min or overwrite"),
    (
        "shift",
        "diagonal shift before the factorisation, relative to the largest diagonal entry, or search",
    ),
    (
        "drop-tolerance",
        "blocks of ILU(k) below this part of the norm of their row of the matrix were dropped",
    ),
    ("deflation", "deflation vectors requested"),
    ("solver", "solver"),
    ("side", "side of the preconditioner"),
    ("restart", "basis vectors of GMRES between restarts"),
    ("orthogonalisation", "orthogonalisation of GMRES"),
    ("inner-rtol", "part of a residual that a correction of iterative refinement may leave"),
    ("rtol", "tolerance on the monitored residual, relative to its initial value"),
    ("max-iterations", "iteration limit"),
    (
        "symmetry-tolerance",
        "largest relative difference of entries (i, j) and (j, i) that counts as rounding",
    ),
    ("guess", "start of the solves of a sequence: zero, or last, the solution of the step before"),
    (
        "refactor",
        "steps of a sequence whose preconditioner is made of their own values: always, every:N or adaptive:F",
    ),
    ("format", "storage format requested"),
    (
        "factor-precision",
        "precision in which the factors are stored: float64, float32, bfloat16, float16, or adaptive",
    ),
    ("trisolve", "algorithm of the triangular solves requested"),
    ("fgbilu-style", "execution of fgbilu requested"),
    ("execution", "execution of the solver requested"),
    ("partition", "division of the block rows among subdomains"),
    ("subdomains", "subdomains requested; 0: one of each rank"),
    (
        "schwarz",
        "preconditioners of subdomains: jacobi, ras with layers of overlap, exact, exact:interface, exact:interface:M or exact:natural",
    ),
    (
        "threads-asked",
        "CPU threads requested, of each rank where there are ranks; 0: the program's choice",
    ),
    ("backend", "backend that ran the case"),
];

/// Settings that are numbers or words.
pub(super) const NUMBER_OR_WORD: &[&str] = &["shift"];

/// How a case of `run` ended, before its parts.
pub(super) const ENDING: &[Described] = &[
    ("format-used", Kind::Text, "storage format used by the product"),
    (
        "tuned",
        Kind::Text,
        "parameters of the product kernel found by `tune`; empty for the default kernel",
    ),
    ("round", Kind::Whole, "number of the round, from 1; empty without `--rounds`"),
    ("step", Kind::Whole, "number of the step of the sequence, from 1; empty without a sequence"),
    (
        "setup-done",
        Kind::Text,
        "what a step of a sequence made of its preconditioner: all, analysis and numeric phase (analysis), numeric, or none",
    ),
    ("status", Kind::Text, "how the run ended"),
    ("reason", Kind::Text, "why it did not converge, or a remark"),
];

/// Sizes of the factors.
pub(super) const FACTOR: &[Described] = &[
    ("factor-blocks", Kind::Whole, "blocks of L, D and U in total"),
    ("factor-entries", Kind::Whole, "scalar entries of the factors"),
    ("fill-ratio", Kind::Number, "factor blocks divided by matrix blocks"),
    ("levels-lower", Kind::Whole, "levels of the L solve"),
    ("levels-upper", Kind::Whole, "levels of the U solve"),
    ("rows-per-level", Kind::Number, "mean block rows per level of the L solve"),
    (
        "trisolve-used",
        Kind::Text,
        "algorithm of the triangular solves; empty on a CPU and without triangular factors",
    ),
    (
        "trisolve-reason",
        Kind::Text,
        "why the backend chose that algorithm: measured or predicted time of each candidate",
    ),
    (
        "factor-precisions",
        Kind::Text,
        "parts of the factors' blocks in each precision, where `adaptive` chose them",
    ),
    ("deflation-vectors", Kind::Whole, "deflation vectors used"),
    ("shift-used", Kind::Number, "multiple of the diagonal that shift search added to it; 0: none"),
];

/// Whether the factors are fit for use.
pub(super) const QUALITY: &[Described] = &[
    (
        "smallest-pivot",
        Kind::Number,
        "smallest pivot of the factors, for blocks the least 1/|inverse|, of the matrix with rows and columns scaled to 1",
    ),
    (
        "condest",
        Kind::Number,
        "estimate of |M^-1|: largest magnitude of M^-1 e for this scaled matrix",
    ),
    ("lower-condest", Kind::Number, "the same of L alone; CPU backends"),
    ("upper-condest", Kind::Number, "the same of U alone; CPU backends"),
    ("growth", Kind::Number, "largest magnitude in U for this scaled matrix; CPU backends"),
];

/// Renamed columns: former and present name.
const RENAMED: &[(&str, &str)] = &[("reorder", "ordering")];

/// The present name of a column.
pub(crate) fn current(name: &str) -> &str {
    RENAMED.iter().find(|(former, _)| *former == name).map_or(name, |(_, present)| present)
}

/// Columns that `reproduce` adds to those of a record.
pub(crate) const ADDED: &[(&str, &str)] = &[
    ("experiment", "table or figure of the paper, `paper/table`"),
    ("published-iterations", "iterations that the paper reports for the case"),
    ("published-s", "solve time that the paper reports for the corresponding device"),
    ("deviation-percent", "relative deviation of the iterations from the published ones, percent"),
    ("verdict", "ok (within the tolerance of the table), off, or failed"),
    ("published-speedup", "published time of the slow device divided by that of the fast one"),
    ("speedup", "solve-s of the slow backend divided by that of the row"),
    ("speedup-over-cusparse", "solve-s of cusparse divided by that of the row"),
    ("digits-of-history", "decimal digits to which the residuals agree with those of one core"),
    ("overall-us-per-point", "factorisation and corrections, microseconds per grid point"),
    ("factorisation-us-per-point", "numeric-kernel-s, microseconds per grid point"),
    ("solve-us-per-point", "apply-s, microseconds per grid point"),
    ("residual-us-per-point", "residual-s, microseconds per grid point"),
];

/// Columns, beside the settings, of the rows of `compare`, computed from two records.
pub(crate) const COMPARE: &[(&str, &str)] = &[
    ("old-solve-s", "median solve of the old file, seconds"),
    ("new-solve-s", "median solve of the new file, seconds"),
    (
        "ratio",
        "new-solve-s divided by old-solve-s; with rounds the median over all pairs of rounds, with paired runs over the pairs",
    ),
    ("ratio-low", "lower end of the 95 % confidence interval of the ratio"),
    ("ratio-high", "upper end of the 95 % confidence interval of the ratio"),
    (
        "machine-ratio",
        "median reference-s of the new file divided by that of the old file: a slower machine is above 1",
    ),
    ("setup-ratio", "setup-s of the new file divided by that of the old file"),
    ("old-iterations", "iterations in the old file"),
    ("new-iterations", "iterations in the new file"),
    (
        "differs",
        "differences in processor, device, threads, operating system, compiler or revision: old -> new",
    ),
    (
        "verdict",
        "faster, slower, same, unclear, fixed, broken and others that docs/compare.md defines",
    ),
];

/// Columns, beside the settings, of the rows of `versus`, computed from several records.
pub(crate) const VERSUS: &[(&str, &str)] = &[
    ("group", "group of systems over which means are taken"),
    ("apply-cuda-s", "fastest application of the preconditioner on cuda, seconds"),
    ("apply-cusparse-s", "fastest application of the preconditioner by cuSPARSE, seconds"),
    ("apply-ratio", "apply-cusparse-s divided by apply-cuda-s"),
    ("numeric-kernel-cuda-s", "fastest factorisation on the device on cuda, seconds"),
    ("numeric-kernel-cusparse-s", "fastest factorisation on the device by cuSPARSE, seconds"),
    ("numeric-kernel-ratio", "numeric-kernel-cusparse-s divided by numeric-kernel-cuda-s"),
    ("numeric-and-solve-cuda-s", "fastest sum of matrix-s, numeric-s and solve-s on cuda, seconds"),
    ("numeric-and-solve-cusparse-s", "the same with cuSPARSE, seconds"),
    ("numeric-and-solve-ratio", "numeric-and-solve-cusparse-s divided by numeric-and-solve-cuda-s"),
    ("total-cuda-s", "fastest time to solution on cuda, setup included, seconds"),
    ("total-cusparse-s", "the same with cuSPARSE, seconds"),
    ("total-ratio", "total-cusparse-s divided by total-cuda-s"),
    ("apply-auto-ratio", "apply-cusparse-s divided by the time of the algorithm that auto chose"),
];

/// Columns of the rows of `tune`.
pub(crate) const TUNING: &[(&str, &str)] = &[
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
