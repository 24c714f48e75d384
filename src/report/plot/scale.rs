//! Axes: ranges that end at round numbers, and the ticks between.

use std::ops::Range;

use crate::config::marks::Spacing;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// An axis with its range and its ticks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    spacing: Spacing,
    low: f64,
    high: f64,
    /// Values with a label.
    ticks: Vec<f64>,
    /// Values with a fine line only.
    minor: Vec<f64>,
    /// Labels of the ticks 0, 1, ... where they are names.
    names: Vec<String>,
}

/// Steps between labelled ticks that a linear axis has about.
const STEPS: f64 = 5.0;

/// Decades up to which a logarithmic axis has a label at 1, 2 and 5.
const FEW_DECADES: f64 = 2.5;

impl Scale {
    /// An axis that has room for `values`, of which those that are not finite, and on a logarithmic
    /// one those that are not positive, are left out.
    pub(super) fn of(spacing: Spacing, values: impl Iterator<Item = f64>) -> Self {
        let fits = |v: &f64| v.is_finite() && (spacing == Spacing::Linear || *v > 0.0);
        let ends = values.filter(fits).fold(None, |ends: Option<(f64, f64)>, v| {
            Some(ends.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
        });
        match (spacing, ends) {
            (Spacing::Linear, Some((low, high))) => Self::linear(low.min(0.0), high.max(0.0)),
            (Spacing::Linear, None) => Self::linear(0.0, 1.0),
            (Spacing::Log, Some((low, high))) => Self::log(low, high),
            (Spacing::Log, None) => Self::log(1.0, 10.0),
        }
    }

    /// An axis of categories, each one wide.
    pub(super) fn of_names(names: &[String]) -> Self {
        Self {
            spacing: Spacing::Linear,
            low: -0.5,
            high: names.len() as f64 - 0.5,
            ticks: (0..names.len()).map(|i| i as f64).collect(),
            minor: Vec::new(),
            names: names.to_vec(),
        }
    }

    fn linear(low: f64, high: f64) -> Self {
        let span = if high > low { high - low } else { 1.0 };
        let step = round_up(span / STEPS);
        let (first, last) = ((low / step).floor(), ((low + span) / step).ceil());
        Self {
            spacing: Spacing::Linear,
            low: first * step,
            high: last * step,
            ticks: (first as i64..=last as i64).map(|i| i as f64 * step).collect(),
            minor: Vec::new(),
            names: Vec::new(),
        }
    }

    fn log(low: f64, high: f64) -> Self {
        let low = round_down(low);
        let high = round_up(high);
        let high = if high > low { high } else { 10.0 * low };
        let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let within = |v: &f64| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(v);
        let at = |digits: &'static [u8]| -> Vec<f64> {
            let all = decades.clone().flat_map(|k| {
                digits.iter().map(move |&d| {
                    // both are exact where the result is
                    if k < 0 { f64::from(d) / 10f64.powi(-k) } else { f64::from(d) * 10f64.powi(k) }
                })
            });
            all.filter(within).collect()
        };
        let count = (high / low).log10();
        let mut ticks = if count <= FEW_DECADES { at(&[1, 2, 5]) } else { at(&[1]) };
        let every = ticks.len().div_ceil(8).max(1);
        if count > FEW_DECADES {
            ticks = ticks.into_iter().step_by(every).collect();
        }
        let mut minor = if every == 1 { at(&[1, 2, 3, 4, 5, 6, 7, 8, 9]) } else { at(&[1]) };
        minor.retain(|v| !ticks.contains(v));
        Self { spacing: Spacing::Log, low, high, ticks, minor, names: Vec::new() }
    }

    /// The least value.
    pub(super) fn low(&self) -> f64 {
        self.low
    }

    /// The largest value.
    pub(super) fn high(&self) -> f64 {
        self.high
    }

    /// Whether `value` has a place on it.
    pub(super) fn holds(&self, value: f64) -> bool {
        value.is_finite() && (self.spacing == Spacing::Linear || value > 0.0)
    }

    /// The labels of its ticks.
    pub(super) fn labels(&self) -> impl Iterator<Item = String> {
        self.ticks.iter().map(|tick| self.format_ext(tick))
    }

