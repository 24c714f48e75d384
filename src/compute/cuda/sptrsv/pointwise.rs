//! Triangular solves with blocks taken apart: point triangular systems.

use super::levels::Levels;
use super::{Algorithm, Solve, System};
use crate::base::error::Result;
use crate::compute::trisolve::Description;

/// What it is, for every program.
pub(super) const ABOUT: Description = Description {
    name: "pointwise",
    summary: "point triangular systems in place of blocks, one launch per level \
              (Yang et al., Algorithm 7)",
    per_level: true,
    ..Description::PLAIN
};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    about: ABOUT,
    seconds: None,
    largest_block: usize::MAX,
    host_rows: true,
    new: solve,
    in_halves: None,
};

fn solve(s: &System) -> Result<Box<dyn Solve>> {
    Ok(Box::new(Levels::new(s, s.structure.block_size)?))
}
