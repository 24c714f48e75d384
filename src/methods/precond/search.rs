//! The search for a diagonal shift (Manteuffel, *An incomplete factorization technique for positive definite linear
//! systems*, 1980): the preconditioner of `A + alpha diag(A)` for the first alpha of 0, 2^-10, 2^-9, .. at which it is fit
//! for use. Where a diagonal entry is zero or missing, the largest magnitude of its row stands for it.

use std::sync::Arc;

use super::quality::quality;
use super::{Phase, Phases, Ready, Settings, Setup};
use super::{bilu, ic};
use crate::base::shift::Shift;
use crate::base::threads::Threads;
use crate::compute::cpu::Cpu;
use crate::compute::preconditioner::{FactorSize, Form, Preconditioner, Renewal, SetupFailure};
use crate::compute::{Backend, Bytes};
use crate::matrix::{Csr, Rows, bsr};
use crate::symbolic::FillPattern;

/// The first alpha above 0, and the last.
const FIRST: f64 = 1.0 / 1024.0;
const LAST: f64 = 4.0;

/// A larger estimate of |(L U)^-1| says that the solves are unstable.
const UNSTABLE: f64 = 1e10;

/// The preconditioner of a shifted matrix. What it does for products with its own matrix is none with A.
struct Shifted<K: Backend> {
    m: Box<dyn Preconditioner<K>>,
    alpha: f64,
}

impl<K: Backend> Preconditioner<K> for Shifted<K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        self.m.apply(k, r, z);
    }

    fn refactor(&mut self, k: &K, a: &Arc<Csr>, shift: f64) -> Result<Renewal, SetupFailure> {
        let shifted = Arc::new(k.on_host(|threads| with_diagonal(threads, a, self.alpha))?);
        match self.m.refactor(k, &shifted, shift) {
            Ok(Renewal::Done) => Ok(Renewal::Done),
            Ok(Renewal::Setup(pattern)) => Ok(Renewal::Setup(pattern)),
            // the new values need another shift
            Err(SetupFailure::Breakdown(_) | SetupFailure::Broken(_)) => Ok(Renewal::Setup(None)),
            Err(why) => Err(why),
        }
    }

    fn form(&self) -> Form<'_, K> {
        self.m.form()
    }

    fn bytes(&self, k: &K) -> Bytes {
        self.m.bytes(k)
    }

    fn numeric_bytes(&self, k: &K) -> usize {
        self.m.numeric_bytes(k)
    }

    fn numeric_kernel_seconds(&self, k: &K) -> Option<f64> {
        self.m.numeric_kernel_seconds(k)
    }

    fn size(&self, k: &K) -> FactorSize {
        FactorSize { shift_used: Some(self.alpha), ..self.m.size(k) }
    }
}

/// A shift that was found, and the matrix with it.
pub(super) struct Found {
    alpha: f64,
    shifted: Arc<Csr>,
}

impl Found {
    /// Sets up on the transpose of the shifted matrix.
    ///
    /// # Errors
    /// Those of the setup.
    pub(super) fn of_transposed<K: Backend + 'static>(
        &self,
        setup: fn(Setup<K>) -> Ready<K>,
        s: Setup<K>,
    ) -> Ready<K> {
        let Setup { k, settings, phases, .. } = s;
        let settings = &unshifted(settings);
        let a = &Arc::new(self.shifted.transposed());
        let m = setup(Setup { k, a, settings, phases })?;
        Ok(Box::new(Shifted { m, alpha: self.alpha }))
    }
}

/// A preconditioner and, where a shift was searched, the one that was found.
type Searched<K> = (Box<dyn Preconditioner<K>>, Option<Found>);

/// Settings for a matrix that is shifted already.
fn unshifted(settings: &Settings) -> Settings {
    Settings { shift: Shift::default(), ..settings.clone() }
}

/// Sets up by `setup`, on a shifted matrix where the settings ask for a search; second, what it found.
///
/// # Errors
/// Those of the setup; [`SetupFailure::Broken`] where no shift is found.
pub(super) fn set_up<K: Backend + 'static>(
    setup: fn(Setup<K>) -> Ready<K>,
    s: Setup<K>,
) -> Result<Searched<K>, SetupFailure> {
    let Setup { k, a, settings, phases } = s;
    if settings.shift != Shift::Search {
        return Ok((setup(Setup { k, a, settings, phases })?, None));
    }
    let tolerance = settings.symmetry_tolerance;
    let definite = k.on_host(|_| may_be_definite(a, tolerance));
    let settings = &unshifted(settings);
    let mut phases = Remembering { phases, pattern: None, shifted: false };
    let (mut alpha, mut last) = (0.0, String::new());
    while alpha <= LAST {
        phases.begin(Phase::Numeric);
        let shifted = if alpha == 0.0 {
            Arc::clone(a)
        } else {
            Arc::new(k.on_host(|threads| with_diagonal(threads, a, alpha))?)
        };
        let made = setup(Setup { k, a: &shifted, settings, phases: &mut phases });
        match made {
            Ok(m) => match unfit(k, &*m, &shifted, definite)? {
                None => {
                    return Ok((Box::new(Shifted { m, alpha }), Some(Found { alpha, shifted })));
                }
                Some(why) => last = why,
            },
            Err(SetupFailure::Breakdown(why)) => last = why.to_string(),
            Err(SetupFailure::NoPivot { block, .. }) => last = block.to_string(),
            Err(SetupFailure::Broken(why)) => last = why,
            Err(other) => return Err(other),
        }
        alpha = if alpha == 0.0 { FIRST } else { 2.0 * alpha };
        phases.shifted = true;
    }
    Err(SetupFailure::Broken(format!(
        "no shift up to {LAST} times the diagonal makes a usable preconditioner: {last}"
    )))
}

