//! Constrained pressure residual (Wallis 1983): a cycle of algebraic multigrid on a pressure equation, then block
//! ILU(k) of all unknowns on what that leaves,
//!
//! ```text
//! x = E C W r,  z = x + M^-1 (r - A x)
//! ```
//!
//! E takes the pressures to their places in the blocks. Row i of W is `e' D_ii^-1`, which frees the pressure
//! equation of block i from the other unknowns of the block ("quasi-IMPES", Lacroix, Vassilevski and Wheeler 2003).
//! The pressure matrix is `W A E`.

use std::sync::Arc;

use super::amg::{self, Choices, Cycle};
use super::options::{Parameter, Range};
use super::scratch::Scratch;
use super::work::{Phased, device, host};
use super::{Kept, Method, Phase, Ready, Setup, bilu};
use crate::base::choices::Format;
use crate::base::threads::Threads;
use crate::compute::cpu::sparse::diagonal;
use crate::compute::preconditioner::{FactorSize, Preconditioner, Renewal, SetupFailure};
use crate::compute::{Backend, Bytes, Coef};
use crate::matrix::{Csr, Sums};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "pressure",
        default: AUTO,
        range: Range::Words(&[AUTO, "0", "1", "2", "3", "4", "5", "6", "7"]),
        summary: "place of the pressure in a block; `auto` takes the unknown whose equations couple blocks most",
    },
    amg::DEGREE,
    amg::THETA,
    amg::COARSEST,
];

const AUTO: &str = "auto";

pub(crate) const METHOD: Method = Method {
    name: "cpr",
    summary: "constrained pressure residual: multigrid for pressures, then block ILU(k)",
    parameters: PARAMETERS,
    uses: bilu::METHOD.uses,
    symmetric: |_| false,
    transposable: false,
    keeps: Kept::Analysis,
    work: Phased {
        symbolic: Some(host("pattern of the factors")),
        analysis: Some(host(
            "schedules and layout of the solves, and matrices stored for products",
        )),
        numeric: Some(device("values of the factors, pressure matrix and its levels")),
    },
    ..Method::PLAIN
};

/// Both stages.
struct Cpr<K: Backend> {
    first: Pressures<K>,
    choices: Choices,
    second: Box<dyn Preconditioner<K>>,
    pressures: Scratch<K, 2>,
    unknowns: Scratch<K, 1>,
}

pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    let options = s.options()?;
    let (k, a) = (s.k, s.a.clone());
    let (n, b) = (a.rows(), a.block_size());
    let place = match options.word("pressure") {
        AUTO => None,
        text => Some(text.parse().expect("a number among the words")),
    };
    if let Some(place) = place.filter(|p| *p >= b) {
        let text = format!("`cpr:pressure={place}`: blocks of {b} have the places 0 to {}", b - 1);
        return Err(crate::Error::input(text).into());
    }
    s.phases.begin(Phase::Numeric);
    let choices = Choices::of(&options);
    let first = Pressures::new(k, &a, place, choices)?;
    let (pressures, unknowns) = (Scratch::new(k, n / b)?, Scratch::new(k, n)?);
    let second = bilu::setup(s)?;
    Ok(Box::new(Cpr { first, choices, second, pressures, unknowns }))
}

impl<K: Backend> Preconditioner<K> for Cpr<K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        let [right, pressure] = &mut *self.pressures.borrow();
        let [left] = &mut *self.unknowns.borrow();
        let Pressures { down, cycle, up, applied, .. } = &self.first;
        k.spmv(down, r, right);
        cycle.apply(k, right, pressure);
        k.residual(applied, pressure, r, left);
        self.second.apply(k, left, z);
        k.spmv(up, pressure, left);
        k.axpby(Coef::ONE, left, Coef::ONE, z);
    }

    /// The place of the pressure stays; the levels are set up again.
    fn refactor(&mut self, k: &K, a: &Arc<Csr>, shift: f64) -> Result<Renewal, SetupFailure> {
        self.first = Pressures::new(k, a, Some(self.first.place), self.choices)?;
        self.second.refactor(k, a, shift)
    }

    fn bytes(&self, k: &K) -> Bytes {
        let matrices =
            [&self.first.down, &self.first.up, &self.first.applied].map(|m| k.matrix_bytes(m));
        let parts = matrices.into_iter().chain([self.first.cycle.bytes(), self.second.bytes(k)]);
        parts.fold(Bytes::default(), |all, part| Bytes {
            held: all.held + part.held,
            moved: all.moved + part.moved,
        })
    }

    fn numeric_bytes(&self, k: &K) -> usize {
        self.second.numeric_bytes(k)
    }

    fn size(&self, k: &K) -> FactorSize {
        let mut size = self.second.size(k);
        size.factor_entries =
            size.factor_entries.map(|entries| entries + self.first.cycle.entries());
        size
    }
}

/// The first stage.
struct Pressures<K: Backend> {
    /// Of the pressure in a block.
    place: usize,
    /// `D_p^-1 W`: from residuals to what the cycle takes.
    down: K::Matrix,
    cycle: Cycle<K>,
    /// E and `A E`.
    up: K::Matrix,
    applied: K::Matrix,
}

