//! Patterns whose rows are found independently of each other, on one thread or several.

#![allow(unsafe_code, reason = "threads that write disjoint parts")]

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::repeats::repeats;
use super::{Pattern, TooLarge};
use crate::base::memory;
use crate::base::threads::Threads;

/// Columns in `N` parts (such as left and right of the diagonal), row behind row.
pub(crate) type Columns<const N: usize> = [Vec<u32>; N];

/// Consecutive rows that a thread finds at a time: few enough to stay in its cache.
const CHUNK: usize = 512;
/// Chunks of each thread between two gatherings, where all threads wait for the last: many, since
/// a thread that shares its core with others may be late by milliseconds.
const TURNS: usize = 32;
/// Turns become longer by this factor while rows are stored this many times smaller than they are.
const COMPACT: usize = 8;
/// Columns that a thread finds before the others hear of it.
const UNTOLD: usize = 1 << 12;
/// Rows from which the size of a pattern is guessed.
const SAMPLES: usize = 256;

/// What one call of [`find`] is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    /// Number of rows.
    pub(crate) rows: usize,
    /// Unknowns per block of what is found.
    pub(crate) block_size: usize,
    /// Who finds them.
    pub(crate) threads: Threads,
    /// Entries that there are already, of other parts of the same pattern.
    pub(crate) before: usize,
    /// Entries that there may be together.
    pub(crate) limit: usize,
}

impl Task {
    /// To find as many rows of blocks of the same size as `p` has.
    pub(crate) fn like(p: &Pattern, threads: Threads, limit: usize) -> Self {
        Self { rows: p.rows(), block_size: p.block_size(), threads, before: 0, limit }
    }
}

/// Patterns of `N` parts of the rows: `row` appends the columns of row i to each part, given the
/// scratch of its thread. The result does not depend on the number of threads.
///
/// # Errors
/// [`TooLarge`] with the first row that passes the limit.
pub(crate) fn find<const N: usize, S: Send>(
    task: Task,
    scratch: impl Fn() -> S,
    row: impl Fn(&mut S, usize, &mut Columns<N>) + Sync,
) -> Result<[Pattern<'static>; N], TooLarge> {
    find_runs(task, scratch, |space, rows, _, out| {
        row(space, rows.start, out);
        0
    })
}

/// [`find`] for a `run` that appends the first row of a range and returns 0, or returns how many of the range, from its
/// first on, repeat the row before them, which are then appended. It is told whether that row is there.
///
/// # Errors
/// As [`find`].
pub(crate) fn find_runs<const N: usize, S: Send>(
    task: Task,
    scratch: impl Fn() -> S,
    run: impl Fn(&mut S, Range<usize>, bool, &mut Columns<N>) -> usize + Sync,
) -> Result<[Pattern<'static>; N], TooLarge> {
    let threads = match task.threads {
        Threads::Pool if task.rows > CHUNK => rayon::current_num_threads(),
        _ => 1,
    };
    let mut spaces: Vec<Mutex<S>> = (0..threads).map(|_| Mutex::new(scratch())).collect();
    let first_space = spaces[0].get_mut().unwrap_or_else(PoisonError::into_inner);
    let sizes = guess(task.rows, first_space, &run);
    let mut found = Growing::new(task.rows, sizes, task.before, task.limit);
    let mut done = 0;
    if threads > 1 {
        let mut chunks: Vec<Chunk<N>> = Vec::new();
        let mut turn = threads * TURNS;
        while done < task.rows {
            let used = (task.rows - done).div_ceil(CHUNK).min(turn);
            chunks.resize_with(used.max(chunks.len()), Chunk::default);
            if !find_chunks(&mut chunks[..used], done..task.rows, found.room(), &spaces, &run) {
                break; // row by row, to see which one is too many
            }
            if found.append(&chunks[..used]) {
                turn *= COMPACT;
            }
            done = (done + used * CHUNK).min(task.rows);
        }
    }
    let space = spaces[0].get_mut().unwrap_or_else(PoisonError::into_inner);
    while done < task.rows {
        let next = (done + CHUNK).min(task.rows);
        let count = run(space, done..next, done > 0, &mut found.columns);
        if count == 0 {
            found.end_row()?;
        } else {
            found.repeat(count)?;
        }
        done += count.max(1);
    }
    Ok(found.finish(task.block_size))
}

