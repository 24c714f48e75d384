//! Solves with the triangles of a group of rows, and with its couplings (`kernels/distributed/couplings.cu`).

use std::rc::Rc;

use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig};

use super::groups::{Couplings, Group, Split};
use crate::base::choices::FactorPrecision;
use crate::base::error::Result;
use crate::compute::Trisolve;
use crate::compute::cuda::Cuda;
use crate::compute::cuda::analysis::Analysis;
use crate::compute::cuda::cusparse::Handle;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{Address, SolveArg, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::numbers::{Numbers, Values};
use crate::compute::cuda::sources::{COUPLINGS, Variant};
use crate::compute::cuda::sptrsv::{self, InHalves, Solve, System, choice, triangles};
use crate::compute::cuda::storage::Structure;
use crate::compute::distributed::StagedSolves;

/// Threads of a block and its warps; mirrors `distributed/couplings.cu`.
const THREADS: u32 = 128;
const WARPS: usize = THREADS as usize / 32;

/// Where a solve of all groups reads and writes: numbers of the rank's own rows, and behind those of v the ones of
/// other ranks.
#[derive(Clone, Copy)]
pub(super) struct Vectors {
    pub(super) r: Address,
    pub(super) v: Address,
    pub(super) z: Address,
    /// Own block rows.
    pub(super) own: usize,
}

/// Solves with the factors of the only subdomain, as [`BlockIlu`](crate::compute::cuda::BlockIlu) has them without a
/// trial.
pub(super) struct Whole {
    solve: Box<dyn Solve>,
    pub(super) variant: Trisolve,
    pub(super) levels: [usize; 2],
}

impl Whole {
    pub(super) fn new(k: &Cuda, structure: &Structure, solves: StagedSolves) -> Result<Self> {
        let (d, pattern, b) = (&*k.device, &structure.pattern, structure.block_size);
        let analysis = Analysis::new(pattern, k.setup);
        let precision = solves.precision;
        let (levels, library) = (analysis.levels(d, structure), || k.library().map(Rc::clone));
        let system = system(k, structure, &analysis, precision, &library);
        let (variant, solve) = if pattern.blocks() == pattern.rows() {
            (sptrsv::ANY, triangles::diagonal_alone(&system)?)
        } else {
            let variant = match solves.trisolve {
                Trisolve::AUTO => {
                    choice::candidates(d, (&analysis, structure), precision)[0].variant
                }
                asked => sptrsv::suited(asked, b),
            };
            (variant, sptrsv::new(variant, &system)?)
        };
        Ok(Self { solve, variant, levels })
    }

    pub(super) fn set_values(&mut self, d: &Device, f: &Structure, values: Values) -> Result<()> {
        self.solve.set_values(d, f, values)?;
        Ok(())
    }

    /// `z = (L D U')^-1 r`.
    pub(super) fn apply(
        &self,
        d: &Device,
        r: &CudaSlice<f64>,
        z: &mut CudaSlice<f64>,
    ) -> Result<()> {
        self.solve.apply(d, r, z)
    }
}

fn system<'a>(
    k: &'a Cuda,
    structure: &'a Structure,
    analysis: &'a Analysis,
    precision: FactorPrecision,
    library: &'a dyn Fn() -> Result<Rc<Handle>>,
) -> System<'a> {
    let (device, plans, order, resident) = (&*k.device, k.setup, None, false);
    System { device, structure, analysis, order, precision, resident, plans, library }
}

/// A group on the device.
pub(super) struct Solved {
    group: Group,
    structure: Structure,
    precision: FactorPrecision,
    pub(super) variant: Trisolve,
    /// Levels of the forward and the backward solve.
    pub(super) levels: [usize; 2],
    solve: Box<dyn InHalves>,
    /// Those of L, for all rows of the group where there are any, and of U'.
    couplings: [Option<Coupled>; 2],
}

