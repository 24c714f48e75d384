//! The numbers of block ILU factors on the CPU, in float64 or float32.

use std::ops::Range;

use bytemuck::Pod;
use rayon::prelude::*;

use super::simd::Simd;
use crate::base::choices::FactorPrecision;
use crate::base::memory::Buffer;
use crate::compute::Breakdown;
use crate::symbolic::FillPattern;

/// A stored number; arithmetic is in float64.
pub(crate) trait Entry: Pod + Send + Sync {
    /// The number in float64.
    fn wide(self) -> f64;
    /// First `N` of `x`, the other lanes being zero.
    fn load4<S: Simd, const N: usize>(s: S, x: &[Self]) -> S::F4;
    /// The same for eight lanes.
    fn load8<S: Simd, const N: usize>(s: S, x: &[Self]) -> S::F8;
}

impl Entry for f64 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
    #[inline(always)]
    fn load4<S: Simd, const N: usize>(s: S, x: &[Self]) -> S::F4 {
        s.load4::<N>(x)
    }
    #[inline(always)]
    fn load8<S: Simd, const N: usize>(s: S, x: &[Self]) -> S::F8 {
        s.load8::<N>(x)
    }
}

impl Entry for f32 {
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn load4<S: Simd, const N: usize>(s: S, x: &[Self]) -> S::F4 {
        s.widen4::<N>(x)
    }
    #[inline(always)]
    fn load8<S: Simd, const N: usize>(s: S, x: &[Self]) -> S::F8 {
        s.widen8::<N>(x)
    }
}

/// Blocks of L, of D^-1 and of U', which is in the opposite order.
pub(super) struct Blocks<T> {
    pub(super) lower: Buffer<T>,
    pub(super) inverse_diagonal: Buffer<T>,
    pub(super) upper: Buffer<T>,
}

impl<T: Pod> Blocks<T> {
    /// Zeros for all blocks of `pattern`.
    pub(super) fn zeros(pattern: &FillPattern) -> Self {
        let bb = pattern.block_size() * pattern.block_size();
        Self {
            lower: Buffer::zeros(pattern.lower.entries() * bb),
            inverse_diagonal: Buffer::zeros(pattern.rows() * bb),
            upper: Buffer::zeros(pattern.upper.entries() * bb),
        }
    }
}

/// The factors as the solves read them.
pub(super) enum Values {
    Double(Blocks<f64>),
    Single(Blocks<f32>),
}

impl Values {
    pub(super) fn zeros(pattern: &FillPattern, precision: FactorPrecision) -> Self {
        match precision {
            FactorPrecision::Float64 => Self::Double(Blocks::zeros(pattern)),
            FactorPrecision::Float32 => Self::Single(Blocks::zeros(pattern)),
        }
    }

    pub(super) fn precision(&self) -> FactorPrecision {
        match self {
            Self::Double(_) => FactorPrecision::Float64,
            Self::Single(_) => FactorPrecision::Float32,
        }
    }
}

/// Numbers that one task converts.
const PART: usize = 1 << 16;

impl Blocks<f32> {
    /// Rounds `from`, with all threads when `parallel`.
    ///
    /// # Errors
    /// The first block row with a number beyond float32, or with a row of its inverse diagonal block
    /// of which nothing would be left.
    pub(super) fn round(
        &mut self,
        from: &Blocks<f64>,
        pattern: &FillPattern,
        parallel: bool,
    ) -> Result<(), Breakdown> {
        let block_size = pattern.block_size();
        let bb = block_size * block_size;
        let lower = round(&from.lower, &mut self.lower, parallel, false)
            .map(|at| pattern.lower.row_of(at / bb));
        // from the end: the first row is the last of the array
        let upper = round(&from.upper, &mut self.upper, parallel, true)
            .map(|at| pattern.upper.row_of(pattern.upper.entries() - 1 - at / bb));
        let diagonal = round(&from.inverse_diagonal, &mut self.inverse_diagonal, parallel, false)
            .map(|at| at / bb);
        let vanished = (0..pattern.rows()).find(|&row| self.vanished(block_size, row));
        let first = [lower, upper, diagonal, vanished].into_iter().flatten().min();
        first.map_or(Ok(()), |row| Err(Breakdown::Range { row }))
    }

    /// Whether a row of the inverse diagonal block of block row `row` has nothing left.
    fn vanished(&self, b: usize, row: usize) -> bool {
        let block = &self.inverse_diagonal[row * b * b..(row + 1) * b * b];
        (0..b).any(|r| {
            let row = block[r..].iter().step_by(b);
            row.fold(0.0, |m: f32, v| m.max(v.abs())) < f32::MIN_POSITIVE
        })
    }

