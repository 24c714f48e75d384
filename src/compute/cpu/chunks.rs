//! Chunks of consecutive rows, what each needs, and which thread does which.

use std::ops::Range;

use crate::base::memory;
use crate::base::threads::Threads;
use crate::matrix::pattern::PatternView;
use crate::symbolic::Schedule;

/// Cost of waiting for another thread, in numbers that a thread reads meanwhile.
pub(super) const WAIT: u64 = 1024;
/// Rows of the smallest chunks.
pub(super) const SMALLEST: usize = 16;
/// Rows that a thread looks at together.
const PART: usize = 1 << 14;

/// Direction of a sweep.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sweep {
    /// Rows upwards: row i needs rows j < i.
    Forward,
    /// Rows downwards: row i needs rows j > i.
    Backward,
}

impl Sweep {
    /// Row of a step; also step of a row.
    pub(super) fn row(self, step: usize, rows: usize) -> usize {
        match self {
            Self::Forward => step,
            Self::Backward => rows - 1 - step,
        }
    }

    /// The columns of a row without that of the row before it in the sweep, and whether it has that one.
    pub(super) fn split(self, columns: &[u32], row: usize) -> (&[u32], bool) {
        match (self, columns) {
            (Self::Forward, [far @ .., j]) if *j as usize + 1 == row => (far, true),
            (Self::Backward, [j, far @ ..]) if *j as usize == row + 1 => (far, true),
            _ => (columns, false),
        }
    }

    /// The rows of some steps, ascending.
    pub(super) fn rows(self, steps: Range<usize>, rows: usize) -> Range<usize> {
        match self {
            Self::Forward => steps,
            Self::Backward => rows - steps.end..rows - steps.start,
        }
    }
}

/// Chunks of consecutive steps and what each needs. Steps count rows in the order of the sweep.
#[derive(Debug, PartialEq)]
pub(super) struct Graph {
    /// First step of each chunk, and the number of rows.
    pub(super) start: Vec<u32>,
    /// Whether a run of rows, each of which needs the one before, begins with the chunk.
    begins_run: Vec<bool>,
    /// Numbers read and written.
    weight: Vec<u64>,
    /// Start of each chunk in `needs`.
    needs_ptr: Vec<u32>,
    /// Earlier chunks.
    needs: Vec<u32>,
}

/// Rows of a pattern in the order of a sweep.
#[derive(Clone, Copy)]
struct Rows<'a> {
    threads: Threads,
    pattern: PatternView<'a>,
    sweep: Sweep,
}

/// Of consecutive chunks: their entries, how many chunks each needs, and these.
#[derive(Default)]
struct Needs {
    entries: Vec<usize>,
    counts: Vec<u32>,
    chunks: Vec<u32>,
}

impl Rows<'_> {
    fn count(&self) -> usize {
        self.pattern.row_ptr.len() - 1
    }

    /// Step of a row; also row of a step.
    fn step(&self, row: usize) -> usize {
        self.sweep.row(row, self.count())
    }

    /// Steps that do not need the one before, and their number.
    fn begins_of_runs(&self) -> Vec<u32> {
        let rows = self.count();
        let parts = self.threads.map(rows.div_ceil(PART), 1, |part| {
            let steps = part * PART..((part + 1) * PART).min(rows);
            let runs = self.pattern.runs(self.sweep.rows(steps, rows));
            let begin =
                runs.filter(|run| !self.sweep.split(self.pattern.row(run.start), run.start).1);
            let mut begins: Vec<u32> = begin.flatten().map(|i| self.step(i) as u32).collect();
            if self.sweep == Sweep::Backward {
                begins.reverse();
            }
            begins
        });
        parts.into_iter().flatten().chain([rows as u32]).collect()
    }

    /// The chunk of each step, of chunks that begin at the steps `start`.
    fn chunks(&self, start: &[u32]) -> Vec<u32> {
        let mut chunks = memory::zeroed::<u32>(self.count());
        self.threads.chunks(&mut chunks, PART, 1, |part, of_part| {
            let first = (part * PART) as u32;
            let mut chunk = start.partition_point(|&start| start <= first) - 1;
            for (step, of_step) in (first..).zip(of_part) {
                chunk += usize::from(start[chunk + 1] == step);
                *of_step = chunk as u32;
            }
        });
        chunks
    }

    /// What chunks need that begin at the steps `start`, part by part.
    fn needs(&self, start: &[u32]) -> Vec<Needs> {
        let (chunk_of, chunks) = (self.chunks(start), start.len() - 1);
        let together = (PART * chunks / self.count().max(1)).max(1);
        let seen = || vec![u32::MAX; chunks];
        self.threads.map_with(chunks.div_ceil(together), 1, seen, |seen, part| {
            let mut of_part = Needs::default();
            for c in part * together..((part + 1) * together).min(chunks) {
                let before = of_part.chunks.len();
                let steps = start[c] as usize..start[c + 1] as usize;
                let rows = self.sweep.rows(steps, self.count());
                let row_ptr = self.pattern.row_ptr;
                of_part.entries.push((row_ptr[rows.end] - row_ptr[rows.start]) as usize);
                for run in self.pattern.runs(rows) {
                    for &j in self.pattern.row(run.start) {
                        let j = j as usize;
                        let ends = [j, j + run.len() - 1].map(|j| chunk_of[self.step(j)]);
                        for d in ends[0].min(ends[1])..=ends[0].max(ends[1]) {
                            if d != c as u32 && seen[d as usize] != c as u32 {
                                seen[d as usize] = c as u32;
                                of_part.chunks.push(d);
                            }
                        }
                    }
                }
                of_part.counts.push((of_part.chunks.len() - before) as u32);
            }
            of_part
        })
    }
}

