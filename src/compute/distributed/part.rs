//! The rows of a matrix that a rank has. Block rows have numbers of 64 bits among all, and places of 32 bits here.

use std::ops::Range;
use std::sync::Arc;

use super::rows::{Places, Rows};
use crate::base::error::{Error, Result};
use crate::base::memory;
use crate::base::threads::Threads;
use crate::matrix::Csr;
use crate::symbolic::scalar_order;

/// Numbers that name themselves, from 0: values in their place tell where each one goes.
pub(crate) fn numbered(count: usize) -> Vec<f64> {
    (0..count).map(|number| number as f64).collect()
}

/// The numbers that came to each place.
pub(crate) fn numbers(named: &[f64]) -> Vec<u32> {
    named.iter().map(|&number| number as u32).collect()
}

/// Consecutive block rows of a rank, and what it knows of others: rows around them, and columns. All have places
/// here, which ascend with their numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    own: Range<u64>,
    /// Numbers of the others, ascending.
    others: Vec<u64>,
    /// How many of these come before its own.
    before: usize,
    /// Square, by places; rows that are not known are empty.
    matrix: Arc<Csr>,
}

impl Part {
    /// All rows of a matrix, of which the block rows `own` are a rank's.
    ///
    /// # Panics
    /// If there are no such rows.
    pub(crate) fn of_whole(matrix: &Arc<Csr>, own: Range<u64>) -> Self {
        let blocks = matrix.rows().div_ceil(matrix.block_size()) as u64;
        assert!(own.start <= own.end && own.end <= blocks, "rows of the matrix");
        let before = own.start as usize;
        let others = (0..own.start).chain(own.end..blocks).collect();
        Self { own, others, before, matrix: Arc::clone(matrix) }
    }

    /// The same with other values in the rows at some places: `change` of each.
    #[must_use]
    pub(crate) fn with_values(&self, rows: Range<usize>, change: impl Fn(f64) -> f64) -> Self {
        let mut matrix = Csr::clone(&self.matrix);
        let [start, end] = [rows.start, rows.end].map(|row| matrix.row_ptr()[row] as usize);
        matrix.values_mut()[start..end].iter_mut().for_each(|v| *v = change(*v));
        Self { matrix: matrix.into(), ..self.clone() }
    }

    /// The same with these values of all entries, those of rows of others too.
    #[must_use]
    pub(crate) fn with_all_values(&self, values: Vec<f64>) -> Self {
        Self { matrix: self.matrix.with_values(values).into(), ..self.clone() }
    }

    /// The rows of this rank without the entries that are zero.
    ///
    /// # Errors
    /// Without memory for them.
    pub(crate) fn without_zeros(&self) -> Result<Self> {
        let mut builder = Builder::new(self.own(), self.block_size());
        for at in self.unknowns() {
            let (columns, values) = self.matrix.row(at);
            let entries = columns.iter().zip(values).filter(|(_, v)| **v != 0.0);
            builder.push(self.unknown(at), entries.map(|(&j, &v)| (self.unknown(j as usize), v)));
        }
        builder.finish(u64::MAX)
    }

    /// The rows by their places here.
    pub fn matrix(&self) -> &Arc<Csr> {
        &self.matrix
    }

    /// Unknowns per block.
    pub fn block_size(&self) -> usize {
        self.matrix.block_size()
    }

    /// Numbers of the block rows of this rank.
    pub fn own(&self) -> Range<u64> {
        self.own.clone()
    }

    /// Numbers of other block rows and columns, ascending.
    pub fn others(&self) -> &[u64] {
        &self.others
    }

    /// Places of this rank's block rows.
    pub fn places(&self) -> Range<usize> {
        self.before..self.before + (self.own.end - self.own.start) as usize
    }

    /// Places of this rank's unknowns.
    pub fn unknowns(&self) -> Range<usize> {
        let (of, b) = (self.places(), self.block_size());
        of.start * b..of.end * b
    }

    /// Number of this rank's first unknown.
    pub(crate) fn first_unknown(&self) -> u64 {
        self.own.start * self.block_size() as u64
    }

    /// Block rows and columns that have places.
    pub fn blocks(&self) -> usize {
        self.others.len() + self.places().len()
    }

    /// Number of the block row or column at a place.
    pub fn number(&self, place: usize) -> u64 {
        let own = self.places();
        if place < own.start {
            self.others[place]
        } else if place < own.end {
            self.own.start + (place - own.start) as u64
        } else {
            self.others[place - own.len()]
        }
    }

    /// Place of the block row or column of a number, if it has one.
    pub fn place(&self, number: u64) -> Option<usize> {
        let own = self.places();
        if self.own.contains(&number) {
            return Some(own.start + (number - self.own.start) as usize);
        }
        let at = self.others.binary_search(&number).ok()?;
        Some(if at < own.start { at } else { at + own.len() })
    }

