//! Rows and columns scaled by powers of two before anything is computed; the solution is judged by the system as it is
//! given.

use std::borrow::Cow;
use std::sync::Arc;

use super::range::Scaled;
use crate::base::measure::{now, seconds_since};
use crate::case::Case;
use crate::matrix::{Csr, Equilibration};

/// How a system was scaled.
pub(super) struct Equilibrated {
    pub(super) equilibration: Equilibration,
    /// Seconds that it took.
    pub(super) seconds: f64,
}

/// A system as it is given, but for a power of two, and what turns a solution of the one that is solved into its own.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) matrix: &'a Csr,
    pub(super) b: &'a [f64],
    pub(super) equilibration: &'a Equilibration,
}

impl Equilibrated {
    /// Beside the system that was scaled.
    pub(super) fn given<'a>(&'a self, of: &'a Scaled) -> Given<'a> {
        Given { matrix: &of.matrix, b: &of.b, equilibration: &self.equilibration }
    }
}

/// The system with rows and columns scaled as a case asks for; `None` where they are not.
pub(super) fn equilibrated(case: &Case, of: &Scaled) -> Option<(Scaled<'static>, Equilibrated)> {
    let start = now();
    let symmetric = || of.matrix.asymmetry_beyond(case.symmetry_tolerance).is_none();
    let equilibration = Equilibration::new(&of.matrix, case.scaling, symmetric)?;
    let system = Scaled {
        matrix: Cow::Owned(Arc::new(equilibration.matrix(&of.matrix))),
        b: Cow::Owned(equilibration.right_hand_side(&of.b)),
        scaling: of.scaling,
    };
    Some((system, Equilibrated { equilibration, seconds: seconds_since(start) }))
}
