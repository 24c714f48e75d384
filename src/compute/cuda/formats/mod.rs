//! Products with HYB, SELL, DIA and Bdia (`kernels/spmv/formats.cu`, `kernels/spmv/bdia.cu`).

mod argument;
mod bdia;
mod choices;
mod rest;
mod trials;

use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig};

use super::device::{Device, grid};
use super::launch::{Address, DiaArg, HybArg, SellArg, address, launch};
use super::sources::{BDIA, FORMATS, Source, Variant};
use super::tune;
use crate::base::choices::Format;
use crate::base::error::{Error, Result};
use crate::compute::Bytes;
use crate::compute::tune::Choices;
use crate::matrix::storage::TILE;
use crate::matrix::{Bdia, Coo, Csr, Dia, Hyb, Sell, Storage};
pub(super) use argument::Argument;
use bdia::DeviceBdia;
pub(super) use bdia::LAYOUTS;
pub use choices::product_variants;
use choices::{alone, axes};
use rest::Rest;
pub use trials::SUBJECTS;

/// Threads of a warp: rows of a slice of SELL.
const WARP: usize = 32;
/// Most rows that a lane has.
const MOST_ROWS: usize = 4;
/// The kernels know the tiles of HYB and DIA (`spmv/formats.cuh`), in which a warp has its rows.
const _: () = assert!(TILE == 256 && TILE.is_multiple_of(WARP * MOST_ROWS));
/// Rows of a window of SELL within which rows are sorted by length.
const WINDOW: usize = 1024;

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
    choices: Choices,
    /// Whether they were found by tuning.
    tuned: bool,
}

