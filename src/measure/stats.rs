//! Medians and their confidence intervals.

/// A median with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    /// The median.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Number of samples.
    pub count: usize,
}

impl Median {
    /// Half the width of the interval over the median.
    pub fn relative_error(&self) -> f64 {
        0.5 * (self.high - self.low) / self.value
    }
}

/// Median of the samples; `None` without samples.
///
/// The interval is the distribution-free one from order statistics: the ranks `n/2 -+ 0.98 sqrt n`
/// enclose the median with about 95 % confidence. With fewer than six samples no ranks do, and the
/// interval is the whole range.
pub fn median(samples: &[f64]) -> Option<Median> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    let middle = n.checked_sub(1)? / 2;
    let value =
        if n % 2 == 1 { sorted[middle] } else { 0.5 * (sorted[middle] + sorted[middle + 1]) };
    let (low, high) = if n < 6 {
        (sorted[0], sorted[n - 1])
    } else {
        let half = 0.98 * (n as f64).sqrt();
        let low = (n as f64 / 2.0 - half).floor().max(0.0) as usize;
        let high = ((n as f64 / 2.0 + half).ceil() as usize).min(n - 1);
        (sorted[low], sorted[high])
    };
    Some(Median { value, low, high, count: n })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_no_samples() {
        assert_eq!(median(&[]), None);
        let m = median(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((m.value, m.low, m.high, m.count), (2.0, 1.0, 3.0, 3));
        assert_eq!(median(&[4.0, 1.0]).unwrap().value, 2.5);
    }

    #[test]
    fn interval_follows_the_order_statistics() {
        let samples: Vec<f64> = (0..100).map(f64::from).collect();
        let m = median(&samples).unwrap();
        // ranks 50 -+ 9.8: the textbook's 40th and 61st values
        assert_eq!((m.value, m.low, m.high), (49.5, 40.0, 60.0));
        assert!((m.relative_error() - 10.0 / 49.5).abs() < 1e-15);
    }
}
