//! Quantities of a record that figures can show, by name.

use crate::config::phases::{Task, overall_s};
use crate::record::Record;

/// A quantity of a record.
pub struct Quantity {
    /// Its name in the `[figure]` of an experiment.
    pub name: &'static str,
    /// Its axis: what it is, with the unit in brackets.
    pub label: &'static str,
    /// Its value; `None` where the record has none.
    pub value: fn(&Record) -> Option<f64>,
}

const fn of(
    name: &'static str,
    label: &'static str,
    value: fn(&Record) -> Option<f64>,
) -> Quantity {
    Quantity { name, label, value }
}

/// All quantities.
pub(crate) const QUANTITIES: &[Quantity] = &[
    of("points", "grid points", |r| positive(r.size.block_rows)),
    of("edge", "cells along an edge of the grid", edge),
    of("block-size", "unknowns per point n", |r| Some(r.case.block_size as f64)),
    of("operations", "operations of a product", |r| positive(2 * r.size.nnz)),
    of("overall", "factorisation and corrections (µs per point)", |r| per_point(r, overall_s(r))),
    of("factorisation", "factorisation (µs per point)", |r| of_task(r, Task::Factorisation)),
    of("solve", "one solve (µs per point)", |r| of_task(r, Task::Solve)),
    of("residual", "one residual (µs per point)", |r| of_task(r, Task::Residual)),
    of("product-time", "time of a product (µs)", |r| r.traffic.spmv_s.map(|s| 1e6 * s)),
    of("product-rate", "product (GFLOP/s)", |r| r.traffic.spmv_gflops),
    of("product-percent-of-copy", "product (% of copy bandwidth)", |r| {
        r.traffic.spmv_percent_of_bandwidth
    }),
    of("iterations", "iterations", |r| Some(r.convergence.iterations as f64)),
    of("ms-per-iteration", "time of an iteration (ms)", |r| r.times.ms_per_iteration),
    of("setup-over-solve", "setup, in solves", |r| Some(r.times.setup_s? / r.times.solve_s?)),
    of("solve-time", "time of the solve (ms)", |r| r.times.solve_s.map(|s| 1e3 * s)),
];

/// The quantity called `name`.
pub fn quantity(name: &str) -> crate::Result<&'static Quantity> {
    QUANTITIES.iter().find(|q| q.name == name).ok_or_else(|| {
        let names: Vec<&str> = QUANTITIES.iter().map(|q| q.name).collect();
        crate::Error::unknown("quantity", name, &names)
    })
}

impl std::fmt::Debug for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Quantity").field(&self.name).finish()
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// A count that is known.
fn positive(count: usize) -> Option<f64> {
    (count > 0).then_some(count as f64)
}

/// Microseconds per point of a phase.
fn of_task(record: &Record, task: Task) -> Option<f64> {
    per_point(record, task.seconds(record))
}

/// Microseconds per point.
fn per_point(record: &Record, seconds: Option<f64>) -> Option<f64> {
    seconds.map(|s| 1e6 * s / record.size.block_rows as f64)
}

/// The longest edge of the grid of a generated matrix: `reservoir:20,k=2` has 20.
fn edge(record: &Record) -> Option<f64> {
    let (_, arguments) = record.case.matrix.split_once(':')?;
    let grid = arguments.split(',').next()?;
    let edges: Option<Vec<u32>> = grid.split('x').map(|edge| edge.parse().ok()).collect();
    edges?.into_iter().max().map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;
    use crate::record::samples::record;

    #[test]
    fn names_are_unique_and_found() {
        for q in QUANTITIES {
            assert_eq!(quantity(q.name).unwrap().label, q.label);
        }
        assert_eq!(quantity("pionts").unwrap_err().to_string(), "unknown quantity `pionts`");
    }

    #[test]
    fn edges_are_those_of_the_specification() {
        let edge = |matrix: &str| {
            let case = Case { matrix: matrix.into(), ..Case::default() };
            (quantity("edge").unwrap().value)(&record(case, 3, 1.0))
        };
        assert_eq!(edge("reservoir:20,k=2,wells=50"), Some(20.0));
        assert_eq!(edge("channel3d:51x97x63"), Some(97.0));
        assert_eq!(edge("fem-p1:parabolic_fem"), None);
        assert_eq!(edge("/some/file.mtx"), None);
    }

    #[test]
    fn times_are_per_point() {
        let mut r = record(Case::default(), 4, 4e-3);
        r.size.block_rows = 1000;
        r.times.numeric_kernel_s = Some(2e-3);
        r.traffic.apply_s = Some(0.5e-3);
        let value = |name: &str| (quantity(name).unwrap().value)(&r);
        assert_eq!((value("points"), value("factorisation")), (Some(1000.0), Some(2.0)));
        assert_eq!((value("overall"), value("solve")), (Some(6.0), Some(0.5)));
        assert_eq!((value("residual"), value("product-rate")), (None, None));
        assert_eq!(value("solve-time"), Some(4.0));
    }
}
