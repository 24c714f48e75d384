//! Supernodes of factors with blocks of one: [groups](Groups) of rows with the same columns in L and U' together, which
//! are updated side by side.
//!
//! Numbers and their order are those of [`super`].

#![allow(unsafe_code, reason = "threads that write disjoint parts, indices that are known to fit")]

use std::ops::Range;

use super::super::block::{BlockSize, Fixed};
use super::super::groups::{Groups, MOST};
use super::super::simd::Simd;
use super::{Job, reversed};
use crate::base::threads::Threads;
use crate::compute::SingularBlock;
use crate::symbolic::FillPattern;

/// Those of the factors; `None` where fewer than half of the rows are in any with others.
pub(super) fn supernodes(threads: Threads, pattern: &FillPattern) -> Option<Groups> {
    if pattern.block_size() > 1 || !pattern.no_diagonal.is_empty() {
        return None;
    }
    let (lower, upper) = (pattern.lower.view(), pattern.upper.view());
    let continues = |i: usize| {
        let (l, u) = (lower.row(i - 1), upper.row(i));
        let (longer_l, longer_u) = (lower.row(i), upper.row(i - 1));
        longer_l.len() == l.len() + 1
            && longer_u.len() == u.len() + 1
            && longer_l[l.len()] as usize == i - 1
            && longer_u[0] as usize == i
            && longer_l[..l.len()] == *l
            && longer_u[1..] == *u
    };
    Groups::of(threads, pattern.rows(), continues)
}

/// Brings the rows of A that a supernode has into `columns`.
#[inline(always)]
fn load(job: &Job, rows: &Range<usize>, columns: &mut [[f64; MOST]]) {
    let (left, right) = (job.lower_pattern.row(rows.start), job.upper_pattern.row(rows.end - 1));
    let (cols, values) = job.a.row(rows.start);
    let own = left.len()..left.len() + rows.len();
    // column by column: a number that is read with others must not have been written alone, just before
    let mut beside = [values; MOST];
    let mut alike = true;
    for (beside, i) in beside.iter_mut().zip(rows.clone()) {
        let (of_row, values) = job.a.row(i);
        alike &= of_row == cols;
        *beside = values;
    }
    let whole = alike
        && cols.len() == own.end + right.len()
        && cols[..own.start] == *left
        && cols[own.start] as usize == rows.start
        && cols[own.end - 1] as usize == rows.end - 1
        && cols[own.end..] == *right;
    if !whole {
        for &j in left {
            columns[j as usize] = [0.0; MOST];
        }
        for i in rows.clone() {
            columns[i] = [0.0; MOST];
        }
        for &j in right {
            columns[j as usize] = [0.0; MOST];
        }
    }
    if alike {
        // lanes beyond the rows have numbers of the first, and nobody reads them
        for (at, &j) in cols.iter().enumerate() {
            columns[j as usize] = beside.map(|values| values[at]);
        }
        return;
    }
    for (lane, i) in rows.clone().enumerate() {
        let (cols, values) = job.a.row(i);
        for (&j, &v) in cols.iter().zip(values) {
            columns[j as usize][lane] = v;
        }
    }
}

