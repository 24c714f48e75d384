//! Memory of a GPU that another process of the host writes (CUDA IPC), and flag words in it.

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use std::ffi::c_char;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DriverError, sys};

use super::launch::Address;
use super::memory::failed;
use crate::base::error::Result;
use crate::compute::distributed::communicator::HANDLE;

/// Handle with which another process opens the allocation at `at`.
///
/// # Errors
/// When the system does not let processes share memory of a GPU.
pub(crate) fn handle(context: &Arc<CudaContext>, at: Address) -> Result<[u8; HANDLE]> {
    let fault = |e| failed("memory of the GPU cannot be opened to other processes", e);
    context.bind_to_thread().map_err(fault)?;
    let mut handle = sys::CUipcMemHandle { reserved: [0; HANDLE] };
    // SAFETY: an allocation of its own that is alive
    unsafe { sys::cuIpcGetMemHandle(&raw mut handle, at) }.result().map_err(fault)?;
    Ok(handle.reserved.map(|byte| byte as u8))
}

/// Writes `number` to a flag word when what is on the stream has been done; that is visible before.
///
/// # Safety
/// The flag word is in memory that this process may write until the stream has done so.
pub(crate) unsafe fn signal(
    stream: &CudaStream,
    at: Address,
    number: u32,
) -> Result<(), DriverError> {
    stream.context().bind_to_thread()?;
    // SAFETY: the caller's
    unsafe { sys::cuStreamWriteValue32_v2(stream.cu_stream(), at, number, 0) }.result()
}

/// What follows on the stream waits until the flag word is at `number` or more, modulo 2^32.
///
/// # Safety
/// The flag word is in memory of this process until the stream has read it.
pub(crate) unsafe fn wait(
    stream: &CudaStream,
    at: Address,
    number: u32,
) -> Result<(), DriverError> {
    stream.context().bind_to_thread()?;
    let flags = sys::CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32;
    // SAFETY: the caller's
    unsafe { sys::cuStreamWaitValue32_v2(stream.cu_stream(), at, number, flags) }.result()
}

/// Memory of another process, open to this one.
pub(crate) struct Opened {
    at: Address,
    context: Arc<CudaContext>,
}

impl Opened {
    /// Opens the allocation of a [`handle`] of another process.
    ///
    /// # Errors
    /// When the GPU of this context cannot reach it, or the system does not allow it.
    pub(crate) fn new(context: &Arc<CudaContext>, of: &[u8; HANDLE]) -> Result<Self> {
        let fault = |e| failed("cannot open memory of another process", e);
        context.bind_to_thread().map_err(fault)?;
        let handle = sys::CUipcMemHandle { reserved: of.map(|byte| byte as c_char) };
        let flags = sys::CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        let mut at = 0;
        // SAFETY: `at` is valid for the write of an address; closed when this is dropped
        unsafe { sys::cuIpcOpenMemHandle_v2(&raw mut at, handle, flags) }
            .result()
            .map_err(fault)?;
        Ok(Self { at, context: Arc::clone(context) })
    }

    /// Its address in this process.
    pub(crate) fn at(&self) -> Address {
        self.at
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // an error cannot be reported any more
        let _ = self.context.bind_to_thread();
        // SAFETY: opened above; a rank waits for its kernels before it closes the memory
        let _ = unsafe { sys::cuIpcCloseMemHandle(self.at) };
    }
}
