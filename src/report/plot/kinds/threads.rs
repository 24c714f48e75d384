//! Speedup of a backend with more threads.

use super::common::{beyond, by_key, differing, of_machine, or_matrix, repetitions, without};
use super::{Kind, Plot};
use crate::base::units::plural;
use crate::case::Case;
use crate::compute;
use crate::config::marks::{Marks, Spacing};
use crate::record::Record;
use crate::report::batch::{Batches, key};
use crate::report::plot::{Axis, Figure, LeftOut, Names, Origin, Panel, Series};

pub(super) const KIND: Kind = Kind {
    name: "threads",
    title: "Scaling with the threads",
    summary: "Time with the fewest threads over the time with more, of the same case on the same \
              processor. The thin line is what it would be if each thread did its part.",
    draw,
};

/// Most lines of a figure.
const LINES: usize = 24;

fn draw(batches: &Batches) -> Vec<Plot> {
    let records = batches.runs.iter().flat_map(|batch| &batch.records);
    let timed = records.filter(|r| {
        r.status.succeeded()
            && time(r).is_some()
            && !compute::on_gpu(&r.case.backend)
            && r.environment.threads > 0
    });
    // one thread of `cpu` and several of `cpu-mt` are one line
    let line = |r: &&Record| key(&Case { threads: 0, ..r.case.on("cpu-mt") });
    let machines = by_key(timed, |r| r.environment.cpu.clone());
    let of = |(cpu, records): &(String, Vec<&Record>)| {
        let mut lines = by_key(records.iter().copied(), line);
        for (_, own) in &mut lines {
            own.sort_by(|a, b| {
                let threads = |r: &Record| r.environment.threads;
                threads(a)
                    .cmp(&threads(b))
                    .then(time(a).partial_cmp(&time(b)).unwrap_or(std::cmp::Ordering::Equal))
            });
            own.dedup_by_key(|r| r.environment.threads);
        }
        // two counts of threads are a comparison of backends
        lines.retain(|(_, own)| own.len() > 2);
        (!lines.is_empty()).then(|| plot(cpu, lines))
    };
    machines.iter().filter_map(of).collect()
}

fn time(record: &Record) -> Option<f64> {
    record.times.solve_s.or(record.traffic.spmv_s).filter(|s| *s > 0.0)
}

fn plot(cpu: &str, mut lines: Vec<(String, Vec<&Record>)>) -> Plot {
    let asked: Vec<&Record> = lines.iter().flat_map(|(_, own)| own.iter().copied()).collect();
    let differ = without(&differing(asked.iter().copied()), &["backend", "threads"]);
    let names = Names::of(asked);
    let called = |case: &Case| or_matrix(case, &differ, &names);
    let left_out = beyond(&mut lines, LINES).into_iter();
    let left_out = left_out.map(|(_, own)| LeftOut::alone(called(&own[0].case))).collect();
    let (mut all, mut most) = (Vec::new(), 1.0_f64);
    for (_, own) in &lines {
        let Some(first) = time(own[0]) else { continue };
        let base = own[0].environment.threads as f64;
        let point = |r: &&Record| Some((r.environment.threads as f64, base * first / time(r)?));
        let pairs: Vec<(f64, f64)> = own.iter().filter_map(point).collect();
        most = pairs.iter().fold(most, |m, (threads, _)| m.max(*threads));
        all.push(Series::of(called(&own[0].case), pairs));
    }
    let ideal = vec![(1.0, 1.0), (most, most)];
    all.push(Series { origin: Origin::Limit, ..Series::of("in proportion", ideal) });
    let (x, y) = (Axis::of("threads", Spacing::Log), Axis::of("speedup", Spacing::Log));
    let used = lines.iter().flat_map(|(_, own)| own.iter().copied());
    let caption = format!("{} on {cpu}, {}.", plural(lines.len(), "case"), repetitions(used));
    let (marks, panels) = (Marks::Lines, vec![Panel::new("", x, y, all)]);
    let figure = Figure { marks, panels, left_out, ..Figure::default() };
    of_machine(format!("Scaling with the threads: {cpu}"), figure, caption)
}
