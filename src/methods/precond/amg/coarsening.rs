//! From a level to the next: smoothed aggregation (Vanek, Mandel and Brezina 1996).

use std::borrow::Cow;

use super::aggregates::{Aggregates, NONE};
use crate::base::error::Result;
use crate::base::threads::Threads;
use crate::compute::preconditioner::SetupFailure;
use crate::compute::{Breakdown, SingularBlock};
use crate::matrix::{Csr, Sums};

/// The diagonal of a matrix.
///
/// # Errors
/// Names the first row without one.
pub(super) fn diagonal(a: &Csr) -> Result<Vec<f64>, SetupFailure> {
    let b = a.block_size();
    let entry = |i: usize| match a.get(i, i) {
        Some(d) if d != 0.0 && !d.is_nan() => Ok(d),
        found => {
            let (row, within, absent) = (i / b, i % b, found.is_none());
            Err(Breakdown::Singular(SingularBlock { row, within, pivot: 0.0, absent }).into())
        }
    };
    (0..a.rows()).map(entry).collect()
}

/// `D^-1 A`.
pub(super) fn scaled(threads: Threads, a: &Csr, diagonal: &[f64]) -> Csr {
    a.filtered(threads, |i, _, v| Some(v / diagonal[i]))
}

/// `D_f^-1 A_f`, where `A_f` has the strong couplings of A alone and adds the others to the diagonal, so that
/// sums of rows stay; `scaled` itself where all couplings are strong. A diagonal that would lose nine tenths
/// stays as it is.
pub(super) fn filtered<'a>(
    threads: Threads,
    scaled: &'a Csr,
    strong: &Csr,
) -> Result<Cow<'a, Csr>> {
    let b = scaled.block_size();
    if b == 1 && strong.nnz() + scaled.rows() == scaled.nnz() {
        return Ok(Cow::Borrowed(scaled));
    }
    let kept = |i: usize, j: usize| {
        i / b == j / b || strong.row(i / b).0.binary_search(&((j / b) as u32)).is_ok()
    };
    let made = scaled.by_rows_like(
        threads,
        || (),
        |(), i, to| {
            let (columns, values) = scaled.row(i);
            let entries = || columns.iter().map(|&j| j as usize).zip(values.iter().copied());
            // couplings of the same unknown of a block
            let weak = entries().filter(|&(j, _)| !kept(i, j) && j % b == i % b);
            let lumped = 1.0 + weak.map(|(_, v)| v).sum::<f64>();
            let d = if lumped > 0.1 { lumped } else { 1.0 };
            for (j, v) in entries().filter(|&(j, _)| kept(i, j)) {
                to.push(j as u32, if j == i { 1.0 } else { v / d });
            }
            Ok::<(), crate::Error>(())
        },
    )?;
    Ok(Cow::Owned(made))
}

/// `P = (I - omega S) T` for S of [`filtered`], where T has a one for each unknown in the column of its
/// aggregate, and in that of its place within the block.
pub(super) fn prolongation(
    threads: Threads,
    smoothing: &Csr,
    aggregates: &Aggregates,
    omega: f64,
) -> Result<Csr> {
    let (n, b) = (smoothing.rows(), smoothing.block_size());
    let count = aggregates.count * b;
    let column = |i: usize| match aggregates.of[i / b] {
        NONE => None,
        of => Some((of as usize * b + i % b) as u32),
    };
    let made = Csr::by_rows(
        threads,
        [n, count],
        || Sums::new(count),
        |sums, i, to| {
            if let Some(own) = column(i) {
                sums.add(own, 1.0);
            }
            let (columns, values) = smoothing.row(i);
            for (&j, &v) in columns.iter().zip(values) {
                if let Some(of) = column(j as usize) {
                    sums.add(of, -omega * v);
                }
            }
            sums.finish(to);
            Ok::<(), crate::Error>(())
        },
    )?;
    Ok(made.in_blocks(b))
}

/// `P' A P`, and `P'`.
pub(super) fn galerkin(threads: Threads, a: &Csr, p: &Csr) -> Result<[Csr; 2]> {
    let restriction = p.transposed();
    let coarse = restriction.times(&a.times(p, threads)?, threads)?;
    Ok([coarse.in_blocks(a.block_size()), restriction])
}
