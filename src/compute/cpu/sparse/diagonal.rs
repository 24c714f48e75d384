//! The diagonal blocks of a matrix, and what they scale.

use std::borrow::Cow;

use crate::base::threads::Threads;
use crate::compute::cpu::invert_block;
use crate::compute::preconditioner::SetupFailure;
use crate::compute::{Breakdown, SingularBlock};
use crate::matrix::Csr;
use crate::matrix::pattern::block_pattern_on;

/// `D^-1`, block diagonal.
pub(crate) fn inverse(threads: Threads, a: &Csr) -> Result<Csr, SetupFailure> {
    inverse_of(threads, a, |_| true)
}

/// `D^-1` in the block rows that are `wanted`; the others are empty.
fn inverse_of(
    threads: Threads,
    a: &Csr,
    wanted: impl Fn(usize) -> bool + Sync + Send,
) -> Result<Csr, SetupFailure> {
    let b = a.block_size();
    a.by_rows_like(
        threads,
        || vec![0.0; b * b],
        |block, row, to| {
            let (first, within) = (row / b * b, row % b);
            if !wanted(row / b) {
                return Ok(());
            }
            // the inverse is made once for each row of the block: blocks are small
            block.fill(0.0);
            for r in 0..b {
                let (columns, values) = a.row(first + r);
                let start = columns.partition_point(|&j| (j as usize) < first);
                for (&j, &v) in columns[start..].iter().zip(&values[start..]) {
                    if j as usize >= first + b {
                        break;
                    }
                    block[r * b + j as usize - first] = v;
                }
            }
            invert_block(block, b).map_err(|(within, pivot)| {
                let absent = b == 1 && a.get(first, first).is_none();
                Breakdown::Singular(SingularBlock { row: first / b, within, pivot, absent })
            })?;
            (0..b).for_each(|c| to.push((first + c) as u32, block[within * b + c]));
            Ok(())
        },
    )
}

/// `D^-1` times the blocks (i, j) of `a` that are `wanted`.
pub(crate) fn scaled(
    threads: Threads,
    a: &Csr,
    wanted: impl Fn(usize, usize) -> bool + Sync + Send,
) -> Result<Csr, SetupFailure> {
    let b = a.block_size();
    if b > 1 {
        let part = a.filtered(threads, |i, j, v| wanted(i / b, j / b).then_some(v));
        let filled = |i: usize| part.row_ptr()[(i + 1) * b] > part.row_ptr()[i * b];
        return Ok(inverse_of(threads, a, filled)?.times(&part, threads)?);
    }
    a.by_rows_like(
        threads,
        || (),
        |(), i, to| {
            let (columns, values) = a.row(i);
            let mut pivot = None;
            for (&j, &v) in columns.iter().zip(values).filter(|(j, _)| wanted(i, **j as usize)) {
                let d = pivot.get_or_insert_with(|| a.get(i, i));
                let d = d.filter(|d| *d != 0.0 && !d.is_nan()).ok_or_else(|| {
                    let absent = d.is_none();
                    Breakdown::Singular(SingularBlock { row: i, within: 0, pivot: 0.0, absent })
                })?;
                to.push(j, v / d);
            }
            Ok(())
        },
    )
}

/// `a` with all entries of the blocks that hold one: `a` itself for blocks of one.
pub(super) fn whole_blocks(threads: Threads, a: &Csr) -> Cow<'_, Csr> {
    let b = a.block_size();
    if b == 1 {
        return Cow::Borrowed(a);
    }
    let pattern = block_pattern_on(threads, a);
    let view = pattern.view();
    let made: crate::Result<Csr> = a.by_rows_like(
        threads,
        || (),
        |(), row, to| {
            let (columns, values) = a.row(row);
            let mut entries = columns.iter().zip(values).peekable();
            for &block in view.row(row / b) {
                for j in block * b as u32..(block + 1) * b as u32 {
                    let value =
                        entries.next_if(|(column, _)| **column == j).map_or(0.0, |(_, v)| *v);
                    to.push(j, value);
                }
            }
            Ok(())
        },
    );
    Cow::Owned(made.expect("as many entries as the blocks have"))
}
