//! Structure on a pattern that is one stencil on a box, as a wavefront (`kernels/ilu/stencil/entries.cu` for
//! entries, `kernels/ilu/stencil/long.cu` for those of long rows, `kernels/ilu/stencil/blocks.cu` for blocks).

use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig};

use super::analysis::Stencils;
use super::device::{Device, grid};
use super::launch::{MarchedArg, RecordsArg, StencilBlocksArg, address, launch};
use super::memory::failed;
use super::sources::{STENCIL_BLOCKS, STENCIL_ILU, STENCIL_LONG, Source, Variant};
use super::stencil_rows::Given;
use super::storage::{DevicePattern, Factors};
use super::tiles::{Plan, Tile, Tiles};
use crate::base::error::Result;
use crate::matrix::{Csr, CsrPattern};
use crate::symbolic::{FillPattern, Lines, Stencil};

/// Largest blocks, and offsets of a stencil of blocks at most: beyond, rows on their own were faster.
const LARGEST_BLOCK: usize = 4;
const MOST_OF_BLOCKS: usize = 3;

/// Offsets beyond which a lane has no row of entries of its own.
const LONG: usize = 5;

/// Rows or entries that a thread block of the small kernels takes.
const OF_BLOCK: usize = 256;

/// The pattern of factors that are made by a march.
pub(super) struct Marched {
    stencil: Stencil,
    block_size: usize,
    /// Lines that have the entries of L and of U', by the offsets of the march.
    lines: [Vec<Lines>; 2],
    multiprocessors: usize,
}

/// What a factorisation needs apart from values.
pub(super) struct StencilIlu {
    pattern: Marched,
    march: Option<March>,
}

/// What is known of the matrix's pattern, too.
struct March {
    pattern: CsrPattern,
    /// The matrix by rows of numbers.
    row_ptr: CudaSlice<u32>,
    val: CudaSlice<f64>,
    tiles: Tiles,
    factor: CudaFunction,
    config: LaunchConfig,
    leaving: Leaving,
}

/// How factors leave the march.
enum Leaving {
    /// Entries in its order.
    Records(Box<Records>),
    /// Where they belong.
    Placed(Exchange),
}

/// L, and D with U', in the order of a march.
struct Records {
    lower: CudaSlice<f64>,
    upper: CudaSlice<f64>,
    collect: CudaFunction,
    /// Places of the entries of L, of U' and of the diagonal.
    places: [CudaSlice<u32>; 3],
}

/// Boundary values of this factorisation and of the next one.
struct Exchange {
    values: [CudaSlice<f64>; 2],
    turn: usize,
}

impl Marched {
    /// The pattern if there is a march for it: the same stencil for both triangles, with all offsets that lead into
    /// the box but for those that rows at the faces lack, and small enough for a 7-point matrix.
    pub(super) fn of(
        pattern: &FillPattern,
        block_size: usize,
        stencils: &Stencils,
        multiprocessors: u32,
    ) -> Option<Self> {
        let Ok([Some(lower), Some(upper)]) = stencils else { return None };
        let most = if block_size == 1 { usize::MAX } else { MOST_OF_BLOCKS };
        if lower != upper
            || !pattern.no_diagonal.is_empty()
            || block_size > LARGEST_BLOCK
            || lower.offsets.len() > most
        {
            return None;
        }
        let march = lower.march();
        let place = |&[dx, dy, dz]: &[i32; 3]| {
            let natural = [dx, dy - march.shear as i32 * dz, dz];
            lower.offsets.iter().position(|&o| o == natural)
        };
        let lines = |triangle, upper| -> Option<Vec<Lines>> {
            let lines = lower.lines(triangle, upper)?;
            march.offsets.iter().map(|o| Some(lines[place(o)?])).collect()
        };
        let lines = [lines(pattern.lower.view(), false)?, lines(pattern.upper.view(), true)?];
        let multiprocessors = multiprocessors as usize;
        let marched = Self { stencil: lower.clone(), block_size, lines, multiprocessors };
        marched.variant(&Given::seven_points(lower))?;
        Some(marched)
    }

    /// Whether some rows lack entries that lead into the box.
    fn lacks_entries(&self) -> bool {
        self.lines.iter().flatten().any(|&lines| lines != Lines::ALL)
    }

    /// The source and its variant for a matrix that has the entries `given`.
    fn variant(&self, given: &Given) -> Option<(Tile, &'static Source, Variant)> {
        let (march, layers) = (self.stencil.march(), self.stencil.extents[2]);
        let lacking = self.lacks_entries();
        if self.block_size == 1 && (lacking || march.offsets.len() > LONG) {
            let tile = Tile::of_long_rows(&self.stencil, given.count(), self.multiprocessors)?;
            let mut variant = given.variant(1, &self.stencil, &tile);
            for (name, lines) in ["LOWER_AT", "UPPER_AT"].into_iter().zip(&self.lines) {
                let list: Vec<String> = lines.iter().map(|lines| lines.0.to_string()).collect();
                variant.lists.push((name, list.join(",")));
            }
            return Some((tile, &STENCIL_LONG, variant));
        }
        if lacking {
            return None;
        }
        let tile = Tile::of_factorisation(self.block_size, &march, layers, given.count())?;
        let source = if self.block_size == 1 { &STENCIL_ILU } else { &STENCIL_BLOCKS };
        Some((tile, source, given.variant(self.block_size, &self.stencil, &tile)))
    }
}

