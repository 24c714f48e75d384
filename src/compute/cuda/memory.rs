//! The GPU's memory: what is free, what may be taken of it, and taking it.

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, DeviceRepr, DriverError, ValidAsZeroBits, result, sys,
};

use super::launch::Address;
use crate::base::error::{Error, Result};
use crate::base::units;

/// An error of the driver, with what was being done.
pub(crate) fn failed(what: &str, e: DriverError) -> Error {
    let text = e.error_string().map_or_else(|_| format!("{e:?}"), |s| s.to_string_lossy().into());
    let text = format!("CUDA: {what}: {text}");
    if e.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        Error::memory(text)
    } else {
        Error::run(text)
    }
}

/// Environment variable with the most MiB that the program holds on the GPU: for one that others
/// use, too, and to see what happens when memory runs out. What cuSPARSE takes for itself is counted,
/// but not refused.
pub const LIMIT: &str = "BILU_BENCH_GPU_MEMORY";

const MIB: usize = 1 << 20;

/// The most bytes that may be held, where [`LIMIT`] says so.
///
/// # Errors
/// When the variable does not hold a number.
pub fn limit() -> Result<Option<usize>> {
    static BYTES: OnceLock<Result<Option<usize>>> = OnceLock::new();
    let read = || parse(std::env::var_os(LIMIT).unwrap_or_default().to_string_lossy().trim());
    BYTES.get_or_init(read).clone()
}

/// Bytes in a text of MiB; none where it is empty.
fn parse(text: &str) -> Result<Option<usize>> {
    if text.is_empty() {
        return Ok(None);
    }
    let bytes = text.parse::<usize>().ok().and_then(|mib| mib.checked_mul(MIB));
    bytes.map(Some).ok_or_else(|| {
        Error::input(format!("`{text}` is not a whole number of MiB"))
            .in_file(LIMIT)
            .hint("it is the most that the program may hold on the GPU; unset, there is no limit")
    })
}

/// Bytes of the device's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes that can still be taken.
    pub free: usize,
    /// Bytes in all, or the limit.
    pub total: usize,
}

impl Memory {
    /// What a limit leaves of it to a program that holds `held` bytes.
    fn within(self, limit: usize, held: usize) -> Self {
        Self { free: self.free.min(limit.saturating_sub(held)), total: self.total.min(limit) }
    }

    /// That `needed` bytes cannot be had.
    fn lacks(self, needed: usize) -> Error {
        let [needed, free, total] = [needed, self.free, self.total].map(units::memory);
        Error::memory(format!("GPU memory: {needed} needed, {free} of {total} free"))
    }
}

/// Memory of the device of `context`, within the limit.
pub(crate) fn memory(context: &CudaContext) -> Result<Memory> {
    let asked = |e: DriverError| failed("cannot ask for the memory", e);
    let (free, total) = context.mem_get_info().map_err(asked)?;
    let pool = Pool::of(context);
    // what the pool keeps for later is ours
    let kept = match pool {
        Some(pool) => pool.kept().map_err(asked)?,
        None => 0,
    };
    let all = Memory { free: free + kept, total };
    Ok(match limit()? {
        Some(limit) => all.within(limit, held(context).map_err(asked)?.unwrap_or(total - free)),
        None => all,
    })
}

/// Part of a device's memory that its pool may keep for later, one in so many: to take memory from the system
/// takes longer than to fill it.
const KEPT_PART: u64 = 8;

/// Lets the pool of the device keep memory that was given back, unless others are to have it.
///
/// # Errors
/// When the driver refuses.
pub(crate) fn keep(context: &CudaContext) -> Result<()> {
    if limit()?.is_some() {
        return Ok(());
    }
    let asked = |e: DriverError| failed("cannot prepare the memory", e);
    let Some(pool) = Pool::of(context) else { return Ok(()) };
    let (_, total) = context.mem_get_info().map_err(asked)?;
    pool.keep(total as u64 / KEPT_PART).map_err(asked)
}

/// The pool of a device, from which all but [`Apart`] is taken.
struct Pool(sys::CUmemoryPool);

impl Pool {
    /// None where the driver has none.
    fn of(context: &CudaContext) -> Option<Self> {
        if !context.has_async_alloc() {
            return None;
        }
        // SAFETY: the device is that of a live context
        unsafe { result::device::get_mem_pool(context.cu_device()) }.ok().map(Self)
    }

    fn number(&self, of: sys::CUmemPool_attribute) -> Result<u64, DriverError> {
        let mut number = 0_u64;
        // SAFETY: the pool is there as long as its device, and the attribute is a number of 64 bits
        unsafe { result::mem_pool::get_attribute(self.0, of, (&raw mut number).cast()) }?;
        Ok(number)
    }

    /// Bytes in use.
    fn used(&self) -> Result<usize, DriverError> {
        let of = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
        self.number(of).map(|bytes| bytes as usize)
    }

    /// Bytes that are not in use and were not given back to the system.
    fn kept(&self) -> Result<usize, DriverError> {
        let of = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
        let reserved = self.number(of)? as usize;
        Ok(reserved.saturating_sub(self.used()?))
    }

    fn keep(&self, mut bytes: u64) -> Result<(), DriverError> {
        let of = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: as above
        unsafe { result::mem_pool::set_attribute(self.0, of, (&raw mut bytes).cast()) }
    }
}

