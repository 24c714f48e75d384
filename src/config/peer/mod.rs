//! Peers: programs beside this one that solve the same systems, each described in a TOML file.
//!
//! A description says how the program is started and which settings of a case it takes, with its own words for
//! them.

mod folders;
mod read;

use std::path::PathBuf;

use crate::base::external::external;
use crate::case::Case;
use crate::config::{AXES, Axis};
pub(crate) use folders::{Folders, VARIABLE, all, available, find, give_folder, named};

/// A description.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) summary: String,
    /// The file, absolute: the program runs in its folder.
    pub(crate) file: PathBuf,
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    /// Whether the system is written as Matrix Market, too.
    pub(crate) matrix_market: bool,
    solvers: Vec<Method>,
    preconditioners: Vec<Method>,
    /// Solvers and preconditioners that `advise` tries.
    pub(crate) best: Vec<(String, String)>,
}

/// A solver or a preconditioner of a peer.
#[derive(Clone, Debug, PartialEq)]
struct Method {
    /// As our cases name it.
    name: String,
    /// As the peer does.
    word: String,
    settings: Vec<Values>,
}

/// The values of a setting that a method takes.
#[derive(Clone, Debug, PartialEq)]
struct Values {
    axis: &'static Axis,
    /// As they are declared.
    shown: String,
    /// Each as a case has it and as the peer does; `None`: any.
    known: Option<Vec<(String, String)>>,
}

/// Settings that a description does not name: they choose a method or the system, or are obeyed by every peer.
const NOT_DECLARED: [&str; 13] = [
    "matrix",
    "read-as",
    "zeros",
    "ordering",
    "scaling",
    "rhs",
    "kind",
    "precond",
    "solver",
    "rtol",
    "max-iterations",
    "symmetry-tolerance",
    "backend",
];

/// The settings that a description may name.
fn declarable() -> impl Iterator<Item = &'static Axis> {
    AXES.iter().filter(|axis| !NOT_DECLARED.contains(&axis.name))
}

impl Method {
    fn values(&self, axis: &Axis) -> Option<&Values> {
        self.settings.iter().find(|values| values.axis == axis)
    }

    /// `gmres (side left, right; restart 1..500)`
    fn described(&self) -> String {
        if self.settings.is_empty() {
            return self.name.clone();
        }
        let of = |values: &Values| format!("{} {}", values.axis.name, values.shown);
        let settings: Vec<String> = self.settings.iter().map(of).collect();
        format!("{} ({})", self.name, settings.join("; "))
    }
}

impl Values {
    /// The peer's word for a value; `None` where it does not take it.
    fn word(&self, text: &str) -> Option<String> {
        match &self.known {
            None => Some(text.to_owned()),
            Some(known) => known.iter().find(|(own, _)| own == text).map(|(_, word)| word.clone()),
        }
    }
}

impl Peer {
    /// The settings of a case in the words of the peer, where it has some of its own.
    ///
    /// # Errors
    /// Why the peer cannot run the case.
    pub(crate) fn words(&self, case: &Case) -> Result<Vec<(&'static str, String)>, String> {
        let solver = self.method("solver", &self.solvers, &case.solver)?;
        let precond = self.method("preconditioner", &self.preconditioners, &case.precond)?;
        let mut words = vec![("solver", solver.word.clone()), ("precond", precond.word.clone())];
        let default = Case::default();
        for axis in declarable() {
            let text = (axis.text)(case);
            let declared = [solver, precond].map(|method| (method, method.values(axis)));
            if declared.iter().all(|(_, values)| values.is_none()) {
                if case.uses_named(axis.name) && text != (axis.text)(&default) {
                    return Err(format!("the peer `{}` has no setting `{}`", self.name, axis.name));
                }
                continue;
            }
            for (method, values) in declared {
                let Some(values) = values else { continue };
                let word = values.word(&text).ok_or_else(|| {
                    format!(
                        "`{}` of the peer `{}` takes no {} {text}, but {}",
                        method.name, self.name, axis.name, values.shown
                    )
                })?;
                if word != text {
                    words.push((axis.name, word));
                }
            }
        }
        Ok(words)
    }

    /// Whether the methods of a case take a setting, by its name.
    pub(crate) fn declares(&self, case: &Case, setting: &str) -> bool {
        let of = |methods: &[Method], name: &str| {
            let method = methods.iter().find(|method| method.name == name);
            method.is_some_and(|m| m.settings.iter().any(|values| values.axis.name == setting))
        };
        of(&self.solvers, &case.solver) || of(&self.preconditioners, &case.precond)
    }

    /// Preconditioners that only the peer has.
    pub(crate) fn own_preconditioners(&self) -> Vec<String> {
        let names = self.preconditioners.iter().map(|method| method.name.clone());
        names.filter(|name| external(name).is_some()).collect()
    }

    /// The method of a list that a case names.
    fn method<'a>(
        &self,
        what: &str,
        methods: &'a [Method],
        name: &str,
    ) -> Result<&'a Method, String> {
        methods.iter().find(|method| method.name == name).ok_or_else(|| {
            let known: Vec<&str> = methods.iter().map(|method| method.name.as_str()).collect();
            format!(
                "the peer `{}` has no {what} `{name}`, but {}",
                self.name,
                if known.is_empty() { "none".into() } else { known.join(", ") }
            )
        })
    }

    /// What it can do, in a line.
    pub(crate) fn described(&self) -> String {
        let of = |methods: &[Method]| {
            methods.iter().map(Method::described).collect::<Vec<_>>().join(", ")
        };
        let (solvers, preconditioners) = (of(&self.solvers), of(&self.preconditioners));
        format!("{}; solvers: {solvers}; preconditioners: {preconditioners}", self.summary)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
