//! How many times as fast other backends are, beside the published speedups.

use std::collections::HashMap;

use super::common::{
    axis, by_key, differing, fitted, geometric_mean, name, repetitions, short, solve_interval,
    spacing, without,
};
use super::{Kind, Plot};
use crate::base::units::plural;
use crate::config::marks::Marks;
use crate::config::published::PublishedRow;
use crate::config::sweep::Axis as Setting;
use crate::record::Record;
use crate::report::batch::{Batch, key};
use crate::report::plot::{Axis, Figure, LeftOut, Names, Origin, Panel, Points, Series};

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
    let mut backends: Vec<&str> = Vec::new();
    for record in solved() {
        if !backends.contains(&record.case.backend.as_str()) {
            backends.push(&record.case.backend);
        }
    }
    let base = BASES.into_iter().find(|base| backends.contains(base))?;
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
                solve: quotient(twin.times.solve_s, record.times.solve_s)?,
                spread: spread(twin, record),
                total: quotient(twin.times.to_solution(1), record.times.to_solution(1)),
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
        let case = &ratio.record.case;
        let name = name(case, &settings, &names);
        ratio.category =
            short(if name.is_empty() { names.get(&case.matrix) } else { name.as_str() });
    }
    let variants: Vec<&Setting> =
        differ.into_iter().filter(|s| variants.contains(&s.name)).collect();
    Some(figure(batch, base, &ratios, &variants))
}

fn quotient(slow: Option<f64>, fast: Option<f64>) -> Option<f64> {
    let ratio = slow? / fast?;
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
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
    let matrices = by_key(ratios, |r| r.record.case.matrix.clone());
    let several = matrices.len() > PANELS;
    let mut panels = Vec::new();
    let mut left_out: Vec<LeftOut> = Vec::new();
    let groups: Vec<(String, Vec<&Ratio<'_>>)> = if several {
        let title = format!("geometric mean over {} matrices", matrices.len());
        vec![(title, ratios.iter().collect())]
    } else {
        matrices
    };
    for (matrix, own) in &groups {
        let names = by_key(own.iter(), |r| r.category.clone());
        let mut names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
        let rest = names.split_off(MOST.min(names.len()));
        let panel = if several { String::new() } else { short(called.get(matrix)) };
        left_out.extend(rest.into_iter().map(|series| LeftOut { panel: panel.clone(), series }));
        for (what, value) in QUANTITIES {
            let mut series = Vec::new();
            for (variant, of_variant) in
                by_key(own.iter().copied(), |r| name(&r.record.case, variants, &called))
            {
                let variant = if variant.is_empty() {
                    of_variant[0].record.case.backend.clone()
                } else {
                    variant
                };
                series.push(bars(&variant, &names, &of_variant, value, what == "solve"));
            }
            if what == "solve" {
                series.extend(published(&names, own));
            }
            series.retain(|s| matches!(&s.points, Points::Pairs(p) if !p.is_empty()));
            if series.is_empty() {
                continue;
            }
            series.push(Series {
                name: "as fast".into(),
                origin: Origin::Limit,
                points: Points::Level(1.0),
                ..Series::default()
            });
            let values = series.iter().flat_map(|s| match &s.points {
                Points::Pairs(pairs) => pairs.iter().map(|p| p.1).collect(),
                Points::Level(value) => vec![*value],
            });
            let y = axis("speedup", spacing(values.collect::<Vec<_>>()));
            let title = if groups.len() == 1 && !several {
                what.to_owned()
            } else {
                format!("{}, {what}", short(called.get(matrix)))
            };
            let x = Axis { categories: names.clone(), ..axis("", y.spacing) };
            panels.push(Panel { title, x, y, series });
        }
    }
    let what = format!("Speedup over {base}: {}", batch.title());
    let caption = format!(
        "{} in {} over {base}, {}; {}.",
        plural(ratios.len(), "case"),
        batch.name,
        repetitions(batch.records.iter()),
        batch.devices(),
    );
    let figure = Figure {
        title: what,
        marks: Marks::Bars,
        panels,
        source: vec![batch.devices()],
        left_out,
        ..Figure::default()
    };
    Plot { figure: fitted(figure), caption }
}

fn bars(
    name: &str,
    names: &[String],
    ratios: &[&Ratio<'_>],
    value: fn(&Ratio<'_>) -> Option<f64>,
    spread: bool,
) -> Series {
    let (mut pairs, mut ends) = (Vec::new(), Vec::new());
    for (i, wanted) in names.iter().enumerate() {
        let own: Vec<&&Ratio<'_>> = ratios.iter().filter(|r| r.category == *wanted).collect();
        let values: Vec<f64> = own.iter().filter_map(|r| value(r)).collect();
        let Some(mean) = geometric_mean(&values) else { continue };
        pairs.push((i as f64, mean));
        let known = if spread && own.len() == 1 { own[0].spread } else { None };
        ends.push(known.unwrap_or((f64::NAN, f64::NAN)));
    }
    Series {
        name: name.into(),
        origin: Origin::Measured,
        points: Points::Pairs(pairs),
        spread: ends,
        ..Series::default()
    }
}

fn published(names: &[String], ratios: &[&Ratio<'_>]) -> Option<Series> {
    let of = |(i, wanted): (usize, &String)| {
        let mut own = ratios.iter().filter(|r| r.category == *wanted);
        Some((i as f64, own.find_map(|r| r.published)?))
    };
    let pairs: Vec<(f64, f64)> = names.iter().enumerate().filter_map(of).collect();
    (!pairs.is_empty()).then(|| Series {
        name: "paper".into(),
        origin: Origin::Published,
        points: Points::Pairs(pairs),
        ..Series::default()
    })
}
