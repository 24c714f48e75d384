//! One Newton step of a reservoir with wells: the generalised hepta-diagonal systems of Al-Mouhamed
//! and Khan (2017).

mod assemble;
mod dual;
mod flow;
mod noise;
mod rock;
mod system;
mod time;
mod wells;

use super::generator::{Arguments, Generated, Generator, Parameter, Piece, Word};
use crate::base::error::{Error, Result};
use assemble::{Arrangement, assemble, check_box};
use flow::Flow;
use rock::Rock;
use system::System;

/// The linearised equations of a time step on J x H x I cells, `GH = [H WT; W D]`: cells first, then
/// a row for each well. J is the depth and fastest; cell (j, h, i) has the number `j + J h + J H i`,
/// its unknowns are consecutive.
///
/// # Equations
///
/// Oil and water flow; the oil is a mixture of k - 1 components. The unknowns of a cell are the
/// pressure p (bar) of the oil, the saturation s of water (k > 1) and the mass fractions z of all
/// components of the oil but the heaviest (k > 2). The equations are the conservation of mass of all
/// oil, of water and of those components, in t/day, implicit in time:
///
/// ```text
/// (m(u) - m(u0)) / dt + sum over faces of F(u, u') + wells = 0
/// m = V phi (1 + cr dp) ((1 - s) ro, s rw, (1 - s) ro z)                     dp = p - 200 bar
/// F = T (Lo ro Do, Lw rw Dw, Lo ro z Do)                        L, r and z of the upstream cell
/// Do = p - p' - g (r + r')/2 (d - d'),  Dw the same with p - pc(s)     d depth, pc capillary
/// Lo = (1 - S)^2 / muo, Lw = S^2 / muw, S = (s - 0.2) / 0.6, pc = 0.5 bar (1 - S)
/// ro = (sum of z_i rho_i) (1 + co dp), rw = 1 + cw dp, ln muo = sum of z_i ln mu_i
/// ```
///
/// `T` is Darcy's constant times the harmonic mean of the permeabilities times area over distance;
/// cells are 20 x 20 x 4 m, vertical permeability is a tenth of the horizontal one. For k = 1 there is
/// oil alone at S = 0.
///
/// A well is a column of cells with one more unknown, its pressure pw at the top cell. Producers take
/// `WI L r (p - pw - head)` of each fluid from each cell, injectors, every other well, bring
/// `WI (Lo + Lw) rw (pw + head - p)` of water (oil for k = 1); WI is Peaceman's index (1983). The well's
/// equation sets the sum over its cells to 10 t/day for each.
///
/// # Linearisation
///
/// The matrix is the Jacobian at a state u, by forward differentiation exact to rounding; the
/// right-hand side `own` is the negative residual there. The state u0 before the step is hydrostatic
/// with smooth random deviations, u is within 1 bar, 0.02 and 2 % of it, and the pressures of wells lie
/// 20 bar beyond those of their cells. Blocks are stored whole, with the zeros of unknowns that do not
/// occur: of the downstream neighbour only the pressure does, and its saturation by pc.
///
/// # Time steps
///
/// With `step=n` the system is that of the n-th time step, after n - 1 steps that are computed: each solves its
/// own system `J d = -r` on one thread, as here, by GMRES with block ILU(0) to 1e-10, and goes on from `u + d`, with
/// saturations and mass fractions kept within what there can be: `0.2 <= s <= 0.8`, `z >= 0`, `sum of z <= 1`.
/// From the second step on `u0 = u`, the last state: one Newton iteration for each step, which is Euler's method,
/// linearly implicit. Pressures of wells are those of the last solution. All steps have one pattern.
///
/// # Arrangement
///
/// With `bias=half` (GH-h of the paper, section 7.2) the rows of every other cell are shifted by half
/// a block to the right, and what then lies beyond the last cell is dropped. That is a pattern for
/// products: the shifted rows have lost their diagonal. With `rows=eliminated` the pressures of wells
/// are eliminated exactly, `H - WT D^-1 W`: all cells of a well are then coupled to each other, and
/// the matrix is no longer hepta-diagonal.
pub(super) static GENERATOR: Generator = Generator {
    name: "reservoir",
    summary: "Newton step of a reservoir with wells: 7-point cells, k x k blocks, well rows; \
              right-hand side `own`",
    dimensions: 3,
    parameters: &[
        Parameter { key: "k", default: 2.0, summary: "unknowns of a cell, 1, 2, 3, 4 or 8" },
        Parameter { key: "wells", default: 2.0, summary: "vertical wells, 0 to 4096" },
        Parameter { key: "spacing", default: 2.0, summary: "least distance of wells in cells" },
        Parameter { key: "seed", default: 1.0, summary: "of wells, rock and state, 0 to 2^53" },
        Parameter { key: "sigma", default: 1.0, summary: "deviation of ln permeability, 0 to 5" },
        Parameter { key: "days", default: 1.0, summary: "time step, 1e-6 to 1e6" },
        Parameter { key: "step", default: 1.0, summary: "number of the time step, 1 to 10000" },
    ],
    words: &[
        Word {
            key: "field",
            default: "lognormal",
            summary: "permeability: layered, lognormal, uniform or a CSV file with `permx`",
        },
        Word { key: "at", default: "", summary: "columns of the wells, HxI+HxI from 1 on" },
        Word { key: "bias", default: "block", summary: "block (GH-b) or half (GH-h)" },
        Word { key: "rows", default: "kept", summary: "those of wells: kept or eliminated" },
    ],
    presets: &[],
    check: |arguments| check_box(arguments.size, unknowns_of_cell(arguments)?),
    build,
};

