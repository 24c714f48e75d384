//! Measures the finalists of a search in alternation, so that noise affects all of them alike.

use crate::base::measure::{Median, median};
use crate::bench::advise::decision::{Finalist, ROUNDS, is_faster};
use crate::bench::advise::search::{Found, Tried};
use crate::bench::advise::trial::{Trial, Tries};
use crate::case::Case;
use crate::config::AXES;
use crate::record::Record;

/// Largest number of finalists.
const MOST: usize = 6;
/// Largest time of a finalist in the search, relative to the best.
const WITHIN: f64 = 1.3;
/// More finalists are admitted as long as all rounds of a further one take no more than a share of the search, as
/// for small systems, whose single times are unreliable.
const MOST_CHEAP: usize = 12;
const WITHIN_CHEAP: f64 = 2.0;
const CHEAP: f64 = 0.06;
/// The second best of the search is a finalist up to this factor: a winner needs a rival.
const WITHIN_SECOND: f64 = 10.0;
/// Largest number of rounds; after [`ROUNDS`] a clearly slower finalist is dropped.
const TURNS: usize = 15;
/// Rounds end when the half width of the interval is at most this share of the median.
const PRECISE: f64 = 0.02;
/// A trial of the finals is aborted only when something goes wrong: after this many times the best time and this
/// many seconds, which a busy machine may need for the shortest.
const PATIENCE: f64 = 10.0;
const LEAST_PATIENCE: f64 = 2.0;

/// A finalist while it is measured.
struct Runner {
    case: Case,
    /// Seconds, those of the fixed costs, and the record of each round.
    rounds: Vec<(f64, f64, Record)>,
}

impl Runner {
    fn median(&self) -> Option<Median> {
        let seconds: Vec<f64> = self.rounds.iter().map(|round| round.0).collect();
        median(&seconds)
    }

    /// Its median, with the parts of the round or of both rounds in the middle: their sum is the median.
    fn finalist(mut self) -> Option<Finalist> {
        let seconds = self.median()?;
        self.rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
        let n = self.rounds.len();
        let fixed = f64::midpoint(self.rounds[(n - 1) / 2].1, self.rounds[n / 2].1);
        let disturbed = self.rounds[n - 1].0 / seconds.value;
        let record = self.rounds.swap_remove((n - 1) / 2).2;
        Some(Finalist { case: self.case, seconds, fixed, disturbed, record })
    }
}

/// Measures the best of `seen` until `budget` seconds since the search began are over, at least once, the best of
/// peers and the best of this program among them. Fastest first. `told` receives the number of finalists.
pub(crate) fn finals(
    seen: &Found,
    tries: &mut dyn Tries,
    budget: f64,
    told: &mut dyn FnMut(usize),
) -> Vec<Finalist> {
    let solved = seen.solved();
    let Some(best) = solved.first().and_then(|t| t.trial.seconds()) else { return Vec::new() };
    let cheap = CHEAP * tries.elapsed() / TURNS as f64;
    let chosen = |place: usize, seconds: f64| {
        (place < 2 && seconds <= WITHIN_SECOND * best)
            || (place < MOST && seconds <= WITHIN * best)
            || (place < MOST_CHEAP && seconds <= (WITHIN_CHEAP * best).min(cheap))
    };
    let solved = without_twins(solved);
    let first_of = |peer| solved.iter().position(|t| t.case.peer().is_some() == peer);
    let firsts = first_of(true).zip(first_of(false));
    let compared = |place: usize, seconds: f64| {
        firsts.is_some_and(|(peer, own)| [peer, own].contains(&place))
            && seconds <= WITHIN_SECOND * best
    };
    let mut cases: Vec<Case> = solved
        .iter()
        .enumerate()
        .filter(|(place, t)| {
            t.trial.seconds().is_some_and(|s| chosen(*place, s) || compared(*place, s))
        })
        .map(|(_, t)| t.case.clone())
        .collect();
    if let [only] = cases.as_slice()
        && tries.elapsed() + WITHIN_SECOND * best < budget
    {
        cases.extend(given_up_beside(only, WITHIN_SECOND * best, seen).cloned());
    }
    told(cases.len());
    let found = measured(cases, tries, budget, PATIENCE * best);
    if !found.is_empty() {
        return found;
    }
    // stopped, or disturbed beyond patience: what the search saw
    seen.best().into_iter().collect()
}

/// Of the trials aborted for their time, which another process may have caused, the one most similar to `best`
/// with the lowest fixed costs, below `limit`: a rival where nothing else was solved.
fn given_up_beside<'a>(best: &Case, limit: f64, seen: &'a Found) -> Option<&'a Case> {
    let apart = |case: &Case| AXES.iter().filter(|a| (a.text)(case) != (a.text)(best)).count();
    let given_up = seen.tried.iter().filter_map(|t| match t.trial {
        Trial::CutOff { fixed } if fixed < limit => Some((apart(&t.case), fixed, &t.case)),
        _ => None,
    });
    given_up.min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))).map(|(_, _, case)| case)
}