impl<K: Backend> Pressures<K> {
    /// With the pressure at `place`, or at the one whose equations couple blocks most.
    fn new(k: &K, a: &Csr, place: Option<usize>, choices: Choices) -> Result<Self, SetupFailure> {
        let (n, b) = (a.rows(), a.block_size());
        let weights = k.on_host(|threads| diagonal::inverse(threads, a))?;
        let system = k.on_host(|threads| pressure_system(threads, a, &weights, place))?;
        let (cycle, d) = Cycle::new(k, &system.matrix, choices)?;
        let place = system.place;
        let (down, up, applied) = k.on_host(|threads| -> Result<_, SetupFailure> {
            let down = weights_of(threads, &weights, place, &d)?;
            let up = injection(threads, n, b, place)?;
            Ok((down, up, pressure_columns(threads, a, place)?))
        })?;
        let stored = |m: Csr| k.matrix(&Arc::new(m), Format::Csr);
        let (down, up, applied) = (stored(down)?, stored(up)?, stored(applied)?);
        Ok(Self { place, down, cycle, up, applied })
    }
}

/// The pressure equations, and the place of the pressure in a block.
struct PressureSystem {
    matrix: Csr,
    place: usize,
}

/// `W A E` for the pressure at `place`, or at the one whose equations couple blocks most.
fn pressure_system(
    threads: Threads,
    a: &Csr,
    weights: &Csr,
    place: Option<usize>,
) -> Result<PressureSystem, SetupFailure> {
    let b = a.block_size();
    let of = |place| -> Result<PressureSystem, SetupFailure> {
        let matrix = weighted(threads, a, weights, place)?;
        Ok(PressureSystem { matrix, place })
    };
    if let Some(place) = place {
        return of(place);
    }
    let mut best = of(0)?;
    let mut most = coupling(&best.matrix);
    for place in 1..b {
        let other = of(place)?;
        let found = coupling(&other.matrix);
        if found > most {
            (best, most) = (other, found);
        }
    }
    Ok(best)
}

/// The median over the rows of the sum of the negative entries beside the diagonal over the diagonal: 1 for a
/// Laplacian, small where accumulation in a block dominates, whose equations multigrid has no use for.
fn coupling(matrix: &Csr) -> f64 {
    let mut sums: Vec<f64> = (0..matrix.rows())
        .map(|i| {
            let (columns, values) = matrix.row(i);
            let d = matrix.get(i, i).unwrap_or(0.0);
            let beside = columns.iter().zip(values).filter(|(j, _)| **j as usize != i);
            // more than a Laplacian has is no better
            (beside.map(|(_, v)| -v / d).filter(|v| *v > 0.0).sum::<f64>()).min(1.0)
        })
        .filter(|sum| !sum.is_nan())
        .collect();
    let middle = sums.len() / 2;
    if sums.is_empty() {
        return 0.0;
    }
    *sums.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// Row `place` of each block row of `weights`, times A, of which the columns at `place` stay.
fn weighted(threads: Threads, a: &Csr, weights: &Csr, place: usize) -> Result<Csr, SetupFailure> {
    let b = a.block_size();
    let blocks = a.rows() / b;
    Csr::by_rows(
        threads,
        [blocks, blocks],
        || Sums::new(blocks),
        |sums, block, to| {
            let (rows, factors) = weights.row(block * b + place);
            for (&i, &w) in rows.iter().zip(factors) {
                let (columns, values) = a.row(i as usize);
                let pressures =
                    columns.iter().zip(values).filter(|(j, _)| **j as usize % b == place);
                pressures.for_each(|(&j, &v)| sums.add(j / b as u32, w * v));
            }
            sums.finish(to);
            Ok(())
        },
    )
}

/// Row `place` of each block row of `weights`, over `d`.
fn weights_of(
    threads: Threads,
    weights: &Csr,
    place: usize,
    d: &[f64],
) -> Result<Csr, SetupFailure> {
    let b = weights.block_size();
    Csr::by_rows(
        threads,
        [d.len(), weights.cols()],
        || (),
        |(), block, to| {
            let (columns, values) = weights.row(block * b + place);
            columns.iter().zip(values).for_each(|(&j, &v)| to.push(j, v / d[block]));
            Ok(())
        },
    )
}

/// E, n unknowns in blocks of b.
fn injection(threads: Threads, n: usize, b: usize, place: usize) -> Result<Csr, SetupFailure> {
    Csr::by_rows(
        threads,
        [n, n / b],
        || (),
        |(), i, to| {
            if i % b == place {
                to.push((i / b) as u32, 1.0);
            }
            Ok(())
        },
    )
}

/// `A E`.
fn pressure_columns(threads: Threads, a: &Csr, place: usize) -> Result<Csr, SetupFailure> {
    let b = a.block_size();
    Csr::by_rows(
        threads,
        [a.rows(), a.cols() / b],
        || (),
        |(), i, to| {
            let (columns, values) = a.row(i);
            for (&j, &v) in columns.iter().zip(values).filter(|(j, _)| **j as usize % b == place) {
                to.push(j / b as u32, v);
            }
            Ok(())
        },
    )
}
