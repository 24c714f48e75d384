//! Vectors in huge pages where the system grants them.

#![allow(unsafe_code, reason = "advice to the system about pages")]

use bytemuck::Pod;

/// Bytes of a huge page.
pub(super) const HUGE: usize = 2 << 20;

/// Room for at least `n` entries that fills huge pages: systems align only mappings of whole ones to them, and
/// what lies before the first and behind the last comes in small pages.
fn rounded<T>(n: usize) -> usize {
    /// What an allocator puts before a large array at most.
    const HEADER: usize = 64;
    let bytes = n.saturating_mul(size_of::<T>());
    if bytes < HUGE / 4 * 3 || bytes > isize::MAX as usize / 2 {
        return n;
    }
    ((bytes + HEADER).next_multiple_of(HUGE) - HEADER) / size_of::<T>()
}

/// An empty vector with room for `n` entries that asks the system for huge pages.
pub fn with_capacity<T>(n: usize) -> Vec<T> {
    let v = Vec::with_capacity(rounded::<T>(n));
    advise(&v);
    v
}

/// As [`with_capacity`]; `None` when the system refuses the address space.
pub(crate) fn try_with_capacity<T>(n: usize) -> Option<Vec<T>> {
    let mut v = Vec::new();
    v.try_reserve_exact(rounded::<T>(n)).ok()?;
    advise(&v);
    Some(v)
}

/// `n` zeros whose pages are taken when they are first written, by the thread that does; huge ones where the
/// system grants them.
pub(crate) fn zeroed<T: Pod>(n: usize) -> Vec<T> {
    // the allocator has fresh zeros for both lengths
    let mut v = vec![T::zeroed(); rounded::<T>(n)];
    advise(&v);
    v.truncate(n);
    v
}

/// Makes room for `more` entries, and for as many again as there are when it has to move them.
/// Unlike [`Vec::reserve`] it asks for huge pages.
pub(crate) fn reserve<T: Copy>(v: &mut Vec<T>, more: usize) {
    if v.capacity() - v.len() < more {
        let mut larger = with_capacity((2 * v.len()).max(v.len() + more));
        larger.extend_from_slice(v);
        *v = larger;
    }
}

/// Asks for huge pages for the memory of `v`, if it is large. To be called before it is first
/// written; nothing happens where the system does not grant it.
#[cfg(target_os = "linux")]
fn advise<T>(v: &Vec<T>) {
    const PAGE: usize = 4096;
    let bytes = v.capacity() * size_of::<T>();
    // from the page on in which it begins: the allocator's own mapping is aligned to huge pages, and the
    // vector starts a few bytes behind
    let start = v.as_ptr() as usize / PAGE * PAGE;
    let end = (v.as_ptr() as usize + bytes) / PAGE * PAGE;
    if bytes >= HUGE && start < end {
        // SAFETY: the pages hold memory of this process, and the advice changes no contents.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise<T>(_: &Vec<T>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_or_none() {
        assert!(with_capacity::<u32>(1 << 22).capacity() >= 1 << 22);
        assert!(try_with_capacity::<u32>(1 << 22).unwrap().capacity() >= 1 << 22);
        assert!(try_with_capacity::<u32>(1 << 60).is_none());
    }

    #[test]
    fn what_is_there_stays_when_room_is_made() {
        let mut v = vec![1, 2, 3];
        reserve(&mut v, 1000);
        assert!(v.capacity() >= 1003);
        let at = v.as_ptr();
        v.extend(0..1000);
        assert_eq!((&v[..4], v.as_ptr()), (&[1, 2, 3, 0][..], at));
        reserve(&mut v, 0);
        assert_eq!(v.as_ptr(), at);
    }
}
