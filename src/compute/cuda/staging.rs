//! Transfers through pinned memory, which the device reads and writes at full speed.

#![allow(unsafe_code, reason = "calls of the CUDA driver, and memory that threads share by parts")]

use std::sync::atomic::{AtomicUsize, Ordering};

use cudarc::driver::{CudaEvent, CudaStream, DriverError, PinnedHostSlice, result, sys};

use super::launch::Address;
use crate::compute::cpu::stream;

/// Bytes of a piece; the first ones are smaller ([`first_part`]).
const PIECE: usize = 2 << 20;

/// Pieces: one is on its way, the next ones are filled meanwhile.
const PIECES: usize = 16;

/// Pieces that are handed to the bus before the host looks for the end of the first: a host that is late leaves the
/// bus work for so long.
const QUEUED: usize = 4;

/// Bytes that one thread copies at a time.
const PART: usize = 1 << 18;

/// Parts of a piece.
const PARTS: usize = PIECE / PART;

/// Pieces that the first [`PIECE`] bytes of a transfer are divided into.
const FIRST: usize = PARTS.ilog2() as usize + 1;

/// The first part of piece `i`. The bus has nothing to do before a piece is full, and one thread as a rule fills the
/// first, while the others wake: it has one part, the next one too, then their lengths double.
fn first_part(i: usize) -> usize {
    match i {
        0 => 0,
        _ if i <= FIRST => 1 << (i - 1),
        _ => (i - FIRST + 1) * PARTS,
    }
}

/// The piece that part `part` belongs to.
fn piece_of(part: usize) -> usize {
    match part {
        0 => 0,
        _ if part < PARTS => part.ilog2() as usize + 1,
        _ => part / PARTS + FIRST - 1,
    }
}

/// Threads that copy at most, as many as keep up with the bus.
const THREADS: usize = 12;

/// Pieces of pinned memory, in turns.
pub(super) struct Staging {
    pieces: Vec<Piece>,
}

struct Piece {
    memory: PinnedHostSlice<u8>,
    /// When the device has last read or written it.
    done: CudaEvent,
}

impl Staging {
    pub(super) fn new(stream: &CudaStream) -> Result<Self, DriverError> {
        let piece = || {
            // not write-combined, which is slow with several writers; written before it is read
            // SAFETY: bytes of any value are valid
            let memory = unsafe { stream.context().alloc_pinned_with_flags::<u8>(PIECE, 0) }?;
            let flags = Some(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING);
            Ok(Piece { memory, done: stream.record_event(flags)? })
        };
        Ok(Self { pieces: (0..PIECES).map(|_| piece()).collect::<Result<_, _>>()? })
    }

    /// Copies `from` to `to`; returns when `from` may change.
    pub(super) fn upload(
        &mut self,
        stream: &CudaStream,
        from: &[u8],
        to: Address,
    ) -> Result<(), DriverError> {
        let pinned = self.ready()?;
        let copy = |at: usize, piece: usize, within: usize, bytes: usize| {
            // SAFETY: parts of pieces, each written by one thread
            let to = unsafe { std::slice::from_raw_parts_mut(pinned.at(piece, within), bytes) };
            // numbers that another core has just written are best read without making room for a copy
            stream::copy(&from[at..at + bytes], to);
            stream::fence();
        };
        let copies = Copies::new(from.len(), &copy);
        copies.shared(|| {
            copies.allow(PIECES);
            for i in 0..copies.pieces() {
                copies.wait(i);
                let (piece, at) = (&self.pieces[i % PIECES], to + copies.begin(i) as u64);
                // SAFETY: the caller's buffer has room for all of `from`, and nobody writes to the piece
                unsafe {
                    let memory = std::slice::from_raw_parts(pinned.at(i, 0), copies.length(i));
                    result::memcpy_htod_async(at, memory, stream.cu_stream())
                }?;
                piece.done.record(stream)?;
                // an earlier piece may be filled anew once the device has read it
                if let Some(before) = i.checked_sub(QUEUED) {
                    self.pieces[before % PIECES].done.synchronize()?;
                    copies.allow(before + 1 + PIECES);
                }
            }
            Ok(())
        })
    }

