//! Which algorithm is the fastest: the algorithms' models, and a measurement where these leave several.
//!
//! The models' constants are fitted to an H200 (`docs/notes/triangular-solve.md`); what depends on the
//! device, its bandwidth and the time of a hand-over through the L2 cache, is measured.

use super::owners::{Chain, Parts};
use super::partition;
use super::{ALGORITHMS, ANY, Algorithm, algorithm, suited};
use crate::base::choices::FactorPrecision;
use crate::base::error::Result;
use crate::base::measure::median;
use crate::base::threads::Threads;
use crate::compute::Trisolve;
use crate::compute::cuda::analysis::{Analysis, Stencils};
use crate::compute::cuda::device::Device;
use crate::compute::cuda::lattice::Lattice;
use crate::compute::cuda::storage::Structure;
use crate::compute::trisolve::Takes;
use crate::matrix::pattern::Pattern;
use crate::symbolic::FillPattern;

/// Candidates that the model puts this many times behind the best are not tried: its errors stay
/// below that.
const WORTH_TRYING: f64 = 2.0;

/// Applications that a plan is to pay for itself in: about as many as GMRES takes for the systems of the papers, 44 to 236.
pub(in crate::compute::cuda) const APPLICATIONS: f64 = 100.0;

/// An algorithm and the seconds that its model says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::compute::cuda) struct Candidate {
    pub(in crate::compute::cuda) variant: Trisolve,
    pub(in crate::compute::cuda) seconds: f64,
}

/// What the time of an algorithm depends on.
pub(super) struct Shape<'a> {
    pub(super) pattern: &'a FillPattern,
    /// Rows of all kinds that it has.
    kinds: &'a FillPattern,
    pub(super) block_size: usize,
    /// The grid that L is.
    pub(super) lattice: Option<&'a Lattice>,
    /// Steps of its longest chain of dependencies in parts.
    pub(super) chain: &'a Chain<'a>,
    /// Levels of both triangles.
    pub(super) levels: usize,
    pub(super) stencils: &'a Stencils,
    /// Bytes of one application.
    bytes: usize,
    pub(super) multiprocessors: usize,
    /// Thread blocks that are resident together at most, of one for each multiprocessor.
    pub(super) resident: usize,
    /// Bytes of shared memory of a thread block.
    pub(super) shared_bytes: usize,
    /// Seconds per byte of a copy.
    byte: f64,
    /// Seconds in which a value goes from one thread block to another.
    pub(super) handover: f64,
}

/// Seconds per byte of a copy and of a hand-over, of an H200.
const FITTED: [f64; 2] = [1.0 / 4.2e12, 0.25e-6];

