//! The matrix of a time step of the obstacle problem, for the linear solvers.

use crate::base::error::{Error, Result};
use crate::obstacle::{Case, Problem};

use super::convdiff3d::{SEVEN_POINT, check_seven_points};
use super::generator::{Arguments, Generated, Generator, Parameter, Piece};
use super::stencil;

/// `A + I/k` on M x M x M points with Dirichlet boundary, x fastest: the diagonal
/// `6 eta/h^2 + |b|^2/(4 eta) + c + 1/k`, the others `-eta/h^2`, `h = 1/(M + 1)`. Its right-hand side is
/// that of the first time step, where the solution before is 0.
pub(super) static GENERATOR: Generator = Generator {
    name: "obstacle",
    summary: "a time step of the obstacle problem without the obstacle, convection transformed away",
    dimensions: 3,
    parameters: &[
        Parameter { key: "eta", default: 0.2, summary: "diffusion, positive" },
        Parameter { key: "c", default: 1.1, summary: "reaction" },
        Parameter { key: "k", default: 0.0066, summary: "length of the time step, positive" },
        Parameter { key: "b1", default: 0.0, summary: "convection in x" },
        Parameter { key: "b2", default: 0.0, summary: "convection in y" },
        Parameter { key: "b3", default: 0.0, summary: "convection in z" },
    ],
    words: &[],
    presets: &[],
    check,
    build,
};

fn check(arguments: &Arguments) -> Result<()> {
    let [m, ny, nz] = arguments.size;
    if ny != m || nz != m {
        return Err(Error::input(format!("`obstacle`: {m}x{ny}x{nz} is no cube"))
            .hint("write one size, such as `obstacle:64`"));
    }
    check_seven_points(arguments)
}

fn build(arguments: &Arguments, piece: Piece) -> Result<Generated> {
    check(arguments)?;
    let m = arguments.size[0];
    let case = Case {
        m,
        eta: arguments.get("eta"),
        c: arguments.get("c"),
        time_step: arguments.get("k"),
        convection: ["b1", "b2", "b3"].map(|key| arguments.get(key).to_string()).join(":"),
        ..Case::default()
    };
    let problem = Problem::new(&case)?;
    let centre = problem.coefficients.centre;
    let off = -problem.coefficients.share * centre;
    let values = [off, off, off, centre, off, off, off];
    let force = |point: usize| problem.force([point % m, point / m % m, point / m / m]);
    let made = stencil::matrix(arguments.size, &SEVEN_POINT, piece, |_, k| values[k])?;
    let rhs = piece.of(m * m * m).map(force).collect();
    Ok(Generated { symmetric: true, rhs: Some(rhs), ..made })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::samples::refused;

    #[test]
    fn the_matrix_is_that_of_the_sweeps() {
        let arguments = GENERATOR.arguments("5,b1=1,b3=-2").unwrap();
        let made = build(&arguments, Piece::WHOLE).unwrap();
        let case = Case { m: 5, convection: "1:0:-2".into(), ..Case::default() };
        let problem = Problem::new(&case).unwrap();
        let (centre, share) = (problem.coefficients.centre, problem.coefficients.share);
        assert!((centre - (1.2 * 36.0 + 5.0 / 0.8 + 1.1 + 1.0 / 0.0066)).abs() < 1e-9);
        let (columns, values) = made.matrix.row(62);
        assert_eq!(columns, [37, 57, 61, 62, 63, 67, 87]);
        assert_eq!(values[3], centre);
        assert!(
            values.iter().enumerate().all(|(i, v)| i == 3 || (v / centre + share).abs() < 1e-16)
        );
        assert_eq!(made.rhs.unwrap()[62], problem.force([2, 2, 2]));
        let error = |text| refused(&GENERATOR, text);
        assert_eq!(error("4x5x6"), "`obstacle`: 4x5x6 is no cube");
        assert_eq!(error("4,k=-1"), "eta 0.2, c 1.1 and time-step -1 give no M-matrix");
    }
}