/// The arrays of each format.
enum Way {
    Ellpack {
        width: usize,
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
    pub(super) fn new(d: &Device, a: &Csr, format: Format) -> Result<Self> {
        const MOST: usize = i32::MAX as usize / 2;
        let (rows, block_size) = (a.rows(), a.block_size());
        if rows > MOST {
            return Err(Error::input(format!("{rows} rows: the limit on a GPU is {MOST}")));
        }
        let (bytes, way) = match format {
            Format::Hyb => {
                let hyb = Hyb::from_csr(a);
                let way = Way::Ellpack {
                    width: hyb.width(),
                    col_ind: tiles(d, hyb.col_ind(), rows)?,
                    val: tiles(d, hyb.values(), rows)?,
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
                    offsets: d.copied(&offsets)?,
                    val: tiles(d, dia.values(), rows)?,
                    rest: Rest::new(d, dia.rest(), rows)?,
                };
                (dia.bytes(), way)
            }
            _ => {
                let bdia = Bdia::from_csr(a)?;
                (bdia.bytes(), Way::Blocks(DeviceBdia::new(d, &bdia)?))
            }
        };
        Self::stored(d, [rows, a.nnz()], (format, block_size), (bytes, way))
    }

    /// A matrix of whole diagonals alone, whose numbers lie in tiles on the device, each with room for all of
    /// its rows.
    pub(super) fn of_diagonals(
        d: &Device,
        [rows, entries]: [usize; 2],
        (count, offsets): (usize, CudaSlice<i32>),
        val: CudaSlice<f64>,
    ) -> Result<Self> {
        let rest = Rest::new(d, &Coo::default(), rows)?;
        let way = Way::Diagonals { count, offsets, val, rest };
        let bytes = 8 * (count * rows + count);
        Self::stored(d, [rows, entries], (Format::Dia, 1), (bytes, way))
    }

    /// Arrays on the device with their kernel.
    fn stored(
        d: &Device,
        [rows, entries]: [usize; 2],
        (format, block_size): (Format, usize),
        (bytes, way): (usize, Way),
    ) -> Result<Self> {
        let axes = axes(format, block_size);
        let found = d.tuning().choices(&way.key(rows, entries, block_size), rows);
        let found = found.filter(|choices| tune::allowed(&axes, choices));
        let choices = found.clone().unwrap_or_else(|| tune::usual(&axes));
        let kernel = way.kernel(d, rows, (format, block_size), choices, found.is_some())?;
        Ok(Self { format, rows, block_size, bytes, way, kernel })
    }

    /// Takes over the values of `a`: stored anew, since conversion decides where they are.
    pub(super) fn set_values(&mut self, d: &Device, a: &Csr) -> Result<()> {
        *self = Self::new(d, a, self.format)?;
        Ok(())
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// The choices for the kernel, where they are those of tuning.
    pub(super) fn tuned(&self) -> Option<String> {
        self.kernel.tuned.then(|| crate::compute::tune::text(&self.kernel.choices))
    }

    /// Entries of the rows before each row, as far as rows differ.
    pub(super) fn entries_before(&self) -> Box<dyn Fn(usize) -> u64> {
        match &self.way {
            Way::Blocks(bdia) => bdia.entries_before(),
            _ => Box::new(|_| 0),
        }
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
        let (rows, Kernel { function, config, .. }) = (self.rows as u32, &self.kernel);
        match &self.way {
            Way::Ellpack { width, col_ind, val, rest } => {
                let a = HybArg {
                    rows,
                    width: *width as u32,
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
            Way::Diagonals { count, offsets, val, rest } => {
                let a = DiaArg {
                    rows,
                    count: *count as u32,
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
    /// What tuning knows the kernel by: with all that decides what is fast, but for the size.
    fn key(&self, rows: usize, nnz: usize, block_size: usize) -> String {
        match self {
            Self::Ellpack { width, .. } => format!("hyb, {}", width_class(*width)),
            Self::Slices { .. } => format!("sell, {}", width_class(nnz / rows.max(1))),
            Self::Diagonals { count, .. } => format!("dia, {}", width_class(*count)),
            Self::Blocks(a) => format!("bdia, block size {block_size}{}", a.shape()),
        }
    }

    /// The kernel compiled with `choices`.
    fn kernel(
        &self,
        d: &Device,
        rows: usize,
        (format, block_size): (Format, usize),
        choices: Choices,
        tuned: bool,
    ) -> Result<Kernel> {
        let (source, name, own): (&'static Source, _, _) = match self {
            Self::Ellpack { rest, .. } => (&FORMATS, "hyb", rest.own_rows()),
            Self::Slices { .. } => (&FORMATS, "sell", 0),
            Self::Diagonals { rest, .. } => (&FORMATS, "dia", rest.own_rows()),
            Self::Blocks(a) => (&BDIA, "bdia", a.wells()),
        };
        let mut variant = Variant::from(block_size);
        variant.defines.extend(alone(format).map(|name| (name, 1)));
        if let Self::Blocks(a) = self {
            variant.defines.extend(a.defines());
        }
        let axes = axes(format, block_size);
        variant.defines.extend(axes.iter().map(|axis| (axis.name, choices[axis.name])));
        let threads = choices["THREADS"];
        let rows = if let Self::Blocks(a) = self { a.scalars() } else { rows };
        let warps = own + rows.div_ceil(WARP * choices["ROWS"]);
        let function = d.kernel(source, variant, name)?;
        let config = grid(warps.div_ceil(threads / WARP), threads as u32);
        Ok(Kernel { function, config, choices, tuned })
    }
}

/// Widths that are searched together.
fn width_class(width: usize) -> String {
    format!("up to {} in a row", width.next_power_of_two())
}

/// `from`, tiles of [`TILE`] rows of which the last has those that are left, on the device with room for
/// as many in the last.
fn tiles<T>(d: &Device, from: &[T], rows: usize) -> Result<CudaSlice<T>>
where
    T: cudarc::driver::DeviceRepr + cudarc::driver::ValidAsZeroBits + bytemuck::Pod,
{
    let (whole, left) = (rows / TILE, rows % TILE);
    if left == 0 {
        return d.copied(from);
    }
    let columns = from.len() / rows;
    let (whole, last) = from.split_at(whole * TILE * columns);
    let mut to = d.zeros(whole.len() + TILE * columns)?;
    d.overwrite(whole, &mut to)?;
    let mut padded = vec![T::zeroed(); TILE * columns];
    for (from, to) in last.chunks_exact(left).zip(padded.chunks_exact_mut(TILE)) {
        to[..left].copy_from_slice(from);
    }
    d.overwrite_from(&padded, &mut to, whole.len())?;
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
    fn rows_are_counted_before_each_warp() {
        assert_eq!(near(&[0, 31, 32, 70], 71), [0, 2, 3, 4, 4, 4, 4, 4]);
        assert_eq!(near(&[], 1), [0; 6]);
    }
}
