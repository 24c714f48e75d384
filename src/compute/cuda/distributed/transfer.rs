//! Values that go between ranks: from GPU to GPU, or as messages of the hosts.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DriverError};

use super::direct::Direct;
use super::messages::Messages;
use super::places::Places;
use crate::base::error::Result;
use crate::compute::cuda::device::Device;
use crate::compute::cuda::launch::address;
use crate::compute::distributed::Route;
use crate::compute::distributed::communicator::Exchange;

/// How values get to other ranks.
enum Way {
    Direct(Direct),
    Messages(Messages),
}

/// A route of a rank.
pub struct Transfer {
    sent: Places,
    own: Places,
    received: usize,
    way: Way,
}

impl Transfer {
    /// Between GPUs that write each other's memory.
    pub(super) fn direct(d: &Device, route: &Route, direct: Direct) -> Result<Self> {
        Self::by(d, route, Way::Direct(direct))
    }

    /// By messages of the hosts.
    pub(super) fn messages(
        d: &Device,
        copies: &Arc<CudaStream>,
        route: &Route,
        exchange: Box<dyn Exchange>,
    ) -> Result<Self> {
        let messages = Messages::new(d, copies, route, exchange)?;
        Self::by(d, route, Way::Messages(messages))
    }

    fn by(d: &Device, route: &Route, way: Way) -> Result<Self> {
        let [sent, own] = [Places::new(d, &route.sent)?, Places::new(d, &route.own)?];
        Ok(Self { sent, own, received: route.received(), way })
    }

    /// The word of the records for it.
    pub(super) fn name(&self) -> &'static str {
        match self.way {
            Way::Direct(_) => "direct",
            Way::Messages(_) => "pinned memory",
        }
    }

    /// Begins to send the values of x that others need.
    pub(super) fn start(&mut self, d: &Device, x: &CudaSlice<f64>) -> Result<(), DriverError> {
        let started = match &mut self.way {
            Way::Direct(direct) => direct.start(d, &self.sent, x),
            Way::Messages(messages) => messages.pack(d, &self.sent, x),
        };
        let own = address(self.ghosts()) + 8 * self.received as u64;
        started.and(self.own.gather(d, x, own))
    }

    /// What follows on the stream finds what was received. `note` is told what fails, and the exchange takes place
    /// nevertheless: the other ranks wait for it.
    pub(super) fn finish(&mut self, d: &Device, note: &dyn Fn(DriverError)) {
        match &mut self.way {
            Way::Direct(direct) => direct.finish(d),
            Way::Messages(messages) => messages.exchange(d, note),
        }
    }

    /// Received values, then those of own unknowns.
    pub(super) fn ghosts(&self) -> &CudaSlice<f64> {
        match &self.way {
            Way::Direct(direct) => direct.ghosts(),
            Way::Messages(messages) => messages.ghosts(),
        }
    }
}
