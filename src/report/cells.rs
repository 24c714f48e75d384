//! Heads and cells shared by the tables of runs.

use crate::base::measure::{Median, Spread};
use crate::base::status::Status;
use crate::base::units::{median_seconds, plural};
use crate::case::{Case, Setting};
use crate::compute;
use crate::config::sweep::{AXES, Axis};
use crate::record::Record;
use crate::record::schema::SampleInterval;
use crate::report::{Head, Sheet};

/// The axes on which the cases differ, outermost first.
pub fn varying(cases: &[&Case]) -> Vec<&'static Axis> {
    let differs = |axis: &&Axis| {
        let first = cases.first().map(|case| (axis.text)(case));
        cases.iter().any(|case| Some((axis.text)(case)) != first)
    };
    AXES.iter().filter(differs).collect()
}

/// Column head of an axis, as short as its meaning allows.
pub fn head(axis: &Axis) -> Head {
    match axis.name {
        "block-size" | "fill" | "shift" | "restart" | "rtol" | "max-iterations"
        | "symmetry-tolerance" => Head::number(head_name(axis)),
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

/// Label that distinguishes a run from others of the same system: the backend, and varying choices other than
/// `auto`.
pub fn execution(case: &Case, varying: &[&Axis]) -> String {
    let others = varying.iter().filter(|axis| !["matrix", "backend"].contains(&axis.name));
    let words = others.map(|axis| (axis.text)(case)).filter(|text| text != "auto");
    std::iter::once(case.backend.clone()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The settings that do not vary, in words, without those that are not used.
pub fn common_settings(case: &Case, varying: &[&Axis]) -> Vec<String> {
    let fixed = |name: &str| !varying.iter().any(|axis| axis.name == name);
    let default = Case::default();
    let mut words = Vec::new();
    let mut say = |name: &str, text: String| {
        if fixed(name) {
            words.push(text);
        }
    };
    say("matrix", case.matrix.clone());
    if case.read_as != default.read_as {
        say("read-as", "read as stored".into());
    }
    if case.zeros != default.zeros {
        say("zeros", "stored zeros dropped".into());
    }
    if case.ordering != default.ordering {
        say("ordering", format!("order {}", case.ordering));
    }
    say("rhs", format!("rhs {}", case.rhs));
    let restarted = case.uses(Setting::Restart) && fixed("restart");
    say(
        "solver",
        if restarted { format!("{}({})", case.solver, case.restart) } else { case.solver.clone() },
    );
    say("precond", case.precond.clone());
    say("block-size", format!("block size {}", case.block_size));
    if case.uses(Setting::Fill) {
        say("fill", format!("k = {}", case.fill));
        if case.level_rule != default.level_rule {
            say("level-rule", "level rule overwrite".into());
        }
    }
    let names = [
        "shift",
        "deflation",
        "orthogonalisation",
        "matrix-format",
        "factor-precision",
        "trisolve",
        "fgbilu-style",
        "execution",
        "max-iterations",
        "symmetry-tolerance",
    ];
    for name in names {
        let Some(axis) = AXES.iter().find(|axis| axis.name == name) else { continue };
        let text = (axis.text)(case);
        if text != (axis.text)(&default) {
            say(name, format!("{name} {text}"));
        }
    }
    for name in ["side", "rtol"] {
        let Some(axis) = AXES.iter().find(|axis| axis.name == name) else { continue };
        say(name, format!("{name} {}", (axis.text)(case)));
    }
    words
}

/// One line per backend: its device and threads.
pub fn devices(records: &[Record]) -> Vec<String> {
    let mut lines = Vec::new();
    for Record { case, status, environment: e, .. } in records {
        // a case that could not even begin has no threads
        if e.device.is_empty() || (status == &Status::Unsupported && e.threads == 0) {
            continue;
        }
        // a backend may name its threads itself, and those of a GPU's host say nothing
        let named = e.device.contains("thread") || compute::on_gpu(&case.backend);
        let threads = if e.threads > 0 && !named {
            format!(", {}", plural(e.threads, "thread"))
        } else {
            String::new()
        };
        let line = format!("{}: {}{threads}", case.backend, e.device);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// The median solve, with its interval or range when it was repeated.
pub fn solve(record: &Record) -> String {
    record.times.solve().as_ref().map(median_seconds).unwrap_or_default()
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
    let mut lines = Vec::new();
    for (median, interval) in medians {
        let rounds = interval.is_some_and(SampleInterval::of_rounds);
        let line = match (median.map(|m| m.spread), rounds) {
            (None | Some(Spread::None), _) => continue,
            (Some(Spread::Interval { .. }), false) => {
                format!("±, [low, high]: 95 % confidence interval of the median {what}")
            }
            (Some(Spread::Interval { .. }), true) => {
                "±, [low, high]: 95 % confidence interval of the median of rounds".into()
            }
            (Some(Spread::Range { .. }), false) => format!(
                "(n: low–high): range of n {what}s, too few for a 95 % interval, which takes six"
            ),
            (Some(Spread::Range { .. }), true) => {
                "(n: low–high): range of the medians of n rounds, too few for a 95 % interval, which \
                 takes six"
                    .into()
            }
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// The status; anything but success is marked and explained below the table.
pub fn status(record: &Record, notes: &mut Vec<String>) -> String {
    let mark = record
        .reason
        .as_deref()
        .filter(|r| !r.is_empty())
        .map(|reason| format!(" {}", Sheet::footnote(notes, reason)));
    let sign = if record.status.succeeded() { "" } else { "! " };
    format!("{sign}{}{}", record.status.name(), mark.unwrap_or_default())
}

/// `slow` over `fast`, when both are positive times.
pub fn speedup(slow: Option<f64>, fast: Option<f64>) -> Option<f64> {
    let ratio = slow? / fast?;
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}
