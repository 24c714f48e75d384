//! Performance profiles over systems (Dolan and More 2002).

use std::collections::HashMap;

use itertools::Itertools as _;

use super::common::{by_key, differing, key_without, name, of_machine, short};
use super::{Kind, Plot};
use crate::base::units::plural;
use crate::case::RunKind;
use crate::config::marks::{Marks, Spacing};
use crate::record::Record;
use crate::report::batch::Batches;
use crate::report::plot::{Axis, Figure, LeftOut, Names, Panel, Series};

pub(super) const KIND: Kind = Kind {
    name: "profile",
    title: "Performance profiles",
    summary: "For each configuration, the share of systems (vertical) that it solves within a factor \
              (horizontal) of the time of the best configuration for that system (Dolan and Moré 2002). \
              At 1 a curve shows how often a configuration is the fastest; to the right it rises to the \
              share of systems that it solves at all. The time is the time to solution: ordering, \
              conversion of the matrix, setup and solve; of triangular solves that of one application of L and U.",
    draw,
};

/// Fewest systems for a profile.
const ENOUGH: usize = 3;

/// Most curves.
const CURVES: usize = 12;

/// Most configurations, those tried on most systems first, among which the curves are chosen.
const CANDIDATES: usize = 64;

/// Largest factor that is shown.
const FARTHEST: f64 = 1000.0;

/// What is compared.
struct Comparison {
    what: &'static str,
    /// Settings that name a configuration.
    settings: &'static [&'static str],
    /// Settings over which the best is taken. All others identify the system.
    best_of: &'static [&'static str],
    /// A setting without several values of which there is nothing to compare.
    varies: Option<&'static str>,
    /// The time; infinite where the run failed.
    seconds: fn(&Record) -> f64,
}

const COMPARISONS: [Comparison; 4] = [
    Comparison {
        what: "backends",
        settings: &["backend"],
        best_of: &["trisolve", "execution", "fgbilu-style"],
        varies: None,
        seconds: to_solution,
    },
    Comparison {
        what: "preconditioners",
        settings: &["precond", "fill", "deflation", "level-rule", "block-size"],
        best_of: &[],
        varies: None,
        seconds: to_solution,
    },
    Comparison {
        what: "solvers",
        settings: &["solver", "side", "restart", "orthogonalisation"],
        best_of: &[],
        varies: None,
        seconds: to_solution,
    },
    Comparison {
        what: "triangular solves",
        settings: &["backend", "trisolve"],
        best_of: &[],
        varies: Some("trisolve"),
        seconds: of_application,
    },
];

fn draw(batches: &Batches) -> Vec<Plot> {
    let records = batches.runs.iter().flat_map(|batch| &batch.records);
    let solves =
        records.filter(|r| r.case.kind == RunKind::Solve && !r.environment.device.is_empty());
    // times of one machine compare
    let machines = by_key(solves, |r| (r.environment.cpu.clone(), r.environment.os.clone()));
    let mut plots = Vec::new();
    for ((cpu, _), records) in &machines {
        let differ = differing(records.iter().copied());
        for comparison in &COMPARISONS {
            if comparison.varies.is_none_or(|name| differ.iter().any(|s| s.name == name)) {
                plots.extend(plot(comparison, cpu, records));
            }
        }
    }
    plots
}

fn to_solution(record: &Record) -> f64 {
    of_success(record, record.times.to_solution(1).or(record.times.solve_s))
}

fn of_application(record: &Record) -> f64 {
    of_success(record, record.traffic.apply_s)
}

fn of_success(record: &Record, seconds: Option<f64>) -> f64 {
    let seconds = seconds.filter(|s| s.is_finite() && *s > 0.0);
    seconds.filter(|_| record.status.succeeded()).unwrap_or(f64::INFINITY)
}

/// A system, with the times of the configurations tried on it.
struct System {
    name: String,
    times: HashMap<usize, f64>,
}

/// The names of the configurations, and the systems.
fn systems(of: &Comparison, records: &[&Record]) -> (Vec<String>, Vec<System>) {
    let (mut configurations, mut places) = (Vec::new(), HashMap::new());
    let apart = [of.settings, of.best_of].concat();
    let groups = by_key(records.iter().copied(), |r| key_without(&r.case, &apart));
    let differ = differing(records.iter().copied());
    let (of_system, others): (Vec<_>, Vec<_>) =
        differ.into_iter().partition(|s| !apart.contains(&s.name));
    let shown: Vec<_> = others.into_iter().filter(|s| of.settings.contains(&s.name)).collect();
    let mut systems = Vec::new();
    for (_, group) in groups {
        let first = group.first().map(|r| name(&r.case, &of_system, &Names::default()));
        let mut times: HashMap<usize, f64> = HashMap::new();
        for record in group {
            // no matrix among them
            let name = name(&record.case, &shown, &Names::default());
            let at = *places.entry(name.clone()).or_insert_with(|| {
                configurations.push(name);
                configurations.len() - 1
            });
            let time = times.entry(at).or_insert(f64::INFINITY);
            *time = time.min((of.seconds)(record));
        }
        systems.push(System { name: first.unwrap_or_default(), times });
    }
    (configurations, systems)
}

