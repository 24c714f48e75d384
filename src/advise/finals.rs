//! The best of a search measured properly: in turns, so that a noisy minute hits all of them alike.

use crate::advise::search::Found;
use crate::advise::trial::{Trial, Tries};
use crate::case::Case;
use crate::measure::{Median, median};
use crate::result::Record;

/// Finalists at most.
const MOST: usize = 6;
/// A finalist was within this many times the best in the search.
const WITHIN: f64 = 1.3;
/// Where all turns of a further one take no more than a share of the search, which is so for small systems,
/// whose single times say little, there are more.
const MOST_CHEAP: usize = 12;
const WITHIN_CHEAP: f64 = 2.0;
const CHEAP: f64 = 0.06;
/// Turns at most, and those after which a finalist that is clearly slower is dropped.
const TURNS: usize = 15;
const FEWEST: usize = 3;
/// Half width of the interval over the median at which turns end.
const PRECISE: f64 = 0.02;
/// A trial here is given up only when something goes wrong: after this many times the best, and this
/// many seconds, which a busy machine may take for the shortest of them.
const PATIENCE: f64 = 10.0;
const LEAST_PATIENCE: f64 = 2.0;

/// A setting of everything, and what it takes.
#[derive(Clone, Debug)]
pub struct Finalist {
    /// What was run.
    pub case: Case,
    /// Seconds of fixed costs and all solves.
    pub seconds: Median,
    /// Seconds of the fixed costs (median).
    pub fixed: f64,
    /// Iterations, memory and the rest, of the last turn.
    pub record: Record,
}

/// A finalist while it is measured.
struct Runner {
    case: Case,
    seconds: Vec<f64>,
    fixed: Vec<f64>,
    record: Option<Record>,
}

impl Runner {
    fn median(&self) -> Option<Median> {
        median(&self.seconds)
    }
}

/// Measures the best of `seen` until `budget` seconds since the search began are over, at least once.
/// Fastest first.
pub fn finals(seen: &Found, tries: &mut dyn Tries, budget: f64) -> Vec<Finalist> {
    let solved = seen.solved();
    let Some(best) = solved.first().and_then(|t| t.trial.seconds()) else { return Vec::new() };
    let cheap = CHEAP * tries.elapsed() / TURNS as f64;
    let chosen = |place: usize, seconds: f64| {
        (place < MOST && seconds <= WITHIN * best)
            || (place < MOST_CHEAP && seconds <= (WITHIN_CHEAP * best).min(cheap))
    };
    let cases: Vec<Case> = solved
        .iter()
        .enumerate()
        .filter(|(place, t)| t.trial.seconds().is_some_and(|s| chosen(*place, s)))
        .map(|(_, t)| t.case.clone())
        .collect();
    let found = measured(cases, tries, budget, PATIENCE * best);
    if !found.is_empty() {
        return found;
    }
    // stopped, or disturbed beyond patience: what the search saw
    seen.best().into_iter().collect()
}

impl Found {
    /// The best as the search saw it, measured once.
    pub fn best(&self) -> Option<Finalist> {
        let best = *self.solved().first()?;
        let Trial::Solved { fixed, seconds, record } = &best.trial else { return None };
        Some(Finalist {
            case: best.case.clone(),
            seconds: Median::single(*seconds),
            fixed: *fixed,
            record: (**record).clone(),
        })
    }
}

