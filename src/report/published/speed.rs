//! Times of the table: their columns, and whether speedups reach the published ones.

use itertools::Itertools as _;

use super::{Line, Sides, place};
use crate::base::status::Status;
use crate::base::units::{percent, plural};
use crate::config::Published;
use crate::record::Record;
use crate::report::build::Columns;
use crate::report::cells::{ratio_of, shown, three, time};

/// Deviation of a measured value from the one that it is to reach, in percent.
pub(super) fn deviation(measured: Option<f64>, wanted: Option<f64>) -> Option<f64> {
    Some((measured? / wanted? - 1.0) * 100.0)
}

/// Whether that value is reached; a twentieth of a percent is not shown.
fn reaches(deviation: f64) -> bool {
    deviation > -0.05
}

/// `ok`, or by how much not.
pub(super) fn verdict(deviation: f64) -> String {
    if reaches(deviation) { "ok".into() } else { percent(deviation) }
}

/// Seconds of a solve.
pub(super) fn solved(record: Option<&Record>) -> Option<f64> {
    record.and_then(|r| r.times.solve_s)
}

/// Seconds of a solve that converged.
pub(super) fn converged(record: Option<&Record>) -> Option<f64> {
    solved(record.filter(|r| r.status == Status::Converged))
}

/// The columns of the measured times. With one fast backend every time has a column; with more their
/// speedups share one and the setups another, `a/b`, so that the table stays narrow.
pub(super) fn times(sides: &Sides) -> Columns<'_, &Line<'_>> {
    let slow = sides.slow_name();
    let fast = sides.fast_names().collect_vec();
    let setup = |record: Option<&Record>| time(record.and_then(|r| r.times.before_solves()));
    let total = |record: Option<&Record>| record.and_then(|r| r.times.to_solution(1));
    let with_setup = move |line: &Line<'_>, side: usize| {
        let ratio = total(line.slow).zip(total(line.fast[side])).map(|(slow, fast)| slow / fast);
        ratio_of(line.sides(side), three(ratio))
    };
    let of_solves =
        |line: &Line<'_>, side: usize| ratio_of(line.sides(side), three(line.speedup(side)));
    let reached = |of: Option<f64>| shown(of, verdict);
    let mut all =
        Columns::new().number(format!("{slow} here"), |line: &&Line<'_>| time(solved(line.slow)));
    for (side, name) in fast.iter().enumerate() {
        all = all.number(format!("{name} here"), move |line| time(solved(line.fast[side])));
    }
    if let [first, second, ..] = fast[..] {
        let names = fast.join("/");
        return all
            .number(format!("speedup {names}"), move |line| {
                joined((0..line.fast.len()).map(|side| of_solves(line, side)))
            })
            .number("speedup verdict", move |line| reached(line.reached))
            .number(format!("{first} against {second}"), move |line| reached(line.ahead))
            .number(format!("setup {slow}/{names}"), move |line| {
                let records = std::iter::once(line.slow).chain(line.fast.iter().copied());
                joined(records.map(setup))
            })
            .number(format!("total speedup {names}"), move |line| {
                joined((0..line.fast.len()).map(|side| with_setup(line, side)))
            });
    }
    all = all
        .number("speedup here", move |line| match line.fast[..] {
            [] => String::new(),
            _ => of_solves(line, 0),
        })
        .number("speedup verdict", move |line| reached(line.reached))
        .number(format!("setup {slow}"), move |line| setup(line.slow));
    for (side, name) in fast.iter().enumerate() {
        all = all
            .number(format!("setup {name}"), move |line| setup(line.fast[side]))
            .number(format!("total speedup {name}"), move |line| with_setup(line, side));
    }
    all
}

/// `a/b`, a dash for what is not there; nothing of nothing.
fn joined(cells: impl Iterator<Item = String>) -> String {
    let cells = cells.collect_vec();
    if cells.iter().all(String::is_empty) {
        return String::new();
    }
    cells.iter().map(|text| if text.is_empty() { "-" } else { text }).join("/")
}

/// How many rows reach the published speedup, and in how many the first GPU backend is at least as
/// fast as the second.
pub(super) fn speed_summary(
    published: &Published,
    sides: &Sides,
    lines: &[&Line<'_>],
) -> Vec<String> {
    let names = sides.fast_names().collect_vec();
    let count = |of: fn(&Line<'_>) -> Option<f64>, what: &str| {
        let judged = lines.iter().filter_map(|line| Some((line, of(line)?))).collect_vec();
        let short = judged.iter().filter(|(_, deviation)| !reaches(*deviation)).collect_vec();
        let ok = judged.len() - short.len();
        let worst = short.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let worst = shown(worst, |(line, deviation)| {
            format!(", worst {} ({})", percent(*deviation), place(published, line))
        });
        let text = format!("{what} in {ok} of {}{worst}", plural(judged.len(), "row"));
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
