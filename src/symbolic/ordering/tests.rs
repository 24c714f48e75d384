use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::base::choices::{LevelRule, ReadAs};
use crate::matrix::Csr;
use crate::problem::{Problem, load};
use crate::symbolic::{iluk, schedule};

/// The symmetric pattern of these couplings, with all diagonals.
pub(super) fn graph(n: usize, couplings: &[(u32, u32)]) -> Pattern<'static> {
    let mut rows: Vec<Vec<u32>> = (0..n as u32).map(|i| vec![i]).collect();
    for &(i, j) in couplings {
        rows[i as usize].push(j);
        rows[j as usize].push(i);
    }
    let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
    for mut row in rows {
        row.sort_unstable();
        row.dedup();
        col_ind.append(&mut row);
        row_ptr.push(col_ind.len() as u32);
    }
    Pattern::new(row_ptr, col_ind)
}

/// The pattern of a generated matrix.
pub(super) fn pattern(spec: &str) -> Pattern<'static> {
    let a = load(spec, ReadAs::Expanded).unwrap().matrix;
    symmetrised(Threads::One, &block_pattern_on(Threads::One, &a)).into_owned()
}

/// Largest distance of an entry from the diagonal.
pub(super) fn bandwidth(p: &Pattern) -> usize {
    let of_row = |i: usize| p.row(i).iter().map(move |&j| i.abs_diff(j as usize)).max();
    (0..p.rows()).filter_map(of_row).max().unwrap_or(0)
}

/// A system with these entries of L and U as they are, each row's diagonal dominant.
fn system(n: usize, entries: &[(u32, u32)]) -> Problem {
    let mut rows: Vec<Vec<u32>> = (0..n as u32).map(|i| vec![i]).collect();
    for &(i, j) in entries {
        rows[i as usize].push(j);
    }
    let (mut row_ptr, mut col_ind, mut values) = (vec![0], Vec::new(), Vec::new());
    for (i, mut row) in rows.into_iter().enumerate() {
        row.sort_unstable();
        row.dedup();
        let count = row.len() as f64;
        values.extend(row.iter().map(|&j| if j as usize == i { count } else { -0.5 }));
        col_ind.append(&mut row);
        row_ptr.push(col_ind.len() as u32);
    }
    let matrix = Csr::new(n, n, row_ptr, col_ind, values).unwrap();
    let (name, remarks) = (String::new(), Vec::new());
    Problem { name, matrix: Arc::new(matrix), grid: None, own_rhs: None, remarks }
}

/// One that needs a parameter has some.
fn named(name: &str) -> Ordering {
    if name == "subdomains" { "subdomains:3" } else { name }.parse().unwrap()
}

#[test]
fn orderings_are_written_as_they_are_read() {
    for (name, _) in NAMES {
        let text = match *name {
            "random" => "random:1",
            "subdomains" => "subdomains:3",
            other => other,
        };
        assert_eq!(named(name).to_string(), text);
        assert_eq!(named(text), named(name));
    }
    assert_eq!(named("random:18446744073709551615").to_string(), "random:18446744073709551615");
    assert_eq!(named("none"), Ordering::default());
    let message = |text: &str| text.parse::<Ordering>().unwrap_err();
    assert_eq!(message("rcn").to_string(), "unknown ordering `rcn`");
    assert!(message("rcn").hint_text().unwrap().starts_with("did you mean `rcm`? known: natural"));
    assert_eq!(message("random:x").to_string(), "ordering `random:x`: `x` is not a seed");
    assert_eq!(message("rcm:1").to_string(), "ordering `rcm:1`: `rcm` takes no parameter");
    let text = "subdomains:12,partition=graph";
    assert_eq!((named(text).to_string(), named(text).name()), (text.to_owned(), "subdomains"));
    let needed = message("subdomains");
    assert_eq!(needed.to_string(), "ordering `subdomains`: it needs a number of subdomains");
    assert_eq!(needed.hint_text(), Some("as in `subdomains:8`, or `subdomains:8,partition=graph`"));
    for (text, said) in [
        ("subdomains:0", "`0` is outside 1 to 1048576"),
        ("subdomains:x", "`x` is not a whole number"),
        ("subdomains:8,partition=box", "unknown partition `box`"),
        ("subdomains:8,parts=graph", "unknown parameter `parts=graph`"),
        ("subdomains:8,graph", "unknown parameter `graph`"),
    ] {
        assert_eq!(message(text).to_string(), format!("ordering `{text}`: {said}"));
    }
}

