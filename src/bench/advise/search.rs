//! Best first through the combinations: what was tried tells how its neighbours will do.
//!
//! The first point is what the structure suggests; all its neighbours follow, then every method with
//! every block size, since these depend on each other most. Meanwhile what is expected to be better than
//! the best comes first, and in the end what is expected to come near it: a combination that differs from
//! one that was tried by one value is expected to take as long as that one, times what the same change
//! of value did elsewhere (`effects`); with several such neighbours, their geometric mean. A trial is
//! given up when it takes longer than the best so far by a margin, so a bad one costs no more than a
//! good one; a short one gets a second chance in the end, since another process in its way costs as much
//! as the trial. A method whose setup is cheap, but which the plain solver did not solve in time, is tried once more
//! with the values of the best: a few steps of block Jacobi may take less than one of ILU. The search ends when nothing
//! is expected to come near the best, or with its time.
//! Expectations are rough: neighbours of the best itself are left out only when they are expected to be
//! far worse.
//!
//! The factors of ILU(k) grow with k: a level is tried only after the one below it, and only while the
//! setup alone is not slower than the best already.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::base::error::Result;
use crate::bench::advise::effects::{Change, Effects, Known};
use crate::bench::advise::space::{Point, Space};
use crate::bench::advise::trial::{Trial, Tries};
use crate::case::Case;
use crate::methods::precond;

/// A trial is given up when it takes this many times the best so far.
pub(crate) const MARGIN: f64 = 2.0;
/// The first trial may take this share of the time at most.
const FIRST_SHARE: f64 = 0.3;
/// What is expected to take this many times the best is not tried any more.
const HOPELESS: f64 = 1.3;
/// A trial that was given up after fewer seconds is made again in the end.
const MOMENT: f64 = 0.05;
/// What is expected to take less than this many times the best is tried before anything else.
const BETTER: f64 = 0.95;
/// The same for the neighbours of the best.
const HOPELESS_NEAR: f64 = 2.0;
/// The same as long as only this share of all, and so many, were tried.
const HOPELESS_AT_FIRST: f64 = 2.5;
const FIRST_TRIED: f64 = 0.1;
const MOST_FIRST: f64 = 40.0;
/// A method that was given up, whose setup takes less than this share of the best, is tried with the best's values.
const CHEAP: f64 = 0.5;
/// A trial that was given up counts as this many times the best in expectations.
const SLOW: f64 = 2.5;
/// Failures count as this many times the best in expectations.
const FAILURE: f64 = 6.0;
/// From a trial that took more than this many times the best, no neighbour is tried.
const FAR: f64 = 4.0;

/// A preconditioner whose setup alone took this many times the best, and so many seconds, is not tried with other
/// blocks, which change that by less.
const HOPELESS_SETUP: f64 = 8.0;
const LONG_SETUP: f64 = 0.05;

/// Settings that depend on each other most: all their combinations are tried, the others being plain.
const TOGETHER: &[&str] = &["precond", "block-size"];

/// A combination that was tried.
#[derive(Clone, Debug)]
pub struct Tried {
    pub point: Point,
    pub case: Case,
    pub trial: Trial,
}

/// What a search found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// All trials in their order.
    pub tried: Vec<Tried>,
    /// Combinations that there are.
    pub combinations: usize,
    /// Of those not tried, how many were expected to be hopeless or cannot be better.
    pub hopeless: usize,
    /// Those that might have been worth it, when time was over, most promising first.
    pub left: Vec<Case>,
    /// Whether the user stopped it.
    pub interrupted: bool,
}

impl Found {
    /// The least time so far; infinite where nothing was solved.
    pub(super) fn best_seconds(&self) -> f64 {
        self.tried.iter().filter_map(|t| t.trial.seconds()).fold(f64::INFINITY, f64::min)
    }

