//! Performance profiles over systems (Dolan and More 2002).

use std::collections::HashMap;

use super::common::{axis, differing, grouped, key_without, name, series, short};
use super::{Kind, Plot};
use crate::base::units::plural;
use crate::case::RunKind;
use crate::config::marks::{Marks, Spacing};
use crate::record::Record;
use crate::report::batch::Batches;
use crate::report::plot::{Figure, LeftOut, Names, Panel};

pub(super) const KIND: Kind = Kind {
    name: "profile",
    title: "Performance profiles",
    summary: "For each way to solve, the share of systems (up) that it solves in at most so many times \
              (across) the time of the best way for that system (Dolan and Moré 2002). At 1 a curve \
              shows how often a way is the fastest; to the right it rises to the share of systems that \
              it solves at all. The time is that to the solution: ordering, conversion of the matrix, setup and solve.",
    draw,
};

/// Systems from which on a profile says something.
const ENOUGH: usize = 3;

/// Most curves.
const CURVES: usize = 12;

/// Ways, those that were tried on most systems, among which the curves are chosen.
const CANDIDATES: usize = 64;

/// Largest factor that is shown.
const FARTHEST: f64 = 1000.0;

/// A comparison: what it is of, the settings of a way by which it is called, and those of which the
/// best is taken; all others make the system.
const COMPARISONS: [(&str, &[&str], &[&str]); 3] = [
    ("backends", &["backend"], &["trisolve", "execution", "fgbilu-style"]),
    ("preconditioners", &["precond", "fill", "deflation", "level-rule", "block-size"], &[]),
    ("solvers", &["solver", "side", "restart", "orthogonalisation"], &[]),
];

fn draw(batches: &Batches) -> Vec<Plot> {
    let records = batches.runs.iter().flat_map(|batch| &batch.records);
    let solves =
        records.filter(|r| r.case.kind == RunKind::Solve && !r.environment.device.is_empty());
    // times of one machine compare
    let machines = grouped(solves, |r| (r.environment.cpu.clone(), r.environment.os.clone()));
    let mut plots = Vec::new();
    for ((cpu, _), records) in &machines {
        for (what, settings, best_of) in COMPARISONS {
            plots.extend(plot(what, settings, best_of, cpu, records));
        }
    }
    plots
}

/// Time to solution; infinite where the run failed.
fn seconds(record: &Record) -> f64 {
    let times = &record.times;
    let total = times.to_solution(1).or(times.solve_s).filter(|s| s.is_finite() && *s > 0.0);
    total.filter(|_| record.status.succeeded()).unwrap_or(f64::INFINITY)
}

/// The names of the ways, and the times of those that were tried on each system.
type Systems = (Vec<String>, Vec<HashMap<usize, f64>>);

fn systems(settings: &[&str], best_of: &[&str], records: &[&Record]) -> Systems {
    let (mut ways, mut places) = (Vec::new(), HashMap::new());
    let apart = [settings, best_of].concat();
    let groups = grouped(records.iter().copied(), |r| key_without(&r.case, &apart));
    let differ = differing(records.iter().copied());
    let shown: Vec<_> = differ.into_iter().filter(|s| settings.contains(&s.name)).collect();
    let mut systems = Vec::new();
    for (_, group) in groups {
        let mut times: HashMap<usize, f64> = HashMap::new();
        for record in group {
            // no matrix among them
            let name = name(&record.case, &shown, &Names::default());
            let at = *places.entry(name.clone()).or_insert_with(|| {
                ways.push(name);
                ways.len() - 1
            });
            let time = times.entry(at).or_insert(f64::INFINITY);
            *time = time.min(seconds(record));
        }
        systems.push(times);
    }
    (ways, systems)
}

