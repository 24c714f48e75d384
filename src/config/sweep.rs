//! The sweep: a list of values per axis, and the cases that their cross product makes.

use std::collections::HashSet;

use itertools::Itertools as _;

use crate::base::error::{Error, Result};
use crate::base::external::external;
use crate::base::parse::{choice, choice_name, choices, count, number, number_text};
use crate::case::{
    Case, Execution, FactorPrecision, FgbiluStyle, Format, Guess, LevelRule, MAX_BLOCK_SIZE,
    MAX_FILL, MAX_SUBDOMAINS, Ordering, Orthogonalisation, Partition, ReadAs, Refactor, RunKind,
    Scaling, Setting, Shift, Side, Trisolve, Zeros,
};
use crate::config::axes::{self, axes, one};
use crate::config::values::{
    format, matrix, named, names, precond_names, rhs, sequence, sequence_text, trisolve,
};
use crate::methods::solver::MAX_RESTART;
use crate::methods::{deflation, registry, schwarz};
use crate::problem;

/// Largest iteration limit.
pub(crate) const MAX_ITERATIONS: usize = 1_000_000_000;
/// Most cases of one experiment.
pub(crate) const MAX_CASES: usize = 100_000;
/// Most threads of a case.
const MAX_THREADS: usize = 1024;

/// Whether a peer's own methods make use of a setting in a case.
pub(crate) type Declared<'a> = &'a dyn Fn(&Case, &str) -> bool;

/// One setting of [`Case`] that a sweep may vary.
pub type Axis = axes::Axis<Case, Sweep>;

impl Axis {
    /// `word` as [`axes::Axis::text`] would write it; an error when it is not one value of this axis.
    pub fn canonical(&self, word: &str) -> Result<String> {
        match self.texts(&[word.to_owned()])?.as_slice() {
            [text] => Ok(text.clone()),
            _ => Err(Error::input(format!("`{word}` is more than one value"))),
        }
    }

    /// The values that `words` list, each as [`axes::Axis::text`] would write it.
    pub(crate) fn texts(&self, words: &[String]) -> Result<Vec<String>> {
        let mut sweep = Sweep::default();
        self.set(&mut sweep, words)?;
        Ok(sweep.product()?.iter().map(self.text).collect())
    }
}

/// The axis called `name`.
pub fn axis(name: &str) -> Result<&'static Axis> {
    axes::named(AXES, name)
}

