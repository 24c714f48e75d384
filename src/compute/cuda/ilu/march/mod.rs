//! Factorisation on a pattern that is one stencil on a box, as a wavefront: what the algorithms have in common that
//! march over it.

pub(super) mod given;

use std::ops::RangeInclusive;

use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
use cudarc::driver::{CudaFunction, CudaSlice, LaunchConfig};

use super::{By, Factorise, Subject, System};
use crate::base::error::Result;
use crate::compute::cuda::compressed::{Compressed, Factored};
use crate::compute::cuda::device::Device;
use crate::compute::cuda::launch::{Address, MarchedArg, StencilBlocksArg, address, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::sources::{Source, Variant};
use crate::compute::cuda::storage::{DevicePattern, Factors, Structure};
use crate::compute::cuda::symbolic::Boxed;
use crate::compute::cuda::tiles::{Plan, Tile, Tiles};
use crate::matrix::{Csr, CsrPattern, WeakPattern};
use crate::symbolic::{Lines, Stencil};
use given::Given;

/// How an algorithm marches.
pub(super) struct Kind {
    pub(super) source: &'static Source,
    /// Blocks that it takes.
    pub(super) blocks: RangeInclusive<usize>,
    /// Offsets of the stencil at most.
    pub(super) most_offsets: usize,
    /// The tile and the variant of the source for a matrix that has these entries; `None` when the pattern is not for
    /// this algorithm, or there is no tile that fits.
    pub(super) variant: fn(&Marched, &Given) -> Option<(Tile, Variant)>,
    /// What a march needs; `None` when there is not enough room.
    pub(super) prepare: fn(&Preparation) -> Result<Option<Prepared>>,
}

/// The pattern of factors that are made by a march.
#[derive(Clone)]
pub(super) struct Marched {
    pub(super) stencil: Stencil,
    block_size: usize,
    /// Lines that have the entries of L and of U', by the offsets of the march.
    pub(super) lines: [Vec<Lines>; 2],
    pub(super) multiprocessors: usize,
    /// The pattern of a matrix that has all entries of a stencil that lead into the box.
    of: Option<(WeakPattern, Stencil)>,
}

impl Kind {
    /// The pattern if this algorithm takes it: the same stencil for both triangles, and small enough for a 7-point
    /// matrix; the variant for such a matrix.
    fn of(&self, s: &Subject) -> Option<(Marched, Variant)> {
        if !self.blocks.contains(&s.block_size) {
            return None;
        }
        let Ok([Some(lower), Some(upper)]) = (s.stencils)() else { return None };
        if lower != upper
            || !s.pattern.no_diagonal.is_empty()
            || lower.offsets.len() > self.most_offsets
        {
            return None;
        }
        let marched = s.marched.get_or_init(|| Marched::of(lower, s)).as_ref()?;
        let (_, variant) = (self.variant)(marched, &Given::seven_points(lower))?;
        Some((marched.clone(), variant))
    }

    /// The variant for factors of a 7-point matrix with this pattern, if the algorithm takes it.
    pub(super) fn variants(&self, s: &Subject) -> Vec<Variant> {
        self.of(s).map(|(_, variant)| variant).into_iter().collect()
    }

    /// Factorises by this algorithm, if it takes the pattern.
    pub(super) fn factorise(&'static self, s: &System) -> Option<By> {
        // it would be found when there are values
        if s.subject.boxed.is_some_and(|known| !known.whole) {
            return None;
        }
        let (pattern, _) = self.of(&s.subject)?;
        Some(By::Device(Box::new(StencilIlu::new(self, pattern))))
    }
}

impl Marched {
    /// The pattern with the stencil of its lower triangle, with all offsets that lead into the box but for those that
    /// rows at the faces lack.
    fn of(lower: &Stencil, s: &Subject) -> Option<Self> {
        let march = lower.march();
        let place = |&[dx, dy, dz]: &[i32; 3]| {
            let natural = [dx, dy - march.shear as i32 * dz, dz];
            lower.offsets.iter().position(|&o| o == natural)
        };
        let [of_lower, of_upper] = if let Some(known) = s.boxed {
            known.told.lines.clone()?
        } else {
            let (of_lower, of_upper) = (s.pattern.lower.view(), s.pattern.upper.view());
            [lower.lines(of_lower, false)?, lower.lines(of_upper, true)?]
        };
        let in_order = |lines: Vec<Lines>| -> Option<Vec<Lines>> {
            march.offsets.iter().map(|o| Some(lines[place(o)?])).collect()
        };
        let lines = [in_order(of_lower)?, in_order(of_upper)?];
        let (block_size, multiprocessors) = (s.block_size, s.multiprocessors);
        let of = s.boxed.map(|Boxed { told, of, .. }| (of.clone(), told.of.clone()));
        Some(Self { stencil: lower.clone(), block_size, lines, multiprocessors, of })
    }

    /// Whether some rows lack entries that lead into the box.
    pub(super) fn lacks_entries(&self) -> bool {
        self.lines.iter().flatten().any(|&lines| lines != Lines::ALL)
    }

    /// The tile and the variant where no row lacks entries, and a lane has a whole row.
    pub(super) fn whole_rows(&self, given: &Given) -> Option<(Tile, Variant)> {
        if self.lacks_entries() {
            return None;
        }
        let (march, layers) = (self.stencil.march(), self.stencil.extents[2]);
        let tile = Tile::of_factorisation(self.block_size, &march, layers, given.count())?;
        Some((tile, given.variant(self.block_size, &self.stencil, &tile)))
    }
}

/// What a factorisation needs apart from values.
struct StencilIlu {
    kind: &'static Kind,
    pattern: Marched,
    march: Option<March>,
    /// A matrix of which nobody else has a copy, with its pattern.
    own: Option<(CsrPattern, Compressed)>,
    /// The matrix that was taken.
    taken: [Address; 2],
}

/// What is known of the matrix's pattern, too.
struct March {
    pattern: CsrPattern,
    marching: Marching,
    leaving: Box<dyn Leave>,
}

/// What the march is launched with.
pub(super) struct Marching {
    pub(super) tiles: Tiles,
    pub(super) factor: CudaFunction,
    pub(super) config: LaunchConfig,
}

/// How factors leave the march.
pub(super) trait Leave {
    /// Factors of the matrix `a`; see [`Factorise::factor`].
    fn factor(
        &mut self,
        d: &Device,
        m: &Marching,
        a: MarchedArg,
        s: &Structure,
        factors: &Factors,
        error: &CudaSlice<u64>,
    ) -> Result<()>;
}

impl StencilIlu {
    fn new(kind: &'static Kind, pattern: Marched) -> Self {
        Self { kind, pattern, march: None, own: None, taken: [0; 2] }
    }
}

impl Factorise for StencilIlu {
    /// There is no march for a matrix that lacks entries of its own stencil, or has more of them than there is room
    /// for.
    fn take(&mut self, d: &Device, a: Factored, s: &Structure) -> Result<bool> {
        let Factored::Host(of, _) = a else { unreachable!("it takes no rows on the device") };
        if !self.march.as_ref().is_some_and(|m| of.pattern().is(&m.pattern)) {
            // its memory is free before that of the next one is taken
            self.march = None;
            self.march = March::new(d, self.kind, &self.pattern, of, s.triangles())?;
        }
        if self.march.is_some() {
            let there = a.there(d, &mut self.own)?;
            self.taken = [address(&there.pattern.row_ptr), address(&there.val)];
        }
        Ok(self.march.is_some())
    }

    fn factor(
        &mut self,
        d: &Device,
        shift: f64,
        s: &Structure,
        factors: &mut Factors,
        error: &CudaSlice<u64>,
    ) -> Result<()> {
        let m = self.march.as_mut().expect("taken before");
        let [row_ptr, val] = self.taken;
        let a = MarchedArg { row_ptr, val, shift };
        m.leaving.factor(d, &m.marching, a, s, factors, error)
    }
}

/// How a kernel is launched.
pub(super) struct Shape {
    pub(super) threads: u32,
    pub(super) shared: u32,
    /// Steps of a turn; marches start and end at multiples of `aligned`.
    pub(super) turn: usize,
    pub(super) aligned: usize,
}

/// What a march is prepared for.
pub(super) struct Preparation<'a> {
    pub(super) device: &'a Device,
    pub(super) source: &'static Source,
    pub(super) variant: Variant,
    pub(super) stencil: &'a Stencil,
    tile: Tile,
    pub(super) patterns: [&'a DevicePattern; 2],
}

/// The kernel, how it is launched, over which tiles, and how factors leave it.
pub(super) type Prepared = (CudaFunction, Shape, Tiles, Box<dyn Leave>);

impl Preparation<'_> {
    pub(super) fn plan(&self, shape: &Shape) -> Result<Plan> {
        Plan::new(
            self.stencil,
            (&self.stencil.march(), &self.tile),
            [shape.turn, shape.aligned],
            &[1],
        )
    }
}

