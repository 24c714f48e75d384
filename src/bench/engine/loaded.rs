//! The system of the case that runs, kept for those that follow.

use std::collections::HashSet;

use super::{Observer, Runner, one_system};
use crate::base::error::{Error, Kind, Result};
use crate::base::measure::{median, now, seconds_since};
use crate::base::status::Status;
use crate::base::units::plural;
use crate::bench::run::Outline;
use crate::case::{Case, Ordering};
use crate::matrix::hash;
use crate::problem::Problem;
use crate::record::Record;
use crate::record::schema::SystemHash;
use crate::symbolic::ordering::{reordered, restored};

/// Why there is no system: the ordering cannot be computed, or memory is exhausted, then without its size.
pub(super) struct NoSystem {
    pub(super) why: Error,
    pub(super) n: usize,
    pub(super) nnz: usize,
    pub(super) hash: SystemHash,
}

impl NoSystem {
    pub(super) fn record(&self, case: &Case) -> Record {
        let Self { why, n, nnz, hash } = self;
        let hint = why.hint_text().map(|hint| format!("; {hint}")).unwrap_or_default();
        let status = match why.kind() {
            Kind::Memory => Status::OutOfMemory,
            Kind::Input | Kind::Run | Kind::Stopped => Status::Unsupported,
        };
        let reason = Some(format!("{why}{hint}"));
        let mut record = Record { case: case.clone(), status, reason, ..Record::default() };
        (record.size.n, record.size.nnz) = (*n, *nnz);
        record.hash = hash.clone();
        record
    }
}

/// The system of a case.
pub(super) struct System<'a> {
    /// Both, unless the ranks have them.
    pub(super) here: Option<(&'a Problem, &'a [f64])>,
    /// Seconds of the ordering; `None` for the natural ordering.
    pub(super) ordering_s: Option<f64>,
    pub(super) hash: SystemHash,
}

/// System and right-hand side of the previous case, which the next one usually shares.
pub(super) struct Loaded<'a> {
    cases: &'a [Case],
    problem: Option<(Case, Known)>,
    /// Without its numbers where the ranks have them.
    rhs: Option<(String, Vec<f64>)>,
    /// Of both, before they are reordered.
    hash: SystemHash,
    reordered: Option<Reordered>,
    /// Matrices whose remarks have been reported.
    told: HashSet<String>,
}

/// A system, or what is known of one whose rows the ranks have.
enum Known {
    Here(Problem),
    OnRanks(Outline),
}

/// A permuted system, kept for the cases that share it.
struct Reordered {
    /// Its ordering and block size.
    of: (Ordering, usize),
    /// The system, or why the ordering cannot be computed.
    system: Result<Permuted>,
}

/// A system after a symmetric permutation of its unknowns.
pub(crate) struct Permuted {
    order: Vec<u32>,
    pub(crate) problem: Problem,
    /// The right-hand side, with its name.
    pub(crate) rhs: (String, Vec<f64>),
    /// Seconds to compute and to apply the permutation: the median of up to [`MOST`] times.
    pub(crate) seconds: f64,
}

/// How often an ordering is made at most.
const MOST: usize = 6;
/// Seconds after which it is not made again.
const ENOUGH_S: f64 = 0.1;

impl Permuted {
    /// The system and the right-hand side of a case.
    ///
    /// # Errors
    /// When the ordering cannot be computed for the matrix.
    pub(crate) fn of(case: &Case, problem: &Problem, b: &[f64]) -> Result<Self> {
        let mut samples = Vec::with_capacity(MOST);
        loop {
            let start = now();
            let order = problem.order(case.ordering_for_fill(), case.block_size)?;
            let made = problem.reordered(&order);
            let rhs = (case.rhs.clone(), reordered(b, &order));
            samples.push(seconds_since(start));
            if samples.len() == MOST || samples.iter().sum::<f64>() > ENOUGH_S {
                let seconds = median(&samples).map_or(0.0, |of| of.value);
                return Ok(Self { order, problem: made, rhs, seconds });
            }
        }
    }
}

impl<'a> Loaded<'a> {
    /// Nothing loaded yet, for `cases`.
    pub(super) fn new(cases: &'a [Case]) -> Self {
        Self {
            cases,
            problem: None,
            rhs: None,
            hash: SystemHash::default(),
            reordered: None,
            told: HashSet::new(),
        }
    }

    /// A solution of the case that ran last, in the order of the source.
    pub(super) fn of_source(&self, case: &Case, x: Vec<f64>) -> Vec<f64> {
        let system = self.reordered.as_ref().map(|known| &known.system);
        match system {
            Some(Ok(system)) if !case.ordering.is_natural() => restored(&x, &system.order),
            _ => x,
        }
    }