    /// Number of the unknown at a place.
    pub fn unknown(&self, place: usize) -> u64 {
        let b = self.block_size();
        self.number(place / b) * b as u64 + (place % b) as u64
    }

    /// This rank's rows in another order, of which `order[i]` becomes the i-th; the others are renumbered as `others`
    /// says, each within the rows of its rank.
    #[must_use]
    pub(crate) fn renumbered(&self, threads: Threads, order: &[u32], others: &[u64]) -> Self {
        let mut by_number: Vec<u32> = (0..others.len() as u32).collect();
        by_number.sort_unstable_by_key(|&at| others[at as usize]);
        let (before, behind) = by_number.split_at(self.before);
        let (first, count) = (self.before as u32, order.len() as u32);
        let places: Vec<u32> = (before.iter().copied())
            .chain(order.iter().map(|&at| first + at))
            .chain(behind.iter().map(|&at| count + at))
            .collect();
        let unknowns = scalar_order(&places, self.block_size());
        let matrix = self.matrix.permuted_on(threads, &unknowns);
        let others = by_number.iter().map(|&at| others[at as usize]).collect();
        Self { others, matrix: matrix.into(), ..self.clone() }
    }

    /// This rank's rows, and `rows` of others, which it has none of. `others` are the numbers of all block rows and
    /// columns that are not its own, ascending.
    ///
    /// # Errors
    /// When there are more entries, rows or columns than places of 32 bits.
    pub(crate) fn with_rows(&self, rows: &Rows, others: Vec<u64>) -> Result<Self> {
        let b = self.block_size();
        let room = self.entries() + rows.columns().len();
        check_places(&self.own, others.len(), (b, room))?;
        let before = others.partition_point(|&block| block < self.own.start);
        let matrix = Arc::clone(&self.matrix);
        let made = Self { own: self.own(), others, before, matrix };
        let (mut row_ptr, mut columns) =
            (memory::zeroed(made.blocks() * b + 1), memory::with_capacity(room));
        let mut values = memory::with_capacity(room);
        let ascending = rows.ascending();
        let is_before = |&at: &u32| rows.numbers()[at as usize] < self.first_unknown();
        let (first, behind) = ascending.split_at(ascending.partition_point(is_before));
        let mut places = Places {
            own: self.own(),
            others: &made.others,
            before,
            block_size: b,
            last: Vec::new(),
        };
        let mut push = |of: &[u32], columns: &mut Vec<u32>, values: &mut Vec<f64>| {
            for &at in of {
                let (row, of_row, entries) = rows.row(at as usize);
                columns.extend((1..).zip(of_row).map(|(nth, &column)| places.find(nth, column)));
                values.extend_from_slice(entries);
                row_ptr[places.find(0, row) as usize + 1] = entries.len() as u32;
            }
        };
        push(first, &mut columns, &mut values);
        let mine = self.unknowns();
        let new: Vec<u32> = (self.others.iter())
            .map(|&block| made.place(block).expect("among others") as u32 * b as u32)
            .collect();
        let (own_place, shift) = (mine.start as u32, made.unknowns().start as u32);
        let moved = |column: u32| {
            if mine.contains(&(column as usize)) {
                return column - own_place + shift;
            }
            let place = column as usize / b;
            let other = if column < own_place { place } else { place - self.places().len() };
            new[other] + column % b as u32
        };
        let [from, to] = [mine.start, mine.end].map(|row| self.matrix.row_ptr()[row] as usize);
        columns.extend(self.matrix.col_ind()[from..to].iter().map(|&column| moved(column)));
        values.extend_from_slice(&self.matrix.values()[from..to]);
        push(behind, &mut columns, &mut values);
        for (at, row) in made.unknowns().zip(mine) {
            row_ptr[at + 1] = self.matrix.row_ptr()[row + 1] - self.matrix.row_ptr()[row];
        }
        for row in 1..row_ptr.len() {
            row_ptr[row] += row_ptr[row - 1];
        }
        let n = row_ptr.len() - 1;
        let matrix = Csr::new(n, n, row_ptr, columns, values)?.in_blocks(b).into();
        Ok(Self { matrix, ..made })
    }

    /// Entries of this rank's rows.
    pub fn entries(&self) -> usize {
        let (of, row_ptr) = (self.unknowns(), self.matrix.row_ptr());
        (row_ptr[of.end] - row_ptr[of.start]) as usize
    }
}

/// Refuses more entries, rows or columns than places of 32 bits: those of the block rows `own` and of `others`.
fn check_places(own: &Range<u64>, others: usize, (b, entries): (usize, usize)) -> Result<()> {
    let blocks = others as u64 + (own.end - own.start);
    let most = u64::from(u32::MAX);
    if blocks * b as u64 >= most || entries as u64 > most {
        let text = format!("a rank with more than {most} entries or unknowns");
        return Err(Error::memory(text).hint("start more ranks"));
    }
    Ok(())
}

