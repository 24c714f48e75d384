//! Rows that repeat the row before them, one column to the right.
//!
//! On a grid in its natural order nearly every row does, and what elimination makes of a row depends only on
//! the row itself and on the upper parts of the rows that it refers to. Where all of them repeat those before
//! them, the filled row repeats the filled row before it, and is copied. Nothing is assumed of the matrix:
//! every repetition is seen in the columns, or follows from such as are.

use std::ops::Range;

use crate::base::memory;
use crate::base::threads::Threads;
use crate::matrix::pattern::Pattern;
use crate::matrix::pattern::repeats::run;

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

    /// Adds what is known of the level `level`, of which these are the lower and the upper parts.
    pub(super) fn add(&mut self, threads: Threads, level: usize, halves: [&Pattern; 2]) {
        let [lower, upper] = halves.map(|half| half.repeats().chunks(PART));
        let parts = self.rows.chunks_mut(PART).zip(self.uppers.chunks_mut(PART));
        let parts = parts.zip(lower.zip(upper));
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
