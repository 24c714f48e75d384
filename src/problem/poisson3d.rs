//! The Poisson equation on a box (Yang et al., Table 1).

use crate::base::error::Result;

use super::convdiff3d::{SEVEN_POINT, check_seven_points};
use super::generator::{Arguments, Generated, Generator, Piece};
use super::stencil;

/// 7-point differences on NX x NY x NZ points with Dirichlet boundary, x fastest: diagonal 6, the
/// others -1.
pub(super) static GENERATOR: Generator = Generator {
    name: "poisson3d",
    summary: "Poisson equation on a box, 7-point differences: diagonal 6, others -1",
    dimensions: 3,
    parameters: &[],
    words: &[],
    presets: &[],
    check: check_seven_points,
    build,
};

fn build(arguments: &Arguments, piece: Piece) -> Result<Generated> {
    let values = [-1.0, -1.0, -1.0, 6.0, -1.0, -1.0, -1.0];
    let made = stencil::matrix(arguments.size, &SEVEN_POINT, piece, |_, k| values[k])?;
    Ok(Generated { symmetric: true, ..made })
}
