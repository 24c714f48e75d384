//! The CPU with vectors and matrices in float32, for the corrections of iterative refinement.

use std::time::Instant;

use super::groups::Groups;
use super::spmv::{self, Rows};
use super::vector::{Lane, SEGMENT};
use super::vectors::Host;
use super::{BlockIlu, Cpu, Matrix};
use crate::base::choices::Format;
use crate::base::error::Result;
use crate::base::memory::Buffer;
use crate::base::threads::Threads;
use crate::compute::single::Single;
use crate::compute::{Bytes, Clock, Executions, Platform, Products};
use crate::matrix::pattern::PatternView;
use crate::matrix::{Bsr, Csr};

/// The threads of a [`Cpu`], with scalars of its own.
pub(super) struct SingleCpu(Cpu);

/// A matrix by (block) rows in float32.
pub struct SingleMatrix {
    block_size: usize,
    columns: usize,
    row_ptr: Vec<u32>,
    col_ind: Vec<u32>,
    values: Vec<f32>,
    groups: Option<Groups>,
}

impl From<&Csr> for SingleMatrix {
    fn from(a: &Csr) -> Self {
        Self {
            block_size: 1,
            columns: a.cols(),
            row_ptr: a.row_ptr().to_vec(),
            col_ind: a.col_ind().to_vec(),
            values: a.values().iter().map(|&v| v as f32).collect(),
            groups: Groups::alike(Threads::Pool, PatternView::new(a.row_ptr(), a.col_ind())),
        }
    }
}

impl From<&Bsr> for SingleMatrix {
    fn from(a: &Bsr) -> Self {
        Self {
            block_size: a.block_size(),
            columns: a.block_rows(),
            row_ptr: a.row_ptr().to_vec(),
            col_ind: a.col_ind().to_vec(),
            values: a.values().iter().map(|&v| v as f32).collect(),
            groups: None,
        }
    }
}

impl SingleMatrix {
    fn rows(&self) -> Rows<'_, f32> {
        let Self { block_size, columns, row_ptr, col_ind, values, groups } = self;
        Rows::new((*block_size, *columns), (row_ptr, col_ind), values).in_groups(groups.as_ref())
    }
}

impl SingleCpu {
    pub(super) fn of(k: &Cpu) -> Self {
        Self(k.beside())
    }
}

impl Platform for SingleCpu {
    fn device(&self) -> String {
        self.0.device()
    }

    fn threads(&self) -> usize {
        self.0.threads()
    }

    fn on_cores(&self) -> bool {
        true
    }

    fn memory_free(&self) -> usize {
        self.0.memory_free()
    }

    fn copy_bandwidth(&self) -> f64 {
        self.0.copy_bandwidth()
    }

    fn cache_bytes(&self) -> Option<usize> {
        self.0.cache_bytes()
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn on_host<R: Send>(&self, work: impl FnOnce(Threads) -> R + Send) -> R {
        self.0.on_host(work)
    }
}

impl Clock for SingleCpu {
    type Mark = Instant;

    fn mark(&self) -> Instant {
        self.0.mark()
    }

    fn seconds(&self, from: &Instant, to: &Instant) -> f64 {
        self.0.seconds(from, to)
    }

    fn synchronise(&self) {}
}

impl Host for SingleCpu {
    type Number = f32;

    fn cpu(&self) -> &Cpu {
        &self.0
    }
}

impl Executions for SingleCpu {
    type Recording = ();
    type BlockIlu = BlockIlu;
}

impl Products for SingleCpu {
    type Matrix = SingleMatrix;

    fn format(&self, a: &SingleMatrix) -> Format {
        if a.block_size == 1 { Format::Csr } else { Format::Bsr }
    }

    fn matrix_bytes(&self, a: &SingleMatrix) -> Bytes {
        let held = 4 * (a.row_ptr.len() + a.col_ind.len() + a.values.len());
        Bytes { held, moved: held + 8 * (a.row_ptr.len() - 1) * a.block_size }
    }

    fn spmv(&self, a: &SingleMatrix, x: &Buffer<f32>, y: &mut Buffer<f32>) {
        self.0.on(a.values.len(), |parallel| spmv::product(a.rows(), x, None, y, parallel));
    }

    fn residual(&self, a: &SingleMatrix, x: &Buffer<f32>, b: &Buffer<f32>, r: &mut Buffer<f32>) {
        self.0.on(a.values.len(), |parallel| spmv::product(a.rows(), x, Some(b), r, parallel));
    }
}

impl Single<Cpu> for SingleCpu {
    fn narrowed(&self, a: &Matrix) -> Option<SingleMatrix> {
        a.single()
    }

    fn narrow(&self, from: &Buffer<f64>, factor: f64, to: &mut Buffer<f32>) {
        converted(&self.0, from, factor, to);
    }

    fn widen(&self, from: &Buffer<f32>, factor: f64, to: &mut Buffer<f64>) {
        converted(&self.0, from, factor, to);
    }
}

/// `to = factor * from`.
fn converted<T: Lane, U: Lane>(k: &Cpu, from: &[T], factor: f64, to: &mut [U]) {
    let segment = |to: &mut [U], from: &[T]| {
        to.iter_mut().zip(from).for_each(|(to, v)| *to = U::of(factor * v.wide()));
    };
    k.on(to.len(), |parallel| {
        Threads::when(parallel).chunks(to, SEGMENT, 1, |at, to| segment(to, &from[at * SEGMENT..]));
    });
}
