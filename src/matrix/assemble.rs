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
//!
//! Entries of one place are added up on the way where there are many, so that a file of duplicates takes
//! no more memory than the matrix that it stands for. What does not fit in memory is an error.

mod part;
mod sort;

use crate::base::error::{Error, Result};
use crate::base::measure::{check_memory, memory_free};
use crate::base::memory;
use crate::matrix::Csr;

use part::mostly_repeated;
pub(super) use part::{Entry, Part, Ranges};
use sort::{finish_in_order, merge, sort_rows, sum_duplicates, zeros};

/// Most entries: their indices have 32 bits.
pub(super) const LARGEST: usize = u32::MAX as usize;
/// Bytes of an entry in the arrays of a matrix.
pub(super) const OF_AN_ENTRY: usize = 12;
/// Entries in memory after which duplicates are looked for: 96 MiB in the arrays of a matrix.
pub(super) const MANY: usize = 8 << 20;
/// Entries for which there has to be room whenever room is looked for.
const STEP: usize = 1 << 20;
/// Rows below which empty ones are not worth a question (64 MiB of row pointers).
const FEW_ROWS: usize = 1 << 24;

/// What is known of a matrix before its entries come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Rows and columns.
    pub(super) size: [usize; 2],
    /// Number of the first of these rows in the file.
    pub(super) first: u32,
    pub(super) ranges: Ranges,
    /// Entries in order to make room for.
    pub(super) capacity: usize,
    /// Whether entries above the diagonal are added that are not in the file.
    pub(super) mirrored: bool,
    /// Entries out of order that are kept where the file can be read again.
    pub(super) most: Option<usize>,
    /// Entries in memory after which duplicates are looked for.
    pub(super) many: usize,
}

/// A matrix in the making.
pub(super) struct Assembly {
    plan: Plan,
    in_order: InOrder,
    /// Everything since the rows first decreased.
    parts: Vec<Part>,
    /// Entries in `parts`.
    waiting: usize,
    /// How many entries may be in memory before something has to be done about it.
    limit: usize,
    /// Entries of the file that were added to earlier ones.
    summed: usize,
    /// Entries of each row and of all, where there were too many out of order.
    counts: Option<(Vec<u32>, usize)>,
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
    mirrored: bool,
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
    /// Rows that are sorted and without duplicates.
    settled: usize,
}

impl InOrder {
    fn new(capacity: usize) -> Result<Self> {
        let (col_ind, values) = arrays(capacity)?;
        Ok(Self { col_ind, values, ..Self::default() })
    }

    /// Appends `part` if it continues the order; hands it back if not.
    fn append(&mut self, part: Part) -> Result<Option<Part>> {
        let (Some(first), Some(last)) = (part.entries.first(), part.entries.last()) else {
            return Ok(None);
        };
        let (first, last) = (first.row as usize, last.row as usize);
        let backed = last / 16 <= self.col_ind.len() + FEW_ROWS;
        if !part.starts.is_empty() || first + 1 < self.row_ptr.len() || !backed {
            return Ok(Some(part));
        }
        let more = part.entries.len();
        let room = self.col_ind.try_reserve(more).and_then(|()| self.values.try_reserve(more));
        room.map_err(|_| refused(self.col_ind.len() + more))?;
        for e in &part.entries {
            while self.row_ptr.len() <= e.row as usize {
                self.row_ptr.push(self.col_ind.len() as u32);
            }
            self.col_ind.push(e.col);
            self.values.push(e.value);
        }
        Ok(None)
    }

