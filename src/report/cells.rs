//! Heads and cells shared by the tables of runs.

use itertools::Itertools as _;

use crate::base::measure::{Median, Spread};
use crate::base::status::Status;
use crate::base::units::{grouped, median_seconds, plural, seconds, significant};
use crate::case::{Case, Setting};
use crate::compute;
use crate::compute::preconditioner::FactorSize;
use crate::config::sweep::{AXES, Axis};
use crate::record::Record;
use crate::record::schema::{SampleInterval, Traffic};
use crate::report::{Head, Sheet};

/// The text of a value; nothing of none.
pub(crate) fn shown<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map(text).unwrap_or_default()
}

/// A time.
pub(crate) fn time(value: Option<f64>) -> String {
    shown(value, seconds)
}

/// A number with three digits.
pub(super) fn three(value: Option<f64>) -> String {
    shown(value, |v| significant(v, 3))
}

/// Below a table whose shares of the copy bandwidth have [`share`]'s mark.
pub(super) const IN_CACHE: &str = "* in cache: the last-level cache has room for what is moved";

/// A share of the copy bandwidth in percent, with a mark where the cache has room for the `bytes` moved.
pub(super) fn share(of: &Traffic, percent: Option<f64>, bytes: Option<usize>) -> String {
    shown(percent, |p| significant(p, 3) + if of.in_cache(bytes) { "*" } else { "" })
}

/// That of one application of the preconditioner.
pub(super) fn apply_share(of: &Traffic) -> String {
    share(of, of.percent_of_bandwidth, of.apply_bytes)
}

/// [`IN_CACHE`] if a record has it.
pub(super) fn in_cache<'a>(
    records: impl IntoIterator<Item = &'a Record>,
    bytes: impl Fn(&Traffic) -> [Option<usize>; 2],
) -> Option<String> {
    let cached = |r: &Record| bytes(&r.traffic).into_iter().any(|of| r.traffic.in_cache(of));
    records.into_iter().any(cached).then(|| IN_CACHE.to_owned())
}

/// A ratio with two decimals.
pub(super) fn hundredths(value: Option<f64>) -> String {
    shown(value, |v| format!("{v:.2}"))
}

pub(super) fn count(value: Option<usize>) -> String {
    shown(value, grouped)
}

/// `178/178`: the levels of L and U.
pub(super) fn levels(factor: &FactorSize) -> String {
    let both = factor.levels_lower.zip(factor.levels_upper);
    shown(both, |(l, u)| format!("{}/{}", grouped(l), grouped(u)))
}

/// The axes on which the cases differ, outermost first.
pub(crate) fn varying<'a>(
    cases: impl IntoIterator<Item = &'a Case, IntoIter: Clone>,
) -> Vec<&'static Axis> {
    let cases = cases.into_iter();
    AXES.iter().filter(|axis| !cases.clone().map(axis.text).all_equal()).collect()
}

/// Items with equal keys together, in the order of their first ones.
pub(super) fn by_key<T, K: std::hash::Hash + Eq + Clone>(
    items: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<(K, Vec<T>)> {
    let mut places = std::collections::HashMap::new();
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for item in items {
        let key = key(&item);
        let at = *places.entry(key.clone()).or_insert_with(|| {
            groups.push((key, Vec::new()));
            groups.len() - 1
        });
        groups[at].1.push(item);
    }
    groups
}

/// The geometric mean of positive numbers; `None` of nothing.
pub(super) fn geometric_mean(values: &[f64]) -> Option<f64> {
    if let [one] = values {
        // without the error of two roundings
        return Some(*one);
    }
    let count = values.len() as f64;
    (count > 0.0).then(|| (values.iter().map(|v| v.ln()).sum::<f64>() / count).exp())
}

/// Column head of an axis, as short as its meaning allows.
pub fn head(axis: &Axis) -> Head {
    match axis.name {
        "block-size" | "fill" | "shift" | "drop-tolerance" | "restart" | "rtol" | "inner-rtol"
        | "max-iterations" | "symmetry-tolerance" => Head::number(head_name(axis)),
        _ => Head::words(head_name(axis)),
    }
}

pub(super) fn head_name(axis: &Axis) -> &'static str {
    match axis.name {
        "block-size" => "block",
        "fill" => "k",
        name => name,
    }
}

/// `matrix poisson3d:40, k 1`: the values of settings behind their heads.
pub(super) fn named(axes: &[&Axis], case: &Case) -> String {
    axes.iter().map(|axis| format!("{} {}", head_name(axis), (axis.text)(case))).join(", ")
}

/// `matrix poisson3d:40, fill 1`: the values of settings behind their names.
pub(super) fn settings<'a>(axes: impl IntoIterator<Item = &'a &'a Axis>, case: &Case) -> String {
    axes.into_iter().map(|axis| format!("{} {}", axis.name, (axis.text)(case))).join(", ")
}

/// Label that distinguishes a run from others of the same system: the backend, and varying choices other than
/// `auto`.
pub fn execution(case: &Case, varying: &[&Axis]) -> String {
    let others = varying.iter().filter(|axis| !["matrix", "backend"].contains(&axis.name));
    let words = others.map(|axis| (axis.text)(case)).filter(|text| text != "auto");
    std::iter::once(case.backend.clone()).chain(words).join(" ")
}

/// The settings of [`common_settings`], in its order.
const COMMON: &str = "matrix sequence read-as zeros ordering scaling rhs solver precond block-size fill level-rule shift \
                      drop-tolerance \
                      deflation orthogonalisation matrix-format factor-precision trisolve fgbilu-style \
                      execution max-iterations symmetry-tolerance side inner-rtol rtol \
                      guess refactor";

