//! Whether a case can be solved for several right-hand sides at once.

use itertools::Itertools as _;

use crate::case::Case;
use crate::compute;
use crate::methods::solver;

/// Why a case cannot be solved for `columns` right-hand sides, if it cannot.
pub(crate) fn refused(case: &Case, columns: usize) -> Option<String> {
    let several = format!("`{}`: {columns} right-hand sides", case.rhs);
    if let Some(peer) = case.peer() {
        return Some(format!("{several}, and the peer `{peer}` solves for one at a time"));
    }
    if !compute::has_multivectors(&case.backend) {
        let backends = compute::NAMES.iter().map(|(name, _)| *name);
        let backends = backends.filter(|name| compute::has_multivectors(name));
        let backends = backends.map(|name| format!("`{name}`")).join(" and ");
        return Some(format!("{several} are solved for on {backends}, not on `{}`", case.backend));
    }
    if !case.sequence.is_empty() {
        return Some(format!("{several}, and a sequence has one for each step"));
    }
    if !solver::several(&case.solver) {
        let solvers = solver::of_several().map(|name| format!("`{name}`")).join(" and ");
        let one = format!("`{}` solves for one at a time", case.solver);
        return Some(format!("{several}, and {one}: {solvers} solve for several"));
    }
    None
}
