//! Block ILU factors that are made, and solved with, stage by stage; other ranks have rows between
//! (`kernels/distributed/stages.cu`).

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, DriverError};

use super::groups::Groups;
use super::solves::{Solved, Vectors, Whole};
use crate::base::choices::FactorPrecision;
use crate::base::error::Result;
use crate::compute::cuda::Cuda;
use crate::compute::cuda::compressed::Compressed;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::ilu::{InStages, singular};
use crate::compute::cuda::launch::{address, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::numbers::Values;
use crate::compute::cuda::sources::STAGES;
use crate::compute::cuda::storage::{Factors, Structure};
use crate::compute::distributed::{FactorBlocks, StagePart, StagedSolves};
use crate::compute::{Breakdown, Bytes, FactorInfo, Trisolve};
use crate::matrix::Csr;
use crate::matrix::pattern::Pattern;
use crate::symbolic::{FillPattern, Schedule};

/// Threads of a block; mirrors `distributed/stages.cu`.
const THREADS: u32 = 256;

/// Factors of a rank.
pub struct StagedIlu {
    structure: Structure,
    precision: FactorPrecision,
    factorisation: InStages,
    /// Rows of other ranks.
    others: Vec<u32>,
    /// Solves where there is one subdomain, in place of groups.
    whole: Option<Whole>,
    groups: Vec<Solved>,
    /// The groups of each stage.
    of_stages: Vec<Vec<usize>>,
    /// Where the values of rows are in a vector of solves: own block rows as in the vectors of the rank, then others.
    places: Vec<u32>,
    own: usize,
    /// Right-hand sides of a group.
    scratch: RefCell<CudaSlice<f64>>,
}

/// The rows of all parts, which follow each other.
fn rows(parts: &[StagePart]) -> Range<usize> {
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return 0..0 };
    assert!(parts.windows(2).all(|w| w[0].rows.end == w[1].rows.start), "parts follow each other");
    first.rows.start..last.rows.end
}

/// Levels of some rows of L, of which only couplings with each other count.
fn schedule(lower: &Pattern, rows: Range<usize>) -> Schedule {
    let mut levels = vec![0_u32; rows.len()];
    for i in rows.clone() {
        let within = lower.row(i).iter().map(|&j| j as usize).filter(|j| rows.contains(j));
        let level = within.map(|j| levels[j - rows.start] + 1).max();
        levels[i - rows.start] = level.unwrap_or(0);
    }
    let mut found = Schedule::from_levels(&levels);
    found.rows.iter_mut().for_each(|row| *row += rows.start as u32);
    found
}

impl StagedIlu {
    pub(super) fn new(
        k: &Cuda,
        pattern: &Arc<FillPattern>,
        stages: &[Vec<StagePart>],
        solves: StagedSolves,
    ) -> Result<Self> {
        let (d, b) = (&*k.device, pattern.block_size());
        let structure = Structure::new(d, pattern, b)?;
        let of_stage = |parts: &Vec<StagePart>| schedule(&pattern.lower, rows(parts));
        let forward: Vec<Schedule> = stages.iter().map(of_stage).collect();
        let factorisation = InStages::new(d, &structure, &forward)?;
        // of one part rows are in the order of their elimination, as columns are
        let alone = solves.alone && stages.iter().flatten().count() == 1;
        let whole = alone.then(|| Whole::new(k, &structure, solves)).transpose()?;
        let groups = if alone { Groups::none(pattern) } else { Groups::new(pattern, stages) };
        let of_stages = groups.of_stages(stages.len());
        let Groups { all, places, own } = groups;
        let others = (0..pattern.rows() as u32).filter(|&row| places[row as usize] as usize >= own);
        let others = others.collect();
        let solved = |group| Solved::new(k, group, solves);
        let groups = all.into_iter().map(solved).collect::<Result<Vec<_>>>()?;
        let scratch = groups.iter().map(Solved::scratch).max().unwrap_or(0) * b;
        let scratch = RefCell::new(d.alloc(scratch)?);
        Ok(Self {
            structure,
            precision: solves.precision,
            factorisation,
            others,
            whole,
            groups,
            of_stages,
            places,
            own,
            scratch,
        })
    }

