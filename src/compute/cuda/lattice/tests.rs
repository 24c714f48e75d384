//! Lines of grids, with fill, holes and wells.

use super::*;
use crate::base::choices::{LevelRule, ReadAs};
use crate::base::threads::Threads;
use crate::matrix::Csr;
use crate::matrix::pattern::{Pattern, block_pattern};
use crate::problem;
use crate::symbolic::{iluk, reordered_triangles};

fn filled(a: &Csr, block_size: usize, fill: usize) -> Pattern<'static> {
    let a = a.in_blocks(block_size);
    iluk(&block_pattern(&a), fill, LevelRule::Min, usize::MAX).expect("small").lower.into()
}

fn lower(matrix: &str, block_size: usize, fill: usize) -> Pattern<'static> {
    let a = problem::load(matrix, ReadAs::Expanded).expect("a generator").matrix;
    let a = crate::matrix::bsr::pad(&a, block_size);
    filled(&a, block_size, fill)
}

/// Rows of a box of 7-point cells, some of which are not there.
fn with_holes([nx, ny, nz]: [usize; 3], there: impl Fn(usize) -> bool) -> (Csr, Vec<usize>) {
    let cells: Vec<usize> = (0..nx * ny * nz).filter(|&c| there(c)).collect();
    let (mut row_ptr, mut columns) = (vec![0u32], Vec::new());
    for &c in &cells {
        let at = [c % nx, c / nx % ny, c / (nx * ny)];
        for (j, &d) in cells.iter().enumerate() {
            let to = [d % nx, d / nx % ny, d / (nx * ny)];
            let apart: usize = (0..3).map(|k| at[k].abs_diff(to[k])).sum();
            if apart <= 1 {
                columns.push(j as u32);
            }
        }
        row_ptr.push(columns.len() as u32);
    }
    let (n, values) = (cells.len(), vec![1.0; columns.len()]);
    (Csr::new(n, n, row_ptr, columns, values).expect("valid by construction"), cells)
}

#[test]
fn lines_of_a_box_have_their_places_whatever_the_fill() {
    for (fill, shear) in [(0, 0), (1, 1), (2, 2), (3, 3)] {
        let lattice = Lattice::of(lower("poisson3d:9x8x7", 1, fill).view()).expect("a grid");
        assert_eq!((lattice.shear, lattice.extents), (shear, [8, 7]), "k = {fill}");
        let starts: Vec<u32> = (0..=56).map(|line| 9 * line).collect();
        assert_eq!(lattice.starts, starts);
        let at: Vec<[usize; 2]> = (0..56).map(|l| [l % 8 + shear * (l / 8), l / 8]).collect();
        assert_eq!(lattice.at, at, "k = {fill}");
    }
}

#[test]
fn the_lines_of_a_stencil_are_those_of_its_rows() {
    for matrix in ["poisson3d:9x8x7", "poisson3d:24x3x40"] {
        for fill in 0..4 {
            let p = lower(matrix, 1, fill);
            let stencil = Stencil::of_lower(p.view()).expect("a stencil");
            assert_eq!(Lattice::of_stencil(&stencil), Lattice::of(p.view()), "{matrix}, {fill}");
        }
    }
}

#[test]
fn the_lines_of_a_box_are_those_of_its_rows() {
    for (matrix, b) in [("poisson3d:29x28x30", 1), ("poisson3d:54x28x33", 2)] {
        let a = problem::load(matrix, ReadAs::Expanded).expect("a generator").matrix;
        let a = a.in_blocks(b);
        for (fill, rule) in [(0, LevelRule::Min), (1, LevelRule::Min), (1, LevelRule::Overwrite)] {
            let told = BoxFill::of_matrix(Threads::One, &a, fill, rule).expect("told");
            let p = iluk(&block_pattern(&a), fill, rule, usize::MAX).expect("small");
            let lattice = Lattice::of_box(&told);
            assert!(lattice.is_some(), "{matrix}");
            assert_eq!(lattice, Lattice::of(p.lower.view()), "{matrix}, {fill}, {rule:?}");
        }
    }
}