impl<'a> Shape<'a> {
    fn new(
        [pattern, kinds]: [&'a FillPattern; 2],
        (block_size, precision): (usize, FactorPrecision),
        (lattice, chain): (Option<&'a Lattice>, &'a Chain<'a>),
        (levels, stencils): (usize, &'a Stencils),
        [multiprocessors, resident, shared_bytes]: [usize; 3],
        [byte, handover]: [f64; 2],
    ) -> Self {
        let bytes = precision.bytes() * pattern.blocks() * block_size * block_size
            + pattern.bytes()
            + 32 * pattern.rows() * block_size;
        Self {
            pattern,
            kinds,
            block_size,
            lattice,
            chain,
            levels,
            stencils,
            bytes,
            multiprocessors,
            resident,
            shared_bytes,
            byte,
            handover,
        }
    }

    /// Seconds in which one application is read.
    pub(super) fn reading(&self) -> f64 {
        self.bytes as f64 * self.byte
    }

    /// Blocks of the longest row of a triangle.
    pub(super) fn longest(&self) -> usize {
        if let Ok(both) = self.stencils {
            return both.iter().flatten().map(|s| s.offsets.len()).max().unwrap_or(0);
        }
        let longest = |t: &Pattern| {
            let longer = |most: u32, i| most.max(t.row_ptr[i + 1] - t.row_ptr[i]);
            Threads::Pool.fold(t.rows(), 4096, || 0, longer, u32::max) as usize
        };
        longest(&self.kinds.lower).max(longest(&self.kinds.upper))
    }

    /// Every algorithm that applies and may be the fastest, best first.
    fn candidates(&self) -> Vec<Candidate> {
        let of = |a: &&Algorithm| {
            let seconds = a.seconds?(self)?;
            Some(Candidate { variant: a.about.algorithm(), seconds })
        };
        let mut all: Vec<Candidate> = ALGORITHMS.iter().filter_map(of).collect();
        all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        all
    }
}

/// The algorithms that apply with their models' seconds, best first.
pub(in crate::compute::cuda) fn candidates(
    d: &Device,
    (analysis, f): (&Analysis, &Structure),
    precision: FactorPrecision,
) -> Vec<Candidate> {
    let known = |value: f64, other: f64| if value.is_finite() { value } else { other };
    let [byte, handover] = FITTED;
    let measured = [known(1e-9 / d.copy_bandwidth(), byte), known(d.handover_latency(), handover)];
    candidates_at(measured, d, (analysis, f), precision)
}

fn candidates_at(
    [byte, handover]: [f64; 2],
    d: &Device,
    (analysis, f): (&Analysis, &Structure),
    precision: FactorPrecision,
) -> Vec<Candidate> {
    let block_size = f.block_size;
    let levels = analysis.levels(d, f).into_iter().sum();
    let multiprocessors = d.multiprocessors();
    let resident = multiprocessors.min(d.limits().resident);
    let stencils = analysis.stencils(d, block_size);
    // a stencil has faster variants where couplings lead back, which are not worth a look; a device that fails does so again
    // when a plan is made
    let chain = |parts: &Parts| match stencils {
        Ok(_) => None,
        Err(_) => partition::chain(d, (analysis, f), parts).ok(),
    };
    Shape::new(
        [&f.pattern, analysis.rows().pattern],
        (block_size, precision),
        (analysis.lattice(), &chain),
        (levels, stencils),
        [multiprocessors as usize, resident as usize, d.shared_bytes()],
        [byte, handover],
    )
    .candidates()
}

/// The algorithm for solves with one triangle at a time: `asked`, where it has them for such factors, else the best by
/// the models of an H200. On GPUs of one kind it depends on the factors alone.
pub(in crate::compute::cuda) fn in_halves(
    asked: Trisolve,
    d: &Device,
    (analysis, f): (&Analysis, &Structure),
    precision: FactorPrecision,
) -> Trisolve {
    let b = f.block_size;
    let applies = |variant: &Trisolve| {
        let stencils = algorithm(*variant).about.takes == Takes::Any;
        algorithm(*variant).in_halves.is_some() && (stencils || analysis.stencils(d, b).is_ok())
    };
    let named = (asked != Trisolve::AUTO).then(|| suited(asked, b));
    let best = || {
        let all = candidates_at(FITTED, d, (analysis, f), precision);
        all.into_iter().map(|candidate| candidate.variant).find(applies).unwrap_or(ANY)
    };
    named.filter(applies).unwrap_or_else(best)
}

/// Those behind the first that are worth a try.
pub(in crate::compute::cuda) fn rivals(candidates: &[Candidate]) -> &[Candidate] {
    let Some((best, others)) = candidates.split_first() else { return &[] };
    let near = others.iter().take_while(|c| c.seconds < WORTH_TRYING * best.seconds).count();
    &others[..near]
}

/// Seconds of `apply`, which is called a few times.
pub(in crate::compute::cuda) fn measured(
    d: &Device,
    apply: &mut dyn FnMut() -> Result<()>,
) -> Result<f64> {
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
    use crate::compute::cuda::sptrsv::owners::chain_of;
    use crate::matrix::pattern::block_pattern;
    use crate::problem;
    use crate::symbolic::{Schedule, Stencil, iluk};

    /// The candidates for ILU(fill) of a generated matrix on an H200, worked out without a device.
    fn candidates(matrix: &str, block_size: usize, fill: usize) -> Vec<Candidate> {
        let a = problem::load(matrix, ReadAs::Expanded).unwrap().matrix;
        let p = iluk(&block_pattern(&a.in_blocks(block_size)), fill, LevelRule::Min, usize::MAX)
            .unwrap();
        let both = [Stencil::of_lower(p.lower.view()), Stencil::of_upper(p.upper.view())];
        let stencils = if both[0].is_some() { Ok(both) } else { Err("no stencil") };
        let levels = (2 * Schedule::lower(&p).levels(), &stencils);
        let double = (block_size, FactorPrecision::Float64);
        let lattice = Lattice::of(p.lower.view());
        let chain = |parts: &Parts| Some(chain_of(p.lower.view(), parts));
        let grid = (lattice.as_ref(), &chain as &Chain);
        Shape::new([&p, &p], double, grid, levels, [132, 132, 227 << 10], FITTED).candidates()
    }

    /// wavefront, partitioned, syncfree and pencils in microseconds as measured on an H200, 0 where not.
    const MEASURED: [(&str, usize, usize, [f64; 4]); 10] = [
        ("poisson3d:64", 1, 0, [75.0, 82.0, 278.0, 46.0]),
        ("poisson3d:64", 1, 1, [174.0, 281.0, 0.0, 0.0]),
        ("poisson3d:64", 1, 3, [771.0, 696.0, 2892.0, 0.0]),
        ("blockpoisson3d:64,b=4", 4, 0, [190.0, 243.0, 0.0, 0.0]),
        ("blockpoisson3d:64,b=4", 4, 1, [378.0, 598.0, 646.0, 0.0]),
        ("fem-p1:parabolic_fem", 1, 0, [0.0, 426.0, 2025.0, 0.0]),
        ("fem-p1:parabolic_fem", 25, 0, [1326.0, 1453.0, 1168.0, 0.0]),
        ("fem-p1:parabolic_fem", 25, 1, [2911.0, 4521.0, 3530.0, 0.0]),
        ("fem-p1:parabolic_fem", 25, 2, [5709.0, 5913.0, 5751.0, 0.0]),
        ("fem-p1:parabolic_fem", 25, 3, [9345.0, 11491.0, 11913.0, 0.0]),
    ];

    #[test]
    fn the_model_is_within_two_thirds_of_what_was_measured() {
        for (matrix, b, fill, want) in MEASURED {
            let found = candidates(matrix, b, fill);
            let variants =
                [Trisolve::WAVEFRONT, Trisolve::PARTITIONED, Trisolve::SYNCFREE, Trisolve::PENCILS];
            for (variant, want) in variants.into_iter().zip(want).filter(|(_, us)| *us > 0.0) {
                let found = 1e6 * found.iter().find(|c| c.variant == variant).unwrap().seconds;
                let ratio = found / want;
                assert!(
                    (0.6..5.0 / 3.0).contains(&ratio),
                    "{matrix} {fill} {variant:?}: {found} us"
                );
            }
        }
    }

    #[test]
    fn what_the_model_cannot_tell_apart_is_tried() {
        use Trisolve as T;
        let tried = |matrix, b, fill| -> Vec<Trisolve> {
            let all = candidates(matrix, b, fill);
            let first = all[..1].iter();
            first.chain(rivals(&all)).map(|c| c.variant).collect()
        };
        assert_eq!(tried("poisson3d:64", 1, 0), [T::PENCILS, T::WAVEFRONT]);
        let mut both = tried("poisson3d:64", 1, 3);
        both.sort_by_key(|variant| *variant == T::PARTITIONED);
        assert_eq!(both, [T::WAVEFRONT, T::PARTITIONED]);
        // a plane of triangles in pairs is a stencil, too
        assert_eq!(tried("fem-p1:parabolic_fem", 1, 0), [T::PARTITIONED, T::WAVEFRONT]);
        // blocks beyond a warp have one variant
        assert_eq!(tried("poisson3d:12", 36, 0), [T::SYNCFREE]);
    }
}
