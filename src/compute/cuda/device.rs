//! The GPU: context, stream, modules, memory.

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

mod arrays;
mod measures;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaStream, DriverError, LaunchConfig, sys,
};
use cudarc::nvrtc::Ptx;

use super::limits::Limits;
use super::memory::{self, Memory, failed};
use super::sources::{Source, Variant};
use super::staging::Staging;
use super::{cubins, nvrtc};
use crate::base::error::{Error, Kind, Result};
use crate::base::input::say;
use crate::base::measure::timed;
use crate::compute::tune::store::Store;

/// Oldest architecture the kernels are written for: memory model and independent thread scheduling.
pub(crate) const OLDEST: (i32, i32) = (7, 0);

/// Oldest driver, by the CUDA version it is of: before 12.8 `cuEventElapsedTime_v2` is missing.
const OLDEST_DRIVER: (i32, i32) = (12, 8);

/// A GPU with everything that outlives a case.
pub struct Device {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    modules: Mutex<Modules>,
    copy_gbps: OnceLock<f64>,
    handover: OnceLock<f64>,
    staging: Mutex<Option<Staging>>,
    name: String,
    arch: (i32, i32),
    multiprocessors: u32,
    /// Bytes of shared memory that a thread block can have.
    shared_bytes: usize,
    /// Bytes of the L2 cache.
    l2_bytes: usize,
    limits: Mutex<Limits>,
    driver: (i32, i32),
    tuning: OnceLock<Store>,
}

/// Modules that are loaded.
#[derive(Default)]
struct Modules {
    of: HashMap<(&'static str, Variant), Arc<CudaModule>>,
    /// Seconds that compiling and loading took.
    seconds: f64,
}

impl Device {
    /// The first GPU; made at the first call and kept.
    ///
    /// # Errors
    /// When there is no driver, no GPU, or one that is too old.
    pub fn shared() -> Result<Arc<Self>> {
        Self::numbered(0)
    }

    /// GPU number `ordinal`; made at the first call and kept.
    ///
    /// # Errors
    /// As [`shared`](Self::shared).
    pub(crate) fn numbered(ordinal: usize) -> Result<Arc<Self>> {
        static DEVICES: Mutex<BTreeMap<usize, Arc<Device>>> = Mutex::new(BTreeMap::new());
        let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        let device = match devices.entry(ordinal) {
            Entry::Occupied(known) => Arc::clone(known.get()),
            Entry::Vacant(place) => Arc::clone(place.insert(Arc::new(Self::open(ordinal)?))),
        };
        device.context.bind_to_thread().map_err(|e| failed("cannot use the context", e))?;
        Ok(device)
    }

    /// How many GPUs there are, at least one.
    ///
    /// # Errors
    /// When there is no driver, one that is too old, or no GPU.
    pub(crate) fn count() -> Result<usize> {
        // SAFETY: only looks for the library; every other call panics without it
        if !unsafe { sys::is_culib_present() } {
            return Err(Error::run("no CUDA driver found (libcuda.so)")
                .hint("`bilu-bench doctor` shows what is there; the CPU backends need none"));
        }
        driver_version()?;
        let count = CudaContext::device_count()
            .map_err(|e| failed("cannot start", e).hint("is the driver loaded? see nvidia-smi"))?;
        if count < 1 {
            return Err(Error::run("no CUDA device found"));
        }
        Ok(count as usize)
    }

    /// The first `count` GPUs, kept as the first is.
    ///
    /// # Errors
    /// As [`shared`](Self::shared), and when there are not as many.
    pub(crate) fn several(count: usize) -> Result<Vec<Arc<Self>>> {
        let there = Self::count()?;
        if count > there {
            return Err(Error::run(format!("{count} GPUs asked for, {there} found")));
        }
        (0..count).map(Self::numbered).collect()
    }

