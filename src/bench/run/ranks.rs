//! The first rank announces what all do next; the others follow it.

use std::rc::Rc;

use super::checks::{chosen, name_of_used};
use super::distributed::Run;
use super::divided::{Numbering, check, subdomains};
use super::held::Held;
use super::no_result::NoResult;
use super::on_ranks;
use super::task::{CaseTask, Task, Whole, announce, announced, tell};
use super::{Job, Progress, Solved, closed};
use crate::base::error::Result as Done;
use crate::base::interrupt;
use crate::base::measure::{now, seconds_since};
use crate::case::{Case, Zeros};
use crate::compute::cpu::Cpu;
use crate::compute::distributed::Layout;
use crate::compute::distributed::communicator::Communicator;
use crate::compute::distributed::launch;
use crate::compute::distributed::part::Part;
use crate::config::sampling::Measure;
use crate::matrix::inverse;
use crate::methods::schwarz::order::Ordered;
use crate::record::Record;
use crate::record::schema::Division;
use crate::symbolic::interfaces::Elimination;
use crate::symbolic::partition::Divided;

/// As [`announce`], of a case.
fn announce_case(communicator: &dyn Communicator, task: CaseTask) -> Box<CaseTask> {
    tell(communicator, &task.case);
    match announce(communicator, Task::Case(Box::new(task))) {
        Task::Case(task) => task,
        _ => unreachable!("a case"),
    }
}

/// Computes with the first rank until it announces nothing more: the part of the other ranks. `next` waits for an
/// announcement.
///
/// # Errors
/// When this is another program than that of the first rank.
#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "there is one rank"))]
pub(crate) fn serve(communicator: &Rc<dyn Communicator>, next: impl Fn() -> Vec<u8>) -> Done<()> {
    let mut ranks = OfRanks::default();
    let next = || announced(&**communicator, &next());
    // the first rank tells what went wrong, and records how a case ended
    while let Some(task) = next()? {
        match task {
            Task::Load(spec, block_size, zeros) => {
                _ = ranks.load_rows(&**communicator, &spec, block_size, zeros);
            }
            Task::RightHandSide(spec) => _ = ranks.make_rhs(&**communicator, &spec),
            Task::Clear => ranks = OfRanks::default(),
            Task::Case(task) => ranks.follow(communicator, &task),
            Task::Sequence(backend, threads) => {
                on_ranks::follow(communicator, (&backend, threads), &next)?;
            }
            Task::Step(_) | Task::SequenceEnds => unreachable!("of a sequence"),
        }
    }
    Ok(())
}

/// What a rank keeps between cases: its rows of a system, and of a right-hand side.
#[derive(Debug, Default)]
pub(crate) struct OfRanks {
    held: Option<Held>,
    b: Vec<f64>,
}

/// What the first rank knows of a system of which each rank has rows.
#[derive(Clone, Debug)]
pub(crate) struct Outline {
    pub n: usize,
    pub nnz: usize,
    pub matrix_hash: String,
    pub remarks: Vec<String>,
}

impl OfRanks {
    /// Has the ranks make or get the rows of a case's system.
    ///
    /// # Errors
    /// As [`crate::problem::load`].
    pub(crate) fn load(&mut self, case: &Case) -> Done<Outline> {
        let communicator = launch::communicator()?;
        let Case { matrix, block_size, zeros, .. } = case;
        announce(&*communicator, Task::Load(matrix.clone(), *block_size, *zeros));
        let matrix_hash = self.load_rows(&*communicator, matrix, *block_size, *zeros)?;
        let held = self.held.as_ref().expect("loaded");
        Ok(Outline {
            n: held.order as usize,
            nnz: held.entries as usize,
            matrix_hash,
            remarks: held.remarks.clone(),
        })
    }

    /// Has them make a right-hand side for it; its hash.
    ///
    /// # Errors
    /// As [`crate::problem::right_hand_side`].
    pub(crate) fn right_hand_side(&mut self, spec: &str) -> Done<String> {
        let communicator = launch::communicator()?;
        announce(&*communicator, Task::RightHandSide(spec.to_owned()));
        self.make_rhs(&*communicator, spec)
    }

    /// Frees what the ranks have.
    ///
    /// # Errors
    /// When the program was built without them.
    pub(crate) fn clear(&mut self) -> Done<()> {
        if self.held.take().is_some() {
            self.b = Vec::new();
            announce(&*launch::communicator()?, Task::Clear);
        }
        Ok(())
    }

    fn load_rows(
        &mut self,
        communicator: &dyn Communicator,
        spec: &str,
        block_size: usize,
        zeros: Zeros,
    ) -> Done<String> {
        // free the old ones first
        *self = Self::default();
        let held = Held::load(communicator, spec, block_size, zeros)?;
        let hash = held.matrix_hash(communicator);
        self.held = Some(held);
        Ok(hash)
    }

