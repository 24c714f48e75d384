//! Large arrays on huge pages and cache-line boundaries.
//!
//! Every phase streams hundreds of megabytes, and a triangular solve also gathers: with 4 KiB
//! pages the first touch and the address translation cost a good part of the time, and a wide load
//! that straddles two cache lines costs two.

#![allow(unsafe_code, reason = "bytes that are aligned, entries that are all written")]

use std::alloc::Layout;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use memmap2::MmapMut;

use crate::base::error::{Error, Result};
use crate::base::pages::HUGE;
pub use crate::base::pages::with_capacity;
pub(crate) use crate::base::pages::{reserve, try_with_capacity, zeroed};
use crate::base::threads::Threads;

/// Memory that is freed stays with the process, up to 64 MiB, for the arrays that follow: their pages are there already.
/// The allocator of glibc comes to these limits by itself, once it has freed an array of 32 MiB. To be called first.
pub fn keep_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (parameter, mib) in [(libc::M_MMAP_THRESHOLD, 32), (libc::M_TRIM_THRESHOLD, 64)] {
        // SAFETY: sets a parameter of the allocator; values that it does not take change nothing.
        unsafe { libc::mallopt(parameter, mib << 20) };
    }
}

/// A fixed-size array of zeros to begin with, aligned to a cache line, in huge pages where the system
/// grants them. The memory is taken at once: its cost belongs to the phase that allocates, not to
/// the one that happens to write first.
pub struct Buffer<T> {
    bytes: Bytes,
    len: usize,
    of: PhantomData<T>,
}

enum Bytes {
    /// Few: a mapping of their own takes longer than what is done with them.
    Few(Vec<Line>),
    Mapped(MmapMut),
}

/// A cache line, read as numbers of other types.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "its bytes are read through others")]
#[repr(align(64))]
struct Line([u8; 64]);

// SAFETY: bytes alone, without padding, and any are valid.
unsafe impl bytemuck::Zeroable for Line {}
// SAFETY: as above.
unsafe impl Pod for Line {}

/// Bytes that have a mapping of their own: those for which the system has huge pages. The pages of a smaller one would
/// be asked for anew each time; memory that was [freed](keep_freed) has its pages.
const MAPPED: usize = HUGE / 4 * 3;

impl<T: Pod> Buffer<T> {
    /// `len` zeros. When the system refuses the address space the program ends, as with any allocation
    /// that fails.
    pub fn zeros(len: usize) -> Self {
        Self::try_zeros(len).unwrap_or_else(|_| {
            let wanted = Layout::array::<T>(len).unwrap_or(Layout::new::<T>());
            std::alloc::handle_alloc_error(wanted)
        })
    }

    /// `len` zeros.
    ///
    /// # Errors
    /// When the system refuses the address space.
    pub(crate) fn try_zeros(len: usize) -> Result<Self> {
        let refused = || {
            let gigabytes = len as f64 * size_of::<T>() as f64 / 1e9;
            Error::memory(format!("the system refused {gigabytes:.1} GB for an array"))
        };
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(refused)?;
        if bytes < MAPPED {
            let lines = vec![Line([0; 64]); bytes.div_ceil(size_of::<Line>())];
            return Ok(Self { bytes: Bytes::Few(lines), len, of: PhantomData });
        }
        // whole huge pages, to which the system then aligns the mapping
        let whole = bytes.checked_next_multiple_of(HUGE).ok_or_else(refused)?;
        let map = MmapMut::map_anon(whole).map_err(|_| refused())?;
        #[cfg(target_os = "linux")]
        populate(&map);
        Ok(Self { bytes: Bytes::Mapped(map), len, of: PhantomData })
    }
}

impl<T: Pod> Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        let bytes = match &self.bytes {
            Bytes::Few(lines) => bytemuck::cast_slice(lines),
            Bytes::Mapped(map) => &map[..],
        };
        &bytemuck::cast_slice(bytes)[..self.len]
    }
}

impl<T: Pod> DerefMut for Buffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        let bytes = match &mut self.bytes {
            Bytes::Few(lines) => bytemuck::cast_slice_mut(lines),
            Bytes::Mapped(map) => &mut map[..],
        };
        &mut bytemuck::cast_slice_mut(bytes)[..self.len]
    }
}

/// Takes all pages, huge ones where they are granted: in a pool by its threads.
#[cfg(target_os = "linux")]
fn populate(map: &MmapMut) {
    use memmap2::Advice::{HugePage, PopulateWrite};
    let threads = Threads::when(rayon::current_thread_index().is_some());
    // older systems refuse, and then pages come as touched
    let _ = map.advise(HugePage);
    threads.for_each(map.len().div_ceil(HUGE), 1, |page| {
        let from = page * HUGE;
        let _ = map.advise_range(PopulateWrite, from, HUGE.min(map.len() - from));
    });
}

/// The parts one behind the other, in huge pages where they are granted; with all threads when `parallel`.
pub fn joined<T: Copy + Send + Sync>(parts: &[&[T]], parallel: bool) -> Vec<T> {
    let all = parts.iter().map(|part| part.len()).sum();
    let mut joined = with_capacity(all);
    let mut room = &mut joined.spare_capacity_mut()[..all];
    let mut places = Vec::with_capacity(parts.len());
    for part in parts {
        let (here, rest) = room.split_at_mut(part.len());
        room = rest;
        places.push((here, *part));
    }
    let copy = |(to, from): (&mut [MaybeUninit<T>], &[T])| {
        for (to, from) in to.iter_mut().zip(from) {
            to.write(*from);
        }
    };
    Threads::when(parallel).each(places, copy);
    // SAFETY: the parts have written every entry
    unsafe { joined.set_len(all) };
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_zero_aligned_and_writable() {
        let mut v = Buffer::<f64>::zeros(3 << 20);
        assert!(v.iter().all(|&x| x == 0.0));
        assert_eq!((v.as_ptr() as usize % 64, v.len()), (0, 3 << 20));
        v[1_000_000] = 1.0;
        assert_eq!(v.iter().sum::<f64>(), 1.0);
        assert!(Buffer::<u32>::zeros(0).is_empty());
        for len in [1, 9, MAPPED / 8 - 1, MAPPED / 8, MAPPED / 8 + 1] {
            let mut v = Buffer::<f64>::zeros(len);
            assert_eq!((v.as_ptr() as usize % 64, v.len()), (0, len));
            assert!(v.iter().all(|&x| x == 0.0));
            v.fill(2.0);
            assert_eq!(v.iter().sum::<f64>(), 2.0 * len as f64);
        }
        for len in [1 << 57, usize::MAX] {
            let refused = Buffer::<f64>::try_zeros(len).err().unwrap();
            assert_eq!(refused.kind(), crate::base::error::Kind::Memory, "{refused}");
        }
    }

    #[test]
    fn parts_are_joined_in_their_order() {
        let parts: [&[u32]; 4] = [&[1, 2], &[], &[3], &[4, 5, 6]];
        for parallel in [false, true] {
            assert_eq!(joined(&parts, parallel), [1, 2, 3, 4, 5, 6]);
            assert!(joined::<f64>(&[], parallel).is_empty());
        }
    }
}
