//! A slice that several threads write in disjoint places.

#![allow(
    unsafe_code,
    reason = "instruction sets chosen at run time, threads that write disjoint parts"
)]

use std::cell::UnsafeCell;
use std::ops::Range;

/// A mutable slice shared by threads that agree on who touches what.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a, T = f64>(&'a [UnsafeCell<T>]);

// SAFETY: access goes through the unsafe methods, whose callers keep ranges apart.
unsafe impl<T: Send + Sync> Sync for Shared<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Send for Shared<'_, T> {}

impl<'a, T: Copy> Shared<'a, T> {
    /// Takes the slice for as long as it is shared.
    pub(super) fn new(slice: &'a mut [T]) -> Self {
        let pointer = std::ptr::from_mut(slice) as *const [UnsafeCell<T>];
        // SAFETY: UnsafeCell<T> has the layout of T, and the unique borrow lasts for 'a.
        Self(unsafe { &*pointer })
    }

    /// Reads `range`.
    ///
    /// # Safety
    /// `range` lies in the slice, and nobody writes it while the result lives.
    #[inline(always)]
    pub(super) unsafe fn read(self, range: Range<usize>) -> &'a [T] {
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
    pub(super) unsafe fn write(self, range: Range<usize>) -> &'a mut [T] {
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