impl Solved {
    pub(super) fn new(k: &Cuda, mut group: Group, solves: StagedSolves) -> Result<Self> {
        let (d, pattern, precision) = (&*k.device, &group.pattern, solves.precision);
        let b = pattern.block_size();
        let structure = Structure::new(d, pattern, b)?;
        let analysis = Analysis::new(pattern, k.setup);
        let variant = choice::in_halves(solves.trisolve, d, (&analysis, &structure), precision);
        let library = || k.library().map(Rc::clone);
        let system = system(k, &structure, &analysis, precision, &library);
        let solve = sptrsv::in_halves(variant, &system)?;
        let levels = analysis.levels(d, &structure);
        let [lower, upper] = [0, 1].map(|half| std::mem::take(&mut group.split[half].couplings));
        let coupled = |couplings: Couplings, scaled| {
            let some = !couplings.rows.is_empty();
            some.then(|| Coupled::new(d, couplings, (b, precision), scaled)).transpose()
        };
        let of_all = if lower.rows.is_empty() { lower } else { lower.of_all(group.rows.len()) };
        let couplings = [coupled(of_all, false)?, coupled(upper, true)?];
        Ok(Self { group, structure, precision, variant, levels, solve, couplings })
    }

    /// Its block rows.
    pub(super) fn rows(&self) -> usize {
        self.group.rows.len()
    }

    /// Block rows whose right-hand sides the forward solve needs room for.
    pub(super) fn scratch(&self) -> usize {
        self.couplings[0].as_ref().map_or(0, |_| self.rows())
    }

    /// Takes its part of the factors of the rank over.
    pub(super) fn set_values(&mut self, d: &Device, values: &Values) -> Result<()> {
        let Self { group, structure, precision, solve, couplings, .. } = self;
        let b = structure.block_size;
        let [lower, upper] = [&values.lower, &values.upper];
        let [of_lower, of_upper] = &group.split;
        let mut rows: Vec<u32> = group.rows.clone().map(|row| row as u32).collect();
        for coupled in couplings.iter_mut().flatten() {
            coupled.set_values(d, [lower, upper], (group.rows.start, &values.diagonal))?;
            // which these rows have been multiplied by when the solve begins
            coupled.scaled().iter().for_each(|&row| rows[row as usize] = u32::MAX);
        }
        let own = Values {
            lower: picked(d, of_lower, lower, b)?,
            upper: picked(d, of_upper, upper, b)?,
            diagonal: Rc::new(picked_diagonal(d, &rows, &values.diagonal, (b, *precision))?),
        };
        solve.set_values(d, structure, own)?;
        Ok(())
    }

    fn argument(&self, at: Vectors) -> SolveArg {
        let first = 8 * (self.group.own.start * self.structure.block_size) as u64;
        SolveArg { r: at.r + first, diagonal: 0, y: at.v + first, z: at.z + first }
    }

    /// `L v = r`; `scratch` has room for as many block rows as the group [wants](Self::scratch).
    pub(super) fn forward(
        &self,
        d: &Device,
        at: Vectors,
        scratch: Address,
    ) -> Result<(), DriverError> {
        let mut arg = self.argument(at);
        if let Some(coupled) = &self.couplings[0] {
            coupled.apply(d, arg.r, (at.v, at), scratch)?;
            arg.r = scratch;
        }
        self.solve.forward(d, arg)
    }

    /// `U' z = D v`.
    pub(super) fn backward(&self, d: &Device, at: Vectors) -> Result<(), DriverError> {
        let arg = self.argument(at);
        if let Some(coupled) = &self.couplings[1] {
            coupled.apply(d, arg.y, (at.z, at), arg.y)?;
        }
        self.solve.backward(d, arg)
    }
}

/// Couplings of a group's rows on the device.
struct Coupled {
    of: Couplings,
    rows: CudaSlice<u32>,
    row_ptr: CudaSlice<u32>,
    columns: CudaSlice<u32>,
    val: Numbers,
    /// Inverse diagonal blocks by which the rows are multiplied first.
    diagonal: Option<Numbers>,
    couple: CudaFunction,
    block_size: usize,
    precision: FactorPrecision,
}

impl Coupled {
    fn new(
        d: &Device,
        of: Couplings,
        (block_size, precision): (usize, FactorPrecision),
        scaled: bool,
    ) -> Result<Self> {
        let bb = block_size * block_size;
        let room = |blocks: usize| Numbers::alloc(d, blocks * bb, precision);
        let variant = Variant::from(block_size).storing(precision);
        Ok(Self {
            rows: d.copied(&of.rows)?,
            row_ptr: d.copied(&of.row_ptr)?,
            columns: d.copied(&of.columns)?,
            val: room(of.entries.len())?,
            diagonal: scaled.then(|| room(of.rows.len())).transpose()?,
            couple: d.kernel(&COUPLINGS, variant, "couple")?,
            of,
            block_size,
            precision,
        })
    }