// a matrix is loaded once, and the backends that are compared run one after the other
axes! {
    Case, most MAX_CASES;
    matrix: String, "matrix", "SPEC",
        "Generator (`poisson3d:60`), catalogue name (`parabolic_fem`), file (`a.mtx.gz`, `a.npz`, `a.petsc`), or `-`: standard input",
        Vec::new, String::clone, |t, out| one(Ok(matrix(t)), out);
    sequence: String, "sequence", "SPEC",
        "Sequence of systems in place of matrices: files by a pattern (`'dump_*.mtx.gz'`) in the order of their \
         numbers, time steps (`reservoir:20,steps=20`), or both in a list; `none`: single systems",
        Vec::new, sequence_text, sequence;
    read_as: ReadAs, "read-as", "HOW",
        "How a symmetric file is read",
        choices::<ReadAs>, choice_name, |t, out| one(choice("reading", t), out);
    zeros: Zeros, "zeros", "WHAT",
        "Explicitly stored zeros: kept in the pattern or removed from it",
        choices::<Zeros>, choice_name, |t, out| one(choice("treatment of zeros", t), out);
    ordering: Ordering, "ordering", "NAME",
        "Ordering of the unknowns, by blocks; with a parameter as in `random:SEED` or `subdomains:N,partition=HOW`",
        || names(registry::ORDERINGS), Ordering::to_string, |t, out| one(t.parse(), out);
    scaling: Scaling, "scaling", "HOW",
        "Scaling of the system, by powers of two, before anything is computed: none, rows, or rows and columns (`ruiz`)",
        choices::<Scaling>, choice_name, |t, out| one(choice("scaling", t), out);
    rhs: String, "rhs", "SPEC",
        "Right-hand side: `ones`, `a-ones`, `random`, `random:SEED`, `own`, or a file, `b.npy`, `b.mtx` or `file:PATH`; `random*8` and `b.npy*8` are eight at once",
        Vec::new, String::clone, rhs;
    block_size: usize, "block-size", "N",
        "Unknowns per block, 1 to 128",
        Vec::new, usize::to_string, |t, out| count(t, 1, MAX_BLOCK_SIZE, out);
    kind: RunKind, "kind", "WHAT",
        "What is run: `solve`, or `spmv` for matrix-vector products alone",
        choices::<RunKind>, choice_name, |t, out| one(choice("kind of run", t), out);
    precond: String, "precond", "NAME",
        "Preconditioner, with parameters as in `mcilu:p=1,q=2`; `all`: one of each kind",
        || names(registry::PRECONDITIONERS), String::clone,
        precond_names;
    fill: usize, "fill", "K",
        "Fill level k of ILU(k), 0 to 120",
        Vec::new, usize::to_string, |t, out| count(t, 0, MAX_FILL, out);
    level_rule: LevelRule, "level-rule", "RULE",
        "Update rule of the fill level: `min` is the textbook's, `overwrite` keeps the last update",
        choices::<LevelRule>, choice_name, |t, out| one(choice("level rule", t), out);
    shift: Shift, "shift", "X",
        "Diagonal shift before the factorisation, relative to the largest diagonal entry; `search`: the least multiple \
         of the diagonal that makes usable factors",
        Vec::new, Shift::to_string, |t, out| one(t.parse(), out);
    drop_tolerance: f64, "drop-tolerance", "X",
        "Blocks of ILU(k) below X times the norm of their row of the matrix are dropped; 0: none",
        Vec::new, |v: &f64| number_text(*v),
        |t, out| one(number(t, "0 to 1e6", |v| (0.0..=1e6).contains(&v)), out);
    deflation: deflation::Choice, "deflation", "VECTORS",
        "Deflation: `none`, `subdomain:KxLxM`, `levelset` or `levelset-subdomain:KxLxM`; over ranks `subdomains`, or \
         `subdomains:M` with M vectors for each",
        Vec::new, deflation::Choice::to_string, |t, out| one(t.parse(), out);
    solver: String, "solver", "NAME",
        "Solver",
        || names(registry::SOLVERS), String::clone,
        |t, out| one(named("solver", t, registry::SOLVERS), out);
    side: Side, "side", "SIDE",
        "Side of the preconditioner; only `gmres` and `qmr` have a choice",
        choices::<Side>, choice_name, |t, out| one(choice("side", t), out);
    restart: usize, "restart", "M",
        "Basis vectors of GMRES between restarts, 1 to 506",
        Vec::new, usize::to_string, |t, out| count(t, 1, MAX_RESTART, out);
    orthogonalisation: Orthogonalisation, "orthogonalisation", "NAME",
        "Orthogonalisation of GMRES",
        choices::<Orthogonalisation>, choice_name,
        |t, out| one(choice("orthogonalisation", t), out);
    inner_rtol: f64, "inner-rtol", "X",
        "Iterative refinement: a correction leaves at most X times the residual, or ends with its cycle of GMRES",
        Vec::new, |v: &f64| number_text(*v),
        |t, out| one(number(t, "above 0 and below 1", |v| v > 0.0 && v < 1.0), out);
    rtol: f64, "rtol", "X",
        "Tolerance: a solve has converged when the monitored residual is at most X times its initial value; \
         with 0 it runs to the iteration limit, or until the residual is zero",
        Vec::new, |v: &f64| number_text(*v),
        |t, out| one(number(t, "at least 0 and below 1", |v| (0.0..1.0).contains(&v)), out);
    max_iterations: usize, "max-iterations", "N",
        "Iteration limit, 1 to 1000000000",
        Vec::new, usize::to_string, |t, out| count(t, 1, MAX_ITERATIONS, out);
    symmetry_tolerance: f64, "symmetry-tolerance", "X",
        "Difference of entries (i, j) and (j, i) that `cg`, `ic` and `fsai` accept as rounding, relative to the larger \
         of both or to the largest entry of their rows",
        Vec::new, |v: &f64| number_text(*v),
        |t, out| one(number(t, "at least 0 and below 1", |v| (0.0..1.0).contains(&v)), out);
    guess: Guess, "guess", "WHERE",
        "Start of the solves of a sequence: `zero`, or `last`, the solution of the step before",
        choices::<Guess>, choice_name, |t, out| one(choice("start of a solve", t), out);
    refactor: Refactor, "refactor", "WHEN",
        "Steps of a sequence whose preconditioner is made of their own values: `always`, `every:N`, or `adaptive:F`, \
         after a step with more than F times the iterations of the last such step",
        Vec::new, Refactor::to_string, |t, out| one(t.parse(), out);
    format: Format, "matrix-format", "NAME",
        "Storage format of the matrix in the product y = A x",
        || names(registry::FORMATS), choice_name, format;
    factor_precision: FactorPrecision, "factor-precision", "NAME",
        "Precision in which the factors are stored for the triangular solves; arithmetic is in float64",
        choices::<FactorPrecision>, choice_name, |t, out| one(choice("factor precision", t), out);
    trisolve: Trisolve, "trisolve", "NAME",
        "Algorithm of the triangular solves; only the backend `cuda` has a choice",
        || names(registry::TRISOLVES), choice_name, trisolve;
    fgbilu_style: FgbiluStyle, "fgbilu-style", "NAME",
        "Execution of fgbilu; only the backend `cuda` has a choice",
        || names(registry::FGBILU_STYLES), choice_name,
        |t, out| one(choice("style of fgbilu", t), out);
    execution: Execution, "execution", "NAME",
        "Execution of the solver; only a GPU has a choice",
        || names(registry::EXECUTIONS), choice_name, |t, out| one(choice("execution", t), out);
    partition: Partition, "partition", "HOW",
        "Division of the block rows among subdomains; for backends over ranks",
        choices::<Partition>, choice_name, |t, out| one(choice("partition", t), out);
    subdomains: usize, "subdomains", "N",
        "Subdomains, at least one of each rank; 0: one of each",
        Vec::new, usize::to_string, |t, out| count(t, 0, MAX_SUBDOMAINS, out);
    schwarz: schwarz::Choice, "schwarz", "NAME",
        "Preconditioners of subdomains: `jacobi`, block by block, `ras:D`, with D layers of overlap, or \
         one of the whole matrix, `exact`: products, or ILU(k), which `exact:interface` eliminates with the interfaces \
         last, `exact:interface:M` with M more levels of fill in their rows and columns, `exact:natural` in the given \
         order, `exact` in one of these",
        Vec::new, schwarz::Choice::to_string, |t, out| one(t.parse(), out);
    threads: usize, "threads", "T",
        "CPU threads of `cpu-mt`, or of each rank; results do not depend on them. 0: all cores, or one where the system \
         is small; one of each rank",
        Vec::new, usize::to_string, |t, out| count(t, 0, MAX_THREADS, out);
    backend: String, "backend", "NAME",
        "Backend that runs the case, or `external:NAME` for a peer",
        || names(registry::BACKENDS), String::clone,
        |t, out| one(named("backend", t, registry::BACKENDS), out);
}

