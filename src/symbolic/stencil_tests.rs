use super::*;
use crate::base::choices::{LevelRule, ReadAs};
use crate::matrix::pattern::block_pattern;
use crate::problem;
use crate::symbolic::schedule::levels_lower;
use crate::symbolic::{FillPattern, iluk};

fn factors(matrix: &str, k: usize) -> FillPattern {
    factors_by(matrix, k, LevelRule::Min)
}

fn factors_by(matrix: &str, k: usize, rule: LevelRule) -> FillPattern {
    let a = problem::load(matrix, ReadAs::Expanded).expect("a generator").matrix;
    iluk(&block_pattern(&a), k, rule, usize::MAX).expect("small")
}

#[test]
fn lines_that_alternate_have_a_shorter_march() {
    // offsets of each kind of columns of L and of U turned around, levels per two columns, levels of the box
    let expected = [
        (2, [[3, 6, 7, 9], [3, 5, 7, 10]], [4, 0], [97, 97]),
        (3, [[8, 12, 14, 19], [9, 12, 15, 17]], [6, 0], [177, 177]),
    ];
    for (k, counts, slopes, levels) in expected {
        let p = factors_by("poisson3d:16x15x14", k, LevelRule::Overwrite);
        let both = [Stencil::of_lower(p.lower.view()), Stencil::of_upper(p.upper.view())];
        for (at, stencil) in both.into_iter().enumerate() {
            let stencil = stencil.expect("a stencil");
            let march = stencil.shortest_march();
            let kinds = march.kinds.as_ref().expect("alternating");
            assert_eq!(march.period(), 2);
            let mut sorted = kinds.counts;
            sorted.sort_unstable();
            assert_eq!((sorted, [march.alpha, march.beta]), (counts[at], slopes), "k = {k}");
            assert_eq!(march.levels(stencil.extents), levels[at], "k = {k}");
        }
    }
    let p = factors_by("poisson3d:12x11x10", 1, LevelRule::Overwrite);
    let stencil = Stencil::of_lower(p.lower.view()).expect("a stencil");
    assert_eq!(stencil.shortest_march(), stencil.march());
}

