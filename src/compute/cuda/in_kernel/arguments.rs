//! What kernels that stay on the device take of a matrix and its preconditioner.

use MatrixArgument::{Block, Other, Point};

use crate::base::choices::FactorPrecision;
use crate::compute::cuda::device::Device;
use crate::compute::cuda::formats::Argument;
use crate::compute::cuda::launch::{Address, BlocksArg};
use crate::compute::cuda::sptrsv::{Parts, RESIDENT_THREADS as THREADS};
use crate::compute::cuda::{Cuda, Matrix};
use crate::compute::preconditioner::{Form, Preconditioner};

/// The struct of a matrix that a kernel takes.
pub(super) enum MatrixArgument {
    /// CSR.
    Point(BlocksArg),
    /// BSR.
    Block(BlocksArg),
    /// HYB, DIA or Bdia.
    Other(Argument),
}

impl MatrixArgument {
    /// FORMAT of `krylov/in_kernel.cuh`.
    pub(super) fn number(&self) -> usize {
        match self {
            Point(_) => 0,
            Block(_) => 1,
            Other(Argument::Bdia(_)) => 2,
            Other(Argument::Hyb(_)) => 3,
            Other(Argument::Dia(_)) => 4,
        }
    }
}

/// The matrix, if there are such kernels for its format.
pub(super) fn argument(a: &Matrix) -> Option<MatrixArgument> {
    match a {
        Matrix::Ours(a) if a.block_size == 1 => Some(Point(a.argument())),
        Matrix::Ours(a) => Some(Block(a.argument())),
        Matrix::Formatted(a) => a.argument().map(Other),
        Matrix::Vendor(_) | Matrix::VendorSell(_) => None,
    }
}

impl Matrix {
    pub(super) fn block_size(&self) -> usize {
        match self {
            Self::Ours(a) => a.block_size,
            Self::Formatted(a) => a.block_size(),
            Self::Vendor(a) => a.product().pattern().block_size(),
            Self::VendorSell(_) => 1,
        }
    }
}

/// Macros that depend on the matrix.
pub(super) fn matrix_defines(
    d: &Device,
    a: &Matrix,
    block_size: usize,
) -> Vec<(&'static str, usize)> {
    match a {
        Matrix::Ours(a) if a.block_size == 1 => {
            let lanes = (a.mean_blocks() / 2).next_power_of_two().clamp(2, 32);
            vec![("ROW_LANES", lanes)]
        }
        Matrix::Formatted(a) => {
            let mut defines = a.defines();
            // with few rows a thread, all of them are wanted
            let blocks = d.multiprocessors().min(d.limits().resident) as usize;
            let many = a.order() > 4 * blocks * THREADS as usize;
            let bdia = matches!(a.argument(), Some(Argument::Bdia(_)));
            if bdia && many && block_size.is_multiple_of(2) {
                defines.push(("PLACES", 2));
            }
            defines
        }
        _ => Vec::new(),
    }
}

/// The inverse of a preconditioner as these kernels apply it.
pub(super) enum Inverse {
    None,
    /// Inverse diagonal blocks: a thread block applies them to its rows.
    Blocks {
        block_size: usize,
        precision: FactorPrecision,
        blocks: Address,
    },
    /// Triangular factors, for whose solves thread blocks wait for each other.
    Factors {
        block_size: usize,
        precision: FactorPrecision,
        parts: Parts,
    },
}

impl Inverse {
    /// PRECOND of `krylov/in_kernel.cuh`.
    pub(super) fn number(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Blocks { .. } => 1,
            Self::Factors { .. } => FACTORS,
        }
    }

    /// Unknowns of a block and precision, where the preconditioner has any.
    pub(super) fn stored(&self) -> Option<(usize, FactorPrecision)> {
        match *self {
            Self::None => None,
            Self::Blocks { block_size, precision, .. }
            | Self::Factors { block_size, precision, .. } => Some((block_size, precision)),
        }
    }

    /// The inverse diagonal blocks, if it is these.
    pub(super) fn blocks(&self) -> Address {
        match self {
            Self::Blocks { blocks, .. } => *blocks,
            Self::None | Self::Factors { .. } => 0,
        }
    }

    /// The triangular factors, if it is these.
    pub(super) fn parts(&self) -> Option<&Parts> {
        match self {
            Self::Factors { parts, .. } => Some(parts),
            Self::None | Self::Blocks { .. } => None,
        }
    }
}

/// PRECOND for triangular factors.
pub(super) const FACTORS: usize = 2;

/// The preconditioner, if it is one of these.
pub(super) fn inverse(m: &dyn Preconditioner<Cuda>) -> Option<Inverse> {
    match m.form() {
        Form::Identity => Some(Inverse::None),
        Form::Factors { ilu, .. } => {
            let block_size = ilu.block_size;
            if let Some((blocks, precision)) = ilu.block_diagonal() {
                return Some(Inverse::Blocks { block_size, precision, blocks });
            }
            let (parts, precision) = ilu.parts()?;
            Some(Inverse::Factors { block_size, precision, parts })
        }
        Form::Other => None,
    }
}
