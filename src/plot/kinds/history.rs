//! Residuals per iteration.

use super::common::{axis, differing, grouped, name, series, short, shown, without};
use super::{Kind, Plot};
use crate::plot::{Figure, Marks, Origin, Panel, Points, Series, Spacing};
use crate::report::batch::Batch;
use crate::report::units::plural;
use crate::result::Record;

pub(super) const KIND: Kind = Kind {
    name: "history",
    title: "Convergence",
    summary: "The norm of the residual that the solver monitors after each iteration, in one run \
              outside the timing. Curves of one method on several backends lie on each other when \
              they compute the same; dashed ones are the paper's.",
    draw: |batches| batches.runs.iter().filter_map(plot).collect(),
};

/// Most curves of a panel, most panels, most points of a curve.
const CURVES: usize = 10;
const PANELS: usize = 6;
const POINTS: usize = 300;

fn plot(batch: &Batch) -> Option<Plot> {
    let with: Vec<&Record> =
        batch.records.iter().filter(|r| r.convergence.residual_history.len() > 1).collect();
    let mut matrices =
        grouped(with.iter().copied(), |r| (r.case.matrix.clone(), r.case.rhs.clone()));
    if matrices.is_empty() {
        return None;
    }
    let differ = without(&differing(with.iter().copied()), &["matrix", "rhs"]);
    let all = matrices.len();
    matrices.truncate(PANELS);
    let history = batch.experiment.as_ref().and_then(|(_, e)| e.history.as_ref());
    let mut cut = String::new();
    let mut panels = Vec::new();
    for ((matrix, _), records) in &matrices {
        let mut curves: Vec<Series> =
            records.iter().take(CURVES).map(|r| curve(r, &name(&r.case, &differ))).collect();
        if records.len() > CURVES {
            cut = shown(CURVES, records.len(), "runs of a system");
        }
        for (column, name) in history.iter().flat_map(|h| h.names.iter().enumerate()) {
            let rows = history.iter().flat_map(|h| &h.rows);
            // sums of squares; correction 0 follows the first application
            let pairs: Vec<(f64, f64)> =
                rows.map(|(l, values)| (*l as f64 + 1.0, values[column].sqrt())).collect();
            let origin = Origin::Published;
            curves.push(Series { origin, ..series(format!("paper, {name}"), pairs) });
        }
        panels.push(Panel {
            title: short(matrix),
            x: axis("iteration", Spacing::Linear),
            y: axis("norm of the residual", Spacing::Log),
            series: curves,
        });
    }
    let caption = format!(
        "{} of {}, {}.{cut}{}",
        plural(with.len(), "history").replace("historys", "histories"),
        batch.name,
        batch.devices(),
        shown(panels.len(), all, "systems"),
    );
    let title = format!("Convergence: {}", batch.title());
    let source = vec![batch.devices()];
    Some(Plot {
        figure: Figure { title, marks: Marks::Lines, panels, source, ..Figure::default() },
        caption,
    })
}

fn curve(record: &Record, name: &str) -> Series {
    let norms = &record.convergence.residual_history;
    let every = norms.len().div_ceil(POINTS).max(1);
    let last = norms.len() - 1;
    let kept = norms.iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last);
    let pairs = kept.map(|(i, norm)| (i as f64, *norm)).collect();
    let name = if name.is_empty() { &record.case.backend } else { name };
    Series { points: Points::Pairs(pairs), ..series(short(name), Vec::new()) }
}
