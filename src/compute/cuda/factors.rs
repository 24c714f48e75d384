//! Block ILU factors on the GPU: who makes them, and how they are solved with.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::CudaSlice;

use super::Cuda;
use super::analysis::Analysis;
use super::compressed::Factored;
use super::device::Device;
use super::ilu::{Factorisation, VendorIlu};
use super::launch::Address;
use super::numbering::Numbering;
use super::numbers::{Numbers, Values};
use super::sptrsv::choice::{self, Candidate};
use super::sptrsv::{self, Parts, Solve, System, triangles};
use crate::base::choices::FactorPrecision;
use crate::base::error::{Error, Kind, Result};
use crate::base::measure::timed;
use crate::base::parse::choice_name;
use crate::base::units;
use crate::compute::{Breakdown, Bytes, Clock, FactorInfo, Trisolve};
use crate::symbolic::schedule::{levels_lower, levels_upper};
use crate::symbolic::{FillPattern, Schedule};

/// Factors on the GPU, and how they are solved with.
pub struct BlockIlu {
    pub(super) pattern: Arc<FillPattern>,
    pub(super) block_size: usize,
    /// Of both solves, once they are asked for or known.
    levels: OnceCell<[usize; 2]>,
    pub(super) trisolve: Trisolve,
    /// Why this variant, where the backend chose it.
    pub(super) reason: Option<String>,
    precision: FactorPrecision,
    /// Inverse diagonal blocks of our factors.
    diagonal: Option<Rc<Numbers>>,
    /// What moves vectors to the order of the factors, where the solves do not.
    renumbered: Option<Numbering>,
    by: By,
}

/// Who factorises and who solves.
enum By {
    Us(Box<Factorisation>, Box<dyn Solve>, Option<Box<Trial>>),
    Vendor(Box<VendorIlu>),
}

/// Variants that are tried against the one at hand when there are values.
struct Trial {
    analysis: Analysis,
    rivals: Vec<Candidate>,
}

impl BlockIlu {
    /// Factors on a `pattern` whose block row i is row `sets.rows[i]` of the vectors, where that is given.
    pub(super) fn new(
        k: &Cuda,
        pattern: &Arc<FillPattern>,
        sets: Option<&Schedule>,
        (trisolve, precision): (Trisolve, FactorPrecision),
    ) -> Result<Self> {
        let (d, block_size) = (&*k.device, pattern.block_size());
        if k.vendor && ![Trisolve::AUTO, sptrsv::LIBRARY].contains(&trisolve) {
            return Err(Error::input("the backend `cusparse` solves by cuSPARSE alone")
                .hint("leave `--trisolve` at `auto` for it"));
        }
        let (analysis, order) = match sets {
            Some(sets) => (Analysis::of_sets(pattern, sets), Some(&sets.rows[..])),
            None => match k.triangles_of(pattern) {
                Some((triangles, boxed)) => {
                    let found = || Analysis::of_triangles(d, pattern, triangles, boxed);
                    (d.span("analysis of triangles", found), None)
                }
                None => (Analysis::new(pattern, k.setup), None),
            },
        };
        let new = |trisolve, reason, by, levels: Option<[usize; 2]>| {
            let pattern = Arc::clone(pattern);
            let knows = matches!(&by, By::Us(_, solve, _) if solve.in_order());
            let order = order.filter(|_| !knows);
            let renumbered = order.map(|order| Numbering::new(d, order, block_size)).transpose()?;
            Ok(Self {
                pattern,
                block_size,
                levels: levels.map_or_else(OnceCell::new, OnceCell::from),
                trisolve,
                reason,
                precision,
                diagonal: None,
                renumbered,
                by,
            })
        };
        if k.vendor {
            sptrsv::in_float64(precision)?;
            let ilu = VendorIlu::new(d, k.library()?, pattern, block_size)?;
            return new(sptrsv::LIBRARY, None, By::Vendor(Box::new(ilu)), None);
        }
        let empty = pattern.blocks() == pattern.rows();
        let f = d.span("plan of the factorisation", || {
            Factorisation::new(d, pattern, &analysis, block_size).map(Box::new)
        })?;
        let within_kernel = k.mode.persistent() && !empty && order.is_none();
        let resident = if within_kernel { sptrsv::resident(trisolve, block_size) } else { None };
        let (variant, reason, rivals) = match (resident, trisolve) {
            (Some(variant), _) => {
                let reason = format!("{}: within the solver's kernel", choice_name(&variant));
                (variant, Some(reason), Vec::new())
            }
            // the diagonal is all there is
            (None, Trisolve::AUTO) if empty => (sptrsv::ANY, None, Vec::new()),
            (None, Trisolve::AUTO) => {
                let all = d
                    .span("models", || choice::candidates(d, (&analysis, &f.structure), precision));
                let reason = Some(predicted(&all));
                // a measurement would choose for one rank what it does not for another
                let rivals = if k.sharers.is_some() { &[] } else { choice::rivals(&all) };
                (all[0].variant, reason, rivals.to_vec())
            }
            (None, variant) => (sptrsv::suited(variant, block_size), None, Vec::new()),
        };
        if !empty && sptrsv::looks_at_rows(variant) {
            pattern.fetch();
        }
        let variant_of = (trisolve != Trisolve::AUTO || !empty).then_some(variant);
        let solve = d.span("plan of the solves", || {
            made(k, variant_of, &f, (&analysis, order), (precision, resident.is_some()))
        })?;
        // without triangles there is nothing to choose
        let tried = reason.is_some() && !rivals.is_empty();
        let levels = analysis.known_levels();
        let trial = tried.then(|| Box::new(Trial { analysis, rivals }));
        new(variant, reason, By::Us(f, solve, trial), levels)
    }

