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
         one ILU(k) of the whole matrix: `exact:interface` with the interfaces last, `exact:natural` in the given \
         order, `exact` in one of both",
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
                        && !declared(&case, Setting::$setting.name())
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
            factor_precision, FactorPrecision;
        }
        case
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, words: &[&str]) -> Result<Sweep> {
        let mut sweep = Sweep::default();
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        axis(name)?.set(&mut sweep, &words)?;
        Ok(sweep)
    }

    /// The cases of a sweep of these settings.
    fn cases(settings: &[(&str, &str)]) -> Vec<Case> {
        let mut sweep = Sweep::default();
        for (name, words) in settings {
            axis(name).unwrap().set(&mut sweep, &[(*words).into()]).unwrap();
        }
        sweep.cases().unwrap()
    }

    /// The values of the settings `names` in each case.
    fn texts(cases: &[Case], names: &str) -> Vec<String> {
        let axes: Vec<&Axis> = names.split(' ').map(|name| axis(name).unwrap()).collect();
        let text = |case| axes.iter().map(|a| (a.text)(case)).collect::<Vec<_>>().join(" ");
        cases.iter().map(text).collect()
    }

    #[test]
    fn the_default_sweep_is_the_default_case() {
        assert_eq!(Sweep::default().cases().unwrap(), [Case::default()]);
    }

    #[test]
    fn matrix_is_outermost_and_backend_innermost() {
        let cases = cases(&[("fill", "0..1"), ("matrix", "p:1,q:2"), ("backend", "cpu,cpu-mt")]);
        let want = "p:1 0 cpu; p:1 0 cpu-mt; p:1 1 cpu; p:1 1 cpu-mt; \
                    q:2 0 cpu; q:2 0 cpu-mt; q:2 1 cpu; q:2 1 cpu-mt";
        assert_eq!(texts(&cases, "matrix fill backend").join("; "), want);
    }

    #[test]
    fn sides_multiply_only_the_cases_of_solvers_that_have_them() {
        let cases =
            cases(&[("side", "left,right"), ("solver", "gmres,bicgstab,cg,qmr,correction")]);
        let want = "gmres left; gmres right; bicgstab right; cg right; qmr left; qmr right; \
                    correction right";
        assert_eq!(texts(&cases, "solver side").join("; "), want);
        let alone = Sweep { side: Some(vec![Side::Left]), ..set("solver", &["cg"]).unwrap() };
        assert_eq!(alone.cases().unwrap()[0].side, Side::Right);
    }

    #[test]
    fn settings_multiply_only_the_cases_in_which_they_change_something() {
        let of =
            cases(&[("precond", "bilu,jacobi,tns,isai"), ("fill", "1..2"), ("shift", "0,0.1")]);
        let want = "bilu 1 0; bilu 1 0.1; bilu 2 0; bilu 2 0.1; jacobi 1 0; jacobi 1 0.1; tns 1 0; \
                    isai 1 0; isai 1 0.1; isai 2 0; isai 2 0.1";
        assert_eq!(texts(&of, "precond fill shift").join("; "), want);

        let of = cases(&[
            ("solver", "gmres,cg"),
            ("restart", "10,20"),
            ("orthogonalisation", "mgs,cgs"),
        ]);
        let want = ["gmres 10", "gmres 10", "gmres 20", "gmres 20", "cg 10"];
        assert_eq!(texts(&of, "solver restart"), want);

        // on this system one stagnates and the other does not
        let of = cases(&[("matrix", "reservoir:8"), ("precond", "jacobi"), ("shift", "0,0.1")]);
        assert_eq!(texts(&of, "shift"), ["0", "0.1"]);

        // without fill there is no rule, and coloured factors and diagonals are of either precision
        assert_eq!(cases(&[("fill", "0..1"), ("level-rule", "min,overwrite")]).len(), 3);
        let of = [("precond", "none,mcilu,jacobi"), ("factor-precision", "float64,float32")];
        assert_eq!(cases(&of).len(), 5);
    }

    #[test]
    fn a_right_hand_side_of_two_names_is_one() {
        let sweep = set("rhs", &["random,random:1,random:01,random:2"]).unwrap();
        assert_eq!(sweep.rhs.unwrap(), ["random", "random:2"]);
    }

    #[test]
    fn triangular_solves_multiply_only_the_cases_that_have_them() {
        let of = |algorithms: &str, backends: &str| {
            let cases = cases(&[("trisolve", algorithms), ("backend", backends)]);
            texts(&cases, "backend trisolve").join("; ")
        };
        assert_eq!(of("levels,syncfree", "cpu,cuda"), "cpu auto; cuda levels; cuda syncfree");
        let each = registry::TRISOLVES.iter().filter(|t| !["auto", "all"].contains(&t.0));
        let each: Vec<String> = each.map(|(name, _)| format!("cuda {name}")).collect();
        let want = format!("cusparse auto; {}", each.join("; "));
        assert_eq!(of("all", "cusparse,cuda"), want);
        assert_eq!(of("levels", "cpu,cpu-mt"), "cpu auto; cpu-mt auto");
        assert_eq!(axis("trisolve").unwrap().canonical("levels").unwrap(), "levels");
        let error = axis("trisolve").unwrap().canonical("all").unwrap_err();
        assert_eq!(error.to_string(), "`all` is more than one value");
    }

    #[test]
    fn styles_of_fgbilu_multiply_only_the_cases_that_have_them() {
        let cases = cases(&[
            ("fgbilu-style", "acc,cl"),
            ("precond", "bilu,fgbilu"),
            ("trisolve", "levels,syncfree"),
            ("backend", "cpu,cuda"),
        ]);
        assert_eq!(
            texts(&cases, "precond backend trisolve fgbilu-style"),
            [
                "bilu cpu auto auto",
                "bilu cuda levels auto",
                "bilu cuda syncfree auto",
                "fgbilu cpu auto auto",
                "fgbilu cuda auto acc",
                "fgbilu cuda auto cl",
            ]
        );
    }

    #[test]
    fn settings_of_a_solve_do_not_multiply_products() {
        let kinds = [("kind", "spmv,solve"), ("matrix-format", "all"), ("fill", "0..1")];
        let mut cases = cases(&[&kinds[..], &[("rtol", "1e-3")]].concat());
        assert_eq!(cases.len(), 6 + 2 * 6);
        cases.retain(|c| c.kind == RunKind::Spmv);
        assert_eq!(
            texts(&cases, "matrix-format precond rtol"),
            ["csr", "bsr", "hyb", "sell", "dia", "bdia"].map(|f| format!("{f} none 1e-6"))
        );
    }

    #[test]
    fn axes_are_all_settings_of_a_case() {
        let serde_json::Value::Object(case) = serde_json::to_value(Case::default()).unwrap() else {
            panic!("a case is an object");
        };
        let columns: Vec<&str> = case.keys().map(String::as_str).collect();
        let axes: Vec<&str> = AXES
            .iter()
            .map(|a| match a.name {
                "matrix-format" => "format",
                // the column `threads` is that of what was used
                "threads" => "threads-asked",
                name => name,
            })
            .collect();
        assert_eq!(axes, columns);
    }

    #[test]
    fn every_axis_reads_back_the_text_of_the_default_case() {
        for axis in AXES {
            let text = (axis.text)(&Case::default());
            assert_eq!(axis.canonical(&text).unwrap(), text, "{}", axis.name);
        }
    }

    #[test]
    fn bad_values_are_refused() {
        for (name, word, message) in [
            ("block-size", "0", "`0` is outside 1 to 128"),
            ("block-size", "129", "`129` is outside 1 to 128"),
            ("fill", "-1", "`-1` is outside 0 to 120"),
            ("restart", "0", "`0` is outside 1 to 506"),
            ("restart", "507", "`507` is outside 1 to 506"),
            ("max-iterations", "0", "`0` is outside 1 to 1000000000"),
            ("inner-rtol", "0", "`0` is outside the range: above 0 and below 1"),
            ("inner-rtol", "1", "`1` is outside the range: above 0 and below 1"),
            ("rtol", "1", "`1` is outside the range: at least 0 and below 1"),
            ("shift", "-0.1", "`-0.1` is outside the range: 0 to 1e6"),
            ("shift", "nan", "`nan` is outside the range: 0 to 1e6"),
            ("shift", "serach", "`serach` is not a number"),
            ("drop-tolerance", "-1e-3", "`-1e-3` is outside the range: 0 to 1e6"),
            ("drop-tolerance", "NaN", "`NaN` is outside the range: 0 to 1e6"),
            (
                "precond",
                "ilut:tau=-1",
                "`ilut`: `tau=-1` is outside the range: above 0 and below 1000000",
            ),
            (
                "precond",
                "ilut:tau=nan",
                "`ilut`: `tau=nan` is outside the range: above 0 and below 1000000",
            ),
            (
                "precond",
                "ilut:p=-2",
                "`ilut`: `p=-2` is outside the range: whole numbers from 0 to 1000000",
            ),
            ("scaling", "cols", "unknown scaling `cols`"),
            ("solver", "gmers", "unknown solver `gmers`"),
            ("precond", "billu", "unknown preconditioner `billu`"),
            ("backend", "gpu9", "unknown backend `gpu9`"),
            ("trisolve", "level", "unknown algorithm of triangular solves `level`"),
            ("level-rule", "max", "unknown level rule `max`"),
            ("ordering", "rmc", "unknown ordering `rmc`"),
            ("rhs", "twos", "unknown right-hand side `twos`"),
            ("rhs", "random:x", "right-hand side `random:x`: `x` is not a seed"),
            ("rhs", "file:/no/such", "no such file `/no/such`"),
        ] {
            assert_eq!(set(name, &[word]).unwrap_err().to_string(), message);
        }
        assert_eq!(set("fill", &[]).unwrap_err().to_string(), "empty list");
        assert_eq!(axis("fil").unwrap_err().hint_text().unwrap()[..20], *"did you mean `fill`?");
    }

    #[test]
    fn help_states_the_limits() {
        for (name, limit) in [
            ("block-size", MAX_BLOCK_SIZE),
            ("fill", MAX_FILL),
            ("restart", MAX_RESTART),
            ("max-iterations", MAX_ITERATIONS),
        ] {
            let help = axis(name).unwrap().help;
            assert!(help.ends_with(&format!(" to {limit}")), "{help}");
        }
    }

    #[test]
    fn repetitions_are_named_and_kept_once() {
        let mut sweep = Sweep::default();
        let again = axis("fill").unwrap().set(&mut sweep, &["0..2,1".into(), "2".into()]).unwrap();
        assert_eq!((sweep.fill.unwrap(), again), (vec![0, 1, 2], vec!["1".into(), "2".into()]));
    }

    #[test]
    fn too_large_a_sweep_is_refused_before_it_is_made() {
        let mut sweep = set("fill", &["0..100"]).unwrap();
        axis("max-iterations").unwrap().set(&mut sweep, &["1..1000".into()]).unwrap();
        assert_eq!(sweep.cases().unwrap_err().to_string(), "the sweep has more than 100000 cases");
    }
}
