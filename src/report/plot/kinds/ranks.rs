//! Parallel efficiency of linear solves over ranks.

use itertools::Itertools as _;

use super::common::{beyond, by_key, differing, family, key_without, of_machine, or_matrix};
use super::{Kind, Plot};
use crate::base::units::plural;
use crate::config::marks::{Marks, Spacing};
use crate::record::Record;
use crate::report::batch::{Batches, key};
use crate::report::plot::{Axis, Figure, LeftOut, Names, Origin, Panel, Series};

pub(super) const KIND: Kind = Kind {
    name: "ranks",
    title: "Scaling with the ranks",
    summary: "Parallel efficiency over the fewest ranks, left of the time to solution, right of one iteration: \
              of one system (strong scaling), or of systems of a generator with as many unknowns on each rank \
              (weak scaling). What the left one lacks beside the right one is setup and iterations.",
    draw,
};

/// Most lines of a figure.
const LINES: usize = 24;

/// Unknowns of a rank that count as the same, relatively.
const SAME: f64 = 0.1;

/// A case with its records on several numbers of ranks, ascending.
type Line<'a> = Vec<&'a Record>;

fn draw(batches: &Batches) -> Vec<Plot> {
    let records = batches.runs.iter().flat_map(|batch| &batch.records);
    let timed = records.filter(|r| {
        r.status.succeeded() && ranks(r) > 0 && seconds(r).iter().all(|s| s.is_finite())
    });
    let machines = by_key(timed, |r| (r.environment.cpu.clone(), r.case.backend.clone()));
    let of = |((cpu, _), records): &((String, String), Vec<&Record>)| {
        let strong = by_key(records.iter().copied(), |r| key(&r.case));
        let weak = records.iter().filter_map(|r| Some((family(&r.case.matrix)?, *r)));
        let weak = by_key(weak, |(family, r)| (family.clone(), key_without(&r.case, &["matrix"])));
        let weak = weak.into_iter().map(|(_, own)| own.into_iter().map(|(_, r)| r).collect());
        [
            plot("Strong scaling", cpu, strong.into_iter().map(|(_, own)| own).collect(), |_| 1.0),
            plot("Weak scaling", cpu, weak.filter_map(as_full).collect(), ranks_of),
        ]
    };
    machines.iter().flat_map(of).flatten().collect()
}

fn ranks(record: &Record) -> usize {
    record.division.ranks.unwrap_or(0)
}

/// Ranks whose work a record did, relative to one.
fn ranks_of(record: &Record) -> f64 {
    ranks(record) as f64
}

/// To the solution, and of an iteration.
fn seconds(record: &Record) -> [f64; 2] {
    [record.times.to_solution(1), record.times.ms_per_iteration].map(|s| s.unwrap_or(f64::NAN))
}

/// Records of systems with as many unknowns on each rank as on the fewest; none where no size grows.
fn as_full(own: Line) -> Option<Line> {
    let full = |r: &Record| r.size.n as f64 / ranks_of(r);
    let fewest = full(own.iter().min_by_key(|r| (ranks(r), r.size.n))?);
    let own = own.into_iter().filter(|r| (full(r) / fewest - 1.0).abs() <= SAME).collect_vec();
    own.iter().map(|r| r.size.n).all_equal_value().is_err().then_some(own)
}

/// By ranks, the fastest of each number.
fn ordered(mut own: Line) -> Line {
    let of = |r: &Record| (ranks(r), seconds(r)[0]);
    own.sort_by(|a, b| of(a).partial_cmp(&of(b)).expect("finite"));
    own.dedup_by_key(|r| ranks(r));
    own
}

/// Efficiencies of lines that have several numbers of ranks; `work` is that of a record beside the others of
/// its line.
fn plot(what: &str, cpu: &str, lines: Vec<Line>, work: fn(&Record) -> f64) -> Option<Plot> {
    let mut lines = lines.into_iter().map(ordered).filter(|own| own.len() > 1).collect_vec();
    let most = lines.iter().flatten().map(|r| ranks(r)).max()?;
    let asked = lines.iter().flatten().copied().collect_vec();
    let differ = differing(asked.iter().copied());
    let names = Names::of(asked);
    let called = |own: &Line| or_matrix(&own[0].case, &differ, &names);
    let left_out =
        beyond(&mut lines, LINES).iter().map(|own| LeftOut::alone(called(own))).collect();
    let panel = |y: &str, which: usize| {
        let series = lines.iter().map(|own| {
            let rate = |r: &Record| work(r) / (ranks_of(r) * seconds(r)[which]);
            let base = rate(own[0]);
            let pairs = own.iter().map(|r| (ranks_of(r), rate(r) / base)).collect();
            Series::of(called(own), pairs)
        });
        let full = Series::of("all of it", vec![(1.0, 1.0), (most as f64, 1.0)]);
        let series = series.chain([Series { origin: Origin::Limit, ..full }]).collect();
        Panel::new("", Axis::of("ranks", Spacing::Log), Axis::of(y, Spacing::Linear), series)
    };
    let panels =
        vec![panel("efficiency, time to solution", 0), panel("efficiency, one iteration", 1)];
    let caption = format!("{} on {cpu}.", plural(lines.len(), "case"));
    let figure = Figure { marks: Marks::Lines, panels, left_out, ..Figure::default() };
    Some(of_machine(format!("{what} with the ranks: {cpu}"), figure, caption))
}
