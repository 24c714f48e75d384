//! Rows that repeat the row before them, one column to the right.

use std::ops::Range;

use super::PatternView;

/// Whether `row` is `before` with `by` added to each column.
#[inline(always)]
pub(crate) fn repeats(row: &[u32], before: &[u32], by: u32) -> bool {
    // no early end: the rows are short, and so the compiler compares many columns at a time
    let differ = |d, (j, b): (&u32, &u32)| d | (j ^ b.wrapping_add(by));
    row.len() == before.len() && row.iter().zip(before).fold(0, differ) == 0
}

/// How many of `rows`, from their first on, repeat the row before them. Takes as long as it finds rows, not as there
/// are rows of one length.
#[inline(always)]
pub(crate) fn repeating(p: PatternView, rows: Range<usize>) -> usize {
    /// Rows that are compared at a time.
    const ROWS: usize = 16;
    let first = rows.start;
    if first == 0 || first >= rows.end {
        return 0;
    }
    let each = p.range(first - 1).len();
    // alone: most rows of a node are as long as those before them, and repeat none
    if !repeats(p.row(first), p.row(first - 1), 1) {
        return 0;
    }
    let mut next = first;
    while next < rows.end {
        let some = next..(next + ROWS).min(rows.end);
        let ends = p.row_ptr[some.start..=some.end].windows(2);
        let alike = ends.take_while(|ends| (ends[1] - ends[0]) as usize == each).count();
        let start = p.row_ptr[next] as usize;
        let row = &p.col_ind[start..start + alike * each];
        let before = &p.col_ind[start - each..][..row.len()];
        if !repeats(row, before, 1) {
            let pairs = row.iter().zip(before);
            let same = pairs.take_while(|(j, before)| **j == before.wrapping_add(1)).count();
            return next - first + same / each;
        }
        next += alike;
        if next < some.end {
            break;
        }
    }
    next - first
}

/// How many at the start of `counts` are at least `least`.
#[inline]
pub(crate) fn run(counts: &[u8], least: u8) -> usize {
    let whole = counts.chunks_exact(16).take_while(|c| c.iter().all(|&c| c >= least)).count();
    let rest = &counts[16 * whole..];
    16 * whole + rest.iter().take_while(|&&c| c >= least).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_runs() {
        assert!(repeats(&[3, 7, 8], &[2, 6, 7], 1) && repeats(&[], &[], 1));
        assert!(repeats(&[3, 7, 8], &[0, 4, 5], 3) && !repeats(&[3, 7, 8], &[2, 6, 7], 2));
        assert!(!repeats(&[3, 7], &[2, 6, 7], 1) && !repeats(&[3, 7, 9], &[2, 6, 7], 1));
        // tridiagonal but for the entry (30, 2)
        let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
        for i in 0..100_u32 {
            col_ind.extend((i == 30).then_some(2));
            col_ind.extend(i.saturating_sub(1)..=(i + 1).min(99));
            row_ptr.push(col_ind.len() as u32);
        }
        let p = PatternView::new(&row_ptr, &col_ind);
        let counts = [0..100, 1..100, 2..100, 2..20, 29..29, 30..100, 31..100, 32..100, 99..100];
        assert_eq!(counts.map(|rows| repeating(p, rows)), [0, 0, 28, 18, 0, 0, 0, 67, 0]);
        let mut counts = vec![2; 50];
        assert_eq!((run(&counts, 2), run(&counts, 3), run(&[], 0)), (50, 0, 0));
        for at in [49, 33, 16, 15, 0] {
            counts[at] = 1;
            assert_eq!((run(&counts, 2), run(&counts, 1)), (at, 50));
        }
    }
}