#[test]
fn blocks_move_whole_and_an_incomplete_one_stays_last() {
    let p = load("poisson3d:25x2x1", ReadAs::Expanded).unwrap();
    let names = ["natural", "random:7", "rcm", "multicolour", "min-degree", "nested-dissection"];
    for name in names.into_iter().chain(["subdomains:4"]) {
        let order = p.order(named(name), 3).unwrap();
        assert_eq!(order[48..], [48, 49], "{name}");
        let mut blocks = Vec::new();
        for block in order[..48].chunks(3) {
            assert!(block[0] % 3 == 0 && block[1] == block[0] + 1 && block[2] == block[0] + 2);
            blocks.push(block[0] / 3);
        }
        assert_eq!(blocks.is_sorted(), name == "natural", "{name}");
        blocks.sort_unstable();
        assert!(blocks.into_iter().eq(0..16), "{name}");
        assert_eq!(p.order(named(name), 3).unwrap(), order);
    }
    let random = |seed| p.order(named(&format!("random:{seed}")), 3).unwrap();
    assert_ne!(random(8), random(7));
}

#[test]
fn a_seven_point_grid_has_two_levels_in_red_and_black() {
    let p = load("poisson3d:9x8x7", ReadAs::Expanded).unwrap();
    let levels = |name: &str, k| {
        let order = p.order(named(name), 1).unwrap();
        let pattern =
            crate::matrix::pattern::permuted(Threads::One, &pattern("poisson3d:9x8x7"), &order);
        let factors = iluk(&pattern, k, LevelRule::Min, usize::MAX).unwrap();
        [schedule::levels_lower(&factors), schedule::levels_upper(&factors)]
    };
    assert_eq!(levels("red-black", 0), [2, 2]);
    assert_eq!(levels("multicolour", 0), [2, 2]);
    assert_eq!(levels("natural", 0), [22, 22]);
    // 1 + (nx - 1) + (k + 1) (ny - 1) + (k^2 + k + 1) (nz - 1), the longest first here
    assert_eq!(levels("natural", 1), [1 + 8 + 14 + 18; 2]);
    let turned = load("poisson3d:7x8x9", ReadAs::Expanded).unwrap();
    let order = turned.order(named("shortest-axis-last"), 1).unwrap();
    let a = turned.reordered(&order);
    assert_eq!(*a.matrix, *p.matrix);
}

#[test]
fn a_system_without_two_colours_or_a_grid_is_refused() {
    let p = Problem { grid: None, ..load("fem-p1:6x5", ReadAs::Expanded).unwrap() };
    let refused = |name: &str, b| p.order(named(name), b).unwrap_err().to_string();
    assert_eq!(
        refused("red-black", 1),
        "ordering `red-black`: two colours are not enough, block rows 2 and 8 close a ring of odd \
         length"
    );
    assert_eq!(
        refused("shortest-axis-last", 1),
        "ordering `shortest-axis-last`: blocks of 1 show no box grid"
    );
    // lines of 5 do not come in twos
    let cube = load("poisson3d:5", ReadAs::Expanded).unwrap();
    let refused = cube.order(named("shortest-axis-last"), 2).unwrap_err().to_string();
    assert_eq!(refused, "ordering `shortest-axis-last`: blocks of 2 show no box grid");
}

#[test]
fn the_grid_is_that_of_blocks_and_is_seen_in_the_pattern() {
    let known = load("blockpoisson3d:4x5x6,b=2", ReadAs::Expanded).unwrap();
    let unknown = Problem { grid: None, ..known.clone() };
    for p in [known, unknown] {
        let order = p.order(named("shortest-axis-last"), 2).unwrap();
        // z is the longest axis and comes first: layers are 4 x 5 points of 2 unknowns
        assert_eq!(order[..6], [0, 1, 40, 41, 80, 81]);
    }
}

#[test]
fn interiors_of_subdomains_come_before_interfaces_by_colours() {
    // one box, two halves that face each other, and a part each of a graph
    let line = load("poisson3d:6x1x1", ReadAs::Expanded).unwrap();
    let order = |p: &Problem, text: &str, k| p.order(named(text).for_fill(k), 1).unwrap();
    assert_eq!(order(&line, "subdomains:1", 0), [0, 1, 2, 3, 4, 5]);
    assert_eq!(order(&line, "subdomains:2", 0), [5, 4, 0, 1, 2, 3]);
    assert_eq!(order(&line, "subdomains:2,partition=graph", 0), [3, 4, 5, 0, 1, 2]);
    assert_eq!(order(&line, "subdomains:3,partition=rows", 0), [2, 4, 5, 0, 1, 3]);
    // a grid that is found is cut into boxes, another one by its graph
    let square = load("poisson3d:8x8x1", ReadAs::Expanded).unwrap();
    let found = Problem { grid: None, ..square.clone() };
    for text in ["subdomains:4", "subdomains:4,partition=boxes"] {
        assert_eq!(order(&found, text, 1), order(&square, text, 1));
    }
    assert_ne!(
        order(&square, "subdomains:4", 1),
        order(&square, "subdomains:4,partition=graph", 1)
    );
    assert_eq!(
        order(&square, "subdomains:11", 1),
        order(&square, "subdomains:11,partition=graph", 1)
    );
    // the interfaces of two boxes that touch at a corner have one colour without fill, two with
    let stages = |k| order(&square, "subdomains:4", k);
    assert_ne!(stages(0), stages(1));
    let refused = |text: &str| line.order(named(text), 1).unwrap_err().to_string();
    assert_eq!(refused("subdomains:7"), "ordering `subdomains:7`: 7 subdomains of 6 block rows");
    let mesh = load("fem-p1:6x5", ReadAs::Expanded).unwrap();
    let mesh = Problem { grid: None, ..mesh };
    let refused = mesh.order(named("subdomains:2,partition=boxes"), 1).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "ordering `subdomains:2`: no grid is known for partition `boxes`"
    );
}