impl Sweep {
    /// The cases in the order of [`AXES`]: the cross product. Settings that a backend, a
    /// solver or the kind of run does not use do not multiply its cases.
    pub fn cases(&self) -> Result<Vec<Case>> {
        self.cases_with(&|_, _| false)
    }

    /// The same; `declared` tells of which settings, by their names, a peer's own methods make use in a case.
    pub(crate) fn cases_with(&self, declared: Declared) -> Result<Vec<Case>> {
        let words = self.sequence.iter().flatten().filter(|word| !word.is_empty());
        let words: Vec<&str> = words.map(String::as_str).collect();
        if words.is_empty() {
            return self.single_cases(declared);
        }
        self.check_sequence()?;
        let name = words.join(",");
        let cases = Self { sequence: Some(vec![name]), ..self.clone() }.single_cases(declared)?;
        let steps = words.iter().map(|word| problem::sequence::steps(word));
        let steps = steps.collect::<Result<Vec<_>>>()?.into_iter().flatten();
        // a step is known by its matrix
        let steps: Vec<String> = steps.unique().collect();
        if steps.len().saturating_mul(cases.len()) > MAX_CASES {
            return Err(Error::input(format!("the sequence has more than {MAX_CASES} steps")));
        }
        let of_case = |case: &Case| {
            let step = |matrix: &String| Case { matrix: matrix.clone(), ..case.clone() };
            steps.iter().map(step).collect::<Vec<_>>()
        };
        Ok(cases.iter().flat_map(of_case).collect())
    }

