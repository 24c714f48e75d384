//! Factorisation of rows with blocks of one that repeat the row before them, on a grid nearly all.
//!
//! Which entry of which row changes which entry is found once for all of them. A row is held in the places of
//! its entries, not dense, and what lies outside the pattern is never computed. Numbers and their order are
//! those of [`super`].

#![allow(unsafe_code, reason = "threads that write disjoint parts, indices that are known to fit")]

use std::ops::Range;

use super::super::block::{BlockSize, Fixed};
use super::super::simd::Simd;
use super::Job;
use crate::compute::SingularBlock;
use crate::matrix::pattern::PatternView;
use crate::matrix::pattern::repeats::repeating;

/// Fewest rows for which a plan is made.
const LEAST: usize = 4;

/// What the rows of a run have in common, by places in a row: lower part, diagonal, upper part, and one more
/// for what is not in the pattern.
#[derive(Default)]
pub(super) struct Plan {
    /// Place of each entry of A.
    entries: Vec<u32>,
    /// What the rows of U' change, one row after the other.
    updates: Vec<Update>,
    /// End of those of each row of U'.
    ends: Vec<u32>,
    /// Places of fill, which begin with zero.
    fill: Vec<u32>,
    row: Vec<f64>,
}

/// An entry of a row of U' and the one that it changes.
#[derive(Clone, Copy)]
struct Update {
    /// Where the row holds it, from the end of the row.
    from: u32,
    target: u32,
}

/// How many of `rows`, from the first on, can be factorised by the plan of the first; 1 where they are few.
#[inline(always)]
pub(super) fn rows(job: &Job, rows: Range<usize>) -> usize {
    let (first, pattern) = (rows.start, job.pattern);
    let after = |p: usize, count: usize| p + 1..p + 1 + count;
    let mut count = pattern.lower.repeated(after(first, rows.len() - 1));
    if count + 1 < LEAST || !pattern.no_diagonal.is_empty() {
        return 1;
    }
    count = pattern.upper.repeated(after(first, count));
    for &p in job.lower_pattern.row(first) {
        count = pattern.upper.repeated(after(p as usize, count));
    }
    let a = PatternView::new(job.a.row_ptr(), job.a.col_ind());
    let count = repeating(a, after(first, count));
    if count + 1 < LEAST { 1 } else { count + 1 }
}

impl Plan {
    /// For row i and those that repeat it.
    fn make(&mut self, job: &Job, i: usize) {
        let (lower, upper) = (job.lower_pattern.row(i), job.upper_pattern.row(i));
        let diagonal = [i as u32];
        let columns = || (0..).zip(lower.iter().chain(&diagonal).chain(upper).copied());
        self.row.resize(lower.len() + upper.len() + 2, 0.0);
        let outside = self.row.len() as u32 - 1;
        self.entries.clear();
        let mut places = columns().peekable();
        self.entries.extend(job.a.row(i).0.iter().map(|&j| {
            while places.next_if(|&(_, column)| column < j).is_some() {}
            places.peek().filter(|&&(_, column)| column == j).map_or(outside, |&(place, _)| place)
        }));
        self.fill.clear();
        let filled = |place: &u32| !self.entries.contains(place);
        self.fill.extend((0..outside).filter(filled));
        self.updates.clear();
        self.ends.clear();
        for &p in lower {
            let row = job.upper_pattern.row(p as usize);
            let mut places = columns().peekable();
            for (&j, from) in row.iter().zip((0..row.len() as u32).rev()) {
                while places.next_if(|&(_, column)| column < j).is_some() {}
                if let Some(&(target, column)) = places.peek()
                    && column == j
                {
                    self.updates.push(Update { from, target });
                }
            }
            self.ends.push(self.updates.len() as u32);
        }
    }
}

