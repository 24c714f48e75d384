//! Two result files side by side.
//!
//! Every record has the median t of its solves and the 95 % confidence interval [l, h] of that median
//! (see [`crate::measure`]). Of a case in both files the ratio and its interval are
//!
//! ```text
//! r = t_new / t_old,   [l_new / h_old, h_new / l_old]
//! ```
//!
//! which holds when both medians lie in their intervals: with at least 90 % (Bonferroni), with 99.4 %
//! where errors are independent, normal in the logarithm and alike. With a threshold q in percent a case
//! is `slower` when the whole interval lies above 1 + q/100, `faster` when it lies below 1/(1 + q/100),
//! `same` when it lies between, else `unclear`. Over all cases with an interval the mean of the n
//! logarithms of r has the half width `sqrt(sum of squares of theirs) / n`, if they err independently; a
//! machine that drifts between the files moves all of them together. Intervals are not widened for the
//! number of cases: of many that did not change some few will be called otherwise when q is 0, next to
//! none when q is above the usual scatter.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::case::Case;
use crate::config::sweep::Axis;
use crate::error::{Error, Result};
use crate::report::runs::{head, solve, varying};
use crate::report::units::{plural, seconds, significant};
use crate::report::{Head, Report, Sheet, places};
use crate::result::Record;
use crate::result::contents::{self, Difference};

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
    /// Did not converge before and does now.
    Fixed,
    /// Converged before and does not now.
    Broken,
    /// Converges in neither.
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

    /// Judges two records. The interval of the ratio new / old follows from the 95 % intervals of
    /// the two medians taken at their opposite ends.
    pub fn of(old: &Record, new: &Record, threshold_percent: f64) -> Self {
        if let Some(difference) = contents::difference(old, new) {
            return Self::Other(difference);
        }
        let converged = |r: &Record| r.status.succeeded();
        match (converged(old), converged(new)) {
            (true, true) => {}
            (false, true) => return Self::Fixed,
            (true, false) => return Self::Broken,
            (false, false) => return Self::Failed,
        }
        let interval = ratio_interval(old, new);
        interval.map_or(Self::Unclear, |interval| Self::of_interval(interval, threshold_percent))
    }

    /// Judges the interval of a ratio.
    fn of_interval((low, high): (f64, f64), threshold_percent: f64) -> Self {
        let limit = 1.0 + threshold_percent / 100.0;
        if low > limit {
            Self::Slower
        } else if high < 1.0 / limit {
            Self::Faster
        } else if low >= 1.0 / limit && high <= limit {
            Self::Same
        } else {
            Self::Unclear
        }
    }
}

/// Interval of new / old solve time; `None` without an interval on either side.
pub fn ratio_interval(old: &Record, new: &Record) -> Option<(f64, f64)> {
    let interval = |r: &Record| {
        let (low, high) = (r.times.solve_low_s?, r.times.solve_high_s?);
        (r.times.repetitions > 1 && low > 0.0 && high >= low).then_some((low, high))
    };
    let ((old_low, old_high), (new_low, new_high)) = (interval(old)?, interval(new)?);
    Some((new_low / old_high, new_high / old_low))
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
    /// Lower ends of the ratios of the cases that converge in both files; infinite where one no longer
    /// does.
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
    /// What it says.
    pub verdict: Verdict,
    /// Cases with an interval.
    pub cases: usize,
}

