//! Which settings solve a system fastest on this machine: a bounded search with measurements.
//!
//! [`Structure`] sees what the matrix suggests, [`Space`] holds the combinations of settings that have
//! a meaning for it, [`search()`] tries the promising ones once and gives up what is slow, [`finals()`]
//! measures the best in turns, and [`report`] says what was found, why, and how sure it is.

pub mod check;
pub mod decision;
mod describe;
pub mod effects;
pub mod finals;
pub mod search;
pub mod space;
mod structure;
mod trial;

use std::sync::atomic::{AtomicUsize, Ordering as Atomic};

use crate::base::error::Result;
use crate::base::measure::{now, seconds_since};
use crate::case::Case;
use crate::compute;
use crate::config::Sweep;
use crate::matrix::SYMMETRY_TOLERANCE;
use crate::problem::Problem;

pub use decision::Finalist;
pub use decision::equals;
pub use describe::describe;
pub use finals::{finals, measured};
pub use search::{Found, Tried, search};
pub use space::{Knob, Point, Space};
pub use structure::Structure;
pub use trial::{Trial, Trials, Tries};

/// Share of the time budget in which the search goes on; the rest is for the finals.
const SEARCH_SHARE: f64 = 0.7;

/// What to find.
#[derive(Clone, Debug)]
pub struct Question {
    /// Matrix and right-hand side; everything else is searched.
    pub base: Case,
    /// Values that the user allows, by setting.
    pub fixed: Sweep,
    /// Solves with the same factors.
    pub solves: usize,
    /// Seconds for everything.
    pub budget_s: f64,
}

/// What was found.
#[derive(Debug)]
pub struct Advice {
    /// What the matrix shows.
    pub structure: Structure,
    /// What was searched.
    pub space: Space,
    /// The search.
    pub found: Found,
    /// The best, fastest first.
    pub finalists: Vec<Finalist>,
    /// Backends left out, and why.
    pub missing: Vec<String>,
    /// Seconds that it took.
    pub seconds: f64,
    /// Seconds of them in which kernels were compiled and loaded, which later searches find compiled.
    pub compile_s: f64,
}

/// The space of a question on the backends that are here.
///
/// # Errors
/// When no combination is left, and when none of the backends that the user allows can compute here.
pub fn space(question: &Question, structure: &Structure) -> Result<(Space, Vec<String>)> {
    let (mut backends, mut missing, mut first) = (Vec::new(), Vec::new(), None);
    let given = question.fixed.backend.as_ref();
    // the vendor's library is a baseline, not advice: only where it is asked for
    let all = || ["cuda", "cpu-mt", "cpu"].map(String::from).to_vec();
    // to ask a GPU takes a second or more: not where it is not wanted
    for name in given.cloned().unwrap_or_else(all) {
        match compute::available(&name) {
            Ok(()) => backends.push(name),
            Err(why) => {
                missing.push(format!("{name} left out: {why}"));
                first.get_or_insert(why);
            }
        }
    }
    if let Some(why) = first.filter(|_| backends.is_empty()) {
        return Err(why);
    }
    let mut fixed = question.fixed.clone();
    if given.is_some() {
        fixed.backend = Some(backends.clone());
    } else if rayon::current_num_threads() < 2 {
        backends.retain(|name| name != "cpu-mt");
    }
    let names: Vec<&str> = backends.iter().map(String::as_str).collect();
    let space = Space::new(question.base.clone(), structure, &names, &fixed)?;
    Ok((space, missing))
}

/// What [`advise`] tells while it is at work.
#[derive(Debug)]
pub enum Told<'a> {
    /// A trial of the search, and the least seconds so far.
    Tried(&'a Tried, f64),
    /// So many finalists are measured in rounds from now on.
    Finals(usize),
}

/// Answers a question about `problem` with right-hand side `b`; `told` hears how it goes on.
///
/// # Errors
/// When no combination of settings is left to try.
pub fn advise(
    question: &Question,
    problem: &Problem,
    b: &[f64],
    interrupts: &AtomicUsize,
    told: &mut dyn FnMut(Told),
) -> Result<Advice> {
    let start = now();
    let mut trials = Trials::new(problem, b, question.solves, interrupts);
    let tolerance = question.fixed.symmetry_tolerance.as_ref().and_then(|given| given.first());
    let structure = Structure::of(problem, tolerance.copied().unwrap_or(SYMMETRY_TOLERANCE));
    let (space, missing) = space(question, &structure)?;
    // cuda and cusparse share the GPU and its kernels
    let backends = space.knobs().iter().filter(|knob| knob.axis.name == "backend");
    let gpu = backends.flat_map(|knob| &knob.values).find(|name| compute::on_gpu(name)).cloned();
    let compiled = || gpu.as_deref().map_or(0.0, compute::compile_seconds);
    let before = compiled();
    let mut tried = |tried: &Tried, best: f64| told(Told::Tried(tried, best));
    let mut found = search(&space, &mut trials, SEARCH_SHARE * question.budget_s, &mut tried)?;
    let finalists = if found.interrupted {
        // there is no time to measure it again
        found.best().into_iter().collect()
    } else {
        let mut count = |count| told(Told::Finals(count));
        let finalists = finals(&found, &mut trials, question.budget_s, &mut count);
        found.interrupted = interrupts.load(Atomic::SeqCst) > 0;
        finalists
    };
    let (seconds, compile_s) = (seconds_since(start), compiled() - before);
    Ok(Advice { structure, space, found, finalists, missing, seconds, compile_s })
}
