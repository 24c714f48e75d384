//! Times against the size of the system.

use itertools::Itertools as _;

use super::common::{
    beyond, by_key, differing, family, key_without, name, of_batch, repetitions, short,
    solve_interval, without,
};
use super::{Kind, Plot};
use crate::base::units::plural;
use crate::case::RunKind;
use crate::config::marks::{Marks, Spacing};
use crate::record::Record;
use crate::report::batch::Batch;
use crate::report::plot::{Axis, Figure, LeftOut, Names, Panel, Series};

pub(super) const KIND: Kind = Kind {
    name: "size",
    title: "Scaling with the size",
    summary: "Left the time of the solve, right what one unknown takes in one iteration, against the \
              unknowns of systems that one generator makes. A flat line on the right is time in \
              proportion to the size; it falls where a small system leaves the machine idle and rises \
              where a cache becomes too small.",
    draw: |batches| batches.runs.iter().filter_map(plot).collect(),
};

/// Sizes from which on a line says something.
const ENOUGH: usize = 3;

/// Most lines.
const LINES: usize = 24;

fn plot(batch: &Batch) -> Option<Plot> {
    let fits = |r: &&Record| {
        r.case.kind == RunKind::Solve && r.status.succeeded() && r.size.n > 0 && time(r).is_some()
    };
    let records = batch.records.iter().filter(fits);
    let with_family = records.filter_map(|r| Some((family(&r.case.matrix)?, r)));
    let mut lines =
        by_key(with_family, |(family, r)| (family.clone(), key_without(&r.case, &["matrix"])));
    lines.retain(|(_, own)| own.iter().map(|(_, r)| r.size.n).unique().count() >= ENOUGH);
    if lines.is_empty() {
        return None;
    }
    let rest = beyond(&mut lines, LINES);
    let used = || lines.iter().flat_map(|(_, own)| own.iter().map(|(_, r)| *r));
    let all = lines.iter().chain(&rest);
    let asked = all.clone().flat_map(|(_, own)| own.iter().map(|(_, r)| *r));
    let differ = without(&differing(asked), &["matrix"]);
    let families = by_key(all, |((family, _), _)| family.clone()).len();
    let names = Names::of(&batch.records);
    let called = |family: &str, r: &Record| {
        let settings = name(&r.case, &differ, &names);
        let name = if settings.is_empty() { &r.case.backend } else { &settings };
        short(&if families > 1 { format!("{name}, {family}") } else { name.clone() })
    };
    let (mut times, mut each) = (Vec::new(), Vec::new());
    for ((family, _), own) in &lines {
        let own = own.iter().map(|(_, r)| *r).sorted_by_key(|r| r.size.n).collect_vec();
        let name = called(family, own[0]);
        let n = |r: &Record| r.size.n as f64;
        let pairs = own.iter().filter_map(|r| Some((n(r), 1e3 * time(r)?))).collect();
        let spread = own.iter().map(|r| {
            solve_interval(r).map_or((f64::NAN, f64::NAN), |(low, high)| (1e3 * low, 1e3 * high))
        });
        times.push(Series { spread: spread.collect(), ..Series::of(&*name, pairs) });
        let per_unknown = |r: &&Record| Some((n(r), 1e6 * r.times.ms_per_iteration? / n(r)));
        each.push(Series::of(name, own.iter().filter_map(per_unknown).collect()));
    }
    let panel = |y: &str, series| {
        Panel::new("", Axis::of("unknowns", Spacing::Log), Axis::of(y, Spacing::Log), series)
    };
    let panels = vec![
        panel("time of the solve (ms)", times),
        panel("time per unknown and iteration (ns)", each),
    ];
    let (count, devices) = (plural(lines.len(), "line"), batch.devices());
    let caption = format!("{count} of {}, {}; {devices}.", batch.name, repetitions(used()));
    let left_out = rest.iter().map(|((family, _), own)| LeftOut::alone(called(family, own[0].1)));
    let left_out = left_out.collect();
    let figure = Figure { marks: Marks::Lines, panels, left_out, ..Figure::default() };
    Some(of_batch(batch, "Scaling with the size", figure, caption))
}

fn time(record: &Record) -> Option<f64> {
    record.times.solve_s.filter(|s| *s > 0.0)
}