/// The settings that do not vary, in words, without those that are not used.
pub(crate) fn common_settings(case: &Case, varying: &[&Axis]) -> Vec<String> {
    let default = Case::default();
    let fixed = |name: &str| !varying.iter().any(|axis| axis.name == name);
    let word = |name: &str| {
        let axis = AXES.iter().find(|axis| axis.name == name).filter(|_| fixed(name))?;
        let text = (axis.text)(case);
        let as_usual = text == (axis.text)(&default);
        match name {
            "solver" if case.uses(Setting::Restart) && fixed("restart") => {
                Some(format!("{text}({})", case.restart))
            }
            "matrix" | "solver" | "precond" => Some(text),
            "rhs" | "side" | "rtol" => Some(format!("{name} {text}")),
            "block-size" => Some(format!("block size {text}")),
            "fill" if !case.names_fill() => None,
            "level-rule" if !case.uses(Setting::Fill) => None,
            "fill" => Some(format!("k = {text}")),
            _ if as_usual => None,
            "read-as" => Some("read as stored".into()),
            "zeros" => Some("stored zeros dropped".into()),
            "ordering" => Some(format!("order {text}")),
            "level-rule" => Some("level rule overwrite".into()),
            _ => Some(format!("{name} {text}")),
        }
    };
    COMMON.split(' ').filter_map(word).collect()
}

/// One line per backend: its device and threads.
pub fn devices<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<String> {
    let line = |Record { case, status, environment: e, .. }: &Record| {
        // a case that could not even begin has no threads
        if e.device.is_empty() || (*status == Status::Unsupported && e.threads == 0) {
            return None;
        }
        // a backend may name its threads itself, and those of a GPU's host say nothing
        let named = e.device.contains("thread") || compute::on_gpu(&case.backend);
        let threads = Some(e.threads).filter(|threads| *threads > 0 && !named);
        let threads = shown(threads, |threads| format!(", {}", plural(threads, "thread")));
        Some(format!("{}: {}{threads}", case.backend, e.device))
    };
    records.into_iter().filter_map(line).unique().collect()
}

/// The median solve, with its interval or range when it was repeated.
pub fn solve(record: &Record) -> String {
    shown(record.times.solve().as_ref(), median_seconds)
}

/// Explanations of the marks at the solves of `records`, one line per mark in use.
pub fn marks<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<String> {
    let solves = records.into_iter().map(|r| (r.times.solve(), r.times.solve_interval));
    marks_of("solve", solves)
}

/// Explanations of the marks at the medians of `what`.
pub(super) fn marks_of(
    what: &str,
    medians: impl Iterator<Item = (Option<Median>, Option<SampleInterval>)>,
) -> Vec<String> {
    let line = |(median, interval): (Option<Median>, Option<SampleInterval>)| {
        let rounds = interval.is_some_and(SampleInterval::of_rounds);
        let line = match (median?.spread, rounds) {
            (Spread::None, _) => return None,
            (Spread::Interval { .. }, false) => {
                format!("±, [low, high]: 95 % confidence interval of the median {what}")
            }
            (Spread::Interval { .. }, true) => {
                "±, [low, high]: 95 % confidence interval of the median of rounds".into()
            }
            (Spread::Range { .. }, false) => format!(
                "(n: low–high): range of n {what}s, too few for a 95 % interval, which takes six"
            ),
            (Spread::Range { .. }, true) => {
                "(n: low–high): range of the medians of n rounds, too few for a 95 % interval, which \
                 takes six"
                    .into()
            }
        };
        Some(line)
    };
    medians.filter_map(line).unique().collect()
}

/// A cell of a record, with [`above`]'s mark where its true residual is above the tolerance.
pub(super) fn marked(record: &Record, cell: String) -> String {
    if record.above_tolerance().is_some() { cell + "†" } else { cell }
}

/// Explains the mark of [`marked`], if one of `records` has it.
pub(super) fn above<'a>(records: impl IntoIterator<Item = &'a Record>) -> Option<String> {
    let times = records.into_iter().filter_map(Record::above_tolerance);
    let most = hundredths(Some((100.0 * times.reduce(f64::max)?).ceil() / 100.0));
    Some(format!(
        "† converged by the residual that the solver monitors; the true residual is above rtol, at most {most} \
         times"
    ))
}

/// The status; anything but success is marked and explained below the table.
pub fn status(record: &Record, notes: &mut Vec<String>) -> String {
    let reason = record.reason.as_deref().filter(|reason| !reason.is_empty());
    let mark = shown(reason, |reason| format!(" {}", Sheet::footnote(notes, reason)));
    let sign = if record.status.succeeded() { "" } else { "! " };
    marked(record, format!("{sign}{}", record.status.name())) + &mark
}

/// `slow` over `fast`, when both are positive times.
pub fn speedup(slow: Option<f64>, fast: Option<f64>) -> Option<f64> {
    let ratio = slow? / fast?;
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

/// Whether a ratio of these solves is of fewer samples than an interval of a median takes.
pub(super) fn of_few(solves: [Option<&Record>; 2]) -> bool {
    let few = |record: &Record| record.times.solve().is_some_and(|s| s.interval().is_none());
    solves.iter().all(Option::is_some) && solves.into_iter().flatten().any(few)
}

/// The ratio of these solves, with a mark where it is [of few](of_few).
pub(super) fn ratio_of(solves: [Option<&Record>; 2], cell: String) -> String {
    if !cell.is_empty() && of_few(solves) { cell + "‡" } else { cell }
}

/// Explains the mark of [`ratio_of`].
pub(super) const OF_FEW: &str = "‡ a solve has fewer than six samples, too few for a 95 % interval";
