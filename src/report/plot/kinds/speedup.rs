//! How many times as fast other backends are, beside the published speedups.

use std::collections::HashMap;

use itertools::Itertools as _;

use super::common::{
    beyond, by_key, differing, fitted, geometric_mean, name, of_batch, or_matrix, repetitions,
    short, solve_interval, spacing, without,
};
use super::{Kind, Plot};
use crate::base::units::plural;
use crate::config::marks::Marks;
use crate::config::published::PublishedRow;
use crate::config::sweep::Axis as Setting;
use crate::record::Record;
use crate::report::batch::{Batch, key};
use crate::report::cells::speedup;
use crate::report::plot::{Axis, Figure, LeftOut, Names, Origin, Panel, Series};

pub(super) const KIND: Kind = Kind {
    name: "speedup",
    title: "Speedups",
    summary: "How many times as fast a backend is as the slow one of the same file: time of the slow \
              one over its own, of the same case. Above 1 it is faster. Whiskers follow from the 95 % \
              confidence intervals of both medians; hollow bars are what the paper printed, on the \
              paper's machines.",
    draw: |batches| batches.runs.iter().filter_map(plot).collect(),
};

/// Backends that others are set against, the first that is there.
const BASES: [&str; 4] = ["cpu", "cusparse", "cpu-mt", "cuda"];

/// Most categories of a panel.
const MOST: usize = 32;

/// Most matrices with a panel of their own; more share one by their mean.
const PANELS: usize = 4;

/// Ratios of one case on one backend.
struct Ratio<'a> {
    record: &'a Record,
    /// Name of its settings beside matrix and backend.
    category: String,
    solve: f64,
    spread: Option<(f64, f64)>,
    total: Option<f64>,
    published: Option<f64>,
}

/// A ratio by name.
type Quantity = (&'static str, fn(&Ratio<'_>) -> Option<f64>);

/// What panels show.
const QUANTITIES: [Quantity; 2] = [("solve", |r| Some(r.solve)), ("time to solution", |r| r.total)];

fn plot(batch: &Batch) -> Option<Plot> {
    let solved =
        || batch.records.iter().filter(|r| r.status.succeeded() && r.times.solve_s.is_some());
    let base = BASES.into_iter().find(|base| solved().any(|r| r.case.backend == *base))?;
    let mut slow: HashMap<String, &Record> = HashMap::new();
    for record in solved().filter(|r| r.case.backend == base) {
        // the fastest of several variants
        let place = slow.entry(key(&record.case.on(base))).or_insert(record);
        if record.times.solve_s < place.times.solve_s {
            *place = record;
        }
    }
    let judged = batch.not_comparable.is_none();
    let published = batch.experiment.as_ref().and_then(|(_, e)| e.published.as_ref());
    let published =
        published.filter(|p| judged && p.slow.as_ref().is_some_and(|d| d.backend == base));
    let mut ratios: Vec<Ratio<'_>> = solved()
        .filter(|r| r.case.backend != base)
        .filter_map(|record| {
            let twin = slow.get(&key(&record.case.on(base)))?;
            let printed =
                published.and_then(|p| p.find(&record.case)).and_then(PublishedRow::speedup);
            Some(Ratio {
                record,
                category: String::new(),
                solve: speedup(twin.times.solve_s, record.times.solve_s)?,
                spread: spread(twin, record),
                total: speedup(twin.times.to_solution(1), record.times.to_solution(1)),
                published: printed,
            })
        })
        .collect();
    if ratios.is_empty() {
        return None;
    }
    let differ = differing(ratios.iter().map(|r| r.record));
    let variants = ["backend", "trisolve", "execution", "fgbilu-style"];
    let settings = without(&differ, &[&["matrix"], &variants[..]].concat());
    let names = Names::of(&batch.records);
    for ratio in &mut ratios {
        ratio.category = or_matrix(&ratio.record.case, &settings, &names);
    }
    let variants: Vec<&Setting> =
        differ.into_iter().filter(|s| variants.contains(&s.name)).collect();
    Some(figure(batch, base, &ratios, &variants))
}