    /// Factors of `a`; the inner result tells why there are none. `uncounted` grows by the seconds
    /// spent on a choice.
    pub(super) fn factor(
        &mut self,
        k: &Cuda,
        a: Factored,
        shift: f64,
        uncounted: &mut f64,
    ) -> Result<Result<(), Breakdown>> {
        let d = &*k.device;
        match &mut self.by {
            By::Vendor(ilu) => Ok(ilu.factor(d, a, shift, uncounted)?.map_err(Breakdown::from)),
            By::Us(f, solve, trial) => {
                let factors = match d.span("factorisation", || f.run(d, a, shift))? {
                    Ok(factors) => factors,
                    Err(singular) => return Ok(Err(singular.into())),
                };
                let values = Values::new(d, &f.structure, factors, self.precision);
                let values = match values? {
                    Ok(values) => values,
                    Err(range) => return Ok(Err(range)),
                };
                *uncounted += d.span("values to their places", || {
                    solve.set_values(d, &f.structure, values.clone())
                })?;
                self.diagonal = Some(Rc::clone(&values.diagonal));
                if let Some(trial) = trial.take() {
                    // the end of the numeric phase is not the trial's
                    k.synchronise();
                    let compiled = d.compile_seconds();
                    let (tried, seconds) = timed(|| {
                        let at_hand = (self.trisolve, &mut *solve);
                        trial.run(k, f, at_hand, &values, self.precision)
                    });
                    let (variant, reason, plan) = tried?;
                    // compilation is not counted anyway, and the plan of what is taken is part of a setup
                    *uncounted += seconds - (d.compile_seconds() - compiled) - plan;
                    (self.trisolve, self.reason) = (variant, Some(reason));
                }
                Ok(Ok(()))
            }
        }
    }

    /// Whether a matrix may be on the device.
    pub(super) fn takes_rows(&self) -> bool {
        matches!(&self.by, By::Us(f, ..) if f.takes_rows())
    }

    /// Where the inverse diagonal blocks are, if the factors are these alone, made by our kernels; the
    /// precision in which they are stored.
    pub(super) fn block_diagonal(&self) -> Option<(Address, FactorPrecision)> {
        let alone = self.pattern.blocks() == self.pattern.rows();
        let diagonal = self.diagonal.as_ref().filter(|_| alone)?;
        Some((diagonal.address(), self.precision))
    }