#[test]
fn a_reordered_system_has_the_reordered_solution() {
    let p = load("convdiff3d:5x4x3,px=0.3", ReadAs::Expanded).unwrap();
    let q = Problem { own_rhs: Some((0..60).map(f64::from).collect()), ..p.clone() };
    for (name, _) in NAMES {
        let order = p.order(named(name), 1).unwrap();
        let q = q.reordered(&order);
        let x: Vec<f64> = (0..60).map(|i| f64::from(i * i % 17)).collect();
        let (mut y, mut z) = (vec![0.0; 60], vec![0.0; 60]);
        p.matrix.multiply(&x, &mut y);
        q.matrix.multiply(&reordered(&x, &order), &mut z);
        let difference = y.iter().zip(restored(&z, &order)).map(|(a, b)| (a - b).abs());
        assert!(difference.fold(0.0, f64::max) < 1e-13, "{name}");
        assert_eq!(q.matrix.nnz(), p.matrix.nnz());
        assert!(q.own_rhs.unwrap().iter().zip(&order).all(|(b, &old)| *b == f64::from(old)));
        assert_eq!(restored(&reordered(&x, &order), &order), x);
    }
}

#[test]
fn one_row_and_rows_without_couplings_are_ordered() {
    let need_more = ["shortest-axis-last", "subdomains"];
    for name in NAMES.iter().map(|(name, _)| *name).filter(|name| !need_more.contains(name)) {
        assert_eq!(system(1, &[]).order(named(name), 1).unwrap(), [0], "{name}");
        assert_eq!(system(0, &[]).order(named(name), 1).unwrap(), [0_u32; 0], "{name}");
        let mut order = system(5, &[]).order(named(name), 1).unwrap();
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3, 4], "{name}");
    }
    let alone = system(1, &[]).order(named("shortest-axis-last"), 1).unwrap_err();
    assert!(alone.to_string().ends_with("blocks of 1 show no box grid"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the pattern, disconnected and unsymmetric ones among them, an order is a permutation
    /// of whole blocks, and colours part what is coupled.
    #[test]
    fn orders_are_permutations_of_blocks(
        n in 1_usize..120,
        b in 1_usize..5,
        entries in prop::collection::vec((0_u32..120, 0_u32..120), 0..300),
    ) {
        let within: Vec<(u32, u32)> =
            entries.into_iter().filter(|&(i, j)| (i.max(j) as usize) < n).collect();
        let p = system(n, &within);
        for (name, _) in NAMES {
            let Ok(order) = p.order(named(name), b) else {
                let few = *name == "subdomains" && n.div_ceil(b) < 3;
                prop_assert!(few || ["red-black", "shortest-axis-last"].contains(name), "{}", name);
                continue;
            };
            let mut seen = order.clone();
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq(0..n as u32), "{}", name);
            for block in order.chunks(b) {
                prop_assert!((block[0] as usize).is_multiple_of(b));
                prop_assert!(block.windows(2).all(|w| w[1] == w[0] + 1));
            }
            let moved = p.reordered(&order);
            prop_assert_eq!(moved.matrix.nnz(), p.matrix.nnz());
        }
    }

    /// Parts above the size that is not cut any more, in several components.
    #[test]
    fn large_graphs_are_dissected(
        n in 150_usize..900,
        step in 1_u32..40,
        extra in prop::collection::vec((0_u32..900, 0_u32..900), 0..50),
    ) {
        let mut couplings: Vec<(u32, u32)> =
            (0..n as u32).filter(|i| ((i + step) as usize) < n).map(|i| (i, i + step)).collect();
        couplings.extend(extra.into_iter().filter(|&(i, j)| (i.max(j) as usize) < n));
        let p = graph(n, &couplings);
        for make in [nested_dissection::nested_dissection, min_degree::min_degree, rcm::rcm] {
            let mut order = make(&p);
            order.sort_unstable();
            prop_assert!(order.into_iter().eq(0..n as u32));
        }
    }
}
