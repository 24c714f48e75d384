//! Products with sliced ELLPACK.

use std::rc::Rc;

use cudarc::cusparse::sys::cusparseSpMVAlg_t as Algorithm;
use cudarc::driver::CudaSlice;

use super::generic::Generic;
use super::{Handle, driver, memory, owned, timing};
use crate::base::error::{Error, Result};
use crate::base::threads::Threads;
use crate::compute::Bytes;
use crate::matrix::{Csr, Sell};

/// Rows of a slice that are tried: the library takes any number.
const HEIGHTS: [usize; 3] = [8, 32, 128];

/// Rows of a slice where there are too many entries to try several.
const USUAL: usize = 32;

/// Most entries for which several are tried: each takes a conversion.
const MOST_TRIED: usize = 1 << 26;

/// The library's mark of a place without an entry.
const NO_ENTRY: i32 = -1;

/// A matrix in slices; keeps its arrays.
pub struct SpmvSell {
    n: usize,
    stored: usize,
    slices: usize,
    height: usize,
    plan: Generic,
    arrays: Arrays,
    handle: Rc<Handle>,
}

/// What the library reads, and never copies.
struct Arrays {
    offsets: CudaSlice<i32>,
    col_ind: CudaSlice<i32>,
    values: CudaSlice<f64>,
}

impl SpmvSell {
    /// Stores the square matrix `a`, its rows in their order, in slices of the height that is fastest,
    /// found by running each: one warm-up, then the median of five; waits.
    ///
    /// # Errors
    /// When the matrix does not fit the format, or the device has no room.
    pub fn new(handle: &Rc<Handle>, a: &Csr) -> Result<Self> {
        if a.nnz() > MOST_TRIED {
            return Self::with_height(handle, a, USUAL);
        }
        let x = handle.zeros(a.rows())?;
        let mut y = handle.zeros(a.rows())?;
        let (height, _) = timing::fastest(HEIGHTS, |height| {
            let product = Self::with_height(handle, a, height)?;
            let ms = timing::median_ms(handle.stream(), || product.apply(1.0, &x, 0.0, &mut y))?;
            Ok(((height, ms), ms))
        })?;
        Self::with_height(handle, a, height)
    }

    /// As [`new`](Self::new), with slices of `height` rows.
    pub(crate) fn with_height(handle: &Rc<Handle>, a: &Csr, height: usize) -> Result<Self> {
        assert_eq!(a.rows(), a.cols(), "a square matrix");
        let n = a.rows();
        let sell = Sell::from_csr(a, height, 1)?;
        let most = i32::MAX as usize;
        let stored = sell.values().len();
        if stored > most {
            return Err(Error::input(format!(
                "{stored} numbers of `sell` do not fit the 32-bit offsets of cuSPARSE"
            ))
            .hint("take a smaller case"));
        }
        let offsets: Vec<i32> =
            sell.slice_ptr().iter().map(|&p| p as i32 * height as i32).collect();
        let arrays = Arrays {
            offsets: upload(handle, &offsets)?,
            col_ind: upload(handle, &marked(&sell, a))?,
            values: upload(handle, sell.values())?,
        };
        let matrix = owned::sliced_matrix(&owned::Slices {
            rows: n,
            entries: a.nnz(),
            stored,
            height,
            offsets: handle.address(&arrays.offsets),
            col_ind: handle.address(&arrays.col_ind),
            values: handle.address(&arrays.values),
        })?;
        let (x, mut y) = (handle.zeros(n)?, handle.zeros(n)?);
        let algorithm = Algorithm::CUSPARSE_SPMV_SELL_ALG1;
        let plan = Generic::new(handle, matrix, (n, n), &x, &mut y, algorithm)?;
        let slices = offsets.len() - 1;
        Ok(Self { n, stored, slices, height, plan, arrays, handle: Rc::clone(handle) })
    }

    /// Rows of a slice.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Takes over the values of `a`, which has the pattern that was stored.
    pub(in crate::compute::cuda) fn set_values(&mut self, a: &Csr) -> Result<()> {
        let sell = Sell::from_csr(a, self.height, 1)?;
        copy(&self.handle, sell.values(), &mut self.arrays.values)
    }

    /// Bytes held, and bytes a product moves at least: matrix, `x`, and `y` once.
    pub fn bytes(&self) -> Bytes {
        let matrix = 12 * self.stored + 4 * (self.slices + 1);
        Bytes { held: matrix + self.plan.bytes(), moved: matrix + 16 * self.n }
    }

    /// `y = alpha A x + beta y`; with `beta` zero, `y` is not read. Asynchronous.
    ///
    /// # Panics
    /// If a vector is shorter than the matrix.
    pub fn apply(
        &self,
        alpha: f64,
        x: &CudaSlice<f64>,
        beta: f64,
        y: &mut CudaSlice<f64>,
    ) -> Result<()> {
        assert!(x.len() >= self.n && y.len() >= self.n, "a vector is shorter than the matrix");
        self.plan.run(&self.handle, alpha, x, beta, y)
    }
}

/// The columns of `sell`, the rows of `a` in their order, with [`NO_ENTRY`] behind the end of each.
fn marked(sell: &Sell, a: &Csr) -> Vec<i32> {
    let mut col_ind: Vec<i32> =
        Threads::Pool.map(sell.col_ind().len(), 1, |at| sell.col_ind()[at] as i32);
    let height = sell.height();
    let slices = sell.by_slice(&mut col_ind).into_iter().enumerate().collect();
    Threads::Pool.each(slices, |(slice, places): (usize, &mut [i32])| {
        for lane in 0..height {
            let i = slice * height + lane;
            let length = if i < a.rows() { a.row(i).0.len() } else { 0 };
            for place in places.iter_mut().skip(lane).step_by(height).skip(length) {
                *place = NO_ENTRY;
            }
        }
    });
    col_ind
}

fn upload<T: cudarc::driver::DeviceRepr + cudarc::driver::ValidAsZeroBits>(
    handle: &Handle,
    host: &[T],
) -> Result<CudaSlice<T>> {
    let mut to = memory::zeros(handle.stream(), host.len())?;
    copy(handle, host, &mut to)?;
    Ok(to)
}

fn copy<T: cudarc::driver::DeviceRepr>(
    handle: &Handle,
    from: &[T],
    to: &mut CudaSlice<T>,
) -> Result<()> {
    if from.is_empty() {
        return Ok(());
    }
    let stream = handle.stream();
    stream.memcpy_htod(from, to).map_err(|e| driver("cannot copy to the device", e))?;
    stream.synchronize().map_err(|e| driver("cannot copy to the device", e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_without_an_entry_are_marked() {
        // lengths 1, 3, 0
        let a = Csr::new(3, 3, vec![0, 1, 4, 4], vec![0, 0, 1, 2], vec![1.0; 4]).unwrap();
        let sell = Sell::from_csr(&a, 2, 1).unwrap();
        assert_eq!(marked(&sell, &a), [0, 0, -1, 1, -1, 2]);
    }
}
