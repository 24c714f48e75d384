//! Solvers in every execution that a backend has: the same iterates as on the CPU.

use std::sync::Arc;

use clap::ValueEnum;

use super::operations::{here, there, unknown};
use super::{Bench, Finding};
use crate::base::error::Result;
use crate::case::{Case, Execution, Format, ReadAs, Setting, Side};
use crate::compute::Backend;
use crate::compute::krylov::{Stop, System, Transposed};
use crate::compute::preconditioner::Preconditioner;
use crate::matrix::Csr;
use crate::matrix::bsr::pad;
use crate::methods::precond::{Setup, Shape};
use crate::methods::{precond, solver};
use crate::problem;

/// Iterates that are compared, each by a solve of its own; and the residuals of all up to the last.
const ITERATES: [usize; 6] = [1, 2, 3, 7, 13, 20];

/// Rounding grows from iteration to iteration. The systems are of short time steps: with those of the
/// default, two orders of the same sums part by percents within 20 iterations, on one processor.
const ITERATE_LIMIT: f64 = 1e-10;

/// Residuals, beside the largest of which they are compared, down to where no execution has stopped.
const SMALLEST: f64 = 1e-8;

/// A system and what solves it: block size, format, preconditioner, sides.
pub(super) type Methods = (&'static str, usize, Format, &'static str, Sides);

/// Sides with which solvers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sides {
    /// The right.
    Right,
    /// Both, where the solver has the choice.
    Each,
}

/// Solvers that have other executions, and the sides of their preconditioner.
fn solvers(sides: Sides) -> impl Iterator<Item = (&'static str, Side)> {
    let all = solver::NAMES.iter().map(|(name, _)| *name).filter(|name| solver::replays(name));
    all.flat_map(move |name| {
        let each = sides == Sides::Each && solver::uses(name, Setting::Side) == Some(true);
        let left = each.then_some((name, Side::Left));
        std::iter::once((name, Side::Right)).chain(left)
    })
}

/// A method that begins anew where a divisor is zero, and one that ends.
const BICGSTAB: &str = solver::bicgstab::METHOD.name;
const QMR: &str = solver::qmr::METHOD.name;

/// How a solve went.
struct Solve {
    residuals: Vec<f64>,
    x: Vec<f64>,
    end: String,
}

impl<K: Backend + 'static> Bench<'_, K> {
    /// Some of the first iterates, and all residuals up to the last of them; with triangular factors
    /// only where the backend may choose any algorithm for their solves.
    pub(super) fn executions(&mut self, any_way: bool) -> Result<()> {
        let triangles = |precond: &str| precond::shape(precond) == Shape::Triangles;
        let methods = self.sizes.methods.iter();
        let methods = methods.filter(|(.., precond, _)| any_way || !triangles(precond));
        for &(spec, b, format, precond, sides) in methods {
            let a = problem::load(spec, ReadAs::Expanded)?.matrix;
            let a = Arc::new(pad(&a, b));
            let rhs = self.random(a.rows());
            for (name, side) in solvers(sides) {
                let case = Case {
                    matrix: spec.into(),
                    solver: name.into(),
                    precond: precond.into(),
                    block_size: b,
                    format,
                    side,
                    ..Case::default()
                };
                self.iterates(&a, &rhs, &case)?;
            }
        }
        self.breakdowns()
    }

    fn iterates(&mut self, a: &Arc<Csr>, rhs: &[f64], case: &Case) -> Result<()> {
        if self.k.matrix(a, case.format).is_err() {
            return Ok(());
        }
        let want = solves(&self.cpu, a, rhs, case, &ITERATES)?;
        for &execution in Execution::value_variants() {
            if !self.has(execution, case)? {
                continue;
            }
            let case = Case { execution, ..case.clone() };
            let got = solves(self.k, a, rhs, &case, &ITERATES)?;
            let name = format!(
                "{execution:?}: {} {:?} with {}, {}, {:?}",
                case.solver, case.side, case.precond, case.matrix, case.format
            );
            let last = want.len() - 1;
            let mut want_residuals = want[last].residuals.clone();
            let known = want_residuals.iter().take_while(|r| **r > SMALLEST).count();
            want_residuals.truncate(known);
            let mut residuals = got[last].residuals.clone();
            residuals.resize(want_residuals.len(), f64::NAN);
            self.found(format!("{name}: residuals"), &residuals, &want_residuals, ITERATE_LIMIT);
            // a graph goes on where the CPU has converged
            let running = want.iter().take_while(|want| want.end.starts_with("IterationLimit"));
            let compared = if execution == Execution::Graph { running.count() } else { want.len() };
            for ((got, want), count) in got.iter().zip(&want).zip(ITERATES).take(compared) {
                let check = format!("{name}: x after {count}");
                self.found(check, &got.x, &want.x, ITERATE_LIMIT);
            }
        }
        self.k.execute(Execution::Fused)
    }

