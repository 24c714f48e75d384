//! Orders in which exact factors eliminate the block rows of all subdomains.

use super::Choice;
use crate::base::choices::Partition;
use crate::base::threads::Threads;
use crate::compute::cpu::Cpu;
use crate::compute::preconditioner::SetupFailure;
use crate::matrix::Csr;
use crate::matrix::pattern::{TooLarge, block_pattern_on};
use crate::methods::precond::bilu;
use crate::symbolic::grid::box_of_blocks;
use crate::symbolic::interfaces::{Elimination, FillLevels};
use crate::symbolic::partition::{Divided, divide, divide_exactly};
use crate::symbolic::sweep::Sweep;

/// Layers of block rows around those of a rank that tell its rows of ILU(k), and of the rows that these subtract
/// what they need: both have columns over paths of k + 1 couplings at most, the last of which tells nothing more.
pub fn layers(k: usize) -> usize {
    2 * k + 1
}

/// Least [efficiency](Elimination::efficiency) at which `exact` takes the given order: the solves take a third longer
/// than balanced ones, and `exact:interface` costs about as much by its iterations.
const LEAST_EFFICIENCY: f64 = 0.75;

impl Choice {
    /// Whether exact factors of fill level k may keep the given order.
    pub(crate) fn may_be_natural(self, k: usize) -> bool {
        self == Self::Natural || (self == Self::Exact && k == 0)
    }

    /// What has interfaces last, of exact choices that do not keep the given order.
    pub(crate) fn interfaces_last(self) -> Self {
        if let Self::Interface(_) = self { self } else { Self::Interface(0) }
    }

    /// Levels of fill of these factors.
    pub(crate) fn fill(self, k: usize) -> FillLevels {
        FillLevels { k, more: if let Self::Interface(more) = self { more } else { 0 } }
    }

    /// Whether they do where they may, in these stages.
    pub(crate) fn is_natural(self, found: &Elimination) -> bool {
        self == Self::Natural || found.efficiency >= LEAST_EFFICIENCY
    }
}

/// Block rows in the order of their subdomains, and that of exact factors.
pub struct Ordered {
    /// The subdomains.
    pub divided: Divided,
    /// The order of elimination of exact factors.
    pub elimination: Option<Elimination>,
    /// What `exact` has become; other choices stay.
    pub used: Choice,
}

impl Ordered {
    /// Divides the block rows of A into `count` subdomains for `choice` and fill level k. `exact` takes the given
    /// order without fill where the stages are efficient: a decision that depends on the pattern and the subdomains
    /// alone.
    ///
    /// # Errors
    /// When A cannot be so divided, or its factors are too large.
    pub fn new(
        a: &Csr,
        how: Partition,
        grid: Option<[usize; 3]>,
        count: usize,
        choice: Choice,
        k: usize,
    ) -> Result<Self, SetupFailure> {
        if choice.may_be_natural(k) {
            let mut divided = divide(a, how, grid, count, false)?;
            let found = if let Some(sweep) = Self::swept(a, (how, grid, k), &divided.starts) {
                let mut found = sweep.elimination();
                found.given = sweep.order();
                divided.order = Some(found.given.clone());
                found
            } else {
                let [limit, each, free] = bilu::room(&Cpu::sequential(), a);
                let too_large =
                    |at: TooLarge| SetupFailure::TooLarge { at, needed: at.entries * each, free };
                divided.pipeline(Threads::Pool, a, k, limit).map_err(too_large)?
            };
            if choice.is_natural(&found) {
                return Ok(Self { divided, elimination: Some(found), used: Choice::Natural });
            }
        }
        if choice.is_exact() {
            let used = choice.interfaces_last();
            let (divided, order) = divide_exactly(a, how, grid, count, used.fill(k))?;
            return Ok(Self { divided, elimination: Some(order), used });
        }
        let divided = divide(a, how, grid, count, false)?;
        Ok(Self { divided, elimination: None, used: choice })
    }

    /// The given order of a grid in stages without fill, where a formula has them.
    fn swept(
        a: &Csr,
        (how, grid, k): (Partition, Option<[usize; 3]>, usize),
        starts: &[usize],
    ) -> Option<Sweep> {
        if k > 0 || how == Partition::Graph {
            return None;
        }
        let size = box_of_blocks(a, grid)?;
        let pattern = block_pattern_on(Threads::Pool, a);
        Sweep::of(size, how, starts, pattern.entries())
            .filter(|sweep| sweep.fits(&pattern, |row| row as u64))
    }
}
