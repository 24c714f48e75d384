//! Block ILU(k) factors on the CPU: storage and numeric factorisation.

#![allow(
    unsafe_code,
    reason = "instruction sets chosen at run time, threads that write disjoint parts"
)]

mod loading;
mod repeated;
mod supernodes;
mod workspace;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::block::{BlockSize, Fixed, with_block_size};
use super::groups::Groups;
use super::multiversion::multiversion;
use super::numbering::Numbering;
use super::order::Order;
use super::pace::Pace;
use super::parts::Blocks;
use super::row_sums::far_in_four_sums;
use super::runs::Runs;
use super::shared::Shared;
use super::simd::{Simd, prefetch};
use super::values::Values;
use loading::load;
use workspace::{Places, Workspace};

use crate::base::choices::FactorPrecision;
use crate::base::measure::spans::span;
use crate::base::threads::Threads;
use crate::compute::Trisolve;
use crate::compute::{Breakdown, Bytes, FactorInfo, SingularBlock};
use crate::matrix::Csr;
use crate::matrix::pattern::{Pattern, PatternView};
use crate::symbolic::{FillPattern, schedule};

/// Factors `L D U'`: strictly lower blocks of L, inverted diagonal blocks, strictly upper blocks
/// of `U' = D^-1 U`; blocks column-major. L is in the order of the pattern, U' in the opposite
/// order: the backward solve then runs through ascending memory, as prefetchers expect.
pub struct BlockIlu {
    pub(super) pattern: Arc<FillPattern>,
    pub(super) values: Values,
    /// Level-parallel plan of both solves; none on one thread, or where levels are narrow.
    pub(super) plan: Option<Plan>,
    /// Scratch of the factorisation, one per thread.
    pub(super) spaces: Vec<Mutex<Workspace>>,
    /// Of both solves; one thread does not need them, so they are counted when they are asked for.
    levels: OnceLock<[usize; 2]>,
    /// Rows that one thread takes together.
    pub(super) supernodes: Option<Groups>,
    /// Whether a row of each triangle may have [four sums](far_in_four_sums); not looked for where there are runs.
    pub(super) long_rows: [bool; 2],
    /// Rows of each triangle whose columns solves know from others.
    pub(super) runs: Option<[Runs; 2]>,
    /// Order of the vectors, where it is not that of the factors.
    pub(super) renumbered: Option<Numbering>,
}

/// Parallel order of the forward and backward solves, and who makes solves and factorisations.
pub(super) struct Plan {
    pub(super) lower: Order,
    pub(super) upper: Order,
    pub(super) solving: Pace,
    pub(super) factoring: Arc<Pace>,
}

impl BlockIlu {
    /// Storage for factors on `pattern`, with schedules when `parallel`.
    pub(super) fn new(
        pattern: &Arc<FillPattern>,
        precision: FactorPrecision,
        parallel: bool,
    ) -> Self {
        let (levels, plan) = if parallel {
            let (orders, levels) = span("orders", || Order::both(pattern));
            let plan = |[lower, upper]: [Order; 2]| {
                let (solving, factoring) = Default::default();
                Plan { lower, upper, solving, factoring }
            };
            (OnceLock::from(levels), orders.map(plan))
        } else {
            (OnceLock::new(), None)
        };
        let threads = Threads::when(parallel);
        let runs = |of: &Pattern| span("runs", || Runs::of(threads, of.view()));
        let supernodes = span("supernodes", || supernodes::supernodes(threads, pattern));
        let runs = (pattern.block_size() == 1 && precision != FactorPrecision::Adaptive)
            .then(|| Some([runs(&pattern.lower)?, runs(&pattern.upper)?]))
            .flatten();
        let long = |row: &[u32]| far_in_four_sums((row[1] - row[0]) as usize) > 0;
        let long_rows = [&pattern.lower, &pattern.upper].map(|of| {
            pattern.block_size() == 1 && (runs.is_some() || of.row_ptr.windows(2).any(long))
        });
        Self {
            spaces: span("workspaces", || {
                Workspace::of_each(threads, pattern, supernodes.is_some())
            }),
            values: span("zeros", || Values::zeros(pattern, precision)),
            supernodes,
            long_rows,
            runs,
            pattern: Arc::clone(pattern),
            plan,
            levels,
            renumbered: None,
        }
    }

    /// Block row `order[i]` of the vectors is row i of the factors.
    pub(super) fn renumber(&mut self, order: &[u32]) {
        self.renumbered =
            Some(Numbering::new(order, self.pattern.block_size(), self.plan.is_some()));
    }

    /// Inverse diagonal blocks in float64.
    pub(super) fn inverse_diagonal(&self) -> Vec<f64> {
        self.values.in_float64(&self.pattern, |blocks| blocks.inverse_diagonal.to_vec())
    }

