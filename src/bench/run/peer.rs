//! A case that a peer runs: it gets the system in a folder, measures itself, and its solution is judged as ours are.

use std::cell::{Cell, RefCell};
use std::process::Command;

use serde_json::{Value, json};

use super::answer::{Answer, End, EndStatus, PROTOCOL, plain};
use super::speed::Speed;
use super::{Job, NoResult, Solved, Stage, phases};
use crate::base::measure::median;
use crate::base::parse::{choice_name, shown};
use crate::base::status::Status;
use crate::bench::process::{self, ChildEnd, Ended, Limits};
use crate::case::{Case, RunKind};
use crate::compute::cpu::Cpu;
use crate::compute::krylov::{Outcome, SolveEnd};
use crate::compute::preconditioner::FactorSize;
use crate::config::peer::{self, Peer};
use crate::config::sampling::Measure;
use crate::matrix::Csr;

/// Seconds in which a peer says its version.
const PROBE_S: f64 = 30.0;

/// What a peer says of itself when it is asked with `--version`.
///
/// # Errors
/// Why it does not.
pub(crate) fn version(peer: &Peer) -> Result<String, String> {
    let mut command = start(peer);
    command.arg("--version");
    let mut answer = Answer::default();
    let mut line = |text: &str| answer.line(text);
    let mut stopped = || false;
    let limits = Limits { total_s: Some(PROBE_S), ..Limits::none(&mut stopped) };
    let ended = process::run(command, limits, Some(&mut line));
    let ended = ended.map_err(|e| cannot_start(peer, &e))?;
    match (ended.how, answer.hello) {
        (ChildEnd::Exited(status), Some(hello)) if status.success() => Ok(plain(&hello.version)),
        (ChildEnd::Refused(why), _) => Err(why),
        (ChildEnd::Late(seconds), _) => Err(format!("no answer in {seconds} s")),
        (ChildEnd::Exited(status), _) => Err(process::exit(status, &ended.words)),
        (ChildEnd::Silent(_) | ChildEnd::Interrupted, _) => unreachable!("not asked for"),
    }
}

/// The command of a peer, in the folder of its description.
fn start(peer: &Peer) -> Command {
    let folder = peer.file.parent().unwrap_or(&peer.file);
    let program = &peer.command[0];
    // a name is looked up in PATH, a path counts from the folder
    let mut command = if program.contains(std::path::is_separator) {
        Command::new(folder.join(program))
    } else {
        Command::new(program)
    };
    let variables = peer.environment.iter().map(|(name, value)| (name, value));
    command.args(&peer.command[1..]).current_dir(folder).envs(variables);
    // peers in Python leave nothing beside their files
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    // ranks of this program are none of a peer's
    let of_ranks = |name: &str| ["OMPI_", "PMIX_", "PMI_"].iter().any(|of| name.starts_with(of));
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(of_ranks) {
            command.env_remove(name);
        }
    }
    command
}

fn cannot_start(peer: &Peer, error: &std::io::Error) -> String {
    format!("cannot start `{}` of the peer `{}`: {error}", peer.command[0], peer.name)
}

