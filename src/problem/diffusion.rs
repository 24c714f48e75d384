//! Diffusion `-div(kappa grad p) = f` with jumps: cell-centred finite volumes on a box of unit cells.

use super::convdiff3d::{CENTRE, SEVEN_POINT};
use super::generator::{Generated, Piece};
use super::splitmix::uniform;
use super::stencil;
use crate::base::error::{Error, Result};

/// What holds at the faces of the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Boundary {
    /// `p = 0` on all six.
    Dirichlet,
    /// `p = 0` on the face z = 0, no flow through the others.
    Top,
    /// No flow; the last diagonal entry is doubled, which fixes the constant and leaves the solution
    /// of a compatible right-hand side as it is (Tang and Vuik 2007).
    Fixed,
    /// No flow, and nothing else: the matrix is singular, its null space the constants.
    Neumann,
}

/// How boundaries are written.
const BOUNDARIES: [(&str, Boundary); 4] = [
    ("dirichlet", Boundary::Dirichlet),
    ("top", Boundary::Top),
    ("fixed", Boundary::Fixed),
    ("neumann", Boundary::Neumann),
];

impl Boundary {
    /// The boundary called `word`, for the generator `name`.
    pub(super) fn find(name: &str, word: &str) -> Result<Self> {
        let known = BOUNDARIES.map(|(name, _)| name);
        let found = BOUNDARIES.iter().find(|(name, _)| *name == word);
        found
            .map(|(_, boundary)| *boundary)
            .ok_or_else(|| Error::unknown(&format!("`boundary` of `{name}`"), word, &known))
    }
}

/// A box of cells, x fastest, and what is in them.
pub(super) struct Diffusion<'a> {
    pub(super) size: [usize; 3],
    /// Coefficient of a cell; zero where there is nothing to flow.
    pub(super) kappa: &'a (dyn Fn(usize) -> f64 + Sync),
    /// Factors of the coefficient in x, y and z.
    pub(super) along: [f64; 3],
    pub(super) boundary: Boundary,
    /// Added to the diagonal of each cell.
    pub(super) storage: f64,
}

/// Lower and upper neighbour of the seven points in x, y and z.
const NEIGHBOURS: [[usize; 2]; 3] = [[2, 4], [1, 5], [0, 6]];

impl Diffusion<'_> {
    /// The system: faces have the harmonic mean of their cells' coefficients, boundary faces twice the
    /// coefficient, being half a cell away. A cell without coefficient is an equation of its own with
    /// the diagonal 1. The right-hand side is `A x` for x uniform in [0, 1), drawn with `seed`.
    pub(super) fn assemble(&self, seed: u64, piece: Piece) -> Result<Generated> {
        let [nx, ny, nz] = self.size;
        let cells = nx * ny * nz;
        let (made, last) = (piece.of(cells), cells - 1);
        let near = made.start.saturating_sub(nx * ny)..(made.end + nx * ny).min(cells);
        let of_near: Vec<f64> = near.clone().map(self.kappa).collect();
        let cells = Cells { of: self, first: near.start, kappa: &of_near };
        let value = |cell: [usize; 3], k: usize| cells.value(cell, k, last);
        let made = stencil::matrix(self.size, &SEVEN_POINT, piece, value)?;
        // the product alone has to know x at all columns
        let of_row = |i: usize| {
            let (columns, values) = made.matrix.row(i);
            let x = |j: u32| uniform(seed, made.columns + j as usize);
            columns.iter().zip(values).map(|(&j, v)| v * x(j)).sum()
        };
        let rhs = (0..made.matrix.rows()).map(of_row).collect();
        Ok(Generated { symmetric: true, rhs: Some(rhs), ..made })
    }
}

/// The cells around a piece, with their coefficients from the cell `first` on.
struct Cells<'a> {
    of: &'a Diffusion<'a>,
    first: usize,
    kappa: &'a [f64],
}

