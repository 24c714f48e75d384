//! Parallel order of a sweep over the rows of a triangular pattern.
//!
//! Taking rows level by level (Yang et al., Algorithm 6) reads the factors out of order: on a grid
//! neighbours in a level are far apart in memory. So chunks of consecutive rows are scheduled
//! instead, as long as the machine and their dependencies allow: a chunk streams through memory as
//! the sequential sweep does. Where chunks leave too little to do at the same time, levels are
//! used. Threads wait for each other point to point, through counters of finished tasks.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::chunks::{Assignment, Graph, SMALLEST, Sweep, WAIT};
use super::finished::Finished;
use super::levels::{Space, levels, levels_in_turn, sizes};
use crate::base::measure::spans::span;
use crate::base::memory;
use crate::base::threads::{Threads, on_each};
use crate::compute::SingularBlock;
use crate::matrix::pattern::PatternView;
use crate::symbolic::{FillPattern, Schedule};

/// What a row costs more that does not follow the one before in memory, in numbers; half its weight
/// is added, because its entries are not prefetched.
const SCATTERED: u64 = 64;
/// Numbers in a level below which one thread is faster than several, which wait for each other.
const NARROW: usize = 512;
/// Rows of the largest chunks.
const LARGEST: usize = 4096;

/// Rows in the order of their tasks, for a fixed number of threads.
pub(super) struct Order {
    rows: Vec<u32>,
    /// Tasks of each thread, in the order in which it does them.
    threads: Vec<Vec<Task>>,
    waits: Vec<Wait>,
}

/// A slice of `Order::rows` that one thread does in one go, after some waits.
struct Task {
    rows: (u32, u32),
    waits: (u32, u32),
}

/// Until `thread` has finished `tasks` tasks.
#[derive(Clone, Copy)]
struct Wait {
    thread: u32,
    tasks: u32,
}

impl Order {
    /// The cheapest order by chunks found for `threads` threads and blocks of `block_size`, and its estimated cost;
    /// `None` where one thread is as fast.
    fn by_chunks(
        pattern: PatternView,
        sweep: Sweep,
        block_size: usize,
        threads: usize,
    ) -> Option<(Self, u64)> {
        let numbers = |rows, entries| numbers(rows, entries, block_size);
        let all = numbers(pattern.row_ptr.len() - 1, pattern.entries());
        let merged = |(graph, target): &(Graph, usize)| {
            (2 * target <= LARGEST).then(|| (graph.merged(2 * target), 2 * target))
        };
        let target = smallest(pattern.row_ptr.len() - 1, threads);
        let finest = Graph::of_chunks(Threads::Pool, (pattern, sweep), target, numbers);
        let finest = finest.map(|graph| (graph, target));
        let graphs = std::iter::successors(finest, merged).map(|(graph, _)| graph).collect();
        let assigned = Threads::Pool.each(graphs, |graph: Graph| {
            let assignment = graph.assign(threads);
            (graph, assignment)
        });
        let mut best: Option<(Graph, Assignment)> = None;
        let mut least = u64::MAX;
        for (graph, assignment) in assigned {
            // longer chunks stream better than the estimate knows
            least = least.min(assignment.cost);
            if assignment.cost <= least + least / 16 {
                best = Some((graph, assignment));
            }
        }
        let (graph, found) = best.filter(|(_, assignment)| assignment.cost < all)?;
        Some((Self::from_chunks(&graph, &found, sweep, threads), found.cost))
    }

    /// The cheapest one of an order by `chunks` and its cost, the order by levels and that of one thread; `level`
    /// holds the [`levels`] of the rows, of these [`sizes`].
    fn cheapest(
        chunks: Option<(Self, u64)>,
        (level, sizes): (&[u32], &[usize]),
        (pattern, sweep): (PatternView, Sweep),
        block_size: usize,
        threads: usize,
    ) -> Self {
        let rows = level.len();
        let all = numbers(rows, pattern.entries(), block_size);
        let serial_rows = serial_rows(all, rows, threads);
        let weight = all / rows.max(1) as u64;
        let weight = weight + weight / 2 + SCATTERED;
        let by_level = level_cost(sizes, weight, serial_rows, threads);
        match chunks {
            Some((order, cost)) if cost < by_level => order,
            _ if by_level < all => {
                let schedule = Schedule::from_levels_on(Threads::Pool, level);
                Self::from_levels(&schedule, serial_rows, threads)
            }
            _ => Self::serial(rows, sweep, threads),
        }
    }

