//! `tune`: searches the parameters of GPU kernels and keeps the best for later runs.

use std::process::ExitCode;

use itertools::Itertools as _;

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::base::parse::{count, pieces};
use crate::report::ReportFormat;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The results are kept for this device in `tuning` below the cache folder (see \
                        `doctor`) and used by every later run, whose records name them in the column \
                        `tuned`. A search that the budget stopped continues at the next call."
)]
pub(super) struct TuneArgs {
    /// Kernels, by the format of the product [default: all]
    #[arg(long, value_name = "KERNELS")]
    kernel: Option<String>,

    /// Edge lengths of the reservoir matrices, in cells: lists and ranges
    #[arg(long, value_name = "CELLS", default_value = "32,64,101")]
    edge: String,

    /// Unknowns per cell: lists and ranges
    #[arg(long, value_name = "SIZES", default_value = "1..4,8")]
    block_size: String,

    /// Bias of the reservoirs, the position of the blocks of every other cell: `block`, `half` or both
    #[arg(long, value_name = "BIAS", default_value = "block")]
    bias: String,

    /// Time budget of all searches, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0, allow_negative_numbers = true)]
    budget: f64,

    /// Discard earlier results
    #[arg(long)]
    fresh: bool,

    /// File for all trials, as JSON
    #[arg(short, long, value_name = "FILE")]
    output: Option<std::path::PathBuf>,

    /// Overwrite the file if it exists
    #[arg(long, requires = "output")]
    force: bool,

    /// Format of the tables
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
}

/// What is to be searched.
struct Plan {
    kernels: Vec<String>,
    edges: Vec<usize>,
    block_sizes: Vec<usize>,
    biases: Vec<String>,
}

/// Kernels that can be tuned.
const KERNELS: [&str; 4] = ["hyb", "sell", "dia", "bdia"];
/// Names of the bias.
const BIASES: [&str; 2] = ["block", "half"];

impl TuneArgs {
    fn plan(&self) -> Result<Plan> {
        if !(self.budget > 0.0 && self.budget.is_finite()) {
            return Err(
                Error::input(format!("`{}` is not above 0", self.budget)).in_file("--budget")
            );
        }
        let kernels = match &self.kernel {
            None => KERNELS.map(str::to_owned).to_vec(),
            Some(text) => words("kernel", text, &KERNELS).map_err(|e| e.in_file("--kernel"))?,
        };
        Ok(Plan {
            kernels,
            edges: counts(&self.edge, 4, 1000).map_err(|e| e.in_file("--edge"))?,
            block_sizes: counts(&self.block_size, 1, 8).map_err(|e| e.in_file("--block-size"))?,
            biases: words("bias", &self.bias, &BIASES).map_err(|e| e.in_file("--bias"))?,
        })
    }
}

fn words(what: &str, text: &str, known: &[&str]) -> Result<Vec<String>> {
    let words: Vec<String> = pieces(text)?.into_iter().unique().collect();
    match words.iter().find(|word| !known.contains(&word.as_str())) {
        Some(word) => Err(Error::unknown(what, word, known)),
        None => Ok(words),
    }
}

