//! Groups of rows of random triangles and of grids, and solves with these on the host.

use rand::{Rng, SeedableRng, rngs::SmallRng, seq::SliceRandom};

use super::*;
use crate::base::choices::{LevelRule, Partition, ReadAs};
use crate::base::threads::Threads;
use crate::matrix::pattern::block_pattern;
use crate::problem::load;
use crate::symbolic::interfaces::FillLevels;
use crate::symbolic::partition::divide_exactly;
use crate::symbolic::{Stencil, iluk_on};

/// Factors of a rank that has some of the subdomains, and its parts in each stage.
struct Rank {
    pattern: FillPattern,
    stages: Vec<Vec<StagePart>>,
}

const SUBDOMAINS: usize = 5;
const STAGES: usize = 4;
/// Those of the rank.
const OWN: Range<usize> = 1..4;

/// Rows at random in each stage of each subdomain, coupled at random where the stages allow; with `interiors` those
/// of the first stage with their own subdomain alone.
fn random(block_size: usize, interiors: bool, seed: u64) -> Rank {
    let mut rng = SmallRng::seed_from_u64(seed);
    // stage by stage
    let mut of: Vec<[usize; 2]> = Vec::new();
    for (stage, subdomain) in (0..STAGES).flat_map(|t| (0..SUBDOMAINS).map(move |s| (t, s))) {
        of.extend(vec![[stage, subdomain]; rng.random_range(0..6)]);
    }
    let mut stages = vec![Vec::new(); STAGES];
    let mut at = 0;
    for (s, t) in OWN.flat_map(|s| (0..STAGES).map(move |t| (s, t))) {
        let first = of.iter().position(|row| *row == [t, s]);
        let count = of.iter().filter(|row| **row == [t, s]).count();
        if let Some(first) = first {
            let subdomain = s - OWN.start;
            stages[t].push(StagePart { subdomain, rows: first..first + count, at });
            at += count * block_size;
        }
    }
    let mut triangle = |upper: bool| {
        let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
        for (i, &[t, s]) in of.iter().enumerate() {
            let columns = if upper { i + 1..of.len() } else { 0..i };
            let mut row: Vec<u32> = Vec::new();
            for j in columns.filter(|_| OWN.contains(&s)) {
                let [other_t, other] = of[j];
                let inside = interiors && (t == 0 || other_t == 0);
                let may = other == s || (other_t != t && !inside);
                if may && rng.random_range(0..4) == 0 {
                    row.push(j as u32);
                }
            }
            // those of the order of elimination may be others than those of rows
            row.shuffle(&mut rng);
            col_ind.extend(row);
            row_ptr.push(col_ind.len() as u32);
        }
        Pattern::new(row_ptr, col_ind).in_blocks(block_size)
    };
    let (lower, upper) = (triangle(false), triangle(true));
    Rank { pattern: FillPattern::new(lower, upper, Vec::new()), stages }
}

/// All subdomains of a grid on one rank.
fn grid(spec: &str, count: usize, fill: usize) -> Rank {
    let problem = load(spec, ReadAs::Expanded).unwrap();
    let a = &problem.matrix;
    let (divided, order) =
        divide_exactly(a, Partition::Boxes, problem.grid, count, FillLevels::of(fill)).unwrap();
    let numbers = divided.unknowns(1).unwrap();
    let given: Vec<u32> = order.order().iter().map(|&row| numbers[row as usize]).collect();
    let point = block_pattern(&a.permuted(&given)).into_owned();
    let pattern = iluk_on(Threads::One, &point, fill, LevelRule::Min, usize::MAX).unwrap();
    let mut places = vec![0; a.rows()];
    order.order().iter().enumerate().for_each(|(at, &row)| places[row as usize] = at);
    let mut stages = vec![Vec::new(); order.stages()];
    for (stage, of) in order.parts(0..a.rows()) {
        let subdomain = divided.starts.partition_point(|&start| start <= of.start) - 1;
        let first = places[of.start];
        stages[stage].push(StagePart { subdomain, rows: first..first + of.len(), at: of.start });
    }
    Rank { pattern, stages }
}

/// A number of an entry, or of anything else that has one.
fn number(seed: usize) -> f64 {
    ((seed * 7919 + 13) % 1009) as f64 / 1009.0 - 0.5
}

