//! Clock, statistics, bandwidth and memory.

mod bandwidth;
mod stats;

use std::sync::OnceLock;
use std::time::Instant;

pub use bandwidth::copy_bandwidth;
pub use stats::{Median, median};

/// The monotonic clock. All timing goes through here.
pub fn now() -> Instant {
    Instant::now()
}

/// Seconds since `start`.
pub fn seconds_since(start: Instant) -> f64 {
    now().duration_since(start).as_secs_f64()
}

/// Runs `f` and returns its result and seconds.
pub fn timed<R>(f: impl FnOnce() -> R) -> (R, f64) {
    let start = now();
    let result = f();
    (result, seconds_since(start))
}

/// Name of the processor.
pub fn cpu_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        #[cfg(target_arch = "x86_64")]
        if let Some(brand) = raw_cpuid::CpuId::new().get_processor_brand_string() {
            return brand.as_str().trim().to_owned();
        }
        std::env::consts::ARCH.to_owned()
    })
}

/// Bytes of memory that can be had without swapping; no bound where the system does not tell.
pub fn memory_free() -> usize {
    sysinfo::System::new().map_or(usize::MAX, |mut system| {
        system.refresh_memory();
        system.available_memory() as usize
    })
}