    fn open(ordinal: usize) -> Result<Self> {
        memory::limit()?;
        Self::count()?;
        let driver = driver_version()?;
        let context = CudaContext::new(ordinal).map_err(|e| {
            failed("cannot open the device", e).hint("is another program using it?")
        })?;
        // SAFETY: everything runs on one stream, and nothing has been allocated yet
        unsafe { context.disable_event_tracking() };
        memory::keep(&context)?;
        let about = |e: DriverError| failed("cannot ask the device", e);
        let arch = context.compute_capability().map_err(about)?;
        let name = context.name().map_err(about)?;
        if arch < OLDEST {
            return Err(Error::run(format!(
                "{name} has compute capability {}.{}; at least {}.{} is needed",
                arch.0, arch.1, OLDEST.0, OLDEST.1
            )));
        }
        let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let multiprocessors = context.attribute(attribute).map_err(about)? as u32;
        let attribute =
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        let shared_bytes = context.attribute(attribute).map_err(about)? as usize;
        let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE;
        let l2_bytes = context.attribute(attribute).map_err(about)? as usize;
        let stream = context.new_stream().map_err(|e| failed("cannot make a stream", e))?;
        Ok(Self {
            context,
            stream,
            modules: Mutex::default(),
            copy_gbps: OnceLock::new(),
            handover: OnceLock::new(),
            staging: Mutex::default(),
            name,
            arch,
            multiprocessors,
            driver,
            shared_bytes,
            l2_bytes,
            limits: Mutex::new(Limits::NONE),
            tuning: OnceLock::new(),
        })
    }

    /// `NVIDIA H200, sm_90, CUDA 13.0`
    pub fn describe(&self) -> String {
        self.described("")
    }

    /// The same with a word behind the name.
    pub(crate) fn described(&self, word: &str) -> String {
        let ((major, minor), (cuda, point)) = (self.arch, self.driver);
        format!("{}{word}, sm_{major}{minor}, CUDA {cuda}.{point}", self.name)
    }

    /// What `tune` found on this device; read once, and nothing where it cannot be read.
    pub(crate) fn tuning(&self) -> &Store {
        self.tuning.get_or_init(|| {
            let device = self.describe();
            Store::load(&device).unwrap_or_else(|e| {
                say(&format!("note: what tuning found is not used: {e}"));
                Store::new(&device)
            })
        })
    }

    /// Compute capability.
    pub fn arch(&self) -> (i32, i32) {
        self.arch
    }

