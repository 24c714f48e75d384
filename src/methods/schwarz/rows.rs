//! Block rows around those of a rank, as its part of factors of the whole matrix has them.

use std::ops::Range;
use std::sync::Arc;

use crate::base::threads::Threads;
use crate::compute::distributed::part::Part;
use crate::matrix::Csr;
use crate::matrix::pattern::rows::{Lengths, laid};
use crate::matrix::pattern::{Pattern, block_pattern_on};
use crate::symbolic::interfaces::Elimination;
use crate::symbolic::{FillPattern, Schedule};

/// Block rows that a rank's factors have, stage by stage.
pub(super) struct Rows {
    pub(super) order: Arc<Elimination>,
    /// Of each block row of the part its number in the order of elimination, where that is not stage by stage.
    pub(super) given: Option<Arc<[u64]>>,
    /// Block rows of this rank.
    pub(super) own: Range<u64>,
    /// Numbers of all, and their places in the part.
    pub(super) numbers: Vec<u64>,
    pub(super) places: Vec<u32>,
}

impl Rows {
    /// Ascends in the order of the rows here.
    fn key(&self, row: u64) -> (usize, u64) {
        (self.order.stage(row as usize), row)
    }

    /// Where a row is.
    pub(super) fn place(&self, row: u64) -> Option<u32> {
        let key = self.key(row);
        self.numbers.binary_search_by_key(&key, |&other| self.key(other)).ok().map(|at| at as u32)
    }

    /// Places in `numbers` of those that are `kept`, all own rows among them, stage by stage in the order of their
    /// numbers.
    fn by_stages(&self, kept: &[bool]) -> Vec<u32> {
        let mut own = vec![0; (self.own.end - self.own.start) as usize];
        let mut others = Vec::new();
        for ((at, &row), _) in (0..).zip(&self.numbers).zip(kept).filter(|(_, kept)| **kept) {
            if self.own.contains(&row) {
                own[(row - self.own.start) as usize] = at;
            } else {
                others.push((row, at));
            }
        }
        others.sort_unstable();
        let before = others.partition_point(|&(row, _)| row < self.own.start);
        let place = |&(_, at): &(u64, u32)| at;
        let (before, after) = others.split_at(before);
        let rows: Vec<u32> =
            before.iter().map(place).chain(own).chain(after.iter().map(place)).collect();
        let stage = |&at: &u32| self.order.stage(self.numbers[at as usize] as usize) as u32;
        let stages: Vec<u32> = rows.iter().map(stage).collect();
        // stable
        Schedule::from_levels(&stages).rows.iter().map(|&at| rows[at as usize]).collect()
    }

    pub(super) fn is_own(&self, at: usize) -> bool {
        self.own.contains(&self.numbers[at])
    }

    /// Of each place in the part the number that its row has here, `u32::MAX` where it has none.
    fn inverse(&self, part: &Part) -> Vec<u32> {
        let mut numbers = vec![u32::MAX; part.blocks()];
        (0..).zip(&self.places).for_each(|(number, &place)| numbers[place as usize] = number);
        numbers
    }
}

/// Couplings between rows, in their order.
pub(super) fn pattern(threads: Threads, rows: &Rows, part: &Part) -> Pattern<'static> {
    let (point, numbers) = (block_pattern_on(threads, part.matrix()), rows.inverse(part));
    let sort = |row: &mut [u32]| {
        if !row.is_sorted() {
            row.sort_unstable();
        }
    };
    picked(threads, &point, (&rows.places, &numbers), |_| true, sort)
}

/// These rows of a pattern, with the numbers of their columns as far as they have any, and none where not `has(row)`;
/// `order` puts those of each row in order.
fn picked(
    threads: Threads,
    of: &Pattern,
    (rows, numbers): (&[u32], &[u32]),
    has: impl Fn(usize) -> bool + Sync,
    order: impl Fn(&mut [u32]) + Sync,
) -> Pattern<'static> {
    let view = of.view();
    let columns = |at: usize| {
        let row = if has(rows[at] as usize) { view.row(rows[at] as usize) } else { &[] };
        row.iter().map(|&j| numbers[j as usize]).filter(|&j| j != u32::MAX)
    };
    let lengths = Lengths {
        rows: rows.len(),
        block_size: of.block_size(),
        of: |at: usize| [columns(at).count()],
    };
    let [made] = laid(threads, &lengths, |at, [to]: [&mut [u32]; 1]| {
        to.iter_mut().zip(columns(at)).for_each(|(to, column)| *to = column);
        order(to);
    });
    made
}

/// The entries of this rank's rows; those of others are empty.
pub(super) fn values(threads: Threads, rows: &Rows, part: &Part) -> Csr {
    let (a, b, numbers) = (part.matrix(), part.block_size(), rows.inverse(part));
    let row = |i: usize| {
        let of = |place: u32| a.row(place as usize * b + i % b);
        if rows.is_own(i / b) { of(rows.places[i / b]) } else { (&[][..], &[][..]) }
    };
    let column = |column: u32| {
        let number = numbers[column as usize / b];
        debug_assert!(number != u32::MAX, "own rows have the columns of A");
        number * b as u32 + column % b as u32
    };
    let n = rows.places.len() * b;
    Csr::gathered(threads, [n, n], row, column).in_blocks(b)
}

/// Of the pattern of `known` rows around those of this rank, in the order of elimination, the part that its factors
/// need: its rows, their columns, and of those below the diagonal the entries of U' that are subtracted. The rows are
/// put stage by stage, their columns stay in the order of elimination. Also returns these rows, by their places.
pub(super) fn needed(threads: Threads, all: &FillPattern, known: &Rows) -> (FillPattern, Vec<u32>) {
    let (n, is_own) = (all.rows(), |i: usize| known.is_own(i));
    let (mut kept, mut below) = (vec![false; n], vec![false; n]);
    for i in (0..n).filter(|&i| is_own(i)) {
        kept[i] = true;
        for &j in all.lower.row(i) {
            (kept[j as usize], below[j as usize]) = (true, true);
        }
        all.upper.row(i).iter().for_each(|&j| kept[j as usize] = true);
    }
    let rows = known.by_stages(&kept);
    let mut number = vec![u32::MAX; n];
    rows.iter().enumerate().for_each(|(new, &old)| number[old as usize] = new as u32);
    let picks = (&rows[..], &number[..]);
    let lower = picked(threads, &all.lower, picks, is_own, |_| ());
    let upper = picked(threads, &all.upper, picks, |i| is_own(i) || below[i], |_| ());
    let own = all.no_diagonal.iter().filter(|&&i| is_own(i as usize));
    let mut no_diagonal: Vec<u32> = own.map(|&i| number[i as usize]).collect();
    no_diagonal.sort_unstable();
    (FillPattern::new(lower, upper, no_diagonal), rows)
}