/// Ways that were tried on the same systems, and these: from the way that was tried on most on, each
/// next one leaves as many as can be, and no fewer than a quarter.
fn chosen(ways: usize, systems: &[HashMap<usize, f64>]) -> (Vec<usize>, Vec<&HashMap<usize, f64>>) {
    let (mut chosen, mut common): (Vec<usize>, Vec<_>) = (Vec::new(), systems.iter().collect());
    let mut tried = vec![0; ways];
    systems.iter().flat_map(HashMap::keys).for_each(|&way| tried[way] += 1);
    let mut candidates: Vec<usize> = (0..ways).collect();
    candidates.sort_by_key(|&way| std::cmp::Reverse(tried[way]));
    candidates.truncate(CANDIDATES);
    while chosen.len() < CURVES {
        let left = |way: usize| common.iter().filter(|times| times.contains_key(&way)).count();
        let others = candidates.iter().filter(|way| !chosen.contains(way));
        let others = others.map(|&way| (left(way), way));
        // of equal ones the first
        let next = others.max_by_key(|&(left, way)| (left, std::cmp::Reverse(way)));
        let Some((left, way)) = next else { break };
        if left < ENOUGH || (!chosen.is_empty() && 4 * left < common.len()) {
            break;
        }
        common.retain(|times| times.contains_key(&way));
        chosen.push(way);
    }
    (chosen, common)
}

fn plot(
    what: &str,
    settings: &[&str],
    best_of: &[&str],
    cpu: &str,
    records: &[&Record],
) -> Option<Plot> {
    let (ways, systems) = systems(settings, best_of, records);
    let (chosen, common) = chosen(ways.len(), &systems);
    // what nobody solves has no best way
    let best = |times: &HashMap<usize, f64>| {
        chosen.iter().map(|way| times[way]).fold(f64::INFINITY, f64::min)
    };
    let solved: Vec<&HashMap<usize, f64>> =
        common.into_iter().filter(|times| best(times).is_finite()).collect();
    if chosen.len() < 2 || solved.len() < ENOUGH {
        return None;
    }
    let mut profiles = Vec::new();
    for way in &chosen {
        let mut ratios: Vec<f64> = solved.iter().map(|times| times[way] / best(times)).collect();
        ratios.sort_by(f64::total_cmp);
        profiles.push((ways[*way].clone(), ratios));
    }
    let finite = profiles.iter().flat_map(|(_, ratios)| ratios).filter(|r| r.is_finite());
    let last = (1.1 * finite.fold(1.0_f64, |a, b| a.max(*b))).min(FARTHEST);
    let curves =
        profiles.iter().map(|(name, ratios)| series(short(name), distribution(ratios, last)));
    let panel = Panel {
        x: axis("time over that of the best way", Spacing::Log),
        y: axis("share of systems (%)", Spacing::Linear),
        series: curves.collect(),
        ..Panel::default()
    };
    let left_out = (0..ways.len())
        .filter(|way| !chosen.contains(way))
        .map(|way| LeftOut { panel: String::new(), series: short(&ways[way]) });
    let left_out: Vec<LeftOut> = left_out.collect();
    let left = match left_out.len() {
        0 => String::new(),
        left => format!(" {left} that were tried on other or fewer systems are left out."),
    };
    let caption = format!(
        "{} {what} on {cpu} and its GPUs; {} (matrix with all other settings) on which each was tried.{left}",
        chosen.len(),
        plural(solved.len(), "system"),
    );
    let figure = Figure {
        title: format!("Performance profile of {what}: {cpu}"),
        marks: Marks::Steps,
        panels: vec![panel],
        source: vec![caption.clone()],
        left_out,
        ..Figure::default()
    };
    Some(Plot { figure, caption })
}

/// Corners of the distribution function of sorted ratios, from 1 to `last`, in percent.
fn distribution(ratios: &[f64], last: f64) -> Vec<(f64, f64)> {
    let count = ratios.len() as f64;
    let percent = |within: usize| 100.0 * within as f64 / count;
    let at_one = ratios.iter().filter(|r| **r <= 1.0).count();
    let mut corners = vec![(1.0, percent(at_one))];
    for (i, ratio) in ratios.iter().enumerate().skip(at_one) {
        if *ratio > last {
            break;
        }
        // equal ratios are one step
        match corners.last_mut() {
            Some((r, share)) if *r == *ratio => *share = percent(i + 1),
            _ => corners.push((*ratio, percent(i + 1))),
        }
    }
    let end = corners.last().map_or(0.0, |c| c.1);
    corners.push((last, end));
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_counts_what_is_within_each_factor() {
        let ratios = [1.0, 1.0, 2.0, 2.0, f64::INFINITY];
        assert_eq!(distribution(&ratios, 4.0), [(1.0, 40.0), (2.0, 80.0), (4.0, 80.0)]);
        assert_eq!(distribution(&[3.0, 1e9], 10.0), [(1.0, 0.0), (3.0, 50.0), (10.0, 50.0)]);
    }
}
