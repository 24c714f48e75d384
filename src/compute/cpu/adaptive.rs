//! Factors whose rows are stored in the lowest precision that their condition allows, after Anzt, Dongarra, Flegar,
//! Higham and Quintana-Orti (2019), who do so for the blocks of block Jacobi.
//!
//! To round `D_i^-1` by the unit roundoff u changes `D_i` by up to `cond(D_i) u`, and so it does with `A_ij` when
//! `U'_ij = D_i^-1 A_ij` is rounded, or `A_ji` when `L_ji = A_ji D_i^-1` is. `D_i^-1` and the row of U' go by
//! `cond(D_i)`, a row of L by the largest condition number of its columns.

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::block::invert_block;
use super::entry::{Entry, lengthen, scale, scale_for, shorten};
use super::narrow::Float16;
use super::parts::{Blocks, places};
use crate::base::threads::Threads;
use crate::symbolic::FillPattern;

/// Largest part by which rounding may change a block: one digit is left.
const THRESHOLD: f64 = 0.1;

/// Half the spacing of numbers at 1 in float16 and float32.
const ROUNDOFF_16: f64 = 1.0 / 2048.0;
const ROUNDOFF_32: f64 = 1.0 / 16_777_216.0;

/// In what a row is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// float16 with a scale for each scalar row.
    Half = 0,
    /// float32, without scales.
    Single = 1,
    /// float64.
    Double = 2,
}

/// Names of the kinds, in their order.
const NAMES: [&str; 3] = ["float16", "float32", "float64"];

impl Kind {
    /// The lowest that the condition number of a block allows.
    pub(super) fn for_condition(condition: f64) -> Self {
        if condition * ROUNDOFF_16 <= THRESHOLD {
            Self::Half
        } else if condition * ROUNDOFF_32 <= THRESHOLD {
            Self::Single
        } else {
            Self::Double
        }
    }

    /// This one, or float64 where float32 does not hold the numbers.
    fn for_range<'a>(self, numbers: impl IntoIterator<Item = &'a f64>) -> Self {
        let held = |v: &f64| {
            let single = (*v as f32).abs();
            *v == 0.0 || single.is_finite() && single >= f32::MIN_POSITIVE
        };
        if self == Self::Single && !numbers.into_iter().all(held) { Self::Double } else { self }
    }

    /// Words of 8 bytes for `numbers` numbers and `scales` scales.
    fn words(self, numbers: usize, scales: usize) -> usize {
        match self {
            Self::Half => (2 * (numbers + scales)).div_ceil(8),
            Self::Single => (4 * numbers).div_ceil(8),
            Self::Double => numbers,
        }
    }
}

/// The condition number, in the 1-norm, of a block of `b x b` after its rows are scaled by powers of two as stored
/// ones are: without the units of its unknowns, which rounding does not see. Infinite where it cannot be inverted.
pub(super) fn condition(block: &[f64], b: usize) -> f64 {
    if b == 1 {
        return 1.0;
    }
    let mut scaled = block.to_vec();
    for r in 0..b {
        let most = block[r..].iter().step_by(b).fold(0.0, |m: f64, v| m.max(v.abs()));
        let inverse = 1.0 / scale(scale_for(most));
        scaled[r..].iter_mut().step_by(b).for_each(|v| *v *= inverse);
    }
    let norm = |of: &[f64]| {
        let columns = of.chunks_exact(b).map(|column| column.iter().map(|v| v.abs()).sum());
        columns.fold(0.0, f64::max)
    };
    let own = norm(&scaled);
    match invert_block(&mut scaled, b) {
        Ok(()) => own * norm(&scaled),
        Err(_) => f64::INFINITY,
    }
}

/// Rows of one sweep, one behind the other in words of 8 bytes.
#[derive(Default)]
pub(super) struct Rows {
    /// Where each row begins, in words, times 4, plus its kind.
    places: Vec<u32>,
    words: Vec<u64>,
}

/// Words that a place can name.
const MOST_WORDS: usize = 1 << 30;

/// Whether places can name all rows of factors on `pattern`, also where each is in float64.
pub(super) fn addressable(pattern: &FillPattern) -> bool {
    pattern.numbers() + pattern.rows() * pattern.block_size() < MOST_WORDS
}

