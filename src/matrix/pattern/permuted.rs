//! Patterns with their rows and columns in another order.

use super::Pattern;
use super::rows::{Lengths, laid};
use crate::base::threads::Threads;
use crate::matrix::inverse_on;

/// The pattern with row i and column i of `order[i]`.
pub fn permuted(threads: Threads, p: &Pattern, order: &[u32]) -> Pattern<'static> {
    permuted_to(threads, p, (order, &inverse_on(threads, order)))
}

/// The same for an order and the place of each row in it.
pub(crate) fn permuted_to(
    threads: Threads,
    p: &Pattern,
    (order, place): (&[u32], &[u32]),
) -> Pattern<'static> {
    let view = p.view();
    let lengths = Lengths { rows: order.len(), of: |i: usize| [view.row(order[i] as usize).len()] };
    let [pattern] = laid(threads, &lengths, |i, [to]: [&mut [u32]; 1]| {
        for (to, &j) in to.iter_mut().zip(view.row(order[i] as usize)) {
            *to = place[j as usize];
        }
        to.sort_unstable();
    });
    pattern
}
