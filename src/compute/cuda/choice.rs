//! Which way of triangular solves is the fastest: a model, and a measurement where it leaves several.
//!
//! The model's constants are fitted to an H200 (`docs/triangular-solve.md`); what depends on the
//! device, its bandwidth and the time of a hand-over through the L2 cache, is measured.

use rayon::prelude::*;

use super::analysis::Analysis;
use super::device::Device;
use super::{partitioned, pencils};
use crate::base::choices::{FactorPrecision, Trisolve};
use crate::base::error::Result;
use crate::base::measure::median;
use crate::matrix::pattern::Pattern;
use crate::symbolic::FillPattern;

/// Candidates that the model puts this many times behind the best are not tried: its errors stay
/// below that.
const WORTH_TRYING: f64 = 2.0;

/// A way and the seconds that the model gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) way: Trisolve,
    pub(super) seconds: f64,
}

/// What the time of a way depends on.
#[derive(Clone, Copy, Debug)]
struct Shape {
    rows: usize,
    block_size: usize,
    /// Levels of both triangles.
    levels: usize,
    /// Blocks of the longest row of a triangle.
    longest: usize,
    /// Slices of a triangle cut into parts.
    slices: usize,
    /// Seconds of both solves in parts of a grid, where the pattern is one.
    on_grid: Option<f64>,
    /// Offsets of the stencil, where there is one.
    offsets: Option<usize>,
    /// Steps of a triangle in pencils, and bounds of thread blocks on the way, where there are pencils.
    pencils: Option<(usize, usize)>,
    /// Bytes of one application.
    bytes: usize,
}

/// What a device can do.
#[derive(Clone, Copy, Debug)]
struct Rates {
    /// Seconds per byte of a copy.
    byte: f64,
    /// Seconds in which a value goes from one thread block to another.
    handover: f64,
}

impl Rates {
    /// Of an H200.
    const FITTED: Self = Self { byte: 1.0 / 4.2e12, handover: 0.25e-6 };

    fn of(d: &Device) -> Self {
        let known = |value: f64, other: f64| if value.is_finite() { value } else { other };
        Self {
            byte: known(1e-9 / d.copy_bandwidth(), Self::FITTED.byte),
            handover: known(d.handover_latency(), Self::FITTED.handover),
        }
    }
}

/// Rows wait through the L2 cache: some hand-overs per level, more the longer the rows are.
fn syncfree(s: &Shape, rates: Rates) -> f64 {
    let (longest, bb) = (s.longest as f64, (s.block_size * s.block_size) as f64);
    let level = rates.handover * (2.4 + 0.12 * longest + 0.012 * longest * bb);
    let unknowns = (s.rows * s.block_size) as f64;
    s.levels as f64 * level + 0.06e-9 * unknowns + s.bytes as f64 * rates.byte
}

/// Rows wait in shared memory; the work of a part and the crossings between parts are equal.
fn in_parts(s: &Shape, rates: Rates) -> f64 {
    if let Some(seconds) = s.on_grid {
        return seconds.max(s.bytes as f64 * rates.byte);
    }
    let crossing = 6.0 * rates.handover;
    let work = 2.0 * (crossing * 0.1e-6 * s.slices as f64).sqrt();
    // small blocks are read less well
    let reading = 1.0 + 2.0 / (s.block_size * s.block_size) as f64;
    0.09e-6 * s.levels as f64 + 2.0 * work + reading * s.bytes as f64 * rates.byte
}

/// A step per level, with all products of a row; launches and the way through the first tiles.
fn marched(s: &Shape, offsets: usize, rates: Rates) -> f64 {
    let products = (offsets * s.block_size) as f64;
    let step = 0.17e-6 + 8.5e-9 * products.min(24.0) + 3e-9 * (products - 24.0).max(0.0);
    15e-6 + s.levels as f64 * step + s.bytes as f64 * rates.byte
}

