//! Times of the table: their columns, and whether speedups reach the published ones.

use super::{Line, Sides, place};
use crate::base::status::Status;
use crate::base::units::{percent, plural, seconds, significant};
use crate::config::Published;
use crate::record::Record;

/// Verdict on a measured value relative to a reference: the deviation in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reached {
    /// At least as good; the deviation is not negative.
    Yes(f64),
    /// Not; the deviation is negative.
    No(f64),
}

impl Reached {
    /// Whether `measured` is at least `wanted`; `None` when one of them is not known.
    pub(super) fn of(measured: Option<f64>, wanted: Option<f64>) -> Option<Self> {
        let deviation = (measured? / wanted? - 1.0) * 100.0;
        // a twentieth of a percent is not shown
        Some(if deviation > -0.05 { Self::Yes(deviation) } else { Self::No(deviation) })
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::Yes(_) => "ok".into(),
            Self::No(deviation) => percent(deviation),
        }
    }
}

/// Seconds of a solve.
pub(super) fn solved(record: Option<&Record>) -> Option<f64> {
    record.and_then(|r| r.times.solve_s)
}

/// Seconds of a solve that converged.
pub(super) fn converged(record: Option<&Record>) -> Option<f64> {
    solved(record.filter(|r| r.status == Status::Converged))
}

/// Heads of the measured times. With one fast backend every time has a column; with more their
/// speedups share one and the setups another, `a/b`, so that the table stays narrow.
pub(super) fn time_heads(sides: &Sides) -> Vec<String> {
    let slow = sides.slow_name();
    let fast: Vec<&str> = sides.fast_names().collect();
    let mut heads = vec![format!("{slow} here")];
    heads.extend(fast.iter().map(|name| format!("{name} here")));
    if let [first, second, ..] = fast[..] {
        let names = fast.join("/");
        heads.push(format!("speedup {names}"));
        heads.push("speedup verdict".into());
        heads.push(format!("{first} against {second}"));
        heads.push(format!("setup {slow}/{names}"));
    } else {
        heads.extend(["speedup here".into(), "speedup verdict".into()]);
        heads.push(format!("setup {slow}"));
        heads.extend(fast.iter().map(|name| format!("setup {name}")));
    }
    heads
}

/// The times under [`time_heads`].
pub(super) fn time_cells(line: &Line<'_>) -> Vec<String> {
    let time = |s: Option<f64>| s.map(seconds).unwrap_or_default();
    let setup = |record: Option<&Record>| time(record.and_then(|r| r.times.setup_s));
    let ratio =
        |side: usize| line.speedup(side).map(|ratio| significant(ratio, 3)).unwrap_or_default();
    let reached = |r: Option<Reached>| r.map(Reached::text).unwrap_or_default();
    let mut cells = vec![time(solved(line.slow))];
    cells.extend(line.fast.iter().map(|record| time(solved(*record))));
    let speedups: Vec<String> = (0..line.fast.len()).map(ratio).collect();
    let setups = std::iter::once(line.slow).chain(line.fast.iter().copied()).map(setup);
    if line.fast.len() > 1 {
        cells.push(joined(&speedups));
        cells.extend([reached(line.reached), reached(line.ahead)]);
        cells.push(joined(&setups.collect::<Vec<_>>()));
    } else {
        cells.push(speedups.into_iter().next().unwrap_or_default());
        cells.push(reached(line.reached));
        cells.extend(setups);
    }
    cells
}

/// `a/b`, a dash for what is not there; nothing of nothing.
fn joined(cells: &[String]) -> String {
    if cells.iter().all(String::is_empty) {
        return String::new();
    }
    let cell = |text: &String| if text.is_empty() { "-".to_owned() } else { text.clone() };
    cells.iter().map(cell).collect::<Vec<_>>().join("/")
}

/// How many rows reach the published speedup, and in how many the first GPU backend is at least as
/// fast as the second.
pub(super) fn speed_summary(
    published: &Published,
    sides: &Sides,
    lines: &[&Line<'_>],
) -> Vec<String> {
    let names: Vec<&str> = sides.fast_names().collect();
    let count = |of: fn(&Line<'_>) -> Option<Reached>, what: &str| {
        let judged: Vec<(&Line<'_>, Reached)> =
            lines.iter().filter_map(|line| Some((*line, of(line)?))).collect();
        let short = judged.iter().filter_map(|(line, reached)| match reached {
            Reached::Yes(_) => None,
            Reached::No(deviation) => Some((line, *deviation)),
        });
        let short: Vec<_> = short.collect();
        let ok = judged.len() - short.len();
        let worst = short.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let worst = worst.map(|(line, deviation)| {
            format!(", worst {} ({})", percent(*deviation), place(published, line))
        });
        let rows = plural(judged.len(), "row");
        let text = format!("{what} in {ok} of {rows}{}", worst.unwrap_or_default());
        (!judged.is_empty()).then_some(text)
    };
    let mut all = Vec::new();
    if let [first, ..] = names[..] {
        all.extend(count(|l| l.reached, &format!("speedup: {first} reaches the paper's")));
    }
    if let [first, second, ..] = names[..] {
        all.extend(count(|l| l.ahead, &format!("{first} at least as fast as {second}")));
    }
    all
}