    /// The factors as a kernel takes them that solves with them itself, and the precision in which they
    /// are stored, if they were prepared for that.
    pub(super) fn parts(&self) -> Option<(Parts, FactorPrecision)> {
        match &self.by {
            By::Us(_, solve, _) => Some((solve.parts()?, self.precision)),
            By::Vendor(_) => None,
        }
    }

    /// Inverse diagonal blocks of our factors, on the host.
    pub(super) fn inverse_diagonal(&self, d: &Device) -> Result<Vec<f64>> {
        match self.diagonal.as_deref() {
            Some(diagonal) => diagonal.host(d),
            None => Err(Error::input("the pivots of cuSPARSE's factors cannot be looked at")
                .hint("`cuda` has the same factors")),
        }
    }

    /// `z = (L D U')^-1 r`.
    pub(super) fn apply(
        &self,
        d: &Device,
        r: &CudaSlice<f64>,
        z: &mut CudaSlice<f64>,
    ) -> Result<()> {
        match &self.renumbered {
            Some(numbering) => numbering.around(d, r, z, |r, z| self.solve(d, r, z)),
            None => self.solve(d, r, z),
        }
    }

    fn solve(&self, d: &Device, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) -> Result<()> {
        match &self.by {
            By::Us(_, solve, _) => solve.apply(d, r, z),
            By::Vendor(ilu) => ilu.apply(r, z),
        }
    }
}

/// A variant of the solves with the factors of `f`; none is that of empty triangles.
fn made(
    k: &Cuda,
    variant: Option<Trisolve>,
    f: &Factorisation,
    (analysis, order): (&Analysis, Option<&[u32]>),
    (precision, resident): (FactorPrecision, bool),
) -> Result<Box<dyn Solve>> {
    let library = || k.library().map(Rc::clone);
    let (device, library) = (&*k.device, &library);
    let (structure, plans) = (&f.structure, k.setup);
    let system = System { device, structure, analysis, order, precision, resident, plans, library };
    match variant {
        Some(variant) => sptrsv::new(variant, &system),
        None => triangles::diagonal_alone(&system),
    }
}

/// What the model says of the best variant and the next.
fn predicted(candidates: &[Candidate]) -> String {
    let of = |c: &Candidate| (choice_name(&c.variant), units::seconds(c.seconds));
    let (variant, seconds) = of(&candidates[0]);
    match candidates.get(1).map(of) {
        Some((next, later)) => format!("{variant}: model {seconds}, next {next} {later}"),
        None => format!("{variant}: model {seconds}"),
    }
}

