//! Whether triangular solves and factorisations go on with all threads or, beside other processes, with one.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::base::measure::{now, seconds_since};

/// Part of their time that threads may wait for a processor before one alone is tried.
const QUIET: f64 = 0.1;
/// Seconds of work from look to look, of a trial of one thread, and until what was found is doubted.
const LOOK: f64 = 0.05;
const TRIAL: f64 = 0.02;
const KEPT: f64 = 0.5;

/// Calls of one kind and how long the last ones took. One thread computes the same bits as all.
#[derive(Debug)]
pub(super) struct Pace(Mutex<State>);

/// Who computes now, and since when.
#[derive(Debug)]
struct State {
    phase: Phase,
    since: Instant,
    /// Seconds that threads had waited for a processor until then.
    waited: Option<f64>,
    /// Calls since then, and their seconds.
    count: u32,
    busy: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// All threads compute; looked at after these seconds.
    Together(f64),
    /// One thread is tried against the seconds of a call with all.
    Trial(f64),
    /// One thread was faster.
    Alone,
}

impl Default for Pace {
    fn default() -> Self {
        let phase = Phase::Together(LOOK);
        Self(Mutex::new(State { phase, since: now(), waited: None, count: 0, busy: 0.0 }))
    }
}

impl Pace {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the next call is one thread's.
    pub(super) fn alone(&self) -> bool {
        !matches!(self.state().phase, Phase::Together(_))
    }

    /// Takes note of a call of some seconds; `waited` are those that the threads have waited so far.
    pub(super) fn took(&self, seconds: f64, threads: usize, waited: impl Fn() -> Option<f64>) {
        let mut state = self.state();
        state.count += 1;
        state.busy += seconds;
        let each = state.busy / f64::from(state.count);
        let next = match state.phase {
            Phase::Together(look) if state.busy >= look => {
                let part = waited().zip(state.waited).map_or(0.0, |(after, before)| {
                    (after - before) / (seconds_since(state.since) * threads as f64)
                });
                if part > QUIET { Phase::Trial(each) } else { Phase::Together(LOOK) }
            }
            Phase::Trial(together) if state.busy >= TRIAL => {
                if each < together {
                    Phase::Alone
                } else {
                    Phase::Together(KEPT)
                }
            }
            Phase::Alone if state.busy >= KEPT => Phase::Together(LOOK),
            _ => return,
        };
        if let Phase::Together(_) = next {
            state.waited = waited();
        }
        (state.phase, state.since, state.count, state.busy) = (next, now(), 0, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Solves of these seconds for all threads and for one, in which threads wait some part of their time;
    /// yields who solved: `t`ogether or `a`lone.
    fn who(together: f64, alone: f64, waiting: f64, count: usize) -> String {
        let pace = Pace::default();
        let (mut out, mut waited) = (String::new(), 0.0);
        for _ in 0..count {
            let single = pace.alone();
            out.push(if single { 'a' } else { 't' });
            let seconds = if single { alone } else { together };
            // real time passes too, but next to none
            pace.state().since -= std::time::Duration::from_secs_f64(seconds);
            if !single {
                waited += 2.0 * waiting * seconds;
            }
            pace.took(seconds, 2, || Some(waited));
        }
        out
    }

    #[test]
    fn one_thread_goes_on_alone_where_it_is_faster_beside_others() {
        let found = who(1.0 / 32.0, 1.0 / 64.0, 0.3, 80);
        // the first look begins to count; two solves are the trial, half a second follows
        let alone = "a".repeat(2 + 32);
        assert_eq!(found, format!("tttt{alone}tt{alone}tt{}", "a".repeat(4)));
    }

    #[test]
    fn all_threads_go_on_where_they_are_faster_or_nobody_waits() {
        assert_eq!(who(1.0 / 32.0, 1.0 / 64.0, 0.02, 40), "t".repeat(40));
        // tried once, and again after half a second
        let together = "t".repeat(16);
        assert_eq!(who(1.0 / 32.0, 1.0 / 16.0, 0.3, 23), format!("tttta{together}at"));
    }
}
