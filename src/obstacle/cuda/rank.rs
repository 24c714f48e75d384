//! An MPI rank with a GPU. Its halo is stored directly into the memory of neighbours on its host, as between
//! several GPUs of one process (`peers.rs`), or goes through pinned host memory on a separate stream while the
//! interior is swept.

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use std::collections::VecDeque;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaStream, DriverError, sys};

use super::fields;
use super::kernels::Kind;
use super::part::{Launch, Part};
use super::peers::RemoteWindow;
use crate::base::error::Result;
use crate::compute::cuda::device::Device;
use crate::compute::cuda::ipc::{Opened, handle};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::pinned::Pinned;
use crate::compute::distributed::communicator::HANDLE;
use crate::obstacle::field::{Extent, Layout};
use crate::obstacle::mpi::{Direct, Message, OfHost, Ranked, give_up};
use crate::obstacle::part::{Face, Region};
use crate::obstacle::solve::{Monitored, Relaxation};
use crate::obstacle::{Case, Mode, Problem, StopOn};

/// Bytes of a number of a field.
const BYTES_A_NUMBER: usize = size_of::<f64>();

/// Asynchronous sweeps that may be in flight: one runs while the next waits, and no more, so that
/// neighbours' values are not old when a sweep begins.
const UNDER_WAY: usize = 2;

impl Message for Pinned {}

/// The GPU of a rank: GPU number `rank mod GPUs` of its host.
///
/// # Errors
/// When the host has none.
pub(crate) fn device_of(own: OfHost) -> Result<Arc<Device>> {
    let there = Device::count()?;
    Device::numbered(own.rank % there)
}

/// Whether a case fits the memory of the GPU of each rank.
///
/// # Errors
/// With the bytes needed and free.
pub(crate) fn check_rank_memory(
    problem: &Problem,
    own: OfHost,
    device: &Device,
    nodes: usize,
) -> Result<()> {
    let on_this = own.size.div_ceil(Device::count()?);
    let needed = fields(problem) * problem.bytes() / nodes * on_this;
    crate::obstacle::node::check_memory(needed, device.memory()?.free, "each GPU")
}

/// A node on the GPU of a rank; runs the Jacobi method, split in z.
pub struct RankNode {
    part: Part,
    /// Memory of the neighbours before and behind that this rank writes.
    opened: [Option<Opened>; 2],
    /// Whether any halo goes as a message.
    messages: bool,
    /// Stream of the halo copies.
    copies: Arc<CudaStream>,
    /// The last launch that wrote the boundary values.
    sides: CudaEvent,
    /// The last halo copy to the host.
    read: CudaEvent,
    /// Ends of asynchronous sweeps.
    under_way: VecDeque<CudaEvent>,
    monitored: Monitored,
    squared: Vec<f64>,
    worst: f64,
}

impl RankNode {
    /// A node with u = 0.
    ///
    /// # Errors
    /// When the GPU has too little memory or a kernel cannot be compiled.
    pub fn new(device: Arc<Device>, case: &Case, extent: Extent) -> Result<Self> {
        let copies = device.stream().context().new_stream();
        let copies = copies.map_err(|e| failed("cannot make a stream", e))?;
        let mut part = Part::new(device, case, extent)?;
        let with_residual = case.stop == StopOn::Complementarity;
        part.prepare(Kind::Jacobi, with_residual)?;
        part.prepare(Kind::Jacobi, false)?;
        if case.mode == Mode::Async {
            part.prepare(Kind::InPlace, with_residual)?;
            part.prepare(Kind::InPlace, false)?;
        }
        // the complementarity of the solution
        part.prepare(Kind::Jacobi, true)?;
        let (sides, read) = (mark(part.device.stream())?, mark(&copies)?);
        Ok(Self {
            squared: vec![0.0; case.norm_split.count()],
            part,
            opened: [None, None],
            messages: true,
            copies,
            sides,
            read,
            under_way: VecDeque::new(),
            monitored: Monitored::Nothing,
            worst: 0.0,
        })
    }

    fn launch(&self) -> (bool, Launch) {
        // never below: the ranks add up
        let launch =
            Launch { number: usize::from(self.monitored != Monitored::Nothing), bound: -1.0 };
        (self.monitored == Monitored::Complementarity, launch)
    }

