//! Registry of the triangular-solve algorithms.

use super::solve::{Solve, System};
use super::{levels, partitioned, pencils, syncfree, vendor, wavefront};
use crate::base::choices::Trisolve;
use crate::base::error::Result;

/// Makes a way of triangular solves.
type Make = fn(&System) -> Result<Box<dyn Solve>>;

/// Every way of triangular solves with our factors.
const WAYS: &[(Trisolve, Make)] = &[
    (Trisolve::Levels, levels::blockwise),
    (Trisolve::Pointwise, levels::pointwise),
    (Trisolve::Syncfree, syncfree::solve),
    (Trisolve::Wavefront, wavefront::solve),
    (Trisolve::Pencils, pencils::solve),
    (Trisolve::Partitioned, partitioned::solve),
    (Trisolve::Cusparse, vendor::solve),
];

/// Solves in the `way`, which is not [`Trisolve::Auto`].
pub(super) fn make(way: Trisolve, system: &System) -> Result<Box<dyn Solve>> {
    let (_, make) = WAYS.iter().find(|(name, _)| *name == way).expect("every way is listed");
    make(system)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_way_but_the_choice_is_listed_once() {
        for way in Trisolve::value_variants() {
            let listed = WAYS.iter().filter(|(name, _)| name == way).count();
            assert_eq!(listed, usize::from(*way != Trisolve::Auto), "{way:?}");
        }
    }
}
