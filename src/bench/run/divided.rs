//! A system of which ranks have rows, divided among subdomains, and its rows with their owners.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::checks::{
    accepted, chosen, name_of_used, not_exact, of_symmetric, reach_of_products, unsuited,
};
use super::first_rank::{Found, Wanted, of_places};
use super::held::Held;
use super::loading::first_rows;
use super::no_result::NoResult;
use super::range::Scaling;
use crate::base::choices::Partition;
use crate::base::measure::spans::span;
use crate::base::measure::{now, seconds_since};
use crate::base::memory;
use crate::base::threads::Threads;
use crate::case::{Case, Execution, RunKind};
use crate::compute::distributed::Layout;
use crate::compute::distributed::communicator::Communicator;
use crate::compute::distributed::moves::{agreed, moved, renumbered, with_layers};
use crate::compute::distributed::part::Part;
use crate::compute::on_gpu;
use crate::matrix::pattern::block_pattern;
use crate::methods::schwarz::interfaces::interfaces;
use crate::methods::{schwarz, solver};
use crate::record::Record;
use crate::record::schema::Division;
use crate::symbolic::interfaces::{Elimination, FillLevels, Sides};
use crate::symbolic::ordering::reordered;
use crate::symbolic::partition::{self, Boxes, check_count, no_grid, range_starts, sides};
use crate::symbolic::scalar_order;
use crate::symbolic::sweep::Sweep;

/// New numbers of unknowns, subdomain by subdomain.
pub(super) enum Numbering {
    Given,
    /// That of boxes, which face each other or do not.
    Boxes(Boxes, bool),
    /// The block rows of a range in the opposite order.
    Backwards(Range<u64>),
    /// Of the block row at each place its new number.
    Listed(Vec<u64>),
}

impl Numbering {
    /// New number of the unknown that has a place in the rows of the source.
    pub(super) fn of(&self, part: &Part, place: usize) -> u64 {
        let b = part.block_size();
        self.block(part, place / b) * b as u64 + (place % b) as u64
    }

    /// New number of the block row that has a place in the rows of the source.
    fn block(&self, part: &Part, place: usize) -> u64 {
        match self {
            Self::Given => part.number(place),
            Self::Boxes(boxes, face) => boxes.place(part.number(place), *face),
            Self::Backwards(of) => match part.number(place) {
                block if of.contains(&block) => of.start + of.end - 1 - block,
                block => block,
            },
            Self::Listed(numbers) => numbers[place],
        }
    }
}

/// A system as it is solved, by rows of the source, and its division.
pub(super) struct Divided<'a> {
    pub(super) held: Cow<'a, Held>,
    pub(super) b: Cow<'a, [f64]>,
    pub(super) scaling: Scaling,
    pub(super) numbering: Numbering,
    /// First block row of each subdomain, and their end.
    pub(super) starts: Vec<usize>,
    /// Of factors of the whole matrix.
    pub(super) elimination: Order,
}

/// How exact factors eliminate.
pub(super) enum Order {
    /// There are none.
    None,
    /// Stage by stage.
    Stages(Arc<Elimination>),
    /// In the order of the source, in stages.
    Given(Arc<Elimination>),
    /// Interfaces last, which these sides make; subdomains of a colour are farther apart than fill goes. The ranks have
    /// to find them.
    Interfaces(Sides, FillLevels),
}

impl Order {
    /// That of what one rank has found.
    pub(super) fn of(found: Option<Elimination>, used: schwarz::Choice) -> Self {
        let of_choice = if used == schwarz::Choice::Natural { Self::Given } else { Self::Stages };
        found.map_or(Self::None, |found| of_choice(Arc::new(found)))
    }
}

/// Of each block row that has a place on a rank its number in the given order, where that is another.
pub(super) type GivenOrder = Option<Arc<[u64]>>;

/// How a preconditioner of the whole matrix is made, as a rank knows it.
#[derive(Clone)]
pub(super) enum Exactly {
    /// By elimination in this order, stage by stage or as given.
    Factors(Arc<Elimination>, GivenOrder),
    /// Of products, in the given order.
    Products(GivenOrder),
}

