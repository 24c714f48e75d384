//! Preconditioners, written once over the [`Backend`] trait.

mod amg;
mod approximate;
pub(crate) mod bilu;
mod chebyshev;
mod cpr;
mod diagonal;
pub(crate) mod dilu;
pub(crate) mod fgbilu;
mod fsai;
mod ic;
pub(crate) mod ilut;
mod isai;
pub(crate) mod jacobi;
mod l1_jacobi;
pub(crate) mod mcilu;
mod mcsgs;
mod meilu;
pub(crate) mod none;
pub mod options;
mod ordered;
mod polynomial;
pub(crate) mod products;
pub mod quality;
mod scratch;
pub(crate) mod search;
mod spai;
mod sweeps;
mod threshold;
mod tns;
pub mod transposed;
mod work;

use std::sync::Arc;

use crate::base::choices::{FactorPrecision, FgbiluStyle, LevelRule};
use crate::base::error::{Error, Result};
use crate::base::external::{self, external};
use crate::base::setting::Setting;
use crate::base::shift::Shift;
use crate::compute::preconditioner::{Preconditioner, Renewal, SetupFailure};
use crate::compute::{Backend, Operations, Trisolve};
use crate::matrix::Csr;
use crate::symbolic::FillPattern;
use options::{Options, Parameter};
use products::{Apply, Make, Undivided};
use work::Phased;
pub use work::{Work, work};

/// What a preconditioner is made with; those of a case hold the default of every setting that the
/// preconditioner does not declare.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// A name in the registry, with parameters.
    pub precond: String,
    /// Fill level.
    pub fill: usize,
    /// Update rule of the fill level.
    pub level_rule: LevelRule,
    /// What is added to the diagonal.
    pub shift: Shift,
    /// Blocks of the factors below this part of the norm of their row of A are dropped.
    pub drop_tolerance: f64,
    /// Largest relative difference of mirrored entries that counts as rounding.
    pub symmetry_tolerance: f64,
    /// Numbers in which factors are stored.
    pub factor_precision: FactorPrecision,
    /// Algorithm of triangular solves.
    pub trisolve: Trisolve,
    /// Execution of FGBILU.
    pub fgbilu_style: FgbiluStyle,
}

/// What a setup works on and where it reports its phases.
pub struct Setup<'a, K: Backend> {
    /// The backend.
    pub k: &'a K,
    /// The matrix, padded to whole blocks.
    pub a: &'a Arc<Csr>,
    /// What it is made with.
    pub settings: &'a Settings,
    /// Clock of the phases; also tells the user what is being done.
    pub phases: &'a mut dyn Phases,
}

impl Settings {
    /// The parameters of the preconditioner.
    pub(super) fn options(&self) -> Result<Options> {
        let (_, options) = read(&self.precond)?;
        Ok(options)
    }
}

impl<K: Backend> Setup<'_, K> {
    /// The parameters of the preconditioner.
    fn options(&self) -> Result<Options> {
        self.settings.options()
    }
}

/// A phase of the setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Pattern of the factors; values are not touched.
    Symbolic,
    /// Schedules and storage.
    Analysis,
    /// Values of the factors.
    Numeric,
}

/// Told when a phase begins; a phase lasts until the next begins or the setup returns.
pub trait Phases {
    /// The phase begins now, all earlier work of the backend being done.
    fn begin(&mut self, phase: Phase);

    /// The pattern of the factors, where an earlier case has worked it out; the running phase is
    /// charged with the time that took.
    fn known_pattern(&mut self) -> Option<Arc<FillPattern>> {
        None
    }

    /// The running phase has worked out the pattern of the factors: later cases may have it.
    fn found_pattern(&mut self, _pattern: &Arc<FillPattern>) {}
}

/// Told to nobody.
impl Phases for () {
    fn begin(&mut self, _: Phase) {}
}

/// Result of a setup.
pub type Ready<K> = Result<Box<dyn Preconditioner<K>>, SetupFailure>;

