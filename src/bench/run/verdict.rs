//! What a record says of how a solve ended.

use crate::base::choices::Scaling;
use crate::base::status::Status;
use crate::case::Case;
use crate::compute::krylov::{Outcome, SolveEnd};
use crate::methods::solver;

/// A true residual this many times the tolerance contradicts the monitored one.
const CONTRADICTION: f64 = 10.0;

/// The same for a residual that is preconditioned or of a scaled system, which is the true one in another norm: M^-1 of
/// a badly scaled system honestly makes some difference. Beyond it the solve has met the tolerance that was asked for,
/// and is none to set beside others.
const CONTRADICTION_PRECONDITIONED: f64 = 1e2;

/// The true residual of x = 0: what is not below it solves nothing, whatever the tolerance.
const OF_ZERO: f64 = 1.0;

/// Relative residuals up to this are rounding: a recurrence that ends there has nothing left to do.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

/// Whether a true residual is not what the tolerance asks for, on whatever side a method monitors it.
pub(crate) fn contradicts(rtol: f64, true_residual: f64) -> bool {
    above(CONTRADICTION * rtol, true_residual)
}

/// Whether a residual is above `limit`, or no number.
fn above(limit: f64, residual: f64) -> bool {
    residual.is_nan() || residual > limit.min(OF_ZERO)
}

/// Status of a solve that left a solution with this true residual, and what there is to say of it.
pub(super) fn verdict(
    case: &Case,
    outcome: &Outcome,
    true_residual: f64,
) -> (Status, Option<String>) {
    match &outcome.end {
        SolveEnd::IterationLimit if case.rtol == 0.0 => (Status::Complete, None),
        SolveEnd::Converged | SolveEnd::Breakdown(_)
            if case.rtol == 0.0 && outcome.residual <= ROUNDING =>
        {
            let (done, most) = (outcome.iterations, case.max_iterations);
            let what = format!(
                "nothing left to iterate after {done} of {most} iterations: a residual of {:.1e} is \
                 monitored",
                outcome.residual
            );
            (Status::Complete, Some(what))
        }
        SolveEnd::Converged => converged(case, outcome.residual, true_residual),
        SolveEnd::IterationLimit => {
            (Status::NotConverged, Some(format!("iteration limit {} reached", case.max_iterations)))
        }
        SolveEnd::Stagnated => {
            (Status::Stagnated, Some("the residual no longer falls over 8 restarts".into()))
        }
        SolveEnd::Diverged => (Status::Diverged, Some("the residual grew without bound".into())),
        SolveEnd::Breakdown(what) => (Status::Breakdown, Some((*what).to_owned())),
        SolveEnd::TimeLimit | SolveEnd::Cancelled => {
            (Status::TimeLimit, Some("time limit of a solve reached".into()))
        }
    }
}