/// What a rank has of a divided system.
pub(super) struct Arranged<'a> {
    pub(super) layout: Layout,
    pub(super) part: Part,
    /// Its part of the right-hand side, and of what the solve starts from, if that is not zero.
    pub(super) rhs: Vec<f64>,
    pub(super) guess: Option<Vec<f64>>,
    pub(super) places: Places<'a>,
    pub(super) exactly: Option<Exactly>,
}

/// Where the unknowns of a rank come from.
pub(super) struct Places<'a> {
    pub(super) divided: &'a Divided<'a>,
    /// Rows have moved from where they are in the order of the source.
    pub(super) moves: bool,
    /// The order in which the rank has put its own afterwards.
    pub(super) inner: Option<Vec<u32>>,
}

impl Places<'_> {
    /// Whether unknowns have another order than in the source.
    pub(super) fn orders(&self) -> bool {
        self.inner.is_some() || !matches!(self.divided.numbering, Numbering::Given)
    }
}

/// Refuses what does not run over ranks.
pub(super) fn check(case: &Case) -> Result<(), NoResult> {
    let unsupported = |what: &str| Err(NoResult::unsupported(format!("{what} over ranks")));
    if solver::needs_transposed(&case.solver) && case.schwarz != schwarz::Choice::Jacobi {
        let reason = format!(
            "`{}` needs the transposed preconditioner, and `{}` has none",
            case.solver, case.schwarz
        );
        return Err(NoResult::unsupported(reason));
    }
    if case.execution != Execution::Fused {
        return unsupported("there is one execution");
    }
    if let Some(reason) = unsuited(case) {
        return Err(NoResult::unsupported(reason));
    }
    if case.schwarz.is_exact()
        && let Some(reason) = not_exact(case)
    {
        return Err(NoResult::unsupported(reason));
    }
    Ok(())
}

/// How block rows are divided before exact factors change their order.
enum Base {
    /// Ranges that begin there.
    Rows(Vec<usize>),
    Boxes(Boxes),
    /// As the first rank finds.
    Graph,
}

impl Base {
    fn new(
        held: &Held,
        communicator: &dyn Communicator,
        how: Partition,
        (rows, count): (usize, usize),
    ) -> Result<Self, NoResult> {
        Ok(match how {
            Partition::Rows => {
                let found = first_rows(communicator, &held.part, held.part.block_size(), count);
                let found: Vec<usize> = found.into_iter().map(|row| row as usize).collect();
                Self::Rows(range_starts(&found, count, rows))
            }
            Partition::Boxes => {
                let grid = held.boxes(communicator).ok_or_else(no_grid)?;
                Self::Boxes(Boxes::new(grid, count)?)
            }
            Partition::Graph => Self::Graph,
        })
    }

    /// First block row of each subdomain and their end, if they are known.
    fn starts(&self) -> &[usize] {
        match self {
            Self::Rows(starts) => starts,
            Self::Boxes(boxes) => boxes.starts(),
            Self::Graph => &[],
        }
    }

    /// The given order in stages, where a formula has them; `entries` are those of all ranks. Collective.
    fn sweep(
        &self,
        held: &Held,
        communicator: &dyn Communicator,
        (how, entries): (Partition, usize),
    ) -> Option<Sweep> {
        if let Self::Graph = self {
            return None;
        }
        let sweep = Sweep::of(held.boxes(communicator)?, how, self.starts(), entries)?;
        let part = &held.part;
        let fits = sweep.fits(&block_pattern(part.matrix()), |at| part.number(at));
        (!communicator.any(!fits)).then_some(sweep)
    }

    /// The block rows in their order, if it is known.
    fn divided(&self) -> Option<partition::Divided> {
        match self {
            Self::Rows(starts) => Some(partition::Divided { order: None, starts: starts.clone() }),
            Self::Boxes(boxes) => Some(boxes.divided(false)),
            Self::Graph => None,
        }
    }

    /// First block row of each subdomain and their end, and new numbers. Two ranges, or two boxes along an axis, may
    /// face each other.
    fn numbered(self, face: bool) -> (Vec<usize>, Numbering) {
        match self {
            Self::Rows(starts) => {
                let numbering = match starts[..] {
                    [_, middle, end] if face => Numbering::Backwards(middle as u64..end as u64),
                    _ => Numbering::Given,
                };
                (starts, numbering)
            }
            // one box has the given order
            Self::Boxes(boxes) if boxes.starts().len() == 2 => {
                (boxes.starts().to_vec(), Numbering::Given)
            }
            Self::Boxes(boxes) => (boxes.starts().to_vec(), Numbering::Boxes(boxes, face)),
            Self::Graph => unreachable!("the first rank has divided it"),
        }
    }
}

