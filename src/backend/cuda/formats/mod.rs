//! Products with HYB, SELL, DIA and Bdia (`kernels/formats.cu`, `kernels/bdia.cu`).

mod argument;
mod bdia;
mod rest;

use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig};

use super::device::{Device, grid};
use super::launch::{Address, DiaArg, HybArg, SellArg, address, launch};
use super::sources::{BDIA, FORMATS, Source, Variant};
use crate::backend::Bytes;
use crate::case::Format;
use crate::error::{Error, Result};
use crate::matrix::{Bdia, Csr, Dia, Hyb, Sell, Storage};
pub(super) use argument::Argument;
use bdia::DeviceBdia;
use rest::Rest;

/// Threads of a warp: rows of a slice of SELL.
const WARP: usize = 32;
/// Most rows that a lane has.
const MOST_ROWS: usize = 4;
/// Rows of a window of SELL within which rows are sorted by length.
const WINDOW: usize = 1024;
/// Threads of a block where nothing else was chosen; mirrors `multiply.cuh`.
const THREADS: usize = 256;

/// A matrix on the device.
pub struct Formatted {
    format: Format,
    rows: usize,
    block_size: usize,
    bytes: usize,
    way: Way,
    kernel: Kernel,
}

/// The kernel of a format, and how it is launched.
struct Kernel {
    function: CudaFunction,
    config: LaunchConfig,
}

/// The arrays of each format.
enum Way {
    Ellpack {
        width: usize,
        stride: usize,
        col_ind: CudaSlice<u32>,
        val: CudaSlice<f64>,
        rest: Rest,
    },
    Slices {
        slice_ptr: CudaSlice<u32>,
        order: Option<CudaSlice<u32>>,
        col_ind: CudaSlice<u32>,
        val: CudaSlice<f64>,
    },
    Diagonals {
        count: usize,
        stride: usize,
        offsets: CudaSlice<i32>,
        val: CudaSlice<f64>,
        rest: Rest,
    },
    Blocks(DeviceBdia),
}

impl Formatted {
    /// `a` in one of the four formats.
    ///
    /// # Errors
    /// When the matrix does not fit the format, has more rows than half of what a signed 32-bit
    /// number counts, or does not fit the memory of the device.
    pub(super) fn new(d: &Device, a: &Csr, block_size: usize, format: Format) -> Result<Self> {
        const MOST: usize = i32::MAX as usize / 2;
        let rows = a.rows();
        if rows > MOST {
            return Err(Error::input(format!("{rows} rows: the limit on a GPU is {MOST}")));
        }
        let stride = stride(rows);
        let (bytes, way) = match format {
            Format::Hyb => {
                let hyb = Hyb::from_csr(a);
                let way = Way::Ellpack {
                    width: hyb.width(),
                    stride,
                    col_ind: columns(d, hyb.col_ind(), rows)?,
                    val: columns(d, hyb.values(), rows)?,
                    rest: Rest::new(d, hyb.rest(), rows)?,
                };
                (hyb.bytes(), way)
            }
            Format::Sell => {
                let sell = Sell::from_csr(a, WARP, WINDOW)?;
                let order = Some(sell.order()).filter(|order| !order.is_empty());
                let way = Way::Slices {
                    slice_ptr: d.copied(sell.slice_ptr())?,
                    order: order.map(|order| d.copied(order)).transpose()?,
                    col_ind: d.copied(sell.col_ind())?,
                    val: d.copied(sell.values())?,
                };
                (sell.bytes(), way)
            }
            Format::Dia => {
                let dia = Dia::from_csr(a)?;
                let offsets: Vec<i32> = dia.offsets().iter().map(|&o| o as i32).collect();
                let way = Way::Diagonals {
                    count: offsets.len(),
                    stride,
                    offsets: d.copied(&offsets)?,
                    val: columns(d, dia.values(), rows)?,
                    rest: Rest::new(d, dia.rest(), rows)?,
                };
                (dia.bytes(), way)
            }
            _ => {
                let bdia = Bdia::from_csr(a, block_size)?;
                (bdia.bytes(), Way::Blocks(DeviceBdia::new(d, &bdia)?))
            }
        };
        let kernel = way.kernel(d, rows, block_size, &[])?;
        Ok(Self { format, rows, block_size, bytes, way, kernel })
    }

