//! Rows that repeat the row before them, one column to the right.
//!
//! On a grid in its natural order nearly every row does, and what elimination makes of a row depends only on
//! the row itself and on the upper parts of the rows that it refers to. Where all of them repeat those before
//! them, the filled row repeats the filled row before it, and is copied. Nothing is assumed of the matrix:
//! every repetition is seen in the columns, or follows from such as are.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::base::memory;
use crate::base::threads::Threads;
use crate::matrix::pattern::repeats::{repeats, run};

/// Rows that a thread takes at a time.
const PART: usize = 1 << 14;

/// For how many fill levels, from 0 up, each row and its upper part repeat those before them.
pub(super) struct Repeats {
    rows: Vec<u8>,
    uppers: Vec<u8>,
}

/// Some of the rows, of which one thread says what it sees in A.
pub(super) struct Part<'a>([&'a mut [u8]; 2]);

impl Part<'_> {
    /// Whether all of some `rows` repeat, and their upper parts.
    #[inline]
    pub(super) fn set(&mut self, rows: Range<usize>, repeat: [bool; 2]) {
        self.0.iter_mut().zip(repeat).for_each(|(of, is)| of[rows.clone()].fill(u8::from(is)));
    }
}

impl Repeats {
    /// Nothing is known of `n` rows.
    pub(super) fn new(n: usize) -> Self {
        Self { rows: memory::zeroed(n), uppers: memory::zeroed(n) }
    }

    /// `rows` rows in each part, for level 0.
    pub(super) fn parts(&mut self, rows: usize) -> impl Iterator<Item = Part<'_>> {
        let parts = self.rows.chunks_mut(rows).zip(self.uppers.chunks_mut(rows));
        parts.map(|(rows, uppers)| Part([rows, uppers]))
    }

    /// Rows from the first of `rows` on that repeat at all levels below `levels`.
    #[inline]
    pub(super) fn run(&self, rows: Range<usize>, levels: usize) -> usize {
        run(&self.rows[rows], levels as u8)
    }

    /// Of at most `rows` rows from `p` on those whose upper parts repeat at all levels below `levels`.
    #[inline]
    pub(super) fn run_of_uppers(&self, p: u32, rows: usize, levels: usize) -> usize {
        run(&self.uppers[p as usize..p as usize + rows], levels as u8)
    }

    /// Adds what is known of the level `level`.
    pub(super) fn add(&mut self, threads: Threads, level: usize, told: Told) {
        let [lower, upper] = told.into_halves();
        let told = lower.chunks(PART).zip(upper.chunks(PART));
        let parts = self.rows.chunks_mut(PART).zip(self.uppers.chunks_mut(PART)).zip(told);
        threads.each(parts.collect(), |((rows, uppers), (lower, upper))| {
            let level = level as u8;
            for (row, (lower, upper)) in rows.iter_mut().zip(lower.iter().zip(upper)) {
                *row += lower & upper & u8::from(*row == level);
            }
            for (of, upper) in uppers.iter_mut().zip(upper) {
                *of += upper & u8::from(*of == level);
            }
        });
    }
}

/// Which halves of rows repeat, as told by the threads that find them.
pub(super) struct Told([Vec<AtomicU8>; 2]);

impl Told {
    /// Nothing is known of `n` rows.
    pub(super) fn new(n: usize) -> Self {
        let none = |_| memory::zeroed::<u8>(n).into_iter().map(AtomicU8::new).collect();
        Self([0, 1].map(none))
    }

    /// Says of the halves of `rows` whether they repeat.
    #[inline]
    pub(super) fn tell(&self, rows: Range<usize>, repeat: [bool; 2]) {
        for (of, is) in self.0.iter().zip(repeat) {
            of[rows.clone()].iter().for_each(|told| told.store(u8::from(is), Ordering::Relaxed));
        }
    }

    /// 1 for each row whose lower half repeats, and whose upper half does.
    pub(super) fn into_halves(self) -> [Vec<u8>; 2] {
        self.0.map(|of| of.into_iter().map(AtomicU8::into_inner).collect())
    }
}

/// The row that a thread found last.
#[derive(Default)]
pub(super) struct Last {
    /// Its number and 1; 0 where there is none.
    next: usize,
    halves: [Vec<u32>; 2],
}

impl Last {
    /// Whether this is the row before row i.
    #[inline]
    pub(super) fn precedes(&self, i: usize) -> bool {
        i > 0 && self.next == i
    }

    /// Appends `count` rows to `out` that repeat it one after the other, and makes it the last of them.
    pub(super) fn repeat(&mut self, count: usize, out: &mut [Vec<u32>; 2]) {
        self.next += count;
        for (half, out) in self.halves.iter_mut().zip(out) {
            memory::reserve(out, count * half.len());
            let start = out.len();
            out.extend(half.iter().map(|j| j + 1));
            // twice as many at a time
            let mut done = 1;
            while done < count {
                let more = done.min(count - done);
                let (begin, end) = (out.len(), start + more * half.len());
                out.extend_from_within(start..end);
                out[begin..].iter_mut().for_each(|j| *j += done as u32);
                done += more;
            }
            for j in half {
                *j += count as u32;
            }
        }
    }

    /// Makes it row i; whether the halves of row i repeat those of the row before it, as far as that is known.
    #[inline]
    pub(super) fn replace(&mut self, i: usize, halves: [&[u32]; 2]) -> [bool; 2] {
        let precedes = self.precedes(i);
        self.next = i + 1;
        let mut same = [precedes; 2];
        for ((half, new), same) in self.halves.iter_mut().zip(halves).zip(&mut same) {
            *same = *same && repeats(new, half);
            half.clear();
            half.extend_from_slice(new);
        }
        same
    }
}
