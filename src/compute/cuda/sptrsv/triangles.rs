//! Solves that take one triangle after the other, and what stands between the two.

use std::rc::Rc;

use cudarc::driver::{CudaFunction, CudaSlice, DriverError, result};

use super::slices::{SLICES_PER_BLOCK, THREADS};
use super::{InHalves, Parts, Solve, System};
use crate::base::choices::FactorPrecision;
use crate::base::error::Result;
use crate::compute::Bytes;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{Address, PartsArg, SolveArg, address, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::numbers::{Numbers, Values};
use crate::compute::cuda::sources::{TRSV, Variant};
use crate::compute::cuda::storage::{DevicePattern, Structure};

/// A strictly triangular factor on the device, with a kernel that solves with it.
pub(super) trait Triangle {
    /// Whether the backward solve looks for the inverse diagonal blocks at `SolveArg::diagonal`, not
    /// among its own blocks.
    const READS_DIAGONAL: bool;
    /// Whether a solve marks the vector that the next one waits in.
    const MARKS: bool;

    /// Bytes of its own storage, all of which a solve reads.
    fn bytes(&self) -> usize;

    /// Takes over the `blocks`, which are in the order of the pattern; the `diagonal`, too, where a
    /// backward solve keeps it among them.
    fn set_values(
        &mut self,
        d: &Device,
        pattern: &DevicePattern,
        blocks: &CudaSlice<f64>,
        diagonal: &Numbers,
    ) -> Result<()>;

    /// Its parts and the slots of shared memory that they take, where solves within another kernel go
    /// through them.
    fn parts(&self) -> Option<(PartsArg, usize)> {
        None
    }

    /// Forward: y from r. Backward: z from y, which is multiplied by the inverse diagonal first.
    fn solve(&self, d: &Device, arg: SolveArg) -> Result<(), DriverError>;
}

/// What comes after the forward solve.
enum Upper<T> {
    Triangle(T),
    /// The diagonal alone, where the triangle is empty.
    Diagonal(BlockDiagonal),
}

/// Both triangles, with the diagonal.
pub(super) struct Triangles<T> {
    lower: Option<T>,
    upper: Upper<T>,
    diagonal: Option<Rc<Numbers>>,
    /// Forward solution; nothing where solves are told its place.
    y: CudaSlice<f64>,
    /// Numbers of a vector.
    unknowns: usize,
}

impl<T: Triangle> Triangles<T> {
    /// A triangle that is `None` is empty. `y` is the forward solution's place, as the kernels want
    /// to find it.
    pub(super) fn new(
        s: &System,
        [lower, upper]: [Option<T>; 2],
        y: CudaSlice<f64>,
    ) -> Result<Self> {
        let (d, f) = (s.device, s.structure);
        let upper = match upper {
            Some(upper) => Upper::Triangle(upper),
            None => Upper::Diagonal(BlockDiagonal::new(d, f, s.precision)?),
        };
        let unknowns = f.pattern.rows() * f.block_size;
        Ok(Self { lower, upper, diagonal: None, y, unknowns })
    }
}

/// For solves with one of them at a time.
pub(super) fn in_halves<T: Triangle + 'static>(
    s: &System,
    pair: [Option<T>; 2],
) -> Result<Box<dyn InHalves>> {
    Ok(Box::new(Triangles::new(s, pair, s.device.alloc(0)?)?))
}

/// A triangle that there is not.
enum Empty {}

impl Triangle for Empty {
    const READS_DIAGONAL: bool = false;
    const MARKS: bool = false;

    fn bytes(&self) -> usize {
        match *self {}
    }

    fn set_values(
        &mut self,
        _: &Device,
        _: &DevicePattern,
        _: &CudaSlice<f64>,
        _: &Numbers,
    ) -> Result<()> {
        match *self {}
    }

    fn solve(&self, _: &Device, _: SolveArg) -> Result<(), DriverError> {
        match *self {}
    }
}

/// Factors whose triangles are empty.
pub(in crate::compute::cuda) fn diagonal_alone(s: &System) -> Result<Box<dyn Solve>> {
    let none: [Option<Empty>; 2] = [None, None];
    Ok(Box::new(Triangles::new(s, none, s.device.alloc(0)?)?))
}

/// The same for solves with one of them at a time.
pub(super) fn diagonal_in_halves(s: &System) -> Result<Box<dyn InHalves>> {
    let none: [Option<Empty>; 2] = [None, None];
    in_halves(s, none)
}

