//! Division of a graph by multilevel recursive bisection (Karypis and Kumar 1998): few couplings are cut, and parts
//! have about equal weights. METIS bisects; here is the recursion, in which no part can become empty.

use std::sync::{Mutex, PoisonError};

use metis::option::{NCuts, Seed};
use metis::{Graph, Idx};

use crate::base::error::{Error, Result};
use crate::base::interrupt;
use crate::matrix::pattern::Pattern;

/// Bisections of which the best is taken, and the seed of all: chosen by cuts (`docs/notes/ranks.md`).
const TRIALS: Idx = 4;
const SEED: Idx = 1;

/// Sum of weights that leaves room in 32 bits.
const MOST_WEIGHT: u64 = 1 << 30;

/// Of a share of the weight, the part that a side may have too much, beside the weight of a row.
const UNEVEN: i64 = 100;

/// One call at a time: METIS draws random numbers from the one generator of the C library.
static CALL: Mutex<()> = Mutex::new(());

/// Rows for the subdomains from `first` on.
struct Part {
    rows: Vec<u32>,
    first: usize,
    count: usize,
}

/// The subdomain of each row, `count` of them, at most the rows; none is empty. `graph` is symmetric. Subdomains
/// are numbered like a tree of bisections, of two halves the one whose rows come earlier in the mean first.
///
/// # Errors
/// When memory is exhausted, or the program is asked to end.
pub(super) fn subdomains(graph: &Pattern, weights: &[u32], count: usize) -> Result<Vec<u32>> {
    let n = graph.rows();
    let (mut of, mut place) = (vec![0; n], vec![u32::MAX; n]);
    let mut parts = vec![Part { rows: (0..n as u32).collect(), first: 0, count }];
    while let Some(Part { rows, first, count }) = parts.pop() {
        if count == 1 || count == rows.len() {
            for (at, &row) in rows.iter().enumerate() {
                of[row as usize] = (first + at.min(count - 1)) as u32;
            }
            continue;
        }
        let counts = [count / 2, count - count / 2];
        let local = Local::new(graph, weights, &rows, &mut place);
        let mut sides = local.bisected(counts)?;
        local.even_out(&mut sides, counts);
        local.fill_up(&mut sides, counts);
        let half = |side: Idx| -> Vec<u32> {
            let of_side = rows.iter().zip(&sides).filter(|(_, of)| **of == side);
            of_side.map(|(&row, _)| row).collect()
        };
        let mut halves = [(half(0), counts[0]), (half(1), counts[1])];
        let mean =
            |rows: &[u32]| rows.iter().map(|&row| f64::from(row)).sum::<f64>() / rows.len() as f64;
        if mean(&halves[1].0) < mean(&halves[0].0) {
            halves.swap(0, 1);
        }
        let mut first = first;
        for (rows, count) in halves {
            parts.push(Part { rows, first, count });
            first += count;
        }
    }
    Ok(of)
}

/// The graph of some rows, as METIS takes it.
struct Local {
    row_ptr: Vec<Idx>,
    neighbours: Vec<Idx>,
    weights: Vec<Idx>,
}

impl Local {
    /// `place` is `u32::MAX` everywhere before and after.
    fn new(graph: &Pattern, weights: &[u32], rows: &[u32], place: &mut [u32]) -> Self {
        for (at, &row) in (0..).zip(rows) {
            place[row as usize] = at;
        }
        let total: u64 = rows.iter().map(|&row| u64::from(weights[row as usize])).sum();
        let unit = total.div_ceil(MOST_WEIGHT).max(1);
        let (mut row_ptr, mut neighbours) = (vec![0], Vec::new());
        for &row in rows {
            let near = graph.row(row as usize).iter().filter(|&&j| j != row);
            let inside = near.map(|&j| place[j as usize]).filter(|&at| at != u32::MAX);
            neighbours.extend(inside.map(|at| at as Idx));
            row_ptr.push(neighbours.len() as Idx);
        }
        for &row in rows {
            place[row as usize] = u32::MAX;
        }
        let weight = |&row: &u32| (u64::from(weights[row as usize]) / unit).max(1) as Idx;
        Self { row_ptr, neighbours, weights: rows.iter().map(weight).collect() }
    }

    /// Neighbours of a row.
    fn near(&self, row: usize) -> &[Idx] {
        &self.neighbours[self.row_ptr[row] as usize..self.row_ptr[row + 1] as usize]
    }

    /// The side of each row, with weights like `counts`.
    fn bisected(&self, counts: [usize; 2]) -> Result<Vec<Idx>> {
        let all = (counts[0] + counts[1]) as f32;
        let shares = counts.map(|count| count as f32 / all);
        let mut sides = vec![0; self.weights.len()];
        let _one = CALL.lock().unwrap_or_else(PoisonError::into_inner);
        let graph = Graph::new(1, 2, &self.row_ptr, &self.neighbours)
            .map_err(|why| Error::run(format!("partition `graph`: {why}")))?
            .set_vwgt(&self.weights)
            .set_tpwgts(&shares)
            .set_option(NCuts(TRIALS))
            .set_option(Seed(SEED));
        match graph.part_recursive(&mut sides) {
            Ok(_) => Ok(sides),
            Err(metis::Error::Memory) => {
                Err(Error::memory("not enough memory for partition `graph`"))
            }
            // during a call it handles the signal that asks the program to end
            Err(metis::Error::Other) => {
                interrupt::request();
                Err(Error::stopped("partition `graph` was stopped"))
            }
            Err(why @ metis::Error::Input) => Err(Error::run(format!("partition `graph`: {why}"))),
        }
    }

