//! How near operations are to what the machine allows.

use itertools::Itertools as _;

use super::common::{beyond, by_key, fitted, of_machine, short};
use super::{Kind, Plot};
use crate::base::units::plural;
use crate::config::marks::{Marks, Spacing};
use crate::record::Record;
use crate::report::batch::{Batch, Batches};
use crate::report::plot::{Axis, Figure, LeftOut, Panel, Series};

pub(super) const KIND: Kind = Kind {
    name: "roof",
    title: "Percent of the roof",
    summary: "How near each operation is to what the machine allows: the bytes that it must move at \
              least at the measured copy bandwidth, over its time. Bars are medians over the runs of a \
              file, whiskers reach from the least to the largest. Data that stay in a cache can exceed \
              100 %.",
    draw,
};

/// An operation with its percentage.
type Operation = (&'static str, fn(&Record) -> Option<f64>);

const OPERATIONS: [Operation; 4] = [
    ("product", |r| {
        r.traffic.spmv_percent_of_bandwidth.or_else(|| of_copy(r, r.traffic.spmv_gbps))
    }),
    ("application of the preconditioner", |r| r.traffic.percent_of_bandwidth),
    ("factorisation", |r| r.traffic.numeric_percent_of_bandwidth),
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
                let own = own.sorted_by(f64::total_cmp).collect_vec();
                if !own.is_empty() {
                    values.push((&batch.name, backend, own));
                }
            }
        }
        let mut files = values.iter().map(|(file, ..)| *file).dedup().collect_vec();
        if files.is_empty() {
            continue;
        }
        let named = |file: &str| LeftOut { panel: what.to_owned(), series: short(file) };
        left_out.extend(beyond(&mut files, FILES).into_iter().map(named));
        let mut all = Vec::new();
        for (backend, own) in by_key(&values, |(_, backend, _)| backend.clone()) {
            let (mut pairs, mut spread) = (Vec::new(), Vec::new());
            for (file, _, sorted) in own {
                let Some(at) = files.iter().position(|f| f == file) else { continue };
                count += sorted.len();
                pairs.push((at as f64, sorted[sorted.len() / 2]));
                spread.push((sorted[0], sorted[sorted.len() - 1]));
            }
            all.push(Series { spread, ..Series::of(short(&backend), pairs) });
        }
        all.push(Series::limit("roof", 100.0));
        let categories = files.iter().map(|file| short(file)).collect();
        let x = Axis { categories, ..Axis::default() };
        panels.push(Panel::new(what, x, Axis::of("percent of the roof", Spacing::Linear), all));
    }
    if panels.is_empty() {
        return None;
    }
    let (count, files) = (plural(count, "measurement"), plural(batches.len(), "file"));
    let caption = format!("{count} in {files} of {cpu} and its GPUs.");
    let figure = fitted(Figure { marks: Marks::Bars, panels, left_out, ..Figure::default() });
    Some(of_machine(format!("Percent of the roof: {cpu}"), figure, caption))
}