/// Factorises `rows`, as many as [`rows`] has told.
#[inline(always)]
pub(super) fn factor<S: Simd>(
    s: S,
    job: &Job,
    rows: Range<usize>,
    plan: &mut Plan,
) -> Result<(), SingularBlock> {
    plan.make(job, rows.start);
    // in registers: the compiler cannot know that no number that is written is one of these
    let &Job { a, shift, lower_pattern: lower, upper_pattern: upper, .. } = job;
    let (of_lower, of_diagonal, of_upper) = (job.lower, job.inverse_diagonal, job.upper);
    let (a_ptr, a_values) = (a.row_ptr(), a.values());
    let Plan { entries, updates, ends, fill, row } = plan;
    let (entries, updates, ends, fill) = (&entries[..], &updates[..], &ends[..], &fill[..]);
    let lower_cols = lower.row(rows.start);
    let (row, nl) = (&mut row[..], lower_cols.len());
    for (step, i) in rows.enumerate() {
        let a_values = &a_values[a_ptr[i] as usize..a_ptr[i + 1] as usize];
        // SAFETY: row i of each factor is written by this call alone; rows p < i in the pattern are
        // finished: earlier in the loop, or in a task that was waited for. All rows are as long as those of the
        // first row, and the plan has places in them alone.
        unsafe {
            for &place in fill {
                *row.get_unchecked_mut(place as usize) = 0.0;
            }
            for (&place, &v) in entries.iter().zip(a_values) {
                *row.get_unchecked_mut(place as usize) = v;
            }
            row[nl] += shift;
            let l = of_lower.write(lower.range(i));
            let mut done = 0;
            for (at, (l, &p)) in l.iter_mut().zip(lower_cols).enumerate() {
                let p = p as usize + step;
                let multiplier = *row.get_unchecked(at);
                let of_p = upper.range(p);
                let u = of_upper.read(upper.entries() - of_p.end..upper.entries() - of_p.start);
                let end = *ends.get_unchecked(at) as usize;
                for update in updates.get_unchecked(done..end) {
                    let target = row.get_unchecked_mut(update.target as usize);
                    *target = s.madd(-multiplier, *u.get_unchecked(update.from as usize), *target);
                }
                done = end;
                *l = multiplier * of_diagonal.read(p..p + 1)[0];
            }
            let diagonal = of_diagonal.write(i..i + 1);
            diagonal[0] = row[nl];
            if let Err((within, pivot)) = Fixed::<1>.invert(s, diagonal) {
                return Err(SingularBlock { row: i, within, pivot, absent: false });
            }
            let of_i = upper.range(i);
            let u = of_upper.write(upper.entries() - of_i.end..upper.entries() - of_i.start);
            for (u, &v) in u.iter_mut().rev().zip(&row[nl + 1..]) {
                *u = diagonal[0] * v;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::BlockIlu;
    use crate::base::choices::{FactorPrecision, LevelRule};
    use crate::compute::Breakdown;
    use crate::compute::cpu::values::Values;
    use crate::matrix::Csr;
    use crate::matrix::pattern::{Pattern, block_pattern};
    use crate::problem::samples::{matrix, pattern, thinned};
    use crate::symbolic::{FillPattern, iluk};

    /// The numbers of L, D^-1 and U' on a pattern.
    fn factors(
        a: &Csr,
        pattern: &Arc<FillPattern>,
        shift: f64,
    ) -> Result<[Vec<u64>; 3], Breakdown> {
        let mut ilu = BlockIlu::new(pattern, FactorPrecision::Float64, false);
        ilu.factor(a, shift, true)?;
        let Values::Double(blocks) = &ilu.values else { unreachable!("float64") };
        let bits = |v: &[f64]| v.iter().map(|v| v.to_bits()).collect();
        Ok([&blocks.lower, &blocks.inverse_diagonal, &blocks.upper].map(|v| bits(v)))
    }

    /// The same pattern, of which nothing is known.
    fn plain(p: &FillPattern) -> Arc<FillPattern> {
        let half = |p: &Pattern| Pattern::new(p.row_ptr.to_vec(), p.col_ind.to_vec());
        FillPattern::new(half(&p.lower), half(&p.upper), p.no_diagonal.clone()).into()
    }

    #[test]
    fn factors_have_the_bits_of_those_without_a_plan() {
        for spec in ["convdiff3d:9x7x6", "poisson3d:30x5x4", "poisson3d:50x1x1", "fem-p1:12x9"] {
            let a = matrix(spec);
            for k in 0..4 {
                for rule in [LevelRule::Min, LevelRule::Overwrite] {
                    let p = Arc::new(iluk(&block_pattern(&a), k, rule, usize::MAX).expect("small"));
                    assert!(p.lower.repeated(2..3) + p.upper.repeated(2..3) > 0, "{spec}");
                    let without = factors(&a, &plain(&p), 0.01).expect("pivots");
                    assert_eq!(factors(&a, &p, 0.01).expect("pivots"), without, "{spec}, {k}");
                }
            }
        }
    }

    #[test]
    fn another_matrix_on_the_pattern_is_not_taken_for_one_that_repeats() {
        let a = matrix("poisson3d:20x5x4");
        let p = pattern(&a, 1);
        let without = factors(&thinned(&a, None), &plain(&p), 0.0).expect("pivots");
        // with an entry outside the pattern
        let other = thinned(&a, Some((130, 399)));
        assert_eq!(factors(&other, &plain(&p), 0.0).expect("pivots"), without);
        assert_eq!(factors(&other, &p, 0.0).expect("pivots"), without);
    }

    #[test]
    fn a_zero_pivot_names_its_row() {
        let mut a = matrix("poisson3d:60x1x1");
        let a = Arc::make_mut(&mut a);
        let p = pattern(a, 0);
        // row 40 loses its couplings and its diagonal
        let range = a.row_ptr()[40] as usize..a.row_ptr()[41] as usize;
        a.values_mut()[range].fill(0.0);
        let broken = |p: &Arc<FillPattern>| factors(a, p, 0.0).expect_err("a zero pivot");
        assert_eq!(broken(&plain(&p)), broken(&p));
        assert!(matches!(broken(&p), Breakdown::Singular(at) if at.row == 40));
    }
}
