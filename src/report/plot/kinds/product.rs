//! Products in different storage formats.

use super::common::{axis, by_key, differing, name, series, short, without};
use super::{Kind, Plot};
use crate::base::units::plural;
use crate::case::RunKind;
use crate::config::marks::{Marks, Spacing};
use crate::record::Record;
use crate::report::batch::Batch;
use crate::report::plot::{Figure, LeftOut, Names, Origin, Panel, Points, Series};

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
            rates.push(series(short(&variant), of(|r| r.traffic.spmv_gflops)));
            shares.push(series(short(&variant), of(|r| r.traffic.spmv_percent_of_bandwidth)));
        }
        shares.retain(|s| matches!(&s.points, Points::Pairs(p) if !p.is_empty()));
        if !shares.is_empty() {
            shares.push(Series {
                name: "copy".into(),
                origin: Origin::Limit,
                points: Points::Level(100.0),
                ..Series::default()
            });
        }
        for (y, series) in [("GFLOP/s", rates), ("percent of copy bandwidth", shares)] {
            if !series.is_empty() {
                panels.push(Panel {
                    title: backend.clone(),
                    x: axis("stored entries", Spacing::Log),
                    y: axis(y, Spacing::Linear),
                    series,
                });
            }
        }
    }
    if panels.is_empty() {
        return None;
    }
    let caption =
        format!("{} of {}; {}.", plural(records.len(), "product"), batch.name, batch.devices());
    let title = format!("Products: {}", batch.title());
    let source = vec![batch.devices()];
    Some(Plot {
        figure: Figure { title, marks: Marks::Scatter, panels, columns: 2, source, left_out },
        caption,
    })
}
