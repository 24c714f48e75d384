//! What the phases of setups do, and where.

use super::{Phase, method};
use crate::compute::{on_gpu, sets_up_rows};

/// What a phase of a setup does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// In a few words.
    pub what: &'static str,
    place: Place,
}

/// Who does it where a GPU solves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Host,
    Device,
    /// The device for blocks of one, the host for larger ones: what is computed with sparse matrices.
    DeviceForPoints,
}

/// The work of each phase that a setup has.
pub(super) struct Phased {
    pub(super) symbolic: Option<Work>,
    pub(super) analysis: Option<Work>,
    pub(super) numeric: Option<Work>,
}

/// Work that a GPU leaves to its host.
pub(super) const fn host(what: &'static str) -> Work {
    Work { what, place: Place::Host }
}

/// Work of the GPU.
pub(super) const fn device(what: &'static str) -> Work {
    Work { what, place: Place::Device }
}

/// Work with sparse matrices.
pub(super) const fn rows(what: &'static str) -> Work {
    Work { what, place: Place::DeviceForPoints }
}

/// What matrices need before they are multiplied by.
pub(super) const STORED: Work = rows("matrices stored for products");

/// What the setup of the preconditioner that `spec` names does in a phase; `None` where it has no such phase.
pub fn work(spec: &str, phase: Phase) -> Option<Work> {
    let all = &method(spec)?.work;
    match phase {
        Phase::Symbolic => all.symbolic,
        Phase::Analysis => all.analysis,
        Phase::Numeric => all.numeric,
    }
}

impl Work {
    /// Whether the host does it for the GPU on which the backend called `backend` computes.
    pub(crate) fn left_to_host(&self, backend: &str, block_size: usize) -> bool {
        on_gpu(backend)
            && match self.place {
                Place::Host => true,
                Place::Device => false,
                Place::DeviceForPoints => block_size > 1 || !sets_up_rows(backend),
            }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{NAMES, Phases, Setup, all, lookup};
    use super::*;
    use crate::case::Case;
    use crate::compute::cpu::Cpu;
    use crate::problem::samples::matrix;

    const PHASES: [Phase; 3] = [Phase::Symbolic, Phase::Analysis, Phase::Numeric];

    #[test]
    fn every_phase_of_a_setup_has_its_work_and_no_other() {
        struct Begun(Vec<Phase>);
        impl Phases for Begun {
            fn begin(&mut self, phase: Phase) {
                self.0.push(phase);
            }
        }
        let a: Arc<_> = matrix("poisson3d:4");
        let names = NAMES.iter().map(|(name, _)| (*name).to_owned());
        for spec in &all().chain(names).collect::<Vec<_>>() {
            let case = Case { precond: spec.clone(), ..Case::default() };
            let mut begun = Begun(Vec::new());
            let setup = lookup::<Cpu>(spec).unwrap();
            let setup = setup(Setup {
                k: &Cpu::sequential(),
                a: &a,
                settings: &case.preconditioning(),
                phases: &mut begun,
            });
            assert!(setup.is_ok(), "{spec}");
            for phase in PHASES {
                let (told, done) = (work(spec, phase).is_some(), begun.0.contains(&phase));
                assert_eq!(told, done, "{spec}, {phase:?}");
            }
        }
    }

    #[test]
    fn a_gpu_leaves_to_the_host_what_it_does_not_do() {
        let of = |spec, phase, backend, b| work(spec, phase).unwrap().left_to_host(backend, b);
        assert!(of("mcilu:p=1", Phase::Symbolic, "cuda", 1));
        assert!(!of("mcilu:p=1", Phase::Symbolic, "cpu-mt", 1));
        assert!(!of("mcsgs", Phase::Numeric, "cuda", 1));
        assert!(
            of("mcsgs", Phase::Numeric, "cuda", 3) && of("mcsgs", Phase::Numeric, "cusparse", 1)
        );
        assert!(!of("bilu", Phase::Numeric, "cuda", 3));
        assert_eq!(work("spai", Phase::Symbolic), None);
        assert_eq!(work("no-such", Phase::Numeric), None);
    }
}