/// Numbers of lists and ranges, each once, ascending.
pub(super) fn counts(text: &str, min: usize, max: usize) -> Result<Vec<usize>> {
    let mut numbers = Vec::new();
    for piece in pieces(text)? {
        count(&piece, min, max, &mut numbers)?;
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

impl Plan {
    /// Block size and generator of every system.
    fn systems(&self) -> Vec<(usize, String)> {
        let mut systems = Vec::new();
        for &edge in &self.edges {
            for &k in &self.block_sizes {
                for bias in self.biases.iter().filter(|bias| *bias == "block" || k % 2 == 0) {
                    // as many wells as have room
                    let wells = (edge * edge / 8).clamp(1, 50);
                    let half = if bias == "half" { ",bias=half" } else { "" };
                    let spacing = if wells < 50 || edge < 20 { ",spacing=1" } else { "" };
                    systems
                        .push((k, format!("reservoir:{edge},k={k},wells={wells}{spacing}{half}")));
                }
            }
        }
        systems
    }
}

/// Searches, and prints what was tried.
pub(super) fn run(args: &TuneArgs) -> Result<ExitCode> {
    let plan = args.plan()?;
    if let Some(path) = &args.output {
        files::refuse_existing(path, args.force)?;
        files::check_folder(path)?;
    }
    #[cfg(feature = "cuda")]
    return gpu::run(args, &plan);
    #[cfg(not(feature = "cuda"))]
    {
        let _ = (&plan.kernels, plan.systems());
        Err(Error::run("built without CUDA, and there is nothing to tune on a CPU"))
    }
}

#[cfg(feature = "cuda")]
mod gpu {
    use std::process::ExitCode;
    use std::time::Instant;

    use itertools::Itertools as _;
    use serde_json::{Map, Value};

    use super::{Plan, TuneArgs};
    use crate::base::error::{Kind, Result};
    use crate::base::files;
    use crate::base::input::say;
    use crate::base::units::{grouped, seconds, significant};
    use crate::case::ReadAs;
    use crate::cli::output;
    use crate::compute::cuda::tune::{Tunable, search};
    use crate::compute::cuda::{Device, SUBJECTS};
    use crate::compute::tune::descent::{self, Descent};
    use crate::compute::tune::store::{Entry, Store};
    use crate::compute::tune::text;
    use crate::matrix::bsr::pad;
    use crate::problem;
    use crate::record::gather::Trial;
    use crate::report::build::Columns;
    use crate::report::cells::{shown, time};
    use crate::report::{Report, ReportFormat, Sheet};

    /// A search that was made.
    struct Searched {
        entry: Entry,
        bytes: usize,
    }

    pub(super) fn run(args: &TuneArgs, plan: &Plan) -> Result<ExitCode> {
        let device = Device::shared()?;
        let name = device.describe();
        let mut store = if args.fresh { Store::new(&name) } else { Store::load(&name)? };
        let start = Instant::now();
        let left = || args.budget - start.elapsed().as_secs_f64();
        let systems = plan.systems();
        let mut to_do = systems.len() * plan.kernels.len();
        let (mut searched, mut notes) = (Vec::new(), Vec::new());
        for (k, spec) in &systems {
            if left() <= 0.0 {
                break;
            }
            let a = problem::load(spec, ReadAs::Expanded)?.matrix;
            let a = pad(&a, *k);
            for kernel in &plan.kernels {
                let share = left() / to_do as f64;
                to_do -= 1;
                if share <= 0.0 {
                    continue;
                }
                let subject = SUBJECTS.iter().find(|s| s.name == kernel).expect("a known kernel");
                let mut work = match (subject.make)(&device, &a, *k) {
                    Err(e) if e.kind() == Kind::Input => {
                        notes.push(format!("{spec}: {e}"));
                        continue;
                    }
                    made => made?,
                };
                let entry = one(&device, &mut *work, spec, &mut store, share)?;
                searched.push(Searched { entry, bytes: work.bytes() });
            }
        }
        if to_do > 0 || searched.iter().any(|s| !s.entry.finished) {
            notes.push("the budget ended before all searches: the same command goes on".into());
        }
        let mut report = report(&device, &searched);
        notes.extend(Store::file(&name).map(|path| format!("kept in {}", path.display())));
        if let Some(sheet) = report.sheets.first_mut() {
            sheet.notes.extend(notes);
        }
        output::tables(&report, args.format)?;
        if let Some(path) = &args.output {
            let text = ReportFormat::Json.render(&report)?;
            files::write(path, text.as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Searches for `share` seconds, and keeps what was found after each trial.
    fn one(
        device: &Device,
        work: &mut dyn Tunable,
        spec: &str,
        store: &mut Store,
        share: f64,
    ) -> Result<Entry> {
        let (kernel, rows) = (work.key(), work.rows());
        let mut descent = store.entry(&kernel, rows).map_or_else(Descent::default, Entry::descent);
        let entry = |trials: &[_], finished| Entry {
            kernel: kernel.clone(),
            rows,
            system: spec.to_owned(),
            finished,
            trials: trials.to_vec(),
        };
        let start = Instant::now();
        let mut kept = Ok(());
        search(device, work, &mut descent, |trials| {
            store.put(entry(trials, false));
            kept = store.save().map(drop);
            kept.is_ok() && start.elapsed().as_secs_f64() < share
        })?;
        kept?;
        let entry = entry(&descent.trials, descent.finished);
        store.put(entry.clone());
        store.save()?;
        if let Some(best) = entry.best() {
            let time = best.seconds.map(seconds).unwrap_or_default();
            say(&format!("{kernel}, {spec}: {time} with {}", text(&best.choices)));
        }
        Ok(entry)
    }

    fn search_state(entry: &Entry) -> String {
        if entry.finished { "finished" } else { "stopped" }.into()
    }

    fn report(device: &Device, searched: &[Searched]) -> Report {
        let copy = device.copy_bandwidth();
        let percent = |bytes: usize, s: f64| significant(100.0 * bytes as f64 / s / 1e9 / copy, 3);
        let usual = |s: &Searched| s.entry.trials.first().and_then(|t| t.seconds);
        let fastest = |s: &Searched| s.entry.best().and_then(|t| t.seconds);
        let gain = |s: &Searched| Some(100.0 * (usual(s)? / fastest(s)? - 1.0));
        let best = Columns::new()
            .words("system", |s: &&Searched| s.entry.system.clone())
            .words("kernel", |s| s.entry.kernel.clone())
            .number("rows", |s| grouped(s.entry.rows))
            .number("usual", |s| time(usual(s)))
            .number("fastest", |s| time(fastest(s)))
            .number("gain %", |s| shown(gain(s), |gain| format!("{gain:.1}")))
            .number("GB/s", |s| shown(fastest(s), |t| significant(s.bytes as f64 / t / 1e9, 3)))
            .number("% copy", |s| shown(fastest(s), |t| percent(s.bytes, t)))
            .number("tried", |s| s.entry.trials.len().to_string())
            .words("search", |s| search_state(&s.entry))
            .words("choices", |s| shown(s.entry.best(), |t| text(&t.choices)))
            .whole(searched);
        let preamble = format!("{}, copies at {} GB/s", device.describe(), significant(copy, 3));
        let title = Some("Fastest choices".into());
        let best = Sheet { title, preamble: vec![preamble], ..best };
        let mut trials = Vec::new();
        for own in searched {
            let seconds = |t: &&descent::Trial| t.seconds.unwrap_or(f64::INFINITY);
            let sorted =
                own.entry.trials.iter().sorted_by(|a, b| seconds(a).total_cmp(&seconds(b)));
            trials.extend(sorted.map(|trial| (own, trial)));
        }
        let rows = trials.iter().map(|(s, trial)| object(&s.entry, trial, s.bytes, copy)).collect();
        let tried = Columns::new()
            .words("system", |(s, _): &(&Searched, &descent::Trial)| s.entry.system.clone())
            .words("kernel", |(s, _)| s.entry.kernel.clone())
            .number("time", |(_, t)| t.seconds.map_or_else(|| "failed".into(), seconds))
            .number("% copy", |(s, t)| shown(t.seconds, |t| percent(s.bytes, t)))
            .words("choices", |(_, t)| text(&t.choices))
            .whole(trials);
        let title = Some("Everything that was tried, fastest first".into());
        Report { sheets: vec![best, Sheet { title, ..tried }], rows }
    }

    /// A trial as a row of JSON.
    fn object(
        entry: &Entry,
        trial: &descent::Trial,
        bytes: usize,
        copy: f64,
    ) -> Map<String, Value> {
        let gbps = trial.seconds.map(|s| bytes as f64 / s / 1e9);
        let row = Trial {
            system: entry.system.clone(),
            kernel: entry.kernel.clone(),
            rows: entry.rows,
            choices: text(&trial.choices),
            seconds: trial.seconds,
            gbps,
            percent_of_copy: gbps.map(|gbps| 100.0 * gbps / copy),
            search: search_state(entry),
        };
        match serde_json::to_value(row) {
            Ok(Value::Object(map)) => map,
            _ => unreachable!("a trial is a flat object"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(edge: &str, bias: &str) -> TuneArgs {
        TuneArgs {
            kernel: None,
            edge: edge.into(),
            block_size: "1,2".into(),
            bias: bias.into(),
            budget: 1.0,
            fresh: false,
            output: None,
            force: false,
            format: ReportFormat::Table,
        }
    }

    #[test]
    fn systems_are_reservoirs_with_room_for_their_wells() {
        let plan = args("8,64", "block,half").plan().unwrap();
        assert_eq!(plan.kernels, KERNELS);
        let systems: Vec<String> = plan.systems().into_iter().map(|(_, spec)| spec).collect();
        let expected = [
            "reservoir:8,k=1,wells=8,spacing=1",
            "reservoir:8,k=2,wells=8,spacing=1",
            "reservoir:8,k=2,wells=8,spacing=1,bias=half",
            "reservoir:64,k=1,wells=50",
            "reservoir:64,k=2,wells=50",
            "reservoir:64,k=2,wells=50,bias=half",
        ];
        assert_eq!(systems, expected);
    }

    #[test]
    fn bad_arguments_are_named() {
        let refused = |args: &TuneArgs| args.plan().err().unwrap().to_string();
        assert_eq!(refused(&args("3", "block")), "--edge: `3` is outside 4 to 1000");
        let error = refused(&args("8", "whole"));
        assert!(error.starts_with("--bias: "), "{error}");
        let none = TuneArgs { budget: 0.0, ..args("8", "block") };
        assert_eq!(refused(&none), "--budget: `0` is not above 0");
        #[cfg(feature = "cuda")]
        {
            let names = crate::compute::cuda::SUBJECTS.iter().map(|s| s.name);
            assert_eq!(names.collect::<Vec<_>>(), KERNELS);
        }
    }
}
