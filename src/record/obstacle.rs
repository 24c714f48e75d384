//! The record of one run of the obstacle problem.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::base::status::Status;
use crate::obstacle::case::{Case, Split};
use crate::record::schema::Environment;
use crate::record::table::{Column, Row, columns};

/// What the iteration did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Iteration {
    /// Points of the grid.
    pub points: usize,
    /// Nodes that shared them.
    pub nodes: usize,
    /// How.
    pub split_used: Option<Split>,
    /// How sides went from node to node, where nodes are GPUs or ranks: `direct` into the neighbour's
    /// memory, as `messages`, or between some this way and between others that.
    pub transport_used: Option<String>,
    /// Sweeps of a node in each time step, the mean over the nodes.
    pub sweeps: Vec<f64>,
    /// Sweeps of a node in all time steps.
    pub sweeps_per_node: f64,
    /// Sweeps of all nodes in all time steps: what the paper counts.
    pub relaxations: u64,
    /// Norm of the last step, the largest over the parts of `norm-split`.
    pub step_norm: Option<f64>,
    /// Largest `|min(A U - G, U - Phi)|` of the solution.
    pub complementarity: Option<f64>,
    /// Points where the solution is on the obstacle.
    pub contact_points: u64,
    /// Times that all nodes thought to be done and were not.
    pub false_alarms: usize,
    /// A number made of all bits of the solution, in hexadecimal digits.
    pub fingerprint: String,
}

/// What it took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cost {
    /// Run-time compilation of kernels, in no other time; empty on a CPU.
    pub compile_s: Option<f64>,
    /// Fields and coefficients.
    pub setup_s: Option<f64>,
    /// All time steps, the median over the repetitions; the slowest node's.
    pub solve_s: Option<f64>,
    /// Shortest repetition.
    pub solve_low_s: Option<f64>,
    /// Longest repetition.
    pub solve_high_s: Option<f64>,
    /// Repetitions.
    pub repetitions: usize,
    /// `solve-s` over the sweeps of a node, in milliseconds.
    pub ms_per_sweep: Option<f64>,
    /// Bytes that a sweep moves at least when each sweep is a pass through memory.
    pub sweep_bytes: Option<usize>,
    /// Those over the time of a sweep, in GB/s; above the bandwidth where a pass makes several sweeps.
    pub sweep_gbps: Option<f64>,
    /// Measured copy bandwidth of all devices together, in GB/s.
    pub copy_gbps: Option<f64>,
    /// `sweep-gbps` in percent of `copy-gbps`.
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
    /// What the iteration did.
    #[serde(flatten)]
    pub iteration: Iteration,
    /// What it took.
    #[serde(flatten)]
    pub cost: Cost,
    /// Where.
    #[serde(flatten)]
    pub environment: Environment,
}

/// Meaning of the columns that are neither settings nor in every record.
pub const COLUMNS: &[(&str, &str)] = &[
    ("status", "how it ended"),
    ("reason", "why, when it did not converge"),
    ("points", "points of the grid"),
    ("nodes", "nodes that shared them: threads, GPUs or ranks"),
    ("split-used", "parts in y and z"),
    (
        "transport-used",
        "how sides went between GPUs or ranks: direct into the neighbour's memory, messages, direct and messages",
    ),
    ("sweeps", "sweeps of a node in each time step, the mean over the nodes"),
    ("sweeps-per-node", "sweeps of a node in all time steps"),
    ("relaxations", "sweeps of all nodes in all time steps"),
    ("step-norm", "norm of the last step, the largest over the parts of norm-split"),
    ("complementarity", "largest |min(A U - G, U - Phi)| of the solution"),
    ("contact-points", "points where the solution is on the obstacle"),
    ("false-alarms", "times that all nodes thought to be done and were not"),
    ("fingerprint", "a number made of all bits of the solution, in hexadecimal digits"),
    ("compile-s", "run-time compilation of kernels, in no other time, seconds"),
    ("setup-s", "fields and coefficients, seconds"),
    ("solve-s", "all time steps, the slowest node's, seconds (median)"),
    ("solve-low-s", "shortest repetition, seconds"),
    ("solve-high-s", "longest repetition, seconds"),
    ("repetitions", "repetitions"),
    ("ms-per-sweep", "solve-s over the sweeps of a node, milliseconds"),
    ("sweep-bytes", "bytes that a sweep moves at least when each is a pass through memory"),
    ("sweep-gbps", "sweep-bytes over the time of a sweep, 1e9 bytes per second"),
    ("copy-gbps", "measured copy bandwidth of all devices together, 1e9 bytes per second"),
    ("percent-of-bandwidth", "sweep-gbps in percent of copy-gbps"),
];

static SCHEMA: LazyLock<Vec<Column>> = LazyLock::new(|| {
    columns(&Record {
        case: Case { split: Some(Split::WHOLE), ..Case::default() },
        reason: Some("why".into()),
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
    const COMMAND: &'static str = "obstacle";
    type Case = Case;

    fn case(&self) -> &Case {
        &self.case
    }

    fn schema() -> &'static [Column] {
        &SCHEMA
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::table::{fields, from_cells, to_cells};

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