    /// The [`levels`] of rows, found by the threads of the current pool in this order, of chunks.
    fn levels(&self, pattern: PatternView, sweep: Sweep) -> Vec<u32> {
        levels(pattern, sweep, |find| {
            let consecutive = |space: &mut Space, rows: &[u32]| {
                let (Some(&first), Some(&last)) = (rows.first(), rows.last()) else { return };
                let (low, high) = (first.min(last) as usize, first.max(last) as usize);
                assert_eq!(high + 1 - low, rows.len(), "rows of a chunk");
                find(space, low..high + 1);
            };
            self.run_with(|_| Space::default(), consecutive, drop);
        })
    }

    /// Those of both solves for the threads of the current pool, none where levels are narrow; and how many levels
    /// they have.
    pub(super) fn both(pattern: &FillPattern) -> (Option<[Self; 2]>, [usize; 2]) {
        let (threads, b) = (rayon::current_num_threads(), pattern.block_size());
        let [lower, upper] =
            [(pattern.lower.view(), Sweep::Forward), (pattern.upper.view(), Sweep::Backward)];
        let (of_lower, of_upper) = span("chunks", || {
            let by_chunks = |(side, sweep)| move || Self::by_chunks(side, sweep, b, threads);
            rayon::join(by_chunks(lower), by_chunks(upper))
        });
        let chunks = [of_lower, of_upper];
        let sides = [lower, upper];
        // each with all threads, one after the other
        let level = span("levels", || {
            [0, 1].map(|at| {
                let (side, sweep) = sides[at];
                match &chunks[at] {
                    Some((order, _)) => order.levels(side, sweep),
                    None => levels_in_turn(side, sweep),
                }
            })
        });
        let sizes = level.each_ref().map(|level| sizes(level));
        let levels = sizes.each_ref().map(Vec::len);
        if pattern.numbers() < NARROW * levels[0].max(levels[1]) {
            return (None, levels);
        }
        let [of_lower, of_upper] = chunks;
        let orders = rayon::join(
            || Self::cheapest(of_lower, (&level[0], &sizes[0]), lower, b, threads),
            || Self::cheapest(of_upper, (&level[1], &sizes[1]), upper, b, threads),
        );
        (Some(orders.into()), levels)
    }

    /// The order by levels for the threads of the current pool; `entries` is the number of blocks in
    /// the triangle.
    pub(super) fn by_level(schedule: &Schedule, entries: usize, block_size: usize) -> Self {
        let (rows, threads) = (schedule.rows.len(), rayon::current_num_threads());
        let all = numbers(rows, entries, block_size);
        Self::from_levels(schedule, serial_rows(all, rows, threads), threads)
    }

    /// All rows on the first thread.
    fn serial(rows: usize, sweep: Sweep, threads: usize) -> Self {
        let mut order = Self::empty(threads);
        order.rows.extend((0..rows).map(|step| sweep.row(step, rows) as u32));
        order.threads[0].push(Task { rows: (0, rows as u32), waits: (0, 0) });
        order
    }

    fn empty(threads: usize) -> Self {
        Self {
            rows: Vec::new(),
            threads: (0..threads).map(|_| Vec::new()).collect(),
            waits: Vec::new(),
        }
    }