/// Rows that become a [`Part`]; they may come in any order, and their columns too.
pub struct Builder {
    /// Numbers of the rank's block rows.
    own: Range<u64>,
    block_size: usize,
    /// Number of each row.
    rows: Vec<u64>,
    ends: Vec<u32>,
    /// Columns of this rank, counted from its first; those of others are in `outside`.
    columns: Vec<u32>,
    /// Entry and column.
    outside: Vec<(u32, u64)>,
    values: Vec<f64>,
    /// There were more entries than places of 32 bits.
    too_many: bool,
}

impl Builder {
    /// No rows yet, for a rank that has the block rows `own`.
    pub fn new(own: Range<u64>, block_size: usize) -> Self {
        Self {
            own,
            block_size,
            rows: Vec::new(),
            ends: Vec::new(),
            columns: Vec::new(),
            outside: Vec::new(),
            values: Vec::new(),
            too_many: false,
        }
    }

    /// The rows of a matrix, which are a rank's from its first one on; columns are unknowns, numbered from `columns`
    /// on.
    pub(crate) fn of_rows(own: Range<u64>, block_size: usize, rows: Csr, columns: u64) -> Self {
        let b = block_size as u64;
        let mut new = Self::new(own, block_size);
        let first = new.own.start * b;
        new.rows = (first..first + rows.rows() as u64).collect();
        let unknowns = new.unknowns();
        let base = columns;
        let (row_ptr, mut columns, values) = rows.into_parts();
        for (at, column) in columns.iter_mut().enumerate() {
            let number = base + u64::from(*column);
            if unknowns.contains(&number) {
                *column = (number - first) as u32;
            } else {
                new.outside.push((at as u32, number));
            }
        }
        new.ends = row_ptr;
        new.ends.remove(0);
        Self { columns, values, ..new }
    }

    /// Room for more.
    #[must_use]
    pub(crate) fn with_room(mut self, rows: usize, entries: usize) -> Self {
        memory::reserve(&mut self.rows, rows);
        memory::reserve(&mut self.ends, rows);
        memory::reserve(&mut self.columns, entries);
        memory::reserve(&mut self.values, entries);
        self
    }

    fn unknowns(&self) -> Range<u64> {
        let b = self.block_size as u64;
        self.own.start * b..self.own.end * b
    }

    /// Adds the row of a number, with the numbers of its columns.
    pub fn push(&mut self, row: u64, entries: impl Iterator<Item = (u64, f64)>) {
        let own = self.unknowns();
        for (column, value) in entries {
            if self.columns.len() == u32::MAX as usize {
                self.too_many = true;
                return;
            }
            if own.contains(&column) {
                self.columns.push((column - own.start) as u32);
            } else {
                self.outside.push((self.columns.len() as u32, column));
                self.columns.push(0);
            }
            self.values.push(value);
        }
        self.rows.push(row);
        self.ends.push(self.columns.len() as u32);
    }

    /// Puts rows and columns where they belong. Own rows from the number `order` on, which fill the last block, are
    /// those of the identity.
    ///
    /// # Errors
    /// When there are more entries, rows or columns than places of 32 bits.
    pub fn finish(self, order: u64) -> Result<Part> {
        self.finish_on(Threads::One, order)
    }