/// Why block ILU(0) of a matrix is not fit for use as it is, if it is not; differences below the tolerance count as
/// symmetric.
pub(crate) fn fault(a: &Csr, symmetry_tolerance: f64) -> Option<String> {
    let (k, a) = (Cpu::sequential(), Arc::new(bsr::pad(a, a.block_size())));
    let settings =
        Settings { precond: bilu::METHOD.name.into(), symmetry_tolerance, ..Settings::default() };
    let definite = may_be_definite(&a, symmetry_tolerance);
    match bilu::setup(Setup { k: &k, a: &a, settings: &settings, phases: &mut () }) {
        Ok(m) => unfit(&k, &*m, &a, definite).ok().flatten(),
        Err(SetupFailure::Breakdown(why)) => Some(why.to_string()),
        // too large to say
        Err(_) => None,
    }
}

/// Why a preconditioner of `a` is not fit for use, if it is not.
fn unfit<K: Backend>(
    k: &K,
    m: &dyn Preconditioner<K>,
    a: &Csr,
    definite: bool,
) -> Result<Option<String>, SetupFailure> {
    let condest = quality(k, m, a)?.condest;
    match condest {
        None => return Ok(Some("a solve with the factors overflows".into())),
        Some(found) if found > UNSTABLE => {
            return Ok(Some(format!("|(L U)^-1| is about {found:.1e}")));
        }
        Some(_) => {}
    }
    if let Form::Factors { ilu, .. } = m.form()
        && definite
        && let Ok(inverse) = k.ilu_inverse_diagonal(ilu)
        && let Err(why) = k.on_host(|threads| ic::definite(threads, &inverse, a.block_size()))
    {
        return Ok(Some(match why {
            SetupFailure::Broken(why) => why,
            other => return Err(other),
        }));
    }
    Ok(None)
}

/// Whether a matrix is symmetric with a positive diagonal, so that its factors are to be definite.
fn may_be_definite(a: &Csr, tolerance: f64) -> bool {
    (0..a.rows()).all(|i| a.get(i, i).is_some_and(|v| v > 0.0))
        && a.asymmetry_beyond(tolerance).is_none()
}

/// `A + alpha diag(A)`, with the largest magnitude of its row for a diagonal entry that is zero or missing.
///
/// # Errors
/// When there are more entries than indices.
fn with_diagonal(threads: Threads, a: &Csr, alpha: f64) -> Result<Csr, SetupFailure> {
    let row = |(): &mut (), i: usize, to: &mut Rows| {
        let (cols, values) = a.row(i);
        let own = a.get(i, i).unwrap_or(0.0);
        let largest = || values.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
        let shifted = own + alpha * if own == 0.0 { largest() } else { own };
        let before = cols.partition_point(|&j| (j as usize) < i);
        let behind = before + usize::from(cols.get(before).is_some_and(|&j| j as usize == i));
        cols[..before].iter().zip(values).for_each(|(&j, &v)| to.push(j, v));
        to.push(i as u32, shifted);
        cols[behind..].iter().zip(&values[behind..]).for_each(|(&j, &v)| to.push(j, v));
        Ok(())
    };
    a.by_rows_like(threads, || (), row)
}

/// Passes everything on and knows the pattern of the factors from the first setup on.
struct Remembering<'a> {
    phases: &'a mut dyn Phases,
    pattern: Option<Arc<FillPattern>>,
    /// Whether the diagonal is stored, which adds it to the pattern and nothing else.
    shifted: bool,
}

impl Phases for Remembering<'_> {
    fn begin(&mut self, phase: Phase) {
        self.phases.begin(phase);
    }

    fn known_pattern(&mut self) -> Option<Arc<FillPattern>> {
        if self.pattern.is_none() && !self.shifted {
            self.pattern = self.phases.known_pattern();
        }
        let known = self.pattern.as_mut()?;
        if self.shifted && !known.no_diagonal.is_empty() {
            Arc::make_mut(known).no_diagonal.clear();
        }
        Some(Arc::clone(known))
    }

    fn found_pattern(&mut self, pattern: &Arc<FillPattern>) {
        self.pattern = Some(Arc::clone(pattern));
        if !self.shifted {
            self.phases.found_pattern(pattern);
        }
    }
}
