//! The levels, and the cycle over them.

use std::borrow::Cow;
use std::sync::Arc;

use super::super::approximate::{Operator, size};
use super::super::polynomial::Polynomial;
use super::super::scratch::Scratch;
use super::super::{Phase, Setup};
use super::Choices;
use super::aggregates::{aggregates, strong};
use super::coarsening::{diagonal, filtered, galerkin, prolongation, scaled};
use crate::base::choices::Format;
use crate::base::threads::Threads;
use crate::compute::cpu::sparse::dense::semidefinite_inverse;
use crate::compute::cpu::sparse::largest_row_sum;
use crate::compute::preconditioner::{FactorSize, Preconditioner, SetupFailure};
use crate::compute::{Backend, Bytes, Coef};
use crate::matrix::Csr;

/// More levels than a matrix of 2^32 unknowns has.
const MOST_LEVELS: usize = 32;

/// Largest over smallest eigenvalue that a smoother damps.
const SMOOTHED: f64 = 5.0;

/// A level, and the way to the next.
struct Level<K: Backend> {
    smoother: Polynomial<K>,
    next: Option<Way<K>>,
}

struct Way<K: Backend> {
    /// `D_c^-1 P' D` and `P`.
    down: K::Matrix,
    up: K::Matrix,
    entries: usize,
    /// Unknowns of this level.
    unknowns: usize,
    /// Residual and correction of this level.
    own: Scratch<K, 1>,
    /// Right-hand side and solution of the next.
    coarse: Scratch<K, 2>,
}

/// What solves the last level.
enum Last<K: Backend> {
    /// `A^-1 D`.
    Inverse(K::Matrix),
    /// Its smoother, where nothing is coupled strongly enough to become fewer.
    Smoother,
}

/// A V cycle for `D^-1 A x = D^-1 b`.
pub(crate) struct Cycle<K: Backend> {
    levels: Vec<Level<K>>,
    last: Last<K>,
    bytes: Bytes,
}

impl<K: Backend> Cycle<K> {
    /// For `a`, whose blocks are nodes of the aggregates, with its diagonal.
    ///
    /// # Errors
    /// When a diagonal entry is zero, or there is too little memory.
    pub(crate) fn new(k: &K, a: &Csr, choices: Choices) -> Result<(Self, Vec<f64>), SetupFailure> {
        let finest = k.on_host(|_| diagonal(a))?;
        let (mut levels, mut theta) = (Vec::new(), choices.theta);
        let (mut a, mut d) = (Cow::Borrowed(a), finest.clone());
        let last = loop {
            let n = a.rows();
            if n <= choices.coarsest {
                let inverse = k.on_host(|_| inverse(&a, &d))?;
                break Last::Inverse(k.matrix(&Arc::new(inverse), Format::Csr)?);
            }
            let own = k.on_host(|threads| scaled(threads, &a, &d));
            let operator = stored(k, &own)?;
            // a bound: an estimate from products misses single large eigenvalues, which the polynomials then blow up
            let largest = largest_row_sum(&own);
            let coarser =
                if levels.len() < MOST_LEVELS { coarser(k, &a, &d, &own, theta)? } else { None };
            let range = [largest / SMOOTHED, largest];
            let smoother = Polynomial::new(k, operator, n, choices.degree - 1, range)?;
            let Some(Coarser { matrix, diagonal, way }) = coarser else {
                levels.push(Level { smoother, next: None });
                break Last::Smoother;
            };
            levels.push(Level { smoother, next: Some(way) });
            (a, d, theta) = (Cow::Owned(matrix), diagonal, theta / 2.0);
        };
        let mut made = Self { levels, last, bytes: Bytes::default() };
        made.bytes = made.counted(k);
        Ok((made, finest))
    }

    /// `x` of one cycle from zero for `c = D^-1 b`.
    pub(crate) fn apply(&self, k: &K, c: &K::Vector, x: &mut K::Vector) {
        self.descend(k, 0, c, x);
    }

    fn descend(&self, k: &K, at: usize, c: &K::Vector, x: &mut K::Vector) {
        let Some(Level { smoother, next }) = self.levels.get(at) else {
            let Last::Inverse(inverse) = &self.last else { unreachable!("a level without next") };
            k.spmv(inverse, c, x);
            return;
        };
        smoother.start(k, c, x);
        if let Some(way) = next {
            let [residual] = &mut *way.own.borrow();
            let [below, found] = &mut *way.coarse.borrow();
            smoother.residual(k, x, c, residual);
            k.spmv(&way.down, residual, below);
            self.descend(k, at + 1, below, found);
            k.spmv(&way.up, found, residual);
            k.axpby(Coef::ONE, residual, Coef::ONE, x);
        }
        smoother.improve(k, c, x);
    }

    /// Numbers of all matrices.
    pub(crate) fn entries(&self) -> usize {
        let of = |level: &Level<K>| {
            level.smoother.entries() + level.next.as_ref().map_or(0, |way| way.entries)
        };
        self.levels.iter().map(of).sum()
    }