    /// Refuses what no sequence has.
    fn check_sequence(&self) -> Result<()> {
        if self.matrix.is_some() {
            return Err(Error::input("`matrix` beside `sequence`")
                .hint("a sequence names its matrices: give one of both"));
        }
        if self.kind.iter().flatten().any(|kind| *kind == RunKind::Spmv) {
            return Err(Error::input("products alone (`kind` `spmv`) have no sequence")
                .hint("name the matrices by `matrix`"));
        }
        match self.backend.iter().flatten().find(|name| external(name).is_some()) {
            Some(name) => Err(Error::input(format!("a sequence does not run on `{name}`"))
                .hint("no peer takes one: give a backend of this program")),
            None => Ok(()),
        }
    }

    /// The same without the steps of a sequence.
    fn single_cases(&self, declared: Declared) -> Result<Vec<Case>> {
        let several = |rhs: &&String| problem::several::stated_columns(rhs).is_some_and(|n| n > 1);
        if self.kind.as_ref().is_some_and(|kinds| kinds.iter().all(|k| *k == RunKind::Spmv))
            && let Some(rhs) = self.rhs.iter().flatten().find(several)
        {
            return Err(Error::input(format!(
                "`rhs` `{rhs}` beside `kind` `spmv`: products alone have one vector"
            ))
            .hint("a solve for several right-hand sides records the product of all in `spmv-s`"));
        }
        let mut cases = self.product()?;
        let mut seen = HashSet::new();
        cases.retain_mut(|case| {
            let plain = case.on(&case.backend).for_its_kind();
            *case = self.with_first_values(plain, declared);
            seen.insert(format!("{case:?}"))
        });
        Ok(cases)
    }

    /// The same with the first values of settings that change nothing in it, or their defaults where a method is a
    /// peer's own.
    fn with_first_values(&self, mut case: Case, declared: Declared) -> Case {
        if case.kind == RunKind::Spmv {
            return case;
        }
        let default = external(&case.precond).map(|_| Case::default());
        macro_rules! first {
            ($($field:ident, $setting:ident;)*) => {
                $(
                    if let Some(first) = self.$field.as_ref().and_then(|v| v.first())
                        && !case.uses(Setting::$setting)
                        && !declared(&case, &choice_name(&Setting::$setting))
                    {
                        case.$field = default.as_ref().map_or(*first, |other| other.$field);
                    }
                )*
            };
        }
        first! {
            fill, Fill;
            level_rule, LevelRule;
            shift, Shift;
            drop_tolerance, DropTolerance;
            restart, Restart;
            orthogonalisation, Orthogonalisation;
            inner_rtol, InnerRtol;
            symmetry_tolerance, SymmetryTolerance;
        }
        // a record does not claim a precision that nothing has
        if !case.uses(Setting::FactorPrecision)
            && !declared(&case, &choice_name(&Setting::FactorPrecision))
        {
            case.factor_precision = FactorPrecision::default();
        }
        case
    }
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
