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

/// Numbers of the rows in one column, in one line of the cache: a store across two lines takes several times as long.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Column([f64; MOST]);

/// Columns for what is not in the pattern, in turn: each change of one waits for the one before.
const ASIDE: usize = 8;

/// Scratch of one thread.
#[derive(Default)]
pub(super) struct Space {
    /// Where each column is in `columns`; 0 where it is not. Then zeros.
    positions: Vec<u32>,
    /// Numbers of the rows, column by column, behind [`ASIDE`].
    columns: Vec<Column>,
}

/// Factorises the rows of a supernode.
#[inline(always)]
pub(super) fn factor<S: Simd>(
    s: S,
    job: &Job,
    rows: Range<usize>,
    space: &mut Space,
) -> Result<(), SingularBlock> {
    let &Job { a, shift, lower_pattern: lower, upper_pattern: upper, .. } = job;
    let (of_lower, of_diagonal, of_upper) = (job.lower, job.inverse_diagonal, job.upper);
    let (first, count) = (rows.start, rows.len());
    let (left, right) = (lower.row(first), upper.row(rows.end - 1));
    let Space { positions, columns } = space;
    if positions.len() < job.pattern.rows() {
        positions.resize(job.pattern.rows(), 0);
    }
    let (nl, all) = (left.len(), left.len() + count + right.len());
    columns.clear();
    columns.resize(ASIDE + all, Column([0.0; MOST]));
    // slices: the vectors' own pointers would be read again for each number
    let (positions, columns) = (&mut positions[..], &mut columns[..]);
    let own = first as u32..rows.end as u32;
    let places = || left.iter().copied().chain(own.clone()).chain(right.iter().copied());
    places().zip(ASIDE as u32..).for_each(|(j, at)| positions[j as usize] = at);
    for (lane, i) in rows.clone().enumerate() {
        let (cols, values) = a.row(i);
        for (&j, &v) in cols.iter().zip(values) {
            columns[positions[j as usize] as usize].0[lane] = v;
        }
        columns[ASIDE + nl + lane].0[lane] += shift;
    }
    let mut done = Ok(());
    // SAFETY: rows of the supernode are written by this call alone; rows p before them in the pattern are finished:
    // earlier in the loop, or in a task that was waited for. Positions are below the number of columns, and a row of U'
    // has as many values as columns.
    unsafe {
        for (at, &p) in left.iter().enumerate() {
            let p = p as usize;
            let Column(multipliers) = columns[ASIDE + at];
            let factor = s.load4::<MOST>(&multipliers);
            let range = upper.range(p);
            let values = of_upper.read(reversed(&range, upper.entries()));
            let of_row = &upper.col_ind[range];
            for turn in 0..of_row.len() {
                let j = *of_row.get_unchecked(turn) as usize;
                let u = *values.get_unchecked(values.len() - 1 - turn);
                let position = *positions.get_unchecked(j) as usize;
                // no branch: which columns are in the pattern is not predicted
                let aside = (turn % ASIDE) & usize::from(position == 0).wrapping_neg();
                let Column(target) = columns.get_unchecked_mut(position | aside);
                let changed = s.msub4(factor, s.splat4(u), s.load4::<MOST>(target));
                s.store4::<MOST>(changed, target);
            }
            let inverse = of_diagonal.read(p..p + 1)[0];
            for (lane, i) in rows.clone().enumerate() {
                let l = lower.row_ptr[i] as usize + at;
                of_lower.write(l..l + 1)[0] = multipliers[lane] * inverse;
            }
        }
        // the rows themselves, one after the other
        for (lane, i) in rows.clone().enumerate() {
            let (head, behind) = columns.split_at_mut(ASIDE + nl + lane + 1);
            let Column(own) = head[ASIDE + nl + lane];
            let diagonal = of_diagonal.write(i..i + 1);
            diagonal[0] = own[lane];
            if let Err((within, pivot)) = Fixed::<1>.invert(s, diagonal) {
                done = Err(SingularBlock { row: i, within, pivot, absent: false });
                break;
            }
            for (next, i) in rows.clone().enumerate().skip(lane + 1) {
                let l = lower.row_ptr[i] as usize + nl + lane;
                of_lower.write(l..l + 1)[0] = own[next] * diagonal[0];
            }
            // lanes of finished rows take part, and nobody reads them
            let factor = s.load4::<MOST>(&own);
            let range = upper.range(i);
            let u = of_upper.write(reversed(&range, upper.entries()));
            for (u, Column(target)) in u.iter_mut().rev().zip(behind) {
                *u = diagonal[0] * target[lane];
                let changed = s.msub4(factor, s.splat4(*u), s.load4::<MOST>(target));
                s.store4::<MOST>(changed, target);
            }
        }
    }
    places().for_each(|j| positions[j as usize] = 0);
    done
}

#[cfg(test)]
mod tests {
    use super::super::BlockIlu;
    use crate::base::choices::FactorPrecision;
    use crate::compute::Breakdown;
    use crate::compute::cpu::trsv;
    use crate::compute::cpu::values::Values;
    use crate::matrix::Csr;
    use crate::problem::samples::{matrix, pattern};

    /// Bits of L, D^-1, U', and of what they make of a vector, with supernodes and without.
    fn both(a: &Csr, k: usize) -> Result<[Vec<u64>; 2], Breakdown> {
        let pattern = pattern(a, k);
        let mut made = [true, false].map(|with| {
            let mut ilu = BlockIlu::new(&pattern, FactorPrecision::Float64, false);
            assert!(ilu.supernodes.is_some());
            ilu.supernodes = ilu.supernodes.filter(|_| with);
            ilu.factor(a, 0.01, true).map(|()| ilu)
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
                let [with, without] = both(&a, k).expect("pivots");
                assert!(with == without, "{spec}, k = {k}");
            }
        }
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
