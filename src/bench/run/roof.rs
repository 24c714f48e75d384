//! Roofline: lower bounds of a time, from memory traffic at copy bandwidth and from the latency of sequential
//! levels. An operation is at best as fast as the larger of the two.

/// What bounds a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Roof {
    /// Copy bandwidth, 1e9 bytes per second, where measured.
    pub(super) copy_gbps: Option<f64>,
    /// Seconds in which a value goes from one thread block to another, where measured.
    pub(super) handover: Option<f64>,
}

/// Shares of an operation's time, in percent, that each bound alone would take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    /// Bytes over copy bandwidth.
    pub(super) bandwidth: Option<f64>,
    /// Levels times CTA-to-CTA latency.
    pub(super) latency: Option<f64>,
}

impl Roof {
    /// The shares of `seconds` in which `bytes` were moved over `levels`.
    pub(super) fn share(&self, seconds: f64, bytes: usize, levels: Option<usize>) -> Share {
        let percent = |least: f64| 100.0 * least / seconds;
        let latency = levels.zip(self.handover).map(|(levels, s)| levels as f64 * s);
        let bandwidth = self.copy_gbps.map(|gbps| bytes as f64 / gbps / 1e9);
        Share { bandwidth: bandwidth.map(percent), latency: latency.map(percent) }
    }
}

impl Share {
    /// The bound that holds.
    pub(super) fn larger(self) -> Option<f64> {
        [self.bandwidth, self.latency].into_iter().flatten().reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_bound_is_the_roof() {
        let roof = Roof { copy_gbps: Some(4000.0), handover: Some(0.5e-6) };
        // 4 MB take 1 us, 100 levels 50 us
        let share = roof.share(200e-6, 4_000_000, Some(100));
        assert!((share.bandwidth.unwrap() - 0.5).abs() < 1e-12);
        assert!((share.latency.unwrap() - 25.0).abs() < 1e-12);
        assert_eq!(share.larger(), share.latency);
        // 4 GB take 1 ms
        let share = roof.share(2e-3, 4_000_000_000, Some(100));
        assert!((share.larger().unwrap() - 50.0).abs() < 1e-12);
        let bytes_alone = Roof { handover: None, ..roof }.share(2e-3, 4_000_000_000, Some(100));
        assert_eq!((bytes_alone.latency, bytes_alone.larger()), (None, share.bandwidth));
        assert_eq!(roof.share(1.0, 1, None).latency, None);
        let unknown = Roof { copy_gbps: None, handover: None }.share(1.0, 1, Some(1));
        assert_eq!(unknown.larger(), None);
    }
}
