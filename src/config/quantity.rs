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

/// All quantities.
pub const QUANTITIES: &[Quantity] = &[
    Quantity {
        name: "points",
        label: "grid points",
        value: |r| (r.size.block_rows > 0).then_some(r.size.block_rows as f64),
    },
    Quantity { name: "edge", label: "cells along an edge of the grid", value: edge },
    Quantity {
        name: "block-size",
        label: "unknowns per point n",
        value: |r| Some(r.case.block_size as f64),
    },
    Quantity {
        name: "operations",
        label: "operations of a product",
        value: |r| (r.size.nnz > 0).then_some(2.0 * r.size.nnz as f64),
    },
    Quantity {
        name: "overall",
        label: "factorisation and corrections (µs per point)",
        value: |r| per_point(r, overall_s(r)),
    },
    Quantity {
        name: "factorisation",
        label: "factorisation (µs per point)",
        value: |r| per_point(r, Task::Factorisation.seconds(r)),
    },
    Quantity {
        name: "solve",
        label: "one solve (µs per point)",
        value: |r| per_point(r, Task::Solve.seconds(r)),
    },
    Quantity {
        name: "residual",
        label: "one residual (µs per point)",
        value: |r| per_point(r, Task::Residual.seconds(r)),
    },
    Quantity {
        name: "product-time",
        label: "time of a product (µs)",
        value: |r| r.traffic.spmv_s.map(|s| 1e6 * s),
    },
    Quantity { name: "product-rate", label: "product (GFLOP/s)", value: |r| r.traffic.spmv_gflops },
    Quantity {
        name: "product-percent-of-copy",
        label: "product (% of copy bandwidth)",
        value: |r| r.traffic.spmv_percent_of_bandwidth,
    },
    Quantity {
        name: "iterations",
        label: "iterations",
        value: |r| Some(r.convergence.iterations as f64),
    },
    Quantity {
        name: "ms-per-iteration",
        label: "time of an iteration (ms)",
        value: |r| r.times.ms_per_iteration,
    },
    Quantity {
        name: "setup-over-solve",
        label: "setup, in solves",
        value: |r| Some(r.times.setup_s? / r.times.solve_s?),
    },
    Quantity {
        name: "solve-time",
        label: "time of the solve (ms)",
        value: |r| r.times.solve_s.map(|s| 1e3 * s),
    },
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
