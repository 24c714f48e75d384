//! Runs an obstacle case on its backend and returns its record.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use crate::base::error::{Error, Kind, Result};
use crate::base::measure::{median, memory_free, now};
use crate::base::status::Status;
use crate::compute::cpu::bandwidth::copy_bandwidth;
use crate::obstacle::case::{Case, Method, Split};
use crate::obstacle::problem::Problem;
use crate::obstacle::solve::{Limits, Outcome};
use crate::obstacle::threads::Ran;
use crate::obstacle::{MPI, MPI_CUDA, node, threads};
use crate::record::environment;
use crate::record::obstacle::{Iteration, Record};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    /// Timed repetitions of a case.
    pub repetitions: usize,
    /// Time limit of a run, in seconds.
    pub time_limit_s: f64,
    /// Whether to keep the solution of the last run; not available on ranks.
    pub keep: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Solved {
    pub record: Record,
    /// u at the end of the last run, x fastest, then y, without the boundary; if requested and a run was
    /// completed.
    pub u: Option<Vec<f64>>,
}

/// Runs a case; `None` when the user cancelled it. A case that cannot run here yields a record, too.
///
/// # Errors
/// When ranks disagree: a run over MPI cannot continue.
pub(crate) fn run(
    case: &Case,
    measure: Measure,
    interrupts: &AtomicUsize,
) -> Result<Option<Solved>> {
    let start = environment::now();
    let mut solved = Solved { record: Record { case: case.clone(), ..Record::default() }, u: None };
    solved.record.iteration.points = case.m.pow(3);
    let done = measured(case, measure, interrupts, &mut solved);
    let record = &mut solved.record;
    if let Err(e) = done {
        record.status = match e.kind() {
            Kind::Memory => Status::OutOfMemory,
            Kind::Input | Kind::Stopped => return Err(e),
            Kind::Run => Status::Unsupported,
        };
        record.reason = Some(e.to_string());
    } else if done == Ok(false) {
        return Ok(None);
    }
    environment::complete(&mut record.environment, &case.backend, start);
    Ok(Some(solved))
}

/// Fills the record; `false` when the user cancelled the case.
fn measured(
    case: &Case,
    measure: Measure,
    interrupts: &AtomicUsize,
    solved: &mut Solved,
) -> Result<bool> {
    let Solved { record, u } = solved;
    let problem = Problem::new(case)?;
    record.problem_hash = Some(problem.hash());
    let mut samples = Vec::new();
    while samples.len() < measure.repetitions.max(1) {
        let deadline = now() + Duration::from_secs_f64(measure.time_limit_s);
        let limits = Limits { interrupts, deadline: Some(deadline) };
        // one solution at a time
        *u = None;
        let (outcome, last) = match case.backend.as_str() {
            #[cfg(feature = "cuda")]
            "cuda" => on_gpus(case, &problem, limits, measure.keep, record)?,
            #[cfg(not(feature = "cuda"))]
            "cuda" => return Err(without_cuda()),
            #[cfg(feature = "mpi")]
            MPI => on_ranks(case, &problem, limits, record)?,
            #[cfg(all(feature = "mpi", feature = "cuda"))]
            MPI_CUDA => on_ranks_with_gpus(case, &problem, limits, record)?,
            #[cfg(all(feature = "mpi", not(feature = "cuda")))]
            MPI_CUDA => return Err(without_cuda()),
            #[cfg(not(feature = "mpi"))]
            MPI | MPI_CUDA => return Err(crate::obstacle::no_mpi()),
            _ => on_threads(case, &problem, limits, measure.keep, record)?,
        };
        *u = last;
        let Some(status) = outcome.status else { return Ok(false) };
        samples.extend(record.cost.solve_s);
        record.status = status;
        note(&mut record.iteration, &outcome);
        if status != Status::Converged {
            break;
        }
    }
    if record.status == Status::NotConverged && case.epsilon == 0.0 {
        // all requested relaxations
        record.status = Status::Complete;
    }
    if record.status == Status::Converged && record.iteration.complementarity.is_none() {
        record.status = Status::Diverged;
    }
    record.reason = match record.status {
        Status::Diverged => Some("min(A u - g, u - phi) is not finite".into()),
        Status::NotConverged => {
            Some(format!("limit of {} relaxations of a node reached", case.max_relaxations))
        }
        Status::TimeLimit => Some("time limit reached".into()),
        _ => None,
    };
    costs(case, &problem, &samples, record);
    Ok(true)
}

