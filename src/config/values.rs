//! Axis values that are not a single choice or number: words that stand for lists, right-hand sides.

use clap::ValueEnum;

use crate::base::error::Result;
use crate::base::external::{self, external};
use crate::base::parse::{choice, registered, shown};
use crate::case::{Format, Trisolve};
use crate::config::axes::one;
use crate::methods::{precond, registry};
use crate::problem;

/// The names of a registry.
pub(super) fn names(registry: registry::Names) -> Vec<String> {
    registry.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// A name of a registry, or `external:WORD`, something of a peer.
pub(super) fn named(what: &str, text: &str, registry: registry::Names) -> Result<String> {
    match external(text) {
        Some(_) => external::check(text).map(|()| text.to_owned()),
        None => registered(what, text, registry),
    }
}

/// Matrices: numbers with many digits in the arguments of a generator are shortened.
pub(super) fn matrix(text: &str) -> String {
    let argument = |word: &str| match word.split_once('=') {
        Some((key, value)) if value.parse::<f64>().is_ok() => format!("{key}={}", shown(value)),
        _ => word.to_owned(),
    };
    text.split(',').map(argument).collect::<Vec<_>>().join(",")
}

/// How the sequence of a case is written.
#[allow(clippy::ptr_arg, reason = "the form of an axis")]
pub(super) fn sequence_text(sequence: &String) -> String {
    if sequence.is_empty() { NO_SEQUENCE.into() } else { sequence.clone() }
}

const NO_SEQUENCE: &str = "none";

/// Words of a sequence, of which there is one at least for each pattern; nothing for `none`.
pub(super) fn sequence(text: &str, out: &mut Vec<String>) -> Result<()> {
    if text == NO_SEQUENCE {
        out.push(String::new());
        return Ok(());
    }
    let text = matrix(text);
    problem::sequence::steps(&text)?;
    out.push(text);
    Ok(())
}

/// Preconditioners; `all` is one of each kind.
pub(super) fn precond_names(text: &str, out: &mut Vec<String>) -> Result<()> {
    if text == "all" {
        out.extend(precond::all());
        return Ok(());
    }
    one(precond::canonical(text), out)
}

/// Algorithms of triangular solves; `all` is every one but `auto`, which chooses among them.
pub(super) fn trisolve(text: &str, out: &mut Vec<Trisolve>) -> Result<()> {
    if text == "all" {
        out.extend(Trisolve::which(|_| true));
        return Ok(());
    }
    registered("algorithm of triangular solves", text, registry::TRISOLVES)?;
    one(choice("algorithm of triangular solves", text), out)
}

/// Storage formats; `all` is every one but `auto`, which chooses among them.
pub(super) fn format(text: &str, out: &mut Vec<Format>) -> Result<()> {
    if text == "all" {
        let formats = Format::value_variants().iter().filter(|format| **format != Format::Auto);
        out.extend(formats);
        return Ok(());
    }
    registered("matrix format", text, registry::FORMATS)?;
    one(choice("matrix format", text), out)
}

/// Right-hand sides: whether the vector fits the matrix shows when both are there.
pub(super) fn rhs(text: &str, out: &mut Vec<String>) -> Result<()> {
    one(problem::rhs::canonical(text), out)
}
