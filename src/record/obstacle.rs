//! The record of one run of the obstacle problem.

use std::sync::LazyLock;

use itertools::Itertools as _;
use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
use crate::base::status::Status;
use crate::obstacle::Problem;
use crate::obstacle::case::{Case, Split};
use crate::record::schema::Environment;
use crate::record::table::{Column, OBSTACLE, Row, columns};

/// What the iteration did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Iteration {
    /// Grid points.
    pub points: usize,
    /// Nodes that shared them.
    pub nodes: usize,
    /// Nodes in y and z.
    pub split_used: Option<Split>,
    /// Halo exchange between GPUs or ranks: `direct` stores into the neighbour's memory, `messages`, or
    /// both, where neighbours differ.
    pub transport_used: Option<String>,
    /// Sweeps of a node in each time step, the mean over the nodes.
    pub sweeps: Vec<f64>,
    /// Sweeps of a node in all time steps.
    pub sweeps_per_node: f64,
    /// Sweeps of all nodes in all time steps: what the paper counts.
    pub relaxations: u64,
    /// Norm of the last update, the largest over the subdomains of `norm-split`.
    pub step_norm: Option<f64>,
    /// Largest `|min(A U - G, U - Phi)|` of the solution.
    pub complementarity: Option<f64>,
    /// Points where the solution is on the obstacle.
    pub contact_points: u64,
    /// Times that convergence was detected and the check by all nodes refuted it.
    pub false_alarms: usize,
    /// Hash of all bits of the solution, hexadecimal.
    pub fingerprint: String,
}

/// Times and memory traffic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cost {
    /// Run-time compilation of kernels, excluded from the other times; empty on a CPU.
    pub compile_s: Option<f64>,
    /// Setup of fields and coefficients.
    pub setup_s: Option<f64>,
    /// All time steps, on the slowest node; median over the repetitions.
    pub solve_s: Option<f64>,
    /// Shortest repetition.
    pub solve_low_s: Option<f64>,
    /// Longest repetition.
    pub solve_high_s: Option<f64>,
    /// Repetitions.
    pub repetitions: usize,
    /// `solve-s` over the sweeps of a node, in milliseconds.
    pub ms_per_sweep: Option<f64>,
    /// Least memory traffic of a sweep, in bytes, when each sweep is a pass over memory.
    pub sweep_bytes: Option<usize>,
    /// `sweep-bytes` divided by the time of a sweep, in GB/s; above the bandwidth where a pass fuses several sweeps.
    pub sweep_gbps: Option<f64>,
    /// Measured copy bandwidth of all devices together, in GB/s.
    pub copy_gbps: Option<f64>,
    /// `sweep-gbps` as a percentage of `copy-gbps`.
    pub percent_of_bandwidth: Option<f64>,
}

/// One finished run. The leaf names are unique: they are the columns of the CSV file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// What was run.
    #[serde(flatten)]
    pub case: Case,
    /// How it ended.
    pub status: Status,
    /// Why, when it did not converge.
    pub reason: Option<String>,
    /// Hash of the problem, [`Problem::hash`]; none in records of earlier versions.
    #[serde(default)]
    pub problem_hash: Option<String>,
    /// What the iteration did.
    #[serde(flatten)]
    pub iteration: Iteration,
    /// Times and memory traffic.
    #[serde(flatten)]
    pub cost: Cost,
    /// Where it ran.
    #[serde(flatten)]
    pub environment: Environment,
}