/// The intervals of both medians at their opposite ends.
fn spread(slow: &Record, fast: &Record) -> Option<(f64, f64)> {
    let ends = |r: &Record| solve_interval(r).or_else(|| r.times.solve_s.map(|s| (s, s)));
    if solve_interval(slow).is_none() && solve_interval(fast).is_none() {
        return None;
    }
    let ((slow_low, slow_high), (fast_low, fast_high)) = (ends(slow)?, ends(fast)?);
    Some((slow_low / fast_high, slow_high / fast_low))
}

fn figure(batch: &Batch, base: &str, ratios: &[Ratio<'_>], variants: &[&Setting]) -> Plot {
    let called = Names::of(&batch.records);
    let mut groups = by_key(ratios, |r| r.record.case.matrix.clone());
    let several = groups.len() > PANELS;
    if several {
        let title = format!("geometric mean over {} matrices", groups.len());
        groups = vec![(title, ratios.iter().collect())];
    }
    let (mut panels, mut left_out) = (Vec::new(), Vec::new());
    for (matrix, own) in &groups {
        let matrix = short(called.get(matrix));
        let mut names = own.iter().map(|r| r.category.clone()).unique().collect_vec();
        let panel = if several { "" } else { matrix.as_str() };
        let rest = beyond(&mut names, MOST).into_iter();
        left_out.extend(rest.map(|series| LeftOut { panel: panel.to_owned(), series }));
        for (what, value) in QUANTITIES {
            let variants = by_key(own.iter().copied(), |r| name(&r.record.case, variants, &called));
            let of_variant = |(name, ratios): &(String, Vec<&Ratio<'_>>)| {
                let name = if name.is_empty() { &ratios[0].record.case.backend } else { name };
                bars(name, &names, ratios, value, what == "solve")
            };
            let mut series = variants.iter().map(of_variant).collect_vec();
            if what == "solve" {
                series.push(published(&names, own));
            }
            series.retain(|s| !s.pairs().is_empty());
            if series.is_empty() {
                continue;
            }
            let values = series.iter().flat_map(|s| s.pairs().iter().map(|p| p.1));
            let y = Axis::of("speedup", spacing(values.chain([1.0])));
            series.push(Series::limit("as fast", 1.0));
            let title = if groups.len() == 1 && !several {
                what.to_owned()
            } else {
                format!("{matrix}, {what}")
            };
            let x = Axis { categories: names.clone(), ..Axis::of("", y.spacing) };
            panels.push(Panel::new(title, x, y, series));
        }
    }
    let (cases, medians) = (plural(ratios.len(), "case"), repetitions(&batch.records));
    let caption = format!("{cases} in {} over {base}, {medians}; {}.", batch.name, batch.devices());
    let figure = fitted(Figure { marks: Marks::Bars, panels, left_out, ..Figure::default() });
    of_batch(batch, &format!("Speedup over {base}"), figure, caption)
}

fn bars(
    name: &str,
    names: &[String],
    ratios: &[&Ratio<'_>],
    value: fn(&Ratio<'_>) -> Option<f64>,
    spread: bool,
) -> Series {
    let bar = |(i, wanted): (usize, &String)| {
        let own = ratios.iter().filter(|r| r.category == *wanted).collect_vec();
        let mean = geometric_mean(&own.iter().filter_map(|r| value(r)).collect_vec())?;
        let known = if spread && own.len() == 1 { own[0].spread } else { None };
        Some(((i as f64, mean), known.unwrap_or((f64::NAN, f64::NAN))))
    };
    let (pairs, spread) = names.iter().enumerate().filter_map(bar).unzip();
    Series { spread, ..Series::of(name, pairs) }
}

fn published(names: &[String], ratios: &[&Ratio<'_>]) -> Series {
    let of = |(i, wanted): (usize, &String)| {
        let mut own = ratios.iter().filter(|r| r.category == *wanted);
        Some((i as f64, own.find_map(|r| r.published)?))
    };
    let pairs = names.iter().enumerate().filter_map(of).collect();
    Series { origin: Origin::Published, ..Series::of("paper", pairs) }
}
