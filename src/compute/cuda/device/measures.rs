//! What is measured of a GPU itself: time on its stream, bandwidth of a copy, latency between thread blocks.

use cudarc::driver::{DriverError, sys};

use super::super::launch::launch;
use super::super::sources::HANDOVER;
use super::{Device, grid};
use crate::base::error::{Error, Result};
use crate::base::measure::median;
use crate::compute::cuda::memory::failed;

impl Device {
    /// An event that takes the time.
    pub(in crate::compute::cuda) fn event(&self) -> Result<cudarc::driver::CudaEvent, DriverError> {
        // without the flag events take no time
        self.stream.record_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT))
    }

    /// Seconds that `work` takes on the stream.
    pub(in crate::compute::cuda) fn time(&self, work: impl FnOnce() -> Result<()>) -> Result<f64> {
        let late = |e: DriverError| failed("cannot take the time", e);
        let start = self.event().map_err(late)?;
        work()?;
        let end = self.event().map_err(late)?;
        Ok(f64::from(start.elapsed_ms(&end).map_err(late)?) / 1e3)
    }

    /// Bandwidth of a copy on the device in GB/s, reads and writes counted; measured once. Not a
    /// number when it cannot be measured.
    pub(crate) fn copy_bandwidth(&self) -> f64 {
        *self.copy_gbps.get_or_init(|| self.measure_copy().unwrap_or(f64::NAN))
    }

    /// Seconds in which a value goes from one thread block to another through the L2 cache; measured
    /// once. Not a number when it cannot be measured.
    pub(crate) fn handover_latency(&self) -> f64 {
        *self.handover.get_or_init(|| self.measure_handover().unwrap_or(f64::NAN))
    }

    fn measure_handover(&self) -> Result<f64> {
        const ROUNDS: u32 = 500;
        let kernel = self.kernel(&HANDOVER, 0, "handover")?;
        let mut samples = Vec::new();
        for _ in 0..9 {
            let numbers = self.zeros::<f64>(64)?;
            samples.push(self.time(|| {
                launch!(cooperative self, &kernel, grid(2, 32); ROUNDS, numbers)
                    .map_err(|e| failed("handover", e))
            })?);
        }
        let seconds = median(&samples[2..]).map_or(f64::NAN, |m| m.value);
        Ok(seconds / f64::from(2 * ROUNDS))
    }

    fn measure_copy(&self) -> Result<f64> {
        // far beyond the cache, and far below the memory that is free
        let bytes = (1 << 30).min(self.memory()?.free / 8);
        if bytes < 64 << 20 {
            return Err(Error::memory("too little GPU memory for a copy beyond the cache"));
        }
        let (x, mut y) = (self.zeros::<u8>(bytes)?, self.alloc::<u8>(bytes)?);
        let mut samples = Vec::new();
        for _ in 0..12 {
            samples.push(self.time(|| {
                self.stream.memcpy_dtod(&x, &mut y).map_err(|e| failed("cannot copy", e))
            })?);
        }
        let seconds = median(&samples[2..]).map_or(f64::NAN, |m| m.value);
        Ok(2.0 * bytes as f64 / seconds / 1e9)
    }
}
