//! Numbers for people: times, counts and percentages with the digits that mean something.

/// A time with its unit and 4 significant digits: `1.234 s`, `12.34 ms`, `456.7 µs`.
pub fn seconds(value: f64) -> String {
    let (factor, unit) = unit_of(value);
    format!("{} {unit}", significant(value * factor, 4))
}

/// A time with the half width of its confidence interval: `1.234 ± 0.012 s`.
pub fn seconds_within(value: f64, half_width: f64) -> String {
    let (factor, unit) = unit_of(value);
    let value = significant(value * factor, 4);
    let decimals = value.split_once('.').map_or(0, |(_, d)| d.len());
    format!("{value} ± {:.decimals$} {unit}", half_width * factor)
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
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let magnitude = value.abs().log10().floor() as i64;
    let decimals = (digits as i64 - 1 - magnitude).clamp(0, 12) as usize;
    format!("{value:.decimals$}")
}

/// A whole number with its digits in groups of three: `1,728,000`.
pub fn grouped(value: usize) -> String {
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
pub fn plural(count: usize, noun: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_take_the_unit_that_fits() {
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(seconds(123.456), "123.5 s");
        assert_eq!(seconds(1.0), "1.000 s");
        assert_eq!(seconds(0.012_345), "12.35 ms");
        assert_eq!(seconds(45.6e-6), "45.60 µs");
        assert_eq!(seconds(2e-9), "2.000 ns");
        assert_eq!(seconds_within(1.234_5, 0.012_3), "1.234 ± 0.012 s");
        assert_eq!(seconds_within(0.012_345, 0.000_5), "12.35 ± 0.50 ms");
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
