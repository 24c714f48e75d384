//! What the first rank tells the others to do.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::divided::{Divided, Numbering, Order};
use super::held::Held;
use super::range::Scaling;
use crate::base::error::{Error, Result};
use crate::base::interrupt;
use crate::base::parse::choice_name;
use crate::case::{Case, Zeros};
use crate::compute::distributed::communicator::Communicator;
use crate::compute::distributed::part::Part;
use crate::config::sampling::Measure;
use crate::matrix::Csr;
use crate::methods::schwarz::Choice;
use crate::record::environment::REVISION;
use crate::record::schema::SystemSize;
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
    pub(super) case: Case,
    pub(super) measure: Measure,
    /// Whether the first rank wants the solution.
    pub(super) with_solution: bool,
    /// Of a system that the first rank has as a whole; the other ranks have rows of any other.
    pub(super) whole: Option<Whole>,
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
        b: Vec<f64>,
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
        let Case { matrix, solver, precond, block_size, fill, partition, schwarz, .. } = case;
        let (ranks, partition) = (communicator.size(), choice_name(partition));
        interrupt::told_with(Some(format!(
            "rank 0 of {ranks}, {matrix}, {solver}, {precond}, block size {block_size}, k = {fill}, {partition}, {schwarz}"
        )));
    }
}

/// What the first rank announces next, if it does.
///
/// # Errors
/// When it runs another program.
pub(super) fn announced(communicator: &dyn Communicator, bytes: &[u8]) -> Result<Option<Task>> {
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

/// A step, as all ranks are told.
#[derive(Serialize, Deserialize)]
pub(super) struct StepTask {
    pub(super) case: Case,
    pub(super) measure: Measure,
    /// Its number, from 1.
    pub(super) number: usize,
    pub(super) whole: Whole,
    pub(super) setup: SetupOf,
}

/// What a step makes.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) enum SetupOf {
    /// Everything.
    All,
    /// What new values on the pattern of the last step take, the preconditioner among it or not.
    Values { due: bool },
}
