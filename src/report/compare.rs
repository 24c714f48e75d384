//! Comparison of two result files.
//!
//! Of a case in both files the ratio r of the new solve time over the old one has a 95 % interval [l, h]
//! (see [`ratio`]): from the medians of rounds where both files have enough of them, else from the
//! interval of either median within its run, taken at opposite ends. What the machine drifts between two runs
//! is in neither. It is allowed for: by d in percent, or by m, the time of the reference computation beside the
//! solves, new over old, where that is more. With a threshold q in percent a case is `slower` when the whole
//! interval lies above (1 + q/100) max(1 + d/100, m), `faster` when it lies below the inverse of
//! (1 + q/100) max(1 + d/100, 1/m), `same` when it lies between 1/(1 + q/100) and 1 + q/100, else `unclear`. The
//! ratio itself is not divided by m: the reference is other work, and drifts by another factor. Over all cases
//! with an interval the mean of the n logarithms of r has the half width `sqrt(sum of squares of theirs) / n`, if
//! they err independently; drift moves all of them together, and is allowed for as in each. Intervals are not
//! widened for the number of cases.

pub mod ratio;

use std::collections::HashMap;

use itertools::Itertools as _;
use serde_json::{Map, Value};

use crate::base::error::{Error, Result};
use crate::base::measure::median;
use crate::base::units::{plural, seconds, significant};
use crate::case::Case;
use crate::config::sweep::Axis;
use crate::record::contents::Difference;
use crate::record::{Record, contents, rounds};
use crate::report::build::Columns;
use crate::report::cells::{geometric_mean, marks, shown, solve, speedup, varying};
use crate::report::{Report, Sheet, places};
use ratio::{Allowance, Basis, Ratio, machine};

/// Options of the verdicts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Changes up to this percentage count as the same.
    pub threshold_percent: f64,
    /// Percentage by which two runs of the same program may differ as a whole.
    pub drift_percent: f64,
    /// Whether equal rounds of both sides were measured one after the other.
    pub paired: bool,
}

/// What changed between two records of one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Faster by more than the threshold, beyond the noise.
    Faster,
    /// Slower by more than the threshold, beyond the noise.
    Slower,
    /// The whole interval of the ratio is within the threshold.
    Same,
    /// The intervals are too wide, or there is none.
    Unclear,
    /// Converges now and did not before.
    Fixed,
    /// Converged before and no longer does.
    Broken,
    /// Converges in neither file.
    Failed,
    /// Another matrix or right-hand side of the same name: nothing to compare.
    Other(Difference),
}

impl Verdict {
    /// Those that are counted, in the order of the counts.
    const COUNTED: [Self; 7] = [
        Self::Faster,
        Self::Slower,
        Self::Same,
        Self::Unclear,
        Self::Fixed,
        Self::Broken,
        Self::Failed,
    ];

    /// Its name in tables and rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::Unclear => "unclear",
            Self::Fixed => "fixed",
            Self::Broken => "broken",
            Self::Failed => "failed",
            Self::Other(difference) => difference.name(),
        }
    }

    /// Whether the two records can be compared.
    pub(crate) fn is_judged(self) -> bool {
        !matches!(self, Self::Other(_))
    }

    /// Whether it counts as a regression.
    pub(crate) fn is_regression(self) -> bool {
        matches!(self, Self::Slower | Self::Broken)
    }

    /// Verdict on two records, from their status and the interval of their ratio.
    fn of(old: &Record, new: &Record, ratio: Option<Ratio>, threshold_percent: f64) -> Self {
        match (old.status.succeeded(), new.status.succeeded()) {
            (true, true) => {
                let verdict = ratio.and_then(|r| {
                    Some(Self::of_interval(r.interval?, threshold_percent, r.allowance))
                });
                verdict.unwrap_or(Self::Unclear)
            }
            (false, true) => Self::Fixed,
            (true, false) => Self::Broken,
            (false, false) => Self::Failed,
        }
    }

    /// Verdict on the interval of a ratio of which drift may have changed so much.
    pub(crate) fn of_interval(
        (low, high): (f64, f64),
        threshold_percent: f64,
        allowance: Allowance,
    ) -> Self {
        let limit = 1.0 + threshold_percent / 100.0;
        if low > limit * allowance.raised {
            Self::Slower
        } else if high < 1.0 / (limit * allowance.lowered) {
            Self::Faster
        } else if low >= 1.0 / limit && high <= limit {
            Self::Same
        } else {
            Self::Unclear
        }
    }
}

