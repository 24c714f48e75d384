//! Figures that are drawn from any results, by kind: one file and one line of [`KINDS`] each.

mod common;
mod experiment;
mod frontier;
mod history;
mod nodes;
mod phases;
mod product;
mod profile;
mod ranks;
mod roof;
mod roofline;
mod sequence;
mod size;
mod speedup;
mod subdomains;
mod threads;

use crate::base::error::{Error, Result};
use crate::record::Record;
use crate::report::batch::Batches;
use crate::report::plot::Figure;
use crate::report::sequences::is_step;

/// A kind of figure.
#[derive(Debug)]
pub struct Kind {
    /// Its name for `plot --kind` and in links of the page.
    pub name: &'static str,
    /// Its section of the page.
    pub title: &'static str,
    /// What its figures show and how they are read, in a sentence or two.
    pub summary: &'static str,
    /// The figures of some results; none where there is nothing to show.
    pub draw: fn(&Batches) -> Vec<Plot>,
}

impl Kind {
    /// Its figures; the steps of a sequence are in those of their own kind alone.
    pub fn figures(&self, batches: &Batches) -> Vec<Plot> {
        let of_sequences = self.name == sequence::KIND.name;
        let own = |r: &Record| is_step(r) == of_sequences;
        if batches.runs.iter().flat_map(|batch| &batch.records).all(own) {
            return (self.draw)(batches);
        }
        let mut batches = batches.clone();
        batches.runs.iter_mut().for_each(|batch| batch.records.retain(own));
        (self.draw)(&batches)
    }
}

/// A figure with what stands below it on a page.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// The figure.
    pub figure: Figure,
    /// What is compared, on which machine, from how many measurements, and what is left out.
    pub caption: String,
}

/// All kinds, in the order of the page.
pub const KINDS: &[Kind] = &[
    speedup::KIND,
    frontier::KIND,
    phases::KIND,
    roof::KIND,
    roofline::KIND,
    history::KIND,
    sequence::KIND,
    profile::KIND,
    size::KIND,
    threads::KIND,
    ranks::KIND,
    subdomains::KIND,
    nodes::KIND,
    product::KIND,
    experiment::KIND,
];

/// The kind called `name`.
///
/// # Errors
/// When there is none.
pub fn kind(name: &str) -> Result<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        Error::unknown("kind of figure", name, &names)
    })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
