//! Speedup of a backend with more threads.

use super::common::{axis, by_key, differing, name, repetitions, series, short, without};
use super::{Kind, Plot};
use crate::base::units::plural;
use crate::case::Case;
use crate::compute;
use crate::config::marks::{Marks, Spacing};
use crate::record::Record;
use crate::report::batch::{Batches, key};
use crate::report::plot::{Figure, LeftOut, Names, Origin, Panel, Series};

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
    let machines = by_key(timed, |r| r.environment.cpu.clone());
    let of = |(cpu, records): &(String, Vec<&Record>)| {
        let mut lines = by_key(records.iter().copied(), |r| key(&r.case.on("cpu-mt")));
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
        (!lines.is_empty()).then(|| plot(cpu, &lines))
    };
    machines.iter().filter_map(of).collect()
}

fn time(record: &Record) -> Option<f64> {
    record.times.solve_s.or(record.traffic.spmv_s).filter(|s| *s > 0.0)
}

fn plot(cpu: &str, lines: &[(String, Vec<&Record>)]) -> Plot {
    let used = || lines.iter().take(LINES).flat_map(|(_, own)| own.iter().copied());
    let asked = || lines.iter().flat_map(|(_, own)| own.iter().copied());
    let differ = without(&differing(asked()), &["backend"]);
    let names = Names::of(asked());
    let called = |case: &Case| {
        let label = name(case, &differ, &names);
        short(if label.is_empty() { names.get(&case.matrix) } else { label.as_str() })
    };
    let left_out = lines
        .iter()
        .skip(LINES)
        .map(|(_, own)| LeftOut { panel: String::new(), series: called(&own[0].case) });
    let (mut all, mut most) = (Vec::new(), 1.0_f64);
    for (_, own) in lines.iter().take(LINES) {
        let Some(first) = time(own[0]) else { continue };
        let base = own[0].environment.threads as f64;
        let pairs: Vec<(f64, f64)> = own
            .iter()
            .filter_map(|r| Some((r.environment.threads as f64, base * first / time(r)?)))
            .collect();
        most = pairs.iter().fold(most, |m, (threads, _)| m.max(*threads));
        all.push(series(called(&own[0].case), pairs));
    }
    let ideal = vec![(1.0, 1.0), (most, most)];
    all.push(Series { origin: Origin::Limit, ..series("in proportion", ideal) });
    let panel = Panel {
        x: axis("threads", Spacing::Log),
        y: axis("speedup", Spacing::Log),
        series: all,
        ..Panel::default()
    };
    let caption =
        format!("{} on {cpu}, {}.", plural(lines.len().min(LINES), "case"), repetitions(used()));
    let title = format!("Scaling with the threads: {cpu}");
    let source = vec![caption.clone()];
    Plot {
        figure: Figure {
            title,
            marks: Marks::Lines,
            panels: vec![panel],
            source,
            left_out: left_out.collect(),
            ..Figure::default()
        },
        caption,
    }
}