/// Who does which chunk, and when.
pub(super) struct Assignment {
    /// Chunks level by level.
    pub(super) order: Vec<u32>,
    /// Thread of each chunk.
    pub(super) owner: Vec<u32>,
    /// Estimated time, in numbers read by one thread.
    pub(super) cost: u64,
}

impl Graph {
    /// Chunks of about `target` rows; none when nearly every entry connects two chunks of its own, as in a random
    /// order.
    pub(super) fn of_chunks(
        threads: Threads,
        (pattern, sweep): (PatternView, Sweep),
        target: usize,
        numbers: impl Fn(usize, usize) -> u64,
    ) -> Option<Self> {
        let rows = Rows { threads, pattern, sweep };
        let mut graph = Self::with_starts(&rows.begins_of_runs(), target);
        let parts = rows.needs(&graph.start);
        let all: usize = parts.iter().map(|part| part.chunks.len()).sum();
        if 2 * all > pattern.entries() {
            return None;
        }
        let mut end = 0;
        for part in parts {
            for (entries, count) in part.entries.into_iter().zip(part.counts) {
                let c = graph.weight.len();
                let length = (graph.start[c + 1] - graph.start[c]) as usize;
                graph.weight.push(numbers(length, entries));
                end += count;
                graph.needs_ptr.push(end);
            }
            graph.needs.extend(part.chunks);
        }
        Some(graph)
    }

    /// Cuts runs, given by their begins, into equal chunks of at most `target` rows, or joins short
    /// ones to such chunks; without weights and needs.
    fn with_starts(begins: &[u32], target: usize) -> Self {
        let (mut start, mut begins_run) = (Vec::new(), Vec::new());
        let mut room = 0; // left in the current chunk for whole runs
        for run in begins.windows(2) {
            let length = (run[1] - run[0]) as usize;
            if length <= room {
                room -= length;
                continue;
            }
            let pieces = length.div_ceil(target);
            for piece in 0..pieces {
                start.push(run[0] + (length * piece / pieces) as u32);
                begins_run.push(piece == 0);
            }
            room = if pieces == 1 { target - length } else { 0 };
        }
        start.extend(begins.last());
        Self { start, begins_run, weight: Vec::new(), needs_ptr: vec![0], needs: Vec::new() }
    }

    pub(super) fn chunks(&self) -> usize {
        self.start.len() - 1
    }

    pub(super) fn rows(&self) -> usize {
        self.start[self.chunks()] as usize
    }

    pub(super) fn needs(&self, c: usize) -> &[u32] {
        &self.needs[self.needs_ptr[c] as usize..self.needs_ptr[c + 1] as usize]
    }

