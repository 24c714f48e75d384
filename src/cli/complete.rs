//! Completion of values for shells; the script of `completions` requests it through the environment.

use std::ffi::OsStr;

use clap::CommandFactory;
use clap_complete::CompleteEnv;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};

use crate::base::external::PREFIX;
use crate::cli::Cli;
use crate::config::axes::Axis;
use crate::config::library::Library;
use crate::config::peer;
use crate::config::sweep::AXES;
use crate::matrix::file::ENDINGS;
use crate::problem::generators::GENERATORS;
use crate::problem::{Folders, catalogue};
use crate::record::table::COLUMNS;

/// Set by the script: the name of the shell.
pub(super) const VARIABLE: &str = "BILU_BENCH_COMPLETE";

/// Answers a completion request and ends the process; returns if there is none.
pub fn answer() {
    CompleteEnv::with_factory(Cli::command).var(VARIABLE).complete();
}

/// Completes a single name.
pub(super) fn one_of(names: fn() -> Vec<String>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| starting(current, "", names()))
}

/// Completes a list of names.
pub(super) fn list_of(names: fn() -> Vec<String>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| last_of_list(current, names()))
}

/// Completes a matrix: a generator, a name of the catalogue or a file.
pub(super) fn matrix() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut found = starting(current, "", matrices());
        found.extend(files(current, &ENDINGS));
        found
    })
}

/// Completes a matrix or an experiment.
pub(super) fn matrix_or_experiment() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut found = starting(current, "", matrices());
        found.extend(files(current, &ENDINGS));
        found.extend(files(current, &[".toml"]));
        found
    })
}

/// Completes the values of a setting.
pub(super) fn values<C, S>(axis: &'static Axis<C, S>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let mut found = last_of_list(current, offered(axis.name, axis.choices));
        if axis.name == "matrix" {
            found.extend(files(current, &ENDINGS));
        }
        found
    })
}

/// Completes `SETTING=VALUES`.
pub(super) fn assignment() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let Some(text) = current.to_str() else { return Vec::new() };
        let Some((name, list)) = text.split_once('=') else {
            let names = AXES.iter().map(|axis| format!("{}=", axis.name)).collect();
            return starting(current, "", names);
        };
        let Some(axis) = AXES.iter().find(|axis| axis.name == name) else { return Vec::new() };
        let found = last_of_list(OsStr::new(list), offered(name, axis.choices));
        found.into_iter().map(|candidate| candidate.add_prefix(format!("{name}="))).collect()
    })
}

/// Papers and their tables.
pub(super) fn papers() -> Vec<String> {
    let entries = Library::Embedded.entries().unwrap_or_default();
    let mut names: Vec<String> = entries.iter().map(|e| e.paper.clone()).collect();
    names.dedup();
    names.extend(entries.iter().map(|e| format!("{}/{}", e.paper, e.table)));
    names
}

/// Papers with claims.
pub(super) fn with_claims() -> Vec<String> {
    Library::Embedded.with_claims().unwrap_or_default()
}

/// Columns of the records of `run`, and `all`.
pub(super) fn columns() -> Vec<String> {
    std::iter::once("all").chain(COLUMNS.iter().map(|(name, _)| *name)).map(str::to_owned).collect()
}

/// Matrices of the catalogue.
pub(super) fn known_matrices() -> Vec<String> {
    catalogue::entries().iter().map(|entry| entry.name.clone()).collect()
}

/// Generators, which need a size, and the catalogue's matrices on this machine.
fn matrices() -> Vec<String> {
    let folders = Folders::from_env();
    let here = known_matrices().into_iter().filter(|name| folders.find(name).is_some());
    GENERATORS.iter().map(|g| format!("{}:", g.name)).chain(here).collect()
}

/// The enumerable values of a setting.
fn offered(name: &str, choices: fn() -> Vec<String>) -> Vec<String> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    match name {
        "matrix" => matrices(),
        "rhs" => words(&["ones", "a-ones", "random", "random:", "random*", "own", "file:"]),
        "deflation" => {
            words(&["none", "subdomain:", "levelset", "levelset-subdomain:", "subdomains"])
        }
        "backend" => {
            let peers = peer::all().into_iter().map(|(name, _)| format!("{PREFIX}{name}"));
            choices().into_iter().chain(peers).collect()
        }
        "precond" => choices().into_iter().chain(words(&["all"])).collect(),
        _ => choices(),
    }
}

