//! A slice that several threads write in disjoint places.

#![allow(
    unsafe_code,
    reason = "instruction sets chosen at run time, threads that write disjoint parts"
)]

use std::cell::UnsafeCell;
use std::ops::Range;

/// A mutable slice shared by threads that agree on who touches what.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a>(&'a [UnsafeCell<f64>]);

// SAFETY: access goes through the unsafe methods, whose callers keep ranges apart.
unsafe impl Sync for Shared<'_> {}
// SAFETY: as above.
unsafe impl Send for Shared<'_> {}

impl<'a> Shared<'a> {
    /// Takes the slice for as long as it is shared.
    pub(super) fn new(slice: &'a mut [f64]) -> Self {
        let pointer = std::ptr::from_mut(slice) as *const [UnsafeCell<f64>];
        // SAFETY: UnsafeCell<f64> has the layout of f64, and the unique borrow lasts for 'a.
        Self(unsafe { &*pointer })
    }

    /// Reads `range`.
    ///
    /// # Safety
    /// `range` lies in the slice, and nobody writes it while the result lives.
    #[inline(always)]
    pub(super) unsafe fn read(self, range: Range<usize>) -> &'a [f64] {
        debug_assert!(range.start <= range.end && range.end <= self.0.len());
        // SAFETY: in bounds and unwritten by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(range.start).cast(), range.len()) }
    }

    /// Writes `range`.
    ///
    /// # Safety
    /// `range` lies in the slice, and nobody else reads or writes it while the result lives.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)] // the point of the type
    pub(super) unsafe fn write(self, range: Range<usize>) -> &'a mut [f64] {
        debug_assert!(range.start <= range.end && range.end <= self.0.len());
        // SAFETY: in bounds and exclusive by the caller's promise.
        unsafe {
            std::slice::from_raw_parts_mut(
                UnsafeCell::raw_get(self.0.as_ptr().add(range.start)),
                range.len(),
            )
        }
    }
}
