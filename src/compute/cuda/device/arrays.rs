//! Arrays in the memory of a GPU, and their way there and back.

#![allow(unsafe_code, reason = "calls of the CUDA driver")]

use std::sync::PoisonError;

use cudarc::driver::{CudaSlice, DeviceRepr, DriverError, ValidAsZeroBits, result};

use super::super::launch::{Address, address};
use super::super::memory::{self, failed};
use super::super::staging::Staging;
use super::Device;
use crate::base::error::Result;
use crate::base::measure::spans;
use crate::base::memory::zeroed;

impl Device {
    /// `len` entries of unset memory, at least one.
    ///
    /// # Errors
    /// [`crate::base::error::Kind::Memory`] with the bytes asked for and free.
    pub(crate) fn alloc<T: DeviceRepr>(&self, len: usize) -> Result<CudaSlice<T>> {
        memory::alloc(&self.stream, len)
    }

    /// `len` zeros, at least one.
    pub fn zeros<T: DeviceRepr + ValidAsZeroBits>(&self, len: usize) -> Result<CudaSlice<T>> {
        memory::zeros(&self.stream, len)
    }

    /// Marks all of `x` as not there yet (`kernels/absent.cuh`).
    pub(crate) fn mark_absent<T>(&self, x: &mut CudaSlice<T>) -> Result<()> {
        self.fill(x, 0xff)
    }

    /// A number of which a kernel makes the least that its threads find; set on the device, without an upload.
    pub(crate) fn least(&self) -> Result<CudaSlice<u64>> {
        let mut least = self.alloc(1)?;
        self.mark_absent(&mut least)?;
        Ok(least)
    }

    /// What a kernel found, if anything; waits.
    pub(crate) fn found(&self, least: &CudaSlice<u64>) -> Result<Option<u64>> {
        Ok(Some(self.host(least)?[0]).filter(|&found| found != u64::MAX))
    }

    /// Makes all of `x` zero.
    pub(crate) fn clear(&self, x: &mut CudaSlice<f64>) -> Result<()> {
        self.fill(x, 0)
    }

    fn fill<T>(&self, x: &mut CudaSlice<T>, byte: u8) -> Result<()> {
        let (bytes, stream) = (x.len() * size_of::<T>(), self.stream.cu_stream());
        // SAFETY: x has that many bytes
        unsafe { result::memset_d8_async(address(x), byte, bytes, stream) }
            .map_err(|e| failed("cannot clear memory", e))
    }

    /// A copy of `from` on the device; waits.
    pub fn copied<T: DeviceRepr + bytemuck::Pod>(&self, from: &[T]) -> Result<CudaSlice<T>> {
        let mut new = self.alloc(from.len())?;
        self.overwrite(from, &mut new)?;
        Ok(new)
    }

    /// Copies `from` to the first entries of `to`; waits until `from` may change.
    ///
    /// # Panics
    /// If `to` is shorter.
    pub fn overwrite<T: DeviceRepr + bytemuck::Pod>(
        &self,
        from: &[T],
        to: &mut CudaSlice<T>,
    ) -> Result<()> {
        self.overwrite_from(from, to, 0)
    }

    /// The same of an array that several read.
    ///
    /// # Panics
    /// If `to` is shorter.
    pub(crate) fn overwrite_shared<T: DeviceRepr + bytemuck::Pod>(
        &self,
        from: &[T],
        to: &CudaSlice<T>,
    ) -> Result<()> {
        assert!(from.len() <= to.len(), "{} entries for {}", from.len(), to.len());
        self.sent(from, address(to))
    }

    /// Copies `from` to the entries of `to` from number `at` on; waits until `from` may change.
    ///
    /// # Panics
    /// If `to` ends before.
    pub(crate) fn overwrite_from<T: DeviceRepr + bytemuck::Pod>(
        &self,
        from: &[T],
        to: &mut CudaSlice<T>,
        at: usize,
    ) -> Result<()> {
        assert!(at + from.len() <= to.len(), "{} entries at {at} for {}", from.len(), to.len());
        self.sent(from, address(to) + (at * size_of::<T>()) as u64)
    }

    fn sent<T: bytemuck::Pod>(&self, from: &[T], to: Address) -> Result<()> {
        self.span("upload", || {
            self.staged(|staging| staging.upload(&self.stream, bytemuck::cast_slice(from), to))
        })
        .map_err(|e| failed("cannot upload", e))
    }

    /// What `f` returns, its seconds printed as a span's, in which the device ends what it has to do.
    pub(in crate::compute::cuda) fn span<R>(&self, name: &str, f: impl FnOnce() -> R) -> R {
        spans::span(name, || {
            let result = f();
            if spans::on() {
                // an error comes up again
                let _ = self.stream.synchronize();
            }
            result
        })
    }

    /// A transfer through pinned memory.
    fn staged(
        &self,
        transfer: impl FnOnce(&mut Staging) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        if staging.is_none() {
            *staging = Some(Staging::new(&self.stream)?);
        }
        transfer(staging.as_mut().expect("just made"))
    }

    /// A copy of `from` on the host; waits.
    pub fn host<T: DeviceRepr>(&self, from: &CudaSlice<T>) -> Result<Vec<T>> {
        let copy = self.stream.clone_dtoh(from).map_err(|e| failed("cannot download", e))?;
        self.stream.synchronize().map_err(|e| failed("cannot download", e))?;
        Ok(copy)
    }

    /// The first `count` entries of `from` on the host, through pinned memory; waits.
    pub(crate) fn host_part(&self, from: &CudaSlice<u32>, count: usize) -> Result<Vec<u32>> {
        assert!(count <= from.len(), "{count} of {} entries", from.len());
        let mut copy = zeroed(count);
        self.span("download", || {
            self.staged(|staging| {
                staging.download(&self.stream, address(from), bytemuck::cast_slice_mut(&mut copy))
            })
        })
        .map_err(|e| failed("cannot download", e))?;
        Ok(copy)
    }
}