#[test]
fn rows_come_after_those_they_need_in_every_march() {
    let mut marches = [0; 2];
    for matrix in ["poisson3d:16x15x14", "poisson3d:9x17x16", "poisson3d:5x9x8", "poisson3d:6x2x19"]
    {
        for (k, rule) in [(2, LevelRule::Overwrite), (3, LevelRule::Overwrite), (3, LevelRule::Min)]
        {
            let p = factors_by(matrix, k, rule);
            let n = p.rows();
            let both = [Stencil::of_lower(p.lower.view()), Stencil::of_upper(p.upper.view())];
            for ((stencil, triangle), turned) in
                both.into_iter().zip([&p.lower, &p.upper]).zip([false, true])
            {
                // small boxes may have too few of the entries
                let Some(stencil) = stencil else { continue };
                let march = stencil.shortest_march();
                marches[march.period() - 1] += 1;
                let turn = |i: usize| if turned { n - 1 - i } else { i };
                let level = |i: usize| {
                    let [x, y, z] = cell(stencil.extents, turn(i) as u32);
                    x + march.skew(y + march.shear as i32 * z, z)
                };
                let all = (0..n).map(level);
                assert_eq!(all.clone().min(), Some(0), "{matrix}, k = {k}, {rule:?}");
                let levels = all.max().expect("cells") as usize + 1;
                assert_eq!(march.levels(stencil.extents), levels, "{matrix}, k = {k}, {rule:?}");
                for i in 0..n {
                    let later = |&j: &u32| {
                        let apart = level(i) - level(j as usize);
                        (1..=march.longest_delay() as i32).contains(&apart)
                    };
                    assert!(
                        triangle.row(i).iter().all(later),
                        "{matrix}, k = {k}, {rule:?}, row {i}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_seven_point_stencil_of_an_odd_box() {
    let p = factors("poisson3d:7x9x11", 0);
    let lower = Stencil::of_lower(p.lower.view()).expect("a stencil");
    assert_eq!(lower.extents, [7, 9, 11]);
    assert_eq!(lower.offsets, [[0, 0, -1], [0, -1, 0], [-1, 0, 0]]);
    assert_eq!(Stencil::of_upper(p.upper.view()), Some(lower.clone()));
    let march = lower.march();
    assert_eq!((march.shear, march.alpha, march.beta), (0, 1, 1));
    assert_eq!((march.longest_delay(), march.depth(1), march.depth(2)), (1, 1, 1));
    assert_eq!(lower.levels(p.lower.entries()), Some(levels_lower(&p)));
    assert_eq!(lower.levels(p.lower.entries() - 1), None);
    let plane = factors("poisson3d:40x50x1", 0);
    let stencil = Stencil::of_lower(plane.lower.view()).expect("a stencil");
    assert_eq!(stencil.levels(plane.lower.entries()), Some(levels_lower(&plane)));
    // a step of it may be one of two levels
    let p = factors("poisson3d:7x9x11", 1);
    let stencil = Stencil::of_lower(p.lower.view()).expect("a stencil");
    assert_eq!(stencil.levels(p.lower.entries()), None);
}

#[test]
fn levels_of_filled_stencils() {
    for (k, count) in [(1, 6), (2, 11), (3, 21)] {
        let p = factors("poisson3d:12x11x10", k);
        let stencil = Stencil::of_lower(p.lower.view()).expect("a stencil");
        assert_eq!(Stencil::of_upper(p.upper.view()), Some(stencil.clone()), "k = {k}");
        assert_eq!(stencil.offsets.len(), count, "{:?}", stencil.offsets);
        // of k = 3, two cells to the left are coupled through a line or a plane before
        assert_eq!(stencil.is_complete(p.lower.entries()), k < 3, "k = {k}");
        assert!(!stencil.is_complete(p.lower.entries() - 1), "k = {k}");
        let march = stencil.march();
        // levels: 1 + (nx - 1) + (k + 1)(ny - 1) + (k^2 + k + 1)(nz - 1)
        assert_eq!((march.shear, march.alpha, march.beta), (k, k + 1, 1), "k = {k}");
        assert!(march.offsets.iter().all(|&o| march.delay(o) >= 1 && o[1] <= 0 && o[2] <= 0));
    }
}

#[test]
fn a_plane_is_a_box_of_one_layer() {
    let p = factors("fem-p1:40x50", 2);
    let stencil = Stencil::of_lower(p.lower.view()).expect("a stencil");
    assert_eq!(stencil.extents[2], 1, "{stencil:?}");
    let march = stencil.march();
    assert_eq!((march.shear, march.beta, march.depth(2)), (0, 1, 0));
}

#[test]
fn rows_at_the_faces_lack_entries_of_three_fills() {
    for matrix in [
        "poisson3d:12x11x10",
        "poisson3d:5x40x3",
        "poisson3d:33x1x47",
        "poisson3d:6x9x4",
        "poisson3d:21x43x1",
    ] {
        for k in 0..=3 {
            let p = factors(matrix, k);
            let stencil = Stencil::of_lower(p.lower.view()).expect("a stencil");
            let [nx, ny, nz] = stencil.extents.map(|n| n as i32);
            for (triangle, upper, sign) in [(&p.lower, false, 1), (&p.upper, true, -1)] {
                let lines = stencil.lines(triangle.view(), upper).expect("by lines");
                for i in 0..nx * ny * nz {
                    let [x, y, z] = cell(stencil.extents, i as u32);
                    let kind = Lines::kind(y as usize, z as usize);
                    let there = stencil.offsets.iter().zip(&lines).filter_map(|(o, l)| {
                        let [x, y, z] = [x + sign * o[0], y + sign * o[1], z + sign * o[2]];
                        let inside = x >= 0 && x < nx && y >= 0 && y < ny && z >= 0 && z < nz;
                        (inside && l.0 & kind.0 > 0).then_some(((z * ny + y) * nx + x) as u32)
                    });
                    let mut there: Vec<u32> = there.collect();
                    there.sort_unstable();
                    assert_eq!(there, triangle.view().row(i as usize), "{matrix}, k = {k}, {i}");
                }
            }
        }
    }
    let p = factors("poisson3d:12x11x10", 3);
    let stencil = Stencil::of_lower(p.lower.view()).expect("a stencil");
    let lines = stencil.lines(p.lower.view(), false).expect("by lines");
    // two cells to the left are coupled through a line or a plane before, others through a plane alone
    for (offset, lines) in stencil.offsets.iter().zip(lines) {
        let expected = match offset {
            [-2, 0, 0] => 0b1110,
            [0, -2, 0] | [-1, -1, 0] => 0b1100,
            _ => 0b1111,
        };
        // from the other lines it leads out of the box
        let in_y = if offset[1] < 0 { 0b1010 } else { 0b1111 };
        let in_z = if offset[2] < 0 { 0b1100 } else { 0b1111 };
        assert_eq!(lines.0 & in_y & in_z, expected & in_y & in_z, "{offset:?}");
    }
    // one that is missing elsewhere
    let (row_ptr, col_ind) = without_entry(p.lower.view(), 700);
    let rest = PatternView::new(&row_ptr, &col_ind);
    assert_eq!(stencil.lines(rest, false), None);
}

/// The pattern without the last entry of row `i`.
fn without_entry(p: PatternView, i: usize) -> (Vec<u32>, Vec<u32>) {
    let mut col_ind = p.col_ind.to_vec();
    col_ind.remove(p.row_ptr[i + 1] as usize - 1);
    let after = |(row, &start): (usize, &u32)| start - u32::from(row > i);
    (p.row_ptr.iter().enumerate().map(after).collect(), col_ind)
}

/// The pattern with the entry (i, j) besides.
fn with_entry(p: PatternView, i: usize, j: u32) -> (Vec<u32>, Vec<u32>) {
    let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
    for row in 0..p.row_ptr.len() - 1 {
        col_ind.extend_from_slice(p.row(row));
        if row == i {
            col_ind.push(j);
        }
        let start = row_ptr[row] as usize;
        col_ind[start..].sort_unstable();
        row_ptr.push(col_ind.len() as u32);
    }
    (row_ptr, col_ind)
}

#[test]
fn other_patterns_are_none() {
    let p = factors("poisson3d:8", 0);
    let view = p.lower.view();
    let of = |i, j| {
        let (row_ptr, col_ind) = with_entry(view, i, j);
        Stencil::of_lower(PatternView::new(&row_ptr, &col_ind))
    };
    // one far entry is an offset more
    assert_eq!(of(511, 0).map(|s| s.offsets.len()), Some(4));
    let halves: Vec<u32> = (1..2000).map(|i| i / 2).collect();
    let row_ptr: Vec<u32> = std::iter::once(0).chain(0..2000).collect();
    let pattern = PatternView::new(&row_ptr, &halves);
    assert_eq!(Stencil::of_lower(pattern), None);
    let chain: Vec<u32> = (0..200).collect();
    let row_ptr: Vec<u32> = std::iter::once(0).chain(0..200).collect();
    let pattern = PatternView::new(&row_ptr, &chain[..199]);
    assert_eq!(Stencil::of_lower(pattern), None);
    assert_eq!(Stencil::of_lower(PatternView::new(&[0; 100], &[])), None);
}