/// Rows whose lengths are known beforehand.
pub(crate) struct Lengths<F> {
    /// Number of rows.
    pub(crate) rows: usize,
    /// Unknowns per block.
    pub(crate) block_size: usize,
    /// Columns of row i in each part.
    pub(crate) of: F,
}

/// Patterns of `N` parts of such rows, of less than 2^32 columns, which `row` writes where they belong.
pub(crate) fn laid<const N: usize>(
    threads: Threads,
    lengths: &Lengths<impl Fn(usize) -> [usize; N] + Sync>,
    row: impl Fn(usize, [&mut [u32]; N]) + Sync,
) -> [Pattern<'static>; N] {
    /// Rows of a task.
    const PART: usize = 1 << 13;
    let parts = lengths.rows.div_ceil(PART);
    let rows = |part: usize| part * PART..((part + 1) * PART).min(lengths.rows);
    let sum = |part: usize| {
        let add = |sum: [usize; N], i| {
            let more = (lengths.of)(i);
            std::array::from_fn(|n| sum[n] + more[n])
        };
        rows(part).fold([0; N], add)
    };
    let sums = threads.map(parts, 1, sum);
    let mut row_ptr: Columns<N> = std::array::from_fn(|_| memory::zeroed(lengths.rows + 1));
    let all = |n: usize| sums.iter().map(|sum| sum[n]).sum::<usize>();
    let mut columns: Columns<N> = std::array::from_fn(|n| memory::zeroed(all(n)));
    // the end of a row is the start of the next
    let mut ends = row_ptr.each_mut().map(|ptr| ptr[1..].chunks_mut(PART));
    let mut left = columns.each_mut().map(|columns| &mut columns[..]);
    let mut start = [0; N];
    let mut tasks = Vec::with_capacity(parts);
    for (part, sum) in sums.iter().enumerate() {
        let own: [&mut [u32]; N] = std::array::from_fn(|n| {
            let (own, behind) = std::mem::take(&mut left[n]).split_at_mut(sum[n]);
            left[n] = behind;
            own
        });
        let ends = ends.each_mut().map(|ends| ends.next().expect("as many as there are parts"));
        tasks.push((part, start, ends, own));
        (0..N).for_each(|n| start[n] += sum[n]);
    }
    let task =
        |(part, mut at, mut ends, mut own): (_, [usize; N], [&mut [u32]; N], [&mut [u32]; N])| {
            for (number, i) in rows(part).enumerate() {
                let length = (lengths.of)(i);
                let to = std::array::from_fn(|n| {
                    let (to, behind) = std::mem::take(&mut own[n]).split_at_mut(length[n]);
                    own[n] = behind;
                    at[n] += length[n];
                    ends[n][number] = at[n] as u32;
                    to
                });
                row(i, to);
            }
        };
    threads.each(tasks, task);
    let mut ptr = row_ptr.into_iter();
    columns.map(|columns| {
        let row_ptr = ptr.next().unwrap_or_default();
        Pattern::new(row_ptr, columns).in_blocks(lengths.block_size)
    })
}

/// `count` of `rows` rows, at multiples of the golden section: at those of a round number all may lie at a face of a
/// grid, or be the first of a cell.
pub(crate) fn sample(rows: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count as u64).map(move |sample| {
        let part = sample.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(part) * rows as u128) >> 64) as usize
    })
}