    /// The system of a case; the inner error says why its ordering cannot be computed, or that memory is
    /// exhausted.
    pub(super) fn get(
        &mut self,
        case: &Case,
        runner: &mut dyn Runner,
        observer: &mut dyn Observer,
    ) -> Result<Result<System<'_>, NoSystem>> {
        match self.load(case, runner, observer) {
            // the next matrix may be smaller
            Err(why) if why.kind() == Kind::Memory => {
                return Ok(Err(NoSystem { why, n: 0, nnz: 0, hash: SystemHash::default() }));
            }
            other => other?,
        }
        let hash = self.hash.clone();
        let (_, known) = self.problem.as_ref().expect("loaded");
        let (_, b) = self.rhs.as_ref().expect("made");
        let Known::Here(problem) = known else {
            return Ok(Ok(System { here: None, ordering_s: None, hash }));
        };
        if case.ordering.is_natural() {
            return Ok(Ok(System { here: Some((problem, b)), ordering_s: None, hash }));
        }
        let of = (case.ordering_for_fill(), case.block_size);
        if self.reordered.as_ref().is_none_or(|known| known.of != of) {
            // free the old one first
            self.reordered = None;
            self.reordered = Some(Reordered { of, system: Permuted::of(case, problem, b) });
        }
        let Reordered { system, .. } = self.reordered.as_mut().expect("made above");
        Ok(match system {
            Err(why) => {
                let (n, nnz) = (problem.matrix.rows(), problem.matrix.nnz());
                Err(NoSystem { why: why.clone(), n, nnz, hash })
            }
            Ok(other) => {
                if other.rhs.0 != case.rhs {
                    other.rhs = (case.rhs.clone(), reordered(b, &other.order));
                }
                let Permuted { problem, rhs, seconds, .. } = other;
                Ok(System { here: Some((problem, &rhs.1)), ordering_s: Some(*seconds), hash })
            }
        })
    }

    /// Loads the matrix and makes the right-hand side of a case, where they are not there.
    fn load(
        &mut self,
        case: &Case,
        runner: &mut dyn Runner,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let on_ranks = runner.ranks(case).is_some();
        let same = |(of, known): &(Case, Known)| {
            let kept = match known {
                Known::Here(_) => !on_ranks,
                Known::OnRanks(_) => on_ranks && of.block_size == case.block_size,
            };
            kept && one_system(of, case)
        };
        if !self.problem.as_ref().is_some_and(same) {
            // free the old system first: two large ones may not fit
            self.problem = None;
            self.rhs = None;
            self.reordered = None;
            observer.loading(&case.matrix);
            let known = match runner.ranks(case) {
                Some(ranks) => Known::OnRanks(ranks.load(case)?),
                None => Known::Here(runner.load(case)?),
            };
            let (n, remarks) = match &known {
                Known::Here(problem) => (problem.matrix.rows(), &problem.remarks),
                Known::OnRanks(outline) => (outline.n, &outline.remarks),
            };
            // with several rounds it is loaded again
            if self.told.insert(case.matrix.clone()) {
                for remark in remarks {
                    observer.remark(&format!("{}: {remark}", case.matrix));
                }
            }
            check_block_sizes(self.cases, &case.matrix, n)?;
            self.hash.matrix_hash = Some(match &known {
                Known::Here(problem) => hash::matrix_hash(&problem.matrix),
                Known::OnRanks(outline) => outline.matrix_hash.clone(),
            });
            self.problem = Some((case.clone(), known));
        }
        let (_, known) = self.problem.as_ref().expect("loaded above");
        if self.rhs.as_ref().is_none_or(|(spec, _)| *spec != case.rhs) {
            let (b, hash) = match (known, runner.ranks(case)) {
                (Known::Here(problem), _) => {
                    let b = runner.right_hand_side(problem, &case.rhs)?;
                    let hash = hash::vector_hash(&b);
                    (b, hash)
                }
                (Known::OnRanks(_), Some(on)) => (Vec::new(), on.ranks.right_hand_side(&case.rhs)?),
                (Known::OnRanks(_), None) => unreachable!("loaded on ranks"),
            };
            self.hash.rhs_hash = Some(hash);
            self.rhs = Some((case.rhs.clone(), b));
        }
        Ok(())
    }
}

/// Refuses blocks larger than a matrix of order `n` before any of its cases runs.
pub(super) fn check_block_sizes(cases: &[Case], matrix: &str, n: usize) -> Result<()> {
    match cases.iter().find(|c| c.matrix == matrix && c.block_size > n) {
        None => Ok(()),
        Some(case) => Err(Error::input(format!(
            "block size {} is above the {} of `{matrix}`",
            case.block_size,
            plural(n, "unknown")
        ))
        .hint(format!("use block sizes up to {n}"))),
    }
}