    /// Multiprocessors.
    pub fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// Lets kernels use no more than `limits`, for tests.
    pub fn limit(&self, limits: Limits) {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    pub(crate) fn limits(&self) -> Limits {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of shared memory that a thread block can have.
    pub(crate) fn shared_bytes(&self) -> usize {
        self.shared_bytes
    }

    /// Bytes of the L2 cache.
    pub(crate) fn l2_bytes(&self) -> usize {
        self.l2_bytes
    }

    /// Bytes of shared memory that a thread block may take for rows and values.
    pub(crate) fn shared_for_values(&self) -> usize {
        self.shared_bytes.min(self.limits().shared_bytes)
    }

    /// The stream on which everything runs.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Memory that is free, and memory in all, within [`memory::LIMIT`].
    pub fn memory(&self) -> Result<Memory> {
        memory::memory(&self.context)
    }

    /// The module of a variant of `source`, compiled and loaded at the first call.
    pub fn module(
        &self,
        source: &'static Source,
        variant: impl Into<Variant>,
    ) -> Result<Arc<CudaModule>> {
        let mut variant = variant.into();
        if source.sizes.is_none() {
            variant.block_size = 1;
        }
        let mut modules = self.modules();
        let key = (source.name, variant);
        if let Some(module) = modules.of.get(&key) {
            return Ok(Arc::clone(module));
        }
        let (module, seconds) = timed(|| {
            let cubin = cubins::cubin(source, &key.1, self.arch)?;
            self.context
                .load_module(Ptx::from_binary(cubin))
                .map_err(|e| self.not_loaded(source.name, e))
        });
        modules.seconds += seconds;
        let module = module?;
        modules.of.insert(key, Arc::clone(&module));
        Ok(module)
    }

    /// Why machine code is not taken.
    fn not_loaded(&self, name: &str, e: DriverError) -> Error {
        let failed = failed(&format!("cannot load {name}.cu"), e);
        match nvrtc::version() {
            Ok(compiler) if compiler > self.driver && failed.kind() != Kind::Memory => {
                let ((major, minor), (cuda, point)) = (compiler, self.driver);
                Error::run(format!(
                    "{failed}; NVRTC {major}.{minor} is newer than the driver's CUDA {cuda}.{point}"
                ))
                .hint(format!("update the driver, or name an older NVRTC in {}", nvrtc::FOLDER))
            }
            _ => failed,
        }
    }

    fn modules(&self) -> MutexGuard<'_, Modules> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Seconds that compiling and loading kernels took so far.
    pub fn compile_seconds(&self) -> f64 {
        self.modules().seconds
    }

    /// A kernel of a variant of `source`.
    pub fn kernel(
        &self,
        source: &'static Source,
        variant: impl Into<Variant>,
        name: &str,
    ) -> Result<CudaFunction> {
        let module = self.module(source, variant)?;
        // a driver that loads lazily does so here
        let (kernel, seconds) = timed(|| module.load_function(name));
        self.modules().seconds += seconds;
        kernel.map_err(|e| failed(&format!("no kernel {name} in {}.cu", source.name), e))
    }

    /// The numbers of the constant `name` of a variant of `source`, by which a kernel says how it is
    /// launched.
    pub(crate) fn constants<const N: usize>(
        &self,
        source: &'static Source,
        variant: Variant,
        name: &str,
    ) -> Result<[u32; N]> {
        let fault = |e: DriverError| failed(&format!("no {name} in {}.cu", source.name), e);
        let module = self.module(source, variant)?;
        let mut numbers = [0u32; N];
        let global = module.get_global(name, self.stream()).map_err(fault)?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut numbers);
        self.stream.memcpy_dtoh(&global, bytes).map_err(fault)?;
        self.stream.synchronize().map_err(fault)?;
        Ok(numbers)
    }

    /// Thread blocks of `kernel` that are resident together on the multiprocessors in use.
    pub(crate) fn resident(&self, kernel: &CudaFunction, threads: u32, shared: u32) -> Result<u32> {
        let each = kernel
            .occupancy_max_active_blocks_per_multiprocessor(threads, shared as usize, None)
            .map_err(|e| failed("cannot ask for the occupancy", e))?;
        Ok((each * self.multiprocessors).min(self.limits().resident))
    }
}

/// CUDA version of the driver.
///
/// # Errors
/// When it is too old.
fn driver_version() -> Result<(i32, i32)> {
    let mut version = 0;
    // SAFETY: `version` is valid for the write of one integer; the function needs no start
    unsafe { sys::cuDriverGetVersion(&raw mut version) }
        .result()
        .map_err(|e| failed("cannot ask for the driver's version", e))?;
    let version = (version / 1000, version % 1000 / 10);
    if version < OLDEST_DRIVER {
        return Err(too_old(version));
    }
    Ok(version)
}

fn too_old((major, minor): (i32, i32)) -> Error {
    let (oldest, point) = OLDEST_DRIVER;
    Error::run(format!(
        "the driver is of CUDA {major}.{minor}; at least {oldest}.{point} is needed"
    ))
    .hint("update the NVIDIA driver; the CPU backends need none")
}

/// Threads of a warp.
pub(crate) const WARP: usize = 32;

/// A launch of `blocks` by `threads`.
pub(crate) fn grid(blocks: usize, threads: u32) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (blocks as u32, 1, 1),
        block_dim: (threads, 1, 1),
        shared_mem_bytes: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_driver_is_refused_with_what_is_needed() {
        let error = too_old((12, 4));
        assert_eq!(error.to_string(), "the driver is of CUDA 12.4; at least 12.8 is needed");
        assert!(error.hint_text().unwrap().starts_with("update the NVIDIA driver"));
    }
}
