//! Model of the effect of changing one value on the time.
//!
//! Settings interact: another block size may pay off with one preconditioner and not with the next. Effects
//! observed near a point weigh more than those observed far away.

use std::collections::HashMap;

use crate::bench::advise::space::Point;

/// A change of one value: the setting, from, to.
pub(super) type Change = (usize, usize, usize);

/// A pair that differs by one more value counts this many times less.
const FADING: f64 = 4.0;

/// Knowledge about the time of a combination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Known {
    Took(f64),
    /// It was given up; about the seconds that it would take, a low guess.
    Above(f64),
    /// It does not run at all, which says nothing about times.
    Never,
}

/// Logarithms of the ratios that changes have brought.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    seen: HashMap<Change, Vec<(Point, f64)>>,
}

impl Effects {
    /// Learns from two points that differ by `change` of the first. Two that were given up teach nothing,
    /// nor does one that fails.
    pub(super) fn learn(&mut self, from: (&Point, Known), to: (&Point, Known), change: Change) {
        use Known::{Above, Took};
        let ratio = match (from.1, to.1) {
            (Took(a), Took(b) | Above(b)) | (Above(a), Took(b)) => (b / a).ln(),
            _ => return,
        };
        let (knob, before, after) = change;
        self.keep(change, from.0, ratio);
        self.keep((knob, after, before), to.0, -ratio);
    }

    /// Keeps what `change` of `point` did, in the place of what was known of it.
    fn keep(&mut self, change: Change, point: &Point, ratio: f64) {
        let seen = self.seen.entry(change).or_default();
        match seen.iter_mut().find(|(known, _)| known == point) {
            Some((_, known)) => *known = ratio,
            None => seen.push((point.clone(), ratio)),
        }
    }

    /// What `change` of `point` is expected to do, as a logarithm; 0 where it was never seen.
    pub(super) fn of(&self, change: Change, point: &[usize]) -> f64 {
        let Some(seen) = self.seen.get(&change) else { return 0.0 };
        let (mut sum, mut weights) = (0.0, 0.0);
        for (other, ratio) in seen {
            let apart = other.iter().zip(point).filter(|(a, b)| a != b).count();
            let weight = FADING.powi(-(apart as i32));
            sum += weight * ratio;
            weights += weight;
        }
        sum / weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_near_by_counts_most() {
        let mut effects = Effects::default();
        let change = (0, 0, 1);
        let mut learn = |rest: usize, other: usize, a, b| {
            effects.learn((&vec![0, rest, other], a), (&vec![1, rest, other], b), change);
        };
        learn(0, 0, Known::Took(2.0), Known::Above(7.0));
        // another trial of the same
        learn(0, 0, Known::Took(2.0), Known::Took(1.0));
        learn(1, 1, Known::Took(1.0), Known::Above(4.0));
        // these say nothing
        learn(2, 0, Known::Above(1.0), Known::Above(3.0));
        learn(3, 0, Known::Took(1.0), Known::Never);
        let ratio = |point: &[usize]| effects.of(change, point).exp();
        // weights of 1 and 1/16, of 1/4 each, and of none
        let ln2 = 2f64.ln();
        let near = (-ln2 + 2.0 * ln2 / 16.0) / (1.0 + 1.0 / 16.0);
        assert!((ratio(&[0, 0, 0]) - near.exp()).abs() < 1e-12);
        assert!((ratio(&[0, 0, 1]) - (0.5 * ln2).exp()).abs() < 1e-12);
        assert_eq!(effects.of((0, 1, 2), &[1, 0, 0]), 0.0);
        assert!((effects.of((0, 1, 0), &[1, 0, 0]) + near).abs() < 1e-12);
    }
}
