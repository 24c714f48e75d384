//! Values that go between ranks as messages of their hosts, through pinned memory. Copies have a stream of their own:
//! a product with own unknowns runs meanwhile.

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaSlice, CudaStream, DriverError, result};

use super::places::Places;
use crate::base::error::Result;
use crate::compute::cuda::device::Device;
use crate::compute::cuda::launch::address;
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::pinned::{Locked, Pinned};
use crate::compute::distributed::Route;
use crate::compute::distributed::communicator::Exchange;

/// Where the copies end on the host.
enum Buffers {
    /// In the messages themselves, whose memory is pinned.
    Messages { _pinned: [Locked; 2] },
    /// Beside them.
    Own { outgoing: Pinned, incoming: Pinned },
}

/// A route by messages.
pub(super) struct Messages {
    // before the exchange, whose memory it has pinned
    buffers: Buffers,
    exchange: Box<dyn Exchange>,
    outgoing: CudaSlice<f64>,
    ghosts: CudaSlice<f64>,
    copies: Arc<CudaStream>,
    /// When the device has packed the values, when the host has them, and when the device has those of others.
    packed: CudaEvent,
    copied: CudaEvent,
    arrived: CudaEvent,
}

impl Messages {
    pub(super) fn new(
        d: &Device,
        copies: &Arc<CudaStream>,
        route: &Route,
        mut exchange: Box<dyn Exchange>,
    ) -> Result<Self> {
        let context = d.stream().context();
        let event = || context.new_event(None).map_err(|e| failed("cannot make an event", e));
        let (sent, received) = (route.sent.len(), route.received());
        let pinned = exchange.buffers().and_then(|[out, received]| {
            // SAFETY: the exchange is dropped behind this, which waits for its copies
            unsafe { Some([Locked::new(context, out)?, Locked::new(context, received)?]) }
        });
        let buffers = match pinned {
            Some(both) => Buffers::Messages { _pinned: both },
            None => Buffers::Own {
                outgoing: Pinned::zeros(context, sent)?,
                incoming: Pinned::zeros(context, received)?,
            },
        };
        Ok(Self {
            buffers,
            exchange,
            outgoing: d.alloc(sent)?,
            ghosts: d.zeros(received + route.own.len())?,
            copies: Arc::clone(copies),
            packed: event()?,
            copied: event()?,
            arrived: event()?,
        })
    }

    /// Packs the unknowns `sent` of x, and begins to copy them. The message itself leaves in
    /// [`exchange`](Self::exchange): until then the host has other work to launch.
    pub(super) fn pack(
        &mut self,
        d: &Device,
        sent: &Places,
        x: &CudaSlice<f64>,
    ) -> Result<(), DriverError> {
        sent.gather(d, x, address(&self.outgoing))?;
        // whatever reads the ghosts of the exchange before is on this stream, too
        self.packed.record(d.stream())?;
        self.copies.wait(&self.packed)?;
        if sent.count() > 0 {
            let to = match &mut self.buffers {
                Buffers::Messages { .. } => self.exchange.outgoing(),
                Buffers::Own { outgoing, .. } => outgoing,
            };
            let from = address(&self.outgoing);
            // SAFETY: as many numbers on both sides, which live until `copied` was waited for, and no message is
            // under way
            unsafe { result::memcpy_dtoh_async(to, from, self.copies.cu_stream()) }?;
        }
        self.copied.record(&self.copies)
    }

    /// Sends the packed values, and copies what was received to the device; what follows on its stream finds it
    /// there. `note` is told what fails, and the exchange takes place nevertheless: the other ranks wait for it.
    pub(super) fn exchange(&mut self, d: &Device, note: &dyn Fn(DriverError)) {
        self.copied.synchronize().unwrap_or_else(note);
        if let Buffers::Own { outgoing, .. } = &self.buffers {
            self.exchange.outgoing().copy_from_slice(outgoing);
        }
        self.exchange.start();
        self.unpack(d).unwrap_or_else(note);
    }

    fn unpack(&mut self, d: &Device) -> Result<(), DriverError> {
        let received = self.exchange.finish();
        if received.is_empty() {
            return Ok(());
        }
        let from = match &mut self.buffers {
            Buffers::Messages { .. } => received,
            Buffers::Own { incoming, .. } => {
                // the copy of the exchange before has ended: `copied` was recorded behind it
                incoming.copy_from_slice(received);
                &incoming[..]
            }
        };
        let (to, stream) = (address(&self.ghosts), self.copies.cu_stream());
        // SAFETY: as many numbers on both sides, which live until the stream has been waited for; those of a message
        // are left alone until the next one, before which `copied` is waited for
        unsafe { result::memcpy_htod_async(to, from, stream) }?;
        self.arrived.record(&self.copies)?;
        d.stream().wait(&self.arrived)
    }

    /// Received values, then those of own unknowns.
    pub(super) fn ghosts(&self) -> &CudaSlice<f64> {
        &self.ghosts
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        // an error cannot be reported any more
        let _ = self.copies.synchronize();
    }
}