/// Takes the product of an entry's block and a value off.
fn subtract(b: usize, way: usize, entry: usize, x: &[f64], from: &mut [f64]) {
    for (r, from) in from.iter_mut().enumerate() {
        for (c, x) in x.iter().enumerate() {
            *from -= number(((2 * entry + way) * b + c) * b + r) * x;
        }
    }
}

/// Solutions of a triangle in the own rows of the rank, one after the other: `v` has right-hand sides there, and the
/// solutions of others.
fn solved(rank: &Rank, way: usize, v: &mut [f64]) {
    let triangle = [&rank.pattern.lower, &rank.pattern.upper][way];
    let b = triangle.block_size();
    let mut rows: Vec<usize> =
        rank.stages.iter().flatten().flat_map(|part| part.rows.clone()).collect();
    rows.sort_unstable();
    if way == 1 {
        rows.reverse();
    }
    for i in rows {
        for (e, &j) in triangle.view().range(i).zip(triangle.row(i)) {
            let x = v[j as usize * b..][..b].to_vec();
            subtract(b, way, e, &x, &mut v[i * b..][..b]);
        }
    }
}

/// The same by groups, in a vector of solves.
fn solved_by_groups(groups: &Groups, stages: usize, b: usize, way: usize, v: &mut [f64]) {
    let mut of = groups.of_stages(stages);
    if way == 1 {
        of.reverse();
    }
    for group in of.concat().into_iter().map(|g| &groups.all[g]) {
        let Split { entries, couplings } = &group.split[way];
        let of_all = couplings.of_all(group.rows.len());
        for i in 0..group.rows.len() {
            for e in of_all.row_ptr[i] as usize..of_all.row_ptr[i + 1] as usize {
                let x = v[of_all.columns[e] as usize * b..][..b].to_vec();
                let row = &mut v[(group.own.start + i) * b..][..b];
                subtract(b, way, of_all.entries[e] as usize, &x, row);
            }
        }
        let triangle = [&group.pattern.lower, &group.pattern.upper][way];
        let mut rows: Vec<usize> = (0..group.rows.len()).collect();
        if way == 1 {
            rows.reverse();
        }
        for i in rows {
            for (e, &j) in triangle.view().range(i).zip(triangle.row(i)) {
                assert!(if way == 0 { (j as usize) < i } else { j as usize > i });
                let x = v[(group.own.start + j as usize) * b..][..b].to_vec();
                let row = &mut v[(group.own.start + i) * b..][..b];
                subtract(b, way, entries[e] as usize, &x, row);
            }
        }
    }
}

fn same_solutions(rank: &Rank, what: &str) -> Groups {
    let Rank { pattern, stages } = rank;
    let (b, groups) = (pattern.block_size(), Groups::new(pattern, stages));
    for way in [0, 1] {
        let mut expected: Vec<f64> = (0..pattern.rows() * b).map(number).collect();
        let mut found = vec![f64::NAN; expected.len()];
        let place = |i: usize| groups.places[i] as usize * b;
        for i in 0..pattern.rows() {
            found[place(i)..][..b].copy_from_slice(&expected[i * b..][..b]);
        }
        solved(rank, way, &mut expected);
        solved_by_groups(&groups, stages.len(), b, way, &mut found);
        for i in 0..pattern.rows() {
            for (f, e) in found[place(i)..][..b].iter().zip(&expected[i * b..][..b]) {
                assert!((f - e).abs() <= 1e-9 * e.abs().max(1.0), "{what}, row {i}: {f} {e}");
            }
        }
    }
    groups
}

#[test]
fn groups_and_their_couplings_are_the_triangles() {
    for seed in 0..120 {
        let (b, interiors) = (1 + seed as usize % 3, seed % 2 == 0);
        let rank = random(b, interiors, seed);
        let groups = same_solutions(&rank, &format!("seed {seed}"));
        // each entry of an own row is in one group, once
        for way in [0, 1] {
            let of = |g: &Group| {
                let Split { entries, couplings } = &g.split[way];
                [&entries[..], &couplings.entries].concat()
            };
            let mut entries: Vec<u32> = groups.all.iter().flat_map(of).collect();
            entries.sort_unstable();
            let triangle = [&rank.pattern.lower, &rank.pattern.upper][way];
            assert!(entries.into_iter().eq(0..triangle.entries() as u32), "seed {seed}");
        }
        let rows: Vec<usize> = groups.all.iter().flat_map(|g| g.own.clone()).collect();
        assert!(rows.into_iter().eq(0..groups.own), "seed {seed}");
    }
}

