//! The record of one run of the obstacle problem.

use std::sync::LazyLock;

use itertools::Itertools as _;
use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
use crate::base::status::Status;
use crate::obstacle::Problem;
use crate::obstacle::case::{Case, Split};
use crate::record::columns::{Cell, Described, Kind, part};
use crate::record::schema::Environment;
use crate::record::table::{Column, OBSTACLE, Row, columns, named};

part! {
    /// What the iteration did.
    pub struct Iteration {
        /// grid points
        pub points: usize,
        /// nodes that share the grid: threads, GPUs or ranks
        pub nodes: usize,
        /// nodes in y and z
        pub split_used: Option<Split>,
        /// halo exchange between GPUs or ranks: direct (stores into the neighbour's memory), messages, or direct and
        /// messages
        pub transport_used: Option<String>,
        /// sweeps per node in each time step, mean over the nodes
        pub sweeps: Vec<f64>,
        /// sweeps per node in all time steps
        pub sweeps_per_node: f64,
        /// sweeps of all nodes in all time steps
        pub relaxations: u64,
        /// norm of the last update, the largest over the subdomains of norm-split
        pub step_norm: Option<f64>,
        /// largest |min(A U - G, U - Phi)| of the solution
        pub complementarity: Option<f64>,
        /// grid points where the solution touches the obstacle
        pub contact_points: u64,
        /// times that convergence was detected and the check by all nodes refuted it
        pub false_alarms: usize,
        /// hash of all bits of the solution, hexadecimal
        pub fingerprint: String,
    }
}

impl Cell for Split {}

part! {
    /// Times and memory traffic.
    pub struct Cost {
        /// run-time compilation of kernels, excluded from the other times, seconds
        pub compile_s: Option<f64>,
        /// setup of fields and coefficients, seconds
        pub setup_s: Option<f64>,
        /// all time steps, on the slowest node, seconds (median)
        pub solve_s: Option<f64>,
        /// shortest repetition, seconds
        pub solve_low_s: Option<f64>,
        /// longest repetition, seconds
        pub solve_high_s: Option<f64>,
        /// timed repetitions
        pub repetitions: usize,
        /// solve-s divided by sweeps-per-node, milliseconds
        pub ms_per_sweep: Option<f64>,
        /// least memory traffic of a sweep, when each is a pass over memory, bytes
        pub sweep_bytes: Option<usize>,
        /// sweep-bytes divided by the time of a sweep, 1e9 bytes per second
        pub sweep_gbps: Option<f64>,
        /// measured copy bandwidth, sum over the devices, 1e9 bytes per second
        pub copy_gbps: Option<f64>,
        /// sweep-gbps as a percentage of copy-gbps
        pub percent_of_bandwidth: Option<f64>,
    }
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

/// How a run ended, before its parts.
const ENDING: &[Described] = &[
    ("status", Kind::Text, "how the run ended"),
    ("reason", Kind::Text, "why it did not converge"),
    (
        "problem-hash",
        Kind::Text,
        "XXH3 of coefficients, source and obstacle; empty in records of earlier versions",
    ),
];

/// Meaning of the columns that are neither settings nor in every record.
pub static COLUMNS: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| named(&SCHEMA, &[ENDING, Iteration::COLUMNS, Cost::COLUMNS]));

static SCHEMA: LazyLock<Vec<Column>> = LazyLock::new(|| {
    columns::<Record>(&[ENDING, Iteration::COLUMNS, Cost::COLUMNS, Environment::COLUMNS])
});

impl Row for Record {
    const COMMAND: &'static str = OBSTACLE;
    type Case = Case;

    fn case(&self) -> &Case {
        &self.case
    }

    fn ending(&self) -> (Status, Option<&str>) {
        (self.status, self.reason.as_deref())
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
pub(crate) fn refuse_others(file: &str, earlier: &[Record], case: &Case) -> Result<()> {
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
pub(crate) fn set_apart(records: &mut [&mut Record]) -> Vec<String> {
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