fn note(iteration: &mut Iteration, outcome: &Outcome) {
    let finite = |v: f64| v.is_finite().then_some(v);
    iteration.sweeps.clone_from(&outcome.sweeps);
    iteration.sweeps_per_node = outcome.sweeps.iter().sum();
    iteration.relaxations = outcome.relaxations;
    iteration.step_norm = finite(outcome.step_norm);
    iteration.complementarity = finite(outcome.complementarity);
    iteration.contact_points = outcome.contact;
    iteration.false_alarms = outcome.false_alarms;
    iteration.fingerprint = format!("{:016x}", outcome.fingerprint);
}

fn costs(case: &Case, problem: &Problem, samples: &[f64], record: &mut Record) {
    let Some(time) = median(samples) else { return };
    // u and the source are read, u is written, and a floor that is no constant is read; colours need
    // u twice, and those of points everything unless both are made in one pass
    let floor = usize::from(problem.flat_floor().is_none());
    let fields = match case.method {
        Method::Jacobi => 3 + floor,
        Method::RedBlackY => 4 + floor,
        Method::RedBlack if case.colours_in_one_pass() => 3 + floor,
        Method::RedBlack => 2 * (3 + floor),
    };
    let bytes = fields * problem.bytes();
    let sweeps = record.iteration.sweeps_per_node;
    let cost = &mut record.cost;
    cost.solve_s = Some(time.value);
    cost.solve_low_s = samples.iter().copied().reduce(f64::min);
    cost.solve_high_s = samples.iter().copied().reduce(f64::max);
    cost.repetitions = samples.len();
    cost.sweep_bytes = Some(bytes);
    if sweeps > 0.0 {
        cost.ms_per_sweep = Some(1e3 * time.value / sweeps);
        let gbps = bytes as f64 * sweeps / time.value / 1e9;
        cost.sweep_gbps = Some(gbps);
        cost.percent_of_bandwidth = cost.copy_gbps.map(|copy| 100.0 * gbps / copy);
    }
}

/// The split of a case on as many nodes, which must be as many as it asks for.
pub(super) fn split(case: &Case, nodes: usize, what: &str) -> Result<Split> {
    let split = case.split.unwrap_or_else(|| Split::near_square(nodes));
    if split.count() != nodes {
        return Err(Error::run(format!(
            "split {split} is for {}, there are {nodes} {what}",
            split.count()
        )));
    }
    if split.y > case.m || split.z > case.m {
        return Err(Error::run(format!(
            "m {} is too small to be split {split} over {nodes} {what}",
            case.m
        )));
    }
    Ok(split)
}

/// [`check_memory`] where all nodes are on this host; a solution is kept in parts and as a whole.
fn check_host(case: &Case, problem: &Problem, keep: bool) -> Result<()> {
    let fields = node::fields(case, problem) + if keep { 2 } else { 0 };
    node::check_memory(fields * problem.bytes(), memory_free(), "this host")
}

/// How a run ended, and its solution.
type Ended = (Outcome, Option<Vec<f64>>);

fn on_threads(
    case: &Case,
    problem: &Problem,
    limits: Limits<'_>,
    keep: bool,
    record: &mut Record,
) -> Result<Ended> {
    check_host(case, problem, keep)?;
    let cores = if case.backend == "cpu" {
        1
    } else {
        std::thread::available_parallelism().map_or(1, usize::from)
    };
    // with a split of one's own as many threads as it has parts
    let split = match case.split {
        Some(own) => own,
        None => split(case, cores, "threads")?,
    };
    let ran = threads::run(case, problem, split, limits, keep)?;
    record.environment.threads = split.count();
    Ok(recorded(ran, split, Some(copy_bandwidth(split.count().min(cores))), record))
}

