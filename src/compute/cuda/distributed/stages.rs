//! Block ILU factors that are made, and solved with, stage by stage; other ranks have rows between
//! (`kernels/distributed/stages.cu`).

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, DriverError};

use super::transfer::Places;
use crate::base::choices::FactorPrecision;
use crate::base::error::Result;
use crate::compute::cuda::Cuda;
use crate::compute::cuda::analysis::Analysis;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::ilu::{InStages, singular};
use crate::compute::cuda::launch::{SolveArg, address, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::numbers::Values;
use crate::compute::cuda::sources::STAGES;
use crate::compute::cuda::sptrsv::{FEW_LEVELS, System, staged::Staged};
use crate::compute::cuda::storage::{Factors, Structure};
use crate::compute::distributed::{FactorBlocks, StagePart};
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
    stages: Vec<Stage>,
    factorisation: InStages,
    solve: Staged,
    /// Rows of other ranks.
    others: Vec<u32>,
    values: Option<Values>,
    /// Forward solution of a stage, right-hand side of the backward solve.
    y: RefCell<CudaSlice<f64>>,
    levels: [usize; 2],
}

/// Rows of a stage, which follow each other, and their unknowns in the vectors of the rank.
struct Stage {
    rows: Range<usize>,
    places: Places,
}

/// The rows of all parts, which follow each other.
fn rows(parts: &[StagePart]) -> Range<usize> {
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return 0..0 };
    assert!(parts.windows(2).all(|w| w[0].rows.end == w[1].rows.start), "parts follow each other");
    first.rows.start..last.rows.end
}

/// Levels of some rows of a triangle, of which only couplings with each other count.
fn schedule(triangle: &Pattern, rows: Range<usize>, backward: bool) -> Schedule {
    let mut levels = vec![0_u32; rows.len()];
    let mut find = |i: usize| {
        let within = triangle.row(i).iter().map(|&j| j as usize).filter(|j| rows.contains(j));
        let level = within.map(|j| levels[j - rows.start] + 1).max();
        levels[i - rows.start] = level.unwrap_or(0);
    };
    if backward {
        rows.clone().rev().for_each(&mut find);
    } else {
        rows.clone().for_each(&mut find);
    }
    let mut found = Schedule::from_levels(&levels);
    found.rows.iter_mut().for_each(|row| *row += rows.start as u32);
    found
}

/// The levels of all stages one after the other, and the first of each and their end.
fn joined(stages: &[Schedule]) -> (Schedule, Vec<usize>) {
    let mut all = Schedule { rows: Vec::new(), level_ptr: vec![0] };
    let mut first = vec![0];
    for stage in stages {
        let before = all.rows.len() as u32;
        all.rows.extend(&stage.rows);
        all.level_ptr.extend(stage.level_ptr[1..].iter().map(|end| before + end));
        first.push(all.levels());
    }
    (all, first)
}

