//! Variants of the kernels of the obstacle problem and the structs that they take by value.

#![allow(unsafe_code, reason = "parameters of kernels")]

use cudarc::driver::DeviceRepr;

use crate::compute::cuda::launch::Address;
use crate::compute::cuda::sources::Variant;
use crate::obstacle::Method;

/// `Grid` of `obstacle.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct GridArg {
    pub(super) old: Address,
    pub(super) next: Address,
    pub(super) source: Address,
    pub(super) floor: Address,
    pub(super) before: Address,
    pub(super) behind: Address,
    pub(super) centre: f64,
    pub(super) share: f64,
    pub(super) flat: f64,
    pub(super) nx: u32,
    pub(super) ny: u32,
    pub(super) nz: u32,
    pub(super) pitch: u32,
    pub(super) slice: u64,
}

/// `Ending` of `obstacle.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct EndingArg {
    pub(super) control: Address,
    pub(super) squared: Address,
    pub(super) worst: Address,
    pub(super) part: Address,
    pub(super) first: Address,
    pub(super) parts: u32,
    pub(super) sweep: u32,
    pub(super) by_worst: u32,
    pub(super) bound: f64,
}

// SAFETY: plain numbers in C layout, as the kernels declare them
unsafe impl DeviceRepr for GridArg {}
// SAFETY: as above
unsafe impl DeviceRepr for EndingArg {}

/// Values of `METHOD` of `obstacle.cu`.
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

/// Compile-time parameters of `obstacle.cu`.
pub(super) fn variant(kind: Kind, floor: bool, with_residual: bool) -> Variant {
    let mut variant = Variant::from(1);
    variant.defines =
        vec![("METHOD", kind as usize), ("FLOOR", floor.into()), ("LOOK", with_residual.into())];
    variant
}

/// Compile-time parameters of `obstacle_blocked.cu`.
pub(super) fn blocked_variant(sweeps: usize, colours: usize, floor: bool) -> Variant {
    let mut variant = Variant::from(1);
    variant.defines = vec![("SWEEPS", sweeps), ("FLOOR", floor.into())];
    if colours > 1 {
        variant.defines.push(("COLOURS", colours));
    }
    variant
}