    /// A vector of solves, whose own part is as these want to find it.
    pub(super) fn vector(&self, d: &Device) -> Result<CudaSlice<f64>> {
        let mut v = d.alloc(self.places.len() * self.structure.block_size)?;
        d.mark_absent(&mut v)?;
        Ok(v)
    }

    /// Where a block row of the factors is in such a vector.
    pub(super) fn place(&self, row: usize) -> usize {
        self.places[row] as usize
    }

    /// Factors of `a`; the inner result tells why there are none. `between` follows each stage also where the
    /// device fails: other ranks wait for it.
    pub(super) fn factor(
        &mut self,
        d: &Device,
        a: &Csr,
        shift: f64,
        between: &mut dyn FnMut(usize, &mut dyn FactorBlocks),
    ) -> Result<std::result::Result<(), Breakdown>> {
        let bb = self.structure.block_size.pow(2);
        let (mut begun, mut fault) = match self.begin(d, a) {
            Ok(begun) => (Some(begun), None),
            Err(e) => (None, Some(e)),
        };
        for t in 0..self.of_stages.len() {
            if let (Some((values, error, a)), None) = (&mut begun, &fault) {
                let done =
                    self.factorisation.factor(d, t, (a, shift), &self.structure, values, error);
                fault = done.err();
            }
            let mut blocks =
                Blocks { d, rows: self.structure.pattern.rows(), bb, values: None, fault };
            if blocks.fault.is_none() {
                blocks.values = begun.as_mut().map(|begun| &mut begun.0);
            }
            between(t, &mut blocks);
            fault = blocks.fault;
        }
        if let Some(e) = fault {
            return Err(e);
        }
        let (values, error, _) = begun.expect("no fault");
        if let Some(block) = singular(d, &self.structure.pattern, &values, &error)? {
            return Ok(Err(block.into()));
        }
        let values = match Values::new(d, &self.structure, values, self.precision)? {
            Ok(values) => values,
            Err(range) => return Ok(Err(range)),
        };
        for group in &mut self.groups {
            group.set_values(d, &values)?;
        }
        if let Some(whole) = &mut self.whole {
            whole.set_values(d, &self.structure, values)?;
        }
        Ok(Ok(()))
    }

    /// Factors without values, identities on the diagonal of other ranks' rows; no error; and a copy of `a`.
    fn begin(&self, d: &Device, a: &Csr) -> Result<(Factors, CudaSlice<u64>, Compressed)> {
        let (pattern, b) = (&self.structure.pattern, self.structure.block_size);
        let bb = b * b;
        let mut values = Factors {
            lower: d.alloc(pattern.lower.entries() * bb)?,
            diagonal: d.alloc(pattern.rows() * bb)?,
            upper: d.alloc(pattern.upper.entries() * bb)?,
        };
        d.mark_absent(&mut values.diagonal)?;
        d.mark_absent(&mut values.upper)?;
        if !self.others.is_empty() {
            let rows = d.copied(&self.others)?;
            let numbers = self.others.len() * bb;
            let (count, size, config) =
                (numbers as u32, b as u32, grid(numbers.div_ceil(THREADS as usize), THREADS));
            let kernel = d.kernel(&STAGES, 1, "identity")?;
            launch!(d, &kernel, config; count, size, rows, values.diagonal)
                .map_err(|e| failed("cannot prepare the factors", e))?;
        }
        Ok((values, d.least()?, Compressed::copied(d, a)?))
    }

    /// `L v = r` in the rows of a stage; where there is one subdomain, all of `z = (L D U')^-1 r`.
    pub(super) fn forward(
        &self,
        d: &Device,
        stage: usize,
        r: &CudaSlice<f64>,
        [v, z]: [&mut CudaSlice<f64>; 2],
    ) -> Result<()> {
        if let Some(whole) = &self.whole {
            return whole.apply(d, r, z);
        }
        let at = Vectors { r: address(r), v: address(v), z: address(z), own: self.own };
        let scratch = address(&self.scratch.borrow());
        let mut groups = self.of_stages[stage].iter();
        groups.try_for_each(|&g| self.groups[g].forward(d, at, scratch)).map_err(fault)
    }

    /// `U' z = D v` in the rows of a stage.
    pub(super) fn backward(
        &self,
        d: &Device,
        stage: usize,
        [v, z]: [&mut CudaSlice<f64>; 2],
    ) -> Result<()> {
        let at = Vectors { r: 0, v: address(v), z: address(z), own: self.own };
        let mut groups = self.of_stages[stage].iter();
        groups.try_for_each(|&g| self.groups[g].backward(d, at)).map_err(fault)
    }
}

