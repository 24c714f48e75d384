//! Time on a backend.

/// The time of a backend, and what of it no phase is charged with.
///
/// Operations may be asynchronous: [`synchronise`](Clock::synchronise) waits.
pub trait Clock {
    /// A point in the backend's time: an event of its stream, or the clock of the host.
    type Mark;
    /// Seconds spent so far on what no phase should be charged with: compiling kernels, and trying
    /// algorithms of triangular solves against each other.
    fn uncounted(&self) -> f64 {
        0.0
    }
    /// Seconds of run-time compilation and loading of kernels since the backend began to be made, a
    /// part of [`uncounted`](crate::compute::Clock::uncounted); `None` where nothing is compiled at run time.
    fn compile_seconds(&self) -> Option<f64> {
        None
    }
    /// Seconds spent so far on trying algorithms of triangular solves, ours or a library's, against
    /// each other, a part of [`uncounted`](crate::compute::Clock::uncounted); `None` where there is no choice.
    fn trial_seconds(&self) -> Option<f64> {
        None
    }
    /// Seconds that the backend's threads together have been ready to run so far while others had the
    /// processors; `None` for one thread, on a GPU, and where the system does not tell.
    fn kept_waiting(&self) -> Option<f64> {
        None
    }
    /// What one of several threads made so far, being faster than all while others had the processors.
    fn made_alone(&self) -> Alone {
        Alone::default()
    }
    /// The time at which all work so far is done.
    fn mark(&self) -> Self::Mark;
    /// Seconds between two marks; waits for the later one.
    fn seconds(&self, from: &Self::Mark, to: &Self::Mark) -> f64;
    /// Waits until all work is done.
    fn synchronise(&self);
    /// Seconds as all ranks count them: the largest of what each has; collective.
    fn of_all(&self, seconds: f64) -> f64 {
        seconds
    }
    /// Asks to stop, and says whether any rank had asked at the last reduction: all hear the same.
    fn agree(&self, stop: bool) -> bool {
        stop
    }
    /// Forgets that any rank wanted to stop: before the next solve.
    fn go_on(&self) {}
    /// What the first rank that failed says of it, on all ranks; collective.
    fn failure(&self, own: Option<String>) -> Option<String> {
        own
    }
}

/// Operations that one of several threads made by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alone {
    /// Solves with L and U.
    pub solves: usize,
    /// Factorisations.
    pub factorisations: usize,
}