/// The same where the monitored residual has met the tolerance.
fn converged(case: &Case, monitored: f64, true_residual: f64) -> (Status, Option<String>) {
    if !contradicts(case.rtol, true_residual) {
        return (Status::Converged, None);
    }
    // a peer may keep to itself what it monitored
    let text = if monitored.is_nan() {
        format!("true residual {true_residual:.1e} where {:.1e} was asked for", case.rtol)
    } else {
        format!("true residual {true_residual:.1e} where {monitored:.1e} was monitored")
    };
    let preconditioned = solver::monitors_preconditioned(&case.solver, case.side);
    let scaled = case.scaling != Scaling::None;
    if !preconditioned && !scaled {
        return (Status::FalseConvergence, Some(text));
    }
    let status = if above(OF_ZERO, true_residual) {
        Status::FalseConvergence
    } else if above(CONTRADICTION_PRECONDITIONED * case.rtol, true_residual) {
        Status::PreconditionedOnly
    } else {
        Status::Converged
    };
    let norm = if preconditioned { "preconditioned" } else { "of the scaled system" };
    (status, Some(format!("{text}, {norm}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Side;

    fn of(case: &Case, end: SolveEnd, monitored: f64, true_residual: f64) -> (Status, String) {
        let outcome = Outcome { end, iterations: 7, residual: monitored, remark: None };
        let (status, reason) = verdict(case, &outcome, true_residual);
        (status, reason.unwrap_or_default())
    }

    fn converged(rtol: f64, side: Side, true_residual: f64) -> Status {
        let case = Case { side, rtol, ..Case::default() };
        of(&case, SolveEnd::Converged, rtol, true_residual).0
    }

    #[test]
    fn a_true_residual_far_above_the_tolerance_is_no_convergence() {
        use Side::{Left, Right};
        assert_eq!(converged(1e-6, Right, 9e-6), Status::Converged);
        assert_eq!(converged(1e-6, Right, 1.1e-5), Status::FalseConvergence);
        assert_eq!(converged(1e-6, Right, f64::NAN), Status::FalseConvergence);
        // the preconditioned one may differ by more, and beyond that by any factor says what it is
        assert_eq!(converged(1e-6, Left, 9e-5), Status::Converged);
        assert_eq!(converged(1e-6, Left, 1.1e-4), Status::PreconditionedOnly);
        assert_eq!(converged(1e-6, Left, 0.9), Status::PreconditionedOnly);
        // no tolerance makes a solution of what is worse than zero
        assert_eq!(converged(1e-6, Left, 1.1), Status::FalseConvergence);
        assert_eq!(converged(1e-6, Left, f64::NAN), Status::FalseConvergence);
        assert_eq!(converged(0.02, Left, 0.9), Status::Converged);
        assert_eq!(converged(0.02, Left, 1.1), Status::FalseConvergence);
        assert_eq!(converged(0.5, Right, 1.1), Status::FalseConvergence);
        assert!(!Status::FalseConvergence.succeeded() && !Status::PreconditionedOnly.succeeded());
    }

    #[test]
    fn the_reason_names_both_residuals_and_the_norm() {
        let case = Case::default();
        let (_, right) = of(&case, SolveEnd::Converged, 5e-7, 2e-3);
        assert_eq!(right, "true residual 2.0e-3 where 5.0e-7 was monitored");
        let case = Case { side: Side::Left, ..case };
        let (_, left) = of(&case, SolveEnd::Converged, 5e-7, 2e-5);
        assert_eq!(left, "true residual 2.0e-5 where 5.0e-7 was monitored, preconditioned");
        let scaled = Case { scaling: Scaling::Ruiz, ..Case::default() };
        let (status, text) = of(&scaled, SolveEnd::Converged, 5e-7, 2e-3);
        assert_eq!(status, Status::PreconditionedOnly);
        assert_eq!(text, "true residual 2.0e-3 where 5.0e-7 was monitored, of the scaled system");
        // the others monitor the true one on either side
        let qmr = Case { solver: "qmr".into(), ..case };
        let (status, text) = of(&qmr, SolveEnd::Converged, 5e-7, 2e-5);
        assert_eq!((status, text.contains("preconditioned")), (Status::FalseConvergence, false));
    }

    #[test]
    fn without_a_tolerance_a_run_is_complete_when_nothing_is_left() {
        let case = Case { rtol: 0.0, max_iterations: 300, ..Case::default() };
        assert_eq!(
            of(&case, SolveEnd::IterationLimit, 0.5, 0.5),
            (Status::Complete, String::new())
        );
        let said = "nothing left to iterate after 7 of 300 iterations: a residual of";
        for (end, monitored) in [(SolveEnd::Converged, 0.0), (SolveEnd::Breakdown("rho"), 1e-17)] {
            let (status, text) = of(&case, end, monitored, 2e-15);
            assert_eq!(status, Status::Complete);
            assert_eq!(text, format!("{said} {monitored:.1e} is monitored"));
        }
        // a breakdown on the way there is one
        let (status, text) = of(&case, SolveEnd::Breakdown("rho"), 1e-9, 1e-9);
        assert_eq!((status, text.as_str()), (Status::Breakdown, "rho"));
        assert_eq!(of(&case, SolveEnd::Diverged, 2e10, 2e10).0, Status::Diverged);
    }
}