/// Adds split and times of a run to the record.
fn recorded(ran: Ran, split: Split, copy_gbps: Option<f64>, record: &mut Record) -> Ended {
    record.iteration.nodes = split.count();
    record.iteration.split_used = Some(split);
    [record.cost.setup_s, record.cost.solve_s] = ran.seconds.map(Some);
    record.cost.copy_gbps = copy_gbps;
    (ran.outcome, ran.solution)
}

#[cfg(feature = "cuda")]
fn on_gpus(
    case: &Case,
    problem: &Problem,
    limits: Limits<'_>,
    keep: bool,
    record: &mut Record,
) -> Result<Ended> {
    use crate::obstacle::cuda;
    let split = case.split.unwrap_or(Split::WHOLE);
    let count = split.count();
    cuda::check_memory(case, problem)?;
    let (ran, used) = cuda::run(case, limits, keep)?;
    record.iteration.transport_used = (count > 1).then(|| "direct".to_owned());
    record.environment.threads = 1;
    record.environment.device = used.device;
    record.cost.compile_s = Some(used.compile_s + record.cost.compile_s.unwrap_or(0.0));
    Ok(recorded(ran, split, used.copy_gbps.map(|gbps| gbps * count as f64), record))
}

#[cfg(not(feature = "cuda"))]
fn without_cuda() -> Error {
    Error::run("this program was built without the feature `cuda`")
}

#[cfg(feature = "mpi")]
fn on_ranks(
    case: &Case,
    problem: &Problem,
    limits: Limits<'_>,
    record: &mut Record,
) -> Result<Ended> {
    use crate::obstacle::mpi;
    let world = mpi::world()?;
    let split = split(case, world.size(), "ranks")?;
    mpi::all_or_none(check_host(case, problem, false))?;
    let node = |extent| node::Node::new(case, problem, extent);
    let (ran, used) = mpi::run(case, split, limits, node)?;
    record.iteration.transport_used = used.map(str::to_owned);
    Ok(of_ranks(ran, split, mpi::copy_bandwidth(world), record))
}

/// Adds the times of a run on ranks to the record.
#[cfg(feature = "mpi")]
fn of_ranks(ran: Ran, split: Split, copy_gbps: Option<f64>, record: &mut Record) -> Ended {
    record.environment.threads = split.count();
    recorded(ran, split, copy_gbps.or(record.cost.copy_gbps), record)
}

#[cfg(all(feature = "mpi", feature = "cuda"))]
fn on_ranks_with_gpus(
    case: &Case,
    problem: &Problem,
    limits: Limits<'_>,
    record: &mut Record,
) -> Result<Ended> {
    use crate::obstacle::cuda::{RankNode, check_rank_memory, device_of};
    use crate::obstacle::mpi;
    let world = mpi::world()?;
    // GPUs share z alone
    let along_z = Split { y: 1, z: world.size() };
    let case = &Case { split: case.split.or(Some(along_z)), ..case.clone() };
    let split = split(case, world.size(), "ranks")?;
    let own = world.of_host();
    let device = mpi::all_or_none(device_of(own))?;
    mpi::all_or_none(check_rank_memory(problem, own, &device, world.size()))?;
    let copy_gbps = world.together(|| device.copy_bandwidth());
    let before = device.compile_seconds();
    let (mut ran, used) = mpi::run(case, split, limits, |extent| {
        RankNode::new(std::sync::Arc::clone(&device), case, extent)
    })?;
    let compile_s = device.compile_seconds() - before;
    ran.seconds[0] -= compile_s.min(ran.seconds[0]);
    record.cost.compile_s = Some(compile_s + record.cost.compile_s.unwrap_or(0.0));
    record.iteration.transport_used = used.map(str::to_owned);
    record.environment.device = format!("{} ranks, {}", world.size(), device.describe());
    Ok(of_ranks(ran, split, copy_gbps, record))
}