    /// The trials that were solved, fastest first.
    pub fn solved(&self) -> Vec<&Tried> {
        let mut solved: Vec<&Tried> =
            self.tried.iter().filter(|t| t.trial.seconds().is_some()).collect();
        let seconds = |t: &Tried| t.trial.seconds().unwrap_or(f64::INFINITY);
        solved.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        solved
    }
}

/// The state of a search.
struct Search<'a> {
    space: &'a Space,
    points: HashMap<Point, Case>,
    tried: Vec<Tried>,
    /// Neighbours of each trial, with the changes that lead there.
    near: Vec<Vec<(Point, Change)>>,
    at: HashMap<Point, usize>,
    effects: Effects,
    /// Least seconds, and the trial that took them.
    best: f64,
    first: usize,
    /// What is tried whatever is expected.
    queue: VecDeque<Point>,
    /// Whether the neighbours of the first that was solved are in the queue.
    centred: bool,
    /// Whether cheap methods that were given up have had the values of the best.
    looked_again: bool,
    /// Short trials that were given up, which others on the machine may have made slow.
    doubtful: VecDeque<Point>,
    retried: HashSet<Point>,
    budget: f64,
}

/// Searches `space` for `budget` seconds at most; a trial that has begun is ended by its own limit.
/// `told` receives every trial.
///
/// # Errors
/// When the space is empty or too large.
pub(crate) fn search(
    space: &Space,
    tries: &mut dyn Tries,
    budget: f64,
    told: &mut dyn FnMut(&Tried, f64),
) -> Result<Found> {
    let points = space.points()?;
    let mut search = Search {
        space,
        points: points.iter().map(|p| (p.clone(), space.case(p))).collect(),
        tried: Vec::new(),
        near: Vec::new(),
        at: HashMap::new(),
        effects: Effects::default(),
        best: f64::INFINITY,
        first: 0,
        queue: points.first().cloned().into_iter().collect(),
        centred: false,
        looked_again: false,
        doubtful: VecDeque::new(),
        retried: HashSet::new(),
        budget,
    };
    let mut interrupted = false;
    while tries.elapsed() < budget
        && let Some(point) = search.next(&points)
    {
        let case = search.points[&point].clone();
        let limit = search.limit();
        let Some(trial) = tries.try_out(&case, limit) else {
            interrupted = true;
            break;
        };
        let at = search.add(Tried { point, case, trial });
        told(&search.tried[at], search.best);
        search.note_doubt(at, limit);
    }
    let left: Vec<Point> = if search.centred || search.best < f64::INFINITY {
        search.promising().into_iter().map(|(point, _)| point).collect()
    } else {
        // nothing is solved: nothing is known of any other
        points.iter().filter(|p| !search.at.contains_key(*p)).cloned().collect()
    };
    let combinations = points.len();
    let hopeless = combinations - search.tried.len() - left.len();
    let left = left.iter().map(|point| search.points[point].clone()).collect();
    Ok(Found { tried: search.tried, combinations, hopeless, left, interrupted })
}

