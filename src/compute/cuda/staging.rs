//! Transfers through pinned memory, which the device reads and writes at full speed.

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use cudarc::driver::{CudaEvent, CudaStream, DriverError, PinnedHostSlice, result, sys};
use rayon::prelude::*;

use super::launch::Address;

/// Bytes of a piece.
const PIECE: usize = 8 << 20;

/// Pieces: one is on its way, the next ones are filled meanwhile.
const PIECES: usize = 4;

/// Bytes that one thread copies at a time.
const PART: usize = 1 << 18;

/// Pieces of pinned memory, in turns.
pub(super) struct Staging {
    pieces: [Piece; PIECES],
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
        Ok(Self { pieces: [piece()?, piece()?, piece()?, piece()?] })
    }

    /// Copies `from` to `to`; returns when `from` may change.
    pub(super) fn upload(
        &mut self,
        stream: &CudaStream,
        from: &[u8],
        to: Address,
    ) -> Result<(), DriverError> {
        within(stream, from.len(), || self.sent(stream, from, to))
    }

    /// Copies `from` to `to`; returns when all is there.
    pub(super) fn download(
        &mut self,
        stream: &CudaStream,
        from: Address,
        to: &mut [u8],
    ) -> Result<(), DriverError> {
        within(stream, to.len(), || self.fetched(stream, from, to))
    }

    fn sent(&mut self, stream: &CudaStream, from: &[u8], to: Address) -> Result<(), DriverError> {
        for (i, bytes) in from.chunks(PIECE).enumerate() {
            let piece = &mut self.pieces[i % PIECES];
            piece.done.synchronize()?;
            let memory = &mut piece.memory.as_mut_slice()?[..bytes.len()];
            copy(bytes, memory);
            let at = to + (i * PIECE) as u64;
            // SAFETY: the caller's buffer has room for all of `from`
            unsafe { result::memcpy_htod_async(at, memory, stream.cu_stream()) }?;
            piece.done.record(stream)?;
        }
        Ok(())
    }

    fn fetched(
        &mut self,
        stream: &CudaStream,
        from: Address,
        to: &mut [u8],
    ) -> Result<(), DriverError> {
        let length = |i: usize, all: usize| PIECE.min(all - i * PIECE);
        let (all, count) = (to.len(), to.len().div_ceil(PIECE));
        for i in 0..=count {
            if i < count {
                let piece = &mut self.pieces[i % PIECES];
                piece.done.synchronize()?;
                let memory = &mut piece.memory.as_mut_slice()?[..length(i, all)];
                // SAFETY: the caller's buffer has as many bytes as `to`
                unsafe {
                    let at = from + (i * PIECE) as u64;
                    result::memcpy_dtoh_async(memory, at, stream.cu_stream())
                }?;
                piece.done.record(stream)?;
            }
            // the piece before, while this one is on its way
            if let Some(i) = i.checked_sub(1) {
                let piece = &mut self.pieces[i % PIECES];
                piece.done.synchronize()?;
                let length = length(i, all);
                copy(&piece.memory.as_slice()?[..length], &mut to[i * PIECE..][..length]);
            }
        }
        Ok(())
    }
}

/// Runs `transfer` of so many bytes on a thread of the pool, where it asks the others for help in a fraction of the time
/// that a thread outside waits for them.
fn within(
    stream: &CudaStream,
    bytes: usize,
    transfer: impl FnOnce() -> Result<(), DriverError> + Send,
) -> Result<(), DriverError> {
    if bytes <= PART {
        return transfer();
    }
    rayon::scope(|_| {
        stream.context().bind_to_thread()?;
        transfer()
    })
}

/// Copies on all threads.
fn copy(from: &[u8], to: &mut [u8]) {
    let parts = to.par_chunks_mut(PART).zip(from.par_chunks(PART));
    parts.for_each(|(to, from)| to.copy_from_slice(from));
}
