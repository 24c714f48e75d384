//! Where the time of a run goes.

use super::common::{beyond, by_key, differing, name, of_batch, short, without};
use super::{Kind, Plot};
use crate::base::units::{plural, seconds};
use crate::case::RunKind;
use crate::config::marks::Marks;
use crate::config::sweep::Axis as Setting;
use crate::record::Record;
use crate::report::batch::Batch;
use crate::report::plot::{Axis, Figure, LeftOut, Names, Panel, Series};

pub(super) const KIND: Kind = Kind {
    name: "phases",
    title: "Where the time goes",
    summary: "Shares of the phases in the time to solution: the order of the unknowns, conversion and \
              transfer of the matrix, the pattern of the factors (symbolic), level schedules and storage (analysis), their \
              values (numeric), deflation, and the solve; the time behind the name is that of all of \
              them. Compilation of kernels and trials of algorithms are excluded.",
    draw: |batches| batches.runs.iter().filter_map(plot).collect(),
};

/// Most bars of a figure.
const MOST: usize = 28;

/// The phases with their seconds.
fn phases(r: &Record) -> [(&'static str, f64); 7] {
    let t = &r.times;
    let of = |s: Option<f64>| s.filter(|s| s.is_finite() && *s > 0.0).unwrap_or(0.0);
    [
        ("ordering", of(t.ordering_s)),
        ("matrix", of(t.matrix_s)),
        ("symbolic", of(t.symbolic_s)),
        ("analysis", of(t.analysis_s)),
        ("numeric", of(t.numeric_s)),
        ("deflation", of(t.deflation_s)),
        ("solve", of(t.solve_s)),
    ]
}

fn plot(batch: &Batch) -> Option<Plot> {
    let has = |r: &&Record| {
        r.case.kind == RunKind::Solve && r.times.solve_s.is_some() && r.status.succeeded()
    };
    let records: Vec<&Record> = batch.records.iter().filter(has).collect();
    let first = records.first()?;
    let names = Names::of(&batch.records);
    let by_settings =
        |differ: &[&Setting]| by_key(records.iter().copied(), |r| name(&r.case, differ, &names));
    let differ = differing(records.iter().copied());
    let mut groups = by_settings(&differ);
    let mut mean = "";
    if groups.len() > MOST {
        groups = by_settings(&without(&differ, &["matrix"]));
        mean = " Each bar is the mean share over the systems of these settings, the time their \
                median.";
    }
    let left_out = beyond(&mut groups, MOST).into_iter();
    let left_out = left_out.map(|(name, _)| LeftOut::alone(short(&name))).collect();
    let mut pieces = phases(first).map(|(name, _)| (name, Vec::new()));
    let mut categories = Vec::new();
    for (name, group) in &groups {
        let times = group.iter().map(|r| phases(r));
        let times = times.map(|own| (own.iter().map(|(_, s)| s).sum::<f64>(), own));
        let times: Vec<_> = times.filter(|(total, _)| *total > 0.0).collect();
        let mut totals: Vec<f64> = times.iter().map(|(total, _)| *total).collect();
        totals.sort_by(f64::total_cmp);
        let Some(median) = totals.get(totals.len() / 2) else { continue };
        for (i, (_, pairs)) in pieces.iter_mut().enumerate() {
            let share: f64 = times.iter().map(|(total, own)| 100.0 * own[i].1 / total).sum();
            pairs.push((categories.len() as f64, share / totals.len() as f64));
        }
        let name = if name.is_empty() { &first.case.backend } else { name };
        categories.push(format!("{}: {}", short(name), seconds(*median)));
    }
    if categories.is_empty() {
        return None;
    }
    let own = pieces.into_iter().filter(|(_, p)| p.iter().any(|(_, share)| *share > 0.05));
    let panel = Panel {
        x: Axis { label: "share of the time (%)".into(), ..Axis::default() },
        y: Axis { categories, ..Axis::default() },
        series: own.map(|(name, pairs)| Series::of(name, pairs)).collect(),
        ..Panel::default()
    };
    let (marks, panels) = (Marks::Stacked, vec![panel]);
    let figure = Figure { marks, panels, left_out, ..Figure::default() };
    let count = plural(records.len(), "run");
    let caption = format!("{count} of {}, {}.{mean}", batch.name, batch.devices());
    Some(of_batch(batch, "Time by phase", figure, caption))
}
