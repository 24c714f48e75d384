//! The roofline of products and applications of preconditioners.

use itertools::Itertools as _;

use super::common::{by_key, of_machine, short};
use super::{Kind, Plot};
use crate::base::units::plural;
use crate::config::marks::{Marks, Spacing};
use crate::record::Record;
use crate::report::batch::Batches;
use crate::report::plot::{Axis, Figure, Origin, Panel, Series};

pub(super) const KIND: Kind = Kind {
    name: "roofline",
    title: "Rooflines",
    summary: "Operations per second of products (two for each stored entry) and of applications of the \
              preconditioner (two for each entry of the factors) over the operations per byte that must \
              move (Williams, Waterman and Patterson 2009). The thin lines are the measured copy \
              bandwidth of each backend; peaks of arithmetic are not measured, none of these operations \
              comes near them.",
    draw,
};

/// Most points of a series; a figure of more says no more.
const MOST: usize = 400;

/// What is called so, and its operations per byte and per second.
type Operation = (&'static str, fn(&Record) -> Option<(f64, f64)>);

fn product(r: &Record) -> Option<(f64, f64)> {
    let flop = 2.0 * r.size.nnz as f64;
    rate(flop, r.traffic.spmv_bytes, r.traffic.spmv_s)
}

fn application(r: &Record) -> Option<(f64, f64)> {
    let flop = 2.0 * r.factor.factor_entries? as f64;
    rate(flop, r.traffic.apply_bytes, r.traffic.apply_s)
}

/// Operations per byte, and 1e9 operations per second.
fn rate(flop: f64, bytes: Option<usize>, seconds: Option<f64>) -> Option<(f64, f64)> {
    let point = (flop / bytes? as f64, flop / seconds? / 1e9);
    let fits = |v: f64| v.is_finite() && v > 0.0;
    (fits(point.0) && fits(point.1)).then_some(point)
}

fn draw(batches: &Batches) -> Vec<Plot> {
    let records = batches.runs.iter().flat_map(|batch| &batch.records);
    let machines = by_key(records.filter(|r| r.status.succeeded()), |r| r.environment.cpu.clone());
    machines.iter().filter_map(|(cpu, records)| plot(cpu, records)).collect()
}

fn plot(cpu: &str, records: &[&Record]) -> Option<Plot> {
    let backends = by_key(records.iter().copied(), |r| r.case.backend.clone());
    let operations: [Operation; 2] = [("products", product), ("preconditioners", application)];
    let (mut panels, mut count) = (Vec::new(), 0);
    for (what, point) in operations {
        let (mut all, mut roofs) = (Vec::new(), Vec::new());
        let (mut left, mut right) = (f64::INFINITY, 0.0_f64);
        for (backend, records) in &backends {
            let points = records.iter().filter_map(|r| point(r));
            let points = points.sorted_by(|a, b| a.0.total_cmp(&b.0));
            count += points.len();
            let every = points.len().div_ceil(MOST).max(1);
            let points = points.step_by(every).collect_vec();
            let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
            (left, right) = (left.min(first.0), right.max(last.0));
            all.push(Series::of(short(backend), points));
            let copies = records.iter().filter_map(|r| r.traffic.copy_gbps);
            let copy = copies.filter(|c| c.is_finite()).fold(0.0_f64, f64::max);
            if copy > 0.0 {
                roofs.push(copy);
            }
        }
        // backends of one device share a line
        roofs.sort_by(f64::total_cmp);
        roofs.dedup_by(|a, b| *a < 1.1 * *b);
        let (from, to) = (left / 1.3, right * 1.3);
        for copy in roofs {
            let line = vec![(from, copy * from), (to, copy * to)];
            let labels = vec![format!("{copy:.0} GB/s"), String::new()];
            let name = "measured copy bandwidth";
            all.push(Series { origin: Origin::Limit, labels, ..Series::of(name, line) });
        }
        if all.iter().any(|s| s.origin == Origin::Measured) {
            let x = Axis::of("operations per byte", Spacing::Log);
            let y = Axis::of("1e9 operations per second", Spacing::Log);
            panels.push(Panel::new(what, x, y, all));
        }
    }
    if panels.is_empty() {
        return None;
    }
    let caption = format!(
        "{} on {cpu} and its GPUs; of more than {MOST} of a backend every so many is shown.",
        plural(count, "measurement")
    );
    let figure = Figure { marks: Marks::Scatter, panels, ..Figure::default() };
    Some(of_machine(format!("Roofline: {cpu} and its GPUs"), figure, caption))
}
