//! From entries in the order of the file to CSR.
//!
//! As long as the rows never decrease, entries are appended to the arrays of the matrix at once.
//! Otherwise the rows are split into ranges. Entries are first brought together by range, block
//! by block as they are parsed, then sorted by row within each range: both are stable counting
//! sorts that stay in the cache, so a file sorted by columns needs no comparison sort. Ranges are
//! independent and done in parallel; the result depends on the order of the file alone.
//!
//! Entries that wait to be sorted take 16 bytes each beside the 12 of the matrix. Where there are many
//! and the file can be read again, they are dropped and counted by row instead; the second time every
//! entry goes to its place at once.

use rayon::prelude::*;

use crate::error::Result;
use crate::matrix::Csr;
use crate::memory;

use super::entries::Entry;

/// Entries a range should hold on average: 16 bytes each, about one second-level cache.
const RANGE: usize = 1 << 15;
/// Most ranges, which bounds the counters of the first pass.
const RANGES: usize = 1 << 10;
/// Rows up to this length are sorted by insertion.
const SHORT: usize = 24;
/// Rows below which empty ones are not worth a question (64 MiB of row pointers).
const FEW_ROWS: usize = 1 << 24;

/// How the rows are split into ranges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranges {
    /// A range holds `2^shift` rows.
    shift: u32,
    count: usize,
}

impl Ranges {
    /// Ranges for a matrix of `rows` rows (at least 1) and about `entries` entries.
    pub(super) fn new(rows: usize, entries: usize) -> Self {
        let count = (entries / RANGE).clamp(1, RANGES);
        let shift = rows.div_ceil(count).next_power_of_two().trailing_zeros();
        Self { shift, count: ((rows - 1) >> shift) + 1 }
    }

    fn of(self, entry: &Entry) -> usize {
        // as a usize: beyond 2^31 rows one range takes a shift by all 32 bits
        entry.row as usize >> self.shift
    }
}

/// Entries of consecutive lines.
#[derive(Debug)]
pub(super) struct Part {
    /// In the order of the file within each range.
    entries: Vec<Entry>,
    /// Start of each range in `entries`, and their end; empty when the rows never decrease.
    starts: Vec<usize>,
}

impl Part {
    /// Takes `entries` in the order of the file.
    pub(super) fn new(entries: Vec<Entry>, ranges: Ranges) -> Self {
        if entries.is_sorted_by(|a, b| a.row <= b.row) {
            return Self { entries, starts: Vec::new() };
        }
        let mut starts = vec![0; ranges.count + 1];
        for e in &entries {
            starts[ranges.of(e) + 1] += 1;
        }
        for r in 0..ranges.count {
            starts[r + 1] += starts[r];
        }
        let mut next = starts.clone();
        let mut together = vec![Entry::default(); entries.len()];
        for e in &entries {
            let to = &mut next[ranges.of(e)];
            together[*to] = *e;
            *to += 1;
        }
        Self { entries: together, starts }
    }

    /// Makes sure that `starts` is there.
    fn locate(&mut self, ranges: Ranges) {
        if self.starts.is_empty() {
            let start = |r: usize| self.entries.partition_point(|e| ranges.of(e) < r);
            self.starts = (0..=ranges.count).map(start).collect();
        }
    }

    fn range(&self, r: usize) -> &[Entry] {
        &self.entries[self.starts[r]..self.starts[r + 1]]
    }
}

/// A matrix in the making.
pub(super) struct Assembly {
    rows: usize,
    cols: usize,
    ranges: Ranges,
    entries: usize,
    in_order: InOrder,
    /// Everything since the rows first decreased.
    parts: Vec<Part>,
    /// Entries out of order that are kept at most.
    most: usize,
    /// Entries of each row, where there were more.
    counts: Option<Vec<u32>>,
}

/// What a file gave.
pub(super) enum Assembled {
    /// The matrix, and how many entries of the file were added to earlier ones of the same place.
    Matrix(Csr, usize),
    /// Only the entries of each row: the file has to be read again.
    Counted(Counted),
}

/// A matrix in the making of which the rows are known.
pub(super) struct Counted {
    cols: usize,
    row_ptr: Vec<u32>,
    /// Where the next entry of each row goes.
    next: Vec<u32>,
    col_ind: Vec<u32>,
    values: Vec<f64>,
}

