//! The vendor's triangular solves with factors that we computed.

use std::rc::Rc;

use cudarc::driver::CudaSlice;

use super::{DevicePattern, Diagonal, Handle, Triangle, TriangularSolve};
use crate::base::error::{Error, Result};
use crate::compute::Bytes;
use crate::matrix::pattern::{Pattern, PatternView};

/// Solves with L and with U' of `L D U'`, both with unit diagonals; the caller applies the inverse
/// diagonal blocks in between.
///
/// Layout of the two factors, columns increasing:
/// - Blocks of one: CSR of the strictly lower and the strictly upper entries. Solved by `SpSV`,
///   whose analysis depends on the values.
/// - Larger blocks: BSR, column by column, *with* an identity block on the diagonal, because bsrsv2
///   takes diagonal blocks apart: the last block of each row of L, the first of each row of U' (see
///   [`with_diagonal`]). Solved by bsrsv2.
pub struct SolveWithOurFactors {
    lower: Factor,
    upper: Factor,
}

/// One triangle: its pattern, its values once they have come, and its solver.
struct Factor {
    pattern: Rc<DevicePattern>,
    values: Option<Rc<CudaSlice<f64>>>,
    solver: TriangularSolve,
    handle: Rc<Handle>,
}

impl SolveWithOurFactors {
    /// Copies the patterns of L and U' to the device.
    ///
    /// # Errors
    /// When a pattern is not laid out as documented, or the device has no room.
    pub fn new(
        handle: &Rc<Handle>,
        block_size: usize,
        lower: PatternView<'_>,
        upper: PatternView<'_>,
    ) -> Result<Self> {
        Ok(Self {
            lower: Factor::new(handle, block_size, lower, Triangle::Lower)?,
            upper: Factor::new(handle, block_size, upper, Triangle::Upper)?,
        })
    }

    /// Takes the values of both factors and keeps them, and analyses: bsrsv2 on the first call,
    /// `SpSV` on the first call and by an update of its values on later ones. Not to be taken for
    /// asynchronous.
    ///
    /// # Panics
    /// If there are fewer values than the patterns have places.
    pub fn analyse(
        &mut self,
        lower: impl Into<Rc<CudaSlice<f64>>>,
        upper: impl Into<Rc<CudaSlice<f64>>>,
    ) -> Result<()> {
        self.lower.take(lower.into())?;
        self.upper.take(upper.into())
    }

    /// Takes the faster policy of bsrsv2 for each factor, measured on its values; waits. `SpSV` has
    /// no choice.
    ///
    /// # Panics
    /// Before [`analyse`](Self::analyse).
    pub fn choose(&mut self) -> Result<()> {
        self.lower.choose()?;
        self.upper.choose()
    }

    /// Solves `L y = x`. Asynchronous.
    ///
    /// # Panics
    /// Before [`analyse`](Self::analyse), or if a vector is shorter than the matrix.
    pub fn solve_lower(&self, x: &CudaSlice<f64>, y: &mut CudaSlice<f64>) -> Result<()> {
        self.lower.solve(x, y)
    }

    /// Solves `U' y = x`. Asynchronous.
    ///
    /// # Panics
    /// Before [`analyse`](Self::analyse), or if a vector is shorter than the matrix.
    pub fn solve_upper(&self, x: &CudaSlice<f64>, y: &mut CudaSlice<f64>) -> Result<()> {
        self.upper.solve(x, y)
    }

    /// The functions in use and their policies.
    pub fn name(&self) -> String {
        format!("L {}, U {}", self.lower.solver.name(), self.upper.solver.name())
    }

    /// Bytes held on the device, and bytes that a solve with each factor moves at least: the
    /// factors once and four passes over vectors. The caller's diagonal is not counted.
    pub fn bytes(&self) -> Bytes {
        [&self.lower, &self.upper].into_iter().fold(Bytes::default(), |sum, factor| {
            let matrix = factor.pattern.bytes() + 8 * factor.pattern.numbers();
            Bytes {
                held: sum.held + matrix + factor.solver.workspace_bytes(),
                moved: sum.moved + matrix + 16 * factor.pattern.unknowns(),
            }
        })
    }
}

impl Factor {
    fn new(
        handle: &Rc<Handle>,
        block_size: usize,
        pattern: PatternView<'_>,
        triangle: Triangle,
    ) -> Result<Self> {
        let device = DevicePattern::new(handle, block_size, pattern)?;
        check_layout(block_size, pattern, triangle)?;
        let solver = TriangularSolve::new(handle, &device, triangle, Diagonal::Unit)?;
        Ok(Self { pattern: device, values: None, solver, handle: Rc::clone(handle) })
    }

