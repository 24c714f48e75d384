//! The pressure equation of bubbly flow (Gupta et al. 2015; Tang and Vuik 2007).

use super::convdiff3d::check_seven_points;
use super::diffusion::{Boundary, Diffusion};
use super::generator::{Arguments, Generated, Generator, Parameter, Piece, Word};
use super::splitmix::{mix, uniform};
use crate::base::error::{Error, Result};
use crate::symbolic::stencil::coordinates;

/// `-div(1/rho grad p) = f` on NX x NY x NZ cells, x fastest: rho is 1 in the liquid and `1 / contrast`
/// in spherical bubbles, so that 1/rho jumps from 1 to `contrast`.
///
/// Radii are relative to the shortest edge. Centres are drawn one after the other, uniform where a
/// bubble lies within the box by a cell at least; one that would come nearer than a cell to an earlier
/// bubble is drawn anew.
pub(super) static GENERATOR: Generator = Generator {
    name: "bubbly",
    summary: "pressure equation of bubbly flow, jumps of 1/rho, seeded bubbles; right-hand side `own`",
    dimensions: 3,
    parameters: &[
        Parameter { key: "bubbles", default: 8.0, summary: "number of bubbles, 0 to 4096" },
        Parameter { key: "radius", default: 0.1, summary: "over the shortest edge, 0 to 0.5" },
        Parameter { key: "contrast", default: 1000.0, summary: "of the densities, 1 to 1e12" },
        Parameter { key: "seed", default: 1.0, summary: "of the centres and `own`, 0 to 2^53" },
    ],
    words: &[Word {
        key: "boundary",
        default: "fixed",
        summary: "fixed (no flow, last diagonal doubled), neumann (singular), dirichlet or top",
    }],
    presets: &[],
    check: |arguments| {
        check_seven_points(arguments)?;
        bubbles(arguments).map(drop)
    },
    build,
};

/// Draws of a centre before the bubbles are said not to fit.
const DRAWS: u64 = 100_000;

fn build(arguments: &Arguments, piece: Piece) -> Result<Generated> {
    check_seven_points(arguments)?;
    let seed = GENERATOR.whole(arguments, "seed", 0, 1 << 53)?;
    let contrast = GENERATOR.within(arguments, "contrast", 1.0, 1e12)?;
    let boundary = Boundary::find(GENERATOR.name, arguments.word("boundary"))?;
    let size = arguments.size;
    let (centres, radius) = bubbles(arguments)?;
    let kappa = |i: usize| {
        let middle = coordinates(size, i).map(|c| c as f64 + 0.5);
        let inside = centres.iter().any(|c| square_of_distance(*c, middle) <= radius * radius);
        if inside { contrast } else { 1.0 }
    };
    Diffusion { size, kappa: &kappa, along: [1.0; 3], boundary, storage: 0.0 }
        .assemble(mix(seed ^ 0x6275_6262), piece)
}

/// The centres of the bubbles and their radius, in cells.
fn bubbles(arguments: &Arguments) -> Result<(Vec<[f64; 3]>, f64)> {
    let count = GENERATOR.whole(arguments, "bubbles", 0, 4096)? as usize;
    let seed = GENERATOR.whole(arguments, "seed", 0, 1 << 53)?;
    let shortest = arguments.size.into_iter().min().unwrap_or(1);
    let radius = GENERATOR.within(arguments, "radius", 0.0, 0.5)? * shortest as f64;
    Ok((centres(arguments.size, count, radius, seed)?, radius))
}

fn square_of_distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|d| (a[d] - b[d]).powi(2)).sum()
}

/// Centres of bubbles of one radius, in cells.
fn centres(size: [usize; 3], count: usize, radius: f64, seed: u64) -> Result<Vec<[f64; 3]>> {
    let mut found: Vec<[f64; 3]> = Vec::new();
    let fits = |d: usize| size[d] as f64 - 2.0 * (radius + 1.0) >= 0.0;
    for draw in 0..DRAWS {
        if found.len() == count || !(0..3).all(fits) {
            break;
        }
        let stream = mix(seed.wrapping_add(draw));
        let centre = [0, 1, 2]
            .map(|d| radius + 1.0 + uniform(stream, d) * (size[d] as f64 - 2.0 * (radius + 1.0)));
        let apart = (2.0 * radius + 1.0).powi(2);
        if found.iter().all(|c| square_of_distance(*c, centre) >= apart) {
            found.push(centre);
        }
    }
    if found.len() == count {
        return Ok(found);
    }
    let message = format!("`bubbly`: no room for {count} bubbles of {radius} cells radius");
    Err(Error::input(message).hint("choose fewer bubbles, a smaller radius or a larger grid"))
}

#[cfg(test)]
mod tests {
    use crate::problem::samples::{matrix, no_problem, problem};

    fn error(spec: &str) -> String {
        no_problem(spec).to_string()
    }

    #[test]
    fn bubbles_have_their_volume_and_the_matrix_its_jump() {
        let a = matrix("bubbly:32,bubbles=8,radius=0.1");
        // cells wholly within a bubble have the diagonal 6000
        let inside = (0..a.rows()).filter(|&i| a.get(i, i).unwrap() > 1000.0).count() as f64;
        let volume = 8.0 * 4.0 / 3.0 * std::f64::consts::PI * 3.2_f64.powi(3);
        assert!((inside / volume - 1.0).abs() < 0.05, "{inside} cells, {volume}");
        let largest = a.largest_diagonal();
        assert_eq!(largest, 6000.0);
        // face between liquid and gas
        let face = 2.0 * 1000.0 / 1001.0;
        assert!(a.values().iter().any(|v| (v + face).abs() < 1e-12));
    }

    #[test]
    fn rows_of_the_singular_system_sum_to_zero_and_its_right_hand_side_too() {
        let p = problem("bubbly:9x8x7,bubbles=1,radius=0.2,boundary=neumann");
        let mut sums = vec![0.0; 504];
        p.matrix.multiply(&vec![1.0; 504], &mut sums);
        assert!(sums.iter().all(|s| s.abs() < 1e-12));
        let total: f64 = p.own_rhs.unwrap().iter().sum();
        assert!(total.abs() < 1e-9);
        let fixed = matrix("bubbly:9x8x7,bubbles=1,radius=0.2");
        assert_eq!(fixed.get(503, 503).unwrap(), 2.0 * p.matrix.get(503, 503).unwrap());
        assert_eq!(fixed.get(502, 502), p.matrix.get(502, 502));
    }

    #[test]
    fn bad_arguments_are_named() {
        assert_eq!(error("bubbly:8,radius=0.6"), "`bubbly`: `radius=0.6` is outside 0 to 0.5");
        assert_eq!(
            error("bubbly:8,contrast=0.5"),
            "`bubbly`: `contrast=0.5` is outside 1 to 1000000000000"
        );
        assert_eq!(
            error("bubbly:8,bubbles=9,radius=0.3"),
            "`bubbly`: no room for 9 bubbles of 2.4 cells radius"
        );
        assert_eq!(error("bubbly:8,boundary=x"), "unknown `boundary` of `bubbly` `x`");
    }
}
