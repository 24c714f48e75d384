//! Pinned host memory that copies of a stream read and write.

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use cudarc::driver::{CudaContext, DriverError, result, sys};

use super::memory::failed;
use crate::base::error::{Error, Result};

/// Numbers in pinned host memory. Who drops it waits for its copies before.
#[cfg_attr(not(feature = "mpi"), allow(unreachable_pub, reason = "messages of ranks have it"))]
pub struct Pinned {
    numbers: NonNull<f64>,
    len: usize,
    context: Arc<CudaContext>,
}

impl Pinned {
    /// `len` zeros.
    ///
    /// # Errors
    /// When the system pins no more memory.
    pub(crate) fn zeros(context: &Arc<CudaContext>, len: usize) -> Result<Self> {
        let fault = |e: DriverError| failed("cannot pin host memory", e);
        context.bind_to_thread().map_err(fault)?;
        // SAFETY: written before it is read
        let place =
            unsafe { result::malloc_host(len.max(1) * size_of::<f64>(), 0) }.map_err(fault)?;
        let numbers = NonNull::new(place.cast::<f64>())
            .ok_or_else(|| Error::memory("no host memory that can be pinned"))?;
        // SAFETY: as many numbers have just been allocated; all bits 0 are 0.0
        unsafe { ptr::write_bytes(numbers.as_ptr(), 0, len) };
        Ok(Self { numbers, len, context: Arc::clone(context) })
    }
}

/// Memory of somebody else that is pinned as long as this lives.
#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "messages of ranks have it"))]
pub(crate) struct Locked {
    place: Option<NonNull<f64>>,
    context: Arc<CudaContext>,
}

#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "messages of ranks have it"))]
impl Locked {
    /// `None` where the system pins no more, or has pinned a page of it already.
    ///
    /// # Safety
    /// The memory outlives this, and who drops this waits for its copies before.
    pub(crate) unsafe fn new(context: &Arc<CudaContext>, memory: &mut [f64]) -> Option<Self> {
        let (context, bytes) = (Arc::clone(context), size_of_val(memory));
        let Some(place) = NonNull::new(memory.as_mut_ptr()).filter(|_| bytes > 0) else {
            return Some(Self { place: None, context });
        };
        context.bind_to_thread().ok()?;
        // SAFETY: so many bytes of the caller's
        unsafe { sys::cuMemHostRegister_v2(place.as_ptr().cast(), bytes, 0) }.result().ok()?;
        Some(Self { place: Some(place), context })
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            // an error cannot be reported any more
            let _ = self.context.bind_to_thread();
            // SAFETY: pinned above, and its copies have ended
            let _ = unsafe { sys::cuMemHostUnregister(place.as_ptr().cast()) };
        }
    }
}

impl Deref for Pinned {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        // SAFETY: `len` numbers live as long as this
        unsafe { std::slice::from_raw_parts(self.numbers.as_ptr(), self.len) }
    }
}

impl DerefMut for Pinned {
    fn deref_mut(&mut self) -> &mut [f64] {
        // SAFETY: as above, and nobody else has it
        unsafe { std::slice::from_raw_parts_mut(self.numbers.as_ptr(), self.len) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // an error cannot be reported any more
        let _ = self.context.bind_to_thread();
        // SAFETY: allocated above, and its copies have ended
        let _ = unsafe { result::free_host(self.numbers.as_ptr().cast()) };
    }
}