impl Overall {
    fn of(pairs: &[Pair<'_>], threshold_percent: f64) -> Option<Self> {
        let logs: Vec<(f64, f64)> = pairs
            .iter()
            .filter(|(old, new, _)| [old, new].iter().all(|r| r.status.succeeded()))
            .filter_map(|(old, new, _)| {
                let ratio = quotient(new.times.solve_s, old.times.solve_s)?;
                let (low, high) = ratio_interval(old, new)?;
                Some((ratio.ln(), (high / low).ln() / 2.0))
            })
            .collect();
        let count = logs.len() as f64;
        if logs.is_empty() {
            return None;
        }
        let mean = logs.iter().map(|(log, _)| log).sum::<f64>() / count;
        let half = logs.iter().map(|(_, half)| half * half).sum::<f64>().sqrt() / count;
        let interval = ((mean - half).exp(), (mean + half).exp());
        let verdict = Verdict::of_interval(interval, threshold_percent);
        Some(Self { ratio: mean.exp(), interval, verdict, cases: logs.len() })
    }
}

/// Joins `old` and `new` on the settings `by` and judges each pair.
pub fn compare(
    old: (&str, &[Record]),
    new: (&str, &[Record]),
    by: &[&'static Axis],
    threshold_percent: f64,
) -> Result<Comparison> {
    let key = |case: &Case| -> Vec<String> { by.iter().map(|axis| (axis.text)(case)).collect() };
    let known = unique(old.0, old.1, &key)?;
    unique(new.0, new.1, &key)?;
    let mut pairs = Vec::new();
    for record in new.1 {
        if let Some(before) = known.get(&key(&record.case)) {
            let before: &Record = before;
            pairs.push((before, record, Verdict::of(before, record, threshold_percent)));
        }
    }
    if pairs.is_empty() {
        return Err(Error::input(format!("`{}` and `{}` have no case in common", old.0, new.0))
            .hint("--by SETTINGS joins on fewer settings, such as `--by matrix,block-size,fill`"));
    }
    let regressions = pairs.iter().filter(|(.., verdict)| verdict.is_regression()).count();
    let all = pairs;
    let pairs: Vec<Pair<'_>> = all.iter().copied().filter(|(.., v)| v.is_judged()).collect();
    let others = all.len() - pairs.len();
    let mut sheet = sheet(&all, by);
    sheet.preamble = places::differences(&all.iter().map(|(a, b, _)| (*a, *b)).collect::<Vec<_>>());
    sheet.title = Some(format!("old: {}, new: {}", old.0, new.0));
    sheet.notes = foot(&pairs, threshold_percent);
    if others > 0 {
        sheet.notes.push(format!(
            "{} of another matrix or right-hand side under the same name: not compared",
            plural(others, "case")
        ));
    }
    for (name, count) in [(old.0, old.1.len() - all.len()), (new.0, new.1.len() - all.len())] {
        if count > 0 {
            sheet.notes.push(format!("{} only in {name}", plural(count, "case")));
        }
    }
    let rows = all.iter().map(|pair| machine_row(pair, by)).collect();
    let lowest = pairs.iter().filter_map(|(old, new, verdict)| match verdict {
        Verdict::Broken => Some(f64::INFINITY),
        Verdict::Fixed | Verdict::Failed => None,
        _ => ratio_interval(old, new).map(|(low, _)| low),
    });
    Ok(Comparison {
        regressions,
        others,
        overall: Overall::of(&pairs, threshold_percent),
        lowest: lowest.collect(),
        report: Report { sheets: vec![sheet], rows },
    })
}

type Pair<'a> = (&'a Record, &'a Record, Verdict);

/// The records of a file by the settings they are joined on, which must tell them apart.
fn unique<'a>(
    name: &str,
    records: &'a [Record],
    key: &dyn Fn(&Case) -> Vec<String>,
) -> Result<HashMap<Vec<String>, &'a Record>> {
    let mut known = HashMap::new();
    for record in records {
        let Some(twin) = known.insert(key(&record.case), record) else { continue };
        let differ: Vec<&str> =
            varying(&[&twin.case, &record.case]).iter().map(|axis| axis.name).collect();
        let error = Error::input(format!("`{name}` has two records of one case"));
        return Err(if differ.is_empty() {
            error.hint("keep one of them")
        } else {
            error.hint(format!("they differ in {}: add that to --by", differ.join(", ")))
        });
    }
    Ok(known)
}

