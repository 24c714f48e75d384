//! Multi-elimination ILU (Saad 1996; Gupta et al. 2015): a maximal independent set of rows is
//! eliminated exactly, `A = [D F; E C]` with a diagonal D, then one of `C - E D^-1 F`, and so on; what
//! is left is solved with a simpler preconditioner.

use std::borrow::Cow;

use super::mcsgs::product;
use super::options::{COLOURING, Parameter, Range};
use super::ordered::{self, Plan, room, with_mirrors};
use super::{Failure, Phase, Ready, Setup};
use crate::backend::Backend;
use crate::backend::cpu::diagonal::{self, whole_blocks};
use crate::matrix::{Csr, Sums};
use crate::symbolic::{
    Colouring, Eliminated, Rest, Threads, block_pattern_on, eliminated as eliminated_cells,
    multi_elimination, scalar_order, symmetrised,
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
    COLOURING,
];

#[allow(clippy::needless_pass_by_value)] // signature of the registry
pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    let options = s.options()?;
    let (levels, last) = (options.whole("levels"), options.word("last").to_owned());
    let b = s.case.block_size;
    let how = Colouring::named(options.word("colouring"));
    let rest = if last == "jacobi" { Rest::Diagonal } else { Rest::Coloured(how) };
    s.phases.begin(Phase::Symbolic);
    let [limit, each, free] = room(s.k, b);
    let found = s.k.on_host(|threads| {
        let stored = block_pattern_on(threads, s.a, b);
        if levels == 1
            && let Some(found) = eliminated_cells(threads, &stored, rest, limit)
        {
            return Ok((found, b == 1));
        }
        let point = symmetrised(threads, &stored);
        let mirrored = b == 1 && point.entries() == stored.entries();
        multi_elimination(threads, &point, levels, rest, limit).map(|found| (found, mirrored))
    });
    let (Eliminated { sets, pattern, sizes }, mirrored) =
        found.map_err(|at| Failure::TooLarge { at, needed: each * at.entries, free })?;
    let rows = scalar_order(&sets.rows, b);
    let sgs = last == "sgs";
    let arrange = Box::new(move |threads, a: &Csr| {
        let permuted = a.permuted_on(threads, &rows);
        let filled =
            if mirrored { Cow::Borrowed(&permuted) } else { with_mirrors(threads, &permuted)? };
        let filled = match filled {
            Cow::Owned(filled) => Some(filled),
            Cow::Borrowed(_) => None,
        };
        let a = filled.unwrap_or(permuted);
        if sgs { with_sgs(threads, &a, &sizes, b) } else { Ok(a) }
    });
    ordered::setup(s, Plan { sets, pattern, arrange })
}

/// `C - E D^-1 F` of what is left when the first `size` block rows, which are not coupled, are gone.
fn eliminated(threads: Threads, a: &Csr, size: usize, b: usize) -> Result<Csr, Failure> {
    let scaled = diagonal::scaled(threads, a, b, |i, j| i < size && i != j)?;
    let first = size * b;
    let m = a.rows() - first;
    Csr::by_rows(
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
    )
}

/// `a`, in the order of the factors, plus `L D^-1 U` of what is left after the sets of `sizes` block
/// rows: elimination then finds the factors of symmetric Gauss-Seidel there.
fn with_sgs(threads: Threads, a: &Csr, sizes: &[usize], b: usize) -> Result<Csr, Failure> {
    let mut left = Cow::Borrowed(a);
    for &size in sizes {
        left = Cow::Owned(eliminated(threads, &left, size, b)?);
    }
    let reduced = whole_blocks(threads, &left, b);
    let m = product(threads, &reduced, b, 1.0)?;
    let first = sizes.iter().sum::<usize>() * b;
    let n = a.rows();
    Csr::by_rows(
        threads,
        [n, n],
        || Sums::new(n),
        |sums, i, to| {
            let (columns, values) = a.row(i);
            columns.iter().zip(values).for_each(|(&j, &v)| sums.add(j, v));
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
