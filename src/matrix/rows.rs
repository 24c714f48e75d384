//! Matrices whose rows are made independently of each other, on one thread or all.

use super::Csr;
use crate::base::error::{Error, Result};
use crate::base::memory;
use crate::base::threads::Threads;
use crate::matrix::pattern::rows::{Lengths, laid};
use crate::matrix::pattern::{Pattern, inverse_on};

/// Rows that a thread makes at a time.
const CHUNK: usize = 2048;

/// Rows under construction: columns must increase within a row.
#[derive(Default)]
pub struct Rows {
    ends: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Rows {
    /// Puts an entry behind those of the row.
    pub fn push(&mut self, column: u32, value: f64) {
        self.columns.push(column);
        self.values.push(value);
    }
}

impl Csr {
    /// A matrix of `rows` x `cols` of which `row(scratch, i, to)` puts the entries of row i behind
    /// `to`; each thread has a `scratch` of its own. The result does not depend on the threads.
    ///
    /// # Errors
    /// That of the first row which has one; [`crate::base::error::Kind::Memory`] when there are more entries
    /// than indices.
    ///
    /// # Panics
    /// If the columns of a row do not increase or are not below `cols`.
    pub fn by_rows<S, E: From<Error> + Send>(
        threads: Threads,
        [rows, cols]: [usize; 2],
        scratch: impl Fn() -> S + Sync + Send,
        row: impl Fn(&mut S, usize, &mut Rows) -> Result<(), E> + Sync + Send,
    ) -> Result<Self, E> {
        let chunk = |space: &mut S, at: usize| -> Result<Rows, E> {
            let mut made = Rows::default();
            for i in at * CHUNK..((at + 1) * CHUNK).min(rows) {
                let start = made.columns.len();
                row(space, i, &mut made)?;
                let columns = &made.columns[start..];
                let increasing = columns.windows(2).all(|two| two[0] < two[1]);
                assert!(
                    increasing && columns.last().is_none_or(|&j| (j as usize) < cols),
                    "row {i}"
                );
                made.ends.push(made.columns.len() as u32);
            }
            Ok(made)
        };
        let chunks = rows.div_ceil(CHUNK);
        let made: Vec<Result<Rows, E>> = threads.map_with(chunks, 1, scratch, chunk);
        let made = made.into_iter().collect::<Result<Vec<_>, E>>()?;
        Ok(Self::of_chunks(threads, [rows, cols], &made)?)
    }

    /// The rows of `made`, one chunk behind the other.
    fn of_chunks(threads: Threads, [rows, cols]: [usize; 2], made: &[Rows]) -> Result<Self> {
        let entries: usize = made.iter().map(|rows| rows.columns.len()).sum();
        if entries > u32::MAX as usize {
            let message = format!("{entries} entries of a matrix: the limit is {}", u32::MAX);
            return Err(Error::memory(message));
        }
        let mut row_ptr = memory::zeroed::<u32>(rows + 1);
        let (mut base, mut tasks) = (0, Vec::with_capacity(made.len()));
        for (chunk, ends) in made.iter().zip(row_ptr[1..].chunks_mut(CHUNK)) {
            tasks.push((chunk, base, ends));
            base += chunk.columns.len() as u32;
        }
        threads.each(tasks, |(chunk, base, ends): (&Rows, u32, &mut [u32])| {
            ends.iter_mut().zip(&chunk.ends).for_each(|(to, end)| *to = base + end);
        });
        let parallel = threads == Threads::Pool;
        let columns: Vec<&[u32]> = made.iter().map(|chunk| &chunk.columns[..]).collect();
        let values: Vec<&[f64]> = made.iter().map(|chunk| &chunk.values[..]).collect();
        let (columns, values) =
            (memory::joined(&columns, parallel), memory::joined(&values, parallel));
        Ok(Self::checked([rows, cols], row_ptr, columns, values))
    }

