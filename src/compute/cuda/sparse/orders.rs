//! Sparse matrices in another order, and those in which elimination finds the factors of symmetric Gauss-Seidel
//! (`kernels/setup/sparse.cu`). `None` is what is left to the host, as in `products.rs`.

use std::ops::Range;
use std::rc::Rc;

use super::products::LONGEST_SORTED;
use crate::base::error::Result;
use crate::compute::cuda::compressed::{Compressed, THREADS, kernel, lanes, of_lanes, run};
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::sources::SPARSE;
use crate::compute::setup::Part;

impl Compressed {
    /// `P A P'`.
    pub(super) fn permuted(&self, d: &Device, order: &[u32]) -> Result<Option<Self>> {
        if self.longest(d)? > LONGEST_SORTED {
            return Ok(None);
        }
        let (order, place) = (d.copied(order)?, d.alloc::<u32>(self.rows)?);
        let (config, a, length) = (self.by_rows(), self.argument(), d.alloc::<u32>(self.rows)?);
        run!(d, kernel(d, "count_permuted")?, config; a, order, place, length);
        let p = Self::of_lengths(d, self.rows, &length, true)?;
        let of = kernel(d, "fill_permuted")?;
        run!(d, of, config; a, order, place, p.pattern.row_ptr, p.pattern.col_ind, *p.val);
        let n = self.rows as u32;
        run!(d, kernel(d, "sort_rows")?, config; n, p.pattern.row_ptr, p.pattern.col_ind, *p.val);
        Ok(Some(p))
    }

    /// M of symmetric Gauss-Seidel on the pattern of A, which it shares.
    pub(super) fn gauss_seidel(&self, d: &Device, omega: f64) -> Result<Option<Self>> {
        let Some(scaled) = self.scaled(d, Part::Upper)? else { return Ok(None) };
        let lanes = lanes(self.longest(d)?);
        let of = d.kernel(&SPARSE, of_lanes(lanes), "gauss_seidel")?;
        let (a, u, val) = (self.argument(), scaled.argument(), d.alloc(self.entries)?);
        let size = 1.0 / (omega * (2.0 - omega));
        run!(d, of, self.by_lanes(lanes); a, u, omega, size, val);
        Ok(Some(Self { val: Rc::new(val), ..self.clone() }))
    }

    /// A and, of what is left after sets of `sizes` rows, `L D^-1 U`.
    pub(super) fn with_gauss_seidel(&self, d: &Device, sizes: &[usize]) -> Result<Option<Self>> {
        let mut left: Option<Self> = None;
        for &size in sizes {
            let next = left.as_ref().unwrap_or(self).eliminated(d, size)?;
            let Some(next) = next else { return Ok(None) };
            left = Some(next);
        }
        let left = left.as_ref().unwrap_or(self);
        let Some(m) = left.gauss_seidel(d, 1.0)? else { return Ok(None) };
        let (config, length) = (self.by_rows(), d.alloc::<u32>(self.rows)?);
        let (a, m_arg) = (self.argument(), m.argument());
        run!(d, kernel(d, "count_with_last")?, config; a, m_arg, length);
        let c = Self::of_lengths(d, self.rows, &length, true)?;
        let of = kernel(d, "fill_with_last")?;
        run!(d, of, config; a, m_arg, *left.val, c.pattern.row_ptr, c.pattern.col_ind, *c.val);
        Ok(Some(c))
    }

    /// `C - E D^-1 F` without the first `size` rows, which are not coupled.
    fn eliminated(&self, d: &Device, size: usize) -> Result<Option<Self>> {
        let (first, rest) = (0..size, size..self.rows);
        let Some(f) = self.window(d, &first, &rest, true)? else { return Ok(None) };
        let Some(e) = self.window(d, &rest, &first, false)? else { return Ok(None) };
        let Some(product) = e.product(d, &f, false, true)? else { return Ok(None) };
        let Some(c) = self.window(d, &rest, &rest, false)? else { return Ok(None) };
        let (config, length) = (c.by_rows(), d.alloc::<u32>(c.rows)?);
        let (x, y) = (c.argument(), product.argument());
        run!(d, kernel(d, "count_mean")?, config; x, y, length);
        let left = Self::of_lengths(d, c.rows, &length, true)?;
        let of = kernel(d, "fill_difference")?;
        run!(d, of, config; x, y, left.pattern.row_ptr, left.pattern.col_ind, *left.val);
        Ok(Some(left))
    }

    /// Some rows and columns, numbered anew; divided by their diagonals if `scaled`. `None` where one is zero.
    fn window(
        &self,
        d: &Device,
        rows: &Range<usize>,
        columns: &Range<usize>,
        scaled: bool,
    ) -> Result<Option<Self>> {
        let number = |at: usize| at as u32;
        let [first, count, left, right] =
            [rows.start, rows.len(), columns.start, columns.end].map(number);
        let config = grid(rows.len().div_ceil(THREADS as usize).max(1), THREADS);
        let (a, length) = (self.argument(), d.alloc::<u32>(rows.len())?);
        let of = kernel(d, "count_window")?;
        run!(d, of, config; a, first, count, left, right, length);
        let w = Self::of_lengths(d, rows.len(), &length, true)?;
        let (broken, scaled) = (d.zeros::<u32>(1)?, u32::from(scaled));
        let of = kernel(d, "fill_window")?;
        run!(
            d, of, config;
            a, first, count, left, right, scaled, w.pattern.row_ptr, w.pattern.col_ind, *w.val, broken
        );
        Ok((d.host(&broken)?[0] == 0).then_some(w))
    }
}