    /// Copies a face between the host and the slice at `z`.
    fn copy(&self, z: usize, host: Host<'_>) -> Result<()> {
        let Layout { nx, ny, pitch, .. } = self.part.layout;
        let device = self.part.iterate() + (BYTES_A_NUMBER * self.part.layout.line(1, z)) as u64;
        let [width, pitch] = [nx, pitch].map(|numbers| numbers * BYTES_A_NUMBER);
        let [on_host, on_device] =
            [sys::CUmemorytype::CU_MEMORYTYPE_HOST, sys::CUmemorytype::CU_MEMORYTYPE_DEVICE];
        let (from_host, to_host, from, to) = match host {
            Host::From(numbers) => {
                debug_assert_eq!(numbers.len(), nx * ny);
                (
                    numbers.as_ptr().cast(),
                    ptr::null_mut(),
                    (on_host, 0, width),
                    (on_device, device, pitch),
                )
            }
            Host::To(numbers) => {
                debug_assert_eq!(numbers.len(), nx * ny);
                (
                    ptr::null(),
                    numbers.as_mut_ptr().cast(),
                    (on_device, device, pitch),
                    (on_host, 0, width),
                )
            }
        };
        let copy = sys::CUDA_MEMCPY2D_st {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: from.0,
            srcHost: from_host,
            srcDevice: from.1,
            srcArray: ptr::null_mut(),
            srcPitch: from.2,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: to.0,
            dstHost: to_host,
            dstDevice: to.1,
            dstArray: ptr::null_mut(),
            dstPitch: to.2,
            WidthInBytes: width,
            Height: ny,
        };
        // SAFETY: lines of a slice of the field on one side, as many numbers on the other; both live until
        // the copy has ended, for which a rank waits before it touches them
        unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, self.copies.cu_stream()) }
            .result()
            .map_err(|e| failed("cannot copy a side", e))
    }

    fn sweep(&mut self, region: Region) -> Result<()> {
        let (with_residual, launch) = self.launch();
        if !self.messages {
            // nothing of the host's to wait for: one launch, its first tiles those of the rim
            return match region {
                Region::Inner => Ok(()),
                Region::Rim => self.part.sweep(Kind::Jacobi, with_residual, launch),
            };
        }
        self.part.sweep_over(Some(region), Kind::Jacobi, with_residual, launch)?;
        if region == Region::Rim {
            self.record_sides()?;
            self.part.conclude_sweep(Kind::Jacobi, with_residual, launch)?;
        }
        Ok(())
    }

    fn record_sides(&self) -> Result<()> {
        let recorded = self.sides.record(self.part.device.stream());
        recorded.map_err(|e| failed("cannot mark a sweep", e))
    }

    fn sweep_at_will(&mut self) -> Result<()> {
        let (with_residual, launch) = self.launch();
        self.part.sweep(Kind::InPlace, with_residual, launch)?;
        self.record_sides()?;
        self.under_way.push_back(mark(self.part.device.stream())?);
        if self.under_way.len() > UNDER_WAY
            && let Some(oldest) = self.under_way.pop_front()
        {
            oldest.synchronize().map_err(|e| failed("an asynchronous sweep failed", e))?;
        }
        Ok(())
    }

    fn judged(&mut self) -> Result<(f64, u64, u64)> {
        self.part.forget()?;
        self.part.look(Launch { number: 1, bound: -1.0 })?;
        let worst = self.part.state()?.worst;
        let [contact, fingerprint] = self.part.judge()?;
        Ok((worst, contact, fingerprint))
    }

    fn read(&mut self, face: Face, to: &mut [f64]) -> Result<()> {
        let fault = |e: DriverError| failed("cannot wait for a sweep", e);
        self.copies.wait(&self.sides).map_err(fault)?;
        let z = if face == Face::Rear { 1 } else { self.part.layout.nz };
        self.copy(z, Host::To(to))?;
        self.read.record(&self.copies).map_err(fault)
    }

    fn write(&mut self, face: Face, from: &[f64]) -> Result<()> {
        let z = if face == Face::Rear { 0 } else { self.part.layout.nz + 1 };
        self.copy(z, Host::From(from))?;
        // the message may be received into again, and the next launch finds the values
        self.copies.synchronize().map_err(|e| failed("cannot copy a side", e))
    }
}

