//! Parts of one process as each other's neighbours.

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use std::sync::Arc;

use cudarc::driver::{CudaContext, sys};

use super::part::Part;
use super::peers::Way;
use crate::base::error::{Error, Result};
use crate::compute::cuda::memory::failed;

/// Lets neighbours of one process write each other's fields and tells each part where.
///
/// # Errors
/// When two of them have no way to each other.
pub(super) fn connect(parts: &mut [Part]) -> Result<()> {
    for i in 1..parts.len() {
        for (from, to) in [(i - 1, i), (i, i - 1)] {
            open(&parts[from], &parts[to])?;
        }
    }
    for i in 0..parts.len() {
        let into = |other: Option<&Part>, end| {
            other.map(|other: &Part| Way::into(other.home.at(), other.layout, end))
        };
        let before = i.checked_sub(1).and_then(|i| parts.get(i));
        parts[i].ways.to = [into(before, 0), into(parts.get(i + 1), 1)];
    }
    // nobody writes where zeros are still being written
    for part in parts {
        let done = part.device.stream().synchronize();
        done.map_err(|e| failed("cannot wait for a GPU", e))?;
    }
    Ok(())
}

/// All go on when what all have launched has ended.
pub(super) fn meet(parts: &mut [Part]) -> Result<()> {
    parts.iter_mut().try_for_each(Part::tell)?;
    parts.iter().try_for_each(Part::wait)
}

/// Lets the GPU of `from` write the memory of that of `to`.
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