impl Cells<'_> {
    /// Entry of a cell and its neighbour `k`.
    fn value(&self, cell: [usize; 3], k: usize, last: usize) -> f64 {
        if k != CENTRE {
            return -self.face(cell, k).unwrap_or(0.0);
        }
        if self.kappa(cell) == 0.0 {
            return 1.0;
        }
        let faces = NEIGHBOURS.iter().flatten().map(|&k| self.flow(cell, k));
        let sum = faces.sum::<f64>() + self.of.storage;
        let fixed = self.of.boundary == Boundary::Fixed && self.index(cell) == last;
        if fixed { 2.0 * sum } else { sum }
    }

    fn index(&self, [x, y, z]: [usize; 3]) -> usize {
        let [nx, ny, _] = self.of.size;
        x + nx * (y + ny * z)
    }

    fn kappa(&self, cell: [usize; 3]) -> f64 {
        self.kappa[self.index(cell) - self.first]
    }

    /// Coefficient of the face towards neighbour `k`; `None` where that is outside.
    fn face(&self, cell: [usize; 3], k: usize) -> Option<f64> {
        let mut other = cell;
        let mut factor = 0.0;
        for d in 0..3 {
            let step = SEVEN_POINT[k][d];
            if step != 0 {
                other[d] =
                    cell[d].checked_add_signed(step as isize).filter(|&c| c < self.of.size[d])?;
                factor = self.of.along[d];
            }
        }
        let (a, b) = (self.kappa(cell), self.kappa(other));
        Some(if a > 0.0 && b > 0.0 { factor * 2.0 / (1.0 / a + 1.0 / b) } else { 0.0 })
    }

    /// What the face towards neighbour `k` adds to the diagonal.
    fn flow(&self, cell: [usize; 3], k: usize) -> f64 {
        self.face(cell, k).unwrap_or_else(|| {
            let open = match self.of.boundary {
                Boundary::Dirichlet => true,
                Boundary::Top => k == NEIGHBOURS[2][0],
                Boundary::Fixed | Boundary::Neumann => false,
            };
            let axis = NEIGHBOURS.iter().position(|n| n.contains(&k)).expect("a neighbour");
            if open { 2.0 * self.of.along[axis] * self.kappa(cell) } else { 0.0 }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(boundary: Boundary) -> crate::matrix::Csr {
        let kappa = [1.0, 3.0, 1000.0, 0.0];
        let d = Diffusion {
            size: [2, 1, 2],
            kappa: &|cell| kappa[cell],
            along: [1.0, 1.0, 0.5],
            boundary,
            storage: 0.0,
        };
        d.assemble(1, Piece::WHOLE).unwrap().matrix
    }

    #[test]
    fn faces_have_harmonic_means() {
        let a = system(Boundary::Neumann);
        let (x, z) = (2.0 * 3.0 / 4.0, 0.5 * 2.0 / (1.0 + 1.0 / 1000.0));
        assert_eq!(a.row(0), (&[0, 1, 2][..], &[x + z, -x, -z][..]));
        // towards the cell without a coefficient nothing flows
        assert_eq!(a.row(3), (&[1, 2, 3][..], &[-0.0, -0.0, 1.0][..]));
        assert_eq!(a.get(1, 1), Some(x));
    }

    #[test]
    fn boundaries_are_what_they_are_called() {
        let diagonal = |b| (0..3).map(|i| system(b).get(i, i).unwrap()).collect::<Vec<_>>();
        let none = diagonal(Boundary::Neumann);
        let difference = |b| -> Vec<f64> {
            diagonal(b).iter().zip(&none).map(|(a, b)| (a - b).round()).collect()
        };
        // cells 0 and 1 have the face z = 0 with 2 * 0.5 kappa
        assert_eq!(difference(Boundary::Top), [1.0, 3.0, 0.0]);
        // two faces in y, one in x and one in z each
        assert_eq!(difference(Boundary::Dirichlet), [7.0, 21.0, 7000.0]);
        assert_eq!(difference(Boundary::Fixed), [0.0, 0.0, 0.0]);
        let message = Boundary::find("bubbly", "nuemann").unwrap_err().to_string();
        assert_eq!(message, "unknown `boundary` of `bubbly` `nuemann`");
    }
}
