//! All rows of a triangle, line by line: lines that continue the same line of the small box differ by their place
//! alone.

use super::BoxFill;
use crate::base::memory;
use crate::base::threads::Threads;
use crate::matrix::pattern::{Pattern, PatternView};

/// Rows of a task, about.
const ROWS: usize = 1 << 13;
/// How often a line of the small box has to be continued for a copy to be worth making.
const OFTEN: usize = 4;

/// Places for rows: where each ends among the columns of all, columns, and which rows repeat the one before them.
struct Places<'a> {
    ends: &'a mut [u32],
    columns: &'a mut [u32],
    repeats: &'a mut [u8],
}

/// A line of rows that begins with row 0 and entry 0.
struct Line {
    ends: Vec<u32>,
    columns: Vec<u32>,
    repeats: Vec<u8>,
}

impl<'a> Places<'a> {
    /// The first `rows` rows with `entries` columns.
    fn first(&mut self, rows: usize, entries: usize) -> Places<'a> {
        Places {
            ends: self.ends.split_off_mut(..rows).expect("as many as are counted"),
            columns: self.columns.split_off_mut(..entries).expect("as many as are counted"),
            repeats: self.repeats.split_off_mut(..rows).expect("as many as are counted"),
        }
    }
}

impl Line {
    /// Writes the line whose first row is `row` and first entry `entry`.
    fn write(&self, to: &mut Places, row: u32, entry: u32) {
        let add = |to: &mut [u32], from: &[u32], by: u32| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = from.wrapping_add(by));
        };
        add(to.ends, &self.ends, entry);
        add(to.columns, &self.columns, row);
        to.repeats.copy_from_slice(&self.repeats);
    }
}

/// One triangle of a box.
struct Half<'a> {
    of: &'a BoxFill,
    small: PatternView<'a>,
    apart: &'a [i32],
    kind: &'a [u16],
    /// Columns of each line of the small box when it is continued.
    entries: Vec<usize>,
    /// The lines that are continued often.
    lines: Vec<Option<Line>>,
}

impl<'a> Half<'a> {
    fn new(of: &'a BoxFill, threads: Threads, at: usize) -> Self {
        let (small, alike) = (of.small_half(at), &of.halves[at]);
        let [snx, sny, snz] = of.small_extents;
        let length = |line: usize, x: &usize| small.range(line * snx + x).len();
        let columns = |line: usize| of.like[0].iter().map(|x| length(line, x)).sum();
        let mut often = vec![0; sny * snz];
        for z in &of.like[2] {
            of.like[1].iter().for_each(|y| often[z * sny + y] += 1);
        }
        let entries = threads.map(sny * snz, 16, columns);
        let (apart, kind) = (&*alike.apart, &*alike.kind);
        let mut half = Self { of, small, apart, kind, entries, lines: Vec::new() };
        half.lines =
            threads.map(sny * snz, 4, |line| (often[line] >= OFTEN).then(|| half.line(line)));
        half
    }

    fn line(&self, line: usize) -> Line {
        let nx = self.of.extents[0];
        let (mut ends, mut columns, mut repeats) =
            (vec![0; nx], vec![0; self.entries[line]], vec![0; nx]);
        let to = &mut Places { ends: &mut ends, columns: &mut columns, repeats: &mut repeats };
        self.write(line, to, 0, 0);
        Line { ends, columns, repeats }
    }

    /// Continues a line of the small box to one whose first row is `row` and first entry `entry`.
    fn write(&self, line: usize, to: &mut Places, row: u32, entry: u32) {
        let (mut columns, mut end, mut last) = (&mut *to.columns, entry, None);
        let places = to.ends.iter_mut().zip(&mut *to.repeats);
        for ((row, &x), (place, repeats)) in (row..).zip(&self.of.like[0]).zip(places) {
            let cell = line * self.of.small_extents[0] + x;
            let apart = &self.apart[self.small.range(cell)];
            let (own, behind) = columns.split_at_mut(apart.len());
            own.iter_mut().zip(apart).for_each(|(to, by)| *to = row.wrapping_add_signed(*by));
            columns = behind;
            end += apart.len() as u32;
            *place = end;
            let kind = self.kind[cell];
            *repeats = u8::from(last == Some(kind));
            last = Some(kind);
        }
    }

    /// The line of the small box that line `number` continues.
    fn like(&self, number: usize) -> usize {
        let ny = self.of.extents[1];
        self.of.line_like(number % ny, number / ny)
    }

    /// Writes the lines from `first` on, whose first entry is `entry`.
    fn write_lines(&self, first: usize, mut entry: usize, mut to: Places) {
        let [nx, ..] = self.of.extents;
        let ends = [0, nx - 1].map(|x| self.of.like[0][x]);
        let kind = |line: usize, x: usize| self.kind[line * self.of.small_extents[0] + x];
        for number in first..first + to.ends.len() / nx {
            let line = self.like(number);
            let entries = self.entries[line];
            let mut of_line = to.first(nx, entries);
            let row = (number * nx) as u32;
            let repeats = number > 0 && kind(self.like(number - 1), ends[1]) == kind(line, ends[0]);
            match &self.lines[line] {
                Some(known) => known.write(&mut of_line, row, entry as u32),
                None => self.write(line, &mut of_line, row, entry as u32),
            }
            of_line.repeats[0] = u8::from(repeats);
            entry += entries;
        }
    }
}

impl BoxFill {
    /// All rows of L (0) or U (1), or of both together.
    pub(crate) fn rows_of<const N: usize>(
        &self,
        threads: Threads,
        which: [usize; N],
        block_size: usize,
    ) -> [Pattern<'static>; N] {
        let [nx, ny, nz] = self.extents;
        let (lines, each) = (ny * nz, (ROWS / nx).max(1));
        let halves = which.map(|at| Half::new(self, threads, at));
        let parts: Vec<(usize, &Half)> = halves
            .iter()
            .flat_map(|half| (0..lines).step_by(each).map(move |at| (at, half)))
            .collect();
        let sums = threads.map(parts.len(), 16, |part| {
            let (first, half) = parts[part];
            let own = first..(first + each).min(lines);
            own.map(|number| half.entries[half.like(number)]).sum::<usize>()
        });
        let of_each = sums.len() / N;
        let mut made: [_; N] = std::array::from_fn(|n| {
            let columns = sums[n * of_each..][..of_each].iter().sum();
            let rows = self.rows();
            (
                memory::zeroed::<u32>(rows + 1),
                memory::zeroed::<u32>(columns),
                memory::zeroed::<u8>(rows),
            )
        });
        let mut tasks = Vec::with_capacity(parts.len());
        for (n, (ends, columns, repeats)) in made.iter_mut().enumerate() {
            let (mut left, mut entry) = (Places { ends: &mut ends[1..], columns, repeats }, 0);
            for part in n * of_each..(n + 1) * of_each {
                let (first, half) = parts[part];
                let own = left.first(nx * each.min(lines - first), sums[part]);
                tasks.push((half, first, entry, own));
                entry += sums[part];
            }
        }
        threads.each(tasks, |(half, first, entry, to)| half.write_lines(first, entry, to));
        made.map(|(row_ptr, columns, repeats)| {
            Pattern::new(row_ptr, columns).in_blocks(block_size).repeating(repeats)
        })
    }
}
