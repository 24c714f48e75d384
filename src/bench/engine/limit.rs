//! Cases that take too long: their records, and ranks that are ended with one.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::base::error::Result;
use crate::base::input::say;
use crate::base::parse::shown;
use crate::base::status::Status;
use crate::case::Case;
use crate::compute::distributed::launch;
use crate::record::{Record, environment};

/// Status and reason of a case that was ended after so many seconds.
pub(super) fn late(limit_s: f64) -> (Status, String) {
    (Status::TimeLimit, format!("time limit of a case, {} s, reached", shown(&limit_s.to_string())))
}

/// The same where the job of several ranks is ended.
pub(super) fn late_over_ranks(limit_s: f64) -> (Status, String) {
    let (status, reason) = late(limit_s);
    (status, format!("{reason}; all ranks were ended"))
}

/// Ends all ranks after a case that took too long, whose record is `kept` if it could be.
pub(super) fn end_job(kept: Result<()>, case: &Case, limit_s: f64) -> ! {
    let (name, (_, reason)) = (&case.matrix, late(limit_s));
    say(&format!("error: `{name}`: {reason} on several ranks, which end with it"));
    match kept {
        Ok(()) => say(
            "hint: it is recorded where `--output` says, and `--resume` goes on with the next case",
        ),
        Err(error) => say(&format!("error: {error}")),
    }
    launch::end_job()
}

/// The record of a case that was ended without one; it began at `start`.
pub(super) fn without_result(
    case: &Case,
    (status, reason): (Status, String),
    start: String,
) -> Record {
    let mut record = Record { case: case.clone(), status, ..Record::default() };
    record.reason = Some(reason);
    environment::complete(&mut record.environment, &case.backend, start);
    record
}

/// Does `work`, and calls `late` on another thread once that has taken `limit_s` seconds, counted anew from each call of
/// the function that it gets. `late` ends the process: a rank that waits for another cannot be stopped.
pub(super) fn watched<R>(
    limit_s: Option<f64>,
    work: impl FnOnce(&dyn Fn()) -> R,
    late: impl FnOnce(f64) + Send,
) -> R {
    let Some(limit_s) = limit_s else { return work(&|| ()) };
    let (sender, messages) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let limit = Duration::from_secs_f64(limit_s);
            loop {
                match messages.recv_timeout(limit) {
                    Ok(()) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => return late(limit_s),
                }
            }
        });
        let done = work(&|| {
            // nobody listens once it is too late
            let _ = sender.send(());
        });
        drop(sender);
        done
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::sleep;

    use super::*;

    #[test]
    fn work_is_late_once_it_takes_longer_than_the_limit_from_its_last_restart() {
        let late = AtomicUsize::new(0);
        let count = |limit_s: f64| {
            assert!((limit_s - 0.5).abs() < 1e-12);
            late.fetch_add(1, Ordering::SeqCst);
        };
        let wait = |ms| sleep(Duration::from_millis(ms));
        assert_eq!(watched(None, |_| wait(10), |_| unreachable!("no limit")), ());
        let steps = |restart: &dyn Fn()| {
            for _ in 0..4 {
                wait(200);
                restart();
            }
            7
        };
        assert_eq!(watched(Some(0.5), steps, count), 7);
        assert_eq!(late.load(Ordering::SeqCst), 0);
        watched(Some(0.5), |_| wait(1500), count);
        assert_eq!(late.load(Ordering::SeqCst), 1);
    }
}
