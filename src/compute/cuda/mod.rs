//! CUDA backend: one GPU. Mirrors the CPU backend; see `kernels/` for the device code.

mod analysis;
mod compressed;
mod copies;
pub mod cubins;
pub mod cusparse;
pub(crate) mod device;
mod distributed;
mod execution;
mod factors;
mod fgbilu;
mod formats;
mod ilu;
mod in_kernel;
pub(crate) mod ipc;
mod lattice;
pub(crate) mod launch;
pub mod layout;
mod limits;
pub mod memory;
mod numbering;
mod numbers;
pub mod nvrtc;
mod operations;
pub(crate) mod pinned;
mod ranges;
mod reads;
mod schedules;
pub mod sources;
mod sparse;
mod spmv;
mod sptrsv;
mod staging;
mod storage;
mod symbolic;
mod tiles;
pub mod tune;
mod vector;

use crate::compute::Clock;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::{CudaStream, DriverError, PinnedHostSlice};

use super::{SLOTS, Slot};
use crate::base::error::{Error, Result};
pub use compressed::setup_variants;
use copies::Copies;
use cusparse::{Handle, SpmvSell, StoredMatrix};
pub use device::Device;
use execution::Mode;
pub use factors::BlockIlu;
use formats::Formatted;
pub use formats::{SUBJECTS, product_variants};
pub use ilu::{Description as FactorisationAbout, factor_variants, factorisations};
pub use in_kernel::in_kernel_variants;
use layout::Layout;
pub use limits::Limits;
use memory::failed;
use reads::Read;
use spmv::Stored;
pub use sptrsv::{largest_variant, largest_variants, resident_variant, stencil_variant};
use symbolic::Known;
use vector::Vectors;

/// Structs that the kernels share with this backend.
pub fn layouts() -> impl Iterator<Item = &'static Layout> {
    let all = [launch::LAYOUTS, in_kernel::LAYOUTS, formats::LAYOUTS, symbolic::LAYOUTS];
    all.into_iter().flatten().chain(ilu::layouts()).chain(sptrsv::layouts())
}

/// Computes on the first GPU, or on that of a rank.
///
/// Operations are asynchronous. One that fails is remembered; from then on slots read as NaN, which
/// ends every method, and [`Platform::check`](crate::compute::Platform::check) tells what happened.
pub struct Cuda {
    device: Arc<Device>,
    vectors: Vectors,
    host: RefCell<PinnedHostSlice<f64>>,
    /// Scalars on their way to the host, made when it is first needed.
    read: RefCell<Option<Read>>,
    failure: RefCell<Option<Error>>,
    mode: Mode,
    /// Whether products, factorisation and solves are those of cuSPARSE.
    vendor: bool,
    /// cuSPARSE, opened when it is first needed.
    library: OnceCell<Rc<Handle>>,
    /// Seconds spent on choices among the library's ways.
    uncounted: Cell<f64>,
    /// Seconds of compilation before this backend began to be made.
    compiled_before: f64,
    /// Ranks that have this GPU, on one of these.
    sharers: Option<usize>,
    /// Whether ranks may write each other's memory.
    direct: bool,
    /// Stream of copies between ranks, made when it is first needed.
    copies: OnceCell<Arc<CudaStream>>,
    /// Where patterns, schedules and blocks are made.
    setup: symbolic::Place,
    /// The last pattern that was.
    pattern: RefCell<Option<Known>>,
    /// Matrices that are stored for products.
    stored: RefCell<Copies>,
}

/// A matrix stored for products.
pub enum Matrix {
    /// For our kernels.
    Ours(Stored),
    /// For our kernels, in HYB, SELL, DIA or Bdia.
    Formatted(Box<Formatted>),
    /// For cuSPARSE.
    Vendor(StoredMatrix),
    /// For cuSPARSE, in SELL.
    VendorSell(Box<SpmvSell>),
}

impl Cuda {
    /// With our kernels.
    ///
    /// # Errors
    /// When there is no GPU, no driver or no run-time compiler.
    pub fn ours() -> Result<Self> {
        Self::new(Device::shared()?, false)
    }

    /// With the routines of cuSPARSE for products, factorisation and triangular solves.
    ///
    /// # Errors
    /// As [`ours`](Self::ours), and when there is no cuSPARSE.
    pub fn vendor() -> Result<Self> {
        let k = Self::new(Device::shared()?, true)?;
        k.library()?;
        Ok(k)
    }

    #[allow(unsafe_code, reason = "pinned memory without a value")]
    fn new(device: Arc<Device>, vendor: bool) -> Result<Self> {
        let compiled_before = device.compile_seconds();
        // SAFETY: slots are written by a download before they are read
        let host = unsafe { device.stream().context().alloc_pinned_with_flags::<f64>(SLOTS, 0) }
            .map_err(|e| failed("cannot pin host memory", e))?;
        let vectors = Vectors::new(&device)?;
        Ok(Self {
            device,
            vectors,
            host: RefCell::new(host),
            read: RefCell::default(),
            failure: RefCell::default(),
            mode: Mode::new(),
            vendor,
            library: OnceCell::new(),
            uncounted: Cell::new(0.0),
            compiled_before,
            sharers: None,
            direct: false,
            copies: OnceCell::new(),
            setup: if vendor { symbolic::Place::Host } else { symbolic::place()? },
            pattern: RefCell::default(),
            stored: RefCell::default(),
        })
    }

    fn library(&self) -> Result<&Rc<Handle>> {
        if let Some(handle) = self.library.get() {
            return Ok(handle);
        }
        let handle = Handle::new(&self.device)?;
        Ok(self.library.get_or_init(|| handle))
    }

    /// The GPU.
    pub fn gpu(&self) -> &Device {
        &self.device
    }

    fn note(&self, what: &str, done: Result<(), DriverError>) {
        if let Err(e) = done {
            self.failed(failed(what, e));
        }
    }

    fn read_slots(&self, first: Slot, out: &mut [f64]) {
        let first = first.0 as usize;
        let from = self.vectors.slots.slice(first..first + out.len());
        let mut host = self.host.borrow_mut();
        let copied = host
            .as_mut_slice()
            .and_then(|host| self.device.stream().memcpy_dtoh(&from, &mut host[..out.len()]));
        self.note("read", copied);
        self.synchronise();
        match host.as_slice() {
            Ok(values) if self.failure.borrow().is_none() => {
                out.copy_from_slice(&values[..out.len()]);
            }
            _ => out.fill(f64::NAN),
        }
    }

    /// Remembers the first failure.
    fn failed(&self, e: Error) {
        self.failure.borrow_mut().get_or_insert(e);
    }
}