impl Rows {
    /// Kind of row `row`, and all words from its first on.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> (Kind, &[u64]) {
        let place = self.places[row];
        let kind = match place % 4 {
            0 => Kind::Half,
            1 => Kind::Single,
            _ => Kind::Double,
        };
        (kind, &self.words[(place / 4) as usize..])
    }

    fn bytes(&self) -> usize {
        4 * self.places.len() + 8 * self.words.len()
    }

    /// Places for rows of the given kinds and numbers of words, in the order of `rows`.
    fn laid_out(
        count: usize,
        rows: impl Iterator<Item = usize>,
        of: impl Fn(usize) -> (Kind, usize),
    ) -> Self {
        let (mut places, mut end) = (vec![0; count], 0);
        for row in rows {
            let (kind, words) = of(row);
            places[row] = (end as u32) << 2 | kind as u32;
            end += words;
        }
        assert!(end <= MOST_WORDS, "refused before");
        Self { places, words: vec![0; end] }
    }

    /// Stores the numbers of a row, part by part.
    fn store(&mut self, row: usize, parts: &[&[f64]], b: usize) {
        let (kind, at) = (self.places[row] % 4, (self.places[row] / 4) as usize);
        let words = &mut self.words[at..];
        if kind == Kind::Half as u32 {
            let (scales, mut numbers) =
                cast_slice_mut::<u64, u16>(words).split_at_mut(b * parts.len());
            for (part, scales) in parts.iter().zip(scales.chunks_exact_mut(b)) {
                let (to, behind) = numbers.split_at_mut(part.len());
                shorten::<Float16>(part, b, cast_slice_mut(to), scales);
                numbers = behind;
            }
            return;
        }
        let numbers = parts.iter().copied().flatten();
        if kind == Kind::Single as u32 {
            let to = cast_slice_mut::<u64, f32>(words);
            to.iter_mut().zip(numbers).for_each(|(to, &v)| *to = v as f32);
        } else {
            let to = cast_slice_mut::<u64, f64>(words);
            to.iter_mut().zip(numbers).for_each(|(to, &v)| *to = v);
        }
    }

    /// The numbers of a row in float64, part by part.
    fn widen(&self, row: usize, parts: &mut [&mut [f64]], b: usize) {
        fn plain<T: Entry>(words: &[u64], parts: &mut [&mut [f64]]) {
            let to = parts.iter_mut().flat_map(|part| part.iter_mut());
            to.zip(cast_slice::<u64, T>(words)).for_each(|(to, v)| *to = v.wide());
        }
        match self.row(row) {
            (Kind::Half, words) => {
                let (scales, mut numbers) = scales_first::<Float16>(words, b * parts.len());
                for (part, scales) in parts.iter_mut().zip(scales.chunks_exact(b)) {
                    let (from, behind) = numbers.split_at(part.len());
                    lengthen(from, scales, part);
                    numbers = behind;
                }
            }
            (Kind::Single, words) => plain::<f32>(words, parts),
            (Kind::Double, words) => plain::<f64>(words, parts),
        }
    }
}

/// The first `scales` numbers of 16 bits, and what follows them.
#[inline(always)]
pub(super) fn scales_first<T: Pod>(words: &[u64], scales: usize) -> (&[u16], &[T]) {
    let (scales, numbers) = cast_slice::<u64, u16>(words).split_at(scales);
    (scales, cast_slice(numbers))
}

/// L in the order of rows, D^-1 with U' in the opposite order, each row in its own precision.
#[derive(Default)]
pub(super) struct Adaptive {
    pub(super) lower: Rows,
    pub(super) upper: Rows,
    /// Blocks of each [`Kind`].
    blocks: [usize; 3],
}

impl Adaptive {
    /// Takes over factors made in float64, with all threads when `parallel`.
    pub(super) fn of(from: &Blocks<f64>, pattern: &FillPattern, parallel: bool) -> Self {
        let (b, rows) = (pattern.block_size(), pattern.rows());
        let bb = b * b;
        let condition_of = |row: usize| condition(&from.inverse_diagonal[row * bb..][..bb], b);
        let conditions: Vec<f64> = Threads::when(parallel).map(rows, 1, condition_of);
        let mut blocks = [0; 3];
        let mut kinds = [vec![Kind::Half; rows], vec![Kind::Half; rows]];
        for row in 0..rows {
            let [lower, diagonal, upper] = places(pattern, row);
            let columns = pattern.lower.row(row).iter().map(|&j| conditions[j as usize]);
            let numbers = from.inverse_diagonal[diagonal].iter().chain(&from.upper[upper]);
            kinds[0][row] = Kind::for_condition(columns.fold(1.0, f64::max))
                .for_range(&from.lower[lower.clone()]);
            kinds[1][row] = Kind::for_condition(conditions[row]).for_range(numbers);
            blocks[kinds[0][row] as usize] += lower.len() / bb;
            blocks[kinds[1][row] as usize] += 1 + pattern.upper.row(row).len();
        }
        let mut lower = Rows::laid_out(rows, 0..rows, |row| {
            let kind = kinds[0][row];
            (kind, kind.words(pattern.lower.row(row).len() * bb, b))
        });
        let mut upper = Rows::laid_out(rows, (0..rows).rev(), |row| {
            let kind = kinds[1][row];
            (kind, kind.words((1 + pattern.upper.row(row).len()) * bb, 2 * b))
        });
        for row in 0..rows {
            let [l, d, u] = places(pattern, row);
            lower.store(row, &[&from.lower[l]], b);
            upper.store(row, &[&from.inverse_diagonal[d], &from.upper[u]], b);
        }
        Self { lower, upper, blocks }
    }

    pub(super) fn bytes(&self) -> usize {
        self.lower.bytes() + self.upper.bytes()
    }

    /// Parts of the blocks in each precision, where there are any: `float16 0.75, float32 0.25`.
    pub(super) fn shares(&self) -> String {
        let all = self.blocks.iter().sum::<usize>().max(1) as f64;
        let of = self.blocks.iter().zip(NAMES).filter(|(count, _)| **count > 0);
        let of = of.map(|(&count, name)| format!("{name} {:.4}", count as f64 / all));
        of.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn widen(&self, pattern: &FillPattern, to: &mut Blocks<f64>) {
        let b = pattern.block_size();
        for row in 0..pattern.rows() {
            let [l, d, u] = places(pattern, row);
            self.lower.widen(row, &mut [&mut to.lower[l]], b);
            let parts = &mut [&mut to.inverse_diagonal[d], &mut to.upper[u]];
            self.upper.widen(row, parts, b);
        }
    }
}