    /// Copies `from` to `to`; returns when all is there.
    pub(super) fn download(
        &mut self,
        stream: &CudaStream,
        from: Address,
        to: &mut [u8],
    ) -> Result<(), DriverError> {
        let (pinned, length) = (self.ready()?, to.len());
        let to = Bytes(to.as_mut_ptr());
        let copy = |at: usize, piece: usize, within: usize, bytes: usize| {
            // SAFETY: parts of `to` and of pieces, each copied by one thread
            unsafe { to.at(at).copy_from_nonoverlapping(pinned.at(piece, within), bytes) };
        };
        let copies = Copies::new(length, &copy);
        copies.shared(|| {
            let count = copies.pieces();
            for i in 0..count + QUEUED {
                if i < count {
                    if let Some(before) = i.checked_sub(PIECES) {
                        copies.wait(before);
                    }
                    // SAFETY: the caller's buffer has as many bytes as `to`, and nobody reads the piece
                    unsafe {
                        let memory =
                            std::slice::from_raw_parts_mut(pinned.at(i, 0), copies.length(i));
                        let at = from + copies.begin(i) as u64;
                        result::memcpy_dtoh_async(memory, at, stream.cu_stream())
                    }?;
                    self.pieces[i % PIECES].done.record(stream)?;
                }
                // an earlier piece, while this one is on its way
                if let Some(before) = i.checked_sub(QUEUED).filter(|&before| before < count) {
                    self.pieces[before % PIECES].done.synchronize()?;
                    copies.allow(before + 1);
                }
            }
            (0..count).for_each(|i| copies.wait(i));
            Ok(())
        })
    }

    /// The pieces, which the device has done with.
    fn ready(&mut self) -> Result<Pinned, DriverError> {
        let mut at = [const { Bytes(std::ptr::null_mut()) }; PIECES];
        for (at, piece) in at.iter_mut().zip(&mut self.pieces) {
            piece.done.synchronize()?;
            *at = Bytes(piece.memory.as_mut_slice()?.as_mut_ptr());
        }
        Ok(Pinned(at))
    }
}

/// Where the pieces are.
struct Pinned([Bytes; PIECES]);

impl Pinned {
    /// Byte `within` of the memory for piece `i` of a transfer.
    fn at(&self, i: usize, within: usize) -> *mut u8 {
        self.0[i % PIECES].at(within)
    }
}

/// Bytes that threads read and write.
struct Bytes(*mut u8);

// SAFETY: threads take different parts
unsafe impl Sync for Bytes {}

impl Bytes {
    fn at(&self, at: usize) -> *mut u8 {
        self.0.wrapping_add(at)
    }
}

/// The copies of a transfer, which threads of the pool take part by part, without a meeting between pieces: that took a
/// third of the time.
struct Copies<'a> {
    bytes: usize,
    /// From byte number `.0` of the transfer, byte `.2` of piece `.1`, so many bytes.
    copy: &'a (dyn Fn(usize, usize, usize, usize) + Sync),
    /// The part that is taken next.
    next: AtomicUsize,
    /// Pieces whose parts may be copied.
    allowed: AtomicUsize,
    /// Copied parts of each piece.
    done: Vec<AtomicUsize>,
}

impl<'a> Copies<'a> {
    fn new(bytes: usize, copy: &'a (dyn Fn(usize, usize, usize, usize) + Sync)) -> Self {
        let pieces = bytes.div_ceil(PART).checked_sub(1).map_or(0, |last| piece_of(last) + 1);
        let done = (0..pieces).map(|_| AtomicUsize::new(0)).collect();
        let [next, allowed] = [AtomicUsize::new(0), AtomicUsize::new(0)];
        Self { bytes, copy, next, allowed, done }
    }

    fn pieces(&self) -> usize {
        self.done.len()
    }

    /// The first byte of piece `i`, or the end of the transfer.
    fn begin(&self, i: usize) -> usize {
        self.bytes.min(first_part(i) * PART)
    }

    /// Bytes of piece `i`.
    fn length(&self, i: usize) -> usize {
        self.begin(i + 1) - self.begin(i)
    }

    fn allow(&self, pieces: usize) {
        self.allowed.store(pieces, Ordering::Release);
    }

    fn parts(&self) -> usize {
        self.bytes.div_ceil(PART)
    }

