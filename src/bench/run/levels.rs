//! The second level of a preconditioner: deflation on one device, the coarse space over ranks.

use std::cell::RefCell;

use super::no_result::NoResult;
use super::phases::Stopwatch;
use super::{Job, Stage};
use crate::base::measure::spans::span;
use crate::base::measure::{median, now, seconds_since};
use crate::case::Case;
use crate::compute::distributed::part::Part;
use crate::compute::distributed::{Distributed, Local};
use crate::compute::krylov::Projection;
use crate::compute::preconditioner::Preconditioner;
use crate::compute::{Backend, Operations};
use crate::methods::deflation::{Adapted, Choice, Deflation, SubdomainDeflation, Vectors};
use crate::methods::solver;

/// Both levels as one preconditioner for vectors of n unknowns, unless deflation is part of the method.
pub(super) fn adapted<'a, K: Operations>(
    k: &K,
    case: &Case,
    n: usize,
    m: &'a dyn Preconditioner<K>,
    deflation: Option<&'a dyn Projection<K>>,
) -> Result<Option<Adapted<'a, K>>, NoResult> {
    match deflation.filter(|_| !solver::deflates(&case.solver)) {
        None => Ok(None),
        Some(deflation) => Ok(Some(Adapted { m, deflation, scratch: RefCell::new(k.vector(n)?) })),
    }
}

impl Job<'_> {
    /// Sets up deflation; its time is part of the setup.
    pub(super) fn deflate<K: Backend>(&mut self, k: &K) -> Result<Option<Deflation<K>>, NoResult> {
        let choice = self.case.deflation;
        if choice == Choice::None {
            return Ok(None);
        }
        let grid = self.problem.grid.filter(|_| self.record.size.padding == 0);
        let a = self.a;
        let (start, mut samples) = (now(), Vec::new());
        let (vectors, deflation) = loop {
            self.begin(k, Stage::Numeric)?;
            let stopwatch = Stopwatch::start(k);
            let vectors = span("deflation vectors", || {
                k.on_host(|threads| Vectors::new(threads, choice, a, grid))
            })?;
            let deflation = span("deflation", || Deflation::new(k, self.a, &vectors))?;
            samples.push(stopwatch.seconds(k));
            k.check()?;
            if !self.measure.another(samples.len(), seconds_since(start)) {
                break (vectors, deflation);
            }
        };
        let seconds = median(&samples).map(|m| m.value);
        self.record_deflation(seconds, [deflation.count(), deflation.dependent()]);
        vectors.remarks.into_iter().for_each(|remark| self.record.remark(remark));
        Ok(Some(deflation))
    }

    /// The same over ranks, by subdomains; collective.
    pub(super) fn coarse_space<K: Local>(
        &mut self,
        k: &Distributed<K>,
        part: &Part,
    ) -> Result<Option<SubdomainDeflation<K>>, NoResult> {
        let Choice::Subdomains(pieces) = self.case.deflation else { return Ok(None) };
        let (made, seconds) = self.repeated(k, Stage::Numeric, || {
            SubdomainDeflation::new(k, part, pieces).map_err(NoResult::from)
        })?;
        self.record_deflation(seconds, [made.count(), made.dependent()]);
        made.remark().into_iter().for_each(|remark| self.record.remark(remark.to_owned()));
        Ok(Some(made))
    }

    fn record_deflation(&mut self, seconds: Option<f64>, [count, dependent]: [usize; 2]) {
        self.record.times.deflation_s = seconds;
        let setup = &mut self.record.times.setup_s;
        *setup = setup.map(|s| s + seconds.unwrap_or(0.0));
        self.record.factor.deflation_vectors = Some(count);
        if dependent > 0 {
            self.record.remark(format!("deflation vectors that depend on others: {dependent}"));
        }
    }
}