/// A case in both files.
struct Pair {
    old: Record,
    new: Record,
    /// Time of the reference computation, new over old.
    machine: Option<f64>,
    ratio: Option<Ratio>,
    verdict: Verdict,
}

impl Pair {
    /// The rows of a case on both sides; `drift` is that of the machine between the runs as a whole.
    fn of((old, new): (&[&Record], &[&Record]), drift: Option<f64>, rule: &Rule) -> Self {
        let machine = machine(old, new);
        let allowance = allowance(rule, [machine, drift]);
        let ratio = Ratio::of(old, new, allowance, rule.paired);
        let (old, new) = (rounds::aggregate(old), rounds::aggregate(new));
        if let Some(difference) = contents::difference(&old, &new) {
            let verdict = Verdict::Other(difference);
            return Self { old, new, machine, ratio: None, verdict };
        }
        let verdict = Verdict::of(&old, &new, ratio, rule.threshold_percent);
        Self { old, new, machine, ratio, verdict }
    }

    fn both_succeed(&self) -> bool {
        self.old.status.succeeded() && self.new.status.succeeded()
    }

    /// Whether drift of the machine counts.
    fn drifts(&self) -> bool {
        self.ratio.is_some_and(|r| r.basis != Basis::Pairs)
    }

    fn interval(&self) -> Option<(f64, f64)> {
        self.ratio.and_then(|r| r.interval)
    }

    fn setup_ratio(&self) -> Option<f64> {
        let times = [&self.new, &self.old].map(|r| r.times.setup_s);
        speedup(times[0], times[1]).filter(|_| self.verdict.is_judged())
    }
}

/// The largest that one of the times of the reference computation, new over old, gives.
fn allowance(rule: &Rule, machine: [Option<f64>; 2]) -> Allowance {
    let of = machine.map(|ratio| Allowance::of(rule.drift_percent, ratio));
    Allowance { raised: of[0].raised.max(of[1].raised), lowered: of[0].lowered.max(of[1].lowered) }
}

/// Two files compared.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Table and rows.
    pub report: Report,
    /// Cases that became slower or no longer converge.
    pub regressions: usize,
    /// Cases of another matrix or right-hand side, which are not compared.
    pub others: usize,
    /// Of all cases together; `None` without intervals.
    pub overall: Option<Overall>,
    /// Lower ends of the ratios of the cases that converge in both files, drift taken off; infinite where
    /// one no longer does.
    lowest: Vec<f64>,
}

impl Comparison {
    /// Cases that no longer converge, or whose whole interval lies more than `percent` above 1.
    pub(crate) fn regressions_beyond(&self, percent: f64) -> usize {
        self.lowest.iter().filter(|low| **low > 1.0 + percent / 100.0).count()
    }
}

/// All cases together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overall {
    /// Geometric mean of new over old.
    pub ratio: f64,
    /// Its interval.
    pub interval: (f64, f64),
    /// Its verdict.
    pub verdict: Verdict,
    /// Cases with an interval.
    pub cases: usize,
}

