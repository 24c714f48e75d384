//! Comparison of two result files.
//!
//! Of a case in both files the ratio r of the new solve time over the old one has a 95 % interval [l, h]
//! (see [`ratio`]): from the medians of rounds where both files have enough of them, else from the
//! interval of either median within its run, taken at opposite ends. What the machine may drift between two
//! runs, d in percent, neither file shows. With a threshold q in percent a case is `slower` when the whole
//! interval lies above (1 + q/100)(1 + d/100), `faster` when it lies below the inverse, `same` when it lies
//! between 1/(1 + q/100) and 1 + q/100, else `unclear`. Over all cases with an interval the mean of the n
//! logarithms of r has the half width `sqrt(sum of squares of theirs) / n`, if they err independently;
//! drift moves all of them together, and is allowed for as in each. Intervals are not widened for the
//! number of cases.

pub mod ratio;

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::base::error::{Error, Result};
use crate::base::units::{plural, seconds, significant};
use crate::case::Case;
use crate::config::sweep::Axis;
use crate::record::contents::Difference;
use crate::record::{Record, contents, rounds};
use crate::report::cells::{head, marks, solve, varying};
use crate::report::{Head, Report, Sheet, places};
use ratio::{Basis, Ratio};

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
    pub fn is_judged(self) -> bool {
        !matches!(self, Self::Other(_))
    }

    /// Whether it counts as a regression.
    pub fn is_regression(self) -> bool {
        matches!(self, Self::Slower | Self::Broken)
    }

    /// Verdict on two records, from their status and the interval of their ratio.
    fn of(old: &Record, new: &Record, ratio: Option<Ratio>, threshold_percent: f64) -> Self {
        match (old.status.succeeded(), new.status.succeeded()) {
            (true, true) => {
                let interval = ratio.and_then(|r| Some((r.interval?, r.allowance)));
                interval.map_or(Self::Unclear, |(interval, allowance)| {
                    Self::of_interval(interval, threshold_percent, allowance)
                })
            }
            (false, true) => Self::Fixed,
            (true, false) => Self::Broken,
            (false, false) => Self::Failed,
        }
    }

    /// Verdict on the interval of a ratio that drift may have changed by the factor `allowance`.
    pub(crate) fn of_interval(
        (low, high): (f64, f64),
        threshold_percent: f64,
        allowance: f64,
    ) -> Self {
        let limit = 1.0 + threshold_percent / 100.0;
        if low > limit * allowance {
            Self::Slower
        } else if high < 1.0 / (limit * allowance) {
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
    ratio: Option<Ratio>,
    verdict: Verdict,
}

impl Pair {
    fn of(old: &[&Record], new: &[&Record], rule: &Rule) -> Self {
        let ratio = Ratio::of(old, new, rule.drift_percent, rule.paired);
        let (old, new) = (rounds::aggregate(old), rounds::aggregate(new));
        if let Some(difference) = contents::difference(&old, &new) {
            return Self { old, new, ratio: None, verdict: Verdict::Other(difference) };
        }
        let verdict = Verdict::of(&old, &new, ratio, rule.threshold_percent);
        Self { old, new, ratio, verdict }
    }

    fn both_succeed(&self) -> bool {
        self.old.status.succeeded() && self.new.status.succeeded()
    }

    fn interval(&self) -> Option<(f64, f64)> {
        self.ratio.and_then(|r| r.interval)
    }

    fn setup_ratio(&self) -> Option<f64> {
        let times = [&self.new, &self.old].map(|r| r.times.setup_s);
        quotient(times[0], times[1]).filter(|_| self.verdict.is_judged())
    }
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
    pub fn regressions_beyond(&self, percent: f64) -> usize {
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
    fn of(pairs: &[Pair], threshold_percent: f64) -> Option<Self> {
        let used = pairs.iter().filter(|pair| pair.both_succeed());
        let ratios: Vec<(Ratio, f64)> = used
            .filter_map(|pair| pair.ratio.and_then(|r| Some((r, r.log_half_width()?))))
            .collect();
        if ratios.is_empty() {
            return None;
        }
        let count = ratios.len() as f64;
        let mean = ratios.iter().map(|(r, _)| r.value.ln()).sum::<f64>() / count;
        let half = ratios.iter().map(|(_, half)| half * half).sum::<f64>().sqrt() / count;
        let allowance = ratios.iter().map(|(r, _)| r.allowance).fold(1.0, f64::max);
        let interval = ((mean - half).exp(), (mean + half).exp());
        let verdict = Verdict::of_interval(interval, threshold_percent, allowance);
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
    let pair = |rows: &Vec<&Record>| {
        known.get(&key(&rows[0].case)).map(|before| Pair::of(before, rows, rule))
    };
    let all: Vec<Pair> = after.iter().filter_map(pair).collect();
    if all.is_empty() {
        return Err(Error::input(format!("`{}` and `{}` have no case in common", old.0, new.0))
            .hint("--by SETTINGS joins on fewer settings, such as `--by matrix,block-size,fill`"));
    }
    let regressions = all.iter().filter(|pair| pair.verdict.is_regression()).count();
    let mut sheet = sheet(&all, by);
    sheet.preamble = places::differences(&all.iter().map(|p| (&p.old, &p.new)).collect::<Vec<_>>());
    sheet.title = Some(format!("old: {}, new: {}", old.0, new.0));
    let rows = all.iter().map(|pair| machine_row(pair, by)).collect();
    let count = all.len();
    let (pairs, others): (Vec<Pair>, Vec<Pair>) =
        all.into_iter().partition(|pair| pair.verdict.is_judged());
    sheet.notes = foot(&pairs, rule);
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
        _ => pair.ratio.and_then(|r| Some(r.interval?.0 / r.allowance)),
    });
    Ok(Comparison {
        regressions,
        others: others.len(),
        overall: Overall::of(&pairs, rule.threshold_percent),
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
        let differ: Vec<&str> =
            varying(&[&twin[0].case, case]).iter().map(|axis| axis.name).collect();
        let error = Error::input(format!("`{name}` has two records of one case"));
        return Err(if differ.is_empty() {
            error.hint("keep one of them")
        } else {
            error.hint(format!("they differ in {}: add that to --by", differ.join(", ")))
        });
    }
    Ok(known)
}

fn sheet(pairs: &[Pair], by: &[&'static Axis]) -> Sheet {
    let cases: Vec<&Case> = pairs.iter().map(|pair| &pair.new.case).collect();
    let mut shown: Vec<&Axis> =
        varying(&cases).into_iter().filter(|axis| by.contains(axis)).collect();
    if shown.is_empty() {
        shown.extend(by.first());
    }
    let mut sheet = Sheet::default();
    sheet.columns.extend(shown.iter().map(|axis| head(axis)));
    let numbers =
        ["old solve", "new solve", "new/old", "95 % interval", "setup new/old", "iterations"];
    sheet.columns.extend(numbers.map(Head::number));
    sheet.columns.push(Head::words("verdict"));
    for pair in pairs {
        let Pair { old, new, .. } = pair;
        let mut row: Vec<String> = shown.iter().map(|axis| (axis.text)(&new.case)).collect();
        let ratio = |value: Option<f64>| value.map(|r| format!("{r:.3}")).unwrap_or_default();
        let interval = pair.interval().map(|(low, high)| format!("{low:.3} to {high:.3}"));
        row.extend([
            solve(old),
            solve(new),
            ratio(pair.ratio.map(|r| r.value)),
            interval.unwrap_or_default(),
            ratio(pair.setup_ratio()),
            iterations(old, new),
            pair.verdict.name().to_owned(),
        ]);
        sheet.rows.push(row);
    }
    sheet.drop_empty_columns();
    sheet
}

fn iterations(old: &Record, new: &Record) -> String {
    let (old, new) = (old.convergence.iterations, new.convergence.iterations);
    if old == new {
        new.to_string()
    } else {
        format!("{old} -> {new} ({:+})", new as i64 - old as i64)
    }
}

fn quotient(new: Option<f64>, old: Option<f64>) -> Option<f64> {
    let ratio = new? / old?;
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

/// Counts per verdict, the geometric mean of the ratios, and the origin of the intervals.
fn foot(pairs: &[Pair], rule: &Rule) -> Vec<String> {
    let all = [
        Verdict::Faster,
        Verdict::Slower,
        Verdict::Same,
        Verdict::Unclear,
        Verdict::Fixed,
        Verdict::Broken,
        Verdict::Failed,
    ];
    let counts: Vec<String> = all
        .iter()
        .map(|v| (v, pairs.iter().filter(|pair| pair.verdict == *v).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(v, count)| format!("{count} {}", v.name()))
        .collect();
    if pairs.is_empty() {
        return vec!["no case can be compared".into()];
    }
    let mut lines = vec![format!(
        "{}: {} (threshold {} %)",
        plural(pairs.len(), "case"),
        counts.join(", "),
        significant(rule.threshold_percent, 2)
    )];
    lines.extend(together(pairs));
    if let Some(Overall { ratio, interval: (low, high), verdict, cases }) =
        Overall::of(pairs, rule.threshold_percent)
    {
        lines.push(format!(
            "overall: {}, {ratio:.3} ({low:.3} to {high:.3}) over {} with an interval",
            verdict.name(),
            plural(cases, "case")
        ));
    }
    lines.extend(basis(pairs, rule));
    if pairs.iter().any(|pair| pair.verdict == Verdict::Unclear && pair.interval().is_none()) {
        lines.push(if rule.paired {
            "unclear without an interval: six pairs of rounds are the fewest that have one".into()
        } else {
            "unclear without an interval: measure both with --rounds 5, or six solves in each"
                .into()
        });
    }
    lines.extend(marks(pairs.iter().flat_map(|pair| [&pair.old, &pair.new])));
    lines
}

/// The geometric mean of the ratios and the sums of the times, of the same cases on both sides: those that
/// succeed in both.
fn together(pairs: &[Pair]) -> Option<String> {
    let both: Vec<(f64, f64, f64)> = pairs
        .iter()
        .filter(|pair| pair.both_succeed())
        .filter_map(|pair| {
            Some((pair.ratio?.value, pair.old.times.solve_s?, pair.new.times.solve_s?))
        })
        .collect();
    if both.is_empty() {
        return None;
    }
    let mean = (both.iter().map(|(r, ..)| r.ln()).sum::<f64>() / both.len() as f64).exp();
    let (old, new) = both.iter().fold((0.0, 0.0), |(a, b), (_, old, new)| (a + old, b + new));
    let of = if both.len() == pairs.len() {
        "all solves together".to_owned()
    } else {
        format!("solves of the {} timed in both together", plural(both.len(), "case"))
    };
    Some(format!(
        "geometric mean of new/old: {mean:.3}; {of}: {} -> {}",
        seconds(old),
        seconds(new)
    ))
}

/// How the intervals are computed, a line for each method in use.
fn basis(pairs: &[Pair], rule: &Rule) -> Vec<String> {
    let widened = match rule.drift_percent {
        0.0 => String::new(),
        percent => format!("; `slower` and `faster` allow {} % for it", significant(percent, 2)),
    };
    let line = |basis| match basis {
        Basis::Pairs => {
            "intervals of the median ratio of rounds that were measured in alternation".to_owned()
        }
        Basis::Rounds => {
            format!(
                "intervals from the variation between rounds; drift between runs is in none{widened}"
            )
        }
        Basis::Samples => format!(
            "within one run only: drift between runs is not in these intervals{widened}; --rounds 5 \
             shows more of it"
        ),
    };
    let with = pairs.iter().filter(|pair| pair.interval().is_some());
    let found: Vec<Basis> = with.filter_map(|pair| pair.ratio.map(|r| r.basis)).collect();
    let all = [Basis::Pairs, Basis::Rounds, Basis::Samples];
    all.into_iter().filter(|basis| found.contains(basis)).map(line).collect()
}

fn machine_row(pair: &Pair, by: &[&'static Axis]) -> Map<String, Value> {
    let mut map = Map::new();
    let Pair { old, new, ratio, verdict } = pair;
    for axis in by {
        map.insert(axis.name.into(), (axis.text)(&new.case).into());
    }
    let interval = pair.interval();
    let mut put = |name: &str, value: Value| map.insert(name.into(), value);
    put("old-solve-s", old.times.solve_s.into());
    put("new-solve-s", new.times.solve_s.into());
    put("ratio", ratio.map(|r| r.value).into());
    put("ratio-low", interval.map(|i| i.0).into());
    put("ratio-high", interval.map(|i| i.1).into());
    put("setup-ratio", pair.setup_ratio().into());
    put("old-iterations", old.convergence.iterations.into());
    put("new-iterations", new.convergence.iterations.into());
    put("differs", places::difference(old, new).into());
    put("verdict", verdict.name().into());
    map
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
