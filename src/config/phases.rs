//! Published times of the phases of a solver on a grid, per point.

use std::collections::HashMap;

use crate::base::error::{Error, Result};
use crate::config::csv;
use crate::record::Record;

/// A phase that is timed per grid point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// The numeric factorisation on the device.
    Factorisation,
    /// Both sweeps: one application of the preconditioner.
    Solve,
    /// One residual `b - A x`.
    Residual,
}

/// The tasks with their names in tables and files.
pub(crate) const TASKS: [(Task, &str); 3] =
    [(Task::Factorisation, "factorisation"), (Task::Solve, "solve"), (Task::Residual, "residual")];

/// Work at a point of n unknowns, as Luo et al. count it (Table 2): multiplications and divisions, and
/// bytes of the arrays in global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Threads of an element-wise execution.
    pub threads: usize,
    /// Multiplications and divisions.
    pub flop: usize,
    /// Bytes.
    pub bytes: usize,
}

impl Task {
    /// Its seconds in a record.
    pub fn seconds(self, record: &Record) -> Option<f64> {
        match self {
            Self::Factorisation => record.times.numeric_kernel_s,
            Self::Solve => record.traffic.apply_s,
            Self::Residual => record.traffic.residual_s,
        }
    }

    /// The work at a point of n unknowns.
    pub fn work(self, n: usize) -> Work {
        let n2 = n * n;
        match self {
            // six products of n^3 and an inversion of about 2 n^3; seven blocks
            Self::Factorisation => Work { threads: n2, flop: 8 * n2 * n, bytes: 8 * 7 * n2 },
            // d is read in both sweeps
            Self::Solve => Work { threads: n2, flop: 8 * n2, bytes: 8 * (8 * n2 + 3 * n) },
            Self::Residual => Work { threads: n, flop: 7 * n2, bytes: 8 * (7 * n2 + 3 * n) },
        }
    }
}

/// Seconds of the factorisation and all corrections of a record.
pub(crate) fn overall_s(record: &Record) -> Option<f64> {
    Some(record.times.numeric_kernel_s? + record.times.solve_s?)
}

/// What a table of phases shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// Times per point and speedups, task by task.
    #[default]
    Times,
    /// Time per thread, bytes and operations per second, task by task.
    Work,
    /// Times per point, one row per run.
    Series,
}

impl Show {
    /// By name.
    pub const NAMES: [(&'static str, Self); 3] =
        [("times", Self::Times), ("work", Self::Work), ("series", Self::Series)];
}

/// Published numbers of one task.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PublishedTask {
    /// Microseconds per point on the slow device.
    pub slow_us: Option<f64>,
    /// Microseconds per point on the fast device.
    pub fast_us: Option<f64>,
    /// Nanoseconds per thread on the fast device.
    pub ns_per_thread: Option<f64>,
    /// Gigabytes (1e9) per second on the fast device.
    pub gbps: Option<f64>,
    /// 1e9 multiplications and divisions per second on the fast device.
    pub gflops: Option<f64>,
}

/// A table or figure of phases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phases {
    /// What it shows.
    pub show: Show,
    /// Source of the values.
    pub citation: String,
    /// The paper's slow device, and the backend that stands for it.
    pub slow: Option<(String, String)>,
    /// The paper's fast device; every GPU backend stands beside it.
    pub fast: Option<String>,
    /// Published numbers.
    pub tasks: HashMap<Task, PublishedTask>,
}

impl Phases {
    /// Takes the published values from CSV text: a row per task, columns named as the fields of
    /// [`PublishedTask`]. `file` is the name for errors.
    pub fn read(mut self, file: &str, text: &str) -> Result<Self> {
        let (header, rows) = csv::read(file, text)?;
        for (line, record) in rows {
            let here = |e: Error| e.at(file, line, None);
            let names = TASKS.map(|(_, name)| name);
            let task = TASKS.iter().find(|(_, name)| *name == &record[0]);
            let task = task.ok_or_else(|| here(Error::unknown("task", &record[0], &names)))?.0;
            let mut row = PublishedTask::default();
            for (name, text) in header.iter().zip(&record).skip(1) {
                let place = match name {
                    "slow_us" => &mut row.slow_us,
                    "fast_us" => &mut row.fast_us,
                    "ns_per_thread" => &mut row.ns_per_thread,
                    "gbps" => &mut row.gbps,
                    "gflops" => &mut row.gflops,
                    other => {
                        let known = ["slow_us", "fast_us", "ns_per_thread", "gbps", "gflops"];
                        return Err(Error::unknown("column", other, &known).at(file, 1, None));
                    }
                };
                *place = Some(csv::positive(text).map_err(here)?);
            }
            self.tasks.insert(task, row);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_tasks() {
        let read = |text: &str| Phases::default().read("p.csv", text);
        let phases = read("task,slow_us,fast_us\nsolve,0.84,0.0604\n").unwrap();
        let row = phases.tasks[&Task::Solve];
        assert_eq!((row.slow_us, row.fast_us, row.gbps), (Some(0.84), Some(0.0604), None));
        let message = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(message("task,slow_us\nsweep,1\n"), "p.csv:2: unknown task `sweep`");
        assert_eq!(message("task,slow\nsolve,1\n"), "p.csv:1: unknown column `slow`");
        assert_eq!(message("task,gbps\nsolve,0\n"), "p.csv:2: `0` is outside the range: above 0");
    }

    #[test]
    fn work_of_six_unknowns_is_the_published_one() {
        // Luo et al., Table 4: FLOP and bytes per thread
        let per_thread = TASKS.map(|(task, _)| {
            let Work { threads, flop, bytes } = task.work(6);
            (flop / threads, bytes / threads)
        });
        assert_eq!(per_thread, [(48, 56), (8, 68), (42, 360)]);
    }
}
