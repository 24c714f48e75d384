//! The algorithms of triangular solves: their registry, and what they have in common.
//!
//! An algorithm is a file with `ABOUT`, which `build.rs` reads as well (names and properties are known without the
//! feature `cuda`), and `ALGORITHM`; and its name in `registry!`.

pub(super) mod choice;
mod colours;
mod cusparse;
mod levels;
mod owners;
mod partition;
mod partitioned;
mod pencils;
mod pointwise;
mod slices;
mod spsv;
mod syncfree;
pub(super) mod triangles;
mod wavefront;

use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, DriverError};

use super::analysis::Analysis;
use super::cusparse::Handle;
use super::device::Device;
use super::launch::{Address, PartsArg, SolveArg};
use super::numbers::Values;
use super::storage::{self, Structure};
use super::symbolic::{Boxed, Place};
use crate::base::choices::FactorPrecision;
use crate::base::error::Result;
use crate::compute::cuda::Cuda;
use crate::compute::trisolve::{Description, Trisolve};
use crate::compute::{Bytes, cuda};
use crate::symbolic::FillPattern;
use choice::Shape;
pub(super) use cusparse::in_float64;
pub(super) use partitioned::RESIDENT_THREADS;
pub use partitioned::{largest_variants, resident_variant};
pub use syncfree::largest_variant;
pub use wavefront::stencil_variant;

/// An algorithm of triangular solves with our factors.
pub(super) struct Algorithm {
    about: Description,
    /// Seconds of both solves, by a model whose constants are fitted to an H200; `None` for factors that it does
    /// not take. `auto` chooses among the algorithms that have one.
    seconds: Option<fn(&Shape) -> Option<f64>>,
    /// Blocks beyond this size are solved with by [`ANY`] in its place.
    largest_block: usize,
    /// Whether its plans look at the rows of factors on the host.
    host_rows: bool,
    new: fn(&System) -> Result<Box<dyn Solve>>,
    /// The same for solves with one triangle at a time; `None` where there are none.
    in_halves: Option<NewInHalves>,
}

type NewInHalves = fn(&System) -> Result<Box<dyn InHalves>>;

macro_rules! registry {
    ($($name:ident),* $(,)?) => {
        /// Every algorithm, in the order in which a user sees them.
        static ALGORITHMS: &[&Algorithm] = &[$(&$name::ALGORITHM),*];
    };
}

registry! { levels, pointwise, syncfree, wavefront, pencils, partitioned, cusparse, spsv }

/// That takes all factors, of blocks of all sizes.
pub(super) const ANY: Trisolve = syncfree::ABOUT.algorithm();

/// For few levels of many rows each.
pub(super) const FEW_LEVELS: Trisolve = levels::ABOUT.algorithm();

/// For stencils on a box.
pub(super) const STENCILS: Trisolve = wavefront::ABOUT.algorithm();

/// That of the vendor's library.
pub(super) const LIBRARY: Trisolve = cusparse::ABOUT.algorithm();

fn algorithm(name: Trisolve) -> &'static Algorithm {
    let named = ALGORITHMS.iter().find(|a| a.about.algorithm() == name);
    named.expect("an algorithm, not the choice among them")
}

/// Whether plans for `name`, which is not [`Trisolve::AUTO`], look at the rows of factors on the host.
pub(super) fn looks_at_rows(name: Trisolve) -> bool {
    algorithm(name).host_rows
}

/// Solves as `name` says, which is not [`Trisolve::AUTO`].
pub(super) fn new(name: Trisolve, system: &System) -> Result<Box<dyn Solve>> {
    (algorithm(name).new)(system)
}

/// Solves with one triangle at a time: as `name` says, which [`choice::in_halves`] has chosen.
pub(super) fn in_halves(name: Trisolve, system: &System) -> Result<Box<dyn InHalves>> {
    let pattern = &system.structure.pattern;
    if pattern.blocks() == pattern.rows() {
        return triangles::diagonal_in_halves(system);
    }
    let new = algorithm(name).in_halves.expect("an algorithm that has them");
    new(system)
}

/// The algorithm that solves with blocks of `block_size` where `name` is asked for.
pub(super) fn suited(name: Trisolve, block_size: usize) -> Trisolve {
    if block_size > algorithm(name).largest_block { ANY } else { name }
}

/// The algorithm that solves within the kernel of a Krylov method where `name` is asked for, if there is one.
pub(super) fn resident(name: Trisolve, block_size: usize) -> Option<Trisolve> {
    let asked = |of: &Trisolve| name == Trisolve::AUTO || name == *of;
    let all = ALGORITHMS.iter().filter(|a| block_size <= a.about.resident_block);
    all.map(|a| a.about.algorithm()).find(asked)
}