    /// Numeric factorisation; see [`Factors::ilu_factor`](crate::compute::Factors::ilu_factor).
    /// Factors for storage in another precision are made in float64 beside it. On the threads of the plan, where
    /// there is one, or on the calling thread `alone`.
    pub(super) fn factor(&mut self, a: &Csr, shift: f64, alone: bool) -> Result<(), Breakdown> {
        let (b, pattern) = (self.pattern.block_size(), &self.pattern);
        let plan = self.plan.as_ref().filter(|_| !alone);
        let with =
            Scratch { plan, spaces: &self.spaces, pattern, supernodes: self.supernodes.as_ref() };
        if let Values::Double(blocks) = &mut self.values {
            return Ok(with_block_size!(b, factor_sized(with, blocks, a, shift))?);
        }
        let mut blocks = Blocks::zeros(pattern);
        with_block_size!(b, factor_sized(with, &mut blocks, a, shift))?;
        self.values.store(&blocks, pattern, plan.is_some())
    }
}

/// What a factorisation works with besides values.
#[derive(Clone, Copy)]
struct Scratch<'a> {
    plan: Option<&'a Plan>,
    spaces: &'a [Mutex<Workspace>],
    pattern: &'a FillPattern,
    supernodes: Option<&'a Groups>,
}

fn factor_sized<K: BlockSize>(
    size: K,
    ilu: Scratch,
    blocks: &mut Blocks<f64>,
    a: &Csr,
    shift: f64,
) -> Result<(), SingularBlock> {
    let shift = if shift == 0.0 { 0.0 } else { shift * a.largest_diagonal() };
    let job = Job { supernodes: ilu.supernodes, ..Job::new(a, shift, ilu.pattern, blocks) };
    let Some(plan) = ilu.plan else {
        return some_rows(size, &job, 0..ilu.pattern.rows(), &mut lock(&ilu.spaces[0]));
    };
    plan.lower.try_rows(|thread| lock(&ilu.spaces[thread]), |space, i| row(size, &job, i, space))
}

pub(super) fn lock(space: &Mutex<Workspace>) -> MutexGuard<'_, Workspace> {
    space.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all rows of one factorisation share.
pub(super) struct Job<'a> {
    pub(super) a: &'a Csr,
    /// Where the blocks of A are, if all are stored whole.
    pub(super) whole: Option<PatternView<'a>>,
    pub(super) shift: f64,
    pub(super) pattern: &'a FillPattern,
    pub(super) lower_pattern: PatternView<'a>,
    pub(super) upper_pattern: PatternView<'a>,
    pub(super) lower: Shared<'a>,
    pub(super) inverse_diagonal: Shared<'a>,
    pub(super) upper: Shared<'a>,
    pub(super) supernodes: Option<&'a Groups>,
}

impl<'a> Job<'a> {
    pub(super) fn new(
        a: &'a Csr,
        shift: f64,
        pattern: &'a FillPattern,
        blocks: &'a mut Blocks<f64>,
    ) -> Self {
        assert_eq!(a.rows(), pattern.rows() * pattern.block_size());
        Self {
            a,
            whole: a
                .whole_pattern(pattern.block_size())
                .map(|of| PatternView::new(of.row_ptr(), of.col_ind())),
            shift,
            pattern,
            lower_pattern: pattern.lower.view(),
            upper_pattern: pattern.upper.view(),
            lower: Shared::new(&mut blocks.lower),
            inverse_diagonal: Shared::new(&mut blocks.inverse_diagonal),
            upper: Shared::new(&mut blocks.upper),
            supernodes: None,
        }
    }
}

/// `A_ij -= A_ip U'_pj`.
#[derive(Clone, Copy, Default)]
struct Update {
    /// Where `U'_pj` is stored, in blocks.
    upper: u32,
    /// Where `A_ij` is in the row, in blocks.
    target: u32,
}

/// Updates between the request for a block of U' and its use: longer than a fetch from the last
/// cache takes.
const AHEAD: usize = 4;

multiversion! { fn row[K: BlockSize](size: K, job: &Job, i: usize, space: &mut Workspace) -> Result<(), SingularBlock> = row_body }

multiversion! { pub(super) fn some_rows[K: BlockSize](size: K, job: &Job, rows: Range<usize>, space: &mut Workspace) -> Result<(), SingularBlock> = some_rows_body }