/// Bytes of allocations of their own, for each device.
static APART: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

fn apart(device: usize, change: impl FnOnce(usize) -> usize) -> usize {
    let mut all = APART.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes = all.entry(device).or_default();
    *bytes = change(*bytes);
    *bytes
}

/// Bytes that the program holds; `None` where the driver does not keep account of them.
fn held(context: &CudaContext) -> Result<Option<usize>, DriverError> {
    let Some(pool) = Pool::of(context) else { return Ok(None) };
    Ok(Some(pool.used()? + apart(context.ordinal(), |held| held)))
}

/// `len` entries of unset memory, at least one, to be written before they are read.
///
/// # Errors
/// [`crate::base::error::Kind::Memory`] with the bytes asked for and free.
pub(crate) fn alloc<T: DeviceRepr>(stream: &Arc<CudaStream>, len: usize) -> Result<CudaSlice<T>> {
    let (len, context) = (len.max(1), stream.context());
    let bytes = len.saturating_mul(size_of::<T>());
    allowed(context, bytes)?;
    // SAFETY: every caller writes before it reads
    unsafe { stream.alloc::<T>(len) }.map_err(|e| not_allocated(context, bytes, e))
}

/// Refuses what [`LIMIT`] does not leave.
fn allowed(context: &CudaContext, bytes: usize) -> Result<()> {
    if limit()?.is_some() {
        let memory = memory(context)?;
        if bytes > memory.free {
            return Err(memory.lacks(bytes));
        }
    }
    Ok(())
}

fn not_allocated(context: &CudaContext, bytes: usize, e: DriverError) -> Error {
    match e.0 {
        sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => memory(context).unwrap_or_default().lacks(bytes),
        _ => failed("cannot allocate", e),
    }
}

/// What another process is let into is a whole block of the driver's, and others could lie in it, too.
const BLOCK: usize = 2 << 20;

/// Memory that is no part of the pool: other GPUs and other processes can be let into it.
pub(crate) struct Apart {
    at: Address,
    bytes: usize,
    context: Arc<CudaContext>,
}

impl Apart {
    /// `bytes` zeros, and more up to the [`BLOCK`]; they are there for what follows on the stream.
    ///
    /// # Errors
    /// As [`alloc`].
    pub(crate) fn zeros(stream: &CudaStream, bytes: usize) -> Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(BLOCK);
        let context = Arc::clone(stream.context());
        allowed(&context, bytes)?;
        context.bind_to_thread().map_err(|e| failed("cannot use the context", e))?;
        // SAFETY: written below before it is read
        let at = unsafe { result::malloc_sync(bytes) };
        let at = at.map_err(|e| not_allocated(&context, bytes, e))?;
        apart(context.ordinal(), |held| held + bytes);
        let new = Self { at, bytes, context };
        // SAFETY: as many bytes were just allocated
        unsafe { result::memset_d8_async(at, 0, bytes, stream.cu_stream()) }
            .map_err(|e| failed("cannot clear memory", e))?;
        Ok(new)
    }

    /// Where it begins.
    pub(crate) fn at(&self) -> Address {
        self.at
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        apart(self.context.ordinal(), |held| held.saturating_sub(self.bytes));
        // an error cannot be told any more
        let _ = self.context.bind_to_thread();
        // SAFETY: allocated above; the driver waits for what still uses it
        let _ = unsafe { result::free_sync(self.at) };
    }
}

/// `len` zeros, at least one.
pub(crate) fn zeros<T: DeviceRepr + ValidAsZeroBits>(
    stream: &Arc<CudaStream>,
    len: usize,
) -> Result<CudaSlice<T>> {
    let mut new = alloc(stream, len)?;
    stream.memset_zeros(&mut new).map_err(|e| failed("cannot clear memory", e))?;
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Kind;

    #[test]
    fn the_limit_is_a_number_of_mib() {
        assert_eq!(parse(""), Ok(None));
        assert_eq!(parse("0"), Ok(Some(0)));
        assert_eq!(parse("300"), Ok(Some(300 << 20)));
        for text in ["-1", "1.5", "2 GiB", "99999999999999999999", "18446744073709551615"] {
            let error = parse(text).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("BILU_BENCH_GPU_MEMORY: `{text}` is not a whole number of MiB")
            );
            assert_eq!(error.exit_code(), 2);
        }
    }

    #[test]
    fn a_limit_leaves_what_is_neither_held_nor_taken_by_others() {
        let all = Memory { free: 70, total: 100 };
        assert_eq!(all.within(40, 0), Memory { free: 40, total: 40 });
        assert_eq!(all.within(40, 25), Memory { free: 15, total: 40 });
        // what a library took beyond the limit
        assert_eq!(all.within(40, 45), Memory { free: 0, total: 40 });
        assert_eq!(all.within(90, 10), Memory { free: 70, total: 90 });
        assert_eq!(all.within(900, 20), all);
    }

    #[test]
    fn too_little_memory_is_told_in_gib() {
        let error = Memory { free: 512 * MIB, total: 2048 * MIB }.lacks(3 << 29);
        assert_eq!(error.message(), "GPU memory: 1.50 GiB needed, 0.50 GiB of 2.00 GiB free");
        assert_eq!(error.kind(), Kind::Memory);
    }
}