    /// 0 at the low end, 1 at the high end.
    fn fraction(&self, value: f64) -> f64 {
        match self.spacing {
            Spacing::Linear => (value - self.low) / (self.high - self.low),
            Spacing::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        }
    }
}

/// The least 1, 2 or 5 times a power of ten that is not below `value`.
pub(super) fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0].into_iter().map(|digit| digit * power);
    steps.into_iter().find(|step| *step >= value * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

/// The largest 1, 2 or 5 times a power of ten that is not above `value`.
pub(super) fn round_down(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let steps = [5.0, 2.0].into_iter().map(|digit| digit * power);
    steps.into_iter().find(|step| *step <= value * (1.0 + 1e-9)).unwrap_or(power)
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + (f64::from(to - from) * self.fraction(*value)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { self.minor.clone() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, value: &f64) -> String {
        match self.names.get(*value as usize) {
            Some(name) => name.clone(),
            None => tick(*value),
        }
    }
}

/// A round number as a label: plain where that is short, else with a power of ten.
fn tick(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".into();
    }
    if (0.99e-3..0.99e4).contains(&size) {
        let decimals = (3 - size.log10().floor() as i32).clamp(0, 7) as usize;
        let text = format!("{value:.decimals$}");
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            text.as_str()
        };
        return text.to_owned();
    }
    let power = (size * (1.0 + 1e-9)).log10().floor();
    let digits = format!("{:.2}", value / 10f64.powf(power));
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    let exponent = superscript(power as i32);
    if digits == "1" { format!("10{exponent}") } else { format!("{digits}·10{exponent}") }
}

fn superscript(number: i32) -> String {
    let digit = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        other => char::from_u32('⁰' as u32 + (other as u32 - '0' as u32)).unwrap_or(other),
    };
    number.to_string().chars().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(spacing: Spacing, values: &[f64]) -> Vec<String> {
        Scale::of(spacing, values.iter().copied()).labels().collect()
    }

    #[test]
    fn linear_axes_start_at_zero_and_end_at_a_step() {
        assert_eq!(labels(Spacing::Linear, &[3.0, 11.2]), ["0", "5", "10", "15"]);
        assert_eq!(labels(Spacing::Linear, &[0.031]), ["0", "0.01", "0.02", "0.03", "0.04"]);
        assert_eq!(labels(Spacing::Linear, &[-1.0, 2.0]), ["-1", "0", "1", "2"]);
        assert_eq!(labels(Spacing::Linear, &[]), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(labels(Spacing::Linear, &[0.0]).len(), 6);
        assert_eq!(
            labels(Spacing::Linear, &[4.1e5]),
            ["0", "10⁵", "2·10⁵", "3·10⁵", "4·10⁵", "5·10⁵"]
        );
    }

    #[test]
    fn logarithmic_axes_end_at_round_numbers() {
        assert_eq!(
            labels(Spacing::Log, &[0.0155, 1.8]),
            ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2"]
        );
        assert_eq!(labels(Spacing::Log, &[3.0e-5, 2.0]), ["10⁻⁴", "0.001", "0.01", "0.1", "1"]);
        assert_eq!(labels(Spacing::Log, &[1e12, 1e14, f64::NAN, 0.0, -3.0]).len(), 7);
        assert_eq!(labels(Spacing::Log, &[7.0]), ["5", "10"]);
        assert_eq!(labels(Spacing::Log, &[1.0]), ["1", "2", "5", "10"]);
        let wide = labels(Spacing::Log, &[1e-16, 1.0]);
        assert_eq!(wide, ["10⁻¹⁶", "10⁻¹³", "10⁻¹⁰", "10⁻⁷", "10⁻⁴", "0.1"]);
    }

    #[test]
    fn values_lie_between_the_ends_in_proportion() {
        let log = Scale::of(Spacing::Log, [1.0, 100.0].into_iter());
        assert_eq!((log.map(&1.0, (0, 400)), log.map(&10.0, (0, 400))), (0, 200));
        let linear = Scale::of(Spacing::Linear, [10.0].into_iter());
        assert_eq!(linear.map(&2.5, (500, 100)), 400);
        let names = Scale::of_names(&["a".into(), "b".into()]);
        assert_eq!((names.map(&0.0, (0, 100)), names.map(&1.0, (0, 100))), (25, 75));
        assert_eq!(names.labels().collect::<Vec<_>>(), ["a", "b"]);
    }
}