    fn from_chunks(graph: &Graph, assignment: &Assignment, sweep: Sweep, threads: usize) -> Self {
        let rows = graph.rows();
        let mut order = Self { rows: memory::zeroed(rows), ..Self::empty(threads) };
        let mut known = vec![0; threads * threads];
        let mut place = vec![0u32; graph.chunks()];
        let (mut of_chunks, mut rest) = (Vec::with_capacity(graph.chunks()), &mut order.rows[..]);
        for &c in &assignment.order {
            let steps = graph.start[c as usize]..graph.start[c as usize + 1];
            let (here, behind) = rest.split_at_mut(steps.len());
            rest = behind;
            of_chunks.push((here, steps));
        }
        Threads::Pool.each(of_chunks, |(to, steps): (&mut [u32], Range<u32>)| {
            for (to, step) in to.iter_mut().zip(steps) {
                *to = sweep.row(step as usize, rows) as u32;
            }
        });
        let mut end = 0;
        for &c in &assignment.order {
            let c = c as usize;
            let start = end;
            end += graph.start[c + 1] - graph.start[c];
            let owner = assignment.owner[c];
            let waits = graph.needs(c).iter().map(|&d| Wait {
                thread: assignment.owner[d as usize],
                tasks: place[d as usize] + 1,
            });
            let at = order.threads[owner as usize].len() as u32;
            order.push(owner as usize, start..end, waits, &mut known);
            place[c] = at;
        }
        order
    }

    /// Levels of more than `serial_rows` rows are shared by all threads, runs of others are done by
    /// the first.
    fn from_levels(schedule: &Schedule, serial_rows: usize, threads: usize) -> Self {
        let mut order = Self::empty(threads);
        let mut known = vec![0; threads * threads];
        let mut steps: Vec<(usize, usize, bool)> = Vec::new();
        for w in schedule.level_ptr.windows(2) {
            let (start, end) = (w[0] as usize, w[1] as usize);
            let shared = end - start > serial_rows;
            match steps.last_mut() {
                Some(last) if !shared && !last.2 => last.1 = end,
                _ => steps.push((start, end, shared)),
            }
        }
        for (start, end, shared) in steps {
            let before: Vec<u32> = order.threads.iter().map(|tasks| tasks.len() as u32).collect();
            let parts = if shared { threads } else { 1 };
            for t in 0..parts {
                let part = |t| start + (end - start) * t / parts;
                order.rows.extend_from_slice(&schedule.rows[part(t)..part(t + 1)]);
                let waits =
                    (0..threads as u32).map(|u| Wait { thread: u, tasks: before[u as usize] });
                order.push(t, part(t) as u32..part(t + 1) as u32, waits, &mut known);
            }
        }
        order
    }

    /// Adds a task of rows, given by their places; leaves out waits for what the thread has
    /// waited for already.
    fn push(
        &mut self,
        thread: usize,
        rows: Range<u32>,
        waits: impl Iterator<Item = Wait>,
        known: &mut [u32],
    ) {
        let threads = self.threads.len();
        let known = &mut known[thread * threads..(thread + 1) * threads];
        let first_wait = self.waits.len();
        for wait in waits {
            if wait.thread as usize == thread || known[wait.thread as usize] >= wait.tasks {
                continue;
            }
            known[wait.thread as usize] = wait.tasks;
            match self.waits[first_wait..].iter_mut().find(|w| w.thread == wait.thread) {
                Some(earlier) => earlier.tasks = wait.tasks,
                None => self.waits.push(wait),
            }
        }
        let waits = (first_wait as u32, self.waits.len() as u32);
        self.threads[thread].push(Task { rows: (rows.start, rows.end), waits });
    }

    /// Runs `work(rows)` as [`run_with`](Self::run_with) does. Compiled once, not for every kernel.
    pub(super) fn run(&self, work: &(dyn Fn(&[u32]) + Sync)) {
        self.run_with(|_| (), |(), rows| work(rows), |()| ());
    }

    /// Runs `work(state, rows)` on slices that cover all rows, in an order that respects the
    /// pattern, on all threads of the current pool: as many as the order was made for. Thread t
    /// works with `state(t)`; returns `finish` of each.
    pub(super) fn run_with<S, R: Send>(
        &self,
        state: impl Fn(usize) -> S + Sync,
        work: impl Fn(&mut S, &[u32]) + Sync,
        finish: impl Fn(S) -> R + Sync,
    ) -> Vec<R> {
        assert_eq!(self.threads.len(), rayon::current_num_threads());
        let finished: Vec<Finished> = self.threads.iter().map(|_| Finished::default()).collect();
        on_each(|thread| {
            let mut state = state(thread);
            for (done, task) in (1..).zip(&self.threads[thread]) {
                for wait in &self.waits[task.waits.0 as usize..task.waits.1 as usize] {
                    finished[wait.thread as usize].reached(wait.tasks);
                }
                work(&mut state, &self.rows[task.rows.0 as usize..task.rows.1 as usize]);
                finished[thread].finish(done);
            }
            finish(state)
        })
    }
}

