//! `doctor --self-test`: every operation of a backend against one CPU thread.

use std::process::ExitCode;

use clap::ValueEnum;

use crate::base::error::{Error, Result};
use crate::base::parse::{choice_name, registered};
use crate::base::units::{grouped, plural};
use crate::bench::parity;
use crate::bench::parity::{Extent, Finding, Part};
use crate::case::Trisolve;
use crate::cli::output;
use crate::compute;
use crate::compute::{Backend, Visitor};
use crate::methods::registry;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Self-test")]
pub(super) struct SelfTestArgs {
    /// Compare every operation of the GPU with one CPU thread; without a GPU, of all CPU cores
    #[arg(long, conflicts_with = "json")]
    self_test: bool,

    /// Backend to compare [default: `cuda` where there is a GPU, else `cpu-mt`]
    #[arg(long, requires = "self_test", value_name = "NAME")]
    backend: Option<String>,

    /// Algorithms of triangular solves to compare [default: all of the backend]
    #[arg(long, requires = "self_test", value_name = "NAME", value_delimiter = ',')]
    trisolve: Vec<Trisolve>,

    /// Seed of the random input [default: a new one for each run]
    #[arg(long, requires = "self_test", value_name = "N", allow_negative_numbers = true)]
    seed: Option<u64>,

    /// Fewer and smaller sizes
    #[arg(long, requires = "self_test")]
    quick: bool,

    /// Compare one part alone
    #[arg(long, requires = "self_test", value_name = "PART")]
    only: Option<Part>,

    /// List the comparisons that agree as well
    #[arg(short, long, requires = "self_test")]
    verbose: bool,
}

impl SelfTestArgs {
    /// Whether the self-test was asked for.
    pub(super) fn asked(&self) -> bool {
        self.self_test
    }
}

/// Prints what differs and a summary; exit code 1 when anything does.
pub(super) fn run(args: &SelfTestArgs) -> Result<ExitCode> {
    let name = match &args.backend {
        Some(text) => {
            registered("backend", text, registry::BACKENDS).map_err(|e| e.in_file("--backend"))?
        }
        None if compute::available("cuda").is_ok() => "cuda".to_owned(),
        None => "cpu-mt".to_owned(),
    };
    if compute::over_ranks(&name) {
        let as_one = if compute::on_gpu(&name) { "cuda" } else { "cpu" };
        return Err(Error::input(format!("--backend: `{name}` has no operations of its own"))
            .hint(format!("its ranks compute as `{as_one}` does")));
    }
    compute::available(&name)?;
    check_part(&name, args.only)?;
    let test = SelfTest {
        algorithms: algorithms(&name, &args.trisolve)?,
        only: args.only,
        required: !args.trisolve.is_empty(),
        extent: if args.quick { Extent::Quick } else { Extent::Full },
        seed: args.seed.unwrap_or_else(|| rand::random::<u32>().into()),
        verbose: args.verbose,
    };
    match compute::with(&name, test) {
        Some(Ok(done)) => done,
        Some(Err(error)) => Err(error),
        None => Err(Error::run(format!("there is no backend `{name}`"))),
    }
}

/// Rejects a part that the backend called `name` does not have, with the reason.
fn check_part(name: &str, only: Option<Part>) -> Result<()> {
    let Some(part) = only.filter(|part| matches!(part, Part::Stencils | Part::Pencils)) else {
        return Ok(());
    };
    if compute::has_trisolves(name) {
        return Ok(());
    }
    let part = choice_name(&part);
    let error = Error::input(format!(
        "`{part}` needs the backend `cuda`: `{name}` has no algorithms for boxes"
    ));
    Err(match compute::available("cuda") {
        Ok(()) => error.in_file("--only").hint("leave `--backend` out"),
        Err(why) => error.in_file("--only").hint(format!("there is no GPU to test: {why}")),
    })
}

/// The algorithms of triangular solves to compare on the backend called `name`: those requested, else all,
/// its own choice first.
fn algorithms(name: &str, asked: &[Trisolve]) -> Result<Vec<Trisolve>> {
    let all =
        if compute::has_trisolves(name) { Trisolve::value_variants() } else { &[Trisolve::AUTO] };
    match asked.iter().find(|algorithm| !all.contains(algorithm)) {
        Some(algorithm) => {
            let algorithm = choice_name(algorithm);
            Err(Error::input(format!(
                "the backend `{name}` has no triangular solves `{algorithm}`"
            ))
            .in_file("--trisolve")
            .hint("omit it: this backend has one algorithm"))
        }
        None => Ok(if asked.is_empty() { all } else { asked }.to_vec()),
    }
}

struct SelfTest {
    /// Algorithms of triangular solves, at least one.
    algorithms: Vec<Trisolve>,
    /// Whether an algorithm that is missing is an error.
    required: bool,
    only: Option<Part>,
    extent: Extent,
    seed: u64,
    verbose: bool,
}