/// Steps and bounds follow one another; a launch, and a part of the way of the first numbers to their place.
fn in_pencils(s: &Shape, (steps, bounds): (usize, usize), rates: Rates) -> f64 {
    let triangle = 0.1e-6 * steps as f64 + 2.8 * rates.handover * bounds as f64;
    8e-6 + 2.0 * triangle + 0.35 * s.bytes as f64 * rates.byte
}

impl Shape {
    fn new(
        d: &Device,
        analysis: &Analysis,
        pattern: &FillPattern,
        block_size: usize,
        precision: FactorPrecision,
    ) -> Self {
        let longest = |t: &Pattern| {
            let lengths = t.row_ptr.par_windows(2).with_min_len(4096).map(|w| w[1] - w[0]);
            lengths.max().unwrap_or(0) as usize
        };
        let bb = block_size * block_size;
        let stencils = analysis.stencils(d, block_size).as_ref().ok();
        Self {
            rows: pattern.rows(),
            block_size,
            levels: analysis.levels(d, block_size).into_iter().sum(),
            longest: longest(&pattern.lower).max(longest(&pattern.upper)),
            slices: partitioned::slices(pattern, block_size),
            on_grid: partitioned::on_grid(pattern, block_size, d.multiprocessors() as usize),
            offsets: stencils.map(|both| {
                both.iter().flatten().map(|stencil| stencil.offsets.len()).max().unwrap_or(0)
            }),
            pencils: pencils::Plan::new(analysis.stencils(d, block_size), block_size)
                .ok()
                .filter(|plan| {
                    let resident = d.multiprocessors().min(d.limits().resident) as usize;
                    plan.fits(resident, d.shared_bytes())
                })
                .map(|plan| plan.path()),
            bytes: precision.bytes() * pattern.blocks() * bb
                + pattern.bytes()
                + 32 * pattern.rows() * block_size,
        }
    }

    /// Every way that applies and may be the fastest, best first.
    fn candidates(&self, rates: Rates) -> Vec<Candidate> {
        let ways = [
            self.offsets.map(|n| (Trisolve::Wavefront, marched(self, n, rates))),
            self.pencils.map(|path| (Trisolve::Pencils, in_pencils(self, path, rates))),
            (self.block_size <= partitioned::LARGEST_BLOCK)
                .then(|| (Trisolve::Partitioned, in_parts(self, rates))),
            Some((Trisolve::Syncfree, syncfree(self, rates))),
        ];
        let mut ways: Vec<Candidate> =
            ways.into_iter().flatten().map(|(way, seconds)| Candidate { way, seconds }).collect();
        ways.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        ways
    }
}

/// The ways that apply with the model's seconds, best first.
pub(super) fn candidates(
    d: &Device,
    analysis: &Analysis,
    pattern: &FillPattern,
    block_size: usize,
    precision: FactorPrecision,
) -> Vec<Candidate> {
    Shape::new(d, analysis, pattern, block_size, precision).candidates(Rates::of(d))
}

/// Those behind the first that are worth a try.
pub(super) fn rivals(candidates: &[Candidate]) -> &[Candidate] {
    let Some((best, others)) = candidates.split_first() else { return &[] };
    let near = others.iter().take_while(|c| c.seconds < WORTH_TRYING * best.seconds).count();
    &others[..near]
}