impl Overall {
    fn of(pairs: &[Pair], drift: Option<f64>, rule: &Rule) -> Option<Self> {
        let used = pairs.iter().filter(|pair| pair.both_succeed());
        let ratios = used.filter_map(|pair| Some((pair.ratio?, pair.ratio?.log_half_width()?)));
        let ratios = ratios.collect_vec();
        if ratios.is_empty() {
            return None;
        }
        let count = ratios.len() as f64;
        let mean = ratios.iter().map(|(r, _)| r.value.ln()).sum::<f64>() / count;
        let half = ratios.iter().map(|(_, half)| half * half).sum::<f64>().sqrt() / count;
        let paired = ratios.iter().all(|(r, _)| r.basis == Basis::Pairs);
        let allowance = if paired { Allowance::NONE } else { allowance(rule, [drift, None]) };
        let interval = ((mean - half).exp(), (mean + half).exp());
        let verdict = Verdict::of_interval(interval, rule.threshold_percent, allowance);
        Some(Self { ratio: mean.exp(), interval, verdict, cases: ratios.len() })
    }
}

/// Joins the rows `old` and `new`, those of rounds included, on the settings `by`, with a verdict on each pair.
///
/// # Errors
/// When the files have no case in common, or one of them two records of a case.
pub fn compare(
    old: (&str, &[Record]),
    new: (&str, &[Record]),
    by: &[&'static Axis],
    rule: &Rule,
) -> Result<Comparison> {
    let key = |case: &Case| -> Vec<String> { by.iter().map(|axis| (axis.text)(case)).collect() };
    let (before, after) = (rounds::cases(old.1), rounds::cases(new.1));
    let known = unique(old.0, &before, &key)?;
    unique(new.0, &after, &key)?;
    let both = after.iter().filter_map(|rows| Some((*known.get(&key(&rows[0].case))?, &rows[..])));
    let both: Vec<(&[&Record], &[&Record])> = both.collect();
    let machines: Vec<f64> = both.iter().filter_map(|(old, new)| machine(old, new)).collect();
    let drift = median(&machines).map(|m| m.value);
    let all: Vec<Pair> = both.into_iter().map(|rows| Pair::of(rows, drift, rule)).collect();
    if all.is_empty() {
        return Err(Error::input(format!("`{}` and `{}` have no case in common", old.0, new.0))
            .hint("--by SETTINGS joins on fewer settings, such as `--by matrix,block-size,fill`"));
    }
    let regressions = all.iter().filter(|pair| pair.verdict.is_regression()).count();
    let mut sheet = sheet(&all, by);
    sheet.preamble = places::differences(&all.iter().map(|p| (&p.old, &p.new)).collect_vec());
    sheet.title = Some(format!("old: {}, new: {}", old.0, new.0));
    let rows = all.iter().map(|pair| machine_row(pair, by)).collect();
    let count = all.len();
    let (pairs, others): (Vec<Pair>, Vec<Pair>) =
        all.into_iter().partition(|pair| pair.verdict.is_judged());
    sheet.notes = foot(&pairs, drift, rule);
    if !others.is_empty() {
        sheet.notes.push(format!(
            "{} of another matrix or right-hand side under the same name: not compared",
            plural(others.len(), "case")
        ));
    }
    for (name, count) in [(old.0, before.len() - count), (new.0, after.len() - count)] {
        if count > 0 {
            sheet.notes.push(format!("{} only in {name}", plural(count, "case")));
        }
    }
    let lowest = pairs.iter().filter_map(|pair| match pair.verdict {
        Verdict::Broken => Some(f64::INFINITY),
        Verdict::Fixed | Verdict::Failed => None,
        _ => pair.ratio.and_then(|r| Some(r.interval?.0 / r.allowance.raised)),
    });
    Ok(Comparison {
        regressions,
        others: others.len(),
        overall: Overall::of(&pairs, drift, rule),
        lowest: lowest.collect(),
        report: Report { sheets: vec![sheet], rows },
    })
}

/// The rows of a file's cases by the settings they are joined on, which must tell them apart.
fn unique<'a>(
    name: &str,
    cases: &'a [Vec<&'a Record>],
    key: &dyn Fn(&Case) -> Vec<String>,
) -> Result<HashMap<Vec<String>, &'a [&'a Record]>> {
    let mut known: HashMap<Vec<String>, &[&Record]> = HashMap::new();
    for rows in cases {
        let case = &rows[0].case;
        let Some(twin) = known.insert(key(case), rows) else { continue };
        let differ = varying([&twin[0].case, case]).iter().map(|axis| axis.name).join(", ");
        let hint = match differ.as_str() {
            "" => "keep one of them".to_owned(),
            differ => format!("they differ in {differ}: add that to --by"),
        };
        return Err(Error::input(format!("`{name}` has two records of one case")).hint(hint));
    }
    Ok(known)
}

