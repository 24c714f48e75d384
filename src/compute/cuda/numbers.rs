//! Factors in the numbers in which the solves read them (`kernels/stored.cuh`, `kernels/sptrsv/narrow.cu`).

use std::rc::Rc;

use cudarc::driver::{CudaSlice, DriverError};

use super::device::{Device, grid};
use super::launch::{Address, address, launch};
use super::memory::failed;
use super::sources::{NARROW, Variant};
use super::storage::{Factors, Structure};
use crate::base::choices::FactorPrecision;
use crate::base::error::{Error, Result};
use crate::base::parse::choice_name;
use crate::compute::Breakdown;

/// An array of stored numbers.
pub(super) enum Numbers {
    Double(CudaSlice<f64>),
    Single(CudaSlice<f32>),
    /// Bits of bfloat16.
    Short(CudaSlice<u16>),
}

impl Numbers {
    /// Room for `len` numbers, to be written before they are read.
    pub(super) fn alloc(d: &Device, len: usize, precision: FactorPrecision) -> Result<Self> {
        Ok(match precision {
            FactorPrecision::Float64 => Self::Double(d.alloc(len)?),
            FactorPrecision::Float32 => Self::Single(d.alloc(len)?),
            FactorPrecision::Bfloat16 => Self::Short(d.alloc(len)?),
            other => return Err(refused(other)),
        })
    }

    /// Bytes that they take.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Double(numbers) => 8 * numbers.len(),
            Self::Single(numbers) => 4 * numbers.len(),
            Self::Short(numbers) => 2 * numbers.len(),
        }
    }

    /// Where they are.
    pub(super) fn address(&self) -> Address {
        match self {
            Self::Double(numbers) => address(numbers),
            Self::Single(numbers) => address(numbers),
            Self::Short(numbers) => address(numbers),
        }
    }

    /// The numbers on the host.
    pub(super) fn host(&self, d: &Device) -> Result<Vec<f64>> {
        let wide = |bits: u16| f64::from(f32::from_bits(u32::from(bits) << 16));
        Ok(match self {
            Self::Double(numbers) => d.host(numbers)?,
            Self::Single(numbers) => d.host(numbers)?.into_iter().map(f64::from).collect(),
            Self::Short(numbers) => d.host(numbers)?.into_iter().map(wide).collect(),
        })
    }
}

/// The factors in the order of the pattern, shared by the ways of solving that take them over.
#[derive(Clone)]
pub(super) struct Values {
    /// Blocks of L; each way converts them as it lays them out.
    pub(super) lower: Rc<CudaSlice<f64>>,
    /// Blocks of U', likewise.
    pub(super) upper: Rc<CudaSlice<f64>>,
    /// Inverse diagonal blocks as they are stored.
    pub(super) diagonal: Rc<Numbers>,
}

impl Values {
    /// `factors` to be stored in `precision`. The inner result names the first block row that does
    /// not stay in its range.
    pub(super) fn new(
        d: &Device,
        f: &Structure,
        factors: Factors,
        precision: FactorPrecision,
    ) -> Result<std::result::Result<Self, Breakdown>> {
        let diagonal = match precision {
            FactorPrecision::Float64 => Numbers::Double(factors.diagonal),
            narrow => match narrowed(d, f, &factors, narrow)? {
                Ok(diagonal) => diagonal,
                Err(row) => return Ok(Err(Breakdown::Range { row })),
            },
        };
        Ok(Ok(Self {
            lower: Rc::new(factors.lower),
            upper: Rc::new(factors.upper),
            diagonal: Rc::new(diagonal),
        }))
    }
}

/// The error of a precision that no kernel reads.
fn refused(precision: FactorPrecision) -> Error {
    let name = choice_name(&precision);
    Error::input(format!("no GPU solves with factors in `{name}`"))
        .hint("`--factor-precision` is `float64`, `float32` or `bfloat16` there")
}

/// The diagonal in a narrower `precision`, or the first block row of the factors that leaves its range.
fn narrowed(
    d: &Device,
    f: &Structure,
    factors: &Factors,
    precision: FactorPrecision,
) -> Result<std::result::Result<Numbers, usize>> {
    const THREADS: u32 = 256;
    let fault = |e: DriverError| failed("cannot round the factors", e);
    let (b, bb, p) = (f.block_size, f.block_size * f.block_size, &f.pattern);
    let diagonal = Numbers::alloc(d, p.rows() * bb, precision)?;
    let kernel = |name| d.kernel(&NARROW, Variant::from(0).storing(precision), name);
    let check = kernel("first_beyond")?;
    let beyond = |values: &CudaSlice<f64>, entries: usize| -> Result<Option<usize>> {
        let (count, first) = ((entries * bb) as u64, d.least()?);
        let blocks = (entries * bb).div_ceil(THREADS as usize).clamp(1, 1 << 14);
        launch!(d, &check, grid(blocks, THREADS); count, *values, first).map_err(fault)?;
        Ok(d.found(&first)?.map(|at| at as usize / bb))
    };
    let lower = beyond(&factors.lower, p.lower.entries())?.map(|at| p.lower.row_of(at));
    let upper = beyond(&factors.upper, p.upper.entries())?.map(|at| p.upper.row_of(at));
    let (to, first) = (diagonal.address(), d.least()?);
    let kernel = kernel("narrow_diagonal")?;
    let (rows, size) = (p.rows() as u32, b as u32);
    let config = grid((p.rows() * b).div_ceil(THREADS as usize), THREADS);
    launch!(d, &kernel, config; rows, size, factors.diagonal, to, first).map_err(fault)?;
    let beyond = d.found(&first)?.map(|at| at as usize);
    Ok([lower, upper, beyond].into_iter().flatten().min().map_or(Ok(diagonal), Err))
}
