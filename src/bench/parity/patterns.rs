//! Matrices whose triangles put a triangular solve to the test.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::matrix::Csr;

/// Which block columns a block row of `n` has besides its diagonal.
pub(super) type Columns = fn(row: usize, n: usize, rng: &mut ChaCha8Rng) -> Vec<usize>;

/// Names and patterns.
pub(super) const PATTERNS: &[(&str, Columns)] = &[
    // one row per level
    ("chain", |i, n, _| vec![i.saturating_sub(1), (i + 1).min(n - 1)]),
    // every row needs the first; the first has all columns
    ("star from the first row", |i, n, _| if i == 0 { (0..n).collect() } else { vec![0] }),
    // the last row needs every other
    ("star to the last row", |i, n, _| if i + 1 == n { (0..n).collect() } else { vec![n - 1] }),
    ("band of 11", |i, n, _| (i.saturating_sub(5)..(i + 6).min(n)).collect()),
    (
        "comb",
        |i, n, _| {
            if i % 7 == 3 { (i.saturating_sub(40)..(i + 40).min(n)).collect() } else { vec![] }
        },
    ),
    ("random", |_, n, rng| (0..rng.random_range(0..5)).map(|_| rng.random_range(0..n)).collect()),
    ("diagonal", |_, _, _| Vec::new()),
];

/// Patterns of which one triangle is empty.
pub(super) const ONE_TRIANGLE: &[(&str, Columns)] = &[
    ("lower chain alone", |i, _, _| vec![i.saturating_sub(1)]),
    ("upper chain alone", |i, n, _| vec![(i + 1).min(n - 1)]),
];

/// A diagonally dominant matrix of `n` block rows of `b` with random values.
pub(super) fn matrix(columns: Columns, n: usize, b: usize, rng: &mut ChaCha8Rng) -> Csr {
    let (mut row_ptr, mut col_ind, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        let mut blocks = columns(i, n, rng);
        blocks.push(i);
        blocks.sort_unstable();
        blocks.dedup();
        for r in 0..b {
            for j in blocks.iter().flat_map(|&j| j * b..(j + 1) * b) {
                let v: f64 = rng.random_range(-1.0..1.0);
                col_ind.push(j as u32);
                values.push(if j == i * b + r { 2.0 * (blocks.len() * b) as f64 + v } else { v });
            }
            row_ptr.push(col_ind.len() as u32);
        }
    }
    let made = Csr::new(n * b, n * b, row_ptr, col_ind, values);
    made.expect("valid by construction").in_blocks(b)
}