#[inline(always)]
fn some_rows_body<K: BlockSize, S: Simd>(
    s: S,
    size: K,
    job: &Job,
    rows: Range<usize>,
    space: &mut Workspace,
) -> Result<(), SingularBlock> {
    // no closure: it would be compiled without the caller's instruction set
    let mut i = rows.start;
    while i < rows.end {
        let mut count = if size.b() == 1 { repeated::rows(job, i..rows.end) } else { 1 };
        if count > 1 {
            repeated::factor(s, job, i..i + count, &mut space.repeated)?;
        } else if size.b() == 1
            && let Some(nodes) = job.supernodes
            && nodes.ahead(i..rows.end) > 1
        {
            count = nodes.ahead(i..rows.end);
            supernodes::factor(s, job, nodes, i..i + count, &mut space.columns)?;
        } else {
            row_body(s, size, job, i, space)?;
        }
        i += count;
    }
    Ok(())
}

/// Row i of Algorithm 4, with `U' = D^-1 U` in place of U:
///
/// for p < i in P': `A_ij -= A_ip U'_pj` for j > p, then `L_ip = A_ip D_p^-1`;
/// at the end `D_i = A_ii` is inverted and `U'_ij = D_i^-1 A_ij`.
///
/// Since `L_ip U_pj = A_ip D_p^-1 D_p U'_pj`, this is the same factorisation.
#[inline(always)]
fn row_body<K: BlockSize, S: Simd>(
    s: S,
    size: K,
    job: &Job,
    i: usize,
    space: &mut Workspace,
) -> Result<(), SingularBlock> {
    if size.b() == 1 { scalar_row(s, job, i, space) } else { block_row(s, size, job, i, space) }
}

/// Blocks of one: the row is held dense, so that updates need no test; places outside the pattern
/// collect rubbish that nobody reads.
#[inline(always)]
fn scalar_row<S: Simd>(
    s: S,
    job: &Job,
    i: usize,
    space: &mut Workspace,
) -> Result<(), SingularBlock> {
    let (lower, upper) = (job.lower_pattern, job.upper_pattern);
    let (lower_cols, upper_cols) = (lower.row(i), upper.row(i));
    let absent = job.pattern.lacks_diagonal(i);
    let (row, window) = (&mut space.row[..], space.window);
    let own = window.place(i as u32);
    lower_cols.iter().chain(upper_cols).for_each(|&j| row[window.place(j)] = 0.0);
    row[own] = 0.0;
    let (cols, values) = job.a.row(i);
    for (&j, &v) in cols.iter().zip(values) {
        if window.holds(i, j) {
            row[window.place(j)] = v;
        }
    }
    row[own] += job.shift;
    // SAFETY: row i of each factor is written by this call alone; rows p < i in the pattern are
    // finished: earlier in the loop, or in a task that was waited for.
    unsafe {
        let l = job.lower.write(lower.range(i));
        for (l, &p) in l.iter_mut().zip(lower_cols) {
            let multiplier = row[window.place(p)];
            let p = p as usize;
            let range = upper.range(p);
            let values = job.upper.read(reversed(&range, upper.entries()));
            let of_row = &upper.col_ind[range];
            // two at a time: both are read before one is written, which the compiler cannot know to be another
            let mut turn = 0;
            while turn + 1 < of_row.len() {
                let last = values.len() - 1 - turn;
                let [j, k] = [turn, turn + 1].map(|at| window.place(*of_row.get_unchecked(at)));
                let [u, v] = [last, last - 1].map(|at| *values.get_unchecked(at));
                let [one, other] = [j, k].map(|at| *row.get_unchecked(at));
                *row.get_unchecked_mut(j) = s.madd(-multiplier, u, one);
                *row.get_unchecked_mut(k) = s.madd(-multiplier, v, other);
                turn += 2;
            }
            if turn < of_row.len() {
                let at = &mut row[window.place(of_row[turn])];
                *at = s.madd(-multiplier, values[0], *at);
            }
            *l = multiplier * job.inverse_diagonal.read(p..p + 1)[0];
        }
        let diagonal = job.inverse_diagonal.write(i..i + 1);
        diagonal[0] = if absent { job.shift } else { row[own] };
        if let Err((within, pivot)) = Fixed::<1>.invert(s, diagonal) {
            return Err(SingularBlock { row: i, within, pivot, absent });
        }
        let range = upper.range(i);
        let u = job.upper.write(reversed(&range, upper.entries()));
        for (u, &j) in u.iter_mut().rev().zip(upper_cols) {
            *u = diagonal[0] * row[window.place(j)];
        }
    }
    Ok(())
}

