//! FGBILU on the CPU: point after point on one thread, by hyperplanes on all cores (Luo et al. 2015,
//! Algorithms 2 and 3).

#![allow(
    unsafe_code,
    reason = "instruction sets chosen at run time, threads that write disjoint parts"
)]

use std::cmp::Ordering;
use std::sync::Arc;

use super::Cpu;
use super::block::{BlockSize, SINGULAR, with_block_size};
use super::multiversion::multiversion;
use super::order::Order;
use super::pace::Pace;
use super::shared::Shared;
use super::simd::Simd;
use crate::base::choices::MAX_BLOCK_SIZE;
use crate::base::memory::Buffer;
use crate::compute::{Breakdown, Bytes, GridFactors, SingularBlock};
use crate::matrix::Csr;
use crate::matrix::pattern::PatternView;
use crate::symbolic::{FillPattern, GridPattern, Schedule};

/// Strictly lower and upper blocks of A, and the inverted diagonal blocks d; blocks column-major. The
/// upper ones are in the opposite order of the pattern, as in [`super::BlockIlu`].
pub(super) struct Fgbilu {
    pattern: Arc<FillPattern>,
    lower: Buffer<f64>,
    diagonal: Buffer<f64>,
    upper: Buffer<f64>,
    /// One thread needs none.
    plan: Option<Plan>,
}

/// Order of the factorisation and of both sweeps, and who makes them.
struct Plan {
    forward: Order,
    backward: Order,
    solving: Pace,
    factoring: Arc<Pace>,
}

impl Fgbilu {
    /// Storage on a grid, with an order by hyperplanes when `parallel`.
    pub(super) fn new(grid: &GridPattern, parallel: bool) -> Self {
        let pattern = Arc::clone(&grid.factors);
        let block_size = pattern.block_size();
        let bb = block_size * block_size;
        let plan = parallel.then(|| {
            let order = |planes: &Schedule, entries| Order::by_level(planes, entries, block_size);
            let planes = &grid.hyperplanes;
            Plan {
                forward: order(planes, pattern.lower.entries()),
                backward: order(&planes.reversed(), pattern.upper.entries()),
                solving: Pace::default(),
                factoring: Arc::default(),
            }
        });
        Self {
            lower: Buffer::zeros(pattern.lower.entries() * bb),
            diagonal: Buffer::zeros(pattern.rows() * bb),
            upper: Buffer::zeros(pattern.upper.entries() * bb),
            pattern,
            plan,
        }
    }
}

impl GridFactors<Cpu> for Fgbilu {
    fn factor(&mut self, k: &Cpu, a: &Csr, shift: f64) -> Result<(), Breakdown> {
        let factoring = self.plan.as_ref().map(|plan| Arc::clone(&plan.factoring));
        let block_size = self.pattern.block_size();
        let done = k.paced(
            factoring.as_deref(),
            |all| all.factorisations += 1,
            |alone| with_block_size!(block_size, factor_sized(self, a, shift, alone)),
        );
        Ok(done?)
    }

    fn apply(&self, k: &Cpu, r: &Buffer<f64>, z: &mut Buffer<f64>) {
        let pace = self.plan.as_ref().map(|plan| &plan.solving);
        k.paced(
            pace,
            |all| all.solves += 1,
            |alone| {
                with_block_size!(self.pattern.block_size(), apply_sized(self, r, z, alone));
            },
        );
    }

    fn bytes(&self, _: &Cpu) -> Bytes {
        let values = self.lower.len() + self.diagonal.len() + self.upper.len();
        let held = 8 * values + self.pattern.bytes();
        // d is read by both sweeps; r read, z written and, between the sweeps, read and written again
        let vector = 8 * self.pattern.rows() * self.pattern.block_size();
        Bytes { held, moved: held + 8 * self.diagonal.len() + 4 * vector }
    }
}

/// What all points of one factorisation share.
struct Job<'a> {
    a: &'a Csr,
    shift: f64,
    pattern: &'a FillPattern,
    lower_pattern: PatternView<'a>,
    upper_pattern: PatternView<'a>,
    lower: Shared<'a>,
    diagonal: Shared<'a>,
    upper: Shared<'a>,
}

