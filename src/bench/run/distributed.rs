//! Cases over ranks. The first rank reads and divides the system, and judges the solution; all compute.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::no_result::{NoResult, together};
use super::phases::{self, PhaseClock, PhaseSeconds};
use super::product::copying;
use super::range::{Scaled, Scaling};
use super::roof::Roof;
use super::shares::{Part, share};
use super::{Job, Reuse, Solved, Stage, checks, levels, settings};
use crate::base::error::{Error, Kind, Result as Done};
use crate::base::interrupt;
use crate::base::measure::{memory_peak, now, seconds_since};
use crate::base::parse::choice_name;
use crate::case::{Case, Execution, LevelRule, RunKind};
use crate::compute::cpu::Cpu;
use crate::compute::distributed::communicator::Communicator;
use crate::compute::distributed::launch;
use crate::compute::distributed::matrix::{Matrix, Rows};
use crate::compute::distributed::{Distributed, Layout, Local};
use crate::compute::krylov::{Projection, Stop, System, Transposed};
use crate::compute::preconditioner::FactorSize;
use crate::compute::{self, Clock, Platform, Products, RankDevice, RankVisitor, Vectors};
use crate::config::sampling::Measure;
use crate::methods::precond::transposed::Both;
use crate::methods::precond::{Ready, Setup, bilu};
use crate::methods::schwarz::Schwarz;
use crate::methods::schwarz::exact::Exact;
use crate::methods::schwarz::order::Ordered;
use crate::methods::{precond, schwarz, solver};
use crate::problem::Problem;
use crate::record::Record;
use crate::record::environment::REVISION;
use crate::record::schema::{Division, SystemSize};
use crate::symbolic::interfaces::Elimination;
use crate::symbolic::ordering::{reordered, restored};

/// What the first rank announces of a case.
#[derive(Serialize, Deserialize)]
struct Task {
    /// The program of the first rank.
    revision: String,
    case: Case,
    measure: Measure,
    /// First block row of each subdomain, and their end.
    starts: Vec<usize>,
    /// Of factors of the whole matrix.
    elimination: Option<Elimination>,
    size: SystemSize,
    scaling: Scaling,
}

/// The ranks and what they hold.
struct Shares {
    communicator: Rc<dyn Communicator>,
    layout: Layout,
    /// The old number of each unknown, if the order changes.
    order: Option<Vec<u32>>,
    /// First block row of each subdomain, and their end.
    starts: Vec<usize>,
    /// Of factors of the whole matrix.
    elimination: Option<Elimination>,
}

/// Computes with the first rank until it announces nothing more: the part of the other ranks. `next` waits for an
/// announcement.
///
/// # Errors
/// When this is another program than that of the first rank.
#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "there is one rank"))]
pub(crate) fn serve(communicator: &Rc<dyn Communicator>, next: impl Fn() -> Vec<u8>) -> Done<()> {
    loop {
        let bytes = next();
        if bytes.is_empty() {
            return Ok(());
        }
        let task: Task = serde_json::from_slice(&bytes)
            .map_err(|e| Error::run(format!("rank {}: {e}", communicator.rank())))?;
        if task.revision != REVISION {
            let (rank, first) = (communicator.rank(), &task.revision);
            let text = format!("rank {rank} runs {REVISION}, rank 0 runs {first}");
            return Err(Error::run(text).hint("start the same program on all hosts"));
        }
        task.follow(communicator)?;
    }
}

