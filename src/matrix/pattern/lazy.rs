//! Patterns whose rows may still lie elsewhere.

use std::fmt;
use std::ops::Deref;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::Pattern;
use crate::base::threads::Threads;

type Fetch = Box<dyn FnOnce(Threads) -> Pattern<'static> + Send>;

/// A pattern that is there, or is fetched when its rows are first looked at. What is known before is asked of it as of a
/// [`Pattern`], to which it dereferences.
pub struct Lazy {
    rows: usize,
    entries: usize,
    block_size: usize,
    pattern: OnceLock<Pattern<'static>>,
    /// Until it is called.
    fetch: Mutex<Option<Fetch>>,
}

impl Lazy {
    /// A pattern of so many rows and entries, of blocks of `block_size` unknowns, that `fetch` returns.
    pub(crate) fn new(
        [rows, entries, block_size]: [usize; 3],
        fetch: impl FnOnce(Threads) -> Pattern<'static> + Send + 'static,
    ) -> Self {
        let (pattern, fetch) = (OnceLock::new(), Mutex::new(Some(Box::new(fetch) as Fetch)));
        Self { rows, entries, block_size, pattern, fetch }
    }

    fn fetched(&self, threads: Threads) -> Pattern<'static> {
        let fetch = self.fetch.lock().unwrap_or_else(PoisonError::into_inner).take();
        let pattern = fetch.expect("called once")(threads);
        assert_eq!((pattern.rows(), pattern.entries()), (self.rows, self.entries));
        pattern.in_blocks(self.block_size)
    }

    /// Has its rows fetched by all threads of the pool, of which none may look at them meanwhile.
    pub(crate) fn fetch(&self) {
        self.pattern.get_or_init(|| self.fetched(Threads::Pool));
    }

    /// Whether its rows are there.
    pub(crate) fn is_there(&self) -> bool {
        self.pattern.get().is_some()
    }

    /// Unknowns per block.
    pub fn block_size(&self) -> usize {
        self.block_size
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        4 * (self.rows + 1 + self.entries)
    }
}

impl From<Pattern<'static>> for Lazy {
    fn from(pattern: Pattern<'static>) -> Self {
        let [rows, entries, block_size] = [pattern.rows(), pattern.entries(), pattern.block_size()];
        let (pattern, fetch) = (OnceLock::from(pattern), Mutex::new(None));
        Self { rows, entries, block_size, pattern, fetch }
    }
}

impl From<Lazy> for Pattern<'static> {
    fn from(mut lazy: Lazy) -> Self {
        let there = lazy.pattern.take();
        there.unwrap_or_else(|| lazy.fetched(Threads::One))
    }
}

impl Deref for Lazy {
    type Target = Pattern<'static>;

    fn deref(&self) -> &Pattern<'static> {
        // by one thread: the others may wait for it, and must not be asked to help
        self.pattern.get_or_init(|| self.fetched(Threads::One))
    }
}

impl Clone for Lazy {
    fn clone(&self) -> Self {
        Pattern::clone(self).into()
    }
}

impl PartialEq for Lazy {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Lazy {}

impl fmt::Debug for Lazy {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn rows_are_fetched_once_and_only_when_they_are_looked_at() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let lazy = Lazy::new([3, 2, 4], move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Pattern::new(vec![0, 0, 1, 2], vec![0, 1])
        });
        assert_eq!((lazy.rows(), lazy.entries(), lazy.block_size(), lazy.bytes()), (3, 2, 4, 24));
        assert!(!lazy.is_there() && calls.load(Ordering::Relaxed) == 0);
        assert_eq!((lazy.row(1), lazy.row(2)), (&[0][..], &[1][..]));
        assert!(lazy.is_there() && calls.load(Ordering::Relaxed) == 1);
        let there = Lazy::from(Pattern::new(vec![0, 0, 1, 2], vec![0, 1]).in_blocks(4));
        assert!(there.is_there() && there == lazy && there == lazy.clone());
        assert_eq!(Pattern::from(lazy).block_size(), 4);
        let never = Lazy::new([1, 0, 1], |_| Pattern::new(vec![0, 0], Vec::new()));
        assert_eq!(Pattern::from(never).entries(), 0);
    }
}