#[inline(always)]
fn block_row<K: BlockSize, S: Simd>(
    s: S,
    size: K,
    job: &Job,
    i: usize,
    space: &mut Workspace,
) -> Result<(), SingularBlock> {
    let (b, bb) = (size.b(), size.b() * size.b());
    let (lower, upper) = (job.lower_pattern, job.upper_pattern);
    let (lower_cols, upper_cols) = (lower.row(i), upper.row(i));
    let (nl, nu) = (lower_cols.len(), upper_cols.len());
    let absent = job.pattern.lacks_diagonal(i);
    let mut places = Places { of: &mut space.position[..], window: space.window };
    for (at, &j) in lower_cols.iter().chain(&[i as u32]).chain(upper_cols).enumerate() {
        places.set(j, at as u32 + 1);
    }
    let row = &mut space.row[..(nl + 1 + nu) * bb];
    load(size, job, i, &places, row);
    let updates = list_updates(job, lower_cols, &places, &mut space.updates, &mut space.ends);
    for &j in lower_cols.iter().chain(&[i as u32]).chain(upper_cols) {
        places.set(j, 0);
    }
    // SAFETY: as in `scalar_row`; ranges are those of the pattern times the block's entries.
    unsafe {
        let start = lower.row_ptr[i] as usize;
        let mut done = 0;
        for (at, (&p, &end)) in lower_cols.iter().zip(&space.ends).enumerate() {
            let p = p as usize;
            // p < j: what the multiplier changes lies behind it
            let (head, behind) = row.split_at_mut((at + 1) * bb);
            let multiplier = size.factor(s, &head[at * bb..]);
            for update in done..end as usize {
                if (5..=8).contains(&size.b())
                    && let Some(next) = updates.get(update + AHEAD)
                {
                    let u = next.upper as usize;
                    prefetch(job.upper.read(u * bb..(u + 1) * bb));
                }
                let Update { upper: u, target } = updates[update];
                let (u, c) = (u as usize, (target as usize - 1 - at) * bb);
                let u = job.upper.read(u * bb..(u + 1) * bb);
                size.gemm_sub(s, multiplier, u, &mut behind[c..c + bb]);
            }
            done = end as usize;
            let l = job.lower.write((start + at) * bb..(start + at + 1) * bb);
            size.gemm(s, multiplier, job.inverse_diagonal.read(p * bb..(p + 1) * bb), l);
        }
        let diagonal = job.inverse_diagonal.write(i * bb..(i + 1) * bb);
        diagonal.copy_from_slice(&row[nl * bb..(nl + 1) * bb]);
        if absent {
            diagonal.fill(0.0);
            (0..b).for_each(|r| diagonal[r * b + r] = job.shift);
        }
        if let Err((within, pivot)) = size.invert(s, diagonal) {
            return Err(SingularBlock { row: i, within, pivot, absent });
        }
        let inverse = size.factor(s, diagonal);
        let start = upper.row_ptr[i] as usize;
        for at in 0..nu {
            let from = &row[(nl + 1 + at) * bb..(nl + 2 + at) * bb];
            let stored = upper.entries() - 1 - (start + at);
            let u = job.upper.write(stored * bb..(stored + 1) * bb);
            size.gemm(s, inverse, from, u);
        }
    }
    Ok(())
}

/// Lists what row i subtracts, p by p; `ends` gets the end of each p in the list.
#[inline(always)]
fn list_updates<'a>(
    job: &Job,
    lower_cols: &[u32],
    places: &Places,
    updates: &'a mut Vec<Update>,
    ends: &mut Vec<u32>,
) -> &'a [Update] {
    let upper = job.upper_pattern;
    let mut most = 0;
    for &p in lower_cols {
        most += upper.range(p as usize).len();
    }
    if updates.len() < most {
        updates.resize(most, Update::default());
    }
    ends.clear();
    let mut count = 0;
    let last = upper.entries().wrapping_sub(1); // unused when there is no entry
    for &p in lower_cols {
        let range = upper.range(p as usize);
        let first = range.start;
        for (at, &j) in upper.col_ind[range].iter().enumerate() {
            // written always, kept only if j is in row i: no branch to mispredict
            let target = places.get(j);
            updates[count] =
                Update { upper: (last - (first + at)) as u32, target: target.wrapping_sub(1) };
            count += usize::from(target != 0);
        }
        ends.push(count as u32);
    }
    &updates[..count]
}

/// Where a range of entries of U' is stored.
#[inline(always)]
fn reversed(range: &Range<usize>, entries: usize) -> Range<usize> {
    entries - range.end..entries - range.start
}

impl FactorInfo for BlockIlu {
    fn pattern(&self) -> &FillPattern {
        &self.pattern
    }

    fn bytes(&self) -> Bytes {
        Bytes::of_factors(&self.pattern, self.values.bytes())
    }

    fn precisions(&self) -> Option<String> {
        self.values.shares()
    }

    fn trisolve(&self) -> Trisolve {
        Trisolve::AUTO
    }

    fn levels(&self) -> [usize; 2] {
        let pattern = &self.pattern;
        let count = || [schedule::levels_lower(pattern), schedule::levels_upper(pattern)];
        *self.levels.get_or_init(count)
    }
}
