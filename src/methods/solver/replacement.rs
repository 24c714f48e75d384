//! When the vectors of a pipelined method are computed anew, and whether it has converged.
//!
//! Pipelined methods have recurrences in the place of products, and rounding drives these apart from what they
//! stand for: the residual of the recurrence goes on falling where the true one stays (Cools, Yetkin, Agullo,
//! Giraud and Vanroose 2018, SIAM J. Matrix Anal. Appl. 39). So vectors are computed anew at fixed intervals, and the
//! residual that meets the tolerance is verified by a product.

use crate::compute::krylov::System;
use crate::compute::krylov::stop::{ConvergenceMonitor, SolveEnd};
use crate::compute::{Operations, Slot};

/// Iterations after which vectors are computed anew. A larger interval costs iterations where coefficients jump: of
/// `layered:20x20x24,layers=7` with `jacobi`, 150 become 151 with 20 and 160 with 25, and without it there is no
/// convergence.
const INTERVAL: usize = 20;

/// A true residual that keeps more than this part of the last one that was verified is as small as it gets.
const PROGRESS: f64 = 0.5;

/// The replacements of a solve.
pub(super) struct Replacement {
    /// The last true residual that was verified.
    verified: f64,
    /// Replacements, and iterations before the first and the last one.
    count: usize,
    first: usize,
    last: usize,
}

impl Replacement {
    /// For a method whose vectors have just been computed.
    pub(super) fn new() -> Self {
        Self { verified: f64::INFINITY, count: 0, first: 0, last: 0 }
    }

    /// Whether vectors are to be computed anew after so many iterations.
    pub(super) fn is_due(&mut self, iteration: usize) -> bool {
        let due = iteration - self.last >= INTERVAL;
        if due {
            self.note(iteration);
        }
        due
    }

    /// Counts a replacement after so many iterations.
    pub(super) fn note(&mut self, iteration: usize) {
        if self.count == 0 {
            self.first = iteration;
        }
        self.count += 1;
        self.last = iteration;
    }

    /// Verifies a residual of the norm `norm` that meets the tolerance: the true one goes to `r`. `None` where
    /// it does not meet it and the method is to go on from it. Where that is of no use any more, the solve ends
    /// with what it has monitored, and whoever looks at the solution sees that it is false.
    pub(super) fn verify<K: Operations>(
        &mut self,
        k: &K,
        s: &System<K>,
        x: &K::Vector,
        (r, slot): (&mut K::Vector, Slot),
        norm: f64,
        judge: &mut ConvergenceMonitor,
    ) -> Option<SolveEnd> {
        k.residual(s.a, x, s.b, r);
        let real = super::norm(k, r, slot);
        if let Some(end) = judge.between(real) {
            return Some(end);
        }
        if real > PROGRESS * self.verified || judge.is_last() {
            return judge.between(norm);
        }
        self.verified = real;
        self.note(judge.iterations);
        None
    }

    /// What a reader of the results needs to know.
    pub(super) fn remark(&self) -> Option<String> {
        let more = match self.count {
            0 => return None,
            1 => String::new(),
            count => format!(", and {} more times", count - 1),
        };
        Some(format!("residual replaced after iteration {}{more}", self.first))
    }
}
