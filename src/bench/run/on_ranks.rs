//! A sequence over ranks. The first rank has the systems, and tells at each step what all do.

use std::rc::Rc;
use std::sync::Arc;

use super::distributed::{Counted, Run, finished, largest_peak};
use super::divided::{Arranged, Divided, Exactly, Numbering, Places};
use super::no_result::together;
use super::phases::{self, PhaseClock, Stopwatch};
use super::refill::{Kept, Source};
use super::sequence::{Kernels, Lag, Steps, each, none};
use super::step::Step;
use super::task::{SetupOf, StepTask, Task, Whole, announce, tell};
use super::{Job, NoResult, Solved, Stage};
use crate::base::error::Result;
use crate::base::interrupt;
use crate::base::measure::{now, seconds_since};
use crate::base::parse::choice_name;
use crate::base::threads::Threads;
use crate::case::Case;
use crate::compute::distributed::communicator::Communicator;
use crate::compute::distributed::matrix::{Matrix, Rows};
use crate::compute::distributed::part::{Part, numbered};
use crate::compute::distributed::{Distributed, Local, launch};
use crate::compute::krylov::{Projection, System, Transposed};
use crate::compute::{Products, RankDevice, RankVisitor, Vectors};
use crate::config::sampling::Measure;
use crate::matrix::pattern::count_blocks;
use crate::matrix::{Csr, Equilibration};
use crate::methods::precond;
use crate::methods::schwarz::Renewed;
use crate::methods::solver;
use crate::record::Record;
use crate::record::schema::{Division, SetupDone};

/// Runs the steps of a sequence over ranks: the part of the first.
///
/// # Errors
/// As [`solve_sequence`](super::solve_sequence).
pub(super) fn lead(cases: &[&Case], measure: &Measure, steps: &mut dyn Steps) -> Result<bool> {
    let first = cases[0];
    let communicator = match launch::communicator() {
        Ok(communicator) => communicator,
        Err(why) => return none(cases, Some(&why), steps),
    };
    let threads = first.threads.max(1);
    announce(&*communicator, Task::Sequence(first.backend.clone(), threads));
    match RankDevice::new(&first.backend, threads, &*communicator) {
        Ok(device) => device.visit(Lead { communicator, cases, measure, steps }),
        Err(why) => none(cases, Some(&why), steps),
    }
}

/// The part of another rank; `next` waits for an announcement.
pub(super) fn follow(
    communicator: &Rc<dyn Communicator>,
    (backend, threads): (&str, usize),
    next: &dyn Fn() -> Result<Option<Task>>,
) -> Result<()> {
    match RankDevice::new(backend, threads, &**communicator) {
        Ok(device) => device.visit(Follow { communicator: Rc::clone(communicator), next }),
        // the first rank tells
        Err(_) => Ok(()),
    }
}

/// What a rank has between steps.
struct OfRank<L: Local> {
    communicator: Rc<dyn Communicator>,
    /// The device, while there is no system.
    device: Option<L>,
    left: Option<Left<L>>,
    /// How the pattern of the last step is arranged.
    kept: Option<Kept>,
}

/// What a step leaves to the next.
struct Left<L: Local> {
    k: Distributed<L>,
    /// The rows of the product, and those of the transpose.
    matrix: Matrix<L>,
    other: Option<Matrix<L>>,
    m: Box<dyn Renewed<L>>,
    other_m: Option<Box<dyn Renewed<L>>>,
    /// Whether the setup has a phase.
    has_phases: bool,
}

/// What the first rank knows of the last step.
struct Last {
    /// The matrix, whose pattern counts.
    a: Arc<Csr>,
    blocks: usize,
    whole: Whole,
    /// New numbers of the block rows, if they have any.
    numbers: Option<Vec<u64>>,
    division: Division,
    /// Power of two by which it was divided, after its rows and columns were scaled.
    exponent: i32,
    equilibration: Option<Equilibration>,
}

struct Lead<'a> {
    communicator: Rc<dyn Communicator>,
    cases: &'a [&'a Case],
    measure: &'a Measure,
    steps: &'a mut dyn Steps,
}

