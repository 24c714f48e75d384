//! One bisection of a graph by METIS, and what it leaves to be done.

use std::sync::{Mutex, PoisonError};

use metis::option::Seed;
use metis::{Graph, Idx};

use crate::base::error::{Error, Result};
use crate::base::interrupt;
use crate::matrix::pattern::Pattern;

/// Seed of all bisections, one trial each: iterations depend more on the seed than more trials gain, and this one is
/// among the best of six (`docs/notes/ranks.md`).
const SEED: Idx = 4;

/// Sum of weights that leaves room in 32 bits.
const MOST_WEIGHT: u64 = 1 << 30;

/// Of a share of the weight, the part that a side may have too much, beside the weight of a row.
const UNEVEN: i64 = 100;

/// One call at a time: METIS draws random numbers from the one generator of the C library.
static CALL: Mutex<()> = Mutex::new(());

/// The graph of some rows, as METIS takes it.
pub(super) struct Local {
    row_ptr: Vec<Idx>,
    neighbours: Vec<Idx>,
    weights: Vec<Idx>,
}

impl Local {
    /// `place` is `u32::MAX` everywhere before and after.
    pub(super) fn new(graph: &Pattern, weights: &[u32], rows: &[u32], place: &mut [u32]) -> Self {
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

/// A bisection that is to be made.
pub(crate) struct Bisection {
    pub(super) graph: Local,
    /// Subdomains of each half.
    pub(super) counts: [usize; 2],
}

/// The half of each row.
pub(crate) struct Halves(pub(super) Vec<Idx>);

/// Makes bisections, which do not depend on each other.
pub(crate) type Run<'r, E> = &'r mut dyn FnMut(&[Bisection]) -> std::result::Result<Vec<Halves>, E>;

impl Bisection {
    /// Halves of which none has too few rows, or too much weight.
    ///
    /// # Errors
    /// When memory is exhausted, or the program is asked to end.
    pub(crate) fn run(&self) -> Result<Halves> {
        let mut sides = self.graph.bisected(self.counts)?;
        self.graph.even_out(&mut sides, self.counts);
        self.graph.fill_up(&mut sides, self.counts);
        Ok(Halves(sides))
    }

    /// Bytes of the graph.
    pub(crate) fn bytes(&self) -> usize {
        let Local { row_ptr, neighbours, weights } = &self.graph;
        size_of::<Idx>() * (row_ptr.len() + neighbours.len() + weights.len())
    }

    /// The bisection as numbers, behind others.
    pub(crate) fn to_numbers(&self, to: &mut Vec<Idx>) {
        let Local { row_ptr, neighbours, weights } = &self.graph;
        let counts = self.counts.map(|count| count as Idx);
        to.extend([weights.len() as Idx, neighbours.len() as Idx, counts[0], counts[1]]);
        to.extend(row_ptr.iter().chain(neighbours).chain(weights));
    }

    /// The bisection at the beginning of `from`, which goes on behind it.
    pub(crate) fn from_numbers(from: &mut &[Idx]) -> Self {
        let mut take = |count| taken(from, count);
        let head = take(4);
        let (rows, entries) = (head[0] as usize, head[1] as usize);
        let graph =
            Local { row_ptr: take(rows + 1), neighbours: take(entries), weights: take(rows) };
        Self { graph, counts: [head[2] as usize, head[3] as usize] }
    }
}

impl Halves {
    /// The halves as numbers, behind others.
    pub(crate) fn to_numbers(&self, to: &mut Vec<Idx>) {
        to.push(self.0.len() as Idx);
        to.extend(&self.0);
    }

    /// The halves at the beginning of `from`, which goes on behind them.
    pub(crate) fn from_numbers(from: &mut &[Idx]) -> Self {
        let rows = taken(from, 1)[0] as usize;
        Self(taken(from, rows))
    }
}

/// The first `count` of `from`, which goes on behind them.
fn taken(from: &mut &[Idx], count: usize) -> Vec<Idx> {
    let (part, rest) = from.split_at(count);
    *from = rest;
    part.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::ReadAs;
    use crate::base::threads::Threads;
    use crate::matrix::pattern::block_pattern;
    use crate::problem::load;
    use crate::symbolic::symmetrised;

    /// A box of cells, in natural order.
    fn of(source: &str) -> Local {
        let a = load(source, ReadAs::Expanded).unwrap().matrix;
        let pattern = block_pattern(&a);
        let (graph, rows) = (symmetrised(Threads::One, &pattern), 0..a.rows() as u32);
        let (rows, weights): (Vec<u32>, Vec<u32>) = (rows.collect(), vec![1; a.rows()]);
        Local::new(&graph, &weights, &rows, &mut vec![u32::MAX; a.rows()])
    }

    #[test]
    fn a_side_that_lacks_rows_takes_those_that_cut_least() {
        // all rows of a path on one side
        let path = of("poisson3d:6x1x1");
        let mut sides = vec![1; 6];
        path.fill_up(&mut sides, [2, 4]);
        assert_eq!(sides, [0, 1, 1, 1, 1, 0]);
        path.fill_up(&mut sides, [2, 4]);
        assert_eq!(sides, [0, 1, 1, 1, 1, 0]);
        path.fill_up(&mut sides, [1, 5]);
        assert_eq!(sides, [1, 1, 1, 1, 1, 0]);
    }

    #[test]
    fn bisections_are_the_same_elsewhere() {
        let here = [("poisson3d:9x1x1", [1, 2]), ("poisson3d:8x4x2", [1, 1])]
            .map(|(source, counts)| Bisection { graph: of(source), counts });
        let (mut sent, mut answered) = (Vec::new(), Vec::new());
        for bisection in &here {
            bisection.to_numbers(&mut sent);
        }
        let mut rest = &sent[..];
        while !rest.is_empty() {
            Bisection::from_numbers(&mut rest).run().unwrap().to_numbers(&mut answered);
        }
        let mut rest = &answered[..];
        for (bisection, first) in here.iter().zip([3, 32]) {
            let (sides, there) = (bisection.run().unwrap().0, Halves::from_numbers(&mut rest).0);
            assert_eq!(sides, there);
            assert_eq!(sides.iter().filter(|side| **side == 0).count(), first);
        }
        assert!(rest.is_empty());
        // 10 rows begin or end, 16 couplings from both sides, 9 weights
        assert_eq!(here[0].bytes(), 4 * (10 + 16 + 9));
    }
}