#[test]
fn rows_of_a_subdomain_are_grouped_alike_whoever_else_is_on_its_rank() {
    for seed in 0..60 {
        let rank = random(1, seed % 2 == 0, seed);
        let all = Groups::new(&rank.pattern, &rank.stages).all;
        for s in 0..OWN.len() {
            let only = |parts: &Vec<StagePart>| -> Vec<StagePart> {
                parts.iter().filter(|part| part.subdomain == s).cloned().collect()
            };
            let mut stages: Vec<_> = rank.stages.iter().map(only).collect();
            let first = stages.iter().flatten().map(|part| part.at).min().unwrap_or(0);
            stages.iter_mut().flatten().for_each(|part| part.at -= first);
            let alone = Groups::new(&rank.pattern, &stages).all;
            let here = all.iter().filter(|g| (first..).contains(&g.own.start)).take(alone.len());
            for (a, b) in alone.iter().zip(here) {
                assert_eq!((a.stage, &a.rows, &a.pattern), (b.stage, &b.rows, &b.pattern));
                for (a, b) in a.split.iter().zip(&b.split) {
                    let (of_a, of_b) = (&a.couplings, &b.couplings);
                    assert_eq!((&a.entries, &of_a.rows), (&b.entries, &of_b.rows));
                    // in one order, so that sums have the same bits
                    assert_eq!(of_a.entries, of_b.entries);
                }
            }
        }
    }
}

/// Extents of the boxes that the groups are.
fn boxes(groups: &Groups) -> Vec<Option<[usize; 3]>> {
    let of = |g: &Group| Stencil::of_lower(g.pattern.lower.view()).map(|s| s.extents);
    groups.all.iter().map(of).collect()
}

#[test]
fn boxes_face_to_face_are_a_box_and_two_with_an_interface() {
    for fill in 0..=2 {
        let rank = grid("poisson3d:8x34x36", 2, fill);
        let groups = same_solutions(&rank, &format!("k {fill}"));
        let stages: Vec<usize> = groups.all.iter().map(|g| g.stage).collect();
        assert_eq!(stages, [1, 0, 2], "k {fill}");
        let expected = [[8, 34, 18], [8, 34, 17], [8, 34, 1]].map(Some);
        assert_eq!(boxes(&groups), expected, "k {fill}");
        // nobody gives the first two anything
        assert!(groups.all[..2].iter().all(|g| g.split[0].couplings.rows.is_empty()), "k {fill}");
    }
}

#[test]
fn boxes_with_several_interfaces_are_whole_in_the_first_colour_and_else_have_an_interior() {
    // with fill each has an interior, since the interface does not come last
    for (fill, whole) in [(0, 4), (1, 0)] {
        let rank = grid("poisson3d:14x14x14", 8, fill);
        let groups = same_solutions(&rank, &format!("k {fill}"));
        assert_eq!(groups.all.len(), whole + 2 * (8 - whole), "k {fill}");
        let found = boxes(&groups);
        let count = |of: Option<[usize; 3]>| found.iter().filter(|b| **b == of).count();
        assert_eq!(count(Some([7, 7, 7])), whole, "k {fill}: {found:?}");
        assert_eq!(count(Some([6, 6, 6])), 8 - whole, "k {fill}: {found:?}");
    }
}

#[test]
fn slices_of_the_first_colour_are_boxes_with_their_interfaces() {
    let rank = grid("poisson3d:8x8x64", 4, 0);
    let groups = same_solutions(&rank, "slices");
    let stages: Vec<usize> = groups.all.iter().map(|g| g.stage).collect();
    assert_eq!(stages, [1, 0, 2, 1, 0, 2]);
    let found = boxes(&groups);
    assert_eq!([&found[0], &found[3]], [&Some([8, 8, 16]); 2]);
}
