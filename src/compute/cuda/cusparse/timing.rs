//! Choosing among the library's ways by time.

use cudarc::driver::{CudaStream, sys::CUevent_flags};

use super::driver;
use crate::base::error::Result;

/// Runs that are timed.
const RUNS: usize = 5;

/// Time of `work` in milliseconds by events of the stream; waits.
pub(super) fn once_ms(stream: &CudaStream, work: impl FnOnce() -> Result<()>) -> Result<f32> {
    let timed = Some(CUevent_flags::CU_EVENT_DEFAULT);
    let start = stream.record_event(timed).map_err(|e| driver("cannot time cuSPARSE", e))?;
    work()?;
    let end = stream.record_event(timed).map_err(|e| driver("cannot time cuSPARSE", e))?;
    start.elapsed_ms(&end).map_err(|e| driver("cannot time cuSPARSE", e))
}

/// Median time of `work` in milliseconds, after one run that is not counted; waits.
pub(super) fn median_ms(stream: &CudaStream, mut work: impl FnMut() -> Result<()>) -> Result<f32> {
    work()?;
    let mut times = [0.0; RUNS];
    for time in &mut times {
        *time = once_ms(stream, &mut work)?;
    }
    times.sort_by(f32::total_cmp);
    Ok(times[RUNS / 2])
}

/// The candidate whose `time` is least; those that fail are passed over, unless all do.
///
/// # Errors
/// The first candidate's error, when no candidate works.
pub(super) fn fastest<C, T>(
    candidates: impl IntoIterator<Item = C>,
    mut time: impl FnMut(C) -> Result<(T, f32)>,
) -> Result<T> {
    let mut best: Option<(T, f32)> = None;
    let mut first_error = None;
    for candidate in candidates {
        match time(candidate) {
            Ok(new) if best.as_ref().is_none_or(|old| new.1 < old.1) => best = Some(new),
            Ok(_) => {}
            Err(e) => first_error = first_error.or(Some(e)),
        }
    }
    match (best, first_error) {
        (Some((winner, _)), _) => Ok(winner),
        (None, Some(error)) => Err(error),
        (None, None) => unreachable!("there is always a candidate"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Error;

    #[test]
    fn the_fastest_that_works_wins() {
        let times = [Err("slow start"), Ok(3.0), Ok(1.0), Err("no"), Ok(2.0)];
        let time = |i: usize| times[i].map(|t| (i, t)).map_err(Error::run);
        assert_eq!(fastest(0..5, time), Ok(2));
        let failed = fastest([3, 0], time);
        assert_eq!(failed, Err(Error::run("no")));
    }
}
