//! Convection-diffusion with constant coefficients on a box.

use crate::base::error::{Error, Result};

use super::generator::{Arguments, Generated, Generator, Parameter, Piece, Preset};
use super::stencil;

/// Central differences on a box of NX x NY x NZ points with Dirichlet boundary, x fastest.
///
/// In each direction the couplings to the neighbours below and above are `-c (1 + p)` and
/// `-c (1 - p)`, where p is the cell Peclet number; the diagonal is `2 (cx + cy + cz) + sigma`.
pub(super) static GENERATOR: Generator = Generator {
    name: "convdiff3d",
    summary: "convection-diffusion on a box, 7-point central differences, constant coefficients",
    dimensions: 3,
    parameters: &[
        Parameter { key: "cx", default: 1.0, summary: "diffusion in x, positive" },
        Parameter { key: "cy", default: 1.0, summary: "diffusion in y, positive" },
        Parameter { key: "cz", default: 1.0, summary: "diffusion in z, positive" },
        Parameter { key: "px", default: 0.0, summary: "cell Peclet number in x" },
        Parameter { key: "py", default: 0.0, summary: "cell Peclet number in y" },
        Parameter { key: "pz", default: 0.0, summary: "cell Peclet number in z" },
        Parameter { key: "sigma", default: 0.0, summary: "reaction, added to the diagonal" },
    ],
    words: &[],
    presets: &[Preset {
        name: "atmosmodd",
        arguments: "148x148x58,cx=4,cy=1,cz=1,pz=0.05",
        remark: "twin of atmosmodd: its size, grid and entry count with made-up coefficients",
    }],
    check: check_seven_points,
    build,
};

/// The seven points in the order of their columns.
pub(super) const SEVEN_POINT: [[i64; 3]; 7] =
    [[0, 0, -1], [0, -1, 0], [-1, 0, 0], [0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]];
/// Place of the cell itself among them, and of its lower neighbours in x, y and z; the upper ones follow.
pub(super) const CENTRE: usize = 3;
pub(super) const LOWER: [usize; 3] = [2, 1, 0];

/// Refuses a box with too many couplings to neighbours.
pub(super) fn check_seven_points(arguments: &Arguments) -> Result<()> {
    stencil::entries(arguments.size, &SEVEN_POINT, 1).map(drop)
}

fn build(arguments: &Arguments, piece: Piece) -> Result<Generated> {
    let c = ["cx", "cy", "cz"].map(|key| arguments.get(key));
    let p = ["px", "py", "pz"].map(|key| arguments.get(key));
    for (c, key) in c.iter().zip(["cx", "cy", "cz"]) {
        if *c <= 0.0 {
            return Err(Error::input(format!("`convdiff3d`: `{key}={c}` must be positive")));
        }
    }
    let diagonal = 2.0 * c[0] + 2.0 * c[1] + 2.0 * c[2] + arguments.get("sigma");
    let below = |d: usize| -c[d] * (1.0 + p[d]);
    let above = |d: usize| -c[d] * (1.0 - p[d]);
    let values = [below(2), below(1), below(0), diagonal, above(0), above(1), above(2)];
    let made = stencil::matrix(arguments.size, &SEVEN_POINT, piece, |_, k| values[k])?;
    Ok(Generated { symmetric: p == [0.0; 3], ..made })
}
