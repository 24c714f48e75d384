//! Sums over pieces of a vector, component by component of a block, and numbers that are added to them.

use std::ops::{AddAssign, Range};

use super::Cpu;
use crate::base::memory::Buffer;
use crate::base::threads::Threads;
use crate::compute::{Bytes, distributed};

/// Numbers that are added side by side, about.
const SIDE_BY_SIDE: usize = 32;

/// Rows of that length in a chunk, whose sum does not depend on the threads.
const ROWS: usize = 128;

/// Chunks of a task.
const CHUNKS_PER_TASK: usize = 4;

/// Constants on pieces, and their runs.
pub struct Constants {
    of: distributed::Constants,
    runs: Vec<(usize, Range<usize>)>,
}

fn add(to: &mut [f64], from: impl IntoIterator<Item = f64>) {
    to.iter_mut().zip(from).for_each(|(to, from)| to.add_assign(from));
}

/// A multiple of the block size.
fn width(block_size: usize) -> usize {
    block_size * SIDE_BY_SIDE.div_ceil(block_size)
}

/// The sum of each component.
fn sums(v: &[f64], block_size: usize, threads: Threads) -> Vec<f64> {
    let width = width(block_size);
    let of_chunk = |chunk: &[f64]| {
        let mut side_by_side = vec![0.0; width];
        chunk.chunks(width).for_each(|row| add(&mut side_by_side, row.iter().copied()));
        let mut sums = vec![0.0; block_size];
        side_by_side.chunks(block_size).for_each(|block| add(&mut sums, block.iter().copied()));
        sums
    };
    let chunk = |at: usize| {
        let start = at * ROWS * width;
        of_chunk(&v[start..v.len().min(start + ROWS * width)])
    };
    let mut all = vec![0.0; block_size];
    let chunks = threads.map(v.len().div_ceil(ROWS * width), CHUNKS_PER_TASK, chunk);
    for sums in chunks {
        add(&mut all, sums);
    }
    all
}

impl Constants {
    pub(super) fn new(of: distributed::Constants) -> Self {
        Self { runs: of.runs(), of }
    }

    /// v is read, x read and written.
    pub(super) fn bytes(&self) -> Bytes {
        Bytes { held: 0, moved: 24 * self.of.unknowns() }
    }

    /// `Z' v` of the vectors of this rank, piece by piece.
    pub(super) fn sums(&self, k: &Cpu, v: &Buffer<f64>) -> Vec<f64> {
        let (b, mut all) = (self.of.block_size, vec![0.0; self.of.own()]);
        for (piece, run) in &self.runs {
            let v = &v[run.clone()];
            let sums = k.on(v.len(), |parallel| sums(v, b, Threads::when(parallel)));
            add(&mut all[piece * b..][..b], sums);
        }
        let own = self.of.left_out.and_then(|v| v.checked_sub(self.of.vectors[0]));
        if let Some(left_out) = own.and_then(|v| all.get_mut(v)) {
            *left_out = 0.0;
        }
        all
    }

    /// `x += Z y`, y having a number for each vector of all ranks.
    pub(super) fn add(&self, k: &Cpu, y: &Buffer<f64>, x: &mut Buffer<f64>) {
        let (b, width) = (self.of.block_size, width(self.of.block_size));
        for (piece, run) in &self.runs {
            let first = self.of.vectors[0] + piece * b;
            let of = |component| {
                let vector = first + component % b;
                if self.of.left_out == Some(vector) { 0.0 } else { y[vector] }
            };
            let side_by_side: Vec<f64> = (0..width).map(of).collect();
            let x = &mut x[run.clone()];
            k.on(x.len(), |parallel| {
                let chunk = |_, chunk: &mut [f64]| {
                    chunk.chunks_mut(width).for_each(|row| add(row, side_by_side.iter().copied()));
                };
                Threads::when(parallel).chunks(x, ROWS * width, CHUNKS_PER_TASK, chunk)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_each_component_on_any_number_of_threads() {
        for b in [1, 3, 40] {
            let n = 3 * ROWS * width(b) + 7 * b;
            let v: Vec<f64> = (0..n).map(|i| (i % b) as f64 + ((i / b) % 8) as f64).collect();
            let rows = n / b;
            let eights: usize = (0..rows).map(|row| row % 8).sum();
            let want: Vec<f64> = (0..b).map(|c| (c * rows + eights) as f64).collect();
            assert_eq!(sums(&v, b, Threads::One), want, "{b}");
            let v: Vec<f64> = v.iter().map(|v| (v + 0.1).sqrt()).collect();
            assert_eq!(sums(&v, b, Threads::One), sums(&v, b, Threads::Pool), "{b}");
        }
    }
}