/// About how many columns each part will hold, from a sample of rows.
fn guess<const N: usize, S>(
    rows: usize,
    space: &mut S,
    run: &impl Fn(&mut S, Range<usize>, bool, &mut Columns<N>) -> usize,
) -> [usize; N] {
    // of few rows few: what they take is a part of the whole
    let samples = rows.div_ceil(64).min(SAMPLES);
    let mut columns = std::array::from_fn(|_| Vec::new());
    for i in sample(rows, samples) {
        run(space, i..i + 1, false, &mut columns);
    }
    // an eighth more: what is not used costs nothing, one too few makes a copy
    columns.map(|part| part.len() * rows / samples.max(1) * 9 / 8)
}

/// Rows found by a thread and not gathered yet.
struct Chunk<const N: usize> {
    /// Of each run its first row.
    columns: Columns<N>,
    runs: Vec<Run<N>>,
    /// Columns of all rows.
    held: [usize; N],
}

/// A row, and rows behind it that repeat each the row before it.
#[derive(Clone, Copy)]
struct Run<const N: usize> {
    rows: u32,
    /// Columns of a row.
    lengths: [u32; N],
    /// Whether the first row repeats the row before it.
    repeats: [bool; N],
}

impl<const N: usize> Default for Chunk<N> {
    fn default() -> Self {
        let columns = std::array::from_fn(|_| Vec::new());
        Self { columns, runs: Vec::new(), held: [0; N] }
    }
}

impl<const N: usize> Chunk<N> {
    fn clear(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
        self.runs.clear();
        self.held = [0; N];
    }

    fn rows(&self) -> usize {
        self.runs.iter().map(|run| run.rows as usize).sum()
    }

    /// Ends a row whose columns have been appended to those that had the lengths `before`.
    fn end_row(&mut self, before: [usize; N]) {
        let mut new = Run { rows: 1, lengths: [0; N], repeats: [false; N] };
        for part in 0..N {
            let (old, row) = self.columns[part].split_at(before[part]);
            new.lengths[part] = row.len() as u32;
            if let Some(last) = self.runs.last() {
                let first = &old[old.len() - last.lengths[part] as usize..];
                new.repeats[part] = repeats(row, first, last.rows);
            }
            self.held[part] += row.len();
        }
        self.runs.push(new);
    }

    /// Appends `count` rows that repeat the last one.
    fn repeat(&mut self, count: usize) {
        let Some(last) = self.runs.last_mut() else { return };
        last.rows += count as u32;
        for (held, length) in self.held.iter_mut().zip(last.lengths) {
            *held += count * length as usize;
        }
    }

    /// Writes the columns of a part, the ends of its rows and which of them repeat, from column `start` on.
    fn write(&self, part: usize, start: usize, to: Room) {
        let Room { mut columns, mut ends, repeats } = to;
        let (mut from, mut end, mut row) = (&self.columns[part][..], start as u32, 0);
        for run in &self.runs {
            let (rows, length) = (run.rows as usize, run.lengths[part] as usize);
            let (own, behind) = columns.split_at_mut(rows * length);
            let (own_ends, ends_behind) = ends.split_at_mut(rows);
            (columns, ends) = (behind, ends_behind);
            own.iter_mut().zip(&from[..length]).for_each(|(to, j)| _ = to.write(*j));
            repeat_first(own, length);
            for to in own_ends {
                end += run.lengths[part];
                to.write(end);
            }
            repeats[row].write(u8::from(run.repeats[part]));
            repeats[row + 1..row + rows].iter_mut().for_each(|to| _ = to.write(1));
            (from, row) = (&from[length..], row + rows);
        }
    }
}

/// Fills whole rows of `length` columns, each with those of the row before increased by 1. The first is there.
fn repeat_first(rows: &mut [MaybeUninit<u32>], length: usize) {
    let mut done = 1;
    // twice as many at a time
    while done * length < rows.len() {
        let (there, behind) = rows.split_at_mut(done * length);
        for (to, from) in behind.iter_mut().zip(&*there) {
            // SAFETY: the first `done` rows are written
            to.write(unsafe { from.assume_init() } + done as u32);
        }
        done *= 2;
    }
}

