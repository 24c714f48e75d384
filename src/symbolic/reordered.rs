//! Triangles of patterns, with rows and columns in another order.

use super::FillPattern;
use crate::base::threads::Threads;
use crate::matrix::inverse_on;
use crate::matrix::pattern::Pattern;
use crate::matrix::pattern::rows::{Task, find};

/// The triangles of [`permuted`](crate::matrix::pattern::permuted); every diagonal is taken to be there.
pub(crate) fn reordered_triangles(threads: Threads, p: &Pattern, order: &[u32]) -> FillPattern {
    let (view, place) = (p.view(), inverse_on(threads, order));
    cut(threads, p, |i, row| {
        row.extend(view.row(order[i] as usize).iter().map(|&j| place[j as usize]));
        row.sort_unstable();
    })
}

/// The triangles of a pattern; every diagonal is taken to be there.
pub fn triangles(threads: Threads, p: &Pattern) -> FillPattern {
    let view = p.view();
    cut(threads, p, |i, row| row.extend_from_slice(view.row(i)))
}

/// Triangles of the rows that `row` finds, of a pattern with as many entries as `p`.
fn cut(threads: Threads, p: &Pattern, row: impl Fn(usize, &mut Vec<u32>) + Sync) -> FillPattern {
    let task = Task::like(p, threads, p.entries());
    let found = find(task, Vec::new, |all, i, [lower, upper]: &mut [Vec<u32>; 2]| {
        all.clear();
        row(i, all);
        let (before, behind) = all.split_at(all.partition_point(|&j| (j as usize) < i));
        lower.extend_from_slice(before);
        upper.extend(behind.iter().skip_while(|&&j| j as usize == i));
    });
    let [lower, upper] = found.expect("as many entries as there were");
    FillPattern::new(lower, upper, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::ReadAs;
    use crate::matrix::pattern::block_pattern;
    use crate::problem::load;

    #[test]
    fn rows_and_columns_move_and_are_cut_at_the_diagonal() {
        let a = load("fem-p1:31x29", ReadAs::Expanded).unwrap().matrix;
        let n = a.rows() as u32;
        let order: Vec<u32> = (0..n).map(|i| (i * 7 + 3) % n).collect();
        let moved = a.permuted(&order);
        let want = block_pattern(&moved);
        for threads in [Threads::One, Threads::Pool] {
            assert_eq!(crate::matrix::pattern::permuted(threads, &block_pattern(&a), &order), want);
            let t = reordered_triangles(threads, &block_pattern(&a), &order);
            assert_eq!(t, triangles(threads, &want));
            for i in 0..want.rows() {
                let row: Vec<u32> = t.lower.row(i).iter().chain(t.upper.row(i)).copied().collect();
                let all = want.row(i).iter().copied().filter(|&j| j as usize != i);
                assert!(row.into_iter().eq(all), "row {i}");
                assert!(t.lower.row(i).iter().all(|&j| (j as usize) < i));
            }
        }
    }
}
