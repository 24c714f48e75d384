//! One implicit step of the heat equation with linear finite elements.

use crate::base::error::{Error, Result};

use super::generator::{Arguments, Generated, Generator, Parameter, Piece, Preset};
use super::stencil;

/// `M + dt K` of P1 elements on NX x NY nodes with spacing `h = 1 / (NX - 1)` in both directions
/// and natural boundary, x fastest. Each cell is cut into two right triangles by the diagonal from
/// (i, j) to (i+1, j+1).
pub(super) static GENERATOR: Generator = Generator {
    name: "fem-p1",
    summary: "heat equation, one implicit step: M + dt K of linear triangles on a rectangle",
    dimensions: 2,
    parameters: &[Parameter { key: "dt", default: 1e-2, summary: "time step, not negative" }],
    words: &[],
    presets: &[Preset {
        name: "parabolic_fem",
        arguments: "1025x513",
        remark: "twin of parabolic_fem: its size and entry count with made-up values",
    }],
    check: |arguments| stencil::entries(arguments.size, &SEVEN_NODES, 1).map(drop),
    build,
};

/// Couplings of a node in the order of their columns: along the diagonals of the cells, along the
/// sides, and to itself.
const SEVEN_NODES: [[i64; 3]; 7] =
    [[-1, -1, 0], [0, -1, 0], [-1, 0, 0], [0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]];

fn build(arguments: &Arguments, piece: Piece) -> Result<Generated> {
    let (size, dt) = (arguments.size, arguments.get("dt"));
    let [nx, ny, _] = size;
    if nx < 2 || ny < 2 {
        let message = format!("`fem-p1`: {nx} x {ny} nodes hold no triangle");
        return Err(Error::input(message).hint("at least 2x2 nodes are needed"));
    }
    if dt < 0.0 {
        return Err(Error::input(format!("`fem-p1`: `dt={dt}` must not be negative")));
    }
    let value = |p: [usize; 3], k: usize| entry(p, k, [nx, ny], dt);
    let made = stencil::matrix(size, &SEVEN_NODES, piece, value)?;
    Ok(Generated { symmetric: true, ..made })
}

/// Sum over the triangles that share the coupling.
///
/// With two equal legs h a triangle has area `h^2 / 2`, mass `area / 12` between two of its nodes
/// and `area / 6` at one, and stiffness -1/2 along a leg, 0 along the hypotenuse, 1 at the right
/// angle and 1/2 at the other nodes.
fn entry(point: [usize; 3], k: usize, nodes: [usize; 2], dt: f64) -> f64 {
    let h = 1.0 / (nodes[0] - 1) as f64;
    let mass = 0.5 * h * h / 12.0;
    // cells before and after the node in each direction
    let before = [0, 1].map(|d| f64::from(u8::from(point[d] > 0)));
    let after = [0, 1].map(|d| f64::from(u8::from(point[d] + 1 < nodes[d])));
    match k {
        // a hypotenuse lies inside its cell, between both triangles
        0 | 6 => 2.0 * mass,
        // a leg is shared by the cells at its sides
        1 | 5 => (before[0] + after[0]) * (mass - 0.5 * dt),
        2 | 4 => (before[1] + after[1]) * (mass - 0.5 * dt),
        _ => {
            // both triangles of two cells meet here with an acute angle, those of the other two
            // cells with the right angle of one
            let acute = 2.0 * (before[0] * before[1] + after[0] * after[1]);
            let right = before[0] * after[1] + after[0] * before[1];
            acute * (2.0 * mass + 0.5 * dt) + right * (2.0 * mass + dt)
        }
    }
}