fn fault(e: DriverError) -> crate::Error {
    failed("triangular solve", e)
}

impl FactorInfo for StagedIlu {
    fn pattern(&self) -> &FillPattern {
        &self.structure.pattern
    }

    fn bytes(&self) -> Bytes {
        let pattern = &self.structure.pattern;
        let held = self.precision.bytes() * pattern.numbers() + pattern.bytes();
        Bytes { held, moved: held + 4 * 8 * self.own * pattern.block_size() }
    }

    /// That of the most rows.
    fn trisolve(&self) -> Trisolve {
        if let Some(whole) = &self.whole {
            return whole.variant;
        }
        let most = self.groups.iter().max_by_key(|group| group.rows());
        most.map_or(Trisolve::AUTO, |group| group.variant)
    }

    fn levels(&self) -> [usize; 2] {
        if let Some(whole) = &self.whole {
            return whole.levels;
        }
        [0, 1].map(|way| self.groups.iter().map(|group| group.levels[way]).sum())
    }
}

/// Blocks of factors on the device.
struct Blocks<'a> {
    d: &'a Device,
    rows: usize,
    bb: usize,
    /// None after a fault.
    values: Option<&'a mut Factors>,
    fault: Option<crate::Error>,
}

impl Blocks<'_> {
    /// Copies blocks between `host` and their places, by the kernel called `name`.
    fn copy(&self, places: &[u32], name: &str, host: &mut CudaSlice<f64>) -> Result<()> {
        let Some(values) = &self.values else { return Ok(()) };
        let (d, numbers) = (self.d, places.len() * self.bb);
        let places = d.copied(places)?;
        let kernel = match name {
            "read" => d.kernel(&STAGES, 1, "read_blocks")?,
            _ => d.kernel(&STAGES, 1, "write_blocks")?,
        };
        let config = grid(numbers.div_ceil(THREADS as usize), THREADS);
        let (count, bb, rows) = (numbers as u32, self.bb as u32, self.rows as u32);
        let Factors { diagonal, upper, .. } = &**values;
        launch!(d, &kernel, config; count, bb, places, rows, *diagonal, *upper, *host)
            .map_err(|e| failed("blocks of factors", e))
    }

    fn read_to(&self, places: &[u32], out: &mut [f64]) -> Result<()> {
        let mut there = self.d.alloc(out.len())?;
        self.copy(places, "read", &mut there)?;
        out.copy_from_slice(&self.d.host(&there)?[..out.len()]);
        Ok(())
    }

    fn write_from(&self, places: &[u32], from: &[f64]) -> Result<()> {
        let mut there = self.d.copied(from)?;
        self.copy(places, "write", &mut there)
    }
}

impl FactorBlocks for Blocks<'_> {
    fn read(&mut self, places: &[u32], out: &mut [f64]) {
        if self.fault.is_none() && !places.is_empty() {
            self.fault = self.read_to(places, out).err();
        }
    }

    fn write(&mut self, places: &[u32], from: &[f64]) {
        if self.fault.is_none() && !places.is_empty() {
            self.fault = self.write_from(places, from).err();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_count_couplings_within_a_stage_alone() {
        // row 1 needs 0; 2 is another stage's; 3 needs 2 and 0; 4 needs 3
        let lower = Pattern::new(vec![0, 0, 1, 1, 3, 4], vec![0, 0, 2, 3]);
        let stages = [0..2, 3..5].map(|rows| schedule(&lower, rows));
        assert_eq!(stages[0], Schedule { rows: vec![0, 1], level_ptr: vec![0, 1, 2] });
        assert_eq!(stages[1], Schedule { rows: vec![3, 4], level_ptr: vec![0, 1, 2] });
        assert_eq!(schedule(&lower, 2..2).rows, [0_u32; 0]);
    }

    #[test]
    fn parts_of_a_stage_follow_each_other() {
        let parts = [(2..4, 9), (4..7, 0)];
        let parts = parts.map(|(rows, at)| StagePart { subdomain: at, rows, at });
        assert_eq!((rows(&parts), rows(&[])), (2..7, 0..0));
    }
}