impl StagedIlu {
    pub(super) fn new(
        k: &Cuda,
        pattern: &Arc<FillPattern>,
        stages: &[Vec<StagePart>],
        precision: FactorPrecision,
    ) -> Result<Self> {
        let (d, b) = (&*k.device, pattern.block_size());
        let structure = Structure::new(d, pattern, b)?;
        let of_stages: Vec<Range<usize>> = stages.iter().map(|parts| rows(parts)).collect();
        let all = |triangle: &Pattern, backward: bool| -> Vec<Schedule> {
            of_stages.iter().map(|rows| schedule(triangle, rows.clone(), backward)).collect()
        };
        let forward = all(&pattern.lower, false);
        let patterns = [&structure.lower, &structure.upper];
        let factorisation = InStages::new(d, pattern, &forward, patterns)?;
        let ((forward, first), (backward, last)) =
            (joined(&forward), joined(&all(&pattern.upper, true)));
        let levels = [forward.levels(), backward.levels()];
        let analysis = Analysis::with(pattern, [forward, backward]);
        let system = System {
            device: d,
            structure: &structure,
            analysis: &analysis,
            order: None,
            precision,
            resident: false,
            library: &|| k.library().map(Rc::clone),
        };
        let solve = Staged::new(&system, [first, last])?;
        let mut own = vec![false; pattern.rows()];
        of_stages.iter().cloned().flatten().for_each(|row| own[row] = true);
        let others = (0..pattern.rows() as u32).filter(|&row| !own[row as usize]).collect();
        let stage = |(rows, parts): (Range<usize>, &Vec<StagePart>)| {
            let unknowns =
                |part: &StagePart| part.at as u32..(part.at + part.rows.len() * b) as u32;
            let places: Vec<u32> = parts.iter().flat_map(unknowns).collect();
            Ok(Stage { rows, places: Places::new(d, &places)? })
        };
        let stages = of_stages.into_iter().zip(stages).map(stage).collect::<Result<Vec<_>>>()?;
        let y = RefCell::new(d.alloc(pattern.rows() * b)?);
        Ok(Self {
            structure,
            precision,
            stages,
            factorisation,
            solve,
            others,
            values: None,
            y,
            levels,
        })
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
        let (mut begun, mut fault) = match self.begin(d) {
            Ok(begun) => (Some(begun), None),
            Err(e) => (None, Some(e)),
        };
        for t in 0..self.stages.len() {
            if let (Some((values, error)), None) = (&mut begun, &fault) {
                let Structure { lower, upper, .. } = &self.structure;
                let done =
                    self.factorisation.factor(d, t, (a, shift), [lower, upper], values, error);
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
        let (values, error) = begun.expect("no fault");
        if let Some(block) = singular(d, &self.structure.pattern, &values, &error)? {
            return Ok(Err(block.into()));
        }
        let values = match Values::new(d, &self.structure, values, self.precision)? {
            Ok(values) => values,
            Err(range) => return Ok(Err(range)),
        };
        self.solve.set_values(d, &self.structure, &values)?;
        self.values = Some(values);
        Ok(Ok(()))
    }

    /// Factors without values, identities on the diagonal of other ranks' rows; no error.
    fn begin(&self, d: &Device) -> Result<(Factors, CudaSlice<u64>)> {
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
        Ok((values, d.copied(&[u64::MAX])?))
    }

    /// `L v = r` in the rows of a stage.
    pub(super) fn forward(
        &self,
        d: &Device,
        stage: usize,
        r: &CudaSlice<f64>,
        v: &mut CudaSlice<f64>,
    ) -> Result<(), DriverError> {
        let Stage { rows, places } = &self.stages[stage];
        let b = self.structure.block_size;
        places.gather(d, r, address(v) + 8 * (rows.start * b) as u64)?;
        // each row reads its part of r before it writes it
        let v = address(v);
        self.solve.forward(d, stage, SolveArg { r: v, diagonal: 0, y: v, z: 0 })
    }

    /// `U' v = D^-1 v` in the rows of a stage, which are copied to z.
    pub(super) fn backward(
        &self,
        d: &Device,
        stage: usize,
        v: &mut CudaSlice<f64>,
        z: &mut CudaSlice<f64>,
    ) -> Result<(), DriverError> {
        let Stage { rows, places } = &self.stages[stage];
        if rows.is_empty() {
            return Ok(());
        }
        let (b, y) = (self.structure.block_size, &mut *self.y.borrow_mut());
        let unknowns = rows.start * b..rows.end * b;
        d.stream().memcpy_dtod(&v.slice(unknowns.clone()), &mut y.slice_mut(unknowns.clone()))?;
        let diagonal = self.values.as_ref().map_or(0, |values| values.diagonal.address());
        let arg = SolveArg { r: 0, diagonal, y: address(y), z: address(v) };
        self.solve.backward(d, stage, arg)?;
        places.scatter(d, address(v) + 8 * unknowns.start as u64, z)
    }
}

impl FactorInfo for StagedIlu {
    fn pattern(&self) -> &FillPattern {
        &self.structure.pattern
    }

    fn bytes(&self) -> Bytes {
        let pattern = &self.structure.pattern;
        let held = self.precision.bytes() * pattern.numbers() + pattern.bytes();
        Bytes { held, moved: held + 6 * 8 * pattern.rows() * pattern.block_size() }
    }

    fn trisolve(&self) -> Trisolve {
        FEW_LEVELS
    }

    fn levels(&self) -> [usize; 2] {
        self.levels
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
        let stages = [0..2, 3..5].map(|rows| schedule(&lower, rows, false));
        assert_eq!(stages[0], Schedule { rows: vec![0, 1], level_ptr: vec![0, 1, 2] });
        assert_eq!(stages[1], Schedule { rows: vec![3, 4], level_ptr: vec![0, 1, 2] });
        let (all, first) = joined(&stages);
        assert_eq!(all, Schedule { rows: vec![0, 1, 3, 4], level_ptr: vec![0, 1, 2, 3, 4] });
        assert_eq!(first, [0, 2, 4]);
        // row 0 of U' needs 1 and 3, row 3 needs 4
        let upper = Pattern::new(vec![0, 2, 2, 2, 3, 3], vec![1, 3, 4]);
        let found = schedule(&upper, 0..2, true);
        assert_eq!(found, Schedule { rows: vec![1, 0], level_ptr: vec![0, 1, 2] });
        assert_eq!(schedule(&upper, 2..2, true).rows, [0_u32; 0]);
    }

    #[test]
    fn a_stage_without_rows_has_no_levels() {
        let lower = Pattern::new(vec![0, 0], vec![]);
        let stages = [0..1, 0..0].map(|rows| schedule(&lower, rows, false));
        assert_eq!(joined(&stages).1, [0, 1, 1]);
    }

    #[test]
    fn parts_of_a_stage_follow_each_other() {
        let parts = [(2..4, 9), (4..7, 0)].map(|(rows, at)| StagePart { rows, at });
        assert_eq!((rows(&parts), rows(&[])), (2..7, 0..0));
    }
}