/// Structs that the kernels share.
pub(super) fn layouts() -> impl Iterator<Item = &'static cuda::Layout> {
    partition::layouts().chain(colours::layouts().flatten())
}

/// Solves with both triangles: `z = (L D U')^-1 r`.
pub(super) trait Solve {
    /// Takes over the values of the factors. Returns the seconds spent on a choice among the variants of
    /// a library, which no phase should be charged with.
    fn set_values(&mut self, d: &Device, f: &Structure, values: Values) -> Result<f64>;

    /// Whether it takes vectors in the order that its system names.
    fn in_order(&self) -> bool {
        false
    }

    /// Bytes of its own storage and of one application, where they are not those of the pattern.
    fn bytes(&self) -> Option<Bytes> {
        None
    }

    /// What solves within another kernel need, where they are prepared for.
    fn parts(&self) -> Option<Parts> {
        None
    }

    /// `z = (L D U')^-1 r`. Asynchronous.
    fn apply(&self, d: &Device, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) -> Result<()>;
}

/// Solves with one triangle at a time, between which there is other work.
pub(super) trait InHalves: Solve {
    /// `L y = r`. Some prepare z for the backward solve, which comes next. Asynchronous.
    fn forward(&self, d: &Device, arg: SolveArg) -> Result<(), DriverError>;

    /// `U' z = D y`, D being that of the values. Some leave y prepared for the next forward solve, and want it all
    /// absent before the first one. Asynchronous.
    fn backward(&self, d: &Device, arg: SolveArg) -> Result<(), DriverError>;
}

/// Factors as a kernel takes them whose thread blocks have a part each.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    pub(super) lower: PartsArg,
    pub(super) upper: PartsArg,
    /// Inverse diagonal blocks.
    pub(super) diagonal: Address,
    /// Place of the forward solution.
    pub(super) y: Address,
    /// Block rows that it has shared memory for.
    pub(super) slots: usize,
}

/// What an algorithm is prepared for.
pub(super) struct System<'a> {
    pub(super) device: &'a Device,
    pub(super) structure: &'a Structure,
    pub(super) analysis: &'a Analysis,
    /// Block row of the vectors of each block row of the factors, where it is another one.
    pub(super) order: Option<&'a [u32]>,
    /// Numbers in which the solves read the factors.
    pub(super) precision: FactorPrecision,
    /// Whether a kernel solves that stays for a whole method.
    pub(super) resident: bool,
    /// Where plans are made that both can make.
    pub(super) plans: Place,
    /// Opens cuSPARSE.
    pub(super) library: &'a dyn Fn() -> Result<Rc<Handle>>,
}

/// What `of` makes of factors on a pattern, whose rows may be `there` on the device, with plans that the device or the
/// host makes, within a method's kernel or not.
fn prepared<R>(
    k: &Cuda,
    pattern: &Arc<FillPattern>,
    there: Option<(storage::Triangles, Option<Boxed>)>,
    (plans, resident): (Place, bool),
    of: impl FnOnce(&System) -> Result<R>,
) -> Result<R> {
    let (device, block_size) = (k.gpu(), pattern.block_size());
    let structure = &match &there {
        Some((made, _)) => Structure::there(pattern, block_size, made.clone()),
        None => Structure::new(device, pattern, block_size)?,
    };
    let mut analysis = match there {
        Some((made, boxed)) => Analysis::of_triangles(device, pattern, made, boxed),
        None => Analysis::new(pattern, plans),
    };
    analysis.place = plans;
    let (order, precision) = (None, FactorPrecision::Float64);
    let library = &|| unreachable!("no library is asked for");
    let analysis = &analysis;
    of(&System { device, structure, analysis, order, precision, resident, plans, library })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_are_what_their_descriptions_say() {
        let described: Vec<Trisolve> = Trisolve::which(|_| true).collect();
        let listed = ALGORITHMS.iter().map(|a| a.about.algorithm());
        assert_eq!(listed.collect::<Vec<_>>(), described);
        for a in ALGORITHMS {
            assert_eq!(a.seconds.is_some(), a.about.automatic, "{}", a.about.name);
        }
        let any = [algorithm(ANY)];
        assert!(any.iter().all(|a| a.seconds.is_some() && a.largest_block == usize::MAX));
    }

    #[test]
    fn blocks_beyond_a_warp_and_solves_within_kernels_have_their_algorithms() {
        use Trisolve as T;
        let found = [1, 32, 33].map(|b| suited(T::PARTITIONED, b));
        assert_eq!(found, [T::PARTITIONED, T::PARTITIONED, T::SYNCFREE]);
        let of = |name, b| resident(name, b);
        assert_eq!([of(T::AUTO, 8), of(T::PARTITIONED, 1)], [Some(T::PARTITIONED); 2]);
        assert_eq!([of(T::AUTO, 9), of(T::LEVELS, 1)], [None; 2]);
    }
}