impl RankVisitor for Lead<'_> {
    type Output = Result<bool>;

    fn visit<L: Local + 'static>(self, device: L) -> Result<bool> {
        let Self { communicator, cases, measure, steps } = self;
        let of_rank = OfRank { communicator, device: Some(device), left: None, kept: None };
        let mut leader = Leader { of_rank, last: None, lag: Lag::default() };
        let ended =
            each(cases, measure, steps, None, |job, guess, number| leader.step(job, guess, number));
        announce(&*leader.of_rank.communicator, Task::SequenceEnds);
        interrupt::told_with(None);
        ended
    }
}

struct Follow<'a> {
    communicator: Rc<dyn Communicator>,
    next: &'a dyn Fn() -> Result<Option<Task>>,
}

impl RankVisitor for Follow<'_> {
    type Output = Result<()>;

    fn visit<L: Local + 'static>(self, device: L) -> Result<()> {
        let Self { communicator, next } = self;
        let mut of_rank = OfRank { communicator, device: Some(device), left: None, kept: None };
        while let Some(Task::Step(task)) = next()? {
            let ranks = of_rank.communicator.size();
            let none = Whole::no_rows(task.case.block_size);
            let divided = task.whole.divided(none, ranks, Vec::new(), Numbering::Given);
            let record = Record {
                case: task.case.clone(),
                size: task.whole.size.clone(),
                ..Record::default()
            };
            let run = Run {
                communicator: Rc::clone(&of_rank.communicator),
                case: &task.case,
                measure: &task.measure,
                with_solution: true,
                given: None,
                progress: &mut |_| true,
                record,
            };
            of_rank.step(run, (&divided, &divided), None, (task.setup, task.number));
        }
        Ok(())
    }
}

/// The first rank.
struct Leader<L: Local> {
    of_rank: OfRank<L>,
    last: Option<Last>,
    lag: Lag,
}

impl<L: Local + 'static> Leader<L> {
    /// One step, with what the last one left, which is lost where this one fails before its solve.
    fn step(&mut self, mut job: Job, guess: Option<Vec<f64>>, number: usize) -> Option<Solved> {
        let (now, setup) = match self.known(&mut job, number) {
            Ok(known) => known,
            Err(why) => return job.ended(Err(why)),
        };
        let guess = job.guess(guess);
        let Job { case, system, given, a, measure, progress, record, .. } = job;
        let padded = |values: &[f64]| {
            let mut values = values.to_vec();
            values.resize(a.rows(), 0.0);
            values
        };
        let (b, guess) = (padded(&system.b), guess.map(|guess| padded(&guess)));
        let communicator = Rc::clone(&self.of_rank.communicator);
        let mut whole = now.whole.clone();
        if setup != SetupOf::All {
            // the others know the order of the pattern
            whole.elimination = None;
        }
        let task = StepTask {
            case: case.clone(),
            measure: measure.clone(),
            number: number + 1,
            whole,
            setup,
        };
        tell(&*communicator, case);
        announce(&*communicator, Task::Step(Box::new(task)));
        let (blocks, ranks) = (record.size.block_rows as u64, communicator.size());
        let divide = |a: &Arc<Csr>, b: Vec<f64>| {
            let numbering = now.numbers.clone().map_or(Numbering::Given, Numbering::Listed);
            now.whole.divided(Part::of_whole(a, 0..blocks), ranks, b, numbering)
        };
        let names = (setup == SetupOf::All).then(|| {
            let [entries, unknowns] = [a.nnz(), a.rows()].map(numbered);
            divide(&a.with_values(entries).into(), unknowns)
        });
        let divided = divide(a, b);
        let source = Source { a, b: &divided.b, guess: guess.as_deref() };
        let both = (&divided, names.as_ref().unwrap_or(&divided));
        let with_solution = true;
        let run = Run { communicator, case, measure, with_solution, given, progress, record };
        let solved = self.of_rank.step(run, both, Some(source), (setup, number + 1))?;
        if self.of_rank.left.is_some() {
            let Record { status, convergence, setup_done, .. } = &solved.record;
            let new = *setup_done != Some(SetupDone::None);
            self.lag.solved(new, convergence.iterations, status.succeeded());
            self.last = Some(now);
        }
        Some(solved)
    }

    /// What is known of the system, and what is to be made of it.
    fn known(&mut self, job: &mut Job, number: usize) -> Result<(Last, SetupOf), NoResult> {
        let before = self.last.take();
        job.refused()?;
        let alike = job.is_alike(before.as_ref().map(|last| &*last.a), number);
        let (a, exponent) = (Arc::clone(job.a), job.system.scaling.matrix);
        let equilibration = job.given.map(|given| given.equilibration.clone());
        let Some(last) = before.filter(|_| alike) else {
            let blocks = count_blocks(Threads::Pool, &a);
            job.record.size.matrix_blocks = blocks;
            let (whole, numbers) = job.ordered(self.of_rank.communicator.size())?;
            let division = job.record.division.clone();
            let last = Last { a, blocks, whole, numbers, division, exponent, equilibration };
            return Ok((last, SetupOf::All));
        };
        job.record.size.matrix_blocks = last.blocks;
        job.record.division = last.division.clone();
        let scaled = last.exponent != exponent || last.equilibration != equilibration;
        let has_phases = self.of_rank.left.as_ref().is_some_and(|left| left.has_phases);
        let due = has_phases && job.is_due(scaled, &self.lag);
        let size = job.record.size.clone();
        let whole = Whole { size, scaling: job.system.scaling, ..last.whole };
        let last = Last { a, whole, exponent, equilibration, ..last };
        Ok((last, SetupOf::Values { due }))
    }
}

