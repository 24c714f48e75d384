//! Patterns of powers of a matrix: what is reached in so many steps.

use std::ops::Range;

use crate::base::threads::Threads;
use crate::matrix::pattern::rows::{Task, find};
use crate::matrix::pattern::{Pattern, TooLarge};

/// The pattern of `|A|^q`: j is in row i when it is reached from i in at most q steps, whether or not
/// diagonals are stored. `limit` bounds its entries.
///
/// # Errors
/// [`TooLarge`] when the limit is passed.
pub fn power(
    threads: Threads,
    a: &Pattern,
    q: usize,
    limit: usize,
) -> Result<Pattern<'static>, TooLarge> {
    let view = a.view();
    let task = Task::like(a, threads, limit);
    let found = find(
        task,
        || vec![false; a.rows()],
        |seen, i, [out]: &mut [Vec<u32>; 1]| {
            let start = out.len();
            out.push(i as u32);
            seen[i] = true;
            let mut step = start;
            for _ in 0..q {
                let end = out.len();
                for at in step..end {
                    for &j in view.row(out[at] as usize) {
                        if !std::mem::replace(&mut seen[j as usize], true) {
                            out.push(j);
                        }
                    }
                }
                step = end;
            }
            let row = &mut out[start..];
            for &j in &*row {
                seen[j as usize] = false;
            }
            row.sort_unstable();
        },
    );
    found.map(|[pattern]| pattern)
}

/// Whether every entry of the pattern has one across the diagonal.
pub(crate) fn is_symmetric(threads: Threads, a: &Pattern) -> bool {
    mirrors(threads, a, 0..a.rows())
}

/// The same of the rows and columns `within` alone.
pub(crate) fn mirrors(threads: Threads, a: &Pattern, within: Range<usize>) -> bool {
    let view = a.view();
    let mirrored = |at: usize| {
        let i = (within.start + at) as u32;
        let mut others = view.row(i as usize).iter().filter(|&&j| within.contains(&(j as usize)));
        others.all(|&j| view.row(j as usize).binary_search(&i).is_ok())
    };
    match threads.count() {
        1 => mirrors_in_turn(a, within),
        _ => threads.all(within.len(), 1024, mirrored),
    }
}

/// Above the diagonal of each row are the rows below that have it, in their order.
fn mirrors_in_turn(a: &Pattern, within: Range<usize>) -> bool {
    let inside = |i: usize| {
        let row = a.row(i);
        let at = |column: usize| row.partition_point(|&j| (j as usize) < column);
        a.row_ptr[i] as usize + at(within.start)..a.row_ptr[i] as usize + at(within.end)
    };
    let above =
        |i: usize| (a.row_ptr[i] as usize + a.row(i).partition_point(|&j| j as usize <= i)) as u32;
    let mut next: Vec<u32> = within.clone().map(above).collect();
    let found = within.clone().all(|i| {
        let mut below = a.col_ind[inside(i)].iter().map(|&j| j as usize).take_while(|&j| j < i);
        below.all(|j| {
            let at = &mut next[j - within.start];
            *at += 1;
            *at <= a.row_ptr[j + 1] && a.col_ind[*at as usize - 1] as usize == i
        })
    });
    found && within.clone().zip(next).all(|(i, next)| next as usize == inside(i).end)
}

