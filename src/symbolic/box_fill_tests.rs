//! Factors that a small box tells, beside elimination.

use super::super::{by_level, elimination};
use super::*;
use crate::base::choices::ReadAs;
use crate::matrix::pattern::block_pattern;
use crate::problem;

const RULES: [LevelRule; 2] = [LevelRule::Min, LevelRule::Overwrite];

/// What elimination row by row finds.
fn eliminated(a: &Pattern, fill: usize, rule: LevelRule) -> FillPattern {
    let found = match rule {
        LevelRule::Min => by_level::fill(a, fill, usize::MAX, Threads::One),
        LevelRule::Overwrite => elimination::fill::<true>(a, fill, usize::MAX),
    };
    found.expect("small")
}

/// Whether a stencil is told, and as its elimination finds it.
fn compare(a: &Stencil, fill: usize, rule: LevelRule) -> Option<BoxFill> {
    let told = BoxFill::of(Threads::Pool, a, fill, rule)?;
    let found = eliminated(&a.pattern(), fill, rule);
    let what = format!("{:?}, {} offsets, k = {fill}, {rule:?}", a.extents, a.offsets.len());
    let there = told.pattern(Threads::One, 1);
    assert!(there == found, "{what}");
    assert_eq!(told.entries, [found.lower.entries(), found.upper.entries()], "{what}");
    for (at, half) in [&found.lower, &found.upper].into_iter().enumerate() {
        let whole = if at == 0 { &there.lower } else { &there.upper };
        for i in 1..found.rows() {
            let before: Vec<u32> = half.row(i - 1).iter().map(|j| j + 1).collect();
            assert_eq!(whole.repeated(i..i + 1) == 1, before == half.row(i), "{what}, {i}");
        }
        let seen = [Stencil::of_lower(half.view()), Stencil::of_upper(half.view())];
        assert_eq!(told.stencils[at], seen[at], "{what}");
        if let (Some(lines), Some(stencil)) = (&told.lines, &told.stencils[at]) {
            assert_eq!(Some(&lines[at]), stencil.lines(half.view(), at == 1).as_ref(), "{what}");
        }
    }
    Some(told)
}

/// The faces, edges and corners around a cell whose coordinates differ in at most `most` axes.
fn around(extents: [usize; 3], most: usize) -> Stencil {
    let near = |n: usize| if n > 1 { -1..=1 } else { 0..=0 };
    let [x, y, z] = extents.map(near);
    let all = z.flat_map(|z| y.clone().map(move |y| (z, y)));
    let all = all.flat_map(|(z, y)| x.clone().map(move |x| [x, y, z]));
    let within = |o: &[i32; 3]| o.iter().filter(|&&d| d != 0).count() <= most;
    Stencil::uniform(extents, all.filter(within).collect())
}

#[test]
fn what_is_told_is_what_elimination_finds() {
    let boxes = [[17, 16, 15], [24, 13, 17], [40, 50, 1], [9, 50, 7], [33, 6, 20], [5, 24, 30]];
    for rule in RULES {
        for (extents, fill) in boxes.into_iter().flat_map(|e| (0..2).map(move |k| (e, k))) {
            let told = compare(&around(extents, 1), fill, rule);
            assert!(told.is_some(), "{extents:?}, k = {fill}, {rule:?}");
        }
        assert!(compare(&around([24, 23, 25], 1), 2, rule).is_some(), "{rule:?}");
        assert!(compare(&around([30, 29, 31], 1), 3, rule).is_some(), "{rule:?}");
        // all neighbours, in a plane and in space: rows may be too different
        compare(&around([50, 51, 1], 2), 1, rule);
        compare(&around([20, 21, 22], 3), 1, rule);
    }
}

#[test]
fn unsymmetric_stencils_are_told_or_left() {
    let offsets = vec![[0, 0, -1], [0, -1, 0], [-2, 0, 0], [0, 0, 0], [1, 0, 0], [0, 0, 1]];
    for (fill, rule) in (0..3).flat_map(|k| RULES.map(|rule| (k, rule))) {
        compare(&Stencil::uniform([25, 16, 18], offsets.clone()), fill, rule);
    }
}

#[test]
fn rows_alternate_by_the_last_update() {
    let a = around([24, 23, 25], 1);
    let told = BoxFill::of(Threads::One, &a, 2, LevelRule::Overwrite).expect("told");
    let cells = told.cells(Threads::One);
    let row = |i: usize| told.small_half(0).range(cells[i] as usize).len();
    let at = |y: usize, z: usize| row((z * 23 + y) * 24 + 12);
    for (y, z) in [(10, 10), (12, 10), (8, 14)] {
        assert_eq!([at(y, z), at(y, z + 1), at(y + 1, z), at(y + 1, z + 1)], [3, 9, 7, 6]);
    }
    assert_eq!(told.lines, None);
    assert!(BoxFill::of(Threads::One, &a, 2, LevelRule::Min).expect("told").lines.is_some());
}

#[test]
fn blocks_along_x_are_a_stencil_of_blocks() {
    let grid = problem::load("poisson3d:48x20x21", ReadAs::Expanded).expect("a generator");
    for b in [1, 2, 4] {
        let a = grid.matrix.in_blocks(b);
        let found = eliminated(&block_pattern(&a), 1, LevelRule::Min);
        let told = BoxFill::of_matrix(Threads::Pool, &a, 1, LevelRule::Min).expect("told");
        assert!(told.pattern(Threads::Pool, b) == found, "b = {b}");
    }
    // a block across the end of a line
    let a = grid.matrix.in_blocks(5);
    assert_eq!(BoxFill::of_matrix(Threads::One, &a, 1, LevelRule::Min), None);
}

#[test]
fn without_a_diagonal_nothing_is() {
    let a = Stencil::uniform([20; 3], vec![[-1, 0, 0], [1, 0, 0]]);
    assert_eq!(BoxFill::of(Threads::One, &a, 0, LevelRule::Min), None);
}
