//! Values that go between ranks (`kernels/distributed/halo.cu`): from GPU to GPU, or as messages of the hosts.

use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, DriverError};

use super::direct::Direct;
use super::messages::Messages;
use crate::base::error::Result;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{Address, address, launch};
use crate::compute::cuda::sources::{HALO, VECTOR};
use crate::compute::distributed::communicator::Exchange;
use crate::compute::distributed::{Coupling, Route};

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

    /// How many they are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// `to[i] = from[places[i]]`.
    pub(super) fn gather(
        &self,
        d: &Device,
        from: &CudaSlice<f64>,
        to: Address,
    ) -> Result<(), DriverError> {
        self.gather_part(d, 0..self.count, from, to)
    }

    /// `to[i] = from[places[part][i]]`.
    pub(super) fn gather_part(
        &self,
        d: &Device,
        part: Range<usize>,
        from: &CudaSlice<f64>,
        to: Address,
    ) -> Result<(), DriverError> {
        if part.is_empty() {
            return Ok(());
        }
        assert!(part.end <= self.count, "{part:?} of {} places", self.count);
        let numbers = address(&self.numbers) + 4 * part.start as u64;
        let (n, size, config) = (part.len() as u32, 1_u32, grid(blocks(part.len()), THREADS));
        launch!(d, &self.gather, config; n, size, numbers, *from, to)
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