/// The rows so far of a file sorted by rows.
#[derive(Default)]
struct InOrder {
    /// Starts of the rows begun.
    row_ptr: Vec<u32>,
    col_ind: Vec<u32>,
    values: Vec<f64>,
}

impl InOrder {
    /// Appends `part` if it continues the order; hands it back if not.
    fn append(&mut self, part: Part) -> Option<Part> {
        let (first, last) = (part.entries.first()?.row as usize, part.entries.last()?.row as usize);
        let backed = last / 16 <= self.col_ind.len() + FEW_ROWS;
        if !part.starts.is_empty() || first + 1 < self.row_ptr.len() || !backed {
            return Some(part);
        }
        for e in &part.entries {
            while self.row_ptr.len() <= e.row as usize {
                self.row_ptr.push(self.col_ind.len() as u32);
            }
            self.col_ind.push(e.col);
            self.values.push(e.value);
        }
        None
    }

    /// Adds the entries of each row to `counts`.
    fn count_rows(&self, counts: &mut [u32]) {
        let end = self.col_ind.len() as u32;
        let ends = self.row_ptr.iter().copied().skip(1).chain([end]);
        for ((count, start), end) in counts.iter_mut().zip(&self.row_ptr).zip(ends) {
            *count += end - start;
        }
    }

    /// The same entries one by one.
    fn into_part(self) -> Part {
        let end = self.col_ind.len() as u32;
        let ends = self.row_ptr.iter().copied().skip(1).chain([end]);
        let rows = self.row_ptr.iter().zip(ends).enumerate();
        let rows = rows.flat_map(|(i, (&start, end))| (start..end).map(move |_| i as u32));
        let entries = rows.zip(self.col_ind).zip(self.values);
        let entries = entries.map(|((row, col), value)| Entry { row, col, value }).collect();
        Part { entries, starts: Vec::new() }
    }
}

impl Assembly {
    /// An empty matrix with room for `capacity` entries in order.
    /// Beyond `most` entries out of order the file is only counted.
    pub(super) fn new(
        [rows, cols]: [usize; 2],
        ranges: Ranges,
        capacity: usize,
        most: usize,
    ) -> Self {
        let in_order = InOrder {
            row_ptr: Vec::new(),
            col_ind: memory::with_capacity(capacity),
            values: memory::with_capacity(capacity),
        };
        Self { rows, cols, ranges, entries: 0, in_order, parts: Vec::new(), most, counts: None }
    }

    /// Entries so far, duplicates included.
    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    /// Whether row pointers would take far more memory than the entries.
    pub(super) fn is_nearly_empty(&self) -> bool {
        self.rows > FEW_ROWS && self.rows / 16 > self.entries
    }

    /// Adds the next lines of the file.
    pub(super) fn add(&mut self, part: Part) {
        self.entries += part.entries.len();
        if let Some(counts) = &mut self.counts {
            return count_rows(counts, &part);
        }
        let rest = if self.parts.is_empty() { self.in_order.append(part) } else { Some(part) };
        let Some(part) = rest else { return };
        let before = std::mem::take(&mut self.in_order);
        if self.entries > self.most && !self.is_nearly_empty() {
            let mut counts = vec![0; self.rows];
            before.count_rows(&mut counts);
            self.parts.iter().for_each(|part| count_rows(&mut counts, part));
            count_rows(&mut counts, &part);
            (self.parts, self.counts) = (Vec::new(), Some(counts));
            return;
        }
        if !before.row_ptr.is_empty() {
            self.parts.push(before.into_part());
        }
        self.parts.push(part);
    }

    /// The matrix, unless there were too many entries out of order; `mirrored` says that those above
    /// the diagonal are not in the file.
    pub(super) fn finish(self, mirrored: bool) -> Result<Assembled> {
        let (rows, cols) = (self.rows, self.cols);
        if let Some(counts) = self.counts {
            return Ok(Assembled::Counted(Counted::new(cols, &counts, self.entries)));
        }
        let ((mut row_ptr, mut col_ind, mut values), repeated) = if self.parts.is_empty() {
            finish_in_order(rows, self.in_order)
        } else {
            merge(rows, self.entries, self.parts, self.ranges)
        };
        let mut summed = 0;
        if repeated {
            sum_duplicates(&mut row_ptr, &mut col_ind, &mut values, |row, col| {
                summed += usize::from(!mirrored || col <= row);
            });
        }
        let matrix = Csr::new(rows, cols, row_ptr, col_ind, values)?;
        Ok(Assembled::Matrix(matrix, summed))
    }
}

