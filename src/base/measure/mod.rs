//! Clock, statistics and memory.

mod reference;
pub(crate) mod spans;
mod stats;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::base::error::{Error, Result};

pub(crate) use reference::{reference_seconds, wait_of, waits};
pub use stats::{Median, Spread, median, shift};

/// The monotonic clock. All timing goes through here.
pub fn now() -> Instant {
    Instant::now()
}

/// Seconds since `start`.
pub(crate) fn seconds_since(start: Instant) -> f64 {
    now().duration_since(start).as_secs_f64()
}

/// Runs `f` and returns its result and seconds.
pub fn timed<R>(f: impl FnOnce() -> R) -> (R, f64) {
    let start = now();
    let result = f();
    (result, seconds_since(start))
}

/// Name of the processor.
pub(crate) fn cpu_name() -> &'static str {
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
/// no bound where the system does not tell. As it was at most 5 ms ago: to ask takes as long as to set a small
/// matrix up.
pub(crate) fn memory_free() -> usize {
    static LAST: Mutex<Option<(Instant, usize)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((at, free)) = *last
        && at.elapsed() < Duration::from_millis(5)
    {
        return free;
    }
    let free = memory_free_now();
    *last = Some((now(), free));
    free
}

/// The same at this moment.
fn memory_free_now() -> usize {
    system_memory().map_or(usize::MAX, |(_, free)| free).min(addresses_free())
}

/// Most bytes of memory that this process has held since the last call; `None` where the system does not tell.
pub(crate) fn memory_peak() -> Option<usize> {
    let found = memory_peak_so_far().max(Some(ASIDE.swap(0, Ordering::Relaxed)));
    begin_peak();
    found.filter(|bytes| *bytes > 0)
}

/// Runs `work`, whose memory, free again, does not count for [`memory_peak`].
pub(crate) fn without_peak<R>(work: impl FnOnce() -> R) -> R {
    ASIDE.fetch_max(memory_peak_so_far().unwrap_or(0), Ordering::Relaxed);
    let done = work();
    begin_peak();
    done
}

/// The peak before that of the system, which is of the time since then.
static ASIDE: AtomicUsize = AtomicUsize::new(0);

/// Another peak begins; where that is not allowed, it is the same one.
fn begin_peak() {
    _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn memory_peak_so_far() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()? << 10)
}

/// Bytes of memory of this machine, and those that can be had without swapping; none where the system does
/// not tell, as in a sandbox without `/proc`.
pub(crate) fn system_memory() -> Option<(usize, usize)> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_memory();
    told(system.total_memory() as usize, system.available_memory() as usize)
}

/// A machine without memory is one that does not tell.
fn told(total: usize, free: usize) -> Option<(usize, usize)> {
    (total > 0).then_some((total, free))
}

/// Refuses a matrix of `bytes` bytes that the free memory cannot hold.
///
/// # Errors
/// Says how many bytes it takes and how many are free.
pub(crate) fn check_memory(bytes: usize) -> Result<()> {
    // several such arrays can be taken within the age of the last answer, and to fill one takes longer than to ask
    const LARGE: usize = 16 << 20;
    let free = if bytes < LARGE { memory_free() } else { memory_free_now() };
    if bytes <= free {
        return Ok(());
    }
    let gb = |bytes: usize| bytes as f64 / 1e9;
    let (needed, free) = (gb(bytes), gb(free));
    Err(Error::memory(format!(
        "the matrix takes {needed:.1} GB, but only {free:.1} GB of memory are free"
    )))
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
    fn memory_that_nobody_tells_is_unknown() {
        assert_eq!(told(0, 0), None);
        assert_eq!(told(8 << 30, 0), Some((8 << 30, 0)));
        assert_eq!(told(8 << 30, 1 << 30), Some((8 << 30, 1 << 30)));
    }

    #[test]
    fn a_matrix_that_does_not_fit_is_refused() {
        assert_eq!(check_memory(1 << 10), Ok(()));
        let error = check_memory(usize::MAX / 2).unwrap_err();
        assert_eq!(error.kind(), crate::base::error::Kind::Memory);
        let message = error.message();
        assert!(message.starts_with("the matrix takes 9223372036.9 GB, but only "), "{message}");
    }

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