impl Order {
    /// Runs `row(state, i)` on all rows as [`run_with`](Self::run_with) does. A row must need lower ones
    /// only, so that every row below the lowest one that fails is finished.
    ///
    /// # Errors
    /// The lowest row that fails.
    pub(super) fn try_rows<S>(
        &self,
        state: impl Fn(usize) -> S + Sync,
        row: impl Fn(&mut S, usize) -> Result<(), SingularBlock> + Sync,
    ) -> Result<(), SingularBlock> {
        let failed = AtomicUsize::new(usize::MAX);
        let errors = self.run_with(
            |thread| (state(thread), None::<SingularBlock>),
            |(state, error), rows| {
                for &i in rows {
                    if failed.load(Ordering::Relaxed) < i as usize {
                        continue;
                    }
                    if let Err(e) = row(state, i as usize) {
                        failed.fetch_min(e.row, Ordering::Relaxed);
                        if error.is_none_or(|old| e.row < old.row) {
                            *error = Some(e);
                        }
                    }
                }
            },
            |(_, error)| error,
        );
        errors.into_iter().flatten().min_by_key(|e| e.row).map_or(Ok(()), Err)
    }
}

/// Numbers read in a sweep over `rows` block rows with `entries` blocks beside the diagonal.
fn numbers(rows: usize, entries: usize, b: usize) -> u64 {
    (rows * (b * b + 2 * b) + entries * b * b) as u64
}

/// Rows of the smallest chunks that are tried: with a thousand chunks for each thread smaller ones are not better by
/// more than a few percent (120^3, k = 0 to 2), and it takes longer to find who does which.
fn smallest(rows: usize, threads: usize) -> usize {
    const MOST: usize = 64;
    1 << (rows / (1024 * threads)).clamp(SMALLEST, MOST).ilog2()
}

/// Rows up to which a level is cheaper on one thread than shared.
fn serial_rows(all: u64, rows: usize, threads: usize) -> usize {
    if threads == 1 {
        return usize::MAX;
    }
    // n rows of weight w: n w against n w / t + wait
    let weight = (all / rows.max(1) as u64).max(1);
    (WAIT * threads as u64 / (weight * (threads as u64 - 1))) as usize
}

