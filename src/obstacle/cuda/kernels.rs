//! Variants of the kernels of the obstacle problem and the structs that they take by value.

use crate::compute::cuda::launch::Address;
use crate::compute::cuda::layout::shared;
use crate::compute::cuda::sources::Variant;
use crate::obstacle::Method;

shared! {
    pub(super) GridArg = "Grid" of "obstacle/grid.cuh" { old: Address, next: Address, source: Address, floor: Address, before: Address, behind: Address, centre: f64, share: f64, flat: f64, nx: u32, ny: u32, nz: u32, pitch: u32, slice: u64 }
    pub(super) EndingArg = "Ending" of "obstacle/grid.cuh" { control: Address, squared: Address, worst: Address, part: Address, first: Address, parts: u32, sweep: u32, by_worst: u32, bound: f64 }
}

/// Values of `METHOD` of `obstacle/sweep.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Jacobi = 0,
    Lines = 1,
    Points = 2,
    InPlace = 3,
}

impl Kind {
    /// That of a synchronous method.
    pub(super) fn of(method: Method) -> Self {
        match method {
            Method::Jacobi => Self::Jacobi,
            Method::RedBlackY => Self::Lines,
            Method::RedBlack => Self::Points,
        }
    }

    /// Launches of a sweep.
    pub(super) fn colours(self) -> u32 {
        if matches!(self, Self::Lines | Self::Points) { 2 } else { 1 }
    }

    /// Whether the sweep is in place.
    pub(super) fn in_place(self) -> bool {
        matches!(self, Self::Points | Self::InPlace)
    }
}

/// What `obstacle/sweep.cu` is compiled for.
pub(super) fn variant(kind: Kind, floor: bool, with_residual: bool) -> Variant {
    let mut variant = Variant::from(1);
    variant.defines =
        vec![("METHOD", kind as usize), ("FLOOR", floor.into()), ("LOOK", with_residual.into())];
    variant
}

/// What `obstacle/blocked.cu` is compiled for.
pub(super) fn blocked_variant(sweeps: usize, colours: usize, floor: bool) -> Variant {
    let mut variant = Variant::from(1);
    variant.defines = vec![("SWEEPS", sweeps), ("FLOOR", floor.into())];
    if colours > 1 {
        variant.defines.push(("COLOURS", colours));
    }
    variant
}
