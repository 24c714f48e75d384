//! The figure of a scaling experiment.

use crate::config::marks::{Marks, Spacing};
use crate::config::obstacle::axes::AXES;
use crate::record::obstacle::Record;
use crate::report::plot::{Axis, Figure, Origin, Panel, Points, Series};

/// Points relaxed in a second against nodes: a series for each backend, method and mode, and for runs that
/// share one grid its m. Runs without a time are left out.
pub fn scaling(records: &[Record], title: Option<&str>) -> Figure {
    let mut series: Vec<Series> = Vec::new();
    let mut source: Vec<String> = Vec::new();
    for r in records {
        let Some(ms) = r.cost.ms_per_sweep else { continue };
        let point = (r.iteration.nodes as f64, r.iteration.points as f64 / ms / 1e6);
        let name = name(r, records);
        let at = series.iter().position(|s| s.name == name).unwrap_or_else(|| {
            let points = Points::Pairs(Vec::new());
            series.push(Series { name, origin: Origin::Measured, points, ..Series::default() });
            series.len() - 1
        });
        if let Points::Pairs(points) = &mut series[at].points {
            points.push(point);
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        let line = format!("{}, {}", r.environment.device, r.environment.revision);
        if !source.contains(&line) {
            source.push(line);
        }
    }
    let axis =
        |label: &str| Axis { label: label.into(), spacing: Spacing::Log, categories: Vec::new() };
    Figure {
        title: title.unwrap_or("Scaling").to_owned(),
        marks: Marks::Lines,
        panels: vec![Panel {
            title: String::new(),
            x: axis("nodes"),
            y: axis("points relaxed per second (1e9)"),
            series,
        }],
        source,
        ..Figure::default()
    }
}

/// `cuda sync, m = 800`; without the m where it differs from run to run of a series.
fn name(record: &Record, records: &[Record]) -> String {
    let case = &record.case;
    let text = |name: &str| {
        AXES.iter().find(|a| a.name == name).map(|a| (a.text)(case)).unwrap_or_default()
    };
    let alike = |other: &&Record| {
        (other.case.m, &other.case.backend, other.case.mode, other.case.method)
            == (case.m, &case.backend, case.mode, case.method)
    };
    let name = format!("{} {} {}", case.backend, text("method"), text("mode"));
    if records.iter().filter(alike).count() > 1 {
        format!("{name}, m = {}", case.m)
    } else {
        format!("{name}, as many points on each node")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::obstacle::Case;

    #[test]
    fn runs_on_one_grid_are_a_series_and_grids_that_grow_with_the_nodes_another() {
        let record = |m: usize, nodes: usize, ms: f64| {
            let mut r = Record { case: Case { m, ..Case::default() }, ..Record::default() };
            r.iteration.nodes = nodes;
            r.iteration.points = m.pow(3);
            r.cost.ms_per_sweep = Some(ms);
            r
        };
        let records =
            [record(100, 2, 0.5), record(100, 1, 1.0), record(80, 1, 1.0), record(126, 4, 1.0)];
        let figure = scaling(&records, Some("t"));
        let series = &figure.panels[0].series;
        let names: Vec<&str> = series.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(
            names,
            ["cpu jacobi sync, m = 100", "cpu jacobi sync, as many points on each node"]
        );
        assert_eq!(series[0].points, Points::Pairs(vec![(1.0, 1.0), (2.0, 2.0)]));
        let Points::Pairs(grown) = &series[1].points else { panic!("pairs") };
        assert_eq!((grown.len(), grown[0]), (2, (1.0, 0.512)));
    }
}