fn count_rows(counts: &mut [u32], part: &Part) {
    for e in &part.entries {
        counts[e.row as usize] += 1;
    }
}

impl Counted {
    fn new(cols: usize, counts: &[u32], entries: usize) -> Self {
        let mut row_ptr = Vec::with_capacity(counts.len() + 1);
        row_ptr.push(0);
        let mut end = 0;
        row_ptr.extend(counts.iter().map(|count| {
            end += count;
            end
        }));
        let next = row_ptr[..counts.len()].to_vec();
        Self { cols, row_ptr, next, col_ind: zeros(entries), values: zeros(entries) }
    }

    /// Puts the next lines of the file in their places; `false` when they are not those that were
    /// counted.
    pub(super) fn add(&mut self, part: &Part) -> bool {
        for e in &part.entries {
            let row = e.row as usize;
            let at = self.next[row];
            if at == self.row_ptr[row + 1] {
                return false;
            }
            (self.col_ind[at as usize], self.values[at as usize]) = (e.col, e.value);
            self.next[row] = at + 1;
        }
        true
    }

    /// The matrix and how many entries were added to earlier ones, as [`Assembly::finish`]; nothing
    /// when entries that were counted have not come.
    pub(super) fn finish(self, mirrored: bool) -> Result<Option<(Csr, usize)>> {
        let Self { cols, row_ptr, next, col_ind, values } = self;
        if next[..] != row_ptr[1..] {
            return Ok(None);
        }
        drop(next);
        let rows = row_ptr.len() - 1;
        let in_order = InOrder { row_ptr, col_ind, values };
        let ((mut row_ptr, mut col_ind, mut values), repeated) = finish_in_order(rows, in_order);
        let mut summed = 0;
        if repeated {
            sum_duplicates(&mut row_ptr, &mut col_ind, &mut values, |row, col| {
                summed += usize::from(!mirrored || col <= row);
            });
        }
        Ok(Some((Csr::new(rows, cols, row_ptr, col_ind, values)?, summed)))
    }
}

type Arrays = (Vec<u32>, Vec<u32>, Vec<f64>);

/// Sorts the rows by column; yields whether entries share a place.
fn finish_in_order(rows: usize, matrix: InOrder) -> (Arrays, bool) {
    let InOrder { mut row_ptr, mut col_ind, mut values } = matrix;
    row_ptr.resize(rows + 1, col_ind.len() as u32);
    col_ind.shrink_to_fit();
    values.shrink_to_fit();
    let (mut cols, mut vals) = (&mut col_ind[..], &mut values[..]);
    let mut pieces = Vec::new();
    for starts in row_ptr.chunks(RANGE) {
        // the end of the last row of a piece is the start of the next
        let next = pieces.len() * RANGE + starts.len();
        let size = row_ptr[next.min(rows)] - starts[0];
        let (cols_here, vals_here);
        (cols_here, cols) = cols.split_at_mut(size as usize);
        (vals_here, vals) = vals.split_at_mut(size as usize);
        pieces.push((&row_ptr[next - starts.len()..=next.min(rows)], cols_here, vals_here));
    }
    let sort = |(ptr, cols, vals): (&[u32], &mut [u32], &mut [f64])| -> bool {
        let row = |w: &[u32]| (w[0] - ptr[0]) as usize..(w[1] - ptr[0]) as usize;
        ptr.windows(2).fold(false, |any, w| any | sort_row(&mut cols[row(w)], &mut vals[row(w)]))
    };
    let repeated = pieces.into_par_iter().map(sort).reduce(|| false, |a, b| a | b);
    ((row_ptr, col_ind, values), repeated)
}

/// Zeros on huge pages where the system grants them.
fn zeros<T: Clone + Default>(count: usize) -> Vec<T> {
    let mut zeros = memory::with_capacity(count);
    zeros.resize(count, T::default());
    zeros
}

/// Brings the parts together; yields whether entries share a place.
fn merge(rows: usize, entries: usize, mut parts: Vec<Part>, ranges: Ranges) -> (Arrays, bool) {
    parts.par_iter_mut().for_each(|p| p.locate(ranges));
    let mut row_ptr = vec![0_u32; rows + 1];
    let mut col_ind = zeros(entries);
    let mut values = zeros(entries);
    let outputs = split(&parts, ranges, &mut row_ptr[1..], &mut col_ind, &mut values);
    let fill = |mut out: Output| out.fill(&parts);
    let repeated = outputs.into_par_iter().map(fill).reduce(|| false, |a, b| a | b);
    ((row_ptr, col_ind, values), repeated)
}