    /// Whether block row `row` is one that [`round`](Self::round) may report.
    pub(super) fn lost(&self, pattern: &FillPattern, row: usize) -> bool {
        let (b, upper) = (pattern.block_size(), pattern.upper.view());
        let bb = b * b;
        let finite = |values: &[f32], of: Range<usize>| {
            values[of.start * bb..of.end * bb].iter().all(|v| v.is_finite())
        };
        let (of_upper, entries) = (upper.range(row), upper.entries());
        let all = finite(&self.lower, pattern.lower.view().range(row))
            && finite(&self.inverse_diagonal, row..row + 1)
            && finite(&self.upper, entries - of_upper.end..entries - of_upper.start);
        !all || self.vanished(b, row)
    }
}

/// Rounds all numbers; the place of the first, or last, that is not finite in float32.
fn round(from: &[f64], to: &mut [f32], parallel: bool, last: bool) -> Option<usize> {
    let part = |(n, (to, from)): (usize, (&mut [f32], &[f64]))| {
        let mut finite = true;
        for (to, &from) in to.iter_mut().zip(from) {
            *to = from as f32;
            finite &= to.is_finite();
        }
        let beyond = |v: &f32| !v.is_finite();
        let at = if last { to.iter().rposition(beyond) } else { to.iter().position(beyond) };
        at.filter(|_| !finite).map(|at| n * PART + at)
    };
    let better = |a: Option<usize>, b: Option<usize>| match (a, b) {
        (Some(a), Some(b)) => Some(if last { a.max(b) } else { a.min(b) }),
        (a, b) => a.or(b),
    };
    if parallel {
        let parts = to.par_chunks_mut(PART).zip(from.par_chunks(PART)).enumerate();
        parts.map(part).reduce(|| None, better)
    } else {
        let parts = to.chunks_mut(PART).zip(from.chunks(PART)).enumerate();
        parts.map(part).fold(None, better)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_or_the_last_number_beyond_is_found() {
        let mut from = vec![1.0; 3 * PART + 5];
        let mut to = vec![0.0; from.len()];
        for parallel in [false, true] {
            assert_eq!(round(&from, &mut to, parallel, false), None);
            assert!(to.iter().all(|&v| v == 1.0));
        }
        from[PART + 7] = 1e39;
        from[2 * PART + 1] = -1e39;
        for parallel in [false, true] {
            assert_eq!(round(&from, &mut to, parallel, false), Some(PART + 7));
            assert_eq!(round(&from, &mut to, parallel, true), Some(2 * PART + 1));
        }
    }

    #[test]
    fn numbers_out_of_range_name_their_row() {
        // three rows of blocks of two: L has (1, 0) and (2, 0), U' (0, 2) and (1, 2)
        let part = |row_ptr: &[u32], col_ind: &[u32]| {
            let part = crate::matrix::pattern::Pattern::new(row_ptr.to_vec(), col_ind.to_vec());
            part.in_blocks(2)
        };
        let pattern = FillPattern {
            lower: part(&[0, 0, 1, 2], &[0, 0]),
            upper: part(&[0, 1, 2, 2], &[2, 2]),
            no_diagonal: Vec::new(),
        };
        let rounded = |change: fn(&mut Blocks<f64>)| {
            let mut blocks = Blocks::<f64>::zeros(&pattern);
            blocks.inverse_diagonal.chunks_exact_mut(4).for_each(|d| (d[0], d[3]) = (1.0, 1.0));
            change(&mut blocks);
            let mut stored = Blocks::<f32>::zeros(&pattern);
            let done = stored.round(&blocks, &pattern, false);
            let lost = (0..3).find(|&row| stored.lost(&pattern, row));
            assert_eq!(done.err(), lost.map(|row| Breakdown::Range { row }));
            done
        };
        let beyond = |row| Err(Breakdown::Range { row });
        assert_eq!(rounded(|_| ()), Ok(()));
        assert_eq!(rounded(|f| f.lower[5] = 1e39), beyond(2));
        assert_eq!(rounded(|f| f.upper[1] = f64::NAN), beyond(1));
        assert_eq!(rounded(|f| (f.upper[1], f.upper[6]) = (1e39, -1e39)), beyond(0));
        assert_eq!(rounded(|f| f.inverse_diagonal[9] = 1e300), beyond(2));
        // small numbers may vanish, a row of the inverse may not
        assert_eq!(rounded(|f| f.lower[0] = 1e-300), Ok(()));
        assert_eq!(rounded(|f| f.inverse_diagonal[7] = 1e-39), beyond(1));
        assert_eq!(
            beyond(1).map_err(|e: Breakdown| e.to_string()),
            Err::<(), _>("block row 1 of the factors leaves the range of float32".to_owned())
        );
    }
}
