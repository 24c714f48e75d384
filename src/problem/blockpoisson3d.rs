//! Species that diffuse across each other and react, on a box of cells: a block system.

use crate::base::choices::MAX_BLOCK_SIZE;
use crate::base::error::{Error, Result};

use super::convdiff3d::{CENTRE, LOWER, SEVEN_POINT};
use super::generator::{Arguments, Generated, Generator, Parameter, Piece};
use super::splitmix::{mix, uniform};
use super::stencil;

/// `-div(D grad u) + R u = f` for b species on NX x NY x NZ cells of unit size, 7-point finite
/// volumes with Dirichlet boundary; the species of a cell are consecutive, cells x fastest.
///
/// D is a matrix of Fick coefficients for each face, `D = kappa (I + C)`, and
/// `R = reaction (I + C)` for each cell: decay (or the `1/dt` of a time step) and conversion of
/// species into each other. C couples every species to every other: its diagonal is zero, its other
/// entries are uniform in `+-1 / (2 (b - 1))`, drawn anew for each face and each cell, and kappa is
/// uniform in `[1/2, 3/2)`. So blocks are dense and not symmetric, and no two are alike. The block
/// between two cells is `-D` of their face, the diagonal block `R` plus D of the six faces.
///
/// `I + C` has a symmetric part with eigenvalues of at least 1/2, therefore the matrix is positive
/// definite in the wider sense, `x' A x >= reaction / 2 |x|^2`, and no pivot of ILU is small.
pub(super) static GENERATOR: Generator = Generator {
    name: "blockpoisson3d",
    summary: "b species that diffuse across each other and react: 7-point cells, dense b x b blocks",
    dimensions: 3,
    parameters: &[
        Parameter { key: "b", default: 3.0, summary: "species, the unknowns of a cell, 1 to 128" },
        Parameter { key: "seed", default: 1.0, summary: "of the random values, 0 to 2^53" },
        Parameter { key: "reaction", default: 0.1, summary: "rate, positive" },
    ],
    words: &[],
    presets: &[],
    check: |arguments| {
        stencil::entries(arguments.size, &SEVEN_POINT, species(arguments)?).map(drop)
    },
    build,
};

fn species(arguments: &Arguments) -> Result<usize> {
    Ok(GENERATOR.whole(arguments, "b", 1, MAX_BLOCK_SIZE as u64)? as usize)
}

fn build(arguments: &Arguments, piece: Piece) -> Result<Generated> {
    let b = species(arguments)?;
    let seed = GENERATOR.whole(arguments, "seed", 0, 1 << 53)?;
    let reaction = arguments.get("reaction");
    if reaction <= 0.0 {
        return Err(Error::input(format!(
            "`blockpoisson3d`: `reaction={reaction}` must be positive"
        )));
    }
    let size = arguments.size;
    let coefficients = Coefficients { size, b, seed, reaction };
    let fill = |cell: [usize; 3], k: usize, block: &mut [f64]| coefficients.block(cell, k, block);
    let made = stencil::block_matrix(size, &SEVEN_POINT, b, piece, fill)?;
    Ok(Generated { symmetric: b == 1, ..made })
}

/// The random fields D and R.
struct Coefficients {
    size: [usize; 3],
    b: usize,
    seed: u64,
    reaction: f64,
}

impl Coefficients {
    /// Writes the block of `cell` with its neighbour number `k` of the seven points.
    fn block(&self, cell: [usize; 3], k: usize, block: &mut [f64]) {
        block.fill(0.0);
        if k == CENTRE {
            self.add(self.stream(cell, 3), self.reaction, block);
            for axis in 0..3 {
                self.add_face(cell, axis, 1.0, block);
                self.add_face(above(cell, axis), axis, 1.0, block);
            }
        } else if let Some(axis) = LOWER.iter().position(|&lower| lower == k) {
            self.add_face(cell, axis, -1.0, block);
        } else {
            let axis = k - CENTRE - 1;
            self.add_face(above(cell, axis), axis, -1.0, block);
        }
    }

    /// Adds `sign * D` of the face below `cell` in the direction `axis`.
    fn add_face(&self, cell: [usize; 3], axis: usize, sign: f64, block: &mut [f64]) {
        let stream = self.stream(cell, axis as u64);
        let kappa = 0.5 + uniform(stream, 0);
        self.add(stream, sign * kappa, block);
    }