impl Task {
    fn follow(&self, communicator: &Rc<dyn Communicator>) -> Done<()> {
        let (case, b) = (&self.case, self.case.block_size);
        let n = self.starts.last().copied().unwrap_or(0) * b;
        let bytes = communicator.scatter(&mut |_| Vec::new());
        let (a, rhs) = Part::read(&bytes, n, b)?;
        drop(bytes);
        let layout = Layout::new(&self.starts, b, communicator.size())?;
        let mut elimination = self.elimination.clone();
        share(elimination.as_mut(), &**communicator);
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
            scaling: self.scaling,
        };
        let job = Job {
            case,
            problem: &problem,
            system: &system,
            a: &a,
            unknowns: rhs.len(),
            measure: &self.measure,
            progress: &mut |_| true,
            reuse: &mut Reuse::default(),
            record: Record { size: self.size.clone(), ..Record::default() },
            x: None,
            limit_s: None,
        };
        // the first rank records how it ended
        if let Ok(device) = RankDevice::new(&case.backend, self.measure.threads, &**communicator) {
            let communicator = Rc::clone(communicator);
            let elimination = elimination.as_ref();
            device.visit(OnRank { job, communicator, layout, rhs, order: None, elimination });
        }
        Ok(())
    }
}

/// All unknowns on the first rank, of which `own` are this rank's; collective.
fn whole<L: Local>(k: &Distributed<L>, own: &[f64]) -> Option<Vec<f64>> {
    let (layout, communicator) = (k.layout(), k.communicator());
    let counts: Vec<usize> = (0..layout.ranks()).map(|rank| layout.unknowns(rank).len()).collect();
    let all = communicator.gather(own, &counts);
    (communicator.rank() == 0).then_some(all)
}

/// Bytes of the largest peak of a rank, which was `before` when measuring began; collective.
fn largest_peak<L: Local>(k: &Distributed<L>, before: Option<usize>) -> Option<usize> {
    let peak = before.max(memory_peak()).map_or(f64::NEG_INFINITY, |bytes| bytes as f64);
    Some(k.of_all(peak)).filter(|peak| peak.is_finite()).map(|peak| peak as usize)
}

/// A case and what this rank has of it.
struct OnRank<'a, 'job> {
    job: Job<'job>,
    communicator: Rc<dyn Communicator>,
    layout: Layout,
    rhs: Vec<f64>,
    order: Option<Vec<u32>>,
    elimination: Option<&'a Elimination>,
}

impl RankVisitor for OnRank<'_, '_> {
    type Output = Option<Solved>;

    fn visit<L: Local + 'static>(self, local: L) -> Option<Solved> {
        let Self { mut job, communicator, layout, rhs, order, elimination } = self;
        let k = Distributed::new(local, communicator, layout);
        if k.threads() > 1 && elimination.is_some() {
            let what = job.case.schwarz;
            let text = format!("`{what}` factorises and solves with one thread of each rank");
            job.record.remark(text);
        }
        job.record.environment.device = k.device();
        job.record.environment.threads = k.threads();
        let done = job.over_ranks(&k, &rhs, order.as_deref(), elimination);
        job.record.times.compile_s = k.compile_seconds();
        job.record.times.trial_s = k.trial_seconds();
        job.ended(done)
    }
}

