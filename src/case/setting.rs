//! Settings that change something only with some methods, and whether they do in a case.

use super::Case;
use crate::{backend, precond, solver};

/// A setting that only some methods use; each says in its own file which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setting {
    /// Unknowns per block.
    BlockSize,
    /// Order of the unknowns: whether more than rounding depends on it.
    Ordering,
    /// Fill level of ILU(k).
    Fill,
    /// Update rule of the fill level.
    LevelRule,
    /// What is added to the diagonal.
    Shift,
    /// Side of the preconditioner.
    Side,
    /// Basis vectors of GMRES.
    Restart,
    /// Orthogonalisation of GMRES.
    Orthogonalisation,
    /// What counts as symmetric.
    SymmetryTolerance,
    /// Numbers in which factors are stored.
    FactorPrecision,
    /// Way of triangular solves.
    Trisolve,
    /// Execution of FGBILU.
    FgbiluStyle,
    /// Execution of the solver.
    Execution,
}

impl Setting {
    /// Every setting.
    pub const ALL: [Self; 13] = [
        Self::BlockSize,
        Self::Ordering,
        Self::Fill,
        Self::LevelRule,
        Self::Shift,
        Self::Side,
        Self::Restart,
        Self::Orthogonalisation,
        Self::SymmetryTolerance,
        Self::FactorPrecision,
        Self::Trisolve,
        Self::FgbiluStyle,
        Self::Execution,
    ];

    /// Its name as a flag and a key of TOML.
    pub fn name(self) -> &'static str {
        match self {
            Self::BlockSize => "block-size",
            Self::Ordering => "ordering",
            Self::Fill => "fill",
            Self::LevelRule => "level-rule",
            Self::Shift => "shift",
            Self::Side => "side",
            Self::Restart => "restart",
            Self::Orthogonalisation => "orthogonalisation",
            Self::SymmetryTolerance => "symmetry-tolerance",
            Self::FactorPrecision => "factor-precision",
            Self::Trisolve => "trisolve",
            Self::FgbiluStyle => "fgbilu-style",
            Self::Execution => "execution",
        }
    }
}

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
                used && backend::has_trisolves(&self.backend)
            }
            Setting::Execution => backend::on_gpu(&self.backend),
            _ => used,
        }
    }

    /// The same of a setting by its name; settings that every case has are always used.
    pub fn uses_named(&self, name: &str) -> bool {
        let setting = Setting::ALL.into_iter().find(|setting| setting.name() == name);
        setting.is_none_or(|setting| self.uses(setting))
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
        for setting in Setting::ALL {
            assert!(case("no-such", "cg").uses(setting), "{setting:?}");
            assert!(case("none", "no-such").uses(setting), "{setting:?}");
        }
        assert!(!precond::symmetric("no-such") && !precond::transposable("no-such"));
        assert!(!precond::symmetric("bilu:no-such=1") && precond::takes("no-such").is_none());
        assert!(case("none", "cg").uses_named("rtol") && !case("none", "cg").uses_named("fill"));
    }

    #[test]
    fn settings_have_the_names_of_axes() {
        for setting in Setting::ALL {
            assert!(crate::config::sweep::axis(setting.name()).is_ok(), "{setting:?}");
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
