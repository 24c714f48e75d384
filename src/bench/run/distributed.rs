//! A case over ranks: what every rank does, with its rows of the system.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use super::divided::{Arranged, Divided, Exactly, Places};
use super::held::Held;
use super::no_result::{NoResult, together};
use super::phases::{self, PhaseClock, PhaseSeconds};
use super::range::Scaled;
use super::roof::Roof;
use super::scaling::Given;
use super::{Job, Progress, Reuse, Solved, Stage, closed, levels};
use crate::base::error::Kind;
use crate::base::measure::{memory_peak, now, seconds_since, without_peak};
use crate::base::parse::choice_name;
use crate::case::{Case, RunKind};
use crate::compute::distributed::communicator::Communicator;
use crate::compute::distributed::matrix::{Matrix, Rows};
use crate::compute::distributed::moves::values;
use crate::compute::distributed::part::Part;
use crate::compute::distributed::{Distributed, Local};
use crate::compute::krylov::{Outcome, Projection, Stop, System, Transposed};
use crate::compute::preconditioner::SetupFailure;
use crate::compute::{Clock, Platform, Products, RankDevice, RankVisitor, Vectors};
use crate::config::sampling::Measure;
use crate::methods::precond::{Ready, Setup};
use crate::methods::schwarz::exact::Exact;
use crate::methods::schwarz::products::OfProducts;
use crate::methods::schwarz::{Renewed, Schwarz};
use crate::methods::solver;
use crate::problem::Problem;
use crate::record::Record;
use crate::record::schema::Division;
use crate::symbolic::ordering::restored;

/// A preconditioner and, where it is wanted, its transpose.
pub(super) type BothRenewed<L> = (Box<dyn Renewed<L>>, Option<Box<dyn Renewed<L>>>);

/// A case on this rank.
pub(super) struct Run<'a> {
    pub(super) communicator: Rc<dyn Communicator>,
    pub(super) case: &'a Case,
    pub(super) measure: &'a Measure,
    /// Whether the first rank wants the solution.
    pub(super) with_solution: bool,
    /// On the first rank, where it has scaled rows and columns.
    pub(super) given: Option<Given<'a>>,
    pub(super) progress: Progress<'a>,
    pub(super) record: Record,
}

/// The largest peak of a rank, bytes; collective.
pub(super) fn largest_peak<L: Local>(k: &Distributed<L>) -> Option<usize> {
    let peak = memory_peak().map_or(f64::NEG_INFINITY, |bytes| bytes as f64);
    Some(k.of_all(peak)).filter(|peak| peak.is_finite()).map(|peak| peak as usize)
}

impl Run<'_> {
    /// Runs the case on a system of which every rank has rows; collective.
    pub(super) fn of_rows(mut self, held: &Held, b: &[f64]) -> Option<Solved> {
        let divided = Divided::of_rows(held, b, &*self.communicator, self.case, &mut self.record);
        match divided {
            Ok(divided) => self.of(&divided),
            Err(why) => closed(self.record, None, Err(why)),
        }
    }

    /// Runs it on a divided system; collective.
    pub(super) fn of(self, divided: &Divided) -> Option<Solved> {
        let (communicator, with_solution) = (Rc::clone(&self.communicator), self.with_solution);
        self.arranged(divided, |job, arranged| {
            let Case { backend, threads, .. } = job.case;
            match RankDevice::new(backend, (*threads).max(1), &*communicator) {
                Ok(device) => device.visit(OnRank { job, communicator, arranged, with_solution }),
                Err(e) if e.kind() == Kind::Memory => job.ended(Err(e.into())),
                Err(e) => job.ended(Err(NoResult::unsupported(e.to_string()))),
            }
        })
    }

    /// Brings the rows to their owners, and does `work` with those of this rank; collective.
    pub(super) fn arranged(
        mut self,
        divided: &Divided,
        work: impl FnOnce(Job, Arranged) -> Option<Solved>,
    ) -> Option<Solved> {
        let arranged = divided.arranged(&*self.communicator, self.case, &mut self.record);
        self.with(divided, arranged, work)
    }

    /// Does `work` with the rows of this rank, which are there.
    pub(super) fn with<'a>(
        self,
        divided: &Divided,
        arranged: Result<Arranged<'a>, NoResult>,
        work: impl FnOnce(Job, Arranged<'a>) -> Option<Solved>,
    ) -> Option<Solved> {
        let arranged = match arranged {
            Ok(arranged) => arranged,
            Err(why) => return closed(self.record, None, Err(why)),
        };
        let Self { case, measure, given, progress, record, .. } = self;
        let a = Arc::clone(arranged.part.matrix());
        let problem = Problem {
            name: String::new(),
            matrix: Arc::clone(&a),
            grid: None,
            own_rhs: None,
            remarks: Vec::new(),
        };
        let system = Scaled {
            matrix: Cow::Borrowed(&problem.matrix),
            b: Cow::Borrowed(&[]),
            scaling: divided.scaling,
        };
        let job = Job {
            case,
            problem: &problem,
            system: &system,
            given,
            a: &a,
            unknowns: arranged.part.unknowns().len(),
            measure,
            progress,
            reuse: &mut Reuse::default(),
            record,
            x: None,
            limit_s: None,
        };
        work(job, arranged)
    }
}

