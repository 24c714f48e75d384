//! The figure of a scaling experiment.

use itertools::Itertools as _;

use crate::base::parse::choice_name;
use crate::config::marks::{Marks, Spacing};
use crate::obstacle::Case;
use crate::record::obstacle::Record;
use crate::report::cells::by_key;
use crate::report::plot::{Axis, Figure, Panel, Series};

/// Points relaxed in a second against nodes: a series for each backend, method and mode, and for runs that
/// share one grid its m. Runs without a time are left out.
pub fn scaling(records: &[Record], title: Option<&str>) -> Figure {
    let timed = records.iter().filter_map(|r| Some((r, r.cost.ms_per_sweep?)));
    let series = by_key(timed.clone(), |(r, _)| name(r, records)).into_iter().map(|(name, own)| {
        let point = |(r, ms): &(&Record, f64)| {
            (r.iteration.nodes as f64, r.iteration.points as f64 / ms / 1e6)
        };
        let points = own.iter().map(point).sorted_by(|a, b| a.0.total_cmp(&b.0));
        Series::of(name, points.collect())
    });
    let source =
        timed.map(|(r, _)| format!("{}, {}", r.environment.device, r.environment.revision));
    let source = source.unique().collect();
    let y = Axis::of("points relaxed per second (1e9)", Spacing::Log);
    let panel = Panel::new("", Axis::of("nodes", Spacing::Log), y, series.collect());
    let (title, panels) = (title.unwrap_or("Scaling").to_owned(), vec![panel]);
    Figure { title, marks: Marks::Lines, panels, source, ..Figure::default() }
}

/// `cuda sync, m = 800`; without the m where it differs from run to run of a series.
fn name(record: &Record, records: &[Record]) -> String {
    let case = &record.case;
    let key = |c: &Case| (c.m, c.backend.clone(), c.mode, c.method, c.obstacle.clone());
    let mut name =
        format!("{} {} {}", case.backend, choice_name(&case.method), choice_name(&case.mode));
    // set apart from others of its name
    if case.obstacle.contains('#') {
        name = format!("{name}, obstacle {}", case.obstacle);
    }
    if records.iter().filter(|other| key(&other.case) == key(case)).count() > 1 {
        format!("{name}, m = {}", case.m)
    } else {
        format!("{name}, as many points on each node")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_on_one_grid_are_a_series_and_grids_that_grow_with_the_nodes_another() {
        let record = |m: usize, nodes: usize, ms: f64| {
            let mut r = Record { case: Case { m, ..Case::default() }, ..Record::default() };
            r.iteration.nodes = nodes;
            r.iteration.points = m.pow(3);
            r.cost.ms_per_sweep = Some(ms);
            r
        };
        let mut records =
            [record(100, 2, 0.5), record(100, 1, 1.0), record(80, 1, 1.0), record(126, 4, 1.0)];
        let names = |records: &[Record]| {
            scaling(records, Some("t")).panels[0].series.iter().map(|s| s.name.clone()).join("; ")
        };
        let (one, other) =
            ("cpu jacobi sync, m = 100", "cpu jacobi sync, as many points on each node");
        assert_eq!(names(&records), format!("{one}; {other}"));
        let series = &scaling(&records, Some("t")).panels[0].series;
        assert_eq!(series[0].pairs(), [(1.0, 1.0), (2.0, 2.0)]);
        assert_eq!((series[1].pairs().len(), series[1].pairs()[0]), (2, (1.0, 0.512)));
        // problems that were set apart are no series together
        records[1].case.obstacle = "zero#01234567".into();
        let apart = "cpu jacobi sync, obstacle zero#01234567, as many points on each node";
        assert_eq!(names(&records), format!("{other}; {apart}"));
    }
}
