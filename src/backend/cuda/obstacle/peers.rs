//! GPUs of one host that write each other's memory: the sides of a part go straight from the sweep that
//! makes them to where the neighbour's next sweep looks, while the rest of the sweep goes on.

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use cudarc::driver::{CudaEvent, DriverError, result, sys};

use super::super::device::failed;
use super::part::Part;
use crate::error::{Error, Result};

/// What keeps neighbours in step: an event of each GPU's last sweep, two in turn.
pub(super) struct Peers {
    events: [Vec<CudaEvent>; 2],
    turn: usize,
}

impl Peers {
    /// Lets neighbours write each other's fields and tells each part where.
    ///
    /// # Errors
    /// When two of them have no way to each other.
    pub(super) fn connect(parts: &mut [Part]) -> Result<Self> {
        for i in 1..parts.len() {
            for (from, to) in [(i - 1, i), (i, i - 1)] {
                open(&parts[from], &parts[to])?;
            }
        }
        for i in 0..parts.len() {
            // the slice of neighbours behind the last of the part before, and that before the first
            let before = i.checked_sub(1).map(|other| {
                let layout = parts[other].layout;
                parts[other].fields().map(|field| field + 8 * layout.line(0, layout.nz + 1) as u64)
            });
            let behind = parts.get(i + 1).map(Part::fields);
            parts[i].ghosts = [before, behind];
        }
        let fault = |e: DriverError| failed("cannot make an event", e);
        let events = || {
            let event = |part: &Part| {
                let flag = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING;
                part.device.stream().record_event(Some(flag)).map_err(fault)
            };
            parts.iter().map(event).collect::<Result<Vec<_>>>()
        };
        Ok(Self { events: [events()?, events()?], turn: 0 })
    }

    /// Part `number` goes on when the last sweeps of its neighbours have ended.
    pub(super) fn wait(&mut self, parts: &[Part], number: usize) -> Result<()> {
        let last = &self.events[self.turn];
        let neighbours = [number.checked_sub(1), Some(number + 1)];
        for event in neighbours.into_iter().flatten().filter_map(|other| last.get(other)) {
            parts[number]
                .device
                .stream()
                .wait(event)
                .map_err(|e| failed("cannot wait for another GPU", e))?;
        }
        Ok(())
    }

    /// All have launched a sweep.
    pub(super) fn swept(&mut self, parts: &[Part]) -> Result<()> {
        self.turn = 1 - self.turn;
        for (event, part) in self.events[self.turn].iter().zip(parts) {
            event.record(part.device.stream()).map_err(|e| failed("cannot mark a sweep", e))?;
        }
        Ok(())
    }

    /// Everybody goes on when what everybody has launched has ended.
    pub(super) fn meet(&mut self, parts: &[Part]) -> Result<()> {
        for part in parts {
            let done = part.device.stream().synchronize();
            done.map_err(|e| failed("cannot wait for a GPU", e))?;
        }
        self.swept(parts)
    }
}

/// Lets the GPU of `from` write the memory of that of `to`.
fn open(from: &Part, to: &Part) -> Result<()> {
    let (from, to) = (from.device.stream().context(), to.device.stream().context());
    let mut can = 0;
    // SAFETY: both are devices of live contexts, and `can` is valid for the write of an integer
    let asked =
        unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, from.cu_device(), to.cu_device()) };
    asked.result().map_err(|e| failed("cannot ask for peer access", e))?;
    if can == 0 {
        let (a, b) = (from.ordinal(), to.ordinal());
        return Err(Error::run(format!("GPUs {a} and {b} cannot write each other's memory"))
            .hint("use one GPU, or MPI with the CPU backend"));
    }
    let fault = |e: DriverError| failed("cannot open a GPU's memory to another", e);
    let descriptor = sys::CUmemAccessDesc {
        location: sys::CUmemLocation {
            type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: from.cu_device(),
        },
        flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    to.bind_to_thread().map_err(fault)?;
    // SAFETY: fields come from the default pool of their device, one descriptor is given
    unsafe {
        let pool = result::device::get_mem_pool(to.cu_device()).map_err(fault)?;
        sys::cuMemPoolSetAccess(pool, &raw const descriptor, 1).result().map_err(fault)
    }
}
