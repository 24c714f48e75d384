//! The ratio of two measurements of a case and its 95 % interval.

use crate::base::measure::{Median, median, shift};
use crate::record::schema::Environment;
use crate::record::{Record, rounds};

/// What an interval of a ratio is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The interval of each median, within its run.
    Samples,
    /// The medians of the rounds of both sides.
    Rounds,
    /// The ratios of rounds that were measured one after the other.
    Pairs,
}

/// Factors of at least 1 by which drift between two runs may have changed a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// By which it may have become larger.
    pub raised: f64,
    /// By which it may have become smaller.
    pub lowered: f64,
}

impl Allowance {
    /// What is measured in alternation needs none.
    pub const NONE: Self = Self { raised: 1.0, lowered: 1.0 };

    /// `drift_percent` in both directions, and more in the one in which the machine has drifted: `machine` is the
    /// time of its reference computation, new over old.
    pub fn of(drift_percent: f64, machine: Option<f64>) -> Self {
        let least = 1.0 + drift_percent / 100.0;
        let machine = machine.unwrap_or(1.0);
        Self { raised: least.max(machine), lowered: least.max(1.0 / machine) }
    }
}

/// Time of the reference computation on both sides of a case, new over old, each the median of its rounds; `None`
/// where a side has none, or where they differ in processor, device, threads or ranks, which is no drift.
pub(crate) fn machine(old: &[&Record], new: &[&Record]) -> Option<f64> {
    let place = |rows: &[&Record]| {
        let of = |r: &&Record| {
            let Environment { cpu, device, threads, .. } = r.environment.clone();
            (cpu, device, threads, r.division.ranks)
        };
        rows.first().map(of)
    };
    if place(old) != place(new) {
        return None;
    }
    let of = |rows: &[&Record]| {
        let seconds = rows.iter().filter_map(|r| r.times.reference_s.filter(|s| *s > 0.0));
        median(&seconds.collect::<Vec<f64>>()).map(|m| m.value)
    };
    Some(of(new)? / of(old)?)
}

/// New over old solve time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The ratio.
    pub value: f64,
    /// Its 95 % interval, without what drifts between runs; `None` where there are too few samples.
    pub interval: Option<(f64, f64)>,
    /// What it is made from.
    pub basis: Basis,
    /// What drift between the runs may have changed of it.
    pub allowance: Allowance,
}

impl Ratio {
    /// Of the rows of a case, one for each round, on both sides; those of the same round were measured one
    /// after the other where they are `paired`. The `allowance` is for rows that are not. `None` where a side has
    /// no time.
    pub fn of(
        old: &[&Record],
        new: &[&Record],
        allowance: Allowance,
        paired: bool,
    ) -> Option<Self> {
        let found = |m: &Median, basis| {
            let interval = m.interval().map(|(low, high)| (low.exp(), high.exp()));
            let allowance = if basis == Basis::Pairs { Allowance::NONE } else { allowance };
            Some(Self { value: m.value.exp(), interval, basis, allowance })
        };
        if paired && let Some(m) = median(&pairs(old, new)) {
            return found(&m, Basis::Pairs);
        }
        let logs =
            |rows: &[&Record]| rows.iter().filter_map(|r| log_solve(r)).collect::<Vec<f64>>();
        let by_rounds = |rows: &[&Record]| rows.iter().all(|r| r.round.is_some());
        if by_rounds(old)
            && by_rounds(new)
            && let Some(m) = shift(&logs(old), &logs(new))
        {
            return found(&m, Basis::Rounds);
        }
        let solve = |rows: &[&Record]| rounds::aggregate(rows).times.solve();
        let (old, new) = (solve(old)?, solve(new)?);
        let value = new.value / old.value;
        let ends = old.interval().zip(new.interval());
        let interval = ends.map(|(old, new)| (new.0 / old.1, new.1 / old.0));
        let usable = value.is_finite() && value > 0.0;
        usable.then_some(Self { value, interval, basis: Basis::Samples, allowance })
    }

    /// Half the width of the logarithm's interval.
    pub(crate) fn log_half_width(&self) -> Option<f64> {
        self.interval.map(|(low, high)| (high / low).ln() / 2.0)
    }
}

fn log_solve(record: &Record) -> Option<f64> {
    record.times.solve_s.filter(|s| *s > 0.0).map(f64::ln)
}