impl Search<'_> {
    /// What is tried next of all `points`: what is expected to be better than the best, then the queue,
    /// then what may come near the best, and in the end a second time what was given up in a moment.
    fn next(&mut self, points: &[Point]) -> Option<Point> {
        if !self.centred && self.best < f64::INFINITY {
            let mut near = self.near.last().expect("one is solved").clone();
            // the first other value of every setting before the second of any: time may be short
            near.sort_by_key(|(_, (_, _, value))| *value);
            self.queue.extend(near.into_iter().map(|(point, _)| point));
            let plain: Vec<Point> = points.iter().filter(|p| self.is_plain(p)).cloned().collect();
            self.queue.extend(plain);
            self.centred = true;
        }
        let promising = if self.centred { self.promising().into_iter().next() } else { None };
        if promising.as_ref().is_some_and(|(_, expected)| *expected < BETTER * self.best) {
            return promising.map(|(point, _)| point);
        }
        let mut queued = self.next_in_queue();
        if queued.is_none() && self.centred && !self.looked_again {
            self.looked_again = true;
            self.queue.extend(self.cheap_with_the_best_values());
            queued = self.next_in_queue();
        }
        if queued.is_some() {
            return queued;
        }
        match promising {
            // nothing is solved yet: in their order
            None if !self.centred => points.iter().find(|p| !self.at.contains_key(*p)).cloned(),
            None => self.doubtful.pop_front(),
            Some((point, _)) => Some(point),
        }
    }

    /// Schedules trial `at` for a retry when it was aborted at a `limit` that one time slice of another
    /// process is long, unless its fixed costs alone are out of the question.
    fn note_doubt(&mut self, at: usize, limit: f64) {
        let Tried { point, trial, .. } = &self.tried[at];
        let near = matches!(trial, Trial::CutOff { fixed } if *fixed < FAR * self.best);
        if near && limit < MOMENT && self.retried.insert(point.clone()) {
            self.doubtful.push_back(point.clone());
        }
    }

    /// Seconds after which a trial is given up.
    fn limit(&self) -> f64 {
        if self.best < f64::INFINITY { MARGIN * self.best } else { FIRST_SHARE * self.budget }
    }

    /// Whether only settings of [`TOGETHER`] are not at their plain values.
    fn is_plain(&self, point: &Point) -> bool {
        let mut pairs = self.space.knobs().iter().zip(point);
        pairs.all(|(knob, &value)| value == 0 || TOGETHER.contains(&knob.axis.name))
    }

    /// The next of the queue that is still to be tried.
    fn next_in_queue(&mut self) -> Option<Point> {
        while let Some(point) = self.queue.pop_front() {
            if !self.at.contains_key(&point) && self.is_open(&point) {
                return Some(point);
            }
        }
        None
    }

    /// Plain points that were not solved in time though their setup is cheap, with the values of the best but for their
    /// method and block size.
    fn cheap_with_the_best_values(&self) -> Vec<Point> {
        let best = &self.tried[self.first].point;
        let with = |point: &Point| {
            let mut moved = point.clone();
            for (k, knob) in self.space.knobs().iter().enumerate() {
                if !TOGETHER.contains(&knob.axis.name) {
                    moved = self.space.moved(&moved, k, best[k]).unwrap_or(moved);
                }
            }
            moved
        };
        let cheap = |t: &&Tried| {
            t.trial.seconds().is_none()
                && t.trial.fixed().unwrap_or(0.0) < CHEAP * self.best
                && self.is_plain(&t.point)
        };
        let all = self.tried.iter().filter(cheap).map(|t| with(&t.point));
        all.filter(|point| self.points.contains_key(point)).collect()
    }

    /// Seconds from which a trial is not expected to be worth it, for neighbours of the best or others.
    fn hopeless(&self, near_best: bool) -> f64 {
        let few = (FIRST_TRIED * self.points.len() as f64).min(MOST_FIRST);
        self.best
            * match (near_best, (self.tried.len() as f64) < few) {
                (_, true) => HOPELESS_AT_FIRST,
                (true, false) => HOPELESS_NEAR,
                (false, false) => HOPELESS,
            }
    }

    /// Points that differ by one value, with the change; those that lose more values are among them.
    fn neighbours(&self, point: &Point) -> Vec<(Point, Change)> {
        let mut found = Vec::new();
        for (k, knob) in self.space.knobs().iter().enumerate() {
            for value in (0..knob.values.len()).filter(|&v| v != point[k]) {
                if let Some(moved) = self.space.moved(point, k, value)
                    && self.points.contains_key(&moved)
                {
                    found.push((moved, (k, point[k], value)));
                }
            }
        }
        found
    }

    /// Keeps a trial, in the place of an earlier one of the same point, and what it teaches; where it is.
    fn add(&mut self, tried: Tried) -> usize {
        let at = self.at.get(&tried.point).copied().unwrap_or(self.tried.len());
        if let Some(seconds) = tried.trial.seconds().filter(|s| *s < self.best) {
            (self.best, self.first) = (seconds, at);
        }
        let near = self.neighbours(&tried.point);
        let here = self.known(&tried.trial);
        for (point, change) in &near {
            let Some(&at) = self.at.get(point) else { continue };
            let there = self.known(&self.tried[at].trial);
            self.effects.learn((&tried.point, here), (point, there), *change);
        }
        if at < self.tried.len() {
            self.tried[at] = tried;
        } else {
            self.at.insert(tried.point.clone(), at);
            self.tried.push(tried);
            self.near.push(near);
        }
        at
    }

    /// What a trial tells of times; nothing before anything was solved.
    fn known(&self, trial: &Trial) -> Known {
        match trial {
            Trial::Solved { seconds, .. } => Known::Took(*seconds),
            Trial::CutOff { fixed } if self.best < f64::INFINITY => {
                Known::Above((SLOW * self.best).max(*fixed))
            }
            _ => Known::Never,
        }
    }

    /// Untried neighbours of what was tried that are worth a trial, with the seconds expected, most
    /// promising first.
    fn promising(&self) -> Vec<(Point, f64)> {
        // of neighbours whose time is known, and of those that were given up
        let mut sums: HashMap<&Point, [(f64, usize); 2]> = HashMap::new();
        for (tried, near) in self.tried.iter().zip(&self.near) {
            let (seconds, kind) = match self.known(&tried.trial) {
                Known::Took(seconds) => (seconds, 0),
                Known::Above(seconds) => (seconds, 1),
                Known::Never => (FAILURE * self.best, 1),
            };
            // far from the best, neighbours cannot be promising
            if seconds > FAR * self.best {
                continue;
            }
            for (point, change) in near.iter().filter(|(point, _)| !self.at.contains_key(point)) {
                let (sum, count) = &mut sums.entry(point).or_default()[kind];
                *sum += seconds.ln() + self.effects.of(*change, &tried.point);
                *count += 1;
            }
        }
        let near_best = |point: &Point| {
            self.near.get(self.first).is_some_and(|near| near.iter().any(|(p, _)| p == point))
        };
        let mut worth: Vec<(&Point, f64)> = Vec::new();
        for (point, [took, above]) in sums {
            let (sum, count) = if took.1 > 0 { took } else { above };
            let expected = (sum / count as f64).exp();
            if expected < self.hopeless(near_best(point)) && self.is_open(point) {
                worth.push((point, expected));
            }
        }
        // the same choice in every run: maps have no order
        worth.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(b.0)));
        worth.into_iter().map(|(point, expected)| (point.clone(), expected)).collect()
    }

    /// Whether the setup of the same preconditioner was out of the question with other blocks.
    fn is_out_of_the_question(&self, case: &Case) -> bool {
        let hopeless = (HOPELESS_SETUP * self.best).max(LONG_SETUP);
        self.tried.iter().any(|t| {
            t.case.precond == case.precond
                && t.case.fill == case.fill
                && t.case.block_size != case.block_size
                && t.trial.fixed().is_some_and(|fixed| fixed >= hopeless)
        })
    }

    /// Whether a point may be tried: not when its setup is out of the question, and of ILU(k) when a level below
    /// was tried on these blocks and its setup is not slower already than the best.
    fn is_open(&self, point: &Point) -> bool {
        if self.best < f64::INFINITY && self.is_out_of_the_question(&self.points[point]) {
            return false;
        }
        let Some(fill) = self.space.knobs().iter().position(|k| k.axis.name == "fill") else {
            return true;
        };
        if point[fill] == 0 {
            return true;
        }
        let case = &self.points[point];
        let name = precond::name(&case.precond);
        let below = self.tried.iter().filter(|t| {
            t.point[fill] + 1 == point[fill]
                && precond::name(&t.case.precond) == name
                && t.case.block_size == case.block_size
        });
        let fixed = below.filter_map(|t| t.trial.fixed()).fold(f64::INFINITY, f64::min);
        fixed < self.best.min(f64::MAX)
    }
}

#[cfg(test)]
mod tests;