impl Job<'_> {
    /// Runs the case on all ranks: the part of the first.
    pub(super) fn lead(mut self) -> Option<Solved> {
        let begin = now();
        let shares = match self.divided() {
            Ok(shares) => shares,
            Err(why) => return self.ended(Err(why)),
        };
        let Shares { communicator, layout, order, starts, elimination } = shares;
        let case = self.case;
        let size = case.block_size;
        let mut b = self.system.b.to_vec();
        b.resize(self.a.rows(), 0.0);
        let a = match &order {
            None => Arc::clone(self.a),
            Some(order) => {
                b = reordered(&b, order);
                let a = Arc::new(self.a.permuted(order).in_blocks(size));
                let before = self.record.times.ordering_s.unwrap_or(0.0);
                self.record.times.ordering_s = Some(before + seconds_since(begin));
                a
            }
        };
        let mut task = Task {
            revision: REVISION.to_owned(),
            case: case.clone(),
            measure: self.measure.clone(),
            starts,
            elimination,
            size: self.record.size.clone(),
            scaling: self.system.scaling,
        };
        if communicator.size() > 1 {
            let Case { matrix, solver, precond, .. } = case;
            interrupt::told_with(Some(format!(
                "rank 0 of {}, {matrix}, {solver}, {precond}",
                communicator.size()
            )));
        }
        communicator.announce(&serde_json::to_vec(&task).expect("numbers and words"));
        let overlap = case.schwarz.layers(case.fill);
        communicator.scatter(&mut |rank| match rank {
            0 => Vec::new(),
            _ => Part::bytes(&a, &b, &layout, overlap, rank),
        });
        share(task.elimination.as_mut(), &*communicator);
        b.truncate(layout.unknowns(0).end);
        let device = RankDevice::new(&case.backend, self.measure.threads, &*communicator);
        let Job { problem, system, measure, progress, reuse, record, .. } = self;
        let (x, unknowns) = (None, b.len());
        let job = Job {
            case,
            problem,
            system,
            a: &a,
            unknowns,
            measure,
            progress,
            reuse,
            record,
            x,
            limit_s: None,
        };
        let elimination = task.elimination.as_ref();
        let done = match device {
            Ok(device) => {
                device.visit(OnRank { job, communicator, layout, rhs: b, order, elimination })
            }
            Err(e) if e.kind() == Kind::Memory => job.ended(Err(e.into())),
            Err(e) => job.ended(Err(NoResult::unsupported(e.to_string()))),
        };
        interrupt::told_with(None);
        done
    }

    /// Refuses what does not run over ranks, and divides the system.
    fn divided(&mut self) -> Result<Shares, NoResult> {
        let case = self.case;
        let unsupported = |what: &str| Err(NoResult::unsupported(format!("{what} over ranks")));
        if solver::needs_transposed(&case.solver) && case.schwarz != schwarz::Choice::Jacobi {
            let reason = format!(
                "`{}` needs the transposed preconditioner, and `{}` has none",
                case.solver, case.schwarz
            );
            return Err(NoResult::unsupported(reason));
        }
        if case.execution != Execution::Fused {
            return unsupported("there is one execution");
        }
        if let Some(reason) = checks::unsuited(case) {
            return Err(NoResult::unsupported(reason));
        }
        self.check_symmetry(&Cpu::sequential())?;
        let communicator = launch::communicator()?;
        let ranks = communicator.size();
        let count = if case.subdomains == 0 { ranks } else { case.subdomains };
        if case.schwarz.is_exact() {
            if case.precond != bilu::METHOD.name {
                return unsupported(&format!("`{}` is not exact: it does not run", case.precond));
            }
            // such a level depends on rows of all ranks
            if case.fill > 0 && case.level_rule != LevelRule::Min {
                let rule = choice_name(&case.level_rule);
                let text = format!("`{}` with the level rule `{rule}` does not run", case.schwarz);
                return unsupported(&text);
            }
        }
        // on a GPU the rows of a stage are made in the order of their columns
        let choice = match case.schwarz {
            schwarz::Choice::Natural if compute::on_gpu(&case.backend) => {
                return unsupported(&format!("`{}` does not run on GPUs", case.schwarz));
            }
            schwarz::Choice::Exact if compute::on_gpu(&case.backend) => schwarz::Choice::Interface,
            choice => choice,
        };
        let Ordered { divided, elimination, used } =
            Ordered::new(self.a, case.partition, self.problem.grid, count, choice, case.fill)?;
        let layout = Layout::new(&divided.starts, case.block_size, ranks)?;
        self.record.division = Division {
            schwarz_used: Some(used.to_string()),
            stages: elimination.as_ref().map(Elimination::stages),
            stage_efficiency: elimination.as_ref().map(|order| order.efficiency),
            ..Division::default()
        };
        let order = divided.unknowns(case.block_size);
        Ok(Shares { communicator, layout, order, starts: divided.starts, elimination })
    }

    /// Setup, solves and measurements: what every rank does. `order` is that of the unknowns of a problem which
    /// the first rank has as a whole, `elimination` that of factors over subdomains.
    fn over_ranks<L: Local + 'static>(
        &mut self,
        k: &Distributed<L>,
        rhs: &[f64],
        order: Option<&[u32]>,
        elimination: Option<&Elimination>,
    ) -> Result<(), NoResult> {
        let case = self.case;
        if case.kind == RunKind::Spmv {
            return self.product_over_ranks(k);
        }
        let unknown =
            |what, name: &str| NoResult::unsupported(format!("there is no {what} `{name}`"));
        let setup = precond::lookup::<L>(&case.precond)
            .ok_or_else(|| unknown("preconditioner", &case.precond))?;
        let build = solver::lookup::<Distributed<L>>(&case.solver)
            .ok_or_else(|| unknown("solver", &case.solver))?;
        let before = memory_peak();
        let roof = (!self.measure.once).then(|| Roof {
            handover: None,
            copy_gbps: Some(k.copy_bandwidth()).filter(|gbps| gbps.is_finite()),
        });
        // its arrays are none of the case's
        memory_peak();
        let with_transposed = solver::needs_transposed(&case.solver);
        let (matrix, other) = self.store_rows(k, with_transposed)?;
        let (m, other_m) = self.set_up_subdomains(k, setup, elimination, with_transposed)?;
        let stored = self.record.size.matrix_blocks * case.block_size * case.block_size;
        let factor = m.size(k);
        let fill_ratio = factor.factor_entries.map(|of| of as f64 / stored.max(1) as f64);
        self.record.factor = FactorSize { fill_ratio, ..factor };
        let coarse = self.coarse_space(k)?;

        let settings = settings(
            case,
            // all ranks agree on the limit
            Stop { rtol: case.rtol, max_iterations: case.max_iterations, time_limit_s: None },
        );
        self.limit_s = self.measure.time_limit_s;
        let second = coarse.as_ref().map(|d| d as &dyn Projection<Distributed<L>>);
        let made = self.check_vectors(k).and_then(|()| {
            let n = self.unknowns;
            let adapted = levels::adapted(k, case, n, &*m, second)?;
            Ok((k.vector(n)?, k.vector(n)?, build(k, &settings, n)?, adapted))
        });
        let (mut b, mut x, mut method, adapted) = together(k, made)?;
        k.upload(rhs, &mut b);
        let system = System {
            a: &matrix,
            m: adapted.as_ref().map_or(&*m, |both| both),
            b: &b,
            transposed: other.as_ref().zip(other_m.as_deref()).map(|(a, m)| Transposed { a, m }),
            deflation: second.filter(|_| adapted.is_none()),
        };
        let counted = (k.reductions(), k.communication_seconds());
        let (outcome, solves) = self.solve(k, &mut *method, &system, &mut x)?;
        drop(method);
        let steps = (solves * outcome.iterations.max(1)) as f64;
        let [reduction, halo] = [0, 1].map(|i| {
            let spent = k.communication_seconds()[i] - counted.1[i];
            Some(k.of_all(spent / solves as f64))
        });
        self.record.division = Division {
            reductions_per_iteration: Some((k.reductions() - counted.0) as f64 / steps),
            reduction_s: reduction,
            halo_s: halo,
            ..self.division(k, &matrix)
        };
        let mut own = vec![0.0; self.unknowns];
        k.download(&x, &mut own);
        if let Some(solution) = whole(k, &own) {
            let solution = order.map_or(solution.clone(), |order| restored(&solution, order));
            self.judge(solution, &outcome);
        }
        // one application is measured for the first level alone
        let system = System { m: &*m, ..system };
        match roof {
            Some(roof) => self.measure_traffic(k, &system, &mut x, roof)?,
            None => self.record.traffic.memory_bytes = Some(super::traffic::held(k, &system)),
        }
        self.record.division.rank_memory_bytes = largest_peak(k, before);
        Ok(())
    }

    /// Products alone, with what they exchange.
    fn product_over_ranks<L: Local>(&mut self, k: &Distributed<L>) -> Result<(), NoResult> {
        let before = memory_peak();
        let roof = copying(k);
        memory_peak();
        let (matrix, _) = self.store_rows(k, false)?;
        let first = k.layout().unknowns(k.communicator().rank()).start;
        self.product_with(k, &matrix, &roof, first, |own| whole(k, &own))?;
        self.record.division =
            Division { rank_memory_bytes: largest_peak(k, before), ..self.division(k, &matrix) };
        Ok(())
    }

    /// Converts the rows of this rank, and those of the transposed matrix if it is wanted, to the format of the
    /// product; repeated.
    fn store_rows<L: Local>(
        &mut self,
        k: &Distributed<L>,
        with_transposed: bool,
    ) -> Result<(Matrix<L>, Option<Matrix<L>>), NoResult> {
        let (a, format) = (self.a, self.case.format);
        let rank = k.communicator().rank();
        together(k, self.check_share(k, self.own_entries(k)))?;
        let ((matrix, other), seconds) = self.repeated(k, Stage::Storage, || {
            let rows = together(k, Rows::of(a, k.layout(), rank).map_err(NoResult::from))?;
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

    /// Entries of this rank's rows.
    fn own_entries<L: Local>(&self, k: &Distributed<L>) -> usize {
        let of = k.layout().unknowns(k.communicator().rank());
        (self.a.row_ptr()[of.end] - self.a.row_ptr()[of.start]) as usize
    }

    /// How the matrix is divided, and what a product exchanges.
    fn division<L: Local>(&self, k: &Distributed<L>, matrix: &Matrix<L>) -> Division {
        let (halo, own) = (matrix.halo(), self.own_entries(k) as f64);
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
            transport_used: k.local().transport().filter(|_| ranks > 1).map(str::to_owned),
            ..self.record.division.clone()
        }
    }

    /// Symbolic, analysis and numeric phases of all subdomains, and of the transposed preconditioner if it is
    /// wanted, repeated.
    fn set_up_subdomains<L: Local + 'static>(
        &mut self,
        k: &Distributed<L>,
        setup: fn(Setup<L>) -> Ready<L>,
        elimination: Option<&Elimination>,
        with_transposed: bool,
    ) -> Result<Both<Distributed<L>>, NoResult> {
        let (mut runs, start): (Vec<PhaseSeconds>, _) = (Vec::new(), now());
        let settings = self.case.preconditioning();
        let overlap = self.case.schwarz.layers(settings.fill);
        loop {
            let mut clock = PhaseClock::new(k.local(), self.progress, None);
            let clock_of = &mut clock;
            let made: Result<Both<_>, _> = match elimination {
                Some(order) => Exact::new(k, self.a, order, &settings, clock_of)
                    .map(|m| (Box::new(m) as _, None)),
                None if with_transposed => {
                    Schwarz::with_transposed(k, self.a, setup, &settings, clock_of)
                        .map(|(m, other)| (Box::new(m) as _, Some(Box::new(other) as _)))
                }
                None => Schwarz::new(k, self.a, overlap, setup, &settings, clock_of)
                    .map(|m| (Box::new(m) as _, None)),
            };
            let made = match clock.finish() {
                None => Err(NoResult::Cancelled),
                Some(seconds) => made.map(|m| (m, seconds)).map_err(NoResult::from),
            };
            let (m, seconds) = together(k, made)?;
            k.check()?;
            // a phase that one rank has takes no time on another
            let largest = |own: Option<f64>| Some(k.of_all(own.unwrap_or(-1.0)));
            runs.push(seconds.map(|own| largest(own).filter(|seconds| *seconds >= 0.0)));
            phases::record(&runs, &mut self.record.times);
            self.record.times.numeric_kernel_s = self.record.times.numeric_s;
            if !self.measure.another(runs.len(), k.of_all(seconds_since(start))) {
                return Ok(m);
            }
        }
    }
}