/// Meaning of the columns that are neither settings nor in every record.
pub const COLUMNS: &[(&str, &str)] = &[
    ("status", "how the run ended"),
    ("reason", "why it did not converge"),
    (
        "problem-hash",
        "XXH3 of coefficients, source and obstacle; empty in records of earlier versions",
    ),
    ("points", "grid points"),
    ("nodes", "nodes that share the grid: threads, GPUs or ranks"),
    ("split-used", "nodes in y and z"),
    (
        "transport-used",
        "halo exchange between GPUs or ranks: direct (stores into the neighbour's memory), messages, or direct and messages",
    ),
    ("sweeps", "sweeps per node in each time step, mean over the nodes"),
    ("sweeps-per-node", "sweeps per node in all time steps"),
    ("relaxations", "sweeps of all nodes in all time steps"),
    ("step-norm", "norm of the last update, the largest over the subdomains of norm-split"),
    ("complementarity", "largest |min(A U - G, U - Phi)| of the solution"),
    ("contact-points", "grid points where the solution touches the obstacle"),
    ("false-alarms", "times that convergence was detected and the check by all nodes refuted it"),
    ("fingerprint", "hash of all bits of the solution, hexadecimal"),
    ("compile-s", "run-time compilation of kernels, excluded from the other times, seconds"),
    ("setup-s", "setup of fields and coefficients, seconds"),
    ("solve-s", "all time steps, on the slowest node, seconds (median)"),
    ("solve-low-s", "shortest repetition, seconds"),
    ("solve-high-s", "longest repetition, seconds"),
    ("repetitions", "timed repetitions"),
    ("ms-per-sweep", "solve-s divided by sweeps-per-node, milliseconds"),
    ("sweep-bytes", "least memory traffic of a sweep, when each is a pass over memory, bytes"),
    ("sweep-gbps", "sweep-bytes divided by the time of a sweep, 1e9 bytes per second"),
    ("copy-gbps", "measured copy bandwidth, sum over the devices, 1e9 bytes per second"),
    ("percent-of-bandwidth", "sweep-gbps as a percentage of copy-gbps"),
];

static SCHEMA: LazyLock<Vec<Column>> = LazyLock::new(|| {
    columns(&Record {
        case: Case { split: Some(Split::WHOLE), ..Case::default() },
        reason: Some("why".into()),
        problem_hash: Some("0".into()),
        iteration: Iteration {
            split_used: Some(Split::WHOLE),
            transport_used: Some("direct".into()),
            sweeps: vec![1.0],
            step_norm: Some(1.0),
            complementarity: Some(1.0),
            ..Iteration::default()
        },
        cost: Cost {
            compile_s: Some(1.0),
            setup_s: Some(1.0),
            solve_s: Some(1.0),
            solve_low_s: Some(1.0),
            solve_high_s: Some(1.0),
            repetitions: 1,
            ms_per_sweep: Some(1.0),
            sweep_bytes: Some(1),
            sweep_gbps: Some(1.0),
            copy_gbps: Some(1.0),
            percent_of_bandwidth: Some(1.0),
        },
        environment: Environment { schema: Some(1), ..Environment::default() },
        ..Record::default()
    })
});

impl Row for Record {
    const COMMAND: &'static str = OBSTACLE;
    type Case = Case;

    fn case(&self) -> &Case {
        &self.case
    }

    fn schema() -> &'static [Column] {
        &SCHEMA
    }
}

/// Refuses earlier records, in `file`, of the problem of a case when they are of another one under the same
/// settings.
///
/// # Errors
/// Names the file, the problem, both contents and what to do.
pub fn refuse_others(file: &str, earlier: &[Record], case: &Case) -> Result<()> {
    let now = Problem::new(case)?.hash();
    let other = |old: &&Record| {
        one_problem(&old.case, case) && old.problem_hash.as_ref().is_some_and(|hash| *hash != now)
    };
    let Some(old) = earlier.iter().find(other) else { return Ok(()) };
    let (m, obstacle) = (case.m, &case.obstacle);
    let there = old.problem_hash.as_deref().unwrap_or_default();
    Err(Error::input(format!(
        "m {m}, obstacle {obstacle} is not the problem of its records: hash {there} in the file, \
         {now} now"
    ))
    .in_file(file)
    .hint("write to another file, or start over with --force"))
}