/// Measures `cases` in turns, each trial up to `limit` seconds. Fastest first; those that are not
/// solved are left out.
pub fn measured(cases: Vec<Case>, tries: &mut dyn Tries, budget: f64, limit: f64) -> Vec<Finalist> {
    let new = |case| Runner { case, seconds: Vec::new(), fixed: Vec::new(), record: None };
    let mut runners: Vec<Runner> = cases.into_iter().map(new).collect();
    let limit = limit.max(LEAST_PATIENCE);
    let mut racing = vec![true; runners.len()];
    'turns: for turn in 0..TURNS {
        for (runner, racing) in runners.iter_mut().zip(&mut racing).filter(|(_, r)| **r) {
            if turn > 0 && tries.elapsed() > budget {
                break 'turns;
            }
            match tries.try_out(&runner.case, limit) {
                Some(Trial::Solved { fixed, seconds, record }) => {
                    runner.seconds.push(seconds);
                    runner.fixed.push(fixed);
                    runner.record = Some(*record);
                }
                Some(_) => *racing = false,
                None => break 'turns,
            }
        }
        if turn + 1 < FEWEST {
            continue;
        }
        let medians: Vec<Option<Median>> = runners.iter().map(Runner::median).collect();
        let by_value = |a: &&Median, b: &&Median| a.value.total_cmp(&b.value);
        let Some(first) = medians.iter().flatten().min_by(by_value).copied() else { break };
        for (racing, median) in racing.iter_mut().zip(&medians) {
            *racing &= median.is_some_and(|m| m.ends().0 <= first.ends().1);
        }
        if racing.iter().filter(|r| **r).count() < 2 && first.relative_error() < PRECISE {
            break;
        }
    }
    let mut finalists: Vec<Finalist> = runners
        .into_iter()
        .filter_map(|r| {
            let (seconds, fixed) = (r.median()?, median(&r.fixed)?.value);
            Some(Finalist { case: r.case, seconds, fixed, record: r.record? })
        })
        .collect();
    finalists.sort_by(|a, b| a.seconds.value.total_cmp(&b.seconds.value));
    finalists
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::search::Tried;

    /// Seconds by the fill level, with a disturbance in every third turn.
    struct Noisy(Vec<usize>);

    impl Tries for Noisy {
        fn try_out(&mut self, case: &Case, _: f64) -> Option<Trial> {
            self.0.push(case.fill);
            if case.fill == 9 {
                return Some(Trial::Failed { reason: String::new() });
            }
            let disturbed = if self.0.len().is_multiple_of(4) { 1.5 } else { 1.0 };
            let seconds = [1.0, 1.1, 2.0][case.fill] * disturbed;
            let record = Box::new(Record { case: case.clone(), ..Record::default() });
            Some(Trial::Solved { fixed: 0.25, seconds, record })
        }
        fn elapsed(&self) -> f64 {
            self.0.len() as f64
        }
    }

    fn fills(found: &[Finalist]) -> Vec<usize> {
        found.iter().map(|f| f.case.fill).collect()
    }

    #[test]
    fn medians_decide_and_the_slow_are_dropped() {
        let cases = |fills: &[usize]| -> Vec<Case> {
            fills.iter().map(|&fill| Case { fill, ..Case::default() }).collect()
        };
        let mut noisy = Noisy(Vec::new());
        let found = measured(cases(&[2, 1, 9, 0]), &mut noisy, 1e3, 1e3);
        assert_eq!(fills(&found), [0, 1, 2]);
        assert_eq!((found[0].seconds.value, found[0].fixed), (1.0, 0.25));
        let runs = |fill| noisy.0.iter().filter(|&&f| f == fill).count();
        assert_eq!((runs(9), runs(2)), (1, 3));
        assert!(runs(0) > 3);
        // the time is over at once: one turn
        let mut noisy = Noisy(vec![0; 9]);
        let found = measured(cases(&[1, 0]), &mut noisy, 5.0, 1e3);
        assert_eq!((fills(&found), noisy.0.len()), (vec![0, 1], 11));
        assert_eq!(found[0].seconds.count, 1);
    }

    /// Milliseconds that the iteration limit says, and a search that took some seconds.
    struct Clock(f64);

    impl Tries for Clock {
        fn try_out(&mut self, case: &Case, _: f64) -> Option<Trial> {
            let record = Box::new(Record { case: case.clone(), ..Record::default() });
            let seconds = 1e-3 * case.max_iterations as f64;
            Some(Trial::Solved { fixed: 0.0, seconds, record })
        }
        fn elapsed(&self) -> f64 {
            self.0
        }
    }

    #[test]
    fn short_trials_have_more_finalists() {
        let found = || {
            let mut clock = Clock(0.0);
            let tried = |max_iterations| {
                let case = Case { max_iterations, ..Case::default() };
                let trial = clock.try_out(&case, 1.0).expect("not stopped");
                Tried { point: Vec::new(), case, trial }
            };
            let tried: Vec<Tried> = (10..23).map(tried).collect();
            let combinations = tried.len();
            Found { tried, combinations, hopeless: 0, left: Vec::new(), interrupted: false }
        };
        // 10 to 13 ms are within a factor of 1.3
        assert_eq!(finals(&found(), &mut Clock(0.1), 1.0).len(), 4);
        // all turns of 15 ms take 6 % of 3.75 s; 18 ms ones would take more
        assert_eq!(finals(&found(), &mut Clock(4.0), 5.0).len(), 7);
        // no more than twice the best, and twelve
        assert_eq!(finals(&found(), &mut Clock(400.0), 500.0).len(), 11);
    }
}
