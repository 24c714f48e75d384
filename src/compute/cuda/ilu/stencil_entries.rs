//! A stencil of entries on a box, marched over with a lane per column (`kernels/ilu/stencil/entries.cu`).

use cudarc::driver::{CudaFunction, CudaSlice};

use super::march::{Kind, Leave, Marching, Preparation, Prepared, Shape};
use super::{Algorithm, Description};
use crate::base::error::Result;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{MarchedArg, RecordsArg, address, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::sources::STENCIL_ILU;
use crate::compute::cuda::storage::{DevicePattern, Factors, Structure};
use crate::compute::cuda::tiles::Tiles;

const ABOUT: Description = Description {
    name: "stencil-entries",
    summary: "a lane per column marches; a second kernel sorts the factors into the pattern",
    takes: "entries, up to five offsets",
    source: Some(&STENCIL_ILU),
};

pub(super) static ALGORITHM: Algorithm =
    Algorithm { about: ABOUT, variants: |s| KIND.variants(s), new: |s| Ok(KIND.factorise(s)) };

/// Offsets beyond which a lane has no row of entries of its own.
pub(super) const MOST_OFFSETS: usize = 5;

static KIND: Kind = Kind {
    source: &STENCIL_ILU,
    blocks: 1..=1,
    most_offsets: MOST_OFFSETS,
    variant: |marched, given| marched.whole_rows(given),
    prepare,
};

/// Rows or entries that a thread block of the small kernels takes.
const OF_BLOCK: usize = 256;

fn prepare(p: &Preparation) -> Result<Option<Prepared>> {
    let d = p.device;
    let factor = d.kernel(p.source, p.variant.clone(), "stencil_factor")?;
    let [threads, shared, of_lower, of_upper, turn, aligned] =
        d.constants(p.source, p.variant.clone(), "stencil_ilu_layout")?;
    let shape = Shape { threads, shared, turn: turn as usize, aligned: aligned as usize };
    let tiles = Tiles::new(d, p.stencil, p.plan(&shape)?)?;
    let kernel = |name| d.kernel(p.source, p.variant.clone(), name);
    let kernels = [kernel("stencil_places")?, kernel("stencil_collect")?];
    let sizes = [of_lower, of_upper].map(|n| tiles.plan.units * n as usize);
    if sizes.iter().any(|&n| u32::try_from(n).is_err()) {
        return Ok(None);
    }
    let records = Records::new(d, kernels, &tiles, sizes, p.patterns)?;
    Ok(Some((factor, shape, tiles, Box::new(records))))
}

/// L, and D with U', in the order of a march.
struct Records {
    lower: CudaSlice<f64>,
    upper: CudaSlice<f64>,
    collect: CudaFunction,
    /// Places of the entries of L, of U' and of the diagonal.
    places: [CudaSlice<u32>; 3],
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

impl Leave for Records {
    fn factor(
        &mut self,
        d: &Device,
        m: &Marching,
        a: MarchedArg,
        s: &Structure,
        factors: &Factors,
        error: &CudaSlice<u64>,
    ) -> Result<()> {
        d.mark_absent(&mut self.upper)?;
        let records = RecordsArg {
            lower: address(&self.lower),
            upper: address(&self.upper),
            error: address(error),
        };
        let tiles = m.tiles.argument();
        launch!(cooperative d, &m.factor, m.config; tiles, a, records)
            .map_err(|e| failed("factorisation", e))?;
        self.collect(d, &m.tiles, records, s.triangles(), factors)
    }
}