/// Where the rows of one range go.
struct Output<'a> {
    range: usize,
    first_row: u32,
    /// Entries of the ranges before.
    base: u32,
    /// Ends of the rows.
    ends: &'a mut [u32],
    cols: &'a mut [u32],
    values: &'a mut [f64],
}

/// Cuts the arrays of the matrix at the limits of the ranges.
fn split<'a>(
    parts: &[Part],
    ranges: Ranges,
    mut ends: &'a mut [u32],
    mut cols: &'a mut [u32],
    mut values: &'a mut [f64],
) -> Vec<Output<'a>> {
    let mut outputs = Vec::with_capacity(ranges.count);
    let mut base = 0;
    for range in 0..ranges.count {
        let size: usize = parts.iter().map(|p| p.range(range).len()).sum();
        let rows = ends.len().min(1 << ranges.shift);
        let (ends_here, cols_here, values_here);
        (ends_here, ends) = ends.split_at_mut(rows);
        (cols_here, cols) = cols.split_at_mut(size);
        (values_here, values) = values.split_at_mut(size);
        outputs.push(Output {
            range,
            first_row: (range << ranges.shift) as u32,
            base,
            ends: ends_here,
            cols: cols_here,
            values: values_here,
        });
        base += size as u32;
    }
    outputs
}

impl Output<'_> {
    /// Sorts the entries of this range by row and column; yields whether some share a
    /// place.
    fn fill(&mut self, parts: &[Part]) -> bool {
        let entries = || parts.iter().flat_map(|p| p.range(self.range));
        for e in entries() {
            self.ends[(e.row - self.first_row) as usize] += 1;
        }
        let mut start = 0;
        for end in self.ends.iter_mut() {
            (*end, start) = (start, start + *end);
        }
        for e in entries() {
            let to = &mut self.ends[(e.row - self.first_row) as usize];
            self.cols[*to as usize] = e.col;
            self.values[*to as usize] = e.value;
            *to += 1;
        }
        let (mut start, mut repeated) = (0, false);
        for end in self.ends.iter_mut() {
            let row = start..*end as usize;
            start = row.end;
            *end += self.base;
            repeated |= sort_row(&mut self.cols[row.clone()], &mut self.values[row]);
        }
        repeated
    }
}

/// Sorts one row by column, entries of the same column in their order; yields whether there are
/// some.
fn sort_row(cols: &mut [u32], values: &mut [f64]) -> bool {
    if cols.is_sorted_by(|a, b| a < b) {
        return false;
    }
    if cols.len() <= SHORT {
        for i in 1..cols.len() {
            let (col, value) = (cols[i], values[i]);
            let mut to = i;
            while to > 0 && cols[to - 1] > col {
                cols[to] = cols[to - 1];
                values[to] = values[to - 1];
                to -= 1;
            }
            (cols[to], values[to]) = (col, value);
        }
    } else if !cols.is_sorted() {
        let mut row: Vec<(u32, f64)> = cols.iter().copied().zip(values.iter().copied()).collect();
        row.sort_by_key(|e| e.0);
        for ((col, value), e) in cols.iter_mut().zip(values).zip(row) {
            (*col, *value) = e;
        }
    }
    cols.windows(2).any(|c| c[0] == c[1])
}

/// Adds neighbouring entries of the same place, in their order; tells `at` the row and column of
/// each that was added to another.
fn sum_duplicates(
    row_ptr: &mut [u32],
    cols: &mut Vec<u32>,
    values: &mut Vec<f64>,
    mut at: impl FnMut(u32, u32),
) {
    let (mut kept, mut start) = (0, 0);
    for (row, end) in row_ptr[1..].iter_mut().enumerate() {
        let row_start = kept;
        for k in start..*end as usize {
            if kept > row_start && cols[kept - 1] == cols[k] {
                values[kept - 1] += values[k];
                at(row as u32, cols[k]);
            } else {
                (cols[kept], values[kept]) = (cols[k], values[k]);
                kept += 1;
            }
        }
        start = *end as usize;
        *end = kept as u32;
    }
    cols.truncate(kept);
    values.truncate(kept);
}
