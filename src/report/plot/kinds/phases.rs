//! Where the time of a run goes.

use super::common::{by_key, differing, name, series, short, without};
use super::{Kind, Plot};
use crate::base::units::{plural, seconds};
use crate::case::RunKind;
use crate::config::marks::Marks;
use crate::record::Record;
use crate::report::batch::Batch;
use crate::report::plot::{Axis, Figure, LeftOut, Names, Panel};

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
    let differ = differing(records.iter().copied());
    let called = Names::of(&batch.records);
    let mut groups = by_key(records.iter().copied(), |r| name(&r.case, &differ, &called));
    let mut mean = String::new();
    if groups.len() > MOST {
        let settings = without(&differ, &["matrix"]);
        groups = by_key(records.iter().copied(), |r| name(&r.case, &settings, &called));
        mean = " Each bar is the mean share over the systems of these settings, the time their \
                median."
            .into();
    }
    let rest = groups.split_off(MOST.min(groups.len()));
    let left_out =
        rest.into_iter().map(|(name, _)| LeftOut { panel: String::new(), series: short(&name) });
    let first = records.first()?;
    let names = phases(first).map(|(name, _)| name);
    let mut pieces = names.map(|_| Vec::new());
    let mut categories = Vec::new();
    for (i, (name, group)) in groups.iter().enumerate() {
        let mut shares = [0.0; 7];
        let mut totals = Vec::new();
        for record in group {
            let own = phases(record);
            let total: f64 = own.iter().map(|(_, s)| s).sum();
            if total > 0.0 {
                totals.push(total);
                for (share, (_, s)) in shares.iter_mut().zip(own) {
                    *share += 100.0 * s / total;
                }
            }
        }
        totals.sort_by(f64::total_cmp);
        let Some(median) = totals.get(totals.len() / 2) else { continue };
        for (piece, share) in pieces.iter_mut().zip(shares) {
            piece.push((categories.len() as f64, share / totals.len() as f64));
        }
        let name = if name.is_empty() { first.case.backend.as_str() } else { name };
        debug_assert!(categories.len() <= i);
        categories.push(format!("{}: {}", short(name), seconds(*median)));
    }
    if categories.is_empty() {
        return None;
    }
    let own = names.into_iter().zip(pieces);
    let own = own.filter(|(_, pairs)| pairs.iter().any(|(_, share)| *share > 0.05));
    let panel = Panel {
        x: Axis { label: "share of the time (%)".into(), ..Axis::default() },
        y: Axis { categories, ..Axis::default() },
        series: own.map(|(name, pairs)| series(name, pairs)).collect(),
        ..Panel::default()
    };
    let caption =
        format!("{} of {}, {}.{mean}", plural(records.len(), "run"), batch.name, batch.devices());
    let title = format!("Time by phase: {}", batch.title());
    let source = vec![batch.devices()];
    Some(Plot {
        figure: Figure {
            title,
            marks: Marks::Stacked,
            panels: vec![panel],
            source,
            left_out: left_out.collect(),
            ..Figure::default()
        },
        caption,
    })
}