    /// Takes over the values of `a`: stored anew, since conversion decides where they are.
    pub(super) fn set_values(&mut self, d: &Device, a: &Csr) -> Result<()> {
        *self = Self::new(d, a, self.block_size, self.format)?;
        Ok(())
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// Bytes held, and moved by a product: matrix, x and y once.
    pub(super) fn bytes(&self) -> Bytes {
        Bytes { held: self.bytes, moved: self.bytes + 16 * self.rows }
    }

    /// `y = A x`, or `y = b - A x` when the address `b` is not null.
    pub(super) fn product(
        &self,
        d: &Device,
        x: &CudaSlice<f64>,
        b: Address,
        y: &mut CudaSlice<f64>,
    ) -> Result<(), DriverError> {
        let (rows, Kernel { function, config }) = (self.rows as u32, &self.kernel);
        match &self.way {
            Way::Ellpack { width, stride, col_ind, val, rest } => {
                let a = HybArg {
                    rows,
                    width: *width as u32,
                    stride: *stride as u64,
                    col_ind: address(col_ind),
                    val: address(val),
                    rest: rest.argument(),
                };
                launch!(d, function, *config; a, *x, b, *y)
            }
            Way::Slices { slice_ptr, order, col_ind, val } => {
                let a = SellArg {
                    rows,
                    slice_ptr: address(slice_ptr),
                    order: order.as_ref().map_or(0, address),
                    col_ind: address(col_ind),
                    val: address(val),
                };
                launch!(d, function, *config; a, *x, b, *y)
            }
            Way::Diagonals { count, stride, offsets, val, rest } => {
                let a = DiaArg {
                    rows,
                    count: *count as u32,
                    stride: *stride as u64,
                    offsets: address(offsets),
                    val: address(val),
                    rest: rest.argument(),
                };
                launch!(d, function, *config; a, *x, b, *y)
            }
            Way::Blocks(bdia) => launch!(d, function, *config; bdia.argument(), *x, b, *y),
        }
    }
}

impl Way {
    /// The kernel compiled with `choices` of its macros; those of `multiply.cuh` apply to the rest.
    fn kernel(
        &self,
        d: &Device,
        rows: usize,
        block_size: usize,
        choices: &[(&'static str, usize)],
    ) -> Result<Kernel> {
        let (source, name, usual_rows, own): (&'static Source, _, _, _) = match self {
            Self::Ellpack { rest, .. } => (&FORMATS, "hyb", 1, rest.own_rows()),
            Self::Slices { .. } => (&FORMATS, "sell", 1, 0),
            Self::Diagonals { rest, .. } => (&FORMATS, "dia", 1, rest.own_rows()),
            Self::Blocks(a) => (&BDIA, "bdia", if block_size % 2 == 0 { 2 } else { 1 }, a.wells()),
        };
        let mut variant = Variant::from(block_size);
        if let Self::Blocks(a) = self {
            variant.defines.extend(a.defines());
        }
        variant.defines.extend(choices);
        let chosen = |name, usual| {
            choices.iter().find(|choice| choice.0 == name).map_or(usual, |choice| choice.1)
        };
        let threads = chosen("THREADS", THREADS);
        let of_warp = WARP * chosen("ROWS", usual_rows);
        let rows = if let Self::Blocks(a) = self { a.scalars() } else { rows };
        let warps = own + rows.div_ceil(of_warp);
        let function = d.kernel(source, variant, name)?;
        Ok(Kernel { function, config: grid(warps.div_ceil(threads / WARP), threads as u32) })
    }
}

/// Distance from one column of `rows` numbers to the next: every column begins where any lane's rows
/// may, and has room for the rows of a last warp.
fn stride(rows: usize) -> usize {
    rows.next_multiple_of(WARP * MOST_ROWS)
}

/// `from`, whose columns have `rows` numbers each, on the device with the distance of [`stride`].
fn columns<T>(d: &Device, from: &[T], rows: usize) -> Result<CudaSlice<T>>
where
    T: cudarc::driver::DeviceRepr + cudarc::driver::ValidAsZeroBits + bytemuck::Pod,
{
    let stride = stride(rows);
    if stride == rows {
        return d.copied(from);
    }
    let mut to = d.zeros(from.len() / rows.max(1) * stride)?;
    for (at, column) in from.chunks_exact(rows.max(1)).enumerate() {
        d.overwrite_from(column, &mut to, at * stride)?;
    }
    Ok(to)
}

/// For each [`WARP`] rows the number of `sorted` rows before them, one more than there are such
/// groups, and further ends so that a lane may have several rows.
fn near(sorted: &[u32], rows: usize) -> Vec<u32> {
    let groups = rows.div_ceil(WARP) + MOST_ROWS;
    let mut at = 0;
    let mut near = Vec::with_capacity(groups + 1);
    for group in 0..=groups {
        while sorted.get(at).is_some_and(|&row| (row as usize) < group * WARP) {
            at += 1;
        }
        near.push(at as u32);
    }
    near
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_lie_at_multiples_of_what_a_warp_may_have() {
        assert_eq!([1, 128, 129].map(stride), [128, 128, 256]);
    }

    #[test]
    fn rows_are_counted_before_each_warp() {
        assert_eq!(near(&[0, 31, 32, 70], 71), [0, 2, 3, 4, 4, 4, 4, 4]);
        assert_eq!(near(&[], 1), [0; 6]);
    }
}