impl March {
    fn new(
        d: &Device,
        kind: &'static Kind,
        pattern: &Marched,
        a: &Csr,
        patterns: [&DevicePattern; 2],
    ) -> Result<Option<Self>> {
        let (source, stencil) = (kind.source, &pattern.stencil);
        let known = pattern.of.as_ref().filter(|(of, _)| of.is(a.pattern()));
        let given = match known {
            Some((_, whole)) => Given::whole(stencil, whole),
            None => Given::of(stencil, a, pattern.block_size),
        };
        let variant = given.and_then(|given| (kind.variant)(pattern, &given));
        let Some((tile, variant)) = variant else { return Ok(None) };
        let preparation = Preparation { device: d, source, variant, stencil, tile, patterns };
        let Some((factor, shape, tiles, leaving)) = (kind.prepare)(&preparation)? else {
            return Ok(None);
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
            marching: Marching { tiles, factor, config },
            leaving,
        }))
    }
}

/// Boundary values of this factorisation and of the next one: factors leave the march where they belong.
struct Exchange {
    values: [CudaSlice<f64>; 2],
    turn: usize,
}

/// Prepares a march whose factors leave it where they belong.
pub(super) fn exchanged(p: &Preparation) -> Result<Option<Prepared>> {
    let d = p.device;
    let factor = d.kernel(p.source, p.variant.clone(), "stencil_factor")?;
    let [threads, shared, turn, boundary, numbers, aligned, pad, _] =
        d.constants(p.source, p.variant.clone(), "stencil_exchange_layout")?;
    let shape = Shape { threads, shared, turn: turn as usize, aligned: aligned as usize };
    let mut plan = p.plan(&shape)?;
    plan.steps += 2 * pad as usize;
    let room = plan.tiles.len() * plan.steps * (boundary * numbers) as usize;
    let exchange = Exchange::new(d, room)?;
    Ok(Some((factor, shape, Tiles::new(d, p.stencil, plan)?, Box::new(exchange))))
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

impl Leave for Exchange {
    fn factor(
        &mut self,
        d: &Device,
        m: &Marching,
        a: MarchedArg,
        s: &Structure,
        factors: &Factors,
        error: &CudaSlice<u64>,
    ) -> Result<()> {
        let [now, next] = [self.turn, 1 - self.turn];
        self.turn = next;
        let blocks = StencilBlocksArg {
            lower_pattern: s.lower.argument(),
            upper_pattern: s.upper.argument(),
            lower: address(&factors.lower),
            diagonal: address(&factors.diagonal),
            upper: address(&factors.upper),
            exchange: address(&self.values[now]),
            other: address(&self.values[next]),
            error: address(error),
        };
        let tiles = m.tiles.argument();
        launch!(cooperative d, &m.factor, m.config; tiles, a, blocks)
            .map_err(|e| failed("factorisation", e))
    }
}
