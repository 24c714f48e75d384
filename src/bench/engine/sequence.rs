//! The steps of a sequence, each loaded when it is its turn.

use std::collections::HashSet;
use std::sync::Arc;

use super::loaded::{NoSystem, check_block_sizes};
use super::{Observer, Runner};
use crate::base::error::{Error, Kind, Result};
use crate::base::measure::{now, seconds_since};
use crate::bench::run::{self, Loaded, Solved, Stage, StepSystem, Steps};
use crate::case::{Case, Guess};
use crate::config::sampling::Measure;
use crate::matrix::{Csr, hash};
use crate::problem::Problem;
use crate::record::schema::SystemHash;
use crate::record::{Record, environment};
use crate::symbolic::ordering::{reordered, restored};

/// Takes a record with the solution, in the order of the source.
type Kept<'a> = dyn FnMut(Record, Option<Vec<f64>>, &mut dyn Observer) -> Result<()> + 'a;

/// Runs the steps `cases` of a sequence and hands their records over; `false` when the user stopped it.
pub(super) fn run(
    cases: &[&Case],
    measure: &Measure,
    runner: &mut dyn Runner,
    observer: &mut dyn Observer,
    going: &dyn Fn() -> bool,
    kept: &mut Kept<'_>,
) -> Result<bool> {
    let mut sequence = Sequence {
        cases,
        runner,
        observer,
        going,
        kept,
        told: HashSet::new(),
        order: None,
        latest: None,
        start: environment::now(),
        ordering_s: None,
        hash: SystemHash::default(),
        x: None,
    };
    run::solve_sequence(cases, measure, &mut sequence)
}

struct Sequence<'a, 'b> {
    cases: &'a [&'a Case],
    runner: &'a mut dyn Runner,
    observer: &'a mut dyn Observer,
    going: &'a dyn Fn() -> bool,
    kept: &'a mut Kept<'b>,
    /// Remarks of matrices, each once.
    told: HashSet<String>,
    /// The order of the unknowns, and a matrix of its pattern.
    order: Option<(Arc<Csr>, Vec<u32>)>,
    latest: Option<Stage>,
    /// Of the step that runs.
    start: String,
    ordering_s: Option<f64>,
    hash: SystemHash,
    /// The last solution, in the order of the source.
    x: Option<Vec<f64>>,
}

impl Steps for Sequence<'_, '_> {
    fn load(&mut self, step: usize) -> Result<Loaded> {
        let case = self.cases[step];
        self.observer.loading(&case.matrix);
        self.start = environment::now();
        (self.hash, self.ordering_s) = (SystemHash::default(), None);
        let problem = match self.runner.load(case) {
            Err(why) if why.kind() == Kind::Memory => return Ok(Err(self.none(case, why, None))),
            problem => problem?,
        };
        for remark in &problem.remarks {
            if self.told.insert(remark.clone()) {
                self.observer.remark(&format!("{}: {remark}", case.matrix));
            }
        }
        check_block_sizes(std::slice::from_ref(case), &case.matrix, problem.matrix.rows())?;
        let b = self.runner.right_hand_side(&problem, &case.rhs)?;
        self.hash.matrix_hash = Some(hash::matrix_hash(&problem.matrix));
        self.hash.rhs_hash = Some(hash::vector_hash(&b));
        self.observer.case(case);
        self.latest = None;
        // one of another size is refused when it runs
        let last = self.x.as_ref().filter(|_| case.guess == Guess::Last);
        let guess = last.filter(|x| x.len() == b.len()).cloned();
        if case.ordering.is_natural() {
            return Ok(Ok(StepSystem { problem, b, guess }));
        }
        match self.in_order(case, &problem, &b, guess) {
            Ok(system) => Ok(Ok(system)),
            Err(why) => Ok(Err(self.none(case, why, Some(&problem)))),
        }
    }

    fn stage(&mut self, stage: Stage) -> bool {
        // a solve reports every iteration
        if self.latest.replace(stage) != Some(stage) {
            self.observer.stage(stage);
        }
        (self.going)()
    }

    fn done(&mut self, step: usize, solved: Solved) -> Result<()> {
        let Solved { mut record, x } = solved;
        let case = self.cases[step];
        record.step = Some(step + 1);
        record.times.add_ordering(self.ordering_s);
        record.times.total_s = record.times.to_solution(1);
        record.hash = self.hash.clone();
        let start = std::mem::take(&mut self.start);
        environment::complete(&mut record.environment, &case.backend, start);
        let x = x.map(|x| match &self.order {
            Some((_, order)) => restored(&x, order),
            None => x,
        });
        if x.is_some() {
            self.x.clone_from(&x);
        }
        (self.kept)(record, x, self.observer)
    }
}

impl Sequence<'_, '_> {
    /// The system in the order of the case, which is computed where the pattern is another one.
    fn in_order(
        &mut self,
        case: &Case,
        problem: &Problem,
        b: &[f64],
        guess: Option<Vec<f64>>,
    ) -> Result<StepSystem> {
        let start = now();
        let matrix = &problem.matrix;
        let alike = |(known, _): &(Arc<Csr>, _)| {
            (known.row_ptr(), known.col_ind()) == (matrix.row_ptr(), matrix.col_ind())
        };
        if !self.order.as_ref().is_some_and(alike) {
            self.order = None;
            let order = problem.order(case.ordering_for_fill(), case.block_size)?;
            self.order = Some((Arc::clone(matrix), order));
        }
        let (_, order) = self.order.as_ref().expect("made above");
        let system = StepSystem {
            problem: problem.reordered(order),
            b: reordered(b, order),
            guess: guess.map(|x| reordered(&x, order)),
        };
        self.ordering_s = Some(seconds_since(start));
        Ok(system)
    }

    /// The record of a step that has no system.
    fn none(&self, case: &Case, why: Error, problem: Option<&Problem>) -> Box<Record> {
        let [n, nnz] = problem.map_or([0; 2], |p| [p.matrix.rows(), p.matrix.nnz()]);
        Box::new(NoSystem { why, n, nnz, hash: self.hash.clone() }.record(case))
    }
}
