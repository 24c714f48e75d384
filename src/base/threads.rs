//! On which threads work is done, and loops of tasks on them. The division into tasks is compiled once, not for each
//! loop as with the iterators of rayon.

#![allow(unsafe_code, reason = "tasks that use disjoint entries of one array")]

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::pages;

/// On which threads work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// The calling thread.
    One,
    /// All threads of the current rayon pool.
    Pool,
}

/// What is done with a range of indices.
type Task<'a> = dyn Fn(Range<usize>) + Sync + 'a;

/// In each loop a task has `least` indices or more, where there are as many.
impl Threads {
    /// All threads if work is done in parallel.
    pub fn when(parallel: bool) -> Self {
        if parallel { Self::Pool } else { Self::One }
    }

    /// How many there are.
    pub(crate) fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Pool => rayon::current_num_threads(),
        }
    }

    /// Hands each index below `count` to `task` once.
    fn ranges(self, count: usize, least: usize, task: &Task) {
        match self {
            Self::One => task(0..count),
            Self::Pool => divide(0..count, least, self.count(), false, task),
        }
    }

    /// `f(i)` for each i below `count`.
    pub fn for_each(self, count: usize, least: usize, f: impl Fn(usize) + Sync) {
        self.ranges(count, least, &|range| range.for_each(&f));
    }

    /// What `f(i)` gives for each i below `count`, in order.
    pub fn map<R: Send>(self, count: usize, least: usize, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
        self.map_with(count, least, || (), |(), i| f(i))
    }

    /// The same, where each task has a `scratch` of its own.
    pub fn map_with<S, R: Send>(
        self,
        count: usize,
        least: usize,
        scratch: impl Fn() -> S + Sync,
        f: impl Fn(&mut S, usize) -> R + Sync,
    ) -> Vec<R> {
        let mut made = pages::with_capacity::<R>(count);
        let to = Entries(made.as_mut_ptr());
        self.ranges(count, least, &|range| {
            let mut scratch = scratch();
            for i in range {
                // SAFETY: there is room for `count`, and no other task has this index
                unsafe { to.at(i).write(f(&mut scratch, i)) };
            }
        });
        // SAFETY: each of them is written
        unsafe { made.set_len(count) };
        made
    }

    /// What `f` makes of each item, in order.
    pub fn each<T: Send, R: Send>(self, mut items: Vec<T>, f: impl Fn(T) -> R + Sync) -> Vec<R> {
        let (count, from) = (items.len(), Entries(items.as_mut_ptr()));
        // SAFETY: the vector gives up its items, which are moved out
        unsafe { items.set_len(0) };
        // SAFETY: there are `count`, and each index comes once
        self.map(count, 1, |i| f(unsafe { from.at(i).read() }))
    }

    /// What `f` makes of each chunk of `size`, of which the last may be shorter, and its number.
    pub fn chunks<T: Send, R: Send>(
        self,
        values: &mut [T],
        size: usize,
        least: usize,
        f: impl Fn(usize, &mut [T]) -> R + Sync,
    ) -> Vec<R> {
        let (all, first) = (values.len(), Entries(values.as_mut_ptr()));
        self.map(all.div_ceil(size), least, |number| {
            let (start, end) = (number * size, all.min((number + 1) * size));
            // SAFETY: within the values, and each number comes once
            f(number, unsafe { std::slice::from_raw_parts_mut(first.at(start), end - start) })
        })
    }

    /// Whether `f(i)` holds for each i below `count`.
    pub fn all(self, count: usize, least: usize, f: impl Fn(usize) -> bool + Sync) -> bool {
        let failed = AtomicBool::new(false);
        self.ranges(count, least, &|mut range| {
            if range.any(|i| failed.load(Ordering::Relaxed) || !f(i)) {
                failed.store(true, Ordering::Relaxed);
            }
        });
        !failed.into_inner()
    }

    /// What `f(i)` gives for the first i below `count` for which it gives anything.
    pub fn find_map<R: Send>(
        self,
        count: usize,
        least: usize,
        f: impl Fn(usize) -> Option<R> + Sync,
    ) -> Option<R> {
        let (first, found) = (AtomicUsize::new(usize::MAX), Mutex::new(None));
        self.ranges(count, least, &|range| {
            let earlier = |i: &usize| *i < first.load(Ordering::Relaxed);
            let Some((i, result)) = range.take_while(earlier).find_map(|i| Some((i, f(i)?))) else {
                return;
            };
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            if i < first.fetch_min(i, Ordering::Relaxed) {
                *found = Some(result);
            }
        });
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// `f` folded over each i below `count`, from `none` on in each task; `join` joins the results of neighbours.
    pub fn fold<A: Send>(
        self,
        count: usize,
        least: usize,
        none: impl Fn() -> A + Sync,
        f: impl Fn(A, usize) -> A + Sync,
        join: impl Fn(A, A) -> A,
    ) -> A {
        let parts = Mutex::new(Vec::new());
        self.ranges(count, least, &|range| {
            let part = (range.start, range.fold(none(), &f));
            parts.lock().unwrap_or_else(PoisonError::into_inner).push(part);
        });
        let mut parts = parts.into_inner().unwrap_or_else(PoisonError::into_inner);
        parts.sort_unstable_by_key(|&(start, _)| start);
        parts.into_iter().map(|(_, part)| part).reduce(join).unwrap_or_else(none)
    }
}