    /// Whether the backend executes the case like this; it is left in that execution.
    fn has(&self, execution: Execution, case: &Case) -> Result<bool> {
        let persistent = execution == Execution::Persistent;
        let fits = match execution {
            Execution::Graph => solver::replays(&case.solver),
            Execution::Persistent => {
                case.format != Format::Sell
                    && solver::is_persistent(&case.solver, precond::shape(&case.precond))
            }
            _ => true,
        };
        match self.k.execute(execution) {
            Ok(()) => Ok(fits),
            Err(e) if persistent || e.kind() == crate::base::error::Kind::Input => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// A method that begins anew, and methods that end, each with a zero divisor.
    fn breakdowns(&mut self) -> Result<()> {
        let quarter_turn = [[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
        let anew = [[1.0, -2.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        // A e1 leaves e1 towards e2, A' e1 towards e3
        let apart = [[2.0, 0.0, 1.0], [1.0, 2.0, 0.0], [0.0, 0.0, 2.0]];
        for (solver, name, rows, rhs) in [
            (BICGSTAB, "anew", anew, [0.0, 0.0, 2.0]),
            (BICGSTAB, "quarter turn", quarter_turn, [1.0, 0.0, 0.0]),
            (QMR, "quarter turn", quarter_turn, [1.0, 0.0, 0.0]),
            (QMR, "apart", apart, [1.0, 0.0, 0.0]),
        ] {
            let col_ind = (0..3).flat_map(|_| 0..3).collect();
            let values = rows.concat();
            let a = Arc::new(Csr::new(3, 3, vec![0, 3, 6, 9], col_ind, values)?);
            let case = Case {
                solver: solver.into(),
                precond: precond::none::METHOD.name.into(),
                format: Format::Csr,
                ..Case::default()
            };
            let want = solves(&self.cpu, &a, &rhs, &case, &[9])?.remove(0);
            for &execution in Execution::value_variants() {
                // one that begins anew has done further iterations in a graph when it is looked at
                let late = execution == Execution::Graph && solver::begins_anew(solver);
                if late || !self.has(execution, &case)? {
                    continue;
                }
                let case = Case { execution, ..case.clone() };
                let got = solves(self.k, &a, &rhs, &case, &[9])?.remove(0);
                let name = format!("{execution:?}: {solver}, {name}");
                (self.report)(Finding {
                    check: format!("{name}: breakdown: {}, CPU: {}", got.end, want.end),
                    difference: f64::from(u8::from(got.end != want.end)),
                    limit: 0.0,
                });
                self.found(format!("{name}: x"), &got.x, &want.x, ITERATE_LIMIT);
            }
        }
        self.k.execute(Execution::Fused)
    }
}

/// Solves that end after so many iterations, if not before.
fn solves<B: Backend + 'static>(
    k: &B,
    a: &Arc<Csr>,
    rhs: &[f64],
    case: &Case,
    counts: &[usize],
) -> Result<Vec<Solve>> {
    k.execute(case.execution)?;
    let build = precond::lookup::<B>(&case.precond).ok_or_else(|| unknown(&case.precond))?;
    let setup = |a: &Arc<Csr>| -> Result<Box<dyn Preconditioner<B>>> {
        build(Setup { k, a, settings: &case.preconditioning(), phases: &mut () })
            .map_err(|e| crate::Error::run(format!("{e:?}")))
    };
    let other = solver::needs_transposed(&case.solver).then(|| Arc::new(a.transposed()));
    let (m, matrix) = (setup(a)?, k.matrix(a, case.format)?);
    let other_m = other.as_ref().map(setup).transpose()?;
    let other = other.map(|a| k.matrix(&a, case.format)).transpose()?;
    let transposed = other.as_ref().zip(other_m.as_deref()).map(|(a, m)| Transposed { a, m });
    let b = there(k, rhs)?;
    let system = System { a: &matrix, m: &*m, b: &b, transposed, deflation: None };
    let mut done = Vec::new();
    for &max_iterations in counts {
        let stop = Stop { rtol: 1e-9, max_iterations, time_limit_s: None };
        let settings = case.solver_settings(stop);
        let mut method = match case.execution {
            Execution::Persistent => solver::in_kernel(&case.solver, k, &settings, &system)?,
            _ => solver::lookup::<B>(&case.solver).ok_or_else(|| unknown(&case.solver))?(
                k,
                &settings,
                a.rows(),
            )?,
        };
        let mut x = k.vector(a.rows())?;
        k.fill(&mut x, f64::NAN);
        let mut residuals = Vec::new();
        let outcome = method.solve(k, &system, &mut x, &mut residuals);
        k.check()?;
        // shared memory that is short is no difference
        let remark = outcome.remark.filter(|remark| !remark.contains("in shared memory"));
        let end = format!("{:?} after {}, {remark:?}", outcome.end, outcome.iterations);
        done.push(Solve { residuals, x: here(k, &x, a.rows()), end });
    }
    Ok(done)
}
