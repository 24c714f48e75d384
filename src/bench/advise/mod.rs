//! Which settings solve a system fastest on this machine: a bounded search with measurements.
//!
//! [`Structure`] analyses the matrix, [`Space`] holds the combinations of settings that apply to it,
//! [`search()`] tries the promising ones once and aborts slow ones, [`finals()`] measures the best in
//! alternation, and `report::advice` states the result, its reasons and its confidence.

pub(crate) mod check;
pub(crate) mod decision;
mod describe;
pub(crate) mod effects;
pub(crate) mod finals;
pub(crate) mod peers;
pub(crate) mod search;
pub(crate) mod space;
mod structure;
mod trial;

use std::sync::atomic::{AtomicUsize, Ordering as Atomic};

use crate::base::error::{Error, Result};
use crate::base::external::external;
use crate::base::measure::{now, seconds_since};
use crate::case::Case;
use crate::compute;
use crate::config::Sweep;
use crate::config::peer::Peer;
use crate::matrix::SYMMETRY_TOLERANCE;
use crate::problem::Problem;

pub(crate) use decision::Finalist;
pub(crate) use describe::describe;
pub(crate) use finals::{finals, measured};
pub(crate) use search::{Found, Tried, search};
pub(crate) use space::Space;
pub(crate) use structure::Structure;
pub(crate) use trial::{Trial, Trials, Tries};

/// Share of the time budget for the search; the rest is for the finals.
const SEARCH_SHARE: f64 = 0.7;
/// The same where methods of peers are tried after it, until that share is over.
const SHARE_BESIDE_PEERS: f64 = 0.5;

#[derive(Clone, Debug)]
pub struct Question {
    /// Matrix and right-hand side; everything else is searched.
    pub base: Case,
    /// Values to which the user restricts the settings.
    pub fixed: Sweep,
    /// Solves with the same factors.
    pub solves: usize,
    pub budget_s: f64,
    /// Peers whose best methods are tried, too, or why there is none of that name.
    pub(crate) peers: Vec<(String, Result<Peer>)>,
}

#[derive(Debug)]
pub struct Advice {
    /// Properties of the matrix.
    pub structure: Structure,
    pub space: Space,
    pub found: Found,
    /// The best, fastest first.
    pub finalists: Vec<Finalist>,
    /// Methods of peers that were asked for.
    pub(crate) peers: Vec<peers::OfPeer>,
    /// Backends left out, and why.
    pub missing: Vec<String>,
    /// Seconds of the whole search.
    pub seconds: f64,
    /// Seconds of compiling and loading kernels, which later searches find in the cache.
    pub compile_s: f64,
}

/// The search space of a question on the available backends.
///
/// # Errors
/// When no combination remains, or none of the allowed backends is usable here.
pub(crate) fn space(question: &Question, structure: &Structure) -> Result<(Space, Vec<String>)> {
    let (mut backends, mut missing, mut first) = (Vec::new(), Vec::new(), None);
    let given = question.fixed.backend.as_ref();
    // the vendor's library is a baseline, not advice: only on request
    let all = || ["cuda", "cpu-mt", "cpu"].map(String::from).to_vec();
    // to ask a GPU takes a second or more: not where it is not wanted
    for name in given.cloned().unwrap_or_else(all) {
        if external(&name).is_some() {
            return Err(Error::input(format!("`{name}` is not searched"))
                .hint("--with-peers tries the methods of peers"));
        }
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

/// Progress events of [`advise`].
#[derive(Debug)]
pub(crate) enum Told<'a> {
    /// A trial of the search, and the shortest time so far.
    Tried(&'a Tried, f64),
    /// The finals begin, with this number of finalists.
    Finals(usize),
}

/// Answers a question about `problem` with right-hand side `b`; `told` receives progress events.
///
/// # Errors
/// When no combination of settings can be tried.
pub(crate) fn advise(
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
    let asked = &question.peers;
    let share = if asked.is_empty() { SEARCH_SHARE } else { SHARE_BESIDE_PEERS };
    let mut found = search(&space, &mut trials, share * question.budget_s, &mut tried)?;
    let mut peers = Vec::new();
    if !found.interrupted {
        let until = SEARCH_SHARE * question.budget_s;
        let about = (&space, &structure);
        peers = peers::try_all(asked, about, &mut found, &mut trials, until, &mut tried);
    }
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
    Ok(Advice { structure, space, found, finalists, peers, missing, seconds, compile_s })
}