/// What ranks have told each other before the solves.
pub(super) struct Counted {
    reductions: usize,
    seconds: [f64; 2],
}

impl Counted {
    pub(super) fn before<L: Local>(k: &Distributed<L>) -> Self {
        Self { reductions: k.reductions(), seconds: k.communication_seconds() }
    }

    /// How the matrix is divided, and what so many solves of so many iterations have told since; collective.
    pub(super) fn division<L: Local>(
        &self,
        job: &Job,
        k: &Distributed<L>,
        (part, matrix): (&Part, &Matrix<L>),
        (solves, iterations): (usize, usize),
    ) -> Division {
        let steps = (solves * iterations.max(1)) as f64;
        let [reduction_s, halo_s] = [0, 1].map(|i| {
            let spent = k.communication_seconds()[i] - self.seconds[i];
            Some(k.of_all(spent / solves as f64))
        });
        Division {
            reductions_per_iteration: Some((k.reductions() - self.reductions) as f64 / steps),
            reduction_s,
            halo_s,
            ..job.division(k, part, matrix)
        }
    }
}

/// A case and what this rank has of it.
struct OnRank<'a, 'job> {
    job: Job<'job>,
    communicator: Rc<dyn Communicator>,
    arranged: Arranged<'a>,
    with_solution: bool,
}

impl RankVisitor for OnRank<'_, '_> {
    type Output = Option<Solved>;

    fn visit<L: Local + 'static>(self, local: L) -> Option<Solved> {
        let Self { mut job, communicator, arranged, with_solution } = self;
        let Arranged { layout, part, rhs, places, exactly, .. } = arranged;
        let k = Distributed::new(local, communicator, layout);
        if k.threads() > 1 && matches!(exactly, Some(Exactly::Factors(..))) {
            let what = job.case.schwarz;
            let text = format!("`{what}` factorises and solves with one thread of each rank");
            job.record.remark(text);
        }
        job.on(&k);
        let done = if job.case.kind == RunKind::Spmv {
            job.product_over_ranks(&k, &part)
        } else {
            job.over_ranks(&k, &part, rhs, (&places, exactly.as_ref()), with_solution)
        };
        job.record.times.compile_s = k.compile_seconds();
        job.record.times.trial_s = k.trial_seconds();
        job.ended(done)
    }
}

