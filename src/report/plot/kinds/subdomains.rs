//! Iterations against the number of subdomains.

use itertools::Itertools as _;

use super::common::{beyond, by_key, differing, key_without, of_batch, or_matrix, without};
use super::{Kind, Plot};
use crate::base::units::plural;
use crate::config::marks::{Marks, Spacing};
use crate::record::Record;
use crate::report::batch::Batch;
use crate::report::plot::{Axis, Figure, LeftOut, Names, Panel, Series};

pub(super) const KIND: Kind = Kind {
    name: "subdomains",
    title: "Iterations by subdomains",
    summary: "Iterations against the number of subdomains of one system. A flat line keeps the convergence of one \
              domain on any number of ranks.",
    draw: |batches| batches.runs.iter().filter_map(plot).collect(),
};

/// Most lines.
const LINES: usize = 24;

fn count(record: &Record) -> usize {
    record.division.subdomains_used.unwrap_or(0)
}

fn plot(batch: &Batch) -> Option<Plot> {
    let divided = batch.records.iter().filter(|r| r.status.succeeded() && count(r) > 0);
    let mut lines = by_key(divided, |r| key_without(&r.case, &["subdomains"]));
    lines.retain(|(_, own)| !own.iter().map(|r| count(r)).all_equal());
    if lines.is_empty() {
        return None;
    }
    let asked = lines.iter().flat_map(|(_, own)| own.iter().copied()).collect_vec();
    let differ = without(&differing(asked), &["subdomains"]);
    let names = Names::of(&batch.records);
    let called = |r: &Record| or_matrix(&r.case, &differ, &names);
    let rest = beyond(&mut lines, LINES);
    let left_out = rest.iter().map(|(_, own)| LeftOut::alone(called(own[0]))).collect();
    let series = lines.iter().map(|(_, own)| {
        let own = own.iter().sorted_by_key(|r| count(r));
        let pairs = own.clone().map(|r| (count(r) as f64, r.convergence.iterations as f64));
        Series::of(called(own.clone().next().expect("several")), pairs.collect())
    });
    let (x, y) = (Axis::of("subdomains", Spacing::Log), Axis::of("iterations", Spacing::Log));
    let panels = vec![Panel::new("", x, y, series.collect())];
    let caption = format!("{} of {}.", plural(lines.len(), "line"), batch.name);
    let figure = Figure { marks: Marks::Lines, panels, left_out, ..Figure::default() };
    Some(of_batch(batch, "Iterations by subdomains", figure, caption))
}
