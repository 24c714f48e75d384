//! Connects the parts of one process as neighbours.

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use std::sync::Arc;

use cudarc::driver::{CudaContext, sys};

use super::part::Part;
use super::peers::RemoteWindow;
use crate::base::error::{Error, Result};
use crate::compute::cuda::memory::failed;

/// Enables peer access between neighbours of one process, and gives each part the addresses of its neighbours.
///
/// # Errors
/// When two of them cannot access each other's memory.
pub(super) fn connect(parts: &mut [Part]) -> Result<()> {
    for i in 1..parts.len() {
        for (from, to) in [(i - 1, i), (i, i - 1)] {
            open(&parts[from], &parts[to])?;
        }
    }
    for i in 0..parts.len() {
        let into = |other: Option<&Part>, end| {
            other.map(|other: &Part| RemoteWindow::into(other.window.at(), other.layout, end))
        };
        let before = i.checked_sub(1).and_then(|i| parts.get(i));
        parts[i].neighbours.to = [into(before, 0), into(parts.get(i + 1), 1)];
    }
    // nobody writes where zeros are still being written
    for part in parts {
        let done = part.device.stream().synchronize();
        done.map_err(|e| failed("cannot wait for a GPU", e))?;
    }
    Ok(())
}

/// Later work of all parts waits for the work that all have launched so far.
pub(super) fn meet(parts: &mut [Part]) -> Result<()> {
    parts.iter_mut().try_for_each(Part::signal)?;
    parts.iter().try_for_each(Part::wait)
}

/// Enables writes from the GPU of `from` to that of `to`.
fn open(from: &Part, to: &Part) -> Result<()> {
    let [from, to] = [from, to].map(|part| part.device.stream().context());
    let mut can = 0;
    // SAFETY: both are devices of live contexts, and `can` is valid for the write of an integer
    let asked =
        unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, from.cu_device(), to.cu_device()) };
    asked.result().map_err(|e| failed("cannot ask for peer access", e))?;
    if can == 0 {
        let (a, b) = (from.ordinal(), to.ordinal());
        return Err(Error::run(format!("GPUs {a} and {b} cannot write each other's memory"))
            .hint("use one GPU, or ranks of MPI with a GPU each"));
    }
    enable(from, to)
}

fn enable(from: &Arc<CudaContext>, to: &Arc<CudaContext>) -> Result<()> {
    let fault = |e| failed("cannot open a GPU's memory to another", e);
    from.bind_to_thread().map_err(fault)?;
    // SAFETY: both contexts live as long as their devices, which are kept
    match unsafe { sys::cuCtxEnablePeerAccess(to.cu_ctx(), 0) } {
        // by a run before
        sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
        other => other.result().map_err(fault),
    }
}
