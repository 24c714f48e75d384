//! The fastest case of each system, by total time.

use crate::base::units::{plural, seconds};
use crate::config::sweep::Axis;
use crate::record::Record;
use crate::report::cells::{by_key, named, varying};

/// Settings that identify a system and the requested solution.
const SYSTEM: &[&str] = &["matrix", "read-as", "zeros", "rhs", "rtol", "kind"];

/// One line per system with several cases of which one converged.
pub(super) fn lines(records: &[Record]) -> Vec<String> {
    let (of_system, settings): (Vec<_>, Vec<_>) = varying(records.iter().map(|r| &r.case))
        .into_iter()
        .partition(|axis| SYSTEM.contains(&axis.name));
    let systems = by_key(records, |r| named(&of_system, &r.case));
    systems.iter().filter_map(|(name, group)| line(name, group, &settings)).collect()
}

fn line(system: &str, group: &[&Record], settings: &[&Axis]) -> Option<String> {
    if group.len() < 2 {
        return None;
    }
    let converged = || group.iter().filter(|r| r.status.succeeded() && r.times.total_s.is_some());
    let totals = converged().filter_map(|r| Some((*r, r.times.total_s?)));
    let (best, total) = totals.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let highest = bounds(best)?.1;
    let near = |r: &&&Record| {
        !std::ptr::eq(**r, best) && bounds(r).is_some_and(|(lowest, _)| lowest <= highest)
    };
    let equal = match converged().filter(near).count() {
        0 => String::new(),
        others => format!("; the intervals of {} reach it", plural(others, "other case")),
    };
    let of = if system.is_empty() { String::new() } else { format!(" of {system}") };
    let (what, total) = (named(settings, &best.case), seconds(total));
    Some(format!("fastest{of}: {what}, {total} for setup and solve{equal}"))
}

/// The total time at both ends of the interval of the solve.
fn bounds(record: &Record) -> Option<(f64, f64)> {
    let times = &record.times;
    let (total, solve) = (times.total_s?, times.solve_s?);
    let at = |end: Option<f64>| total - solve + end.unwrap_or(solve);
    Some((at(times.solve_low_s), at(times.solve_high_s)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::status::Status;
    use crate::case::Case;
    use crate::record::samples::record;

    fn of(matrix: &str, fill: usize, solve: f64, within: f64) -> Record {
        let case = Case { matrix: matrix.into(), fill, ..Case::default() };
        let mut record = record(case, 9, solve);
        record.times.setup_s = Some(0.5);
        record.times.total_s = Some(0.5 + solve);
        record.times.solve_low_s = Some(solve - within);
        record.times.solve_high_s = Some(solve + within);
        record
    }

    #[test]
    fn the_fastest_case_is_named_by_what_varies() {
        let mut records = vec![of("p", 0, 2.0, 0.1), of("p", 1, 1.5, 0.1), of("p", 2, 0.1, 0.0)];
        records[2].status = Status::Stagnated;
        let said = "fastest: k 1, 2.000 s for setup and solve";
        assert_eq!(lines(&records), [said]);
        records[0].times.solve_low_s = Some(1.6);
        assert_eq!(lines(&records), [format!("{said}; the intervals of 1 other case reach it")]);
        assert!(lines(&records[..1]).is_empty());
        for record in &mut records {
            record.status = Status::Breakdown;
        }
        assert!(lines(&records).is_empty());
    }

    #[test]
    fn every_system_has_its_own() {
        let records = [("p", 0, 2.0), ("q", 0, 0.25), ("p", 1, 1.5), ("q", 1, 0.5), ("r", 0, 0.5)]
            .map(|(matrix, fill, solve)| of(matrix, fill, solve, 0.0));
        assert_eq!(
            lines(&records),
            [
                "fastest of matrix p: k 1, 2.000 s for setup and solve",
                "fastest of matrix q: k 0, 750.0 ms for setup and solve"
            ]
        );
    }
}