    /// A matrix of `cols` columns with the same value in all places of a pattern.
    ///
    /// # Panics
    /// If there is a row with a column that is not below `cols`.
    pub(crate) fn constant(threads: Threads, pattern: Pattern, cols: usize, value: f64) -> Self {
        let rows = pattern.rows();
        let below = |i: usize| pattern.row(i).last().is_none_or(|&j| (j as usize) < cols);
        assert!(threads.all(rows, CHUNK, below), "columns of a pattern");
        let values = threads.map(pattern.entries(), CHUNK, |_| value);
        let (row_ptr, columns) = (pattern.row_ptr.into_owned(), pattern.col_ind.into_owned());
        Self::checked([rows, cols], row_ptr, columns, values)
    }

    /// `value` at column `of[i]` of each row i; rows with `u32::MAX` are empty.
    ///
    /// # Panics
    /// If another column is not below `cols`.
    pub(crate) fn one_each(threads: Threads, of: &[u32], cols: usize, value: f64) -> Self {
        let length = |i: usize| [usize::from(of[i] != u32::MAX)];
        let lengths = Lengths { rows: of.len(), block_size: 1, of: length };
        let [rows] = laid(threads, &lengths, |i, [to]| to.fill(of[i]));
        Self::constant(threads, rows, cols, value)
    }

    /// [`by_rows`](Self::by_rows) with as many rows, columns and blocks as this matrix has.
    ///
    /// # Errors
    /// As [`by_rows`](Self::by_rows).
    ///
    /// # Panics
    /// As [`by_rows`](Self::by_rows).
    pub(crate) fn by_rows_like<S, E: From<Error> + Send>(
        &self,
        threads: Threads,
        scratch: impl Fn() -> S + Sync + Send,
        row: impl Fn(&mut S, usize, &mut Rows) -> Result<(), E> + Sync + Send,
    ) -> Result<Self, E> {
        let made = Self::by_rows(threads, [self.rows(), self.cols()], scratch, row);
        made.map(|made| made.in_blocks(self.block_size()))
    }

    /// The product of two matrices, in blocks if both are in the same; entries in the order of their columns; those that cancel are kept.
    ///
    /// # Errors
    /// When there are more entries than indices.
    ///
    /// # Panics
    /// If the sizes do not fit.
    pub fn times(&self, other: &Self, threads: Threads) -> Result<Self> {
        assert_eq!(self.cols(), other.rows(), "sizes of a product");
        let block_size =
            if self.block_size() == other.block_size() { self.block_size() } else { 1 };
        let size = [self.rows(), other.cols()];
        let made = Self::by_rows(
            threads,
            size,
            || Sums::new(other.cols()),
            |sums, i, to| {
                let (columns, values) = self.row(i);
                for (&p, &v) in columns.iter().zip(values) {
                    sums.add_row(other.row(p as usize), v);
                }
                sums.finish(to);
                Ok(())
            },
        );
        made.map(|made| made.in_blocks(block_size))
    }

    /// The matrix of the entries that `keep(i, j, value)` gives a value.
    #[must_use]
    pub(crate) fn filtered(
        &self,
        threads: Threads,
        keep: impl Fn(usize, usize, f64) -> Option<f64> + Sync + Send,
    ) -> Self {
        let made: Result<Self> = self.by_rows_like(
            threads,
            || (),
            |(), i, to| {
                let (columns, values) = self.row(i);
                for (&j, &v) in columns.iter().zip(values) {
                    if let Some(v) = keep(i, j as usize, v) {
                        to.push(j, v);
                    }
                }
                Ok(())
            },
        );
        made.expect("no more entries than there were")
    }

    /// [`Csr::permuted`] on one thread or all.
    ///
    /// # Panics
    /// If the matrix is not square or `order` no permutation of its rows.
    #[must_use]
    pub(crate) fn permuted_on(&self, threads: Threads, order: &[u32]) -> Self {
        let n = self.rows();
        assert!(self.cols() == n && order.len() == n, "a square matrix and all of its rows");
        let new = inverse_on(threads, order);
        let row = |i: usize| self.row(order[i] as usize);
        Self::gathered(threads, [n, n], row, |j| new[j as usize]).in_blocks(self.block_size())
    }

