//! Random fields over the cells, each cell's number to be had on its own.

use std::f64::consts::TAU;

use crate::problem::splitmix::{mix, uniform};

/// Cells between the points of the lattice of a smooth field, in depth and along the layers.
const SPACING: [usize; 3] = [2, 4, 4];

/// A standard normal number.
pub(super) fn normal(stream: u64) -> f64 {
    // Box and Muller; the logarithm's argument is above zero
    let radius = (-2.0 * (1.0 - uniform(stream, 0)).ln()).sqrt();
    radius * (TAU * uniform(stream, 1)).cos()
}

/// A field whose numbers are standard normal in each cell and correlated over some cells: normal
/// numbers on a lattice, interpolated in each direction and scaled to the variance one.
pub(super) fn smooth(stream: u64, cell: [usize; 3]) -> f64 {
    let (mut sum, mut squares) = (0.0, 0.0);
    for corner in 0..8_usize {
        let (mut weight, mut point) = (1.0, mix(stream));
        for d in 0..3 {
            let upper = corner >> d & 1;
            let part = (cell[d] % SPACING[d]) as f64 / SPACING[d] as f64;
            weight *= if upper == 1 { part } else { 1.0 - part };
            point = mix(point ^ (cell[d] / SPACING[d] + upper) as u64);
        }
        sum += weight * normal(point);
        squares += weight * weight;
    }
    sum / squares.sqrt()
}

/// Number `i` of a cell, uniform in [-1, 1).
pub(super) fn rough(stream: u64, cell: usize, i: usize) -> f64 {
    2.0 * uniform(mix(stream ^ cell as u64), i) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolic::stencil::coordinates;

    #[test]
    fn smooth_fields_have_variance_one_and_neighbours_that_agree() {
        let n = 24;
        let field = |c: usize| smooth(7, coordinates([n; 3], c));
        let all: Vec<f64> = (0..n * n * n).map(field).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let of = |lag: usize| {
            let pairs = all.iter().zip(&all[lag..]);
            pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / (all.len() - lag) as f64
        };
        // some hundred points of the lattice decide
        assert!(mean.abs() < 0.3 && (of(0) - 1.0).abs() < 0.3, "{mean} {}", of(0));
        // along a layer neighbours are much alike, 12 cells further hardly
        assert!(of(n * n) > 0.7 && of(12 * n * n).abs() < 0.15, "{} {}", of(n * n), of(12 * n * n));
    }
}
