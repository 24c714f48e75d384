//! Cases as a TOML experiment that `run` and `reproduce` read back.

use std::fmt::Write as _;
use std::path::Path;

use crate::case::Case;
use crate::config::{AXES, Axis};
use crate::methods::precond;
use crate::problem;

/// An experiment of one case that means the same whatever the defaults become: every setting that the case
/// uses, with every parameter of its preconditioner, and no other.
pub fn stated(title: &str, notes: &[String], case: &Case) -> String {
    let mut text = head(title, notes);
    text.push_str("\n[[sweep]]\n");
    for axis in AXES.iter().filter(|axis| case.uses_named(axis.name) && names(case, axis)) {
        let word = match axis.name {
            "precond" => precond::stated(&case.precond),
            _ => (axis.text)(case),
        };
        _ = writeln!(text, "{} = {}", axis.name, value(&word));
    }
    text
}

/// An experiment of these cases in their order, each a sweep of the settings that differ from the
/// default's.
pub fn toml(title: &str, notes: &[String], cases: &[Case]) -> String {
    let mut text = head(title, notes);
    let default = Case::default();
    for case in cases {
        text.push_str("\n[[sweep]]\n");
        for axis in AXES.iter().filter(|axis| names(case, axis)) {
            let word = (axis.text)(case);
            // which matrix it is should not depend on the default
            if axis.name == "matrix" || word != (axis.text)(&default) {
                _ = writeln!(text, "{} = {}", axis.name, value(&word));
            }
        }
    }
    text
}

/// The same case as a file in `folder` has to name it, where relative paths count from that folder.
///
/// # Errors
/// When the working directory is not known.
pub(crate) fn named_in(folder: &Path, case: &Case) -> std::io::Result<Case> {
    let mut case = case.clone();
    if folder.as_os_str().is_empty() {
        return Ok(case);
    }
    let here = std::path::absolute(".")?;
    case.matrix = problem::located(&case.matrix, &here);
    case.rhs = problem::located_rhs(&case.rhs, &here);
    Ok(case)
}

/// Whether a case is named by this axis: its matrix, or the sequence of which that is a step, not by both.
fn names(case: &Case, axis: &Axis) -> bool {
    axis.name != if case.sequence.is_empty() { "sequence" } else { "matrix" }
}

/// Title and notes.
fn head(title: &str, notes: &[String]) -> String {
    let mut text = format!("title = {}\n", quoted(title));
    if !notes.is_empty() {
        text.push_str("notes = [\n");
        for note in notes {
            _ = writeln!(text, "    {},", quoted(note));
        }
        text.push_str("]\n");
    }
    text
}

/// Whole numbers bare, everything else as a string.
fn value(word: &str) -> String {
    let bare = word.len() < 16 && word.bytes().all(|b| b.is_ascii_digit());
    if bare { word.to_owned() } else { quoted(word) }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => _ = write!(out, "\\u{:04X}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::LevelRule;
    use crate::config::Experiment;
    use crate::config::file::parse;
    use crate::config::source::Source;

    fn read(text: &str) -> Experiment {
        let beside = |_: &str| unreachable!("nothing is beside it");
        parse(&Source { name: "x.toml", text, folder: None, beside: &beside }).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let cases = [
            Case { matrix: "a \"b\" \\ é\u{7}/x.mtx".into(), rtol: 1e-8, ..Case::default() },
            Case {
                matrix: "convdiff3d:8x8x8,px=0.3".into(),
                fill: 2,
                block_size: 4,
                level_rule: LevelRule::Overwrite,
                precond: "mcilu:p=1,q=2".into(),
                ordering: "random:7".parse().unwrap(),
                solver: "bicgstab".into(),
                ..Case::default()
            },
        ];
        let text = toml("of \"both\"", &["a note".into()], &cases);
        let read = read(&text);
        assert_eq!((read.title.as_deref(), read.notes.len()), (Some("of \"both\""), 1));
        assert_eq!(read.cases().unwrap(), (cases.to_vec(), 0));
    }

    #[test]
    fn what_is_stated_is_what_is_used() {
        let case =
            Case { precond: "mcsgs".into(), solver: "cg".into(), fill: 3, ..Case::default() };
        let text = stated("Advice", &["a note".into()], &case);
        let settings: Vec<&str> = text.lines().skip_while(|l| *l != "[[sweep]]").skip(1).collect();
        assert_eq!(
            settings,
            [
                "matrix = \"poisson3d:60\"",
                "read-as = \"expanded\"",
                "zeros = \"keep\"",
                "ordering = \"natural\"",
                "scaling = \"none\"",
                "rhs = \"ones\"",
                "block-size = 1",
                "kind = \"solve\"",
                "precond = \"mcsgs:omega=1,colouring=lattice\"",
                "shift = 0",
                "deflation = \"none\"",
                "solver = \"cg\"",
                "rtol = \"1e-6\"",
                "max-iterations = 2000",
                "symmetry-tolerance = \"1e-12\"",
                "matrix-format = \"auto\"",
                "factor-precision = \"float64\"",
                "backend = \"cpu\"",
            ]
        );
        let read = read(&text);
        assert_eq!(read.cases().unwrap(), (vec![Case { fill: 0, ..case }], 0));
    }
}