/// The names with the prefix `current`, each after `before`.
fn starting(current: &OsStr, before: &str, names: Vec<String>) -> Vec<CompletionCandidate> {
    let Some(text) = current.to_str() else { return Vec::new() };
    let begins = names.into_iter().filter(|name| name.starts_with(text));
    begins.map(|name| CompletionCandidate::new(format!("{before}{name}"))).collect()
}

/// The names that can complete the last item of a list, without those already in it.
fn last_of_list(current: &OsStr, mut names: Vec<String>) -> Vec<CompletionCandidate> {
    let Some(text) = current.to_str() else { return Vec::new() };
    let split = text.rfind(',').map_or(0, |at| at + 1);
    let (before, last) = text.split_at(split);
    names.retain(|name| !before.split(',').any(|given| given == name));
    starting(OsStr::new(last), before, names)
}

/// Files with these extensions, and folders that may contain them.
fn files(current: &OsStr, endings: &'static [&'static str]) -> Vec<CompletionCandidate> {
    let ends = move |path: &std::path::Path| {
        let name = path.to_string_lossy();
        path.is_file() && endings.iter().any(|ending| name.ends_with(ending))
    };
    PathCompleter::any().filter(ends).complete(current)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(completer: &ArgValueCompleter, current: &str) -> Vec<String> {
        let found = completer.complete(OsStr::new(current));
        found.iter().map(|c| c.get_value().to_str().unwrap().to_owned()).collect()
    }

    fn setting(name: &str, current: &str) -> Vec<String> {
        let axis = AXES.iter().find(|axis| axis.name == name).unwrap();
        texts(&values(axis), current)
    }

    #[test]
    fn lists_are_completed_without_what_they_have() {
        assert_eq!(setting("solver", "")[..3], ["gmres", "bicgstab", "cg"]);
        assert_eq!(setting("solver", "c"), ["cg", "correction"]);
        assert_eq!(setting("solver", "cg,c"), ["cg,correction"]);
        assert_eq!(setting("precond", "al"), ["all"]);
        assert_eq!(setting("matrix-format", "csr,b"), ["csr,bsr", "csr,bdia"]);
        assert_eq!(setting("backend", "cu"), ["cuda", "cusparse"]);
        assert_eq!(setting("ordering", "r"), ["rcm", "red-black", "random"]);
        assert_eq!(setting("rhs", "o"), ["ones", "own"]);
        assert!(setting("matrix", "poi").contains(&"poisson3d:".to_owned()));
        assert!(setting("fill", "").is_empty());
    }

    #[test]
    fn settings_with_values_are_completed_in_two_steps() {
        let only = assignment();
        assert_eq!(texts(&only, "back"), ["backend="]);
        assert_eq!(
            texts(&only, "backend=cuda,c"),
            ["backend=cuda,cpu", "backend=cuda,cpu-mt", "backend=cuda,cusparse"]
        );
        assert!(texts(&only, "nothing=").is_empty());
    }

    #[test]
    fn papers_and_columns_are_offered() {
        assert_eq!(texts(&one_of(papers), "yang/table1"), ["yang/table1"]);
        assert!(texts(&one_of(papers), "ya").contains(&"yang".to_owned()));
        assert_eq!(texts(&list_of(columns), "solve-s,true-"), ["solve-s,true-residual"]);
    }

    #[test]
    fn matrices_are_files_too() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.mtx", "b.mtx.gz", "c.toml", "d.csv", "e.npz"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        assert_eq!(texts(&matrix(), &at("")), [at("a.mtx"), at("b.mtx.gz"), at("e.npz")]);
        let with_experiments = texts(&matrix_or_experiment(), &at(""));
        assert_eq!(with_experiments, [at("a.mtx"), at("b.mtx.gz"), at("e.npz"), at("c.toml")]);
    }
}
