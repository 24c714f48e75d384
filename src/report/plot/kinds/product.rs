//! Products in different storage formats.

use super::common::{by_key, differing, name, of_batch, short, without};
use super::{Kind, Plot};
use crate::base::units::plural;
use crate::case::RunKind;
use crate::config::marks::{Marks, Spacing};
use crate::record::Record;
use crate::report::batch::Batch;
use crate::report::plot::{Axis, Figure, LeftOut, Names, Panel, Series};

pub(super) const KIND: Kind = Kind {
    name: "product",
    title: "Products by storage format",
    summary: "Operations per second of y = A x (left, two for each stored entry of the matrix) and the \
              bandwidth in percent of that of a copy (right), against the stored entries, a panel for \
              each backend. Formats with fewer bytes per entry can be faster at the same percentage.",
    draw: |batches| batches.runs.iter().filter_map(plot).collect(),
};

/// Most series of a panel.
const SERIES: usize = 28;

/// Whether a matrix was multiplied in blocks of several sizes: at one place of the axis.
fn in_several_block_sizes(records: &[&Record]) -> bool {
    let by_matrix = by_key(records.iter().copied(), |r| r.case.matrix.clone());
    let differ = |of: &[&Record]| of.iter().any(|r| r.case.block_size != of[0].case.block_size);
    by_matrix.iter().any(|(_, of)| differ(of))
}

fn plot(batch: &Batch) -> Option<Plot> {
    let has = |r: &&Record| {
        r.case.kind == RunKind::Spmv && r.traffic.spmv_gflops.is_some() && r.size.nnz > 0
    };
    let records: Vec<&Record> = batch.records.iter().filter(has).collect();
    let mut aside = vec!["matrix", "backend"];
    if !in_several_block_sizes(&records) {
        aside.push("block-size");
    }
    let differ = without(&differing(records.iter().copied()), &aside);
    let names = Names::of(&batch.records);
    let (mut panels, mut left_out) = (Vec::new(), Vec::new());
    for (backend, of_backend) in by_key(records.iter().copied(), |r| r.case.backend.clone()) {
        let variants = by_key(of_backend, |r| name(&r.case, &differ, &names));
        let (mut rates, mut shares) = (Vec::new(), Vec::new());
        for (i, (variant, mut own)) in variants.into_iter().enumerate() {
            own.sort_by_key(|r| r.size.nnz);
            let variant = if variant.is_empty() { backend.clone() } else { variant };
            if i >= SERIES {
                left_out.push(LeftOut { panel: backend.clone(), series: short(&variant) });
                continue;
            }
            let nnz = |r: &Record| r.size.nnz as f64;
            let of = |value: fn(&Record) -> Option<f64>| {
                own.iter().filter_map(|r| Some((nnz(r), value(r)?))).collect::<Vec<_>>()
            };
            rates.push(Series::of(short(&variant), of(|r| r.traffic.spmv_gflops)));
            let share = of(|r| r.traffic.spmv_percent_of_bandwidth);
            shares.push(Series::of(short(&variant), share));
        }
        shares.retain(|s| !s.pairs().is_empty());
        if !shares.is_empty() {
            shares.push(Series::limit("copy", 100.0));
        }
        let pairs = [("GFLOP/s", rates), ("percent of copy bandwidth", shares)];
        panels.extend(pairs.into_iter().filter(|(_, series)| !series.is_empty()).map(
            |(y, series)| {
                let x = Axis::of("stored entries", Spacing::Log);
                Panel::new(&*backend, x, Axis::of(y, Spacing::Linear), series)
            },
        ));
    }
    if panels.is_empty() {
        return None;
    }
    let count = plural(records.len(), "product");
    let caption = format!("{count} of {}; {}.", batch.name, batch.devices());
    let marks = Marks::Scatter;
    let figure = Figure { marks, panels, columns: 2, left_out, ..Figure::default() };
    Some(of_batch(batch, "Products", figure, caption))
}
