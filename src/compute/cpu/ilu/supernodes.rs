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

/// Subtracts what `P` rows of a supernode, from row p on, do to the rows whose numbers are in `columns`: a number is
/// read and written once for all of them, with the operations of one row after the other.
///
/// # Safety
/// Nobody writes these rows of U' now.
#[inline(always)]
unsafe fn update<const P: usize, S: Simd>(s: S, job: &Job, p: usize, columns: &mut [[f64; MOST]]) {
    let upper = job.upper_pattern;
    let values: [&[f64]; P] = std::array::from_fn(|row| {
        // SAFETY: by the caller's promise.
        unsafe { job.upper.read(reversed(&upper.range(p + row), upper.entries())) }
    });
    let mut factors: [S::F4; P] = std::array::from_fn(|row| s.load4::<MOST>(&columns[p + row]));
    for row in 0..P {
        for behind in row + 1..P {
            let u = s.splat4(values[row][values[row].len() - (behind - row)]);
            factors[behind] = s.msub4(factors[row], u, factors[behind]);
        }
        s.store4::<MOST>(factors[row], &mut columns[p + row]);
    }
    let targets = &upper.col_ind[upper.range(p + P - 1)];
    let count = targets.len();
    for of_row in values {
        assert!(of_row.len() >= count);
    }
    let changed = |mut target: S::F4, at: usize| {
        for row in 0..P {
            // SAFETY: each row has as many values, stored from the last column to the first.
            let u = unsafe { *values[row].get_unchecked(count - 1 - at) };
            target = s.msub4(factors[row], s.splat4(u), target);
        }
        target
    };
    // SAFETY: each column has a place.
    unsafe {
        for pair in 0..count / 2 {
            let [j, k] = [2 * pair, 2 * pair + 1].map(|at| *targets.get_unchecked(at) as usize);
            // both are read before one is written, which the compiler cannot know to be another
            let [one, other] = [j, k].map(|at| s.load4::<MOST>(columns.get_unchecked(at)));
            let (one, other) = (changed(one, 2 * pair), changed(other, 2 * pair + 1));
            s.store4::<MOST>(one, columns.get_unchecked_mut(j));
            s.store4::<MOST>(other, columns.get_unchecked_mut(k));
        }
        if count % 2 == 1 {
            let target = columns.get_unchecked_mut(targets[count - 1] as usize);
            let one = changed(s.load4::<MOST>(target), count - 1);
            s.store4::<MOST>(one, target);
        }
    }
}

/// Factorises the rows of a supernode. `columns` has the numbers of its rows side by side, for each column: dense, so that
/// updates need no test; places outside the pattern collect rubbish that nobody reads.
#[inline(always)]
pub(super) fn factor<S: Simd>(
    s: S,
    job: &Job,
    nodes: &Groups,
    rows: Range<usize>,
    columns: &mut [[f64; MOST]],
) -> Result<(), SingularBlock> {
    let &Job { shift, lower_pattern: lower, .. } = job;
    let (of_lower, of_diagonal) = (job.lower, job.inverse_diagonal);
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
        let mut done = 0;
        while done < left.len() {
            let pivots = &left[done..];
            let p = pivots[0] as usize;
            let most = nodes.ahead(p..rows.start).min(pivots.len());
            let count = (1..most).find(|&t| pivots[t] as usize != p + t).unwrap_or(most);
            match count {
                1 => update::<1, S>(s, job, p, columns),
                2 => update::<2, S>(s, job, p, columns),
                3 => update::<3, S>(s, job, p, columns),
                _ => update::<4, S>(s, job, p, columns),
            }
            for at in done..done + count {
                let p = left[at] as usize;
                let inverse = of_diagonal.read(p..p + 1)[0];
                for (multiplier, start) in columns[p].iter().zip(starts).take(rows.len()) {
                    of_lower.write(start + at..start + at + 1)[0] = multiplier * inverse;
                }
            }
            done += count;
        }
        match rows.len() {
            2 => own_rows::<2, S>(s, job, rows.start, columns),
            3 => own_rows::<3, S>(s, job, rows.start, columns),
            _ => own_rows::<4, S>(s, job, rows.start, columns),
        }
    }
}

