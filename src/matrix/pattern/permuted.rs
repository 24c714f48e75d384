//! Patterns with their rows and columns in another order.

use std::sync::atomic::{AtomicU32, Ordering};

use super::Pattern;
use super::rows::{Lengths, laid};
use crate::base::threads::Threads;

/// Fewest numbers of a task.
const CHUNK: usize = 2048;

/// The pattern with row i and column i of `order[i]`.
pub fn permuted(threads: Threads, p: &Pattern, order: &[u32]) -> Pattern<'static> {
    let place = inverse_on(threads, order);
    let view = p.view();
    let lengths = Lengths {
        rows: order.len(),
        block_size: p.block_size(),
        of: |i: usize| [view.row(order[i] as usize).len()],
    };
    let [pattern] = laid(threads, &lengths, |i, [to]: [&mut [u32]; 1]| {
        for (to, &j) in to.iter_mut().zip(view.row(order[i] as usize)) {
            *to = place[j as usize];
        }
        to.sort_unstable();
    });
    pattern
}

/// The place of each number in `order`.
///
/// # Panics
/// If a number is named twice.
pub fn inverse(order: &[u32]) -> Vec<u32> {
    let mut place = vec![u32::MAX; order.len()];
    for (i, &number) in (0..).zip(order) {
        assert!(place[number as usize] == u32::MAX, "row {number} is named twice");
        place[number as usize] = i;
    }
    place
}

/// [`inverse`] on one thread or all.
///
/// # Panics
/// If a number is named twice.
pub(crate) fn inverse_on(threads: Threads, order: &[u32]) -> Vec<u32> {
    if threads == Threads::One {
        return inverse(order);
    }
    let place: Vec<AtomicU32> = threads.map(order.len(), CHUNK, |_| AtomicU32::new(u32::MAX));
    threads.for_each(order.len(), CHUNK, |i| {
        let number = order[i];
        let before = place[number as usize].swap(i as u32, Ordering::Relaxed);
        assert!(before == u32::MAX, "row {number} is named twice");
    });
    threads.map(place.len(), CHUNK, |i| place[i].load(Ordering::Relaxed))
}