/// Renames the obstacles of records that have the same settings but other problems, so that no table or
/// figure mixes them: `hill:1#0123abcd`, with the first digits of the hash. Says what was done.
pub fn set_apart(records: &mut [&mut Record]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut rest: Vec<usize> = (0..records.len()).collect();
    while let Some(first) = rest.first().map(|&i| records[i].case.clone()) {
        let (own, others) = rest.iter().partition(|&&i| one_problem(&records[i].case, &first));
        rest = others;
        let own: Vec<usize> = own;
        let label = |r: &Record| Some(r.problem_hash.as_ref()?.chars().take(8).collect::<String>());
        let known: Vec<String> = own.iter().filter_map(|&i| label(records[i])).unique().collect();
        if known.len() < 2 {
            continue;
        }
        for &i in &own {
            if let Some(label) = label(records[i]) {
                records[i].case.obstacle = format!("{}#{label}", first.obstacle);
            }
        }
        notes.push(format!(
            "m {}, obstacle {}: {} problems under one name are set apart: {}",
            first.m,
            first.obstacle,
            known.len(),
            known.iter().map(|label| format!("#{label}")).join(", ")
        ));
    }
    notes
}

/// Whether the settings of two cases ask for the same problem, however it is solved.
fn one_problem(a: &Case, b: &Case) -> bool {
    let numbers = |c: &Case| (c.m, c.eta, c.c, c.time_step);
    numbers(a) == numbers(b) && a.obstacle == b.obstacle && a.convection == b.convection
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::table::{fields, from_cells, to_cells};

    #[test]
    fn records_of_another_problem_are_refused() {
        let case = Case { m: 8, ..Case::default() };
        let hash = Problem::new(&case).unwrap().hash();
        let record = |case: &Case, hash: Option<&str>| {
            let problem_hash = hash.map(str::to_owned);
            Record { case: case.clone(), problem_hash, ..Record::default() }
        };
        let larger = Case { m: 9, ..case.clone() };
        let known = [
            record(&case, Some(&hash)),
            record(&case, None),
            record(&larger, Some("0123456789abcdef")),
        ];
        assert_eq!(refuse_others("a.csv", &known, &case), Ok(()));
        // another method of solution
        let case = Case { backend: "cpu-mt".into(), steps: 1, ..case };
        assert_eq!(refuse_others("a.csv", &known, &case), Ok(()));
        let error = refuse_others("a.csv", &known, &larger).unwrap_err();
        assert!(
            error.to_string().starts_with(
                "a.csv: m 9, obstacle zero is not the problem of its records: hash \
                 0123456789abcdef in the file, "
            ),
            "{error}"
        );
    }

    #[test]
    fn problems_of_one_name_get_names_of_their_own() {
        let record = |m, hash: Option<&str>| {
            let problem_hash = hash.map(str::to_owned);
            Record { case: Case { m, ..Case::default() }, problem_hash, ..Record::default() }
        };
        let mut records = [
            record(8, Some("0123456789")),
            record(9, Some("0123456789")),
            record(8, Some("fedcba9876")),
            record(8, None),
            record(8, Some("0123456789")),
            record(9, None),
        ];
        // another method of solution of the same problem
        records[4].case.backend = "cuda".into();
        let notes = set_apart(&mut records.iter_mut().collect::<Vec<_>>());
        assert_eq!(
            records.map(|r| r.case.obstacle),
            ["zero#01234567", "zero", "zero#fedcba98", "zero", "zero#01234567", "zero"]
        );
        let note =
            "m 8, obstacle zero: 2 problems under one name are set apart: #01234567, #fedcba98";
        assert_eq!(notes, [note]);
    }

    #[test]
    fn rows_are_read_back_as_they_were_written() {
        let record = Record {
            case: Case { split: Some(Split { y: 2, z: 3 }), ..Case::default() },
            iteration: Iteration {
                sweeps: vec![3.0, 2.5],
                relaxations: 11,
                fingerprint: "00ff".into(),
                ..Iteration::default()
            },
            ..Record::default()
        };
        for record in [record, Record::default()] {
            let header: Vec<String> = Record::schema().iter().map(|c| c.name.clone()).collect();
            assert_eq!(header.len(), fields(&record).len());
            let cells = to_cells(&record);
            let back: Record = from_cells(&header, cells.iter().map(String::as_str)).unwrap();
            assert_eq!(back, record);
        }
    }
}