fn sheet(pairs: &[Pair], by: &[&'static Axis]) -> Sheet {
    let mut shown_settings = varying(pairs.iter().map(|pair| &pair.new.case));
    shown_settings.retain(|axis| by.contains(axis));
    if shown_settings.is_empty() {
        shown_settings.extend(by.first());
    }
    let ratio = |value: Option<f64>| shown(value, |r| format!("{r:.3}"));
    Columns::settings(&shown_settings, |pair: &&Pair| &pair.new.case)
        .number("old solve", |pair| solve(&pair.old))
        .number("new solve", |pair| solve(&pair.new))
        .number("new/old", move |pair| ratio(pair.ratio.map(|r| r.value)))
        .number("95 % interval", |pair| {
            shown(pair.interval(), |(low, high)| format!("{low:.3} to {high:.3}"))
        })
        .number("setup new/old", move |pair| ratio(pair.setup_ratio()))
        .number("iterations", |pair| iterations(&pair.old, &pair.new))
        .words("verdict", |pair| pair.verdict.name().to_owned())
        .sheet(pairs)
}

fn iterations(old: &Record, new: &Record) -> String {
    let (old, new) = (old.convergence.iterations, new.convergence.iterations);
    if old == new {
        new.to_string()
    } else {
        format!("{old} -> {new} ({:+})", new as i64 - old as i64)
    }
}

/// Counts per verdict, the geometric mean of the ratios, and the origin of the intervals.
fn foot(pairs: &[Pair], drift: Option<f64>, rule: &Rule) -> Vec<String> {
    if pairs.is_empty() {
        return vec!["no case can be compared".into()];
    }
    let of = |verdict: Verdict| pairs.iter().filter(move |pair| pair.verdict == verdict).count();
    let counts = Verdict::COUNTED.into_iter().map(|verdict| (of(verdict), verdict.name()));
    let counts = counts.filter(|(count, _)| *count > 0);
    let mut lines = vec![format!(
        "{}: {} (threshold {} %)",
        plural(pairs.len(), "case"),
        counts.map(|(count, name)| format!("{count} {name}")).join(", "),
        significant(rule.threshold_percent, 2)
    )];
    lines.extend(together(pairs));
    if let Some(Overall { ratio, interval: (low, high), verdict, cases }) =
        Overall::of(pairs, drift, rule)
    {
        lines.push(format!(
            "overall: {}, {ratio:.3} ({low:.3} to {high:.3}) over {} with an interval",
            verdict.name(),
            plural(cases, "case")
        ));
    }
    lines.extend(basis(pairs, rule));
    lines.extend(drifted(pairs, drift, rule));
    lines.extend(unclear(pairs, rule));
    if pairs.iter().any(|pair| pair.verdict == Verdict::Unclear && pair.interval().is_none()) {
        let why = if rule.paired {
            "six pairs of rounds are the fewest that have one"
        } else {
            "measure both with --rounds 5, or six solves in each"
        };
        lines.push(format!("unclear without an interval: {why}"));
    }
    lines.extend(marks(pairs.iter().flat_map(|pair| [&pair.old, &pair.new])));
    lines
}

/// The geometric mean of the ratios and the sums of the times, of the same cases on both sides: those that
/// succeed in both.
fn together(pairs: &[Pair]) -> Option<String> {
    let both = pairs.iter().filter(|pair| pair.both_succeed()).filter_map(|pair| {
        Some((pair.ratio?.value, pair.old.times.solve_s?, pair.new.times.solve_s?))
    });
    let both = both.collect_vec();
    let mean = geometric_mean(&both.iter().map(|(ratio, ..)| *ratio).collect_vec())?;
    let of = if both.len() == pairs.len() {
        "all solves together".to_owned()
    } else {
        format!("solves of the {} timed in both together", plural(both.len(), "case"))
    };
    let old = seconds(both.iter().map(|(_, old, _)| old).sum());
    let new = seconds(both.iter().map(|(.., new)| new).sum());
    Some(format!("geometric mean of new/old: {mean:.3}; {of}: {old} -> {new}"))
}

/// How the intervals are computed, a line for each method in use.
fn basis(pairs: &[Pair], rule: &Rule) -> Vec<String> {
    let widened = match rule.drift_percent {
        0.0 => String::new(),
        percent => format!("; `slower` and `faster` allow {} % for it", significant(percent, 2)),
    };
    let lines = [
        (
            Basis::Pairs,
            "intervals of the median ratio of rounds that were measured in alternation".to_owned(),
        ),
        (
            Basis::Rounds,
            format!(
                "intervals from the variation between rounds; drift between runs is in none{widened}"
            ),
        ),
        (
            Basis::Samples,
            format!(
                "within one run only: drift between runs is not in these intervals{widened}; --rounds 5 \
                 shows more of it"
            ),
        ),
    ];
    let used = |basis: Basis| {
        let mut ratios = pairs.iter().filter_map(|pair| pair.ratio);
        ratios.any(|r| r.interval.is_some() && r.basis == basis)
    };
    lines.into_iter().filter(|(basis, _)| used(*basis)).map(|(_, line)| line).collect()
}

/// That the machine drifted beyond what is allowed for in any case.
fn drifted(pairs: &[Pair], drift: Option<f64>, rule: &Rule) -> Option<String> {
    let drift = drift.filter(|_| pairs.iter().any(Pair::drifts))?;
    let (factor, side) = if drift < 1.0 { (1.0 / drift, "old") } else { (drift, "new") };
    (factor > 1.0 + rule.drift_percent / 100.0).then(|| {
        format!(
            "the machine was {factor:.2} times as slow in {side} by its reference computation: verdicts allow \
             for it"
        )
    })
}

/// Why cases with an interval are unclear.
fn unclear(pairs: &[Pair], rule: &Rule) -> Vec<String> {
    let beyond = |pair: &&Pair| {
        let without = pair.interval().map(|interval| {
            Verdict::of_interval(interval, rule.threshold_percent, Allowance::NONE)
        });
        matches!(without, Some(Verdict::Slower | Verdict::Faster))
    };
    let unclear = pairs.iter().filter(|p| p.verdict == Verdict::Unclear && p.interval().is_some());
    let (drift, wide): (Vec<&Pair>, Vec<&Pair>) = unclear.partition(beyond);
    let lines = [
        (drift.len(), "beyond the threshold, within drift: `compare --run` measures in turns"),
        (wide.len(), "for an interval that reaches across the threshold: more rounds narrow it"),
    ];
    let lines = lines.into_iter().filter(|(count, _)| *count > 0);
    lines.map(|(count, why)| format!("unclear: {} {why}", plural(count, "case"))).collect()
}

fn machine_row(pair: &Pair, by: &[&'static Axis]) -> Map<String, Value> {
    let Pair { old, new, machine, ratio, verdict } = pair;
    let settings = by.iter().map(|axis| (axis.name, (axis.text)(&new.case).into()));
    let interval = pair.interval();
    let measured: [(&str, Value); 11] = [
        ("old-solve-s", old.times.solve_s.into()),
        ("new-solve-s", new.times.solve_s.into()),
        ("ratio", ratio.map(|r| r.value).into()),
        ("ratio-low", interval.map(|i| i.0).into()),
        ("ratio-high", interval.map(|i| i.1).into()),
        ("machine-ratio", (*machine).into()),
        ("setup-ratio", pair.setup_ratio().into()),
        ("old-iterations", old.convergence.iterations.into()),
        ("new-iterations", new.convergence.iterations.into()),
        ("differs", places::difference(old, new).into()),
        ("verdict", verdict.name().into()),
    ];
    settings.chain(measured).map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