    /// [`finish`](Self::finish) on one thread or all.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn finish_on(mut self, threads: Threads, order: u64) -> Result<Part> {
        let b = self.block_size as u64;
        let unknowns = self.unknowns();
        for row in order.max(unknowns.start)..unknowns.end {
            self.push(row, std::iter::once((row, 1.0)));
        }
        let Self { own, block_size, rows, ends, mut columns, outside, mut values, too_many } = self;
        let mut others: Vec<u64> = outside.iter().map(|(_, column)| column / b).collect();
        others.extend(rows.iter().map(|row| row / b).filter(|block| !own.contains(block)));
        others.sort_unstable();
        others.dedup();
        others.shrink_to_fit();
        let entries = if too_many { usize::MAX } else { columns.len() };
        check_places(&own, others.len(), (block_size, entries))?;
        let blocks = others.len() as u64 + (own.end - own.start);
        let before = others.partition_point(|&block| block < own.start);
        let place = |block: u64| {
            if own.contains(&block) {
                return before + (block - own.start) as usize;
            }
            let at = others.partition_point(|&other| other < block);
            if at < before { at } else { at + (own.end - own.start) as usize }
        };
        let unknown = |number: u64| (place(number / b) * block_size) as u32 + (number % b) as u32;
        let shift = (before * block_size) as u32;
        // own columns are counted from the first own one
        for (at, number) in outside {
            columns[at as usize] = unknown(number).wrapping_sub(shift);
        }
        let start = |at: usize| if at == 0 { 0 } else { ends[at - 1] as usize };
        let n = blocks as usize * block_size;
        let matrix = if rows.is_sorted() {
            if shift > 0 {
                for column in &mut columns {
                    *column = column.wrapping_add(shift);
                }
            }
            let mut scratch = Vec::new();
            for at in 0..rows.len() {
                sort(start(at)..ends[at] as usize, (&mut columns, &mut values), &mut scratch);
            }
            let mut row_ptr = memory::zeroed::<u32>(n + 1);
            for (at, &row) in rows.iter().enumerate() {
                row_ptr[unknown(row) as usize + 1] = ends[at] - start(at) as u32;
            }
            for row in 0..n {
                row_ptr[row + 1] += row_ptr[row];
            }
            columns.shrink_to_fit();
            values.shrink_to_fit();
            Csr::new(n, n, row_ptr, columns, values)?
        } else {
            let mut from = vec![u32::MAX; n];
            (0..).zip(&rows).for_each(|(at, &row)| from[unknown(row) as usize] = at);
            let row = |i: usize| match from[i] as usize {
                at if at < rows.len() => {
                    let of = start(at)..ends[at] as usize;
                    (&columns[of.clone()], &values[of])
                }
                _ => (&[][..], &[][..]),
            };
            Csr::gathered(threads, [n, n], row, |column| column.wrapping_add(shift))
        };
        Ok(Part { own, others, before, matrix: matrix.in_blocks(block_size).into() })
    }
}

/// Sorts the entries of a row by their columns.
fn sort(
    of: Range<usize>,
    (columns, values): (&mut [u32], &mut [f64]),
    entries: &mut Vec<(u32, f64)>,
) {
    let (columns, values) = (&mut columns[of.clone()], &mut values[of]);
    if columns.is_sorted() {
        return;
    }
    entries.clear();
    entries.extend(columns.iter().copied().zip(values.iter().copied()));
    entries.sort_unstable_by_key(|entry| entry.0);
    for (at, &(column, value)) in entries.iter().enumerate() {
        (columns[at], values[at]) = (column, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of a chain that begins far beyond 2^32, in an order of their own.
    #[test]
    fn rows_beyond_32_bits_have_places_of_32_bits() {
        let first = 5_000_000_000_u64;
        let mut builder = Builder::new(first..first + 3, 2);
        let row = |i: u64| [(i + 2, -3.0), (i, 4.0), (i - 2, -2.0)];
        let (start, end) = (2 * first, 2 * first + 6);
        for i in (start..end).rev() {
            builder.push(i, row(i).into_iter());
        }
        let part = builder.finish(u64::MAX).unwrap();
        assert_eq!((part.own(), part.others()), (first..first + 3, &[first - 1, first + 3][..]));
        assert_eq!((part.places(), part.unknowns(), part.entries()), (1..4, 2..8, 18));
        assert_eq!(
            (0..5).map(|at| part.number(at)).collect::<Vec<_>>(),
            (first - 1..first + 4).collect::<Vec<_>>()
        );
        assert!((0..5).all(|at| part.place(part.number(at)) == Some(at)));
        assert_eq!((part.place(first + 4), part.unknown(3)), (None, start + 1));
        for i in 2..8 {
            let i32 = i as u32;
            assert_eq!(
                part.matrix().row(i),
                (&[i32 - 2, i32, i32 + 2][..], &[-2.0, 4.0, -3.0][..])
            );
        }
        assert!(part.matrix().row(0).0.is_empty() && part.matrix().row(9).0.is_empty());
    }

    #[test]
    fn the_last_block_is_filled_with_rows_of_the_identity() {
        let rows = Csr::new(1, 3, vec![0, 2], vec![0, 2], vec![5.0, 6.0]).unwrap();
        let part = Builder::of_rows(1..2, 2, rows, 0).finish(3).unwrap();
        assert_eq!((part.others(), part.places()), (&[0][..], 1..2));
        assert_eq!(part.matrix().row(2), (&[0, 2][..], &[5.0, 6.0][..]));
        assert_eq!(part.matrix().row(3), (&[3][..], &[1.0][..]));
        let twice = part.with_values(2..3, |v| 2.0 * v);
        assert_eq!(
            (twice.matrix().row(2).1, twice.matrix().row(3).1),
            (&[10.0, 12.0][..], &[1.0][..])
        );
        let none = twice.with_values(2..3, |v| v - 10.0).without_zeros().unwrap();
        assert!(none.others().is_empty() && none.entries() == 2);
        assert_eq!(none.matrix().row(0), (&[0][..], &[2.0][..]));
    }
}
