//! An experiment: sweeps, measuring options and published results.

use std::collections::HashSet;
use std::path::PathBuf;

use itertools::Itertools;

use crate::base::error::{Error, Place, Result};
use crate::base::external::external;
use crate::base::status::Status;
use crate::case::Case;
use crate::config::axes::Axis;
use crate::config::measure::MeasureOptions;
use crate::config::peer::{self, Peer};
use crate::config::sweep::Declared;
use crate::config::{AXES, FigureSpec, History, Phases, Published, Sweep};
use crate::record::Record;

/// Hint about paths in a file.
const FROM_THE_FOLDER: &str = "relative paths in a TOML file count from its folder";

/// An experiment.
#[derive(Clone, Debug, Default)]
pub struct Experiment {
    /// Title of its table.
    pub title: Option<String>,
    /// Remarks of its author.
    pub notes: Vec<String>,
    /// Settings that a paper does not state, each with the reason for its value.
    pub inferred: Vec<String>,
    /// Measuring options.
    pub measure: MeasureOptions,
    /// The sweeps, run one after the other.
    pub sweeps: Vec<Sweep>,
    /// Where the file names its matrices, if there is one.
    pub matrix_places: Vec<(String, Place)>,
    /// The files that it was read from.
    pub files: Vec<PathBuf>,
    /// Restricts the cases to these values.
    pub only: Sweep,
    /// Published iterations and times of solves.
    pub published: Option<Published>,
    /// Published residual history.
    pub history: Option<History>,
    /// Published times of phases.
    pub phases: Option<Phases>,
    /// Its figure.
    pub figure: Option<FigureSpec>,
    /// Remarks about reading it.
    pub remarks: Vec<String>,
}

impl Experiment {
    /// An experiment of one sweep.
    pub fn of(sweep: Sweep) -> Self {
        Self { sweeps: vec![sweep], ..Self::default() }
    }

    /// Settings given on the command line replace those of every sweep; an inferred setting that
    /// is replaced says so.
    #[must_use]
    pub(crate) fn overridden_by(mut self, sweep: &Sweep, measure: &MeasureOptions) -> Self {
        for own in &mut self.sweeps {
            // a sequence stands in place of matrices
            if sweep.matrix.is_some() {
                own.sequence = None;
            } else if sweep.sequence.iter().flatten().any(|word| !word.is_empty()) {
                own.matrix = None;
            }
            *own = own.overridden_by(sweep);
        }
        if sweep.matrix.is_some() || sweep.sequence.is_some() {
            self.matrix_places.clear();
        }
        for text in &mut self.inferred {
            let setting = text.split_whitespace().next().unwrap_or_default();
            if AXES.iter().any(|axis| axis.name == setting && axis.is_given(sweep)) {
                text.push_str(" (replaced on the command line)");
            }
        }
        self.measure = self.measure.overridden_by(measure);
        self
    }

    /// `error`, of a matrix, with the place in the file that names it.
    pub(crate) fn at_matrix(&self, matrix: &str, error: Error) -> Error {
        match self.matrix_places.iter().find(|(name, _)| name == matrix) {
            Some((_, Place { file, line: Some(line), column })) => {
                let error = error.at(file, *line, *column);
                // named by a path, which is no unknown name
                let hinted = error.hint_text().is_some() || !matrix.contains('/');
                if hinted { error } else { error.hint(FROM_THE_FOLDER) }
            }
            _ => error,
        }
    }

    /// Only cases with one of the values of each axis that `only` has are run.
    #[must_use]
    pub(crate) fn restricted_to(self, only: &Sweep) -> Self {
        Self { only: only.clone(), ..self }
    }