    /// Sorts the rows that came since the last time and adds up their duplicates; tells `at` of these.
    fn settle(&mut self, at: impl FnMut(u32, u32)) {
        let Self { row_ptr, col_ind, values, settled } = self;
        let Some(last) = row_ptr.len().checked_sub(1) else { return };
        row_ptr.push(col_ind.len() as u32);
        let new = &mut row_ptr[*settled..];
        let start = new[0] as usize;
        if sort_rows(new, &mut col_ind[start..], &mut values[start..]) {
            sum_duplicates(*settled, new, col_ind, values, at);
        }
        row_ptr.pop();
        // to this one more entries may come
        *settled = last;
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
    /// An empty matrix.
    ///
    /// # Errors
    /// When there is no memory for the entries of `plan`.
    pub(super) fn new(plan: Plan) -> Result<Self> {
        Ok(Self {
            plan,
            in_order: InOrder::new(plan.capacity)?,
            parts: Vec::new(),
            waiting: 0,
            limit: plan.many,
            summed: 0,
            counts: None,
        })
    }

    /// Entries so far, without those that were added to earlier ones already.
    pub(super) fn entries(&self) -> usize {
        let counted = self.counts.as_ref().map_or(0, |(_, all)| *all);
        self.in_order.col_ind.len() + self.waiting + counted
    }

    /// Adds the next lines of the file.
    ///
    /// # Errors
    /// When there is no memory for them, or indices of 32 bits do not reach them.
    pub(super) fn add(&mut self, part: Part) -> Result<()> {
        let more = part.entries.len();
        if self.counts.is_none() && self.entries() + more > self.limit.min(LARGEST) {
            self.condense()?;
        }
        let entries = self.entries() + more;
        if entries > LARGEST {
            return Err(Error::input(format!("{entries} entries: the limit is {LARGEST}")));
        }
        if let Some((counts, all)) = &mut self.counts {
            part.count_rows(counts);
            *all += more;
            return Ok(());
        }
        let rest = if self.parts.is_empty() { self.in_order.append(part)? } else { Some(part) };
        let Some(part) = rest else { return Ok(()) };
        let before = std::mem::take(&mut self.in_order);
        // what has been added up cannot be counted
        let counts = self.plan.most.is_some_and(|most| entries > most) && self.summed == 0;
        if counts && !is_nearly_empty(self.plan.size[0], entries) {
            return self.count(&before, &part);
        }
        if !before.row_ptr.is_empty() {
            self.wait(before.into_part());
        }
        self.wait(part);
        Ok(())
    }

    fn wait(&mut self, part: Part) {
        self.waiting += part.entries.len();
        self.parts.push(part);
    }

    /// Adds up what duplicates there are, and sets the limit at which to do so again.
    ///
    /// # Errors
    /// When there is no memory for more entries.
    fn condense(&mut self) -> Result<()> {
        let (Plan { mirrored, first, .. }, summed) = (self.plan, &mut self.summed);
        let count = |row, col| *summed += usize::from(!mirrored || col <= row + first);
        if self.parts.is_empty() {
            self.in_order.settle(count);
        } else if mostly_repeated(&mut self.parts, self.plan.ranges) {
            let parts = std::mem::take(&mut self.parts);
            let rows = self.plan.size[0];
            let merged = merge(rows, self.waiting, parts, self.plan.ranges)?;
            let ((mut row_ptr, mut col_ind, mut values), _) = merged;
            sum_duplicates(0, &mut row_ptr, &mut col_ind, &mut values, count);
            row_ptr.pop();
            col_ind.shrink_to_fit();
            values.shrink_to_fit();
            self.waiting = col_ind.len();
            let one = InOrder { row_ptr, col_ind, values, settled: 0 };
            self.parts.push(one.into_part());
        }
        let entries = self.entries();
        // those out of order have to be sorted in the end
        let (each, at_end) = if self.parts.is_empty() {
            (OF_AN_ENTRY, 0)
        } else {
            (size_of::<Entry>() + OF_AN_ENTRY, OF_AN_ENTRY * entries)
        };
        let in_arrays = self.in_order.col_ind.capacity() - self.in_order.col_ind.len();
        let room = in_arrays.max(memory_free().saturating_sub(at_end) / each);
        if room < STEP {
            let needed = at_end + each * (entries + STEP);
            return Err(no_memory(needed, memory_free()));
        }
        self.limit = self.plan.many.max(2 * entries).min(entries.saturating_add(room));
        Ok(())
    }

    /// From now on only the entries of each row are counted.
    fn count(&mut self, before: &InOrder, part: &Part) -> Result<()> {
        check_memory(4 * self.plan.size[0])?;
        let mut counts = vec![0; self.plan.size[0]];
        before.count_rows(&mut counts);
        let parts = std::mem::take(&mut self.parts);
        for part in &parts {
            part.count_rows(&mut counts);
        }
        part.count_rows(&mut counts);
        let all = self.waiting + before.col_ind.len() + part.entries.len();
        (self.waiting, self.counts) = (0, Some((counts, all)));
        Ok(())
    }

    /// The matrix, unless there were too many entries out of order.
    pub(super) fn finish(mut self) -> Result<Assembled> {
        let Plan { size: [rows, cols], first, mirrored, ranges, .. } = self.plan;
        if let Some((counts, all)) = self.counts {
            return Counted::new(cols, &counts, all, mirrored).map(Assembled::Counted);
        }
        let ((mut row_ptr, mut col_ind, mut values), repeated) = if self.parts.is_empty() {
            finish_in_order(rows, self.in_order)
        } else {
            merge(rows, self.waiting, self.parts, ranges)?
        };
        if repeated {
            sum_duplicates(0, &mut row_ptr, &mut col_ind, &mut values, |row, col| {
                self.summed += usize::from(!mirrored || col <= row + first);
            });
        }
        let matrix = Csr::new(rows, cols, row_ptr, col_ind, values)?;
        Ok(Assembled::Matrix(matrix, self.summed))
    }
}

/// Whether row pointers would take far more memory than the entries.
fn is_nearly_empty(rows: usize, entries: usize) -> bool {
    rows > FEW_ROWS && rows / 16 > entries
}

/// Refuses a matrix that [`is_nearly_empty`].
pub(super) fn check_nearly_empty(rows: usize, entries: usize) -> Result<()> {
    if !is_nearly_empty(rows, entries) {
        return Ok(());
    }
    let entries = counted(entries, "entry", "entries");
    Err(Error::input(format!("{rows} rows but only {entries}"))
        .hint("nearly every row would be empty"))
}

/// Row and column of the first entry that is not finite.
pub(super) fn infinite(matrix: &Csr) -> Option<[u32; 2]> {
    let at = matrix.values().iter().position(|v| !v.is_finite())?;
    let row = matrix.row_ptr().partition_point(|&start| start as usize <= at) - 1;
    Some([row as u32, matrix.col_ind()[at]])
}

/// The error of entries whose sum is not finite; row and column from 0.
pub(super) fn too_large([row, col]: [u32; 2]) -> Error {
    let message =
        format!("the entries at ({}, {}) add up to more than float64 holds", row + 1, col + 1);
    Error::input(message).hint("entries of one place are summed; is one of them wrong?")
}

/// The remark on so many entries that were added to earlier ones.
pub(crate) fn summed(entries: usize) -> Option<String> {
    let counted = counted(entries, "duplicate entry", "duplicate entries");
    (entries > 0).then(|| format!("{counted} summed"))
}

fn counted(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// That there is no memory for the entries.
fn no_memory(needed: usize, free: usize) -> Error {
    let gb = |bytes: usize| bytes as f64 / 1e9;
    let (needed, free) = (gb(needed), gb(free));
    Error::memory(format!(
        "the entries take {needed:.1} GB and more, but only {free:.1} GB of memory are free"
    ))
}

/// Empty arrays with room for so many entries.
fn arrays(capacity: usize) -> Result<(Vec<u32>, Vec<f64>)> {
    let (col_ind, values) =
        (memory::try_with_capacity(capacity), memory::try_with_capacity(capacity));
    col_ind.zip(values).ok_or_else(|| refused(capacity))
}

/// That the system gives no memory for so many entries.
fn refused(entries: usize) -> Error {
    let gb = (OF_AN_ENTRY * entries) as f64 / 1e9;
    Error::memory(format!("the system refused {gb:.1} GB for the entries"))
}

impl Counted {
    fn new(cols: usize, counts: &[u32], entries: usize, mirrored: bool) -> Result<Self> {
        check_memory(OF_AN_ENTRY * entries + 8 * counts.len())?;
        let mut row_ptr = Vec::with_capacity(counts.len() + 1);
        row_ptr.push(0);
        let mut end = 0;
        row_ptr.extend(counts.iter().map(|count| {
            end += count;
            end
        }));
        let next = row_ptr[..counts.len()].to_vec();
        let (col_ind, values) = zeros(entries)?;
        Ok(Self { cols, mirrored, row_ptr, next, col_ind, values })
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
    pub(super) fn finish(self) -> Result<Option<(Csr, usize)>> {
        let Self { cols, mirrored, row_ptr, next, col_ind, values } = self;
        if next[..] != row_ptr[1..] {
            return Ok(None);
        }
        drop(next);
        let rows = row_ptr.len() - 1;
        let in_order = InOrder { row_ptr, col_ind, values, settled: 0 };
        let ((mut row_ptr, mut col_ind, mut values), repeated) = finish_in_order(rows, in_order);
        let mut summed = 0;
        if repeated {
            sum_duplicates(0, &mut row_ptr, &mut col_ind, &mut values, |row, col| {
                summed += usize::from(!mirrored || col <= row);
            });
        }
        Ok(Some((Csr::new(rows, cols, row_ptr, col_ind, values)?, summed)))
    }
}