    /// Copies the next part, if it may be. Whether there are more than that.
    fn part(&self) -> bool {
        let next = self.next.load(Ordering::Relaxed);
        if next >= self.parts() {
            return false;
        }
        let (piece, taken) = (piece_of(next), (Ordering::Relaxed, Ordering::Relaxed));
        if piece >= self.allowed.load(Ordering::Acquire)
            || self.next.compare_exchange(next, next + 1, taken.0, taken.1).is_err()
        {
            std::hint::spin_loop();
            return true;
        }
        let at = next * PART;
        (self.copy)(at, piece, at - self.begin(piece), PART.min(self.bytes - at));
        self.done[piece].fetch_add(1, Ordering::Release);
        true
    }

    /// Returns when piece `i` has been copied; helps meanwhile.
    fn wait(&self, i: usize) {
        let parts = self.length(i).div_ceil(PART);
        while self.done[i].load(Ordering::Acquire) < parts {
            self.part();
        }
    }

    /// Wakes so many threads that copy. To wake one takes long: those that are awake wake others.
    fn help<'scope>(&'scope self, scope: &rayon::Scope<'scope>, helpers: usize) {
        let wake = |helpers: usize| {
            scope.spawn(move |scope| {
                self.help(scope, helpers - 1);
                while self.part() {}
            });
        };
        [helpers.div_ceil(2), helpers / 2].into_iter().filter(|&some| some > 0).for_each(wake);
    }

    /// Runs `transfer`, with some threads at the copies.
    fn shared(
        &self,
        transfer: impl FnOnce() -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        let threads = THREADS.min(rayon::current_num_threads()).min(self.parts());
        rayon::in_place_scope(|scope| {
            self.help(scope, threads.saturating_sub(1));
            let result = transfer();
            // after a failure nobody waits for room
            self.next.store(self.parts(), Ordering::Relaxed);
            result
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies so many numbered bytes through pieces that a transfer takes away one by one.
    fn carried(bytes: usize) -> (Vec<u8>, Vec<u8>) {
        let from: Vec<u8> = (0..bytes).map(|i| (i * 31 + i / 251) as u8).collect();
        let mut memory = vec![0; PIECES * PIECE];
        let at = Bytes(memory.as_mut_ptr());
        let copy = |first: usize, piece: usize, within: usize, bytes: usize| {
            let to = at.at(piece % PIECES * PIECE + within);
            // SAFETY: parts of `memory`, each copied by one thread
            unsafe { to.copy_from_nonoverlapping(from[first..].as_ptr(), bytes) };
        };
        let (copies, mut to) = (Copies::new(bytes, &copy), Vec::new());
        let done = copies.shared(|| {
            for i in 0..copies.pieces() {
                copies.allow(i + 1);
                copies.wait(i);
                // SAFETY: nobody writes to the piece before the next is allowed
                to.extend_from_slice(unsafe {
                    std::slice::from_raw_parts(at.at(i % PIECES * PIECE), copies.length(i))
                });
            }
            Ok(())
        });
        assert_eq!(done, Ok(()));
        (from, to)
    }

    #[test]
    fn every_part_is_copied_once_and_in_its_place() {
        let more = 5 * PIECE + 3 * PART + 17;
        for bytes in [0, 1, PART - 1, PART, PART + 1, 3 * PART, PIECE - 1, PIECE, PIECE + 1, more] {
            let (from, to) = carried(bytes);
            assert!(from == to, "{bytes} bytes");
        }
    }

    #[test]
    fn pieces_grow_to_the_size_of_their_memory() {
        let copies = Copies::new(3 * PIECE + 5, &|_, _, _, _| {});
        let parts = [1, 1, 2, 4, 8, 8].map(|parts| parts * PART);
        assert_eq!(
            (0..7).map(|i| copies.length(i)).collect::<Vec<_>>(),
            [&parts[..], &[5]].concat()
        );
        assert_eq!(copies.pieces(), 7);
        for part in 0..100 {
            let piece = piece_of(part);
            assert!((first_part(piece)..first_part(piece + 1)).contains(&part), "{part}");
        }
    }

    #[test]
    fn a_transfer_that_fails_ends() {
        let copies = Copies::new(9 * PIECE, &|_, _, _, _| {});
        let failed = DriverError(sys::cudaError_enum::CUDA_ERROR_UNKNOWN);
        assert_eq!(copies.shared(|| Err(failed)), Err(failed));
    }
}