/// Ends `N` rows from row i on, from which all before them are subtracted: each from those behind it.
///
/// # Safety
/// This call alone touches these rows of the factors.
#[inline(always)]
unsafe fn own_rows<const N: usize, S: Simd>(
    s: S,
    job: &Job,
    i: usize,
    columns: &mut [[f64; MOST]],
) -> Result<(), SingularBlock> {
    let (lower, upper) = (job.lower_pattern, job.upper_pattern);
    let before = lower.range(i).len();
    // SAFETY: by the caller's promise; these rows are no others' and do not overlap.
    let mut of_upper: [&mut [f64]; N] = std::array::from_fn(|row| unsafe {
        job.upper.write(reversed(&upper.range(i + row), upper.entries()))
    });
    let (mut factors, mut inverses) = ([s.splat4(0.0); N], [0.0; N]);
    for row in 0..N {
        let own = columns[i + row];
        let mut inverse = [own[row]];
        if let Err((within, pivot)) = Fixed::<1>.invert(s, &mut inverse) {
            return Err(SingularBlock { row: i + row, within, pivot, absent: false });
        }
        [inverses[row]] = inverse;
        factors[row] = s.load4::<MOST>(&own);
        // SAFETY: as above.
        unsafe { job.inverse_diagonal.write(i + row..i + row + 1)[0] = inverses[row] };
        for behind in row + 1..N {
            let at = lower.range(i + behind).start + before + row;
            // SAFETY: as above.
            unsafe { job.lower.write(at..at + 1)[0] = own[behind] * inverses[row] };
            let target = &mut columns[i + behind];
            let u = inverses[row] * target[row];
            let of_row = &mut of_upper[row];
            of_row[of_row.len() - (behind - row)] = u;
            let changed = s.msub4(factors[row], s.splat4(u), s.load4::<MOST>(target));
            s.store4::<MOST>(changed, target);
        }
    }
    let right = &upper.col_ind[upper.range(i + N - 1)];
    for (&j, at) in right.iter().zip((0..right.len()).rev()) {
        // SAFETY: each column has a place.
        let mut target = *unsafe { columns.get_unchecked(j as usize) };
        for row in 0..N {
            let u = inverses[row] * target[row];
            of_upper[row][at] = u;
            let changed = s.msub4(factors[row], s.splat4(u), s.load4::<MOST>(&target));
            s.store4::<MOST>(changed, &mut target);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::super::row_sums::far_in_four_sums;
    use super::super::BlockIlu;
    use super::*;
    use crate::base::choices::FactorPrecision;
    use crate::compute::Breakdown;
    use crate::compute::cpu::trsv;
    use crate::compute::cpu::values::Values;
    use crate::matrix::Csr;
    use crate::problem::samples::{matrix, pattern, thinned};

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
        // supernodes whose rows have one sum, four, and some one and some four
        let mut met = [0; 3];
        for spec in [
            "reservoir:6x5x4,k=2",
            "blockpoisson3d:6x5x3,b=3",
            "blockpoisson3d:5,b=4",
            "blockpoisson3d:4,b=7",
        ] {
            let a = matrix(spec);
            let a = a.in_blocks(1);
            for k in 0..4 {
                let pattern = pattern(&a, k);
                let [with, without] = both(&a, &pattern, 0.01).expect("pivots");
                assert!(with == without, "{spec}, k = {k}");
                let nodes = supernodes(Threads::One, &pattern).expect("supernodes");
                let mut i = 0;
                while i < a.rows() {
                    let count = nodes.ahead(i..a.rows());
                    let four = |row: usize| far_in_four_sums(pattern.lower.row(row).len()) > 0;
                    met[usize::from(four(i)) + usize::from(four(i + count - 1))] += 1;
                    i += count;
                }
            }
        }
        assert!(met.iter().all(|&count| count > 10), "{met:?}");
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
