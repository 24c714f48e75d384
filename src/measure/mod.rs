//! Clock, statistics, bandwidth and memory.

mod bandwidth;
mod stats;

use std::sync::OnceLock;
use std::time::Instant;

pub use bandwidth::{
    Bandwidth, bandwidth, bandwidth_beyond_caches, copy_bandwidth, copy_bandwidth_beside,
};
pub use stats::{Median, Spread, median, shift};

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

/// Bytes of memory that can be had without swapping and within the limits of this process (`ulimit -v`);
/// no bound where the system does not tell.
pub fn memory_free() -> usize {
    let free = sysinfo::System::new().map_or(usize::MAX, |mut system| {
        system.refresh_memory();
        system.available_memory() as usize
    });
    free.min(addresses_free())
}

/// Bytes that the limit of the address space leaves to this process.
fn addresses_free() -> usize {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).ok();
    let free = || {
        let limit = address_limit(&read("limits")?)?;
        Some(limit.saturating_sub(addresses_used(&read("status")?)?))
    };
    free().unwrap_or(usize::MAX)
}

/// The soft limit of the address space that `/proc/PID/limits` tells; none where it is unlimited.
fn address_limit(limits: &str) -> Option<usize> {
    limits
        .lines()
        .find_map(|l| l.strip_prefix("Max address space"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// The size of the address space that `/proc/PID/status` tells.
fn addresses_used(status: &str) -> Option<usize> {
    let size = status.lines().find_map(|l| l.strip_prefix("VmSize:"))?.trim().strip_suffix("kB")?;
    Some(1024 * size.trim().parse::<usize>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_a_process_bounds_its_memory() {
        let limits = |soft: &str| {
            format!(
                "Limit  Soft Limit  Hard Limit  Units\nMax address space  {soft}  unlimited  bytes\n"
            )
        };
        assert_eq!(address_limit(&limits("614400000")), Some(614_400_000));
        assert_eq!(address_limit(&limits("unlimited")), None);
        assert_eq!(addresses_used("VmPeak:\t  9 kB\nVmSize:\t    7664 kB\n"), Some(7664 << 10));
    }
}