/// The pattern of `A + A'`, with all diagonals; that of A where it is one.
pub(crate) fn symmetrised<'a>(threads: Threads, a: &'a Pattern) -> Pattern<'a> {
    let diagonal = |i: usize| a.row(i).binary_search(&(i as u32)).is_ok();
    let diagonals = || threads.all(a.rows(), 1024, diagonal);
    if is_symmetric(threads, a) && diagonals() {
        return Pattern::new(&*a.row_ptr, &*a.col_ind).in_blocks(a.block_size());
    }
    let mirrored = a.transposed();
    let (view, other) = (a.view(), mirrored.view());
    // an entry, its mirror and a diagonal each
    let task = Task::like(a, threads, 2 * a.entries() + a.rows());
    let found = find(
        task,
        || (),
        |(), i, [out]: &mut [Vec<u32>; 1]| {
            let start = out.len();
            out.extend_from_slice(view.row(i));
            out.extend_from_slice(other.row(i));
            out.push(i as u32);
            out[start..].sort_unstable();
            let mut kept = start;
            for at in start..out.len() {
                if at == start || out[at] != out[kept - 1] {
                    out[kept] = out[at];
                    kept += 1;
                }
            }
            out.truncate(kept);
        },
    );
    let [pattern] = found.expect("both patterns and the diagonal");
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::ReadAs;
    use crate::matrix::Csr;
    use crate::matrix::pattern::block_pattern;
    use crate::problem::load;
    use crate::symbolic::fill::tests::random;

    #[test]
    fn powers_are_those_of_the_matrix() {
        let a = load("fem-p1:9x7", ReadAs::Expanded).unwrap().matrix;
        // no entry cancels where all are positive
        let positive = a.filtered(Threads::One, |_, _, _| Some(1.0));
        let mut product: Csr = positive.clone();
        for q in 1..4 {
            let p = power(Threads::Pool, &block_pattern(&a), q, usize::MAX).unwrap();
            assert_eq!((&p.row_ptr[..], &p.col_ind[..]), (product.row_ptr(), product.col_ind()));
            product = product.times(&positive, Threads::One).unwrap();
        }
        let p = power(Threads::One, &block_pattern(&a), 0, usize::MAX).unwrap();
        assert!(p.col_ind.iter().enumerate().all(|(i, &j)| i == j as usize));
        let large = power(Threads::One, &block_pattern(&a), 2, 100).unwrap_err();
        assert!(large.entries > 100);
    }

    #[test]
    fn symmetry_is_that_of_the_transposed_pattern() {
        for seed in 0..60 {
            let (n, symmetric) = (1 + seed as usize, seed % 2 == 0);
            let p = random(n, 1 + n / 8, symmetric, seed);
            let expected = p.transposed() == p;
            assert!(!symmetric || expected);
            for threads in [Threads::One, Threads::Pool] {
                assert_eq!(is_symmetric(threads, &p), expected, "{threads:?} {seed}");
            }
            let within = n / 4..n - n / 3;
            let coupled = |i: usize, j: usize| p.row(i).binary_search(&(j as u32)).is_ok();
            let expected_within =
                within.clone().all(|i| within.clone().all(|j| coupled(i, j) == coupled(j, i)));
            for threads in [Threads::One, Threads::Pool] {
                let found = mirrors(threads, &p, within.clone());
                assert_eq!(found, expected_within, "{threads:?} {seed}");
            }
            // without one entry off the diagonal
            let rows = (0..n).filter(|&i| p.row(i).iter().any(|&j| j as usize != i));
            if let Some(row) = rows.max().filter(|_| expected) {
                let at = p.row(row).iter().position(|&j| j as usize != row).unwrap();
                let (mut row_ptr, mut col_ind) = (p.row_ptr.to_vec(), p.col_ind.to_vec());
                col_ind.remove(p.row_ptr[row] as usize + at);
                row_ptr[row + 1..].iter_mut().for_each(|end| *end -= 1);
                assert!(!is_symmetric(Threads::One, &Pattern::new(row_ptr, col_ind)), "{seed}");
            }
        }
    }

    #[test]
    fn both_triangles_and_the_diagonal_are_there() {
        // (0, 2) and (2, 1) alone
        let p = Pattern::new(vec![0, 1, 1, 2], vec![2, 1]);
        assert!(!is_symmetric(Threads::One, &p) && !is_symmetric(Threads::Pool, &p));
        let s = symmetrised(Threads::One, &p);
        assert!(is_symmetric(Threads::One, &s) && is_symmetric(Threads::Pool, &s));
        assert_eq!(symmetrised(Threads::Pool, &s), s);
        assert_eq!((s.row(0), s.row(1), s.row(2)), (&[0, 2][..], &[1, 2][..], &[0, 1, 2][..]));
    }
}
