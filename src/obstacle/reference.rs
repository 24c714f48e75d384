//! A reference solution by another method: projected SOR.

use super::case::Case;
use super::problem::Problem;

/// Sweeps after which the reference is given up.
const MOST: usize = 100_000;

/// The solution at the last time step by projected SOR, point after point, each step until no value
/// changes by more than `tolerance` times the largest; x fastest. For small grids.
///
/// The relaxation factor is the best one for the linear problem, from the spectral radius
/// `6 share cos(pi h)` of its Jacobi iteration (Young).
///
/// # Panics
/// When it does not converge.
pub fn projected_sor(case: &Case, problem: &Problem, tolerance: f64) -> Vec<f64> {
    let m = problem.m;
    let (share, centre) = (problem.coefficients.share, problem.coefficients.centre);
    let radius = 6.0 * share * (std::f64::consts::PI * problem.h).cos();
    let omega = 2.0 / (1.0 + (1.0 - radius * radius).sqrt());
    let index = |[x, y, z]: [usize; 3]| (z * m + y) * m + x;
    let points =
        || (0..m).flat_map(move |z| (0..m).flat_map(move |y| (0..m).map(move |x| [x, y, z])));
    let mut u = vec![0.0; m * m * m];
    for _ in 0..case.steps {
        let source: Vec<f64> = points()
            .map(|at| (problem.delta * u[index(at)] + problem.force(at)) / centre)
            .collect();
        let mut sweeps = 0;
        loop {
            let (mut change, mut largest) = (0.0_f64, 0.0_f64);
            for at in points() {
                let mut around = 0.0;
                for d in 0..3 {
                    for side in [usize::MAX, 1] {
                        let mut other = at;
                        other[d] = at[d].wrapping_add(side);
                        if other[d] < m {
                            around += u[index(other)];
                        }
                    }
                }
                let old = u[index(at)];
                let free = source[index(at)] + share * around;
                let new = (old + omega * (free - old)).max(problem.floor(at));
                u[index(at)] = new;
                change = change.max((new - old).abs());
                largest = largest.max(new.abs());
            }
            sweeps += 1;
            if change <= tolerance * largest {
                break;
            }
            assert!(sweeps < MOST, "projected SOR does not converge");
        }
    }
    u
}