/// What is asked of a peer: the settings of a case, in its words where it has some, and how often it measures.
fn settings(case: &Case, words: Vec<(&'static str, String)>, a: &Csr, measure: &Measure) -> Value {
    let mut asked = json!(case);
    let more = json!({
        "protocol": PROTOCOL,
        "n": a.rows(),
        "nnz": a.nnz(),
        "history": measure.history,
        "repeat": {
            "least": if measure.once { 1 } else { measure.min_repetitions.max(1) },
            "samples": if measure.once { 1 } else { measure.samples },
            "most": if measure.once { 1 } else { measure.max_repetitions },
            "seconds": measure.min_time_s,
            "budget": measure.time_budget_s,
        },
    });
    let words = words.into_iter().map(|(name, word)| (name.to_owned(), Value::from(word)));
    if let (Value::Object(all), Value::Object(more)) = (&mut asked, more) {
        all.extend(more.into_iter().chain(words));
    }
    asked
}

impl Job<'_> {
    /// Lets the peer called `name` run the case.
    pub(super) fn by_peer(mut self, name: &str) -> Option<Solved> {
        let done = self.ask(name);
        self.ended(done)
    }

    fn ask(&mut self, name: &str) -> Result<(), NoResult> {
        let case = self.case;
        if case.kind == RunKind::Spmv {
            return Err(NoResult::unsupported("peers solve, and measure no products".into()));
        }
        let peer = peer::find(name)?;
        let words = peer.words(case).map_err(NoResult::unsupported)?;
        self.check_asymmetry(Csr::asymmetry)?;
        let mut b = self.system.b.to_vec();
        b.resize(self.a.rows(), 0.0);
        let system = format!("{}, scaling {}", case.rhs, choice_name(&case.scaling));
        let folder = self.reuse.exported(self.a, &b, &system)?;
        let market = peer.matrix_market.then_some((&**self.a, &*b));
        folder.begin(&settings(case, words, self.a, self.measure), market)?;
        let mut command = start(&peer);
        command.arg(folder.folder());
        drop(b);

        let counters = process::kill_counters();
        let kills = process::kills(&counters);
        let (mut answer, stage) = (Answer::default(), Cell::new(Stage::Numeric));
        let host = Cpu::sequential();
        let speed = (!self.measure.once).then(|| Speed::before(&host)).flatten();
        let ended = {
            let progress = RefCell::new(&mut *self.progress);
            let mut stopped = || !(progress.borrow_mut())(stage.get());
            let mut line = |text: &str| {
                answer.line(text)?;
                stage.set(match (&answer.setups[..], answer.solves.len()) {
                    ([], _) => Stage::Numeric,
                    (_, 0) => Stage::WarmUp,
                    (_, count) => Stage::Solve(count + 1),
                });
                Ok(())
            };
            let limits =
                Limits { silence_s: self.measure.time_limit_s, ..Limits::none(&mut stopped) };
            process::run(command, limits, Some(&mut line))
        };
        let ended = ended.map_err(|e| NoResult::unsupported(cannot_start(&peer, &e)))?;
        let out_of_memory = process::kills(&counters) > kills;
        let on_host = answer.hello.as_ref().is_some_and(|hello| hello.device.is_none());
        let speed = speed.filter(|_| on_host);
        self.record.times.reference_s = speed.and_then(|speed| speed.reference_s(&host));
        self.told(&answer);
        let end = end(answer, &ended, out_of_memory)?;
        self.came_to(&end)
    }

    /// Fills the record with what the peer says of itself and its times.
    fn told(&mut self, answer: &Answer) {
        let record = &mut self.record;
        if let Some(hello) = &answer.hello {
            let words = [Some(&hello.version), hello.device.as_ref()];
            let words: Vec<String> = words.into_iter().flatten().map(|text| plain(text)).collect();
            record.environment.device = words.join(", ");
            record.environment.threads = hello.threads.unwrap_or(0);
            record.division.ranks = hello.ranks;
        }
        let setups = &answer.setups;
        let times = &mut record.times;
        let runs: Vec<phases::PhaseSeconds> =
            setups.iter().map(|setup| [setup.symbolic, setup.analysis, setup.numeric]).collect();
        let middle = |samples: Vec<f64>| median(&samples).map(|m| m.value);
        if runs.iter().flatten().any(Option::is_some) {
            phases::record(&runs, times);
        }
        times.setup_s = middle(setups.iter().filter_map(|s| s.seconds).collect()).or(times.setup_s);
        times.matrix_s = middle(setups.iter().filter_map(|s| s.matrix).collect());
        if let Some(solve) = median(&answer.solves) {
            times.set_solve(&solve, false);
            times.total_s = times.to_solution(1);
        }
        if let Some(last) = setups.last() {
            record.traffic.memory_bytes = last.memory_bytes;
            let factor_entries = last.factor_entries;
            self.record_size(FactorSize { factor_entries, ..FactorSize::default() });
        }
    }

    /// Reads the solution and judges it.
    fn came_to(&mut self, end: &End) -> Result<(), NoResult> {
        let iterations = end.iterations.unwrap_or(0);
        let record = &mut self.record;
        record.convergence.iterations = iterations;
        record.convergence.monitored_residual = end.residual;
        record.times.set_iterations(iterations);
        let most = self.measure.history;
        let most = if most > 0 { most.saturating_add(1) } else { 0 };
        self.keep_history(end.history.iter().take(most).copied());
        let reason = end.reason.as_deref().map(plain).filter(|text| !text.is_empty());
        let other = match end.status {
            EndStatus::Converged => Ok(SolveEnd::Converged),
            EndStatus::IterationLimit => Ok(SolveEnd::IterationLimit),
            EndStatus::Stagnated => Err(Status::Stagnated),
            EndStatus::Diverged => Err(Status::Diverged),
            EndStatus::Breakdown => Err(Status::Breakdown),
            EndStatus::OutOfMemory => Err(Status::OutOfMemory),
            EndStatus::Unsupported => Err(Status::Unsupported),
            EndStatus::Failed => Err(Status::Failed),
        };
        let end_of_solve = other.map_err(|status| {
            NoResult::ended(
                status,
                reason.clone().unwrap_or_else(|| "the peer gives no reason".into()),
            )
        })?;
        if self.record.times.solve_s.is_none() {
            return Err(NoResult::ended(Status::Failed, "the peer timed no solve"));
        }
        let n = self.a.rows();
        let folder = self.reuse.exchange().expect("written before the peer began");
        let x = folder.solution(n).map_err(|e| NoResult::ended(Status::Failed, e.to_string()))?;
        let residual = end.residual.unwrap_or(f64::NAN);
        self.judge(x, &Outcome { end: end_of_solve, iterations, residual, remark: reason });
        Ok(())
    }
}

/// The end that a peer came to; why there is none otherwise.
fn end(answer: Answer, ended: &Ended, out_of_memory: bool) -> Result<End, NoResult> {
    let said = || process::said(&ended.words);
    let exited = match &ended.how {
        ChildEnd::Interrupted => return Err(NoResult::Cancelled),
        ChildEnd::Exited(status) => *status,
        ChildEnd::Late(limit) | ChildEnd::Silent(limit) => {
            let limit = shown(&limit.to_string());
            let reason = format!("time limit, {limit} s without a line of the peer{}", said());
            return Err(NoResult::ended(Status::TimeLimit, reason));
        }
        ChildEnd::Refused(why) => {
            let status = answer.refused.unwrap_or(Status::Failed);
            return Err(NoResult::ended(status, format!("{why}{}", said())));
        }
    };
    if let Some((status, reason)) = process::killed(exited, &ended.words, out_of_memory) {
        return Err(NoResult::ended(status, reason));
    }
    let code = || process::exit(exited, &ended.words);
    match answer.end {
        Some(end) if exited.success() || end.status != EndStatus::Converged => Ok(end),
        Some(_) => Err(NoResult::ended(Status::Failed, format!("the peer ended with {}", code()))),
        None => {
            let reason = format!("the peer ended without `end`, {}", code());
            Err(NoResult::ended(Status::Failed, reason))
        }
    }
}