/// Estimated cost of the order by levels of so many rows.
fn level_cost(sizes: &[usize], weight: u64, serial_rows: usize, threads: usize) -> u64 {
    let cost = |&rows: &usize| {
        if rows > serial_rows {
            rows.div_ceil(threads) as u64 * weight + WAIT
        } else {
            rows as u64 * weight
        }
    };
    sizes.iter().map(cost).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::pattern::Pattern;
    use crate::problem::samples::{matrix, pattern};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn filled(grid: &str, k: usize) -> Arc<FillPattern> {
        pattern(&matrix(grid), k)
    }

    fn sides(p: &FillPattern) -> [(PatternView<'_>, Sweep, Schedule); 2] {
        [
            (p.lower.view(), Sweep::Forward, Schedule::lower(p)),
            (p.upper.view(), Sweep::Backward, Schedule::upper(p)),
        ]
    }

    /// Runs the order and sees that every row comes once, after the rows that it needs.
    fn check(order: &Order, pattern: PatternView) {
        let done: Vec<AtomicBool> =
            pattern.row_ptr[1..].iter().map(|_| AtomicBool::new(false)).collect();
        let pool =
            rayon::ThreadPoolBuilder::new().num_threads(order.threads.len()).build().expect("pool");
        let rows = pool.install(|| {
            order.run_with(
                |_| 0,
                |count, rows| {
                    for &i in rows {
                        let needs = pattern.row(i as usize);
                        // a panic here would leave the other threads waiting
                        let ready = needs.iter().all(|&j| done[j as usize].load(Ordering::Relaxed));
                        let first = !done[i as usize].swap(true, Ordering::Relaxed);
                        *count += usize::from(ready && first);
                    }
                },
                |count| count,
            )
        });
        assert_eq!(rows.iter().sum::<usize>(), done.len());
    }

    #[test]
    fn chunks_and_levels_respect_the_pattern() {
        for (grid, k) in [("poisson3d:17", 0), ("poisson3d:12x5x9", 2), ("poisson3d:40x40x1", 1)] {
            let p = filled(grid, k);
            for (pattern, sweep, schedule) in sides(&p) {
                for threads in [1, 2, 3, 7] {
                    let base = Graph::of_chunks(
                        Threads::Pool,
                        (pattern, sweep),
                        SMALLEST,
                        |rows, entries| (rows + entries) as u64,
                    )
                    .expect("grid");
                    for graph in [base.merged(40), base] {
                        let order =
                            Order::from_chunks(&graph, &graph.assign(threads), sweep, threads);
                        check(&order, pattern);
                    }
                    for serial in [0, 5, 50, usize::MAX] {
                        check(&Order::from_levels(&schedule, serial, threads), pattern);
                    }
                    check(&Order::serial(p.rows(), sweep, threads), pattern);
                }
            }
        }
    }

    #[test]
    fn levels_are_those_of_the_schedule() {
        let specs = ["poisson3d:17", "poisson3d:40x30x20", "poisson3d:9000x1x1", "fem-p1:60x50"];
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("pool");
        for (spec, k) in specs.into_iter().flat_map(|spec| [0, 1, 3].map(|k| (spec, k))) {
            let p = pattern(&matrix(spec), k);
            for (side, sweep, schedule) in sides(&p) {
                // known to repeat or seen to
                for side in [side, PatternView::new(side.row_ptr, side.col_ind)] {
                    let found = pool.install(|| {
                        let chunks = Order::by_chunks(side, sweep, 1, 3);
                        let of_order = chunks.map(|(order, _)| order.levels(side, sweep));
                        [of_order, Some(levels_in_turn(side, sweep))]
                    });
                    for level in found.into_iter().flatten() {
                        assert_eq!(sizes(&level).len(), schedule.levels(), "{spec}, k = {k}");
                        assert!(Schedule::from_levels(&level) == schedule, "{spec}, k = {k}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_order_fits_the_pattern() {
        let cheapest = |p: &FillPattern, block_size| {
            let side = (p.lower.view(), Sweep::Forward);
            let chunks = Order::by_chunks(side.0, side.1, block_size, 2);
            let level = levels_in_turn(side.0, side.1);
            Order::cheapest(chunks, (&level, &sizes(&level)), side, block_size, 2)
        };
        let tasks = |p: &FillPattern, block_size| {
            cheapest(p, block_size).threads.iter().map(Vec::len).collect::<Vec<_>>()
        };
        // a chain and a small grid stay on one thread
        assert_eq!(tasks(&filled("poisson3d:5000x1x1", 0), 8), [1, 0]);
        assert_eq!(tasks(&filled("poisson3d:6", 0), 1), [1, 0]);
        // rows that need distant ones have no chunks
        let n = 8192;
        let columns = (1..n).map(|i| i * 7919 % 8191 % i).collect::<Vec<_>>();
        let pattern = Pattern::new((0..1).chain(0..n).collect::<Vec<_>>(), columns);
        let scattered =
            FillPattern::new(pattern, Pattern::new(vec![0; n as usize + 1], vec![]), Vec::new());
        let [(pattern, sweep, _), _] = sides(&scattered);
        assert!(
            Graph::of_chunks(Threads::Pool, (pattern, sweep), SMALLEST, |rows, _| rows as u64)
                .is_none()
        );
        let order = cheapest(&scattered, 8);
        assert!(order.threads[1].len() > 1);
        check(&order, pattern);
        // a grid is shared evenly, in chunks
        let grid = tasks(&filled("poisson3d:30", 0), 8);
        assert!(grid[0] > 10 && grid[0].abs_diff(grid[1]) < grid[0] / 4, "{grid:?}");
    }
}