    fn make_rhs(&mut self, communicator: &dyn Communicator, spec: &str) -> Done<String> {
        self.b = Vec::new();
        let held = self.held.as_ref().expect("a system that was loaded");
        self.b = held.right_hand_side(communicator, spec)?;
        Ok(held.vector_hash(communicator, &self.b))
    }

    /// Runs a case of the system and the right-hand side that the ranks have, as [`solve_case`](super::solve_case)
    /// does; the solution is there if it is wanted.
    pub(crate) fn run(
        &self,
        case: &Case,
        measure: &Measure,
        with_solution: bool,
        progress: Progress,
    ) -> Option<Solved> {
        let held = self.held.as_ref().expect("a system that was loaded");
        let record = Record {
            case: case.clone(),
            reason: (!held.remarks.is_empty()).then(|| held.remarks.join("; ")),
            ..Record::default()
        };
        let communicator = match launch::communicator() {
            Ok(communicator) => communicator,
            Err(e) => return closed(record, None, Err(e.into())),
        };
        let (case, measure) = (case.clone(), measure.clone());
        let task = CaseTask { case, measure, with_solution, whole: None };
        let task = announce_case(&*communicator, task);
        let CaseTask { case, measure, .. } = &*task;
        let run = Run { communicator, case, measure, with_solution, given: None, progress, record };
        let solved = run.of_rows(held, &self.b);
        interrupt::told_with(None);
        solved
    }

    /// The part of another rank in a case.
    fn follow(&self, communicator: &Rc<dyn Communicator>, task: &CaseTask) {
        let CaseTask { case, measure, with_solution, whole } = task;
        let run = Run {
            communicator: Rc::clone(communicator),
            case,
            measure,
            with_solution: *with_solution,
            given: None,
            progress: &mut |_| true,
            record: Record { case: case.clone(), ..Record::default() },
        };
        let Some(whole) = whole else {
            let held = self.held.as_ref().expect("a system that was loaded");
            run.of_rows(held, &self.b);
            return;
        };
        let none = Whole::no_rows(case.block_size);
        let given = Numbering::Given;
        let divided = whole.divided(none, communicator.size(), Vec::new(), given);
        Run { record: Record { size: whole.size.clone(), ..run.record }, ..run }.of(&divided);
    }
}

impl Job<'_> {
    /// Runs a case of a system that the first rank has as a whole: its part.
    pub(super) fn lead(mut self) -> Option<Solved> {
        let found = self.refused().and_then(|()| {
            let communicator = launch::communicator()?;
            let (whole, numbers) = self.ordered(communicator.size())?;
            Ok((communicator, whole, numbers))
        });
        let (communicator, whole, numbers) = match found {
            Ok(found) => found,
            Err(why) => return self.ended(Err(why)),
        };
        let Job { case, system, given, a, measure, progress, record, .. } = self;
        let mut b = system.b.to_vec();
        b.resize(a.rows(), 0.0);
        let numbering = numbers.map_or(Numbering::Given, Numbering::Listed);
        let (of_case, measure) = (case.clone(), measure.clone());
        let task =
            CaseTask { case: of_case, measure, with_solution: true, whole: Some(whole.clone()) };
        let task = announce_case(&*communicator, task);
        let all = Part::of_whole(a, 0..record.size.block_rows as u64);
        let divided = whole.divided(all, communicator.size(), b, numbering);
        let measure = &task.measure;
        let with_solution = true;
        let run = Run { communicator, case, measure, with_solution, given, progress, record };
        let solved = run.of(&divided);
        interrupt::told_with(None);
        solved
    }

    /// Refuses what does not run over ranks.
    pub(super) fn refused(&mut self) -> Result<(), NoResult> {
        check(self.case)?;
        self.check_symmetry(&Cpu::sequential())
    }

    /// Divides the system among so many ranks; also the new number of each block row, where they change.
    pub(super) fn ordered(&mut self, ranks: usize) -> Result<(Whole, Option<Vec<u64>>), NoResult> {
        let case = self.case;
        let count = subdomains(case, ranks);
        let choice = chosen(case)?;
        let (grid, begin) = (self.problem.grid, now());
        let Ordered { divided: Divided { order, starts }, elimination, used } =
            Ordered::new(self.a, case.partition, grid, count, choice, case.fill)?;
        if order.is_some() {
            self.record.times.add_ordering(Some(seconds_since(begin)));
        }
        Layout::new(&starts, case.block_size, ranks)?;
        self.record.division = Division {
            schwarz_used: Some(name_of_used(case, used)),
            stages: elimination.as_ref().map(Elimination::stages),
            stage_efficiency: elimination.as_ref().map(|order| order.efficiency),
            ..Division::default()
        };
        let (size, scaling) = (self.record.size.clone(), self.system.scaling);
        let numbers = order.map(|order| inverse(&order).into_iter().map(u64::from).collect());
        Ok((Whole { starts, elimination, used, size, scaling }, numbers))
    }
}
