//! Time steps: from the state of one to that of the next.

use std::sync::{Arc, Mutex, PoisonError};

use super::assemble::{Arrangement, assemble};
use super::flow::{CONNATE, MOST, RESIDUAL_OIL, Vector};
use super::system::System;
use crate::base::choices::Format;
use crate::base::error::{Error, Result};
use crate::base::interrupt;
use crate::compute::cpu::Cpu;
use crate::compute::krylov::{self, SolveEnd, Stop};
use crate::compute::{Storage as _, Vectors as _};
use crate::matrix::{Csr, bsr};
use crate::methods::precond::{self, Setup};
use crate::methods::solver;
use crate::problem::generator::Piece;

/// Tolerance of the solves between steps.
const RTOL: f64 = 1e-10;

/// The system of some step as it was left: the next step goes on from there.
struct Left {
    /// The arguments of the generator but for the step.
    of: String,
    step: usize,
    before: Vec<Vector<f64>>,
    now: Vec<Vector<f64>>,
    /// Pressures of wells.
    wells: Vec<f64>,
}

/// The last one that was made in this process.
static LAST: Mutex<Option<Left>> = Mutex::new(None);

/// Takes a system of all cells from the first time step to the one of this number; `of` tells it from others.
///
/// # Errors
/// Names the step whose system has no solution.
pub(super) fn advance<const N: usize>(
    system: &mut System<'_, N>,
    number: usize,
    of: &str,
) -> Result<()> {
    if number == 1 {
        return Ok(());
    }
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let mut step = 1;
    if let Some(left) = last.take().filter(|left| left.of == of && left.step <= number) {
        step = left.step;
        (system.before, system.now) = (left.before, left.now);
        system.wells.iter_mut().zip(left.wells).for_each(|(well, p)| well.pressure = p);
    }
    for from in step..number {
        if interrupt::requested() {
            return Err(Error::stopped("stopped while time steps were computed"));
        }
        next(system).map_err(|why| {
            Error::run(format!("`reservoir`: time step {from} has no solution: {why}"))
                .hint("choose a smaller `days`")
        })?;
    }
    *last = Some(Left {
        of: of.to_owned(),
        step: number,
        before: system.before.clone(),
        now: system.now.clone(),
        wells: system.wells.iter().map(|well| well.pressure).collect(),
    });
    Ok(())
}

/// The next step: adds the solution to the state, where the next one begins.
fn next<const N: usize>(system: &mut System<'_, N>) -> Result<(), String> {
    let plain = Arrangement { half_bias: false, without_wells: false };
    let (a, b) = assemble(system, plain, Piece::WHOLE).map_err(|e| e.to_string())?;
    let k = system.flow.k;
    let x = solved(&a, b, k)?;
    let (cells, wells) = x.split_at(system.cells() * k);
    for (state, change) in system.now.iter_mut().zip(cells.chunks_exact(k)) {
        state.iter_mut().zip(change).for_each(|(value, d)| *value += d);
        limit(state, k);
    }
    system.wells.iter_mut().zip(wells).for_each(|(well, d)| well.pressure += d);
    system.before.clone_from(&system.now);
    Ok(())
}

/// Keeps saturation and mass fractions within what there can be.
fn limit(state: &mut Vector<f64>, k: usize) {
    if k > 1 {
        state[1] = state[1].clamp(CONNATE, 1.0 - RESIDUAL_OIL);
    }
    let fractions = &mut state[2.min(k)..k.min(MOST)];
    for z in fractions.iter_mut() {
        *z = z.max(0.0);
    }
    let sum: f64 = fractions.iter().sum();
    if sum > 1.0 {
        for z in fractions {
            *z /= sum;
        }
    }
}

/// The solution of `A x = b`, on one thread.
fn solved(a: &Csr, mut b: Vec<f64>, block_size: usize) -> Result<Vec<f64>, String> {
    let (n, k) = (b.len(), Cpu::sequential());
    let a = Arc::new(bsr::pad(a, block_size));
    let precond = precond::bilu::METHOD.name.into();
    let settings = precond::Settings { precond, ..precond::Settings::default() };
    let setup = precond::lookup::<Cpu>(&settings.precond).expect("registered");
    let m = setup(Setup { k: &k, a: &a, settings: &settings, phases: &mut () })
        .map_err(|why| format!("{why:?}"))?;
    let stop = Stop { rtol: RTOL, max_iterations: 2000, time_limit_s: None };
    let settings = krylov::Settings { restart: 50, ..krylov::Settings::new(stop) };
    b.resize(a.rows(), 0.0);
    let text = |e: Error| e.to_string();
    let matrix = k.matrix(&a, Format::default()).map_err(text)?;
    let (mut rhs, mut x) = (k.vector(a.rows()).map_err(text)?, k.vector(a.rows()).map_err(text)?);
    k.upload(&b, &mut rhs);
    let build = solver::lookup::<Cpu>(solver::gmres::METHOD.name).expect("registered");
    let mut method = build(&k, &settings, a.rows()).map_err(text)?;
    let system = krylov::System { a: &matrix, m: &*m, b: &rhs, transposed: None, deflation: None };
    let outcome = method.solve(&k, &system, &mut x, &mut ());
    if outcome.end != SolveEnd::Converged {
        return Err(format!("{:?} after {} iterations", outcome.end, outcome.iterations));
    }
    k.download(&x, &mut b);
    b.truncate(n);
    Ok(b)
}