    /// Those of `records` whose case cannot run, although another one that differs only in values of the
    /// word `all` can: `--precond all` asks for what applies. A value with a name of its own is asked
    /// for in any case.
    pub(crate) fn not_applicable<'a>(&self, records: &'a [Record]) -> Vec<&'a Record> {
        // settings that a preconditioner does not use do not make another case
        const ESSENTIAL: [&str; 6] = ["matrix", "rhs", "block-size", "kind", "solver", "backend"];
        let cannot = |r: &&Record| r.status == Status::Unsupported;
        let alike = |a: &Record, b: &Record| {
            let mut axes = AXES.iter().filter(|axis| ESSENTIAL.contains(&axis.name));
            axes.all(|axis| (axis.text)(&a.case) == (axis.text)(&b.case))
        };
        let by_all = |r: &Record| {
            let text = |name: &str| AXES.iter().find(|a| a.name == name).map(|a| (a.text)(&r.case));
            let mut values = self.sweeps.iter().flat_map(|sweep| &sweep.of_all);
            values.any(|(name, value)| text(name).as_ref() == Some(value))
        };
        let runs = |r: &Record| records.iter().any(|other| !cannot(&other) && alike(r, other));
        records.iter().filter(cannot).filter(|r| by_all(r) && runs(r)).collect()
    }

    /// Settings with their values that none of the `cases` has, as whatever runs them does not use the setting.
    pub(crate) fn unused(&self, cases: &[Case]) -> Vec<String> {
        let plain = Case::default();
        let without_use = |sweep: &Sweep, axis: &Axis<Case, Sweep>| {
            let values = (axis.given)(sweep)?;
            let default = (axis.text)(&plain);
            let unused =
                !values.contains(&default) && cases.iter().all(|case| (axis.text)(case) == default);
            unused.then(|| {
                format!("`{}` {}: nothing that is run uses it", axis.name, values.join(","))
            })
        };
        let of_each = |sweep| AXES.iter().filter_map(move |axis| without_use(sweep, axis));
        self.sweeps.iter().flat_map(of_each).unique().collect()
    }

    /// All cases in order, each once; second, how many were dropped as repetitions.
    ///
    /// # Errors
    /// When there are too many, or none has the values of [`only`](Self::only).
    pub fn cases(&self) -> Result<(Vec<Case>, usize)> {
        let (mut cases, mut seen, mut dropped) = (Vec::new(), HashSet::new(), 0);
        let mut all = 0;
        for sweep in &self.sweeps {
            let peers = peers(sweep);
            let declared = |case: &Case, setting: &str| declared(&peers, case, setting);
            let of_peers = of_peers(sweep, &peers, &declared)?;
            for case in sweep.cases_with(&declared)?.into_iter().chain(of_peers) {
                all += 1;
                if !self.only.admits(&case) {
                    continue;
                }
                if seen.insert(format!("{case:?}")) {
                    cases.push(case);
                } else {
                    dropped += 1;
                }
            }
        }
        if cases.is_empty() && all > 0 {
            return Err(Error::input(format!("none of the {all} cases has these values"))
                .in_file("--only")
                .hint("`bilu-bench list settings` names settings and their values"));
        }
        Ok((cases, dropped))
    }
}

/// The peers among the backends of a sweep that are described.
fn peers(sweep: &Sweep) -> Vec<Peer> {
    let names = sweep.backend.iter().flatten().filter_map(|backend| external(backend));
    names.filter_map(|name| peer::find(name).ok()).collect()
}

/// Whether the peer of a case, if it has one, says that its own preconditioner takes a setting.
fn declared(peers: &[Peer], case: &Case, setting: &str) -> bool {
    let name = external(&case.precond).and(external(&case.backend));
    let peer = peers.iter().find(|peer| Some(&*peer.name) == name);
    peer.is_some_and(|peer| peer.declares(case, setting))
}

/// What `--precond all` stands for on a peer beside ours: its own preconditioners, where they take the other
/// settings.
fn of_peers(sweep: &Sweep, peers: &[Peer], declared: Declared) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    let all = sweep.of_all.iter().any(|(axis, _)| *axis == "precond");
    for peer in peers.iter().filter(|_| all) {
        let own = peer.own_preconditioners();
        if own.is_empty() {
            continue;
        }
        let (precond, backend) = (Some(own), Some(vec![format!("external:{}", peer.name)]));
        let of_peer = Sweep { precond, backend, ..sweep.clone() }.cases_with(declared)?;
        cases.extend(of_peer.into_iter().filter(|case| peer.words(case).is_ok()));
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_are_joined_without_repetitions_and_flags_replace_their_axes() {
        let a = Sweep { fill: Some(vec![0, 1]), ..Sweep::default() };
        let b = Sweep { fill: Some(vec![1, 2]), ..Sweep::default() };
        let experiment = Experiment { sweeps: vec![a, b], ..Experiment::default() };
        let (cases, dropped) = experiment.cases().unwrap();
        assert_eq!(cases.iter().map(|c| c.fill).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(dropped, 1);
        // of the cases that there are
        let only = |fill| Sweep { fill: Some(vec![fill, 9]), ..Sweep::default() };
        let (cases, dropped) = experiment.clone().restricted_to(&only(1)).cases().unwrap();
        assert_eq!((cases.len(), cases[0].fill, dropped), (1, 1, 1));
        let none = experiment.clone().restricted_to(&only(3)).cases().unwrap_err();
        assert!(none.to_string().contains("none of the 4 cases"), "{none}");
        let experiment = Experiment {
            inferred: vec!["fill 0: not stated".into(), "rtol 1e-6: not stated".into()],
            ..experiment
        };
        let flags = Sweep { fill: Some(vec![5]), block_size: Some(vec![4]), ..Sweep::default() };
        let changed = experiment.overridden_by(&flags, &MeasureOptions::default());
        assert_eq!(
            changed.inferred,
            ["fill 0: not stated (replaced on the command line)", "rtol 1e-6: not stated"]
        );
        let (cases, dropped) = changed.cases().unwrap();
        assert_eq!((cases.len(), cases[0].fill, cases[0].block_size, dropped), (1, 5, 4, 1));
    }
}
