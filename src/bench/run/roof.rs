//! What bounds a device: the bytes that it can move.

use crate::compute::Platform;

/// Measured bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Roof {
    /// Copy bandwidth, 1e9 bytes per second, where measured.
    pub(super) copy_gbps: Option<f64>,
    /// Bytes of the last-level cache, where known.
    pub(super) cache_bytes: Option<usize>,
    /// Seconds in which a value goes from one thread block to another, where measured. No bound: a level may be
    /// handed over within a thread block.
    pub(super) handover: Option<f64>,
}

impl Roof {
    /// Of a backend, without the latency.
    pub(super) fn of_copies<K: Platform>(k: &K) -> Self {
        let copy_gbps = Some(k.copy_bandwidth()).filter(|gbps| gbps.is_finite());
        Self { copy_gbps, cache_bytes: k.cache_bytes(), handover: None }
    }

    /// The part of `seconds`, in percent, in which `bytes` are moved at copy bandwidth.
    pub(super) fn percent(&self, seconds: f64, bytes: usize) -> Option<f64> {
        self.copy_gbps.map(|gbps| 100.0 * bytes as f64 / gbps / 1e9 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_at_copy_bandwidth_are_the_roof() {
        let roof = Roof { copy_gbps: Some(4000.0), cache_bytes: None, handover: Some(0.5e-6) };
        // 4 MB take 1 us
        assert!((roof.percent(200e-6, 4_000_000).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(Roof { copy_gbps: None, ..roof }.percent(1.0, 1), None);
    }
}