impl Visitor for SelfTest {
    type Output = Result<ExitCode>;

    fn visit<K: Backend + 'static>(self, k: &K) -> Result<ExitCode> {
        let mut algorithms = Vec::new();
        let solves = matches!(self.only, None | Some(Part::Preconditioners | Part::Triangles));
        for &algorithm in self.algorithms.iter().filter(|_| solves) {
            match parity::algorithm(k, algorithm) {
                // the backend's own choice is also one of the others
                Ok(algorithm) if algorithms.contains(&algorithm) => {}
                Ok(algorithm) => algorithms.push(algorithm),
                Err(why) if self.required || algorithm == Trisolve::AUTO => return Err(why),
                Err(why) => {
                    let name = choice_name(&algorithm);
                    output::print(&format!("triangular solves {name} left out: {why}\n"))?;
                }
            }
        }
        let mut tally = Tally::default();
        let mut printed = Ok(());
        let mut report = |finding| {
            let text = tally.add(&finding, self.verbose);
            if printed.is_ok() && !text.is_empty() {
                printed = output::print(&text);
            }
        };
        let compared = match self.only {
            Some(part) => {
                parity::compare_part(k, part, &algorithms, self.extent, self.seed, &mut report)
            }
            None => parity::compare(k, &algorithms, self.extent, self.seed, &mut report),
        };
        if let Err(error) = compared {
            let (done, seed) = (plural(tally.total, "comparison"), self.seed);
            output::print(&format!("stopped after {done}, seed {seed}\n"))?;
            return Err(error);
        }
        printed?;
        output::print(&tally.summary(&k.device(), self.seed))?;
        Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

#[derive(Default)]
struct Tally {
    total: usize,
    failed: usize,
}

impl Tally {
    /// Counts `finding`; its line when it failed or `verbose` is set, else nothing.
    fn add(&mut self, finding: &Finding, verbose: bool) -> String {
        let Finding { check, difference, limit } = finding;
        self.total += 1;
        if finding.passed() {
            if verbose { format!("ok {check}: {difference:.1e}\n") } else { String::new() }
        } else {
            self.failed += 1;
            format!("DIFFERS {check}: {difference:.1e}, at most {limit:.0e} allowed\n")
        }
    }

    /// `self-test of NVIDIA H200: 213 comparisons agree, seed 123`
    fn summary(&self, device: &str, seed: u64) -> String {
        let name = device.split(", ").next().unwrap_or(device);
        let verdict = match self.failed {
            0 => format!("{} agree", plural(self.total, "comparison")),
            failed => {
                format!("{} of {} differ", grouped(failed), plural(self.total, "comparison"))
            }
        };
        format!("self-test of {name}: {verdict}, seed {seed}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(difference: f64) -> Finding {
        Finding { check: "dot, n 3".into(), difference, limit: 1e-12 }
    }

    #[test]
    fn parts_of_a_gpu_are_refused_on_a_cpu() {
        for part in [Part::Stencils, Part::Pencils] {
            let error = check_part("cpu-mt", Some(part)).unwrap_err();
            let name = choice_name(&part);
            let text = format!(
                "--only: `{name}` needs the backend `cuda`: `cpu-mt` has no algorithms for boxes"
            );
            assert_eq!(error.to_string(), text);
            // with a GPU the hint is another
            assert!(error.hint_text().is_some_and(|hint| !hint.contains("--trisolve")));
            assert_eq!(check_part("cuda", Some(part)), Ok(()));
        }
        assert_eq!(check_part("cpu-mt", Some(Part::Triangles)), Ok(()));
        assert_eq!(check_part("cpu-mt", None), Ok(()));
    }

    #[test]
    fn what_differs_has_a_line_and_counts() {
        let mut tally = Tally::default();
        assert_eq!(tally.add(&finding(1e-13), false), "");
        assert_eq!(tally.add(&finding(1e-13), true), "ok dot, n 3: 1.0e-13\n");
        let device = "NVIDIA H200, sm_90, CUDA 13.0";
        assert_eq!(
            tally.summary(device, 7),
            "self-test of NVIDIA H200: 2 comparisons agree, seed 7\n"
        );
        assert_eq!(
            tally.add(&finding(2.5e-3), false),
            "DIFFERS dot, n 3: 2.5e-3, at most 1e-12 allowed\n"
        );
        assert_eq!(
            tally.add(&finding(f64::NAN), false),
            "DIFFERS dot, n 3: NaN, at most 1e-12 allowed\n"
        );
        assert_eq!(
            tally.summary(device, 7),
            "self-test of NVIDIA H200: 2 of 4 comparisons differ, seed 7\n"
        );
    }
}
