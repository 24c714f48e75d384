//! Sparse matrices by rows on the device (`kernels/setup/sparse.cu`).

use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig};

use crate::base::error::{Error, Result};
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{SparseArg, address};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::sources::{SPARSE, Source, Variant};
use crate::compute::cuda::storage::DevicePattern;
use crate::matrix::pattern::Pattern;
use crate::matrix::{Csr, CsrPattern};

/// Threads of a block; mirrors `setup/sparse.cu`.
pub(in crate::compute::cuda) const THREADS: u32 = 256;
/// Lengths that a thread block adds up; mirrors `setup/sparse.cu`.
const PART: usize = THREADS as usize * 8;

/// Groups of threads that the kernels are compiled for.
pub(in crate::compute::cuda) const LANES: [usize; 4] = [4, 8, 16, 32];

/// A variant of a source for groups of so many threads.
pub(in crate::compute::cuda) fn of_lanes(lanes: usize) -> Variant {
    Variant { defines: vec![("LANES", lanes)], ..0.into() }
}

/// Groups of threads for as many entries as `most`, the largest groups when there are more.
pub(in crate::compute::cuda) fn lanes(most: usize) -> usize {
    LANES.into_iter().find(|&lanes| most <= lanes).unwrap_or(LANES[LANES.len() - 1])
}

/// The variants of the sources of setups.
pub fn setup_variants() -> Vec<(&'static Source, Variant)> {
    use crate::compute::cuda::sources::{ROW_SYSTEMS, SYMBOLIC};
    let of = |source| LANES.into_iter().map(move |lanes| (source, of_lanes(lanes)));
    [&SPARSE, &ROW_SYSTEMS, &SYMBOLIC].into_iter().flat_map(of).collect()
}

/// A matrix by scalar rows on the device, or its pattern; clones share the arrays.
#[derive(Clone)]
pub(in crate::compute::cuda) struct Compressed {
    pub(in crate::compute::cuda) rows: usize,
    pub(in crate::compute::cuda) entries: usize,
    pub(in crate::compute::cuda) pattern: Arc<DevicePattern>,
    /// Of a pattern nothing that may be read.
    pub(in crate::compute::cuda) val: Rc<CudaSlice<f64>>,
}

/// Launches a kernel for a sparse matrix; a failed launch returns.
macro_rules! run {
    ($device:expr, $kernel:expr, $config:expr; $($argument:expr),* $(,)?) => {{
        let kernel = $kernel;
        $crate::compute::cuda::launch::launch!($device, &kernel, $config; $($argument),*)
            .map_err($crate::compute::cuda::compressed::fault)?;
    }};
}
pub(in crate::compute::cuda) use run;

/// What went wrong with a launch.
pub(in crate::compute::cuda) fn fault(e: DriverError) -> Error {
    failed("cannot compute with a sparse matrix", e)
}

/// Where each of `rows` lists of these lengths starts, one behind the other, and the end of the last, also as a
/// number of 64 bits.
pub(in crate::compute::cuda) fn starts(
    d: &Device,
    rows: usize,
    length: &CudaSlice<u32>,
) -> Result<(CudaSlice<u32>, usize)> {
    let parts = rows.div_ceil(PART).max(1);
    let (n, sums, starts) = (rows as u32, d.alloc::<u64>(parts + 1)?, d.alloc(rows + 1)?);
    let config = grid(parts, THREADS);
    run!(d, kernel(d, "sum_parts")?, config; n, *length, sums);
    let parts = parts as u32;
    run!(d, kernel(d, "start_parts")?, grid(1, THREADS); parts, sums);
    run!(d, kernel(d, "start_rows")?, config; n, *length, sums, starts);
    let all = d.host(&sums)?[parts as usize] as usize;
    Ok((starts, all))
}

/// A launch of at least so many threads.
pub(in crate::compute::cuda) fn by_threads(count: usize) -> LaunchConfig {
    grid(count.div_ceil(THREADS as usize).max(1), THREADS)
}

/// How often each number up to `most` occurs among `n` numbers; larger ones count as that.
pub(in crate::compute::cuda) fn counts(
    d: &Device,
    n: usize,
    numbers: &CudaSlice<u32>,
    most: usize,
) -> Result<CudaSlice<u32>> {
    let (count, config) = (d.zeros::<u32>(most + 1)?, by_threads(n));
    let (n, most) = (n as u32, most as u32);
    run!(d, kernel(d, "count_numbers")?, config; n, *numbers, most, count);
    Ok(count)
}

impl Compressed {
    /// A copy of `a`.
    pub(in crate::compute::cuda) fn copied(d: &Device, a: &Csr) -> Result<Self> {
        Ok(Self {
            rows: a.rows(),
            entries: a.nnz(),
            pattern: DevicePattern::copied(d, a.row_ptr(), a.col_ind())?,
            val: Rc::new(d.copied(a.values())?),
        })
    }

    /// Takes over values in the same places; those who share the old ones keep them.
    pub(in crate::compute::cuda) fn overwrite(&mut self, d: &Device, values: &[f64]) -> Result<()> {
        overwrite(d, values, &mut self.val)
    }

    /// The matrix on the host.
    pub(in crate::compute::cuda) fn host(&self, d: &Device) -> Result<Csr> {
        let [row_ptr, col_ind] = self.pattern.host(d, self.entries)?;
        let mut values = d.host(&self.val)?;
        values.truncate(self.entries);
        Csr::new(self.rows, self.rows, row_ptr, col_ind, values)
    }