    /// Moves rows from a side that is too heavy: METIS misses the shares where rows are not connected, or few.
    fn even_out(&self, sides: &mut [Idx], counts: [usize; 2]) {
        let weight = |row: usize| i64::from(self.weights[row]);
        let all: i64 = (0..sides.len()).map(weight).sum();
        for (side, count) in (0..).zip(counts) {
            let share = all * count as i64 / (counts[0] + counts[1]) as i64;
            let own = (0..sides.len()).filter(|&row| sides[row] == side);
            let mut excess = own.map(weight).sum::<i64>() - share;
            if excess <= share / UNEVEN + all / sides.len() as i64 {
                continue;
            }
            for row in self.least_cut(sides, 1 - side) {
                if weight(row) <= excess {
                    excess -= weight(row);
                    sides[row] = 1 - side;
                }
            }
        }
    }

    /// Moves rows to a side that has fewer than `counts`.
    fn fill_up(&self, sides: &mut [Idx], counts: [usize; 2]) {
        for (side, count) in (0..).zip(counts) {
            let have = sides.iter().filter(|&&of| of == side).count();
            for row in self.least_cut(sides, side).into_iter().take(count.saturating_sub(have)) {
                sides[row] = side;
            }
        }
    }

    /// Rows that are not on `to`, those that cut the fewest couplings when they move there first.
    fn least_cut(&self, sides: &[Idx], to: Idx) -> Vec<usize> {
        let cut = |&row: &usize| -> i64 {
            let near = self.near(row);
            let there = near.iter().filter(|&&j| sides[j as usize] == to).count();
            near.len() as i64 - 2 * there as i64
        };
        let mut rows: Vec<usize> = (0..sides.len()).filter(|&row| sides[row] != to).collect();
        rows.sort_by_cached_key(cut);
        rows
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::choices::{Partition, ReadAs};
    use crate::base::threads::Threads;
    use crate::matrix::Csr;
    use crate::matrix::pattern::block_pattern;
    use crate::problem::load;
    use crate::symbolic::partition::{Divided, divide};
    use crate::symbolic::symmetrised;

    /// Divides by the graph, and checks that each block row is in one subdomain, in its order, and none is empty.
    fn divided(a: &Csr, count: usize) -> Divided {
        let found = divide(a, Partition::Graph, None, count, false).unwrap();
        let rows = a.rows().div_ceil(a.block_size());
        assert_eq!((found.starts[0], found.starts.len()), (0, count + 1));
        assert_eq!(found.starts[count], rows);
        assert!(found.starts.is_sorted_by(|a, b| a < b), "{:?}", found.starts);
        let mut all: Vec<usize> = (0..count).flat_map(|s| found.rows(s)).collect();
        assert!((0..count).all(|s| found.rows(s).is_sorted()));
        all.sort_unstable();
        assert!(all.into_iter().eq(0..rows));
        found
    }

    /// Stored blocks that couple two subdomains; the largest number of blocks of a subdomain, and the mean.
    fn cut(a: &Csr, divided: &Divided) -> (usize, usize, f64) {
        let (of, pattern) = (divided.subdomains(), block_pattern(a));
        let count = divided.starts.len() - 1;
        let (mut cut, mut weights) = (0, vec![0; count]);
        for (row, &s) in of.iter().enumerate() {
            cut += pattern.row(row).iter().filter(|&&j| of[j as usize] != s).count();
            weights[s as usize] += pattern.row(row).len();
        }
        let mean = pattern.entries() as f64 / count as f64;
        (cut, weights.into_iter().max().unwrap(), mean)
    }

    #[test]
    fn a_cube_is_cut_about_as_boxes_are() {
        let problem = load("poisson3d:16", ReadAs::Expanded).unwrap();
        let a = &problem.matrix;
        for (count, of_boxes) in [(2, 512), (8, 1536), (64, 4608)] {
            let boxes = divide(a, Partition::Boxes, problem.grid, count, false).unwrap();
            assert_eq!(cut(a, &boxes).0, of_boxes);
            let graph = divided(a, count);
            assert_eq!(divide(a, Partition::Graph, None, count, false).unwrap(), graph);
            let (cut, largest, mean) = cut(a, &graph);
            assert!(10 * cut <= 13 * of_boxes, "{count}: {cut} beside {of_boxes}");
            assert!(largest as f64 <= 1.05 * mean, "{count}: {largest}, mean {mean}");
        }
    }

    #[test]
    fn halves_are_numbered_as_their_rows_come() {
        let line = load("poisson3d:64x1x1", ReadAs::Expanded).unwrap().matrix;
        let Divided { order, starts } = divided(&line, 4);
        assert_eq!((order, starts), (None, vec![0, 16, 32, 48, 64]));
        let Divided { order, starts } = divided(&line, 3);
        assert_eq!(order, None);
        assert!(starts.windows(2).all(|w| (20..=22).contains(&(w[1] - w[0]))), "{starts:?}");
        let alone = divided(&line, 1);
        assert_eq!(alone, Divided { order: None, starts: vec![0, 64] });
        assert_eq!(divided(&line, 64).starts, (0..=64).collect::<Vec<_>>());
    }

    #[test]
    fn rows_count_by_their_entries_and_blocks_move_whole() {
        // an arrow: one row and one column are full
        let n = 200_u32;
        let (mut row_ptr, mut col_ind) = (vec![0], (0..n).collect::<Vec<u32>>());
        row_ptr.push(n);
        for i in 1..n {
            col_ind.extend([0, i]);
            row_ptr.push(col_ind.len() as u32);
        }
        let values = vec![1.0; col_ind.len()];
        let arrow = Csr::new(n as usize, n as usize, row_ptr, col_ind, values).unwrap();
        let of = divided(&arrow, 2).subdomains();
        // 598 entries, a third of them in row 0
        let with_row_0 = of.iter().filter(|&&s| s == of[0]).count();
        assert!((49..=53).contains(&with_row_0), "{with_row_0}");
        assert_eq!(divided(&arrow, 8).starts.len(), 9);
        let blocks = load("blockpoisson3d:6x6x6,b=2", ReadAs::Expanded).unwrap().matrix;
        let found = divided(&blocks.in_blocks(2), 4);
        let unknowns = found.unknowns(2).unwrap();
        assert!(unknowns.chunks(2).all(|pair| pair[0] % 2 == 0 && pair[1] == pair[0] + 1));
        // the last block has one unknown of two
        let line = load("poisson3d:33x1x1", ReadAs::Expanded).unwrap().matrix;
        assert_eq!(divided(&line.in_blocks(2), 4).starts[4], 17);
    }

    #[test]
    fn a_side_that_lacks_rows_takes_those_that_cut_least() {
        // a path of six rows, all on one side
        let path = load("poisson3d:6x1x1", ReadAs::Expanded).unwrap().matrix;
        let pattern = block_pattern(&path);
        let graph = symmetrised(Threads::One, &pattern);
        let rows: Vec<u32> = (0..6).collect();
        let local = Local::new(&graph, &[1; 6], &rows, &mut [u32::MAX; 6]);
        let mut sides = vec![1; 6];
        local.fill_up(&mut sides, [2, 4]);
        assert_eq!(sides, [0, 1, 1, 1, 1, 0]);
        local.fill_up(&mut sides, [2, 4]);
        assert_eq!(sides, [0, 1, 1, 1, 1, 0]);
        local.fill_up(&mut sides, [1, 5]);
        assert_eq!(sides, [1, 1, 1, 1, 1, 0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever the pattern: not connected, isolated rows, rows without a diagonal, as many subdomains as rows.
        #[test]
        fn any_pattern_is_divided_into_subdomains_with_rows(
            n in 1_usize..150,
            b in 1_usize..4,
            share in 0.0..1.0_f64,
            entries in prop::collection::vec((0_u32..150, 0_u32..150), 0..400),
        ) {
            let mut rows = vec![Vec::new(); n];
            for (i, j) in entries.into_iter().filter(|&(i, j)| (i.max(j) as usize) < n) {
                rows[i as usize].push(j);
            }
            let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
            for mut row in rows {
                row.sort_unstable();
                row.dedup();
                col_ind.append(&mut row);
                row_ptr.push(col_ind.len() as u32);
            }
            let values = vec![1.0; col_ind.len()];
            let a = Csr::new(n, n, row_ptr, col_ind, values).unwrap().in_blocks(b);
            let blocks = n.div_ceil(b);
            for count in [1, blocks, 1 + (share * (blocks - 1) as f64) as usize] {
                divided(&a, count);
            }
        }

        /// Rows without couplings and pieces of a path are shared out evenly.
        #[test]
        fn unconnected_rows_are_balanced(
            isolated in 0_usize..300,
            pieces in prop::collection::vec(1_usize..40, 1..20),
            count in 1_usize..12,
        ) {
            let mut row_ptr = vec![0];
            let mut col_ind = Vec::new();
            let mut first = 0;
            for length in pieces.into_iter().chain(std::iter::repeat_n(1, isolated)) {
                for i in first..first + length {
                    let last = first + length - 1;
                    col_ind.extend((i.max(first + 1) - 1..=(i + 1).min(last)).map(|j| j as u32));
                    row_ptr.push(col_ind.len() as u32);
                }
                first += length;
            }
            prop_assume!(first >= count);
            let values = vec![1.0; col_ind.len()];
            let a = Csr::new(first, first, row_ptr, col_ind, values).unwrap();
            let (_, largest, mean) = cut(&a, &divided(&a, count));
            prop_assert!(largest as f64 <= 1.05 * mean + 6.0, "{} beside {}", largest, mean);
        }
    }
}