/// Subdomains of a case on so many ranks.
pub(super) fn subdomains(case: &Case, ranks: usize) -> usize {
    if case.subdomains == 0 { ranks } else { case.subdomains }
}

/// A system in a range in which numbers can be squared, where they will be; collective.
fn scaled<'a>(
    held: &'a Held,
    b: &'a [f64],
    communicator: &dyn Communicator,
    case: &Case,
) -> (Cow<'a, Held>, Cow<'a, [f64]>, Scaling) {
    let scaling = match case.kind {
        RunKind::Solve => held.scaling(communicator, b),
        RunKind::Spmv => Scaling::default(),
    };
    if scaling == Scaling::default() {
        return (Cow::Borrowed(held), Cow::Borrowed(b), scaling);
    }
    let (held, b) = held.scaled(b, scaling);
    (Cow::Owned(held), Cow::Owned(b), scaling)
}

/// Records the size of a system; collective.
fn record_size(held: &Held, communicator: &dyn Communicator, case: &Case, record: &mut Record) {
    let rows = held.order.div_ceil(case.block_size as u64) as usize;
    record.size.n = held.order as usize;
    record.size.nnz = held.entries as usize;
    record.size.padding = rows * case.block_size - held.order as usize;
    record.size.block_rows = rows;
    record.size.matrix_blocks = held.blocks(communicator);
}

impl<'a> Divided<'a> {
    /// Scales and divides a system of which every rank has rows, as one rank does that has all of it; collective.
    pub(super) fn of_rows(
        held: &'a Held,
        b: &'a [f64],
        communicator: &dyn Communicator,
        case: &Case,
        record: &mut Record,
    ) -> Result<Self, NoResult> {
        check(case)?;
        let (held, b, scaling) = scaled(held, b, communicator, case);
        scaling.remarks().for_each(|remark| record.remark(remark));
        record_size(&held, communicator, case, record);
        if let Some(method) = of_symmetric(case) {
            let found = held.asymmetry(communicator)?;
            accepted(case, method, found)?.into_iter().for_each(|said| record.remark(said));
        }
        let (rows, count) = (record.size.block_rows, subdomains(case, communicator.size()));
        check_count(count, rows)?;
        let (choice, how, fill) = (chosen(case)?, case.partition, case.fill);
        let begin = now();
        let base = Base::new(&held, communicator, how, (rows, count))?;
        let blocks = record.size.matrix_blocks;
        let sweep = if fill == 0 && choice.may_be_natural(fill) {
            base.sweep(&held, communicator, (how, blocks))
        } else {
            None
        };
        let mut found = if let Some(sweep) = sweep {
            let part = &held.part;
            let elimination = Some(sweep.elimination()).filter(|found| choice.is_natural(found));
            let number = |at| sweep.number(part.number(at));
            let numbers = elimination.is_some().then(|| (0..part.blocks()).map(number).collect());
            record.times.add_ordering(Some(seconds_since(begin)));
            Some(Found { starts: base.starts().to_vec(), elimination, numbers })
        } else if Wanted::of_all_rows(how, choice, fill) {
            let divided = if communicator.rank() == 0 { base.divided() } else { None };
            let wanted = Wanted { divided, partition: how, count, choice, fill };
            let found = wanted.find(communicator, &held)?;
            record.times.add_ordering(Some(seconds_since(begin)));
            Some(found)
        } else {
            None
        };
        let natural = found.as_mut().and_then(|found| found.elimination.take());
        let used = match choice {
            _ if natural.is_some() => schwarz::Choice::Natural,
            choice if choice.is_exact() => choice.interfaces_last(),
            choice => choice,
        };
        let last = matches!(used, schwarz::Choice::Interface(_));
        let (starts, numbering) = match found {
            Some(Found { starts, numbers: Some(numbers), .. }) => {
                (starts, Numbering::Listed(numbers))
            }
            Some(Found { starts, .. }) if how == Partition::Graph => (starts, Numbering::Given),
            _ => base.numbered(last),
        };
        record.division = Division {
            schwarz_used: Some(name_of_used(case, used)),
            stages: natural.as_ref().map(Elimination::stages),
            stage_efficiency: natural.as_ref().map(|order| order.efficiency),
            ..Division::default()
        };
        let elimination = if last {
            Order::Interfaces(sides(how, count), used.fill(fill))
        } else {
            Order::of(natural, used)
        };
        Ok(Self { held, b, scaling, numbering, starts, elimination })
    }