    /// The pattern on the host.
    pub(in crate::compute::cuda) fn pattern(&self, d: &Device) -> Result<Pattern<'static>> {
        let [row_ptr, col_ind] = self.pattern.host(d, self.entries)?;
        Ok(Pattern::new(row_ptr, col_ind))
    }

    /// A diagonal matrix.
    pub(in crate::compute::cuda) fn diagonal(
        d: &Device,
        rows: usize,
        val: CudaSlice<f64>,
    ) -> Result<Self> {
        let numbers: Vec<u32> = (0..=rows as u32).collect();
        Ok(Self {
            rows,
            entries: rows,
            pattern: DevicePattern::copied(d, &numbers, &numbers[..rows])?,
            val: Rc::new(val),
        })
    }

    pub(in crate::compute::cuda) fn argument(&self) -> SparseArg {
        SparseArg {
            rows: self.rows as u32,
            row_ptr: address(&self.pattern.row_ptr),
            col_ind: address(&self.pattern.col_ind),
            val: address(&self.val),
        }
    }

    /// A launch with a thread for each row.
    pub(in crate::compute::cuda) fn by_rows(&self) -> LaunchConfig {
        by_threads(self.rows)
    }

    /// A launch with `lanes` threads for each row.
    pub(in crate::compute::cuda) fn by_lanes(&self, lanes: usize) -> LaunchConfig {
        by_threads(self.rows * lanes)
    }

    /// Entries of the longest row.
    pub(in crate::compute::cuda) fn longest(&self, d: &Device) -> Result<usize> {
        let longest = d.zeros::<u32>(1)?;
        run!(d, kernel(d, "longest_row")?, self.by_rows(); self.argument(), longest);
        Ok(d.host(&longest)?[0] as usize)
    }

    /// Whether all numbers are finite.
    pub(in crate::compute::cuda) fn finite(&self, d: &Device) -> Result<bool> {
        let found = d.zeros::<u32>(1)?;
        let blocks = self.entries.div_ceil(THREADS as usize).clamp(1, 1 << 14);
        let count = self.entries as u64;
        let config = grid(blocks, THREADS);
        run!(d, kernel(d, "infinite")?, config; count, *self.val, found);
        Ok(d.host(&found)?[0] == 0)
    }

    /// Room for rows of these lengths, with numbers or for their columns alone.
    pub(in crate::compute::cuda) fn of_lengths(
        d: &Device,
        rows: usize,
        length: &CudaSlice<u32>,
        numbers: bool,
    ) -> Result<Self> {
        let (row_ptr, entries) = starts(d, rows, length)?;
        if entries > u32::MAX as usize {
            let message = format!("{entries} entries of a matrix: the limit is {}", u32::MAX);
            return Err(Error::memory(message));
        }
        Self::on(d, rows, entries, row_ptr, numbers)
    }

    /// Room for `entries`, with numbers or for their columns alone.
    pub(in crate::compute::cuda) fn on(
        d: &Device,
        rows: usize,
        entries: usize,
        row_ptr: CudaSlice<u32>,
        numbers: bool,
    ) -> Result<Self> {
        Ok(Self {
            rows,
            entries,
            pattern: Arc::new(DevicePattern { row_ptr, col_ind: d.alloc(entries)? }),
            val: Rc::new(d.alloc(if numbers { entries } else { 0 })?),
        })
    }

    /// The same rows with room for numbers.
    pub(in crate::compute::cuda) fn with_numbers(&self, d: &Device) -> Result<Self> {
        Ok(Self { val: Rc::new(d.alloc(self.entries)?), ..self.clone() })
    }
}

/// Takes over values; those who share the old ones keep them.
pub(in crate::compute::cuda) fn overwrite(
    d: &Device,
    values: &[f64],
    to: &mut Rc<CudaSlice<f64>>,
) -> Result<()> {
    match Rc::get_mut(to) {
        Some(own) => d.overwrite(values, own)?,
        None => *to = Rc::new(d.copied(values)?),
    }
    Ok(())
}

/// A matrix that is to be factorised, where it is.
#[derive(Clone, Copy)]
pub(in crate::compute::cuda) enum Factored<'a> {
    /// On the host, and where products have it on the device, there, too.
    Host(&'a Csr, Option<&'a Compressed>),
    /// On the device alone.
    Device(&'a Compressed),
}

impl Factored<'_> {
    /// The matrix on the device: that of others, or `own`, which is kept for others with its pattern.
    pub(in crate::compute::cuda) fn there(
        self,
        d: &Device,
        own: &mut Option<(CsrPattern, Compressed)>,
    ) -> Result<Compressed> {
        let a = match self {
            Self::Host(_, Some(there)) | Self::Device(there) => return Ok(there.clone()),
            Self::Host(a, None) => a,
        };
        match own {
            Some((pattern, there)) if a.pattern().is(pattern) => there.overwrite(d, a.values())?,
            _ => *own = Some((a.pattern().clone(), Compressed::copied(d, a)?)),
        }
        Ok(own.as_ref().expect("just made").1.clone())
    }
}

/// A kernel of `setup/sparse.cu` for which groups do not matter.
pub(in crate::compute::cuda) fn kernel(d: &Device, name: &str) -> Result<CudaFunction> {
    d.kernel(&SPARSE, of_lanes(LANES[1]), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_hold_a_row_where_they_can() {
        let most = [0, 4, 5, 8, 9, 16, 17, 32, 33, 500];
        assert_eq!(most.map(lanes), [4, 4, 8, 8, 16, 16, 32, 32, 32, 32]);
    }
}