/// Seconds of `apply`, which is called a few times.
pub(super) fn measured(d: &Device, apply: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
    /// Samples last about this long, in seconds.
    const SAMPLE: f64 = 1e-3;
    apply()?;
    let once = d.time(&mut *apply)?;
    let calls = (SAMPLE / once).clamp(1.0, 10.0) as usize;
    let mut samples = Vec::new();
    for _ in 0..3 {
        let seconds = d.time(|| (0..calls).try_for_each(|_| apply()))?;
        samples.push(seconds / calls as f64);
    }
    Ok(median(&samples).map_or(f64::INFINITY, |m| m.value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::{LevelRule, ReadAs};
    use crate::matrix::pattern::block_pattern;
    use crate::problem;
    use crate::symbolic::{Schedule, Stencil, iluk};

    /// The shape of ILU(fill) of a generated matrix, worked out without a device.
    fn shape(matrix: &str, block_size: usize, fill: usize) -> Shape {
        let a = problem::load(matrix, ReadAs::Expanded).unwrap().matrix;
        let p = iluk(&block_pattern(&a.in_blocks(block_size)), fill, LevelRule::Min, usize::MAX)
            .unwrap();
        let stencil = Stencil::of_lower(p.lower.view());
        let both = [stencil.clone(), Stencil::of_upper(p.upper.view())];
        let lengths = p.lower.row_ptr.windows(2).map(|w| w[1] - w[0]);
        Shape {
            rows: p.rows(),
            block_size,
            levels: 2 * Schedule::lower(&p).levels(),
            longest: lengths.max().unwrap() as usize,
            slices: partitioned::slices(&p, block_size),
            on_grid: partitioned::on_grid(&p, block_size, 132),
            offsets: stencil.map(|s| s.offsets.len()),
            pencils: pencils::Plan::new(&Ok(both), block_size)
                .ok()
                .filter(|plan| plan.fits(132, 227 << 10))
                .map(|plan| plan.path()),
            bytes: 8 * p.blocks() * block_size * block_size
                + p.bytes()
                + 32 * p.rows() * block_size,
        }
    }

    /// Wavefront, partitioned, syncfree and pencils in microseconds as measured on an H200, 0 where not.
    const MEASURED: [(&str, usize, usize, [f64; 4]); 6] = [
        ("poisson3d:64", 1, 0, [75.0, 82.0, 278.0, 46.0]),
        ("poisson3d:64", 1, 1, [174.0, 281.0, 0.0, 0.0]),
        ("poisson3d:64", 1, 3, [771.0, 696.0, 2892.0, 0.0]),
        ("blockpoisson3d:64,b=4", 4, 0, [190.0, 243.0, 0.0, 0.0]),
        ("blockpoisson3d:64,b=4", 4, 1, [378.0, 598.0, 646.0, 0.0]),
        ("fem-p1:parabolic_fem", 1, 0, [0.0, 426.0, 2025.0, 0.0]),
    ];

    #[test]
    fn the_model_is_within_two_thirds_of_what_was_measured() {
        for (matrix, b, fill, want) in MEASURED {
            let found = shape(matrix, b, fill).candidates(Rates::FITTED);
            let ways =
                [Trisolve::Wavefront, Trisolve::Partitioned, Trisolve::Syncfree, Trisolve::Pencils];
            for (way, want) in ways.into_iter().zip(want).filter(|(_, us)| *us > 0.0) {
                let found = 1e6 * found.iter().find(|c| c.way == way).unwrap().seconds;
                let ratio = found / want;
                assert!((0.6..5.0 / 3.0).contains(&ratio), "{matrix} {fill} {way:?}: {found} us");
            }
        }
    }

    #[test]
    fn what_the_model_cannot_tell_apart_is_tried() {
        use Trisolve::{Partitioned, Pencils, Syncfree, Wavefront};
        let tried = |matrix, b, fill| -> Vec<Trisolve> {
            let all = shape(matrix, b, fill).candidates(Rates::FITTED);
            let first = all[..1].iter();
            first.chain(rivals(&all)).map(|c| c.way).collect()
        };
        assert_eq!(tried("poisson3d:64", 1, 0), [Pencils, Wavefront]);
        let mut both = tried("poisson3d:64", 1, 3);
        both.sort_by_key(|way| *way == Partitioned);
        assert_eq!(both, [Wavefront, Partitioned]);
        // a plane of triangles in pairs is a stencil, too
        assert_eq!(tried("fem-p1:parabolic_fem", 1, 0), [Partitioned, Wavefront]);
        // blocks beyond a warp have one way
        assert_eq!(tried("poisson3d:12", 36, 0), [Syncfree]);
    }
}
