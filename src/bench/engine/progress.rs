//! Progress on standard error: bars on a terminal, one line per case elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressStyle};

use crate::base::input::{bars, say, silence};
use crate::base::parse::choice_name;
use crate::base::status::Status;
use crate::base::units;
use crate::bench::engine::Observer;
use crate::bench::run::Stage;
use crate::case::{Case, Execution, FactorPrecision, FgbiluStyle, RunKind, Trisolve};
use crate::record::Record;

/// The observer for the kind of standard error: terminal or file.
pub(crate) fn observer(quiet: bool) -> Box<dyn Observer> {
    if quiet {
        silence();
    }
    match (quiet, std::io::stderr().is_terminal()) {
        (true, _) => Box::new(Quiet),
        (false, true) => Box::new(Bars::default()),
        (false, false) => Box::new(Lines::default()),
    }
}

/// Prints remarks only.
struct Quiet;

impl Observer for Quiet {}

/// One plain line per finished case.
#[derive(Default)]
struct Lines {
    total: usize,
    done: usize,
}

impl Observer for Lines {
    fn begin(&mut self, total: usize, pending: &[&Case]) {
        (self.total, self.done) = (total, total - pending.len());
        if self.done > 0 {
            say(&format!("{} of {total} cases are finished already", self.done));
        }
    }

    fn finished(&mut self, record: &Record) {
        self.done += 1;
        say(&format!("[{}/{}] {}", self.done, self.total, summary(record)));
    }
}

/// A bar over all cases and a spinner with the current one.
struct Bars {
    group: MultiProgress,
    overall: ProgressBar,
    current: ProgressBar,
    case: String,
    started: Instant,
    /// Cost (see [`cost`]) of the cases to come.
    pending: f64,
    /// Cost and time of the cases that this run finished.
    spent: (f64, Duration),
}

impl Default for Bars {
    fn default() -> Self {
        // those of files that are read stand below
        let group = bars().clone();
        let style = |template| {
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
        };
        let overall = group.add(ProgressBar::new(0));
        overall.set_style(style("{bar:30} {pos}/{len} cases, {elapsed} elapsed{msg}"));
        let current = group.add(ProgressBar::new_spinner());
        current.set_style(style("{spinner} {msg}"));
        let (case, started, spent) = (String::new(), Instant::now(), (0.0, Duration::ZERO));
        Self { group, overall, current, case, started, pending: 0.0, spent }
    }
}

impl Observer for Bars {
    fn begin(&mut self, total: usize, pending: &[&Case]) {
        self.pending = pending.iter().map(|case| cost(case)).sum();
        self.overall.set_length(total as u64);
        self.overall.set_position((total - pending.len()) as u64);
        self.overall.enable_steady_tick(Duration::from_millis(500));
        self.current.enable_steady_tick(Duration::from_millis(100));
    }

    fn loading(&mut self, spec: &str) {
        self.current.set_message(format!("loading {spec}"));
    }

    fn remark(&mut self, text: &str) {
        let _ = self.group.println(format!("note: {text}"));
    }

    fn case(&mut self, case: &Case) {
        self.started = Instant::now();
        self.case = name(case);
        self.current.set_message(self.case.clone());
    }

    fn stage(&mut self, stage: Stage) {
        self.current.set_message(format!("{}: {}", self.case, stage_name(stage)));
    }

    fn finished(&mut self, record: &Record) {
        let _ = self.group.println(summary(record));
        self.overall.inc(1);
        self.spent.0 += cost(&record.case);
        self.spent.1 += self.started.elapsed();
        self.pending -= cost(&record.case);
        let left = self.left().map(|left| format!(", about {} left", HumanDuration(left)));
        self.overall.set_message(left.unwrap_or_default());
    }

    fn end(&mut self) {
        self.current.finish_and_clear();
        self.overall.finish_and_clear();
    }
}

impl Bars {
    /// Time for the cases to come, at the pace of the finished ones.
    fn left(&self) -> Option<Duration> {
        let seconds = self.pending * self.spent.1.as_secs_f64() / self.spent.0;
        (self.pending > 0.5).then(|| Duration::from_secs_f64(seconds.clamp(0.0, 1e9)))
    }
}

/// Relative cost of a case on one matrix: grows with the fill level and with the zeros in larger blocks.
fn cost(case: &Case) -> f64 {
    (1.0 + case.fill as f64) * (1.0 + case.block_size as f64 / 4.0)
}

fn stage_name(stage: Stage) -> String {
    match stage {
        Stage::Storage => "storing the matrix".into(),
        Stage::Symbolic => "symbolic phase".into(),
        Stage::Numeric => "numeric factorisation".into(),
        Stage::WarmUp => "warm-up solve".into(),
        Stage::Solve(i) => format!("solve {i}"),
        Stage::Traffic => "bandwidth".into(),
        Stage::NewValues(i) => format!("new values {i}"),
    }
}

/// A case in a few words.
fn name(case: &Case) -> String {
    let Case { matrix, block_size, precond, fill, solver, backend, .. } = case;
    if case.kind == RunKind::Spmv {
        let format = choice_name(&case.format);
        return format!("{matrix}, product in {format}, block size {block_size}, {backend}");
    }
    let mut special = Vec::new();
    match (case.trisolve, case.fgbilu_style) {
        (Trisolve::AUTO, FgbiluStyle::Auto) => {}
        (Trisolve::AUTO, style) => special.push(choice_name(&style)),
        (algorithm, _) => special.push(choice_name(&algorithm)),
    }
    if case.factor_precision != FactorPrecision::Float64 {
        special.push(choice_name(&case.factor_precision));
    }
    if case.execution != Execution::Fused {
        special.push(choice_name(&case.execution));
    }
    let special: String = special.iter().flat_map(|word| [" ", word]).collect();
    format!(
        "{matrix}, {solver}, {precond}, block size {block_size}, k = {fill}, \
         {backend}{special}"
    )
}

fn summary(record: &Record) -> String {
    let end = match record.status {
        Status::Converged | Status::Complete => {
            format!("{} iterations", record.convergence.iterations)
        }
        Status::Measured => {
            let time = record.traffic.spmv_s.map(units::seconds).unwrap_or_default();
            let gbps = record.traffic.spmv_gbps.map(|v| units::significant(v, 3));
            format!("{time}, {} GB/s", gbps.unwrap_or_default())
        }
        status => match &record.reason {
            Some(reason) => format!("{}: {reason}", status.name()),
            None => status.name().to_owned(),
        },
    };
    let time = record.times.solve_s.map(|s| format!(", {}", units::seconds(s))).unwrap_or_default();
    let round = record.round.map(|round| format!(", round {round}")).unwrap_or_default();
    format!("{}{round}: {end}{time}", name(&record.case))
}