    /// Rows that it multiplies by their inverse diagonal blocks.
    fn scaled(&self) -> &[u32] {
        if self.diagonal.is_some() { &self.of.rows } else { &[] }
    }

    /// From the blocks of L and U', and the inverse diagonal blocks of the rank, of which the group's begin at `first`.
    fn set_values(
        &mut self,
        d: &Device,
        [lower, upper]: [&CudaSlice<f64>; 2],
        (first, diagonal): (usize, &Numbers),
    ) -> Result<()> {
        let (b, precision) = (self.block_size, self.precision);
        let from = if self.diagonal.is_some() { upper } else { lower };
        let numbers = (self.of.entries.len() * b * b) as u64;
        let variant = Variant::from(b).storing(precision);
        let (kernel, entries) =
            (d.kernel(&COUPLINGS, variant, "pick_stored")?, d.copied(&self.of.entries)?);
        launch!(d, &kernel, threads(numbers); numbers, entries, *from, self.val.address())
            .map_err(|e| failed("cannot lay out the factors", e))?;
        if self.diagonal.is_some() {
            let of: Vec<u32> = self.of.rows.iter().map(|&row| first as u32 + row).collect();
            self.diagonal = Some(picked_diagonal(d, &of, diagonal, (b, precision))?);
        }
        Ok(())
    }

    /// `to = from - C x`, x being `own` and what v has of other ranks; D from in place of from where there is D.
    fn apply(
        &self,
        d: &Device,
        from: Address,
        (own, at): (Address, Vectors),
        to: Address,
    ) -> Result<(), DriverError> {
        let (rows_of_all, own_rows) = (self.of.rows.len(), at.own as u32);
        let count = rows_of_all as u32;
        let ghosts = at.v + 8 * (at.own * self.block_size) as u64;
        let diagonal = self.diagonal.as_ref().map_or(0, Numbers::address);
        let config = grid(rows_of_all.div_ceil(WARPS * (32 / self.block_size.min(32))), THREADS);
        let Self { couple, rows, row_ptr, columns, val, .. } = self;
        launch!(
            d, couple, config;
            count, *rows, *row_ptr, *columns, val.address(), diagonal, from, own, ghosts, own_rows, to
        )
    }
}

/// So many threads.
fn threads(count: u64) -> LaunchConfig {
    grid((count as usize).div_ceil(THREADS as usize), THREADS)
}

/// Blocks of a triangle of the rank that are the group's.
fn picked(
    d: &Device,
    split: &Split,
    from: &Rc<CudaSlice<f64>>,
    block_size: usize,
) -> Result<Rc<CudaSlice<f64>>> {
    let bb = block_size * block_size;
    let count = split.entries.len();
    // all of them, in their order: the last is not beyond the others
    if count * bb == from.len() && split.entries.is_sorted() {
        return Ok(Rc::clone(from));
    }
    let (numbers, to) = ((count * bb) as u64, d.alloc::<f64>(count * bb)?);
    if numbers > 0 {
        let kernel = d.kernel(&COUPLINGS, block_size, "pick_blocks")?;
        let entries = d.copied(&split.entries)?;
        launch!(d, &kernel, threads(numbers); numbers, entries, **from, to)
            .map_err(|e| failed("cannot lay out the factors", e))?;
    }
    Ok(Rc::new(to))
}

/// Inverse diagonal blocks of the rank's `rows`; the identity for `u32::MAX`.
fn picked_diagonal(
    d: &Device,
    rows: &[u32],
    from: &Numbers,
    (block_size, precision): (usize, FactorPrecision),
) -> Result<Numbers> {
    let numbers = (rows.len() * block_size * block_size) as u64;
    let to = Numbers::alloc(d, numbers as usize, precision)?;
    let variant = Variant::from(block_size).storing(precision);
    let (kernel, rows) = (d.kernel(&COUPLINGS, variant, "pick_diagonal")?, d.copied(rows)?);
    launch!(d, &kernel, threads(numbers); numbers, rows, from.address(), to.address())
        .map_err(|e| failed("cannot lay out the factors", e))?;
    Ok(to)
}
