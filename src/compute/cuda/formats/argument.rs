//! What a kernel that multiplies within takes of a matrix.

use super::{Formatted, Way};
use crate::compute::cuda::launch::{BdiaArg, DiaArg, HybArg, address};

/// The struct of `kernels/spmv/formats.cuh` of a format.
pub(in crate::compute::cuda) enum Argument {
    Hyb(HybArg),
    Dia(DiaArg),
    Bdia(BdiaArg),
}

impl Formatted {
    /// Unknowns.
    pub(in crate::compute::cuda) fn order(&self) -> usize {
        self.rows
    }

    /// Unknowns per block.
    pub(in crate::compute::cuda) fn block_size(&self) -> usize {
        self.block_size
    }

    /// Macros for which such a kernel is compiled.
    pub(in crate::compute::cuda) fn defines(&self) -> Vec<(&'static str, usize)> {
        match &self.way {
            Way::Blocks(a) => a.defines().to_vec(),
            _ => Vec::new(),
        }
    }

    /// `None` for SELL, whose rows may have other places.
    pub(in crate::compute::cuda) fn argument(&self) -> Option<Argument> {
        let rows = self.rows as u32;
        match &self.way {
            Way::Slices { .. } => None,
            Way::Blocks(a) => Some(Argument::Bdia(a.argument())),
            Way::Ellpack { width, col_ind, val, rest } => Some(Argument::Hyb(HybArg {
                rows,
                width: *width as u32,
                col_ind: address(col_ind),
                val: address(val),
                rest: rest.argument(),
            })),
            Way::Diagonals { count, offsets, val, rest } => Some(Argument::Dia(DiaArg {
                rows,
                count: *count as u32,
                offsets: address(offsets),
                val: address(val),
                rest: rest.argument(),
            })),
        }
    }
}