fn factor_sized<K: BlockSize>(
    size: K,
    f: &mut Fgbilu,
    a: &Csr,
    shift: f64,
    alone: bool,
) -> Result<(), SingularBlock> {
    assert_eq!(a.rows(), f.pattern.rows() * size.b());
    let shift = if shift == 0.0 { 0.0 } else { shift * a.largest_diagonal() };
    let job = Job {
        a,
        shift,
        pattern: &f.pattern,
        lower_pattern: f.pattern.lower.view(),
        upper_pattern: f.pattern.upper.view(),
        lower: Shared::new(&mut f.lower),
        diagonal: Shared::new(&mut f.diagonal),
        upper: Shared::new(&mut f.upper),
    };
    let scratch = || vec![0.0; size.b() * size.b()];
    match f.plan.as_ref().filter(|_| !alone) {
        None => all_points(size, &job, &mut scratch()),
        Some(plan) => {
            plan.forward.try_rows(|_| scratch(), |product, i| point(size, &job, i, product))
        }
    }
}

multiversion! { fn point[K: BlockSize](size: K, job: &Job, i: usize, product: &mut [f64]) -> Result<(), SingularBlock> = point_body }
multiversion! { fn all_points[K: BlockSize](size: K, job: &Job, product: &mut [f64]) -> Result<(), SingularBlock> = all_points_body }

#[inline(always)]
fn all_points_body<K: BlockSize, S: Simd>(
    s: S,
    size: K,
    job: &Job,
    product: &mut [f64],
) -> Result<(), SingularBlock> {
    for i in 0..job.pattern.rows() {
        point_body(s, size, job, i, product)?;
    }
    Ok(())
}

/// Equation 1 at the point of row i, from A's values to the inverse; `product` is a block of scratch.
#[inline(always)]
fn point_body<K: BlockSize, S: Simd>(
    s: S,
    size: K,
    job: &Job,
    i: usize,
    product: &mut [f64],
) -> Result<(), SingularBlock> {
    let bb = size.b() * size.b();
    let (range, upper) = (job.lower_pattern.range(i), job.upper_pattern);
    // SAFETY: the blocks of row i are written by this call alone; those of the points it depends on
    // are finished: earlier in the loop, or in a task that was waited for.
    unsafe {
        let d = job.diagonal.write(i * bb..(i + 1) * bb);
        load(size, job, i, d);
        let mut scale = [0.0; MAX_BLOCK_SIZE];
        largest_of_rows(size, d, &mut scale);
        for e in range {
            let j = job.lower_pattern.col_ind[e] as usize;
            // a coupling that is stored in one direction only contributes nothing
            let Some(back) = upper.range(j).find(|&u| upper.col_ind[u] as usize == i) else {
                continue;
            };
            let back = upper.entries() - 1 - back;
            let a = size.factor(s, job.lower.read(e * bb..(e + 1) * bb));
            size.gemm(s, a, job.diagonal.read(j * bb..(j + 1) * bb), product);
            let product = size.factor(s, product);
            size.gemm_sub(s, product, job.upper.read(back * bb..(back + 1) * bb), d);
        }
        gauss_jordan(s, size, d, &scale).map_err(|(within, pivot)| {
            let absent = job.pattern.no_diagonal.binary_search(&(i as u32)).is_ok();
            SingularBlock { row: i, within, pivot, absent }
        })
    }
}

/// Copies block row i of A to its lower, diagonal (`d`) and upper blocks.
///
/// # Safety
/// As in `point_body`.
#[inline(always)]
unsafe fn load<K: BlockSize>(size: K, job: &Job, i: usize, d: &mut [f64]) {
    let (b, bb) = (size.b(), size.b() * size.b());
    let (lower, upper) = (job.lower_pattern, job.upper_pattern);
    let (own, behind) = (lower.range(i), upper.range(i));
    let last = upper.entries().wrapping_sub(1); // unused when there is no entry
    d.fill(0.0);
    for r in 0..b {
        let (cols, values) = job.a.row(i * b + r);
        // columns increase, so the blocks come one after the other
        let (mut e, mut u) = (own.start, behind.start);
        for (&j, &v) in cols.iter().zip(values) {
            let (j, at) = (j as usize / b, (j as usize % b) * b + r);
            match j.cmp(&i) {
                Ordering::Equal => d[at] = v,
                Ordering::Less => {
                    while (lower.col_ind[e] as usize) < j {
                        e += 1;
                    }
                    // SAFETY: a place of row i
                    unsafe { job.lower.write(e * bb + at..e * bb + at + 1)[0] = v };
                }
                Ordering::Greater => {
                    while (upper.col_ind[u] as usize) < j {
                        u += 1;
                    }
                    let at = (last - u) * bb + at;
                    // SAFETY: a place of row i
                    unsafe { job.upper.write(at..at + 1)[0] = v };
                }
            }
        }
        d[r * b + r] += job.shift;
    }
}