/// What `f` gives on each thread of the current rayon pool, by its number; all run at the same time.
pub fn on_each<R: Send>(f: impl Fn(usize) -> R + Sync) -> Vec<R> {
    fn broadcast(f: &(dyn Fn(usize) + Sync)) {
        rayon::broadcast(|context| f(context.index()));
    }
    let count = rayon::current_num_threads();
    let mut made = Vec::<R>::with_capacity(count);
    let to = Entries(made.as_mut_ptr());
    // SAFETY: there is room for `count`, and each thread has a number of its own
    broadcast(&|thread| unsafe { to.at(thread).write(f(thread)) });
    // SAFETY: each of them is written
    unsafe { made.set_len(count) };
    made
}

/// What `f` gives on a thread of `pool`.
///
/// # Panics
/// If `f` does.
pub fn within<R: Send>(pool: &rayon::ThreadPool, f: impl FnOnce() -> R + Send) -> R {
    fn install(pool: &rayon::ThreadPool, f: &mut (dyn FnMut() + Send)) {
        pool.install(f);
    }
    let (mut f, mut result) = (Some(f), None);
    install(pool, &mut || result = f.take().map(|f| f()));
    result.expect("the pool has run it")
}

/// The first of entries of which tasks use one each.
struct Entries<T>(*mut T);

// SAFETY: no two tasks use the same entry, and what is in it may go to another thread
unsafe impl<T: Send> Sync for Entries<T> {}

impl<T> Entries<T> {
    fn at(&self, index: usize) -> *mut T {
        self.0.wrapping_add(index)
    }
}

/// Halves `range` as rayon does: into parts for all threads, and again where another thread took one.
fn divide(range: Range<usize>, least: usize, splits: usize, taken: bool, task: &Task) {
    let half = range.len() / 2;
    if half < least.max(1) || (splits == 0 && !taken) {
        return task(range);
    }
    let splits = if taken { rayon::current_num_threads().max(splits / 2) } else { splits / 2 };
    let (middle, end) = (range.start + half, range.end);
    rayon::join_context(
        |context| divide(range.start..middle, least, splits, context.migrated(), task),
        |context| divide(middle..end, least, splits, context.migrated(), task),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_index_comes_once_and_results_are_in_order() {
        for threads in [Threads::One, Threads::Pool] {
            for (count, least) in [(0, 1), (1, 1), (7, 1), (1000, 1), (1000, 300)] {
                let numbers: Vec<usize> = (0..count).collect();
                assert_eq!(threads.map(count, least, |i| i), numbers);
                let texts = threads.map(count, least, |i| i.to_string());
                let parsed = threads.each(texts, |text| text.parse::<usize>().unwrap());
                assert_eq!(parsed, numbers);
                let sum = AtomicUsize::new(0);
                threads.for_each(count, least, |i| _ = sum.fetch_add(i, Ordering::Relaxed));
                assert_eq!(sum.into_inner(), (0..count).sum::<usize>());
                let push = |mut all: Vec<usize>, i| {
                    all.push(i);
                    all
                };
                let all = threads.fold(count, least, Vec::new, push, |a, b| [a, b].concat());
                assert_eq!(all, numbers);
                let mut values = vec![0; count];
                let lengths = threads.chunks(&mut values, 3, least, |number, part| {
                    part.fill(number);
                    part.len()
                });
                assert_eq!(lengths.iter().sum::<usize>(), count);
                assert!(values.iter().enumerate().all(|(i, &number)| i / 3 == number));
            }
        }
    }

    #[test]
    fn the_first_of_several_is_found() {
        for threads in [Threads::One, Threads::Pool] {
            let from = |first| threads.find_map(1000, 1, |i| (i >= first).then_some(i));
            assert_eq!([from(0), from(617), from(1000)], [Some(0), Some(617), None]);
            assert!(threads.all(1000, 16, |i| i < 1000) && !threads.all(1000, 16, |i| i != 999));
            assert!(threads.all(0, 1, |_| false));
        }
    }

    #[test]
    fn each_thread_of_a_pool_gives_its_result() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        assert_eq!(within(&pool, || on_each(|thread| thread.to_string())), ["0", "1", "2"]);
    }
}
