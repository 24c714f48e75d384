//! How near operations are to what the machine allows.

use super::common::{axis, by_key, fitted, series, short};
use super::{Kind, Plot};
use crate::base::units::plural;
use crate::config::marks::{Marks, Spacing};
use crate::record::Record;
use crate::report::batch::{Batch, Batches};
use crate::report::plot::{Axis, Figure, LeftOut, Origin, Panel, Points, Series};

pub(super) const KIND: Kind = Kind {
    name: "roof",
    title: "Percent of the roof",
    summary: "How near each operation is to what the machine allows: the bytes that it must move at \
              least at the measured copy bandwidth, for triangular solves and factorisations on a GPU \
              the larger of that and levels times the CTA-to-CTA latency, over its time. Bars are \
              medians over the runs of a file, whiskers reach from the least to the largest. Data \
              that stay in a cache, and levels inside a multiprocessor, can exceed 100 %.",
    draw,
};

/// An operation with its percentage.
type Operation = (&'static str, fn(&Record) -> Option<f64>);

const OPERATIONS: [Operation; 4] = [
    ("product", |r| {
        r.traffic.spmv_percent_of_bandwidth.or_else(|| of_copy(r, r.traffic.spmv_gbps))
    }),
    ("application of the preconditioner", |r| r.traffic.percent_of_roof),
    ("factorisation", |r| r.traffic.numeric_percent_of_roof),
    ("orthogonalisation of GMRES", |r| of_copy(r, r.traffic.orthogonalisation_gbps)),
];

/// Most files of a figure.
const FILES: usize = 30;

fn of_copy(record: &Record, gbps: Option<f64>) -> Option<f64> {
    Some(100.0 * gbps? / record.traffic.copy_gbps.filter(|copy| *copy > 0.0)?)
}

fn draw(batches: &Batches) -> Vec<Plot> {
    let host = |batch: &&Batch| batch.records.first().map(|r| r.environment.cpu.clone());
    let machines = by_key(&batches.runs, host);
    machines.iter().filter_map(|(cpu, own)| plot(cpu.as_deref()?, own)).collect()
}

fn plot(cpu: &str, batches: &[&Batch]) -> Option<Plot> {
    let (mut panels, mut count, mut left_out) = (Vec::new(), 0, Vec::new());
    for (what, percent) in OPERATIONS {
        // of each file and backend, sorted
        let mut values: Vec<(&str, String, Vec<f64>)> = Vec::new();
        for batch in batches {
            for (backend, records) in by_key(&batch.records, |r| r.case.backend.clone()) {
                let own = records.iter().filter(|r| r.status.succeeded());
                let own = own.filter_map(|r| percent(r)).filter(|v| v.is_finite() && *v > 0.0);
                let mut own: Vec<f64> = own.collect();
                own.sort_by(f64::total_cmp);
                if !own.is_empty() {
                    values.push((&batch.name, backend, own));
                }
            }
        }
        let mut files: Vec<&str> = values.iter().map(|(file, ..)| *file).collect();
        files.dedup();
        if files.is_empty() {
            continue;
        }
        let rest = files.split_off(FILES.min(files.len()));
        let panel = || what.to_owned();
        left_out.extend(rest.iter().map(|file| LeftOut { panel: panel(), series: short(file) }));
        let mut all = Vec::new();
        for (backend, own) in by_key(&values, |(_, backend, _)| backend.clone()) {
            let (mut pairs, mut spread) = (Vec::new(), Vec::new());
            for (file, _, sorted) in own {
                let Some(at) = files.iter().position(|f| f == file) else { continue };
                count += sorted.len();
                pairs.push((at as f64, sorted[sorted.len() / 2]));
                spread.push((sorted[0], sorted[sorted.len() - 1]));
            }
            all.push(Series { spread, ..series(short(&backend), pairs) });
        }
        all.push(Series {
            name: "roof".into(),
            origin: Origin::Limit,
            points: Points::Level(100.0),
            ..Series::default()
        });
        let categories = files.iter().map(|file| short(file)).collect();
        panels.push(Panel {
            title: what.to_owned(),
            x: Axis { categories, ..Axis::default() },
            y: axis("percent of the roof", Spacing::Linear),
            series: all,
        });
    }
    if panels.is_empty() {
        return None;
    }
    let caption = format!(
        "{} in {} of {cpu} and its GPUs.",
        plural(count, "measurement"),
        plural(batches.len(), "file"),
    );
    let title = format!("Percent of the roof: {cpu}");
    let source = vec![caption.clone()];
    let figure =
        Figure { title, marks: Marks::Bars, panels, source, left_out, ..Figure::default() };
    Some(Plot { figure: fitted(figure), caption })
}
