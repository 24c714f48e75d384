//! The numbers of block ILU factors on the CPU, in the precision of their storage.

use super::adaptive::Adaptive;
use super::entry::{Entry, lengthen, shorten, widen};
use super::narrow::{Bfloat16, Float16, Short};
use super::parts::{Blocks, places};
use crate::base::choices::FactorPrecision;
use crate::base::memory::Buffer;
use crate::base::threads::Threads;
use crate::compute::Breakdown;
use crate::symbolic::FillPattern;

/// Blocks of 16 bits with the scales of their rows.
pub(super) struct Scaled<T> {
    pub(super) blocks: Blocks<T>,
    /// One of each scalar row of L, of D^-1 and of U', all in the order of rows.
    pub(super) scales: Blocks<u16>,
}

/// The factors as the solves read them.
pub(super) enum Values {
    Double(Blocks<f64>),
    Single(Blocks<f32>),
    Bfloat16(Scaled<Bfloat16>),
    Float16(Scaled<Float16>),
    Adaptive(Adaptive),
}

impl Values {
    pub(super) fn zeros(pattern: &FillPattern, precision: FactorPrecision) -> Self {
        match precision {
            FactorPrecision::Float64 => Self::Double(Blocks::zeros(pattern)),
            FactorPrecision::Float32 => Self::Single(Blocks::zeros(pattern)),
            FactorPrecision::Bfloat16 => Self::Bfloat16(Scaled::zeros(pattern)),
            FactorPrecision::Float16 => Self::Float16(Scaled::zeros(pattern)),
            FactorPrecision::Adaptive => Self::Adaptive(Adaptive::default()),
        }
    }

    /// Bytes of numbers and what belongs to them; of [`Adaptive`](Self::Adaptive) known once there are values.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Double(blocks) => blocks.bytes(),
            Self::Single(blocks) => blocks.bytes(),
            Self::Bfloat16(scaled) => scaled.blocks.bytes() + scaled.scales.bytes(),
            Self::Float16(scaled) => scaled.blocks.bytes() + scaled.scales.bytes(),
            Self::Adaptive(rows) => rows.bytes(),
        }
    }

    /// Parts of the blocks in each precision, where blocks differ.
    pub(super) fn shares(&self) -> Option<String> {
        if let Self::Adaptive(rows) = self { Some(rows.shares()) } else { None }
    }

    /// Takes over factors made in float64, with all threads when `parallel`. Nothing to do where they were made
    /// in place.
    ///
    /// # Errors
    /// The first block row with a number beyond float32, where all are stored in that, or with a row of its inverse
    /// diagonal block of which nothing would be left. Scaled numbers have no such row.
    pub(super) fn store(
        &mut self,
        from: &Blocks<f64>,
        pattern: &FillPattern,
        parallel: bool,
    ) -> Result<(), Breakdown> {
        match self {
            Self::Double(_) => {}
            Self::Single(blocks) => return blocks.round(from, pattern, parallel),
            Self::Bfloat16(scaled) => scaled.round(from, pattern),
            Self::Float16(scaled) => scaled.round(from, pattern),
            Self::Adaptive(rows) => *rows = Adaptive::of(from, pattern, parallel),
        }
        Ok(())
    }

    /// Whether block row `row` is one that [`store`](Self::store) may report.
    pub(super) fn lost(&self, pattern: &FillPattern, row: usize) -> bool {
        matches!(self, Self::Single(blocks) if blocks.lost(pattern, row))
    }

    /// Calls `then` with the numbers in float64.
    pub(super) fn in_float64<R>(
        &self,
        pattern: &FillPattern,
        then: impl FnOnce(&Blocks<f64>) -> R,
    ) -> R {
        let mut wide = match self {
            Self::Double(blocks) => return then(blocks),
            _ => Blocks::zeros(pattern),
        };
        match self {
            Self::Double(_) => {}
            Self::Single(blocks) => {
                widen(&blocks.lower, &mut wide.lower);
                widen(&blocks.inverse_diagonal, &mut wide.inverse_diagonal);
                widen(&blocks.upper, &mut wide.upper);
            }
            Self::Bfloat16(scaled) => scaled.widen(pattern, &mut wide),
            Self::Float16(scaled) => scaled.widen(pattern, &mut wide),
            Self::Adaptive(rows) => rows.widen(pattern, &mut wide),
        }
        then(&wide)
    }
}

impl<T: Entry + Short> Scaled<T> {
    fn zeros(pattern: &FillPattern) -> Self {
        let rows = || Buffer::zeros(pattern.rows() * pattern.block_size());
        let scales = Blocks { lower: rows(), inverse_diagonal: rows(), upper: rows() };
        Self { blocks: Blocks::zeros(pattern), scales }
    }

    fn round(&mut self, from: &Blocks<f64>, pattern: &FillPattern) {
        let (b, Self { blocks: to, scales }) = (pattern.block_size(), self);
        for row in 0..pattern.rows() {
            let [lower, diagonal, upper] = places(pattern, row);
            let of = row * b..(row + 1) * b;
            let l = lower.clone();
            shorten(&from.lower[l], b, &mut to.lower[lower], &mut scales.lower[of.clone()]);
            let (d, scales_d) = (diagonal.clone(), &mut scales.inverse_diagonal[of.clone()]);
            shorten(&from.inverse_diagonal[d], b, &mut to.inverse_diagonal[diagonal], scales_d);
            let u = upper.clone();
            shorten(&from.upper[u], b, &mut to.upper[upper], &mut scales.upper[of]);
        }
    }

    fn widen(&self, pattern: &FillPattern, to: &mut Blocks<f64>) {
        let (b, Self { blocks: from, scales }) = (pattern.block_size(), self);
        for row in 0..pattern.rows() {
            let [lower, diagonal, upper] = places(pattern, row);
            let of = row * b..(row + 1) * b;
            let l = lower.clone();
            lengthen(&from.lower[l], &scales.lower[of.clone()], &mut to.lower[lower]);
            let (d, scales_d) = (diagonal.clone(), &scales.inverse_diagonal[of.clone()]);
            lengthen(&from.inverse_diagonal[d], scales_d, &mut to.inverse_diagonal[diagonal]);
            let u = upper.clone();
            lengthen(&from.upper[u], &scales.upper[of], &mut to.upper[upper]);
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
    fn round(
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
    fn lost(&self, pattern: &FillPattern, row: usize) -> bool {
        let finite = |values: &[f32]| values.iter().all(|v| v.is_finite());
        let [lower, diagonal, upper] = places(pattern, row);
        let all = finite(&self.lower[lower])
            && finite(&self.inverse_diagonal[diagonal])
            && finite(&self.upper[upper]);
        !all || self.vanished(pattern.block_size(), row)
    }
}

/// Rounds all numbers; the place of the first, or last, that is not finite in float32.
fn round(from: &[f64], to: &mut [f32], parallel: bool, last: bool) -> Option<usize> {
    let part = |n: usize, to: &mut [f32]| {
        let mut finite = true;
        for (to, &from) in to.iter_mut().zip(&from[n * PART..]) {
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
    Threads::when(parallel).chunks(to, PART, 1, part).into_iter().fold(None, better)
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
        let pattern = FillPattern::new(
            part(&[0, 0, 1, 2], &[0, 0]),
            part(&[0, 1, 2, 2], &[2, 2]),
            Vec::new(),
        );
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