impl<L: Local> Left<L> {
    fn into_device(self) -> L {
        self.k.into_local()
    }
}

impl<L: Local + 'static> OfRank<L> {
    /// A step of a system on this rank, beside which is one whose values are their names where everything is to be
    /// made; collective. `None` when the user stopped it.
    fn step(
        &mut self,
        mut run: Run,
        (divided, names): (&Divided, &Divided),
        source: Option<Source>,
        (setup, number): (SetupOf, usize),
    ) -> Option<Solved> {
        let mut before = self.left.take();
        let arranged = self.arranged(&mut run, (divided, names), source, setup);
        let solved = run.with(divided, arranged, |mut job, arranged| {
            let done = self.solved(&mut job, arranged, before.take(), (setup, number));
            job.ended(done)
        });
        // where there are no rows
        if let Some(left) = before {
            self.device = Some(left.into_device());
        }
        solved
    }

    /// The rows of this rank; collective.
    fn arranged<'a>(
        &mut self,
        run: &mut Run,
        (divided, names): (&'a Divided, &Divided),
        source: Option<Source>,
        setup: SetupOf,
    ) -> Result<Arranged<'a>, NoResult> {
        let communicator = &*self.communicator;
        if setup == SetupOf::All {
            self.kept = None;
            let arranged = names.arranged(communicator, run.case, &mut run.record)?;
            self.kept = Some(Kept::new(communicator, arranged));
        }
        let kept = self.kept.as_ref().expect("a step with this pattern was before");
        let begin = now();
        let filled = kept.filled(communicator, divided, run.case, source)?;
        if filled.places.orders() {
            run.record.times.add_ordering(Some(seconds_since(begin)));
        }
        Ok(filled)
    }

    /// The same with its rows. What the last step left is lost where it fails before the solve.
    fn solved(
        &mut self,
        job: &mut Job,
        Arranged { layout, part, rhs, guess, places, exactly }: Arranged,
        before: Option<Left<L>>,
        (setup, number): (SetupOf, usize),
    ) -> Result<(), NoResult> {
        job.limit_s = job.measure.time_limit_s;
        let (made, kernels) = match (setup, before) {
            (SetupOf::Values { due }, Some(mut left)) => {
                job.on(&left.k);
                let kernels = Kernels::before(&left.k);
                let made = match job.values_on_ranks(&mut left, &part, due) {
                    Ok(made) => Ok((left, made)),
                    Err(why) => Err((left.into_device(), why)),
                };
                (made, kernels)
            }
            (_, before) => {
                let device = before.map(Left::into_device).or(self.device.take());
                let device = device.expect("it is with the last step or free");
                let k = Distributed::new(device, Rc::clone(&self.communicator), layout);
                job.on(&k);
                let kernels = Kernels::before(&k);
                (job.all_on_ranks(k, &part, exactly.as_ref()), kernels)
            }
        };
        let (left, made) = match made {
            Ok(made) => made,
            Err((device, why)) => {
                self.device = Some(device);
                return Err(why);
            }
        };
        job.record.setup_done = Some(made);
        let done = job.solve_on_ranks(&left, &part, (&rhs, guess.as_deref()), &places, number);
        kernels.record(&left.k, &mut job.record.times);
        match done {
            Ok(()) => self.left = Some(left),
            Err(_) => self.device = Some(left.into_device()),
        }
        done
    }
}

