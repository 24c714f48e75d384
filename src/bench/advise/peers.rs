//! Best methods of peers, tried beside what the search finds.

use crate::base::error::Result;
use crate::base::external::{PREFIX, external};
use crate::bench::advise::search::{Found, MARGIN, Tried};
use crate::bench::advise::space::Space;
use crate::bench::advise::structure::Structure;
use crate::bench::advise::trial::{Trial, Tries};
use crate::bench::run::peer::version;
use crate::case::Case;
use crate::config::peer::Peer;
use crate::methods::solver;

/// A method of a peer, or a peer that has none to try.
#[derive(Clone, Debug)]
pub(crate) struct OfPeer {
    pub(crate) name: String,
    /// What was tried; `None` where the peer does not run here.
    pub(crate) case: Option<Case>,
    pub(crate) trial: Trial,
}

/// The cases of a peer's best methods that suit the system. A preconditioner with a solver for symmetric systems is
/// not tried with others where that suits.
fn cases(peer: &str, best: &[(String, String)], space: &Space, structure: &Structure) -> Vec<Case> {
    let definite = structure.symmetric && structure.maybe_definite;
    let suited = |solver: &str| !solver::needs_symmetric(solver) || definite;
    let better = |solver: &str, precond: &str| {
        let mut with = best.iter().filter(|(_, other)| other == precond);
        external(solver).is_none()
            && !solver::needs_symmetric(solver)
            && with.any(|(other, _)| solver::needs_symmetric(other) && suited(other))
    };
    let plain = space.plain();
    let pairs = best.iter().filter(|(s, precond)| suited(s) && !better(s, precond));
    pairs
        .map(|(solver, precond)| Case {
            backend: format!("{PREFIX}{peer}"),
            solver: solver.clone(),
            precond: precond.clone(),
            block_size: 1,
            ..plain.clone()
        })
        .collect()
}

/// Tries the best methods of `peers` once, until `until` seconds of the search; those that are solved or given up
/// are trials as all others.
pub(super) fn try_all(
    peers: &[(String, Result<Peer>)],
    (space, structure): (&Space, &Structure),
    found: &mut Found,
    tries: &mut dyn Tries,
    until: f64,
    told: &mut dyn FnMut(&Tried, f64),
) -> Vec<OfPeer> {
    let mut all = Vec::new();
    for (name, peer) in peers {
        let none = |reason| {
            let trial = Trial::Failed { reason };
            OfPeer { name: name.clone(), case: None, trial }
        };
        let described = peer.as_ref().map_err(ToString::to_string);
        let cases = match described.and_then(|peer| version(peer).map(|_| peer)) {
            Err(reason) => {
                all.push(none(reason));
                continue;
            }
            Ok(peer) => cases(name, &peer.best, space, structure),
        };
        if cases.is_empty() {
            all.push(none("its description names no method for `advise` that suits".into()));
        }
        for case in cases {
            let left = until - tries.elapsed();
            if left <= 0.0 {
                let trial = Trial::Failed { reason: "not tried: no time was left".into() };
                all.push(OfPeer { name: name.clone(), case: Some(case.clone()), trial });
                found.combinations += 1;
                found.left.push(case);
                continue;
            }
            let best = found.best_seconds();
            let limit = if best.is_finite() { MARGIN * best } else { left };
            let Some(trial) = tries.try_out(&case, limit.min(left)) else {
                found.interrupted = true;
                return all;
            };
            let tried = Tried { point: Vec::new(), case: case.clone(), trial: trial.clone() };
            all.push(OfPeer { name: name.clone(), case: Some(case), trial });
            found.combinations += 1;
            found.tried.push(tried);
            let best = found.best_seconds();
            told(&found.tried[found.tried.len() - 1], best);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::advise::space::tests::space;
    use crate::matrix::SYMMETRY_TOLERANCE;
    use crate::problem::samples::problem;

    fn pairs(spec: &str, best: &[(&str, &str)]) -> Vec<String> {
        let structure = Structure::of(&problem(spec), SYMMETRY_TOLERANCE);
        let best: Vec<(String, String)> =
            best.iter().map(|(s, p)| ((*s).to_owned(), (*p).to_owned())).collect();
        let cases = cases("lib", &best, &space(spec, &[("rtol", "1e-9")]), &structure);
        let right = |c: &Case| c.backend == "external:lib" && c.rtol == 1e-9 && c.block_size == 1;
        assert!(cases.iter().all(right), "{cases:?}");
        cases.into_iter().map(|case| format!("{} {}", case.solver, case.precond)).collect()
    }

    #[test]
    fn cg_is_for_symmetric_systems_and_takes_the_place_of_others_there() {
        let best = [
            ("cg", "external:amg"),
            ("gmres", "external:amg"),
            ("gmres", "external:other"),
            ("external:preonly", "external:lu"),
        ];
        let symmetric = ["cg external:amg", "gmres external:other", "external:preonly external:lu"];
        assert_eq!(pairs("poisson3d:4", &best), symmetric);
        let general =
            ["gmres external:amg", "gmres external:other", "external:preonly external:lu"];
        assert_eq!(pairs("convdiff3d:5,px=0.3", &best), general);
    }
}
