//! Which unknowns become one on the next level (Vanek, Mandel and Brezina 1996).

use std::borrow::Cow;

use crate::base::error::Result;
use crate::base::threads::Threads;
use crate::matrix::{Csr, Sums};

/// No aggregate: a node without strong couplings.
pub(crate) const NONE: u32 = u32::MAX;

/// The aggregate of each node.
pub(crate) struct Aggregates {
    /// By node, or [`NONE`].
    pub(crate) of: Vec<u32>,
    pub(crate) count: usize,
}

/// Couplings (i, j) of the nodes with `|a_ij|^2 > theta^2 |a_ii a_jj|`, with their sizes: Frobenius norms of the
/// blocks of `a`.
pub(crate) fn strong(threads: Threads, a: &Csr, theta: f64) -> Result<Csr> {
    let norms = norms(threads, a)?;
    let diagonal: Vec<f64> =
        (0..norms.rows()).map(|i| norms.get(i, i).unwrap_or(0.0).abs()).collect();
    Ok(norms.filtered(threads, |i, j, v| {
        (i != j && v != 0.0 && v * v > theta * theta * diagonal[i] * diagonal[j]).then_some(v)
    }))
}

/// A number for each block.
fn norms(threads: Threads, a: &Csr) -> Result<Cow<'_, Csr>> {
    let b = a.block_size();
    if b == 1 {
        return Ok(Cow::Borrowed(a));
    }
    let nodes = a.rows() / b;
    let squares = Csr::by_rows(
        threads,
        [nodes, nodes],
        || Sums::new(nodes),
        |sums, node, to| {
            for i in node * b..(node + 1) * b {
                let (columns, values) = a.row(i);
                columns.iter().zip(values).for_each(|(&j, &v)| sums.add(j / b as u32, v * v));
            }
            sums.finish(to);
            Ok::<(), crate::Error>(())
        },
    )?;
    Ok(Cow::Owned(squares.filtered(threads, |_, _, v| Some(v.sqrt()))))
}

/// Aggregates of nodes and what they are strongly coupled to: first those whose neighbours are all free, then
/// nodes that are left join the aggregate that they are coupled to most, then what remains forms others.
pub(crate) fn aggregates(strong: &Csr) -> Aggregates {
    let n = strong.rows();
    let mut of = vec![NONE; n];
    let mut count = 0;
    for i in 0..n {
        let near = strong.row(i).0;
        if of[i] == NONE && !near.is_empty() && near.iter().all(|&j| of[j as usize] == NONE) {
            of[i] = count;
            for &j in near {
                of[j as usize] = count;
            }
            count += 1;
        }
    }
    let first = of.clone();
    for i in (0..n).filter(|&i| first[i] == NONE) {
        let (near, size) = strong.row(i);
        let joined = near.iter().zip(size).filter(|(j, _)| first[**j as usize] != NONE);
        if let Some((&j, _)) = joined.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs())) {
            of[i] = first[j as usize];
        }
    }
    for i in 0..n {
        let near = strong.row(i).0;
        if of[i] == NONE && !near.is_empty() {
            of[i] = count;
            for &j in near {
                let free = &mut of[j as usize];
                if *free == NONE {
                    *free = count;
                }
            }
            count += 1;
        }
    }
    Aggregates { of, count: count as usize }
}
