//! Checks before a case computes: methods that do not suit each other or the matrix, and memory.

use super::{Job, NoResult};
use crate::base::choices::MAX_FILL;
use crate::base::measure::memory_free;
use crate::base::parse::choice_name;
use crate::case::{Case, Execution, Format, LevelRule, Scaling, Setting, Shift};
use crate::compute::preconditioner::SetupFailure;
use crate::compute::{Backend, Operations, Platform, on_gpu, over_ranks};
use crate::matrix::{Asymmetry, Csr};
use crate::methods::precond::products::Undivided;
use crate::methods::precond::{Setup, Takes};
use crate::methods::{deflation, precond, schwarz, solver};

/// How a preconditioner is set up and a solver made.
pub(super) type Methods<K> = (SetupOf<K>, solver::Build<K>);

/// The setup that a name stands for.
type SetupOf<K> = fn(Setup<K>) -> precond::Ready<K>;

fn unknown(what: &str, name: &str) -> NoResult {
    NoResult::unsupported(format!("there is no {what} `{name}`"))
}

impl Job<'_> {
    pub(super) fn precond_setup<K: Backend + 'static>(&self) -> Result<SetupOf<K>, NoResult> {
        let name = &self.case.precond;
        precond::lookup::<K>(name).ok_or_else(|| unknown("preconditioner", name))
    }

    pub(super) fn solver_build<K: Operations + 'static>(
        &self,
    ) -> Result<solver::Build<K>, NoResult> {
        let name = &self.case.solver;
        solver::lookup::<K>(name).ok_or_else(|| unknown("solver", name))
    }

    /// The methods of the case, after checks that they suit each other, the matrix and the backend.
    pub(super) fn methods<K: Backend + 'static>(&mut self, k: &K) -> Result<Methods<K>, NoResult> {
        let case = self.case;
        let (setup, build) = (self.precond_setup::<K>()?, self.solver_build::<K>()?);
        if let Some(reason) = unsuited(case) {
            return Err(NoResult::unsupported(reason));
        }
        self.check_symmetry(k)?;
        if case.execution == Execution::Graph && !solver::replays(&case.solver) {
            return Err(NoResult::unsupported(format!("there is no replay of `{}`", case.solver)));
        }
        k.execute(case.execution)?;
        Ok((setup, build))
    }

    /// Rejects an unsymmetric matrix where a method requires symmetry. Asymmetry within the tolerance is kept and
    /// noted in the record.
    pub(super) fn check_symmetry<K: Backend>(&mut self, k: &K) -> Result<(), NoResult> {
        self.check_asymmetry(|a| k.on_host(|_| a.asymmetry()))
    }

    /// The same with `measure`, which finds the asymmetry.
    pub(super) fn check_asymmetry(
        &mut self,
        measure: impl FnOnce(&Csr) -> Option<Asymmetry>,
    ) -> Result<(), NoResult> {
        let Some(method) = of_symmetric(self.case) else { return Ok(()) };
        let said = accepted(self.case, method, measure(self.a))?;
        if let Some(said) = said {
            self.record.remark(said);
        }
        Ok(())
    }

    /// Checks that the format fits into memory, so that the case ends with a record and not with a killed
    /// process: formats are built on the host, and can be far larger than the matrix and than the blocks
    /// of [`Format::Auto`].
    pub(super) fn check_matrix<K: Platform>(&self, k: &K) -> Result<(), NoResult> {
        self.check_share(k, self.a.nnz())
    }

    /// The same of a rank that has so many of the entries.
    pub(super) fn check_share<K: Platform>(&self, k: &K, entries: usize) -> Result<(), NoResult> {
        let b = self.case.block_size;
        // the rows of a rank are a part of all, and so are its blocks
        let share = entries as f64 / self.record.size.nnz.max(1) as f64;
        let needed = match self.case.format {
            Format::Bsr if b > 1 => {
                (8.0 * share * (self.record.size.matrix_blocks * b * b) as f64) as usize
            }
            // at least the entries
            Format::Hyb | Format::Sell => 12 * entries,
            Format::Dia | Format::Bdia => 8 * entries,
            Format::Auto | Format::Csr | Format::Bsr => 0,
        };
        fits(needed, memory_free().min(k.memory_free()))
    }

    /// Checks that the Krylov vectors fit into memory, as [`check_matrix`](Self::check_matrix) does.
    pub(super) fn check_vectors<K: Operations>(&self, k: &K) -> Result<(), NoResult> {
        let vectors = solver::vectors(&self.case.solver, self.case.restart);
        fits(8 * self.unknowns * self.width(k) * vectors, k.memory_free())
    }
}