/// Factorises the rows of a supernode. `columns` has the numbers of its rows side by side, for each column: dense, so that
/// updates need no test; places outside the pattern collect rubbish that nobody reads.
#[inline(always)]
pub(super) fn factor<S: Simd>(
    s: S,
    job: &Job,
    rows: Range<usize>,
    columns: &mut [[f64; MOST]],
) -> Result<(), SingularBlock> {
    let &Job { shift, lower_pattern: lower, upper_pattern: upper, .. } = job;
    let (of_lower, of_diagonal, of_upper) = (job.lower, job.inverse_diagonal, job.upper);
    load(job, &rows, columns);
    let left = lower.row(rows.start);
    let mut starts = [0; MOST];
    for (start, i) in starts.iter_mut().zip(rows.clone()) {
        *start = lower.row_ptr[i] as usize;
        if shift != 0.0 {
            columns[i][i - rows.start] += shift;
        }
    }
    // SAFETY: rows of the supernode are written by this call alone; rows p before them in the pattern are finished:
    // earlier in the loop, or in a task that was waited for. Each column has a place.
    unsafe {
        for (at, &p) in left.iter().enumerate() {
            let p = p as usize;
            let multipliers = columns[p];
            let factor = s.load4::<MOST>(&multipliers);
            let range = upper.range(p);
            let values = of_upper.read(reversed(&range, upper.entries()));
            let of_row = &upper.col_ind[range];
            let mut turn = 0;
            while turn + 1 < of_row.len() {
                let [j, k] = [turn, turn + 1].map(|at| *of_row.get_unchecked(at) as usize);
                let last = values.len() - 1 - turn;
                let [u, v] = [last, last - 1].map(|at| s.splat4(*values.get_unchecked(at)));
                // both are read before one is written, which the compiler cannot know to be another
                let [one, other] = [j, k].map(|at| s.load4::<MOST>(columns.get_unchecked(at)));
                let (one, other) = (s.msub4(factor, u, one), s.msub4(factor, v, other));
                s.store4::<MOST>(one, columns.get_unchecked_mut(j));
                s.store4::<MOST>(other, columns.get_unchecked_mut(k));
                turn += 2;
            }
            if turn < of_row.len() {
                let target = columns.get_unchecked_mut(of_row[turn] as usize);
                let changed = s.msub4(factor, s.splat4(values[0]), s.load4::<MOST>(target));
                s.store4::<MOST>(changed, target);
            }
            let inverse = of_diagonal.read(p..p + 1)[0];
            for (multiplier, start) in multipliers.iter().zip(starts).take(rows.len()) {
                of_lower.write(start + at..start + at + 1)[0] = multiplier * inverse;
            }
        }
        // the rows themselves, one after the other
        for (lane, i) in rows.clone().enumerate() {
            let own = columns[i];
            let diagonal = of_diagonal.write(i..i + 1);
            diagonal[0] = own[lane];
            if let Err((within, pivot)) = Fixed::<1>.invert(s, diagonal) {
                return Err(SingularBlock { row: i, within, pivot, absent: false });
            }
            let at = left.len() + lane;
            for (next, start) in starts.iter().enumerate().take(rows.len()).skip(lane + 1) {
                of_lower.write(start + at..start + at + 1)[0] = own[next] * diagonal[0];
            }
            // lanes of finished rows take part, and nobody reads them
            let factor = s.load4::<MOST>(&own);
            let range = upper.range(i);
            let u = of_upper.write(reversed(&range, upper.entries()));
            for (u, &j) in u.iter_mut().rev().zip(&upper.col_ind[range]) {
                let target = columns.get_unchecked_mut(j as usize);
                *u = diagonal[0] * target[lane];
                let changed = s.msub4(factor, s.splat4(*u), s.load4::<MOST>(target));
                s.store4::<MOST>(changed, target);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::BlockIlu;
    use crate::base::choices::FactorPrecision;
    use crate::compute::Breakdown;
    use crate::compute::cpu::trsv;
    use crate::compute::cpu::values::Values;
    use crate::matrix::Csr;
    use crate::problem::samples::{matrix, pattern, thinned};
    use crate::symbolic::FillPattern;

    /// Bits of L, D^-1, U', and of what they make of a vector, with supernodes and without.
    fn both(a: &Csr, pattern: &Arc<FillPattern>, shift: f64) -> Result<[Vec<u64>; 2], Breakdown> {
        let mut made = [true, false].map(|with| {
            let mut ilu = BlockIlu::new(pattern, FactorPrecision::Float64, false);
            assert!(ilu.supernodes.is_some());
            ilu.supernodes = ilu.supernodes.filter(|_| with);
            ilu.factor(a, shift, true).map(|()| ilu)
        });
        let [with, without] = &mut made;
        let bits = |ilu: &BlockIlu| {
            let Values::Double(blocks) = &ilu.values else { unreachable!("float64") };
            let r: Vec<f64> = (0..a.rows()).map(|i| ((i * 7919) % 1000) as f64 - 499.5).collect();
            let mut z = vec![0.0; r.len()];
            trsv::apply(ilu, &r, &mut z, true);
            let parts = [&blocks.lower, &blocks.inverse_diagonal, &blocks.upper];
            let numbers = parts.iter().flat_map(|part| part.iter()).chain(&z);
            numbers.map(|v| v.to_bits()).collect::<Vec<_>>()
        };
        match (with, without) {
            (Ok(with), Ok(without)) => Ok([bits(with), bits(without)]),
            (Err(with), Err(without)) => {
                assert_eq!(with, without);
                Err(*with)
            }
            _ => panic!("one of two breaks down"),
        }
    }

    #[test]
    fn factors_and_solves_have_the_bits_of_those_without() {
        for spec in [
            "reservoir:6x5x4,k=2",
            "blockpoisson3d:6x5x3,b=3",
            "blockpoisson3d:5,b=4",
            "blockpoisson3d:4,b=7",
        ] {
            let a = matrix(spec);
            let a = a.in_blocks(1);
            for k in 0..4 {
                let [with, without] = both(&a, &pattern(&a, k), 0.01).expect("pivots");
                assert!(with == without, "{spec}, k = {k}");
            }
        }
    }

    #[test]
    fn another_matrix_on_the_pattern_has_its_own_entries() {
        let a = matrix("blockpoisson3d:6x5x3,b=3");
        let a = a.in_blocks(1);
        let pattern = pattern(&a, 1);
        let outside = (30, a.rows() as u32 - 1);
        assert!(!pattern.upper.row(outside.0).contains(&outside.1));
        // rows of a cell differ
        let [with, without] = both(&thinned(&a, None), &pattern, 0.0).expect("pivots");
        assert!(with == without);
        let other = both(&thinned(&a, Some(outside)), &pattern, 0.0).expect("pivots");
        assert!(other.iter().all(|bits| *bits == without));
    }

    #[test]
    fn a_zero_pivot_within_a_supernode_names_its_row() {
        let a = matrix("blockpoisson3d:4,b=3");
        let mut a = a.in_blocks(1);
        let range = a.row_ptr()[40] as usize..a.row_ptr()[41] as usize;
        a.values_mut()[range].fill(0.0);
        // without the shift of the other test
        let pattern = pattern(&a, 0);
        let mut ilu = BlockIlu::new(&pattern, FactorPrecision::Float64, false);
        let broken = ilu.factor(&a, 0.0, true).expect_err("a zero pivot");
        assert!(matches!(broken, Breakdown::Singular(at) if at.row == 40), "{broken:?}");
    }
}
