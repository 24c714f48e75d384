//! A search against the sweep of everything that it may choose from.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::advise::{Advice, Question, Trials, Tries, measured};
use crate::case::Case;
use crate::error::{Error, Result};
use crate::measure::median;
use crate::problem::Problem;

/// Runs of a combination that the sweep makes, as `--max-repetitions` would.
const REPETITIONS: usize = 3;
/// In the sweep a combination is given up when it takes this many times the best so far: a sweep that
/// waits for each to converge takes longer, never less.
const MARGIN: f64 = 10.0;
/// Seconds that any combination of the sweep has.
const LEAST_LIMIT: f64 = 1.0;
/// Seconds in which both winners are measured again, in turns.
const DUEL_S: f64 = 20.0;

/// Runs every combination, then both winners in turns: `ratio` is the time of the advised settings over
/// that of the best of the sweep, `time-share` the time of the search over that of the sweep.
///
/// # Errors
/// When the user stops it.
pub fn against_all(
    question: &Question,
    advice: &Advice,
    problem: &Problem,
    b: &[f64],
    interrupts: &AtomicUsize,
) -> Result<Value> {
    let mut trials = Trials::new(problem, b, question.solves, interrupts);
    let points = advice.space.points()?;
    let mut best: Option<(f64, Case)> = None;
    for point in &points {
        let case = advice.space.case(point);
        let limit = best.as_ref().map_or(1e3, |(s, _)| (MARGIN * s).max(LEAST_LIMIT));
        let mut samples = Vec::new();
        for _ in 0..REPETITIONS {
            let trial = trials.try_out(&case, limit).ok_or_else(|| Error::run("stopped"))?;
            match trial.seconds() {
                Some(seconds) => samples.push(seconds),
                None => break,
            }
        }
        if let Some(m) = median(&samples)
            && best.as_ref().is_none_or(|(seconds, _)| m.value < *seconds)
        {
            best = Some((m.value, case));
        }
        debug_assert!(interrupts.load(Ordering::SeqCst) == 0);
    }
    let sweep_s = trials.elapsed();
    let advised = advice.finalists.first().map(|f| f.case.clone());
    let (Some((seconds, best)), Some(advised)) = (best, advised) else {
        return Ok(json!({ "matrix": question.base.matrix, "combinations": points.len() }));
    };
    let end = trials.elapsed() + DUEL_S;
    let both =
        if best == advised { vec![best.clone()] } else { vec![best.clone(), advised.clone()] };
    let duel = measured(both, &mut trials, end, MARGIN * seconds);
    let of = |case: &Case| duel.iter().find(|f| f.case == *case).map(|f| f.seconds);
    let (Some(best_s), Some(advised_s)) = (of(&best), of(&advised)) else {
        return Err(Error::run("a winner is not solved any more"));
    };
    Ok(json!({
        "matrix": question.base.matrix,
        "n": problem.matrix.rows(),
        "nnz": problem.matrix.nnz(),
        "combinations": points.len(),
        "tried": advice.found.tried.len(),
        "search-s": advice.seconds,
        "sweep-s": sweep_s,
        "time-share": advice.seconds / sweep_s,
        "best-s": best_s.value,
        "advised-s": advised_s.value,
        "ratio": advised_s.value / best_s.value,
        "ratio-low": advised_s.low / best_s.high,
        "ratio-high": advised_s.high / best_s.low,
        "best": describe(&best),
        "advised": describe(&advised),
    }))
}

/// The searched settings in a few words.
fn describe(case: &Case) -> String {
    let Case { precond, fill, block_size, ordering, solver, backend, .. } = case;
    format!("{precond} k={fill} b={block_size} {ordering} {solver} {backend}")
}