/// The method of a case that requires a symmetric matrix.
pub(super) fn of_symmetric(case: &Case) -> Option<&str> {
    let Case { solver, precond, .. } = case;
    let of_precond = precond::takes(precond) == Some(Takes::Symmetric);
    let method = if solver::needs_symmetric(solver) { Some(solver) } else { None };
    method.or(of_precond.then_some(precond)).map(String::as_str)
}

/// A remark on the asymmetry of a matrix; an error where it is more than rounding.
pub(super) fn accepted(
    case: &Case,
    method: &str,
    found: Option<Asymmetry>,
) -> Result<Option<String>, NoResult> {
    match found {
        Some(found) if found.relative > case.symmetry_tolerance => {
            Err(NoResult::unsupported(format!("`{method}`: {found}")))
        }
        found => Ok(found.map(|found| found.accepted("the matrix is used as it is"))),
    }
}

/// Refuses what needs more bytes than are free.
pub(super) fn fits(needed: usize, free: usize) -> Result<(), NoResult> {
    Ok(SetupFailure::check_memory(needed, free)?)
}

/// Layers of rows around those of a rank that its preconditioner of the whole matrix needs, where that consists of
/// products.
pub(super) fn reach_of_products(case: &Case) -> Option<usize> {
    if case.schwarz.is_exact() { precond::reach(&case.precond) } else { None }
}

/// The Schwarz method of a case on its backend, by which its rows are divided: those of products keep their order, as
/// with block Jacobi.
pub(super) fn chosen(case: &Case) -> Result<schwarz::Choice, NoResult> {
    if reach_of_products(case).is_some() {
        return Ok(schwarz::Choice::Jacobi);
    }
    // on a GPU the rows of a stage are made in the order of their columns
    match case.schwarz {
        schwarz::Choice::Natural if on_gpu(&case.backend) => {
            let text = format!("`{}` does not run on GPUs over ranks", case.schwarz);
            Err(NoResult::unsupported(text))
        }
        schwarz::Choice::Exact if on_gpu(&case.backend) => Ok(schwarz::Choice::Interface(0)),
        choice => Ok(choice),
    }
}

/// The name of the Schwarz method that rows were divided by.
pub(super) fn name_of_used(case: &Case, used: schwarz::Choice) -> String {
    if reach_of_products(case).is_some() { case.schwarz } else { used }.to_string()
}

/// Why a case has no preconditioner of the whole matrix, if it has none.
pub(super) fn not_exact(case: &Case) -> Option<String> {
    let Case { precond, schwarz, .. } = case;
    let highest = schwarz.fill(case.fill).highest();
    match precond::undivided(precond) {
        Undivided::No => {
            let exact = precond::all_undivided().join("`, `");
            Some(format!(
                "`{precond}` is not exact over ranks: it runs in each subdomain, with `--schwarz jacobi` or `ras:D`; \
                 exact are `{exact}`"
            ))
        }
        Undivided::Products(_) if *schwarz != schwarz::Choice::Exact => Some(format!(
            "`{precond}` consists of products, which have no order of elimination: give `--schwarz exact`"
        )),
        Undivided::Factors if case.drop_tolerance > 0.0 || case.shift == Shift::Search => Some(
            format!("neither a drop tolerance nor a shift search runs with `{schwarz}` over ranks"),
        ),
        Undivided::Factors if highest > MAX_FILL => Some(format!(
            "`{schwarz}` has fill of level {highest} at interfaces: at most {MAX_FILL}"
        )),
        // such a level depends on rows of all ranks
        Undivided::Factors if highest > 0 && case.level_rule != LevelRule::Min => {
            let rule = choice_name(&case.level_rule);
            Some(format!("`{schwarz}` with the level rule `{rule}` does not run over ranks"))
        }
        Undivided::Products(_) | Undivided::Factors => None,
    }
}

