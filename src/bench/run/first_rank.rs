//! Divisions that are found in the pattern of all block rows: the first rank has it while it looks for them, but no
//! values. All calls are collective.

use serde::{Deserialize, Serialize};

use super::bisections;
use super::held::Held;
use super::no_result::NoResult;
use crate::base::choices::Partition;
use crate::base::error::{Error, Result};
use crate::base::memory;
use crate::base::threads::Threads;
use crate::compute::cpu::Cpu;
use crate::compute::distributed::communicator::Communicator;
use crate::compute::distributed::moves::{agreed, dealt, in_turn, values};
use crate::compute::preconditioner::SetupFailure;
use crate::matrix::pattern::{Pattern, block_pattern};
use crate::methods::precond::bilu;
use crate::methods::schwarz::Choice;
use crate::symbolic::interfaces::Elimination;
use crate::symbolic::partition::bisection::Bisection;
use crate::symbolic::partition::{Divided, divide_graph_by};

/// What the first rank has found, on every rank.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Found {
    /// First block row of each subdomain, and their end.
    pub(super) starts: Vec<usize>,
    /// Stages in which exact factors take the given order, where they do.
    pub(super) elimination: Option<Elimination>,
    /// New number of each block row that has a place here, where they have any.
    #[serde(skip)]
    pub(super) numbers: Option<Vec<u64>>,
}

/// What is to be found.
pub(super) struct Wanted {
    /// The division, if it is not by the graph.
    pub(super) divided: Option<Divided>,
    pub(super) partition: Partition,
    /// Subdomains.
    pub(super) count: usize,
    pub(super) choice: Choice,
    pub(super) fill: usize,
}

impl Wanted {
    /// Whether it is found in the pattern of all rows.
    pub(super) fn of_all_rows(partition: Partition, choice: Choice, fill: usize) -> bool {
        partition == Partition::Graph || choice.may_be_natural(fill)
    }

    /// The first rank finds it.
    ///
    /// # Errors
    /// Those of the first rank; the others hear that there is one.
    pub(super) fn find(
        self,
        communicator: &dyn Communicator,
        held: &Held,
    ) -> Result<Found, NoResult> {
        let pattern = gathered(communicator, held)?;
        let (by_graph, first) = (self.partition == Partition::Graph, communicator.rank() == 0);
        let made = if first {
            self.found(communicator, pattern, held).map(Some)
        } else if by_graph {
            bisections::assist(communicator).map(|()| None).map_err(SetupFailure::from)
        } else {
            Ok(None)
        };
        if communicator.any(made.is_err()) {
            return Err(made.err().unwrap_or(SetupFailure::Elsewhere).into());
        }
        let made = made.unwrap_or_default();
        let mut bytes = made
            .as_ref()
            .map_or_else(Vec::new, |(found, _)| serde_json::to_vec(found).expect("numbers"));
        communicator.broadcast(0, &mut bytes);
        let mut found: Found = serde_json::from_slice(&bytes)
            .map_err(|e| NoResult::from(Error::run(format!("rank 0 has told: {e}"))))?;
        let order = made.and_then(|(_, order)| order);
        if communicator.any(order.is_some()) {
            found.numbers = Some(numbers(communicator, held, order));
        }
        Ok(found)
    }

    /// What the first rank finds, and the old block row at each place, where the order changes.
    fn found(
        self,
        communicator: &dyn Communicator,
        pattern: Pattern,
        held: &Held,
    ) -> Result<(Found, Option<Vec<u32>>), SetupFailure> {
        let Self { divided, count, choice, fill, .. } = self;
        let mut divided = if let Some(divided) = divided {
            divided
        } else {
            let run = &mut |all: &[Bisection]| bisections::on_ranks(communicator, all);
            let divided = divide_graph_by(&pattern, count, run);
            bisections::end(communicator);
            divided?
        };
        let mut elimination = None;
        if choice.may_be_natural(fill) {
            let [limit, each, free] = bilu::room(&Cpu::sequential(), held.part.matrix());
            let before = divided.order.clone();
            let found = divided
                .pipeline_of(Threads::Pool, pattern, fill, limit)
                .map_err(|at| SetupFailure::TooLarge { at, needed: at.entries * each, free })?;
            if choice.is_natural(&found) {
                elimination = Some(found);
            } else {
                divided.order = before;
            }
        }
        // the others need neither, where they can compute it
        let order =
            divided.order.filter(|_| elimination.is_some() || self.partition == Partition::Graph);
        Ok((Found { starts: divided.starts, elimination, numbers: None }, order))
    }
}

