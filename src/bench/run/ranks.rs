//! The first rank announces what all do next; the others follow it.

use std::borrow::Cow;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::checks::chosen;
use super::distributed::Run;
use super::divided::{Divided, Numbering, Order, check, subdomains};
use super::held::Held;
use super::no_result::NoResult;
use super::on_ranks::{self, StepTask};
use super::range::Scaling;
use super::{Job, Progress, Solved, closed};
use crate::base::error::{Error, Result as Done};
use crate::base::interrupt;
use crate::case::{Case, Zeros};
use crate::compute::cpu::Cpu;
use crate::compute::distributed::Layout;
use crate::compute::distributed::communicator::Communicator;
use crate::compute::distributed::launch;
use crate::compute::distributed::part::Part;
use crate::config::sampling::Measure;
use crate::matrix::{Csr, inverse};
use crate::methods::schwarz::Choice;
use crate::methods::schwarz::order::Ordered;
use crate::record::Record;
use crate::record::environment::REVISION;
use crate::record::schema::{Division, SystemSize};
use crate::symbolic::interfaces::Elimination;

/// What the first rank announces.
#[derive(Serialize, Deserialize)]
struct Announcement {
    /// The program of the first rank.
    revision: String,
    task: Task,
}

/// What all ranks do next.
#[derive(Serialize, Deserialize)]
pub(super) enum Task {
    /// Make or get the rows of the system of this name, in blocks of this size.
    Load(String, usize, Zeros),
    /// Make this right-hand side for it.
    RightHandSide(String),
    /// Free what they have.
    Clear,
    /// Run a case.
    Case(Box<CaseTask>),
    /// Run steps of a sequence on this backend with so many threads each, until it ends.
    Sequence(String, usize),
    Step(Box<StepTask>),
    SequenceEnds,
}

/// A case, as all ranks are told.
#[derive(Serialize, Deserialize)]
pub(super) struct CaseTask {
    case: Case,
    measure: Measure,
    /// Whether the first rank wants the solution.
    with_solution: bool,
    /// Of a system that the first rank has as a whole; the other ranks have rows of any other.
    whole: Option<Whole>,
}

/// What the first rank has found out of a system that it has as a whole.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Whole {
    /// First block row of each subdomain, and their end.
    pub(super) starts: Vec<usize>,
    /// Of factors of the whole matrix.
    pub(super) elimination: Option<Elimination>,
    /// The Schwarz method.
    pub(super) used: Choice,
    pub(super) size: SystemSize,
    pub(super) scaling: Scaling,
}

impl Whole {
    /// The rows of a rank that has none, in blocks of this size.
    pub(super) fn no_rows(block_size: usize) -> Part {
        let none = Csr::new(0, 0, vec![0], Vec::new(), Vec::new()).expect("a matrix without rows");
        Part::of_whole(&none.in_blocks(block_size).into(), 0..0)
    }

    /// The system with rows of the source that one of so many ranks has, of which the first has all.
    pub(super) fn divided(
        &self,
        part: Part,
        ranks: usize,
        (b, guess): (Vec<f64>, Option<Vec<f64>>),
        numbering: Numbering,
    ) -> Divided<'static> {
        let rows = self.size.block_rows as u64;
        let held = Held {
            name: String::new(),
            part,
            starts: std::iter::once(0).chain(std::iter::repeat_n(rows, ranks)).collect(),
            order: self.size.n as u64,
            entries: self.size.nnz as u64,
            grid: None,
            own_rhs: None,
            remarks: Vec::new(),
        };
        Divided {
            held: Cow::Owned(held),
            b: Cow::Owned(b),
            guess,
            scaling: self.scaling,
            numbering,
            starts: self.starts.clone(),
            elimination: Order::of(self.elimination.clone(), self.used),
        }
    }
}

/// [`REVISION`], read from the program's data: a test changes it there.
fn revision() -> &'static str {
    std::hint::black_box(REVISION)
}