/// What a preconditioner is: what it is called, what it can do and which settings it uses.
pub(crate) struct Method {
    pub(crate) name: &'static str,
    /// A line about it.
    summary: &'static str,
    parameters: &'static [Parameter],
    /// Settings that change something; the case has others that do not.
    uses: &'static [Setting],
    takes: Takes,
    /// Whether it is a symmetric operator where A is.
    symmetric: fn(&Options) -> bool,
    /// Whether, set up on A', it is the transpose of the one set up on A: not the least squares of the
    /// columns of A, nor a polynomial whose interval comes from its rows.
    transposable: bool,
    undivided: Undivided,
    keeps: Kept,
    shape: Shape,
    /// Whether it solves with factors in an order of its own, by colours or independent sets.
    own_order: bool,
    /// Whether the setup looks at the pivots of factors, which a library may keep to itself.
    reads_pivots: bool,
    work: Phased,
    variants: Variants,
}

/// What a preconditioner is to a kernel that does a whole solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// M = I.
    Identity,
    /// Factors of a diagonal pattern.
    Diagonal,
    /// Triangular factors in the order of A.
    Triangles,
    /// Something else.
    Other,
}

/// What a setup leaves to new values on the same pattern ([`renew`]), the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kept {
    /// Nothing: it is set up anew.
    Nothing,
    /// The symbolic phase.
    Pattern,
    /// Symbolic phase and analysis: there is a numeric phase alone.
    Analysis,
}

/// Parameters with which a preconditioner appears where several are asked for at once; none are its
/// defaults.
struct Variants {
    /// In the `all` of a sweep: one of each kind that takes any matrix, and for the kinds of which the paper
    /// or its library has several, those.
    all: &'static [&'static str],
    advised: Advised,
    /// What a backend is compared with one CPU thread on beside those of `all`: what they leave out, as
    /// several colours, sets and long series.
    compared: &'static [&'static str],
}

/// Systems for which `advise` tries a preconditioner, and with which parameters.
enum Advised {
    Never,
    Always(&'static [&'static str]),
    Symmetric(&'static [&'static str]),
    Grid(&'static [&'static str]),
}

impl Method {
    /// What most are.
    const PLAIN: Self = Self {
        name: "",
        summary: "",
        parameters: &[],
        uses: &[],
        takes: Takes::Any,
        symmetric: |_| true,
        transposable: true,
        undivided: Undivided::No,
        keeps: Kept::Nothing,
        shape: Shape::Other,
        own_order: false,
        reads_pivots: false,
        work: Phased { symbolic: None, analysis: None, numeric: None },
        variants: Variants::PLAIN,
    };

    /// As it is written with these parameters.
    fn with(&self, parameters: &str) -> String {
        match parameters {
            "" => self.name.to_owned(),
            _ => format!("{}:{parameters}", self.name),
        }
    }
}

impl Variants {
    /// What most have.
    const PLAIN: Self = Self { all: &[""], advised: Advised::Always(&[""]), compared: &[] };
}

/// Matrices that a preconditioner takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Any.
    Any,
    /// Symmetric ones.
    Symmetric,
    /// Those of seven points on a box.
    Grid,
}

macro_rules! registry {
    ($($module:ident)*; products: $($of_products:ident)*) => {
        const METHODS: &[Method] = &[$($module::METHOD),*];

        /// Preconditioners by name, with a line about each.
        pub const NAMES: &[(&str, &str)] = &[$(($module::METHOD.name, $module::METHOD.summary)),*];

        /// The setup of the preconditioner that `spec` names.
        pub fn lookup<K: Backend + 'static>(spec: &str) -> Option<fn(Setup<K>) -> Ready<K>> {
            let name = name(spec);
            $(if name == $module::METHOD.name {
                return Some($module::setup::<K>);
            })*
            None
        }

        /// How the preconditioner that `spec` names is made on a device and applied on T, where it says that it
        /// consists of products.
        pub(crate) fn of_products<K: Backend, T: Operations + 'static>(
            spec: &str,
        ) -> Option<(Make<K>, Apply<T>)> {
            let name = name(spec);
            $(if name == $of_products::METHOD.name {
                return Some(($of_products::make::<K>, $of_products::apply::<T>));
            })*
            None
        }
    };
}

