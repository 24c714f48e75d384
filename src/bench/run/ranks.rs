//! The first rank announces what all do next; the others follow it.

use std::borrow::Cow;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::checks::chosen;
use super::distributed::Run;
use super::divided::{Divided, Numbering, Order, check, subdomains};
use super::held::Held;
use super::no_result::NoResult;
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
enum Task {
    /// Make or get the rows of the system of this name, in blocks of this size.
    Load(String, usize, Zeros),
    /// Make this right-hand side for it.
    RightHandSide(String),
    /// Free what they have.
    Clear,
    /// Run a case.
    Case(Box<CaseTask>),
}

/// A case, as all ranks are told.
#[derive(Serialize, Deserialize)]
struct CaseTask {
    case: Case,
    measure: Measure,
    /// Whether the first rank wants the solution.
    with_solution: bool,
    /// Of a system that the first rank has as a whole; the other ranks have rows of any other.
    whole: Option<Whole>,
}

/// What the first rank has found out of a system that it has as a whole.
#[derive(Clone, Serialize, Deserialize)]
struct Whole {
    /// First block row of each subdomain, and their end.
    starts: Vec<usize>,
    /// Of factors of the whole matrix.
    elimination: Option<Elimination>,
    /// The Schwarz method.
    used: Choice,
    size: SystemSize,
    scaling: Scaling,
}

impl Whole {
    /// First block row that each rank has of the source, and their end: the first one has all.
    fn held_starts(&self, ranks: usize) -> Vec<u64> {
        let rows = self.size.block_rows as u64;
        std::iter::once(0).chain(std::iter::repeat_n(rows, ranks)).collect()
    }

    /// The system with rows of the source that a rank has.
    fn held(&self, part: Part, ranks: usize) -> Held {
        Held {
            name: String::new(),
            part,
            starts: self.held_starts(ranks),
            order: self.size.n as u64,
            entries: self.size.nnz as u64,
            grid: None,
            own_rhs: None,
            remarks: Vec::new(),
        }
    }
}

/// [`REVISION`], read from the program's data: a test changes it there.
fn revision() -> &'static str {
    std::hint::black_box(REVISION)
}

fn announce(communicator: &dyn Communicator, task: Task) -> Task {
    let announced = Announcement { revision: revision().to_owned(), task };
    communicator.announce(&serde_json::to_vec(&announced).expect("numbers and words"));
    announced.task
}

/// As [`announce`], of a case, whose name is told with a signal.
fn announce_case(communicator: &dyn Communicator, task: CaseTask) -> Box<CaseTask> {
    if communicator.size() > 1 {
        let Case { matrix, solver, precond, .. } = &task.case;
        let ranks = communicator.size();
        interrupt::told_with(Some(format!("rank 0 of {ranks}, {matrix}, {solver}, {precond}")));
    }
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
    loop {
        let bytes = next();
        if bytes.is_empty() {
            return Ok(());
        }
        let announced: Announcement = serde_json::from_slice(&bytes)
            .map_err(|e| Error::run(format!("rank {}: {e}", communicator.rank())))?;
        let Announcement { revision: first, task } = announced;
        let (rank, own) = (communicator.rank(), revision());
        if first != own {
            let text = format!("rank {rank} runs {own}, rank 0 runs {first}");
            return Err(Error::run(text).hint("start the same program on all hosts"));
        }
        // the first rank tells what went wrong, and records how a case ended
        match task {
            Task::Load(spec, block_size, zeros) => {
                _ = ranks.load_rows(&**communicator, &spec, block_size, zeros);
            }
            Task::RightHandSide(spec) => _ = ranks.make_rhs(&**communicator, &spec),
            Task::Clear => ranks = OfRanks::default(),
            Task::Case(task) => ranks.follow(communicator, &task),
        }
    }
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
        let whole = whole.clone();
        let none = Csr::new(0, 0, vec![0], Vec::new(), Vec::new()).expect("a matrix without rows");
        let none = Part::of_whole(&none.in_blocks(case.block_size).into(), 0..0);
        let held = whole.held(none, communicator.size());
        let Whole { starts, elimination, used, size, scaling } = whole;
        let elimination = Order::of(elimination, used);
        let numbering = Numbering::Given;
        let (held, b) = (Cow::Owned(held), Cow::Owned(Vec::new()));
        let divided = Divided { held, b, scaling, numbering, starts, elimination };
        Run { record: Record { size, ..run.record }, ..run }.of(&divided);
    }
}

impl Job<'_> {
    /// Runs a case of a system that the first rank has as a whole: its part.
    pub(super) fn lead(mut self) -> Option<Solved> {
        let (communicator, ordered) = match self.divided() {
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
        let rows = record.size.block_rows as u64;
        let held = whole.held(Part::of_whole(a, 0..rows), communicator.size());
        let Whole { starts, elimination, used, scaling, .. } = whole;
        let (held, b) = (Cow::Owned(held), Cow::Owned(b));
        let elimination = Order::of(elimination, used);
        let divided = Divided { held, b, scaling, numbering, starts, elimination };
        let measure = &task.measure;
        let with_solution = true;
        let run = Run { communicator, case, measure, with_solution, given, progress, record };
        let solved = run.of(&divided);
        interrupt::told_with(None);
        solved
    }

    /// Refuses what does not run over ranks, and divides the system.
    fn divided(&mut self) -> Result<(Rc<dyn Communicator>, Ordered), NoResult> {
        let case = self.case;
        check(case)?;
        self.check_symmetry(&Cpu::sequential())?;
        let communicator = launch::communicator()?;
        let ranks = communicator.size();
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
        Ok((communicator, ordered))
    }
}