impl Job<'_> {
    /// Setup, solves and measurements with a part of a system, which may have moved from where it is in the order of
    /// the source.
    fn over_ranks<L: Local + 'static>(
        &mut self,
        k: &Distributed<L>,
        part: &Part,
        rhs: Vec<f64>,
        (places, exactly): (&Places, Option<&Exactly>),
        with_solution: bool,
    ) -> Result<(), NoResult> {
        let case = self.case;
        let (setup, build) = (self.precond_setup::<L>()?, self.solver_build::<Distributed<L>>()?);
        // its arrays are none of the case's
        let roof = without_peak(|| (!self.measure.once).then(|| Roof::of_copies(k)));
        let with_transposed = solver::needs_transposed(&case.solver);
        let (matrix, other) = self.store_rows(k, part, with_transposed)?;
        let (m, other_m) = self.set_up_subdomains(k, part, setup, exactly, with_transposed)?;
        self.record_size(m.size(k));
        let coarse = self.coarse_space(k, part)?;

        // all ranks agree on the limit
        let Case { rtol, max_iterations, .. } = *case;
        let settings = case.solver_settings(Stop { rtol, max_iterations, time_limit_s: None });
        self.limit_s = self.measure.time_limit_s;
        let second = coarse.as_ref().map(|d| d as &dyn Projection<Distributed<L>>);
        let made = self.check_vectors(k).and_then(|()| {
            let n = self.unknowns;
            let adapted = levels::adapted(k, case, n, &*m, second)?;
            Ok((k.vector(n)?, k.vector(n)?, build(k, &settings, n)?, adapted))
        });
        let (mut b, mut x, mut method, adapted) = together(k, made)?;
        k.upload(&rhs, &mut b);
        drop(rhs);
        let system = System {
            a: &matrix,
            m: adapted.as_ref().map_or(&*m, |both| both),
            b: &b,
            transposed: other.as_ref().zip(other_m.as_deref()).map(|(a, m)| Transposed { a, m }),
            deflation: second.filter(|_| adapted.is_none()),
        };
        let counted = Counted::before(k);
        let (outcome, solves) = self.solve(k, &mut *method, &system, &mut x)?;
        drop(method);
        let told = (solves, outcome.iterations);
        self.record.division = counted.division(self, k, (part, &matrix), told);
        let mut own = vec![0.0; self.unknowns];
        k.download(&x, &mut own);
        self.judge_over_ranks(k, own, places, with_solution, &outcome);
        // one application is measured for the first level alone
        let system = System { m: &*m, ..system };
        match roof {
            Some(roof) => self.measure_traffic(k, &system, &mut x, roof)?,
            None => self.record.traffic.memory_bytes = Some(super::traffic::held(k, &system)),
        }
        self.record.division.rank_memory_bytes = largest_peak(k);
        Ok(())
    }

    /// Products alone, with what they exchange.
    fn product_over_ranks<L: Local>(
        &mut self,
        k: &Distributed<L>,
        part: &Part,
    ) -> Result<(), NoResult> {
        let roof = without_peak(|| Roof::of_copies(k));
        let (matrix, _) = self.store_rows(k, part, false)?;
        self.product_with(k, &matrix, &roof, part)?;
        self.record.division =
            Division { rank_memory_bytes: largest_peak(k), ..self.division(k, part, &matrix) };
        Ok(())
    }

    /// Converts the rows of this rank, and those of the transposed matrix if it is wanted, to the format of the
    /// product; repeated.
    pub(super) fn store_rows<L: Local>(
        &mut self,
        k: &Distributed<L>,
        part: &Part,
        with_transposed: bool,
    ) -> Result<(Matrix<L>, Option<Matrix<L>>), NoResult> {
        let format = self.case.format;
        let rank = k.communicator().rank();
        together(k, self.check_share(k, part.entries()))?;
        let ((matrix, other), seconds) = self.repeated(k, Stage::Storage, || {
            let rows = together(k, Rows::of(part, k.layout(), rank).map_err(NoResult::from))?;
            let other = with_transposed.then(|| rows.transposed(&**k.communicator(), k.layout()));
            // both are collective
            let matrix = Matrix::new(k, &rows, format);
            let other = other.map(|rows| Matrix::new(k, &rows, format)).transpose();
            Ok((matrix?, other?))
        })?;
        self.record.times.matrix_s = seconds;
        self.record.format_used = Some(choice_name(&k.format(&matrix)));
        Ok((matrix, other))
    }

    /// Recomputes the residual where the rows are in the order of the source, of x of this rank's unknowns, and sets
    /// status and residuals on the first rank.
    pub(super) fn judge_over_ranks<L: Local>(
        &mut self,
        k: &Distributed<L>,
        x: Vec<f64>,
        Places { divided, moves, inner }: &Places,
        with_solution: bool,
        outcome: &Outcome,
    ) {
        let (communicator, layout) = (&**k.communicator(), k.layout());
        let Divided { held, b, numbering, .. } = divided;
        let x = match inner {
            Some(order) => restored(&x, order),
            None => x,
        };
        let x = if *moves {
            let size = self.case.block_size as u64;
            let starts: Vec<u64> = layout.rank_starts().iter().map(|start| start * size).collect();
            let numbers = held.part.unknowns().map(|at| numbering.of(&held.part, at));
            values(communicator, &starts, &x, numbers)
        } else {
            x
        };
        let residual = held.relative_residual(communicator, b, &x);
        let solution = with_solution.then(|| held.whole(communicator, &x));
        match solution {
            _ if communicator.rank() > 0 => {}
            Some(x) if self.given.is_some() => self.judge(x, outcome),
            solution => {
                self.judged(residual, outcome);
                if let Some(x) = solution {
                    self.solved(x);
                }
            }
        }
    }

    /// How the matrix is divided, and what a product exchanges.
    fn division<L: Local>(&self, k: &Distributed<L>, part: &Part, matrix: &Matrix<L>) -> Division {
        let (halo, own) = (matrix.halo(), part.entries() as f64);
        let sum = |own: usize| Some(k.sum(own as f64) as usize);
        let ranks = k.layout().ranks();
        let mean = k.sum(own) / ranks as f64;
        Division {
            ranks: Some(ranks),
            subdomains_used: Some(k.layout().count()),
            imbalance: Some(k.of_all(own) / mean),
            neighbours: Some(k.of_all(halo.messages() as f64) as usize),
            halo_messages: sum(halo.messages()),
            halo_bytes: sum(halo.bytes()),
            transport_used: halo.transport().filter(|_| ranks > 1).map(str::to_owned),
            ..self.record.division.clone()
        }
    }

    /// Symbolic, analysis and numeric phases of all subdomains, and of the transposed preconditioner if it is
    /// wanted, repeated.
    pub(super) fn set_up_subdomains<L: Local + 'static>(
        &mut self,
        k: &Distributed<L>,
        part: &Part,
        setup: fn(Setup<L>) -> Ready<L>,
        exactly: Option<&Exactly>,
        with_transposed: bool,
    ) -> Result<BothRenewed<L>, NoResult> {
        let (mut runs, start): (Vec<PhaseSeconds>, _) = (Vec::new(), now());
        let settings = self.case.preconditioning();
        let overlap = self.case.schwarz.layers(settings.fill);
        loop {
            let mut clock = PhaseClock::new(k.local(), self.progress, None);
            let clock_of = &mut clock;
            let made: Result<BothRenewed<_>, _> = match exactly {
                Some(Exactly::Products(given)) => {
                    OfProducts::new(k, part, given.as_ref(), &settings, clock_of)
                        .map(|m| (Box::new(m) as _, None))
                }
                Some(Exactly::Factors(order, given)) => {
                    let order = (order, given.as_ref());
                    Exact::new(k, part, order, &settings, clock_of)
                        .map(|m| (Box::new(m) as _, None))
                }
                None if with_transposed => {
                    Schwarz::with_transposed(k, part, setup, &settings, clock_of)
                        .map(|(m, other)| (Box::new(m) as _, Some(Box::new(other) as _)))
                }
                None => Schwarz::new(k, part, overlap, setup, &settings, clock_of)
                    .map(|m| (Box::new(m) as _, None)),
            };
            let (m, seconds) = finished(k, clock.finish(), made)?;
            runs.push(seconds);
            phases::record(&runs, &mut self.record.times);
            self.record.times.numeric_kernel_s = self.record.times.numeric_s;
            if !self.measure.another(runs.len(), k.of_all(seconds_since(start))) {
                return Ok(m);
            }
        }
    }
}

/// What all ranks have made in phases, and the longest seconds of each.
pub(super) fn finished<L: Local, T>(
    k: &Distributed<L>,
    seconds: Option<PhaseSeconds>,
    made: Result<T, SetupFailure>,
) -> Result<(T, PhaseSeconds), NoResult> {
    let made = match seconds {
        None => Err(NoResult::Cancelled),
        Some(seconds) => made.map(|made| (made, seconds)).map_err(NoResult::from),
    };
    let (made, seconds) = together(k, made)?;
    k.check()?;
    // a phase that one rank has takes no time on another
    let largest = |own: Option<f64>| Some(k.of_all(own.unwrap_or(-1.0)));
    Ok((made, seconds.map(|own| largest(own).filter(|seconds| *seconds >= 0.0))))
}