/// Logarithms of new over old in the rounds that both sides have.
fn pairs(old: &[&Record], new: &[&Record]) -> Vec<f64> {
    let twin = |new: &&&Record| {
        let old = old.iter().find(|old| old.round.is_some() && old.round == new.round)?;
        Some(log_solve(new)? - log_solve(old)?)
    };
    new.iter().filter_map(|new| twin(&new)).collect()
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::case::Case;
    use crate::record::samples::{record, repeated};
    use crate::report::compare::Verdict;

    fn rows(seconds: &[f64]) -> Vec<Record> {
        let row = |(i, seconds): (usize, &f64)| {
            let mut row = record(Case::default(), 10, *seconds);
            row.round = Some(i + 1);
            row
        };
        seconds.iter().enumerate().map(row).collect()
    }

    fn of(old: &[Record], new: &[Record], drift: f64, paired: bool) -> Ratio {
        let [old, new] = [old, new].map(|rows| rows.iter().collect::<Vec<&Record>>());
        let allowance = Allowance::of(drift, machine(&old, &new));
        Ratio::of(&old, &new, allowance, paired).unwrap()
    }

    fn close(a: (f64, f64), b: (f64, f64)) -> bool {
        (a.0 / b.0 - 1.0).abs() < 1e-12 && (a.1 / b.1 - 1.0).abs() < 1e-12
    }

    #[test]
    fn without_rounds_the_interval_takes_opposite_ends() {
        let side = |seconds| [repeated(Case::default(), 10, seconds, 10.0)];
        let ratio = of(&side(2.0), &side(1.0), 5.0, false);
        assert_eq!((ratio.value, ratio.basis), (0.5, Basis::Samples));
        assert!(close(ratio.interval.unwrap(), (0.9 / 2.2, 1.1 / 1.8)));
        assert_eq!(ratio.allowance, Allowance { raised: 1.05, lowered: 1.05 });
        // a range is no interval
        let mut few = side(1.0);
        few[0].times.repetitions = 5;
        assert_eq!(of(&side(2.0), &few, 5.0, false).interval, None);
    }

    #[test]
    fn rounds_are_compared_by_their_shift() {
        let old = rows(&[1.0, 2.0, 4.0, 8.0]);
        let new = rows(&[3.0, 6.0, 12.0, 24.0]);
        let ratio = of(&old, &new, 0.0, false);
        // four of each: the least and the largest of 16 ratios
        assert!((ratio.value - 3.0).abs() < 1e-12 && ratio.basis == Basis::Rounds);
        assert!(close(ratio.interval.unwrap(), (3.0 / 8.0, 24.0)));
        // three of each are too few
        assert_eq!(of(&old[..3], &new[..3], 0.0, false).interval, None);
    }

    #[test]
    fn pairs_need_no_allowance_and_do_not_see_what_meets_both() {
        let drift = [1.0, 2.0, 4.0, 3.0, 9.0, 5.0];
        let ratio = of(&rows(&drift), &rows(&drift.map(|s| 1.25 * s)), 5.0, true);
        assert!((ratio.value - 1.25).abs() < 1e-12);
        assert_eq!((ratio.basis, ratio.allowance), (Basis::Pairs, Allowance::NONE));
        assert!(close(ratio.interval.unwrap(), (1.25, 1.25)));
        let five = of(&rows(&drift[..5]), &rows(&drift[..5]), 5.0, true);
        assert_eq!((five.value, five.interval), (1.0, None));
    }

    /// Six runs of five rounds; in each the machine is faster or slower by up to `drift`, in each round
    /// slower by up to `noise`, and in a share `hit` of the rounds by half. The reference computation meets
    /// the drift of the run, and noise of its own.
    fn runs(rng: &mut ChaCha8Rng, drift: f64, noise: f64, hit: f64) -> Vec<Vec<Record>> {
        let run = |rng: &mut ChaCha8Rng| {
            let of_run = 1.0 + rng.random_range(-drift..drift);
            let round = |rng: &mut ChaCha8Rng| {
                let hit = if rng.random_bool(hit) { 1.5 } else { 1.0 };
                of_run * hit * (1.0 + rng.random_range(0.0..noise))
            };
            let seconds: Vec<f64> = (0..5).map(|_| round(rng)).collect();
            let mut rows = rows(&seconds);
            for row in &mut rows {
                let noise = 1.0 + rng.random_range(-0.02..0.02);
                row.times.reference_s = Some(3e-3 * of_run * noise);
            }
            rows
        };
        (0..6).map(|_| run(rng)).collect()
    }

    #[test]
    fn an_allowance_has_a_direction() {
        let of = |machine| Allowance::of(5.0, machine);
        assert_eq!(of(None), Allowance { raised: 1.05, lowered: 1.05 });
        assert_eq!(of(Some(1.02)), of(None));
        assert_eq!(of(Some(1.25)), Allowance { raised: 1.25, lowered: 1.05 });
        assert_eq!(of(Some(0.8)), Allowance { raised: 1.05, lowered: 1.25 });
    }

    #[test]
    fn the_machine_is_the_ratio_of_the_medians_of_the_reference() {
        let side = |seconds: [f64; 3]| -> Vec<Record> {
            let mut rows = rows(&[1.0; 3]);
            for (row, seconds) in rows.iter_mut().zip(seconds) {
                row.times.reference_s = Some(seconds);
            }
            rows
        };
        let of = |old: &[Record], new: &[Record]| {
            let [old, new] = [old, new].map(|rows| rows.iter().collect::<Vec<&Record>>());
            machine(&old, &new)
        };
        let (old, mut new) = (side([2.0, 4.0, 90.0]), side([1.0, 5.0, 7.0]));
        assert_eq!(of(&old, &new), Some(1.25));
        // what no round tells, or a file of an earlier version, is not known
        new[0].times.reference_s = None;
        assert_eq!(of(&old, &new), Some(1.5));
        assert_eq!(of(&rows(&[1.0; 3]), &new), None);
        // more threads are no drift
        new[0].environment.threads = 2;
        assert_eq!(of(&old, &new), None);
    }

    fn verdicts(runs: &[Vec<Record>], factor: f64) -> Vec<Verdict> {
        let mut found = Vec::new();
        for (i, old) in runs.iter().enumerate() {
            for new in &runs[i + 1..] {
                let mut new = new.clone();
                for row in &mut new {
                    row.times.solve_s = row.times.solve_s.map(|s| factor * s);
                }
                let ratio = of(old, &new, 5.0, false);
                found.push(Verdict::of_interval(ratio.interval.unwrap(), 5.0, ratio.allowance));
            }
        }
        found
    }

    #[test]
    fn unchanged_code_is_not_called_otherwise_and_a_fifth_is_found() {
        let changed = |v: &&Verdict| matches!(v, Verdict::Slower | Verdict::Faster);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (mut wrong, mut missed, mut disturbed, mut all) = (0, 0, 0, 0);
        let (mut drifted, mut unseen) = (0, 0);
        let without = |run: &[Record]| {
            let mut run = run.to_vec();
            for row in &mut run {
                row.times.reference_s = None;
            }
            run
        };
        for _ in 0..200 {
            let quiet = runs(&mut rng, 0.02, 0.03, 0.005);
            let found = verdicts(&quiet, 1.0);
            wrong += found.iter().filter(changed).count();
            all += found.len();
            missed += verdicts(&quiet, 1.2).iter().filter(|v| **v != Verdict::Slower).count();
            // a run on a machine that a neighbour makes a third slower, or none
            let drifting = runs(&mut rng, 0.15, 0.03, 0.005);
            drifted += verdicts(&drifting, 1.0).iter().filter(changed).count();
            let blind: Vec<Vec<Record>> = drifting.iter().map(|run| without(run)).collect();
            unseen += verdicts(&blind, 1.0).iter().filter(changed).count();
            let busy = runs(&mut rng, 0.05, 0.5, 0.2);
            disturbed += verdicts(&busy, 1.0).iter().filter(changed).count();
        }
        assert_eq!((all, wrong), (3000, 0));
        // 1 of 180 would be 16
        assert!(drifted < 16 && unseen > all / 10, "{drifted} and {unseen} of {all}");
        // a round of the old run that was disturbed hides it
        assert!(missed < all / 20, "{missed} of {all}");
        // 4 of 180 would be 66
        assert!(disturbed < 40, "{disturbed} of {all}");
    }
}
