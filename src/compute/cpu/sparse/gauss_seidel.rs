//! Matrices in which elimination finds the factors of symmetric Gauss-Seidel.

use std::borrow::Cow;

use super::diagonal::{self, whole_blocks};
use crate::base::threads::Threads;
use crate::compute::preconditioner::SetupFailure;
use crate::matrix::{Csr, Sums};

/// [`gauss_seidel`](crate::compute::setup::SetupOps::gauss_seidel).
pub(crate) fn product(threads: Threads, a: &Csr, omega: f64) -> Result<Csr, SetupFailure> {
    let (a, b) = (&whole_blocks(threads, a), a.block_size());
    let scaled = diagonal::scaled(threads, a, |i, j| j > i)?;
    let size = 1.0 / (omega * (2.0 - omega));
    a.by_rows_like(threads, Vec::new, |sums: &mut Vec<f64>, i, to| {
        let (columns, values) = a.row(i);
        sums.clear();
        let scale = |j: u32| if j as usize / b == i / b { 1.0 } else { omega };
        sums.extend(columns.iter().zip(values).map(|(&j, &v)| scale(j) * v));
        let before = columns.partition_point(|&j| (j as usize / b) < i / b);
        for (&k, &v) in columns[..before].iter().zip(values) {
            // L D^-1 U where A has an entry
            let (inner, of_k) = scaled.row(k as usize);
            let mut at = 0;
            for (&j, &u) in inner.iter().zip(of_k) {
                while at < columns.len() && columns[at] < j {
                    at += 1;
                }
                if at < columns.len() && columns[at] == j {
                    sums[at] += omega * omega * v * u;
                }
            }
        }
        columns.iter().zip(&*sums).for_each(|(&j, &v)| to.push(j, size * v));
        Ok(())
    })
}

/// `C - E D^-1 F` of what is left when the first `size` block rows, which are not coupled, are gone.
fn eliminated(threads: Threads, a: &Csr, size: usize) -> Result<Csr, SetupFailure> {
    let scaled = diagonal::scaled(threads, a, |i, j| i < size && i != j)?;
    let first = size * a.block_size();
    let m = a.rows() - first;
    let left = Csr::by_rows(
        threads,
        [m, m],
        || Sums::new(m),
        |sums, row, to| {
            let (columns, values) = a.row(row + first);
            for (&j, &v) in columns.iter().zip(values) {
                if j as usize >= first {
                    sums.add(j - first as u32, v);
                    continue;
                }
                let (inner, of_j) = scaled.row(j as usize);
                inner.iter().zip(of_j).for_each(|(&l, &w)| sums.add(l - first as u32, -v * w));
            }
            sums.finish(to);
            Ok(())
        },
    );
    left.map(|left| left.in_blocks(a.block_size()))
}

/// [`with_gauss_seidel`](crate::compute::setup::SetupOps::with_gauss_seidel).
pub(crate) fn with_rest(threads: Threads, a: &Csr, sizes: &[usize]) -> Result<Csr, SetupFailure> {
    let mut left = Cow::Borrowed(a);
    for &size in sizes {
        left = Cow::Owned(eliminated(threads, &left, size)?);
    }
    let reduced = whole_blocks(threads, &left);
    let m = product(threads, &reduced, 1.0)?;
    let first = sizes.iter().sum::<usize>() * a.block_size();
    a.by_rows_like(
        threads,
        || Sums::new(a.rows()),
        |sums, i, to| {
            sums.add_row(a.row(i), 1.0);
            if let Some(row) = i.checked_sub(first) {
                let (columns, values) = m.row(row);
                let (_, of_reduced) = reduced.row(row);
                let change = values.iter().zip(of_reduced).map(|(m, c)| m - c);
                columns.iter().zip(change).for_each(|(&j, v)| sums.add(j + first as u32, v));
            }
            sums.finish(to);
            Ok(())
        },
    )
}