/// Configurations tried on the same systems, and these systems. Starts with the configuration tried on
/// most systems; each further one keeps as many systems as possible, and no fewer than a quarter.
fn chosen(configurations: usize, systems: &[System]) -> (Vec<usize>, Vec<&System>) {
    let (mut chosen, mut common): (Vec<usize>, Vec<_>) = (Vec::new(), systems.iter().collect());
    let mut tried = vec![0; configurations];
    let all = systems.iter().flat_map(|system| system.times.keys());
    all.for_each(|&configuration| tried[configuration] += 1);
    let mut candidates: Vec<usize> = (0..configurations).collect();
    candidates.sort_by_key(|&configuration| std::cmp::Reverse(tried[configuration]));
    candidates.truncate(CANDIDATES);
    while chosen.len() < CURVES {
        let left = |configuration: usize| {
            common.iter().filter(|system| system.times.contains_key(&configuration)).count()
        };
        let others = candidates.iter().filter(|configuration| !chosen.contains(configuration));
        let others = others.map(|&configuration| (left(configuration), configuration));
        // of equal ones the first
        let next =
            others.max_by_key(|&(left, configuration)| (left, std::cmp::Reverse(configuration)));
        let Some((left, configuration)) = next else { break };
        if left < ENOUGH || (!chosen.is_empty() && 4 * left < common.len()) {
            break;
        }
        common.retain(|system| system.times.contains_key(&configuration));
        chosen.push(configuration);
    }
    (chosen, common)
}

fn plot(of: &Comparison, cpu: &str, records: &[&Record]) -> Option<Plot> {
    let what = of.what;
    let (configurations, systems) = systems(of, records);
    let (chosen, common) = chosen(configurations.len(), &systems);
    // a system that no configuration solves has no best time
    let best = |system: &System| {
        let times = chosen.iter().map(|configuration| system.times[configuration]);
        times.fold(f64::INFINITY, f64::min)
    };
    let solved: Vec<&System> =
        common.into_iter().filter(|system| best(system).is_finite()).collect();
    if chosen.len() < 2 || solved.len() < ENOUGH {
        return None;
    }
    let ratio = |configuration: usize, system: &System| system.times[&configuration] / best(system);
    let profile = |configuration: &usize| {
        let ratios = solved.iter().map(|system| ratio(*configuration, system));
        (&configurations[*configuration], ratios.sorted_by(f64::total_cmp).collect_vec())
    };
    let profiles = chosen.iter().map(profile).collect_vec();
    let finite = profiles.iter().flat_map(|(_, ratios)| ratios).filter(|r| r.is_finite());
    let last = (1.1 * finite.fold(1.0_f64, |a, b| a.max(*b))).min(FARTHEST);
    let curves =
        profiles.iter().map(|(name, ratios)| Series::of(short(name), distribution(ratios, last)));
    let x = Axis::of("time relative to the best configuration", Spacing::Log);
    let y = Axis::of("share of systems (%)", Spacing::Linear);
    let panels = vec![Panel::new("", x, y, curves.collect())];
    let others = configurations.iter().enumerate().filter(|(i, _)| !chosen.contains(i));
    let left_out = others.map(|(_, name)| LeftOut::alone(short(name))).collect_vec();
    let left = match left_out.len() {
        0 => String::new(),
        left => format!(" {left} that were tried on other or fewer systems are left out."),
    };
    let caption = format!(
        "{} {what} on {cpu} and its GPUs; {} (matrix with all other settings) on which each was tried.{left}{}",
        chosen.len(),
        plural(solved.len(), "system"),
        worst(&configurations, &chosen, &solved, ratio),
    );
    let figure = Figure { marks: Marks::Steps, panels, left_out, ..Figure::default() };
    Some(of_machine(format!("Performance profile of {what}: {cpu}"), figure, caption))
}

/// Where the configuration that is the fastest most often is farthest from the fastest.
fn worst(
    configurations: &[String],
    chosen: &[usize],
    solved: &[&System],
    ratio: impl Fn(usize, &System) -> f64,
) -> String {
    let wins = |&&c: &&usize| solved.iter().filter(|system| ratio(c, system) <= 1.0).count();
    // of equal ones the first
    let Some(&best) = chosen.iter().rev().max_by_key(wins) else { return String::new() };
    let times = solved.iter().map(|system| (ratio(best, system), system));
    let Some((most, system)) = times.max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return String::new();
    };
    let name = short(&configurations[best]);
    match most {
        _ if most <= 1.0 => format!(" {name} is the fastest everywhere."),
        _ if most.is_finite() => {
            format!(
                " {name}, the fastest most often, takes at most {most:.2} times as long as the fastest: {}.",
                system.name
            )
        }
        _ => format!(" {name}, the fastest most often, does not solve {}.", system.name),
    }
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