/// The pattern of all block rows, on the first rank; none on the others.
///
/// # Errors
/// When its numbers have more than 32 bits.
fn gathered(communicator: &dyn Communicator, held: &Held) -> Result<Pattern<'static>> {
    let part = &held.part;
    let (own, blocks) = (block_pattern(part.matrix()), held.blocks(communicator));
    let rows = held.starts[communicator.size()];
    if rows.max(blocks as u64) >= u64::from(u32::MAX) {
        let text = format!("the pattern of {rows} block rows with {blocks} blocks on one rank");
        let hint = "give --partition rows or boxes, and --schwarz jacobi, ras:D or exact:interface";
        return Err(Error::memory(text).hint(hint));
    }
    let mine = part.places();
    let range = |ptr: &[u32]| ptr[mine.start] as usize..ptr[mine.end] as usize;
    let entries = range(&own.row_ptr);
    let bytes = |of: &mut dyn ExactSizeIterator<Item = u32>| {
        let mut bytes = Vec::with_capacity(4 * of.len());
        of.for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        bytes
    };
    let take = |all: &mut Vec<u32>, bytes: &[u8]| {
        all.extend(bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)));
    };
    let first = communicator.rank() == 0;
    let room = |count: u64| memory::with_capacity(if first { count as usize } else { 0 });
    let (mut row_ptr, mut col_ind): (Vec<u32>, Vec<u32>) = (room(rows + 1), room(blocks as u64));
    row_ptr.push(0);
    let lengths = |of: std::ops::Range<usize>| {
        bytes(&mut of.map(|row| own.row(mine.start + row).len() as u32))
    };
    in_turn(communicator, (mine.len(), 4), lengths, |bytes| take(&mut row_ptr, bytes));
    for row in 1..row_ptr.len() {
        row_ptr[row] += row_ptr[row - 1];
    }
    let columns = |of: std::ops::Range<usize>| {
        let number = |at: usize| part.number(own.col_ind[entries.start + at] as usize) as u32;
        bytes(&mut of.map(number))
    };
    in_turn(communicator, (entries.len(), 4), columns, |bytes| take(&mut col_ind, bytes));
    agreed(communicator, Ok(()))?;
    Ok(Pattern::new(row_ptr, col_ind).in_blocks(own.block_size()))
}

/// New numbers of the block rows that have a place here, of which the first rank has the order.
fn numbers(communicator: &dyn Communicator, held: &Held, order: Option<Vec<u32>>) -> Vec<u64> {
    let order = order.unwrap_or_default();
    let mut new = vec![0.0; order.len()];
    (0_u32..).zip(order).for_each(|(number, old)| new[old as usize] = f64::from(number));
    let own = dealt(communicator, &new, &held.starts);
    drop(new);
    of_places(communicator, &held.part, &held.starts, &own)
}

/// Whole numbers of all block rows that have a place on a rank, of which `own` are those of its own. Ranks begin at the
/// block rows `starts`.
pub(super) fn of_places(
    communicator: &dyn Communicator,
    part: &crate::compute::distributed::part::Part,
    starts: &[u64],
    own: &[f64],
) -> Vec<u64> {
    let others = values(communicator, starts, own, part.others().iter().copied());
    let (before, behind) = others.split_at(part.places().start);
    before.iter().chain(own).chain(behind).map(|&number| number as u64).collect()
}