/// Why the case's methods do not suit each other, if they do not.
pub(super) fn unsuited(case: &Case) -> Option<String> {
    let Case { solver, precond, factor_precision: precision, .. } = case;
    if case.uses(Setting::FactorPrecision) && on_gpu(&case.backend) && !precision.on_gpu() {
        return Some(format!(
            "factors in `{}` are for CPUs: on a GPU they are in float64, float32 or bfloat16",
            choice_name(precision)
        ));
    }
    let with_transposed = solver::needs_transposed(solver);
    if with_transposed && !precond::transposable(precond) {
        return Some(format!(
            "`{solver}` needs the transposed preconditioner, and `{precond}` has none"
        ));
    }
    let of_subdomains = matches!(case.deflation, deflation::Choice::Subdomains(_));
    if of_subdomains && !over_ranks(&case.backend) {
        return Some(deflation::OVER_RANKS.into());
    }
    if case.deflation != deflation::Choice::None {
        if !of_subdomains && over_ranks(&case.backend) {
            return Some("deflation over ranks is by `subdomains` or `subdomains:M`".into());
        }
        if case.backend == "cusparse" {
            return Some("deflation runs on `cpu`, `cpu-mt` and `cuda`".into());
        }
        if with_transposed {
            return Some(format!(
                "`{solver}` needs the transposed preconditioner, and deflation has none"
            ));
        }
        if solver::needs_symmetric(solver) && !solver::deflates(solver) {
            return Some(format!(
                "`{solver}` needs a symmetric preconditioner, and with deflation there is none"
            ));
        }
    }
    if case.scaling == Scaling::Rows
        && let Some(method) = of_symmetric(case)
    {
        return Some(format!(
            "`{method}` needs a symmetric matrix, and scaling by `rows` leaves none; `ruiz` does"
        ));
    }
    if case.uses(Setting::DropTolerance) && case.drop_tolerance > 0.0 {
        if with_transposed {
            return Some(format!(
                "`{solver}` needs the transposed preconditioner, and with a drop tolerance there is none"
            ));
        }
        if solver::needs_symmetric(solver) {
            return Some(format!(
                "`{solver}` needs a symmetric preconditioner, and with a drop tolerance there is none"
            ));
        }
    }
    let symmetric = !solver::needs_symmetric(solver) || precond::symmetric(precond);
    (!symmetric)
        .then(|| format!("`{solver}` needs a symmetric preconditioner, and `{precond}` is none"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::FactorPrecision;

    #[test]
    fn what_gpus_do_not_store_is_refused_for_them_alone() {
        let of = |backend: &str, precond: &str, factor_precision| {
            let (backend, precond) = (backend.into(), precond.into());
            unsuited(&Case { precond, factor_precision, backend, ..Case::default() })
        };
        for (precision, name) in
            [(FactorPrecision::Float16, "float16"), (FactorPrecision::Adaptive, "adaptive")]
        {
            let reason = format!(
                "factors in `{name}` are for CPUs: on a GPU they are in float64, float32 or bfloat16"
            );
            for backend in ["cuda", "cusparse", "mpi-cuda"] {
                assert_eq!(of(backend, "bilu", precision), Some(reason.clone()));
                assert_eq!(of(backend, "none", precision), None);
            }
            assert_eq!(of("cpu-mt", "bilu", precision), None);
        }
        for precision in [FactorPrecision::Float32, FactorPrecision::Bfloat16] {
            assert_eq!(of("cuda", "jacobi", precision), None);
        }
    }
}