    /// A matrix of `rows` x `cols`: `row` has the columns of each row, different ones, and their values, and `column`
    /// gives columns their numbers, in any order.
    pub(crate) fn gathered<'a>(
        threads: Threads,
        [rows, cols]: [usize; 2],
        row: impl Fn(usize) -> (&'a [u32], &'a [f64]) + Sync,
        column: impl Fn(u32) -> u32 + Sync,
    ) -> Self {
        let of_chunk = |chunk: usize| chunk * CHUNK..((chunk + 1) * CHUNK).min(rows);
        let count = |chunk| of_chunk(chunk).map(|i| row(i).0.len()).sum::<usize>();
        let counts = threads.map(rows.div_ceil(CHUNK), 1, count);
        let entries = counts.iter().sum();
        let mut row_ptr = memory::zeroed::<u32>(rows + 1);
        let mut columns = memory::zeroed::<u32>(entries);
        let mut values = memory::zeroed::<f64>(entries);
        let (mut tasks, mut start) = (Vec::with_capacity(counts.len()), 0);
        let (mut to_columns, mut to_values) = (&mut columns[..], &mut values[..]);
        for (chunk, ends) in row_ptr[1..].chunks_mut(CHUNK).enumerate() {
            let own_columns =
                to_columns.split_off_mut(..counts[chunk]).expect("as many as counted");
            let own_values = to_values.split_off_mut(..counts[chunk]).expect("as many as counted");
            tasks.push((chunk, start, ends, own_columns, own_values));
            start += counts[chunk];
        }
        threads.each(tasks, |(chunk, start, ends, columns, values)| {
            let (mut moved, mut at) = (Moved::default(), 0);
            for (i, end) in of_chunk(chunk).zip(ends) {
                let (from, of_row) = row(i);
                moved.find(from, &column);
                for &(first, begin, count) in &moved.runs {
                    // mostly few: no copies of slices
                    for k in 0..count {
                        columns[at] = first + k;
                        values[at] = of_row[(begin + k) as usize];
                        at += 1;
                    }
                }
                *end = (start + at) as u32;
            }
        });
        Self::checked([rows, cols], row_ptr, columns, values)
    }
}

/// Where the entries of a row come from when its columns have other numbers.
#[derive(Default)]
struct Moved<'a> {
    columns: &'a [u32],
    /// Columns that stay beside each other, in their new order: the number of the first, its place, and how many.
    runs: Vec<(u32, u32, u32)>,
}

impl<'a> Moved<'a> {
    /// Of a row with these columns, which `column` gives their numbers.
    fn find(&mut self, columns: &'a [u32], column: impl Fn(u32) -> u32) {
        // as the rows of a block
        if columns == self.columns {
            return;
        }
        self.columns = columns;
        self.runs.clear();
        for (at, &j) in (0..).zip(columns) {
            let j = column(j);
            match self.runs.last_mut() {
                Some((first, _, count)) if first.wrapping_add(*count) == j => *count += 1,
                _ => self.runs.push((j, at, 1)),
            }
        }
        if !self.runs.is_sorted() {
            self.runs.sort_unstable();
        }
    }
}

/// Sums of the terms of each column of a row, which come in any order.
pub struct Sums {
    /// Place of each column among the sums, or none.
    place: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Sums {
    /// For so many columns.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        Self { place: vec![u32::MAX; columns], columns: Vec::new(), values: Vec::new() }
    }

    /// Adds a term.
    #[inline]
    pub fn add(&mut self, column: u32, value: f64) {
        let place = &mut self.place[column as usize];
        if let Some(sum) = self.values.get_mut(*place as usize) {
            *sum += value;
            return;
        }
        *place = self.values.len() as u32;
        self.columns.push(column);
        self.values.push(value);
    }