    /// Brings rows to their owners; collective.
    pub(super) fn arranged(
        &self,
        communicator: &dyn Communicator,
        case: &Case,
        record: &mut Record,
    ) -> Result<Arranged<'_>, NoResult> {
        let begin = now();
        let Self { held, b, numbering, starts, elimination, .. } = self;
        // a rank with a GPU has nothing else for the threads of its host
        let threads = Threads::when(on_gpu(&case.backend));
        let layout = Layout::new(starts, case.block_size, communicator.size())?;
        let stays = matches!(numbering, Numbering::Given);
        let moves = communicator.any(!stays || layout.rank_starts() != held.starts);
        let mut vectors = vec![Cow::Borrowed(&**b)];
        let reach = reach_of_products(case);
        let keeps_given = matches!(elimination, Order::Given(_)) || (reach.is_some() && moves);
        if keeps_given {
            let number = |at: usize| held.part.number(at / case.block_size) as f64;
            vectors.push(held.part.unknowns().map(number).collect());
        }
        let mut part = held.part.clone();
        if moves {
            let to = (layout.rank_starts(), case.block_size);
            // one for each block, of which rows have several columns
            let mut numbers: Vec<u64> = memory::with_capacity(held.part.blocks());
            numbers.extend((0..held.part.blocks()).map(|at| numbering.block(&held.part, at)));
            let b = case.block_size;
            let number = |place: usize| match b {
                1 => numbers[place],
                _ => numbers[place / b] * b as u64 + (place % b) as u64,
            };
            let of_rows: Vec<&[f64]> = vectors.iter().map(|vector| &**vector).collect();
            let from = (&held.part, &*of_rows);
            let (rows, moved) = span("rows move", || moved(communicator, from, number, to));
            part = span("places", || agreed(communicator, rows.finish_on(threads, u64::MAX)))?;
            vectors = moved.into_iter().map(Cow::Owned).collect();
        }
        let source = keeps_given.then(|| vectors.pop()).flatten();
        let mut rhs = vectors.pop().expect("the right-hand side").into_owned();
        let mut inner = None;
        let order = match elimination {
            Order::None => None,
            Order::Stages(order) | Order::Given(order) => Some(Arc::clone(order)),
            Order::Interfaces(sides, fill) => {
                let find = || interfaces(threads, communicator, &part, &layout, (*sides, *fill));
                let (found, order) = span("interfaces", find);
                let starts = layout.rank_starts();
                part =
                    span("renumbered", || renumbered(threads, communicator, &part, starts, &order));
                let unknowns = scalar_order(&order, case.block_size);
                rhs = reordered(&rhs, &unknowns);
                record.division.stages = Some(found.stages());
                record.division.stage_efficiency = Some(found.efficiency);
                inner = Some(unknowns);
                Some(Arc::new(found))
            }
        };
        let highest = order.as_ref().map_or(case.fill, |order| order.fill(case.fill).highest());
        let layers = reach.unwrap_or_else(|| case.schwarz.layers(highest));
        if layers > 0 && communicator.size() > 1 {
            let starts = layout.rank_starts();
            part = span("layers", || with_layers(communicator, &part, starts, layers))?;
        }
        let given = source.map(|source| {
            let own: Vec<f64> = source.iter().step_by(case.block_size).copied().collect();
            of_places(communicator, &part, layout.rank_starts(), &own).into()
        });
        let exactly = match order {
            Some(order) => Some(Exactly::Factors(order, given)),
            None => reach.map(|_| Exactly::Products(given)),
        };
        let places = Places { divided: self, moves, inner };
        if places.orders() {
            record.times.add_ordering(Some(seconds_since(begin)));
        }
        Ok(Arranged { layout, part, rhs, guess: None, places, exactly })
    }
}
