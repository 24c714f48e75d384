//! Values that go between ranks (`kernels/distributed/halo.cu`), through pinned host memory. Copies have a stream of
//! their own: a product with own unknowns runs meanwhile.

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaFunction, CudaSlice, CudaStream, DriverError, result};

use crate::base::error::Result;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{Address, address, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::pinned::{Locked, Pinned};
use crate::compute::cuda::sources::{HALO, VECTOR};
use crate::compute::distributed::Coupling;
use crate::compute::distributed::communicator::Exchange;

/// Threads of a block; mirrors `distributed/halo.cu` and `vectors/operations.cu`.
const THREADS: u32 = 256;

/// As many thread blocks as `n` threads make.
fn blocks(n: usize) -> usize {
    n.div_ceil(THREADS as usize)
}

/// Numbers of unknowns, and what is done with these.
pub struct Places {
    numbers: CudaSlice<u32>,
    count: usize,
    gather: CudaFunction,
    scatter: CudaFunction,
    extend: CudaFunction,
}

impl Places {
    pub(super) fn new(d: &Device, of: &[u32]) -> Result<Self> {
        Ok(Self {
            numbers: d.copied(of)?,
            count: of.len(),
            gather: d.kernel(&VECTOR, 1, "gather")?,
            scatter: d.kernel(&VECTOR, 1, "scatter")?,
            extend: d.kernel(&HALO, 1, "extend")?,
        })
    }

    /// `to[i] = from[places[i]]`.
    pub(super) fn gather(
        &self,
        d: &Device,
        from: &CudaSlice<f64>,
        to: Address,
    ) -> Result<(), DriverError> {
        if self.count == 0 {
            return Ok(());
        }
        let (n, size, config) = (self.count as u32, 1_u32, grid(blocks(self.count), THREADS));
        launch!(d, &self.gather, config; n, size, self.numbers, *from, to)
    }

    /// `to[places[i]] = from[i]`.
    pub(super) fn scatter(
        &self,
        d: &Device,
        from: Address,
        to: &mut CudaSlice<f64>,
    ) -> Result<(), DriverError> {
        if self.count == 0 {
            return Ok(());
        }
        let (n, size, config) = (self.count as u32, 1_u32, grid(blocks(self.count), THREADS));
        launch!(d, &self.scatter, config; n, size, self.numbers, from, *to)
    }

    /// `to[i]` is the unknown `places[i]` of `from`, and behind its end one of `ghosts`.
    pub(super) fn extend(
        &self,
        d: &Device,
        [from, ghosts]: [&CudaSlice<f64>; 2],
        to: &mut CudaSlice<f64>,
    ) -> Result<(), DriverError> {
        let (n, own, config) =
            (self.count as u32, from.len() as u32, grid(blocks(self.count), THREADS));
        launch!(d, &self.extend, config; n, self.numbers, own, *from, *ghosts, *to)
    }
}

/// Rows that are coupled with others.
pub struct Coupled {
    count: usize,
    rows: CudaSlice<u32>,
    row_ptr: CudaSlice<u32>,
    columns: CudaSlice<u32>,
    values: CudaSlice<f64>,
    add: CudaFunction,
}

impl Coupled {
    pub(super) fn new(d: &Device, of: &Coupling) -> Result<Self> {
        Ok(Self {
            count: of.rows.len(),
            rows: d.copied(&of.rows)?,
            row_ptr: d.copied(&of.row_ptr)?,
            columns: d.copied(&of.columns)?,
            values: d.copied(&of.values)?,
            add: d.kernel(&HALO, 1, "add_coupling")?,
        })
    }

    /// `y += sign C g`.
    pub(super) fn add(
        &self,
        d: &Device,
        sign: f64,
        ghosts: &CudaSlice<f64>,
        y: &mut CudaSlice<f64>,
    ) -> Result<(), DriverError> {
        if self.count == 0 {
            return Ok(());
        }
        let (n, config) = (self.count as u32, grid(blocks(self.count), THREADS));
        let Self { rows, row_ptr, columns, values, .. } = self;
        launch!(d, &self.add, config; n, *rows, *row_ptr, *columns, *values, sign, *ghosts, *y)
    }
}

/// The memory of the messages. If it is pinned, copies need not go through other memory.
enum Messages {
    /// Nothing has been sent yet.
    Unknown,
    Pinned {
        _memory: [Locked; 2],
    },
    Elsewhere,
}

/// Buffers of an exchange, on the device and in pinned host memory.
pub struct Transfer {
    sent: Places,
    own: Places,
    received: usize,
    outgoing: CudaSlice<f64>,
    ghosts: CudaSlice<f64>,
    host_out: Pinned,
    host_in: Pinned,
    messages: Messages,
    copies: Arc<CudaStream>,
    /// When the device has packed the values, when the host has them, and when the device has those of others.
    packed: CudaEvent,
    copied: CudaEvent,
    arrived: CudaEvent,
}

impl Transfer {
    pub(super) fn new(
        d: &Device,
        copies: &Arc<CudaStream>,
        (sent, own, received): (&[u32], &[u32], usize),
    ) -> Result<Self> {
        let context = d.stream().context();
        let event = || context.new_event(None).map_err(|e| failed("cannot make an event", e));
        Ok(Self {
            outgoing: d.alloc(sent.len())?,
            ghosts: d.zeros(received + own.len())?,
            host_out: Pinned::zeros(context, sent.len())?,
            host_in: Pinned::zeros(context, received)?,
            sent: Places::new(d, sent)?,
            own: Places::new(d, own)?,
            received,
            messages: Messages::Unknown,
            copies: Arc::clone(copies),
            packed: event()?,
            copied: event()?,
            arrived: event()?,
        })
    }

    /// Pins the memory of the messages, at the first call.
    fn pin(&mut self, exchange: &mut dyn Exchange) {
        if !matches!(self.messages, Messages::Unknown) {
            return;
        }
        let context = self.copies.context();
        let locked = exchange.buffers().and_then(|[out, received]| {
            // SAFETY: an exchange is dropped behind its transfer, which waits for its copies
            unsafe { Some([Locked::new(context, out)?, Locked::new(context, received)?]) }
        });
        let pinned = |memory| Messages::Pinned { _memory: memory };
        self.messages = locked.map_or(Messages::Elsewhere, pinned);
    }

    fn pinned(&self) -> bool {
        matches!(self.messages, Messages::Pinned { .. })
    }

    /// Packs the values of x that others need, and begins to copy them. Always with the same exchange, which is
    /// dropped behind this.
    pub(super) fn pack(
        &mut self,
        d: &Device,
        x: &CudaSlice<f64>,
        exchange: &mut dyn Exchange,
    ) -> Result<(), DriverError> {
        self.pin(exchange);
        self.sent.gather(d, x, address(&self.outgoing))?;
        // whatever reads the ghosts of the exchange before is on this stream, too
        self.packed.record(d.stream())?;
        self.copies.wait(&self.packed)?;
        if self.sent.count > 0 {
            let pinned = self.pinned();
            let to = if pinned { exchange.outgoing() } else { &mut self.host_out[..] };
            let from = address(&self.outgoing);
            // SAFETY: as many numbers on both sides, which live until `copied` was waited for, and no message is
            // under way
            unsafe { result::memcpy_dtoh_async(to, from, self.copies.cu_stream()) }?;
        }
        self.copied.record(&self.copies)?;
        self.own.gather(d, x, address(&self.ghosts) + 8 * self.received as u64)
    }

    /// Waits for the packed values, which are what is to be sent then.
    fn packed(&mut self, exchange: &mut dyn Exchange) -> Result<(), DriverError> {
        self.copied.synchronize()?;
        if !self.pinned() {
            exchange.outgoing().copy_from_slice(&self.host_out);
        }
        Ok(())
    }

    /// Copies what was received to the device; what follows on its stream finds it there.
    fn unpack(&mut self, d: &Device, received: &[f64]) -> Result<(), DriverError> {
        if received.is_empty() {
            return Ok(());
        }
        let from = if self.pinned() {
            received
        } else {
            // the copy of the exchange before has ended: `copied` was recorded behind it
            self.host_in.copy_from_slice(received);
            &self.host_in[..]
        };
        let (to, stream) = (address(&self.ghosts), self.copies.cu_stream());
        // SAFETY: as many numbers on both sides, which live until the stream has been waited for; those of a message
        // are left alone until the next one, before which `copied` is waited for
        unsafe { result::memcpy_htod_async(to, from, stream) }?;
        self.arrived.record(&self.copies)?;
        d.stream().wait(&self.arrived)
    }

    /// Sends the packed values; `note` is told what fails, and the exchange takes place nevertheless: the other
    /// ranks wait for it.
    pub(super) fn exchange(
        &mut self,
        d: &Device,
        exchange: &mut dyn Exchange,
        note: &dyn Fn(DriverError),
    ) {
        self.packed(exchange).unwrap_or_else(note);
        exchange.start();
        let received = exchange.finish();
        self.unpack(d, received).unwrap_or_else(note);
    }

    /// Received values, then those of own unknowns.
    pub(super) fn ghosts(&self) -> &CudaSlice<f64> {
        &self.ghosts
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        // an error cannot be reported any more
        let _ = self.copies.synchronize();
    }
}
