//! Steepest descent over a grid of choices.

use super::Choices;

/// One thing to choose, and the values it may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Name of the macro.
    pub name: &'static str,
    /// What it may be; the first is the usual one.
    pub values: Vec<usize>,
}

/// A point that was measured.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Trial {
    /// The point.
    pub choices: Choices,
    /// Median seconds; nothing when it does not work.
    pub seconds: Option<f64>,
}

/// What is gained by less is noise.
const LEAST_GAIN: f64 = 0.005;

/// Where the search stands: every trial so far, to go on from later.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Descent {
    /// In the order in which they were made.
    pub trials: Vec<Trial>,
    /// Whether no neighbour of the best point is better; else the search was stopped.
    pub finished: bool,
}

impl Descent {
    /// The fastest trial.
    pub fn best(&self) -> Option<&Trial> {
        let working = self.trials.iter().filter(|t| t.seconds.is_some());
        working
            .min_by(|a, b| a.seconds.unwrap_or(f64::NAN).total_cmp(&b.seconds.unwrap_or(f64::NAN)))
    }

    /// Goes on from the trials made before, or from the usual values: measures every point that differs
    /// from the best one in one axis, moves to the best of them, and ends where none gains half a
    /// percent. A point that was tried is not tried again.
    ///
    /// `measure` returns the median seconds of a point, or nothing when it does not work; the search
    /// stops where `go_on`, asked after each trial with all of them, says so.
    pub fn search(
        &mut self,
        axes: &[Axis],
        mut measure: impl FnMut(&Choices) -> Option<f64>,
        mut go_on: impl FnMut(&[Trial]) -> bool,
    ) {
        self.finished = false;
        let first: Choices =
            axes.iter().map(|axis| (axis.name.to_owned(), axis.values[0])).collect();
        let mut at = self.best().map_or(first, |best| best.choices.clone());
        loop {
            let here = if let Some(trial) = self.tried(&at) {
                trial.seconds
            } else {
                let seconds = self.measure(&at, &mut measure);
                if !go_on(&self.trials) {
                    return;
                }
                seconds
            };
            for near in neighbours(axes, &at) {
                if self.tried(&near).is_none() {
                    self.measure(&near, &mut measure);
                    if !go_on(&self.trials) {
                        return;
                    }
                }
            }
            let next = neighbours(axes, &at)
                .filter_map(|near| Some((self.tried(&near)?.seconds?, near)))
                .min_by(|a, b| a.0.total_cmp(&b.0));
            match (next, here) {
                (Some((seconds, near)), Some(here)) if seconds < here * (1.0 - LEAST_GAIN) => {
                    at = near;
                }
                (Some((_, near)), None) => at = near,
                _ => {
                    self.finished = true;
                    return;
                }
            }
        }
    }

    fn tried(&self, choices: &Choices) -> Option<&Trial> {
        self.trials.iter().find(|trial| trial.choices == *choices)
    }

    fn measure(
        &mut self,
        choices: &Choices,
        measure: &mut impl FnMut(&Choices) -> Option<f64>,
    ) -> Option<f64> {
        let seconds = measure(choices);
        self.trials.push(Trial { choices: choices.clone(), seconds });
        seconds
    }
}

/// The points that differ from `at` in one axis.
fn neighbours<'a>(axes: &'a [Axis], at: &'a Choices) -> impl Iterator<Item = Choices> + 'a {
    axes.iter().flat_map(move |axis| {
        let other = axis.values.iter().filter(move |value| at.get(axis.name) != Some(value));
        other.map(move |value| {
            let mut near = at.clone();
            near.insert(axis.name.to_owned(), *value);
            near
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes() -> Vec<Axis> {
        let axis = |name, values: &[usize]| Axis { name, values: values.to_vec() };
        vec![
            axis("THREADS", &[256, 64, 128, 512]),
            axis("ROWS", &[1, 2, 4]),
            axis("AHEAD", &[1, 2, 4, 8]),
        ]
    }

    /// A valley whose bottom is at 128, 4, 2, where the choices depend on each other; 512 x 4 fails.
    fn cost(c: &Choices) -> Option<f64> {
        let log = |name: &str| (c[name] as f64).log2();
        if c["THREADS"] == 512 && c["ROWS"] == 4 {
            return None;
        }
        let (threads, rows, ahead) = (log("THREADS") - 7.0, log("ROWS") - 2.0, log("AHEAD") - 1.0);
        Some(1.0 + threads * threads + rows * rows + ahead * ahead + 0.5 * rows * ahead)
    }

    fn at(threads: usize, rows: usize, ahead: usize) -> Choices {
        [("THREADS", threads), ("ROWS", rows), ("AHEAD", ahead)]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    #[test]
    fn the_bottom_of_a_valley_is_found_and_nothing_tried_twice() {
        let mut descent = Descent::default();
        let mut calls = 0;
        let counted = |c: &Choices| {
            calls += 1;
            cost(c)
        };
        descent.search(&axes(), counted, |_| true);
        assert_eq!(descent.best().unwrap().choices, at(128, 4, 2));
        assert_eq!(descent.best().unwrap().seconds, Some(1.0));
        assert!(descent.finished);
        // fewer than the 48 points of the grid, and the first is the usual one
        assert!(calls < 30, "{calls}");
        assert_eq!(calls, descent.trials.len());
        assert_eq!(descent.trials[0].choices, at(256, 1, 1));
        let mut points: Vec<&Choices> = descent.trials.iter().map(|t| &t.choices).collect();
        points.sort();
        points.dedup();
        assert_eq!(points.len(), calls);
    }

    #[test]
    fn a_stopped_search_goes_on_where_it_was() {
        let mut whole = Descent::default();
        whole.search(&axes(), cost, |_| true);
        let mut parts = Descent::default();
        for most in [1, 5, 12] {
            parts.search(&axes(), cost, |trials| trials.len() < most);
            assert_eq!((parts.trials.len(), parts.finished), (most, false));
        }
        parts.search(&axes(), cost, |_| true);
        assert!(parts.finished);
        assert_eq!(parts.best(), whole.best());
        // one that ended finds nothing more to try
        let trials = parts.trials.len();
        parts.search(&axes(), |_| panic!("tried again"), |_| true);
        assert_eq!((parts.trials.len(), parts.finished), (trials, true));
    }

    #[test]
    fn points_that_do_not_work_are_left() {
        let broken = |c: &Choices| if c["THREADS"] == 256 { None } else { cost(c) };
        let mut descent = Descent::default();
        descent.search(&axes(), broken, |_| true);
        assert_eq!(descent.best().unwrap().choices, at(128, 4, 2));
        let mut nothing = Descent::default();
        nothing.search(&axes(), |_| None, |_| true);
        assert_eq!((nothing.best(), nothing.finished), (None, true));
        assert_eq!(nothing.trials.len(), 1 + 3 + 2 + 3);
    }

    #[test]
    fn noise_moves_nothing() {
        // all the same but for a thousandth
        let flat = |c: &Choices| Some(1.0 - 0.0001 * (c["AHEAD"] as f64));
        let mut descent = Descent::default();
        descent.search(&axes(), flat, |_| true);
        assert_eq!(descent.trials.len(), 1 + 3 + 2 + 3);
    }
}