/// Largest entry of each row, in absolute value.
#[inline(always)]
fn largest_of_rows<K: BlockSize>(size: K, block: &[f64], largest: &mut [f64; MAX_BLOCK_SIZE]) {
    for column in block[..size.b() * size.b()].chunks_exact(size.b()) {
        for (most, v) in largest.iter_mut().zip(column) {
            *most = most.max(v.abs());
        }
    }
}

/// Algorithm 5: replaces a column-major block by its inverse, in place and without pivoting. `scale`
/// holds what the pivot of each row is measured by.
///
/// Line 3 of the algorithm multiplies by the pivot what line 2 has divided by it; here the row is
/// divided last.
#[inline(always)]
fn gauss_jordan<K: BlockSize, S: Simd>(
    s: S,
    size: K,
    d: &mut [f64],
    scale: &[f64; MAX_BLOCK_SIZE],
) -> Result<(), (usize, f64)> {
    let b = size.b();
    let d = &mut d[..b * b];
    for r in 0..b {
        let pivot = d[r * b + r];
        // not a number is no pivot either
        if !(pivot.is_finite() && pivot.abs() > SINGULAR * scale[r]) {
            let part = pivot.abs() / scale[r];
            return Err((r, if part.is_finite() { part } else { 0.0 }));
        }
        let inverse = 1.0 / pivot;
        let (left, rest) = d.split_at_mut(r * b);
        let (own, right) = rest.split_at_mut(b);
        for v in &mut *own {
            *v *= -inverse;
        }
        own[r] = inverse;
        for column in left.chunks_exact_mut(b).chain(right.chunks_exact_mut(b)) {
            let factor = column[r];
            column[r] = 0.0;
            for (v, &m) in column.iter_mut().zip(&*own) {
                *v = s.madd(m, factor, *v);
            }
        }
    }
    Ok(())
}

/// The factors as plain slices.
#[derive(Clone, Copy)]
struct Blocks<'a> {
    lower_pattern: PatternView<'a>,
    upper_pattern: PatternView<'a>,
    lower: &'a [f64],
    diagonal: &'a [f64],
    upper: &'a [f64],
}

fn apply_sized<K: BlockSize>(size: K, f: &Fgbilu, r: &[f64], z: &mut [f64], alone: bool) {
    let n = f.pattern.rows() * size.b();
    assert!(r.len() == n && z.len() == n);
    let blocks = Blocks {
        lower_pattern: f.pattern.lower.view(),
        upper_pattern: f.pattern.upper.view(),
        lower: &f.lower,
        diagonal: &f.diagonal,
        upper: &f.upper,
    };
    let z = Shared::new(z);
    let rows = f.pattern.rows() as u32;
    match f.plan.as_ref().filter(|_| !alone) {
        None => {
            forward(size, blocks, r, z, 0..rows);
            backward(size, blocks, z, (0..rows).rev());
        }
        Some(plan) => {
            let points = |rows: &[u32]| forward(size, blocks, r, z, rows.iter().copied());
            plan.forward.run_with(|_| (), |(), rows| points(rows), |()| ());
            let points = |rows: &[u32]| backward(size, blocks, z, rows.iter().copied());
            plan.backward.run_with(|_| (), |(), rows| points(rows), |()| ());
        }
    }
}

multiversion! { fn forward[K: BlockSize, I: Iterator<Item = u32>](size: K, f: Blocks, r: &[f64], z: Shared, rows: I) = forward_body }
multiversion! { fn backward[K: BlockSize, I: Iterator<Item = u32>](size: K, f: Blocks, z: Shared, rows: I) = backward_body }

