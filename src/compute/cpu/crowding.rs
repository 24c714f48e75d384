//! How long threads have waited for a processor that others had.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::base::measure::wait_of;

/// Where the system counts for each thread of a pool: Linux, `schedstat`.
#[derive(Clone, Default)]
pub(super) struct Crowding(Arc<Mutex<Vec<PathBuf>>>);

impl Crowding {
    /// Adds the calling thread.
    pub(super) fn watch_this_thread(&self) {
        if let Ok(own) = std::fs::read_link("/proc/thread-self") {
            let path = Path::new("/proc").join(own).join("schedstat");
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(path);
        }
    }

    /// Seconds that all threads together have been ready to run and have not run; `None` where the system
    /// does not tell.
    pub(super) fn seconds(&self) -> Option<f64> {
        let paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<f64> = paths.iter().map(|path| wait_of(path)).collect::<Option<_>>()?;
        (!all.is_empty()).then(|| all.iter().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_known_once_they_are_watched() {
        let crowding = Crowding::default();
        assert_eq!(crowding.seconds(), None);
        crowding.watch_this_thread();
        if Path::new("/proc/thread-self/schedstat").exists() {
            assert!(crowding.seconds().is_some_and(|s| s >= 0.0));
        }
    }
}