impl Trial {
    /// Measures the variant at hand and its rivals on the factors, leaves the one in its place with which setup and
    /// [`choice::APPLICATIONS`] take the least time, and tells which one it is, why, and the seconds of its plan where
    /// that was made now. A rival for which there is no memory is left out.
    fn run(
        self,
        k: &Cuda,
        f: &Factorisation,
        (variant, at_hand): (Trisolve, &mut Box<dyn Solve>),
        values: &Values,
        precision: FactorPrecision,
    ) -> Result<(Trisolve, String, f64)> {
        let d = &*k.device;
        let n = f.structure.pattern.rows() * f.structure.block_size;
        let (r, mut z) = (d.zeros::<f64>(n)?, d.zeros::<f64>(n)?);
        let seconds = choice::measured(d, &mut || at_hand.apply(d, &r, &mut z))?;
        let mut best = Tried { variant, plan: 0.0, seconds };
        let mut others = Vec::new();
        for rival in self.rivals {
            let mut tried = || -> Result<(Box<dyn Solve>, Tried)> {
                let compiled = d.compile_seconds();
                let (solve, plan) = timed(|| -> Result<_> {
                    if sptrsv::looks_at_rows(rival.variant) {
                        f.structure.pattern.fetch();
                    }
                    let of = (&self.analysis, None);
                    let mut solve = made(k, Some(rival.variant), f, of, (precision, false))?;
                    solve.set_values(d, &f.structure, values.clone())?;
                    k.synchronise();
                    Ok(solve)
                });
                let (solve, plan) = (solve?, plan - (d.compile_seconds() - compiled));
                let seconds = choice::measured(d, &mut || solve.apply(d, &r, &mut z))?;
                Ok((solve, Tried { variant: rival.variant, plan, seconds }))
            };
            match tried() {
                Ok((solve, tried)) if tried.cost() < best.cost() => {
                    others.push(std::mem::replace(&mut best, tried));
                    *at_hand = solve;
                }
                Ok((_, tried)) => others.push(tried),
                Err(e) if e.kind() == Kind::Memory => {
                    others.push(Tried {
                        variant: rival.variant,
                        plan: 0.0,
                        seconds: f64::INFINITY,
                    });
                }
                Err(e) => return Err(e),
            }
        }
        let others: String = others.iter().map(|other| other.beside(&best)).collect();
        let measured = units::seconds(best.seconds);
        Ok((
            best.variant,
            format!("{}: {measured} measured{others}", choice_name(&best.variant)),
            best.plan,
        ))
    }
}

/// A variant that was tried: the seconds of its plan, where that was not made before, and of an application.
struct Tried {
    variant: Trisolve,
    plan: f64,
    seconds: f64,
}

impl Tried {
    /// Seconds until a method has ended, about.
    fn cost(&self) -> f64 {
        self.plan + choice::APPLICATIONS * self.seconds
    }

    /// What is told of it beside what was taken.
    fn beside(&self, taken: &Self) -> String {
        let name = choice_name(&self.variant);
        match units::seconds(self.seconds) {
            _ if self.seconds.is_infinite() => format!(", no memory for {name}"),
            seconds if self.seconds < taken.seconds => {
                format!(", {name} {seconds} after {} of setup", units::seconds(self.plan))
            }
            seconds => format!(", {name} {seconds}"),
        }
    }
}

impl FactorInfo for BlockIlu {
    fn pattern(&self) -> &FillPattern {
        &self.pattern
    }

    fn bytes(&self) -> Bytes {
        match &self.by {
            By::Vendor(ilu) => return ilu.bytes(),
            By::Us(_, solve, _) => {
                if let Some(bytes) = solve.bytes() {
                    return bytes;
                }
            }
        }
        Bytes::of_factors(&self.pattern, self.precision.bytes() * self.pattern.numbers())
    }

    fn trisolve(&self) -> Trisolve {
        self.trisolve
    }

    fn trisolve_reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    fn levels(&self) -> [usize; 2] {
        let p = &self.pattern;
        let found = || rayon::join(|| levels_lower(p), || levels_upper(p));
        *self.levels.get_or_init(|| found().into())
    }

    fn factor_seconds(&self) -> Option<f64> {
        Some(match &self.by {
            By::Us(f, ..) => f.seconds(),
            By::Vendor(ilu) => ilu.factor_seconds(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_to_pay_for_itself() {
        let of = |variant, plan, seconds| Tried { variant, plan, seconds };
        let at_hand = of(Trisolve::WAVEFRONT, 0.0, 1.6e-3);
        let faster = of(Trisolve::PARTITIONED, 0.2, 1.5e-3);
        assert!(faster.cost() > at_hand.cost());
        assert_eq!(faster.beside(&at_hand), ", partitioned 1.500 ms after 200.0 ms of setup");
        let much_faster = of(Trisolve::PARTITIONED, 0.1, 0.5e-3);
        assert!(much_faster.cost() < at_hand.cost());
        assert_eq!(at_hand.beside(&much_faster), ", wavefront 1.600 ms");
        let lacking = of(Trisolve::PARTITIONED, 0.0, f64::INFINITY);
        assert_eq!(lacking.beside(&at_hand), ", no memory for partitioned");
    }
}
