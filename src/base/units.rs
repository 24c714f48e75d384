//! Numbers for people: times, counts and percentages with the digits that mean something.

use crate::base::measure::{Median, Spread};

/// A time with its unit and 4 significant digits: `1.234 s`, `12.34 ms`, `456.7 µs`.
pub fn seconds(value: f64) -> String {
    let (factor, unit) = unit_of(value);
    format!("{} {unit}", significant(value * factor, 4))
}

/// A median time with its spread: `1.234 ± 0.012 s` for a 95 % interval whose halves are equal in these
/// digits, `1.234 [1.230, 1.251] s` for one that is lopsided, `1.234 (3: 1.230–1.251) s` for the range of
/// three samples, which are too few for an interval, and `1.234 s` for one.
pub(crate) fn median_seconds(median: &Median) -> String {
    let (factor, unit) = unit_of(median.value);
    let value = significant(median.value * factor, 4);
    let decimals = value.split_once('.').map_or(0, |(_, d)| d.len());
    let text = |seconds: f64| format!("{:.decimals$}", seconds * factor);
    match median.spread {
        Spread::None => format!("{value} {unit}"),
        Spread::Range { low, high } => {
            format!("{value} ({}: {}–{}) {unit}", median.count, text(low), text(high))
        }
        Spread::Interval { low, high } => {
            let (below, above) = (text(median.value - low), text(high - median.value));
            if below == above {
                format!("{value} ± {above} {unit}")
            } else {
                format!("{value} [{}, {}] {unit}", text(low), text(high))
            }
        }
    }
}

/// Two parts of `total` seconds, the first of which is `first`, in the unit and with the decimals of
/// [`median_seconds`], so that what is shown adds up to the total shown. The total is rounded as it stands, since
/// it is what is compared and what other files hold; the second part takes the difference, which moves it by a
/// unit of the last digit at most. Digits of the parts beyond those of their sum would say nothing of it.
pub(crate) fn parts_of(total: f64, first: f64) -> [String; 2] {
    let (factor, unit) = unit_of(total);
    let sum = significant(total * factor, 4);
    let decimals = sum.split_once('.').map_or(0, |(_, d)| d.len());
    let first = format!("{:.decimals$}", first * factor);
    let number = |text: &str| text.parse().unwrap_or(f64::NAN);
    let second: f64 = number(&sum) - number(&first);
    [format!("{first} {unit}"), format!("{second:.decimals$} {unit}")]
}

fn unit_of(value: f64) -> (f64, &'static str) {
    match value.abs() {
        0.0 => (1.0, "s"),
        v if v < 1e-6 => (1e9, "ns"),
        v if v < 1e-3 => (1e6, "µs"),
        v if v < 1.0 => (1e3, "ms"),
        _ => (1.0, "s"),
    }
}

/// `value` rounded to `digits` significant digits, without an exponent.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let magnitude = value.abs().log10().floor() as i64;
    let decimals = (digits as i64 - 1 - magnitude).clamp(0, 12) as usize;
    format!("{value:.decimals$}")
}

/// A whole number with its digits in groups of three: `1,728,000`.
pub(crate) fn grouped(value: usize) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A signed percentage: `+3.4 %`.
pub fn percent(value: f64) -> String {
    format!("{value:+.1} %")
}

/// A residual: `8.4e-7`.
pub fn residual(value: f64) -> String {
    format!("{value:.1e}")
}

/// `1 thread`, `2 threads`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Names in one column, what belongs to them in the next.
pub fn aligned(indent: usize, pairs: &[(String, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in pairs {
        text.push_str(&" ".repeat(indent));
        text.push_str(format!("{name:width$}  {value}").trim_end());
        text.push('\n');
    }
    text
}

/// Bytes of memory in GiB, small ones in MiB.
pub fn memory(bytes: usize) -> String {
    let mib = bytes as f64 / f64::from(1 << 20);
    if mib < 100.0 { format!("{mib:.1} MiB") } else { format!("{:.2} GiB", mib / 1024.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_memory_is_said_in_mib() {
        let shown = [0, 3 << 19, (100 << 20) - 1, 100 << 20, 3 << 29].map(memory);
        assert_eq!(shown, ["0.0 MiB", "1.5 MiB", "100.0 MiB", "0.10 GiB", "1.50 GiB"]);
    }

    #[test]
    fn times_take_the_unit_that_fits() {
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(seconds(123.456), "123.5 s");
        assert_eq!(seconds(1.0), "1.000 s");
        assert_eq!(seconds(0.012_345), "12.35 ms");
        assert_eq!(seconds(45.6e-6), "45.60 µs");
        assert_eq!(seconds(2e-9), "2.000 ns");
    }

    #[test]
    fn medians_show_what_their_spread_is() {
        let text = |value, spread, count| median_seconds(&Median { value, spread, count });
        let interval = |low, high| Spread::Interval { low, high };
        assert_eq!(text(1.234, interval(1.222, 1.246), 9), "1.234 ± 0.012 s");
        assert_eq!(text(0.0125, interval(0.012, 0.013), 6), "12.50 ± 0.50 ms");
        assert_eq!(text(0.0242, interval(0.0239, 0.0249), 8), "24.20 [23.90, 24.90] ms");
        let range = Spread::Range { low: 0.0239, high: 0.0245 };
        assert_eq!(text(0.0242, range, 3), "24.20 (3: 23.90–24.50) ms");
        assert_eq!(text(2e-5, Spread::None, 1), "20.00 µs");
    }

    #[test]
    fn parts_add_up_to_the_total_shown() {
        let parts = |total, first| (seconds(total), parts_of(total, first).join(" + "));
        let of = |total: &str, parts: &str| (total.to_owned(), parts.to_owned());
        // 5.1249 + 48.7649: alone they would be 5.125 and 48.76
        assert_eq!(parts(0.053_889_8, 0.005_124_9), of("53.89 ms", "5.12 ms + 48.77 ms"));
        // both halves are rounded up, and then the sum would be 0.002 more than they are
        assert_eq!(parts(1.0011, 0.500_55), of("1.001 s", "0.501 s + 0.500 s"));
        assert_eq!(parts(2e-3, 12.4e-6), of("2.000 ms", "0.012 ms + 1.988 ms"));
        assert_eq!(parts(123.44, 0.04), of("123.4 s", "0.0 s + 123.4 s"));
        assert_eq!(parts(0.25, 0.25), of("250.0 ms", "250.0 ms + 0.0 ms"));
    }

    #[test]
    fn counts_and_percentages() {
        assert_eq!(grouped(1_728_000), "1,728,000");
        assert_eq!(grouped(999), "999");
        assert_eq!(percent(-3.44), "-3.4 %");
        assert_eq!(residual(8.42e-7), "8.4e-7");
        assert_eq!((plural(1, "row"), plural(2, "row")), ("1 row".into(), "2 rows".into()));
    }
}
