//! Vectors in another order than factors.

use std::sync::{Mutex, PoisonError};

use crate::base::memory::Buffer;
use crate::base::threads::Threads;

/// Block rows that a task moves.
const ROWS: usize = 4096;

/// The place of each block row of the factors in the vectors, and both vectors in the factors' order.
pub(super) struct Numbering {
    order: Vec<u32>,
    /// Its inverse.
    place: Vec<u32>,
    block_size: usize,
    parallel: bool,
    vectors: Mutex<[Buffer<f64>; 2]>,
}

impl Numbering {
    pub(super) fn new(order: &[u32], block_size: usize, parallel: bool) -> Self {
        let n = order.len() * block_size;
        Self {
            order: order.to_vec(),
            place: crate::matrix::inverse(order),
            block_size,
            parallel,
            vectors: Mutex::new([Buffer::zeros(n), Buffer::zeros(n)]),
        }
    }

    /// `z = P' solve(P r)`, on the calling thread `alone` or with those of its pool.
    pub(super) fn around(
        &self,
        r: &[f64],
        z: &mut [f64],
        alone: bool,
        solve: impl FnOnce(&[f64], &mut [f64]),
    ) {
        let mut vectors = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let [inside, solved] = &mut *vectors;
        self.gather(&self.order, r, inside, alone);
        solve(inside, solved);
        self.gather(&self.place, solved, z, alone);
    }

    /// Block i of `to` is block `from_row[i]` of `from`.
    fn gather(&self, from_row: &[u32], from: &[f64], to: &mut [f64], alone: bool) {
        let b = self.block_size;
        let rows = |to: &mut [f64], rows: &[u32]| {
            if b == 1 {
                to.iter_mut().zip(rows).for_each(|(to, &i)| *to = from[i as usize]);
                return;
            }
            for (to, &i) in to.chunks_exact_mut(b).zip(rows) {
                to.copy_from_slice(&from[i as usize * b..(i as usize + 1) * b]);
            }
        };
        if self.parallel && !alone {
            Threads::Pool.chunks(to, ROWS * b, 1, |at, to| rows(to, &from_row[at * ROWS..]));
        } else {
            rows(to, from_row);
        }
    }
}