#[test]
fn wells_come_behind_the_cells_that_they_pass() {
    let p = lower("reservoir:9x6x8,k=2,wells=3", 2, 0);
    let lattice = Lattice::of(p.view()).expect("a grid");
    let cells: Vec<[usize; 2]> = (0..48).map(|line| [line % 6, line / 6]).collect();
    assert_eq!(lattice.at[..48], cells);
    assert_eq!(lattice.starts[48..], [432, 433, 434]);
    for (well, at) in (432..434).zip(&lattice.at[48..]) {
        let needed = || p.view().row(well).iter().map(|&j| j as usize);
        let expected = [needed().map(|j| j / 9 % 6).min(), needed().map(|j| j / 54 + 1).max()];
        assert_eq!(at.map(Some), expected);
    }
    assert_eq!((lattice.shear, lattice.extents), (0, [6, 8]));
}

#[test]
fn holes_do_not_shift_what_lies_above() {
    let extents = [12, 10, 9];
    let there = |c: usize| !(c * 7919 % 101).is_multiple_of(12);
    let (a, cells) = with_holes(extents, there);
    let lattice = Lattice::of(filled(&a, 1, 0).view()).expect("a grid");
    let right = lattice.at.iter().zip(&lattice.starts).filter(|(at, first)| {
        let c = cells[**first as usize];
        **at == [c / 12 % 10, c / 120]
    });
    let right = right.count();
    assert!(right * 10 >= lattice.at.len() * 9, "{right} of {}", lattice.at.len());
}

#[test]
fn what_is_no_grid_of_planes_has_no_lines() {
    for matrix in ["poisson3d:9x8x1", "poisson3d:1x1x1", "fem-p1:20x20"] {
        assert_eq!(Lattice::of(lower(matrix, 1, 0).view()), None, "{matrix}");
    }
    let grid = problem::load("poisson3d:10x10x4", ReadAs::Expanded).expect("a generator").matrix;
    let scattered: Vec<u32> = (0..400).map(|i| i * 171 % 400).collect();
    let p = reordered_triangles(Threads::One, &block_pattern(&grid), &scattered);
    assert_eq!(Lattice::of(p.lower.view()), None);
}

#[test]
fn tiles_are_crossed_as_often_as_the_outline_says() {
    for fill in 0..=2 {
        let lattice = Lattice::of(lower("poisson3d:20", 1, fill).view()).expect("a grid");
        let p = lower("poisson3d:20", 1, fill);
        for tiling in [[1, 1], [4, 1], [1, 5], [4, 5], [5, 4]] {
            let runs = lattice.starts.windows(2).zip(lattice.tiles(tiling));
            let of: Vec<u32> =
                runs.flat_map(|(ends, tile)| (ends[0]..ends[1]).map(move |_| tile)).collect();
            let mut crossed = vec![0usize; of.len()];
            for i in 0..of.len() {
                let before = p.view().row(i).iter().map(|&j| j as usize);
                let most = before.map(|j| crossed[j] + usize::from(of[j] != of[i])).max();
                crossed[i] = most.unwrap_or(0);
            }
            let most = crossed.into_iter().max().expect("rows") as f64;
            let Outline { crossings: expected, share, .. } = lattice.outline(tiling);
            assert!(most <= 1.25 * expected + 1.0, "{fill} {tiling:?}: {most}, {expected}");
            let mut rows = vec![0usize; tiling[0] * tiling[1]];
            for &tile in &of {
                rows[tile as usize] += 1;
            }
            let largest = *rows.iter().max().expect("tiles") as f64 / 8000.0;
            assert!(largest <= 1.3 * share, "{fill} {tiling:?}: {largest}, {share}");
        }
    }
}