    fn take(&mut self, values: Rc<CudaSlice<f64>>) -> Result<()> {
        self.pattern.assert_values(&values);
        if self.values.is_none() {
            self.solver.analyse_pattern(&values)?;
        }
        self.solver.take_values(&values)?;
        self.values = Some(values);
        Ok(())
    }

    fn values(&self) -> &CudaSlice<f64> {
        self.values.as_deref().expect("values come before solves")
    }

    fn choose(&mut self) -> Result<()> {
        let x = self.handle.zeros(self.pattern.unknowns())?;
        let mut y = self.handle.zeros(self.pattern.unknowns())?;
        let values = self.values.as_ref().expect("values come before solves");
        self.solver.choose(values, &x, &mut y)
    }

    fn solve(&self, x: &CudaSlice<f64>, y: &mut CudaSlice<f64>) -> Result<()> {
        self.solver.solve(self.values(), x, y)
    }
}

/// An error unless `pattern` is the triangle that [`SolveWithOurFactors`] documents.
fn check_layout(block_size: usize, pattern: PatternView<'_>, triangle: Triangle) -> Result<()> {
    for i in 0..pattern.row_ptr.len() - 1 {
        let row = pattern.row(i);
        let (outermost, inside): (_, fn(u32, u32) -> bool) = match triangle {
            Triangle::Lower => (row.last(), |j, i| j < i),
            Triangle::Upper => (row.first(), |j, i| j > i),
        };
        let fits = if block_size == 1 {
            outermost.is_none_or(|&j| inside(j, i as u32))
        } else {
            outermost == Some(&(i as u32))
        };
        if !fits {
            let wanted = match (block_size, triangle) {
                (1, Triangle::Lower) => "lie below the diagonal",
                (1, Triangle::Upper) => "lie above the diagonal",
                (_, Triangle::Lower) => "end with its diagonal block",
                (_, Triangle::Upper) => "begin with its diagonal block",
            };
            return Err(Error::run(format!("factor for cuSPARSE: row {i} must {wanted}")));
        }
    }
    Ok(())
}

/// A strict triangle with its diagonal blocks put in: last in the rows of a lower triangle, first
/// in those of an upper one.
pub fn with_diagonal(strict: PatternView<'_>, triangle: Triangle) -> Pattern<'static> {
    let rows = strict.row_ptr.len() - 1;
    let mut col_ind = Vec::with_capacity(strict.entries() + rows);
    for i in 0..rows {
        if triangle == Triangle::Upper {
            col_ind.push(i as u32);
        }
        col_ind.extend_from_slice(strict.row(i));
        if triangle == Triangle::Lower {
            col_ind.push(i as u32);
        }
    }
    // each row before has grown by one
    let row_ptr = (0..).zip(strict.row_ptr).map(|(i, start)| start + i).collect::<Vec<u32>>();
    Pattern::new(row_ptr, col_ind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRICT: PatternView<'static> = PatternView::new(&[0, 0, 1, 3], &[0, 0, 1]);

    #[test]
    fn diagonal_blocks_go_where_bsrsv2_wants_them() {
        let lower = with_diagonal(STRICT, Triangle::Lower);
        assert_eq!(*lower.row_ptr, [0, 1, 3, 6]);
        assert_eq!(*lower.col_ind, [0, 0, 1, 0, 1, 2]);
        let upper = PatternView::new(&[0, 2, 3, 3], &[1, 2, 2]);
        let upper = with_diagonal(upper, Triangle::Upper);
        assert_eq!(*upper.row_ptr, [0, 3, 5, 6]);
        assert_eq!(*upper.col_ind, [0, 1, 2, 1, 2, 2]);
        assert_eq!(check_layout(2, lower.view(), Triangle::Lower), Ok(()));
        assert_eq!(check_layout(2, upper.view(), Triangle::Upper), Ok(()));
    }

    #[test]
    fn other_layouts_are_refused() {
        assert_eq!(check_layout(1, STRICT, Triangle::Lower), Ok(()));
        let refused = |b, triangle| check_layout(b, STRICT, triangle).unwrap_err().to_string();
        let at = "factor for cuSPARSE: row";
        assert_eq!(refused(2, Triangle::Lower), format!("{at} 0 must end with its diagonal block"));
        assert_eq!(
            refused(2, Triangle::Upper),
            format!("{at} 0 must begin with its diagonal block")
        );
        assert_eq!(refused(1, Triangle::Upper), format!("{at} 1 must lie above the diagonal"));
    }
}