registry! {
    none jacobi l1_jacobi bilu ilut dilu fgbilu ic mcilu mcsgs meilu spai fsai tns chebyshev isai sweeps amg cpr;
    products: fsai tns chebyshev
}

/// The name in `name:key=value,key=value`.
pub fn name(spec: &str) -> &str {
    spec.split_once(':').map_or(spec, |(name, _)| name)
}

/// What `spec` names.
fn method(spec: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name(spec))
}

/// What `spec` names, and its parameters.
fn read(spec: &str) -> Result<(&'static Method, Options)> {
    let text = spec.split_once(':').map_or("", |(_, text)| text);
    let method = method(spec).ok_or_else(|| {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        Error::unknown("preconditioner", name(spec), &names)
    })?;
    Ok((method, Options::parse(method.name, method.parameters, text)?))
}

/// `spec` as it is always written: parameters in their order, without those that have their defaults. One of a
/// peer, `external:WORD`, has none.
///
/// # Errors
/// Names the preconditioner or the parameter that there is not, or that is out of range.
pub fn canonical(spec: &str) -> Result<String> {
    if external(spec).is_some() {
        return external::check(spec).map(|()| spec.to_owned());
    }
    let (method, options) = read(spec)?;
    let text = options.text(method.parameters);
    Ok(if text.is_empty() { method.name.to_owned() } else { format!("{}:{text}", method.name) })
}

/// `spec` with all its parameters, those that have their defaults too; what is not known stays as it is.
pub fn stated(spec: &str) -> String {
    match read(spec) {
        Ok((method, options)) if !method.parameters.is_empty() => {
            format!("{}:{}", method.name, options.all())
        }
        _ => spec.to_owned(),
    }
}

/// Every preconditioner with its parameters.
pub fn described() -> impl Iterator<Item = (&'static str, &'static [Parameter])> {
    METHODS.iter().map(|method| (method.name, method.parameters))
}

/// What `all` stands for.
pub fn all() -> impl Iterator<Item = String> {
    METHODS.iter().flat_map(|method| method.variants.all.iter().map(|text| method.with(text)))
}

/// What a backend is compared with one CPU thread on beside those of [`all`].
pub fn compared() -> impl Iterator<Item = String> {
    METHODS.iter().flat_map(|method| method.variants.compared.iter().map(|text| method.with(text)))
}

/// Preconditioners that `advise` tries for a system: `first`, those for any matrix, for symmetric ones, for
/// grids.
pub fn advised(first: &str, symmetric: bool, grid: bool) -> Vec<String> {
    let of = |method: &'static Method| {
        let (rank, texts) = match method.variants.advised {
            Advised::Never => return None,
            Advised::Always(texts) => (0, texts),
            Advised::Symmetric(texts) => (1, texts),
            Advised::Grid(texts) => (2, texts),
        };
        let tried = rank == 0 || (rank == 1 && symmetric) || (rank == 2 && grid);
        tried.then(|| texts.iter().map(move |text| (rank, method.with(text))))
    };
    let mut tried: Vec<(i32, String)> = METHODS.iter().filter_map(of).flatten().collect();
    tried.sort_by_key(|(rank, spec)| (*rank, spec != first));
    tried.into_iter().map(|(_, spec)| spec).collect()
}

/// How the preconditioner that `spec` names is the same over ranks as on one device; an unknown one is not.
pub(crate) fn undivided(spec: &str) -> Undivided {
    method(spec).map_or(Undivided::No, |method| method.undivided)
}

