//! Results that cases of the same matrix share.

use std::sync::{Arc, Weak};

use super::exchange::Exported;
use crate::base::error::Result;
use crate::base::threads::Threads;
use crate::case::{Case, LevelRule};
use crate::matrix::Csr;
use crate::symbolic::FillPattern;

/// Results of the symbolic phase, which depend only on the pattern of the matrix.
///
/// Cases that differ in their solver, triangular solves or backend alone share the pattern of the
/// factors: it is computed once, and each case reports its time. The backend with one thread does not
/// share with backends with many.
#[derive(Debug, Default)]
pub(crate) struct Reuse {
    matrix: Weak<Csr>,
    /// Unknowns per block, and the blocks of the matrix.
    blocks: Option<(usize, usize)>,
    pattern: Option<Known>,
    /// The system as it was written for a peer.
    exported: Option<Exported>,
}

/// A pattern and what it cost.
#[derive(Debug)]
struct Known {
    of: Of,
    pattern: Arc<FillPattern>,
    seconds: f64,
}

/// What the pattern of the factors depends on besides the matrix, and the number of threads that compute it,
/// on which its time depends.
pub(super) type Of = (usize, usize, LevelRule, Threads);

/// Key of the pattern of a case on a backend that uses `threads` on the host.
pub(super) fn key(case: &Case, threads: Threads) -> Of {
    (case.block_size, case.fill, case.level_rule, threads)
}

/// A pattern that took less than this many seconds is computed again, so that every case has a
/// time of its own.
const WORTH_KEEPING: f64 = 0.1;

impl Reuse {
    /// Discards the results of another matrix.
    pub(super) fn begin(&mut self, matrix: &Arc<Csr>) {
        // the weak reference holds the place, so no other matrix can be there
        if !std::ptr::eq(self.matrix.as_ptr(), Arc::as_ptr(matrix)) {
            *self = Self { matrix: Arc::downgrade(matrix), ..Self::default() };
        }
    }

    /// Blocks of the matrix, counted once per block size.
    pub(super) fn blocks(&mut self, block_size: usize, count: impl FnOnce() -> usize) -> usize {
        match self.blocks {
            Some((of, blocks)) if of == block_size => blocks,
            _ => self.blocks.insert((block_size, count())).1,
        }
    }

    /// The system with right-hand side `b`, called `rhs`, in a folder; written once.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn exported(&mut self, a: &Csr, b: &[f64], rhs: &str) -> Result<&Exported> {
        let known = self.exported.take().filter(|known| known.is_of(a.block_size(), rhs));
        let exported = known.map_or_else(|| Exported::new(a, b, rhs), Ok)?;
        Ok(self.exported.insert(exported))
    }

    /// The folder of the last system that was written for a peer.
    pub(super) fn exchange(&self) -> Option<&Exported> {
        self.exported.as_ref()
    }

    /// The pattern and its time in seconds; discards any other.
    pub(super) fn pattern(&mut self, of: Of) -> Option<(Arc<FillPattern>, f64)> {
        self.pattern.take_if(|known| known.of != of);
        self.pattern.as_ref().map(|known| (Arc::clone(&known.pattern), known.seconds))
    }

    /// Keeps a pattern that took `seconds`.
    pub(super) fn keep(&mut self, of: Of, pattern: &Arc<FillPattern>, seconds: f64) {
        // rows that lie on a device would come at a time that is not theirs
        let keep = seconds >= WORTH_KEEPING && pattern.is_there();
        self.pattern = keep.then(|| Known { of, pattern: Arc::clone(pattern), seconds });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> Arc<Csr> {
        Csr::new(1, 1, vec![0, 1], vec![0], vec![1.0]).unwrap().into()
    }

    #[test]
    fn a_pattern_is_known_until_another_is_asked_for() {
        let (a, pattern) = (matrix(), Arc::new(FillPattern::diagonal(1, 1)));
        let of = |fill| key(&Case { fill, ..Case::default() }, Threads::Pool);
        let mut reuse = Reuse::default();
        reuse.begin(&a);
        assert!(reuse.pattern(of(1)).is_none());
        reuse.keep(of(1), &pattern, 2.5);
        reuse.begin(&a);
        let (known, seconds) = reuse.pattern(of(1)).unwrap();
        assert!(Arc::ptr_eq(&known, &pattern) && seconds == 2.5);
        assert!(reuse.pattern(of(2)).is_none() && reuse.pattern(of(1)).is_none());
        // the time of all threads is none of one thread
        reuse.keep(of(1), &pattern, 2.5);
        let alone = key(&Case { fill: 1, ..Case::default() }, Threads::One);
        assert!(reuse.pattern(alone).is_none());
        // too cheap to be kept
        reuse.keep(of(1), &pattern, 0.01);
        assert!(reuse.pattern(of(1)).is_none());
    }

    #[test]
    fn another_matrix_shares_nothing() {
        let (a, b) = (matrix(), matrix());
        let mut reuse = Reuse::default();
        reuse.begin(&a);
        reuse.keep(
            key(&Case::default(), Threads::One),
            &Arc::new(FillPattern::diagonal(1, 1)),
            1.0,
        );
        assert_eq!(reuse.blocks(2, || 7), 7);
        assert_eq!(reuse.blocks(2, || unreachable!("counted already")), 7);
        assert_eq!(reuse.blocks(3, || 8), 8);
        drop(a);
        reuse.begin(&b);
        assert!(reuse.pattern(key(&Case::default(), Threads::One)).is_none());
        assert_eq!(reuse.blocks(3, || 9), 9);
    }
}