    /// Chunks joined to chunks of at most `target` rows: whole runs, or equal parts of a run.
    pub(super) fn merged(&self, target: usize) -> Self {
        let mut begins: Vec<u32> =
            (0..self.chunks()).filter(|&c| self.begins_run[c]).map(|c| self.start[c]).collect();
        begins.extend(self.start.last());
        let wished = Self::with_starts(&begins, target);
        // a wished start inside a chunk moves to that chunk's begin
        let mut merged = Self {
            start: Vec::new(),
            begins_run: Vec::new(),
            weight: Vec::new(),
            needs_ptr: vec![0],
            needs: Vec::new(),
        };
        let mut into = vec![0u32; self.chunks()];
        let mut next = 0;
        for c in 0..self.chunks() {
            let mut opens = false;
            while next < wished.chunks() && wished.start[next] < self.start[c + 1] {
                opens = true;
                next += 1;
            }
            if opens {
                merged.start.push(self.start[c]);
                merged.begins_run.push(self.begins_run[c]);
                merged.weight.push(0);
            }
            let m = merged.start.len() - 1;
            into[c] = m as u32;
            merged.weight[m] += self.weight[c];
        }
        merged.start.extend(self.start.last());
        let mut seen = vec![u32::MAX; merged.chunks()];
        let mut c = 0;
        for m in 0..merged.chunks() as u32 {
            while c < self.chunks() && into[c] == m {
                for &d in self.needs(c) {
                    let d = into[d as usize];
                    if d != m && seen[d as usize] != m {
                        seen[d as usize] = m;
                        merged.needs.push(d);
                    }
                }
                c += 1;
            }
            merged.needs_ptr.push(merged.needs.len() as u32);
        }
        merged
    }

    /// Chunks by level, each level cut into parts of equal weight, one per thread: neighbours stay
    /// with the same thread from level to level.
    pub(super) fn assign(&self, threads: usize) -> Assignment {
        let chunks = self.chunks();
        let mut level = vec![0u32; chunks];
        let mut level_weight: Vec<u64> = Vec::new();
        for c in 0..chunks {
            let l = self.needs(c).iter().map(|&d| level[d as usize] + 1).max().unwrap_or(0);
            level[c] = l;
            if l as usize == level_weight.len() {
                level_weight.push(0);
            }
            level_weight[l as usize] += self.weight[c];
        }
        // increasing within a level
        let order = Schedule::from_levels(&level).rows;
        let mut before = vec![0u64; level_weight.len()];
        let mut owner = vec![0u32; chunks];
        let mut ready = vec![0u64; chunks];
        let mut clock = vec![0u64; threads];
        for &c in &order {
            let (c, l) = (c as usize, level[c as usize] as usize);
            let middle = before[l] + self.weight[c] / 2;
            before[l] += self.weight[c];
            let thread = middle * threads as u64 / level_weight[l].max(1);
            let thread = (thread as usize).min(threads - 1);
            owner[c] = thread as u32;
            let mut start = clock[thread];
            for &d in self.needs(c) {
                let wait = if owner[d as usize] == owner[c] { 0 } else { WAIT };
                start = start.max(ready[d as usize] + wait);
            }
            clock[thread] = start + self.weight[c];
            ready[c] = clock[thread];
        }
        Assignment { order, owner, cost: clock.into_iter().max().unwrap_or(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::samples::{matrix, pattern};

    #[test]
    fn threads_find_the_chunks_of_one() {
        // rows and chunks in several parts
        let a = matrix("poisson3d:50x40x30");
        let p = pattern(&a, 1);
        for (side, sweep) in [(&p.lower, Sweep::Forward), (&p.upper, Sweep::Backward)] {
            let numbers = |rows, entries| (rows + 2 * entries) as u64;
            let chunks =
                |on| Graph::of_chunks(on, (side.view(), sweep), SMALLEST, numbers).expect("grid");
            let one = chunks(Threads::One);
            assert!(one.chunks() > 2 * PART / SMALLEST);
            assert_eq!(one.weight.iter().sum::<u64>(), numbers(p.rows(), side.entries()));
            assert_eq!(one.needs_ptr.last().map(|&end| end as usize), Some(one.needs.len()));
            assert_eq!(chunks(Threads::Pool), one);
        }
    }

    #[test]
    fn chunks_are_whole_lines_or_equal_parts_of_one() {
        let a = matrix("poisson3d:40x3x3");
        let p = pattern(&a, 0);
        let base = Graph::of_chunks(
            Threads::One,
            (p.lower.view(), Sweep::Forward),
            SMALLEST,
            |rows, _| rows as u64,
        )
        .expect("grid");
        assert_eq!(base.start[..5], [0, 13, 26, 40, 53]);
        assert_eq!(base.merged(64).start, (0..=360).step_by(40).collect::<Vec<u32>>());
        let planes = base.merged(64).merged(128);
        assert_eq!(planes.start, [0, 120, 240, 360]);
        // each plane needs the one below
        assert_eq!((planes.needs(0), planes.needs(2)), (&[][..], &[1][..]));
        assert_eq!(planes.weight, [120; 3]);
        // lines (1, 1) and (2, 1) need those to the left and below
        assert_eq!(base.merged(64).needs(4), [1, 3]);
    }
}