/// The source and its variant for factors of a 7-point matrix with this pattern; `None` when there is no march for
/// it on a GPU with so many multiprocessors.
pub fn stencil_ilu_variant(
    block_size: usize,
    pattern: &FillPattern,
    multiprocessors: u32,
) -> Option<(&'static Source, Variant)> {
    let lower = Stencil::of_lower(pattern.lower.view());
    let stencils = Ok([lower, Stencil::of_upper(pattern.upper.view())]);
    let marched = Marched::of(pattern, block_size, &stencils, multiprocessors)?;
    let (_, source, variant) = marched.variant(&Given::seven_points(&marched.stencil))?;
    Some((source, variant))
}

impl StencilIlu {
    pub(super) fn new(pattern: Marched) -> Self {
        Self { pattern, march: None }
    }

    /// Brings `a` to the device. Whether there is a march for it: not for a matrix that lacks entries of its
    /// own stencil, or has more of them than there is room for.
    pub(super) fn take(
        &mut self,
        d: &Device,
        a: &Csr,
        patterns: [&DevicePattern; 2],
    ) -> Result<bool> {
        if !self.march.as_ref().is_some_and(|m| a.pattern().is(&m.pattern)) {
            // its memory is free before that of the next one is taken
            self.march = None;
            self.march = March::new(d, &self.pattern, a, patterns)?;
        }
        if let Some(march) = &mut self.march {
            d.overwrite(a.values(), &mut march.val)?;
        }
        Ok(self.march.is_some())
    }

    /// Factors of the matrix that was taken. The first row without a pivot goes to `error`, a
    /// number on the device, in the upper half.
    pub(super) fn factor(
        &mut self,
        d: &Device,
        shift: f64,
        patterns: [&DevicePattern; 2],
        factors: &Factors,
        error: &CudaSlice<u64>,
    ) -> Result<()> {
        let fault = |e: DriverError| failed("factorisation", e);
        let m = self.march.as_mut().expect("taken before");
        let tiles = m.tiles.argument();
        let a = MarchedArg { row_ptr: address(&m.row_ptr), val: address(&m.val), shift };
        match &mut m.leaving {
            Leaving::Records(r) => {
                d.mark_absent(&mut r.upper)?;
                let records = RecordsArg {
                    lower: address(&r.lower),
                    upper: address(&r.upper),
                    error: address(error),
                };
                launch!(cooperative d, &m.factor, m.config; tiles, a, records).map_err(fault)?;
                r.collect(d, &m.tiles, records, patterns, factors)
            }
            Leaving::Placed(exchange) => {
                let [now, next] = [exchange.turn, 1 - exchange.turn];
                exchange.turn = next;
                let [lower_pattern, upper_pattern] = patterns.map(DevicePattern::argument);
                let blocks = StencilBlocksArg {
                    lower_pattern,
                    upper_pattern,
                    lower: address(&factors.lower),
                    diagonal: address(&factors.diagonal),
                    upper: address(&factors.upper),
                    exchange: address(&exchange.values[now]),
                    other: address(&exchange.values[next]),
                    error: address(error),
                };
                launch!(cooperative d, &m.factor, m.config; tiles, a, blocks).map_err(fault)
            }
        }
    }
}

/// How a kernel is launched.
struct Shape {
    threads: u32,
    shared: u32,
    /// Steps of a turn; marches start and end at multiples of `aligned`.
    turn: usize,
    aligned: usize,
}

