//! Patterns whose rows are found independently of each other, on one thread or several.

#![allow(unsafe_code, reason = "threads that write disjoint parts")]

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

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
    find_runs(task, scratch, |space, rows, out| {
        row(space, rows.start, out);
        1
    })
}

/// [`find`] for a `run` that appends the first rows of a range, one at least, and returns their number. In
/// each part the rows of a run are equally long.
///
/// # Errors
/// As [`find`].
pub(crate) fn find_runs<const N: usize, S: Send>(
    task: Task,
    scratch: impl Fn() -> S,
    run: impl Fn(&mut S, Range<usize>, &mut Columns<N>) -> usize + Sync,
) -> Result<[Pattern<'static>; N], TooLarge> {
    let limit = task.limit.min(u32::MAX as usize);
    let threads = match task.threads {
        Threads::Pool if task.rows > CHUNK => rayon::current_num_threads(),
        _ => 1,
    };
    let mut spaces: Vec<Mutex<S>> = (0..threads).map(|_| Mutex::new(scratch())).collect();
    let first_space = spaces[0].get_mut().unwrap_or_else(PoisonError::into_inner);
    let mut found = Found::new(task.rows, guess(task.rows, first_space, &run), limit);
    let mut done = 0;
    if threads > 1 {
        let mut chunks: Vec<Chunk<N>> = (0..threads * TURNS).map(|_| Chunk::default()).collect();
        while done < task.rows {
            let room = limit.saturating_sub(task.before + found.entries());
            let used = (task.rows - done).div_ceil(CHUNK).min(chunks.len());
            if !find_chunks(&mut chunks[..used], done..task.rows, room, &spaces, &run) {
                break; // row by row, to see which one is too many
            }
            found.append(&chunks[..used]);
            done = (done + used * CHUNK).min(task.rows);
        }
    }
    let space = spaces[0].get_mut().unwrap_or_else(PoisonError::into_inner);
    while done < task.rows {
        let before = task.before + found.entries();
        let next = (done + CHUNK).min(task.rows);
        let count = run(space, done..next, &mut found.columns);
        let each = (task.before + found.entries() - before) / count;
        if before + count * each > limit {
            let fit = limit.saturating_sub(before).checked_div(each).unwrap_or(0);
            return Err(TooLarge { row: done + fit, entries: before + (fit + 1) * each });
        }
        found.end_rows(count);
        done += count;
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

/// About how many columns each part will hold, from a sample of rows.
fn guess<const N: usize, S>(
    rows: usize,
    space: &mut S,
    run: &impl Fn(&mut S, Range<usize>, &mut Columns<N>) -> usize,
) -> [usize; N] {
    let samples = rows.min(SAMPLES);
    let mut columns = std::array::from_fn(|_| Vec::new());
    for sample in 0..samples as u64 {
        // at multiples of the golden section: at those of a round number all rows may lie at a face of a grid
        let part = sample.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let i = ((u128::from(part) * rows as u128) >> 64) as usize;
        run(space, i..i + 1, &mut columns);
    }
    // an eighth more: what is not used costs nothing, one too few makes a copy
    columns.map(|part| part.len() * rows / samples.max(1) * 9 / 8)
}

/// Rows found and not gathered yet.
struct Chunk<const N: usize> {
    columns: Columns<N>,
    /// End of each row in each part.
    ends: Columns<N>,
}

impl<const N: usize> Default for Chunk<N> {
    fn default() -> Self {
        let empty = || std::array::from_fn(|_| Vec::new());
        Self { columns: empty(), ends: empty() }
    }
}

/// Finds the first of `rows`, [`CHUNK`] for each chunk; whether they hold at most `room` columns.
fn find_chunks<const N: usize, S: Send>(
    chunks: &mut [Chunk<N>],
    rows: Range<usize>,
    room: usize,
    spaces: &[Mutex<S>],
    run: &(impl Fn(&mut S, Range<usize>, &mut Columns<N>) -> usize + Sync),
) -> bool {
    let told = AtomicUsize::new(0);
    Threads::Pool.chunks(chunks, 1, 1, |c, chunk| {
        let chunk = &mut chunk[0];
        let thread = rayon::current_thread_index().unwrap_or(0);
        let mut space = spaces[thread].lock().unwrap_or_else(PoisonError::into_inner);
        chunk.columns.iter_mut().chain(&mut chunk.ends).for_each(Vec::clear);
        let begin = rows.start + c * CHUNK;
        let (mut i, end, mut untold) = (begin, (begin + CHUNK).min(rows.end), 0);
        while i < end {
            let count = run(&mut space, i..end, &mut chunk.columns);
            i += count;
            let mut held = 0;
            for (columns, ends) in chunk.columns.iter().zip(&mut chunk.ends) {
                held += columns.len();
                end_rows(ends, columns.len(), count);
            }
            if held - untold > UNTOLD {
                let all = told.fetch_add(held - untold, Ordering::Relaxed) + held - untold;
                untold = held;
                if all > room {
                    return;
                }
            }
        }
        let held: usize = chunk.columns.iter().map(Vec::len).sum();
        told.fetch_add(held - untold, Ordering::Relaxed);
    });
    told.into_inner() <= room
}

/// Appends the ends of `count` equally long rows, the last of which is `end`.
#[inline]
fn end_rows(ends: &mut Vec<u32>, end: usize, count: usize) {
    let (end, before) = (end as u32, ends.last().copied().unwrap_or(0));
    let each = (end - before) / count as u32;
    ends.extend((1..=count as u32).map(|row| before + row * each));
}

/// Patterns while they grow.
struct Found<const N: usize> {
    row_ptr: Columns<N>,
    columns: Columns<N>,
}

impl<const N: usize> Found<N> {
    fn new(rows: usize, guess: [usize; N], limit: usize) -> Self {
        let row_ptr = std::array::from_fn(|_| {
            let mut ptr = memory::with_capacity(rows + 1);
            ptr.push(0);
            ptr
        });
        Self { row_ptr, columns: guess.map(|n| memory::with_capacity(n.min(limit))) }
    }

    fn entries(&self) -> usize {
        self.columns.iter().map(Vec::len).sum()
    }

    fn end_rows(&mut self, count: usize) {
        for (ptr, columns) in self.row_ptr.iter_mut().zip(&self.columns) {
            end_rows(ptr, columns.len(), count);
        }
    }

    /// Appends the rows of `chunks`; all threads copy.
    fn append(&mut self, chunks: &[Chunk<N>]) {
        let rows = chunks.iter().map(|chunk| chunk.ends[0].len()).sum::<usize>();
        let mut copies = Vec::with_capacity(N * chunks.len());
        let mut lengths = [0; N];
        for (part, (ptr, columns)) in self.row_ptr.iter_mut().zip(&mut self.columns).enumerate() {
            memory::reserve(columns, chunks.iter().map(|c| c.columns[part].len()).sum());
            let mut end = columns.len();
            let mut room = columns.spare_capacity_mut();
            let mut room_of_ends = &mut ptr.spare_capacity_mut()[..rows];
            for chunk in chunks {
                let (from, ends) = (&chunk.columns[part][..], &chunk.ends[part][..]);
                let (to, rest) = room.split_at_mut(from.len());
                let (to_ends, rest_of_ends) = room_of_ends.split_at_mut(ends.len());
                (room, room_of_ends) = (rest, rest_of_ends);
                copies.push((to, from, to_ends, ends, end as u32));
                end += from.len();
            }
            lengths[part] = end;
        }
        Threads::Pool.each(copies, |(to, from, to_ends, ends, start)| {
            for (to, &from) in to.iter_mut().zip(from) {
                to.write(from);
            }
            for (to, end) in to_ends.iter_mut().zip(ends) {
                to.write(start + end);
            }
        });
        for ((ptr, columns), length) in self.row_ptr.iter_mut().zip(&mut self.columns).zip(lengths)
        {
            // SAFETY: the copies have written every entry up to here
            unsafe { (ptr.set_len(ptr.len() + rows), columns.set_len(length)) };
        }
    }

    fn finish(self, block_size: usize) -> [Pattern<'static>; N] {
        let mut ptr = self.row_ptr.into_iter();
        self.columns.map(|mut columns| {
            columns.shrink_to_fit();
            let row_ptr = ptr.next().unwrap_or_default();
            Pattern::new(row_ptr, columns).in_blocks(block_size)
        })
    }
}
