//! Whether a setting changes anything in a case.

use clap::ValueEnum as _;

use super::{Case, Ordering, Setting};
use crate::base::external::external;
use crate::compute;
use crate::compute::krylov::{self, Stop};
use crate::methods::{precond, solver};

impl Case {
    /// Whether a setting changes anything in this case: what its preconditioner and its solver declare. A
    /// method that is not known may use every setting.
    pub fn uses(&self, setting: Setting) -> bool {
        let declared = |found: Option<bool>| found.unwrap_or(true);
        let used = declared(precond::uses(&self.precond, setting))
            || declared(solver::uses(&self.solver, setting));
        match setting {
            Setting::LevelRule => used && self.fill > 0,
            Setting::Trisolve | Setting::FgbiluStyle => {
                used && compute::has_trisolves(&self.backend)
            }
            Setting::Execution => {
                compute::on_gpu(&self.backend) && !compute::over_ranks(&self.backend)
            }
            Setting::Partition | Setting::Subdomains | Setting::Schwarz => {
                compute::over_ranks(&self.backend)
            }
            Setting::Threads => compute::has_threads(&self.backend),
            Setting::Guess | Setting::Refactor => !self.sequence.is_empty(),
            _ => used,
        }
    }

    /// The same of a setting by its name; settings that every case has are always used.
    pub(crate) fn uses_named(&self, name: &str) -> bool {
        Setting::from_str(name, false).map_or(true, |setting| self.uses(setting))
    }

    /// Whether a fill level belongs to its name: it is used, or a peer's own method was given one.
    pub(crate) fn names_fill(&self) -> bool {
        let given = external(&self.precond).is_some() && self.fill != Self::default().fill;
        given || self.uses(Setting::Fill)
    }

    /// Its ordering, for the fill level of its preconditioner.
    pub(crate) fn ordering_for_fill(&self) -> Ordering {
        self.ordering.for_fill(self.preconditioning().fill)
    }

    /// What its preconditioner is made with: its settings where the preconditioner declares them, their
    /// defaults elsewhere, so that none has an effect that was not declared.
    pub fn preconditioning(&self) -> precond::Settings {
        let other = Self::default();
        let of = |setting| {
            if precond::uses(&self.precond, setting) == Some(false) { &other } else { self }
        };
        precond::Settings {
            precond: self.precond.clone(),
            fill: of(Setting::Fill).fill,
            level_rule: of(Setting::LevelRule).level_rule,
            shift: of(Setting::Shift).shift,
            drop_tolerance: of(Setting::DropTolerance).drop_tolerance,
            symmetry_tolerance: of(Setting::SymmetryTolerance).symmetry_tolerance,
            factor_precision: of(Setting::FactorPrecision).factor_precision,
            trisolve: of(Setting::Trisolve).trisolve,
            fgbilu_style: of(Setting::FgbiluStyle).fgbilu_style,
        }
    }

    /// What its solver is made with, for one right-hand side.
    pub fn solver_settings(&self, stop: Stop) -> krylov::Settings {
        let Self { side, restart, orthogonalisation, inner_rtol, .. } = *self;
        krylov::Settings {
            side,
            restart,
            orthogonalisation,
            inner_rtol,
            ..krylov::Settings::new(stop)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_that_is_not_known_may_use_every_setting_and_has_no_other_property() {
        let case = |precond: &str, solver: &str| Case {
            precond: precond.into(),
            solver: solver.into(),
            fill: 1,
            backend: "cuda".into(),
            ..Case::default()
        };
        // those of ranks are the backend's alone
        for &setting in &Setting::value_variants()[..=Setting::Execution as usize] {
            assert!(case("no-such", "cg").uses(setting), "{setting:?}");
            assert!(case("none", "no-such").uses(setting), "{setting:?}");
        }
        assert!(!precond::symmetric("no-such") && !precond::transposable("no-such"));
        assert!(!precond::symmetric("bilu:no-such=1") && precond::takes("no-such").is_none());
        assert!(case("none", "cg").uses_named("rtol") && !case("none", "cg").uses_named("fill"));
    }

    #[test]
    fn settings_have_the_names_of_axes() {
        for name in crate::base::parse::choices::<Setting>() {
            assert!(crate::config::sweep::axis(&name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_level_rule_needs_fill_and_a_way_of_solves_a_backend_with_a_choice() {
        let case = Case::default();
        assert!(!case.uses(Setting::LevelRule) && !case.uses(Setting::Trisolve));
        let case = Case { fill: 1, backend: "cuda".into(), ..case };
        assert!(case.uses(Setting::LevelRule) && case.uses(Setting::Trisolve));
        assert!(!case.uses(Setting::FgbiluStyle) && case.uses(Setting::Execution));
        assert!(!Case { precond: "jacobi".into(), ..case }.uses(Setting::Trisolve));
    }
}

#[cfg(test)]
#[path = "declared_tests.rs"]
mod declared;