impl March {
    fn new(
        d: &Device,
        pattern: &Marched,
        a: &Csr,
        patterns: [&DevicePattern; 2],
    ) -> Result<Option<Self>> {
        let stencil = &pattern.stencil;
        let variant =
            Given::of(stencil, a, pattern.block_size).and_then(|given| pattern.variant(&given));
        let Some((tile, source, variant)) = variant else { return Ok(None) };
        let factor = d.kernel(source, variant.clone(), "stencil_factor")?;
        let plan =
            |shape: &Shape| Plan::new(stencil, &stencil.march(), &tile, shape.turn, shape.aligned);
        let (shape, tiles, leaving) = if *source == STENCIL_ILU {
            let [threads, shared, of_lower, of_upper, turn, aligned] =
                d.constants(source, variant.clone(), "stencil_ilu_layout")?;
            let shape = Shape { threads, shared, turn: turn as usize, aligned: aligned as usize };
            let tiles = Tiles::new(d, stencil, plan(&shape)?)?;
            let kernel = |name| d.kernel(source, variant.clone(), name);
            let kernels = [kernel("stencil_places")?, kernel("stencil_collect")?];
            let sizes = [of_lower, of_upper].map(|n| tiles.plan.records * n as usize);
            if sizes.iter().any(|&n| u32::try_from(n).is_err()) {
                return Ok(None);
            }
            let records = Records::new(d, kernels, &tiles, sizes, patterns)?;
            (shape, tiles, Leaving::Records(Box::new(records)))
        } else {
            let [threads, shared, turn, boundary, numbers, aligned, pad, _] =
                d.constants(source, variant, "stencil_exchange_layout")?;
            let shape = Shape { threads, shared, turn: turn as usize, aligned: aligned as usize };
            let mut plan = plan(&shape)?;
            plan.steps += 2 * pad as usize;
            let room = plan.tiles.len() * plan.steps * (boundary * numbers) as usize;
            let leaving = Leaving::Placed(Exchange::new(d, room)?);
            (shape, Tiles::new(d, stencil, plan)?, leaving)
        };
        factor
            .set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shape.shared as i32)
            .map_err(|e| failed("cannot prepare the factorisation", e))?;
        let resident = d.resident(&factor, shape.threads, shape.shared)?;
        let config = LaunchConfig {
            grid_dim: (resident.min(tiles.plan.tiles.len() as u32), 1, 1),
            block_dim: (shape.threads, 1, 1),
            shared_mem_bytes: shape.shared,
        };
        Ok(Some(Self {
            pattern: a.pattern().clone(),
            row_ptr: d.copied(a.row_ptr())?,
            val: d.alloc(a.nnz())?,
            tiles,
            factor,
            config,
            leaving,
        }))
    }
}

impl Exchange {
    fn new(d: &Device, room: usize) -> Result<Self> {
        let mut values = [d.alloc(room)?, d.alloc(room)?];
        for values in &mut values {
            d.mark_absent(values)?;
        }
        Ok(Self { values, turn: 0 })
    }
}

impl Records {
    fn new(
        d: &Device,
        [places, collect]: [CudaFunction; 2],
        tiles: &Tiles,
        [of_lower, of_upper]: [usize; 2],
        [lower, upper]: [&DevicePattern; 2],
    ) -> Result<Self> {
        let rows = lower.row_ptr.len() - 1;
        let argument = tiles.argument();
        let place = |kind: u32, pattern: Option<&DevicePattern>| -> Result<_> {
            let place = d.alloc::<u32>(pattern.map_or(rows, |p| p.col_ind.len()))?;
            let [row_ptr, col_ind] =
                pattern.map_or([0; 2], |p| [address(&p.row_ptr), address(&p.col_ind)]);
            let all = grid(rows.div_ceil(OF_BLOCK), OF_BLOCK as u32);
            launch!(d, &places, all; argument, kind, row_ptr, col_ind, place)
                .map_err(|e| failed("cannot prepare the factorisation", e))?;
            Ok(place)
        };
        Ok(Self {
            lower: d.alloc(of_lower)?,
            upper: d.alloc(of_upper)?,
            collect,
            places: [place(0, Some(lower))?, place(1, Some(upper))?, place(2, None)?],
        })
    }

    /// The factors in the order of their patterns.
    fn collect(
        &self,
        d: &Device,
        tiles: &Tiles,
        records: RecordsArg,
        [lower, upper]: [&DevicePattern; 2],
        to: &Factors,
    ) -> Result<()> {
        let [of_lower, of_upper, of_diagonal] = &self.places;
        let (argument, lower, upper) = (tiles.argument(), lower.argument(), upper.argument());
        launch!(
            d, &self.collect, grid(tiles.plan.warps.len(), OF_BLOCK as u32);
            argument, records, lower, upper, *of_lower, *of_diagonal, *of_upper, to.lower, to.diagonal, to.upper
        )
        .map_err(|e| failed("factorisation", e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::{LevelRule, ReadAs};
    use crate::matrix::pattern::block_pattern;
    use crate::problem;
    use crate::symbolic::iluk;

    #[test]
    fn stencils_small_enough_are_marched_over() {
        let grid = problem::load("poisson3d:20", ReadAs::Expanded).unwrap();
        let point = block_pattern(&grid.matrix);
        let marched = |b, k| {
            let pattern = iluk(&point, k, LevelRule::Min, usize::MAX).unwrap();
            let of = |stencil: Option<Stencil>| stencil.unwrap();
            let stencils = Ok([
                Some(of(Stencil::of_lower(pattern.lower.view()))),
                Some(of(Stencil::of_upper(pattern.upper.view()))),
            ]);
            Marched::of(&pattern, b, &stencils, 132).is_some()
        };
        let all = |b: usize| [0, 1, 2, 3].map(|k| marched(b, k));
        assert_eq!(all(1), [true; 4]);
        for b in 2..=4 {
            assert_eq!(all(b), [true, false, false, false], "b = {b}");
        }
        assert_eq!(all(5), [false; 4]);
    }
}
