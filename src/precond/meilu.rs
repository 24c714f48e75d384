//! Multi-elimination ILU (Saad 1996; Gupta et al. 2015): a maximal independent set of rows is
//! eliminated exactly, `A = [D F; E C]` with a diagonal D, then one of `C - E D^-1 F`, and so on; what
//! is left is solved with a simpler preconditioner.

use super::diagonal::{self, whole_blocks};
use std::borrow::Cow;

use super::mcsgs::product;
use super::options::{Parameter, Range};
use super::ordered::{self, Plan, with_mirrors};
use super::{Failure, Phase, Ready, Setup};
use crate::backend::Backend;
use crate::matrix::{Csr, inverse, sum_into};
use crate::symbolic::{
    FillPattern, Pattern, Threads, block_pattern_on, by_set, colours, independent_set,
    scalar_order, symmetrised,
};

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "levels",
        default: "1",
        range: Range::Whole(1, 8),
        summary: "independent sets that are eliminated one after the other",
    },
    Parameter {
        key: "last",
        default: "jacobi",
        range: Range::Words(&["jacobi", "sgs", "ilu"]),
        summary: "for what is left: block Jacobi, multicolour SGS or multicolour ILU(0,1)",
    },
];

/// What is left when sets have been eliminated.
struct Left<'a> {
    /// Its matrix; all entries that elimination can fill are stored.
    matrix: Cow<'a, Csr>,
    /// Its block rows in A.
    rows: Vec<u32>,
}

/// A set of rows with what they were coupled to when their turn came.
struct Stage {
    /// Couplings of all rows that were left.
    point: Pattern<'static>,
    /// Their numbers in A.
    rows: Vec<u32>,
}

#[allow(clippy::needless_pass_by_value)] // signature of the registry
pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    let options = s.options()?;
    let (levels, last) = (options.whole("levels"), options.word("last").to_owned());
    let b = s.case.block_size;
    s.phases.begin(Phase::Symbolic);
    let (order, pattern, sizes) = s.k.on_host(|threads| plan(threads, s.a, b, levels, &last))?;
    let rows = scalar_order(&order, b);
    let sgs = last == "sgs";
    let arrange = Box::new(move |threads, a: &Csr| {
        let permuted = a.permuted_on(threads, &rows);
        let filled = match with_mirrors(threads, &permuted)? {
            Cow::Owned(filled) => Some(filled),
            Cow::Borrowed(_) => None,
        };
        let a = filled.unwrap_or(permuted);
        if sgs { with_sgs(threads, &a, &sizes, b) } else { Ok(a) }
    });
    ordered::setup(s, Plan { order, pattern, arrange })
}

/// Order and pattern of the factors, and the block rows of each set.
fn plan(
    threads: Threads,
    a: &Csr,
    b: usize,
    levels: usize,
    last: &str,
) -> Result<(Vec<u32>, FillPattern, Vec<usize>), Failure> {
    let n = a.rows() / b;
    let mut left = Left { matrix: with_mirrors(threads, a)?, rows: (0..n as u32).collect() };
    let (mut order, mut sizes) = (Vec::with_capacity(n), Vec::new());
    let mut stages = Vec::new();
    // stage of each row in the order of the factors, and its number there; no stage: a diagonal alone
    let mut home: Vec<(u32, u32)> = Vec::with_capacity(n);
    for level in 0..levels as u32 {
        let point = symmetrised(threads, &block_pattern_on(threads, &left.matrix, b));
        let inside = independent_set(threads, &point);
        for i in (0..inside.len()).filter(|&i| inside[i]) {
            order.push(left.rows[i]);
            home.push((level, i as u32));
        }
        sizes.push(order.len() - sizes.iter().sum::<usize>());
        let next = eliminated(threads, &left, &inside, b)?;
        stages.push(Stage { point, rows: std::mem::replace(&mut left, next).rows });
    }
    if last == "jacobi" {
        order.extend(&left.rows);
        home.resize(n, (u32::MAX, 0));
    } else {
        let point = symmetrised(threads, &block_pattern_on(threads, &left.matrix, b));
        for i in by_set(&colours(threads, &point)) {
            order.push(left.rows[i as usize]);
            home.push((levels as u32, i));
        }
        stages.push(Stage { point, rows: left.rows });
    }
    let pattern = pattern(threads, &order, &home, &stages)?;
    Ok((order, pattern, sizes))
}

