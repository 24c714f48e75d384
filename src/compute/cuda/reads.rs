//! Scalars that are copied to the host on a stream of their own, while the device goes on with what is next.

use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaSlice, CudaStream, DriverError};

use super::Cuda;
use super::device::Device;
use super::memory::failed;
use super::pinned::Pinned;
use crate::base::error::Result;
use crate::compute::{SLOTS, Slot};

/// A copy of slots to the host, one at a time.
pub(super) struct Read {
    host: Pinned,
    stream: Arc<CudaStream>,
    /// All that was to be done before it.
    before: CudaEvent,
    copied: CudaEvent,
}

impl Read {
    fn new(d: &Device) -> Result<Self> {
        let context = d.stream().context();
        let make = || -> std::result::Result<_, DriverError> {
            Ok((context.new_stream()?, context.new_event(None)?, context.new_event(None)?))
        };
        let (stream, before, copied) = make().map_err(|e| failed("cannot make a stream", e))?;
        Ok(Self { host: Pinned::zeros(context, SLOTS)?, stream, before, copied })
    }

    fn begin(
        &mut self,
        d: &Device,
        slots: &CudaSlice<f64>,
        (first, count): (usize, usize),
    ) -> std::result::Result<(), DriverError> {
        self.before.record(d.stream())?;
        self.stream.wait(&self.before)?;
        self.stream.memcpy_dtoh(&slots.slice(first..first + count), &mut self.host[..count])?;
        self.copied.record(&self.stream)
    }
}

impl Drop for Read {
    fn drop(&mut self) {
        // an error cannot be reported any more
        let _ = self.stream.synchronize();
    }
}

impl Cuda {
    /// Begins to copy slots to the host; what is asked of the device next does not wait for it.
    pub(super) fn begin_reading(&self, first: Slot, count: usize) {
        let mut read = self.read.borrow_mut();
        if read.is_none() {
            match Read::new(&self.device) {
                Ok(new) => *read = Some(new),
                Err(e) => return self.failed(e),
            }
        }
        let Some(read) = read.as_mut() else { return };
        let begun = read.begin(&self.device, &self.vectors.slots, (first.0 as usize, count));
        self.note("read", begun);
    }

    /// Waits for the copy that was begun; no numbers when something has failed.
    pub(super) fn end_reading(&self, out: &mut [f64]) {
        let read = self.read.borrow();
        let waited = read.as_ref().map_or(Ok(()), |read| read.copied.synchronize());
        self.note("read", waited);
        match read.as_ref() {
            Some(read) if self.failure.borrow().is_none() => {
                out.copy_from_slice(&read.host[..out.len()]);
            }
            _ => out.fill(f64::NAN),
        }
    }
}