/// Where rows of a part are written.
struct Room<'a> {
    columns: &'a mut [MaybeUninit<u32>],
    ends: &'a mut [MaybeUninit<u32>],
    repeats: &'a mut [MaybeUninit<u8>],
}

/// Finds the first of `rows`, [`CHUNK`] for each chunk; whether they hold at most `room` columns.
fn find_chunks<const N: usize, S: Send>(
    chunks: &mut [Chunk<N>],
    rows: Range<usize>,
    room: usize,
    spaces: &[Mutex<S>],
    run: &(impl Fn(&mut S, Range<usize>, bool, &mut Columns<N>) -> usize + Sync),
) -> bool {
    let told = AtomicUsize::new(0);
    Threads::Pool.chunks(chunks, 1, 1, |c, chunk| {
        let chunk = &mut chunk[0];
        let thread = rayon::current_thread_index().unwrap_or(0);
        let mut space = spaces[thread].lock().unwrap_or_else(PoisonError::into_inner);
        chunk.clear();
        let begin = rows.start + c * CHUNK;
        let (mut i, end, mut untold) = (begin, (begin + CHUNK).min(rows.end), 0);
        while i < end {
            let before = chunk.columns.each_ref().map(Vec::len);
            let count = run(&mut space, i..end, i > begin, &mut chunk.columns);
            if count == 0 {
                chunk.end_row(before);
            } else {
                chunk.repeat(count);
            }
            i += count.max(1);
            let held = chunk.held.iter().sum::<usize>();
            if held - untold > UNTOLD {
                let all = told.fetch_add(held - untold, Ordering::Relaxed) + held - untold;
                untold = held;
                if all > room {
                    return;
                }
            }
        }
        let held: usize = chunk.held.iter().sum();
        told.fetch_add(held - untold, Ordering::Relaxed);
    });
    told.into_inner() <= room
}

/// Patterns of `N` parts while rows are appended.
pub(crate) struct Growing<const N: usize> {
    row_ptr: Columns<N>,
    /// To append those of a row to, before it is [ended](Self::end_row).
    pub(crate) columns: Columns<N>,
    /// 1 for rows that repeat the row before them.
    repeats: [Vec<u8>; N],
    before: usize,
    limit: usize,
}

impl<const N: usize> Growing<N> {
    /// Room for `rows` rows, and for `sizes` columns of each part. Beside `before` columns there may be so many that all
    /// are `limit`.
    pub(crate) fn new(rows: usize, sizes: [usize; N], before: usize, limit: usize) -> Self {
        let limit = limit.min(u32::MAX as usize);
        let row_ptr = std::array::from_fn(|_| {
            let mut ptr = memory::with_capacity(rows + 1);
            ptr.push(0);
            ptr
        });
        let repeats = std::array::from_fn(|_| memory::with_capacity(rows));
        let columns = sizes.map(|n| memory::with_capacity(n.min(limit)));
        Self { row_ptr, columns, repeats, before, limit }
    }

    /// Columns that there are, those before included.
    fn entries(&self) -> usize {
        self.before + self.columns.iter().map(Vec::len).sum::<usize>()
    }

    /// Columns that may be appended.
    fn room(&self) -> usize {
        self.limit.saturating_sub(self.entries())
    }

    fn rows(&self) -> usize {
        self.repeats[0].len()
    }

    /// Columns of the last row, of each part.
    fn last(&self) -> [usize; N] {
        let last = self.rows().saturating_sub(1);
        std::array::from_fn(|part| {
            (self.columns[part].len() as u32 - self.row_ptr[part][last]) as usize
        })
    }

    /// Ends a row, whose columns have been appended.
    ///
    /// # Errors
    /// [`TooLarge`] when it passes the limit.
    #[inline]
    pub(crate) fn end_row(&mut self) -> Result<(), TooLarge> {
        let row = self.rows();
        if self.entries() > self.limit {
            return Err(TooLarge { row, entries: self.entries() });
        }
        for ((ptr, columns), seen) in
            self.row_ptr.iter_mut().zip(&self.columns).zip(&mut self.repeats)
        {
            let (old, new) = columns.split_at(ptr[row] as usize);
            let same = row > 0 && repeats(new, &old[ptr[row - 1] as usize..], 1);
            seen.push(u8::from(same));
            ptr.push(columns.len() as u32);
        }
        Ok(())
    }

