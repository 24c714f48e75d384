//! How the operations of a method are executed: at once, as calls that wait for their scalars, or
//! replayed as a graph.

use std::cell::{Cell, RefCell};

use cudarc::driver::{CudaGraph, CudaSlice, sys};

use super::Cuda;
use super::memory::failed;
use crate::base::choices::Execution;
use crate::base::error::Result;
use crate::compute::{Coef, SLOTS, Slot, Step, scalar};

/// Iterations of a graph.
pub(super) const REPLAYED: usize = 8;

/// The execution at hand.
pub(super) struct Mode {
    execution: Cell<Execution>,
    /// Scalars on the host, where every one is read back.
    scalars: RefCell<Vec<f64>>,
}

/// Iterations as a graph, once they are recorded.
#[derive(Default)]
pub struct Recording(Option<CudaGraph>);

impl Mode {
    pub(super) fn new() -> Self {
        Self { execution: Cell::default(), scalars: RefCell::new(vec![0.0; SLOTS]) }
    }

    pub(super) fn set(&self, execution: Execution) {
        self.execution.set(execution);
    }

    pub(super) fn fused(&self) -> bool {
        self.execution.get() == Execution::Fused
    }

    fn calls(&self) -> bool {
        self.execution.get() == Execution::Calls
    }

    pub(super) fn persistent(&self) -> bool {
        self.execution.get() == Execution::Persistent
    }

    pub(super) fn graph(&self) -> bool {
        self.execution.get() == Execution::Graph
    }
}

impl Cuda {
    /// Copies words from the device; waits.
    pub(super) fn fetch(&self, from: &CudaSlice<f64>, to: &mut [f64]) -> Result<()> {
        let fault = |e| failed("cannot download", e);
        let mut host = self.host.borrow_mut();
        let host = &mut host.as_mut_slice().map_err(fault)?[..to.len()];
        let stream = self.device.stream();
        stream.memcpy_dtoh(&from.slice(..to.len()), host).map_err(fault)?;
        stream.synchronize().map_err(fault)?;
        to.copy_from_slice(host);
        Ok(())
    }

    /// After an operation has written `count` slots: reads them back where calls do so.
    pub(super) fn written(&self, first: Slot, count: usize) {
        if self.mode.calls() {
            let mut values = vec![0.0; count];
            self.read_slots(first, &mut values);
            let first = first.0 as usize;
            self.mode.scalars.borrow_mut()[first..first + count].copy_from_slice(&values);
        }
    }

    /// A coefficient as an operation takes it: a number where calls read every scalar back.
    pub(super) fn coefficient(&self, c: Coef) -> Coef {
        if !self.mode.calls() {
            return c;
        }
        Coef::Host(c.value(&self.mode.scalars.borrow()))
    }

    /// `out = product of num / product of den` on the host, where calls have all scalars there;
    /// whether that is so.
    pub(super) fn ratio_on_host(&self, out: Slot, num: &[Slot], den: &[Slot]) -> bool {
        if !self.mode.calls() {
            return false;
        }
        let mut scalars = self.mode.scalars.borrow_mut();
        let product = |of: &[Slot]| of.iter().map(|slot| scalars[slot.0 as usize]).product::<f64>();
        let (top, bottom) = (product(num), product(den));
        scalars[out.0 as usize] = scalar::quotient(top, bottom);
        true
    }

    /// Steps of arithmetic on the host, where calls have all scalars there; whether that is so.
    pub(super) fn scalars_on_host(&self, steps: &[Step]) -> bool {
        if self.mode.calls() {
            scalar::evaluate(steps, &mut self.mode.scalars.borrow_mut());
        }
        self.mode.calls()
    }

    /// Scalars that calls have read already; whether they have.
    pub(super) fn read_on_host(&self, first: Slot, out: &mut [f64]) -> bool {
        if self.mode.calls() {
            let first = first.0 as usize;
            out.copy_from_slice(&self.mode.scalars.borrow()[first..first + out.len()]);
        }
        self.mode.calls()
    }

    /// Launches what is recorded, which is `work` the first time.
    pub(super) fn replayed(&self, recording: &mut Recording, work: &mut dyn FnMut()) -> Result<()> {
        let fault = |e| failed("cannot record iterations", e);
        if recording.0.is_none() {
            let stream = self.device.stream();
            let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
            stream.begin_capture(mode).map_err(fault)?;
            work();
            let flags =
                sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
            recording.0 = stream.end_capture(flags).map_err(fault)?;
        }
        recording.0.as_ref().map_or(Ok(()), CudaGraph::launch).map_err(fault)
    }
}
