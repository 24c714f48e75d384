//! Multi-elimination ILU (Saad 1996; Gupta et al. 2015): a maximal independent set of rows is
//! eliminated exactly, `A = [D F; E C]` with a diagonal D, then one of `C - E D^-1 F`, and so on; what
//! is left is solved with a simpler preconditioner.

use super::diagonal::{self, whole_blocks};
use super::mcsgs::product;
use super::options::{Parameter, Range};
use super::ordered::{self, Plan, by_set, scalar_order, with_mirrors};
use super::{Failure, Phase, Ready, Setup};
use crate::backend::Backend;
use crate::matrix::{Csr, inverse, sum_into};
use crate::symbolic::{
    FillPattern, Pattern, Threads, block_pattern_on, colours, independent_set, symmetrised,
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
struct Left {
    /// Its matrix; all entries that elimination can fill are stored.
    matrix: Csr,
    /// Its block rows in A.
    rows: Vec<u32>,
}

pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    let options = s.options()?;
    let (levels, last, b) =
        (options.whole("levels"), options.word("last").to_owned(), s.case.block_size);
    s.phases.begin(Phase::Symbolic);
    let (order, pattern, sizes) = s.k.on_host(|threads| plan(threads, s.a, b, levels, &last))?;
    let rows = scalar_order(&order, b);
    let sgs = last == "sgs";
    let arrange = Box::new(move |threads, a: &Csr| {
        let a = with_mirrors(threads, &a.permuted_on(threads, &rows))?;
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
    // neighbours, in the numbers of A, of each row when it was eliminated
    let mut rows_of = vec![Vec::new(); n];
    for _ in 0..levels {
        let point = symmetrised(threads, &block_pattern_on(threads, &left.matrix, b));
        let inside = independent_set(threads, &point);
        let before = order.len();
        for i in (0..inside.len()).filter(|&i| inside[i]) {
            let number = left.rows[i] as usize;
            rows_of[number] = point.row(i).iter().map(|&j| left.rows[j as usize]).collect();
            order.push(number as u32);
        }
        sizes.push(order.len() - before);
        left = eliminated(threads, &left, &inside, b)?;
    }
    let point = symmetrised(threads, &block_pattern_on(threads, &left.matrix, b));
    let last_order: Vec<u32> = match last {
        "jacobi" => (0..left.rows.len() as u32).collect(),
        _ => by_set(&colours(threads, &point)),
    };
    for &i in &last_order {
        let number = left.rows[i as usize];
        order.push(number);
        if last != "jacobi" {
            rows_of[number as usize] =
                point.row(i as usize).iter().map(|&j| left.rows[j as usize]).collect();
        }
    }
    Ok((order.clone(), pattern(&order, &rows_of), sizes))
}

/// Rows in their order with what they couple to behind them; below, the mirror image.
fn pattern(order: &[u32], rows_of: &[Vec<u32>]) -> FillPattern {
    let place = inverse(order);
    let (mut row_ptr, mut col_ind) = (vec![0_u32], Vec::new());
    for (at, &i) in order.iter().enumerate() {
        let start = col_ind.len();
        let behind = rows_of[i as usize].iter().map(|&j| place[j as usize]);
        col_ind.extend(behind.filter(|&j| j as usize > at));
        col_ind[start..].sort_unstable();
        row_ptr.push(col_ind.len() as u32);
    }
    let upper = Pattern { row_ptr: row_ptr.into(), col_ind: col_ind.into() };
    FillPattern { lower: upper.transposed(), upper, no_diagonal: Vec::new() }
}

/// `C - E D^-1 F` for the rows that are not `inside`.
fn eliminated(threads: Threads, left: &Left, inside: &[bool], b: usize) -> Result<Left, Failure> {
    let a = &left.matrix;
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
    Ok(Left { matrix, rows: stay.iter().map(|&i| left.rows[i as usize]).collect() })
}

/// `a`, in the order of the factors, plus `L D^-1 U` of what is left after the sets of `sizes` block
/// rows: elimination then finds the factors of symmetric Gauss-Seidel there.
fn with_sgs(threads: Threads, a: &Csr, sizes: &[usize], b: usize) -> Result<Csr, Failure> {
    let blocks = a.rows() / b;
    let mut left = Left { matrix: a.clone(), rows: (0..blocks as u32).collect() };
    for &size in sizes {
        let inside: Vec<bool> = (0..left.rows.len()).map(|i| i < size).collect();
        left = eliminated(threads, &left, &inside, b)?;
    }
    left.matrix = whole_blocks(threads, &left.matrix, b);
    let m = product(threads, &left.matrix, b, 1.0)?;
    let first = sizes.iter().sum::<usize>() * b;
    let n = a.rows();
    Csr::by_rows(threads, [n, n], Vec::new, |terms: &mut Vec<(u32, f64)>, i, to| {
        terms.clear();
        let (columns, values) = a.row(i);
        terms.extend(columns.iter().zip(values).map(|(&j, &v)| (j, v)));
        if let Some(row) = i.checked_sub(first) {
            let (columns, values) = m.row(row);
            let (_, reduced) = left.matrix.row(row);
            let change = values.iter().zip(reduced).map(|(m, c)| m - c);
            terms.extend(columns.iter().zip(change).map(|(&j, v)| (j + first as u32, v)));
        }
        sum_into(terms, to);
        Ok(())
    })
}