fn build(arguments: &Arguments, piece: Piece) -> Result<Generated> {
    match unknowns_of_cell(arguments)? {
        1 => build_for::<2>(1, arguments, piece),
        2 => build_for::<4>(2, arguments, piece),
        3 => build_for::<6>(3, arguments, piece),
        4 => build_for::<8>(4, arguments, piece),
        _ => build_for::<16>(8, arguments, piece),
    }
}

fn unknowns_of_cell(arguments: &Arguments) -> Result<usize> {
    match GENERATOR.whole(arguments, "k", 1, 8)? {
        k @ (1..=4 | 8) => Ok(k as usize),
        k => Err(Error::input(format!("`reservoir`: `k={k}` is not one of 1, 2, 3, 4, 8"))),
    }
}

/// k unknowns for each cell, `N = 2 k` derivatives of a flow.
fn build_for<const N: usize>(k: usize, arguments: &Arguments, piece: Piece) -> Result<Generated> {
    let size = arguments.size;
    let seed = GENERATOR.whole(arguments, "seed", 0, 1 << 53)?;
    let spacing = GENERATOR.within(arguments, "spacing", 0.0, 1e6)?;
    let sigma = GENERATOR.within(arguments, "sigma", 0.0, 5.0)?;
    let days = GENERATOR.within(arguments, "days", 1e-6, 1e6)?;
    let wells = GENERATOR.whole(arguments, "wells", 0, 4096)? as usize;
    let arrangement = Arrangement {
        half_bias: choice(arguments, "bias", ["block", "half"])?,
        without_wells: choice(arguments, "rows", ["kept", "eliminated"])?,
    };
    if arrangement.half_bias && (!k.is_multiple_of(2) || arrangement.without_wells) {
        return Err(Error::input("`reservoir`: `bias=half` needs an even k and `rows=kept`"));
    }
    let step = GENERATOR.whole(arguments, "step", 1, 10_000)? as usize;
    if arrangement.half_bias && step > 1 {
        return Err(Error::input("`reservoir`: `bias=half` has no further time steps"));
    }
    check_box(size, k)?;
    let columns = match arguments.word("at") {
        "" => wells::random([size[1], size[2]], wells, spacing, seed)?,
        text => wells::listed([size[1], size[2]], text)?,
    };
    // cells that are made, and their neighbours
    let cells = size.iter().product();
    let (made, reach) = (piece.of(cells), size[0] * size[1]);
    let near = match step {
        1 => made.start.saturating_sub(reach)..(made.end + reach).min(cells),
        _ => 0..cells,
    };
    let rock = Rock::new(size, arguments.word("field"), sigma, seed, near.clone())?;
    let flow = Flow::<N> { k, rock: &rock, days };
    let mut system = System::new(flow, &columns, seed, near);
    time::advance(&mut system, step, &but_for_the_step(arguments))?;
    let (matrix, rhs) = assemble(&system, arrangement, piece)?;
    let (first, order) = (made.start * k, matrix.cols());
    let rhs = Some(rhs);
    Ok(Generated { matrix, first, columns: 0, order, grid: size, symmetric: false, rhs })
}

/// What all time steps of a reservoir have in common.
fn but_for_the_step(arguments: &Arguments) -> String {
    let numbers = GENERATOR.parameters.iter().filter(|p| p.key != "step");
    let numbers: Vec<f64> = numbers.map(|p| arguments.get(p.key)).collect();
    let words: Vec<&str> = GENERATOR.words.iter().map(|w| arguments.word(w.key)).collect();
    format!("{:?} {numbers:?} {words:?}", arguments.size)
}

/// Whether the word `key` is the second of two.
fn choice(arguments: &Arguments, key: &str, words: [&str; 2]) -> Result<bool> {
    let word = arguments.word(key);
    match words.iter().position(|w| *w == word) {
        Some(at) => Ok(at == 1),
        None => Err(Error::unknown(&format!("`{key}` of `reservoir`"), word, &words)),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
