//! How long threads have waited for a processor that others had.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

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
        let waited = |path: &PathBuf| waited(&std::fs::read_to_string(path).ok()?);
        let all: Vec<f64> = paths.iter().map(waited).collect::<Option<_>>()?;
        (!all.is_empty()).then(|| all.iter().sum())
    }
}

/// The second of the numbers in a `schedstat`: nanoseconds on a processor, nanoseconds before one, turns.
fn waited(text: &str) -> Option<f64> {
    Some(text.split_whitespace().nth(1)?.parse::<u64>().ok()? as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_counts() {
        assert_eq!(waited("782469 3500000000 6\n"), Some(3.5));
        assert_eq!((waited("782469"), waited("1 x 2"), waited("")), (None, None, None));
        let crowding = Crowding::default();
        assert_eq!(crowding.seconds(), None);
        crowding.watch_this_thread();
        if Path::new("/proc/thread-self/schedstat").exists() {
            assert!(crowding.seconds().is_some_and(|s| s >= 0.0));
        }
    }
}