    /// Adds `scale * (I + C)` with the C of a stream.
    fn add(&self, stream: u64, scale: f64, block: &mut [f64]) {
        let b = self.b;
        // b = 1 has no species to couple with
        let reach = scale / (b.max(2) - 1) as f64;
        for (e, v) in block.iter_mut().enumerate() {
            *v += if e % b == e / b { scale } else { reach * (uniform(stream, 1 + e) - 0.5) };
        }
    }

    /// The random numbers of a face (0 to 2, by its direction) or of the cell itself (3). There is
    /// one face more than cells in each direction.
    fn stream(&self, [x, y, z]: [usize; 3], kind: u64) -> u64 {
        let [nx, ny, _] = self.size;
        let place = (x + (nx + 1) * (y + (ny + 1) * z)) as u64;
        mix(mix(self.seed) ^ (4 * place + kind))
    }
}

/// The cell above in the direction `axis`, which may lie outside the grid.
fn above(mut cell: [usize; 3], axis: usize) -> [usize; 3] {
    cell[axis] += 1;
    cell
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Csr;
    use crate::problem::samples::{generated, refused};

    fn matrix(spec: &str) -> Csr {
        generated(&GENERATOR, spec).unwrap().matrix
    }

    fn error(spec: &str) -> String {
        refused(&GENERATOR, spec)
    }

    #[test]
    fn what_leaves_a_cell_enters_its_neighbour() {
        let a = matrix("3x4x2,b=3,seed=5");
        assert_eq!((a.rows(), a.nnz()), (72, 9 * (24 + 2 * (2 * 8 + 3 * 6 + 12))));
        for i in 0..24 {
            for j in (0..24).filter(|&j| j != i) {
                for (c, d) in [(0, 0), (0, 1), (1, 0), (2, 1)] {
                    assert_eq!(a.get(3 * i + c, 3 * j + d), a.get(3 * j + c, 3 * i + d));
                }
            }
        }
        // but the species are not coupled symmetrically
        assert_ne!(a.get(0, 1), a.get(1, 0));
    }

    #[test]
    fn an_inner_cell_keeps_only_its_reaction() {
        let a = matrix("3,b=2,reaction=0.25");
        let row_sum = |i: usize, d: usize| -> f64 {
            let (cols, values) = a.row(i);
            cols.iter().zip(values).filter(|(j, _)| **j as usize % 2 == d).map(|(_, v)| v).sum()
        };
        let centre = 2 * 13;
        assert!((row_sum(centre, 0) - 0.25).abs() < 1e-14);
        assert!((row_sum(centre + 1, 1) - 0.25).abs() < 1e-14);
        assert!(row_sum(centre, 1).abs() <= 0.125 && row_sum(centre, 1) != 0.0);
        // a corner also holds the faces to the boundary
        assert!(row_sum(0, 0) > 0.25 + 3.0 * 0.5);
    }

    #[test]
    fn the_seed_decides_the_values() {
        assert_eq!(matrix("2,b=4"), matrix("2,b=4,seed=1"));
        assert_ne!(matrix("2,b=4"), matrix("2,b=4,seed=2"));
        // one species: a symmetric matrix with variable coefficients
        let a = matrix("2x1x1,b=1");
        assert_eq!(a.get(0, 1), a.get(1, 0));
        assert!((-1.5..=-0.5).contains(&a.get(0, 1).unwrap()));
    }

    #[test]
    fn bad_arguments_are_named() {
        let whole = "is not a whole number from";
        assert_eq!(error("4,b=0"), format!("`blockpoisson3d`: `b=0` {whole} 1 to 128"));
        assert_eq!(error("4,b=2.5"), format!("`blockpoisson3d`: `b=2.5` {whole} 1 to 128"));
        assert_eq!(
            error("4,seed=-1"),
            format!("`blockpoisson3d`: `seed=-1` {whole} 0 to 9007199254740992")
        );
        assert_eq!(error("4,reaction=0"), "`blockpoisson3d`: `reaction=0` must be positive");
        assert_eq!(error("1600,b=2"), "8192000000 unknowns: the limit is 4294967295");
    }
}