impl Job<'_> {
    /// Every phase; the device comes back where one fails.
    fn all_on_ranks<L: Local + 'static>(
        &mut self,
        k: Distributed<L>,
        part: &Part,
        exactly: Option<&Exactly>,
    ) -> Result<(Left<L>, SetupDone), (L, NoResult)> {
        let with_transposed = solver::needs_transposed(&self.case.solver);
        let made = self.precond_setup::<L>().and_then(|setup| {
            let (matrix, other) = self.store_rows(&k, part, with_transposed)?;
            let both = self.set_up_subdomains(&k, part, setup, exactly, with_transposed)?;
            Ok((matrix, other, both))
        });
        let (matrix, other, (m, other_m)) = match made {
            Ok(made) => made,
            Err(why) => return Err((k.into_local(), why)),
        };
        let has_phases = phases::any(&self.record.times);
        let left = Left { k, matrix, other, m, other_m, has_phases };
        Ok((left, if has_phases { SetupDone::All } else { SetupDone::None }))
    }

    /// New values, and a preconditioner of them where it is due.
    fn values_on_ranks<L: Local + 'static>(
        &mut self,
        left: &mut Left<L>,
        part: &Part,
        due: bool,
    ) -> Result<SetupDone, NoResult> {
        let Left { k, matrix, other, m, other_m, .. } = left;
        let communicator = Rc::clone(k.communicator());
        self.begin(k, Stage::Storage)?;
        let stopwatch = Stopwatch::start(k);
        let rows = Rows::of(part, k.layout(), communicator.rank()).map_err(NoResult::from);
        let rows = together(k, rows)?;
        let transposed = other.as_ref().map(|_| rows.transposed(&*communicator, k.layout()));
        let mut stored = matrix.set_values(k, &rows);
        if let Some((other, rows)) = other.as_mut().zip(transposed) {
            stored = stored.and_then(|()| other.set_values(k, &rows));
        }
        together(k, stored.map_err(NoResult::from))?;
        self.record.times.matrix_s = Some(stopwatch.seconds(k));
        self.record.format_used = Some(choice_name(&k.format(matrix)));
        if !due {
            phases::record(&[[None; 3]], &mut self.record.times);
            return Ok(SetupDone::None);
        }
        let settings = self.case.preconditioning();
        let mut clock = PhaseClock::new(k.local(), self.progress, None);
        let mut renewed = m.renew(k, part, &settings, &mut clock);
        if let Some(other) = other_m {
            renewed = renewed.and_then(|_| other.renew(k, part, &settings, &mut clock));
        }
        let (kept, seconds) = finished(k, clock.finish(), renewed)?;
        phases::record(&[seconds], &mut self.record.times);
        self.record.times.numeric_kernel_s = self.record.times.numeric_s;
        let mut less = [precond::Kept::Nothing, precond::Kept::Pattern].into_iter();
        let least = less.find(|least| communicator.any(kept == *least));
        Ok(least.unwrap_or(precond::Kept::Analysis).into())
    }

    /// One solve.
    fn solve_on_ranks<L: Local + 'static>(
        &mut self,
        left: &Left<L>,
        part: &Part,
        (b, guess): (&[f64], Option<&[f64]>),
        places: &Places,
        number: usize,
    ) -> Result<(), NoResult> {
        let Left { k, matrix, other, m, other_m, .. } = left;
        self.record_size(m.size(k));
        let coarse = self.coarse_space(k, part)?;
        let build = self.solver_build::<Distributed<L>>()?;
        let n = self.unknowns;
        let step = Step {
            matrix,
            m: &**m,
            transposed: other.as_ref().zip(other_m.as_deref()).map(|(a, m)| Transposed { a, m }),
            second: coarse.as_ref().map(|of| of as &dyn Projection<Distributed<L>>),
            solver: &|k, settings, _: &System<_>| Ok(build(k, settings, n)?),
            number,
        };
        let counted = Counted::before(k);
        let (x, outcome) = self.solve_step(k, &step, b, guess)?;
        self.record.division = counted.division(self, k, (part, matrix), (1, outcome.iterations));
        let mut own = vec![0.0; n];
        k.download(&x, &mut own);
        self.judge_over_ranks(k, own, places, true, &outcome);
        self.record.division.rank_memory_bytes = largest_peak(k);
        Ok(())
    }
}
