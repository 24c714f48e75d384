//! ILU(k) of a matrix that is one stencil on a box, without a look at its rows.
//!
//! By the rule `min` an entry of level at most k stands for a path of at most k + 1 entries of the matrix through
//! earlier rows. So what a row gets depends only on how near it is to the faces, up to k + 1 times the reach of the
//! stencil, and all kinds of rows are met in a box of little more than twice that.

use super::fill::iluk;
use super::stencil::{Lines, Stencil};
use crate::base::choices::LevelRule;
use crate::base::threads::Threads;
use crate::matrix::Csr;
use crate::matrix::pattern::{Pattern, scalar_pattern};

/// Cells of the small box at most: more take longer than the rows of the matrix.
const MOST_CELLS: usize = 1 << 16;

/// L and U of such a matrix. U is turned around: cell i of its box is row n - 1 - i.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxFill {
    /// Stencils of L and U; `None` for an empty one.
    pub stencils: [Option<Stencil>; 2],
    /// In which lines there are entries at each offset; see [`Stencil::lines`].
    pub lines: [Vec<Lines>; 2],
    /// Entries of L and U.
    pub entries: [usize; 2],
}

impl BoxFill {
    /// The factors of `a`, if its unknowns, in blocks of one, are such a stencil.
    pub fn of_matrix(threads: Threads, a: &Csr, fill: usize) -> Option<Self> {
        if a.block_size() > 1 {
            return None;
        }
        Self::of(&Stencil::complete(threads, scalar_pattern(a).view())?, fill)
    }

    /// The factors of block ILU(`fill`) by the rule `min` of a matrix that has all entries of the stencil `a` which lead
    /// into the box. `None` where it has no diagonal, or where the factors are not so simple or so small.
    pub fn of(a: &Stencil, fill: usize) -> Option<Self> {
        if !a.offsets.contains(&[0; 3]) {
            return None;
        }
        let extents: [usize; 3] = std::array::from_fn(|axis| {
            let reach =
                a.offsets.iter().map(|o| o[axis].unsigned_abs() as usize).max().unwrap_or(0);
            a.extents[axis].min(2 * (fill + 1) * reach + 1)
        });
        if extents.iter().product::<usize>() > MOST_CELLS {
            return None;
        }
        let small = Stencil { extents, offsets: a.offsets.clone() };
        let pattern = iluk(&small.pattern(), fill, LevelRule::Min, usize::MAX).ok()?;
        let lower = Half::of(&pattern.lower, a.extents, extents, false)?;
        let upper = Half::of(&pattern.upper, a.extents, extents, true)?;
        Some(Self {
            stencils: [lower.stencil, upper.stencil],
            lines: [lower.lines, upper.lines],
            entries: [lower.entries, upper.entries],
        })
    }
}

/// What is known of one of both triangles.
struct Half {
    stencil: Option<Stencil>,
    lines: Vec<Lines>,
    entries: usize,
}

impl Half {
    /// That of a box of `extents`, of which `pattern` is a `small` one.
    fn of(pattern: &Pattern, extents: [usize; 3], small: [usize; 3], upper: bool) -> Option<Self> {
        if pattern.entries() == 0 {
            return Some(Self { stencil: None, lines: Vec::new(), entries: 0 });
        }
        // where a line is so short that the next one is as near as its end, rows do not show the box
        let offsets = Stencil::offsets_of(pattern.view(), small, upper)?;
        let of_small = Stencil { extents: small, offsets };
        let lines = of_small.lines(pattern.view(), upper)?;
        let stencil = Stencil { extents, ..of_small };
        let entries = stencil.entries(&lines, upper);
        stencil.is_worth_it(entries).then_some(Self { stencil: Some(stencil), lines, entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::ReadAs;
    use crate::matrix::pattern::block_pattern;
    use crate::problem;

    /// The stencil of a generated matrix, and its factors.
    fn found(matrix: &str, fill: usize) -> (Option<BoxFill>, [Pattern<'static>; 2]) {
        let a = problem::load(matrix, ReadAs::Expanded).expect("a generator").matrix;
        let point = block_pattern(&a);
        let stencil = Stencil::complete(Threads::One, point.view()).expect("a stencil");
        let filled = iluk(&point, fill, LevelRule::Min, usize::MAX).expect("small");
        (BoxFill::of(&stencil, fill), [filled.lower.into(), filled.upper.into()])
    }

    #[test]
    fn what_is_told_is_what_the_rows_show() {
        for matrix in
            ["poisson3d:20x13x17", "poisson3d:33x40x1", "poisson3d:5x9x8", "poisson3d:4x4x30"]
        {
            for fill in 0..5 {
                let (told, [lower, upper]) = found(matrix, fill);
                let seen = [Stencil::of_lower(lower.view()), Stencil::of_upper(upper.view())];
                let Some(told) = told else {
                    // rows at the faces lack entries in another way
                    let by_lines = seen[0].as_ref().and_then(|s| s.lines(lower.view(), false));
                    assert_eq!(by_lines, None, "{matrix}, k = {fill}");
                    continue;
                };
                assert_eq!(
                    told.entries,
                    [lower.entries(), upper.entries()],
                    "{matrix}, k = {fill}"
                );
                assert_eq!(told.stencils, seen, "{matrix}, k = {fill}");
                let lines = |at: usize, p: &Pattern| {
                    told.stencils[at].as_ref().expect("not empty").lines(p.view(), at == 1)
                };
                let seen = [lines(0, &lower), lines(1, &upper)];
                assert_eq!(told.lines.map(Some), seen, "{matrix}, k = {fill}");
            }
        }
    }

    #[test]
    fn most_boxes_are_told() {
        for matrix in ["poisson3d:20x13x17", "poisson3d:33x40x1"] {
            for fill in 0..4 {
                assert!(found(matrix, fill).0.is_some(), "{matrix}, k = {fill}");
            }
        }
    }

    #[test]
    fn without_a_diagonal_nothing_is() {
        let a = Stencil { extents: [20; 3], offsets: vec![[-1, 0, 0], [1, 0, 0]] };
        assert_eq!(BoxFill::of(&a, 0), None);
    }
}
