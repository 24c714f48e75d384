//! Residuals per iteration.

use super::common::{by_key, called, differing, of_batch, short, without};
use super::{Kind, Plot};
use crate::base::units::plural;
use crate::config::History;
use crate::config::marks::{Marks, Spacing};
use crate::record::Record;
use crate::report::batch::Batch;
use crate::report::plot::{Axis, Figure, LeftOut, Names, Origin, Panel, Series};

pub(super) const KIND: Kind = Kind {
    name: "history",
    title: "Convergence",
    summary: "The norm of the residual that the solver monitors after each iteration, over its first \
              value, in one run outside the timing; the thin line is the tolerance at which a run has \
              converged. Curves of one method on several backends lie on each other when they compute \
              the same. Beside a history of a paper, whose curves are dashed, the norms are as they \
              are.",
    draw: |batches| batches.runs.iter().filter_map(plot).collect(),
};

/// Most curves of a panel, most panels, and most points of a curve and of a figure.
const CURVES: usize = 48;
const PANELS: usize = 12;
const POINTS: usize = 300;
const ALL_POINTS: usize = 20_000;

fn plot(batch: &Batch) -> Option<Plot> {
    let with: Vec<&Record> =
        batch.records.iter().filter(|r| r.convergence.residual_history.len() > 1).collect();
    let systems = by_key(with.iter().copied(), |r| (r.case.matrix.clone(), r.case.rhs.clone()));
    if systems.is_empty() {
        return None;
    }
    let all = differing(with.iter().copied());
    let sides = all.iter().any(|s| s.name == "rhs");
    let differ = without(&all, &["matrix", "rhs"]);
    let names = Names::of(&batch.records);
    let history = batch.experiment.as_ref().and_then(|(_, e)| e.history.as_ref());
    let drawn: usize = systems.iter().take(PANELS).map(|(_, own)| own.len().min(CURVES)).sum();
    let points = (ALL_POINTS / drawn).clamp(20, POINTS);
    let (mut panels, mut left_out) = (Vec::new(), Vec::new());
    for (i, ((matrix, rhs), records)) in systems.iter().enumerate() {
        let mut title = short(names.get(matrix));
        if sides {
            title = format!("{title}, {}", short(names.get(rhs)));
        }
        let called = |r: &Record| called(&r.case, &differ, &names);
        let most = if i < PANELS { CURVES } else { 0 };
        let panel = |r: &&Record| LeftOut { panel: title.clone(), series: called(r) };
        left_out.extend(records.iter().skip(most).map(panel));
        if i < PANELS {
            let own: Vec<&Record> = records.iter().take(CURVES).copied().collect();
            let curves = own.iter().map(|r| curve(r, called(r), history.is_none(), points));
            let mut all: Vec<Series> = curves.collect();
            all.extend(history.into_iter().flat_map(published));
            all.extend(tolerances(&own, history.is_none()));
            panels.push(panel_of(title, all, history.is_none()));
        }
    }
    let caption = format!(
        "{} of {}, {}.",
        plural(with.len(), "history").replace("historys", "histories"),
        batch.name,
        batch.devices(),
    );
    let figure = Figure { marks: Marks::Lines, panels, left_out, ..Figure::default() };
    Some(of_batch(batch, "Convergence", figure, caption))
}

fn panel_of(title: String, series: Vec<Series>, relative: bool) -> Panel {
    let y = if relative { "residual over its first value" } else { "norm of the residual" };
    let x = Axis::of("iteration", Spacing::Linear);
    Panel::new(title, x, Axis::of(y, Spacing::Log), series)
}

/// What norms are divided by: the first one in a relative history.
fn unit(record: &Record, relative: bool) -> f64 {
    let first = record.convergence.residual_history[0];
    if relative && first > 0.0 && first.is_finite() { first } else { 1.0 }
}

fn curve(record: &Record, name: String, relative: bool, points: usize) -> Series {
    let (norms, unit) = (&record.convergence.residual_history, unit(record, relative));
    let every = norms.len().div_ceil(points).max(1);
    let last = norms.len() - 1;
    let kept = norms.iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last);
    Series::of(name, kept.map(|(i, norm)| (i as f64, norm / unit)).collect())
}

/// The curves of a paper.
fn published(history: &History) -> impl Iterator<Item = Series> {
    history.names.iter().enumerate().map(|(column, name)| {
        // sums of squares; correction 0 follows the first application
        let rows = history.rows.iter();
        let pairs = rows.map(|(l, values)| (*l as f64 + 1.0, values[column].sqrt())).collect();
        let origin = Origin::Published;
        Series { origin, ..Series::of(format!("paper, {name}"), pairs) }
    })
}

/// A line at each norm at which some of the runs have converged.
fn tolerances(records: &[&Record], relative: bool) -> Vec<Series> {
    let mut lines: Vec<(f64, f64)> = Vec::new();
    for record in records {
        let rtol = record.case.rtol;
        let level = rtol * record.convergence.residual_history[0] / unit(record, relative);
        let near = |(own, other): &(f64, f64)| *own == rtol && (level / other - 1.0).abs() < 0.01;
        if level > 0.0 && level.is_finite() && !lines.iter().any(near) {
            lines.push((rtol, level));
        }
    }
    lines.sort_by(|a, b| b.1.total_cmp(&a.1));
    let line = |(rtol, level)| Series::limit(format!("tolerance {rtol:e}"), level);
    lines.into_iter().map(line).collect()
}