/// `y = d^-1 (r - E y)` at some points.
#[inline(always)]
fn forward_body<K: BlockSize, I: Iterator<Item = u32>, S: Simd>(
    s: S,
    size: K,
    f: Blocks,
    r: &[f64],
    z: Shared,
    rows: I,
) {
    let (b, bb) = (size.b(), size.b() * size.b());
    let mut rest = [0.0; MAX_BLOCK_SIZE];
    for i in rows {
        let i = i as usize;
        let range = f.lower_pattern.range(i);
        let mut acc = size.load(s, &r[i * b..(i + 1) * b]);
        let blocks = f.lower[range.start * bb..range.end * bb].chunks_exact(bb);
        for (&j, block) in f.lower_pattern.col_ind[range].iter().zip(blocks) {
            let j = j as usize;
            // SAFETY: j < i is solved: earlier in the loop, or in a task that was waited for.
            acc = size.gemv_sub(s, block, unsafe { z.read(j * b..(j + 1) * b) }, acc);
        }
        size.store(s, acc, &mut rest);
        let d = &f.diagonal[i * bb..(i + 1) * bb];
        let y = size.gemv_add(s, d, &rest, size.zero(s));
        // SAFETY: this call alone writes segment i, and nobody reads it before the task ends.
        size.store(s, y, unsafe { z.write(i * b..(i + 1) * b) });
    }
}

/// `x = y - d^-1 F x` at some points, y and x in the same place.
#[inline(always)]
fn backward_body<K: BlockSize, I: Iterator<Item = u32>, S: Simd>(
    s: S,
    size: K,
    f: Blocks,
    z: Shared,
    rows: I,
) {
    let (b, bb) = (size.b(), size.b() * size.b());
    let mut sum = [0.0; MAX_BLOCK_SIZE];
    for i in rows {
        let i = i as usize;
        let (range, entries) = (f.upper_pattern.range(i), f.upper_pattern.entries());
        let mut acc = size.zero(s);
        let stored = (entries - range.end) * bb..(entries - range.start) * bb;
        let blocks = f.upper[stored].chunks_exact(bb);
        for (&j, block) in f.upper_pattern.col_ind[range].iter().rev().zip(blocks) {
            let j = j as usize;
            // SAFETY: j > i is solved: earlier in the loop, or in a task that was waited for.
            acc = size.gemv_add(s, block, unsafe { z.read(j * b..(j + 1) * b) }, acc);
        }
        size.store(s, acc, &mut sum);
        // SAFETY: this call alone touches segment i.
        let x = unsafe { z.write(i * b..(i + 1) * b) };
        let d = &f.diagonal[i * bb..(i + 1) * bb];
        let acc = size.gemv_sub(s, d, &sum, size.load(s, x));
        size.store(s, acc, x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::{LevelRule, ReadAs};
    use crate::matrix::pattern::block_pattern;
    use crate::symbolic::iluk;

    #[test]
    fn one_thread_and_all_of_them_compute_the_same_bits() {
        let k = Cpu::parallel(Some(3)).unwrap();
        let a = crate::problem::load("blockpoisson3d:12,b=2", ReadAs::Expanded).unwrap().matrix;
        let a = a.in_blocks(2);
        let points = block_pattern(&a);
        let factors = iluk(&points, 0, LevelRule::Min, usize::MAX).unwrap();
        let grid = GridPattern::of(&points, factors).unwrap();
        let r: Vec<f64> = (0..a.rows()).map(|i| ((i * 7919) % 1000) as f64 - 499.5).collect();
        let [alone, together] = [true, false].map(|alone| {
            let mut z = vec![0.0; a.rows()];
            k.pooled(|| {
                let mut f = Fgbilu::new(&grid, true);
                with_block_size!(2, factor_sized(&mut f, &a, 0.0, alone)).unwrap();
                with_block_size!(2, apply_sized(&f, &r, &mut z, alone));
            });
            z.iter().map(|z| z.to_bits()).collect::<Vec<_>>()
        });
        assert!(alone == together && alone.iter().all(|z| *z != 0));
    }
}