/// Rows in their order with what they couple to behind them; below, the mirror image.
fn pattern(
    threads: Threads,
    order: &[u32],
    home: &[(u32, u32)],
    stages: &[Stage],
) -> Result<FillPattern, Failure> {
    let (n, place) = (order.len(), inverse(order));
    let upper: Result<Csr, Failure> =
        Csr::by_rows(threads, [n, n], Vec::new, |row: &mut Vec<u32>, at, to| {
            let (stage, i) = home[at];
            let Some(Stage { point, rows }) = stages.get(stage as usize) else { return Ok(()) };
            row.clear();
            row.extend(point.row(i as usize).iter().map(|&j| place[rows[j as usize] as usize]));
            row.retain(|&j| j as usize > at);
            row.sort_unstable();
            for &j in &*row {
                to.push(j, 0.0);
            }
            Ok(())
        });
    let (row_ptr, col_ind, _) = upper?.into_parts();
    let upper = Pattern { row_ptr: row_ptr.into(), col_ind: col_ind.into() };
    Ok(FillPattern { lower: upper.transposed(), upper, no_diagonal: Vec::new() })
}

/// `C - E D^-1 F` for the rows that are not `inside`.
fn eliminated(
    threads: Threads,
    left: &Left,
    inside: &[bool],
    b: usize,
) -> Result<Left<'static>, Failure> {
    let a = &*left.matrix;
    let scaled = diagonal::scaled(threads, a, b, |i, j| inside[i] && i != j)?;
    let stay: Vec<u32> = (0..inside.len() as u32).filter(|&i| !inside[i as usize]).collect();
    let mut place = vec![u32::MAX; inside.len()];
    (0..).zip(&stay).for_each(|(at, &i)| place[i as usize] = at);
    let new = |j: u32| place[j as usize / b] * b as u32 + j % b as u32;
    let m = stay.len() * b;
    let matrix =
        Csr::by_rows(threads, [m, m], Vec::new, |terms: &mut Vec<(u32, f64)>, row, to| {
            let i = stay[row / b] as usize * b + row % b;
            terms.clear();
            let (columns, values) = a.row(i);
            for (&j, &v) in columns.iter().zip(values) {
                if !inside[j as usize / b] {
                    terms.push((new(j), v));
                    continue;
                }
                let (inner, of_j) = scaled.row(j as usize);
                terms.extend(inner.iter().zip(of_j).map(|(&l, &w)| (new(l), -v * w)));
            }
            sum_into(terms, to);
            Ok::<(), Failure>(())
        })?;
    Ok(Left {
        matrix: Cow::Owned(matrix),
        rows: stay.iter().map(|&i| left.rows[i as usize]).collect(),
    })
}

/// `a`, in the order of the factors, plus `L D^-1 U` of what is left after the sets of `sizes` block
/// rows: elimination then finds the factors of symmetric Gauss-Seidel there.
fn with_sgs(threads: Threads, a: &Csr, sizes: &[usize], b: usize) -> Result<Csr, Failure> {
    let blocks = a.rows() / b;
    let mut left = Left { matrix: Cow::Borrowed(a), rows: (0..blocks as u32).collect() };
    for &size in sizes {
        let inside: Vec<bool> = (0..left.rows.len()).map(|i| i < size).collect();
        left = eliminated(threads, &left, &inside, b)?;
    }
    let reduced = whole_blocks(threads, &left.matrix, b);
    let m = product(threads, &reduced, b, 1.0)?;
    let first = sizes.iter().sum::<usize>() * b;
    let n = a.rows();
    Csr::by_rows(threads, [n, n], Vec::new, |terms: &mut Vec<(u32, f64)>, i, to| {
        terms.clear();
        let (columns, values) = a.row(i);
        terms.extend(columns.iter().zip(values).map(|(&j, &v)| (j, v)));
        if let Some(row) = i.checked_sub(first) {
            let (columns, values) = m.row(row);
            let (_, of_reduced) = reduced.row(row);
            let change = values.iter().zip(of_reduced).map(|(m, c)| m - c);
            terms.extend(columns.iter().zip(change).map(|(&j, v)| (j + first as u32, v)));
        }
        sum_into(terms, to);
        Ok(())
    })
}
