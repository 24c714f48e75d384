//! Patterns in another order, and orders made of sets.

use super::{Pattern, Schedule, Threads};
use crate::matrix::{Csr, inverse};

/// The scalar rows of block rows in their order.
pub fn scalar_order(order: &[u32], b: usize) -> Vec<u32> {
    let b = b as u32;
    order.iter().flat_map(|&i| i * b..(i + 1) * b).collect()
}

/// Rows set by set: those of set 0 first, in each set in their order.
pub fn by_set(set: &[u32]) -> Vec<u32> {
    Schedule::from_levels(set).rows
}

/// The pattern with row i and column i of `order[i]`.
///
/// # Panics
/// If `order` is no permutation of the rows.
pub fn renumbered(threads: Threads, p: &Pattern, order: &[u32]) -> Pattern<'static> {
    let (n, view, place) = (p.rows(), p.view(), inverse(order));
    let made: crate::Result<Csr> =
        Csr::by_rows(threads, [n, n], Vec::new, |row: &mut Vec<u32>, i, to| {
            row.clear();
            row.extend(view.row(order[i] as usize).iter().map(|&j| place[j as usize]));
            row.sort_unstable();
            for &j in &*row {
                to.push(j, 0.0);
            }
            Ok(())
        });
    let (row_ptr, col_ind, _) = made.expect("as many entries as there were").into_parts();
    Pattern { row_ptr: row_ptr.into(), col_ind: col_ind.into() }
}