impl<T: Triangle> Solve for Triangles<T> {
    fn set_values(&mut self, d: &Device, f: &Structure, v: Values) -> Result<f64> {
        if let Some(lower) = &mut self.lower {
            lower.set_values(d, &f.lower, &v.lower, &v.diagonal)?;
        }
        if let Upper::Triangle(upper) = &mut self.upper {
            upper.set_values(d, &f.upper, &v.upper, &v.diagonal)?;
        }
        let alone = matches!(self.upper, Upper::Diagonal(_));
        self.diagonal = (alone || T::READS_DIAGONAL).then_some(v.diagonal);
        Ok(0.0)
    }

    fn bytes(&self) -> Option<Bytes> {
        let upper = match &self.upper {
            Upper::Triangle(upper) => Some(upper),
            Upper::Diagonal(_) => None,
        };
        let diagonal = self.diagonal.as_ref().map_or(0, |diagonal| diagonal.bytes());
        let both = [self.lower.as_ref(), upper];
        let held = diagonal + both.iter().flatten().map(|t| t.bytes()).sum::<usize>();
        // each triangle reads one and writes one, the diagonal where it stands for U', too
        let solves = usize::from(self.lower.is_some()) + 1;
        let marks = if T::MARKS { both.iter().flatten().count() } else { 0 };
        Some(Bytes { held, moved: held + (2 * solves + marks) * 8 * self.unknowns })
    }

    fn parts(&self) -> Option<Parts> {
        let Upper::Triangle(upper) = &self.upper else { return None };
        let (lower, lower_slots) = self.lower.as_ref()?.parts()?;
        let (upper, upper_slots) = upper.parts()?;
        let diagonal = self.diagonal.as_ref()?.address();
        let (y, slots) = (address(&self.y), lower_slots.max(upper_slots));
        Some(Parts { lower, upper, diagonal, y, slots })
    }

    fn apply(&self, d: &Device, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) -> Result<()> {
        let fault = |e: DriverError| failed("triangular solve", e);
        let diagonal = self.diagonal.as_ref().map_or(0, |diagonal| diagonal.address());
        let arg = SolveArg { r: address(r), diagonal, y: address(&self.y), z: address(z) };
        let y = match &self.lower {
            Some(lower) => lower.solve(d, arg).map(|()| arg.y).map_err(fault)?,
            None => arg.r,
        };
        match &self.upper {
            Upper::Triangle(upper) => upper.solve(d, SolveArg { y, ..arg }),
            Upper::Diagonal(scale) => scale.launch(d, diagonal, y, arg.z),
        }
        .map_err(fault)
    }
}

impl<T: Triangle> InHalves for Triangles<T> {
    fn forward(&self, d: &Device, arg: SolveArg) -> Result<(), DriverError> {
        if let Some(lower) = &self.lower {
            return lower.solve(d, arg);
        }
        let (bytes, stream) = (8 * self.unknowns, d.stream().cu_stream());
        // SAFETY: both vectors have as many numbers, and neither is part of the other
        #[allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]
        unsafe {
            result::memcpy_dtod_async(arg.y, arg.r, bytes, stream)
        }
    }

    fn backward(&self, d: &Device, arg: SolveArg) -> Result<(), DriverError> {
        let diagonal = self.diagonal.as_ref().map_or(0, |diagonal| diagonal.address());
        match &self.upper {
            Upper::Triangle(upper) => upper.solve(d, SolveArg { diagonal, ..arg }),
            Upper::Diagonal(scale) => scale.launch(d, diagonal, arg.y, arg.z),
        }
    }
}

/// `z = D y` for inverse diagonal blocks D.
pub(super) struct BlockDiagonal {
    kernel: CudaFunction,
    block_size: usize,
    rows: usize,
}

impl BlockDiagonal {
    /// For blocks stored in `precision`.
    pub(super) fn new(d: &Device, f: &Structure, precision: FactorPrecision) -> Result<Self> {
        let variant = Variant::from(f.block_size).storing(precision);
        let kernel = d.kernel(&TRSV, variant, "block_diagonal")?;
        Ok(Self { kernel, block_size: f.block_size, rows: f.pattern.rows() })
    }

    /// All of them are addresses of buffers for that many rows.
    pub(super) fn launch(
        &self,
        d: &Device,
        diagonal: Address,
        y: Address,
        z: Address,
    ) -> Result<(), DriverError> {
        let rows_per_block = (32 / self.block_size.min(32)) * SLICES_PER_BLOCK;
        let config = grid(self.rows.div_ceil(rows_per_block), THREADS);
        let rows = self.rows as u32;
        launch!(d, &self.kernel, config; rows, SolveArg { r: 0, diagonal, y, z })
    }
}