/// Replaces a finalist by the simpler of two trials that differ only in a setting without effect.
fn without_twins(solved: Vec<&Tried>) -> Vec<&Tried> {
    let mut kept: Vec<&Tried> = Vec::new();
    for tried in solved {
        match kept.iter_mut().find(|other| changed_nothing(other, tried)) {
            Some(other) if tried.point < other.point => *other = tried,
            Some(_) => {}
            None => kept.push(tried),
        }
    }
    kept
}

/// Settings that affect only the iterations.
const OF_THE_COURSE: [&str; 2] = ["restart", "orthogonalisation"];
/// Settings that affect only the pattern of the factors.
const OF_THE_PATTERN: [&str; 2] = ["fill", "level-rule"];

/// Whether two trials differ in a single setting without effect: all residuals are bitwise equal, as with a restart
/// beyond the number of iterations.
pub(crate) fn changed_nothing(one: &Tried, other: &Tried) -> bool {
    let (Trial::Solved { record: a, .. }, Trial::Solved { record: b, .. }) =
        (&one.trial, &other.trial)
    else {
        return false;
    };
    let mut differ = AXES.iter().filter(|axis| (axis.text)(&one.case) != (axis.text)(&other.case));
    let (Some(axis), None) = (differ.next(), differ.next()) else { return false };
    let bits = |r: &Record| {
        let of = &r.convergence;
        (of.iterations, of.monitored_residual.map(f64::to_bits), of.true_residual.map(f64::to_bits))
    };
    let same = bits(a) == bits(b) && a.convergence.true_residual.is_some();
    let pattern = a.factor.factor_entries == b.factor.factor_entries;
    same && (OF_THE_COURSE.contains(&axis.name) || (OF_THE_PATTERN.contains(&axis.name) && pattern))
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
            disturbed: 1.0,
            record: (**record).clone(),
        })
    }
}