    /// Bytes held, and moved by a cycle.
    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes
    }

    fn counted(&self, k: &K) -> Bytes {
        let mut all = Bytes::default();
        let mut add = |held: usize, moved: usize| {
            all.held += held;
            all.moved += moved;
        };
        for Level { smoother, next } in &self.levels {
            let start = smoother.bytes(k);
            add(start.held, start.moved + smoother.improve_moved(k));
            let Some(way) = next else { continue };
            let [down, up] = [&way.down, &way.up].map(|m| k.matrix_bytes(m));
            add(down.held + up.held, down.moved + up.moved);
            // the correction is added
            add(0, smoother.residual_moved(k) + 24 * way.unknowns);
        }
        if let Last::Inverse(inverse) = &self.last {
            let inverse = k.matrix_bytes(inverse);
            add(inverse.held, inverse.moved);
        }
        all
    }
}

/// The matrix of the next level, its diagonal and the way there.
struct Coarser<K: Backend> {
    matrix: Csr,
    diagonal: Vec<f64>,
    way: Way<K>,
}

/// The next level of `a` with diagonal `d`, `own` being `D^-1 A`; `None` where it would not be much smaller.
fn coarser<K: Backend>(
    k: &K,
    a: &Csr,
    d: &[f64],
    own: &Csr,
    theta: f64,
) -> Result<Option<Coarser<K>>, SetupFailure> {
    let strong = k.on_host(|threads| strong(threads, a, theta))?;
    let aggregates = k.on_host(|_| aggregates(&strong));
    let (n, count) = (a.rows(), aggregates.count * a.block_size());
    if count == 0 || count * 10 > n * 9 {
        return Ok(None);
    }
    let smoothing = k.on_host(|threads| filtered(threads, own, &strong))?;
    let omega = 4.0 / 3.0 / largest_row_sum(&smoothing);
    let p = k.on_host(|threads| prolongation(threads, &smoothing, &aggregates, omega))?;
    let [matrix, restriction] = k.on_host(|threads| galerkin(threads, a, &p))?;
    let below = k.on_host(|_| diagonal(&matrix)).map_err(|_| {
        let what = "a level of the hierarchy has a zero on its diagonal".to_owned();
        SetupFailure::Broken(what)
    })?;
    let down =
        k.on_host(|threads| restriction.filtered(threads, |i, j, v| Some(v * d[j] / below[i])));
    let entries = down.nnz() + p.nnz();
    let way = Way {
        down: k.matrix(&Arc::new(down.in_blocks(1)), Format::Csr)?,
        up: k.matrix(&Arc::new(p.in_blocks(1)), Format::Csr)?,
        entries,
        unknowns: n,
        own: Scratch::new(k, n)?,
        coarse: Scratch::new(k, count)?,
    };
    Ok(Some(Coarser { matrix, diagonal: below, way }))
}

/// `a` for products; the blocks of coarser levels are not full.
fn stored<K: Backend>(k: &K, a: &Csr) -> Result<Operator<K>, SetupFailure> {
    Operator::new(k, k.sparse(&a.in_blocks(1))?)
}

/// `A^-1 D`.
fn inverse(a: &Csr, d: &[f64]) -> Result<Csr, SetupFailure> {
    let (inverse, _) = semidefinite_inverse(a)?;
    Ok(inverse.filtered(Threads::One, |_, j, v| Some(v * d[j])))
}

/// A cycle as a preconditioner, `z = C D^-1 r`.
pub(super) struct Solo<K: Backend> {
    diagonal: K::Matrix,
    cycle: Cycle<K>,
    scratch: Scratch<K, 1>,
}

impl<K: Backend> Solo<K> {
    pub(super) fn new(s: &mut Setup<K>, choices: Choices) -> Result<Self, SetupFailure> {
        s.phases.begin(Phase::Numeric);
        let a = s.a.clone();
        let (cycle, d) = Cycle::new(s.k, &a, choices)?;
        s.phases.begin(Phase::Analysis);
        let (k, n) = (s.k, a.rows());
        let reciprocal = d.iter().map(|d| 1.0 / d).collect();
        let diagonal =
            Csr::new(n, n, (0..=n as u32).collect(), (0..n as u32).collect(), reciprocal)?;
        let diagonal = k.matrix(&Arc::new(diagonal), Format::Csr)?;
        Ok(Self { diagonal, cycle, scratch: Scratch::new(k, n)? })
    }
}

impl<K: Backend> Preconditioner<K> for Solo<K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        let [c] = &mut *self.scratch.borrow();
        k.spmv(&self.diagonal, r, c);
        self.cycle.apply(k, c, z);
    }

    fn bytes(&self, k: &K) -> Bytes {
        let (d, cycle) = (k.matrix_bytes(&self.diagonal), self.cycle.bytes());
        Bytes { held: d.held + cycle.held, moved: d.moved + cycle.moved }
    }

    fn size(&self, _: &K) -> FactorSize {
        size(self.cycle.entries())
    }
}
