//! Products, sums, parts and transposes of sparse matrices on the device (`kernels/setup/sparse.cu`).
//!
//! `None` is what the device leaves to the host: rows that are too long for a group of threads, and what
//! cannot be computed, of which the host tells why.

use cudarc::driver::CudaSlice;

use crate::base::error::Result;
use crate::compute::cuda::compressed::{
    Compressed, LANES, THREADS, fault, kernel, lanes, of_lanes, run,
};
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::address;
use crate::compute::cuda::sources::SPARSE;
use crate::compute::setup::Part;

/// Compressed of a transpose up to this length are put in order by one thread.
pub(super) const LONGEST_SORTED: usize = 256;

/// A part as `setup/sparse.cu` numbers it.
fn number(part: Part) -> u32 {
    match part {
        Part::All => 0,
        Part::Lower => 1,
        Part::Upper => 2,
    }
}

/// The lower triangle with the diagonal.
const LOWER_WITH_DIAGONAL: u32 = 3;

impl Compressed {
    /// Whether all diagonals are stored, and whether mirrored entries differ by no more than `rounding`
    /// relative to the larger.
    pub(super) fn regular(&self, d: &Device, rounding: f64) -> Result<[bool; 2]> {
        let found = d.zeros::<u32>(1)?;
        run!(d, kernel(d, "irregular")?, self.by_rows(); self.argument(), rounding, found);
        let bits = d.host(&found)?[0];
        Ok([bits & 1 == 0, bits & 2 == 0])
    }

    pub(super) fn largest_row_sum(&self, d: &Device) -> Result<f64> {
        let largest = d.zeros::<u64>(1)?;
        run!(d, kernel(d, "largest_sum")?, self.by_rows(); self.argument(), largest);
        Ok(f64::from_bits(d.host(&largest)?[0]))
    }

    /// A'.
    pub(super) fn transposed(&self, d: &Device) -> Result<Option<Self>> {
        let length = d.zeros::<u32>(self.rows)?;
        let config = grid(self.entries.div_ceil(THREADS as usize).max(1), THREADS);
        let entries = self.entries as u64;
        run!(d, kernel(d, "count_columns")?, config; entries, self.pattern.col_ind, length);
        let t = Self::of_lengths(d, self.rows, &length, true)?;
        if t.longest(d)? > LONGEST_SORTED {
            return Ok(None);
        }
        let mut next = d.alloc::<u32>(self.rows + 1)?;
        d.stream().memcpy_dtod(&t.pattern.row_ptr, &mut next).map_err(fault)?;
        let by_rows = self.by_rows();
        run!(d, kernel(d, "turn")?, by_rows; self.argument(), next, t.pattern.col_ind, *t.val);
        let n = self.rows as u32;
        run!(d, kernel(d, "sort_rows")?, by_rows; n, t.pattern.row_ptr, t.pattern.col_ind, *t.val);
        Ok(Some(t))
    }

    /// `A B`.
    pub(super) fn times(&self, d: &Device, b: &Self) -> Result<Option<Self>> {
        self.product(d, b, false, true)
    }

    /// `A B`, its lower triangle alone with `lower`, its pattern alone without `numbers`.
    pub(super) fn product(
        &self,
        d: &Device,
        b: &Self,
        lower: bool,
        numbers: bool,
    ) -> Result<Option<Self>> {
        let longest = self.longest(d)?;
        if longest > LANES[LANES.len() - 1] {
            return Ok(None);
        }
        let lanes = lanes(longest);
        let of = |name| d.kernel(&SPARSE, of_lanes(lanes), name);
        let (config, length) = (self.by_lanes(lanes), d.alloc::<u32>(self.rows)?);
        let (x, y, lower) = (self.argument(), b.argument(), u32::from(lower));
        run!(d, of("count_product")?, config; x, y, lower, length);
        let c = Self::of_lengths(d, self.rows, &length, numbers)?;
        let val = if numbers { address(&c.val) } else { 0 };
        run!(d, of("fill_product")?, config; x, y, lower, c.pattern.row_ptr, c.pattern.col_ind, val);
        Ok(Some(c))
    }

    /// `(A + B) / 2`.
    pub(super) fn mean(&self, d: &Device, b: &Self) -> Result<Self> {
        let (config, length) = (self.by_rows(), d.alloc::<u32>(self.rows)?);
        let (x, y) = (self.argument(), b.argument());
        run!(d, kernel(d, "count_mean")?, config; x, y, length);
        let c = Self::of_lengths(d, self.rows, &length, true)?;
        run!(d, kernel(d, "fill_mean")?, config; x, y, c.pattern.row_ptr, c.pattern.col_ind, *c.val);
        Ok(c)
    }

    /// `I - A` where A has no diagonal.
    pub(super) fn identity_minus(&self, d: &Device) -> Result<Self> {
        let row_ptr = d.alloc(self.rows + 1)?;
        let c = Self::on(d, self.rows, self.entries + self.rows, row_ptr, true)?;
        let config = self.by_rows();
        let of = kernel(d, "identity_minus")?;
        run!(d, of, config; self.argument(), c.pattern.row_ptr, c.pattern.col_ind, *c.val);
        Ok(c)
    }

    /// `D^-1` times a part.
    pub(super) fn scaled(&self, d: &Device, part: Part) -> Result<Option<Self>> {
        let (c, broken) = self.part(d, number(part), true)?;
        Ok((d.host(&broken)?[0] == 0).then_some(c))
    }

    /// The pattern of the lower triangle with the diagonal.
    fn lower(&self, d: &Device) -> Result<Self> {
        Ok(self.part(d, LOWER_WITH_DIAGONAL, false)?.0)
    }

    /// A part, scaled when with `numbers`; whether a diagonal was lacking is marked beside it.
    fn part(&self, d: &Device, part: u32, numbers: bool) -> Result<(Self, CudaSlice<u32>)> {
        let (config, length) = (self.by_rows(), d.alloc::<u32>(self.rows)?);
        let a = self.argument();
        run!(d, kernel(d, "count_part")?, config; a, part, length);
        let c = Self::of_lengths(d, self.rows, &length, numbers)?;
        let broken = d.zeros::<u32>(1)?;
        let val = if numbers { address(&c.val) } else { 0 };
        let of = kernel(d, "fill_part")?;
        run!(d, of, config; a, part, c.pattern.row_ptr, c.pattern.col_ind, val, broken);
        Ok((c, broken))
    }

    /// `D^-1`.
    pub(super) fn inverse_diagonal(&self, d: &Device) -> Result<Option<Self>> {
        let c = Self::on(d, self.rows, self.rows, d.alloc(self.rows + 1)?, true)?;
        let broken = d.zeros::<u32>(1)?;
        let (of, config) = (kernel(d, "invert_diagonal")?, self.by_rows());
        run!(d, of, config; self.argument(), c.pattern.row_ptr, c.pattern.col_ind, *c.val, broken);
        Ok((d.host(&broken)?[0] == 0).then_some(c))
    }

    /// The lower triangle of the pattern of `|A|^q`; only of matrices with all diagonals.
    pub(super) fn lower_power(&self, d: &Device, q: usize) -> Result<Option<Self>> {
        if !self.regular(d, 0.0)?[0] {
            return Ok(None);
        }
        if q == 1 {
            return self.lower(d).map(Some);
        }
        // the short rows are those of A
        let mut reached: Option<Self> = None;
        for step in 2..=q {
            let next = self.product(d, reached.as_ref().unwrap_or(self), step == q, false)?;
            let Some(next) = next else { return Ok(None) };
            reached = Some(next);
        }
        Ok(reached)
    }
}