/// Measures `cases` in alternation, each trial up to `limit` seconds. Fastest first, without those that fail.
pub(crate) fn measured(
    cases: Vec<Case>,
    tries: &mut dyn Tries,
    budget: f64,
    limit: f64,
) -> Vec<Finalist> {
    let new = |case| Runner { case, rounds: Vec::new() };
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
                    runner.rounds.push((seconds, fixed, *record));
                }
                Some(_) => *racing = false,
                None => break 'turns,
            }
        }
        if turn + 1 < ROUNDS {
            continue;
        }
        let medians: Vec<Option<Median>> = runners.iter().map(Runner::median).collect();
        let by_value = |a: &&Median, b: &&Median| a.value.total_cmp(&b.value);
        let Some(first) = medians.iter().flatten().min_by(by_value).copied() else { break };
        for (racing, median) in racing.iter_mut().zip(&medians) {
            *racing &= median.is_some_and(|m| !is_faster(&first, &m));
        }
        if racing.iter().filter(|r| **r).count() < 2 && first.relative_error() < PRECISE {
            break;
        }
    }
    let mut finalists: Vec<Finalist> = runners.into_iter().filter_map(Runner::finalist).collect();
    finalists.sort_by(|a, b| a.seconds.value.total_cmp(&b.seconds.value));
    finalists
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::advise::trial::At;

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
        assert_eq!((runs(9), runs(2)), (1, ROUNDS));
        assert!(runs(0) > ROUNDS);
        // the time is over at once: one turn
        let mut noisy = Noisy(vec![0; 9]);
        let found = measured(cases(&[1, 0]), &mut noisy, 5.0, 1e3);
        assert_eq!((fills(&found), noisy.0.len()), (vec![0, 1], 11));
        assert_eq!(found[0].seconds.count, 1);
    }

    /// A trial of as many milliseconds as the iteration limit says.
    fn by_limit(case: &Case, _: f64) -> Trial {
        let record = Box::new(Record { case: case.clone(), ..Record::default() });
        Trial::Solved { fixed: 0.0, seconds: 1e-3 * case.max_iterations as f64, record }
    }

    /// What a search found that made such trials.
    fn found_by_limit(ms: &[(usize, &str)]) -> Found {
        let tried = ms.iter().map(|&(max_iterations, backend)| {
            let case = Case { max_iterations, backend: backend.into(), ..Case::default() };
            Tried { point: Vec::new(), trial: by_limit(&case, 1.0), case }
        });
        Found { tried: tried.collect(), ..Found::default() }
    }

    #[test]
    fn short_trials_have_more_finalists() {
        let found = found_by_limit(&std::array::from_fn::<_, 13, _>(|i| (10 + i, "cpu")));
        let finalists =
            |elapsed, budget| finals(&found, &mut At(elapsed, by_limit), budget, &mut |_| {}).len();
        // 10 to 13 ms are within a factor of 1.3
        assert_eq!(finalists(0.1, 1.0), 4);
        // all turns of 15 ms take 6 % of 3.75 s; 18 ms ones would take more
        assert_eq!(finalists(4.0, 5.0), 7);
        // no more than twice the best, and twelve
        assert_eq!(finalists(400.0, 500.0), 11);
    }

    #[test]
    fn the_best_of_peers_and_of_this_program_are_measured_beside_each_other() {
        let found = |ms: &[(usize, &str)]| {
            let found = found_by_limit(ms);
            let finalists = finals(&found, &mut At(0.1, by_limit), 1.0, &mut |_| {});
            finalists.iter().map(|f| f.case.max_iterations).collect::<Vec<_>>()
        };
        let (own, peer) = ("cpu", "external:lib");
        assert_eq!(found(&[(10, own), (11, own), (40, peer), (50, peer)]), [10, 11, 40]);
        assert_eq!(found(&[(10, peer), (11, peer), (30, own), (12, peer)]), [10, 11, 12, 30]);
        assert_eq!(found(&[(10, own), (11, own), (101, peer)]), [10, 11]);
        assert_eq!(found(&[(10, own), (11, own), (40, own)]), [10, 11]);
    }

    #[test]
    fn what_was_given_up_is_a_rival_where_nothing_else_was_solved() {
        let tried = |fill, restart, trial| {
            let case = Case { fill, restart, ..Case::default() };
            Tried { point: vec![fill, restart], case, trial }
        };
        let record = Box::new(Record::default());
        let best = Trial::Solved { fixed: 0.25, seconds: 1.0, record };
        let failed = Trial::Failed { reason: String::new() };
        let tried = vec![
            tried(0, 30, best),
            tried(1, 60, Trial::CutOff { fixed: 0.1 }),
            tried(2, 30, Trial::CutOff { fixed: 0.3 }),
            tried(1, 30, Trial::CutOff { fixed: 0.2 }),
            // its fixed costs alone are too much
            tried(0, 60, Trial::CutOff { fixed: 11.0 }),
            tried(9, 30, failed),
        ];
        let found = Found { tried, ..Found::default() };
        let measured = finals(&found, &mut Noisy(Vec::new()), 1e3, &mut |_| {});
        assert_eq!(fills(&measured), [0, 1]);
        assert!(measured.iter().all(|f| f.case.restart == 30 && f.seconds.count >= ROUNDS));
        // no time for one that may take ten times as long
        assert_eq!(fills(&finals(&found, &mut Noisy(Vec::new()), 9.0, &mut |_| {})), [0]);
    }

    #[test]
    fn the_parts_of_a_median_add_up_to_it() {
        let round = |seconds, fixed| (seconds, fixed, Record::default());
        let of = |rounds: Vec<_>| Runner { case: Case::default(), rounds }.finalist().unwrap();
        let odd = of(vec![round(3.0, 2.5), round(1.0, 0.5), round(2.0, 0.25)]);
        assert_eq!((odd.seconds.value, odd.fixed), (2.0, 0.25));
        let even = of(vec![round(3.0, 1.0), round(1.0, 0.5), round(2.0, 0.5), round(9.0, 9.0)]);
        assert_eq!((even.seconds.value, even.fixed), (2.5, 0.75));
        assert_eq!((odd.disturbed, even.disturbed), (1.5, 3.6));
    }

    #[test]
    fn a_restart_beyond_the_iterations_is_no_rival() {
        let tried = |restart, seconds, residual| {
            let mut record = Record::default();
            record.convergence.iterations = 20;
            record.convergence.monitored_residual = Some(residual);
            record.convergence.true_residual = Some(residual);
            let trial = Trial::Solved { fixed: 0.0, seconds, record: Box::new(record) };
            Tried { point: vec![restart], case: Case { restart, ..Case::default() }, trial }
        };
        let (short, long) = (tried(30, 1.1, 1e-7), tried(60, 1.0, 1e-7));
        assert!(changed_nothing(&short, &long));
        let kept = without_twins(vec![&long, &short]);
        assert_eq!(kept.iter().map(|t| t.case.restart).collect::<Vec<_>>(), [30]);
        let other = tried(10, 1.2, 2e-7);
        assert!(!changed_nothing(&short, &other));
        assert_eq!(without_twins(vec![&long, &other]).len(), 2);
    }
}
