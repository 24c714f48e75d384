//! Iterations against what each of them costs.

use itertools::Itertools as _;

use super::common::{beyond, by_key, differing, name, of_batch, repetitions, short, without};
use super::{Kind, Plot};
use crate::base::units::{plural, seconds};
use crate::config::marks::{Marks, Spacing};
use crate::record::Record;
use crate::report::batch::Batch;
use crate::report::plot::scale::{round_down, round_up};
use crate::report::plot::{Axis, Figure, LeftOut, Names, Origin, Panel, Series};

pub(super) const KIND: Kind = Kind {
    name: "frontier",
    title: "Iterations against their cost",
    summary: "Each marker is a configuration that solves the same system on the same backend: to the \
              left it needs fewer iterations, further down each iteration is cheaper. Thin lines join \
              equal solve times. No configuration beats one on the frontier in both.",
    draw: |batches| batches.runs.iter().filter_map(plot).collect(),
};

/// Fewest configurations of a system for a comparison.
const ENOUGH: usize = 4;

/// Most systems of a file that are shown.
const SYSTEMS: usize = 6;

fn plot(batch: &Batch) -> Option<Plot> {
    let solved = batch.records.iter().filter(|r| point(r).is_some());
    let mut groups = by_key(solved, |r| {
        let c = &r.case;
        let kind = (c.solver.clone(), c.rhs.clone(), c.rtol.to_bits());
        (c.matrix.clone(), kind, c.backend.clone())
    });
    // one setting of the preconditioner is no choice
    groups.retain(|(_, group)| {
        let differ = differing(group.iter().copied());
        let choice =
            differ.iter().any(|s| ["precond", "fill", "deflation", "block-size"].contains(&s.name));
        group.len() >= ENOUGH && choice
    });
    if groups.is_empty() {
        return None;
    }
    let names = Names::of(&batch.records);
    let titled = groups.into_iter().map(|((matrix, (solver, ..), backend), group)| {
        (format!("{}: {solver} on {backend}", short(names.get(&matrix))), group)
    });
    let mut groups = titled.collect_vec();
    let left_out = beyond(&mut groups, SYSTEMS)
        .into_iter()
        .map(|(panel, group)| LeftOut { panel, series: plural(group.len(), "solve") });
    let figure = Figure {
        marks: Marks::Scatter,
        panels: groups.iter().map(|(title, group)| panel(title, group, &names)).collect(),
        columns: 2,
        left_out: left_out.collect(),
        ..Figure::default()
    };
    let drawn = groups.iter().flat_map(|(_, group)| group.iter().copied()).collect_vec();
    let (count, devices) = (plural(drawn.len(), "solve"), batch.devices());
    let caption = format!("{count} of {}; {}; {devices}.", batch.name, repetitions(drawn));
    Some(of_batch(batch, "Iterations against their cost", figure, caption))
}

/// Iterations and milliseconds of each.
fn point(record: &Record) -> Option<(f64, f64)> {
    let iterations = record.convergence.iterations as f64;
    let ms = record.times.ms_per_iteration?;
    (record.status.succeeded() && iterations > 0.0 && ms > 0.0).then_some((iterations, ms))
}

fn panel(title: &str, group: &[&Record], names: &Names) -> Panel {
    let differ = without(&differing(group.iter().copied()), &["matrix"]);
    let labelled = |r: &&Record| Some((point(r)?, short(&name(&r.case, &differ, names))));
    let points = group.iter().filter_map(labelled).sorted_by(|a, b| a.0.0.total_cmp(&b.0.0));
    let points: Vec<((f64, f64), String)> = points.collect();
    let beaten = |(i, ms): (f64, f64)| {
        points.iter().any(|((j, other), _)| *j <= i && *other <= ms && (*j < i || *other < ms))
    };
    let (on, off): (Vec<_>, Vec<_>) = points.iter().cloned().partition(|(p, _)| !beaten(*p));
    let labelled = |name: &str, points: Vec<((f64, f64), String)>| {
        let (pairs, labels) = points.into_iter().unzip();
        Series { labels, ..Series::of(name, pairs) }
    };
    let mut all = vec![labelled("on the frontier", on), labelled("others", off)];
    all.retain(|s| !s.labels.is_empty());
    all.extend(equal_times(&points.iter().map(|(p, _)| *p).collect_vec()));
    let y = Axis::of("time of an iteration (ms)", Spacing::Log);
    Panel::new(title, Axis::of("iterations", Spacing::Log), y, all)
}

/// Lines of equal time of the solve, a factor of ten apart, inside the axes.
fn equal_times(points: &[(f64, f64)]) -> Vec<Series> {
    let ends = |pick: fn(&(f64, f64)) -> f64| {
        let values = points.iter().map(pick);
        values.fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)))
    };
    // to the ends of the axes
    let ((left, right), (low, high)) = (ends(|p| p.0), ends(|p| p.1));
    let (left, right) = (round_down(left), round_up(right));
    let (low, high) = (round_down(low), round_up(high));
    if right <= left || high <= low {
        return Vec::new();
    }
    let decades = (left * low).log10().ceil() as i32..=(right * high).log10().floor() as i32;
    let line = |ms: f64| {
        let (from, to) = ((ms / high).max(left), (ms / low).min(right));
        // a corner of the panel says nothing
        if to < 1.3 * from {
            return None;
        }
        let pairs = vec![(from, ms / from), (to, ms / to)];
        // the time stands at the lower end
        let labels = vec![String::new(), seconds(ms / 1e3)];
        let series = Series::of("equal time of the solve", pairs);
        Some(Series { origin: Origin::Limit, labels, ..series })
    };
    decades.filter_map(|k| line(10f64.powi(k))).collect()
}
