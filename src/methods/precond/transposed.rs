//! Setup of a preconditioner and, for methods that ask for it, of its transpose.
//!
//! Block Jacobi and ILU on a pattern commute with transposition: `L D U'` with unit diagonals is the
//! only factorisation that agrees with A on the pattern, so that of A' on the transposed pattern is
//! its transpose. M' is therefore set up on A' like M on A.

use std::sync::Arc;

use super::search;
use super::{Phase, Phases, Ready, Settings, Setup};
use crate::compute::Backend;
use crate::compute::preconditioner::{Preconditioner, SetupFailure};
use crate::matrix::Csr;
use crate::symbolic::FillPattern;

/// M and, where A' is given, M'.
pub type Both<K> = (Box<dyn Preconditioner<K>>, Option<Box<dyn Preconditioner<K>>>);

/// Sets both up; the phases are charged with the sum.
///
/// # Errors
/// Those of the setup.
pub(crate) fn set_up<K: Backend + 'static>(
    k: &K,
    setup: fn(Setup<K>) -> Ready<K>,
    (a, transposed): (&Arc<Csr>, Option<&Arc<Csr>>),
    settings: &Settings,
    phases: &mut dyn Phases,
) -> Result<Both<K>, SetupFailure> {
    let Some(transposed) = transposed else {
        let (m, _) = search::set_up(setup, Setup { k, a, settings, phases })?;
        return Ok((m, None));
    };
    let mut watched = Watched { phases, pattern: None, mirrored: false };
    let (m, found) = search::set_up(setup, Setup { k, a, settings, phases: &mut watched })?;
    watched.mirrored = true;
    let Some(found) = found else {
        let other = setup(Setup { k, a: transposed, settings, phases: &mut watched })?;
        return Ok((m, Some(other)));
    };
    if let Some(pattern) = &mut watched.pattern {
        Arc::make_mut(pattern).no_diagonal.clear();
    }
    let other = found.of_transposed(setup, Setup { k, a, settings, phases: &mut watched })?;
    Ok((m, Some(other)))
}

/// Passes everything on and remembers the pattern of the factors; `mirrored`, knows its transpose, whatever
/// the rule of levels.
struct Watched<'a> {
    phases: &'a mut dyn Phases,
    pattern: Option<Arc<FillPattern>>,
    mirrored: bool,
}

impl Phases for Watched<'_> {
    fn begin(&mut self, phase: Phase) {
        self.phases.begin(phase);
    }
    fn known_pattern(&mut self) -> Option<Arc<FillPattern>> {
        if self.mirrored {
            return self.pattern.as_ref().map(|pattern| Arc::new(pattern.transposed()));
        }
        self.pattern = self.phases.known_pattern();
        self.pattern.clone()
    }
    fn found_pattern(&mut self, pattern: &Arc<FillPattern>) {
        if !self.mirrored {
            self.pattern = Some(Arc::clone(pattern));
            self.phases.found_pattern(pattern);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Case, LevelRule};
    use crate::compute::Vectors as _;
    use crate::compute::cpu::Cpu;
    use crate::methods::precond;
    use crate::problem::samples::matrix;

    #[derive(Default)]
    struct Begun(Vec<Phase>);
    impl Phases for Begun {
        fn begin(&mut self, phase: Phase) {
            self.0.push(phase);
        }
    }

    /// `(x, M^-1 y) = (M'^-1 x, y)` for every preconditioner, also where the levels of A' differ.
    #[test]
    fn the_transpose_is_that_of_the_preconditioner() {
        for (k, threads) in [(Cpu::sequential(), 1), (Cpu::parallel(Some(2)).unwrap(), 2)] {
            for (precond, rule) in [
                ("none", LevelRule::Min),
                ("jacobi", LevelRule::Min),
                ("bilu", LevelRule::Overwrite),
            ] {
                let a = matrix("reservoir:6x5x6,k=2,wells=2");
                let at = Arc::new(a.transposed());
                let case = Case {
                    precond: precond.into(),
                    block_size: 2,
                    fill: 2,
                    level_rule: rule,
                    ..Case::default()
                };
                let setup = precond::lookup::<Cpu>(precond).unwrap();
                let mut begun = Begun::default();
                let (m, other) =
                    set_up(&k, setup, (&a, Some(&at)), &case.preconditioning(), &mut begun)
                        .unwrap();
                let n = a.rows();
                let vector = |seed: usize| {
                    let mut v = k.vector(n).unwrap();
                    (0..n).for_each(|i| v[i] = ((i * 7919 + seed * 31) % 97) as f64 - 48.0);
                    v
                };
                let (x, y) = (vector(1), vector(2));
                let (mut my, mut mx) = (k.vector(n).unwrap(), k.vector(n).unwrap());
                m.apply(&k, &y, &mut my);
                other.expect("asked for").apply(&k, &x, &mut mx);
                let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                let size = dot(
                    &x.iter().map(|v| v.abs()).collect::<Vec<_>>(),
                    &my.iter().map(|v| v.abs()).collect::<Vec<_>>(),
                );
                let (left, right) = (dot(&x, &my), dot(&mx, &y));
                assert!(
                    (left - right).abs() < 1e-12 * size,
                    "{precond} {threads}: {left} beside {right}"
                );
                let phases = if precond == "none" { 0 } else { 6 };
                assert_eq!(begun.0.len(), phases, "{precond}");
            }
        }
    }
}