fn sheet(pairs: &[Pair<'_>], by: &[&'static Axis]) -> Sheet {
    let cases: Vec<&Case> = pairs.iter().map(|(_, new, _)| &new.case).collect();
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
    for (old, new, verdict) in pairs {
        let mut row: Vec<String> = shown.iter().map(|axis| (axis.text)(&new.case)).collect();
        let ratio = |pair: Option<f64>| {
            pair.filter(|_| verdict.is_judged()).map(|r| format!("{r:.3}")).unwrap_or_default()
        };
        let interval = ratio_interval(old, new)
            .filter(|_| verdict.is_judged())
            .map(|(low, high)| format!("{low:.3} to {high:.3}"));
        row.extend([
            solve(old),
            solve(new),
            ratio(quotient(new.times.solve_s, old.times.solve_s)),
            interval.unwrap_or_default(),
            ratio(quotient(new.times.setup_s, old.times.setup_s)),
            iterations(old, new),
            verdict.name().to_owned(),
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

/// Counts per verdict, the geometric mean of the ratios, the threshold.
fn foot(pairs: &[Pair<'_>], threshold_percent: f64) -> Vec<String> {
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
        .map(|v| (v, pairs.iter().filter(|(.., own)| own == v).count()))
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
        significant(threshold_percent, 2)
    )];
    // of the same cases on both sides: those that succeed in both
    let both: Vec<(f64, f64)> = pairs
        .iter()
        .filter(|(old, new, _)| [old, new].iter().all(|r| r.status.succeeded()))
        .filter(|(old, new, _)| quotient(new.times.solve_s, old.times.solve_s).is_some())
        .filter_map(|(old, new, _)| old.times.solve_s.zip(new.times.solve_s))
        .collect();
    if !both.is_empty() {
        let logs = both.iter().map(|(old, new)| (new / old).ln());
        let mean = (logs.sum::<f64>() / both.len() as f64).exp();
        let (old, new) = both.iter().fold((0.0, 0.0), |(a, b), (old, new)| (a + old, b + new));
        let of = if both.len() == pairs.len() {
            "all solves together".to_owned()
        } else {
            format!("solves of the {} timed in both together", plural(both.len(), "case"))
        };
        lines.push(format!(
            "geometric mean of new/old: {mean:.3}; {of}: {} -> {}",
            seconds(old),
            seconds(new)
        ));
    }
    if let Some(Overall { ratio, interval: (low, high), verdict, cases }) =
        Overall::of(pairs, threshold_percent)
    {
        lines.push(format!(
            "overall: {}, {ratio:.3} ({low:.3} to {high:.3}) over {} with an interval",
            verdict.name(),
            plural(cases, "case")
        ));
    }
    if pairs
        .iter()
        .any(|(old, new, v)| *v == Verdict::Unclear && ratio_interval(old, new).is_none())
    {
        lines.push("unclear without an interval: measure both with --min-repetitions 5".into());
    }
    lines
}

fn machine_row((old, new, verdict): &Pair<'_>, by: &[&'static Axis]) -> Map<String, Value> {
    let mut map = Map::new();
    for axis in by {
        map.insert(axis.name.into(), (axis.text)(&new.case).into());
    }
    let judged = |value: Option<f64>| value.filter(|_| verdict.is_judged());
    let interval = ratio_interval(old, new).filter(|_| verdict.is_judged());
    let mut put = |name: &str, value: Value| map.insert(name.into(), value);
    put("old-solve-s", old.times.solve_s.into());
    put("new-solve-s", new.times.solve_s.into());
    put("ratio", judged(quotient(new.times.solve_s, old.times.solve_s)).into());
    put("ratio-low", interval.map(|i| i.0).into());
    put("ratio-high", interval.map(|i| i.1).into());
    put("setup-ratio", judged(quotient(new.times.setup_s, old.times.setup_s)).into());
    put("old-iterations", old.convergence.iterations.into());
    put("new-iterations", new.convergence.iterations.into());
    put("differs", places::difference(old, new).into());
    put("verdict", verdict.name().into());
    map
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