/// Of a preconditioner that consists of products: layers of block rows around some that tell the rows of its
/// matrices.
pub(crate) fn reach(spec: &str) -> Option<usize> {
    let (method, options) = read(spec).ok()?;
    match method.undivided {
        Undivided::Products(reach) => Some(reach(&options)),
        Undivided::No | Undivided::Factors => None,
    }
}

/// Names of those that are the same over ranks as on one device.
pub(crate) fn all_undivided() -> Vec<&'static str> {
    let is = |method: &&Method| !matches!(method.undivided, Undivided::No);
    METHODS.iter().filter(is).map(|method| method.name).collect()
}

/// What the preconditioner that `spec` names is to a kernel that does a whole solve.
pub fn shape(spec: &str) -> Shape {
    method(spec).map_or(Shape::Other, |method| method.shape)
}

/// What the setup of the preconditioner that `spec` names leaves to new values; that of a peer is taken to have a
/// numeric phase alone.
pub fn kept(spec: &str) -> Kept {
    method(spec).map_or(Kept::Analysis, |method| method.keeps)
}

/// Gives `m`, which was made with `settings`, the values of `a` on the same pattern: by its numeric phase alone or,
/// where it has none, by a setup that begins with what is kept, which is the answer.
///
/// # Errors
/// Those of the setup; then `m` is of no use.
pub fn renew<K: Backend + 'static>(
    m: &mut Box<dyn Preconditioner<K>>,
    k: &K,
    a: &Arc<Csr>,
    settings: &Settings,
    phases: &mut dyn Phases,
) -> Result<Kept, SetupFailure> {
    /// Knows the pattern of the factors.
    struct Known<'a>(Option<Arc<FillPattern>>, &'a mut dyn Phases);
    impl Phases for Known<'_> {
        fn begin(&mut self, phase: Phase) {
            self.1.begin(phase);
        }
        fn known_pattern(&mut self) -> Option<Arc<FillPattern>> {
            self.0.clone()
        }
    }
    phases.begin(Phase::Numeric);
    let Renewal::Setup(pattern) = m.refactor(k, a, settings.shift.fixed())? else {
        return Ok(Kept::Analysis);
    };
    let kept = if pattern.is_some() { Kept::Pattern } else { Kept::Nothing };
    let setup = lookup::<K>(&settings.precond).expect("it was set up before");
    // the old one makes room first
    *m = Box::new(none::Identity);
    let phases = &mut Known(pattern, phases);
    (*m, _) = search::set_up(setup, Setup { k, a, settings, phases })?;
    Ok(kept)
}

/// Whether the preconditioner that `spec` names solves with factors in an order of its own.
pub(crate) fn has_own_order(spec: &str) -> bool {
    method(spec).is_some_and(|method| method.own_order)
}

/// Whether the setup of the preconditioner that `spec` names looks at the pivots of its factors.
pub(crate) fn reads_pivots(spec: &str) -> bool {
    method(spec).is_some_and(|method| method.reads_pivots)
}

/// Whether the preconditioner that `spec` names is a symmetric operator where A is; an unknown one is none.
pub fn symmetric(spec: &str) -> bool {
    read(spec).is_ok_and(|(method, options)| (method.symmetric)(&options))
}

/// Whether the preconditioner that `spec` names, set up on A', is the transpose of the one set up on A; an
/// unknown one is not.
pub(crate) fn transposable(spec: &str) -> bool {
    method(spec).is_some_and(|method| method.transposable)
}

/// Matrices that the preconditioner called `spec` takes; those that an unknown one takes are not known.
pub fn takes(spec: &str) -> Option<Takes> {
    method(spec).map(|method| method.takes)
}

/// Whether the preconditioner that `spec` names says that it uses a setting; `None` where it is unknown. One of a
/// peer may depend on blocks and on the order of the unknowns; nothing else of ours means anything to it.
pub fn uses(spec: &str, setting: Setting) -> Option<bool> {
    if external(spec).is_some() {
        return Some(matches!(setting, Setting::BlockSize | Setting::Ordering));
    }
    method(spec).map(|method| method.uses.contains(&setting))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