/// The host's end of a copy.
enum Host<'a> {
    From(&'a [f64]),
    To(&'a mut [f64]),
}

fn mark(stream: &CudaStream) -> Result<CudaEvent> {
    stream
        .record_event(Some(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING))
        .map_err(|e| failed("cannot make an event", e))
}

/// Unwraps a result without which a rank cannot continue.
fn needed<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| give_up(&error))
}

impl Ranked for RankNode {
    type Message = Pinned;

    fn message(&self, len: usize) -> Pinned {
        needed(Pinned::zeros(self.part.device.stream().context(), len))
    }

    fn direct(&mut self) -> Option<&mut dyn Direct> {
        Some(self)
    }

    fn signal_neighbours(&mut self) {
        needed(self.part.signal());
    }

    fn await_signals(&mut self) {
        needed(self.part.wait());
    }
}

/// The end in z of a face: 0 before, 1 behind.
fn end(face: Face) -> usize {
    usize::from(face == Face::Front)
}

impl Direct for RankNode {
    fn offer(&mut self) -> Result<[u8; HANDLE]> {
        let stream = self.part.device.stream();
        stream.synchronize().map_err(|e| failed("cannot wait for the GPU", e))?;
        handle(stream.context(), self.part.window.at())
    }

    fn open(&mut self, face: Face, of: &[u8; HANDLE], layout: Layout) -> Result<()> {
        let opened = Opened::new(self.part.device.stream().context(), of)?;
        self.part.neighbours.to[end(face)] =
            Some(RemoteWindow::into(opened.at(), layout, end(face)));
        self.opened[end(face)] = Some(opened);
        Ok(())
    }

    fn close(&mut self, face: Face) {
        let done = self.part.device.stream().synchronize();
        needed(done.map_err(|e| failed("a sweep failed", e)));
        self.part.neighbours.to[end(face)] = None;
        self.opened[end(face)] = None;
    }

    fn signal(&mut self) -> Result<()> {
        self.part.signal()?;
        let done = self.part.device.stream().synchronize();
        done.map_err(|e| failed("cannot write memory of another process", e))
    }

    fn signalled(&self, face: Face) -> Result<bool> {
        Ok(self.part.window.signalled(end(face))? == self.part.neighbours.epoch())
    }

    fn settle(&mut self, messages: bool) {
        self.messages = messages;
    }
}

impl Relaxation for RankNode {
    fn begin_step(&mut self) {
        needed(self.part.begin_step());
    }

    fn passes(&self) -> usize {
        1
    }

    fn begin_sweep(&mut self, monitored: Monitored) {
        self.monitored = monitored;
    }

    fn jacobi(&mut self, region: Region) {
        needed(self.sweep(region));
    }

    fn swap(&mut self) {
        self.part.swap();
    }

    fn colour(&mut self, _: usize) {
        unreachable!("checked: GPUs of ranks run the Jacobi method");
    }

    fn jacobi_at_will(&mut self) {
        needed(self.sweep_at_will());
    }

    fn keeps_ghosts(&self) -> bool {
        true
    }

    fn all_in_step(&self) -> bool {
        // the neighbours write into the field that is the next iterate here
        !self.part.neighbours.is_empty()
    }

    fn conclude(&mut self) {
        let state = needed(self.part.state());
        (self.squared, self.worst) = (state.squared, state.worst);
    }

    fn squared(&self) -> &[f64] {
        &self.squared
    }

    fn complementarity(&self) -> f64 {
        self.worst
    }

    fn look(&mut self) {
        needed(self.part.look(Launch { number: 1, bound: -1.0 }));
    }

    fn verify(&mut self) -> (f64, u64, u64) {
        needed(self.judged())
    }

    fn layout(&self) -> Layout {
        self.part.layout
    }

    fn read_face(&mut self, face: Face, to: &mut [f64]) {
        needed(self.read(face, to));
    }

    fn has_read(&mut self, wait: bool) -> bool {
        let fault = |e: DriverError| failed("cannot copy a side", e);
        if wait {
            needed(self.read.synchronize().map_err(fault));
            return true;
        }
        needed(self.read.try_is_complete().map_err(fault))
    }

    fn write_ghost(&mut self, face: Face, from: &[f64]) {
        needed(self.write(face, from));
    }
}