    /// Appends `count` rows that repeat the last one.
    ///
    /// # Errors
    /// [`TooLarge`] when one passes the limit.
    pub(crate) fn repeat(&mut self, count: usize) -> Result<(), TooLarge> {
        let (row, lengths) = (self.rows(), self.last());
        let each = lengths.iter().sum::<usize>();
        if count * each > self.room() {
            let fit = self.room() / each;
            return Err(TooLarge { row: row + fit, entries: self.entries() + (fit + 1) * each });
        }
        for (part, length) in lengths.into_iter().enumerate() {
            let (columns, ptr) = (&mut self.columns[part], &mut self.row_ptr[part]);
            let (end, more) = (columns.len(), count * length);
            memory::reserve(columns, more);
            // SAFETY: there is room for `more` behind the last row, which is written, and then all of them are
            unsafe {
                let last = columns.as_mut_ptr().add(end - length).cast();
                repeat_first(std::slice::from_raw_parts_mut(last, length + more), length);
                columns.set_len(end + more);
            }
            ptr.extend((1..=count).map(|row| (end + row * length) as u32));
            self.repeats[part].resize(row + count, 1);
        }
        Ok(())
    }

    /// Appends the rows of `chunks`, which all threads write; whether they take much less room there.
    fn append(&mut self, chunks: &[Chunk<N>]) -> bool {
        let rows: Vec<usize> = chunks.iter().map(Chunk::rows).collect();
        let all: usize = rows.iter().sum();
        let mut stored = 0;
        let mut tasks = Vec::with_capacity(N * chunks.len());
        let parts = self.row_ptr.iter_mut().zip(&mut self.columns).zip(&mut self.repeats);
        for (part, ((ptr, columns), seen)) in parts.enumerate() {
            memory::reserve(columns, chunks.iter().map(|c| c.held[part]).sum());
            let mut start = columns.len();
            let mut room = columns.spare_capacity_mut();
            let mut ends = &mut ptr.spare_capacity_mut()[..all];
            let mut repeats = &mut seen.spare_capacity_mut()[..all];
            for (chunk, &rows) in chunks.iter().zip(&rows) {
                let to = Room {
                    columns: room.split_off_mut(..chunk.held[part]).unwrap_or_default(),
                    ends: ends.split_off_mut(..rows).unwrap_or_default(),
                    repeats: repeats.split_off_mut(..rows).unwrap_or_default(),
                };
                tasks.push((chunk, part, start, to));
                start += chunk.held[part];
                stored += chunk.columns[part].len();
            }
        }
        Threads::Pool.each(tasks, |(chunk, part, start, to)| chunk.write(part, start, to));
        let held: [usize; N] =
            std::array::from_fn(|part| chunks.iter().map(|c| c.held[part]).sum());
        let parts = self.row_ptr.iter_mut().zip(&mut self.columns).zip(&mut self.repeats);
        for (((ptr, columns), seen), held) in parts.zip(held) {
            // SAFETY: the tasks have written every entry up to here
            unsafe {
                ptr.set_len(ptr.len() + all);
                columns.set_len(columns.len() + held);
                seen.set_len(seen.len() + all);
            }
        }
        stored * COMPACT < held.iter().sum()
    }

    /// The patterns, of blocks of `block_size`.
    pub(crate) fn finish(self, block_size: usize) -> [Pattern<'static>; N] {
        let mut known = self.row_ptr.into_iter().zip(self.repeats);
        self.columns.map(|mut columns| {
            columns.shrink_to_fit();
            let (row_ptr, repeats) = known.next().unwrap_or_default();
            Pattern::new(row_ptr, columns).in_blocks(block_size).repeating(repeats)
        })
    }
}