    /// Adds `factor` times a row, of columns and values.
    #[inline]
    pub(crate) fn add_row(&mut self, (columns, values): (&[u32], &[f64]), factor: f64) {
        columns.iter().zip(values).for_each(|(&j, &v)| self.add(j, factor * v));
    }

    /// Puts the sums behind `to` in the order of their columns; then there are none.
    pub fn finish(&mut self, to: &mut Rows) {
        self.columns.sort_unstable();
        for &column in &self.columns {
            let place = std::mem::replace(&mut self.place[column as usize], u32::MAX);
            to.push(column, self.values[place as usize]);
        }
        self.columns.clear();
        self.values.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::inverse;
    use crate::problem::samples::matrix;

    fn random(n: usize, m: usize, seed: u64) -> Csr {
        use rand::{Rng, SeedableRng};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let (mut row_ptr, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for _ in 0..n {
            for j in 0..m {
                if rng.random_range(0..4) == 0 {
                    columns.push(j as u32);
                    values.push(rng.random_range(-1.0..1.0));
                }
            }
            row_ptr.push(columns.len() as u32);
        }
        Csr::new(n, m, row_ptr, columns, values).unwrap()
    }

    #[test]
    fn a_product_is_that_of_the_dense_matrices_on_any_threads() {
        let (a, b) = (random(23, 31, 1), random(31, 17, 2));
        let product = a.times(&b, Threads::One).unwrap();
        assert_eq!(product, a.times(&b, Threads::Pool).unwrap());
        for i in 0..23 {
            for j in 0..17 {
                let of = |m: &Csr, i, j| m.get(i, j).unwrap_or(0.0);
                let want: f64 = (0..31).map(|p| of(&a, i, p) * of(&b, p, j)).sum();
                assert!((of(&product, i, j) - want).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn the_first_row_that_fails_is_told() {
        let fail = |threads| {
            let made: Result<Csr> = Csr::by_rows(
                threads,
                [9000, 1],
                || (),
                |(), i, _| {
                    if i % 3000 == 2999 { Err(Error::input(format!("row {i}"))) } else { Ok(()) }
                },
            );
            made.unwrap_err().to_string()
        };
        assert_eq!([fail(Threads::One), fail(Threads::Pool)], ["row 2999", "row 2999"]);
    }

    #[test]
    fn permutations_move_entries_alike_on_all_threads() {
        let a = random(40, 40, 3);
        let order: Vec<u32> = (0..40).map(|i| (i * 27 + 5) % 40).collect();
        for threads in [Threads::One, Threads::Pool] {
            assert_eq!(a.permuted_on(threads, &order), a.permuted(&order));
        }
        // runs of columns that stay together, on several chunks, rows that share their columns and rows that do not
        let entries = |a: &Csr| {
            let of_row = |i: usize| {
                a.row(i).0.iter().zip(a.row(i).1).map(move |(&j, &v)| (i as u32, j, v.to_bits()))
            };
            (0..a.rows()).flat_map(of_row).collect::<Vec<_>>()
        };
        for spec in ["fem-p1:90x80", "blockpoisson3d:15,b=3"] {
            let a = matrix(spec);
            let n = a.rows() as u32;
            let order: Vec<u32> = (0..n / 3)
                .flat_map(|node| (0..3).map(move |k| node * 1009 % (n / 3) * 3 + k))
                .chain(n / 3 * 3..n)
                .collect();
            let new = inverse(&order);
            let mut want: Vec<_> = entries(&a)
                .into_iter()
                .map(|(i, j, v)| (new[i as usize], new[j as usize], v))
                .collect();
            assert!(n > 2 * CHUNK as u32 && want.len() > 40_000, "{spec}");
            want.sort_unstable();
            assert!(entries(&a.permuted_on(Threads::Pool, &order)) == want);
        }
        let order: Vec<u32> = (0..9001).map(|i| (i * 4 + 7) % 9001).collect();
        assert_eq!(inverse_on(Threads::Pool, &order), inverse(&order));
        assert_eq!(inverse(&[2, 0, 1]), [1, 2, 0]);
    }
}
