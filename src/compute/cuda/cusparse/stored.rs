//! A matrix for products by the library, with the scalar rows that a factorisation starts from.

use std::rc::Rc;

use super::{DevicePattern, Handle, Spmv};
use crate::base::error::Result;
use crate::compute::cuda::compressed::Compressed;
use crate::compute::cuda::device::Device;
use crate::compute::cuda::symbolic::{Rows, fill_blocks};
use crate::matrix::Csr;

/// Blocks are made on the device, as for our kernels: what the library is compared with begins alike.
pub struct StoredMatrix {
    product: Spmv,
    scalar: Compressed,
}

impl StoredMatrix {
    /// A matrix of so many columns by rows, or in blocks of a size of which the device has made the rows.
    ///
    /// # Errors
    /// When the library takes no such matrix, or the device has no room.
    pub(in crate::compute::cuda) fn new(
        d: &Device,
        handle: &Rc<Handle>,
        scalar: Compressed,
        columns: usize,
        blocks: Option<(usize, Rows)>,
    ) -> Result<Self> {
        let product = if let Some((b, rows)) = blocks {
            let val = d.zeros(rows.entries * b * b)?;
            fill_blocks(d, scalar.argument(), (b, &rows.pattern), &val)?;
            let size = [columns.div_ceil(b), rows.entries];
            let pattern = DevicePattern::there(b, &rows.pattern, size)?;
            Spmv::new(handle, &pattern, val)?
        } else {
            let size = [columns, scalar.entries];
            let pattern = DevicePattern::there(1, &scalar.pattern, size)?;
            Spmv::new(handle, &pattern, Rc::clone(&scalar.val))?
        };
        Ok(Self { product, scalar })
    }

    /// Takes over the values of `a`, which has the pattern that was stored.
    pub(in crate::compute::cuda) fn set_values(&mut self, d: &Device, a: &Csr) -> Result<()> {
        let b = self.product.pattern().block_size();
        // with blocks of one the product has them, too
        d.overwrite_shared(a.values(), &self.scalar.val)?;
        if b > 1 {
            let rows = self.product.pattern().rows_there();
            fill_blocks(d, self.scalar.argument(), (b, rows), self.product.values())?;
        }
        Ok(())
    }

    /// Products with it.
    pub(in crate::compute::cuda) fn product(&self) -> &Spmv {
        &self.product
    }

    /// Its scalar rows.
    pub(in crate::compute::cuda) fn scalar(&self) -> &Compressed {
        &self.scalar
    }
}