pub(super) fn announce(communicator: &dyn Communicator, task: Task) -> Task {
    let announced = Announcement { revision: revision().to_owned(), task };
    communicator.announce(&serde_json::to_vec(&announced).expect("numbers and words"));
    announced.task
}

/// What a signal ends is told with the name of this case.
pub(super) fn tell(communicator: &dyn Communicator, case: &Case) {
    if communicator.size() > 1 {
        let (Case { matrix, solver, precond, .. }, ranks) = (case, communicator.size());
        interrupt::told_with(Some(format!("rank 0 of {ranks}, {matrix}, {solver}, {precond}")));
    }
}

/// As [`announce`], of a case.
fn announce_case(communicator: &dyn Communicator, task: CaseTask) -> Box<CaseTask> {
    tell(communicator, &task.case);
    match announce(communicator, Task::Case(Box::new(task))) {
        Task::Case(task) => task,
        _ => unreachable!("a case"),
    }
}

/// What the first rank announces next, if it does.
///
/// # Errors
/// When it runs another program.
fn announced(communicator: &dyn Communicator, bytes: &[u8]) -> Done<Option<Task>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (rank, own) = (communicator.rank(), revision());
    let announced: Announcement =
        serde_json::from_slice(bytes).map_err(|e| Error::run(format!("rank {rank}: {e}")))?;
    let Announcement { revision: first, task } = announced;
    if first != own {
        let text = format!("rank {rank} runs {own}, rank 0 runs {first}");
        return Err(Error::run(text).hint("start the same program on all hosts"));
    }
    Ok(Some(task))
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
        let divided = whole.divided(none, communicator.size(), (Vec::new(), None), given);
        Run { record: Record { size: whole.size.clone(), ..run.record }, ..run }.of(&divided);
    }
}

impl Job<'_> {
    /// Runs a case of a system that the first rank has as a whole: its part.
    pub(super) fn lead(mut self) -> Option<Solved> {
        let found = self.refused().and_then(|()| {
            let communicator = launch::communicator()?;
            let ordered = self.ordered(communicator.size())?;
            Ok((communicator, ordered))
        });
        let (communicator, ordered) = match found {
            Ok(found) => found,
            Err(why) => return self.ended(Err(why)),
        };
        let Job { case, system, given, a, measure, progress, record, .. } = self;
        let mut b = system.b.to_vec();
        b.resize(a.rows(), 0.0);
        let numbering = ordered.divided.order.as_ref().map_or(Numbering::Given, |order| {
            Numbering::Listed(inverse(order).into_iter().map(u64::from).collect())
        });
        let whole = Whole {
            starts: ordered.divided.starts,
            elimination: ordered.elimination,
            used: ordered.used,
            size: record.size.clone(),
            scaling: system.scaling,
        };
        let (of_case, measure) = (case.clone(), measure.clone());
        let task =
            CaseTask { case: of_case, measure, with_solution: true, whole: Some(whole.clone()) };
        let task = announce_case(&*communicator, task);
        let all = Part::of_whole(a, 0..record.size.block_rows as u64);
        let divided = whole.divided(all, communicator.size(), (b, None), numbering);
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

    /// Divides the system among so many ranks.
    pub(super) fn ordered(&mut self, ranks: usize) -> Result<Ordered, NoResult> {
        let case = self.case;
        let count = subdomains(case, ranks);
        let choice = chosen(case)?;
        let grid = self.problem.grid;
        let ordered = Ordered::new(self.a, case.partition, grid, count, choice, case.fill)?;
        Layout::new(&ordered.divided.starts, case.block_size, ranks)?;
        self.record.division = Division {
            schwarz_used: Some(ordered.used.to_string()),
            stages: ordered.elimination.as_ref().map(Elimination::stages),
            stage_efficiency: ordered.elimination.as_ref().map(|order| order.efficiency),
            ..Division::default()
        };
        Ok(ordered)
    }
}
