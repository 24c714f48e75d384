//! Methods that begin the next iteration while scalars are read: what they find is what they find otherwise.

use std::sync::Arc;

use super::block_tests::solved_on;
use crate::base::choices::Side;
use crate::case::Case;
use crate::compute::cpu::Cpu;
use crate::compute::krylov::{Outcome, SolveEnd};
use crate::matrix::Csr;
use crate::problem;
use crate::problem::samples::matrix;

type Solved = (Outcome, Vec<f64>, Vec<f64>);

fn both(case: &Case, a: &Arc<Csr>) -> [Solved; 2] {
    let b = problem::rhs::random(0..a.rows() as u64, 5);
    let (plain, meanwhile) = (Cpu::sequential(), Cpu::sequential());
    meanwhile.meanwhile.replace(Some(Vec::new()));
    let found = [&plain, &meanwhile].map(|k| solved_on(k, case, a, &b));
    assert!(meanwhile.meanwhile.borrow().as_ref().is_some_and(|read| !read.is_empty()));
    found
}

#[test]
fn methods_find_the_same_bit_by_bit() {
    let (definite, general) = (matrix("poisson3d:9x8x7"), matrix("convdiff3d:9x8x7"));
    for (solver, precond, a, block_size) in [
        ("cg", "none", &definite, 1),
        ("cg", "ic", &definite, 1),
        ("cg", "ic", &definite, 7),
        ("bicgstab", "none", &general, 1),
        ("bicgstab", "bilu", &general, 3),
        ("idr", "none", &general, 1),
        ("idr", "bilu", &general, 4),
        ("gmres", "none", &general, 1),
        ("gmres", "bilu", &general, 2),
    ] {
        for side in [Side::Left, Side::Right] {
            // up to the tolerance, and up to the limit of iterations
            for rtol in [1e-9, 1e-200] {
                let case =
                    Case { solver: solver.into(), precond: precond.into(), ..Case::default() };
                let case = Case { side, block_size, restart: 6, rtol, ..case };
                let [(plain, x, residuals), (meanwhile, of_x, of_residuals)] = both(&case, a);
                let text = format!("{solver} {precond} {block_size} {side:?} {rtol}");
                assert_eq!(
                    (plain.end, plain.iterations),
                    (meanwhile.end, meanwhile.iterations),
                    "{text}"
                );
                assert!(rtol < 1e-100 || plain.end == SolveEnd::Converged, "{text}: {plain:?}");
                assert!(x == of_x && residuals == of_residuals, "{text}");
            }
        }
    }
}

/// A basis that loses its orthogonality: the second pass then finds vectors that are divided by their norm already.
#[test]
fn a_second_pass_takes_back_what_was_begun() {
    let n = 60_u32;
    let values = (0..n).map(|i| 10_f64.powf(-f64::from(i) / 5.0)).collect();
    let a = Csr::new(n as usize, n as usize, (0..=n).collect(), (0..n).collect(), values).unwrap();
    let case = Case { solver: "gmres".into(), precond: "none".into(), ..Case::default() };
    let case = Case { restart: 40, rtol: 1e-13, ..case };
    let [(plain, x, residuals), (meanwhile, of_x, of_residuals)] = both(&case, &Arc::new(a));
    assert_eq!((plain.end, plain.iterations), (meanwhile.end, meanwhile.iterations));
    assert!(x != of_x, "no second pass");
    for (residual, want) in of_residuals.iter().zip(&residuals).take(case.restart) {
        assert!((residual - want).abs() < 1e-6 * want, "{residual} beside {want}");
    }
}
